// CPUT, CDEL and CMUTATE as words in and RowWrite out.
#include "commands/arguments/write_arguments.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace write_arguments_test {

using namespace cellar;
using Words = std::vector<std::string_view>;
using Kind = CellOp::Kind;
using Parser = Status (*)(ArgumentCursor, RowWrite*);

RowWrite Parse(Parser parser, const Words& words) {
  RowWrite write;
  const Status status = parser(ArgumentCursor(words, 0), &write);
  INFO(status.ToString());
  REQUIRE(status.ok());
  return write;
}

std::string ErrorOf(Parser parser, const Words& words) {
  RowWrite write;
  return parser(ArgumentCursor(words, 0), &write).ToString();
}

TEST_CASE("CPUT takes columns with values and their options", "[write_arguments]") {
  const RowWrite write = Parse(ParsePut, {"f:a", "1", "as", "i64", "TS", "5", "f:b", "2", "ttl",
                                          "1s", "f:c", "x:y", "f:d", "AS"});
  REQUIRE(write.ops.size() == 4);
  CHECK(write.ops[0].family == "f");
  CHECK(write.ops[0].qualifier == "a");
  CHECK(write.ops[0].text == "1");
  CHECK(write.ops[0].type == ValueType::kI64);
  CHECK(write.ops[0].timestamp_micros == 5);
  CHECK_FALSE(write.ops[0].ttl_micros.has_value());
  CHECK(write.ops[1].ttl_micros == 1'000'000);
  CHECK(write.ops[2].text == "x:y");
  CHECK(write.ops[3].text == "AS");  // the value, not the option
  CHECK_FALSE(write.ops[3].type.has_value());
  CHECK(write.existence == RowWrite::Existence::kAny);
}

TEST_CASE("CPUT takes NX or XX and conditions before the first column", "[write_arguments]") {
  const RowWrite write =
      Parse(ParsePut, {"IF", "f:a", "GT", "3", "nx", "if", "ROW", "EXISTS", "f:a", "1"});
  CHECK(write.existence == RowWrite::Existence::kNx);
  REQUIRE(write.conditions.size() == 2);
  CHECK(write.conditions[0].literal == "3");
  CHECK(write.conditions[1].kind == Predicate::Kind::kRowExists);
  CHECK(Parse(ParsePut, {"XX", "f:a", "1"}).existence == RowWrite::Existence::kXx);
}

TEST_CASE("What CPUT cannot read is refused", "[write_arguments]") {
  const std::vector<Words> wrong = {
      {"f:a"},
      {"NX"},
      {"NX", "XX", "f:a", "1"},
      {"NX", "NX", "f:a", "1"},
      {"f", "1"},
      {"f:a", "1", "f:b"},
      {"f:a", "1", "NX"},
      {"f:a", "1", "2"},
      {"f:a", "1", "AS"},
      {"f:a", "1", "AS", "i64", "AS", "i64"},
      {"f:a", "1", "TS", "5", "TS", "5"},
      {"f:a", "1", "TTL", "5", "TTL", "5"},
      {"IF", "f:a", "1"},
      {"f:a", "1", "IF", "ROW", "EXISTS"},
      {"AS", "i64", "f:a", "1"},
  };
  for (const Words& words : wrong)
    CHECK(ErrorOf(ParsePut, words).starts_with("ERR syntax error: "));
  CHECK(ErrorOf(ParsePut, {"f:a", "1", "AS", "number"})
            .starts_with("ERR unknown type 'number', the types are bytes string "));
  CHECK(ErrorOf(ParsePut, {"f:a", "1", "TS", "-1"}).starts_with("ERR timestamp"));
  CHECK(ErrorOf(ParsePut, {"f:a", "1", "TTL", "0"}).starts_with("ERR "));
}

TEST_CASE("CDEL without a selector deletes the row", "[write_arguments]") {
  const RowWrite row = Parse(ParseDelete, {});
  REQUIRE(row.ops.size() == 1);
  CHECK(row.ops[0].kind == Kind::kDeleteRow);
  CHECK(row.ops[0].time.all());

  const RowWrite versions = Parse(ParseDelete, {"time", "-inf", "(10"});
  REQUIRE(versions.ops.size() == 1);
  CHECK(versions.ops[0].kind == Kind::kDeleteRow);
  CHECK(versions.ops[0].time.max_micros == 9);
}

