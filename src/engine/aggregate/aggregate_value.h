// Values as CAGG compares them: cells of all types in one order, in which equal ones are one value.
//
//   null < numbers < uuid < text           numbers by their exact value, then bool < integer < float:
//                                          5 and 5.0 are two values, i64 5 and u8 5 one
//                                          bytes and string are one class, text that is a number
//                                          stays text; -0 is 0, but for MIN and MAX less than it
//
// AppendValueKey makes of a value a byte string that sorts in this order and ends by itself:
//
//   null    | 00 |
//   number  | 01 | the largest double that is not above it: 8 bytes | the rest u16 | kind u8 |
//   uuid    | 02 | 16 bytes |
//   text    | 03 | content with 00 -> 00 ff | 00 01 |
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/text/number.h"
#include "engine/keys/value.h"

namespace cellar {

// A number, an integer or a double.
struct Number {
  bool is_integer{true};
  int128_t integer{0};
  double floating{0};  // unless is_integer; not a NaN
};
// By exact value: negative, zero, positive. -0 equals 0.
int CompareNumbers(const Number& a, const Number& b);
double ToDouble(const Number& number);

enum class ValueClass : uint8_t { kNull, kNumber, kUuid, kText };
constexpr ValueClass ClassOf(ValueType type) {
  if (IsTextType(type)) return ValueClass::kText;
  return type == ValueType::kUuid ? ValueClass::kUuid : ValueClass::kNumber;
}

// The number of a cell that is one by its type: numeric, bool, or an hll's estimate.
// REQUIRES: ClassOf(type) == kNumber.
Number NumberOf(ValueType type, std::string_view stored);
// The number of any cell, also of text that is a finite one if `text_counts`. False if it is none.
[[nodiscard]] bool ReadNumber(ValueType type, std::string_view stored, bool text_counts,
                              Number* number);

// Two values, in the order above.
int CompareForSort(ValueType a_type, std::string_view a, ValueType b_type, std::string_view b);
// Two values as MIN and MAX order them: also -0 before 0, and equal ones by their type.
int CompareValues(ValueType a_type, std::string_view a, ValueType b_type, std::string_view b);

// See above. REQUIRES: integers within +-2^65.
void AppendNumberKey(const Number& number, bool is_bool, std::string* to);
void AppendNullKey(std::string* to);
void AppendValueKey(ValueType type, std::string_view stored, std::string* to);

// What stands behind a key. `number` of kNumber; `bytes` of uuid (16) and text.
struct KeyedValue {
  ValueClass value_class{ValueClass::kNull};
  Number number;
  bool is_bool{false};
  std::string bytes;
};
// Takes one from the front of *from. REQUIRES: it was made as above.
KeyedValue TakeValueKey(std::string_view* from);
// Its bytes.
size_t ValueKeyBytes(std::string_view at_front);

// Text with what would end it escaped, and its end.
void AppendEscaped(std::string_view text, std::string* to);
// Takes such a text from the front of *from.
std::string TakeEscaped(std::string_view* from);

}  // namespace cellar
