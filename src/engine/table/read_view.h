// ReadView: what one read sees: a schema, the trees of the groups, the rows that this set owns, and
// the time that decides which cells retention has dropped.
//
// Over a live table it borrows everything and costs nothing to make. Detach() turns it into a view
// of O(1) snapshots that outlives writes, schema changes and the table itself. From then on another
// thread than the table's may read through it (one at a time: point reads move cursors), which may
// neither make nor destroy it. Share() gives each of several readers of the same snapshots a view
// of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/inline.h"
#include "btree/btree.h"
#include "engine/keys/cell.h"
#include "engine/keys/timestamp.h"
#include "engine/schema/schema.h"
#include "engine/table/table.h"

namespace cellar {

// One live version of a column. Its views die with the next write or the next read of the view.
struct CellRead {
  std::string_view version;  // its timestamp, as the key has it: few ask for it
  CellValue value;

  int64_t timestamp_micros() const {
    int64_t timestamp = 0;
    const bool loaded = LoadTimestamp(version, &timestamp);
    CELLAR_ASSERT(loaded);
    return timestamp;
  }
};

class ReadView {
 public:
  ReadView() = default;  // of nothing; Bind it
  // `table` must outlive the view, or the view be detached before it changes.
  ReadView(const Table& table, int64_t now_micros)
      : table_(&table),
        schema_(&table.schema()),
        clamp_(table.shown()),
        now_micros_(table.ReadTime(now_micros)) {}
  ReadView(const ReadView&) = delete;
  ReadView& operator=(const ReadView&) = delete;

  // Makes an attached view one of `table` at `now_micros`, keeping its memory. In a frozen table it
  // is the moment at which that was frozen, here as above.
  void Bind(const Table& table, int64_t now_micros) {
    table_ = &table;
    schema_ = &table.schema();
    now_micros_ = table.ReadTime(now_micros);
    clamp_ = table.shown();
    finger_ = {};
    if (restricted_ != nullptr) [[unlikely]] {
      restricted_.reset();
      hides_families_ = false;
    }
  }

  // Hides the families that may not be read. REQUIRES: attached; `access` outlives the view or its
  // detachment.
  void Restrict(const FamilyAccess& access);
  // Has Restrict() hidden a family?
  bool hides_families() const { return hides_families_; }

  // REQUIRES: the table has not changed since the view was made.
  void Detach();
  // Makes a view of nothing, or an attached one, another one of what `pinned` sees. REQUIRES:
  // pinned.detached(); it outlives this view.
  void Share(const ReadView& pinned);
  bool detached() const { return pinned_ != nullptr; }

  uint64_t table_id() const { return pinned_ != nullptr ? pinned_->table_id : table_->id(); }
  const TableSchema& schema() const { return *schema_; }
  // The rows that may be read; null: all of them. Trees and indexes may hold others, which whoever
  // goes over them passes by: ranges of rows are cut by CompileRows.
  const Tablets* clamp() const { return clamp_; }
  bool Owns(std::string_view row_key) const { return clamp_ == nullptr || clamp_->Owns(row_key); }
  // As Table::CheckOwned. REQUIRES: attached.
  Status CheckOwned(std::string_view row_key) const {
    return Owns(row_key) ? Status::Ok() : table_->NotOwned(row_key);
  }
  int64_t now_micros() const { return now_micros_; }
  // True if every stored cell of the family is live.
  bool all_live(const FamilySchema& family) const;
  bool has_ghosts() const;
  uint64_t entries(size_t group) const;
  uint64_t payload_bytes(size_t group) const;
  // Rows of the table that are stored, those with nothing live in them included.
  uint64_t rows() const { return pinned_ ? pinned_->rows : table_->counters().rows; }

  // A cursor for short reads; every point read below moves it.
  BTreeCursor& cursor(size_t group) const;
  // Has the memory brought into the cache that reads of these rows will touch, all at once, where
  // that pays. Keys are encoded. Nothing is done once the view is detached.
  void Prefetch(std::span<const std::string_view> row_keys) const;
  // One of the caller's own. Dies before the view does, and when it is detached.
  BTreeCursor MakeCursor(size_t group) const;

