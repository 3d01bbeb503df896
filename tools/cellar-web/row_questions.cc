// See row_questions.h.
#include "cellar-web/row_questions.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/text/ascii.h"

namespace cellar::web {
namespace {

using Words = std::vector<std::string>;

constexpr std::array<std::string_view, 5> kPaths{"rows", "row", "columns", "value", "explain"};
constexpr std::array<std::string_view, 7> kComparisons{"EQ", "NE", "LT", "LE", "GT", "GE", "MATCH"};
constexpr NumberBounds kRows{.usual = 50, .min = 1, .max = 1000};
constexpr NumberBounds kCells{.usual = 1000, .min = 1, .max = 5000};
constexpr NumberBounds kColumnsOfRows{.usual = 20, .min = 1, .max = 1000};
constexpr NumberBounds kVersionsOfRows{.usual = 1, .min = 1, .max = 1000};
constexpr NumberBounds kVersions{.usual = 5, .min = 1, .max = 1000};
constexpr NumberBounds kOffset{.usual = 0, .min = 0, .max = std::numeric_limits<int64_t>::max()};
// `.` is any byte, since (?s) and RE2 reads bytes here.
constexpr char kCut[]{
    R"({value ~ "(?s).{0,1000}", value ~ "(?s).{1000}.+" | label("cut") | strip})"};

void Add(Words* words, std::initializer_list<std::string> more) {
  words->insert(words->end(), more);
}

// Each option is one that the page names: no condition of somebody's becomes an option by its
// words.
void AddConditions(ParameterReader* reader, Words* words) {
  for (const Words& condition : reader->Lists("where")) {
    const std::string last = UpperText(condition.back());
    const bool is_short = condition.size() == 2 && (last == "EXISTS" || last == "MISSING" ||
                                                    UpperText(condition.front()) == "FILTER");
    const bool is_comparison =
        condition.size() == 3 && std::find(kComparisons.begin(), kComparisons.end(),
                                           UpperText(condition[1])) != kComparisons.end();
    if (!is_short && !is_comparison) {
      reader->Complain(
          "a condition is: column EQ|NE|LT|LE|GT|GE|MATCH value, column|ROW EXISTS|MISSING, or "
          "FILTER expression");
    }
    words->push_back("WHERE");
    words->insert(words->end(), condition.begin(), condition.end());
  }
}

void AddRows(ParameterReader* reader, Words* words) {
  const auto prefix = reader->Optional("prefix");
  if (prefix && !prefix->empty()) Add(words, {"PREFIX", *prefix});
  const auto min = reader->Optional("min");
  const auto max = reader->Optional("max");
  if (min || max) Add(words, {"RANGE", min.value_or("-"), max.value_or("+")});
  if (reader->Flag("reverse")) words->push_back("REVERSE");
  AddConditions(reader, words);
}

void AddColumns(ParameterReader* reader, Words* words) {
  const Words columns = reader->List("columns");
  if (columns.empty()) return;
  Add(words, {"COLUMNS", std::to_string(columns.size())});
  words->insert(words->end(), columns.begin(), columns.end());
}

void AddCells(ParameterReader* reader, NumberBounds versions, Words* words) {
  AddColumns(reader, words);
  const auto filter = reader->Optional("filter");
  Add(words, {"VERSIONS", std::to_string(reader->Number("versions", versions)), "CELLS",
              std::to_string(reader->Number("cells", kCells)), "WITHTS", "WITHTYPE", "WITHTTL",
              "WITHLABELS", "FILTER",
              filter && !filter->empty() ? "(" + *filter + ") | " + kCut : std::string(kCut)});
}

Words Rows(ParameterReader* reader) {
  Words words{"CSCAN", reader->Text("table"), reader->Optional("cursor").value_or("0")};
  AddRows(reader, &words);
  Add(&words, {"COUNT", std::to_string(reader->Number("count", kRows)), "PERROW",
               std::to_string(reader->Number("perrow", kColumnsOfRows))});
  AddCells(reader, kVersionsOfRows, &words);
  return words;
}

Words Row(ParameterReader* reader) {
  Words words{"CSCAN", reader->Text("table"), reader->Optional("cursor").value_or("0"), "ROWS",
              "1",     reader->Text("row")};
  AddCells(reader, kVersions, &words);
  return words;
}

// Without what only the page needs, so that it is the read that people would send.
Words Explain(ParameterReader* reader) {
  Words words{"CEXPLAIN", "CSCAN", reader->Text("table"), "0"};
  AddRows(reader, &words);
  AddColumns(reader, &words);
  if (const auto filter = reader->Optional("filter"); filter && !filter->empty()) {
    Add(&words, {"FILTER", *filter});
  }
  if (reader->Flag("analyze")) {
    Add(&words, {"COUNT", std::to_string(reader->Number("count", kRows)), "ANALYZE"});
  }
  return words;
}

}  // namespace

bool IsRowQuestion(std::string_view path) {
  return std::find(kPaths.begin(), kPaths.end(), path) != kPaths.end();
}

Result<Question> RowQuestion(std::string_view path, ParameterReader* reader) {
  Question question;
  if (path == "rows") question.words = Rows(reader);
  if (path == "row") question.words = Row(reader);
  if (path == "explain") question.words = Explain(reader);
  if (path == "columns") {
    question.words = {"CCOUNT", reader->Text("table"), "ROWS", "1", reader->Text("row"), "BY",
                      "COLUMNS"};
  }
  if (path == "value") {
    question.words = {"CGET",
                      reader->Text("table"),
                      reader->Text("row"),
                      reader->Text("column"),
                      "AT",
                      reader->Text("ts"),
                      "WITHTS"};
    question.piece_offset = reader->Number("offset", kOffset);
  }
  RETURN_IF_ERROR(reader->status());
  return question;
}

}  // namespace cellar::web
