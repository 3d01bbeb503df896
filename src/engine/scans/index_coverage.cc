// See index_coverage.h.
#include "engine/scans/index_coverage.h"

#include <algorithm>
#include <utility>

#include "engine/table/index_entry.h"

namespace cellar {
namespace {

// Is the column, all of it, among those?
bool IsAmong(const TableSchema& schema, const IndexColumn& column, const ColumnSet& columns) {
  return std::any_of(
      columns.families().begin(), columns.families().end(), [&](const ColumnSet::Family& family) {
        if (schema.families[family.index].id != column.family_id) return false;
        if (family.whole) return true;
        return !column.whole_family &&
               std::any_of(family.ranges.begin(), family.ranges.end(),
                           [&](const KeyRange& range) { return range.contains(column.qualifier); });
      });
}

// Does an entry of an index of rows mean that its row has a live cell that may be read?
bool StoredIsLive(const ReadView& view) {
  const std::vector<FamilySchema>& families = view.schema().families;
  return !view.hides_families() &&
         std::all_of(families.begin(), families.end(),
                     [&](const FamilySchema& family) { return view.all_live(family); });
}

bool IsWholeTable(const TableSchema& schema, const ColumnSet& columns) {
  const std::vector<ColumnSet::Family>& families = columns.families();
  return families.size() == schema.families.size() &&
         std::all_of(families.begin(), families.end(),
                     [](const ColumnSet::Family& family) { return family.whole; });
}

bool NamesHiddenFamily(const TableSchema& schema, const IndexSchema& index) {
  return std::any_of(index.include.begin(), index.include.end(), [&](const IndexColumn& column) {
    return schema.FindFamilyById(column.family_id) == nullptr;
  });
}

}  // namespace

std::vector<IndexColumn> EntryColumns(const TableSchema& schema, const IndexSchema& index) {
  if (!index.include.empty() || index.of_rows()) return IncludedColumns(schema, index);
  if (index.of_qualifiers()) return {};
  IndexSchema keys_alone;
  keys_alone.on = keys_alone.include = index.on;
  return IncludedColumns(schema, keys_alone);
}

bool HoldsAll(const TableSchema& schema, const std::vector<IndexColumn>& held,
              const ColumnSet& columns) {
  const auto holds = [&](uint32_t family_id, const KeyRange* range) {
    return std::any_of(held.begin(), held.end(), [&](const IndexColumn& column) {
      if (column.family_id != family_id) return false;
      // Any range but a single column may have columns that no entry includes.
      return column.whole_family || (range != nullptr && *range == PrefixRange(column.qualifier));
    });
  };
  for (const ColumnSet::Family& family : columns.families()) {
    const uint32_t id = schema.families[family.index].id;
    if (family.whole && !holds(id, nullptr)) return false;
    for (const KeyRange& range : family.ranges) {
      if (!holds(id, &range)) return false;
    }
  }
  return !held.empty();
}

bool AnswersCondition(const TableSchema& schema, const IndexSchema& index,
                      const std::vector<IndexColumn>& held, const Condition& condition) {
  // An index of rows lists those too that hold nothing but what retention has dropped.
  if (condition.asks_for_row()) return !index.of_rows();
  const std::optional<Condition::Column> asked = condition.column();
  if (!asked) return false;
  const uint32_t family_id = schema.families[asked->family].id;
  return std::any_of(held.begin(), held.end(), [&](const IndexColumn& column) {
    return column.family_id == family_id &&
           (column.whole_family || column.qualifier == asked->qualifier);
  });
}

bool TellsOfRow(const ReadView& view, const IndexSchema& index, const ColumnSet& columns) {
  if (index.of_rows()) return IsWholeTable(view.schema(), columns) && StoredIsLive(view);
  return std::any_of(index.on.begin(), index.on.end(),
                     [&](const IndexColumn& on) { return IsAmong(view.schema(), on, columns); });
}

// What IndexScan::FindSource decides, asked before there is a scan.
bool CoversCells(const ReadView& view, const IndexSchema& index, const ColumnSet& columns,
                 const RowOptions& rows, const CellOptions& cells) {
  if (cells.filter || !cells.time.all() || cells.expiries) return false;
  if (!rows.cells_wanted && cells.columns_skip == 0 && TellsOfRow(view, index, columns)) {
    return true;
  }
  if (cells.versions_max.value_or(1) != 1) return false;
  if (index.include.empty() && cells.timestamps) return false;
  return HoldsAll(view.schema(), EntryColumns(view.schema(), index), columns);
}

// Such an index has the order of the table, so replies and cursors are the same by either way. It
// is chosen by size alone, its own bytes against those of the groups, whatever range is read of
// them.
const IndexSchema* ChooseGroup(const ReadView& view, const RowOptions& rows,
                               const CellOptions& cells) {
  const TableSchema& schema = view.schema();
  const bool has_group = std::any_of(schema.indexes.begin(), schema.indexes.end(),
                                     [](const IndexSchema& index) { return index.of_rows(); });
  if (!has_group || rows.no_index) return nullptr;
  if (rows.index || cells.filter || !cells.time.all() || cells.expiries) return nullptr;
  // Single rows are read where they are.
  const auto is_row = [](const RowSelector& row) { return row.kind == RowSelector::Kind::kRow; };
  if (!rows.rows.empty() && std::all_of(rows.rows.begin(), rows.rows.end(), is_row)) return nullptr;
  if (rows.cells_wanted && cells.versions_max.value_or(1) != 1) return nullptr;
  const Result<ColumnSet> columns = ColumnSet::Compile(schema, cells.columns);
  if (!columns.ok()) return nullptr;  // the scan of the table says what is wrong
  std::vector<Condition> where;
  for (const Predicate& predicate : rows.where) {
    Result<Condition> condition = Condition::Compile(schema, predicate);
    if (!condition.ok()) return nullptr;
    where.push_back(*std::move(condition));
  }
  uint64_t bytes_least = 0;
  std::vector<bool> counted(schema.groups.size());
  for (const ColumnSet::Family& family : columns->families()) {
    const size_t group = schema.families[family.index].group;
    if (!counted[group]) bytes_least += view.payload_bytes(group);
    counted[group] = true;
  }
  const IndexSchema* best = nullptr;
  for (const IndexSchema& index : schema.indexes) {
    // The choice is no way to learn of a family that one may not read.
    if (!index.of_rows() || NamesHiddenFamily(schema, index)) continue;
    if (index.state != IndexState::kReady || !view.IndexIsBuilt(index.id)) continue;
    const std::vector<IndexColumn> held = EntryColumns(schema, index);
    if (!CoversCells(view, index, *columns, rows, cells)) continue;
    const bool answers = std::all_of(where.begin(), where.end(), [&](const Condition& condition) {
      return AnswersCondition(schema, index, held, condition);
    });
    if (!answers) continue;
    const uint64_t bytes = view.IndexBytes(index.id);
    if (bytes >= bytes_least) continue;
    bytes_least = bytes;
    best = &index;
  }
  return best;
}

}  // namespace cellar
