// Index: the entries of one index, and what it takes to keep them what the table says.
//
//   entries   | value or qualifier, encoded, for each ON column | row key |  ->  spans, cells
//
// With INCLUDE an entry holds the newest versions of the included columns and of the ON columns, so
// that a scan which asks for nothing else need not read the table (IncludedCell, below). An index
// of qualifiers (ON 1 family) holds none, nor does an entry that would become too large.
//
// The entries are a function of the stored cells alone; Evaluate() is that function. Before a row
// changes it says what the entries are, afterwards what they have to be; nothing else is
// remembered.
//
// It is asked for no more than the change concerns. An entry of an index of qualifiers comes from
// one column, so each column that is touched is evaluated by itself:
//
//   index                 evaluated around a change          cells read for it
//   ON 1 family           the columns that change            their versions
//   ON n columns          the entry, if one of its columns   versions of the ON columns, afterwards
//                         changes                            of the included ones, 64 KiB of them
//   ON 0                  the entry, if an included column   versions of the included ones, likewise
//                         changes, or the row comes or goes
//
// So what a write costs does not grow with its row: another 100,000 columns are not looked at. What
// entries of included cells hold already is taken from them, not evaluated again.
//
// Time is not an argument of that function: what will be true when something expires is known when
// it is written. The versions of a column take turns, newest first, each until it becomes due, so
// an entry (and an included cell) holds the spans of time in which it is true, and whoever reads it
// asks for a moment:
//
//   versions   3: "new" until 10:00    2: "other" until 09:00    1: "old" for ever
//   entries    new | row -> always .. 10:00          old | row -> 10:00 .. always
//
// So an index is exact at every moment, whatever expires, however much of it at once, and whichever
// way the clock is set: no moment brings work with it. Entries that will not be true again go when
// retention reclaims the cells that they come from, a slice at a time like these.
//
// An index of rows (ON 0) has an entry for each row that has a stored cell, live or not: its reader
// finds out by the cells that it looks for, and the check of UNIQUE by asking the row.
//
// A row whose ON values and row key take more than 64 KiB together cannot have its entry, and an
// index that kept quiet about it would be no index. So there is no such row in one that is built:
//
//   a write or delete that would make one, or uncover one         is refused, TOOLARGE
//   one after which an entry would become so when another
//   version expires (the spans know)                              is refused likewise
//   one that is there when the index is built, or built again
//   after a change of retention                                   state `failed`, naming the row
//
// Rollbacks lead back to what was accepted; what retention drops, when it is reclaimed, changes no
// entry.
//
// A cell of another type than its ON column's has no place in the order of the index either: such a
// row is left out, and so is one that was too large at some time which is over. How many there are
// is counted, exactly: those whose ON columns are all stored, and have, or had at a moment whose
// cells are not reclaimed yet, values for which there is no entry. While there are none a row that
// is not in the index is none that a condition on its columns could find (scans/index_choice.h).
// The number stands among the entries (index_entry.h), so it goes wherever they go: into files,
// copies, versions, and back.
//
// While it is built, what stands before a position is in it; the rest comes when Build() reaches
// it. The position is one between rows; an index of qualifiers also stops inside a row, between
// columns, since one row may have a million of them. Indexes that are whole are in snapshot files
// too: loading a million entries takes 0.05 s, building them 1.4 s. Others are built again at the
// start.
//
// UNIQUE while it is built: a row is put in first, and its entries are checked then, with as many
// pauses as that takes. A write in such a pause checks the entries that it makes itself, so of two
// rows with one value the one that comes later finds the other, whoever puts it in.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "btree/btree.h"
#include "engine/schema/index_schema.h"
#include "engine/table/index_entry.h"

namespace cellar {

// How many entries that have expired, and are not reclaimed yet, the check of UNIQUE steps over: a
// millisecond or two. Of one value there are so many only if they expired before the index was
// made, or came with timestamps of the past; the sweeper is at work on them.
inline constexpr uint64_t kUniqueStepsMax{16 * 1024};

// Building an index has no such limit. It steps over about as many of them in the time that a row
// takes to be put in.
inline constexpr uint64_t kUniqueStepsOfRow{8};

class Table;
struct FamilySchema;

// What a change is about in the row that is open: columns of one family. The views are those of
// whoever makes the change.
struct ChangedColumns {
  uint32_t family_id{0};
  std::string_view begin;  // qualifiers (encoded) in [begin, end); an empty end is no bound
  std::string_view end;
  bool one{false};  // the column `begin` alone

