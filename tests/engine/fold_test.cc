// Folds of numbers, buckets, and what the schema says of them in bytes.
#include "engine/keys/fold.h"

#include <catch2/catch.hpp>
#include <string>

#include "engine/schema/schema.h"

namespace cellar::fold_test {
namespace {

std::string Stored(ValueType type, std::string_view text) {
  std::string stored;
  REQUIRE(ParseValue(type, text, &stored).ok());
  return stored;
}

bool Replaces(FoldKind kind, ValueType type, std::string_view stored, std::string_view input) {
  return FoldReplaces(kind, type, Stored(type, stored), Stored(type, input));
}

FamilySchema Family(std::string name, uint32_t id, FoldKind fold, std::optional<ValueType> type,
                    int64_t bucket_ms) {
  FamilySchema family;
  family.name = std::move(name);
  family.id = id;
  family.fold = fold;
  family.type = type;
  family.bucket_ms = bucket_ms;
  return family;
}

}  // namespace

TEST_CASE("Minima and maxima compare numbers by value, and -0 below 0", "[fold]") {
  CHECK(Replaces(FoldKind::kMin, ValueType::kI64, "10", "9"));
  CHECK_FALSE(Replaces(FoldKind::kMin, ValueType::kI64, "9", "10"));
  CHECK_FALSE(Replaces(FoldKind::kMin, ValueType::kI64, "9", "9"));
  CHECK(Replaces(FoldKind::kMax, ValueType::kU64, "9223372036854775808", "18446744073709551615"));
  CHECK(Replaces(FoldKind::kMin, ValueType::kF64, "0", "-0"));
  CHECK_FALSE(Replaces(FoldKind::kMin, ValueType::kF64, "-0", "0"));
  CHECK(Replaces(FoldKind::kMax, ValueType::kF32, "-0", "0"));
  CHECK(Replaces(FoldKind::kMax, ValueType::kF32, "3e38", "inf"));
  CHECK(Replaces(FoldKind::kMin, ValueType::kBytes, "ab", "a"));
  CHECK(Replaces(FoldKind::kMax, ValueType::kBytes, "a", "ab"));
}

TEST_CASE("A bucket begins at a multiple of its length", "[fold]") {
  constexpr int64_t kHourMs{3'600'000};
  constexpr int64_t kHour{kHourMs * 1'000};
  CHECK(BucketBegin(0, kHourMs) == 0);
  CHECK(BucketBegin(kHour - 1, kHourMs) == 0);
  CHECK(BucketBegin(kHour, kHourMs) == kHour);
  CHECK(BucketBegin(kHour + 1, kHourMs) == kHour);
  CHECK(BucketBegin(INT64_MAX, kHourMs) == INT64_MAX / kHour * kHour);
  CHECK(BucketBegin(INT64_MAX, kDurationMsMax) == kDurationMsMax * kMicrosPerMs);
  CHECK(BucketBegin(12345, 0) == 12345);
}

TEST_CASE("An aggregate takes the types that it can fold", "[fold]") {
  for (uint8_t number = 0; number < kNamedTypeCount; ++number) {
    const auto type = static_cast<ValueType>(number);
    CHECK(FoldTakesType(FoldKind::kSum, type) == IsNumericType(type));
    CHECK(FoldTakesType(FoldKind::kMin, type) == (type != ValueType::kBool));
    CHECK_FALSE(FoldTakesType(FoldKind::kHll, type));
    CHECK(FoldTakesType(FoldKind::kNone, type));
  }
  CHECK(FoldTakesType(FoldKind::kHll, std::nullopt));
  CHECK_FALSE(FoldTakesType(FoldKind::kSum, std::nullopt));
  CHECK(*ParseFoldKind("HLL") == FoldKind::kHll);
  CHECK_FALSE(ParseFoldKind("none").ok());
}

TEST_CASE("A schema keeps AGGREGATE and BUCKET, and one without them is as it was", "[fold]") {
  TableSchema schema;
  schema.groups.push_back({"default", 1});
  schema.families = {Family("a", 1, FoldKind::kSum, ValueType::kF64, 0),
                     Family("b", 2, FoldKind::kHll, std::nullopt, kDurationMsMax),
                     Family("c", 3, FoldKind::kNone, ValueType::kBytes, 1)};
  schema.family_id_next = 4;
  CHECK_FALSE(IsPlainSchema(schema));
  std::string bytes;
  EncodeTableSchema(schema, &bytes);
  TableSchema read;
  std::string_view rest = bytes;
  REQUIRE(DecodeTableSchema(&rest, &read).ok());
  for (size_t i = 0; i < schema.families.size(); ++i) {
    CHECK(read.families[i].fold == schema.families[i].fold);
    CHECK(read.families[i].type == schema.families[i].type);
    CHECK(read.families[i].bucket_ms == schema.families[i].bucket_ms);
  }
  // Cut short or changed in any byte, it is refused or is another schema, and nothing else.
  for (size_t size = 0; size < bytes.size(); ++size) {
    std::string_view cut = std::string_view(bytes).substr(0, size);
    (void)DecodeTableSchema(&cut, &read);
  }
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    std::string_view view = changed;
    (void)DecodeTableSchema(&view, &read);
  }
  schema.families = {Family("c", 3, FoldKind::kNone, ValueType::kBytes, 0)};
  CHECK(IsPlainSchema(schema));
}

}  // namespace cellar::fold_test
