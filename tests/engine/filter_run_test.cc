// Evaluation against a model that works as the specification reads: each step is a function from a
// list of cells to a list of cells. The model never stops early and knows no bounds.
#include "engine/filter/filter_run.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/filter/filter_bounds.h"

namespace filter_run_test {

using namespace cellar;

struct Cell {
  uint32_t family{0};
  std::string qualifier;  // text
  int64_t timestamp{0};
  ValueType type{ValueType::kBytes};
  std::string value;  // text
  std::vector<std::string> labels;
  size_t position{0};  // in the row
  bool stripped{false};

  friend bool operator==(const Cell&, const Cell&) = default;
};
using Cells = std::vector<Cell>;

struct Fixture {
  Order key_order;
  Order bytes_order;
  Order pair_order{*Order::Parse("utf8#-u8")};
  std::vector<FilterFamily> families{{"a", &bytes_order}, {"b", &pair_order}, {"c", &bytes_order}};

  std::string EncodeRow(std::string_view row) const {
    std::string encoded;
    REQUIRE(key_order.Encode(row, &encoded).ok());
    return encoded;
  }
  std::string EncodeQualifier(const Cell& cell) const {
    std::string encoded;
    REQUIRE(families[cell.family].order->Encode(cell.qualifier, &encoded).ok());
    return encoded;
  }
};

// What the run gives out for a row, obeying its early ends.
Cells RunFilter(const Fixture& fixture, FilterRun* run, std::string_view row, const Cells& cells,
                size_t* fed = nullptr) {
  const auto feed = [&](const Cell& cell, const std::function<FilterNext(const FilterCell&)>& use) {
    const std::string qualifier = fixture.EncodeQualifier(cell);
    std::string stored;
    REQUIRE(ParseValue(cell.type, cell.value, &stored).ok());
    return use({cell.family, qualifier, cell.timestamp, cell.type, stored});
  };
  const auto read = [&](const std::function<FilterNext(const FilterCell&, const Cell&)>& use) {
    bool column_done = false;
    const Cell* last = nullptr;
    for (const Cell& cell : cells) {
      const bool same_column =
          last != nullptr && last->family == cell.family && last->qualifier == cell.qualifier;
      last = &cell;
      if (same_column && column_done) continue;
      if (fed != nullptr) ++*fed;
      const FilterNext next = feed(cell, [&](const FilterCell& c) { return use(c, cell); });
      column_done = next == FilterNext::kColumnDone;
      if (next == FilterNext::kRowDone) break;
    }
  };
  run->BeginRow(fixture.EncodeRow(row));
  while (run->NeedsDecision()) {
    read([&](const FilterCell& c, const Cell&) { return run->Decide(c); });
    run->EndDecision();
  }
  Cells out;
  read([&](const FilterCell& c, const Cell& cell) {
    const FilterNext next = run->Feed(c);
    for (const FilterOutput& output : run->outputs()) {
      Cell copy = cell;
      copy.labels = output.labels;
      copy.stripped = output.stripped;
      if (copy.stripped) {
        copy.value.clear();
        if (copy.type != ValueType::kString) copy.type = ValueType::kBytes;
      }
      out.push_back(copy);
    }
    return next;
  });
  return out;
}

Cells RunText(std::string_view text, std::string_view row, const Cells& cells,
              size_t* fed = nullptr) {
  const Fixture fixture;
  const auto filter = Filter::Parse(text);
  INFO(text);
  INFO(filter.status().ToString());
  REQUIRE(filter.ok());
  FilterRun run(**filter, fixture.key_order, fixture.families, 1);
  return RunFilter(fixture, &run, row, cells, fed);
}

Cells SampleRow() {
  Cells cells{{0, "q", 30, ValueType::kI64, "5", {}},
              {0, "q", 20, ValueType::kI64, "7", {}},
              {0, "q", 10, ValueType::kBytes, "x\ny", {}},
              {0, "r", 20, ValueType::kString, "abc", {}},
              {1, "s#2", 15, ValueType::kF64, "0.5", {}},
              {1, "s#1", 15, ValueType::kBool, "true", {}},
              {2, "", 0, ValueType::kUuid, "6ba7b810-9dad-11d1-80b4-00c04fd430c8", {}}};
  for (size_t i = 0; i < cells.size(); ++i) cells[i].position = i;
  return cells;
}

std::vector<size_t> Positions(std::string_view filter) {
  std::vector<size_t> positions;
  for (const Cell& cell : RunText(filter, "row1", SampleRow())) positions.push_back(cell.position);
  return positions;
}

using Places = std::vector<size_t>;

TEST_CASE("Each kind of filter alone", "[filter]") {
  const Places all{0, 1, 2, 3, 4, 5, 6};
  REQUIRE(Positions("pass") == all);
  REQUIRE(Positions("block").empty());
  REQUIRE(Positions("sink") == all);
  REQUIRE(Positions("row ~ \"row\\d\"") == all);
  REQUIRE(Positions("row ~ \"row\"").empty());
  REQUIRE(Positions("row = \"row1\"") == all);
  REQUIRE(Positions("row in [\"row1\",\"row2\")") == all);
  REQUIRE(Positions("row > \"row1\"").empty());
  REQUIRE(Positions("row = 1").empty());
  REQUIRE(Positions("family = \"b\"") == Places{4, 5});
  REQUIRE(Positions("family ~ \"[ac]\"") == Places{0, 1, 2, 3, 6});
  REQUIRE(Positions("family in [\"b\",\"c\")") == Places{4, 5});
  REQUIRE(Positions("qualifier = \"q\"") == Places{0, 1, 2});
  // Of b's order it is the first component.
  REQUIRE(Positions("qualifier != \"q\"") == Places{3, 4, 5, 6});
  REQUIRE(Positions("qualifier in [\"s\",]") == Places{4, 5});
  REQUIRE(Positions("qualifier < \"s#1\"") == Places{0, 1, 2, 3, 4, 6});
  REQUIRE(Positions("qualifier ~ \".*#1\"") == Places{5});
  REQUIRE(Positions("value > 5") == Places{1});
  REQUIRE(Positions("value > 0.25") == Places{0, 1, 4});
  REQUIRE(Positions("value != 5") == Places{1, 4});
  REQUIRE(Positions("value = true") == Places{5});
  REQUIRE(Positions("value = \"abc\"") == Places{3});
  REQUIRE(Positions("value = \"6BA7B810-9dad-11d1-80b4-00c04fd430c8\"") == Places{6});
  REQUIRE(Positions("value != \"abc\"") == Places{2, 6});
  REQUIRE(Positions("value in [5,7)") == Places{0});
  REQUIRE(Positions("value ~ \"[57]\"") == Places{0, 1});
  REQUIRE(Positions("value ~ \"x.y\"").empty());  // a point is no newline
  REQUIRE(Positions("value ~ \"x\\ny\"") == Places{2});
  REQUIRE(Positions("value ~ \"b\"").empty());  // whole match
  REQUIRE(Positions("ts = 20") == Places{1, 3});
  REQUIRE(Positions("ts in [15,20.5]") == Places{1, 3, 4, 5});
  REQUIRE(Positions("ts < 14.5") == Places{2, 6});
  REQUIRE(Positions("ts > 9223372036854775807").empty());
  REQUIRE(Positions("ts >= 9223372036854775808").empty());
  REQUIRE(Positions("ts <= 1e30") == all);
  REQUIRE(Positions("ts != 1e30") == all);
  REQUIRE(Positions("latest(1)") == Places{0, 3, 4, 5, 6});
  REQUIRE(Positions("latest(2)") == Places{0, 1, 3, 4, 5, 6});
  REQUIRE(Positions("limit(2)") == Places{0, 1});
  REQUIRE(Positions("offset(5)") == Places{5, 6});
  REQUIRE(Positions("sample(1)") == all);
  REQUIRE(Positions("sample(0)").empty());
}

TEST_CASE("Chains, interleaves, conditions and sinks", "[filter]") {
  REQUIRE(Positions("latest(1) | value = 7").empty());
  REQUIRE(Positions("value = 7 | latest(1)") == Places{1});
  REQUIRE(Positions("{family = \"a\", value = 5}") == Places{0, 0, 1, 2, 3});
  REQUIRE(Positions("{pass, pass} | limit(3)") == Places{0, 0, 1});
  REQUIRE(Positions("{pass, pass} | latest(1)") == Places{0, 3, 4, 5, 6});
  REQUIRE(Positions("if(value = 7; family = \"b\"; block)") == Places{4, 5});
  REQUIRE(Positions("if(value = 8; family = \"b\"; limit(1))") == Places{0});
  REQUIRE(Positions("if(value = 8; family = \"b\")").empty());
  REQUIRE(Positions("{if(value = true; ts = 30), ts = 20}") == Places{0, 1, 3});
  REQUIRE(Positions("limit(4) | if(value = true; pass; ts = 20)") == Places{1, 3});
  REQUIRE(Positions("if(if(value = true; value = 5); family = \"c\")") == Places{6});
  REQUIRE(Positions("if(value = 5; offset(2)) | if(value = 5; pass; latest(1))") ==
          Places{2, 3, 4, 5, 6});
  REQUIRE(Positions("{value = 5 | sink, pass} | block") == Places{0});
  REQUIRE(Positions("{sink, pass} | limit(1)") == Places{0, 0, 1, 2, 3, 4, 5, 6});
  REQUIRE(Positions("sink | pass") == Places{0, 1, 2, 3, 4, 5, 6});
}

TEST_CASE("Strip empties the value and labels add up", "[filter]") {
  const Cells stripped = RunText("strip", "r", SampleRow());
  REQUIRE(stripped.size() == 7);
  REQUIRE(stripped[0].value.empty());
  REQUIRE(stripped[0].type == ValueType::kBytes);
  REQUIRE(stripped[3].type == ValueType::kString);
  REQUIRE(RunText("strip | value = 5", "r", SampleRow()).empty());
  REQUIRE(RunText("strip | value = \"\"", "r", SampleRow()).size() == 7);
  const Cells labelled =
      RunText("ts = 30 | {label(\"x\") | label(\"y\"), pass} | label(\"z\")", "r", SampleRow());
  REQUIRE(labelled.size() == 2);
  REQUIRE(labelled[0].labels == std::vector<std::string>{"x", "y", "z"});
  REQUIRE(labelled[1].labels == std::vector<std::string>{"z"});
}

TEST_CASE("A filter stops reading as soon as nothing more can come", "[filter]") {
  const auto fed = [](std::string_view filter) {
    size_t count = 0;
    (void)RunText(filter, "row1", SampleRow(), &count);
    return count;
  };
  REQUIRE(fed("pass") == 7);
  REQUIRE(fed("block") == 1);
  REQUIRE(fed("row = \"other\"") == 1);
  REQUIRE(fed("limit(2)") == 2);
  REQUIRE(fed("latest(1)") == 5);
  REQUIRE(fed("latest(1) | limit(2)") == 2);
  REQUIRE(fed("{limit(1), limit(3)}") == 3);
  REQUIRE(fed("{limit(1), sink}") == 7);
  REQUIRE(fed("ts > 25") == 6);
  REQUIRE(fed("family = \"b\"") == 5);
  REQUIRE(fed("if(value = 5; limit(1))") == 1 + 1);  // one to decide, one to give
}

TEST_CASE("Samples depend on the seed and the row alone", "[filter]") {
  const Fixture fixture;
  const auto filter = Filter::Parse("sample(0.3)");
  size_t passed = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::string row = "row" + std::to_string(i);
    FilterRun a(**filter, fixture.key_order, fixture.families, 7);
    FilterRun b(**filter, fixture.key_order, fixture.families, 7);
    const Cells out = RunFilter(fixture, &a, row, SampleRow());
    REQUIRE(out == RunFilter(fixture, &b, row, SampleRow()));
    REQUIRE((out.empty() || out.size() == 7));
    if (!out.empty()) ++passed;
  }
  REQUIRE(passed > 500);
  REQUIRE(passed < 700);
}

