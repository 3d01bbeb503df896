// See repair.h.
#include "store/offline/repair.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

namespace cellar {
namespace {

constexpr std::string_view kUnfinishedSuffix{".damaged.tmp"};
constexpr size_t kPieceBytes{1 << 20};

Result<bool> SameContent(FileSystem& files, const std::string& one, const std::string& other) {
  ASSIGN_OR_RETURN(auto a, files.OpenForReading(one));
  ASSIGN_OR_RETURN(auto b, files.OpenForReading(other));
  std::string from_a(kPieceBytes, '\0');
  std::string from_b(kPieceBytes, '\0');
  for (uint64_t offset = 0;; offset += kPieceBytes) {
    ASSIGN_OR_RETURN(const size_t n, a->ReadAt(offset, kPieceBytes, from_a.data()));
    ASSIGN_OR_RETURN(const size_t m, b->ReadAt(offset, kPieceBytes, from_b.data()));
    if (n != m || std::string_view(from_a).substr(0, n) != std::string_view(from_b).substr(0, m))
      return false;
    if (n < kPieceBytes) return true;
  }
}

// Is what `path` holds kept under one of the names that it may have? *found is that name, or the
// first one that is free.
Result<bool> FindKept(FileSystem& files, const std::string& path, std::string_view suffix,
                      std::string* found) {
  for (int n = 1;; ++n) {
    *found = path + std::string(suffix) + (n == 1 ? "" : fmt::format("-{}", n));
    ASSIGN_OR_RETURN(const bool exists, files.Exists(*found));
    if (!exists) return false;
    ASSIGN_OR_RETURN(const bool same, SameContent(files, path, *found));
    if (same) return true;
  }
}

Status WriteCopy(FileSystem& files, const std::string& from, const std::string& path,
                 const std::string& temporary) {
  ASSIGN_OR_RETURN(const bool exists, files.Exists(temporary));
  if (exists) RETURN_IF_ERROR(files.Remove(temporary));
  ASSIGN_OR_RETURN(auto source, files.OpenForReading(from));
  ASSIGN_OR_RETURN(auto file, files.Create(temporary));
  std::string piece(kPieceBytes, '\0');
  for (uint64_t offset = 0;; offset += kPieceBytes) {
    ASSIGN_OR_RETURN(const size_t n, source->ReadAt(offset, kPieceBytes, piece.data()));
    if (n > 0) RETURN_IF_ERROR(file->WriteAt(offset, std::string_view(piece).substr(0, n)));
    if (n < kPieceBytes) break;
  }
  RETURN_IF_ERROR(file->Sync());
  RETURN_IF_ERROR(file->Close());
  return files.Rename(temporary, path);
}

// `stays`: something of the file goes on being used, so that a second name would not do.
Status KeepAside(FileSystem& files, const std::string& directory, const KeptAside& aside,
                 bool stays, std::ostream& out) {
  const std::string path = JoinPath(directory, aside.name);
  ASSIGN_OR_RETURN(const bool exists, files.Exists(path));
  if (!exists) return Status::Ok();
  std::string kept;
  ASSIGN_OR_RETURN(const bool is_there, FindKept(files, path, aside.suffix, &kept));
  // Where the file system has no second names for a file, a copy takes more room and time.
  if (!is_there && (stays || !files.Link(path, kept).ok())) {
    const std::string temporary = path + std::string(kUnfinishedSuffix);
    if (const Status status = WriteCopy(files, path, kept, temporary); !status.ok()) {
      (void)files.Remove(temporary);
      return Status::Error(
          status.code(), fmt::format("cannot keep a copy of {}: {}. Nothing has been changed; run "
                                     "the repair again when that is mended",
                                     path, status.text()));
    }
  }
  out << aside.name << ": kept as " << kept << '\n';
  return Status::Ok();
}

Status RemoveUnfinished(FileSystem& files, const std::string& directory) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(directory));
  for (const std::string& name : names) {
    if (name.ends_with(kUnfinishedSuffix)) RETURN_IF_ERROR(files.Remove(JoinPath(directory, name)));
  }
  return Status::Ok();
}

std::vector<std::string> NamesIn(const Manifest& manifest) {
  std::vector<std::string> names;
  if (manifest.snapshot)
    names.push_back(FormatFileName(StoreFileKind::kSnapshot, manifest.snapshot->number));
  for (const SnapshotEntry& entry : manifest.earlier)
    names.push_back(FormatFileName(StoreFileKind::kSnapshot, entry.number));
  for (const SegmentEntry& entry : manifest.segments)
    names.push_back(FormatFileName(StoreFileKind::kSegment, entry.number));
  return names;
}

}  // namespace

Status CarryOutRepair(FileSystem& files, const std::string& directory, const RepairPlan& plan,
                      std::ostream& out) {
  RETURN_IF_ERROR(RemoveUnfinished(files, directory));
  std::vector<std::string> stay = NamesIn(plan.after);
  stay.emplace_back(kManifestName);
  const auto stays = [&](const std::string& name) {
    return std::find(stay.begin(), stay.end(), name) != stay.end();
  };
  for (const KeptAside& aside : plan.aside)
    RETURN_IF_ERROR(KeepAside(files, directory, aside, stays(aside.name), out));
  RETURN_IF_ERROR(files.SyncDirectory(directory));
  RETURN_IF_ERROR(InstallManifest(files, directory, plan.after).status);
  std::vector<std::string> go = NamesIn(plan.before);
  for (const KeptAside& aside : plan.aside) go.push_back(aside.name);
  for (const std::string& name : go) {
    if (!stays(name)) (void)files.Remove(JoinPath(directory, name));
  }
  return Status::Ok();
}

}  // namespace cellar
