// Numbers to text and back, strictly: the one place that knows which texts are numbers.
//
//   integers   -?[0-9]+, nothing else: no plus sign, no blanks, no hexadecimal; "-0" is 0
//   floats     [+-]? decimal digits with at most one point, an exponent if wanted; inf, infinity
//              with or without a sign, in any case. "nan" is no number here, nor is finite text
//              beyond the type; text too small for the type is zero.
//
// Floats print with the fewest digits that read back to the same value (std::to_chars), without an
// exponent for 1e-4 <= |x| < 1e16 and with one elsewhere ("1.5e+16"), never with a ".0".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cellar {

__extension__ typedef __int128 int128_t;
__extension__ typedef unsigned __int128 uint128_t;

enum class NumberError : uint8_t {
  kNone,
  kMalformed,   // not a number by the rules above
  kOutOfRange,  // a number, but not one of the type
};

// Each leaves *value alone unless it returns kNone. O(text.size()).
[[nodiscard]] NumberError ParseInt64(std::string_view text, int64_t* value);
[[nodiscard]] NumberError ParseUint64(std::string_view text, uint64_t* value);
[[nodiscard]] NumberError ParseInt128(std::string_view text, int128_t* value);
[[nodiscard]] NumberError ParseDouble(std::string_view text, double* value);
// Rounds the text to a float at once, not by way of a double.
[[nodiscard]] NumberError ParseFloat(std::string_view text, float* value);

// What a decimal text means beside an integer, exactly, however many digits or whatever exponent it
// has: the greatest integer not above it, and whether it is that integer. `floor` stands still at
// +-kDecimalFloorLimit, beyond every 64-bit integer, which is all that a comparison needs.
struct DecimalFloor {
  int128_t floor;
  bool exact;
};
inline constexpr int128_t kDecimalFloorLimit = static_cast<int128_t>(1) << 100;
// Takes every text that ParseDouble takes, and finite ones beyond its range. kMalformed or kNone.
[[nodiscard]] NumberError ParseDecimalFloor(std::string_view text, DecimalFloor* value);

// Append the canonical text.
void AppendInt64(int64_t value, std::string* out);
void AppendUint64(uint64_t value, std::string* out);
void AppendDouble(double value, std::string* out);  // REQUIRES: not a NaN
void AppendFloat(float value, std::string* out);    // REQUIRES: not a NaN

std::string FormatInt64(int64_t value);
std::string FormatUint64(uint64_t value);
std::string FormatDouble(double value);  // REQUIRES: not a NaN
std::string FormatFloat(float value);    // REQUIRES: not a NaN

}  // namespace cellar
