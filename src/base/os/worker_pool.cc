// See worker_pool.h.
#include "base/os/worker_pool.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/assert.h"
#include "base/os/thread.h"

namespace cellar {

WorkerPool::Work::~Work() {
  const Place place = place_.load(std::memory_order_relaxed);
  CELLAR_ASSERT(place == Place::kOwner || place == Place::kDone);
}

bool WorkerPool::Turn::MustPause() {
  if (work_.cancelled_.load(std::memory_order_relaxed)) return true;
  if (pool_.pace_ == Pace::kGiving) pace_.Pause();
  return pool_.OthersWait() && pool_.clock_.MonotonicMicros() >= end_micros_;
}

WorkerPool::WorkerPool(const char* name, Pace pace, Clock& clock)
    : name_(name), pace_(pace), clock_(clock) {}

WorkerPool::~WorkerPool() { End(); }

void WorkerPool::End() {
  SetThreads(0);
  for (const std::unique_ptr<Slot>& slot : slots_) {
    if (slot->thread.joinable()) slot->thread.join();
  }
  slots_.clear();
  CELLAR_ASSERT(queue_.empty());
  abandoned_.clear();
}

// A thread that has been told to end and not done so yet goes on when it is wanted again.
void WorkerPool::SetThreads(size_t threads) {
  const std::lock_guard lock(mutex_);
  const bool fewer = threads < wanted_;
  wanted_ = threads;
  if (slots_.size() < threads) slots_.resize(threads);
  for (size_t i = 0; i < threads; ++i) {
    if (slots_[i] == nullptr) slots_[i] = std::make_unique<Slot>();
    Slot& slot = *slots_[i];
    if (slot.runs) continue;
    if (slot.thread.joinable()) slot.thread.join();  // it has left Serve
    slot.runs = true;
    slot.thread = std::thread([this, i] { Serve(i); });
  }
  if (fewer) due_.notify_all();
}

void WorkerPool::Start(Work* work, size_t threads) {
  CELLAR_ASSERT(work->place_.load(std::memory_order_relaxed) == Work::Place::kOwner);
  {
    const std::lock_guard lock(mutex_);
    work->place_.store(Work::Place::kQueue, std::memory_order_relaxed);
    queue_.push_back(work);
    waiting_.store(queue_.size(), std::memory_order_relaxed);
  }
  due_.notify_one();
  // Behind that: none ends any more for having nothing to do.
  SetThreads(std::max<size_t>(threads, 1));
}

WorkerPool::Work* WorkerPool::Next(size_t number) {
  std::unique_lock lock(mutex_);
  const auto is_due = [&] { return !queue_.empty() || number >= wanted_; };
  const bool idle = !due_.wait_for(lock, std::chrono::seconds(kIdleSecondsMax), is_due);
  if (idle || number >= wanted_) {
    slots_[number]->runs = false;
    // It may have been woken for a work that another one has to do now.
    due_.notify_one();
    return nullptr;
  }
  Work* const work = queue_.front();
  queue_.pop_front();
  waiting_.store(queue_.size(), std::memory_order_relaxed);
  work->place_.store(Work::Place::kWorker, std::memory_order_relaxed);
  return work;
}

void WorkerPool::Settle(Work* work, Progress progress) {
  using Place = Work::Place;
  {
    const std::lock_guard lock(mutex_);
    const bool cancelled = work->cancelled_.load(std::memory_order_relaxed);
    if (progress == Progress::kPaused && !cancelled) {
      work->place_.store(Place::kQueue, std::memory_order_relaxed);
      queue_.push_back(work);
      waiting_.store(queue_.size(), std::memory_order_relaxed);
      return;
    }
    work->place_.store(progress == Progress::kDone ? Place::kDone : Place::kOwner,
                       std::memory_order_release);
    let_go_.notify_all();
  }
  // Not under the lock, for which the owner would wait that this wakes.
  if (wake_) wake_();
}

void WorkerPool::Serve(size_t number) {
  SetThreadName(name_);
  LowerThreadPriority();
  while (Work* const work = Next(number)) {
    Turn turn(*this, *work);
    Settle(work, work->Run(turn));
  }
}

// True: no worker has it. False: one has, and has been told.
bool WorkerPool::TakeBack(Work* work) {
  const Work::Place place = work->place_.load(std::memory_order_relaxed);
  if (place == Work::Place::kWorker) {
    work->cancelled_.store(true, std::memory_order_relaxed);
    return false;
  }
  if (place == Work::Place::kQueue) {
    // No worker has begun with it, or it has paused: nobody else knows it.
    std::erase(queue_, work);
    waiting_.store(queue_.size(), std::memory_order_relaxed);
    work->place_.store(Work::Place::kOwner, std::memory_order_relaxed);
  }
  return true;
}

void WorkerPool::Stop(Work* work) {
  std::unique_lock lock(mutex_);
  if (TakeBack(work)) return;
  let_go_.wait(lock, [work] {
    return work->place_.load(std::memory_order_relaxed) != Work::Place::kWorker;
  });
  (void)TakeBack(work);
}

void WorkerPool::Abandon(std::unique_ptr<Work> work) {
  {
    const std::lock_guard lock(mutex_);
    // It cannot be destroyed under the worker that has it: Reap does that later.
    if (!TakeBack(work.get())) {
      abandoned_.push_back(std::move(work));
      return;
    }
  }
  work.reset();
}

void WorkerPool::Reap() {
  if (abandoned_.empty()) return;
  std::vector<std::unique_ptr<Work>> gone;
  {
    const std::lock_guard lock(mutex_);
    for (std::unique_ptr<Work>& work : abandoned_) {
      if (work->place_.load(std::memory_order_relaxed) != Work::Place::kWorker)
        gone.push_back(std::move(work));
    }
  }
  std::erase(abandoned_, nullptr);
}

}  // namespace cellar
