// NodeArena: runs do not overlap, free neighbours are joined, chunks go back.
#include "btree/arena.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <utility>
#include <vector>

#include "base/random.h"

namespace arena_test {

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

}  // namespace arena_test
