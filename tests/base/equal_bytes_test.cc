// EqualBytes against the comparison of strings, over every size around its thresholds.
#include "base/equal_bytes.h"

#include <catch2/catch.hpp>
#include <string>

namespace equal_bytes_test {

using cellar::EqualBytes;

TEST_CASE("EqualBytes sees every byte of strings of every size", "[base]") {
  for (size_t size = 0; size <= 40; ++size) {
    const std::string a(size, 'a');
    std::string b = a;
    CHECK(EqualBytes(a, b));
    CHECK_FALSE(EqualBytes(a, b + "a"));
    CHECK_FALSE(EqualBytes(a + "a", b));
    for (size_t i = 0; i < size; ++i) {
      b[i] = 'b';
      CHECK_FALSE(EqualBytes(a, b));
      CHECK_FALSE(EqualBytes(b, a));
      b[i] = 'a';
    }
  }
  CHECK(EqualBytes({}, std::string_view("", 0)));
}

}  // namespace equal_bytes_test
