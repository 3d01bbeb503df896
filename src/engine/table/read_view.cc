// Point reads, over a live table or over its snapshots.
#include "engine/table/read_view.h"

#include <algorithm>

#include "base/assert.h"
#include "engine/table/version_walk.h"

namespace cellar {

void ReadView::Restrict(const FamilyAccess& access) {
  CELLAR_ASSERT(!detached());
  restricted_ = std::make_unique<TableSchema>(*schema_);
  restricted_->access = &access;
  std::erase_if(restricted_->families,
                [&](const FamilySchema& family) { return !access.MayRead(family.name); });
  hides_families_ = restricted_->families.size() < schema_->families.size();
  schema_ = restricted_.get();
}

void ReadView::Detach() {
  if (detached()) return;
  // All that is asked for later is copied, as the table may change or go. What the reader may not
  // see has left the schema already, so its rights need not be kept.
  auto pinned = std::make_unique<Pinned>();
  pinned->table_id = table_->id();
  pinned->schema = *schema_;
  pinned->schema.access = nullptr;
  if (clamp_ != nullptr) pinned->clamp = table_->shared_shown();
  for (const FamilySchema& family : schema_->families) pinned->all_live.push_back(all_live(family));
  pinned->has_ghosts = has_ghosts();
  pinned->rows = rows();
  // Taking a snapshot changes the tree's epoch and nothing that a reader could see.
  pinned->trees = const_cast<Table*>(table_)->TakeSnapshots();
  for (const IndexSchema& schema : pinned->schema.indexes) {
    if (!IndexIsBuilt(schema.id)) continue;
    Index* index = table_->indexes()->Find(schema.id);
    pinned->indexes.push_back(
        {schema.id, index->rows_left_out(), index->mutable_entries()->TakeSnapshot()});
  }
  own_pinned_ = std::move(pinned);
  UsePinned(*own_pinned_);
}

void ReadView::Share(const ReadView& pinned) {
  CELLAR_ASSERT(!detached());
  CELLAR_ASSERT(pinned.detached());
  now_micros_ = pinned.now_micros_;
  hides_families_ = pinned.hides_families_;
  UsePinned(*pinned.pinned_);
}

void ReadView::UsePinned(const Pinned& pinned) {
  pinned_ = &pinned;
  schema_ = &pinned.schema;
  clamp_ = pinned.clamp.get();
  table_ = nullptr;
  for (const BTreeSnapshot& tree : pinned.trees)
    cursors_.push_back(std::make_unique<BTreeCursor>(tree));
}

bool ReadView::all_live(const FamilySchema& family) const {
  if (!pinned_) {
    // The table finds counters by the place in its own schema, and a restricted one is a copy.
    if (!restricted_) return table_->family_is_all_live(family);
    return table_->family_is_all_live(*table_->schema().FindFamilyById(family.id));
  }
  return pinned_->all_live[static_cast<size_t>(&family - schema_->families.data())];
}

bool ReadView::has_ghosts() const {
  return pinned_ ? pinned_->has_ghosts : table_->counters().has_ghosts;
}

uint64_t ReadView::entries(size_t group) const {
  return pinned_ ? pinned_->trees[group].entries() : table_->tree(group).entries();
}

uint64_t ReadView::payload_bytes(size_t group) const {
  return pinned_ ? pinned_->trees[group].payload_bytes() : table_->tree(group).payload_bytes();
}

BTreeCursor& ReadView::cursor(size_t group) const {
  return pinned_ ? *cursors_[group] : table_->cursor(group);
}

void ReadView::Prefetch(std::span<const std::string_view> row_keys) const {
  if (pinned_) return;
  for (size_t group = 0; group < table_->groups(); ++group)
    if (table_->IsWorthPrefetch(group)) table_->tree(group).Prefetch(row_keys);
}

BTreeCursor ReadView::MakeCursor(size_t group) const {
  return pinned_ ? BTreeCursor(pinned_->trees[group]) : BTreeCursor(table_->tree(group));
}

bool ReadView::IndexIsBuilt(uint64_t id) const {
  if (pinned_) {
    return std::any_of(pinned_->indexes.begin(), pinned_->indexes.end(),
                       [id](const auto& index) { return index.id == id; });
  }
  const Index* index = table_->has_indexes() ? table_->indexes()->Find(id) : nullptr;
  return index != nullptr && index->built();
}

const ReadView::Pinned::PinnedIndex& ReadView::IndexPinned(uint64_t id) const {
  const auto found = std::find_if(pinned_->indexes.begin(), pinned_->indexes.end(),
                                  [id](const auto& index) { return index.id == id; });
  CELLAR_ASSERT(found != pinned_->indexes.end());
  return *found;
}

uint64_t ReadView::IndexBytes(uint64_t id) const {
  CELLAR_ASSERT(IndexIsBuilt(id));
  return pinned_ ? IndexPinned(id).entries.payload_bytes()
                 : table_->indexes()->Find(id)->entries().payload_bytes();
}

uint64_t ReadView::IndexEntries(uint64_t id) const {
  CELLAR_ASSERT(IndexIsBuilt(id));
  if (!pinned_) return table_->indexes()->Find(id)->entry_count();
  const Pinned::PinnedIndex& index = IndexPinned(id);
  return index.entries.entries() - (index.rows_left_out > 0 ? 1 : 0);
}

uint64_t ReadView::IndexRowsLeftOut(uint64_t id) const {
  CELLAR_ASSERT(IndexIsBuilt(id));
  return pinned_ ? IndexPinned(id).rows_left_out : table_->indexes()->Find(id)->rows_left_out();
}

std::unique_ptr<BTreeCursor> ReadView::MakeIndexCursor(uint64_t id) const {
  CELLAR_ASSERT(IndexIsBuilt(id));
  return pinned_ ? std::make_unique<BTreeCursor>(IndexPinned(id).entries)
                 : std::make_unique<BTreeCursor>(table_->indexes()->Find(id)->entries());
}

std::optional<CellRead> ReadView::ReadCell(std::string_view row_key, const FamilySchema& family,
                                           std::string_view qualifier, int64_t at_micros) const {
  key_.assign(row_key);
  PutFamilyId(&key_, family.id);
  key_.append(qualifier);
  CellRead read;
  if (!ReadColumn(key_, family, at_micros, &read)) return std::nullopt;
  return read;
}

bool ReadView::ReadByCursor(std::string_view column, const FamilySchema& family, int64_t at_micros,
                            CellRead* read) const {
  BTreeCursor& at = cursor(family.group);
  // Ranks count from the newest version, so only a policy without them lets us start in the middle.
  if (at_micros == kTimestampMax || family.policy.depends_on_rank()) {
    at.SeekNear(column);
  } else {
    version_key_.assign(column);
    PutTimestamp(&version_key_, at_micros);
    at.SeekNear(version_key_);
  }
  ColumnWalk versions(at, column, {family.policy, all_live(family), now_micros_});
  if (!versions.FindLive(at_micros)) return false;
  read->version = versions.version();
  ReadStoredCell(versions.value(), &plain_, &read->value);
  return true;
}

bool ReadView::ColumnIsLive(BTreeCursor& at, std::string_view column_key,
                            const FamilySchema& family) const {
  ColumnWalk versions(at, column_key, {family.policy, false, now_micros_});
  return versions.FindLive(kTimestampMax);
}

// Neighbouring rows are mostly asked for one after the other, so each is looked for from the last
// one on.
bool ReadView::RowIsLive(std::string_view row_key) const {
  for (const FamilySchema& family : schema_->families) {
    if (entries(family.group) == 0) continue;
    key_.assign(row_key);
    PutFamilyId(&key_, family.id);
    const size_t family_bytes = key_.size();
    BTreeCursor& at = cursor(family.group);
    at.SeekNear(key_);
    const bool live = all_live(family);
    while (at.valid() && at.key().starts_with(key_)) {
      if (live) return true;
      const size_t qualifier_bytes = family.order.EncodedSize(at.key().substr(family_bytes));
      CELLAR_ASSERT(qualifier_bytes > 0);
      version_key_.assign(at.key().substr(0, family_bytes + qualifier_bytes));
      if (ColumnIsLive(at, version_key_, family)) return true;
      if (at.valid() && at.key().starts_with(version_key_)) at.Leave(version_key_.size());
    }
  }
  return false;
}

}  // namespace cellar
