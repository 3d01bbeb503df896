// See repair.h.
#include "store/repair.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

namespace cellar {
namespace {

constexpr std::string_view kUnfinishedSuffix{".damaged.tmp"};

// Is there a whole copy of these bytes among the names that a copy of `path` may have? *found
// is its name, or the first one that is free.
Result<bool> FindCopy(FileSystem& files, const std::string& path, std::string_view bytes,
                      std::string* found) {
  for (int n = 1;; ++n) {
    *found = path + std::string(kDamagedSuffix) + (n == 1 ? "" : fmt::format("-{}", n));
    ASSIGN_OR_RETURN(const bool exists, files.Exists(*found));
    if (!exists) return false;
    ASSIGN_OR_RETURN(const std::string copy, ReadWholeFile(files, *found));
    if (copy == bytes) return true;
  }
}

Status WriteCopy(FileSystem& files, const std::string& path, const std::string& temporary,
                 std::string_view bytes) {
  ASSIGN_OR_RETURN(const bool exists, files.Exists(temporary));
  if (exists) RETURN_IF_ERROR(files.Remove(temporary));
  ASSIGN_OR_RETURN(auto file, files.Create(temporary));
  RETURN_IF_ERROR(file->WriteAt(0, bytes));
  RETURN_IF_ERROR(file->Sync());
  RETURN_IF_ERROR(file->Close());
  return files.Rename(temporary, path);
}

Status KeepAside(FileSystem& files, const std::string& directory, const std::string& name,
                 std::ostream& out) {
  const std::string path = JoinPath(directory, name);
  ASSIGN_OR_RETURN(const bool exists, files.Exists(path));
  if (!exists) return Status::Ok();
  ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(files, path));
  std::string copy;
  ASSIGN_OR_RETURN(const bool is_there, FindCopy(files, path, bytes, &copy));
  if (!is_there) {
    const std::string temporary = path + std::string(kUnfinishedSuffix);
    if (const Status status = WriteCopy(files, copy, temporary, bytes); !status.ok()) {
      (void)files.Remove(temporary);
      return Status::Error(
          status.code(), fmt::format("cannot keep a copy of {}: {}. Nothing has been changed; run "
                                     "the repair again when that is mended",
                                     path, status.text()));
    }
  }
  out << name << ": kept as " << copy << '\n';
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
  for (const SegmentEntry& entry : manifest.segments)
    names.push_back(FormatFileName(StoreFileKind::kSegment, entry.number));
  return names;
}

}  // namespace

Status CarryOutRepair(FileSystem& files, const std::string& directory, const RepairPlan& plan,
                      std::ostream& out) {
  RETURN_IF_ERROR(RemoveUnfinished(files, directory));
  for (const std::string& name : plan.aside)
    RETURN_IF_ERROR(KeepAside(files, directory, name, out));
  RETURN_IF_ERROR(files.SyncDirectory(directory));
  RETURN_IF_ERROR(InstallManifest(files, directory, plan.after).status);
  const std::vector<std::string> stay = NamesIn(plan.after);
  for (const std::string& name : NamesIn(plan.before)) {
    if (std::find(stay.begin(), stay.end(), name) == stay.end())
      (void)files.Remove(JoinPath(directory, name));
  }
  return Status::Ok();
}

}  // namespace cellar
