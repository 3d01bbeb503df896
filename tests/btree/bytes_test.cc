// Common prefixes of all sizes, against one that compares byte by byte.
#include "btree/nodes/bytes.h"

#include <catch2/catch.hpp>
#include <vector>

namespace cellar::btree_internal {
namespace bytes_test {

TEST_CASE("the common prefix of texts of all sizes, wherever they part", "[bytes]") {
  for (size_t bytes = 0; bytes <= 40; ++bytes) {
    // Of exactly this size, so that ASan sees who reads behind them.
    const std::vector<uint8_t> a(bytes, 'a');
    REQUIRE(CommonPrefix(a.data(), a.data(), bytes) == bytes);
    for (size_t at = 0; at < bytes; ++at) {
      std::vector<uint8_t> b = a;
      b[at] = 'b';
      REQUIRE(CommonPrefix(a.data(), b.data(), bytes) == at);
      if (at + 1 < bytes) b[bytes - 1] = 'c';  // what follows does not matter
      REQUIRE(CommonPrefix(a.data(), b.data(), bytes) == at);
    }
  }
}

}  // namespace bytes_test
}  // namespace cellar::btree_internal
