// See index_set.h.
#include "engine/table/index_set.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/text/number.h"
#include "engine/table/table.h"

namespace cellar {
namespace {

// Has a family that the index reads another policy now, or gone?
bool Outdated(const IndexSchema& index, const TableSchema& before, const TableSchema& now) {
  return std::any_of(before.families.begin(), before.families.end(), [&](const FamilySchema& old) {
    if (!index.of_rows() && !index.NamesFamily(old.id)) return false;
    const FamilySchema* family = now.FindFamilyById(old.id);
    return family == nullptr || !(family->policy == old.policy);
  });
}

}  // namespace

Index* IndexSet::Find(uint64_t id) const {
  const auto found = std::find_if(indexes_.begin(), indexes_.end(),
                                  [id](const auto& index) { return index->id() == id; });
  return found == indexes_.end() ? nullptr : found->get();
}

const IndexSchema& IndexSet::SchemaOf(const Index& index) const {
  const std::vector<IndexSchema>& all = table_.schema().indexes;
  const auto found = std::find_if(
      all.begin(), all.end(), [&](const IndexSchema& schema) { return schema.id == index.id(); });
  CELLAR_ASSERT(found != all.end());
  return *found;
}

void IndexSet::MakePending() {
  asked_too_early_ = nullptr;
  pending_.clear();
  for (const auto& index : indexes_) {
    Pending pending;
    pending.index = index.get();
    pending_.push_back(std::move(pending));
  }
}

void IndexSet::Retire(std::unique_ptr<Index> index) { index->ReleaseTrees(&retired_); }

void IndexSet::Sync(const TableSchema& before) {
  std::vector<std::unique_ptr<Index>> old = std::move(indexes_);
  indexes_.clear();
  for (const IndexSchema& schema : table_.schema().indexes) {
    // It has no entries any more. If it had some before it failed, they are retired below.
    if (schema.state == IndexState::kFailed) continue;
    const auto kept = std::find_if(old.begin(), old.end(), [&](const auto& index) {
      return index != nullptr && index->id() == schema.id;
    });
    if (kept != old.end() && !Outdated(schema, before, table_.schema())) {
      indexes_.push_back(std::move(*kept));
      continue;
    }
    // New, or one whose spans come from a policy that holds no longer: it is built from nothing.
    indexes_.push_back(std::make_unique<Index>(table_, schema));
    indexes_.back()->SetTime(now_micros_);
  }
  for (std::unique_ptr<Index>& index : old) {
    if (index != nullptr) Retire(std::move(index));
  }
  MakePending();
}

void IndexSet::FreezeFrom(const IndexSet& live) {
  for (const std::unique_ptr<Index>& index : indexes_) {
    const Index* from = live.Find(index->id());
    if (from != nullptr && from->built()) index->FreezeFrom(*from);
  }
}

void IndexSet::Restart(std::unique_ptr<Index>* index) {
  auto fresh = std::make_unique<Index>(table_, SchemaOf(**index));
  fresh->SetTime(now_micros_);
  std::swap(*index, fresh);
  Retire(std::move(fresh));
  MakePending();
}

// --- the row that is changed

void IndexSet::BeginRow(std::string_view row_key) {
  row_key_.assign(row_key);
  for (Pending& pending : pending_) {
    pending.covers = pending.index->Covers(row_key_) || IsBuiltAgain(*pending.index);
    pending.asked = false;
    pending.unbuilt = false;
    pending.content = false;
  }
}

// Called before the columns change. What was asked before is complete by now, and is settled first.
// An index that is being built again is not kept up behind its position: EndRow only looks for what
// it would have refused there.
void IndexSet::Ask(Pending* pending, const ChangedColumns& columns) {
  Settle(pending);
  Index* const index = pending->index;
  if (!index->built() && IsBuiltAgain(*index)) [[unlikely]] {
    if (MustBeWhole(*index) && index->WatchesValues(columns)) asked_too_early_ = index;
    if (!index->Covers(row_key_)) {
      pending->unbuilt = pending->unbuilt || index->WatchesValues(columns);
      return;
    }
  }
  pending->family_id = columns.family_id;
  pending->begin.assign(columns.begin);
  pending->end.assign(columns.end);
  pending->one = columns.one;
  index->EvaluateHeld(row_key_, columns, &pending->before);
  pending->asked = true;
  pending->content = false;
}

// The change of what it was asked of is complete.
void IndexSet::Settle(Pending* pending) {
  if (!pending->asked) return;
  pending->asked = false;
  if (!pending->content && pending->index->KeepsRow(row_key_, pending->before)) return;
  pending->index->Evaluate(row_key_, pending->columns(), &now_);
  pending->index->Replace(pending->before, now_);
  if (now_.too_large_bytes > 0) [[unlikely]]
    pending->index->NoteTooLarge(row_key_, pending->columns());
  pending->before.Trim();
  now_.Trim();
}

void IndexSet::EndRow() {
  for (Pending& pending : pending_) {
    Settle(&pending);
    if (!pending.unbuilt) [[likely]]
      continue;
    pending.unbuilt = false;
    if (!pending.index->by_column()) pending.index->CheckUnbuiltRow(row_key_, &now_);
  }
}

void IndexSet::WillDeleteRow(std::string_view row_key) {
  const Index::Evaluation none;
  for (const auto& index : indexes_) {
    // No question is open here: the row goes as a whole, so its entries do.
    if (!index->Covers(row_key)) continue;
    index->EvaluateHeld(row_key, index->whole_row(), &now_);
    index->Replace(now_, none);
  }
  now_.Trim();
}

bool IndexSet::MayRefuse(size_t row_text_bytes, size_t change_bytes) const {
  return std::any_of(indexes_.begin(), indexes_.end(), [&](const auto& index) {
    return index->unique() || index->MayOutgrow(row_text_bytes, change_bytes);
  });
}

void IndexSet::ForgetRefusals() {
  for (const auto& index : indexes_) index->ForgetConflicts();
  asked_too_early_ = nullptr;
}

// May values and row keys be told that an index holds?
static bool MayTell(const TableSchema& table, const IndexSchema& index,
                    const FamilyAccess* access) {
  if (access == nullptr) return true;
  return std::all_of(table.families.begin(), table.families.end(), [&](const FamilySchema& family) {
    return !(index.of_rows() || index.NamesFamily(family.id)) || access->MayRead(family.name);
  });
}

// Why a change must be taken back, judged at its end: an entry that is too large, values that are
// not unique, or that nobody can tell. Whoever may not read the index's columns is not told whose
// values they are.
Status IndexSet::RefusalOf(Index& index, const FamilyAccess* access) {
  const IndexSchema& schema = SchemaOf(index);
  const std::string& name = schema.name;
  const size_t too_large_bytes = index.FindTooLarge(&now_);
  if (too_large_bytes > 0) {
    return Status::Error(ErrorCode::kTooLarge, "the row would have an entry of " +
                                                   FormatUint64(too_large_bytes) +
                                                   " bytes in index '" + name +
                                                   "', the limit for ON values and row key "
                                                   "is " +
                                                   FormatUint64(kIndexEntryBytesMax));
  }
  Index::Collision collision;
  const Index::Conflict conflict = index.FindConflict(&collision);
  if (conflict == Index::Conflict::kFound) {
    const bool tells = MayTell(table_.schema(), schema, access);
    return Status::Error(ErrorCode::kNotUnique,
                         (tells ? index.CollisionText(collision) : "another row has these values") +
                             " in index '" + name + "'");
  }
  if (conflict == Index::Conflict::kUnknown) {
    return Status::Error(
        ErrorCode::kTryAgain,
        "index '" + name +
            "' has many expired entries with these values, which are being reclaimed");
  }
  if (asked_too_early_ == &index && MustBeWhole(index)) {
    return Status::Error(ErrorCode::kTryAgain,
                         "index '" + name + "' is being rebuilt after a change of retention");
  }
  return Status::Ok();
}

Status IndexSet::TakeRefusal(const FamilyAccess* access) {
  Status status;
  for (const auto& index : indexes_) {
    if (status.ok()) status = RefusalOf(*index, access);
    index->ForgetConflicts();
  }
  asked_too_early_ = nullptr;
  return status;
}

// --- time, building

void IndexSet::SetTime(int64_t now_micros) {
  now_micros_ = now_micros;
  for (const auto& index : indexes_) index->SetTime(now_micros);
}

bool IndexSet::MustBeWhole(const Index& index) const {
  if (index.built()) [[likely]]
    return false;
  const IndexSchema& schema = SchemaOf(index);
  return schema.unique && schema.state == IndexState::kReady;
}

// Was it whole once, and is not now? What it would refuse is refused meanwhile too.
bool IndexSet::IsBuiltAgain(const Index& index) const {
  if (index.built()) [[likely]]
    return false;
  return SchemaOf(index).state == IndexState::kReady;
}

bool IndexSet::MustBeWhole() const {
  return std::any_of(indexes_.begin(), indexes_.end(),
                     [this](const auto& index) { return MustBeWhole(*index); });
}

bool IndexSet::built() const {
  return std::all_of(indexes_.begin(), indexes_.end(),
                     [](const auto& index) { return index->built(); });
}

bool IndexSet::Build(uint64_t rows_max) {
  bool done = true;
  for (const auto& index : indexes_) {
    if (!index->built() && !index->Build(rows_max)) done = false;
  }
  return done;
}

// --- undo

IndexSet::Checkpoint IndexSet::TakeCheckpoint() {
  Checkpoint checkpoint;
  for (const auto& index : indexes_) checkpoint.push_back(index->TakeCheckpoint());
  return checkpoint;
}

void IndexSet::RollBackTo(const Checkpoint& checkpoint) {
  // What came since goes, what went since is built again.
  Sync(table_.schema());
  for (std::unique_ptr<Index>& index : indexes_) {
    const auto was = std::find_if(checkpoint.begin(), checkpoint.end(),
                                  [&](const auto& taken) { return index->Took(taken); });
    if (was == checkpoint.end()) {
      Restart(&index);
    } else {
      index->RollBackTo(*was);
    }
  }
}

void IndexSet::DropCursors() {
  for (const auto& index : indexes_) index->DropCursors();
}

uint64_t IndexSet::memory_bytes() const {
  uint64_t bytes = 0;
  for (const auto& index : indexes_) bytes += index->memory_bytes();
  return bytes;
}

void IndexSet::AppendTrees(std::vector<BTree*>* trees) const {
  for (const std::unique_ptr<Index>& index : indexes_) trees->push_back(index->mutable_entries());
}

std::vector<std::unique_ptr<BTree>> IndexSet::ReleaseTrees() {
  for (std::unique_ptr<Index>& index : indexes_) Retire(std::move(index));
  indexes_.clear();
  pending_.clear();
  return std::move(retired_);
}

}  // namespace cellar
