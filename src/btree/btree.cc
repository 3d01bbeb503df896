// The interface of btree.h over std::map: a stand-in until the nodes of DESIGN.md section 5 take over.
#include "btree/btree.h"

#include <map>

#include "base/assert.h"
#include "base/coding.h"

namespace cellar {
namespace {
using Map = std::map<std::string, std::string, std::less<>>;
size_t Shared(std::string_view a, std::string_view b) {
  size_t n = 0;
  while (n < a.size() && n < b.size() && a[n] == b[n]) ++n;
  return n;
}
}  // namespace

struct BTree::Impl {
  Map map;
  uint64_t payload_bytes{0};
  uint64_t changes{0};
};
uint64_t BTree::snapshots_alive() const { return 0; }
struct BTreeSnapshot::Impl {
  Map map;
  uint64_t payload_bytes;
};
struct BTreeCursor::Impl {
  const Map* map;
  const uint64_t* changes;
  uint64_t seen{0};
  bool valid{false};
  std::string key;
  std::string value;
  size_t shared{0};
  void Set(Map::const_iterator it) {
    shared = 0;
    valid = it != map->end();
    if (valid) {
      key = it->first;
      value = it->second;
    }
  }
};
struct BTreeImageReader::Impl {
  Map::const_iterator next, end;
};
struct BTreeBulkLoader::Impl {
  BTree* tree;
  std::string last;
  bool any{false};
};

BTree::BTree() : impl_(std::make_unique<Impl>()) {}
BTree::~BTree() = default;
BTreeWriteResult BTree::Put(std::string_view key, std::string_view value) {
  BTreeWriteResult result;
  ++impl_->changes;
  auto [it, inserted] = impl_->map.try_emplace(std::string(key));
  if (!inserted) {
    result.existed = true;
    result.old_value_bytes = it->second.size();
    impl_->payload_bytes -= key.size() + it->second.size();
  }
  it->second = value;
  impl_->payload_bytes += key.size() + value.size();
  if (it != impl_->map.begin()) result.shared_with_neighbor = Shared(std::prev(it)->first, key);
  if (std::next(it) != impl_->map.end())
    result.shared_with_neighbor =
        std::max(result.shared_with_neighbor, Shared(std::next(it)->first, key));
  return result;
}
BTreeWriteResult BTree::Delete(std::string_view key) {
  BTreeWriteResult result;
  ++impl_->changes;
  auto it = impl_->map.find(key);
  if (it == impl_->map.end()) return result;
  result.existed = true;
  result.old_value_bytes = it->second.size();
  impl_->payload_bytes -= key.size() + it->second.size();
  it = impl_->map.erase(it);
  if (it != impl_->map.end()) result.shared_with_neighbor = Shared(it->first, key);
  if (it != impl_->map.begin())
    result.shared_with_neighbor =
        std::max(result.shared_with_neighbor, Shared(std::prev(it)->first, key));
  return result;
}
uint64_t BTree::DeleteRange(std::string_view begin, std::string_view end, uint64_t entries_max) {
  uint64_t n = 0;
  ++impl_->changes;
  auto it = impl_->map.lower_bound(begin);
  while (n < entries_max && it != impl_->map.end() && (end.empty() || it->first < end)) {
    impl_->payload_bytes -= it->first.size() + it->second.size();
    it = impl_->map.erase(it);
    ++n;
  }
  return n;
}
void BTree::Clear() {
  ++impl_->changes;
  impl_->map.clear();
  impl_->payload_bytes = 0;
}
std::optional<std::string_view> BTree::Get(std::string_view key) const {
  auto it = impl_->map.find(key);
  if (it == impl_->map.end()) return std::nullopt;
  return it->second;
}
void BTree::MultiGet(std::span<const std::string_view> keys,
                     std::span<std::optional<std::string_view>> values) const {
  for (size_t i = 0; i < keys.size(); ++i) values[i] = Get(keys[i]);
}
BTreeSnapshot BTree::TakeSnapshot() {
  BTreeSnapshot snapshot;
  snapshot.impl_ = std::make_unique<BTreeSnapshot::Impl>(impl_->map, impl_->payload_bytes);
  return snapshot;
}
void BTree::RollBackTo(const BTreeSnapshot& snapshot) {
  ++impl_->changes;
  impl_->map = snapshot.impl_->map;
  impl_->payload_bytes = snapshot.impl_->payload_bytes;
}
uint64_t BTree::entries() const { return impl_->map.size(); }
uint64_t BTree::payload_bytes() const { return impl_->payload_bytes; }
uint64_t BTree::memory_bytes() const { return impl_->payload_bytes + 100 * impl_->map.size(); }
std::vector<std::string> BTree::SplitKeys(size_t parts) const {
  std::vector<std::string> keys;
  uint64_t seen = 0;
  for (auto& [key, value] : impl_->map) {
    if (keys.size() + 1 < parts && seen * parts >= impl_->payload_bytes * (keys.size() + 1))
      keys.push_back(key);
    seen += key.size() + value.size();
  }
  return keys;
}
void BTree::Validate() const {}

BTreeSnapshot::BTreeSnapshot() = default;
BTreeSnapshot::~BTreeSnapshot() = default;
BTreeSnapshot::BTreeSnapshot(BTreeSnapshot&&) noexcept = default;
BTreeSnapshot& BTreeSnapshot::operator=(BTreeSnapshot&&) noexcept = default;
uint64_t BTreeSnapshot::entries() const { return impl_->map.size(); }
uint64_t BTreeSnapshot::payload_bytes() const { return impl_->payload_bytes; }

BTreeCursor::BTreeCursor(const BTree& tree) : impl_(std::make_unique<Impl>()) {
  impl_->map = &tree.impl_->map;
}
BTreeCursor::BTreeCursor(const BTreeSnapshot& snapshot) : impl_(std::make_unique<Impl>()) {
  impl_->map = &snapshot.impl_->map;
}
BTreeCursor::~BTreeCursor() = default;
BTreeCursor::BTreeCursor(BTreeCursor&&) noexcept = default;
BTreeCursor& BTreeCursor::operator=(BTreeCursor&&) noexcept = default;
bool BTreeCursor::valid() const { return impl_->valid; }
void BTreeCursor::Seek(std::string_view key) { impl_->Set(impl_->map->lower_bound(key)); }
void BTreeCursor::SeekBefore(std::string_view key) {
  auto it = impl_->map->lower_bound(key);
  impl_->Set(it == impl_->map->begin() ? impl_->map->end() : std::prev(it));
}
void BTreeCursor::SeekFirst() { impl_->Set(impl_->map->begin()); }
void BTreeCursor::SeekLast() {
  impl_->Set(impl_->map->empty() ? impl_->map->end() : std::prev(impl_->map->end()));
}
void BTreeCursor::Next() {
  std::string old = impl_->key;
  impl_->Set(impl_->map->upper_bound(old));
  if (impl_->valid) impl_->shared = Shared(old, impl_->key);
}
void BTreeCursor::Prev() { SeekBefore(std::string(impl_->key)); }
std::string_view BTreeCursor::key() const { return impl_->key; }
std::string_view BTreeCursor::value() const { return impl_->value; }
size_t BTreeCursor::shared_with_last() const { return impl_->shared; }

BTreeImageReader::BTreeImageReader(const BTreeSnapshot& snapshot)
    : impl_(std::make_unique<Impl>()) {
  impl_->next = snapshot.impl_->map.begin();
  impl_->end = snapshot.impl_->map.end();
}
BTreeImageReader::~BTreeImageReader() = default;
bool BTreeImageReader::Next(std::string* image) {
  if (impl_->next == impl_->end) return false;
  for (int i = 0; i < 50 && impl_->next != impl_->end; ++i, ++impl_->next) {
    PutLengthPrefixed(image, impl_->next->first);
    PutLengthPrefixed(image, impl_->next->second);
  }
  return true;
}

BTreeBulkLoader::BTreeBulkLoader(BTree* tree) : impl_(std::make_unique<Impl>()) {
  impl_->tree = tree;
}
BTreeBulkLoader::~BTreeBulkLoader() = default;
Status BTreeBulkLoader::AddImage(std::string_view image) {
  while (!image.empty()) {
    std::string_view key, value;
    if (!GetLengthPrefixed(&image, &key) || !GetLengthPrefixed(&image, &value))
      return Status::Error(ErrorCode::kCorruption, "leaf image cut short");
    RETURN_IF_ERROR(Add(key, value));
  }
  return Status::Ok();
}
Status BTreeBulkLoader::Add(std::string_view key, std::string_view value) {
  if (impl_->any && key <= impl_->last)
    return Status::Error(ErrorCode::kCorruption, "keys out of order");
  impl_->any = true;
  impl_->last = key;
  impl_->tree->Put(key, value);
  return Status::Ok();
}
Status BTreeBulkLoader::Finish() { return Status::Ok(); }

}  // namespace cellar
