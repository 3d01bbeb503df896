// Backup: the BACKUP commands. A copy of the store of one moment in a folder of its own, made while
// clients write, in two steps, so that several servers can be brought to one moment cheaply.
//
//   Start   --> snapshotting --> incrementing --Seal--> sealed --Cleanup--> idle
//                   |                 |        (sealing)   |   (or its TTL)
//                   +---- Abort ------+--> failed <--------+  an error, a full disk
//
//   START   a snapshot file is written into the folder, the base; from then on the log behind it
//           stays in the data directory, whatever snapshots come
//   SEAL    the log goes on in a new segment; those behind the base are linked, or copied, into
//           the folder, and at last a manifest is written: it is a data directory then
//
// Where there is no log to be linked (appendonly no), or it is not certain yet (a member of a
// replica set, a follower), SEAL writes another snapshot in place of the base; of a member, the
// manifest waits until all that it holds is committed.
//
// The folder may be a prefix of an object store (store/format/object_files.h): the base goes there
// as it is written, without room on a disk. Whether a sealed one is there is found out by the other
// thread; until then Start is TRYAGAIN.
//
// A part of a backup of a cluster (StartPart) is of one set, in a folder set-N of its own beside
// those of other sets. Its moment is a cut: the state is taken hold of as it is just then
// (NoteCut), whether or not it will be wanted, and SealCut makes a snapshot of it in place of the
// base. What the whole backup is made of is told in a file beside the folders (Describe).
//
// What goes wrong leaves the state kFailed and nothing in the folder, but what another node of the
// set has begun there since: they may share it, and each gives up what it had begun when it leads
// no more, however much later it finds out. A full disk ends a backup that is not sealed: it would
// keep log that is in the way of writes. After a restart a backup that was sealed still is, and a
// damaged one stays until Cleanup; the next Start removes other files.
//
// Threads: belongs to the loop; files are another thread's work. Poll when `wake` was called.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/os/file.h"
#include "base/os/object_store.h"
#include "cellar/clock.h"
#include "engine/state/state_machine.h"
#include "store/format/object_files.h"
#include "store/journal/journal.h"
#include "store/snapshot/snapshot_writer.h"

namespace cellar {

struct BackupOptions {
  std::string directory;         // relative to that of the store, or absolute
  ObjectStoreOpener objects{};   // for one of an object store
  int64_t sealed_ttl_micros{0};  // 0: a sealed one stays
};

enum class BackupState : uint8_t {
  kIdle,
  kPending,
  kSnapshotting,
  kIncrementing,
  kSealed,
  kFailed,
};
std::string_view BackupStateName(BackupState state);

class Backup final : private ObjectWatcher {
 public:
  // The store that it is of; all outlive it.
  struct Source {
    std::string directory;
    bool whole_log;  // nothing of the log is ever voided: it is no member of a replica set
    FileSystem& files;
    Clock& clock;
    Journal& journal;
    StateMachine& state;
    std::function<void()> wake;     // called from the other thread when Poll has something to do
    std::optional<uint64_t> set{};  // as LookForPart
  };
  // Looks for one that has been sealed before the restart.
  Backup(BackupOptions options, Source source);
  ~Backup() override;
  Backup(const Backup&) = delete;
  Backup& operator=(const Backup&) = delete;

  // Once, before all else, where the directory is of an object store: ERR if there is no way there.
  Status Mount();

  // ERR, saying why, unless the state allows it; TRYAGAIN as Journal::StartSnapshot.
  Status Start();
  Status Seal();
  // The store is that set's, which is known only once it knows the end of its log: a part may be
  // there. Nothing if it knew.
  void LookForPart(uint64_t set);
  // A part of a backup of a cluster, of that set.
  Status StartPart(uint64_t set);
  // The state is that of this cut, whose record is the last one. A part that is kIncrementing keeps
  // it until the next cut, or for kCutMicros; else nothing happens.
  void NoteCut(uint64_t cut);
  // The part becomes the moment of that cut. ERR if it has not been kept; OK if it is that already.
  Status SealCut(uint64_t cut);
  // Of a sealed part: writes what the whole is made of, as another thread's work, under the number
  // that describing() has then. described() says that it is done, or why not.
  Status Describe(std::string text);
  struct Description {
    uint64_t number{0};  // 0: there was none yet
    Status status{};
  };
  const Description& described() const { return described_; }
  // Of the one that has begun last.
  uint64_t describing() const { return describing_; }
  bool is_part() const { return part_.has_value(); }
  uint64_t cut() const { return sealed_cut_; }  // of a sealed part; 0: none
  // Of a sealed one that is a snapshot alone, what its manifest says of that.
  const std::optional<SnapshotEntry>& sealed_snapshot() const { return sealed_snapshot_; }
  Status Abort(std::string why);
  Status Cleanup();
  // Of a store that was closed and opened again while one was made.
  void Interrupt(std::string why);
  static constexpr int64_t kCutMicros{60'000'000};
  bool active() const {
    return state_now_ == BackupState::kPending || state_now_ == BackupState::kSnapshotting ||
           state_now_ == BackupState::kIncrementing;
  }
  void set_sealed_ttl(int64_t micros) { options_.sealed_ttl_micros = micros; }

