// Memory of buffers: what is written stays when they grow, from malloc to pages and in them.
#include "base/buffer_memory.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

namespace cellar {
namespace buffer_memory_test {

TEST_CASE("A buffer keeps its bytes while it grows over all sizes", "[base]") {
  // Twice, so that the second one gets what the first one has freed.
  for (const char fill : {'a', 'b'}) {
    char* data = nullptr;
    size_t capacity = 0;
    for (size_t bytes = 1000; bytes < kKeptBytes << (kKeptSizes + 1); bytes = capacity * 3 / 2) {
      const size_t written = capacity;
      data = GrowBuffer(data, &capacity, bytes);
      REQUIRE(capacity >= bytes);
      for (size_t i = 0; i < written; i += 997) REQUIRE(data[i] == fill);
      std::memset(data, fill, capacity);
    }
    FreeBuffer(data, capacity);
  }
}

TEST_CASE("Buffers in use never share memory", "[base]") {
  std::vector<char*> blocks;
  for (int round = 0; round < 3; ++round) {
    std::vector<size_t> capacities;
    for (size_t i = 0; i < 100; ++i) {  // more than are kept
      size_t capacity = 0;
      blocks.push_back(GrowBuffer(nullptr, &capacity, kKeptBytes));
      capacities.push_back(capacity);
      std::memset(blocks[i], static_cast<int>(i), capacity);
    }
    for (size_t i = 0; i < blocks.size(); ++i) {
      REQUIRE(blocks[i][0] == static_cast<char>(i));
      REQUIRE(blocks[i][kKeptBytes - 1] == static_cast<char>(i));
      FreeBuffer(blocks[i], capacities[i]);
    }
    blocks.clear();
  }
  FreeBuffer(nullptr, 0);
}

}  // namespace buffer_memory_test
}  // namespace cellar
