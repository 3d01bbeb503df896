// Works are carried out by threads, take turns, and can be taken back at any moment.
#include "base/os/worker_pool.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace cellar::worker_pool_test {

using Progress = WorkerPool::Progress;

// What the owner waits on.
class Bell {
 public:
  void Ring() {
    const std::lock_guard lock(mutex_);
    ++rings_;
    rung_.notify_all();
  }
  template <typename Condition>
  void Await(Condition condition) {
    std::unique_lock lock(mutex_);
    rung_.wait(lock, condition);
  }

 private:
  std::mutex mutex_;
  std::condition_variable rung_;
  uint64_t rings_{0};
};

// Counts up to a number; `kEndless` until it is not wanted.
class Counting : public WorkerPool::Work {
 public:
  static constexpr uint64_t kEndless{UINT64_MAX};
  Counting(uint64_t to, std::atomic<int>* alive) : to_(to), alive_(alive) { ++*alive_; }
  ~Counting() override { --*alive_; }
  uint64_t count() const { return count_; }
  std::atomic<bool> begun{false};

 private:
  Progress Run(WorkerPool::Turn& turn) override {
    begun = true;
    while (count_ < to_) {
      ++count_;
      if (turn.MustPause()) return Progress::kPaused;
    }
    return Progress::kDone;
  }
  uint64_t to_;
  std::atomic<int>* alive_;
  uint64_t count_{0};  // not atomic: seen by the owner when it is done
};

void AwaitBegun(const Counting& work) {
  while (!work.begun) std::this_thread::yield();
}

TEST_CASE("works of a pool are done, by however many threads", "[workers]") {
  std::atomic<int> alive{0};
  for (const size_t threads : std::initializer_list<size_t>{1, 2, 5}) {
    Bell bell;
    WorkerPool pool("cellar-test", WorkerPool::Pace::kGiving, Clock::System());
    pool.SetWake([&bell] { bell.Ring(); });
    std::vector<std::unique_ptr<Counting>> works;
    for (uint64_t i = 0; i < 20; ++i) {
      works.push_back(std::make_unique<Counting>(i * 10, &alive));
      pool.Start(works.back().get(), threads);
    }
    for (const auto& work : works) bell.Await([&work] { return work->done(); });
    for (uint64_t i = 0; i < 20; ++i) CHECK(works[i]->count() == i * 10);
  }
  CHECK(alive == 0);
}

TEST_CASE("a short work is not stuck behind one that never ends", "[workers]") {
  std::atomic<int> alive{0};
  Bell bell;
  WorkerPool pool("cellar-test", WorkerPool::Pace::kSteady, Clock::System());
  pool.SetWake([&bell] { bell.Ring(); });
  Counting endless(Counting::kEndless, &alive);
  pool.Start(&endless, 1);
  AwaitBegun(endless);
  for (int i = 0; i < 3; ++i) {
    Counting work(1'000, &alive);
    pool.Start(&work, 1);
    bell.Await([&work] { return work.done(); });
    CHECK(work.count() == 1'000);
  }
  CHECK(!endless.done());
  pool.Stop(&endless);
  CHECK(!endless.done());
  const uint64_t counted = endless.count();
  CHECK(counted > 0);
  CHECK(endless.count() == counted);  // nobody has it any more
}

TEST_CASE("what is abandoned is destroyed when nobody works on it", "[workers]") {
  std::atomic<int> alive{0};
  Bell bell;
  WorkerPool pool("cellar-test", WorkerPool::Pace::kGiving, Clock::System());
  pool.SetWake([&bell] { bell.Ring(); });
  auto running = std::make_unique<Counting>(Counting::kEndless, &alive);
  pool.Start(running.get(), 1);
  AwaitBegun(*running);
  auto queued = std::make_unique<Counting>(Counting::kEndless, &alive);
  pool.Start(queued.get(), 1);
  auto fresh = std::make_unique<Counting>(1, &alive);
  pool.Abandon(std::move(fresh));
  CHECK(alive == 2);
  pool.Abandon(std::move(queued));
  pool.Abandon(std::move(running));
  bell.Await([&] {
    pool.Reap();
    return alive == 0;
  });
  // At the end it is waited for.
  for (int i = 0; i < 5; ++i) {
    auto work = std::make_unique<Counting>(Counting::kEndless, &alive);
    pool.Start(work.get(), 3);
    if (i % 2 == 0) AwaitBegun(*work);
    pool.Abandon(std::move(work));
  }
  pool.End();
  CHECK(alive == 0);
}

TEST_CASE("the number of threads changes while works are done", "[workers]") {
  std::atomic<int> alive{0};
  Bell bell;
  WorkerPool pool("cellar-test", WorkerPool::Pace::kGiving, Clock::System());
  pool.SetWake([&bell] { bell.Ring(); });
  for (int round = 0; round < 200; ++round) {
    std::vector<std::unique_ptr<Counting>> works;
    for (const size_t threads : std::initializer_list<size_t>{1, 4, 2, 7, 1}) {
      works.push_back(std::make_unique<Counting>(5, &alive));
      pool.Start(works.back().get(), threads);
    }
    pool.Stop(works[2].get());
    for (size_t i = 0; i < works.size(); ++i)
      if (i != 2) bell.Await([&] { return works[i]->done(); });
  }
  CHECK(alive == 0);
}

}  // namespace cellar::worker_pool_test
