// See explain.h.
#include "engine/scans/explain.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string_view>

#include "base/assert.h"
#include "base/text/ascii.h"
#include "engine/keys/value.h"
#include "engine/rows/row_reader.h"
#include "engine/scans/scan_ranges.h"
#include "engine/schema/column_set.h"
#include "engine/table/index_entry.h"

namespace cellar {
namespace {

constexpr uint64_t kEntriesCounted{256};
constexpr size_t kSplitParts{128};

// The text of the bytes of a bound, if they are whole components.
using BoundDecoder = std::function<std::optional<std::string>(std::string_view)>;

std::optional<std::string> DecodeEntryKey(const IndexOrder& index, const Order& key,
                                          std::string_view bytes) {
  size_t values_bytes = 0;
  std::string text;
  for (const IndexOrder::Value& value : index.DecodeFirst(bytes, &values_bytes)) {
    if (!text.empty()) text.push_back(' ');
    AppendValueText(value.type, value.stored, &text);
  }
  if (values_bytes == bytes.size() && !bytes.empty()) return text;
  const std::optional<std::string> row = DecodeFirstComponents(key, bytes.substr(values_bytes));
  if (!row) return std::nullopt;
  if (!text.empty()) text.push_back(' ');
  return text + *row;
}

std::string Escaped(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    if (IsPrintable(c) && c != '\\') {
      text.push_back(c);
    } else {
      text += "\\x";
      AppendHex(c, &text);
    }
  }
  return text;
}

// The bytes stand before (after, at the front) all keys with these components; or they are one
// more than the last of them; or they end inside a text.
std::string BoundText(const KeyBound& bound, BoundSide side, const BoundDecoder& decode) {
  if (bound.at_end) return "+";
  if (bound.bytes.empty()) return "-";
  const char before = side == BoundSide::kMin ? '[' : '(';
  const char behind = side == BoundSide::kMin ? '(' : '[';
  if (const auto text = decode(bound.bytes)) return before + *text;
  std::string bytes = bound.bytes;
  if (bytes.back() != '\0') {
    --bytes.back();
    if (const auto text = decode(bytes)) return behind + *text;
  }
  bytes = bound.bytes;
  bytes += {'\0', '\x01'};
  if (const auto text = decode(bytes)) return before + *text;
  return before + Escaped(bound.bytes);
}

std::vector<std::string> ColumnTexts(const TableSchema& schema, const ColumnSet& columns) {
  std::vector<std::string> texts;
  for (const ColumnSet::Family& chosen : columns.families()) {
    const FamilySchema& family = schema.families[chosen.index];
    if (chosen.whole) texts.push_back(family.name);
    for (const KeyRange& range : chosen.ranges) {
      std::string text;
      const bool whole = family.order.EncodedSize(range.begin.bytes) == range.begin.bytes.size();
      if (whole && !range.begin.bytes.empty() && range == PrefixRange(range.begin.bytes) &&
          family.order.Decode(range.begin.bytes, &text)) {
        texts.push_back(family.name + ":" + text);
        continue;
      }
      const auto decode = [&](std::string_view bytes) {
        return DecodeFirstComponents(family.order, bytes);
      };
      texts.push_back(family.name + " " + BoundText(range.begin, BoundSide::kMin, decode) + " " +
                      BoundText(range.end, BoundSide::kMax, decode));
    }
  }
  return texts;
}

// Entries of the tree in the ranges.
uint64_t EstimateEntries(const BTree& tree, const std::vector<KeyRange>& ranges) {
  BTreeCursor at(tree);
  uint64_t walked = 0;
  for (const KeyRange& range : ranges) {
    for (at.Seek(range.begin.bytes); at.valid() && range.contains(at.key()); at.Next()) {
      if (++walked == kEntriesCounted) break;
    }
    if (walked == kEntriesCounted) break;
  }
  if (walked < kEntriesCounted) return walked;
  // Beyond that, by how many of the keys that cut the tree evenly lie in the ranges.
  const std::vector<std::string> splits = tree.SplitKeys(kSplitParts);
  const auto inside = static_cast<uint64_t>(
      std::count_if(splits.begin(), splits.end(), [&](const std::string& key) {
        return std::any_of(ranges.begin(), ranges.end(),
                           [&](const KeyRange& range) { return range.contains(key); });
      }));
  if (inside == splits.size()) return tree.entries();
  return std::max(walked, tree.entries() * inside / (splits.size() + 1));
}

// Cells of the families that are read, and of all families of their groups: what is walked over.
struct Shares {
  uint64_t wanted{0};
  uint64_t total{0};
};

Shares CellShares(const Table& table, const TableSchema& schema, const ColumnSet& columns) {
  Shares shares;
  for (const ColumnSet::Family& chosen : columns.families()) {
    const FamilySchema* family = table.schema().FindFamilyById(schema.families[chosen.index].id);
    CELLAR_ASSERT(family != nullptr);
    shares.wanted += table.family_counters(*family).cells;
  }
  shares.total = std::max<uint64_t>(table.cells(), 1);
  return shares;
}

// What EXPLAIN expects, from counters and the shape of trees, without reading a row. Rows are taken
// to be alike.
void Estimate(const Table& table, const TableSchema& schema, const ScanShape& shape,
              Explanation* explanation) {
  const ColumnSet& columns = shape.plan->choice.columns;
  const uint64_t rows_all = std::max<uint64_t>(table.counters().rows, 1);
  const Shares shares = CellShares(table, schema, columns);
  if (shape.index_order != nullptr) {
    const Index* index = table.indexes()->Find(table.schema().FindIndex(explanation->index)->id);
    explanation->rows_estimated = EstimateEntries(index->entries(), *shape.ranges);
    if (shape.cells_from == "nothing") return;
  } else {
    std::vector<bool> counted(table.groups());
    uint64_t entries = 0;
    uint64_t entries_all = 0;
    for (const ColumnSet::Family& chosen : columns.families()) {
      const size_t group = schema.families[chosen.index].group;
      if (counted[group]) continue;
      counted[group] = true;
      entries += EstimateEntries(table.tree(group), *shape.ranges);
      entries_all += table.tree(group).entries();
    }
    // A few entries of one row are one row.
    const double share =
        static_cast<double>(entries) / static_cast<double>(std::max<uint64_t>(entries_all, 1));
    explanation->rows_estimated =
        static_cast<uint64_t>(std::llround(share * static_cast<double>(rows_all)));
    if (entries > 0)
      explanation->rows_estimated = std::max<uint64_t>(1, explanation->rows_estimated);
  }
  const double cells_of_row = static_cast<double>(shares.wanted) / static_cast<double>(rows_all);
  explanation->cells_estimated = static_cast<uint64_t>(
      std::llround(static_cast<double>(explanation->rows_estimated) * cells_of_row));
}

// `pushed` is what narrows the ranges that are read, `checked` what is asked of each row or cell
// that was read. A FILTER can be in both: what it says of rows, columns, time and versions is
// pushed, and the cells are held against all of it once more.
void TellPushed(const TableSchema& schema, const ScanShape& shape, const RowOptions& rows,
                const CellOptions& cells, Explanation* explanation) {
  const CellPlan& plan = *shape.plan;
  std::vector<std::string>& pushed = explanation->pushed;
  std::vector<std::string>& checked = explanation->checked;
  if (!rows.rows.empty()) pushed.emplace_back("rows");
  if (rows.index && !rows.index->equal.empty()) pushed.emplace_back("EQ");
  if (rows.index && rows.index->between) pushed.emplace_back("BETWEEN");
  if (rows.index && !rows.index->from.empty()) pushed.emplace_back("FROM");
  if (rows.each) pushed.emplace_back("EACH");
  if (!cells.columns.empty()) pushed.emplace_back("columns");
  if (cells.filter) {
    const Result<ColumnSet> columns = ColumnSet::Compile(schema, cells.columns);
    const bool narrowed = columns.ok() && ColumnTexts(schema, *columns) != explanation->columns;
    const bool rows_narrowed = plan.rows.has_value() && !plan.rows->all();
    if (rows_narrowed && shape.index_order == nullptr) pushed.emplace_back("FILTER rows");
    if (narrowed) pushed.emplace_back("FILTER columns");
    const TimeRange& time = plan.choice.time;
    if (time.min_micros != cells.time.min_micros || time.max_micros != cells.time.max_micros) {
      pushed.emplace_back("FILTER time");
    }
    if (plan.choice.versions_max != cells.versions_max.value_or(kUnlimited)) {
      pushed.emplace_back("FILTER versions");
    }
    checked.emplace_back("FILTER");
  }
  if (!cells.time.all()) checked.emplace_back("TIME");
  if (shape.by_where) pushed.emplace_back("WHERE");
  for (size_t i = 0; i < shape.conditions_checked; ++i) {
    checked.emplace_back(i < shape.conditions_of_entries ? "WHERE of entries" : "WHERE");
  }
  if (rows.sample) checked.emplace_back("SAMPLE");
}

}  // namespace

Explanation Explain(const Table& table, const TableSchema& schema, const Scan& scan,
                    const RowOptions& rows, const CellOptions& cells) {
  const ScanShape shape = scan.shape();
  Explanation explanation;
  explanation.index = scan.stats().index;
  explanation.cells_from = shape.cells_from;
  explanation.reverse = rows.reverse;
  const BoundDecoder decode = [&](std::string_view bytes) {
    return shape.index_order == nullptr ? DecodeFirstComponents(schema.key, bytes)
                                        : DecodeEntryKey(*shape.index_order, schema.key, bytes);
  };
  for (const KeyRange& range : *shape.ranges) {
    explanation.bounds.emplace_back(BoundText(range.begin, BoundSide::kMin, decode),
                                    BoundText(range.end, BoundSide::kMax, decode));
  }
  explanation.columns = ColumnTexts(schema, shape.plan->choice.columns);
  for (size_t number = 0; number < shape.groups.size(); ++number) {
    if (shape.groups[number]) explanation.groups.push_back(schema.groups[number].name);
  }
  std::sort(explanation.groups.begin(), explanation.groups.end());
  TellPushed(schema, shape, rows, cells, &explanation);
  Estimate(table, schema, shape, &explanation);
  return explanation;
}

}  // namespace cellar
