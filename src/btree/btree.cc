// The door to the tree: BTree and BTreeSnapshot hand on to btree_internal::Tree.
#include "btree/btree.h"

#include <utility>

#include "base/assert.h"
#include "btree/tree.h"

namespace cellar {

using btree_internal::SnapshotState;
using btree_internal::Tree;

BTreePlace::BTreePlace() : place_(std::make_unique<btree_internal::Place>()) {}
BTreePlace::~BTreePlace() = default;

BTree::BTree() : tree_(std::make_unique<Tree>()) {}
BTree::~BTree() = default;

BTreeWriteResult BTree::Put(std::string_view key, std::string_view value) {
  return tree_->Put(key, value);
}
BTreeWriteResult BTree::Put(std::string_view key, std::string_view value, BTreePlace* place) {
  return place == nullptr ? tree_->Put(key, value) : tree_->Put(key, value, place->place_.get());
}
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
  state->images_only = true;
  tree_->TakeSnapshot(state.get());
  return BTreeSnapshot(std::move(state));
}
void BTree::RollBackTo(const BTreeSnapshot& snapshot) {
  CELLAR_ASSERT(snapshot.valid());
  tree_->RollBackTo(snapshot.state_.get());
}

uint64_t BTree::entries() const { return tree_->content().entries; }
uint64_t BTree::payload_bytes() const { return tree_->content().payload_bytes; }
uint64_t BTree::memory_bytes() const { return tree_->memory_bytes(); }
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
