// WorkerPool: some threads that carry out works for one other thread, the owner.
//
//   owner                                  workers
//     Start(work) -----> queue | w | w | ----> Run(turn) ... until it says kDone
//                          ^                     |  kPaused: others wait, or it is not wanted
//                          +------ behind them --+
//     done(work)  <----- state: kDone, and wake()
//     Abandon(work) ---> cancelled; a work that nobody runs goes at once,
//     Reap()             one that is being run when its worker has let go of it
//
// Works take turns: one that has had kTurnMicros while another one waits goes to the end of the
// queue, so that a short one is not stuck behind a long one. A work is run by one worker at a time,
// and what one of them has written the next one sees, and at the end the owner.
//
// A thread that has had nothing to do for a while ends, and what it has left in its part of the
// allocator is the others'. The workers leave the processor to those who serve clients: they have a
// low priority and give it back after each piece (background_pace.h).
//
// What threads share, and who may touch it:
//   queue_, wanted_, Slot::runs, Work::place_   all, under mutex_; place_ is read without, too
//   waiting_, Work::cancelled_                  written under mutex_, read by workers
//   a work's own members                        the owner until Start and once done() is true, the
//                                               worker in between; what both see then is atomic
//   slots_, abandoned_                          the owner
//   wake_                                       the owner before the first Start, workers behind
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/os/background_pace.h"
#include "cellar/clock.h"

namespace cellar {

class WorkerPool {
 public:
  enum class Pace : uint8_t {
    kGiving,  // gives the processor back after each piece: others serve clients
    kSteady,  // keeps it
  };
  enum class Progress : uint8_t { kPaused, kDone };

  // What a work is told while it runs.
  class Turn;
  class Work;

  // `name` is that of the threads, at most 15 characters. None runs before the first Start.
  WorkerPool(const char* name, Pace pace, Clock& clock);
  // REQUIRES: no work waits.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Called by a worker when a work is done, or gone that was abandoned: the owner may look. Before
  // the first Start.
  void SetWake(std::function<void()> wake) { wake_ = std::move(wake); }

  // Has `work` run by one of `threads` threads (at least one), which are made if they are missing;
  // if there are more, some end when they have nothing to do. The work is borrowed: before it dies
  // it must be done, or stopped, or abandoned. REQUIRES: it has not been started.
  void Start(Work* work, size_t threads);
  // It need not be done any more: takes it out of the queue, or has its worker let go of it and
  // waits for that. Nothing if it was not started, or is done. From any thread.
  void Stop(Work* work);
  // Stop without waiting: destroyed here, or by the Reap() after its worker has let go of it.
  void Abandon(std::unique_ptr<Work> work);
  // Destroys abandoned works that no worker has any more.
  void Reap();
  // Ends the threads and destroys what was abandoned; waits for a piece of work at most. No wake()
  // comes any more. REQUIRES: no work waits. Start() may begin anew.
  void End();

  static constexpr int64_t kTurnMicros{2'000};
  // On a busy machine a work that gives way waits at most for so many times of what it works.
  static constexpr int64_t kWaitShareMax{2};

 private:
  struct Slot {
    std::thread thread;
    bool runs{false};  // under mutex_: it has not left Serve yet
  };

  static constexpr int64_t kIdleSecondsMax{10};

  void SetThreads(size_t threads);
  void Serve(size_t number);
  // Takes the next work out of the queue; null: the thread is to end.
  Work* Next(size_t number);
  void Settle(Work* work, Progress progress);
  bool TakeBack(Work* work);
  bool OthersWait() const { return waiting_.load(std::memory_order_relaxed) > 0; }

  const char* const name_;
  const Pace pace_;
  Clock& clock_;
  std::function<void()> wake_;
  std::mutex mutex_;
  std::condition_variable due_;     // a work waits, or threads are to end
  std::condition_variable let_go_;  // a worker has let go of a work
  std::deque<Work*> queue_;         // under mutex_
  std::atomic<size_t> waiting_{0};  // its size
  size_t wanted_{0};                // threads, under mutex_
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<std::unique_ptr<Work>> abandoned_;
};

class WorkerPool::Work {
 public:
  Work() = default;
  virtual ~Work();
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  // Its worker has ended it. From then on all that it has written can be seen.
  bool done() const { return place_.load(std::memory_order_acquire) == Place::kDone; }

 protected:
  // In a worker: works until it is done, or turn.MustPause() says so, which is to be asked between
  // pieces of some ten microseconds. Is called again then, unless it is not wanted any more.
  virtual Progress Run(Turn& turn) = 0;

 private:
  friend class WorkerPool;
  enum class Place : uint8_t { kOwner, kQueue, kWorker, kDone };

  std::atomic<Place> place_{Place::kOwner};  // written under the pool's mutex
  std::atomic<bool> cancelled_{false};
};

class WorkerPool::Turn {
 public:
  Turn(const WorkerPool& pool, const Work& work)
      : pool_(pool),
        work_(work),
        pace_(BackgroundPace::WithShare(pool.clock_, kWaitShareMax)),
        end_micros_(pool.clock_.MonotonicMicros() + kTurnMicros) {}

  bool MustPause();

 private:
  const WorkerPool& pool_;
  const Work& work_;
  BackgroundPace pace_;
  const int64_t end_micros_;
};

}  // namespace cellar
