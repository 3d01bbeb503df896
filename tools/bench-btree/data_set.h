// The cells that bench-btree stores: made by arithmetic, so that any of them can be made again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/coding.h"

namespace bench_btree {

inline uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

// Ends before `end`.
inline void WriteDigits(uint64_t number, char* end) {
  for (; number > 0; number /= 10) *--end = static_cast<char>('0' + number % 10);
}

// Keys are those that the engine makes: escaped row key, 00 01, family, qualifier, 00 01,
// descending timestamp of 7 bytes; values are a flag byte and 8..16 random bytes.
struct DataSet {
  const char* name;
  const char* what;
  uint64_t columns;   // of a row
  uint64_t versions;  // of a column
  bool has_many_columns;

  // Cell i in key order, but for the order of columns and timestamps.
  void Key(uint64_t i, std::string* key) const {
    const uint64_t row = i / (columns * versions);
    const uint64_t column = i / versions % columns;
    key->assign("plane#00000000000000\0\1\1", 23);
    WriteDigits(row * 7919 + 10'000'000, key->data() + 20);
    if (has_many_columns) {
      key->append("q00000000");
      WriteDigits(column, key->data() + key->size());
    } else {  // 10 of the 20 names that there are
      static constexpr const char* kNames[20]{"alt",   "speed",  "heading", "squawk", "lat",
                                              "lon",   "icao24", "origin",  "vert",   "ground",
                                              "seen",  "signal", "spi",     "call",   "model",
                                              "owner", "built",  "route",   "dest",   "status"};
      key->append(kNames[(row + column * 2) % 20]);
    }
    key->append("\0\1", 2);
    // A microsecond of one year, newest first: the version's number is in the high bits.
    const uint64_t year = 31'536'000'000'000ULL;
    const uint64_t timestamp = 1'700'000'000'000'000ULL + year * column / columns / 50 +
                               (versions - i % versions) * (year / 50 / versions) +
                               Mix(i) % (year / 50 / versions);
    char bytes[8];
    cellar::EncodeBigEndian64(bytes, ~timestamp);
    key->append(bytes + 1, 7);
  }
  // The column without its timestamp: what a read of the newest version seeks.
  static std::string_view Column(std::string_view key) { return key.substr(0, key.size() - 7); }

  static void Value(uint64_t i, uint64_t round, std::string* value) {
    const uint64_t a = Mix(i * 2 + round * 77777);
    const uint64_t size = 8 + Mix(i) % 9;
    char bytes[17];
    bytes[0] = 1;
    cellar::EncodeFixed64(bytes + 1, a);
    cellar::EncodeFixed64(bytes + 9, Mix(a));
    value->assign(bytes, 1 + size);
  }
};

inline constexpr DataSet kDataSets[]{
    {"a", "rows of 10 columns, one version", 10, 1, false},
    {"b", "rows of 10 columns, 10 versions each", 10, 10, false},
    {"c", "rows of 100,000 columns", 100'000, 1, true},
};

}  // namespace bench_btree
