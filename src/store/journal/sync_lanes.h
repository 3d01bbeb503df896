// SyncLanes: several syncs of one growing file at once, for a disk whose syncs wait more than they
// work.
//
//   owner  write a, begin | write b, begin | write c, begin
//   lane 1                |------ a ------------|             done: a is durable
//   lane 2                                 |------- a b ------|        b is durable
//   lane 3                                                  |------ a b c ---|
//
// A sync covers what was written before it began. It counts only when all that began before it have
// succeeded: the kernel tells each descriptor once that a write has failed, so that a later sync
// may succeed over a hole that an earlier one saw. For the same reason each lane has a descriptor
// of its own.
//
// Whether syncs beside each other get more to the disk than one after the other is not decided here
// (sync_trial.h).
//
// Threads: all calls are the owner's, questions anybody's; `ended` is called on the lanes' threads.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/os/file.h"
#include "cellar/clock.h"

namespace cellar {

class SyncLanes {
 public:
  // What has happened since it was last asked.
  struct Outcome {
    uint64_t tag{0};  // of the last sync that counts; 0 if there is none
    uint64_t syncs{0};
    int64_t took_micros_max{0};
    Status status;  // of the first that failed; nothing counts from there on
  };

  // `ended(tag)` is called, under no lock, when a sync has ended: with the last tag that counts
  // now, or 0 if that has not changed.
  SyncLanes(Clock& clock, std::function<void(uint64_t tag)> ended);
  ~SyncLanes();  // Close()
  SyncLanes(const SyncLanes&) = delete;
  SyncLanes& operator=(const SyncLanes&) = delete;

  // Syncs of the file `path` from now on; opens it once for each lane. REQUIRES: !is_open().
  Status Open(FileSystem& files, const std::string& path);
  // Waits for what runs. What it says is for TakeOutcome.
  void Close();
  bool is_open() const { return is_open_; }

  bool has_free_lane() const;
  bool is_idle() const;
  // Begins a sync of all that is written. `tag` is not 0, and not below those before.
  // REQUIRES: has_free_lane().
  void Begin(uint64_t tag);
  // Waits until nothing runs.
  void Drain();
  Outcome TakeOutcome();

 private:
  static constexpr size_t kLanes{3};

  struct Sync {
    uint64_t tag;
    int64_t begin_micros;
    bool is_done{false};
  };
  struct Lane {
    std::unique_ptr<WritableFile> file;
    std::thread thread;
    std::condition_variable work_cv;
    Sync* sync{nullptr};  // to be done, or being done
  };

  void Run(Lane* lane);
  void Settle(Sync* sync, Status status);  // REQUIRES: mutex_ held

  Clock& clock_;
  const std::function<void(uint64_t)> ended_;
  bool is_open_{false};

  mutable std::mutex mutex_;
  std::condition_variable idle_cv_;
  // Under mutex_:
  std::array<Lane, kLanes> lanes_;
  std::deque<Sync> syncs_;  // that run or wait for one before them, in the order of their beginning
  Outcome outcome_;
  size_t busy_lanes_{0};
  uint64_t counted_tag_{0};  // the last that counts
  bool stop_{false};
};

}  // namespace cellar
