// Archive: closed log segments, and the snapshot files that they follow, kept in another folder for
// longer than the data directory keeps them, so that the store of any moment since can be made
// (point_recovery.h).
//
//   dir       5.snapshot 6.log 7.log 8.log(open)          what a start needs
//   archive   1.log 2.snapshot 3.log ... 7.log            what was there, back to archive-keep
//             cellar.archive                              whose it is, and where something is missing
//
// A file comes in under its own name, by a second name for it or as a copy that is synced and
// renamed: what has such a name is whole, and never changes. A segment leaves the data directory
// only when it is here (Journal::PinFrom); the way here may fail for hours, then log waits there.
// Only where the disk is full the oldest go all the same: the gap is noted, and another snapshot
// is taken, from which on the archive is whole again.
//
//   cellar.archive   an id, and each gap; its bytes are in store/format/notes.h
//
// The id is in the data directory too (kStoreIdName), with the folder that it was given out for: so
// an archive of another store is not written to, and one whose disk is not mounted is not begun
// anew. Both are looked at before each round, since disks go while servers run.
//
// What is too old goes, but for a snapshot to begin with from archive-keep ago on, and what follows
// it; beyond archive-max-bytes more goes, but never the newest snapshot and the log behind it.
//
// The folder may be a prefix of an object store, s3://bucket/prefix (store/format/object_files.h), where a
// file comes in as an object that is there once it is whole. What was sent of one that was cut off
// is removed when the archive is opened next. It is opened by the thread, so that a server that
// does not answer holds up nobody: one that is another store's is told of in the error.
//
// After a failure the next attempt is made kPauseMs later, of an object store twice as late each
// time, up to kPauseMaxMs.
//
// Threads: all that touches files is done by a thread of its own. The methods are the loop's.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/os/file.h"
#include "base/os/object_store.h"
#include "cellar/clock.h"
#include "store/format/object_files.h"
#include "store/journal/journal.h"

namespace cellar {

struct ArchiveOptions {
  std::string directory;        // archive-dir; empty: none
  ObjectStoreOpener objects{};  // for one of an object store
  int64_t keep_micros{7LL * 86'400 * 1'000'000};
  uint64_t bytes_max{0};               // 0: no limit
  int64_t timeout_micros{60'000'000};  // a segment with records is closed at this age
};

struct ArchiveStats {
  std::string error;  // of the last attempt; empty: it went well
  uint64_t files{0};
  uint64_t bytes{0};
  uint64_t next_segment{0};  // those before it are here, or will not be
  uint64_t log_bytes{0};     // of records in segments of the manifest before that
  uint64_t gaps{0};
};

class Archive final : private ObjectWatcher {
 public:
  // `journal` outlives it. ERR if the folder is another store's, or of something else; or there is
  // no way to the object store.
  static Result<std::unique_ptr<Archive>> Open(ArchiveOptions options, std::string store_directory,
                                               FileSystem& files, Clock& clock, Journal& journal);
  ~Archive() override;
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  void SetLimits(int64_t keep_micros, uint64_t bytes_max, int64_t timeout_micros);
  // From a timer; tells of a full disk, and takes the snapshot that a gap calls for.
  void Poll();
  ArchiveStats Stats() const;
  // Of what has gone wrong or is well again since the last call; empty if nothing.
  std::string TakeNews();

  // What the thread does, in tests without one.
  Status Pass();

 private:
  struct Kept {
    StoreFileKind kind{StoreFileKind::kSegment};
    uint64_t bytes{0};
  };
  // What a file says of itself.
  struct Head {
    Lsn lsn;                   // of a snapshot; of a segment: the last record before it
    int64_t commit_micros{0};  // of that
    bool is_known{false};      // else the file's header cannot be read
  };

  Archive(ArchiveOptions options, std::string store_directory, FileSystem& files, Clock& clock,
          Journal& journal);
  void Run();
  bool GoesOn(uint32_t attempts) override;
  void Failed(const Status& status) override;
  Status OpenFolder();
  Status CheckThere();
  Status CheckOwner(const std::vector<std::string>& names, std::string* note);
  Status Learn(const std::string& name);
  Status CheckSame(const std::string& name);
  Status TakeIn(const Manifest& manifest);
  Status TakeFile(StoreFileKind kind, uint64_t number, uint64_t bytes, bool* came);
  Status DropForRoom(const Manifest& manifest);
  Result<Head> HeadOf(uint64_t number);
  Status Expire();
  Result<std::vector<uint64_t>> Superseded(uint64_t base);
  void CloseOldSegment(const Manifest& manifest);
  std::string NoteText() const;
  void Publish(const Status& status);
  void TellError(const std::string& error);  // under mutex_

  const std::string directory_;
  const std::string store_directory_;
  ObjectFiles files_;
  Clock& clock_;
  Journal& journal_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  // Under mutex_:
  ArchiveOptions options_;
  bool stop_{false};
  bool room_is_short_{false};
  bool hurry_{false};  // that has just come
  bool wants_snapshot_{false};
  ArchiveStats stats_;
  std::string news_;

  // The thread's own:
  bool is_open_{false};
  std::unique_ptr<FileLock> lock_;
  std::string id_;
  std::map<uint64_t, Kept> kept_;   // by number
  std::map<uint64_t, Head> heads_;  // of those that were asked for
  uint64_t next_segment_{0};        // the first that is not here, of those to come
  std::vector<std::string> gaps_;   // lines
  bool gaps_are_noted_{true};
  uint64_t open_segment_{0};
  int64_t open_since_micros_{0};  // monotonic
  uint32_t failures_{0};          // passes in a row
  std::string error_told_;
  std::thread thread_;
};

}  // namespace cellar
