// Values: every type's texts, stored sizes, comparisons and increments.
#include "engine/keys/value.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "base/coding.h"
#include "base/random.h"

namespace value_test {

using namespace cellar;

std::string Stored(ValueType type, std::string_view text) {
  std::string stored;
  const Status status = ParseValue(type, text, &stored);
  INFO(status.ToString());
  REQUIRE(status.ok());
  REQUIRE(StoredValueIsValid(type, stored));
  return stored;
}

bool Refused(ValueType type, std::string_view text) {
  std::string stored = "untouched";
  const Status status = ParseValue(type, text, &stored);
  return !status.ok() && status.code() == ErrorCode::kBadValue && stored == "untouched";
}

TEST_CASE("Type names go both ways, in any case, and byte is u8", "[value]") {
  for (uint8_t i = 0; i < kNamedTypeCount; ++i) {
    const auto type = static_cast<ValueType>(i);
    REQUIRE(*ParseValueType(ValueTypeName(type)) == type);
  }
  REQUIRE(*ParseValueType("BYTE") == ValueType::kU8);
  REQUIRE(*ParseValueType("U64") == ValueType::kU64);
  for (const char* name : {"", "i128", "int", "bytes ", "f16"}) {
    const Result<ValueType> type = ParseValueType(name);
    REQUIRE_FALSE(type.ok());
    REQUIRE(type.status().ToString().ends_with(" u64 f32 f64 uuid"));
  }
}

TEST_CASE("Integers are stored in as few bytes as they need", "[value]") {
  REQUIRE(Stored(ValueType::kI64, "0").empty());
  REQUIRE(Stored(ValueType::kI64, "42").size() == 1);
  REQUIRE(Stored(ValueType::kI64, "-1").size() == 1);
  REQUIRE(Stored(ValueType::kI64, "127").size() == 1);
  REQUIRE(Stored(ValueType::kI64, "128").size() == 2);
  REQUIRE(Stored(ValueType::kI64, "-128").size() == 1);
  REQUIRE(Stored(ValueType::kI64, "-129").size() == 2);
  REQUIRE(Stored(ValueType::kU64, "255").size() == 1);
  REQUIRE(Stored(ValueType::kU64, "256").size() == 2);
  REQUIRE(Stored(ValueType::kU64, "18446744073709551615").size() == 8);
  REQUIRE(Stored(ValueType::kI64, "-9223372036854775808").size() == 8);
}

TEST_CASE("Every integer type takes its range and refuses what is one beyond", "[value]") {
  struct Case {
    ValueType type;
    const char* min;
    const char* max;
    const char* below;
    const char* above;
  };
  for (const Case& c :
       {Case{ValueType::kU8, "0", "255", "-1", "256"},
        Case{ValueType::kI8, "-128", "127", "-129", "128"},
        Case{ValueType::kU16, "0", "65535", "-1", "65536"},
        Case{ValueType::kI16, "-32768", "32767", "-32769", "32768"},
        Case{ValueType::kU32, "0", "4294967295", "-1", "4294967296"},
        Case{ValueType::kI32, "-2147483648", "2147483647", "-2147483649", "2147483648"},
        Case{ValueType::kU64, "0", "18446744073709551615", "-1", "18446744073709551616"},
        Case{ValueType::kI64, "-9223372036854775808", "9223372036854775807", "-9223372036854775809",
             "9223372036854775808"}}) {
    REQUIRE(ValueText(c.type, Stored(c.type, c.min)) == c.min);
    REQUIRE(ValueText(c.type, Stored(c.type, c.max)) == c.max);
    REQUIRE(Refused(c.type, c.below));
    REQUIRE(Refused(c.type, c.above));
    for (const char* text : {"", "x", "1.0", "+1", " 1", "0x1"}) REQUIRE(Refused(c.type, text));
  }
}

TEST_CASE("Bool, UUID, string and float texts are checked", "[value]") {
  REQUIRE(ValueText(ValueType::kBool, Stored(ValueType::kBool, "1")) == "true");
  REQUIRE(ValueText(ValueType::kBool, Stored(ValueType::kBool, "false")) == "false");
  for (const char* text : {"", "yes", "2", "TRUE", "t"}) REQUIRE(Refused(ValueType::kBool, text));
  const std::string uuid = Stored(ValueType::kUuid, "6BA7B810-9dad-11d1-80b4-00C04FD430C8");
  REQUIRE(uuid.size() == 16);
  REQUIRE(ValueText(ValueType::kUuid, uuid) == "6ba7b810-9dad-11d1-80b4-00c04fd430c8");
  for (const char* text :
       {"", "6ba7b8109dad11d180b400c04fd430c8", "6ba7b810-9dad-11d1-80b4-00c04fd430c",
        "6ba7b810-9dad-11d1-80b4-00c04fd430cg", "6ba7b810x9dad-11d1-80b4-00c04fd430c8"}) {
    REQUIRE(Refused(ValueType::kUuid, text));
  }
  REQUIRE(Refused(ValueType::kString, "\xff"));
  REQUIRE(Stored(ValueType::kString, "n\xc3\xa4h") == "n\xc3\xa4h");
  REQUIRE(Stored(ValueType::kBytes, std::string_view("\0\xff", 2)).size() == 2);
  REQUIRE(Refused(ValueType::kF64, "nan"));
  REQUIRE(Refused(ValueType::kF64, "1e999"));
  REQUIRE(Refused(ValueType::kF32, "1e39"));
  REQUIRE(ValueText(ValueType::kF64, Stored(ValueType::kF64, "-0")) == "-0");
  REQUIRE(ValueText(ValueType::kF64, Stored(ValueType::kF64, "-inf")) == "-inf");
  REQUIRE(ValueText(ValueType::kF32, Stored(ValueType::kF32, "0.1")) == "0.1");
  Status status = ParseValue(ValueType::kU8, "300", nullptr);
  REQUIRE(status.ToString() == "BADVALUE '300' is out of range for type u8");
  status = ParseValue(ValueType::kI64, "a\n", nullptr);
  REQUIRE(status.ToString() == "BADVALUE 'a\\x0a' is not a value of type i64");
}

TEST_CASE("Stored bytes that no text gives are invalid", "[value]") {
  REQUIRE_FALSE(StoredValueIsValid(ValueType::kI64, std::string(9, '\1')));
  REQUIRE_FALSE(StoredValueIsValid(ValueType::kI64, std::string("\x01\x00", 2)));  // 1 in two bytes
  REQUIRE_FALSE(StoredValueIsValid(ValueType::kU8, "ab"));
  REQUIRE_FALSE(StoredValueIsValid(ValueType::kBool, "\x02"));
  REQUIRE_FALSE(StoredValueIsValid(ValueType::kBool, ""));
  REQUIRE_FALSE(StoredValueIsValid(ValueType::kUuid, "short"));
  REQUIRE_FALSE(StoredValueIsValid(ValueType::kF64, std::string(8, '\xff')));  // a NaN
  REQUIRE_FALSE(StoredValueIsValid(ValueType::kString, "\xff"));
  REQUIRE_FALSE(StoredValueIsValid(static_cast<ValueType>(14), ""));
}

TEST_CASE("Random integers keep their value and order through the stored form", "[value]") {
  const uint64_t seed = 31337;
  INFO("seed " << seed);
  Random random(seed);
  for (const ValueType type :
       {ValueType::kU8, ValueType::kI8, ValueType::kI16, ValueType::kI32, ValueType::kI64,
        ValueType::kU16, ValueType::kU32, ValueType::kU64}) {
    const auto pick = [&] {
      const int128_t span = IntegerTypeMax(type) - IntegerTypeMin(type);
      const auto raw = static_cast<int128_t>(random.Next() >> random.Below(64));
      return raw > span ? IntegerTypeMax(type) : IntegerTypeMin(type) + raw;
    };
    for (int i = 0; i < 500; ++i) {
      const int128_t a = pick();
      const int128_t b = pick();
      ValueBuffer buffer_a;
      ValueBuffer buffer_b;
      const std::string_view stored_a = StoreInteger(type, a, &buffer_a);
      const std::string_view stored_b = StoreInteger(type, b, &buffer_b);
      REQUIRE((LoadInteger(type, stored_a) == a));
      REQUIRE(StoredValueIsValid(type, stored_a));
      REQUIRE((stored_a == stored_b) == (a == b));
      const int order = CompareStored(type, stored_a, stored_b);
      REQUIRE((order < 0) == (a < b));
      REQUIRE((order > 0) == (a > b));
    }
  }
}

bool Holds(CompareOp op, ValueType type, std::string_view text, std::string_view literal) {
  return ComparedLiteral(literal).Holds(op, type, Stored(type, text));
}

TEST_CASE("Integer cells compare with any number exactly", "[value]") {
  REQUIRE(Holds(CompareOp::kGt, ValueType::kI64, "5", "4.5"));
  REQUIRE_FALSE(Holds(CompareOp::kGt, ValueType::kI64, "4", "4.5"));
  REQUIRE(Holds(CompareOp::kLt, ValueType::kU8, "255", "300"));
  REQUIRE(Holds(CompareOp::kGt, ValueType::kU8, "0", "-1"));
  REQUIRE(Holds(CompareOp::kEq, ValueType::kI64, "4", "4.0"));
  REQUIRE(Holds(CompareOp::kEq, ValueType::kI64, "40", "4e1"));
  REQUIRE(Holds(CompareOp::kLt, ValueType::kI64, "9007199254740992", "9007199254740993"));
  REQUIRE(Holds(CompareOp::kLt, ValueType::kI64, "9007199254740992", "9007199254740992.5"));
  REQUIRE(Holds(CompareOp::kLt, ValueType::kU64, "18446744073709551615", "inf"));
  REQUIRE(Holds(CompareOp::kGt, ValueType::kI64, "-9223372036854775808", "-inf"));
  REQUIRE(Holds(CompareOp::kLt, ValueType::kU64, "18446744073709551615", "1e400"));
  REQUIRE(Holds(CompareOp::kNe, ValueType::kI64, "4", "4.5"));
  REQUIRE(Holds(CompareOp::kLe, ValueType::kI64, "-5", "-4.5"));
  REQUIRE_FALSE(Holds(CompareOp::kLe, ValueType::kI64, "-4", "-4.5"));
}

TEST_CASE("A literal that has been held against one type is read anew for another", "[value]") {
  const ComparedLiteral literal("3e40");  // beyond f32, and no bool
  for (int turn = 0; turn < 2; ++turn) {
    CHECK(literal.Holds(CompareOp::kLt, ValueType::kI64, Stored(ValueType::kI64, "7")));
    CHECK(literal.Holds(CompareOp::kGt, ValueType::kF64, Stored(ValueType::kF64, "4e40")));
    CHECK(literal.Holds(CompareOp::kLt, ValueType::kF32, Stored(ValueType::kF32, "3e38")));
    CHECK(literal.Holds(CompareOp::kEq, ValueType::kString, "3e40"));
    CHECK_FALSE(literal.Holds(CompareOp::kLt, ValueType::kBool, Stored(ValueType::kBool, "true")));
    CHECK(literal.Holds(CompareOp::kNe, ValueType::kBool, Stored(ValueType::kBool, "true")));
    CHECK(literal.Holds(CompareOp::kLt, ValueType::kU8, Stored(ValueType::kU8, "255")));
  }
}

TEST_CASE("A literal that cannot be read as the cell's type satisfies only NE", "[value]") {
  struct Case {
    ValueType type;
    const char* text;
    const char* literal;
  };
  for (const Case& c : {Case{ValueType::kI64, "1", "one"}, Case{ValueType::kU8, "1", ""},
                        Case{ValueType::kF64, "1", "nan"}, Case{ValueType::kBool, "true", "yes"},
                        Case{ValueType::kUuid, "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "6ba7"}}) {
    INFO(c.literal);
    REQUIRE(Holds(CompareOp::kNe, c.type, c.text, c.literal));
    for (const CompareOp op :
         {CompareOp::kEq, CompareOp::kLt, CompareOp::kLe, CompareOp::kGt, CompareOp::kGe}) {
      REQUIRE_FALSE(Holds(op, c.type, c.text, c.literal));
    }
  }
}

TEST_CASE("A number beyond the cell's type compares as the number that it is", "[value]") {
  REQUIRE(Holds(CompareOp::kLt, ValueType::kF32, "3.4028234e38", "1e39"));
  REQUIRE_FALSE(Holds(CompareOp::kEq, ValueType::kF32, "inf", "1e39"));
  REQUIRE(Holds(CompareOp::kGt, ValueType::kF32, "inf", "1e39"));
  REQUIRE(Holds(CompareOp::kGt, ValueType::kF64, "-1.5e308", "-1e309"));
  REQUIRE(Holds(CompareOp::kLt, ValueType::kF64, "-inf", "-1e309"));
}

TEST_CASE("Other cells compare as what they are", "[value]") {
  REQUIRE(Holds(CompareOp::kEq, ValueType::kF32, "0.1", "0.1"));
  REQUIRE(Holds(CompareOp::kEq, ValueType::kF64, "0", "-0"));
  REQUIRE(Holds(CompareOp::kLt, ValueType::kF64, "1e300", "inf"));
  REQUIRE(Holds(CompareOp::kLt, ValueType::kBytes, "10", "9"));
  REQUIRE(Holds(CompareOp::kGt, ValueType::kBytes, "\x80", "z"));
  REQUIRE(Holds(CompareOp::kGt, ValueType::kBool, "true", "0"));
  REQUIRE(Holds(CompareOp::kEq, ValueType::kUuid, "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
                "6BA7B810-9DAD-11D1-80B4-00C04FD430C8"));
}

std::string Sum(ValueType type, std::string_view stored, std::string_view delta,
                TextCells text_cells = TextCells::kCount) {
  StoredValue sum;
  int128_t number = 0;
  Status status = ParseIntegerDelta(delta, &number);
  if (status.ok()) status = AddInteger(type, stored, number, text_cells, &sum);
  if (!status.ok()) return std::string(ErrorCodeWord(status.code()));
  return std::string(ValueTypeName(sum.type)) + " " + ValueText(sum.type, sum.stored);
}

std::string FloatSum(ValueType type, std::string_view stored, std::string_view delta,
                     TextCells text_cells = TextCells::kCount) {
  StoredValue sum;
  double number = 0;
  Status status = ParseFloatDelta(delta, &number);
  if (status.ok()) status = AddFloat(type, stored, number, text_cells, &sum);
  if (!status.ok()) return std::string(ErrorCodeWord(status.code()));
  return std::string(ValueTypeName(sum.type)) + " " + ValueText(sum.type, sum.stored);
}

TEST_CASE("Integer increments keep the type and refuse overflow", "[value]") {
  REQUIRE(Sum(ValueType::kU8, Stored(ValueType::kU8, "250"), "5") == "u8 255");
  REQUIRE(Sum(ValueType::kU8, Stored(ValueType::kU8, "250"), "6") == "ERR");
  REQUIRE(Sum(ValueType::kU8, Stored(ValueType::kU8, "0"), "-1") == "ERR");
  REQUIRE(Sum(ValueType::kU64, "", "18446744073709551615") == "u64 18446744073709551615");
  REQUIRE(Sum(ValueType::kI64, Stored(ValueType::kI64, "-9223372036854775808"),
              "18446744073709551615") == "i64 9223372036854775807");
  REQUIRE(Sum(ValueType::kI64, "", "18446744073709551616") == "ERR");
  REQUIRE(Sum(ValueType::kI64, "", "1.5") == "ERR");
  REQUIRE(Sum(ValueType::kBytes, "41", "1") == "i64 42");
  REQUIRE(Sum(ValueType::kString, "-1", "1") == "i64 0");
  REQUIRE(Sum(ValueType::kBytes, "41", "1", TextCells::kRefuse) == "WRONGTYPE");
  REQUIRE(Sum(ValueType::kBytes, "4.5", "1") == "WRONGTYPE");
  REQUIRE(Sum(ValueType::kBytes, "", "1") == "WRONGTYPE");
  REQUIRE(Sum(ValueType::kBytes, "9223372036854775808", "-1") == "i64 9223372036854775807");
  REQUIRE(Sum(ValueType::kBytes, "9223372036854775807", "1") == "ERR");
  REQUIRE(Sum(ValueType::kF64, Stored(ValueType::kF64, "1"), "1") == "WRONGTYPE");
  REQUIRE(Sum(ValueType::kBool, "\1", "1") == "WRONGTYPE");
}

TEST_CASE("Float increments stay finite", "[value]") {
  REQUIRE(FloatSum(ValueType::kF64, Stored(ValueType::kF64, "1.5"), "1e2") == "f64 101.5");
  REQUIRE(FloatSum(ValueType::kF32, Stored(ValueType::kF32, "0.1"), "0.2") == "f32 0.3");
  REQUIRE(FloatSum(ValueType::kF32, Stored(ValueType::kF32, "3e38"), "3e38") == "ERR");
  REQUIRE(FloatSum(ValueType::kF64, Stored(ValueType::kF64, "1e308"), "1e308") == "ERR");
  REQUIRE(FloatSum(ValueType::kF64, Stored(ValueType::kF64, "inf"), "1") == "ERR");
  REQUIRE(FloatSum(ValueType::kF64, Stored(ValueType::kF64, "1"), "inf") == "ERR");
  REQUIRE(FloatSum(ValueType::kBytes, "10", "0.5") == "f64 10.5");
  REQUIRE(FloatSum(ValueType::kBytes, "ten", "0.5") == "WRONGTYPE");
  REQUIRE(FloatSum(ValueType::kBytes, "10", "0.5", TextCells::kRefuse) == "WRONGTYPE");
  REQUIRE(FloatSum(ValueType::kI64, "", "0.5") == "WRONGTYPE");
}

TEST_CASE("A text is an integer, another number, or none", "[value]") {
  REQUIRE(ClassifyNumber("12") == TextNumber::kInteger);
  REQUIRE(ClassifyNumber("-99999999999999999999999") == TextNumber::kInteger);
  REQUIRE(ClassifyNumber("1.0") == TextNumber::kFloat);
  REQUIRE(ClassifyNumber("inf") == TextNumber::kFloat);
  REQUIRE(ClassifyNumber("x") == TextNumber::kNone);
}

}  // namespace value_test
