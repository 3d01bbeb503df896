// See exact_sum.h.
#include "engine/aggregate/exact_sum.h"

#include <bit>
#include <cmath>
#include <limits>

#include "base/assert.h"

namespace cellar {
namespace {

constexpr int kUnitExponent{-80};  // of ExactSum's units
constexpr int kLeastExponent{-1074};
constexpr int kDigitBits{32};
constexpr int64_t kDigitMask{0xffffffff};

struct Parts {
  int64_t mantissa;  // signed
  int exponent;      // value = mantissa * 2^exponent
};

Parts PartsOf(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  const auto field = static_cast<int>(bits >> 52 & 0x7ff);
  auto mantissa = static_cast<int64_t>(bits & ((uint64_t{1} << 52) - 1));
  if (field != 0) mantissa |= int64_t{1} << 52;
  return {(bits >> 63) != 0 ? -mantissa : mantissa, (field == 0 ? 1 : field) - 1075};
}

}  // namespace

// --- LongAccumulator

void LongAccumulator::AddDigit(size_t digit, int64_t value) {
  CELLAR_ASSERT(digit < kDigits);
  digits_[digit] += value;
}

void LongAccumulator::Carry() {
  for (size_t i = 0; i + 1 < kDigits; ++i) {
    // The shift rounds down, so a negative digit borrows from the next one.
    const int64_t carry = digits_[i] >> kDigitBits;
    digits_[i] &= kDigitMask;
    digits_[i + 1] += carry;
  }
  // An addition changes a digit by less than 2^32: so many of them fit into 63 bits.
  adds_left_ = 1u << 30;
}

void LongAccumulator::AddInteger(int128_t value, int exponent) {
  CELLAR_ASSERT(exponent >= kLeastExponent);
  const bool negative = value < 0;
  auto magnitude = static_cast<uint128_t>(negative ? -value : value);
  const int place = exponent - kLeastExponent;
  auto digit = static_cast<size_t>(place / kDigitBits);
  const int shift = place % kDigitBits;
  // What the shift pushes out at the top of 128 bits comes last.
  const auto top = shift == 0 ? 0 : static_cast<int64_t>(magnitude >> (128 - shift));
  magnitude <<= shift;
  for (int i = 0; i < 4; ++i, ++digit, magnitude >>= kDigitBits) {
    const auto part = static_cast<int64_t>(static_cast<uint64_t>(magnitude) & kDigitMask);
    if (part != 0) AddDigit(digit, negative ? -part : part);
  }
  if (top != 0) AddDigit(digit, negative ? -top : top);
  if (--adds_left_ == 0) Carry();
}

void LongAccumulator::Add(double value) {
  const Parts parts = PartsOf(value);
  if (parts.mantissa != 0) AddInteger(parts.mantissa, parts.exponent);
}

void LongAccumulator::Add(const LongAccumulator& other) {
  LongAccumulator carried = other;
  carried.Carry();
  Carry();
  for (size_t i = 0; i < kDigits; ++i) digits_[i] += carried.digits_[i];
  Carry();
}

// Works on a copy, carried until each digit has 32 bits, and made positive. Of the bits, the
// highest 53 make the double; the one below them rounds it up, unless that is a tie, which goes to
// even.
double LongAccumulator::Round() const {
  LongAccumulator sum = *this;
  sum.Carry();
  const bool negative = sum.digits_[kDigits - 1] < 0;
  if (negative) {
    for (int64_t& digit : sum.digits_) digit = -digit;
    sum.Carry();
  }
  size_t top = kDigits;
  while (top > 0 && sum.digits_[top - 1] == 0) --top;
  if (top == 0) return 0.0;
  const auto top_bits =
      static_cast<int>(std::bit_width(static_cast<uint64_t>(sum.digits_[top - 1])));
  // The place of the highest bit, counted from the lowest of all.
  const int high = static_cast<int>(top - 1) * kDigitBits + top_bits - 1;
  const int low = high < 52 ? 0 : high - 52;  // of the lowest bit that a double keeps
  const auto bit = [&sum](int place) {
    return static_cast<uint64_t>(sum.digits_[static_cast<size_t>(place / kDigitBits)]) >>
               (place % kDigitBits) &
           1;
  };
  uint64_t mantissa = 0;
  for (int place = high; place >= low; --place) mantissa = mantissa << 1 | bit(place);
  if (low > 0 && bit(low - 1) != 0) {
    bool above_half = (mantissa & 1) != 0;  // ties go to even
    const int half = low - 1;
    for (int i = 0; i < half / kDigitBits && !above_half; ++i)
      above_half = sum.digits_[static_cast<size_t>(i)] != 0;
    const auto last = static_cast<uint64_t>(sum.digits_[static_cast<size_t>(half / kDigitBits)]);
    if ((last & ((uint64_t{1} << (half % kDigitBits)) - 1)) != 0) above_half = true;
    if (above_half) ++mantissa;
  }
  const double magnitude = std::ldexp(static_cast<double>(mantissa), low + kLeastExponent);
  return negative ? -magnitude : magnitude;
}

// --- ExactSum

bool ExactSum::AddUnits(int128_t units) {
  int128_t sum = 0;
  if (__builtin_add_overflow(Join(units_high_, units_low_), units, &sum)) return false;
  units_low_ = static_cast<uint64_t>(sum);
  units_high_ = static_cast<uint64_t>(sum >> 64);
  return true;
}

void ExactSum::AddDouble(double value) {
  CELLAR_DEBUG_ASSERT(!std::isnan(value));
  has_doubles_ = 1;
  if (std::isinf(value)) [[unlikely]] {
    (value > 0 ? has_infinity_ : has_minus_infinity_) = 1;
    return;
  }
  const Parts parts = PartsOf(value);
  if (parts.mantissa == 0) return;
  // Most numbers fit into units of 2^-80, also small ones whose lowest bits are zero. Others go to
  // the long accumulator, which has room for every double.
  constexpr int kShiftMax{127 - 53 - 1};
  int shift = parts.exponent - kUnitExponent;
  int64_t mantissa = parts.mantissa;
  if (shift < 0 && shift > -53) {
    const int spare = std::countr_zero(static_cast<uint64_t>(mantissa));
    if (spare >= -shift) {
      mantissa >>= -shift;
      shift = 0;
    }
  }
  const bool fits = shift >= 0 && shift <= kShiftMax;
  if (fits && AddUnits(static_cast<int128_t>(mantissa) << shift)) [[likely]]
    return;
  Rare().Add(value);
}

void ExactSum::Add(const ExactSum& other) {
  SetIntegers(integers() + other.integers());
  has_doubles_ |= other.has_doubles_;
  has_infinity_ |= other.has_infinity_;
  has_minus_infinity_ |= other.has_minus_infinity_;
  const int128_t units = Join(other.units_high_, other.units_low_);
  if (!AddUnits(units)) Rare().AddInteger(units, kUnitExponent);
  if (other.rare_ != nullptr) Rare().Add(*other.rare_);
}

double ExactSum::Round() const {
  constexpr double kInfinity{std::numeric_limits<double>::infinity()};
  if (has_infinity_ != 0 && has_minus_infinity_ != 0) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (has_infinity_ != 0) return kInfinity;
  if (has_minus_infinity_ != 0) return -kInfinity;
  LongAccumulator sum;
  sum.AddInteger(integers(), 0);
  sum.AddInteger(Join(units_high_, units_low_), kUnitExponent);
  if (rare_ != nullptr) sum.Add(*rare_);
  return sum.Round();
}

}  // namespace cellar
