// See member_file.h.
#include "replica/set/member_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <ostream>
#include <string_view>
#include <utility>

#include "base/assert.h"
#include "base/coding.h"
#include "base/hash.h"
#include "base/os/file_mark.h"
#include "replica/links/identity_file.h"
#include "replica/links/slot_seal.h"
#include "store/format/manifest.h"
#include "store/format/member_name.h"

namespace cellar {
namespace {

constexpr std::string_view kMagic = "CELLRMEM";
constexpr size_t kSlotBytes{16 << 10};
constexpr size_t kHeadBytes{20};
constexpr size_t kHashBytes{8};
constexpr TwoSlots::Places kMemberPlaces{
    .first = 0, .slot_bytes = kSlotBytes, .seal = 2 * kSlotBytes};
constexpr size_t kMemberFileBytes{2 * kSlotBytes + kSealBytes};
// What a process writes at once lies in one page of the kernel's, or may be torn when it is killed.
constexpr size_t kPageBytes{4096};

std::optional<uint64_t> DecodeSlot(std::string_view slot, MemberMemory* memory) {
  if (slot.size() < kHeadBytes + kHashBytes || !slot.starts_with(kMagic)) return std::nullopt;
  const size_t length = DecodeFixed32(&slot[16]);
  if (length > kSlotBytes - kHeadBytes - kHashBytes ||
      slot.size() < kHeadBytes + length + kHashBytes)
    return std::nullopt;
  const size_t end = kHeadBytes + length;
  if (DecodeFixed64(&slot[end]) != Hash64(slot.substr(0, end))) return std::nullopt;
  if (!DecodeMemory(slot.substr(kHeadBytes, length), memory)) return std::nullopt;
  return DecodeFixed64(&slot[8]);
}

constexpr std::string_view kTieMagic = "CELLRTIE";
constexpr uint32_t kTieVersion = 1;
constexpr uint64_t kTieOffset = 128;
constexpr size_t kTieBytes = 128;
constexpr size_t kTieHashOffset = 120;
constexpr TwoSlots::Places kTiePlaces{
    .first = kTieOffset, .slot_bytes = kTieBytes, .seal = kTieSealOffset};
constexpr uint32_t kTieLazy = 1;
constexpr uint32_t kTieClosed = 2;

std::string EncodeTie(const MemberTie& tie, uint64_t generation) {
  std::string slot(kTieMagic);
  PutFixed32(&slot, kTieVersion);
  PutFixed32(&slot, (tie.lazy ? kTieLazy : 0) | (tie.closed ? kTieClosed : 0));
  PutFixed64(&slot, generation);
  PutFixed64(&slot, tie.start);
  PutFixed64(&slot, tie.next_start);
  PutFixed64(&slot, tie.mark.inode);
  PutFixed64(&slot, static_cast<uint64_t>(tie.mark.birth_nanos));
  PutFixed64(&slot, tie.boot);
  PutFixed32(&slot, tie.acknowledged.epoch);
  PutFixed64(&slot, tie.acknowledged.seq);
  PutFixed32(&slot, tie.epoch);
  slot.resize(kTieHashOffset, '\0');
  PutFixed64(&slot, Hash64(slot));
  return slot;
}

std::optional<uint64_t> DecodeTie(std::string_view slot, MemberTie* tie) {
  if (slot.size() < kTieBytes || slot.substr(0, kTieMagic.size()) != kTieMagic) return std::nullopt;
  if (DecodeFixed64(&slot[kTieHashOffset]) != Hash64(slot.substr(0, kTieHashOffset)))
    return std::nullopt;
  if (DecodeFixed32(&slot[8]) != kTieVersion) return std::nullopt;
  const uint32_t flags = DecodeFixed32(&slot[12]);
  *tie = {.start = DecodeFixed64(&slot[24]),
          .next_start = DecodeFixed64(&slot[32]),
          .mark = {.inode = DecodeFixed64(&slot[40]),
                   .birth_nanos = static_cast<int64_t>(DecodeFixed64(&slot[48]))},
          .boot = DecodeFixed64(&slot[56]),
          .lazy = (flags & kTieLazy) != 0,
          .closed = (flags & kTieClosed) != 0,
          .acknowledged = {DecodeFixed32(&slot[64]), DecodeFixed64(&slot[68])},
          .epoch = DecodeFixed32(&slot[76])};
  return DecodeFixed64(&slot[16]);
}

// The length of what DecodeSlot reads.
size_t UsedBytes(std::string_view slot) {
  return kHeadBytes + DecodeFixed32(&slot[16]) + kHashBytes;
}

Status Damaged(const std::string& path, std::string_view what, uint64_t at) {
  return Status::Error(
      ErrorCode::kCorruption,
      fmt::format("{}: the {} at offset {} is not sound: what is left may be what was so before "
                  "the last change",
                  path, what, at));
}

Status CheckSeal(const std::string& path, std::string_view bytes, uint64_t at) {
  const std::string_view seal = PartOf(bytes, at, kSealBytes);
  return IsBlank(seal) || DecodeSeal(seal) ? Status::Ok() : Damaged(path, "seal", at);
}

}  // namespace

// --- two slots

bool TwoSlots::Found(uint64_t slot, uint64_t generation) {
  if (generation < generation_) return false;
  generation_ = generation;
  kept_slot_ = slot;
  return true;
}

Status TwoSlots::Write(const Places& places, std::string_view bytes, Durable durable) {
  CELLAR_ASSERT(bytes.size() <= places.slot_bytes);
  const uint64_t slot = next_slot();
  if (may_be_sealed_) {
    RETURN_IF_ERROR(file_->WriteAt(places.seal, std::string(kSealBytes, '\0')));
    may_be_sealed_ = false;
  }
  RETURN_IF_ERROR(file_->WriteAt(places.first + slot * places.slot_bytes, bytes));
  ++generation_;
  SlotSeal seal{.generation = generation_, .boot = boot_};
  if (durable == Durable::kYes) {
    RETURN_IF_ERROR(file_->Sync());
    kept_slot_ = slot;
    seal.boot = 0;
  } else if (boot_ == 0 || bytes.size() > kPageBytes) {
    return Status::Ok();
  }
  // Of the slot that is written next, from now on: none, or this one.
  may_be_sealed_ = durable == Durable::kNo;
  (void)file_->WriteAt(places.seal, EncodeSeal(seal));
  return Status::Ok();
}

// --- what is remembered of others

Result<std::unique_ptr<MemberFile>> MemberFile::Open(FileSystem& files,
                                                     const std::string& directory, uint64_t boot) {
  const std::string path = JoinPath(directory, kMemberFileName);
  ASSIGN_OR_RETURN(const bool exists, files.Exists(path));
  if (!exists) {
    ASSIGN_OR_RETURN(auto file, files.Create(path));
    RETURN_IF_ERROR(file->Allocate(0, kMemberFileBytes));
    std::unique_ptr<MemberFile> made(new MemberFile(std::move(file), boot));
    RETURN_IF_ERROR(made->Write({}, Durable::kYes));
    RETURN_IF_ERROR(files.SyncDirectory(directory));
    return made;
  }
  std::string bytes;
  RETURN_IF_ERROR(ReadWholeFile(files, path, &bytes));
  ASSIGN_OR_RETURN(auto file, files.OpenForWriting(path));
  std::unique_ptr<MemberFile> opened(new MemberFile(std::move(file), boot));
  bool sound = false;
  for (const uint64_t slot : {uint64_t{0}, uint64_t{1}}) {
    const std::string_view part = PartOf(bytes, slot * kSlotBytes, kSlotBytes);
    opened->used_[slot] = part.find_last_not_of('\0') + 1;
    MemberMemory memory;
    const auto generation = DecodeSlot(part, &memory);
    if (!generation || !opened->slots_.Found(slot, *generation)) continue;
    opened->memory_ = std::move(memory);
    sound = true;
  }
  RETURN_IF_ERROR(CheckNewest(path, bytes, kMemberPlaces.seal, opened->slots_.generation(), boot));
  // One that was made and never written.
  if (sound || IsBlank(bytes)) return opened;
  return Status::Error(ErrorCode::kCorruption, path + ": neither of its two slots is sound");
}

// What was longer before leaves nothing behind.
Status MemberFile::Write(const MemberMemory& memory, Durable durable) {
  const std::string text = EncodeMemory(memory);
  std::string slot(kMagic);
  PutFixed64(&slot, slots_.generation() + 1);
  PutFixed32(&slot, static_cast<uint32_t>(text.size()));
  slot += text;
  PutFixed64(&slot, Hash64(slot));
  CELLAR_ASSERT(slot.size() <= kSlotBytes);
  uint64_t& used = used_[slots_.next_slot()];
  slot.resize(std::max<size_t>(slot.size(), used), '\0');
  used = slot.size();
  RETURN_IF_ERROR(slots_.Write(kMemberPlaces, slot, durable));
  memory_ = memory;
  return Status::Ok();
}

// --- what ties a directory to its last start

Result<std::unique_ptr<TieFile>> TieFile::Open(FileSystem& files, const std::string& directory,
                                               uint64_t boot) {
  const std::string path = JoinPath(directory, kReplicaFileName);
  std::string bytes;
  RETURN_IF_ERROR(ReadWholeFile(files, path, &bytes));
  ASSIGN_OR_RETURN(auto file, files.OpenForWriting(path));
  std::unique_ptr<TieFile> opened(new TieFile(std::move(file), boot));
  for (const uint64_t slot : {uint64_t{0}, uint64_t{1}}) {
    MemberTie tie;
    const auto generation =
        DecodeTie(PartOf(bytes, kTieOffset + slot * kTieBytes, kTieBytes), &tie);
    if (generation && opened->slots_.Found(slot, *generation)) opened->tie_ = tie;
  }
  RETURN_IF_ERROR(CheckNewest(path, bytes, kTieSealOffset, opened->slots_.generation(), boot));
  return opened;
}

Status TieFile::Write(const MemberTie& tie, Durable durable) {
  RETURN_IF_ERROR(slots_.Write(kTiePlaces, EncodeTie(tie, slots_.generation() + 1), durable));
  tie_ = tie;
  return Status::Ok();
}

// --- both

// A crash in between leaves one file of the two, which the start refuses.
Status ForgetPast(FileSystem& files, const std::string& directory) {
  const auto member = MemberFile::Open(files, directory, BootId());
  const auto tied = TieFile::Open(files, directory, BootId());
  if (member.ok() && tied.ok()) {
    MemberTie tie = (*tied)->tie();
    tie.acknowledged = {};
    tie.epoch = 0;
    return tie.start == 0 ? Status::Ok() : (*tied)->Write(tie, Durable::kYes);
  }
  ASSIGN_OR_RETURN(auto file, files.OpenForWriting(JoinPath(directory, kReplicaFileName)));
  RETURN_IF_ERROR(file->WriteAt(kTieSealOffset, std::string(kSealBytes, '\0')));
  RETURN_IF_ERROR(file->WriteAt(kTieOffset, std::string(2 * kTieBytes, '\0')));
  RETURN_IF_ERROR(file->Sync());
  RETURN_IF_ERROR(file->Close());
  const std::string path = JoinPath(directory, kMemberFileName);
  ASSIGN_OR_RETURN(const bool exists, files.Exists(path));
  if (!exists) return Status::Ok();
  RETURN_IF_ERROR(files.Remove(path));
  return files.SyncDirectory(directory);
}

namespace {

Status CheckSlots(const std::string& path, std::string_view bytes, bool is_tie) {
  const TwoSlots::Places& places = is_tie ? kTiePlaces : kMemberPlaces;
  for (const uint64_t slot : {uint64_t{0}, uint64_t{1}}) {
    const uint64_t at = places.first + slot * places.slot_bytes;
    const std::string_view part = PartOf(bytes, at, places.slot_bytes);
    MemberTie tie;
    MemberMemory memory;
    const bool sound = (is_tie ? DecodeTie(part, &tie) : DecodeSlot(part, &memory)).has_value();
    const bool clean = is_tie || !sound || IsBlank(part.substr(UsedBytes(part)));
    if ((!sound && !IsBlank(part)) || !clean) return Damaged(path, "slot", at);
  }
  RETURN_IF_ERROR(CheckSeal(path, bytes, places.seal));
  if (!is_tie && bytes.size() > kMemberFileBytes)
    return Damaged(path, "part behind its end", kMemberFileBytes);
  return Status::Ok();
}

}  // namespace

Status CheckMemberFiles(FileSystem& files, const std::string& directory, std::ostream& out) {
  Status found = Status::Ok();
  for (const std::string_view name : {kReplicaFileName, kMemberFileName}) {
    const std::string path = JoinPath(directory, name);
    ASSIGN_OR_RETURN(const bool exists, files.Exists(path));
    if (!exists) continue;
    ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(files, path));
    const Status checked = CheckSlots(path, bytes, name == kReplicaFileName);
    if (checked.ok()) continue;
    out << name << ": DAMAGED: " << checked.text() << '\n';
    if (found.ok()) found = checked;
  }
  return found;
}

}  // namespace cellar