TEST_CASE("Timestamps are compared exactly up to the last one", "[filter]") {
  const Cells cells{{0, "q", INT64_MAX, ValueType::kI64, "1", {}, 0},
                    {0, "q", INT64_MAX - 1, ValueType::kI64, "1", {}, 1},
                    {0, "q", 1, ValueType::kI64, "1", {}, 2},
                    {0, "q", 0, ValueType::kI64, "1", {}, 3}};
  const auto places = [&cells](std::string_view filter) {
    Places found;
    for (const Cell& cell : RunText(filter, "r", cells)) found.push_back(cell.position);
    return found;
  };
  const Places all{0, 1, 2, 3};
  REQUIRE(places("ts = 9223372036854775807") == Places{0});
  REQUIRE(places("ts >= 9223372036854775807") == Places{0});
  REQUIRE(places("ts > 9223372036854775806") == Places{0});
  REQUIRE(places("ts > 9223372036854775806.5") == Places{0});
  REQUIRE(places("ts < 9223372036854775807") == Places{1, 2, 3});
  REQUIRE(places("ts != 9223372036854775807") == Places{1, 2, 3});
  REQUIRE(places("ts <= 9223372036854775807.5") == all);
  REQUIRE(places("ts < 9223372036854775807.5") == all);
  REQUIRE(places("ts in [9223372036854775807,]") == Places{0});
  REQUIRE(places("ts in [,9223372036854775807)") == Places{1, 2, 3});
  for (const char* beyond : {"9223372036854775807.5", "9223372036854775808", "1e30"}) {
    INFO(beyond);
    const std::string number = beyond;
    REQUIRE(places("ts > " + number).empty());
    REQUIRE(places("ts >= " + number).empty());
    REQUIRE(places("ts = " + number).empty());
    REQUIRE(places("ts != " + number) == all);
    REQUIRE(places("ts <= " + number) == all);
    REQUIRE(places("ts in [" + number + ",]").empty());
    REQUIRE(places("ts in (" + number + ",1e31]").empty());
  }
  REQUIRE(places("ts > 9223372036854775807").empty());
  REQUIRE(places("ts in (9223372036854775807,]").empty());
  REQUIRE(places("ts in (9223372036854775806,9223372036854775807)").empty());
  for (const char* before : {"-0.5", "-1", "-1e30"}) {
    INFO(before);
    const std::string number = before;
    REQUIRE(places("ts > " + number) == all);
    REQUIRE(places("ts >= " + number) == all);
    REQUIRE(places("ts = " + number).empty());
    REQUIRE(places("ts != " + number) == all);
    REQUIRE(places("ts < " + number).empty());
    REQUIRE(places("ts in [," + number + "]").empty());
  }
  REQUIRE(places("ts < 0.5") == Places{3});
  REQUIRE(places("ts > 0.5") == Places{0, 1, 2});
  REQUIRE(places("ts != 0.5") == all);
}

