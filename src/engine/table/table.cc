// The primitives that change a table, and the bookkeeping that goes with them.
#include "engine/table/table.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/assert.h"
#include "base/coding.h"
#include "base/text/quote.h"
#include "engine/keys/hyperloglog.h"
#include "engine/keys/timestamp.h"
#include "engine/table/version_walk.h"

namespace cellar {
namespace {

constexpr uint64_t kAllEntries{std::numeric_limits<uint64_t>::max()};

bool IsFlagged(std::string_view cell_value) { return CellHasFlags(cell_value, kCellFlags); }

// What packing has saved of a cell; 0 if it is not packed.
uint64_t SavedBytes(std::string_view cell_value) {
  CellValue cell;
  if (!CellHasFlags(cell_value, kCellCompressed)) return 0;
  ReadStoredHead(cell_value, &cell);
  const size_t plain_bytes = PlainBytesOf(cell.stored);
  return plain_bytes > cell.stored.size() ? plain_bytes - cell.stored.size() : 0;
}

// The end of the keys that begin with `prefix`, as BTree takes it: empty is no bound.
std::string EndOf(std::string_view prefix) {
  KeyBound bound = Successor(prefix);
  return bound.at_end ? std::string() : std::move(bound.bytes);
}

bool BeforeEnd(std::string_view key, std::string_view end) { return end.empty() || key < end; }

}  // namespace

// Only cells with a flag (an expiry, a packed value) are counted one by one; the plain majority
// costs one look at a byte.
void FamilyCounters::CountFlagged(std::string_view cell_value) {
  if (CellHasFlags(cell_value, kCellHasExpiry)) ++expiring_cells;
  if (!CellHasFlags(cell_value, kCellCompressed)) return;
  ++packed_cells;
  saved_bytes += SavedBytes(cell_value);
}

void FamilyCounters::UncountFlagged(std::string_view cell_value) {
  if (CellHasFlags(cell_value, kCellHasExpiry)) {
    CELLAR_ASSERT(expiring_cells > 0);
    --expiring_cells;
  }
  if (!CellHasFlags(cell_value, kCellCompressed)) return;
  CELLAR_ASSERT(packed_cells > 0);
  --packed_cells;
  saved_bytes -= SavedBytes(cell_value);
}

Table::Table(uint64_t id, std::string keyspace, std::string name, TableSchema schema)
    : id_(id), keyspace_(std::move(keyspace)), name_(std::move(name)), schema_(std::move(schema)) {
  CELLAR_ASSERT(id_ > 0);
  counters_.families.resize(schema_.families.size());
  for (size_t i = 0; i < schema_.groups.size(); ++i) groups_.push_back(MakeGroup());
  SyncIndexes(schema_);
}

Table::~Table() = default;

Table::Group Table::MakeGroup() const {
  Group group;
  group.tree = std::make_unique<BTree>();
  group.cursor = std::make_unique<BTreeCursor>(*group.tree);
  return group;
}

void Table::SetFrozen(std::string snapshot, int64_t at_micros) {
  CELLAR_ASSERT(at_micros >= 0);
  snapshot_ = std::move(snapshot);
  frozen_micros_ = at_micros;
  fixed_ = true;
}

void Table::SetTree(size_t group, std::unique_ptr<BTree> tree) {
  // Cursors stand in the old tree, which must not die before them.
  if (indexes_ != nullptr) indexes_->DropCursors();
  groups_[group].cursor.reset();
  groups_[group].tree = std::move(tree);
  groups_[group].cursor = std::make_unique<BTreeCursor>(*groups_[group].tree);
}

// The copy shares all nodes with this table: O(trees). An index that is not ready would have to be
// built from rows that change no more, so it is left out.
std::unique_ptr<Table> Table::Freeze(uint64_t id, std::string snapshot, int64_t at_micros,
                                     uint64_t tree_id_first) const {
  CELLAR_ASSERT(!frozen());
  CELLAR_ASSERT(!row_.open);
  TableSchema schema = schema_;
  for (GroupSchema& group : schema.groups) group.tree_id = tree_id_first++;
  std::erase_if(schema.indexes, [](const IndexSchema& index) {
    return index.state != IndexState::kReady || !index.judged;
  });
  auto table = std::make_unique<Table>(id, keyspace_, name_, std::move(schema));
  table->SetFrozen(std::move(snapshot), at_micros);
  table->counters_ = counters_;
  table->last_lsn_ = last_lsn_;
  table->SetTablets(tablets_);
  for (size_t i = 0; i < groups_.size(); ++i) table->SetTree(i, groups_[i].tree->Freeze());
  if (table->indexes_ != nullptr) table->indexes_->SetTime(at_micros);
  if (table->indexes_ != nullptr && indexes_ != nullptr) table->indexes_->FreezeFrom(*indexes_);
  return table;
}

// What a view has read by is kept by it. An index asks at each UNIQUE value.
void Table::SetTablets(Tablets::Pointer tablets) {
  tablets_ = std::move(tablets);
  clamp_ = tablets_ == nullptr || tablets_->owns_all() ? nullptr : tablets_.get();
  if (piece_ == nullptr) shown_ = clamp_;
}

std::shared_ptr<void> Table::HoldRows() const {
  std::shared_ptr<char> hold = rows_hold_.lock();
  if (hold == nullptr) rows_hold_ = hold = std::make_shared<char>();
  return hold;
}

void Table::ShowPiece(Tablets::Pointer piece) {
  piece_ = std::move(piece);
  shown_ = piece_ != nullptr ? piece_.get() : clamp_;
}

Status Table::CheckOwned(std::string_view row_key) const {
  return clamp_ == nullptr || clamp_->Owns(row_key) ? Status::Ok() : NotOwned(row_key);
}

Status Table::NotOwned(std::string_view row_key) const {
  std::string row;
  const bool decoded = schema_.key.Decode(row_key, &row);
  CELLAR_ASSERT(decoded);
  return Status::Error(ErrorCode::kTryAgain,
                       "row " + Quote(row) + " of table " + Quote(shown_name()) + " has moved");
}

uint64_t Table::held_bytes() const {
  uint64_t bytes = 0;
  for (const BTree* tree : Trees()) bytes += tree->frozen() ? tree->held_bytes() : 0;
  return bytes;
}

uint64_t Table::own_bytes() const {
  uint64_t bytes = sizeof(Table) + known_columns_.memory_bytes();
  for (const BTree* tree : Trees()) bytes += tree->frozen() ? sizeof(BTree) : tree->memory_bytes();
  return bytes;
}

// Notes the column for EncodeColumn, so that the next write or read of it finds its encoded form by
// its text.
Status Table::EncodeNewColumn(std::string_view name, const FamilySchema** family, char** to) const {
  std::string_view family_name;
  std::string_view qualifier;
  if (!SplitColumn(name, &family_name, &qualifier)) {
    return Status::Error(ErrorCode::kErr, Quote(name) + " is not a column (family:qualifier)");
  }
  const char* const key = *to;
  RETURN_IF_ERROR(cellar::EncodeColumn(schema_, family_name, qualifier, family, to));
  known_columns_.Note(name, **family, {key, static_cast<size_t>(*to - key)});
  return Status::Ok();
}

void Table::Rename(std::string_view keyspace, std::string_view name) {
  keyspace_ = keyspace;
  name_ = name;
  watches_.NoteAll();
}

uint64_t Table::cells() const {
  uint64_t cells = 0;
  for (const FamilyCounters& family : counters_.families) cells += family.cells;
  return cells;
}

uint64_t Table::memory_bytes() const {
  uint64_t bytes = sizeof(Table) + known_columns_.memory_bytes();
  for (const Group& group : groups_) bytes += group.tree->memory_bytes();
  if (indexes_ != nullptr) bytes += indexes_->memory_bytes();
  return bytes;
}

// Whether what is counted is what clients see: no family may hold cells that retention has dropped
// and that have not been reclaimed.
bool Table::counts_are_live() const {
  if (counters_.has_ghosts) return false;
  return std::all_of(schema_.families.begin(), schema_.families.end(),
                     [this](const FamilySchema& family) { return family_is_all_live(family); });
}

bool Table::MayHoldDropped() const {
  if (counts_are_live()) return false;
  if (counters_.has_ghosts || swept_changes_ != changes()) return true;
  return std::any_of(
      schema_.families.begin(), schema_.families.end(), [this](const FamilySchema& family) {
        return family.policy.depends_on_age() || family_counters(family).expiring_cells > 0;
      });
}

// A seek in each group that holds anything: a row's cells may stand in any of them.
bool Table::RowIsStored(std::string_view row_key) const {
  return std::any_of(groups_.begin(), groups_.end(), [&](const Group& group) {
    if (group.tree->entries() == 0) return false;
    group.cursor->Seek(row_key);
    return group.cursor->valid() && group.cursor->key().starts_with(row_key);
  });
}

// --- one row

// Whether the row exists is known from the change itself where it can be (NotePut, LearnExistence);
// only a row that may have become empty is looked for.
void Table::CloseRow() {
  const std::string_view row_key = open_row_key();
  if (indexes_ != nullptr) indexes_->EndRow();
  if (row_.existence_known) {  // else nothing was changed
    const bool exists = row_.perhaps_empty ? RowIsStored(row_key) : true;
    if (exists && !row_.existed) ++counters_.rows;
    if (!exists && row_.existed) {
      CELLAR_ASSERT(counters_.rows > 0);
      --counters_.rows;
    }
  }
  if (row_.visible) {
    watches_.Note();
    watches_.NoteRow(row_key);
  }
  row_.open = false;
}

void Table::BeginRow(std::string_view row_key) {
  CELLAR_ASSERT(!row_key.empty());
  EndRow();
  key_.Assign(row_key);
  row_ = RowChange{.open = true, .row_bytes = row_key.size()};
  if (indexes_ != nullptr) indexes_->BeginRow(row_key);
}

void Table::EndRow() {
  if (row_.open) CloseRow();
}

void Table::SetKey(const FamilySchema& family, std::string_view qualifier) {
  CELLAR_ASSERT(row_.open);
  key_.Truncate(row_.row_bytes);
  PutFamilyId(&key_, family.id);
  key_.Append(qualifier);
}

// Before a delete. Afterwards nobody could tell whether the row was there.
void Table::LearnExistence() {
  if (row_.existence_known) return;
  row_.existed = RowIsStored(open_row_key());
  row_.existence_known = true;
  row_.perhaps_empty = !row_.existed;  // deleting nothing from nothing makes no row
}

// The put says so itself where both neighbours stand in its leaf, or one that belongs to the row;
// at the edge of a leaf it takes a seek, and in every other group that has anything.
CELLAR_INLINE bool Table::RowHasOther(const FamilySchema& family, std::string_view key,
                                      size_t row_bytes, const BTreeWriteResult& result) const {
  return result.existed || result.shared_with_neighbor >= row_bytes ||
         SeekOther(family, key, row_bytes, result);
}

bool Table::SeekOther(const FamilySchema& family, std::string_view key, size_t row_bytes,
                      const BTreeWriteResult& result) const {
  const std::string_view row_key = key.substr(0, row_bytes);
  for (size_t i = 0; i < groups_.size(); ++i) {
    if (groups_[i].tree->entries() == 0) continue;
    if (i == family.group && result.shared_is_exact) continue;
    BTreeCursor& at = *groups_[i].cursor;
    at.Seek(row_key);
    if (i == family.group && at.valid() && at.key() == key) at.Next();
    if (at.valid() && at.key().starts_with(row_key)) return true;
  }
  return false;
}

void Table::NotePut(const FamilySchema& family, const BTreeWriteResult& result) {
  row_.visible = true;
  row_.perhaps_empty = false;
  if (row_.existence_known) return;
  row_.existence_known = true;
  row_.existed = RowHasOther(family, key_.view(), row_.row_bytes, result);
}

// The one place where a cell gets into a tree by itself, with all that is counted for it. The
// counters of flags need the old value, so they come before the write.
CELLAR_INLINE BTreeWriteResult Table::PutVersion(const FamilySchema& family, std::string_view key,
                                                 std::string_view cell_value, BTreePlace* place) {
  CELLAR_ASSERT(key.size() <= kTreeKeyBytesMax);
  BTree& tree = *groups_[family.group].tree;
  FamilyCounters& counters = mutable_counters(family);
  UncountFlags(family, key);
  const BTreeWriteResult result = tree.Put(key, cell_value, place);
  counters.logged_bytes += key.size() + cell_value.size();
  if (result.existed) {
    counters.bytes += cell_value.size();
    CELLAR_ASSERT(counters.bytes >= result.old_value_bytes);
    counters.bytes -= result.old_value_bytes;
  } else {
    ++counters.cells;
    counters.bytes += key.size() + cell_value.size();
  }
  if (IsFlagged(cell_value)) [[unlikely]]
    counters.CountFlagged(cell_value);
  return result;
}

CELLAR_INLINE BTreeWriteResult Table::ReplaceVersion(const FamilySchema& family,
                                                     std::string_view key, size_t column_bytes,
                                                     int64_t replaced, std::string_view cell_value,
                                                     BTreePlace* place) {
  CELLAR_ASSERT(key.size() <= kTreeKeyBytesMax);
  CELLAR_ASSERT(column_bytes <= key.size());
  replaced_key_.Assign({key.data(), column_bytes});
  PutTimestamp(&replaced_key_, replaced);
  CELLAR_DEBUG_ASSERT(replaced_key_.view() > key);  // the older one stands behind
  UncountFlags(family, replaced_key_.view());
  UncountFlags(family, key);
  BTree& tree = *groups_[family.group].tree;
  FamilyCounters& counters = mutable_counters(family);
  // What the tree has more of afterwards is right also where the old version is gone already, or
  // the new one there.
  const uint64_t entries = tree.entries();
  const uint64_t bytes = tree.payload_bytes();
  const BTreeWriteResult result = tree.Replace(replaced_key_.view(), key, cell_value, place);
  counters.cells += tree.entries() - entries;
  counters.bytes += tree.payload_bytes() - bytes;
  counters.logged_bytes += key.size() + cell_value.size();
  if (IsFlagged(cell_value)) [[unlikely]]
    counters.CountFlagged(cell_value);
  if (result.existed) ++counters.reclaimed;
  return result;
}

void Table::PutCell(const FamilySchema& family, std::string_view qualifier, int64_t timestamp,
                    std::string_view cell_value) {
  WillChange(ChangedColumns::One(family.id, qualifier));
  SetKey(family, qualifier);
  PutTimestamp(&key_, timestamp);
  NotePut(family, PutVersion(family, key_.view(), cell_value, nullptr));
}

void Table::AddPut(const FamilySchema& family, std::string_view qualifier, int64_t timestamp,
                   std::string_view cell_value, std::string_view payload, RowPuts* puts) {
  SetKey(family, qualifier);
  PutTimestamp(&key_, timestamp);
  ResolvedPut put;
  put.family = &family;
  put.key = key_.view().data();
  put.row_bytes = row_.row_bytes;
  put.key_bytes = key_.size();
  put.timestamp = timestamp;
  put.cell_value = cell_value;
  puts->Add(put, payload);
}

void Table::ReplaceCell(const FamilySchema& family, std::string_view qualifier, int64_t timestamp,
                        int64_t replaced, std::string_view cell_value) {
  CELLAR_ASSERT(replaced < timestamp);
  WillChange(ChangedColumns::One(family.id, qualifier));
  SetKey(family, qualifier);
  const size_t column_bytes = key_.size();
  PutTimestamp(&key_, timestamp);
  NotePut(family, ReplaceVersion(family, key_.view(), column_bytes, replaced, cell_value, nullptr));
}

// The log holds the input, and the state is made here, at every node alike. An input that changes
// nothing writes nothing.
void Table::FoldHll(MutationOp op, const FamilySchema& family, std::string_view qualifier,
                    int64_t timestamp, std::string_view input) {
  CELLAR_ASSERT(family.is_hll());
  WillChange(ChangedColumns::One(family.id, qualifier));
  SetKey(family, qualifier);
  PutTimestamp(&key_, timestamp);
  CellValue cell{.type = ValueType::kHll, .expiry_micros = kNoExpiry, .stored = {}};
  const std::optional<std::string_view> old = groups_[family.group].tree->Get(key_.view());
  const bool merges = op == MutationOp::kMergeState;
  if (old) ReadStoredHead(*old, &cell);
  if (old && cell.type == ValueType::kHll) {
    const bool changed = merges ? HllMerge(cell.stored, input, &folded_)
                                : HllAdd(cell.stored, HllInputOf(input), &folded_);
    if (!changed) return;
  } else if (merges) {
    folded_.assign(input);
  } else {
    folded_ = HllStateOf(HllInputOf(input));
  }
  cell.type = ValueType::kHll;
  cell.stored = folded_;
  cell_value_.clear();
  PutCellValue(&cell_value_, cell);
  NotePut(family, PutVersion(family, key_.view(), cell_value_, nullptr));
  // The log has the input, not what the cell has become.
  mutable_counters(family).logged_bytes += input.size();
  mutable_counters(family).logged_bytes -= cell_value_.size();
}

// BeginRow, PutCell and EndRow in one, for a put that stands alone in its record: nothing is copied
// into key_, and the row is looked for only where the tree cannot tell.
void Table::ApplyPut(const ResolvedPut& put) {
  CELLAR_ASSERT(put.row_bytes > 0);
  EndRow();
  const FamilySchema& family = *put.family;
  if (indexes_ != nullptr) {
    indexes_->BeginRow(put.row_key());
    indexes_->WillChange(ChangedColumns::One(family.id, put.qualifier()));
  }
  const std::string_view key = put.cell_key();
  CELLAR_ASSERT(!put.replaced || *put.replaced < put.timestamp);
  const BTreeWriteResult result =
      put.replaced
          ? ReplaceVersion(family, key, put.column_bytes, *put.replaced, put.cell_value, put.place)
          : PutVersion(family, key, put.cell_value, put.place);
  if (!RowHasOther(family, key, put.row_bytes, result)) ++counters_.rows;
  if (indexes_ != nullptr) indexes_->EndRow();
  watches_.Note();
  watches_.NoteRow(put.row_key());
}

// PutVersion for puts of one family that ascend: the tree takes them in one descent where they go
// into the same leaf.
BTreeWriteResult Table::PutVersions(const RowPuts& puts, std::span<const RowPuts::Put> of_family,
                                    std::string_view payload) {
  const FamilySchema& family = *of_family.front().family;
  BTree& tree = *groups_[family.group].tree;
  FamilyCounters& counters = mutable_counters(family);
  const bool has_flagged = counters.has_flagged();  // else nothing that they replace has flags
  uint64_t logged_bytes = 0;
  run_.resize(of_family.size());
  for (size_t i = 0; i < of_family.size(); ++i) {
    const RowPuts::Put& put = of_family[i];
    CELLAR_ASSERT(put.key_bytes <= kTreeKeyBytesMax);
    CELLAR_DEBUG_ASSERT(size_t{put.value_at} + put.value_bytes <= payload.size());
    const std::string_view key = puts.key(put);
    const std::string_view cell_value(payload.data() + put.value_at, put.value_bytes);
    if (has_flagged) [[unlikely]]
      UncountFlagsAt(family, key);
    if (IsFlagged(cell_value)) [[unlikely]]
      counters.CountFlagged(cell_value);
    logged_bytes += key.size() + cell_value.size();
    run_[i] = {key, cell_value};
  }
  counters.logged_bytes += logged_bytes;
  const uint64_t entries = tree.entries();
  const uint64_t bytes = tree.payload_bytes();
  const BTreeWriteResult result = tree.PutRun(run_);
  counters.cells += tree.entries() - entries;
  counters.bytes += tree.payload_bytes() - bytes;
  constexpr size_t kRunKept{1024};  // its memory is nobody's, and each table has one
  if (run_.capacity() > kRunKept) std::vector<BTreePut>().swap(run_);
  return result;
}

// Had the row cells before these puts? See RowHasOther.
bool Table::RowHadOther(const RowPuts& puts, std::span<const RowPuts::Put> of_family,
                        const BTreeWriteResult& result) const {
  if (result.existed || result.shared_with_neighbor >= puts.row_bytes()) return true;
  const size_t group = of_family.front().family->group;
  const std::string_view row_key = puts.key(of_family.front()).substr(0, puts.row_bytes());
  for (size_t i = 0; i < groups_.size(); ++i) {
    if (groups_[i].tree->entries() == 0) continue;
    if (i == group && result.shared_is_exact) continue;
    BTreeCursor& at = *groups_[i].cursor;
    at.Seek(row_key);
    if (i == group) {  // what else there is stands before, between or behind them
      for (const RowPuts::Put& put : of_family)
        if (at.valid() && at.key() == puts.key(put)) at.Next();
    }
    if (at.valid() && at.key().starts_with(row_key)) return true;
  }
  return false;
}

// ApplyPut for several puts of one row, which are ordered by family and then by key (row_puts.h).
void Table::ApplyPuts(const RowPuts& puts, std::string_view payload) {
  CELLAR_ASSERT(!has_indexes());
  CELLAR_ASSERT(puts.row_bytes() > 0);
  EndRow();
  std::span<const RowPuts::Put> rest = puts.puts();
  bool is_first = true;
  while (!rest.empty()) {
    const FamilySchema* const family = rest.front().family;
    const auto end = std::find_if(rest.begin(), rest.end(), [family](const RowPuts::Put& put) {
      return put.family != family;
    });
    const auto of_family = rest.first(static_cast<size_t>(end - rest.begin()));
    // Only the first run can tell if the row is new: the others find what it has put.
    const BTreeWriteResult result = PutVersions(puts, of_family, payload);
    if (is_first && !RowHadOther(puts, of_family, result)) ++counters_.rows;
    is_first = false;
    rest = rest.subspan(of_family.size());
  }
  watches_.Note();
  watches_.NoteRow(puts.key(puts.puts().front()).substr(0, puts.row_bytes()));
}

void Table::UncountFlagsAt(const FamilySchema& family, std::string_view key) {
  const std::optional<std::string_view> old = groups_[family.group].tree->Get(key);
  if (old && IsFlagged(*old)) mutable_counters(family).UncountFlagged(*old);
}

bool Table::RemoveEntry(const FamilySchema& family, std::string_view key) {
  BTree& tree = *groups_[family.group].tree;
  FamilyCounters& counters = mutable_counters(family);
  UncountFlags(family, key);
  counters.logged_bytes += key.size();
  const BTreeWriteResult result = tree.Delete(key);
  if (!result.existed) return false;
  CELLAR_ASSERT(counters.cells > 0);
  --counters.cells;
  counters.bytes -= key.size() + result.old_value_bytes;
  row_.perhaps_empty = true;
  return true;
}

// Flags have to be uncounted cell by cell; where none is there, the tree drops whole leaves without
// a look at their cells.
bool Table::RemoveRange(const FamilySchema& family, std::string_view begin, std::string_view end) {
  if (!BeforeEnd(begin, end)) return false;
  BTree& tree = *groups_[family.group].tree;
  FamilyCounters& counters = mutable_counters(family);
  counters.logged_bytes += begin.size() + end.size();
  if (counters.cells == 0) return false;
  if (counters.has_flagged()) {
    BTreeCursor& at = *groups_[family.group].cursor;
    for (at.Seek(begin); at.valid() && BeforeEnd(at.key(), end); at.Next()) {
      if (IsFlagged(at.value())) counters.UncountFlagged(at.value());
    }
  }
  const uint64_t bytes_before = tree.payload_bytes();
  const uint64_t removed = tree.DeleteRange(begin, end, kAllEntries);
  CELLAR_ASSERT(counters.cells >= removed);
  counters.cells -= removed;
  counters.bytes -= bytes_before - tree.payload_bytes();
  if (removed > 0) row_.perhaps_empty = true;
  return removed > 0;
}

void Table::DeleteCell(const FamilySchema& family, std::string_view qualifier, int64_t timestamp) {
  LearnExistence();
  WillChange(ChangedColumns::One(family.id, qualifier));
  SetKey(family, qualifier);
  PutTimestamp(&key_, timestamp);
  row_.visible |= RemoveEntry(family, key_.view());
}

void Table::DeleteRange(const FamilySchema& family, std::string_view begin, std::string_view end) {
  LearnExistence();
  WillChange({family.id, begin, end, false});
  SetKey(family, {});
  const std::string end_key =
      end.empty() ? EndOf(key_.view()) : std::string(key_.view()) + std::string(end);
  key_.Append(begin);
  row_.visible |= RemoveRange(family, key_.view(), end_key);
}

void Table::DeleteRow() {
  LearnExistence();
  for (const FamilySchema& family : schema_.families) {
    WillChange(ChangedColumns::Family(family.id));
    SetKey(family, {});
    row_.visible |= RemoveRange(family, key_.view(), EndOf(key_.view()));
  }
}

// Looks at all versions of the column and removes those that the policy drops at `now_micros`. The
// record says the time, not the versions: every node that applies it finds the same ones.
void Table::ReclaimColumn(const FamilySchema& family, std::string_view qualifier,
                          int64_t now_micros) {
  WillChange(ChangedColumns::One(family.id, qualifier));
  SetKey(family, qualifier);
  dropped_.clear();
  BTreeCursor& at = *groups_[family.group].cursor;
  const size_t column_bytes = key_.size();
  at.Seek(key_.view());
  ColumnWalk versions(at, key_.view(), {family.policy, false, now_micros});
  while (versions.Next()) {
    if (versions.fate() != Fate::kLive) dropped_.push_back(versions.timestamp_micros());
  }
  if (dropped_.empty()) return;
  // What is dropped was stored, so the row was there. No client could see it, so `visible` stays as
  // it is.
  if (!std::exchange(row_.existence_known, true)) row_.existed = true;
  for (const int64_t timestamp : dropped_) {
    key_.Truncate(column_bytes);
    PutTimestamp(&key_, timestamp);
    (void)RemoveEntry(family, key_.view());
  }
  if (dropped_.size() < versions.rank())
    row_.perhaps_empty = false;  // a version of this column is left
  mutable_counters(family).reclaimed += dropped_.size();
}

// --- many rows

// The counters of every entry in [begin, end), then the entries themselves. The groups are walked
// together, row by row, since a row that stands in several of them is one row.
void Table::DeleteRows(std::string_view begin, std::string_view end) {
  EndRow();
  const auto inside = [end](const BTreeCursor& at) {
    return at.valid() && BeforeEnd(at.key(), end);
  };
  for (const Group& group : groups_) group.cursor->Seek(begin);
  std::string row_key;
  for (;;) {
    const BTreeCursor* first = nullptr;
    for (const Group& group : groups_) {
      if (!inside(*group.cursor)) continue;
      if (first == nullptr || group.cursor->key() < first->key()) first = group.cursor.get();
    }
    if (first == nullptr) break;
    const size_t row_bytes = schema_.key.EncodedSize(first->key());
    CELLAR_ASSERT(row_bytes > 0);
    row_key.assign(first->key().substr(0, row_bytes));
    if (indexes_ != nullptr) indexes_->WillDeleteRow(row_key);
    CELLAR_ASSERT(counters_.rows > 0);
    --counters_.rows;
    watches_.Note();
    watches_.NoteRow(row_key);
    for (const Group& group : groups_) {
      for (BTreeCursor& at = *group.cursor; inside(at) && at.key().starts_with(row_key);
           at.Next()) {
        UncountEntry(at.key(), row_bytes, at.value());
      }
    }
  }
  // The trees change only now: the cursors above walk over what stands still, and whole leaves go
  // at once.
  for (const Group& group : groups_) group.tree->DeleteRange(begin, end, kAllEntries);
}

void Table::UncountEntry(std::string_view key, size_t row_bytes, std::string_view value) {
  uint32_t family_id = 0;
  const size_t id_bytes = DecodeFamilyId(key.substr(row_bytes), &family_id);
  CELLAR_ASSERT(id_bytes > 0);
  const FamilySchema* family = schema_.FindFamilyById(family_id);
  if (family == nullptr) return;  // a ghost: counted nowhere
  FamilyCounters& counters = mutable_counters(*family);
  CELLAR_ASSERT(counters.cells > 0);
  --counters.cells;
  counters.bytes -= key.size() + value.size();
  if (IsFlagged(value)) counters.UncountFlagged(value);
}

// --- schema

// Counters follow their family by its id. Cells of a family that is gone become ghosts: nobody can
// see them, SweepGhosts removes them, and until then the table's counts are no longer exact.
// Indexes are made, changed and dropped by what the schema says now.
void Table::SetSchema(TableSchema schema) {
  EndRow();
  CELLAR_ASSERT(schema.groups.size() >= schema_.groups.size());
  std::vector<FamilyCounters> counters(schema.families.size());
  for (const FamilySchema& old_family : schema_.families) {
    const FamilySchema* family = schema.FindFamilyById(old_family.id);
    if (family != nullptr) {
      counters[static_cast<size_t>(family - schema.families.data())] = family_counters(old_family);
    } else if (family_counters(old_family).cells > 0) {
      counters_.has_ghosts = true;
    }
  }
  counters_.families = std::move(counters);
  // How far an index has come is nothing that a client did, or can see in a row.
  if (!DifferInIndexStatesAlone(schema_, schema)) watches_.NoteAll();
  std::swap(schema_, schema);
  known_columns_.Clear();
  swept_changes_.reset();
  while (groups_.size() < schema_.groups.size()) groups_.push_back(MakeGroup());
  SyncIndexes(schema);
}

void Table::SyncIndexes(const TableSchema& before) {
  if (indexes_ == nullptr && schema_.indexes.empty()) return;
  if (indexes_ == nullptr) indexes_ = std::make_unique<IndexSet>(*this);
  indexes_->Sync(before);
}

std::vector<std::unique_ptr<BTree>> Table::TakeRetiredTrees() {
  return indexes_ == nullptr ? std::vector<std::unique_ptr<BTree>>() : indexes_->TakeRetiredTrees();
}

// Position: group number (1 byte) and the key in its tree to go on from.
bool Table::SweepGhosts(uint64_t cells_max, std::string* position) {
  if (!counters_.has_ghosts) return true;
  size_t group = position->empty() ? 0 : static_cast<uint8_t>((*position)[0]);
  std::string from = position->empty() ? std::string() : position->substr(1);
  uint64_t examined = 0;
  for (; group < groups_.size(); ++group, from.clear()) {
    BTree& tree = *groups_[group].tree;
    BTreeCursor& at = *groups_[group].cursor;
    for (at.Seek(from); at.valid();) {
      if (++examined > cells_max) {
        position->assign(1, static_cast<char>(group));
        position->append(at.key());
        return false;
      }
      const size_t row_bytes = schema_.key.EncodedSize(at.key());
      CELLAR_ASSERT(row_bytes > 0);
      uint32_t family_id = 0;
      const size_t id_bytes = DecodeFamilyId(at.key().substr(row_bytes), &family_id);
      CELLAR_ASSERT(id_bytes > 0);
      if (schema_.FindFamilyById(family_id) != nullptr) {
        at.Next();
        continue;
      }
      const std::string family_prefix(at.key().substr(0, row_bytes + id_bytes));
      const std::string row_key = family_prefix.substr(0, row_bytes);
      examined += tree.DeleteRange(family_prefix, EndOf(family_prefix), cells_max);
      if (!RowIsStored(row_key)) --counters_.rows;
      at.Seek(family_prefix);
    }
  }
  counters_.has_ghosts = false;
  position->clear();
  return true;
}

// --- undo, snapshots, catalog

Table::Checkpoint Table::TakeCheckpoint() {
  EndRow();
  Checkpoint checkpoint{schema_, counters_, keyspace_, name_, watches_, tablets_, {}, {}};
  checkpoint.trees = TakeSnapshots();
  if (indexes_ != nullptr) checkpoint.indexes = indexes_->TakeCheckpoint();
  return checkpoint;
}

// All that a checkpoint holds, and nothing else: whatever is derived from the schema or the trees
// is forgotten or made anew.
void Table::RollBackTo(const Checkpoint& checkpoint) {
  row_.open = false;
  CELLAR_ASSERT(checkpoint.trees.size() <= groups_.size());
  // Trees of groups that are new since then go here.
  if (indexes_ != nullptr) indexes_->DropCursors();
  for (size_t i = 0; i < checkpoint.trees.size(); ++i) {
    groups_[i].tree->RollBackTo(checkpoint.trees[i]);
  }
  groups_.resize(checkpoint.trees.size());
  schema_ = checkpoint.schema;
  known_columns_.Clear();
  swept_changes_.reset();
  counters_ = checkpoint.counters;
  keyspace_ = checkpoint.keyspace;
  name_ = checkpoint.name;
  watches_ = checkpoint.watches;
  SetTablets(checkpoint.tablets);
  if (indexes_ != nullptr) indexes_->RollBackTo(checkpoint.indexes);
}

// TRUNCATE makes the table anew; what outlives it are record numbers, which are never given twice,
// and who waits for changes.
void Table::TakeOver(const Table& truncated) {
  CELLAR_ASSERT(id_ == truncated.id_);
  counters_.record_number_next = truncated.counters_.record_number_next;
  last_lsn_ = truncated.last_lsn_;
  watches_ = truncated.watches_;
  SetTablets(truncated.tablets_);
  watches_.NoteAll();
}

std::vector<BTreeSnapshot> Table::TakeSnapshots() {
  std::vector<BTreeSnapshot> snapshots;
  snapshots.reserve(groups_.size());
  for (const Group& group : groups_) snapshots.push_back(group.tree->TakeSnapshot());
  return snapshots;
}

std::vector<BTreeSnapshot> Table::TakeSnapshotsForImages() {
  std::vector<BTreeSnapshot> snapshots;
  snapshots.reserve(groups_.size());
  for (const Group& group : groups_) snapshots.push_back(group.tree->TakeSnapshotForImages());
  return snapshots;
}

std::vector<BTree*> Table::Trees() const {
  std::vector<BTree*> trees;
  for (const Group& group : groups_) trees.push_back(group.tree.get());
  if (indexes_ != nullptr) indexes_->AppendTrees(&trees);
  return trees;
}

std::vector<std::unique_ptr<BTree>> Table::ReleaseTrees() {
  std::vector<std::unique_ptr<BTree>> trees;
  if (indexes_ != nullptr) trees = indexes_->ReleaseTrees();
  for (Group& group : groups_) {
    group.cursor.reset();
    trees.push_back(std::move(group.tree));
  }
  groups_.clear();
  return trees;
}

void Table::EncodeCounters(std::string* to) const {
  PutVarint64(to, counters_.rows);
  PutVarint64(to, counters_.record_number_next);
  PutVarint64(to, counters_.has_ghosts ? 1 : 0);
  for (size_t i = 0; i < counters_.families.size(); ++i) {
    const FamilyCounters& family = counters_.families[i];
    PutVarint64(to, family.cells);
    PutVarint64(to, family.bytes);
    PutVarint64(to, family.expiring_cells);
    PutVarint64(to, family.reclaimed);
    if (schema_.families[i].compression == Compression::kNever) continue;
    PutVarint64(to, family.packed_cells);
    PutVarint64(to, family.saved_bytes);
  }
}

Status Table::DecodeCounters(std::string_view* from) {
  uint64_t ghosts = 0;
  bool good = GetVarint64(from, &counters_.rows) &&
              GetVarint64(from, &counters_.record_number_next) && GetVarint64(from, &ghosts);
  for (size_t i = 0; i < counters_.families.size(); ++i) {
    FamilyCounters& family = counters_.families[i];
    good = good && GetVarint64(from, &family.cells) && GetVarint64(from, &family.bytes) &&
           GetVarint64(from, &family.expiring_cells) && GetVarint64(from, &family.reclaimed);
    if (schema_.families[i].compression == Compression::kNever) continue;
    good = good && GetVarint64(from, &family.packed_cells) &&
           GetVarint64(from, &family.saved_bytes) && family.packed_cells <= family.cells;
  }
  counters_.has_ghosts = ghosts != 0;
  if (!good) return Status::Error(ErrorCode::kCorruption, "the counters of a table are malformed");
  return Status::Ok();
}

Status InTable(Status status, const Table& table) {
  if (status.ok()) return status;
  const bool is_index = status.code() == ErrorCode::kNoIndex;
  if (status.code() != ErrorCode::kNoFamily && !is_index) return status;
  return Status::Error(status.code(), status.text() + (is_index ? " on" : " in") + " table " +
                                          Quote(table.shown_name()));
}

}  // namespace cellar
