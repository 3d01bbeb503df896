// The lanes' threads. See sync_lanes.h.
#include "store/journal/sync_lanes.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/os/thread.h"

namespace cellar {

SyncLanes::SyncLanes(Clock& clock, std::function<void(uint64_t tag)> ended)
    : clock_(clock), ended_(std::move(ended)) {}

SyncLanes::~SyncLanes() { Close(); }

Status SyncLanes::Open(FileSystem& files, const std::string& path) {
  CELLAR_ASSERT(!is_open_);
  std::array<std::unique_ptr<WritableFile>, kLanes> opened;
  for (auto& file : opened) {
    ASSIGN_OR_RETURN(file, files.OpenForWriting(path));
  }
  stop_ = false;
  outcome_ = {};
  for (size_t i = 0; i < kLanes; ++i) {
    lanes_[i].file = std::move(opened[i]);
    lanes_[i].thread = std::thread([this, lane = &lanes_[i]] { Run(lane); });
  }
  is_open_ = true;
  return Status::Ok();
}

void SyncLanes::Close() {
  if (!is_open_) return;
  Drain();
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  for (Lane& lane : lanes_) {
    lane.work_cv.notify_one();
    lane.thread.join();
    (void)lane.file->Close();
    lane.file = nullptr;
  }
  is_open_ = false;
}

bool SyncLanes::has_free_lane() const {
  const std::lock_guard lock(mutex_);
  return busy_lanes_ < kLanes;
}

bool SyncLanes::is_idle() const {
  const std::lock_guard lock(mutex_);
  return syncs_.empty();
}

void SyncLanes::Begin(uint64_t tag) {
  CELLAR_ASSERT(is_open_);
  const std::lock_guard lock(mutex_);
  CELLAR_ASSERT(busy_lanes_ < kLanes);
  CELLAR_ASSERT(tag >= counted_tag_);
  syncs_.push_back({.tag = tag, .begin_micros = clock_.MonotonicMicros()});
  for (Lane& lane : lanes_) {
    if (lane.sync != nullptr) continue;
    lane.sync = &syncs_.back();
    ++busy_lanes_;
    lane.work_cv.notify_one();
    return;
  }
}

void SyncLanes::Drain() {
  std::unique_lock lock(mutex_);
  idle_cv_.wait(lock, [&] { return syncs_.empty(); });
}

SyncLanes::Outcome SyncLanes::TakeOutcome() {
  const std::lock_guard lock(mutex_);
  Outcome outcome = outcome_;
  outcome_ = {};
  outcome_.status = outcome.status;  // for good
  return outcome;
}

void SyncLanes::Run(Lane* lane) {
  SetThreadName("cellar-lane");
  std::unique_lock lock(mutex_);
  for (;;) {
    lane->work_cv.wait(lock, [&] { return stop_ || lane->sync != nullptr; });
    if (lane->sync == nullptr) return;
    lock.unlock();
    Status status = lane->file->Sync();
    lock.lock();
    --busy_lanes_;
    const uint64_t counted_before = counted_tag_;
    Settle(std::exchange(lane->sync, nullptr), std::move(status));
    const uint64_t counted = counted_tag_ == counted_before ? 0 : counted_tag_;
    // Not under mutex_: the writer takes its own lock there, under which it also asks the lanes.
    lock.unlock();
    ended_(counted);
    lock.lock();
  }
}

// Under mutex_. Only what has ended from the front on counts, whatever order the lanes end in.
// Behind a failed sync nothing counts any more: nobody knows what it has left on the disk.
void SyncLanes::Settle(Sync* sync, Status status) {
  const int64_t took = clock_.MonotonicMicros() - sync->begin_micros;
  ++outcome_.syncs;
  outcome_.took_micros_max = std::max(outcome_.took_micros_max, took);
  sync->is_done = true;
  if (!status.ok() && outcome_.status.ok()) outcome_.status = std::move(status);
  for (; !syncs_.empty() && syncs_.front().is_done; syncs_.pop_front())
    if (outcome_.status.ok()) outcome_.tag = counted_tag_ = syncs_.front().tag;
  if (syncs_.empty()) idle_cv_.notify_all();
}

}  // namespace cellar