TEST_CASE("A hostile expression over a large value costs linear time", "[filter]") {
  Cells cells{{0, "q", 1, ValueType::kBytes, std::string(1'000'000, 'a') + "c", {}}};
  REQUIRE(RunText("value ~ \"(a*)*b\"", "r", cells).empty());
  REQUIRE(RunText("value ~ \"(a|aa)*(a|aaa)*c\"", "r", cells).size() == 1);
}

// --- Random filters against the model -----------------------------------------------------------

using Model = std::function<Cells(const Cells&, Cells* sunk)>;

Cells InOrder(Cells cells) {
  std::stable_sort(cells.begin(), cells.end(),
                   [](const Cell& a, const Cell& b) { return a.position < b.position; });
  return cells;
}

Model Keep(std::function<bool(const Cell&)> keeps) {
  return [keeps](const Cells& in, Cells*) {
    Cells out;
    for (const Cell& cell : in) {
      if (keeps(cell)) out.push_back(cell);
    }
    return out;
  };
}

struct Maker {
  Random* random;
  const Fixture* fixture;
  bool may_sink{true};

  Model Filter(int depth, std::string* text) {
    std::vector<Model> steps;
    const uint64_t count = 1 + random->Below(3);
    for (uint64_t i = 0; i < count; ++i) {
      if (i > 0) *text += " | ";
      steps.push_back(Step(depth, text));
    }
    return [steps](const Cells& in, Cells* sunk) {
      Cells cells = in;
      for (const Model& step : steps) cells = step(cells, sunk);
      return cells;
    };
  }

