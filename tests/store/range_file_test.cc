// Rows of a table as a file of their own.
#include "store/range_file.h"

#include <catch2/catch.hpp>
#include <string>

namespace range_file_test {

using cellar::RangeFileName;

TEST_CASE("names of such files are names of files, whatever tables and rows are called",
          "[returns]") {
  REQUIRE(RangeFileName("0", "web", "") == "cellar-orphan-web-first.snapshot");
  REQUIRE(RangeFileName("0", "web", "m") == "cellar-orphan-web-m.snapshot");
  REQUIRE(RangeFileName("shop", "web", "m#7") == "cellar-orphan-shop.web-m%237.snapshot");
  REQUIRE(RangeFileName("0", "web", "../x") == "cellar-orphan-web-..%2fx.snapshot");
  REQUIRE(RangeFileName("0", "web", std::string("\0\xff", 2)) ==
          "cellar-orphan-web-%00%ff.snapshot");
  // All bytes of all parts at their longest, in what file systems take.
  const std::string longest(70'000, '\xff');
  REQUIRE(RangeFileName(longest, longest, longest).size() + std::string("-100.new").size() <= 255);
}

}  // namespace range_file_test