  // Takes in what the other thread has done. Cheap when nothing happened.
  void Poll();

  BackupState state() const { return state_now_; }
  bool sealing() const { return sealing_; }
  bool working() const { return job_ != nullptr; }
  const std::string& error() const { return error_; }
  int64_t start_unix_s() const { return start_unix_s_; }
  int64_t end_unix_s() const { return end_unix_s_; }
  const std::string& id() const { return id_; }  // of the last step; empty until it is sealed
  // Paths of the files that will not change any more.
  std::vector<std::string> Files() const;

 private:
  struct Job;
  // A snapshot of this moment into the folder, in another thread. TRYAGAIN while another one is
  // being written.
  Status BeginSnapshot();
  Status BeginJob(std::unique_ptr<Job> job);
  void RunJob(Job* job);
  void TakeBase(Job* job);
  void TakeSeal(std::unique_ptr<Job> job);
  Status BeginInstall();
  void TakeInstalled(const Job& job);
  void Fail(std::string why);
  void EndJob();
  bool UsesLog() const;
  bool IsSettled(Lsn lsn, bool* is_void) const;

  void BeginLook();
  void LookNow();
  // Whose files another thread removes from a folder, which nodes of a set may share.
  enum class Whose : uint8_t { kAll, kOwn };
  Status BeginEmpty(Whose whose);
  Status CleanUp(Whose whose);

  // What the other thread does.
  struct SealedBackup {
    bool is_there{false};
    std::string directory{};
    std::optional<uint64_t> part{};
    std::optional<SnapshotEntry> snapshot{};
    uint64_t cut{0};
    int64_t start_unix_s{0};
    int64_t end_unix_s{0};
    std::string id{};
    std::vector<std::string> names{};
  };
  bool GoesOn(uint32_t attempts) override;
  void Failed(const Status& status) override;
  enum class Sealed : uint8_t { kNo, kYes };
  Status Reach(const std::string& directory);
  Status MakeFolder(const Job& job);
  Status EmptyFolder(const std::string& directory);
  Status EmptyOwn(const Job& job);
  Status SealFiles(Job* job);
  Status Install(const Job& job);
  Status WriteNote(const Job& job, Sealed is_sealed);
  Status ReadSealed(const std::string& directory, SealedBackup* sealed);
  Status LookForSealed(SealedBackup* sealed);
  Status WriteDescription(const std::string& text);
  Status RemoveDescription();
  Status CheckMayStart();
  Status Begin();
  void TakeSealed(SealedBackup sealed);

  BackupOptions options_;
  const std::string base_directory_;
  std::optional<uint64_t> set_;  // a part of it may be there at the start
  std::string directory_;        // of the backup: that, or below it of a part
  const std::string store_directory_;
  const bool whole_log_;  // no record of it can be voided
  ObjectFiles files_;
  Clock& clock_;
  Journal& journal_;
  StateMachine& state_;
  const std::function<void()> wake_;

  BackupState state_now_{BackupState::kIdle};
  bool sealing_{false};
  std::string error_;
  int64_t start_unix_s_{0};
  int64_t end_unix_s_{0};
  int64_t sealed_micros_{0};  // wall clock
  std::string id_;
  std::vector<std::string> names_;  // of Files()
  SnapshotEntry base_;
  Lsn base_lsn_;
  std::optional<uint64_t> part_;  // of that set
  // The state as it was at the last cut.
  struct CutState {
    uint64_t cut{0};
    StateMachine::StateSnapshot snapshot{};
    Lsn lsn{};
    int64_t commit_micros{0};
    int64_t taken_micros{0};  // monotonic
  };
  std::optional<CutState> cut_;
  std::optional<SnapshotEntry> sealed_snapshot_;
  uint64_t sealed_cut_{0};
  Description described_;   // the last one that has ended
  uint64_t describing_{0};  // number of the one that has begun last
  std::unique_ptr<Job> job_;
  std::atomic<bool> gives_up_{false};  // what the job waits for
  bool has_looked_{true};              // it is known if a sealed one is there
  std::string look_error_;
  int64_t look_at_micros_{0};  // monotonic
  bool awaits_commit_{false};  // up to base_lsn_
  std::unique_ptr<Job> seal_;  // is done, and awaits that
};

}  // namespace cellar