  Model Step(int depth, std::string* text) {
    if (depth > 0) {
      switch (random->Below(5)) {
        case 0:
          return Interleave(depth, text);
        case 1:
          return If(depth, text);
        case 2: {
          *text += "(";
          Model inner = Filter(depth - 1, text);
          *text += ")";
          return inner;
        }
        default:
          break;
      }
    }
    return random->OneIn(3) ? Simple(text) : Comparison(text);
  }

  Model Interleave(int depth, std::string* text) {
    std::vector<Model> branches;
    const uint64_t count = 1 + random->Below(3);
    *text += "{";
    for (uint64_t i = 0; i < count; ++i) {
      if (i > 0) *text += ", ";
      branches.push_back(Filter(depth - 1, text));
    }
    *text += "}";
    return [branches](const Cells& in, Cells* sunk) {
      Cells all;
      for (const Model& branch : branches) {
        for (Cell& cell : branch(in, sunk)) all.push_back(std::move(cell));
      }
      return InOrder(std::move(all));
    };
  }

  Model If(int depth, std::string* text) {
    const bool could_sink = may_sink;
    may_sink = false;
    *text += "if(";
    const Model condition = Filter(depth - 1, text);
    *text += "; ";
    const Model then = Filter(depth - 1, text);
    Model otherwise = [](const Cells&, Cells*) { return Cells(); };
    if (random->OneIn(2)) {
      *text += "; ";
      otherwise = Filter(depth - 1, text);
    }
    *text += ")";
    may_sink = could_sink;
    return [condition, then, otherwise](const Cells& in, Cells* sunk) {
      return condition(in, sunk).empty() ? otherwise(in, sunk) : then(in, sunk);
    };
  }

