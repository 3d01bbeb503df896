// The options of CROW, CSCAN and CCOUNT as words in and ReadRequest out.
#include "commands/arguments/read_arguments.h"

#include <catch2/catch.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "commands/arguments/option_syntax.h"
#include "commands/arguments/read_syntax.h"

namespace read_arguments_test {

using namespace cellar;
using Words = std::vector<std::string_view>;

ReadRequest Parse(ReadCommand command, const Words& words) {
  ReadRequest request;
  const Status status = ParseReadOptions(command, ArgumentCursor(words, 0), &request);
  INFO(status.ToString());
  REQUIRE(status.ok());
  return request;
}
std::string ErrorOf(ReadCommand command, const Words& words) {
  ReadRequest request;
  return ParseReadOptions(command, ArgumentCursor(words, 0), &request).ToString();
}

TEST_CASE("Without options a read asks for everything once", "[read_arguments]") {
  const ReadRequest request = Parse(ReadCommand::kScan, {});
  CHECK(request.rows.rows.empty());
  CHECK(request.cells.columns.empty());
  CHECK_FALSE(request.cells.versions_max.has_value());
  CHECK_FALSE(request.format.arrays());
  CHECK(request.rows_max == 100);
  CHECK(request.cells_max == kUnlimited);
}

TEST_CASE("Cell options are read in any order and case", "[read_arguments]") {
  const ReadRequest request =
      Parse(ReadCommand::kRow,
            {"withts",     "COLUMNS", "2",       "f:a",       "g",    "time",     "5",         "(9",
             "VERSIONS",   "all",     "PERROW",  "3",         "SKIP", "0",        "GROUPS",    "2",
             "COLREVERSE", "FILTER",  "pass",    "COLPREFIX", "f",    "p",        "COLRANGE",  "f",
             "-",          "+",       "columns", "1",         "f:z",  "WITHTYPE", "WITHLABELS"});
  REQUIRE(request.cells.columns.size() == 5);
  CHECK(request.cells.columns[1].kind == ColumnSelector::Kind::kFamily);
  CHECK(request.cells.columns[2].kind == ColumnSelector::Kind::kPrefix);
  CHECK(request.cells.columns[3].kind == ColumnSelector::Kind::kRange);
  CHECK(request.cells.time.max_micros == 8);
  CHECK(request.cells.versions_max == kUnlimited);
  CHECK(request.cells.columns_max == 3);
  CHECK(request.cells.columns_skip == 0);
  CHECK(request.cells.super_columns_max == 2);
  CHECK(request.cells.columns_reverse);
  CHECK(request.cells.filter == "pass");
  CHECK(request.format.timestamps);
  CHECK(request.format.types);
  CHECK(request.format.labels);
}

TEST_CASE("Row options are read in any order and case", "[read_arguments]") {
  const ReadRequest request =
      Parse(ReadCommand::kScan, {"PREFIX", "p", "ROWS",   "2",   "a",        "b",     "RANGE",
                                 "[a",     "+", "prefix", "q",   "REVERSE",  "WHERE", "f:a",
                                 "EQ",     "1", "where",  "ROW", "EXISTS",   "COUNT", "7",
                                 "CELLS",  "9", "SAMPLE", "0.5", "KEYSONLY", "STATS", "SNAPSHOT"});
  REQUIRE(request.rows.rows.size() == 5);
  CHECK(request.rows.rows[0].kind == RowSelector::Kind::kPrefix);
  CHECK(request.rows.rows[2].first == "b");
  CHECK(request.rows.rows[3].second == "+");
  CHECK(request.rows.reverse);
  CHECK(request.rows.where.size() == 2);
  CHECK(request.rows_max == 7);
  CHECK(request.cells_max == 9);
  CHECK(request.rows.sample == 0.5);
  CHECK(request.keys_only);
  CHECK(request.stats);
  CHECK(request.snapshot);
}

TEST_CASE("An index scan has bounds of its own", "[read_arguments]") {
  const ReadRequest request = Parse(
      ReadCommand::kScan, {"EQ", "1", "x", "INDEX", "by_name", "BETWEEN", "[a", "(b", "REVERSE"});
  REQUIRE(request.rows.index.has_value());
  CHECK(request.rows.index->name == "by_name");
  CHECK(request.rows.index->equal == std::vector<std::string_view>{"x"});
  CHECK(request.rows.index->between->second == "(b");
  CHECK(Parse(ReadCommand::kCount, {"INDEX", "i", "FROM", "2", "a", "b"}).rows.index->from.size() ==
        2);
  for (const Words& words :
       std::vector<Words>{{"EQ", "1", "x"},
                          {"BETWEEN", "-", "+"},
                          {"FROM", "1", "x"},
                          {"INDEX", "i", "FROM", "1", "x", "EQ", "1", "y"},
                          {"INDEX", "i", "FROM", "1", "x", "BETWEEN", "-", "+"},
                          {"INDEX", "i", "PREFIX", "p"},
                          {"RANGE", "-", "+", "INDEX", "i"},
                          {"INDEX", "i", "ROWS", "1", "r"},
                          {"INDEX", "i", "INDEX", "i"}}) {
    CHECK(ErrorOf(ReadCommand::kScan, words).starts_with("ERR syntax error: "));
  }
}

TEST_CASE("CCOUNT has BY", "[read_arguments]") {
  CHECK(Parse(ReadCommand::kCount, {"by", "cells"}).by == CountBy::kCells);
  CHECK(Parse(ReadCommand::kCount, {"BY", "COLUMNS"}).by == CountBy::kColumns);
  CHECK(Parse(ReadCommand::kCount, {"BY", "GROUPS"}).by == CountBy::kGroups);
  CHECK(Parse(ReadCommand::kCount, {"BY", "ROWS"}).by == CountBy::kRows);
  CHECK(ErrorOf(ReadCommand::kCount, {"BY", "BYTES"}).starts_with("ERR syntax error: "));
  CHECK(ErrorOf(ReadCommand::kScan, {"BY", "ROWS"}).starts_with("ERR syntax error: "));
}

// A command takes the options that its syntax names and no other: each with its form's words behind
// it, which are read, or at fault themselves.
TEST_CASE("A read takes what its syntax names, and nothing else", "[read_arguments]") {
  const std::pair<ReadCommand, std::string_view> commands[] = {
      {ReadCommand::kRow, kRowSyntax},
      {ReadCommand::kRows, kRowsSyntax},
      {ReadCommand::kScan, kScanSyntax},
      {ReadCommand::kCount, kCountSyntax},
      {ReadCommand::kUpdate, kUpdatedSyntax}};
  for (const auto& [command, syntax] : commands) {
    for (const auto& [other, words] : commands) {
      size_t at = 0;
      for (SyntaxOption option = NextOption(words, &at); !option.word.empty();
           option = NextOption(words, &at)) {
        const bool named = !FindOptionIn(syntax, option.word).word.empty();
        const std::string error = ErrorOf(command, {option.word});
        INFO(syntax << ": " << option.word << ": " << error);
        const bool refused = error.find("is not an option of") != std::string::npos ||
                             error.find("has no effect in") != std::string::npos;
        // Alone, REVERSE does nothing in a count.
        if (command == ReadCommand::kCount && option.word == "REVERSE") continue;
        CHECK(refused != named);
        if (named && option.words_min > 0) {
          CHECK(error == "ERR syntax error: too few words after " + std::string(option.word) +
                             " (" + std::string(option.words()) + ")");
        }
      }
    }
  }
}

TEST_CASE("The options of a syntax line have the words that follow them", "[read_arguments]") {
  constexpr std::string_view kSyntax =
      "table [ROWS count row...]... [BY (KEYS|CELLS)] [INDEX index [EQ count value...]] "
      "(PREFIX prefix | WHERE predicate | ALL)";
  const std::tuple<std::string_view, std::string_view, int, bool> expected[] = {
      {"ROWS", "count row ...", 2, true},
      {"BY", "KEYS|CELLS", 1, false},
      {"INDEX", "index", 1, false},
      {"EQ", "count value ...", 2, false},
      {"PREFIX", "prefix", 1, false},
      {"WHERE", "predicate", 0, false},
      {"ALL", "", 0, false},
      {"", "", 0, false}};
  size_t at = 0;
  for (const auto& [word, words, words_min, many] : expected) {
    const SyntaxOption option = NextOption(kSyntax, &at);
    CHECK(option.word == word);
    CHECK(option.words() == words);
    CHECK(option.words_min == words_min);
    CHECK(option.many == many);
  }
}

TEST_CASE("Every single-use option is refused the second time", "[read_arguments]") {
  const std::vector<Words> once = {
      {"TIME", "1", "2"}, {"VERSIONS", "1"},  {"PERROW", "1"}, {"SKIP", "1"},   {"GROUPS", "1"},
      {"COLREVERSE"},     {"FILTER", "pass"}, {"WITHTS"},      {"WITHTYPE"},    {"WITHLABELS"},
      {"REVERSE"},        {"COUNT", "1"},     {"CELLS", "1"},  {"SAMPLE", "1"}, {"KEYSONLY"},
      {"STATS"},          {"SNAPSHOT"},
  };
  for (const Words& words : once) {
    INFO(words[0]);
    CHECK(ErrorOf(ReadCommand::kScan, words) == "OK");
    Words twice = words;
    twice.insert(twice.end(), words.begin(), words.end());
    CHECK(ErrorOf(ReadCommand::kScan, twice).starts_with("ERR syntax error: "));
  }
}

TEST_CASE("What is cut short, unknown or out of place is a syntax error", "[read_arguments]") {
  for (const Words& words : std::vector<Words>{{"COLUMNS"},
                                               {"COLUMNS", "1"},
                                               {"COLUMNS", "2", "f:a"},
                                               {"COLPREFIX", "f"},
                                               {"COLRANGE", "f", "-"},
                                               {"TIME", "1"},
                                               {"ROWS", "3", "a", "b"},
                                               {"WHERE", "f:a"},
                                               {"COUNT"},
                                               {"LIMIT", "5"},
                                               {"f:a"}}) {
    CHECK(ErrorOf(ReadCommand::kScan, words).starts_with("ERR syntax error: "));
  }
  CHECK(ErrorOf(ReadCommand::kRow, {"REVERSE"}).starts_with("ERR syntax error: "));
  CHECK(ErrorOf(ReadCommand::kRow, {"COUNT", "5"}).starts_with("ERR syntax error: "));
  CHECK(ErrorOf(ReadCommand::kRow, {"WHERE", "ROW", "EXISTS"}).starts_with("ERR syntax error: "));
}

TEST_CASE("Counts of 0 and numbers that are none are errors", "[read_arguments]") {
  for (const Words& words : std::vector<Words>{{"COUNT", "0"},
                                               {"CELLS", "0"},
                                               {"PERROW", "0"},
                                               {"GROUPS", "0"},
                                               {"VERSIONS", "0"},
                                               {"COLUMNS", "0", "f:a"},
                                               {"ROWS", "0", "r"},
                                               {"COUNT", "-5"},
                                               {"SKIP", "-1"},
                                               {"COUNT", "many"},
                                               {"SAMPLE", "1.5"},
                                               {"SAMPLE", "-0.1"},
                                               {"SAMPLE", "nan"},
                                               {"RANGE", "a", "+"},
                                               {"TIME", "a", "b"}}) {
    INFO(words[0] << " " << words[1]);
    CHECK(ErrorOf(ReadCommand::kScan, words).starts_with("ERR "));
  }
}

}  // namespace read_arguments_test
