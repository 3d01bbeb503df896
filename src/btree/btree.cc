// The door to the tree: BTree and BTreeSnapshot hand on to btree_internal::Tree.
#include "btree/btree.h"

#include <utility>

#include "base/assert.h"
#include "btree/tree.h"

namespace cellar {

using btree_internal::SnapshotState;
using btree_internal::Tree;
using btree_internal::TreeContent;
using btree_internal::Version;

BTreePlace::BTreePlace() : place_(std::make_unique<btree_internal::Place>()) {}
BTreePlace::~BTreePlace() = default;

BTree::BTree() : tree_(std::make_unique<Tree>()) {}
BTree::~BTree() = default;  // the version goes first: it is declared last

BTreeWriteResult BTree::Put(std::string_view key, std::string_view value) {
  return tree_->Put(key, value);
}
BTreeWriteResult BTree::Put(std::string_view key, std::string_view value, BTreePlace* place) {
  return place == nullptr ? tree_->Put(key, value) : tree_->Put(key, value, place->place_.get());
}
BTreeWriteResult BTree::PutRun(std::span<const BTreePut> puts) { return tree_->PutRun(puts); }
BTreeWriteResult BTree::Delete(std::string_view key) { return tree_->Delete(key); }
BTreeWriteResult BTree::Replace(std::string_view old_key, std::string_view key,
                                std::string_view value) {
  return tree_->Replace(old_key, key, value, nullptr);
}
BTreeWriteResult BTree::Replace(std::string_view old_key, std::string_view key,
                                std::string_view value, BTreePlace* place) {
  return tree_->Replace(old_key, key, value, place == nullptr ? nullptr : place->place_.get());
}
uint64_t BTree::DeleteRange(std::string_view begin, std::string_view end, uint64_t entries_max) {
  return tree_->DeleteRange(begin, end, entries_max);
}
void BTree::Clear() { tree_->Clear(); }

std::optional<std::string_view> BTree::Get(std::string_view key) const { return tree_->Get(key); }
bool BTree::GetFirst(std::string_view prefix, std::string* scratch, BTreeFinger* finger,
                     Match* match) const {
  return tree_->GetFirst(prefix, scratch, finger, match);
}
std::optional<BTree::Match> BTree::FindFirst(std::string_view prefix, std::string* scratch,
                                             BTreePlace* place) const {
  return tree_->FindFirst(prefix, scratch, place->place_.get());
}
void BTree::MultiGet(std::span<const std::string_view> keys,
                     std::span<std::optional<std::string_view>> values) const {
  tree_->MultiGet(keys, values);
}
void BTree::Prefetch(std::span<const std::string_view> keys) const { tree_->Prefetch(keys); }

BTreeSnapshot BTree::TakeSnapshot() {
  auto state = std::make_unique<SnapshotState>();
  tree_->TakeSnapshot(state.get());
  return BTreeSnapshot(std::move(state));
}
BTreeSnapshot BTree::TakeSnapshotForImages() {
  auto state = std::make_unique<SnapshotState>();
  // Of a tree with versions another reader looks at the leaves again, and a version's are marked
  // for readers of its origin.
  state->images_only = version_ == nullptr && tree_->versions() == 0;
  tree_->TakeSnapshot(state.get());
  return BTreeSnapshot(std::move(state));
}
void BTree::RollBackTo(const BTreeSnapshot& snapshot) {
  CELLAR_ASSERT(snapshot.valid());
  tree_->RollBackTo(snapshot.state_.get());
}

uint64_t BTree::entries() const { return tree_->content().entries; }
uint64_t BTree::payload_bytes() const { return tree_->content().payload_bytes; }
uint64_t BTree::memory_bytes() const {
  if (version_ == nullptr) return tree_->memory_bytes();
  const TreeContent& content = tree_->content();
  uint64_t units = 0;
  if (content.root != nullptr) {
    units = content.height == 0
                ? static_cast<const btree_internal::Leaf*>(content.root)->units()
                : static_cast<const btree_internal::Inner*>(content.root)->total_units();
  }
  return units * 64 + sizeof(Tree);
}

std::unique_ptr<BTree> BTree::Freeze() {
  CELLAR_ASSERT(version_ == nullptr);
  auto frozen = std::make_unique<BTree>();
  frozen->version_ = std::make_unique<Version>();
  frozen->version_->origin = tree_.get();
  frozen->version_->registered = true;
  tree_->TakeSnapshot(&frozen->version_->state);
  tree_->AddVersion();
  frozen->tree_->Borrow(tree_->content());
  frozen->tree_->epochs().NoteValueBytes(tree_->epochs().largest_value_bytes());
  return frozen;
}

std::unique_ptr<BTree> BTree::VersionToLoad(BTree* origin, uint64_t number, const BTree* newer) {
  auto frozen = std::make_unique<BTree>();
  frozen->version_ = std::make_unique<Version>();
  Version& version = *frozen->version_;
  version.origin = origin->tree_.get();
  version.state.tree = version.origin;
  version.state.epoch = number;
  if (newer != nullptr) version.newer = newer->tree_->content();
  version.has_newer = newer != nullptr;
  version.origin->AddVersion();
  return frozen;
}

void BTree::FinishVersion() { version_->Seal(); }
void BTree::ReserveVersions(size_t count) { tree_->epochs().ReserveVersions(count); }
size_t BTree::versions() const { return tree_->versions(); }
uint64_t BTree::held_bytes() const { return version_->state.retired.bytes(); }
uint64_t BTree::version_epoch() const { return version_->state.epoch; }
const void* BTree::origin() const { return version_ == nullptr ? tree_.get() : version_->origin; }

size_t BTree::value_bytes_bound() const { return tree_->value_bytes_bound(); }
std::vector<std::string> BTree::SplitKeys(size_t parts) const { return tree_->SplitKeys(parts); }
uint64_t BTree::snapshots_alive() const { return tree_->epochs().snapshots(); }
bool BTree::Compact(std::string* position, size_t nodes_max) {
  return tree_->Compact(position, nodes_max);
}
bool BTree::ReleaseSome(size_t nodes_max) { return tree_->epochs().Work(nodes_max); }
void BTree::Validate() const { tree_->Validate(); }

BTreeSnapshot::BTreeSnapshot() = default;
BTreeSnapshot::BTreeSnapshot(std::unique_ptr<SnapshotState> state) : state_(std::move(state)) {}
BTreeSnapshot::~BTreeSnapshot() { Drop(); }
BTreeSnapshot::BTreeSnapshot(BTreeSnapshot&&) noexcept = default;
BTreeSnapshot& BTreeSnapshot::operator=(BTreeSnapshot&& other) noexcept {
  if (this != &other) {
    Drop();
    state_ = std::move(other.state_);
  }
  return *this;
}
void BTreeSnapshot::Drop() {
  if (state_ != nullptr) state_->tree->DropSnapshot(state_.get());
  state_ = nullptr;
}
uint64_t BTreeSnapshot::entries() const { return state_->content.entries; }
uint64_t BTreeSnapshot::payload_bytes() const { return state_->content.payload_bytes; }

}  // namespace cellar