  Model Simple(std::string* text) {
    const size_t count = 1 + random->Below(4);
    const std::string number = std::to_string(count);
    switch (random->Below(may_sink ? 7 : 6)) {
      case 0:
        *text += "pass";
        return Keep([](const Cell&) { return true; });
      case 1:
        *text += "limit(" + number + ")";
        return [count](const Cells& in, Cells*) {
          return Cells(in.begin(), in.begin() + static_cast<ptrdiff_t>(std::min(count, in.size())));
        };
      case 2:
        *text += "offset(" + number + ")";
        return [count](const Cells& in, Cells*) {
          return Cells(in.begin() + static_cast<ptrdiff_t>(std::min(count, in.size())), in.end());
        };
      case 3:
        *text += "latest(" + number + ")";
        return [count](const Cells& in, Cells*) {
          Cells out;
          size_t seen = 0;
          for (size_t i = 0; i < in.size(); ++i) {
            const bool same =
                i > 0 && in[i].family == in[i - 1].family && in[i].qualifier == in[i - 1].qualifier;
            seen = same ? seen + 1 : 1;
            if (seen <= count) out.push_back(in[i]);
          }
          return out;
        };
      case 4:
        *text += "strip";
        return [](const Cells& in, Cells*) {
          Cells out = in;
          for (Cell& cell : out) {
            cell.stripped = true;
            cell.value.clear();
            if (cell.type != ValueType::kString) cell.type = ValueType::kBytes;
          }
          return out;
        };
      case 5:
        *text += "label(\"l" + number + "\")";
        return [number](const Cells& in, Cells*) {
          Cells out = in;
          for (Cell& cell : out) cell.labels.push_back("l" + number);
          return out;
        };
      default:
        *text += "sink";
        return [](const Cells& in, Cells* sunk) {
          sunk->insert(sunk->end(), in.begin(), in.end());
          return Cells();
        };
    }
  }