  static ChangedColumns One(uint32_t family_id, std::string_view qualifier) {
    return {family_id, qualifier, {}, true};
  }
  static ChangedColumns Family(uint32_t family_id) { return {family_id, {}, {}, false}; }
  // Is it one of these columns of the family?
  bool Has(std::string_view qualifier) const {
    return one ? qualifier == begin : qualifier >= begin && (end.empty() || qualifier < end);
  }
  friend bool operator==(const ChangedColumns&, const ChangedColumns&) = default;
};

class Index {
 public:
  // `table` owns the index. The index is empty and has to be built.
  Index(const Table& table, const IndexSchema& schema);
  ~Index();
  Index(const Index&) = delete;
  Index& operator=(const Index&) = delete;

  uint64_t id() const { return id_; }
  bool unique() const { return schema_.unique; }
  const IndexOrder& order() const { return order_; }
  const BTree& entries() const { return *entries_; }
  // How many there are. A cursor may find one more, under the empty key.
  uint64_t entry_count() const { return entries_->entries() - (rows_left_out_ > 0 ? 1 : 0); }
  uint64_t rows_left_out() const { return rows_left_out_; }
  BTree* mutable_entries() { return entries_.get(); }
  uint64_t memory_bytes() const { return entries_->memory_bytes(); }
  // Is every entry there at every moment, so that their number is that of entries()?
  bool entries_are_live() const;
  // The moment at which UNIQUE is checked. O(1), any moment will do.
  void SetTime(int64_t now_micros) { now_micros_ = now_micros; }
  bool built() const { return built_; }
  // Is the row, encoded, in the part that has been built? If by_column() that may be true of some
  // of its columns alone; `key` may be a column's key.
  bool Covers(std::string_view key) const {
    return built_ || position_.at_end || key < position_.bytes;
  }
  // Could a change of these columns change an entry? O(ON and included columns).
  bool Watches(const ChangedColumns& columns) const;
  // Could it change the ON values of one; these, or the cells that one holds?
  bool WatchesValues(const ChangedColumns& columns) const;
  bool WatchesContent(const ChangedColumns& columns) const;
  // Could a change of so many bytes, in a row whose key has so many, make an entry too large? False
  // only if not; all that the table has ever held counts. O(ON columns).
  bool MayOutgrow(size_t row_text_bytes, size_t change_bytes) const;
  // Does an entry come from one column alone, so that changes of others do not matter for it?
  bool by_column() const { return schema_.of_qualifiers(); }
  // What maintenance has cost so far: evaluations, and stored cells that they looked at.
  uint64_t evaluations() const { return evaluations_; }
  uint64_t cells_evaluated() const { return cells_evaluated_; }

  // --- maintenance, around every change of a row that it covers
  // What the entries of the row are, or have to be.
  struct Entry {
    std::string key;
    std::string value;
    bool timed{false};  // not there at every moment
    bool now{false};    // there at the moment that was set
  };
  struct Evaluation {
    std::vector<Entry> entries;  // the first `count` of them, keys ascending; others are memory
    size_t count{0};
    // An entry that would be there now or later is left out, since it would take so many bytes; the
    // column has the largest value of it (by number in ON; not by_column()).
    size_t too_large_bytes{0};
    size_t too_large_column{0};
    // It has at some moment values for which there is no entry; not by_column().
    bool left_out{false};
    // If it was of one column, and by_column(): the column is not stored, nor is any behind it up
    // to this qualifier; an empty one is no bound.
    bool absent{false};
    std::string absent_until;

    // Gives back what a change of very many columns has taken.
    void Trim() {
      constexpr size_t kEntriesKept{1024};
      if (entries.size() > kEntriesKept) *this = {};
    }
  };
  // Those that a change of these columns can change, as far as the index covers the row. REQUIRES:
  // Watches(columns), or they are whole_row(). If by_column(), O(log n + versions of these
  // columns), whatever else stands in the row; if not, O(log n + versions of ON and included
  // columns).
  void Evaluate(std::string_view row_key, const ChangedColumns& columns, Evaluation* evaluation);
  // What stands for all columns.
  ChangedColumns whole_row() const {
    return ChangedColumns::Family(by_column() ? schema_.on[0].family_id : 0);
  }
  // The row's entries as the index holds them, before the change: cells of an entry are read there.
  void EvaluateHeld(std::string_view row_key, const ChangedColumns& columns,
                    Evaluation* evaluation);
  // Has it an entry of the row, and needs one still, since a cell of it is stored? Then it is the
  // same one, unless cells in it have changed. REQUIRES: of rows, `before` was held before the
  // change.
  bool KeepsRow(std::string_view row_key, const Evaluation& before);
  // Is the row that is evaluated not in the part that has been built, but would have no entry if it
  // were? Then that is noted. For an index that was whole once. REQUIRES: !by_column().
  void CheckUnbuiltRow(std::string_view row_key, Evaluation* scratch);
  // Makes the entries of `before`, which are in the index, those of `now`.
  void Replace(const Evaluation& before, const Evaluation& now);

