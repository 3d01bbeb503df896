// Parts of a bound, in turn.
#include "commands/session/work_memory.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <utility>
#include <vector>

#include "base/random.h"

namespace work_memory_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)
using Lease = WorkMemory::Lease;
constexpr WorkKind kWork{WorkKind::kAggregate};
constexpr size_t kMiB{1 << 20};

TEST_CASE("Who finds too little waits, and has it in turn", "[work]") {
  WorkMemory memory;
  memory.Configure(100, 0);
  CHECK(memory.HasRoom(100));
  Lease first = memory.Take(kWork, 60);
  CHECK(first.granted());
  Lease second = memory.Take(kWork, 60);
  Lease third = memory.Take(kWork, 10);  // it would fit, but is behind
  CHECK_FALSE(second.granted());
  CHECK_FALSE(third.granted());
  CHECK_FALSE(memory.HasRoom(10));
  CHECK(memory.waiting() == 2);
  CHECK(memory.taken_bytes() == 60);
  first = Lease();
  CHECK(second.granted());
  CHECK(third.granted());
  CHECK(memory.taken_bytes() == 70);
  {
    const Lease huge = memory.Take(kWork, SIZE_MAX);
    CHECK_FALSE(huge.granted());
    CHECK(memory.waiting() == 1);
  }
  CHECK(memory.waiting() == 0);
  Lease moved = std::move(second);
  CHECK(moved.granted());
  CHECK(memory.taken_bytes() == 70);
  moved = Lease();
  third = Lease();
  CHECK(memory.taken_bytes() == 0);
  CHECK(Lease().granted());
  const Lease all = memory.Take(kWork, SIZE_MAX);
  CHECK(all.granted());
  CHECK(memory.taken_bytes() == 100);
}

TEST_CASE("Reads have a quarter of maxmemory at most", "[work]") {
  WorkMemory memory;
  memory.Configure(1000, 400);
  CHECK(memory.bound() == 100);
  memory.Configure(1000, 1'000'000);
  CHECK(memory.bound() == 1000);
  Lease taken = memory.Take(kWork, 800);
  Lease waits = memory.Take(kWork, 300);
  memory.Configure(500, 0);
  CHECK(taken.granted());
  CHECK_FALSE(waits.granted());
  memory.Configure(2000, 0);
  CHECK(waits.granted());
}

TEST_CASE("The bound holds, and everybody's turn comes", "[work]") {
  Random random(5);
  WorkMemory memory;
  memory.Configure(1000, 0);
  std::vector<std::pair<size_t, Lease>> leases;
  for (int i = 0; i < 20'000; ++i) {
    if (random.Below(2) == 0 || leases.empty()) {
      const size_t bytes = random.Below(1500);
      leases.emplace_back(bytes, memory.Take(kWork, bytes));
    } else {
      const size_t at = random.Below(leases.size());
      std::swap(leases[at], leases.back());
      leases.pop_back();
    }
    size_t taken = 0;
    size_t waiting = 0;
    for (const auto& [bytes, lease] : leases) {
      if (lease.granted())
        taken += std::min<size_t>(bytes, 1000);
      else
        ++waiting;
    }
    REQUIRE(taken <= 1000);
    REQUIRE(memory.taken_bytes() == taken);
    REQUIRE(memory.waiting() == waiting);
  }
  while (!leases.empty()) {
    const auto holds = std::find_if(leases.begin(), leases.end(),
                                    [](const auto& each) { return each.second.granted(); });
    REQUIRE(holds != leases.end());  // never all wait
    leases.erase(holds);
  }
}

TEST_CASE("Who gives back wakes those who have their part then, and nobody else", "[work]") {
  WorkMemory memory;
  int woken = 0;
  memory.SetWake([&woken] { ++woken; });
  memory.Configure(100, 0);
  Lease first = memory.Take(kWork, 60);
  Lease small = memory.Take(WorkKind::kUpdate, 30);
  Lease second = memory.Take(kWork, 60);
  CHECK(woken == 0);
  small = Lease();  // not enough for the second
  CHECK(woken == 0);
  first.ShrinkTo(50);
  CHECK(woken == 0);
  first.ShrinkTo(40);
  CHECK(second.granted());
  CHECK(woken == 1);
  second = Lease();
  first = Lease();
  CHECK(woken == 1);
  Lease all = memory.Take(kWork, 100);
  Lease third = memory.Take(kWork, 100);
  memory.Configure(200, 0);
  CHECK(third.granted());
  CHECK(woken == 2);
  // One that leaves the line lets those behind it pass.
  Lease fourth = memory.Take(kWork, 200);
  Lease fifth = memory.Take(kWork, 1);
  all = Lease();
  CHECK(woken == 2);
  fourth = Lease();
  CHECK(fifth.granted());
  CHECK(woken == 3);
}

TEST_CASE("What cannot wait is counted all the same, and what may do without has nothing",
          "[work]") {
  WorkMemory memory;
  memory.Configure(100, 0);
  const Lease first = memory.Take(kWork, 80);
  const Lease refused = memory.TakeIfRoom(WorkKind::kUpdate, 30);
  CHECK(refused.bytes() == 0);
  CHECK(memory.TakeIfRoom(WorkKind::kUpdate, 101).bytes() == 0);
  const Lease fits = memory.TakeIfRoom(WorkKind::kUpdate, 20);
  CHECK(fits.bytes() == 20);
  const Lease beyond = memory.TakeAtOnce(kWork, 50);
  CHECK(beyond.granted());
  CHECK(memory.taken_bytes() == 150);
  CHECK(memory.taken_bytes(WorkKind::kAggregate) == 130);
  CHECK(memory.taken_bytes(WorkKind::kUpdate) == 20);
  const Lease behind = memory.Take(kWork, 1);
  CHECK_FALSE(behind.granted());
}

TEST_CASE("Pages become shorter instead of waiting, and parts do not wait for them", "[work]") {
  WorkMemory memory;
  memory.Configure(64 * kMiB, 0);
  std::vector<Lease> pages;
  size_t sum = 0;
  for (int i = 0; i < 100; ++i) {
    pages.push_back(memory.TakePage(16 * kMiB));
    CHECK(pages.back().granted());
    CHECK(pages.back().bytes() >= WorkMemory::kPageBytesMin);
    CHECK(pages.back().bytes() <= 16 * kMiB);
    sum += pages.back().bytes();
  }
  CHECK(pages[0].bytes() == 16 * kMiB);
  CHECK(pages[1].bytes() == 16 * kMiB);
  CHECK(pages[2].bytes() == 16 * kMiB);
  CHECK(pages[3].bytes() == 8 * kMiB);
  CHECK(pages[99].bytes() == WorkMemory::kPageBytesMin);
  CHECK(sum <= 64 * kMiB + 100 * WorkMemory::kPageBytesMin);
  CHECK(memory.taken_bytes(WorkKind::kPage) == sum);
  CHECK(memory.TakePage(1000).bytes() == 1000);
  CHECK(memory.Take(kWork, 64 * kMiB).granted());
  pages[0].ShrinkTo(100);
  CHECK(memory.taken_bytes() == sum - 16 * kMiB + 100);
  pages.clear();
  CHECK(memory.taken_bytes() == 0);
}

}  // namespace work_memory_test
