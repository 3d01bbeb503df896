// BTreeCursor: a position in a tree or snapshot, with its key rebuilt.
//
// The cursor keeps the path of inner nodes, the entry where it stands and the key in a buffer of
// its own, which Next() changes from the shared bytes on. Short keys live in the cursor itself:
// making one and seeking allocates nothing. Prev() rebuilds the key from the start of its group.
//
// Over a live tree it compares the tree's counter of changes before each movement, and seeks again
// by its key if that has moved on: its pointers may then be stale, its key never is.
#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "btree/btree.h"
#include "btree/tree.h"

namespace cellar {

using btree_internal::Bytes;
using btree_internal::CommonPrefix;
using btree_internal::CopyShortSuffix;
using btree_internal::Entry;
using btree_internal::FindChild;
using btree_internal::FindInLeaf;
using btree_internal::Inner;
using btree_internal::Leaf;
using btree_internal::LeafPlace;
using btree_internal::ParseEntry;
using btree_internal::PrefetchInner;
using btree_internal::PrefetchLeaf;
using btree_internal::PrefetchLines;
using btree_internal::Suffix;
using btree_internal::TreeContent;
using btree_internal::View;

static_assert(btree_internal::kHeightMax == 16, "as in BTreeCursor");

namespace {

// The most that the key of an entry without "more lengths" has behind the leaf's prefix.
constexpr size_t kShortRestBytes{btree_internal::kSharedEscape + btree_internal::kWordBytesMax +
                                 btree_internal::kSuffixEscape};
// From the start of such an entry: what is read of it at most, copies of a fixed size included.
constexpr size_t kShortReadBytes{3 + 32};

// Of the leaf behind the one that is being read: Next() asks for the others as it comes near. To
// have them asked for by the seek itself makes a seek with 100 cells a sixth faster.
constexpr size_t kLinesAhead{8};

}  // namespace

BTreeCursor::BTreeCursor(const BTree& tree) : tree_(tree.tree_.get()) {}

BTreeCursor::BTreeCursor(const BTreeSnapshot& snapshot) : snapshot_(snapshot.state_.get()) {
  CELLAR_ASSERT(snapshot_ != nullptr);
  CELLAR_ASSERT(!snapshot_->images_only);
}

BTreeCursor::~BTreeCursor() = default;

BTreeCursor::BTreeCursor(BTreeCursor&& other) noexcept { TakeFrom(&other); }

BTreeCursor& BTreeCursor::operator=(BTreeCursor&& other) noexcept {
  if (this != &other) TakeFrom(&other);
  return *this;
}

// Member by member, since a short key stands in the cursor itself: key_ has to point into this one.
void BTreeCursor::TakeFrom(BTreeCursor* other) {
  tree_ = other->tree_;
  snapshot_ = other->snapshot_;
  seen_changes_ = other->seen_changes_;
  valid_ = other->valid_;
  leaf_ = other->leaf_;
  prefix_bytes_ = other->prefix_bytes_;
  words_ = other->words_;
  leaf_end_ = other->leaf_end_;
  short_end_ = other->short_end_;
  readable_end_ = other->readable_end_;
  entry_ = other->entry_;
  next_ = other->next_;
  key_bytes_ = other->key_bytes_;
  key_capacity_ = other->key_capacity_;
  value_ = other->value_;
  value_bytes_ = other->value_bytes_;
  shared_with_last_ = other->shared_with_last_;
  seeks_at_once_ = other->seeks_at_once_;
  long_key_ = std::move(other->long_key_);
  if (valid_) std::memcpy(path_, other->path_, sizeof(Step) * content().height);
  if (long_key_ != nullptr) {
    key_ = long_key_.get();
    other->key_ = other->short_key_;
    other->key_capacity_ = sizeof(other->short_key_);
  } else {
    key_ = short_key_;
    std::memcpy(short_key_, other->short_key_, key_bytes_);
  }
  other->valid_ = false;
}

const TreeContent& BTreeCursor::content() const {
  return tree_ != nullptr ? tree_->content() : snapshot_->content;
}

void BTreeCursor::GrowKey(size_t bytes) {
  const size_t capacity = std::max(bytes + 32, key_capacity_ * 2);
  std::unique_ptr<uint8_t[]> longer(new uint8_t[capacity]);
  std::memcpy(longer.get(), key_, key_bytes_);
  long_key_ = std::move(longer);
  key_ = long_key_.get();
  key_capacity_ = capacity;
}

// ---- movements between nodes ----

void BTreeCursor::Start() {
  valid_ = false;
  shared_with_last_ = 0;
  if (tree_ != nullptr) seen_changes_ = tree_->changes();
}

void BTreeCursor::EnterLeaf(const void* leaf) {
  leaf_ = static_cast<const Leaf*>(leaf);
  prefix_bytes_ = leaf_->prefix_bytes;
  words_ = leaf_->dictionary_bytes > 0 ? leaf_->dictionary().words : nullptr;
  leaf_end_ = leaf_->entries_end();
  readable_end_ = leaf_->readable_end();
  static_assert(kShortReadBytes < btree_internal::kLeafBytesMin);
  short_end_ = std::min(leaf_end_, readable_end_ - kShortReadBytes + 1);
}

void BTreeCursor::Descend(std::string_view key) {
  const TreeContent& tree = content();
  const void* node = tree.root;
  for (uint32_t level = 0; level < tree.height; ++level) {
    const auto* inner = static_cast<const Inner*>(node);
    const uint32_t i = FindChild(inner, key);
    path_[level] = {inner, i};
    node = inner->pointers()[i];
    if (level + 1 < tree.height) {
      PrefetchInner(node);
    } else {
      PrefetchLeaf(node);
      if (i < inner->separators()) PrefetchLines(inner->pointers()[i + 1], kLinesAhead);
    }
  }
  EnterLeaf(node);
}

// To the first or last leaf below `node`, which is the child taken at `level` - 1.
void BTreeCursor::DescendEdge(const void* node, uint32_t level, bool to_last) {
  const uint32_t height = content().height;
  for (; level < height; ++level) {
    const auto* inner = static_cast<const Inner*>(node);
    const uint32_t i = to_last ? inner->separators() : 0;
    path_[level] = {inner, i};
    node = inner->pointers()[i];
  }
  EnterLeaf(node);
}

// To the next or previous leaf; false if there is none.
bool BTreeCursor::MoveLeaf(bool forward) {
  for (uint32_t level = content().height; level-- > 0;) {
    Step& step = path_[level];
    if (step.index == (forward ? step.node->separators() : 0)) continue;
    step.index = forward ? step.index + 1 : step.index - 1;
    const uint32_t ahead = forward ? step.index + 1 : step.index - 1;
    if (ahead < step.node->children) PrefetchLines(step.node->pointers()[ahead], kLinesAhead);
    DescendEdge(step.node->pointers()[step.index], level + 1, !forward);
    return true;
  }
  return false;
}

double BTreeCursor::share_before() const {
  CELLAR_ASSERT(valid_);
  CELLAR_ASSERT(tree_ == nullptr || tree_->changes() == seen_changes_);
  const uint32_t height = content().height;
  const auto in_leaf = static_cast<double>(entry_ - leaf_->entries()) /
                       static_cast<double>(leaf_end_ - leaf_->entries());
  if (height == 0) return in_leaf;
  uint64_t units_before = 0;
  for (uint32_t level = 0; level < height; ++level) {
    const uint32_t* const units = path_[level].node->units();
    for (uint32_t i = 0; i < path_[level].index; ++i) units_before += units[i];
  }
  const Step& last = path_[height - 1];
  const double before = static_cast<double>(units_before) +
                        in_leaf * static_cast<double>(last.node->units()[last.index]);
  return before / static_cast<double>(path_[0].node->total_units());
}

// ---- movements inside a leaf ----

// Onto the entry at `at`, of whose key the buffer holds the first `shared` bytes already. Makes
// room for the keys that Next() then copies without asking.
void BTreeCursor::Load(const uint8_t* at, const Entry& entry, size_t shared) {
  const Suffix suffix = leaf_->dictionary().Decode(entry);
  const size_t bytes = shared + suffix.size();
  key_bytes_ = shared;
  ReserveKey(std::max(bytes, prefix_bytes_ + kShortRestBytes));
  suffix.CopyTo(key_ + shared, readable_end_);
  key_bytes_ = bytes;
  const std::string_view value = entry.value_view();
  value_ = Bytes(value);
  value_bytes_ = value.size();
  entry_ = at;
  next_ = entry.end;
  valid_ = true;
}

// Onto the first entry of the leaf.
void BTreeCursor::LoadFirst() {
  key_bytes_ = 0;
  ReserveKey(prefix_bytes_);
  std::memcpy(key_, leaf_->prefix(), prefix_bytes_);
  Entry entry;
  ParseEntry(leaf_->entries(), &entry);
  Load(leaf_->entries(), entry, prefix_bytes_);
}

// Onto the last entry that begins before `end`.
void BTreeCursor::LoadBefore(const uint8_t* end) {
  const auto at = static_cast<size_t>(end - leaf_->entries());
  CELLAR_ASSERT(at > 0);
  uint32_t group = leaf_->groups - 1u;
  while (leaf_->offsets()[group] >= at) --group;
  key_bytes_ = 0;
  ReserveKey(prefix_bytes_);
  std::memcpy(key_, leaf_->prefix(), prefix_bytes_);
  next_ = leaf_->entries() + leaf_->offsets()[group];
  do {
    Entry entry;
    ParseEntry(next_, &entry);
    Load(next_, entry, prefix_bytes_ + entry.shared);
  } while (next_ < end);
}

void BTreeCursor::Seek(std::string_view key) {
  Start();
  if (content().root == nullptr) return;
  Descend(key);
  const LeafPlace place = FindInLeaf(leaf_, key);
  const uint8_t* const at = leaf_->entries() + place.at;
  if (at == leaf_end_) {
    if (MoveLeaf(true)) LoadFirst();
    return;
  }
  // The entry shares with the target what it shares with its predecessor, and more.
  Entry entry;
  ParseEntry(at, &entry);
  const size_t shared = prefix_bytes_ + entry.shared;
  CELLAR_DEBUG_ASSERT(shared <= key.size() || entry.shared == 0);
  std::string own;  // `key` may lie in our buffer, which may be replaced
  if (shared + 32 > key_capacity_) {
    own = key;
    key = own;
  }
  key_bytes_ = 0;
  ReserveKey(shared);
  if (shared > prefix_bytes_)
    std::memmove(key_ + prefix_bytes_, key.data() + prefix_bytes_, shared - prefix_bytes_);
  std::memcpy(key_, leaf_->prefix(), prefix_bytes_);
  Load(at, entry, shared);
}

void BTreeCursor::SeekBefore(std::string_view key) {
  Start();
  if (content().root == nullptr) return;
  Descend(key);
  const LeafPlace place = FindInLeaf(leaf_, key);
  if (place.at > 0)
    LoadBefore(leaf_->entries() + place.at);
  else if (MoveLeaf(false))
    LoadBefore(leaf_end_);
}

void BTreeCursor::SeekFirst() {
  Start();
  if (content().root == nullptr) return;
  DescendEdge(content().root, 0, false);
  LoadFirst();
}

void BTreeCursor::SeekLast() {
  Start();
  if (content().root == nullptr) return;
  DescendEdge(content().root, 0, true);
  LoadBefore(leaf_end_);
}

// From the last entry of a leaf onto the first of the next.
void BTreeCursor::StepOver() {
  valid_ = false;
  shared_with_last_ = 0;
  if (!MoveLeaf(true)) return;
  // The old key is still in the buffer: see how much of it stays.
  Entry first;
  ParseEntry(leaf_->entries(), &first);
  size_t shared = CommonPrefix(key_, leaf_->prefix(), std::min(key_bytes_, prefix_bytes_));
  if (shared == prefix_bytes_)
    shared += CommonPrefix(View(key_ + shared, key_bytes_ - shared),
                           leaf_->dictionary().DecodeFirst(first));
  LoadFirst();
  shared_with_last_ = shared;
}

// Onto the next entry of the leaf, whatever it is.
void BTreeCursor::StepInside() {
  Entry entry;
  ParseEntry(next_, &entry);
  const size_t shared = prefix_bytes_ + entry.shared;
  size_t shared_with_last = shared;
  if (entry.shared == 0)  // the first of a group does not know what it shares
    shared_with_last +=
        leaf_->dictionary().Decode(entry).SharedWith(View(key_ + shared, key_bytes_ - shared));
  Load(next_, entry, shared);
  shared_with_last_ = shared_with_last;
}

// The tree was written: finds the entry where the cursor stood, or the one behind its place.
// `valid_` says whether there is one, shared_with_last_ how much of the old key its key has.
void BTreeCursor::SeekAgain() {
  const std::string old_key(key());
  Seek(old_key);
  if (valid_) shared_with_last_ = CommonPrefix(old_key, key());
}

// From the last entry of a leaf, or one of the last, or after a change of the tree.
void BTreeCursor::NextElsewhere() {
  if (tree_ == nullptr || tree_->changes() == seen_changes_) {
    if (next_ == leaf_end_)
      StepOver();
    else
      StepInside();
    return;
  }
  const size_t old_bytes = key_bytes_;
  SeekAgain();
  if (valid_ && shared_with_last_ == old_bytes && key_bytes_ == old_bytes) Next();
}

// What is rare is left to functions that are called last, so that the common step saves no
// registers. It is StepInside for an entry with short lengths that is not the first of its group.
// Asks for what a scan will read 8 lines from here: the core's own prefetcher begins too late in
// pieces of 4 KiB, which costs a fifth of the speed.
void BTreeCursor::Next() {
  CELLAR_ASSERT(valid_);
  if (next_ >= short_end_ || (tree_ != nullptr && tree_->changes() != seen_changes_)) [[unlikely]]
    return NextElsewhere();
  __builtin_prefetch(next_ + kPrefetchedBytes);
  Entry entry;
  if (!ParseShortEntry(next_, &entry) || entry.shared == 0) [[unlikely]]
    return StepInside();
  const size_t shared = prefix_bytes_ + entry.shared;
  uint8_t* const key = key_;
  uint8_t* const key_end = CopyShortSuffix(key + shared, entry, words_);
  entry_ = next_;
  next_ = entry.end;
  value_ = entry.value;
  value_bytes_ = entry.value_bytes;
  shared_with_last_ = shared;
  key_bytes_ = static_cast<size_t>(key_end - key);
}

void BTreeCursor::Prev() {
  CELLAR_ASSERT(valid_);
  if (tree_ != nullptr && tree_->changes() != seen_changes_) [[unlikely]] {
    const std::string old_key(key());
    SeekBefore(old_key);
    return;
  }
  shared_with_last_ = 0;
  if (entry_ != leaf_->entries()) {
    LoadBefore(entry_);
    return;
  }
  valid_ = false;
  if (MoveLeaf(false)) LoadBefore(leaf_end_);
}

}  // namespace cellar
