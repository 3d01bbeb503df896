// StoreFiles: the snapshots and log segments that several folders have of one store: its data
// directory, an archive of it, backups.
//
// A folder with a manifest has what that names. In one without, an archive, each file speaks for
// itself: its name has its number, its header says what it follows, and it is whole, since it was
// written elsewhere and renamed when it was.
//
// The numbers of a store's files ascend in the order of its log (manifest.h), so one number is one
// file, of which several folders may have copies; those of a segment may end at different records.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/os/file.h"
#include "store/format/log_format.h"
#include "store/format/manifest.h"

namespace cellar {

// Whose an archive is, and where something is missing in it (store/history/archive.h).
inline constexpr std::string_view kArchiveNoteName{"cellar.archive"};

// Whether the folder says that it is an archive.
Result<bool> IsArchive(FileSystem& files, const std::string& directory);

struct FoundSnapshot {
  std::string path;
  std::optional<SnapshotEntry> entry{};  // as a manifest names it
  uint64_t number{0};
  Lsn lsn;
  int64_t commit_micros{0};
};

enum class SegmentEnds : uint8_t {
  kByManifest,  // at `end`
  kWithFile,
  kOpen,  // where the records end, and the tail of a crash may follow
};
struct FoundSegment {
  std::string path;
  SegmentHeader header;
  SegmentEnds ends{SegmentEnds::kWithFile};
  std::optional<SegmentEntry::End> end{};
};

// A file that should be there and cannot be used.
struct LostFile {
  std::string path;
  StoreFileName name;
  std::string fault;
};

struct StoreFiles {
  std::vector<FoundSnapshot> snapshots;                    // ascending in time
  std::map<uint64_t, std::vector<FoundSegment>> segments;  // by number; the copies, none is empty
  std::vector<LostFile> lost;

  // Reads the headers. kIo if a folder is not there or a server is using it; kCorruption if one has
  // no file of a store, or two have different ones of the same number.
  // The locks of data directories are appended to *locks.
  static Result<StoreFiles> Find(FileSystem& files, const std::vector<std::string>& directories,
                                 std::vector<std::unique_ptr<FileLock>>* locks);
};

}  // namespace cellar