  // Keys added since ForgetConflicts() under values that another row had at that moment. UNIQUE.
  // Unless kNone, the change has to be refused: one of them still has, or nobody knows, since more
  // than kUniqueStepsMax entries that are not there would have to be stepped over.
  enum class Conflict : uint8_t { kNone, kUnknown, kFound };
  // If kFound, of which entry, and the row that has it already.
  struct Collision {
    std::string entry_key;
    std::string row_key;
  };
  Conflict FindConflict(Collision* collision);
  // "row 'r' has 'v', 'w' already", or as much of it as may be said.
  std::string CollisionText(const Collision& collision) const;
  // A change of these columns has left out an entry.
  void NoteTooLarge(std::string_view row_key, const ChangedColumns& columns);
  // Of an entry that a change since ForgetConflicts() has left out, and that still would be too
  // large; 0: none. A command may do several things to a row; the last state is what counts.
  size_t FindTooLarge(Evaluation* scratch);
  void ForgetConflicts();

  // --- building
  // Adds the next rows (if by_column(): columns), about `rows_max` of them, or less if checking
  // them takes long. True when all are in and checked.
  bool Build(uint64_t rows_max);
  // Found while building: a row that cannot have its entry (TOOLARGE), or two rows of one value in
  // a UNIQUE index (NOTUNIQUE). Names them.
  const Status& too_large_row() const { return too_large_row_; }
  const Status& not_unique_rows() const { return not_unique_rows_; }
  bool build_failed() const { return !too_large_row_.ok() || !not_unique_rows_.ok(); }
  double progress() const;
  // Evaluates every row: are the entries what the table says? O(n log n), for tests. REQUIRES:
  // built().
  bool AgreesWithTable();

  // mutable_entries() holds what a snapshot of the same moment as the table's held: it is built.
  void FinishLoad();
  // Of a frozen table: other entries are its own from here on. REQUIRES: nothing was built.
  void SetTree(std::unique_ptr<BTree> entries);
  // And they are those that `live` has now. REQUIRES: that is built.
  void FreezeFrom(const Index& live);
  // `entries` are a copy of those that `from` has. REQUIRES: that is built.
  void SetCopy(const Index& from, std::unique_ptr<BTree> entries);

  // --- undo
  struct Checkpoint {
    uint64_t id{0};
    BTreeSnapshot entries;
    uint64_t timed_entries{0};
    uint64_t rows_left_out{0};
    KeyBound position;
    std::vector<std::string> unchecked;
    std::string check_from;
    bool built{false};
    Status too_large_row;
    Status not_unique_rows;
    const BTree* tree{nullptr};  // the entries', of which the snapshot is
  };
  Checkpoint TakeCheckpoint();
  // False if the index has started anew since: the checkpoint is of another tree.
  bool Took(const Checkpoint& checkpoint) const { return checkpoint.tree == entries_.get(); }
  // REQUIRES: Took(checkpoint).
  void RollBackTo(const Checkpoint& checkpoint);

  // Lets go of the table's trees, before one of them is destroyed.
  void DropCursors();
  // Gives up the tree. Nothing but destruction is allowed afterwards.
  void ReleaseTrees(std::vector<std::unique_ptr<BTree>>* trees);

 private:
  // A version of a column and the time in which it is the newest live one.
  struct Turn {
    TimeSpan span;
    int64_t timestamp_micros{0};
    ValueType type{ValueType::kBytes};
    std::string stored;
  };
  // The versions of a column in the order of their turns: the spans follow each other from 0 on.
  struct Turns {
    std::vector<Turn> turns;  // the first `count` of them
    size_t count{0};
    void Add(const TimeSpan& span, int64_t timestamp_micros, ValueType type,
             std::string_view stored);
  };

