// AggregateRig: a table of its own, cells by their texts, and the answers of a CAGG as text.
//
// What is in the table is kept as a list of cells too, so that a test can work the answer out anew.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/text/number.h"
#include "engine/aggregate/aggregate_fold.h"
#include "engine/aggregate/aggregate_plan.h"
#include "engine/aggregate/aggregate_result.h"
#include "engine/keys/cell.h"
#include "engine/scans/index_scan.h"
#include "engine/schema/column_set.h"
#include "engine/state/engine.h"
#include "engine/table/read_view.h"

namespace aggregate_rig {

inline constexpr uint64_t kTableId{1};
inline constexpr int64_t kNow{1'700'000'000'000'000};

struct Cell {
  std::string row;
  std::string family;
  std::string qualifier;
  int64_t timestamp{0};
  cellar::ValueType type{cellar::ValueType::kBytes};
  std::string text;
  int64_t expiry{cellar::kNoExpiry};
};

struct Family {
  std::string name;
  std::string order{"bytes"};
  std::string policy{};
  uint32_t group{0};
  // Packs what is long; has no TYPE but for these columns, i64.
  bool packs{false};
  std::vector<std::string> numbers{};
};

class Rig {
 public:
  Rig(const std::string& key, const std::vector<Family>& families) {
    cellar::TableSchema schema;
    schema.key = *cellar::Order::Parse(key);
    schema.groups = {{std::string(cellar::kDefaultGroup), 1}, {"other", 2}};
    for (const Family& said : families) {
      cellar::FamilySchema family;
      family.id = schema.family_id_next++;
      family.name = said.name;
      family.group = said.group;
      family.order = *cellar::Order::Parse(said.order);
      if (!said.policy.empty()) family.policy = *cellar::RetentionPolicy::Parse(said.policy);
      if (said.packs) family.compression = cellar::Compression::kLz4;
      for (const std::string& column : said.numbers) {
        family.columns.push_back({{}, cellar::ValueType::kI64});
        REQUIRE(cellar::EncodeQualifier(family, column, &family.columns.back().qualifier).ok());
      }
      schema.families.push_back(std::move(family));
    }
    std::sort(schema.families.begin(), schema.families.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    std::string bytes;
    cellar::EncodeTableSchema(schema, &bytes);
    cellar::MutationBuilder mutation;
    mutation.CreateTable("0", "t", kTableId, bytes);
    REQUIRE(engine_.Apply(mutation.payload()).ok());
  }

  cellar::Table& table() { return *engine_.FindTableById(kTableId); }
  const cellar::TableSchema& schema() { return table().schema(); }
  const std::vector<Cell>& cells() const { return cells_; }

  void Put(const Cell& cell) {
    const cellar::FamilySchema& family = *schema().FindFamily(cell.family);
    std::string row;
    std::string qualifier;
    std::string stored;
    std::string value;
    REQUIRE(cellar::EncodeRowKey(schema(), cell.row, &row).ok());
    REQUIRE(cellar::EncodeQualifier(family, cell.qualifier, &qualifier).ok());
    REQUIRE(cellar::ParseValue(cell.type, cell.text, &stored).ok());
    cellar::CellValue cell_value;
    cell_value.type = cell.type;
    cell_value.stored = stored;
    cell_value.expiry_micros = cell.expiry;
    if (cellar::Packs(family.compression)) {
      if (const auto packed = packer_.Pack(family.compression, stored)) {
        cell_value.stored = *packed;
        cell_value.packed = cellar::kCellCompressed;
      }
    }
    cellar::PutCellValue(&value, cell_value);
    cellar::MutationBuilder mutation;
    mutation.Row(kTableId, row);
    mutation.Put(family.id, qualifier, cell.timestamp, value);
    REQUIRE(engine_.Apply(mutation.payload()).ok());
    cells_.push_back(cell);
  }

 private:
  cellar::Engine engine_;
  cellar::ValuePacker packer_;
  std::vector<Cell> cells_;
};

inline cellar::GroupTerm Term(cellar::GroupTerm::Kind kind, uint64_t count = 0) {
  cellar::GroupTerm term;
  term.kind = kind;
  term.count = count;
  return term;
}

// `target`: "*", a family, or family:qualifier.
inline cellar::Reduce Function(cellar::Reduce::Function function, std::string_view target) {
  cellar::Reduce reduce;
  reduce.function = function;
  const size_t colon = target.find(':');
  if (target == "*") return reduce;
  reduce.target = cellar::Reduce::Target::kFamily;
  reduce.family = target.substr(0, colon);
  if (colon == std::string_view::npos) return reduce;
  reduce.target = cellar::Reduce::Target::kColumn;
  reduce.qualifier = target.substr(colon + 1);
  return reduce;
}

inline std::string Show(const cellar::AggregateValue& value) {
  using Kind = cellar::AggregateValue::Kind;
  switch (value.kind) {
    case Kind::kNull:
      return "null";
    case Kind::kText:
      return value.text;
    case Kind::kCell:
      return cellar::ValueText(value.type, value.text);
    case Kind::kInteger:
    case Kind::kBool:
      return cellar::FormatInt64(static_cast<int64_t>(value.integer));
    case Kind::kDouble:
    case Kind::kFloat32:
      return cellar::FormatDouble(value.floating);
    default: {
      std::string text;
      for (const double number : value.doubles) text += cellar::FormatDouble(number) + " ";
      for (const uint64_t count : value.counts) text += cellar::FormatUint64(count) + " ";
      return text;
    }
  }
}

// A group by its values, "a/5d", and what its functions came to, "1 2".
using Answer = std::pair<std::string, std::string>;
inline Answer Show(const cellar::AggregatePlan& plan, const cellar::AggregateGroup& group) {
  Answer answer;
  for (const cellar::AggregateValue& value : GroupValues(plan, group)) {
    answer.first += (answer.first.empty() ? "" : "/") + Show(value);
    // 5 and 5.0 are two groups.
    if (value.kind == cellar::AggregateValue::Kind::kDouble) answer.first += "d";
  }
  for (const cellar::PlannedReduce& reduce : plan.reduces)
    answer.second += (answer.second.empty() ? "" : " ") + Show(ReduceValue(plan, reduce, group));
  return answer;
}
inline std::map<std::string, std::string> Show(const cellar::AggregatePlan& plan,
                                               const cellar::AggregateGroups& groups) {
  std::map<std::string, std::string> answers;
  for (const cellar::AggregateGroup* group : groups.all()) {
    const bool is_new = answers.insert(Show(plan, *group)).second;
    REQUIRE(is_new);
  }
  return answers;
}

// What a scan gives out, folded cell by cell: the plain way, which all others must come to.
inline void FoldScan(cellar::Scan& scan, cellar::AggregateFold* fold) {
  for (;;) {
    const cellar::ScanStep step = scan.Next();
    REQUIRE(step != cellar::ScanStep::kPause);
    if (step == cellar::ScanStep::kEnd) return;
    if (step == cellar::ScanStep::kRow) {
      fold->BeginRow();
      continue;
    }
    const cellar::ScanCell& cell = scan.cell();
    const cellar::RawCell& raw = scan.raw_cell();
    fold->SetRowKey(scan.row_key());
    fold->Add(raw.family, raw.qualifier, cell.timestamp_micros, cell.type, cell.stored);
  }
}

inline std::map<std::string, std::string> FoldRows(Rig& rig,
                                                   const cellar::AggregateRequest& request,
                                                   const cellar::RowOptions& rows,
                                                   const cellar::CellOptions& cells) {
  const cellar::AggregatePlan plan =
      *cellar::AggregatePlan::Compile(rig.schema(), request, cells.columns, false);
  cellar::ReadView view(rig.table(), kNow);
  cellar::AggregateGroups groups(plan);
  if (plan.terms.empty()) (void)groups.Find({}, 0);
  cellar::AggregateFold fold(plan, view, &groups);
  auto scan = cellar::OpenScan(&view, rows, cells, nullptr, 1);
  REQUIRE(scan.ok());
  FoldScan(**scan, &fold);
  return Show(plan, groups);
}

// Rows d0#0 to d6#29 with columns of two families, f by name and g by name and number. Of many
// there are several versions, and some values are no numbers.
inline void FillAtRandom(Rig* rig, cellar::Random& random, size_t cells) {
  std::set<std::string> stored;  // no cell twice
  while (cells > 0) {
    Cell cell;
    cell.row =
        "d" + cellar::FormatUint64(random.Below(7)) + "#" + cellar::FormatUint64(random.Below(30));
    cell.family = random.OneIn(2) ? "f" : "g";
    cell.qualifier = "q" + cellar::FormatUint64(random.Below(4));
    if (cell.family == "g") cell.qualifier += "#" + cellar::FormatUint64(random.Below(3));
    cell.timestamp = kNow - static_cast<int64_t>(random.Below(20)) * 1'000'000;
    cell.type = random.OneIn(5) ? cellar::ValueType::kF64 : cellar::ValueType::kI64;
    cell.text = cellar::FormatInt64(static_cast<int64_t>(random.Below(200)) - 100);
    if (random.OneIn(10)) {
      cell.type = cellar::ValueType::kString;
      cell.text = "text";
    }
    --cells;
    if (!stored.insert(cell.row + " " + cell.qualifier + cellar::FormatInt64(cell.timestamp))
             .second)
      continue;
    rig->Put(cell);
  }
}

}  // namespace aggregate_rig
