// Index: the entries of one index, and what it takes to keep them what the table says.
//
//   entries   | value or qualifier, encoded, for each ON column | row key |  ->  included cells
//   dues      | due time, 8 bytes big-endian | row key |                     ->  nothing
//
// With INCLUDE an entry holds the newest versions of the included columns and of the ON columns, so
// that a scan which asks for nothing else need not read the table (IncludedCell, below). An index
// of qualifiers (ON 1 family) holds none, nor does an entry that would become too large.
//
// The entries are a function of the stored cells and of one moment, time(): the row stands under
// the newest versions that were live then. Evaluate() is that function. Before a row changes it
// says what the entries are, afterwards what they have to be; nothing else is remembered. The
// function also says when, without any change, its answer will be another one, because a version
// becomes due: that moment is kept in `dues`, and SetTime() evaluates again the rows that have
// become due. So an index is exact at the moment that it was last set to, whatever expires.
//
// A clock set back makes dropped versions live again. past_due() is the latest moment at which a
// version that was passed over became due; an index that is asked for an earlier one starts anew.
//
// While it is built, the rows before position() are in it; those behind it come when Build()
// reaches them. Indexes are not in snapshot files: they are built again at the start.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "btree/btree.h"
#include "cellar/status.h"
#include "engine/cell.h"
#include "engine/index_schema.h"
#include "engine/order.h"
#include "engine/retention.h"

namespace cellar {

class Table;
struct FamilySchema;

// Encoded ON values of one entry. With a row key of 64 KiB, doubled by escapes, they fit a tree's
// key.
inline constexpr size_t kIndexValuesBytesMax{64 * 1024};

// Included cells of one entry; more are left to the table.
inline constexpr size_t kIndexIncludedBytesMax{64 * 1024};

// included  | 1 | { v family id, b qualifier (encoded), v timestamp, type u8, b stored value }
struct IncludedCell {
  uint32_t family_id{0};
  std::string_view qualifier;
  int64_t timestamp_micros{0};
  ValueType type{ValueType::kBytes};
  std::string_view stored;
};
// The cells of an entry's value, families by name, qualifiers in order. False if it holds none of
// them, so that the table has to be read. The views point into `value`.
[[nodiscard]] bool DecodeIncludedCells(std::string_view value, std::vector<IncludedCell>* cells);
// The columns that an entry holds, in the same order; empty if entries hold none.
std::vector<IndexColumn> IncludedColumns(const TableSchema& table, const IndexSchema& index);

// How the values of an index's ON columns are encoded, read and shown. Copied into scans.
class IndexOrder {
 public:
  IndexOrder() = default;
  IndexOrder(const TableSchema& table, const IndexSchema& index);

  size_t columns() const { return columns_.size(); }
  // Appends the encoding of a value as a client names it. BADVALUE if it does not fit.
  Status EncodeValue(size_t column, std::string_view text, std::string* out) const;
  // The bounds `[v (v - +` of a column's values, min <= v <= max, as a range of encodings.
  Result<KeyRange> EncodeRange(size_t column, std::string_view min, std::string_view max) const;
  // Size of all values at the front of an entry's key; 0 if it is malformed.
  size_t ValuesSize(std::string_view entry_key) const;
  struct Value {
    ValueType type{ValueType::kBytes};
    std::string stored;
  };
  // The values at the front of an entry's key; of a qualifier its text.
  std::vector<Value> DecodeValues(std::string_view entry_key) const;

 private:
  struct Column {
    OrderComponent component;  // unless of_qualifiers
    ValueType type{ValueType::kBytes};
  };
  Result<KeyBound> EncodeBound(size_t column, std::string_view text, BoundSide side) const;

  bool of_qualifiers_{false};
  Order qualifiers_;  // with every component turned round if the column is descending
  bool descending_{false};
  std::vector<Column> columns_;
};

class Index {
 public:
  // `table` owns the index. The index is empty and has to be built.
  Index(const Table& table, const IndexSchema& schema);
  ~Index();
  Index(const Index&) = delete;
  Index& operator=(const Index&) = delete;

  uint64_t id() const { return id_; }
  const IndexOrder& order() const { return order_; }
  const BTree& entries() const { return *entries_; }
  BTree* mutable_entries() { return entries_.get(); }
  uint64_t memory_bytes() const { return entries_->memory_bytes() + dues_->memory_bytes(); }
  int64_t time() const { return time_; }
  bool built() const { return built_; }
  const std::string& position() const { return position_; }
  // Is the row, encoded, in the part that has been built?
  bool Covers(std::string_view row_key) const { return built_ || row_key < position_; }
  // Could a change of this family change an entry?
  bool Watches(uint32_t family_id) const;