  void EvaluateColumns(std::string_view row_key, Evaluation* evaluation);
  // EvaluateColumns where an ON column has several turns.
  void EvaluateTurns(std::string_view row_key, Evaluation* evaluation);
  // Of those columns, the ones that are built, or the first ones that are not.
  enum class Part : uint8_t { kBuilt, kNext };
  // Looks at `columns_max` of them at most. False if there are more: column_ is the next one's key.
  bool EvaluateQualifiers(std::string_view row_key, const ChangedColumns& columns, Part part,
                          uint64_t columns_max, Evaluation* evaluation);
  void EvaluateRow(std::string_view row_key, Evaluation* evaluation);
  void SetRowsLeftOut(uint64_t rows);
  void AddEntry(std::string_view key, std::span<const TimeSpan> spans, Evaluation* evaluation);
  // key_ := the encoding of what the ON columns hold in these turns. Returns false if that is too
  // large: then the row is left out, and *evaluation says how large it is unless it is in the past.
  bool EncodeValues(std::string_view row_key, std::span<const Turn* const> turns,
                    const TimeSpan& span, Evaluation* evaluation);
  bool FitsQualifier(const FamilySchema& family, std::string_view row_key,
                     std::string_view qualifier, const TimeSpan& span, Evaluation* evaluation);
  // Is the entry there at the moment that was set?
  bool IsThere(std::string_view entry_key, std::string_view value);
  bool RowIsLive(const std::string& row_key);
  Status TooLargeRow(std::string_view row_key, const Evaluation& evaluation) const;
  // The turns of the column at the cursor, which stands on its first version; column_ holds its
  // row, family and qualifier.
  void ReadTurns(const FamilySchema& family, BTreeCursor& at, Turns* turns);
  void EvaluateIncluded(std::string_view row_key, Evaluation* evaluation);
  void IncludeTurns(const FamilySchema& family, std::string_view qualifier, const Turns& turns);
  void SeekBehindColumn(BTreeCursor& at);  // of column_
  BTreeCursor& CursorOf(size_t group);
  bool HasRow(std::string_view row_key);
  bool WatchesFamily(uint32_t family_id) const;
  bool FindRow(std::string_view from, std::string* row_key);
  // Is there an entry of another row under the same values, at the moment that was set? Looks at
  // *steps entries at most, which it counts down, from *from on (empty: the first one); if it is
  // kUnknown then, it goes on at *from; if it is kFound, the entry's key is there.
  Conflict FindOther(std::string_view entry_key, uint64_t* steps, std::string* from);
  // --- building
  // What stands at position_, in this row, which moves behind it: the row, or if by_column() the
  // next columns of it, at most `columns_max`. Returns how many.
  uint64_t EvaluateNext(std::string_view row_key, uint64_t columns_max, Evaluation* evaluation);
  // Entries that are not in the index yet.
  void Add(std::string_view row_key, const Evaluation& evaluation);
  // Goes on with the check of the entries that were added. Steps as in FindOther, and one for each
  // check.
  void CheckAdded(uint64_t* steps);

  const Table& table_;
  const uint64_t id_;
  IndexSchema schema_;  // the state in it means nothing
  IndexOrder order_;
  const std::vector<IndexColumn> included_;
  std::vector<size_t> included_on_;  // parallel: the ON column that it is; kNotOn
  std::unique_ptr<BTree> entries_;
  uint64_t timed_entries_{0};
  uint64_t rows_left_out_{0};
  std::vector<std::unique_ptr<BTreeCursor>> cursors_;  // by locality group, made when needed
  std::unique_ptr<BTreeCursor> entries_at_;
  int64_t now_micros_{0};
  uint64_t evaluations_{0};
  uint64_t cells_evaluated_{0};
  KeyBound position_;  // what stands before it is in
  uint64_t rows_built_{0};
  bool built_{false};
  Status too_large_row_;
  Status not_unique_rows_;
  std::vector<std::string> unchecked_;  // keys of entries that building has put in; the last first
  std::string check_from_;              // where the check of that one goes on
  std::vector<std::string> conflicts_;
  struct LeftOut {
    std::string row_key;
    std::string begin;  // the columns, of the family in ON if by_column(); else the whole row
    std::string end;
    bool one{false};
  };
  std::vector<LeftOut> left_out_;

  // Scratch of evaluations.
  std::string key_;
  std::string column_;
  std::vector<Turns> on_turns_;
  std::vector<const Turn*> at_once_;  // one of each of them
  std::string row_text_;
  Turns turns_;
  PlainValue plain_;
  std::string cells_;  // included, as an entry holds them
  bool cells_fit_{false};
  bool cells_held_{false};  // they need not be evaluated: the entry is in the index
};

}  // namespace cellar