  // Is the index (its id) whole, so that it can be read?
  bool IndexIsBuilt(uint64_t id) const;
  // Payload of its entries. REQUIRES: it is built.
  uint64_t IndexBytes(uint64_t id) const;
  // Entries that it holds; rows that it leaves out (index.h). REQUIRES: it is built.
  uint64_t IndexEntries(uint64_t id) const;
  uint64_t IndexRowsLeftOut(uint64_t id) const;
  // A cursor over the entries of an index. Dies like those of MakeCursor. REQUIRES: it is built.
  std::unique_ptr<BTreeCursor> MakeIndexCursor(uint64_t id) const;

  // Newest live version of a column at or before `at_micros`. `qualifier` is encoded.
  std::optional<CellRead> ReadCell(std::string_view row_key, const FamilySchema& family,
                                   std::string_view qualifier, int64_t at_micros) const;
  // Newest live version of a column whose key is put together: row, family id, qualifier. False if
  // there is none; then *read is unspecified. Of several columns of a row, all but the first mostly
  // stand in the leaf where the last one was found, which is looked at before the tree is
  // descended.
  [[nodiscard]] CELLAR_INLINE bool ReadColumn(std::string_view column, const FamilySchema& family,
                                              int64_t at_micros, CellRead* read) const;
  // Is there a live cell in the row?
  bool RowIsLive(std::string_view row_key) const;
  // Is there a live cell among the versions at the cursor, which stands on the first version of the
  // column `column_key` (row, family, qualifier)? Leaves the cursor somewhere in or behind it.
  bool ColumnIsLive(BTreeCursor& at, std::string_view column_key, const FamilySchema& family) const;

 private:
  struct Pinned {
    uint64_t table_id{0};
    TableSchema schema;
    Tablets::Pointer clamp;
    std::vector<bool> all_live;  // parallel to schema.families
    bool has_ghosts{false};
    std::vector<BTreeSnapshot> trees;
    uint64_t rows{0};
    struct PinnedIndex {
      uint64_t id{0};
      uint64_t rows_left_out{0};
      BTreeSnapshot entries;
    };
    std::vector<PinnedIndex> indexes;  // those that are built
  };

  void UsePinned(const Pinned& pinned);

  // ReadColumn by looking at one version after the other.
  bool ReadByCursor(std::string_view column, const FamilySchema& family, int64_t at_micros,
                    CellRead* read) const;
  const Pinned::PinnedIndex& IndexPinned(uint64_t id) const;

  const Table* table_{nullptr};
  const TableSchema* schema_{nullptr};
  const Tablets* clamp_{nullptr};
  int64_t now_micros_{0};
  const Pinned* pinned_{nullptr};  // own_pinned_, or another view's
  std::unique_ptr<Pinned> own_pinned_;
  std::vector<std::unique_ptr<BTreeCursor>> cursors_;  // of pinned_, by group; die before it
  std::unique_ptr<TableSchema> restricted_;
  bool hides_families_{false};
  mutable std::string key_;          // for point reads
  mutable std::string version_key_;  // likewise
  mutable BTreeFinger finger_;       // likewise
  mutable PlainValue plain_;         // likewise: of the cell read last
};

bool ReadView::ReadColumn(std::string_view column, const FamilySchema& family, int64_t at_micros,
                          CellRead* read) const {
  if (at_micros == kTimestampMax && pinned_ == nullptr) [[likely]] {
    // The newest version is mostly live, and then no other is looked at.
    BTree::Match newest;
    if (!table_->tree(family.group).GetFirst(column, &version_key_, &finger_, &newest))
      return false;
    read->version = newest.key_rest;
    if (IsUsualTimestamp(newest.key_rest) && DecodeCellValue(newest.value, &plain_, &read->value) &&
        now_micros_ < read->value.expiry_micros &&
        (!family.policy.Risks(1) || !family.policy.Drops(1, read->timestamp_micros(), now_micros_)))
        [[likely]]
      return true;
  }
  return ReadByCursor(column, family, at_micros, read);
}

}  // namespace cellar
