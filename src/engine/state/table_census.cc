// See table_census.h.
#include "engine/state/table_census.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/text/quote.h"
#include "engine/keys/timestamp.h"
#include "engine/state/mutation_check.h"

namespace cellar {
namespace {

class Census {
 public:
  explicit Census(const Table& table)
      : table_(table), schema_(table.schema()), counters_(table.counters()) {
    // No cell tells what was reclaimed or logged: that stays as it was.
    counters_.rows = 0;
    for (FamilyCounters& family : counters_.families) {
      family.cells = 0;
      family.bytes = 0;
      family.expiring_cells = 0;
      family.packed_cells = 0;
      family.saved_bytes = 0;
    }
  }

  Result<TableCounters> Run();

 private:
  Status CountRow(BTreeCursor& at, size_t group);
  Status CountCell(std::string_view key, std::string_view value, size_t row_bytes, size_t group);
  Status Wrong(std::string_view key, std::string_view what) const {
    return Status::Error(ErrorCode::kCorruption, "table " + Quote(table_.name()) + ": the key " +
                                                     Quote(key) + " " + std::string(what));
  }

  const Table& table_;
  const TableSchema& schema_;
  TableCounters counters_;
  std::string row_key_;
  std::string text_;
};

Status Census::CountCell(std::string_view key, std::string_view value, size_t row_bytes,
                         size_t group) {
  uint32_t family_id = 0;
  const size_t id_bytes = DecodeFamilyId(key.substr(row_bytes), &family_id);
  if (id_bytes == 0) return Wrong(key, "has no family");
  const FamilySchema* family = schema_.FindFamilyById(family_id);
  if (family == nullptr) {
    return counters_.has_ghosts ? Status::Ok() : Wrong(key, "is of a family that does not exist");
  }
  if (family->group != group) return Wrong(key, "is in the tree of another group");
  const std::string_view column = key.substr(row_bytes + id_bytes);
  const size_t qualifier_bytes = family->order.EncodedSize(column);
  text_.clear();
  if (qualifier_bytes == 0 || !family->order.Decode(column.substr(0, qualifier_bytes), &text_)) {
    return Wrong(key, "has a malformed qualifier");
  }
  int64_t timestamp = 0;
  if (!LoadTimestamp(column.substr(qualifier_bytes), &timestamp)) {
    return Wrong(key, "has a malformed timestamp");
  }
  if (!IsCellValue(value)) return Wrong(key, "has a malformed value");
  FamilyCounters& count = counters_.families[static_cast<size_t>(family - &schema_.families[0])];
  ++count.cells;
  count.bytes += key.size() + value.size();
  if (CellHasFlags(value, kCellFlags)) count.CountFlagged(value);
  return Status::Ok();
}

// The cells of row_key_ in one group.
Status Census::CountRow(BTreeCursor& at, size_t group) {
  for (; at.valid() && at.key().starts_with(row_key_); at.Next()) {
    RETURN_IF_ERROR(CountCell(at.key(), at.value(), row_key_.size(), group));
  }
  return Status::Ok();
}

// The groups are walked together, since a row that stands in several of them is one row.
Result<TableCounters> Census::Run() {
  std::vector<std::unique_ptr<BTreeCursor>> cursors;
  for (size_t i = 0; i < table_.groups(); ++i) {
    cursors.push_back(std::make_unique<BTreeCursor>(table_.tree(i)));
    cursors.back()->SeekFirst();
  }
  for (;;) {
    const BTreeCursor* first = nullptr;
    for (const auto& at : cursors) {
      if (at->valid() && (first == nullptr || at->key() < first->key())) first = at.get();
    }
    if (first == nullptr) break;
    row_key_.assign(first->key().substr(0, schema_.key.EncodedSize(first->key())));
    text_.clear();
    if (row_key_.empty() || !schema_.key.Decode(row_key_, &text_)) {
      return Wrong(first->key(), "has a malformed row key");
    }
    ++counters_.rows;
    if (schema_.key.is_recno()) {
      const auto next = static_cast<uint64_t>(schema_.key.DecodeRecno(row_key_)) + 1;
      counters_.record_number_next = std::max(counters_.record_number_next, next);
    }
    for (size_t i = 0; i < cursors.size(); ++i) RETURN_IF_ERROR(CountRow(*cursors[i], i));
  }
  return std::move(counters_);
}

}  // namespace

Result<TableCounters> CountTable(const Table& table) { return Census(table).Run(); }

}  // namespace cellar
