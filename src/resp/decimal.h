// Decimal text to integers and back, as the Redis protocol reads and writes them: strict (no `+`,
// no leading zero, no `-0`, no blanks), so that every number has one text.
//
// base/text/number.h has the more generous rules for the values of cells; this file is for the wire
// and for the arguments of generic commands, where Redis is strict.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>

#include "base/coding.h"

namespace cellar {

inline constexpr size_t kDecimalBytesMax{20};  // "-9223372036854775808", "18446744073709551615"

// False, changing nothing, when `text` is not a strict decimal integer of 64 bits.
[[nodiscard]] inline bool ParseStrictInt64(std::string_view text, int64_t* value) {
  if (text.empty() || text.size() > kDecimalBytesMax) return false;
  const bool negative = text[0] == '-';
  const std::string_view digits = text.substr(negative ? 1 : 0);
  if (digits.empty()) return false;
  if (digits[0] == '0' && (digits.size() > 1 || negative)) return false;
  uint64_t sum = 0;
  for (const char c : digits) {
    const auto digit = static_cast<uint8_t>(c - '0');
    if (digit > 9) return false;
    if (__builtin_mul_overflow(sum, uint64_t{10}, &sum)) return false;
    if (__builtin_add_overflow(sum, uint64_t{digit}, &sum)) return false;
  }
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (sum > kMax + (negative ? 1 : 0)) return false;
  *value = static_cast<int64_t>(negative ? 0 - sum : sum);
  return true;
}

// The decimal digits of 0 to 99, two each.
inline constexpr char kDigitPairs[] =
    "0001020304050607080910111213141516171819"
    "2021222324252627282930313233343536373839"
    "4041424344454647484950515253545556575859"
    "6061626364656667686970717273747576777879"
    "8081828384858687888990919293949596979899";
// Those of `value`, which is below 100, as a little-endian word.
inline uint16_t TwoDigits(uint32_t value) {
  return LoadLittleEndian<uint16_t>(kDigitPairs + 2 * value);
}

// The eight digits of `value`, which is below 10^8, a byte each (0 to 9), the first one lowest. It
// is halved in lanes of one number: into fours, twos, ones. 10486 / 2^20 is a hundredth of what is
// below 10^4, 103 / 2^10 a tenth of what is below 100. P. Khuong, "How to print integers really
// fast".
inline uint64_t EightDigits(uint32_t value) {
  const uint64_t high = value / 10'000;
  const uint64_t fours = high | (value - high * 10'000) << 32;
  const uint64_t hundreds = ((fours * 10486) >> 20) & 0x0000007f0000007f;
  const uint64_t twos = hundreds | (fours - hundreds * 100) << 16;
  const uint64_t tens = ((twos * 103) >> 10) & 0x000f000f000f000f;
  return tens | (twos - tens * 10) << 8;
}

// Writes `value` to `to`, which has room for kDecimalBytesMax bytes, of which some behind the text
// may be written too; returns the end of the text.
inline char* EncodeDecimal(char* to, uint64_t value) {
  constexpr uint64_t kEightDigits{100'000'000};
  constexpr uint64_t kAscii{0x3030303030303030};
  if (value < 10) {
    *to = static_cast<char>('0' + value);
    return to + 1;
  }
  if (value >= kEightDigits) {
    to = EncodeDecimal(to, value / kEightDigits);
    StoreLittleEndian(to, EightDigits(static_cast<uint32_t>(value % kEightDigits)) + kAscii);
    return to + 8;
  }
  const uint64_t digits = EightDigits(static_cast<uint32_t>(value));
  const int leading_bits = std::countr_zero(digits | uint64_t{1} << 56) & ~7;  // zeros' bytes
  StoreLittleEndian(to, (digits + kAscii) >> leading_bits);
  return to + 8 - leading_bits / 8;
}
inline char* EncodeDecimal(char* to, int64_t value) {
  if (value >= 0) return EncodeDecimal(to, static_cast<uint64_t>(value));
  *to = '-';
  return EncodeDecimal(to + 1, 0 - static_cast<uint64_t>(value));
}

}  // namespace cellar
