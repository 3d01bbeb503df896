// Cells into groups by every kind of term, against groups made of texts.
#include "engine/aggregate/aggregate_fold.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/engine/aggregate_rig.h"

namespace aggregate_fold_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)
using aggregate_rig::Cell;
using aggregate_rig::Function;
using aggregate_rig::kNow;
using aggregate_rig::Rig;
using aggregate_rig::Term;
using Kind = GroupTerm::Kind;
using Answers = std::map<std::string, std::string>;

// COUNT of all cells, all of their versions, by a term.
Answers CountBy(Rig& rig, const GroupTerm& term) {
  AggregateRequest request;
  request.terms = {term};
  request.reduces = {Function(Reduce::Function::kCount, "*")};
  CellOptions cells;
  cells.versions_max = kUnlimited;
  return FoldRows(rig, request, {}, cells);
}

Answers CountByText(const Rig& rig, const std::function<std::string(const Cell&)>& text_of) {
  std::map<std::string, uint64_t> counts;
  for (const Cell& cell : rig.cells()) ++counts[text_of(cell)];
  Answers answers;
  for (const auto& [text, count] : counts) answers[text] = FormatUint64(count);
  return answers;
}

std::string Before(const std::string& text, char sign) { return text.substr(0, text.find(sign)); }
std::string Behind(const std::string& text, char sign) { return text.substr(text.find(sign) + 1); }

TEST_CASE("Every term groups the cells that its text says", "[aggregate]") {
  Random random(11);
  Rig rig("utf8#u64", {{.name = "f"}, {.name = "g", .order = "utf8#u64", .group = 1}});
  FillAtRandom(&rig, random, 1500);
  const auto row = [](const Cell& cell) { return cell.row; };
  const auto device = [](const Cell& cell) { return Before(cell.row, '#'); };
  const auto number = [](const Cell& cell) { return Behind(cell.row, '#'); };
  CHECK(CountBy(rig, Term(Kind::kKey)) == CountByText(rig, row));
  CHECK(CountBy(rig, Term(Kind::kKey, 1)) == CountByText(rig, device));
  CHECK(CountBy(rig, Term(Kind::kKey, 2)) == CountByText(rig, row));
  CHECK(CountBy(rig, Term(Kind::kPart, 1)) == CountByText(rig, device));
  CHECK(CountBy(rig, Term(Kind::kPart, 2)) == CountByText(rig, number));
  GroupTerm step = Term(Kind::kPart, 2);
  step.step = "7";
  CHECK(CountBy(rig, step) == CountByText(rig, [&](const Cell& cell) {
          return FormatInt64(std::stoll(number(cell)) / 7 * 7);
        }));
  CHECK(CountBy(rig, Term(Kind::kFamily)) ==
        CountByText(rig, [](const Cell& cell) { return cell.family; }));
  CHECK(CountBy(rig, Term(Kind::kColumn)) ==
        CountByText(rig, [](const Cell& cell) { return cell.family + ":" + cell.qualifier; }));
  CHECK(CountBy(rig, Term(Kind::kQualifier, 1)) ==
        CountByText(rig, [](const Cell& cell) { return Before(cell.qualifier, '#'); }));
  GroupTerm time = Term(Kind::kTime);
  time.duration_micros = 7'000'000;
  CHECK(CountBy(rig, time) == CountByText(rig, [](const Cell& cell) {
          return FormatInt64(cell.timestamp / 7'000'000 * 7'000'000);
        }));
}

TEST_CASE("VALUE is the row's newest, and null where it has none", "[aggregate]") {
  Random random(12);
  Rig rig("utf8#u64", {{.name = "f"}, {.name = "g", .order = "utf8#u64"}});
  FillAtRandom(&rig, random, 1200);
  std::map<std::string, Cell> newest;
  for (const Cell& cell : rig.cells()) {
    if (cell.family != "f" || cell.qualifier != "q1") continue;
    const auto [at, is_new] = newest.insert({cell.row, cell});
    if (!is_new && at->second.timestamp < cell.timestamp) at->second = cell;
  }
  GroupTerm value = Term(Kind::kValue);
  value.family = "f";
  value.qualifier = "q1";
  const auto text_of = [&](const Cell& cell) {
    const auto found = newest.find(cell.row);
    if (found == newest.end()) return std::string("null");
    return found->second.text + (found->second.type == ValueType::kF64 ? "d" : "");
  };
  const Answers answers = CountBy(rig, value);
  CHECK(answers == CountByText(rig, text_of));
  CHECK(answers.contains("null"));
  CHECK(answers.contains("text"));
  value.step = "50";
  CHECK(CountBy(rig, value) == CountByText(rig, [&](const Cell& cell) -> std::string {
          const std::string text = text_of(cell);
          if (text == "null" || text == "text") return "null";
          const int64_t number = std::stoll(text);
          return FormatInt64((number < 0 ? number - 49 : number) / 50 * 50) +
                 (text.back() == 'd' ? "d" : "");
        }));
}

TEST_CASE("BYTES are the first ones of the key's text, of keys that descend too", "[aggregate]") {
  for (const std::string key : {"bytes", "-bytes", "utf8"}) {
    Rig rig(key, {{.name = "f"}});
    const std::vector<std::string> rows{"a", "ab", "abc", "abd", "b", "ba"};
    for (const std::string& row : rows) rig.Put({row, "f", "x", 1, ValueType::kBytes, "1"});
    for (uint64_t bytes = 1; bytes <= 4; ++bytes) {
      CHECK(CountBy(rig, Term(Kind::kBytes, bytes)) ==
            CountByText(rig, [&](const Cell& cell) { return cell.row.substr(0, bytes); }));
    }
  }
}

TEST_CASE("Each REDUCE takes the cells of its target, and rows are counted once", "[aggregate]") {
  Random random(13);
  Rig rig("utf8#u64", {{.name = "f"}, {.name = "g", .order = "utf8#u64"}});
  FillAtRandom(&rig, random, 1500);
  AggregateRequest request;
  request.terms = {Term(Kind::kKey, 1)};
  request.reduces = {Function(Reduce::Function::kRows, "*"), Function(Reduce::Function::kRows, "g"),
                     Function(Reduce::Function::kCount, "f:q2"),
                     Function(Reduce::Function::kSum, "f"),
                     Function(Reduce::Function::kMin, "f:q0")};
  CellOptions options;
  options.versions_max = kUnlimited;
  const Answers answers = FoldRows(rig, request, {}, options);
  for (const auto& [device, text] : answers) {
    std::set<std::string> rows;
    std::set<std::string> rows_of_g;
    uint64_t count = 0;
    int64_t sum = 0;
    int64_t min = INT64_MAX;
    for (const Cell& cell : rig.cells()) {
      if (Before(cell.row, '#') != device) continue;
      rows.insert(cell.row);
      if (cell.family == "g") rows_of_g.insert(cell.row);
      if (cell.family != "f") continue;
      if (cell.qualifier == "q2") ++count;
      if (cell.text == "text") continue;
      sum += std::stoll(cell.text);
      if (cell.qualifier == "q0") min = std::min<int64_t>(min, std::stoll(cell.text));
    }
    INFO(device);
    CHECK(text == FormatUint64(rows.size()) + " " + FormatUint64(rows_of_g.size()) + " " +
                      FormatUint64(count) + " " + FormatInt64(sum) + " " + FormatInt64(min));
  }
  CHECK(answers.size() == 7);
}

}  // namespace aggregate_fold_test
