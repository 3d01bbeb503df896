// Retiring and freeing of nodes. See epochs.h.
#include "btree/epochs.h"

#include <algorithm>
#include <atomic>
#include <unordered_set>
#include <utility>

#include "base/assert.h"

namespace cellar::btree_internal {

// ---- RetiredQueue ----

RetiredQueue::~RetiredQueue() {
  while (first_ != nullptr) first_ = std::move(first_->next);  // not by recursion: it may be long
}

void RetiredQueue::Push(const Retired& item) {
  if (last_ == nullptr || last_->end == last_->items.size()) {
    auto block = std::unique_ptr<Block>(new Block);
    Block* const raw = block.get();
    if (last_ == nullptr)
      first_ = std::move(block);
    else
      last_->next = std::move(block);
    last_ = raw;
    if (is_whole_) blocks_.push_back(raw);
  }
  last_->items[last_->end++] = item;
  ++size_;
  bytes_ += item.bytes;
}

Retired RetiredQueue::Pop() {
  CELLAR_ASSERT(size_ > 0);
  is_whole_ = false;
  const Retired item = first_->items[first_->begin++];
  --size_;
  bytes_ -= item.bytes;
  if (first_->begin == first_->end) {
    if (first_->next == nullptr) last_ = nullptr;
    first_ = std::move(first_->next);
  }
  return item;
}

void RetiredQueue::Join(RetiredQueue* other) {
  if (other->empty()) return;
  if (last_ == nullptr)
    first_ = std::move(other->first_);
  else
    last_->next = std::move(other->first_);
  last_ = std::exchange(other->last_, nullptr);
  size_ += std::exchange(other->size_, 0);
  bytes_ += std::exchange(other->bytes_, 0);
  is_whole_ = false;
  blocks_.clear();
  other->blocks_.clear();
}

// ---- HandedBack ----

HandedBack::~HandedBack() {
  TakeAll([](uint32_t) {});
}

void HandedBack::Push(uint32_t place) {
  if (filling_ == nullptr) filling_ = std::make_unique<Block>();
  filling_->places[filled_++] = place;
  if (filled_ < filling_->places.size()) return;
  filled_ = 0;
  Block* const block = filling_.release();
  block->next = full_.load(std::memory_order_relaxed);
  while (!full_.compare_exchange_weak(block->next, block, std::memory_order_release)) {
  }
}

// ---- memory ----

namespace {

// What Leaf::passed says of a leaf that was retired before the reader came by: the snapshot's
// serial and the leaf's place in its queue. A mark of a snapshot that is gone means nothing.
constexpr uint64_t kMark{uint64_t{1} << 63};
constexpr uint64_t MarkOf(uint32_t serial, uint32_t place) {
  return kMark | uint64_t{serial} << 32 | place;
}

std::atomic_ref<uint64_t> Passed(void* leaf) {
  return std::atomic_ref<uint64_t>(static_cast<Leaf*>(leaf)->passed);
}

// Calls visit for each node and value below `node`, which is at `level`.
template <typename Visit>
void VisitNodes(void* node, uint32_t level, Visit& visit) {
  if (level > 0) {
    auto* inner = static_cast<Inner*>(node);
    for (uint32_t i = 0; i < inner->children; ++i)
      VisitNodes(inner->pointers()[i], level - 1, visit);
    visit(Retired{inner, inner->birth, 0, inner->capacity, NodeKind::kInner});
    return;
  }
  auto* leaf = static_cast<Leaf*>(node);
  const uint8_t* p = leaf->entries();
  Entry entry;
  for (uint32_t i = 0; leaf->large_count > 0 && i < leaf->count; ++i, p = entry.end) {
    ParseEntry(p, &entry);
    if (!entry.is_large) continue;
    LargeValue* value = entry.large();
    visit(Retired{value, value->birth, 0, value->capacity, NodeKind::kValue});
  }
  visit(Retired{leaf, leaf->birth, 0, leaf->capacity(), NodeKind::kLeaf});
}

}  // namespace

void PassLeaf(SnapshotState* snapshot, Leaf* leaf) {
  const uint64_t before = Passed(leaf).exchange(snapshot->epoch, std::memory_order_acq_rel);
  const auto place = static_cast<uint32_t>(before);
  if (before == MarkOf(snapshot->serial, place)) snapshot->handed_back.Push(place);
}

Epochs::~Epochs() {
  CELLAR_ASSERT(live_.empty());
  while (Work(1024)) {
  }
  CELLAR_ASSERT(memory_bytes_ == 0);
}

void* Epochs::Allocate(size_t bytes) {
  memory_bytes_ += bytes;
  return arena_.Allocate(bytes);
}

Leaf* Epochs::NewLeaf(size_t bytes) {
  const size_t capacity = NodeArena::RoundUp(bytes);
  auto* leaf = static_cast<Leaf*>(Allocate(capacity));
  leaf->birth = epoch_;
  leaf->passed = 0;
  leaf->granules = static_cast<uint16_t>(capacity / NodeArena::kGranuleBytes);
  leaf->front_bytes = 0;
  return leaf;
}

Inner* Epochs::NewInner(size_t bytes) {
  const size_t capacity = NodeArena::RoundUp(bytes);
  auto* node = static_cast<Inner*>(Allocate(capacity));
  node->birth = epoch_;
  node->capacity = static_cast<uint32_t>(capacity);
  return node;
}

LargeValue* Epochs::NewValue(std::string_view value) {
  CELLAR_ASSERT(value.size() > kInlineValueBytesMax);
  CELLAR_ASSERT(value.size() < ~uint32_t{0} - 128);
  largest_value_bytes_ = std::max(largest_value_bytes_, value.size());
  const size_t capacity = NodeArena::RoundUp(sizeof(LargeValue) + value.size());
  auto* block = static_cast<LargeValue*>(Allocate(capacity));
  block->birth = epoch_;
  block->bytes = static_cast<uint32_t>(value.size());
  block->capacity = static_cast<uint32_t>(capacity);
  std::memcpy(block->data(), value.data(), value.size());
  return block;
}

void Epochs::Free(const Retired& item) {
  CELLAR_ASSERT(memory_bytes_ >= item.bytes);
  memory_bytes_ -= item.bytes;
  arena_.Free(item.pointer, item.bytes);
}

// ---- retiring ----

bool Epochs::MayWritePassed(Leaf* leaf) {
  // Every snapshot that sees the leaf must be a serialiser that has left it behind.
  for (size_t i = live_.size(); i-- > 0 && live_[i]->epoch >= leaf->birth;)
    if (!live_[i]->images_only || Passed(leaf).load(std::memory_order_acquire) != live_[i]->epoch) {
      return false;
    }
  return true;  // the birth stays what it was: walks rely on it
}

bool Epochs::IsAlive(const Retired& item) const {
  for (const Rollback& rollback : rollbacks_)
    if (item.birth <= rollback.to && rollback.since < item.retired && item.retired <= rollback.at)
      return true;
  return false;
}

void Epochs::Settle(const Retired& item) {
  for (size_t i = live_.size(); i-- > 0;) {
    SnapshotState* const snapshot = live_[i];
    if (snapshot->epoch >= item.retired) continue;
    if (snapshot->epoch < item.birth) break;
    if (snapshot->images_only) {
      TakeHandedBack(snapshot);
      if (item.kind == NodeKind::kLeaf && !MarkForReader(snapshot, item)) continue;
    }
    snapshot->retired.Push(item);
    return;
  }
  if (item.birth <= walks_cutoff_)
    deferred_.Push(item);
  else
    Free(item);
}

// The leaf will be the next in the snapshot's queue. False if the reader has passed it already.
bool Epochs::MarkForReader(SnapshotState* snapshot, const Retired& item) {
  const auto place = static_cast<uint32_t>(snapshot->retired.size());
  uint64_t passed = Passed(item.pointer).load(std::memory_order_acquire);
  do {
    if (passed == snapshot->epoch) return false;
  } while (!Passed(item.pointer)
                .compare_exchange_weak(passed, MarkOf(snapshot->serial, place),
                                       std::memory_order_acq_rel));
  return true;
}

// Leaves that the reader has passed since wait no longer.
void Epochs::TakeHandedBack(SnapshotState* snapshot) {
  snapshot->handed_back.TakeAll([&](uint32_t place) {
    Retired& item = snapshot->retired.at(place);
    if (item.kind == NodeKind::kNone) return;
    // Not settled here and now, because that may end in this function.
    pending_.Push(item);
    item.kind = NodeKind::kNone;
    has_work_ = true;
  });
}

void Epochs::Abandon(const TreeContent& content, uint64_t cutoff) {
  if (content.root == nullptr) return;
  // A birth is the first word of either kind of node.
  if (*static_cast<const uint64_t*>(content.root) <= cutoff) return;
  walks_cutoff_ = std::max(walks_cutoff_, cutoff);
  walks_.push_back({cutoff, epoch_, {{content.root, content.height, 0}}});
  has_work_ = true;
}

void Epochs::Step(Walk* walk) {
  Frame& frame = walk->frames.back();
  if (frame.level > 0) {
    auto* inner = static_cast<Inner*>(frame.node);
    if (frame.next_child < inner->children) {
      const uint32_t ahead = frame.next_child + 4;
      if (ahead < inner->children) __builtin_prefetch(inner->pointers()[ahead]);
      void* child = inner->pointers()[frame.next_child++];
      if (*static_cast<const uint64_t*>(child) > walk->cutoff)
        walk->frames.push_back({child, frame.level - 1, 0});
      return;
    }
    walk->frames.pop_back();
    Settle({inner, inner->birth, walk->retired, inner->capacity, NodeKind::kInner});
    return;
  }
  auto retire = [&](Retired item) {
    item.retired = walk->retired;
    if (item.birth > walk->cutoff) Settle(item);
  };
  void* const leaf = frame.node;
  walk->frames.pop_back();
  VisitNodes(leaf, 0, retire);
}

bool Epochs::Work(size_t steps) {
  for (size_t i = 0; i < steps && !pending_.empty(); ++i) {
    const Retired item = pending_.Pop();
    if (item.kind != NodeKind::kNone && !IsAlive(item)) Settle(item);
  }
  // What comes next is freed by the next write, until when its tags are in the caches.
  for (size_t i = 0; i < steps && i < kReleasedPerWrite; ++i)
    if (const Retired* next = pending_.Ahead(i))
      NodeArena::PrefetchFree(next->pointer, next->bytes);
  for (size_t i = 0; i < steps && !walks_.empty(); ++i) {
    if (!walks_.back().frames.empty()) Step(&walks_.back());
    if (walks_.back().frames.empty()) walks_.pop_back();
  }
  if (walks_.empty()) {
    walks_cutoff_ = 0;
    pending_.Join(&deferred_);
  }
  if (live_.empty() && pending_.empty()) rollbacks_.clear();
  has_work_ = !pending_.empty() || !walks_.empty();
  return has_work_;
}

// ---- snapshots ----

void Epochs::TakeSnapshot(SnapshotState* snapshot) {
  for (const SnapshotState* other : live_)
    if (other->images_only) snapshot->images_only = false;
  if (snapshot->images_only) snapshot->serial = ++images_serial_ & ~uint32_t{0} >> 1;
  snapshot->epoch = epoch_++;
  snapshot->ancestor_since = snapshot->epoch;
  newest_live_ = snapshot->epoch;
  live_.push_back(snapshot);
}

void Epochs::ReserveVersions(uint64_t count) {
  CELLAR_ASSERT(live_.empty());
  CELLAR_ASSERT(memory_bytes_ == 0);
  epoch_ += count;
}

void Epochs::AddVersion(SnapshotState* snapshot) {
  CELLAR_ASSERT(snapshot->epoch > 0);
  CELLAR_ASSERT(snapshot->epoch < epoch_);
  CELLAR_ASSERT(live_.empty() || snapshot->epoch < live_.front()->epoch);
  snapshot->ancestor_since = snapshot->epoch;
  live_.insert(live_.begin(), snapshot);
  newest_live_ = live_.back()->epoch;
}

void Epochs::RetireVersion(uint64_t epoch, const std::vector<Leaf*>& leaves,
                           const std::vector<Inner*>& inners) {
  auto retire = [&](Retired item) {
    item.retired = epoch + 1;
    Settle(item);
  };
  for (Leaf* leaf : leaves) VisitNodes(leaf, 0, retire);
  for (Inner* node : inners)
    retire(Retired{node, node->birth, 0, node->capacity, NodeKind::kInner});
}

void Epochs::DropSnapshot(SnapshotState* snapshot) {
  size_t i = live_.size();
  while (i-- > 0 && live_[i] != snapshot) {
  }
  CELLAR_ASSERT(i < live_.size());
  live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(i));
  newest_live_ = live_.empty() ? 0 : live_.back()->epoch;
  pending_.Join(&snapshot->retired);
  if (!pending_.empty()) has_work_ = true;
  if (live_.empty() && pending_.empty()) rollbacks_.clear();
}