TEST_CASE("CDEL takes columns, families, prefixes and ranges", "[write_arguments]") {
  const RowWrite write = Parse(ParseDelete, {"IF", "f:a", "EXISTS", "f:a", "g", "COLPREFIX", "h",
                                             "x", "colrange", "h", "[a", "+", "TIME", "5", "6"});
  REQUIRE(write.conditions.size() == 1);
  REQUIRE(write.ops.size() == 4);
  CHECK(write.ops[0].selector.kind == ColumnSelector::Kind::kColumn);
  CHECK(write.ops[1].selector.kind == ColumnSelector::Kind::kFamily);
  CHECK(write.ops[2].selector.kind == ColumnSelector::Kind::kPrefix);
  CHECK(write.ops[2].selector.family == "h");
  CHECK(write.ops[2].selector.first == "x");
  CHECK(write.ops[3].selector.kind == ColumnSelector::Kind::kRange);
  CHECK(write.ops[3].selector.second == "+");
  for (const CellOp& op : write.ops) {
    CHECK(op.kind == Kind::kDelete);
    CHECK(op.time.min_micros == 5);
    CHECK(op.time.max_micros == 6);
  }
}

TEST_CASE("TIME in CDEL is a family unless exactly two words follow", "[write_arguments]") {
  const RowWrite alone = Parse(ParseDelete, {"TIME"});
  REQUIRE(alone.ops.size() == 1);
  CHECK(alone.ops[0].selector.family == "TIME");
  const RowWrite three = Parse(ParseDelete, {"TIME", "a", "b", "c"});
  REQUIRE(three.ops.size() == 4);
  CHECK(three.ops[0].selector.family == "TIME");
  // The last three words here are the family TIME's successors "TIME 5 6": the option.
  const RowWrite twice = Parse(ParseDelete, {"TIME", "TIME", "5", "6"});
  REQUIRE(twice.ops.size() == 1);
  CHECK(twice.ops[0].selector.family == "TIME");
  CHECK(twice.ops[0].time.min_micros == 5);
  CHECK(ErrorOf(ParseDelete, {"TIME", "a", "b"}).starts_with("ERR min or max"));
  CHECK(ErrorOf(ParseDelete, {"COLPREFIX", "f"}).starts_with("ERR syntax error: "));
  CHECK(ErrorOf(ParseDelete, {"COLRANGE", "f", "a", "+"}).starts_with("ERR min or max"));
}

TEST_CASE("A missing family TIME will have been meant as the option", "[write_arguments]") {
  TableSchema schema;
  schema.families.emplace_back().name = "f";
  const auto told = [&schema](Parser parser, const Words& words) {
    const RowWrite write = Parse(parser, words);
    return HintAtTime(Status::Error(ErrorCode::kNoFamily, "no family"), schema, write).ToString();
  };
  const std::string hint = "NOFAMILY no family -- the option TIME takes min and max, at the end";
  const std::vector<Words> meant = {{"TIME"},
                                    {"f:a", "TIME", "1"},
                                    {"f", "time", "1"},
                                    {"TIME", "1", "2", "f:a"},
                                    {"COLPREFIX", "f", "a", "TIME"}};
  for (const Words& words : meant) CHECK(told(ParseDelete, words) == hint);
  CHECK(told(ParseMutate, {"IF", "f:a", "EXISTS", "DELROW", "ELSE", "DEL", "TIME"}) == hint);
  // The first family that is missing is what the error names.
  const std::vector<Words> other = {
      {"g", "TIME"}, {"TIME:a"}, {"COLPREFIX", "TIME", "a"}, {"f:TIME", "g"}, {}};
  for (const Words& words : other) CHECK(told(ParseDelete, words) == "NOFAMILY no family");
  CHECK(told(ParsePut, {"TIME:a", "1"}) == "NOFAMILY no family");
  // One that is there is a family, and other errors stay as they are.
  const RowWrite write = Parse(ParseDelete, {"TIME", "1"});
  CHECK(HintAtTime(Status::Error(ErrorCode::kBadKey, "x"), schema, write).ToString() == "BADKEY x");
  schema.families.front().name = "TIME";
  CHECK(told(ParseDelete, {"TIME", "1"}) == "NOFAMILY no family");
}

