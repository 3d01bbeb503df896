// The order of values in groups and sums, and the keys that sort as they do.
#include "engine/aggregate/aggregate_value.h"

#include <catch2/catch.hpp>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"

namespace aggregate_value_test {

using namespace cellar;

struct Value {
  ValueType type;
  std::string stored;
};

Value Of(ValueType type, std::string_view text) {
  Value value{type, {}};
  REQUIRE(ParseValue(type, text, &value.stored).ok());
  return value;
}

std::string Key(const Value& value) {
  std::string key;
  AppendValueKey(value.type, value.stored, &key);
  return key;
}

int Sign(int order) { return order < 0 ? -1 : order > 0 ? 1 : 0; }

// Ascending; those in one line are equal.
std::vector<std::vector<Value>> InOrder() {
  return {
      {Of(ValueType::kF64, "-inf")},
      {Of(ValueType::kI64, "-9223372036854775808")},
      {Of(ValueType::kF64, "-1.5"), Of(ValueType::kF32, "-1.5")},
      {Of(ValueType::kBool, "false")},
      {Of(ValueType::kI64, "0"), Of(ValueType::kU8, "0")},
      {Of(ValueType::kF64, "0"), Of(ValueType::kF64, "-0")},
      {Of(ValueType::kF64, "0.5")},
      {Of(ValueType::kBool, "true")},
      {Of(ValueType::kI8, "1"), Of(ValueType::kU64, "1")},
      {Of(ValueType::kF32, "1")},
      {Of(ValueType::kI64, "9007199254740992")},
      {Of(ValueType::kF64, "9007199254740992")},
      {Of(ValueType::kI64, "9007199254740993")},
      {Of(ValueType::kI64, "9223372036854775807"), Of(ValueType::kU64, "9223372036854775807")},
      {Of(ValueType::kF64, "9223372036854775808")},
      {Of(ValueType::kU64, "18446744073709551615")},
      {Of(ValueType::kF64, "inf")},
      {Of(ValueType::kUuid, "00000000-0000-0000-0000-000000000001")},
      {Of(ValueType::kUuid, "ff000000-0000-0000-0000-000000000000")},
      {Of(ValueType::kBytes, ""), Of(ValueType::kString, "")},
      {Of(ValueType::kBytes, std::string_view("\0", 1))},
      {Of(ValueType::kBytes, std::string_view("\0a", 2))},
      {Of(ValueType::kBytes, "10"), Of(ValueType::kString, "10")},
      {Of(ValueType::kBytes, "9")},
  };
}

TEST_CASE("Values of all types have one order, and their keys sort as they do", "[aggregate]") {
  const auto order = InOrder();
  std::string null;
  AppendNullKey(&null);
  for (size_t i = 0; i < order.size(); ++i) {
    for (size_t j = 0; j < order.size(); ++j) {
      for (const Value& a : order[i]) {
        for (const Value& b : order[j]) {
          INFO(ValueTypeName(a.type)
               << " " << ValueText(a.type, a.stored) << " and " << ValueTypeName(b.type) << " "
               << ValueText(b.type, b.stored));
          const int wanted = i < j ? -1 : i > j ? 1 : 0;
          REQUIRE(Sign(CompareForSort(a.type, a.stored, b.type, b.stored)) == wanted);
          REQUIRE(Sign(Key(a).compare(Key(b))) == wanted);
        }
      }
    }
    for (const Value& value : order[i]) REQUIRE(null < Key(value));
  }
}

TEST_CASE("MIN and MAX know a zero with a sign", "[aggregate]") {
  const Value minus = Of(ValueType::kF64, "-0");
  const Value zero = Of(ValueType::kF64, "0");
  REQUIRE(CompareValues(minus.type, minus.stored, zero.type, zero.stored) < 0);
  REQUIRE(CompareValues(zero.type, zero.stored, minus.type, minus.stored) > 0);
  REQUIRE(CompareForSort(minus.type, minus.stored, zero.type, zero.stored) == 0);
}

TEST_CASE("Keys end by themselves, and give back what they were made of", "[aggregate]") {
  for (const auto& equal : InOrder()) {
    const Value& value = equal[0];
    std::string keys = Key(value);
    REQUIRE(ValueKeyBytes(keys) == keys.size());
    keys += Key(value) + "rest";
    std::string_view at = keys;
    for (int i = 0; i < 2; ++i) {
      const KeyedValue taken = TakeValueKey(&at);
      REQUIRE(taken.value_class == ClassOf(value.type));
      if (taken.value_class != ValueClass::kNumber) REQUIRE(taken.bytes == value.stored);
      if (taken.value_class == ValueClass::kNumber) {
        REQUIRE(CompareNumbers(taken.number, NumberOf(value.type, value.stored)) == 0);
        REQUIRE(taken.is_bool == (value.type == ValueType::kBool));
      }
    }
    REQUIRE(at == "rest");
  }
}

TEST_CASE("Text is a number where it counts as one", "[aggregate]") {
  Number number;
  REQUIRE(ReadNumber(ValueType::kBytes, "12", true, &number));
  REQUIRE(number.is_integer);
  REQUIRE(number.integer == 12);
  REQUIRE(ReadNumber(ValueType::kString, "1.5", true, &number));
  REQUIRE(number.floating == 1.5);
  REQUIRE_FALSE(ReadNumber(ValueType::kBytes, "12", false, &number));
  REQUIRE_FALSE(ReadNumber(ValueType::kBytes, "12x", true, &number));
  REQUIRE_FALSE(ReadNumber(ValueType::kBytes, "", true, &number));
  REQUIRE_FALSE(ReadNumber(ValueType::kBytes, "nan", true, &number));
  // Beyond 64 bits it is a double.
  REQUIRE(ReadNumber(ValueType::kBytes, "36893488147419103232", true, &number));
  REQUIRE_FALSE(number.is_integer);
}

TEST_CASE("Escaped texts come back, and sort bytewise", "[aggregate]") {
  Random random(7);
  for (int i = 0; i < 2'000; ++i) {
    std::string a;
    std::string b;
    for (uint64_t n = random.Below(6); n > 0; --n) a.push_back("\0\x01\xffz"[random.Below(4)]);
    for (uint64_t n = random.Below(6); n > 0; --n) b.push_back("\0\x01\xffz"[random.Below(4)]);
    std::string a_key;
    std::string b_key;
    AppendEscaped(a, &a_key);
    AppendEscaped(b, &b_key);
    REQUIRE(Sign(a_key.compare(b_key)) == Sign(a.compare(b)));
    a_key += b_key;
    std::string_view at = a_key;
    REQUIRE(TakeEscaped(&at) == a);
    REQUIRE(TakeEscaped(&at) == b);
    REQUIRE(at.empty());
  }
}

}  // namespace aggregate_value_test
