// IndexSet: the indexes of one table, kept up to date from inside the primitives that change it.
//
//   BeginRow(row)   WillChange(columns) ... before any of these columns changes   EndRow()
//
// What an index says of the row is asked once, before the first change that it watches, and again
// at the end of the row; the difference is carried out. An index whose entries come from one column
// each is asked of the columns that change and of no others: what it says of them is settled as
// soon as the change goes on to other columns, so nothing has to be collected, however many there
// are. Columns that are put in ascending order where none stood are one range, evaluated in one
// walk: that is how rows come in.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/request/family_access.h"
#include "engine/table/index.h"

namespace cellar {

class IndexSet {
 public:
  explicit IndexSet(const Table& table) : table_(table) {}

  // Makes the set what the table's schema says: adds, drops. An index one of whose families has
  // another policy than in `before`, or has gone, starts anew.
  void Sync(const TableSchema& before);
  // Those that are built in `live`, of a table that this one's was frozen from, need no building.
  void FreezeFrom(const IndexSet& live);
  bool empty() const { return indexes_.empty(); }
  Index* Find(uint64_t id) const;

  // --- the row that is changed
  void BeginRow(std::string_view row_key);
  // O(log n) for each index that watches these columns, and what they hold.
  void WillChange(const ChangedColumns& columns) {
    for (Pending& pending : pending_) {
      if (!pending.covers || (pending.content && pending.Knows(columns))) continue;
      if (!pending.index->Watches(columns)) continue;
      if (!pending.Knows(columns) && !pending.Extend(columns)) Ask(&pending, columns);
      pending.content = pending.content || pending.index->WatchesContent(columns);
    }
  }
  void EndRow();
  // Before the row is deleted whole, outside of BeginRow and EndRow.
  void WillDeleteRow(std::string_view row_key);

  // --- refusing a change afterwards: the name of the index is put into the error
  // REQUIRES: no row is open. NOTUNIQUE, TOOLARGE, TRYAGAIN; what was noted is forgotten. `access`
  // is the rights of whoever is told; null: all.
  Status TakeRefusal(const FamilyAccess* access);
  // What was noted is nobody's mistake: the changes came from the log.
  void ForgetRefusals();
  // Could TakeRefusal() refuse a change of so many bytes, in a row whose key has so many? False if
  // no index is UNIQUE and values are small.
  bool MayRefuse(size_t row_text_bytes, size_t change_bytes) const;

  // The moment at which UNIQUE is checked. Indexes are exact at every moment anyway (index.h).
  void SetTime(int64_t now_micros);
  // Is a ready UNIQUE index not whole (it has started anew)? Until it is, nobody knows which values
  // there are, so what may change its entries is refused.
  bool MustBeWhole() const;
  bool built() const;  // all of them
  // Builds what is not built, about `rows_max` rows. True if nothing is left to build.
  bool Build(uint64_t rows_max);

  using Checkpoint = std::vector<Index::Checkpoint>;
  Checkpoint TakeCheckpoint();
  // REQUIRES: the table's schema has been rolled back already.
  void RollBackTo(const Checkpoint& checkpoint);

  // Before a tree of the table is destroyed.
  void DropCursors();

  uint64_t memory_bytes() const;
  void AppendTrees(std::vector<BTree*>* trees) const;  // those of live indexes
  // Trees of dropped and restarted indexes, for a slow end elsewhere.
  std::vector<std::unique_ptr<BTree>> TakeRetiredTrees() { return std::move(retired_); }
  // All trees. Nothing but destruction is allowed afterwards.
  std::vector<std::unique_ptr<BTree>> ReleaseTrees();

 private:
  struct Pending {
    Index* index{nullptr};
    bool covers{false};  // is it to be told of changes of the row?
    bool asked{false};
    bool unbuilt{false};  // a column of the index changes in a row that it does not cover yet
    bool content{false};  // has a column changed that stands in entries?
    Index::Evaluation before;
    // Of what it was asked.
    uint32_t family_id{0};
    std::string begin;
    std::string end;
    bool one{false};

    ChangedColumns columns() const { return {family_id, begin, end, one}; }
    bool Knows(const ChangedColumns& others) const {
      if (!asked || !index->by_column()) return asked;
      return others == columns() ||
             (others.one && others.family_id == family_id && columns().Has(others.begin));
    }
    // It was asked of a column that is not there, and no more is one behind it up to this one: what
    // it said is what it says of all of them. False if that is not so.
    bool Extend(const ChangedColumns& others) {
      if (!asked || !index->by_column() || !before.absent) return false;
      if (!others.one || others.family_id != family_id || others.begin <= begin) return false;
      if (!before.absent_until.empty() && others.begin >= before.absent_until) return false;
      one = false;
      end.assign(others.begin);
      end.push_back('\0');  // the end is exclusive, and no qualifier begins with another one
      return true;
    }
  };
  void Ask(Pending* pending, const ChangedColumns& columns);
  void Settle(Pending* pending);
  bool MustBeWhole(const Index& index) const;
  bool IsBuiltAgain(const Index& index) const;
  Status RefusalOf(Index& index, const FamilyAccess* access);
  void Retire(std::unique_ptr<Index> index);
  void Restart(std::unique_ptr<Index>* index);
  void MakePending();
  const IndexSchema& SchemaOf(const Index& index) const;

  const Table& table_;
  std::vector<std::unique_ptr<Index>> indexes_;
  std::vector<Pending> pending_;  // one for each index
  std::string row_key_;
  Index::Evaluation now_;
  int64_t now_micros_{0};
  const Index* asked_too_early_{nullptr};  // it must be whole for what has changed
  std::vector<std::unique_ptr<BTree>> retired_;
};

}  // namespace cellar