TEST_CASE("CMUTATE takes all ops in order, in two branches", "[write_arguments]") {
  const RowWrite write = Parse(
      ParseMutate,
      {"IF",     "f:a", "EXISTS",    "put", "f:a", "1",    "AS",       "u8", "INCR", "f:n", "5",
       "APPEND", "f:t", "xyz",       "DEL", "g",   "TIME", "1",        "2",  "DEL",  "f:q", "ELSE",
       "DELROW", "DEL", "COLPREFIX", "g",   "p",   "DEL",  "COLRANGE", "g",  "(a",   "[b"});
  REQUIRE(write.ops.size() == 5);
  CHECK(write.ops[0].kind == Kind::kPut);
  CHECK(write.ops[0].type == ValueType::kU8);
  CHECK(write.ops[1].kind == Kind::kIncrementAny);
  CHECK(write.ops[1].text == "5");
  CHECK(write.ops[2].kind == Kind::kAppend);
  CHECK(write.ops[3].kind == Kind::kDelete);
  CHECK(write.ops[3].time.min_micros == 1);
  CHECK(write.ops[4].time.all());
  REQUIRE(write.else_ops.size() == 3);
  CHECK(write.else_ops[0].kind == Kind::kDeleteRow);
  CHECK(write.else_ops[1].selector.kind == ColumnSelector::Kind::kPrefix);
  CHECK(write.else_ops[2].selector.kind == ColumnSelector::Kind::kRange);
}

TEST_CASE("Either branch of CMUTATE may be empty, not both", "[write_arguments]") {
  CHECK(Parse(ParseMutate, {"IF", "ROW", "EXISTS", "ELSE", "DELROW"}).ops.empty());
  CHECK(Parse(ParseMutate, {"IF", "ROW", "EXISTS", "DELROW", "ELSE"}).else_ops.empty());
  const std::vector<Words> wrong = {
      {},
      {"IF", "ROW", "EXISTS"},
      {"IF", "ROW", "EXISTS", "ELSE"},
      {"DELROW", "ELSE", "DELROW"},
      {"IF", "ROW", "EXISTS", "DELROW", "ELSE", "DELROW", "ELSE", "DELROW"},
      {"DELROW", "IF", "ROW", "EXISTS"},
      {"PUT", "f:a"},
      {"PUT", "f", "1"},
      {"PUT", "f:a", "1", "f:b", "2"},
      {"PUT", "f:a", "1", "AS"},
      {"INCR", "f:a"},
      {"APPEND"},
      {"DEL"},
      {"DEL", "f:a", "TIME", "1"},
      {"DELROW", "TIME", "1", "2"},
      {"SET", "f:a", "1"},
  };
  for (const Words& words : wrong)
    CHECK(ErrorOf(ParseMutate, words).starts_with("ERR syntax error: "));
}

TEST_CASE("A delta that is no number is refused before anything is looked for",
          "[write_arguments]") {
  const auto error = [](Kind kind, std::string_view delta) {
    RowWrite write;
    const Words words = {"f:a", delta};
    return ParseColumnOp(ArgumentCursor(words, 0), kind, &write).ToString();
  };
  CHECK(error(Kind::kIncrement, "18446744073709551615") == "OK");
  CHECK(error(Kind::kIncrement, "18446744073709551616").starts_with("ERR "));
  CHECK(error(Kind::kIncrement, "1.5").starts_with("ERR "));
  CHECK(error(Kind::kIncrement, "").starts_with("ERR "));
  CHECK(error(Kind::kIncrementFloat, "1.5") == "OK");
  CHECK(error(Kind::kIncrementFloat, "x").starts_with("ERR "));
  CHECK(error(Kind::kIncrementFloat, "inf").starts_with("ERR "));
  CHECK(error(Kind::kIncrementAny, "1.5") == "OK");
  CHECK(error(Kind::kIncrementAny, "7") == "OK");
  CHECK(error(Kind::kIncrementAny, "x").starts_with("ERR "));
  CHECK(error(Kind::kAppend, "") == "OK");
}

TEST_CASE("A RowWrite keeps its memory from command to command", "[write_arguments]") {
  RowWrite write = Parse(ParsePut, {"IF", "ROW", "EXISTS", "f:a", "1", "f:b", "2"});
  const size_t capacity = write.ops.capacity();
  write.Clear();
  CHECK(write.ops.empty());
  CHECK(write.conditions.empty());
  CHECK(write.ops.capacity() == capacity);
}

}  // namespace write_arguments_test
