// See file_modes.h.
#include "store/history/file_modes.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/os/file.h"
#include "base/os/file_modes.h"
#include "base/os/object_store.h"
#include "store/format/manifest.h"
#include "store/format/store_files.h"
#include "store/journal/diverged.h"

namespace cellar {
namespace {

bool IsStoreFile(std::string_view name) {
  constexpr std::string_view kNames[] = {
      kManifestName, kManifestTemporaryName, kLockName,        kReplicaFileName, kSyncName,
      kStoreIdName,  kBackupNoteName,        kArchiveNoteName, kNewStoreName};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames) ||
         ParseFileName(name).has_value() || IsDivergedName(name);
}

}  // namespace

void LimitStoreModes(const std::string& folder) {
  if (folder.empty() || IsObjectPath(folder)) return;
  const Result<std::vector<std::string>> names = FileSystem::Posix().List(folder);
  if (!names.ok() || !std::any_of(names->begin(), names->end(), IsStoreFile)) return;
  for (const std::string& name : *names) {
    if (IsStoreFile(name)) SetStoreFileMode(JoinPath(folder, name));
  }
  LimitStoreFolderMode(folder);
}

}  // namespace cellar