  Model Comparison(std::string* text) {
    const int64_t number = static_cast<int64_t>(random->Below(5));
    const uint64_t which = random->Below(6);
    const std::string ops[] = {"=", "!=", "<", "<=", ">", ">="};
    const auto op = static_cast<CompareOp>(which);
    const std::string symbol = " " + ops[which] + " ";
    switch (random->Below(5)) {
      case 0:
        *text += "ts" + symbol + std::to_string(number * 10);
        return Keep([=](const Cell& cell) {
          return CompareHolds(op, cell.timestamp < number * 10 ? -1 : cell.timestamp > number * 10);
        });
      case 1: {
        const std::string name(1, "abc"[random->Below(3)]);
        *text += "family" + symbol + "\"" + name + "\"";
        const Fixture* f = fixture;
        return Keep([=](const Cell& cell) {
          return CompareHolds(op, std::string(f->families[cell.family].name).compare(name));
        });
      }
      case 2: {
        const std::string name(1, "pqr"[random->Below(3)]);
        *text += "qualifier ~ \"[" + name + "].*\"";
        return Keep([=](const Cell& cell) { return cell.qualifier.starts_with(name); });
      }
      case 3: {
        const std::string low(1, "pqr"[random->Below(3)]);
        *text += "qualifier in [\"" + low + "\",)";
        const Fixture* f = fixture;
        return Keep([=](const Cell& cell) {
          const std::string part = cell.family == 1
                                       ? cell.qualifier.substr(0, cell.qualifier.find('#'))
                                       : cell.qualifier;
          return f != nullptr && part >= low;
        });
      }
      default:
        *text += "value" + symbol + std::to_string(number);
        return Keep([=](const Cell& cell) {
          if (cell.type != ValueType::kI64) return false;
          return CompareHolds(op, static_cast<int>(std::stoll(cell.value) - number));
        });
    }
  }
};

Cells RandomRow(Random* random) {
  Cells cells;
  const std::string qualifiers[3][4] = {
      {"", "p1", "q", "r"}, {"p#9", "p#1", "q#7", "r#0"}, {"o", "p", "pp", "rr"}};
  for (uint32_t family = 0; family < 3; ++family) {
    for (const std::string& qualifier : qualifiers[family]) {
      if (random->OneIn(2)) continue;
      for (int64_t timestamp = 50; timestamp >= 0; timestamp -= 10) {
        if (!random->OneIn(3)) continue;
        Cell cell{family, qualifier, timestamp, ValueType::kI64, "", {}};
        cell.value = std::to_string(random->Below(6));
        if (random->OneIn(3)) cell.type = random->OneIn(2) ? ValueType::kString : ValueType::kBytes;
        cell.position = cells.size();
        cells.push_back(cell);
      }
    }
  }
  return cells;
}

// Leaves out what the bounds say cannot matter.
Cells WithinBounds(const Fixture& fixture, const FilterBounds& bounds, std::string_view row,
                   const Cells& cells) {
  Cells within;
  if (!bounds.rows.Contains(fixture.EncodeRow(row))) return within;
  uint64_t versions = 0;
  const Cell* last = nullptr;
  for (const Cell& cell : cells) {
    if (!bounds.qualifiers[cell.family].Contains(fixture.EncodeQualifier(cell))) continue;
    if (cell.timestamp < bounds.timestamp_min || cell.timestamp > bounds.timestamp_max) continue;
    const bool same =
        last != nullptr && last->family == cell.family && last->qualifier == cell.qualifier;
    versions = same ? versions + 1 : 1;
    last = &cell;
    if (versions <= bounds.latest_max) within.push_back(cell);
  }
  return within;
}

