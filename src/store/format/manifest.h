// Manifest: which files make up the store. A small text file, `cellar.manifest`, replaced as a
// whole. Format version 1, 2 if it names earlier snapshots, 3 if the store holds a log alone; all
// final:
//
//   cellar-manifest 1
//   next 8
//   holds log
//   earlier-snapshot cellar-000003.snapshot lsn 1-900 bytes 60000 hash 0123456789abcdef
//   snapshot cellar-000005.snapshot lsn 1-1000 bytes 65536 hash 0123456789abcdef
//   log cellar-000006.log after 1-1000 end 4096 last 1-1070
//   log cellar-000007.log after 1-1070
//   xxh3 0123456789abcdef
//
//   next      the number of the next file: each new file takes one, none is used twice
//   holds     of version 3: the records of the log are kept and never applied, and the snapshots are
//             of an empty state (a witness, replica/set_node.h). Nothing that opens such a store may
//             take it for one that has lost its data, or has none
//   snapshot  none before the first one. `hash` is the hash in the file's trailer
//   earlier-snapshot  those that are kept beside it, the oldest first (snapshot-keep)
//   log       segments in order, back to what the oldest snapshot lacks if that is there. `after`: the LSN before the first record. A closed one has `end`,
//             the file's offset behind the last record that counts, and `last`, that record's LSN;
//             what a file holds behind `end` never counts. Only the last segment may be open
//   xxh3      XXH3 of all bytes before this line
//
// A change is written to `cellar.manifest.tmp`, synced, renamed over the old one, and the folder is
// synced. Only then may anything rely on it; if that last sync fails, either one may be found
// later, so every file of both stays.
//
// Files of a store that its manifest does not name: those numbered below `next` are left over from
// before (superseded, the crash came before they were removed) and may go; those from `next` on
// were being made and hold nothing that was acknowledged, but are left alone, as are all other
// names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/os/file.h"
#include "cellar/lsn.h"
#include "cellar/status.h"

namespace cellar {

inline constexpr std::string_view kManifestName = "cellar.manifest";
inline constexpr std::string_view kManifestTemporaryName = "cellar.manifest.tmp";
inline constexpr std::string_view kLockName = "cellar.lock";
// Beside the log, and nothing to recovery: who this node is (replica/links/identity_file.h), and a
// copy of the leader's snapshot that is still coming.
inline constexpr std::string_view kReplicaFileName = "cellar.replica";
inline constexpr std::string_view kSyncName = "cellar-sync.tmp";
// Whose archive is its own (archive.h); of a sealed backup, when that was; and where backups stand
// unless it is said otherwise (backup.h).
inline constexpr std::string_view kStoreIdName = "cellar.store";
inline constexpr std::string_view kBackupNoteName = "cellar.backup";
inline constexpr std::string_view kBackupFolderName = "backupdir";
// An empty file that says: no store is lost here, a new one may begin. Whoever prepares a folder
// for a first start puts it there (the package does); it goes when there is a manifest.
inline constexpr std::string_view kNewStoreName = "cellar.new";

struct SnapshotEntry {
  uint64_t number{0};
  Lsn lsn;
  uint64_t bytes{0};
  uint64_t hash{0};

  friend bool operator==(const SnapshotEntry&, const SnapshotEntry&) = default;
};

struct SegmentEntry {
  struct End {
    uint64_t offset{0};
    Lsn last;
    friend bool operator==(const End&, const End&) = default;
  };
  uint64_t number{0};
  Lsn after{};
  std::optional<End> end{};  // none: open

  friend bool operator==(const SegmentEntry&, const SegmentEntry&) = default;
};

enum class StoreFileKind : uint8_t { kSegment, kSnapshot, kTemporarySnapshot };
struct StoreFileName {
  StoreFileKind kind;
  uint64_t number;
};

struct Manifest {
  uint64_t next{1};
  std::optional<SnapshotEntry> snapshot;
  std::vector<SnapshotEntry> earlier;  // the oldest first; only with a `snapshot`
  std::vector<SegmentEntry> segments;
  bool holds_log_only{false};

  bool Names(const StoreFileName& file) const;

  friend bool operator==(const Manifest&, const Manifest&) = default;
};

// "cellar-000007.log", "cellar-000005.snapshot", "cellar-000005.snapshot.tmp".
std::string FormatFileName(StoreFileKind kind, uint64_t number);
std::optional<StoreFileName> ParseFileName(std::string_view name);
// Whether it is a name under which Redis keeps data: dump.rdb, appendonlydir, appendonly.aof. Who
// moves from Redis may expect that they are read.
bool IsRedisFileName(std::string_view name);

// "1-1000".
std::string FormatLsn(Lsn lsn);

std::string FormatManifest(const Manifest& manifest);
// kCorruption with what is wrong; any changed byte is noticed.
Result<Manifest> ParseManifest(std::string_view text);

// kCorruption naming the file if it cannot be parsed; nothing if there is none.
Result<std::optional<Manifest>> LoadManifest(FileSystem& files, const std::string& directory);

// What a folder without a manifest means, by the names in it: OK if there is no file of a store
// either, else kCorruption naming one.
Status CheckNoOrphans(const std::string& directory, const std::vector<std::string>& names);

enum class InstallOutcome : uint8_t {
  kInstalled,  // durable
  kUnchanged,  // failed; the old manifest stands
  kUnknown,    // failed after the rename was tried: either may be found after a crash
};
struct InstallResult {
  InstallOutcome outcome;
  Status status;  // OK iff kInstalled
};
InstallResult InstallManifest(FileSystem& files, const std::string& directory,
                              const Manifest& manifest);

}  // namespace cellar
