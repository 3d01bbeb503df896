// See value_convert.h.
#include "engine/keys/value_convert.h"

#include <cmath>
#include <limits>

#include "base/assert.h"
#include "base/coding.h"

namespace cellar {
namespace {

template <typename Float>
bool StoreFloat(Float value, std::string* converted) {
  converted->resize(sizeof(Float));
  StoreLittleEndian(converted->data(), value);
  return true;
}

bool ConvertInteger(int128_t value, ValueType to, std::string* converted) {
  if (IsIntegerType(to)) {
    if (value < IntegerTypeMin(to) || value > IntegerTypeMax(to)) return false;
    ValueBuffer buffer;
    converted->assign(StoreInteger(to, value, &buffer));
    return true;
  }
  if (to == ValueType::kBool) {
    if (value != 0 && value != 1) return false;
    converted->assign(1, static_cast<char>(value));
    return true;
  }
  // All integers of 64 bits are in the range of both: only the last digits may get lost.
  if (to == ValueType::kF64) {
    const auto floating = static_cast<double>(value);
    return static_cast<int128_t>(floating) == value && StoreFloat(floating, converted);
  }
  CELLAR_ASSERT(to == ValueType::kF32);
  const auto floating = static_cast<float>(value);
  return static_cast<int128_t>(floating) == value && StoreFloat(floating, converted);
}

bool ConvertFloat(double value, ValueType to, std::string* converted) {
  if (to == ValueType::kF64) return StoreFloat(value, converted);
  if (to == ValueType::kF32) {
    const bool in_range = std::isinf(value) || std::abs(value) <= std::numeric_limits<float>::max();
    if (!in_range) return false;
    const auto single = static_cast<float>(value);
    return static_cast<double>(single) == value && StoreFloat(single, converted);
  }
  constexpr double kIntegersEnd{18446744073709551616.0};  // 2^64
  if (!(std::abs(value) < kIntegersEnd) || std::trunc(value) != value) return false;
  return ConvertInteger(static_cast<int128_t>(value), to, converted);
}

}  // namespace

bool ConvertValue(ValueType from, std::string_view stored, ValueType to, std::string* converted) {
  CELLAR_ASSERT(from != ValueType::kHll);
  CELLAR_ASSERT(to != ValueType::kHll);
  if (from == to) {
    converted->assign(stored);
    return true;
  }
  if (IsTextType(from)) return ParseValue(to, stored, converted).ok();
  if (IsTextType(to)) {
    *converted = ValueText(from, stored);
    return true;
  }
  if (from == ValueType::kUuid || to == ValueType::kUuid) return false;
  if (IsFloatType(from)) return ConvertFloat(DecodeValue(from, stored).floating, to, converted);
  const int128_t value =
      from == ValueType::kBool ? DecodeValue(from, stored).boolean : LoadInteger(from, stored);
  return ConvertInteger(value, to, converted);
}

}  // namespace cellar
