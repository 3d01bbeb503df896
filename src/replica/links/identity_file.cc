// See identity_file.h.
#include "replica/links/identity_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/assert.h"
#include "base/coding.h"
#include "base/hash.h"
#include "replica/links/identity_check.h"
#include "replica/links/slot_seal.h"

namespace cellar {
namespace {

constexpr std::string_view kMagic = "CELLRREP";
constexpr uint32_t kVersion = 1;
constexpr size_t kSlotBytes = 64;
constexpr size_t kHashOffset = 56;

std::string EncodeSlot(const Identity& identity, uint64_t generation) {
  std::string slot(kMagic);
  PutFixed32(&slot, kVersion);
  PutFixed32(&slot, identity.term);
  PutFixed64(&slot, generation);
  PutFixed64(&slot, identity.cluster);
  PutFixed64(&slot, identity.node);
  PutFixed64(&slot, identity.vote);
  PutFixed64(&slot, identity.diverged);
  CELLAR_ASSERT(slot.size() == kHashOffset);
  PutFixed64(&slot, Hash64(slot));
  return slot;
}

// The slot's generation; nothing if it is not sound.
std::optional<uint64_t> DecodeSlot(std::string_view slot, Identity* identity) {
  if (slot.size() < kSlotBytes || slot.substr(0, kMagic.size()) != kMagic) return std::nullopt;
  if (DecodeFixed64(&slot[kHashOffset]) != Hash64(slot.substr(0, kHashOffset))) return std::nullopt;
  if (DecodeFixed32(&slot[8]) != kVersion) return std::nullopt;
  *identity = {.term = DecodeFixed32(&slot[12]),
               .cluster = DecodeFixed64(&slot[24]),
               .node = DecodeFixed64(&slot[32]),
               .vote = DecodeFixed64(&slot[40]),
               .diverged = DecodeFixed64(&slot[48])};
  return DecodeFixed64(&slot[16]);
}

}  // namespace

Result<std::unique_ptr<IdentityFile>> IdentityFile::Open(FileSystem& files,
                                                         const std::string& directory,
                                                         const Identity& fresh) {
  return OpenAs(files, directory, fresh, Older::kRefused);
}

Result<std::unique_ptr<IdentityFile>> IdentityFile::OpenAnew(FileSystem& files,
                                                             const std::string& directory,
                                                             const Identity& fresh) {
  return OpenAs(files, directory, fresh, Older::kTaken);
}

Result<std::unique_ptr<IdentityFile>> IdentityFile::OpenAs(FileSystem& files,
                                                           const std::string& directory,
                                                           const Identity& fresh, Older older) {
  CELLAR_ASSERT(fresh.node != 0);
  const std::string path = JoinPath(directory, kReplicaFileName);
  ASSIGN_OR_RETURN(const bool exists, files.Exists(path));
  std::string bytes;
  if (exists) RETURN_IF_ERROR(ReadWholeFile(files, path, &bytes));
  // A file that was made and never written is as good as none.
  if (!exists || bytes.empty()) {
    if (exists) RETURN_IF_ERROR(files.Remove(path));
    ASSIGN_OR_RETURN(auto file, files.Create(path));
    std::unique_ptr<IdentityFile> made(new IdentityFile(std::move(file)));
    RETURN_IF_ERROR(made->Write(fresh));
    RETURN_IF_ERROR(files.SyncDirectory(directory));
    return made;
  }
  ASSIGN_OR_RETURN(auto file, files.OpenForWriting(path));
  std::unique_ptr<IdentityFile> opened(new IdentityFile(std::move(file)));
  bool sound = false;
  for (size_t at = 0; at < std::min(bytes.size(), 2 * kSlotBytes); at += kSlotBytes) {
    Identity identity;
    const auto generation = DecodeSlot(std::string_view(bytes).substr(at), &identity);
    if (!generation || (sound && *generation < opened->generation_)) continue;
    opened->identity_ = identity;
    opened->generation_ = *generation;
    sound = true;
  }
  if (older == Older::kRefused)
    RETURN_IF_ERROR(CheckNewest(path, bytes, kIdentitySealOffset, opened->generation_, 0));
  if (sound) {
    // What a failed write has left may be read and not be on the disk: it is relied on from here
    // on.
    RETURN_IF_ERROR(opened->Write(Identity(opened->identity_)));
    return opened;
  }
  return Status::Error(ErrorCode::kCorruption, path + ": neither of its two slots is sound");
}

Result<std::optional<Identity>> IdentityFile::Read(FileSystem& files,
                                                   const std::string& directory) {
  const std::string path = JoinPath(directory, kReplicaFileName);
  ASSIGN_OR_RETURN(const bool exists, files.Exists(path));
  if (!exists) return std::optional<Identity>();
  ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(files, path));
  std::optional<Identity> newest;
  uint64_t newest_generation = 0;
  for (size_t at = 0; at < std::min(bytes.size(), 2 * kSlotBytes); at += kSlotBytes) {
    Identity identity;
    const auto generation = DecodeSlot(std::string_view(bytes).substr(at), &identity);
    if (!generation || (newest && *generation < newest_generation)) continue;
    newest = identity;
    newest_generation = *generation;
  }
  if (newest || bytes.empty()) return newest;
  return Status::Error(ErrorCode::kCorruption, path + ": neither of its two slots is sound");
}

Status CheckIdentitySlots(FileSystem& files, const std::string& directory) {
  const std::string path = JoinPath(directory, kReplicaFileName);
  ASSIGN_OR_RETURN(const bool exists, files.Exists(path));
  if (!exists) return Status::Ok();
  ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(files, path));
  const auto damaged = [&path](std::string_view what, size_t at) {
    return Status::Error(
        ErrorCode::kCorruption,
        fmt::format("{}: the {} at offset {} is not sound: what the other one says may be what was "
                    "so before the last change",
                    path, what, at));
  };
  // What was never written is a hole.
  for (size_t at = 0; at < std::min(bytes.size(), 2 * kSlotBytes); at += kSlotBytes) {
    const std::string_view slot = PartOf(bytes, at, kSlotBytes);
    Identity identity;
    if (!IsBlank(slot) && !DecodeSlot(slot, &identity)) return damaged("slot", at);
  }
  const std::string_view seal = PartOf(bytes, kIdentitySealOffset, kSealBytes);
  if (!IsBlank(seal) && !DecodeSeal(seal)) return damaged("seal", kIdentitySealOffset);
  if (bytes.size() > kIdentityFileBytes)
    return Status::Error(
        ErrorCode::kCorruption,
        fmt::format("{}: {} bytes stand behind its end", path, bytes.size() - kIdentityFileBytes));
  return Status::Ok();
}

Status IdentityFile::Write(const Identity& identity) {
  const uint64_t generation = generation_ + 1;
  RETURN_IF_ERROR(file_->WriteAt(generation % 2 * kSlotBytes, EncodeSlot(identity, generation)));
  RETURN_IF_ERROR(file_->Sync());
  identity_ = identity;
  generation_ = generation;
  // Without it the slot counts all the same.
  (void)file_->WriteAt(kIdentitySealOffset, EncodeSeal({.generation = generation, .boot = 0}));
  return Status::Ok();
}

}  // namespace cellar
