// ExactSum: the sum of any number of integers and doubles, rounded once, at the end. It does not
// depend on the order of what is added, so that parts that were summed apart come to the same.
//
// Integers are added in 128 bits. A double is a whole number of units of 2^-80 mostly (all that
// have a magnitude between 2^-28 and 2^45, and smaller ones that need fewer bits), and is added as
// one; what does not fit goes to a long accumulator, made at the first need, which has a place for
// every bit that a double can have (Kulisch):
//
//   digit   0               1               ...            66       32 bits each, in 64-bit words
//           2^-1074 ..      2^-1042 ..                     .. 2^1070   whose upper half is for carries
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/text/number.h"

namespace cellar {

class LongAccumulator {
 public:
  // REQUIRES: finite.
  void Add(double value);
  // Adds value * 2^exponent. REQUIRES: exponent >= -1074; the sum stays below 2^1100.
  void AddInteger(int128_t value, int exponent);
  void Add(const LongAccumulator& other);
  // Rounded to nearest, ties to even; infinite where that is beyond all doubles.
  double Round() const;
  // For another node, which takes it for the same.
  void Encode(std::string* to) const;
  // REQUIRES: nothing has been added. False: these are not the bytes of one.
  [[nodiscard]] bool Decode(std::string_view* from);

 private:
  static constexpr size_t kDigits{70};
  void AddDigit(size_t digit, int64_t value);
  void Carry();

  std::array<int64_t, kDigits> digits_{};  // value = sum of digits_[i] * 2^(32 i - 1074)
  uint32_t adds_left_{1u << 30};           // before carries must be done
};

// Trivially copied and destroyed, as accumulators of groups are: Free() gives back what it holds.
class ExactSum {
 public:
  void AddInteger(int64_t value) { SetIntegers(integers() + value); }
  void AddInteger(int128_t value) { SetIntegers(integers() + value); }
  // Not a NaN.
  void AddDouble(double value);
  void Add(const ExactSum& other);

  bool has_doubles() const { return has_doubles_ != 0; }
  int128_t integers() const { return Join(integers_high_, integers_low_); }
  // The sum of all, integers included. NaN where both infinities have been added.
  double Round() const;
  void Free() {
    delete rare_;
    rare_ = nullptr;
  }
  // Held besides the object itself.
  size_t heap_bytes() const { return rare_ == nullptr ? 0 : sizeof(LongAccumulator); }
  // For another node, which takes it for the same.
  void Encode(std::string* to) const;
  // REQUIRES: nothing has been added. False: these are not the bytes of one.
  [[nodiscard]] bool Decode(std::string_view* from);

 private:
  static int128_t Join(uint64_t high, uint64_t low) {
    return static_cast<int128_t>(static_cast<uint128_t>(high) << 64 | low);
  }
  void SetIntegers(int128_t value) {
    integers_low_ = static_cast<uint64_t>(value);
    integers_high_ = static_cast<uint64_t>(value >> 64);
  }
  bool AddUnits(int128_t units);
  LongAccumulator& Rare() {
    if (rare_ == nullptr) rare_ = new LongAccumulator;
    return *rare_;
  }

  uint64_t integers_low_{0};  // halves, so that the object need not be aligned to 16 bytes
  uint64_t integers_high_{0};
  uint64_t units_low_{0};
  uint64_t units_high_{0};
  LongAccumulator* rare_{nullptr};
  uint8_t has_doubles_{0};
  uint8_t has_infinity_{0};
  uint8_t has_minus_infinity_{0};
};

}  // namespace cellar