TEST_CASE("Random filters give what the model gives, also within their bounds and after printing",
          "[filter]") {
  const uint64_t seed = 190'733;
  INFO("seed " << seed);
  Random random(seed);
  const Fixture fixture;
  size_t survivors = 0;
  size_t left_out = 0;
  for (int round = 0; round < 3000; ++round) {
    Maker maker{&random, &fixture};
    std::string text;
    const Model model = maker.Filter(static_cast<int>(random.Below(4)), &text);
    INFO(text);
    auto filter = Filter::Parse(text);
    if (!filter.ok()) continue;  // one cell could become too many
    auto printed = Filter::Parse((*filter)->ToString());
    REQUIRE(printed.ok());
    FilterRun run(**filter, fixture.key_order, fixture.families, 1);
    FilterRun printed_run(**printed, fixture.key_order, fixture.families, 1);
    const FilterBounds bounds = AnalyzeFilter(**filter, fixture.key_order, fixture.families);
    for (int i = 0; i < 5; ++i) {
      const Cells row = RandomRow(&random);
      Cells sunk;
      Cells expected = model(row, &sunk);
      expected.insert(expected.end(), sunk.begin(), sunk.end());
      expected = InOrder(std::move(expected));
      if (RunFilter(fixture, &run, "row", row) != expected) FAIL("evaluation");
      if (RunFilter(fixture, &printed_run, "row", row) != expected) FAIL("printing");
      const Cells within = WithinBounds(fixture, bounds, "row", row);
      if (RunFilter(fixture, &run, "row", within) != expected) FAIL("bounds");
      survivors += expected.size();
      left_out += row.size() - within.size();
    }
  }
  REQUIRE(survivors > 10'000);
  REQUIRE(left_out > 10'000);
}

// What RE2 says of a pattern's literal beginning does not hold where what follows looks back at it.
TEST_CASE("Rows and qualifiers that match a pattern are within its bounds", "[filter]") {
  const uint64_t seed = 81'551;
  INFO("seed " << seed);
  Random random(seed);
  const Fixture fixture;
  constexpr std::string_view kPieces[]{"a",     "b",      "ab",        "user",   "#",     "-",
                                       "\\\\b", "\\\\B",  "^",         "$",      "\\\\A", "\\\\z",
                                       ".*",    "[ab#-]", "(a|b)",     "\\\\W",  "+",     "(?i)",
                                       "(?m)",  "(?i:a)", "(\\\\b|x)", "(?:^|#)"};
  constexpr std::string_view kTexts[]{"",       "a",      "b",      "A",   "ab",     "aB",
                                      "user",   "users",  "a#",     "a-b", "user-1", "user#2",
                                      "user:3", "user 4", "user~5", "a\nb"};
  size_t matches = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string pattern = random.OneIn(2) ? "^" : "";
    for (uint64_t left = 1 + random.Below(5); left > 0; --left)
      pattern += kPieces[random.Below(std::size(kPieces))];
    const bool is_row = random.OneIn(2);
    const auto filter = Filter::Parse((is_row ? "row ~ \"" : "qualifier ~ \"") + pattern + "\"");
    if (!filter.ok()) continue;
    INFO(pattern);
    FilterRun run(**filter, fixture.key_order, fixture.families, 1);
    const FilterBounds bounds = AnalyzeFilter(**filter, fixture.key_order, fixture.families);
    for (const std::string_view text : kTexts) {
      const Cells row{{0, is_row ? "q" : std::string(text), 10, ValueType::kI64, "1", {}}};
      const std::string key(is_row ? text : "row");
      if (RunFilter(fixture, &run, key, row).empty()) continue;
      ++matches;
      if (WithinBounds(fixture, bounds, key, row).empty())
        FAIL("'" + std::string(text) + "' is left out");
    }
  }
  REQUIRE(matches > 1'000);
}

TEST_CASE("Bounds follow from the expression", "[filter]") {
  const Fixture fixture;
  const auto analyze = [&](std::string_view text) {
    const auto filter = Filter::Parse(text);
    REQUIRE(filter.ok());
    return AnalyzeFilter(**filter, fixture.key_order, fixture.families);
  };
  const auto row = [&](std::string_view text) { return fixture.EncodeRow(text); };
  FilterBounds bounds = analyze("latest(1) | limit(5) | row in [\"b\",\"d\")");
  REQUIRE_FALSE(bounds.rows.Contains(row("a")));
  REQUIRE(bounds.rows.Contains(row("b")));
  REQUIRE_FALSE(bounds.rows.Contains(row("d")));
  REQUIRE(bounds.latest_max == 1);
  bounds = analyze("row ~ \"user1.*\" | family = \"a\" | ts >= 10");
  REQUIRE(bounds.rows.Contains(row("user10")));
  REQUIRE_FALSE(bounds.rows.Contains(row("user20")));
  REQUIRE(bounds.qualifiers[0].all());
  REQUIRE(bounds.qualifiers[1].empty());
  REQUIRE(bounds.timestamp_min == 10);
  bounds = analyze("limit(1) | family = \"a\"");
  REQUIRE(bounds.qualifiers[1].all());
  bounds = analyze("{row = \"a\", row = \"c\"}");
  REQUIRE(bounds.rows.ranges().size() == 2);
  bounds = analyze("{row = \"a\" | sink, pass} | row = \"b\"");
  REQUIRE(bounds.rows.all());
  bounds = analyze("ts != 5 | latest(1)");
  REQUIRE(bounds.latest_max == UINT64_MAX);
  bounds = analyze("if(family = \"a\"; family = \"b\")");
  REQUIRE(bounds.qualifiers[2].empty());
  REQUIRE(bounds.qualifiers[0].all());
}

}  // namespace filter_run_test
