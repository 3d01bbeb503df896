// What the words of cell commands have in common: columns, bounds, timestamps, predicates.
#include "commands/arguments/cell_arguments.h"

#include <catch2/catch.hpp>
#include <limits>
#include <vector>

#include "engine/request/read_options.h"

namespace cell_arguments_test {

using namespace cellar;
using Words = std::vector<std::string_view>;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST_CASE("A column splits at its first colon", "[cell_arguments]") {
  std::string_view family;
  std::string_view qualifier;
  REQUIRE(ParseColumn("anchor:com.cnn:80", &family, &qualifier).ok());
  CHECK(family == "anchor");
  CHECK(qualifier == "com.cnn:80");
  REQUIRE(ParseColumn("f:", &family, &qualifier).ok());
  CHECK(family == "f");
  CHECK(qualifier.empty());
  CHECK(ParseColumn("f", &family, &qualifier).code() == ErrorCode::kErr);
}

TEST_CASE("A selector without a colon is a whole family", "[cell_arguments]") {
  CHECK(ParseSelector("f:q").kind == ColumnSelector::Kind::kColumn);
  CHECK(ParseSelector("f:q").first == "q");
  CHECK(ParseSelector("f:").kind == ColumnSelector::Kind::kColumn);
  CHECK(ParseSelector("f").kind == ColumnSelector::Kind::kFamily);
  CHECK(ParseSelector("f").family == "f");
}

TEST_CASE("A bound is one of four forms", "[cell_arguments]") {
  for (const char* good : {"[a", "(a", "-", "+", "[", "("}) CHECK(CheckBound(good).ok());
  for (const char* bad : {"", "a", "-a", "+a", "]a"}) CHECK_FALSE(CheckBound(bad).ok());
}

TEST_CASE("Time bounds become an inclusive range", "[cell_arguments]") {
  const auto range = [](std::string_view min, std::string_view max) {
    const Result<TimeRange> parsed = ParseTimeRange(min, max);
    REQUIRE(parsed.ok());
    return std::pair{parsed->min_micros, parsed->max_micros};
  };
  const auto empty = [](std::string_view min, std::string_view max) {
    const Result<TimeRange> parsed = ParseTimeRange(min, max);
    REQUIRE(parsed.ok());
    return parsed->min_micros > parsed->max_micros;
  };
  CHECK(range("10", "20") == std::pair<int64_t, int64_t>{10, 20});
  CHECK(range("(10", "(20") == std::pair<int64_t, int64_t>{11, 19});
  CHECK(range("-inf", "+inf") == std::pair<int64_t, int64_t>{0, kMax});
  CHECK(range("-INF", "inf") == std::pair<int64_t, int64_t>{0, kMax});
  CHECK(range("-5", "9223372036854775807") == std::pair<int64_t, int64_t>{0, kMax});
  CHECK(empty("20", "10"));
  CHECK(empty("(10", "(11"));
  CHECK(empty("(10", "10"));
  CHECK(empty("+inf", "-inf"));
  CHECK(empty("0", "(0"));
  CHECK(empty("0", "-1"));
  CHECK(empty("(9223372036854775807", "+inf"));
  CHECK_FALSE(ParseTimeRange("ten", "20").ok());
  CHECK_FALSE(ParseTimeRange("10", "").ok());
  CHECK_FALSE(ParseTimeRange("1.5", "20").ok());
  CHECK_FALSE(ParseTimeRange("9223372036854775808", "+inf").ok());
  // What is wrong is found even where the range is empty anyway.
  CHECK_FALSE(ParseTimeRange("+inf", "x").ok());
}

TEST_CASE("Counts say what they accept", "[cell_arguments]") {
  CHECK(*ParseCount("COUNT", "5", 1) == 5);
  CHECK(*ParseCount("SKIP", "0", 0) == 0);
  CHECK_FALSE(ParseCount("COUNT", "0", 1).ok());
  CHECK_FALSE(ParseCount("COUNT", "-1", 0).ok());
  CHECK_FALSE(ParseCount("COUNT", "x", 0).ok());
  CHECK_FALSE(ParseCount("COUNT", "", 0).ok());
  CHECK(*ParseCountOrAll("VERSIONS", "all") == kUnlimited);
  CHECK(*ParseCountOrAll("VERSIONS", "3") == 3);
  CHECK_FALSE(ParseCountOrAll("VERSIONS", "0").ok());
}

TEST_CASE("A timestamp is not negative, a lifetime not zero", "[cell_arguments]") {
  CHECK(*ParseTimestamp("0") == 0);
  CHECK(*ParseTimestamp("9223372036854775807") == kMax);
  CHECK_FALSE(ParseTimestamp("-1").ok());
  CHECK_FALSE(ParseTimestamp("9223372036854775808").ok());
  CHECK(*ParseTtlMicros("250ms") == 250'000);
  CHECK(*ParseTtlMicros("2") == 2'000'000);
  CHECK_FALSE(ParseTtlMicros("0").ok());
  CHECK_FALSE(ParseTtlMicros("soon").ok());
}

Result<Predicate> Parse(const Words& words) {
  ArgumentCursor at(words, 0);
  Result<Predicate> predicate = TakePredicate(&at);
  if (predicate.ok()) CHECK(at.done());
  return predicate;
}

TEST_CASE("Every form of a predicate is read, in any case", "[cell_arguments]") {
  using Kind = Predicate::Kind;
  CHECK(Parse({"f:a", "EXISTS"})->kind == Kind::kColumnExists);
  CHECK(Parse({"f:a", "missing"})->kind == Kind::kColumnMissing);
  CHECK(Parse({"ROW", "exists"})->kind == Kind::kRowExists);
  CHECK(Parse({"row", "MISSING"})->kind == Kind::kRowMissing);
  CHECK(Parse({"filter", "pass"})->kind == Kind::kFilter);
  CHECK(Parse({"filter", "pass"})->literal == "pass");
  CHECK(Parse({"f:a", "match", "x*"})->kind == Kind::kMatch);
  const Predicate compare = *Parse({"f:a", "ge", "5"});
  CHECK(compare.kind == Kind::kCompare);
  CHECK(compare.op == CompareOp::kGe);
  CHECK(compare.family == "f");
  CHECK(compare.qualifier == "a");
  CHECK(compare.literal == "5");
  CHECK(Parse({"f:a", "EQ", "1"})->op == CompareOp::kEq);
  CHECK(Parse({"f:a", "NE", "1"})->op == CompareOp::kNe);
  CHECK(Parse({"f:a", "LT", "1"})->op == CompareOp::kLt);
  CHECK(Parse({"f:a", "LE", "1"})->op == CompareOp::kLe);
  CHECK(Parse({"f:a", "GT", "1"})->op == CompareOp::kGt);
}

TEST_CASE("What is no predicate is a syntax error", "[cell_arguments]") {
  const std::vector<Words> wrong = {{},
                                    {"f:a"},
                                    {"f:a", "EQ"},
                                    {"f:a", "IS", "5"},
                                    {"f", "EXISTS"},
                                    {"ROW", "EQ", "5"},
                                    {"FILTER"},
                                    {"f:a", "MATCH"}};
  for (const Words& words : wrong) {
    const Result<Predicate> parsed = Parse(words);
    REQUIRE_FALSE(parsed.ok());
    CHECK(parsed.status().ToString().starts_with("ERR syntax error: "));
  }
}

}  // namespace cell_arguments_test
