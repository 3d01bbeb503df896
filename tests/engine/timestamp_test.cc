// Timestamps in keys: order, sizes, prefix-freeness.
#include "engine/keys/timestamp.h"

#include <catch2/catch.hpp>
#include <vector>

#include "base/random.h"

namespace timestamp_test {

using namespace cellar;

std::string Encoded(int64_t timestamp) {
  std::string bytes;
  PutTimestamp(&bytes, timestamp);
  return bytes;
}

TEST_CASE("Timestamps take as many bytes as they need", "[timestamp]") {
  REQUIRE(Encoded(0).size() == 1);
  REQUIRE(Encoded(15).size() == 1);
  REQUIRE(Encoded(16).size() == 2);
  REQUIRE(Encoded((int64_t{1} << 52) - 1).size() == 7);
  REQUIRE(Encoded(int64_t{1} << 52).size() == 8);
  REQUIRE(Encoded((int64_t{1} << 60) - 1).size() == 8);
  REQUIRE(Encoded(INT64_MAX).size() == 9);
  REQUIRE(Encoded(1'700'000'000'000'000).size() == 7);
}

TEST_CASE("Newer timestamps sort first, no encoding begins another one, all read back",
          "[timestamp]") {
  const uint64_t seed = 4711;
  INFO("seed " << seed);
  Random random(seed);
  std::vector<int64_t> samples{0, 1, INT64_MAX, INT64_MAX - 1};
  for (int bit = 0; bit < 63; ++bit) {
    const int64_t power = int64_t{1} << bit;
    samples.insert(samples.end(), {power - 1, power, power < INT64_MAX ? power + 1 : power});
  }
  for (int i = 0; i < 500; ++i) {
    samples.push_back(static_cast<int64_t>(random.Next() >> (1 + random.Below(63))));
  }
  for (const int64_t a : samples) {
    const std::string bytes_a = Encoded(a);
    REQUIRE(TimestampSize(bytes_a[0]) == bytes_a.size());
    for (const std::string& behind :
         {std::string(), std::string("tail"), std::string(20, '\xff')}) {
      int64_t decoded = -1;
      REQUIRE(DecodeTimestamp(bytes_a + behind, &decoded) == bytes_a.size());
      REQUIRE(decoded == a);
    }
    int64_t loaded = -1;
    REQUIRE(LoadTimestamp(bytes_a, &loaded));
    REQUIRE(loaded == a);
    REQUIRE_FALSE(LoadTimestamp(bytes_a + "x", &loaded));
    KeyBuffer key;
    PutTimestamp(&key, a);
    REQUIRE(key.view() == bytes_a);
    for (const int64_t b : samples) {
      const std::string bytes_b = Encoded(b);
      if ((bytes_a < bytes_b) != (a > b)) FAIL(a << " against " << b);
      if (a != b && bytes_b.starts_with(bytes_a)) FAIL(a << " begins " << b);
    }
  }
}

TEST_CASE("What no timestamp encodes to is refused", "[timestamp]") {
  int64_t decoded = 0;
  REQUIRE(DecodeTimestamp("", &decoded) == 0);
  REQUIRE(DecodeTimestamp(std::string_view("\xef", 1), &decoded) == 0);      // cut short
  REQUIRE(DecodeTimestamp(std::string_view("\xef\xff", 2), &decoded) == 0);  // 0 in two bytes
  REQUIRE(DecodeTimestamp(std::string(9, '\x00'), &decoded) == 0);           // length nibble 15
  REQUIRE(DecodeTimestamp("\x7f" + std::string(8, '\x00'), &decoded) == 0);  // 2^64 - 1
}

}  // namespace timestamp_test
