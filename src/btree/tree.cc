// Reads and writes of single keys. See tree.h; changes of structure are in tree_structure.cc.
#include "btree/tree.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "base/inline.h"
#include "btree/nodes/leaf_search.h"

namespace cellar::btree_internal {
namespace {

constexpr size_t kDescentGroup{Descents::kDescentsMax};

// How many entries are before the place.
size_t IndexInLeaf(const Leaf* leaf, const LeafPlace& place) {
  size_t i = place.index;
  for (uint32_t g = 0; g < place.group; ++g) i += leaf->counts()[g];
  return i;
}

// What is left of a suffix without its first bytes, which end in its word: joined in *scratch.
CELLAR_INLINE std::string_view JoinSuffix(const Leaf* leaf, const Suffix& suffix, size_t without,
                                          std::string* scratch) {
  const std::string_view of_word = Behind(suffix.word, without);
  const size_t bytes = of_word.size() + suffix.own.size();
  if (scratch->size() < bytes + kShortCopyBytes) [[unlikely]]
    scratch->resize(bytes + kShortCopyBytes);
  auto* const to = reinterpret_cast<uint8_t*>(scratch->data());
  const uint8_t* const readable_end = leaf->readable_end();
  CopyShort(to, Bytes(of_word), of_word.size(), readable_end);
  CopyShort(to + of_word.size(), Bytes(suffix.own), suffix.own.size(), readable_end);
  return View(to, bytes);
}

// Tree::Descend, for the reads of single keys, which do little else. Notes no path if that is null.
CELLAR_INLINE Leaf* DescendFrom(const TreeContent& content, std::string_view key, Path* path) {
  void* node = content.root;
  for (uint32_t level = 0; level < content.height; ++level) {
    auto* inner = static_cast<Inner*>(node);
    const uint32_t i = FindChild(inner, key);
    if (path != nullptr) {
      path->nodes[level] = inner;
      path->index[level] = i;
    }
    node = inner->pointers()[i];
    if (level + 1 < content.height)
      PrefetchInner(node);
    else
      PrefetchLeaf(node);
  }
  return static_cast<Leaf*>(node);
}

}  // namespace

// One for each thread: trees are changed one at a time, and what they need for that need not be
// allocated each time.
Tree::Scratch& Tree::scratch() {
  thread_local Scratch scratch;
  return scratch;
}

Tree::~Tree() {
  CELLAR_ASSERT(epochs_.snapshots() == 0);
  CELLAR_ASSERT(versions_ == 0);
  if (!borrows_) epochs_.Abandon(content_, 0);
}

uint64_t Tree::memory_bytes() const {
  return epochs_.memory_bytes() + sizeof(*this) + (descents_ != nullptr ? sizeof(Descents) : 0);
}

Leaf* Tree::Descend(std::string_view key, Path* path) const {
  return DescendFrom(content_, key, path);
}

// Locate by the path that a prefetch has noted, which is then *path. Null if there is none, or if
// the leaf cannot tell whether the key belongs to it: one that has entries before and behind it
// does.
Leaf* Tree::LocateNoted(std::string_view key, Path** path, LeafPlace* place) const {
  Path* const noted = descents_->Find(key);
  if (noted == nullptr) return nullptr;
  const uint32_t lowest = content_.height - 1;
  auto* const leaf = static_cast<Leaf*>(noted->nodes[lowest]->pointers()[noted->index[lowest]]);
  *place = SearchLeaf(leaf, key);
  const bool has_before = place->at > 0 || place->found;
  const bool has_behind = place->at < leaf->entries_bytes();
  if (!has_before || (!has_behind && !IsRightEdge(*noted))) [[unlikely]]
    return nullptr;
  CELLAR_DEBUG_ASSERT(IsPathTo(key, *noted, leaf));
  *path = noted;
  return leaf;
}

// The leaf that `key` leads to, and its place there. The path to it is a noted one, or *own_path
// (which is not filled in if that is null).
CELLAR_INLINE Leaf* Tree::Locate(std::string_view key, Path* own_path, Path** path,
                                 LeafPlace* place) const {
  if (descents_ != nullptr) {
    if (Leaf* const noted = LocateNoted(key, path, place); noted != nullptr) return noted;
  }
  Leaf* const leaf = DescendFrom(content_, key, own_path);
  *path = own_path;
  FindInLeaf(leaf, key, place);  // inlined, its loop would not have enough registers
  return leaf;
}

std::optional<std::string_view> Tree::Get(std::string_view key) const {
  if (content_.root == nullptr) return std::nullopt;
  Path* path = nullptr;
  LeafPlace place;
  const Leaf* const leaf = Locate(key, nullptr, &path, &place);
  if (!place.found) return std::nullopt;
  Entry entry;
  ParseEntry(leaf->entries() + place.at, &entry);
  return entry.value_view();
}

// The entry at the prefix's place, if its key begins with the prefix. It shares with the prefix
// what it shares with the entry before, which is below: so all that its key has behind the prefix
// stands in its suffix, unless the leaf's own prefix is longer. *entry := what stands there.
CELLAR_INLINE bool Tree::MatchAt(const Leaf* leaf, const LeafPlace& place, std::string_view prefix,
                                 std::string* scratch, Entry* entry, BTree::Match* match) {
  ParseEntry(leaf->entries() + place.at, entry);
  const Suffix suffix = leaf->dictionary().Decode(*entry);
  if (!place.has_prefix) [[unlikely]] {
    const std::string_view leaf_prefix = View(leaf->prefix(), leaf->prefix_bytes);
    if (!leaf_prefix.starts_with(prefix)) return false;
    CELLAR_ASSERT(entry->shared == 0);
    scratch->assign(leaf_prefix.substr(prefix.size()));
    suffix.AppendTo(scratch);
    *match = {*scratch, entry->value_view()};
    return true;
  }
  const std::string_view rest = Behind(prefix, leaf->prefix_bytes);
  CELLAR_ASSERT(entry->shared <= rest.size());
  if (!place.found && place.shared_after != rest.size() &&
      !suffix.BeginsWith(rest.substr(entry->shared))) {
    return false;
  }
  const size_t prefix_part = rest.size() - entry->shared;  // what the suffix has of the prefix
  if (prefix_part >= suffix.word.size()) {
    *match = {Behind(suffix.own, prefix_part - suffix.word.size()), entry->value_view()};
  } else {
    *match = {JoinSuffix(leaf, suffix, prefix_part, scratch), entry->value_view()};
  }
  return true;
}

const Leaf* Tree::LeafBehind(const Path& path) const {
  for (uint32_t level = content_.height; level-- > 0;) {
    const uint32_t i = path.index[level] + 1;
    if (i > path.nodes[level]->separators()) continue;
    const void* node = path.nodes[level]->pointers()[i];
    while (++level < content_.height) node = static_cast<const Inner*>(node)->pointers()[0];
    return static_cast<const Leaf*>(node);
  }
  return nullptr;
}

// A match at the front of the leaf behind.
bool Tree::MatchBehind(const Path& path, std::string_view prefix, std::string* scratch,
                       BTree::Match* match) const {
  const Leaf* const leaf = LeafBehind(path);
  if (leaf == nullptr) return false;
  LeafPlace front{};
  front.has_prefix = prefix.starts_with(View(leaf->prefix(), leaf->prefix_bytes));
  Entry entry;
  return MatchAt(leaf, front, prefix, scratch, &entry, match);
}

bool Tree::DescendAndMatchBehind(std::string_view prefix, std::string* scratch,
                                 BTree::Match* match) const {
  Path path;
  (void)Descend(prefix, &path);
  return MatchBehind(path, prefix, scratch, match);
}

// GetFirst in the finger's leaf; false if that cannot tell. It can if it is of this tree as it is
// now, and has an entry before the prefix and one that is not below it: then a descent would end
// there too.
bool Tree::LookAtFinger(const BTreeFinger& finger, std::string_view prefix, std::string* scratch,
                        BTree::Match* match, bool* is_found) const {
  if (finger.tree_ != this || finger.changes_ != changes_) return false;
  const LeafPlace place = SearchLeaf(finger.leaf_, prefix);
  if (place.at == finger.leaf_->entries_bytes() || (place.at == 0 && !place.found)) return false;
  Entry entry;
  *is_found = MatchAt(finger.leaf_, place, prefix, scratch, &entry, match);
  return true;
}

bool Tree::GetFirst(std::string_view prefix, std::string* scratch, BTreeFinger* finger,
                    BTree::Match* match) const {
  if (finger->leaf_ != nullptr) [[unlikely]] {  // a command's first read has none
    bool is_found = false;
    if (LookAtFinger(*finger, prefix, scratch, match, &is_found)) return is_found;
  }
  if (content_.root == nullptr) [[unlikely]]
    return false;
  Path* path = nullptr;
  LeafPlace place;
  const Leaf* const leaf = Locate(prefix, nullptr, &path, &place);
  finger->tree_ = this;
  finger->leaf_ = leaf;
  finger->changes_ = changes_;
  if (place.at == leaf->entries_bytes()) [[unlikely]]
    return DescendAndMatchBehind(prefix, scratch, match);
  Entry entry;
  return MatchAt(leaf, place, prefix, scratch, &entry, match);
}

// Mostly the first half of a write, which *noted spares a second descent. It stays empty (leaf
// null) where a key that begins with the prefix might belong into another leaf. Whether the match
// is the only one is judged by this leaf alone.
std::optional<BTree::Match> Tree::FindFirst(std::string_view prefix, std::string* scratch,
                                            Place* noted) const {
  noted->leaf = nullptr;
  if (content_.root == nullptr) return std::nullopt;
  const LeafPlace& place = noted->in_leaf;
  Path* path = &noted->path;
  Leaf* const leaf = Locate(prefix, &noted->path, &path, &noted->in_leaf);
  if (path != &noted->path) noted->path.Assign(*path, content_.height);
  // A key that begins with the prefix goes there too if an entry of this leaf stands behind, or
  // nothing does. (The leaf's end says nothing: the separator behind may begin with the prefix.)
  // Where an entry has the prefix as its key, the place is that of just this key.
  const bool at_end = place.at == leaf->entries_bytes();
  if (place.has_prefix && (!at_end || IsRightEdge(noted->path))) {
    noted->leaf = leaf;
    noted->changes = changes_;
    noted->prefix_bytes = prefix.size();
  }
  BTree::Match match;
  if (at_end) [[unlikely]] {
    if (!MatchBehind(noted->path, prefix, scratch, &match)) return std::nullopt;
    return match;
  }
  Entry entry;
  if (!MatchAt(leaf, place, prefix, scratch, &entry, &match)) return std::nullopt;
  if (place.has_prefix && !place.found && entry.end != leaf->entries_end()) {
    const std::string_view rest = prefix.substr(leaf->prefix_bytes);
    Entry next;
    ParseEntry(entry.end, &next);
    // The first entry of a group has its whole key in the suffix.
    match.is_only = next.shared < rest.size() &&
                    (next.shared > 0 || !leaf->dictionary().Decode(next).BeginsWith(rest));
  }
  return match;
}

void Tree::MultiGet(std::span<const std::string_view> keys,
                    std::span<std::optional<std::string_view>> values) const {
  CELLAR_ASSERT(values.size() == keys.size());
  while (!keys.empty()) {
    const size_t n = std::min(keys.size(), kDescentGroup);
    if (n > 1) Prefetch(keys.first(n));
    for (size_t i = 0; i < n; ++i) values[i] = Get(keys[i]);
    keys = keys.subspan(n);
    values = values.subspan(n);
  }
}

// Goes down with kDescentGroup keys side by side, level by level, and in each level first to the
// nodes' starts, then to their heads, then to the search: so the cache misses of the keys overlap.
// The ways down stay in descents_ for the look-ups to come.
void Tree::Prefetch(std::span<const std::string_view> keys) const {
  if (content_.height == 0) return;
  auto touch_start = [](const void* node) {
    const auto* bytes = static_cast<const uint8_t*>(node);
    TouchLines(bytes, bytes + NodeArena::kGranuleBytes);
  };
  if (descents_ == nullptr) descents_ = std::make_unique<Descents>();
  std::array<void*, kDescentGroup> nodes;
  std::array<Path*, kDescentGroup> paths;
  while (!keys.empty()) {
    const size_t n = std::min(keys.size(), kDescentGroup);
    descents_->MakeRoom(n);
    for (size_t i = 0; i < n; ++i) {
      nodes[i] = content_.root;
      paths[i] = descents_->Add(keys[i]);
    }
    // In each round over the keys, what one of them waits for the others ask for meanwhile.
    for (uint32_t level = 0; level < content_.height; ++level) {
      for (size_t i = 0; i < n && level > 0; ++i) touch_start(nodes[i]);
      for (size_t i = 0; i < n && level > 0; ++i) {
        const auto* inner = static_cast<const Inner*>(nodes[i]);
        const auto* heads = reinterpret_cast<const uint8_t*>(inner->heads());
        TouchLines(heads, heads + sizeof(uint32_t) * inner->separators());
      }
      for (size_t i = 0; i < n; ++i) {
        auto* const inner = static_cast<Inner*>(nodes[i]);
        const uint32_t child = FindChild(inner, keys[i]);
        paths[i]->nodes[level] = inner;
        paths[i]->index[level] = child;
        nodes[i] = inner->pointers()[child];
      }
    }
    for (size_t i = 0; i < n; ++i) touch_start(nodes[i]);
    for (size_t i = 0; i < n; ++i) TouchGroup(static_cast<const Leaf*>(nodes[i]), keys[i]);
    keys = keys.subspan(n);
  }
}

// ---- writes ----

ValueRef Tree::MakeValue(std::string_view value) {
  if (value.size() <= kInlineValueBytesMax)
    return {Bytes(value), static_cast<uint32_t>(value.size()), nullptr};
  return {nullptr, static_cast<uint32_t>(value.size()), epochs_.NewValue(value)};
}

// Fills in shared_with_neighbor and shared_is_exact. Neighbours in other groups are judged by the
// first key of the group behind (exactly the neighbour) or before (which shares no more than the
// neighbour does).
CELLAR_INLINE void Tree::JudgeNeighbors(const Path& path, const Leaf* leaf, const LeafPlace& place,
                                        std::string_view key, BTreeWriteResult* result) const {
  if (!place.found && place.index > 0 && place.index < leaf->counts()[place.group]) [[likely]] {
    const size_t shared = leaf->prefix_bytes + std::max(place.shared_before, place.shared_after);
    result->shared_with_neighbor = shared;
    result->shared_is_exact = true;
    return;
  }
  JudgeOthers(path, leaf, place, key, result);
}

// JudgeNeighbors of a place without an entry of its group on both sides.
void Tree::JudgeOthers(const Path& path, const Leaf* leaf, const LeafPlace& place,
                       std::string_view key, BTreeWriteResult* result) const {
  if (!place.has_prefix) {
    result->shared_with_neighbor = CommonPrefix(key, View(leaf->prefix(), leaf->prefix_bytes));
    return;
  }
  // Alone in its leaf: others need not share the prefix.
  if (place.found && leaf->count == 1) return;
  const std::string_view rest = key.substr(leaf->prefix_bytes);
  size_t shared = std::max(place.shared_before, place.shared_after);
  uint32_t behind = place.index;  // in the group: the neighbour behind
  if (place.found) {
    Entry entry;
    ParseEntry(leaf->entries() + place.at, &entry);
    shared = entry.shared;
    if (++behind < leaf->counts()[place.group]) {
      ParseEntry(entry.end, &entry);
      shared = std::max<size_t>(shared, entry.shared);
    }
  }
  bool knows_behind = true;
  if (behind == leaf->counts()[place.group]) {
    if (place.group + 1 < leaf->groups)
      shared = std::max(shared, CommonPrefix(rest, GroupFirst(leaf, place.group + 1)));
    else
      knows_behind = IsRightEdge(path);
  }
  if (place.index == 0 && place.group > 0)
    shared = std::max(shared, CommonPrefix(rest, GroupFirst(leaf, place.group - 1)));
  result->shared_with_neighbor = leaf->prefix_bytes + shared;
  result->shared_is_exact = place.index > 0 && knows_behind;
}

// Nodes that no snapshot sees any more are freed here and there, a few with every write, so that no
// write has to free many.
BTreeWriteResult Tree::Put(std::string_view key, std::string_view value) {
  CELLAR_ASSERT(key.size() <= kTreeKeyBytesMax);
  ++changes_;
  epochs_.ReleaseSome();
  if (content_.root == nullptr) {
    PutFirst(key, value);
    return {};
  }
  Path own_path;
  Path* path = nullptr;
  LeafPlace place;
  Leaf* const leaf = Locate(key, &own_path, &path, &place);
  return PutAt(path, leaf, place, key, value);
}

BTreeWriteResult Tree::Put(std::string_view key, std::string_view value, Place* place) {
  if (!TakePlace(place, key)) return Put(key, value);
  CELLAR_ASSERT(key.size() <= kTreeKeyBytesMax);
  ++changes_;
  epochs_.ReleaseSome();
  return PutAt(&place->path, place->leaf, place->in_leaf, key, value);
}

CELLAR_INLINE BTreeWriteResult Tree::PutAt(Path* path, Leaf* leaf, const LeafPlace& place,
                                           std::string_view key, std::string_view value) {
  BTreeWriteResult result;
  JudgeNeighbors(*path, leaf, place, key, &result);
  if (place.found) {
    Entry entry;
    ParseEntry(leaf->entries() + place.at, &entry);
    result.existed = true;
    result.old_value_bytes = entry.value_bytes;
    LargeValue* const old_large = entry.is_large ? entry.large() : nullptr;
    Overwrite(path, leaf, place, MakeValue(value));
    if (old_large != nullptr) epochs_.Retire(old_large);
    content_.payload_bytes += value.size() - result.old_value_bytes;
    return result;
  }
  Insert(path, leaf, place, key, MakeValue(value));
  ++content_.entries;
  content_.payload_bytes += key.size() + value.size();
  return result;
}

Leaf* Tree::LocateForRun(std::string_view key, Path* own_path, Path** path, LeafPlace* place,
                         BTreeWriteResult* result) const {
  Leaf* const leaf = Locate(key, own_path, path, place);
  JudgeNeighbors(**path, leaf, *place, key, result);
  return leaf;
}

BTreeWriteResult Tree::PutLocated(Path* path, Leaf* leaf, const LeafPlace& place,
                                  std::string_view key, std::string_view value) {
  ++changes_;
  return PutAt(path, leaf, place, key, value);
}

// Makes the place of a prefix that of a key which begins with it and is below the entry there.
// False if it cannot be used. It differs in nothing but in what the key shares with that entry.
bool Tree::TakePlace(Place* place, std::string_view key) const {
  if (place->leaf == nullptr || place->changes != changes_) return false;
  const Leaf* const leaf = place->leaf;
  LeafPlace& at = place->in_leaf;
  CELLAR_ASSERT(key.size() >= place->prefix_bytes);
  if (at.found && key.size() > place->prefix_bytes) return false;
  const size_t rest_bytes = place->prefix_bytes - leaf->prefix_bytes;
  if (!at.found && at.shared_after == rest_bytes && at.at < leaf->entries_bytes() &&
      at.index < leaf->counts()[at.group]) {
    Entry entry;
    ParseEntry(leaf->entries() + at.at, &entry);
    const Suffix suffix = leaf->dictionary().Decode(entry);
    const std::string_view own = key.substr(leaf->prefix_bytes + entry.shared);
    const size_t common = suffix.SharedWith(own);
    CELLAR_ASSERT(common >= rest_bytes - entry.shared);
    CELLAR_ASSERT(common < suffix.size());
    CELLAR_ASSERT(common == own.size() || static_cast<uint8_t>(own[common]) < suffix[common]);
    at.shared_after = static_cast<uint32_t>(entry.shared + common);
  }
  CELLAR_DEBUG_ASSERT(IsPlaceOf(*place, key));
  place->changes = Place::kUsedUp;
  return true;
}

// Does a descent to the key take this path?
bool Tree::IsPathTo(std::string_view key, const Path& path, const Leaf* leaf) const {
  Path found;
  if (Descend(key, &found) != leaf) return false;
  for (uint32_t level = 0; level < content_.height; ++level)
    if (found.nodes[level] != path.nodes[level] || found.index[level] != path.index[level])
      return false;
  return true;
}

// Does a search of the key lead to the place?
bool Tree::IsPlaceOf(const Place& place, std::string_view key) const {
  Path path;
  const Leaf* const leaf = Descend(key, &path);
  return leaf == place.leaf && FindInLeaf(leaf, key) == place.in_leaf;
}

BTreeWriteResult Tree::Replace(std::string_view old_key, std::string_view key,
                               std::string_view value, Place* noted) {
  BTreeWriteResult result;
  if (content_.root != nullptr && key.size() == old_key.size() &&
      value.size() <= kInlineValueBytesMax) {
    epochs_.ReleaseSome();
    const bool replaced = noted != nullptr && TakePlace(noted, key)
                              ? ReplaceInPlace(noted, old_key, key, value, &result)
                              : ReplaceElsewhere(old_key, key, value, &result);
    if (replaced) [[likely]] {
      ++changes_;
      content_.payload_bytes += value.size() - result.old_value_bytes;
      return result;
    }
  }
  CELLAR_ASSERT(key != old_key);
  const BTreeWriteResult deleted = Delete(old_key);
  result = Put(key, value);
  result.existed = deleted.existed;
  result.old_value_bytes = deleted.old_value_bytes;
  return result;
}

// ReplaceInPlace, where no place of the key has been noted.
bool Tree::ReplaceElsewhere(std::string_view old_key, std::string_view key, std::string_view value,
                            BTreeWriteResult* result) {
  Place found;
  found.leaf = Descend(key, &found.path);
  found.in_leaf = FindInLeaf(found.leaf, key);
  return ReplaceInPlace(&found, old_key, key, value, result);
}

// Writes the new entry over the one behind the key's place, which it makes that entry's. False if
// that is not the old key's, or if more would change than this entry: then nothing is done.
CELLAR_INLINE bool Tree::ReplaceInPlace(Place* at, std::string_view old_key, std::string_view key,
                                        std::string_view value, BTreeWriteResult* result) {
  Leaf* leaf = at->leaf;
  LeafPlace& place = at->in_leaf;
  if (place.found || !place.has_prefix || leaf->count == 1) return false;
  if (place.index == leaf->counts()[place.group]) {  // before the first one of the next group
    if (++place.group == leaf->groups) return false;
    place.index = 0;
    place.shared_before = 0;
    place.shared_after = 0;
  }
  Entry old;
  ParseEntry(leaf->entries() + place.at, &old);
  if (old.is_large) return false;
  // What the entry is known to have of the key it must have of the old one; then comes the rest of
  // that.
  const size_t known = place.shared_after;
  CELLAR_ASSERT(known >= old.shared);
  const size_t known_bytes = leaf->prefix_bytes + known;
  if (!HasPrefix(old_key, Bytes(key), known_bytes) ||
      !leaf->dictionary().Decode(old).EndsWith(known - old.shared, Behind(old_key, known_bytes))) {
    return false;
  }
  const std::string_view rest = Behind(key, leaf->prefix_bytes);
  if (place.index + 1 < leaf->counts()[place.group]) {
    Entry next;
    ParseEntry(old.end, &next);
    // That entry shares with the old key no more than the new one does, or it would change too.
    const size_t common =
        known > 0 ? known : CommonPrefix(rest, Behind(old_key, leaf->prefix_bytes));
    if (next.shared > common) return false;
  }
  result->existed = true;
  result->old_value_bytes = old.value_bytes;
  result->shared_with_neighbor = leaf->prefix_bytes + place.shared_before;
  const ValueRef value_ref{Bytes(value), static_cast<uint32_t>(value.size()), nullptr};
  if (epochs_.MayWrite(leaf) && RewriteShort(leaf, place, old, rest, value_ref)) [[likely]]
    return true;
  return Rewrite(&at->path, leaf, place, rest, value_ref);
}

// Writes the new entry over the one at `place`, whatever its size. False if the leaf has no room.
bool Tree::Rewrite(Path* path, Leaf* leaf, const LeafPlace& place, std::string_view rest,
                   const ValueRef& value) {
  const LeafEdit edit = PlanRewrite(leaf, place, rest, value);
  const auto used = static_cast<size_t>(leaf->used + edit.growth());
  if (used > LeafBytesLimit(leaf->prefix_bytes)) return false;
  leaf = PrepareLeaf(path, leaf, used);
  ApplyRewrite(leaf, place, edit, rest, value);
  return true;
}

// An empty tree has no leaf at all.
void Tree::PutFirst(std::string_view key, std::string_view value) {
  scratch().entries.Reset({});
  scratch().entries.Append(key, MakeValue(value));
  BuildLeaves(LeafFill::kWithRoom, LeafWords::kKept, &scratch().new_leaves);
  content_ = {scratch().new_leaves[0].pointer, 0, 1, key.size() + value.size()};
}

// A value that makes the leaf too large is written by building the leaf anew, as one or as two.
void Tree::Overwrite(Path* path, Leaf* leaf, const LeafPlace& place, const ValueRef& value) {
  const LeafEdit edit = PlanReplace(leaf, place, value);
  const auto used = static_cast<size_t>(leaf->used + edit.growth());
  if (leaf->count > 1 && used > LeafBytesLimit(leaf->prefix_bytes)) {
    const size_t i = IndexInLeaf(leaf, place);
    scratch().entries.Reset(View(leaf->prefix(), leaf->prefix_bytes));
    scratch().entries.AppendLeaf(leaf);
    scratch().entries.SetValue(i, value);
    ReplaceLeaves(path, content_.height > 0 ? path->index[content_.height - 1] : 0, 1,
                  LeafFill::kWithRoom, LeafWords::kKept);
    return;
  }
  leaf = PrepareLeaf(path, leaf, used);
  const uint32_t large_units = leaf->large_units;
  ApplyReplace(leaf, place, edit, value);
  if (leaf->large_units != large_units) UpdateUnits(path, leaf);
}

CELLAR_INLINE void Tree::Insert(Path* path, Leaf* leaf, const LeafPlace& place,
                                std::string_view key, const ValueRef& value) {
  const bool is_simple = place.has_prefix && leaf->counts()[place.group] < kGroupEntriesMax &&
                         epochs_.MayWrite(leaf) && InsertShort(leaf, place, key, value);
  if (!is_simple) [[unlikely]]
    InsertWithRoom(path, leaf, place, key, value);
}

// Insert where the leaf is to be changed first: room made in it, or copied, or split.
void Tree::InsertWithRoom(Path* path, Leaf* leaf, LeafPlace place, std::string_view key,
                          const ValueRef& value) {
  if (!place.has_prefix) return InsertWithSplit(path, leaf, key, value, false);
  if (leaf->counts()[place.group] == kGroupEntriesMax) {
    if (!MakeGroupRoom(path, &leaf, &place, key))
      return InsertWithSplit(path, leaf, key, value, false);
    if (place.group < leaf->groups && InsertShort(leaf, place, key, value)) return;
  }
  const LeafEdit edit = PlanInsert(leaf, place, key, value);
  const auto used = static_cast<size_t>(leaf->used + edit.growth());
  const bool at_end = place.at == leaf->entries_bytes();
  if (used > LeafBytesLimit(leaf->prefix_bytes)) {
    return InsertWithSplit(path, leaf, key, value, at_end && IsRightEdge(*path));
  }
  // At the right edge more of the same will follow.
  const bool grows_fast = at_end && used > leaf->capacity() && IsRightEdge(*path);
  leaf = PrepareInsert(path, leaf, used, grows_fast ? used / 2 : kInsertRoomBytes);
  ApplyInsert(leaf, place, edit, key, value);
  if (value.large != nullptr) UpdateUnits(path, leaf);
}

// A leaf that cannot take the entry even when it is rebuilt is halved first, and the key belongs to
// one of the halves.
void Tree::InsertWithSplit(Path* path, Leaf* leaf, std::string_view key, const ValueRef& value,
                           bool is_last) {
  if (InsertIntoFull(path, leaf, key, value, is_last)) return;
  Path path_to_half;
  Leaf* const half = Descend(key, &path_to_half);
  Insert(&path_to_half, half, FindInLeaf(half, key), key, value);
}

// Makes sure that one more group can be made. False if the leaf has no room for it.
bool Tree::OpenGroupRoom(Path* path, Leaf** leaf) {
  if ((*leaf)->groups < (*leaf)->group_capacity) return true;
  const size_t used_wider = (*leaf)->used + kGroupRoomGrowth;
  if ((*leaf)->group_capacity == kLeafGroupsMax ||
      used_wider > LeafBytesLimit((*leaf)->prefix_bytes)) {
    return false;
  }
  *leaf = PrepareInsert(path, *leaf, used_wider, kInsertRoomBytes);
  AddGroupRoom(*leaf);
  return true;
}

// The place's group is full: makes two of it, and finds the place again. False if there is no free
// group or no room.
bool Tree::MakeGroupRoom(Path* path, Leaf** leaf, LeafPlace* place, std::string_view key) {
  if (!OpenGroupRoom(path, leaf)) return false;
  const bool in_last = place->group + 1u == (*leaf)->groups;
  if (in_last && place->index == kGroupEntriesMax) {
    // In ascending order groups stay full: ApplyInsert opens a new one.
    place->group += 1;
    place->index = 0;
    place->shared_before = 0;
    return true;
  }
  // At the right edge the first part will hardly grow any more: rows arrive in order, if not their
  // columns.
  const uint32_t first_part =
      in_last && IsRightEdge(*path) ? kGroupEntriesMax * 3 / 4 : kGroupEntriesMax / 2;
  RebuiltKey& first = scratch().key;
  const GroupSplit split = PlanSplitGroup(*leaf, place->group, first_part, &first);
  const auto used = static_cast<size_t>((*leaf)->used + split.edit.growth());
  if (used > LeafBytesLimit((*leaf)->prefix_bytes)) return false;
  *leaf = PrepareInsert(path, *leaf, used, kInsertRoomBytes);
  ApplySplitGroup(*leaf, split, first.view());
  if (place->index > first_part) {
    place->group += 1;
    place->index -= first_part;
    place->at = static_cast<uint32_t>(place->at + split.edit.growth());
  } else if (place->index == first_part) {  // at the end of the first one
    place->shared_after = 0;
  }
  CELLAR_DEBUG_ASSERT(*place == FindInLeaf(*leaf, key));
  return true;
}

BTreeWriteResult Tree::Delete(std::string_view key) {
  CELLAR_ASSERT(key.size() <= kTreeKeyBytesMax);
  epochs_.ReleaseSome();
  BTreeWriteResult result;
  if (content_.root == nullptr) return result;
  Path path;
  Leaf* leaf = Descend(key, &path);
  const LeafPlace place = FindInLeaf(leaf, key);
  JudgeNeighbors(path, leaf, place, key, &result);
  if (!place.found) return result;
  ++changes_;
  Entry entry;
  ParseEntry(leaf->entries() + place.at, &entry);
  result.existed = true;
  result.old_value_bytes = entry.value_bytes;
  LargeValue* const old_large = entry.is_large ? entry.large() : nullptr;
  Remove(&path, leaf, place, key);
  if (old_large != nullptr) epochs_.Retire(old_large);
  --content_.entries;
  content_.payload_bytes -= key.size() + result.old_value_bytes;
  return result;
}

// Where the next leaf begins, or, without the lowest levels, the next node below `levels` ones: at
// the nearest separator to the right.
std::optional<std::string> Tree::NextSeparator(const Path& path, uint32_t levels) {
  for (uint32_t level = levels; level-- > 0;) {
    const Inner* node = path.nodes[level];
    if (path.index[level] == node->separators()) continue;
    std::string text(node->prefix_view());
    text += node->rest(path.index[level]);
    return text;
  }
  return std::nullopt;
}

// Leaf by leaf; nodes are merged only at the end and only at both ends of the range, as all between
// has gone.
uint64_t Tree::DeleteRange(std::string_view begin, std::string_view end, uint64_t entries_max) {
  epochs_.ReleaseSome();
  std::string from(begin);
  uint64_t removed = 0;
  bool changed_structure = false;
  while (removed < entries_max && content_.root != nullptr) {
    Path path;
    Leaf* leaf = Descend(from, &path);
    std::optional<std::string> next = NextSeparator(path, content_.height);
    bool is_last = false;
    const uint64_t n = RemoveRange(&path, leaf, from, end, entries_max - removed, &is_last);
    removed += n;
    changed_structure |= n > 0;
    if (is_last || !next || (!end.empty() && *next >= end)) break;
    from = *std::move(next);
  }
  if (changed_structure) {
    ++changes_;
    MergeInners(begin);
    if (!end.empty()) MergeInners(end);
    if (content_.root != nullptr) {
      Path path;
      Leaf* leaf = Descend(begin, &path);
      if (MergeLeaf(&path, leaf)) MergeInners(begin);
    }
  }
  return removed;
}

// Removes what `leaf` has of [begin, end); *is_last says that something at or behind the end, or
// one entry too many, stays.
uint64_t Tree::RemoveRange(Path* path, Leaf* leaf, std::string_view begin, std::string_view end,
                           uint64_t entries_max, bool* is_last) {
  scratch().entries.Reset(View(leaf->prefix(), leaf->prefix_bytes));
  scratch().entries.AppendLeaf(leaf);
  const size_t size = scratch().entries.size();
  const size_t first = scratch().entries.LowerBound(begin);
  size_t last = end.empty() ? size : std::max(first, scratch().entries.LowerBound(end));
  if (last - first > entries_max) last = first + entries_max;
  *is_last = last < size;
  if (first == last) {
    scratch().entries.ShrinkIfLarge();
    return 0;
  }
  std::vector<LargeValue*> large;
  for (size_t i = first; i < last; ++i) {
    const EntryList::Item& item = scratch().entries.item(i);
    content_.payload_bytes -= scratch().entries.base().size() + item.key_bytes + item.value.bytes;
    if (item.value.large != nullptr) large.push_back(item.value.large);
  }
  content_.entries -= last - first;
  scratch().entries.Erase(first, last);
  ReplaceLeaves(path, content_.height > 0 ? path->index[content_.height - 1] : 0, 1,
                LeafFill::kWithRoom, LeafWords::kKept);
  for (LargeValue* value : large) epochs_.Retire(value);
  return last - first;
}

void Tree::Clear() {
  ++changes_;
  ForgetDescents();
  epochs_.ReleaseSome();
  epochs_.Abandon(content_, 0);
  content_ = {};
}

void Tree::Remove(Path* path, Leaf* leaf, const LeafPlace& place, std::string_view key) {
  if (leaf->count == 1) {
    scratch().entries.Reset({});
    ReplaceLeaves(path, content_.height > 0 ? path->index[content_.height - 1] : 0, 1,
                  LeafFill::kWithRoom, LeafWords::kKept);
    MergeInners(key);
    return;
  }
  std::string& next_suffix = scratch().text;
  const LeafEdit edit = PlanRemove(leaf, place, &next_suffix);
  const auto used = static_cast<size_t>(leaf->used + edit.growth());
  if (leaf->count > 2 && used > LeafBytesLimit(leaf->prefix_bytes)) {
    RemoveByRebuild(path, leaf, place);
    return;
  }
  // A leaf that has become much smaller than its memory moves to a smaller one.
  const bool is_roomy = NodeArena::RoundUp(leaf->used) * 4 < leaf->capacity() * size_t{3};
  if (is_roomy || used > leaf->capacity() || !epochs_.MayWrite(leaf))
    leaf = MoveLeaf(path, leaf, std::max<size_t>(used, leaf->used), 0);
  const uint32_t large_units = leaf->large_units;
  ApplyRemove(leaf, place, edit, next_suffix);
  if (leaf->large_units != large_units) UpdateUnits(path, leaf);
  if (MergeLeaf(path, leaf)) MergeInners(key);
}

// The leaf would become longer than it may be.
void Tree::RemoveByRebuild(Path* path, Leaf* leaf, const LeafPlace& place) {
  const size_t i = IndexInLeaf(leaf, place);
  scratch().entries.Reset(View(leaf->prefix(), leaf->prefix_bytes));
  scratch().entries.AppendLeaf(leaf);
  scratch().entries.Erase(i, i + 1);
  ReplaceLeaves(path, content_.height > 0 ? path->index[content_.height - 1] : 0, 1,
                LeafFill::kWithRoom, LeafWords::kKept);
}

// ---- snapshots ----

void Tree::TakeSnapshot(SnapshotState* snapshot) {
  snapshot->tree = this;
  snapshot->content = content_;
  epochs_.TakeSnapshot(snapshot);
}

void Tree::RollBackTo(SnapshotState* snapshot) {
  CELLAR_ASSERT(snapshot->tree == this);
  ++changes_;
  ForgetDescents();
  epochs_.RollBack(content_, snapshot);
  content_ = snapshot->content;
}

void Tree::Adopt(const TreeContent& content) {
  CELLAR_ASSERT(content_.root == nullptr);
  ++changes_;
  content_ = content;
}

void Tree::Borrow(const TreeContent& content) {
  Adopt(content);
  borrows_ = true;
}

}  // namespace cellar::btree_internal
