// NodeArena: runs do not overlap, free neighbours are joined, chunks go back.
#include "btree/arena.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "btree/btree.h"

namespace arena_test {

using cellar::BTree;
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
