// What the errors of the grammar say: the word at fault, and what was expected there.
#include "commands/arguments/syntax_error.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "commands/arguments/arguments.h"
#include "commands/arguments/read_arguments.h"
#include "commands/arguments/schema_arguments.h"
#include "commands/arguments/write_arguments.h"

namespace syntax_error_test {

using namespace cellar;
using Words = std::vector<std::string_view>;

std::string ErrorOf(Status (*parser)(ArgumentCursor, RowWrite*), const Words& words) {
  RowWrite write;
  return parser(ArgumentCursor(words, 0), &write).ToString();
}

std::string ErrorOf(ReadCommand command, const Words& words) {
  ReadRequest request;
  return ParseReadOptions(command, ArgumentCursor(words, 0), &request).ToString();
}

TEST_CASE("A word that fits nowhere in a write is named, with what could stand there",
          "[syntax_error]") {
  CHECK(ErrorOf(ParsePut, {"model", "x"}) ==
        "ERR syntax error: 'model' is not a column (family:qualifier), NX, XX or IF");
  CHECK(ErrorOf(ParsePut, {"f:a", "1", "model", "x"}) ==
        "ERR syntax error: 'model' is not a column (family:qualifier), AS, TS, TTL or EXPIREAT");
  CHECK(ErrorOf(ParsePut, {"f:a"}) == "ERR syntax error: no value for 'f:a'");
  CHECK(ErrorOf(ParsePut, {"NX"}) == "ERR syntax error: no column and value");
  CHECK(ErrorOf(ParsePut, {"f:a", "1", "ttl"}) ==
        "ERR syntax error: too few words after TTL (duration)");
  CHECK(ErrorOf(ParsePut, {"f:a", "1", "EXPIREAT"}) ==
        "ERR syntax error: too few words after EXPIREAT (time)");
  CHECK(ErrorOf(ParsePut, {"f:a", "1", "EXPIREAT", "9", "TTL", "1d"}) ==
        "ERR syntax error: EXPIREAT excludes TTL: a cell expires once");
  CHECK(ErrorOf(ParsePut, {"f:a", "1", "nx"}) ==
        "ERR syntax error: NX comes before the first column");
  CHECK(ErrorOf(ParsePut, {"f:a", "1", "TS", "1", "TS", "2"}) ==
        "ERR syntax error: TS is given twice");
  CHECK(ErrorOf(ParsePut, {"IF", "f:a", "IS", "1", "f:a", "1"}) ==
        "ERR syntax error: 'IS' is not EXISTS, MISSING, EQ, NE, LT, LE, GT, GE or MATCH");
  CHECK(ErrorOf(ParseMutate, {"SET", "f:a", "1"}) ==
        "ERR syntax error: 'SET' is not PUT, ADD, MERGE, DEL, DELROW, INCR, APPEND or ELSE");
  CHECK(ErrorOf(ParseMutate, {"PUT", "f:a"}) ==
        "ERR syntax error: too few words after PUT (column value)");
  CHECK(ErrorOf(ParseMutate, {"DELROW", "ELSE", "DELROW"}) ==
        "ERR syntax error: ELSE needs an IF before all ops");
}

TEST_CASE("An option that a read does not have is named, as is what one lacks", "[syntax_error]") {
  CHECK(ErrorOf(ReadCommand::kScan, {"LIMIT", "5"}) ==
        "ERR syntax error: 'LIMIT' is not an option of CSCAN, did you mean COUNT?");
  CHECK(ErrorOf(ReadCommand::kRow, {"limit", "5"}) ==
        "ERR syntax error: 'limit' is not an option of CROW, did you mean PERROW?");
  CHECK(ErrorOf(ReadCommand::kScan, {"REVRESE"}) ==
        "ERR syntax error: 'REVRESE' is not an option of CSCAN, did you mean REVERSE?");
  CHECK(ErrorOf(ReadCommand::kRow, {"REVRESE"}) ==
        "ERR syntax error: 'REVRESE' is not an option of CROW");
  CHECK(ErrorOf(ReadCommand::kScan, {"FOO"}) ==
        "ERR syntax error: 'FOO' is not an option of CSCAN");
  CHECK(ErrorOf(ReadCommand::kRow, {"COUNT", "5"}) ==
        "ERR syntax error: 'COUNT' is not an option of CROW");
  CHECK(ErrorOf(ReadCommand::kRow, {"f:a"}) ==
        "ERR syntax error: 'f:a' is not an option of CROW, which takes columns after COLUMNS "
        "count");
  CHECK(ErrorOf(ReadCommand::kScan, {"COLRANGE", "f", "-"}) ==
        "ERR syntax error: too few words after COLRANGE (family min max)");
  CHECK(ErrorOf(ReadCommand::kScan, {"rows", "3", "a", "b"}) ==
        "ERR syntax error: ROWS 3 needs 3 words after it, not 2");
  CHECK(ErrorOf(ReadCommand::kScan, {"STATS", "stats"}) ==
        "ERR syntax error: STATS is given twice");
  CHECK(ErrorOf(ReadCommand::kScan, {"EQ", "1", "x"}) ==
        "ERR syntax error: EQ, BETWEEN and FROM need INDEX index");
  CHECK(ErrorOf(ReadCommand::kCount, {"BY", "BYTES"}) ==
        "ERR syntax error: 'BYTES' is not ROWS, GROUPS, COLUMNS or CELLS");
  CHECK(ErrorOf(ReadCommand::kScan, {"COUNT", "many"}) ==
        "ERR value is not an integer or out of range: COUNT 'many'");
  CHECK(ErrorOf(ReadCommand::kScan, {"RANGE", "a", "+"}) ==
        "ERR min or max is not a bound ([key, (key, - or +): 'a'");
}

TEST_CASE("An option that would do nothing is refused, with the commands that have it",
          "[syntax_error]") {
  CHECK(ErrorOf(ReadCommand::kCount, {"COUNT", "1"}) ==
        "ERR syntax error: 'COUNT' has no effect in CCOUNT: it is an option of CSCAN");
  CHECK(ErrorOf(ReadCommand::kCount, {"withts"}) ==
        "ERR syntax error: 'withts' has no effect in CCOUNT: it is an option of CROW, CROWS and "
        "CSCAN");
  CHECK(ErrorOf(ReadCommand::kCount, {"STATS"}) ==
        "ERR syntax error: 'STATS' has no effect in CCOUNT: it is an option of CSCAN and CAGG; "
        "CEXPLAIN with ANALYZE tells what a count examines");
  CHECK(ErrorOf(ReadCommand::kCount, {"REVERSE"}) ==
        "ERR syntax error: REVERSE has no effect in CCOUNT without EACH or FROM");
  CHECK(ErrorOf(ReadCommand::kCount, {"REVERSE", "EACH", "1", "1"}) == "OK");
  CHECK(ErrorOf(ReadCommand::kCount, {"INDEX", "i", "FROM", "1", "x", "REVERSE"}) == "OK");
  // COUNT would be refused in its turn.
  CHECK(ErrorOf(ReadCommand::kCount, {"LIMIT", "5"}) ==
        "ERR syntax error: 'LIMIT' is not an option of CCOUNT");
}

TEST_CASE("Where a count was forgotten, the error shows where it stands", "[syntax_error]") {
  CHECK(ErrorOf(ReadCommand::kRow, {"COLUMNS", "f:a", "f:b"}) ==
        "ERR syntax error: 'f:a' is not a count, as in COLUMNS count column|family ...");
  CHECK(ErrorOf(ReadCommand::kScan, {"rows", "r1", "r2"}) ==
        "ERR syntax error: 'r1' is not a count, as in ROWS count row ...");
  CHECK(ErrorOf(ReadCommand::kScan, {"INDEX", "i", "EQ", "x", "y"}) ==
        "ERR syntax error: 'x' is not a count, as in EQ count value ...");
  CHECK(ErrorOf(ReadCommand::kCount, {"INDEX", "i", "FROM", "1.5", "y"}) ==
        "ERR syntax error: '1.5' is not a count, as in FROM count value ...");
  CHECK(ErrorOf(ReadCommand::kScan, {"COLUMNS", "", "f:b"}) ==
        "ERR syntax error: '' is not a count, as in COLUMNS count column|family ...");
  // A number that cannot be the count is told as such.
  CHECK(ErrorOf(ReadCommand::kScan, {"COLUMNS", "0", "f:a"}) ==
        "ERR COLUMNS '0' is out of range, must be at least 1");
  CHECK(ErrorOf(ReadCommand::kScan, {"COLUMNS", "-3", "f:a"}) ==
        "ERR COLUMNS '-3' is out of range, must be at least 1");
  CHECK(ErrorOf(ReadCommand::kScan, {"COLUMNS", "99999999999999999999", "f:a"}) ==
        "ERR value is not an integer or out of range: COLUMNS '99999999999999999999'");
}

TEST_CASE("Where a word may stand in place of a number, the error says so", "[syntax_error]") {
  const std::string expected =
      "ERR value is not an integer or out of range: VERSIONS 'x' (a count of 1 or more, or ALL)";
  CHECK(ErrorOf(ReadCommand::kRow, {"VERSIONS", "x"}) == expected);
  CHECK(ErrorOf(ReadCommand::kRow, {"versions", "0"}) ==
        "ERR value is not an integer or out of range: VERSIONS '0' (a count of 1 or more, or ALL)");
  CHECK(ErrorOf(ReadCommand::kRow, {"TIME", "soon", "+inf"}) ==
        "ERR min or max of TIME, if not -inf or +inf: 'soon' is not a time: neither microseconds, "
        "now, now-1h, 2026-11-26 nor 2026-11-26T10:00:00.25+01:00");
  const auto family = [](const Words& words) {
    return ParseFamily(FamilyVerb::kAdd, ArgumentCursor(words, 0)).status().ToString();
  };
  CHECK(family({"f", "VERSIONS", "x"}) == expected);
  CHECK(family({"f", "TTL", "never"}) ==
        "ERR invalid duration 'never': an integer with ms, s, m, h, d or nothing (s), or NONE");
  CHECK(family({"f", "GC", "never"}) ==
        "ERR invalid policy 'never' at position 1: expected maxversions=, maxage=, ( or NONE");
  CHECK(family({"f", "TYPE", "int"}) ==
        "ERR unknown type 'int', the types are bytes string bool u8 i8 i16 i32 i64 u16 u32 u64 f32 "
        "f64 uuid, or NONE");
  CHECK(family({"-f"}) ==
        "ERR family name '-f' is invalid: 1 to 64 characters of A-Z a-z 0-9 _ . -, the first one "
        "neither . nor -");
}

TEST_CASE("A delta that is no number is named with its column", "[syntax_error]") {
  CHECK(ErrorOf(ParseMutate, {"INCR", "f:a", "x"}) ==
        "ERR value is not a valid float: 'x' for column 'f:a'");
}

TEST_CASE("An option that a table or family does not have is named", "[syntax_error]") {
  const auto create = [](const Words& words) {
    return ParseTableCreate(ArgumentCursor(words, 0)).status().ToString();
  };
  CHECK(create({"f"}) == "ERR syntax error: 'f' is not KEY, COLOCATE, WHOLE, SPLIT AT or FAMILY");
  CHECK(
      create({"FAMILY", "f", "COLOUR", "red"}) ==
      "ERR syntax error: 'COLOUR' is not TYPE, COLUMN, ORDER, VERSIONS, TTL, GC, GROUP, AGGREGATE, "
      "BUCKET, COMPRESS, KEY or FAMILY");
  CHECK(create({"FAMILY", "f", "TTL"}) ==
        "ERR syntax error: too few words after TTL (duration|NONE)");
  CHECK(create({"FAMILY", "f", "VERSIONS", "1", "GC", "NONE"}) ==
        "ERR syntax error: GC excludes VERSIONS and TTL, which can stand inside its policy");
  const Words alter = {"f"};
  CHECK(ParseFamily(FamilyVerb::kAlter, ArgumentCursor(alter, 0)).status().ToString() ==
        "ERR syntax error: nothing to alter: no TYPE, COLUMN, NOCOLUMN, VERSIONS, TTL, GC or "
        "COMPRESS");
}

TEST_CASE("A word of a megabyte does not come back in the error", "[syntax_error]") {
  const std::string word(1024 * 1024, 'x');
  CHECK(UnexpectedWord(word, "ON").text().size() < 200);
}

}  // namespace syntax_error_test
