// See snapshot_set.h.
#include "engine/state/snapshot_set.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/coding.h"
#include "base/text/number.h"

namespace cellar {

bool IsSnapshotName(std::string_view text) {
  const auto fits = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
  };
  if (text.empty() || text.size() > kSnapshotNameBytesMax || !fits(text[0])) return false;
  return std::all_of(text.begin(), text.end(),
                     [&fits](char c) { return fits(c) || c == '.' || c == '-'; });
}

bool IsCursorName(std::string_view text) {
  return text.size() > 1 && text.size() <= kSnapshotNameBytesMax && text[0] == '#' &&
         std::all_of(text.begin() + 1, text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string CursorSnapshotName(uint64_t id) { return "#" + FormatUint64(id); }

bool SplitSnapshot(std::string_view word, std::string_view* table, std::string_view* snapshot) {
  const size_t sign = word.find(kSnapshotSign);
  if (sign == std::string_view::npos) return false;
  *table = word.substr(0, sign);
  *snapshot = word.substr(sign + 1);
  return true;
}

bool IsOfCursor(std::string_view word) {
  std::string_view table;
  std::string_view snapshot;
  return SplitSnapshot(word, &table, &snapshot) && IsCursorName(snapshot);
}

Table* NamedSnapshot::Find(std::string_view table) const {
  const auto found = tables.find(table);
  return found == tables.end() ? nullptr : found->second.get();
}

size_t SnapshotSet::named() const {
  return static_cast<size_t>(
      std::count_if(by_name_.begin(), by_name_.end(),
                    [](const auto& snapshot) { return !IsCursorName(snapshot.first.second); }));
}

size_t SnapshotSet::cursors() const { return by_name_.size() - named(); }

const NamedSnapshot* SnapshotSet::FindAny(std::string_view keyspace, std::string_view name) const {
  if (by_name_.empty()) return nullptr;
  const auto found = by_name_.find(std::pair(std::string(keyspace), std::string(name)));
  return found == by_name_.end() ? nullptr : FindById(found->second);
}

const NamedSnapshot* SnapshotSet::Find(std::string_view keyspace, std::string_view name) const {
  const NamedSnapshot* snapshot = FindAny(keyspace, name);
  return snapshot != nullptr && !snapshot->hidden ? snapshot : nullptr;
}

NamedSnapshot* SnapshotSet::FindById(uint64_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second.get();
}

Table* SnapshotSet::FindTable(std::string_view keyspace, std::string_view table,
                              std::string_view snapshot) const {
  const NamedSnapshot* found = Find(keyspace, snapshot);
  return found == nullptr ? nullptr : found->Find(table);
}

Table* SnapshotSet::FindTableById(uint64_t id) const {
  const auto found = tables_.find(id);
  return found == tables_.end() ? nullptr : found->second;
}

std::vector<const NamedSnapshot*> SnapshotSet::In(std::string_view keyspace) const {
  std::vector<const NamedSnapshot*> snapshots;
  for (auto at = by_name_.lower_bound(std::pair(std::string(keyspace), std::string()));
       at != by_name_.end() && at->first.first == keyspace; ++at) {
    const NamedSnapshot* snapshot = FindById(at->second);
    if (!snapshot->hidden) snapshots.push_back(snapshot);
  }
  return snapshots;
}

std::vector<NamedSnapshot*> SnapshotSet::All() const {
  std::vector<NamedSnapshot*> snapshots;
  for (const auto& [id, snapshot] : by_id_) snapshots.push_back(snapshot.get());
  return snapshots;
}

std::vector<Table*> SnapshotSet::Tables() const {
  std::vector<Table*> tables;
  for (const auto& [id, table] : tables_) tables.push_back(table);
  return tables;
}

uint64_t SnapshotSet::held_bytes() const {
  uint64_t bytes = 0;
  for (const Table* table : Tables()) bytes += table->held_bytes();
  return bytes;
}

uint64_t SnapshotSet::own_bytes() const {
  uint64_t bytes = size() * sizeof(NamedSnapshot);
  for (const Table* table : Tables()) bytes += table->own_bytes();
  return bytes;
}

void SnapshotSet::Add(std::unique_ptr<NamedSnapshot> snapshot) {
  const uint64_t id = snapshot->id;
  if (!snapshot->name.empty()) {
    const bool named = by_name_.emplace(std::pair(snapshot->keyspace, snapshot->name), id).second;
    CELLAR_ASSERT(named);
  }
  for (const auto& [name, table] : snapshot->tables) {
    const bool fresh = tables_.emplace(table->id(), table.get()).second;
    CELLAR_ASSERT(fresh);
  }
  const bool fresh = by_id_.emplace(id, std::move(snapshot)).second;
  CELLAR_ASSERT(fresh);
  LearnDue();
}

std::unique_ptr<NamedSnapshot> SnapshotSet::Remove(uint64_t id) {
  const auto found = by_id_.find(id);
  CELLAR_ASSERT(found != by_id_.end());
  std::unique_ptr<NamedSnapshot> snapshot = std::move(found->second);
  by_id_.erase(found);
  if (!snapshot->name.empty()) by_name_.erase(std::pair(snapshot->keyspace, snapshot->name));
  for (const auto& [name, table] : snapshot->tables) tables_.erase(table->id());
  LearnDue();
  return snapshot;
}

void SnapshotSet::Clear() {
  tables_.clear();
  by_name_.clear();
  by_id_.clear();
  LearnDue();
}

void SnapshotSet::Name(uint64_t id, std::string_view name) {
  NamedSnapshot* const snapshot = FindById(id);
  CELLAR_ASSERT(snapshot != nullptr);
  if (!snapshot->name.empty()) by_name_.erase(std::pair(snapshot->keyspace, snapshot->name));
  snapshot->name = name;
  for (const auto& [table_name, table] : snapshot->tables)
    table->SetFrozen(snapshot->name, snapshot->created_micros);
  if (name.empty()) return;
  const bool is_free = by_name_.emplace(std::pair(snapshot->keyspace, snapshot->name), id).second;
  CELLAR_ASSERT(is_free);
}

void SnapshotSet::LearnDue() {
  next_due_micros_ = std::numeric_limits<int64_t>::max();
  for (const auto& [id, snapshot] : by_id_) {
    if (!snapshot->hidden) next_due_micros_ = std::min(next_due_micros_, snapshot->due_micros());
  }
}

// Hidden at once, and dropped later: a drop has to be logged, which the sweeper does.
bool SnapshotSet::HideDue(int64_t now_micros) {
  if (now_micros < next_due_micros_) return false;
  for (const auto& [id, snapshot] : by_id_) {
    if (snapshot->due_micros() <= now_micros) snapshot->hidden = true;
  }
  LearnDue();
  return true;
}

// adopted  | v created | v ttl | v first tree id | v tables { v id, b name, b schema } |
std::string EncodeAdoptedSnapshot(const AdoptedSnapshot& adopted) {
  std::string bytes;
  PutVarint64(&bytes, static_cast<uint64_t>(adopted.created_micros));
  PutVarint64(&bytes, static_cast<uint64_t>(adopted.ttl_micros));
  PutVarint64(&bytes, adopted.tree_id_first);
  PutVarint64(&bytes, adopted.tables.size());
  for (const AdoptedSnapshot::Part& part : adopted.tables) {
    PutVarint64(&bytes, part.id);
    PutLengthPrefixed(&bytes, part.name);
    PutLengthPrefixed(&bytes, part.schema);
  }
  return bytes;
}

bool DecodeAdoptedSnapshot(std::string_view from, AdoptedSnapshot* adopted) {
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  uint64_t created = 0;
  uint64_t ttl = 0;
  uint64_t tables = 0;
  if (!GetVarint64(&from, &created) || !GetVarint64(&from, &ttl) || created > kMax || ttl > kMax ||
      !GetVarint64(&from, &adopted->tree_id_first) || !GetVarint64(&from, &tables))
    return false;
  adopted->created_micros = static_cast<int64_t>(created);
  adopted->ttl_micros = static_cast<int64_t>(ttl);
  adopted->tables.clear();
  for (uint64_t i = 0; i < tables; ++i) {
    AdoptedSnapshot::Part part;
    std::string_view name;
    std::string_view schema;
    if (!GetVarint64(&from, &part.id) || !GetLengthPrefixed(&from, &name) ||
        !GetLengthPrefixed(&from, &schema))
      return false;
    part.name = name;
    part.schema = schema;
    adopted->tables.push_back(std::move(part));
  }
  return from.empty();
}

// definition  | v created | v ttl | v first tree id | v tables { v table id } |
std::string EncodeSnapshotDefinition(const SnapshotDefinition& definition) {
  std::string bytes;
  PutVarint64(&bytes, static_cast<uint64_t>(definition.created_micros));
  PutVarint64(&bytes, static_cast<uint64_t>(definition.ttl_micros));
  PutVarint64(&bytes, definition.tree_id_first);
  PutVarint64(&bytes, definition.table_ids.size());
  for (const uint64_t id : definition.table_ids) PutVarint64(&bytes, id);
  return bytes;
}

bool DecodeSnapshotDefinition(std::string_view from, SnapshotDefinition* definition) {
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  uint64_t created = 0;
  uint64_t ttl = 0;
  uint64_t tables = 0;
  if (!GetVarint64(&from, &created) || !GetVarint64(&from, &ttl) || created > kMax || ttl > kMax ||
      !GetVarint64(&from, &definition->tree_id_first) || !GetVarint64(&from, &tables) ||
      tables > from.size()) {
    return false;
  }
  definition->created_micros = static_cast<int64_t>(created);
  definition->ttl_micros = static_cast<int64_t>(ttl);
  // An id takes a byte or more, and `tables` is no more than the bytes left: a damaged count cannot
  // exhaust the memory.
  definition->table_ids.resize(tables);
  for (uint64_t& id : definition->table_ids) {
    if (!GetVarint64(&from, &id)) return false;
  }
  return from.empty();
}

}  // namespace cellar
