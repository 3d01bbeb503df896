// A small seeded generator (SplitMix64, Steele, Lea and Flood 2014): a run replays from its seed.
// Not for secrets: those come from OpenSSL.
#pragma once

#include <cstdint>

#include "base/assert.h"

namespace cellar {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  // Uniform in [0, bound). REQUIRES: bound > 0.
  uint64_t Below(uint64_t bound) {
    CELLAR_ASSERT(bound > 0);
    // The high half of a 64 x 64 bit product. __extension__: -Wpedantic knows no 128-bit integers.
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>((static_cast<Wide>(Next()) * bound) >> 64);
  }
  // True once in `n` times on average. REQUIRES: n > 0.
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  // Uniform in [0, 1).
  double Fraction() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

 private:
  uint64_t state_;
};

}  // namespace cellar
