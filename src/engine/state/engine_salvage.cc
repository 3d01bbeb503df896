// What of the tables is left when blocks of a snapshot are lost: counted anew, and what is not
// there any more said in words (StateMachine::FinishSalvage).
//
// What each table held the catalog says, which is whole; so the numbers are exact. Where it stood
// the gaps say: everything between their two keys is gone, and nothing else.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "base/text/number.h"
#include "base/text/quote.h"
#include "engine/keys/cell.h"
#include "engine/keys/timestamp.h"
#include "engine/state/engine.h"
#include "engine/state/loading_versions.h"
#include "engine/state/table_census.h"

namespace cellar {
namespace {

constexpr size_t kGapsNamedMax{20};
// Row keys can have 64 KiB; so much of one tells it from others.
constexpr size_t kKeyTextBytesMax{1024};

std::string Text(std::string_view bytes) {
  return bytes.size() > kKeyTextBytesMax ? Quote(bytes) : QuoteWord(bytes);
}

std::string GapText(const Engine& engine, const LoadGap& gap) {
  const auto text = [&](const std::string& key) { return engine.KeyText(gap.tree_id, key); };
  if (gap.after && gap.before)
    return "all between " + text(*gap.after) + " and " + text(*gap.before);
  if (gap.after) return "all behind " + text(*gap.after);
  if (gap.before) return "all before " + text(*gap.before);
  return "all";
}

// What should be in the trees of the groups, but for what dropped families have left there.
std::vector<uint64_t> CellsOfGroups(const Table& table) {
  std::vector<uint64_t> cells(table.groups());
  const TableSchema& schema = table.schema();
  for (size_t i = 0; i < schema.families.size(); ++i)
    cells[schema.families[i].group] += table.counters().families[i].cells;
  return cells;
}

}  // namespace

std::vector<uint64_t> Engine::TreesForLoad() const {
  std::vector<uint64_t> ids;
  for (const auto& [id, table] : tables_) {
    for (const GroupSchema& group : table->schema().groups) ids.push_back(group.tree_id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::string Engine::KeyText(uint64_t tree_id, std::string_view key) const {
  for (const auto& [id, table] : tables_) {
    const TableSchema& schema = table->schema();
    const bool is_its = std::any_of(schema.groups.begin(), schema.groups.end(),
                                    [&](const auto& group) { return group.tree_id == tree_id; });
    if (!is_its) continue;
    const size_t row_bytes = schema.key.EncodedSize(key);
    std::string row;
    if (row_bytes == 0 || !schema.key.Decode(key.substr(0, row_bytes), &row)) break;
    uint32_t family_id = 0;
    const size_t id_bytes = DecodeFamilyId(key.substr(row_bytes), &family_id);
    const FamilySchema* family = id_bytes == 0 ? nullptr : schema.FindFamilyById(family_id);
    std::string text = "row " + Text(row);
    if (family == nullptr) return text;
    const std::string_view column = key.substr(row_bytes + id_bytes);
    const size_t qualifier_bytes = family->order.EncodedSize(column);
    std::string qualifier;
    int64_t timestamp = 0;
    if (qualifier_bytes == 0 ||
        !family->order.Decode(column.substr(0, qualifier_bytes), &qualifier) ||
        !LoadTimestamp(column.substr(qualifier_bytes), &timestamp))
      return text;
    return text + " " + Text(family->name + ":" + qualifier) + " at " + FormatInt64(timestamp);
  }
  return Quote(key);
}

// Counts what has been loaded and makes that the table's counters; what the catalog has more of is
// lost, and *lost says of each group between which rows. More than the catalog says is no loss but
// corruption.
Status Engine::SalvageTable(Table* table, const std::vector<LoadGap>& gaps,
                            std::vector<std::string>* lost) {
  const TableCounters before = table->counters();
  const uint64_t cells_before = table->cells();
  const std::vector<uint64_t> cells_of_groups = CellsOfGroups(*table);
  ASSIGN_OR_RETURN(TableCounters counted, CountTable(*table));
  table->SetCounters(std::move(counted));
  if (table->cells() > cells_before)
    return Status::Error(ErrorCode::kCorruption,
                         "table " + Quote(table->name()) + " has more cells than its catalog says");
  const uint64_t cells_lost = cells_before - table->cells();
  if (cells_lost == 0) return Status::Ok();
  const std::string name = "table " + table->keyspace() + "/" + table->name();
  lost->push_back(name + ": " + FormatUint64(cells_lost) + " of " + FormatUint64(cells_before) +
                  " cells; " + FormatUint64(before.rows - table->counters().rows) + " of " +
                  FormatUint64(before.rows) + " rows are gone wholly");
  for (size_t i = 0; i < table->groups(); ++i) {
    const GroupSchema& group = table->schema().groups[i];
    const bool is_whole = !before.has_ghosts && table->tree(i).entries() == cells_of_groups[i];
    if (is_whole) continue;
    std::vector<LoadGap> here;
    std::copy_if(gaps.begin(), gaps.end(), std::back_inserter(here),
                 [&](const LoadGap& gap) { return gap.tree_id == group.tree_id; });
    if (here.empty()) {
      if (table->tree(i).entries() > 0 || cells_of_groups[i] == 0) continue;
      here.push_back({.tree_id = group.tree_id});
    }
    const std::string where = table->groups() == 1 ? name : name + ", group " + Text(group.name);
    for (size_t n = 0; n < std::min(here.size(), kGapsNamedMax); ++n)
      lost->push_back(where + ": " + GapText(*this, here[n]));
    if (here.size() > kGapsNamedMax)
      lost->push_back(where + ": and " + FormatUint64(here.size() - kGapsNamedMax) +
                      " more stretches");
  }
  return Status::Ok();
}

Status Engine::FinishSalvage(const std::vector<LoadGap>& gaps, std::vector<std::string>* lost) {
  CELLAR_ASSERT(loaded_indexes_.empty());
  loading_.reset();
  // A version stands in the file as what a newer one lacks, and the newer ones have gaps: none is
  // loaded.
  for (const NamedSnapshot* snapshot : snapshots_.All()) {
    if (!snapshot->name.empty())
      lost->push_back("snapshot " + snapshot->keyspace + "/" + snapshot->name + ": all of it");
    DropSnapshot(snapshot->id);
  }
  for (const auto& [id, table] : tables_) RETURN_IF_ERROR(SalvageTable(table.get(), gaps, lost));
  return Status::Ok();
}

void Engine::Reset() {
  CELLAR_ASSERT(undo_ == nullptr);
  CELLAR_ASSERT(!compaction_.running);
  ForgetNames();
  loaded_indexes_.clear();
  loading_.reset();
  prepared_copy_.reset();
  snapshots_.Clear();
  keyspaces_.clear();
  tables_.clear();
  DestroyTrees(&garbage_);
  numbers_ = {};
  feeds_ = FeedSet();
  AddBuiltInKeyspaces();
}

}  // namespace cellar