void Epochs::RollBack(const TreeContent& present, SnapshotState* snapshot) {
  CELLAR_ASSERT(!snapshot->images_only);
  if (!snapshot->is_ancestor) {
    RollBackSideways(present, snapshot);
    snapshot->ancestor_since = epoch_;
    ++epoch_;
    return;
  }
  // A walk through what was cleared since must leave alone what is alive again.
  for (Walk& walk : walks_) {
    if (walk.retired <= snapshot->ancestor_since || walk.cutoff >= snapshot->epoch) continue;
    walk.cutoff = snapshot->epoch;
    walks_cutoff_ = std::max(walks_cutoff_, walk.cutoff);
    size_t kept = 0;
    while (kept < walk.frames.size() &&
           *static_cast<const uint64_t*>(walk.frames[kept].node) > walk.cutoff)
      ++kept;
    walk.frames.resize(kept);
  }
  Abandon(present, snapshot->epoch);
  rollbacks_.push_back({snapshot->epoch, snapshot->ancestor_since, epoch_});
  for (SnapshotState* other : live_)
    if (other->epoch > snapshot->epoch) other->is_ancestor = false;
  ++epoch_;
}

void Epochs::RollBackSideways(const TreeContent& present, SnapshotState* snapshot) {
  while (Work(1024)) {
  }
  std::unordered_set<void*> wanted;
  auto want = [&](const Retired& item) { wanted.insert(item.pointer); };
  if (snapshot->content.root != nullptr)
    VisitNodes(snapshot->content.root, snapshot->content.height, want);

  // What the snapshot holds is alive again, whatever was noted about it.
  for (SnapshotState* other : live_) {
    for (uint64_t i = 0; i < other->retired.size(); ++i) {
      Retired& item = other->retired.at(i);
      if (wanted.contains(item.pointer) || IsAlive(item)) item.kind = NodeKind::kNone;
    }
    other->is_ancestor = other == snapshot;
  }
  // What only the present content holds leaves the tree.
  std::vector<Retired> unwanted;
  auto sort_out = [&](const Retired& item) {
    if (!wanted.contains(item.pointer)) unwanted.push_back(item);
  };
  if (present.root != nullptr) VisitNodes(present.root, present.height, sort_out);
  for (Retired& item : unwanted) {
    item.retired = epoch_;
    Settle(item);
  }
}

}  // namespace cellar::btree_internal