  // --- maintenance, around every change of a row that it covers
  // What the entries of the row are, or have to be, at time().
  struct Evaluation {
    std::vector<std::string> keys;  // of entries, ascending
    std::string value;              // of each of them
    int64_t due_micros{kNeverMicros};
    bool too_large{false};  // a value does not fit into a key
  };
  void Evaluate(std::string_view row_key, Evaluation* evaluation) {
    EvaluateAt(row_key, time_, evaluation);
  }
  // Makes the entries of the row those of `now`, which are those of `before`.
  void Replace(std::string_view row_key, const Evaluation& before, const Evaluation& now);

  // Keys added since ForgetConflicts() under values that another row had at that moment. UNIQUE.
  // True if one of them still has: the change has to be refused.
  bool HasConflict() const;
  bool too_large() const { return too_large_; }
  void ForgetConflicts();

  // --- time
  // Goes to another moment. False if that is too far back: then the index has to start anew.
  [[nodiscard]] bool SetTime(int64_t now_micros);

  // --- building
  // Adds rows, about `rows_max` of them, from position() on. True when all are in.
  bool Build(uint64_t rows_max);
  // Found while building: two rows of one value in a UNIQUE index, or a value that is too large.
  bool build_failed() const { return build_failed_; }
  double progress() const;

  // --- undo
  struct Checkpoint {
    uint64_t id{0};
    BTreeSnapshot entries;
    BTreeSnapshot dues;
    int64_t time{0};
    int64_t past_due{0};
    std::string position;
    bool built{false};
    bool build_failed{false};
    const BTree* tree{nullptr};  // the entries', of which the snapshot is
  };
  Checkpoint TakeCheckpoint();
  // False if the index has started anew since: the checkpoint is of other trees.
  bool Took(const Checkpoint& checkpoint) const { return checkpoint.tree == entries_.get(); }
  // REQUIRES: Took(checkpoint).
  void RollBackTo(const Checkpoint& checkpoint);

  // Lets go of the table's trees, before one of them is destroyed.
  void DropCursors();
  // Gives up the trees. Nothing but destruction is allowed afterwards.
  void ReleaseTrees(std::vector<std::unique_ptr<BTree>>* trees);

 private:
  struct NewestCell {
    bool found{false};
    int64_t timestamp_micros{0};
    ValueType type{ValueType::kBytes};
    std::string stored;
    int64_t due_micros{kNeverMicros};
  };

  void EvaluateAt(std::string_view row_key, int64_t at_micros, Evaluation* evaluation);
  void EvaluateColumns(std::string_view row_key, int64_t at_micros, Evaluation* evaluation);
  void EvaluateQualifiers(std::string_view row_key, int64_t at_micros, Evaluation* evaluation);
  void EvaluateRow(std::string_view row_key, int64_t at_micros, Evaluation* evaluation);
  // The newest version of the column at the cursor that is live at `at_micros`; the cursor stands
  // on its first version, column_ holds its row, family and qualifier.
  void ReadNewest(const FamilySchema& family, BTreeCursor& at, int64_t at_micros, NewestCell* cell);
  void EvaluateIncluded(std::string_view row_key, int64_t at_micros, Evaluation* evaluation);
  void IncludeCell(const FamilySchema& family, size_t qualifier_at, const NewestCell& cell,
                   Evaluation* evaluation);
  void SeekBehindColumn(BTreeCursor& at);  // of column_
  BTreeCursor& CursorOf(size_t group);
  bool FindRow(std::string_view from, std::string* row_key);
  bool HasOther(std::string_view entry_key) const;

  const Table& table_;
  const uint64_t id_;
  IndexSchema schema_;  // the state in it means nothing
  IndexOrder order_;
  const std::vector<IndexColumn> included_;
  std::unique_ptr<BTree> entries_;
  std::unique_ptr<BTree> dues_;
  std::vector<std::unique_ptr<BTreeCursor>> cursors_;  // by locality group, made when needed
  std::unique_ptr<BTreeCursor> entries_at_;
  int64_t time_{0};
  int64_t past_due_{-1};
  int64_t due_next_{kNeverMicros};  // not behind the first of the dues
  std::string position_;
  uint64_t rows_built_{0};
  bool built_{false};
  bool build_failed_{false};
  std::vector<std::string> conflicts_;
  bool too_large_{false};
  std::string key_;
  std::string column_;
};

}  // namespace cellar
