// See aggregate_value.h.
#include "engine/aggregate/aggregate_value.h"

#include <bit>
#include <cmath>
#include <limits>
#include <tuple>

#include "base/assert.h"
#include "base/coding.h"

namespace cellar {
namespace {

constexpr uint64_t kSignBit{uint64_t{1} << 63};
enum NumberKind : char { kKindBool = 0, kKindInteger = 1, kKindFloat = 2 };

template <typename T>
int ThreeWay(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

// The largest double that is not above it.
double FloorToDouble(int128_t integer) {
  const auto nearest = static_cast<double>(integer);
  if (static_cast<int128_t>(nearest) <= integer) return nearest;
  return std::nextafter(nearest, -std::numeric_limits<double>::infinity());
}

int CompareIntegerToDouble(int128_t integer, double floating) {
  constexpr double kLarge{0x1p120};
  if (floating >= kLarge) return -1;
  if (floating < -kLarge) return 1;
  const double floor = std::floor(floating);
  const int order = ThreeWay(integer, static_cast<int128_t>(floor));
  return order == 0 && floor != floating ? -1 : order;
}

NumberKind KindOf(ValueType type) {
  if (type == ValueType::kBool) return kKindBool;
  return IsFloatType(type) ? kKindFloat : kKindInteger;
}

}  // namespace

int CompareNumbers(const Number& a, const Number& b) {
  if (a.is_integer && b.is_integer) return ThreeWay(a.integer, b.integer);
  if (a.is_integer) return CompareIntegerToDouble(a.integer, b.floating);
  if (b.is_integer) return -CompareIntegerToDouble(b.integer, a.floating);
  return ThreeWay(a.floating, b.floating);
}

double ToDouble(const Number& number) {
  return number.is_integer ? static_cast<double>(number.integer) : number.floating;
}

Number NumberOf(ValueType type, std::string_view stored) {
  Number number;
  ValueBuffer buffer;
  const SeenValue seen = SeenOf(type, stored, &buffer);
  if (IsIntegerType(seen.type)) {
    number.integer = LoadInteger(seen.type, seen.stored);
  } else if (seen.type == ValueType::kBool) {
    number.integer = seen.stored[0] != 0 ? 1 : 0;
  } else {
    CELLAR_ASSERT(IsFloatType(seen.type));
    number.is_integer = false;
    number.floating = DecodeValue(seen.type, seen.stored).floating;
  }
  return number;
}

bool ReadNumber(ValueType type, std::string_view stored, bool text_counts, Number* number) {
  if (ClassOf(type) == ValueClass::kNumber) {
    *number = NumberOf(type, stored);
    return true;
  }
  if (!IsTextType(type) || !text_counts) return false;
  int128_t integer = 0;
  if (ParseInt128(stored, &integer) == NumberError::kNone && integer >= INT64_MIN &&
      integer <= static_cast<int128_t>(UINT64_MAX)) {
    *number = {.is_integer = true, .integer = integer};
    return true;
  }
  number->is_integer = false;
  return ParseDouble(stored, &number->floating) == NumberError::kNone &&
         std::isfinite(number->floating);
}

int CompareForSort(ValueType a_type, std::string_view a, ValueType b_type, std::string_view b) {
  const ValueClass a_class = ClassOf(a_type);
  const ValueClass b_class = ClassOf(b_type);
  if (a_class != b_class) return ThreeWay(a_class, b_class);
  if (a_class != ValueClass::kNumber) return ThreeWay(a.compare(b), 0);
  const int order = CompareNumbers(NumberOf(a_type, a), NumberOf(b_type, b));
  return order != 0 ? order : ThreeWay(KindOf(a_type), KindOf(b_type));
}

int CompareValues(ValueType a_type, std::string_view a, ValueType b_type, std::string_view b) {
  if (a_type == b_type && IsIntegerType(a_type)) [[likely]]
    return ThreeWay(LoadInteger(a_type, a), LoadInteger(b_type, b));
  const int order = CompareForSort(a_type, a, b_type, b);
  if (order != 0) return order;
  if (IsFloatType(a_type) && IsFloatType(b_type)) {
    const bool a_minus = std::signbit(DecodeValue(a_type, a).floating);
    const bool b_minus = std::signbit(DecodeValue(b_type, b).floating);
    if (a_minus != b_minus) return a_minus ? -1 : 1;
  }
  return ThreeWay(a_type, b_type);
}

void AppendEscaped(std::string_view text, std::string* to) {
  for (const char c : text) {
    to->push_back(c);
    if (c == 0) to->push_back('\xff');
  }
  to->append("\0\x01", 2);
}

std::string TakeEscaped(std::string_view* from) {
  std::string text;
  for (size_t i = 0;; ++i) {
    CELLAR_ASSERT(i + 1 < from->size());
    const char c = (*from)[i];
    if (c == 0 && (*from)[++i] == '\x01') {
      from->remove_prefix(i + 1);
      return text;
    }
    text.push_back(c);
  }
}

void AppendNullKey(std::string* to) { to->push_back(static_cast<char>(ValueClass::kNull)); }

void AppendNumberKey(const Number& number, bool is_bool, std::string* to) {
  double floor = number.floating;
  uint64_t rest = 0;
  NumberKind kind = kKindFloat;
  if (number.is_integer) {
    kind = is_bool ? kKindBool : kKindInteger;
    floor = FloorToDouble(number.integer);
    rest = static_cast<uint64_t>(number.integer - static_cast<int128_t>(floor));
    CELLAR_ASSERT(rest <= UINT16_MAX);
  }
  if (floor == 0) floor = 0;  // of -0 too
  auto bits = std::bit_cast<uint64_t>(floor);
  bits = (bits & kSignBit) != 0 ? ~bits : bits | kSignBit;
  char bytes[12] = {static_cast<char>(ValueClass::kNumber)};
  StoreLittleEndian(bytes + 1, __builtin_bswap64(bits));
  bytes[9] = static_cast<char>(rest >> 8);
  bytes[10] = static_cast<char>(rest);
  bytes[11] = kind;
  to->append(bytes, sizeof(bytes));
}

void AppendValueKey(ValueType type, std::string_view stored, std::string* to) {
  switch (ClassOf(type)) {
    case ValueClass::kNumber:
      return AppendNumberKey(NumberOf(type, stored), type == ValueType::kBool, to);
    case ValueClass::kUuid:
      to->push_back(static_cast<char>(ValueClass::kUuid));
      to->append(stored);
      return;
    default:
      to->push_back(static_cast<char>(ValueClass::kText));
      return AppendEscaped(stored, to);
  }
}

// Reads what AppendNumberKey and AppendValueKey have written: of a number the double below it, with
// the sign bit turned (all bits if it is negative) so that bytes sort as numbers do, then by how
// much an integer is above that, then its kind.
KeyedValue TakeValueKey(std::string_view* from) {
  KeyedValue value;
  CELLAR_ASSERT(!from->empty());
  value.value_class = static_cast<ValueClass>((*from)[0]);
  from->remove_prefix(1);
  switch (value.value_class) {
    case ValueClass::kNull:
      break;
    case ValueClass::kNumber: {
      CELLAR_ASSERT(from->size() >= 11);
      uint64_t bits = __builtin_bswap64(LoadLittleEndian<uint64_t>(from->data()));
      bits = (bits & kSignBit) != 0 ? bits & ~kSignBit : ~bits;
      const auto floor = std::bit_cast<double>(bits);
      const uint32_t rest = static_cast<uint32_t>(static_cast<uint8_t>((*from)[8])) << 8 |
                            static_cast<uint8_t>((*from)[9]);
      const auto kind = static_cast<NumberKind>((*from)[10]);
      value.is_bool = kind == kKindBool;
      value.number.is_integer = kind != kKindFloat;
      if (value.number.is_integer)
        value.number.integer = static_cast<int128_t>(floor) + rest;
      else
        value.number.floating = floor;
      from->remove_prefix(11);
      break;
    }
    case ValueClass::kUuid:
      value.bytes = from->substr(0, kUuidBytes);
      from->remove_prefix(kUuidBytes);
      break;
    case ValueClass::kText:
      value.bytes = TakeEscaped(from);
      break;
  }
  return value;
}

size_t ValueKeyBytes(std::string_view at_front) {
  std::string_view rest = at_front;
  (void)TakeValueKey(&rest);
  return at_front.size() - rest.size();
}

}  // namespace cellar
