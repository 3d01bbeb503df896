// NodeArena: runs do not overlap, free neighbours are joined, chunks go back.
#include "btree/nodes/arena.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "btree/btree.h"

namespace arena_test {

using cellar::BTree;
using cellar::ChunkKeeper;
using cellar::NodeArena;
using cellar::Random;

TEST_CASE("runs of all sizes keep what is written to them", "[arena]") {
  const uint64_t seed = 7;
  CAPTURE(seed);
  Random random(seed);
  NodeArena arena({.huge_pages = false});
  std::vector<std::pair<uint8_t*, size_t>> held;
  bool all_intact = true;
  for (int i = 0; i < 200'000; ++i) {
    const bool grows = i / 20'000 % 2 == 0;
    if (held.empty() || random.Below(10) < (grows ? 6u : 4u)) {
      const size_t bytes = NodeArena::RoundUp(random.Below(random.OneIn(50) ? 9000 : 4097));
      auto* memory = static_cast<uint8_t*>(arena.Allocate(bytes));
      std::memset(memory, static_cast<int>(bytes / 128 % 251), bytes);
      held.emplace_back(memory, bytes);
    } else {
      std::swap(held[random.Below(held.size())], held.back());
      const auto [memory, bytes] = held.back();
      held.pop_back();
      const auto mark = static_cast<uint8_t>(bytes / 128 % 251);
      all_intact &= memory[0] == mark && memory[bytes / 2] == mark && memory[bytes - 1] == mark;
      arena.Free(memory, bytes);
    }
  }
  CHECK(all_intact);
  for (const auto& [memory, bytes] : held) arena.Free(memory, bytes);
  CHECK(arena.stats().used_bytes == 0);
  CHECK(arena.stats().large_bytes == 0);
}

TEST_CASE("freed neighbours serve larger sizes, and free chunks are unmapped", "[arena]") {
  NodeArena arena({.huge_pages = false});
  std::vector<void*> small;
  for (int i = 0; i < 200'000; ++i) small.push_back(arena.Allocate(256));
  const uint64_t mapped = arena.stats().mapped_bytes;
  CHECK(mapped >= 200'000u * 256u);
  CHECK(mapped <= 200'000ull * 256 * 102 / 100 + (4 << 20));
  for (void* memory : small) arena.Free(memory, 256);
  CHECK(arena.stats().mapped_bytes <= (6 << 20));
  std::vector<void*> large;
  for (int i = 0; i < 12'000; ++i) large.push_back(arena.Allocate(4096));
  CHECK(arena.stats().mapped_bytes <= mapped + (4 << 20));
  for (void* memory : large) arena.Free(memory, 4096);
}

TEST_CASE("chunks that were prepared are used when the others are full, and not before",
          "[arena]") {
  NodeArena arena({.huge_pages = false});
  std::vector<std::pair<void*, size_t>> held;
  Random random(9);
  for (int i = 0; i < 100'000; ++i) {
    if (i % 200 == 0) arena.PrepareChunks(3);
    const size_t bytes = 128 * (1 + random.Below(32));
    held.emplace_back(arena.Allocate(bytes), bytes);
    if (held.size() < 20'000) continue;
    std::swap(held[random.Below(held.size())], held.back());
    arena.Free(held.back().first, held.back().second);
    held.pop_back();
  }
  const NodeArena::Stats stats = arena.stats();
  CHECK(stats.mapped_bytes <= stats.used_bytes * 115 / 100 + (16 << 20));
  for (const auto& [memory, bytes] : held) arena.Free(memory, bytes);
}

TEST_CASE("no call sweeps many entries out of the bins, and few useless ones stay", "[arena]") {
  const uint64_t seed = 11;
  CAPTURE(seed);
  Random random(seed);
  NodeArena arena({.huge_pages = false});
  std::vector<std::pair<void*, size_t>> held;
  uint64_t swept_at_once = 0;
  uint64_t useless_max = 0;
  for (int i = 0; i < 600'000; ++i) {
    const uint64_t swept_before = arena.stats().swept;
    // Phases of large and of small runs: neighbours are joined and cut again, always at the same
    // places.
    const bool grows = i / 60'000 % 2 == 0;
    if (held.empty() || random.Below(10) < (grows ? 7u : 3u)) {
      const size_t bytes = i / 120'000 % 2 == 0 ? 128 * (1 + random.Below(3)) : 256;
      held.emplace_back(arena.Allocate(bytes), bytes);
    } else {
      std::swap(held[random.Below(held.size())], held.back());
      arena.Free(held.back().first, held.back().second);
      held.pop_back();
    }
    const NodeArena::Stats stats = arena.stats();
    swept_at_once = std::max(swept_at_once, stats.swept - swept_before);
    if (stats.bin_entries > 3 * stats.free_runs)
      useless_max = std::max(useless_max, stats.bin_entries - 3 * stats.free_runs);
  }
  CHECK(arena.stats().swept > 100'000);
  CHECK(swept_at_once <= NodeArena::kSweptAtOnceMax);
  CHECK(useless_max <= 3 * 4096);
  for (const auto& [memory, bytes] : held) arena.Free(memory, bytes);
  const NodeArena::Stats stats = arena.stats();
  CHECK(stats.used_bytes == 0);
  CHECK(stats.free_runs == stats.mapped_bytes >> 21);  // one a chunk: all were found and joined
}

TEST_CASE("a run that the sweep has marked is found again by its true length", "[arena]") {
  // Runs of one length beside runs of others, freed and taken while a sweep is under way.
  Random random(5);
  NodeArena arena({.huge_pages = false});
  std::vector<std::pair<uint8_t*, size_t>> held;
  bool all_intact = true;
  for (int i = 0; i < 400'000; ++i) {
    if (random.Below(100) < (i / 40'000 % 2 == 0 ? 75u : 30u) || held.empty()) {
      const size_t bytes = 128 * (random.OneIn(3) ? 1 : 1 + random.Below(32));
      auto* memory = static_cast<uint8_t*>(arena.Allocate(bytes));
      std::memset(memory, static_cast<int>(bytes / 128), bytes);
      held.emplace_back(memory, bytes);
    } else {
      std::swap(held[random.Below(held.size())], held.back());
      const auto [memory, bytes] = held.back();
      held.pop_back();
      const auto mark = static_cast<uint8_t>(bytes / 128);
      all_intact &= memory[0] == mark && memory[bytes - 1] == mark;
      arena.Free(memory, bytes);
    }
    if (i % 50'000 == 49'999 && arena.BeginCompaction()) {
      for (auto& [memory, bytes] : held) {
        if (!NodeArena::IsLeaving(memory, bytes)) continue;
        auto* moved = static_cast<uint8_t*>(arena.Allocate(bytes));
        std::memcpy(moved, memory, bytes);
        arena.Free(memory, bytes);
        memory = moved;
      }
      arena.EndCompaction();
    }
  }
  CHECK(all_intact);
  CHECK(arena.stats().swept > 10'000);
  for (const auto& [memory, bytes] : held) arena.Free(memory, bytes);
  const NodeArena::Stats stats = arena.stats();
  CHECK(stats.used_bytes == 0);
  CHECK(stats.free_runs == stats.mapped_bytes >> 21);
}

TEST_CASE("a keeper has chunks ready while an arena grows, and unmaps what it gives back",
          "[arena]") {
  constexpr uint64_t kChunkBytes{2 << 20};
  NodeArena arena({.huge_pages = false, .keeper = true});
  const auto wait_until = [&](const auto& is_so) {
    while (!is_so(arena.stats())) std::this_thread::yield();
  };
  std::vector<void*> held;
  const auto grow_to = [&](uint64_t bytes) {
    while (arena.stats().mapped_bytes < bytes) held.push_back(arena.Allocate(4096));
  };
  // Nothing is taken ahead before something is used, and then the next one, from the first on.
  arena.PrepareChunks(1);
  CHECK(arena.stats().kept_bytes == 0);
  for (uint64_t chunks = 1; chunks <= 8; ++chunks) {
    CAPTURE(chunks);
    held.push_back(arena.Allocate(4096));
    wait_until([](const auto& stats) { return stats.kept_bytes == kChunkBytes; });
    REQUIRE(arena.stats().mapped_bytes == chunks * kChunkBytes);
    grow_to((chunks + 1) * kChunkBytes);
  }
  grow_to(20 * kChunkBytes);
  wait_until([](const auto& stats) { return stats.kept_bytes == 2 * kChunkBytes; });
  grow_to(80 * kChunkBytes);
  wait_until(
      [](const auto& stats) { return stats.kept_bytes == ChunkKeeper::kReadyMax * kChunkBytes; });
  CHECK(arena.stats().kept_bytes <= ChunkKeeper::kReadyMax * kChunkBytes);
  // Ready chunks are taken, whatever they were before.
  for (int i = 0; i < 3; ++i) {
    for (void* memory : held) arena.Free(memory, 4096);
    held.clear();
    wait_until(
        [](const auto& stats) { return stats.kept_bytes <= ChunkKeeper::kReadyMax * kChunkBytes; });
    CHECK(arena.stats().mapped_bytes <= 6 * kChunkBytes);
    grow_to(40 * kChunkBytes);
    for (void* memory : held) std::memset(memory, 1, 4096);
  }
  // Large ones are freed in the thread.
  for (int i = 0; i < 10; ++i) arena.Free(arena.Allocate(8 << 20), 8 << 20);
  for (void* memory : held) arena.Free(memory, 4096);
  // The growth is over: one is enough.
  wait_until([](const auto& stats) { return stats.kept_bytes <= kChunkBytes; });
}

// The sanitizers map more than any limit allows.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
TEST_CASE("without memory the process ends with a message", "[arena]") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    (void)std::signal(SIGABRT, SIG_DFL);  // else the test framework reports it
    (void)dup2(ends[1], STDERR_FILENO);
    const rlimit none{0, 0};
    (void)setrlimit(RLIMIT_CORE, &none);
    const rlimit little{256 << 20, 256 << 20};
    (void)setrlimit(RLIMIT_AS, &little);
    BTree tree;
    for (uint64_t i = 0;; ++i) tree.Put(std::to_string(i), "a value of some bytes");
  }
  close(ends[1]);
  std::string said(200, '\0');
  const ssize_t bytes = read(ends[0], said.data(), said.size());
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(bytes > 0);
  said.resize(static_cast<size_t>(bytes));
  CHECK(said.find("cellar: out of memory") == 0);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGABRT);
}
#endif

}  // namespace arena_test
