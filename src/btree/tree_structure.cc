// Changes of the tree's structure: copying, moving, splitting, merging of nodes; split keys;
// Validate.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "base/assert.h"
#include "btree/tree.h"

namespace cellar::btree_internal {
namespace {

constexpr size_t kMergeBelowBytes{kLeafBytesMax / 4};
constexpr size_t kMergedBytesMax{kLeafBytesMax * 3 / 4};

bool IsUnderfull(const Inner* node) {
  return node->children < kInnerChildrenMin || node->used < kInnerBytesMax / 4;
}

}  // namespace

bool Tree::IsRightEdge(const Path& path) const {
  for (uint32_t level = 0; level < content_.height; ++level)
    if (path.index[level] != path.nodes[level]->separators()) return false;
  return true;
}

void Tree::ForgetDescents() {
  if (descents_ != nullptr) descents_->Forget();
}

// ---- copy on write ----

// Makes the first `levels` nodes of the path the tree's own.
void Tree::EnsurePathWritable(Path* path, uint32_t levels) {
  for (uint32_t level = 0; level < levels; ++level) {
    Inner* const node = path->nodes[level];
    if (!epochs_.MayWrite(node)) CopyInner(path, level);
  }
}

// A new copy takes the place of the path's node at `level`. REQUIRES: those above may be written.
void Tree::CopyInner(Path* path, uint32_t level) {
  Inner* const node = path->nodes[level];
  Inner* const copy = epochs_.NewInner(node->used);
  std::memcpy(&copy->used, &node->used, node->used - offsetof(Inner, used));
  epochs_.Retire(node);
  path->nodes[level] = copy;
  if (descents_ != nullptr) descents_->NodeMoved(level, node, copy);
  if (level == 0)
    content_.root = copy;
  else
    path->nodes[level - 1]->pointers()[path->index[level - 1]] = copy;
}

// Puts `pointer` where the path goes on below `level`, and lets the nodes above know its size.
void Tree::SetChild(Path* path, uint32_t level, void* pointer, uint32_t units) {
  EnsurePathWritable(path, level + 1);
  Inner* const node = path->nodes[level];
  const uint32_t i = path->index[level];
  node->pointers()[i] = pointer;
  const uint32_t difference = units - node->units()[i];  // may wrap: sums do not
  if (difference == 0) return;
  for (uint32_t l = level + 1; l-- > 0;) path->nodes[l]->units()[path->index[l]] += difference;
}

// After a change of the leaf's values out of line. (MoveLeaf tells of its memory; what stays in its
// place is not worth a look at the node above, which may be in no cache.)
void Tree::UpdateUnits(Path* path, const Leaf* leaf) {
  if (content_.height == 0) return;
  const uint32_t level = content_.height - 1;
  const uint32_t units = leaf->units();
  if (path->nodes[level]->units()[path->index[level]] == units) return;
  SetChild(path, level, const_cast<Leaf*>(leaf), units);
}

// The leaf at the path's end, writable, with a capacity of `bytes`.
Leaf* Tree::PrepareLeaf(Path* path, Leaf* leaf, size_t bytes) {
  if (bytes <= leaf->capacity() && epochs_.MayWrite(leaf)) [[likely]]
    return leaf;
  return MoveLeaf(path, leaf, bytes, 0);
}

// Half of the room is before the entries, but at the right edge, where the next ones come at the
// end.
Leaf* Tree::PrepareInsert(Path* path, Leaf* leaf, size_t used, size_t room) {
  if (used <= leaf->capacity() && epochs_.MayWrite(leaf)) [[likely]]
    return leaf;
  const size_t capacity = NodeArena::RoundUp(std::max(used, std::min(used + room, kLeafBytesMax)));
  return MoveLeaf(path, leaf, capacity, IsRightEdge(*path) ? 0 : (capacity - used) / 2);
}

Leaf* Tree::MoveLeaf(Path* path, Leaf* leaf, size_t bytes, size_t front_bytes) {
  Leaf* const copy = epochs_.NewLeaf(std::max<size_t>(bytes, leaf->used + front_bytes));
  constexpr size_t kFrom{offsetof(Leaf, large_units)};
  std::memcpy(copy->bytes() + kFrom, leaf->bytes() + kFrom, leaf->header_bytes() - kFrom);
  copy->front_bytes = static_cast<uint16_t>(front_bytes);
  std::memcpy(copy->entries(), leaf->entries(), leaf->entries_bytes());
  if (content_.height == 0)
    content_.root = copy;
  else
    SetChild(path, content_.height - 1, copy, copy->units());
  epochs_.Retire(leaf);
  return copy;
}

// ---- decode -> build ----

// Leaves of what scratch().entries holds; that is of no use afterwards.
void Tree::BuildLeaves(LeafFill fill, LeafWords words, std::vector<NewChild>* leaves) {
  leaves->clear();
  if (words == LeafWords::kChosen) scratch().entries.ChooseWords();
  if (words == LeafWords::kNone) scratch().entries.UseWords({});
  CutIntoLeaves(scratch().entries, fill, &scratch().cuts);
  size_t begin = 0;
  for (const auto& [end, plan] : scratch().cuts) {
    Leaf* const leaf = epochs_.NewLeaf(plan.used);
    WriteLeaf(scratch().entries, begin, end, plan, leaf);
    std::string separator;
    if (begin > 0) {
      separator = scratch().entries.base();
      separator += scratch().entries.key(begin).substr(0, scratch().entries.item(begin).shared + 1);
    }
    leaves->push_back({leaf, leaf->units(), std::move(separator)});
    begin = end;
  }
  scratch().entries.ShrinkIfLarge();
}

// Leaves of what scratch().entries holds take the place of `count` children, beginning with child
// `first`, of the path's lowest inner node (of the root, in a tree without inner nodes).
void Tree::ReplaceLeaves(Path* path, uint32_t first, uint32_t count, LeafFill fill,
                         LeafWords words) {
  BuildLeaves(fill, words, &scratch().new_leaves);
  if (content_.height > 0) {
    const uint32_t level = content_.height - 1;
    std::array<void*, 2> old{};
    CELLAR_ASSERT(count <= old.size());
    for (uint32_t i = 0; i < count; ++i) old[i] = path->nodes[level]->pointers()[first + i];
    ReplaceChildren(path, level, first, count, scratch().new_leaves);
    for (uint32_t i = 0; i < count; ++i) epochs_.Retire(static_cast<Leaf*>(old[i]));
    return;
  }
  auto* const old = static_cast<Leaf*>(content_.root);
  if (scratch().new_leaves.empty()) {
    content_.root = nullptr;
  } else if (scratch().new_leaves.size() == 1) {
    content_.root = scratch().new_leaves[0].pointer;
  } else {
    std::vector<NewChild> nodes = scratch().new_leaves;
    while (nodes.size() > 1) {
      scratch().children.Reset({});
      for (const NewChild& node : nodes)
        scratch().children.Append(node.pointer, node.units, node.separator);
      BuildInners(false, &nodes);
      ++content_.height;
    }
    content_.root = nodes[0].pointer;
  }
  epochs_.Retire(old);
}

// scratch().children := the children of `node`, those from `first` on, `count` of them, replaced.
void Tree::FillChildList(const Inner* node, uint32_t first, uint32_t count,
                         const std::vector<NewChild>& children) {
  auto separator = [&](uint32_t i) {  // the whole one before child i
    std::string text;
    if (i == 0 || i >= node->children) return text;
    text = node->prefix_view();
    text += node->rest(i - 1);
    return text;
  };
  // The base: what the node's separators and the new ones have in common.
  std::string_view base =
      children.size() > 1 ? std::string_view(children[1].separator) : node->prefix_view();
  if (node->children > 1) base = base.substr(0, CommonPrefix(base, node->prefix_view()));
  for (size_t i = 1; i < children.size(); ++i)
    base = base.substr(0, CommonPrefix(base, children[i].separator));
  scratch().children.Reset(base);
  scratch().children.AppendChildren(node, 0, first, {});
  for (size_t i = 0; i < children.size(); ++i) {
    const std::string before = i == 0 ? separator(first) : children[i].separator;
    scratch().children.Append(children[i].pointer, children[i].units, before);
  }
  scratch().children.AppendChildren(node, first + count, node->children, separator(first + count));
}

void Tree::BuildInners(bool at_right_edge, std::vector<NewChild>* inners) {
  std::vector<NewChild> built;
  std::vector<size_t> ends;
  CutIntoInners(scratch().children, at_right_edge, &ends);
  size_t begin = 0;
  for (const size_t end : ends) {
    const InnerPlan plan = PlanInner(scratch().children, begin, end);
    Inner* const node = epochs_.NewInner(plan.used);
    WriteInner(scratch().children, begin, end, plan, node);
    built.push_back({node, static_cast<uint32_t>(node->total_units()),
                     begin == 0 ? std::string() : scratch().children.full_separator(begin)});
    begin = end;
  }
  *inners = std::move(built);
}

// `left` and `right` take the place of child i of the path's node at `level`. False, with nothing
// done, if the node has to be built anew for that.
bool Tree::InsertChildAt(Path* path, uint32_t level, uint32_t i, const NewChild& left,
                         const NewChild& right) {
  constexpr size_t kRoomBytes{256};  // for some ten more children
  Inner* const node = path->nodes[level];
  if (node->children < 2 || !right.separator.starts_with(node->prefix_view())) return false;
  const std::string_view rest = std::string_view(right.separator).substr(node->prefix_bytes);
  const size_t used = node->used + InnerGrowth(node->children, rest.size());
  if (used > kInnerBytesMax) return false;
  EnsurePathWritable(path, level);
  const uint32_t difference = left.units + right.units - node->units()[i];
  Inner* to = node;
  if (used > node->capacity || !epochs_.MayWrite(node))
    to = epochs_.NewInner(std::min(used + kRoomBytes, kInnerBytesMax));
  InsertChild(node, i, right.pointer, right.units, rest, to);
  to->pointers()[i] = left.pointer;
  to->units()[i] = left.units;
  for (uint32_t l = level; l-- > 0;) path->nodes[l]->units()[path->index[l]] += difference;
  if (descents_ != nullptr) {
    descents_->ChildAdded(level, node, i);
    descents_->NodeMoved(level, node, to);
  }
  if (to == node) return true;
  if (level == 0)
    content_.root = to;
  else
    path->nodes[level - 1]->pointers()[path->index[level - 1]] = to;
  epochs_.Retire(node);
  return true;
}

// `children` take the place of `count` children of the path's node at `level`. The path is of no
// use afterwards. Does not retire the old children.
void Tree::ReplaceChildren(Path* path, uint32_t level, uint32_t first, uint32_t count,
                           const std::vector<NewChild>& children) {
  if (count == 1 && children.size() == 1) {
    path->index[level] = first;
    SetChild(path, level, children[0].pointer, children[0].units);
    return;
  }
  if (count == 1 && children.size() == 2 &&
      InsertChildAt(path, level, first, children[0], children[1])) {
    return;
  }
  ForgetDescents();
  Inner* const node = path->nodes[level];
  const bool at_right_edge = first + count == node->children && IsRightEdge(*path);
  FillChildList(node, first, count, children);
  std::vector<NewChild> inners;
  BuildInners(at_right_edge, &inners);
  if (level > 0) {
    ReplaceChildren(path, level - 1, path->index[level - 1], 1, inners);
    epochs_.Retire(node);
    return;
  }
  if (inners.empty()) {
    content_.root = nullptr;
    content_.height = 0;
  }
  while (inners.size() > 1) {
    scratch().children.Reset({});
    for (const NewChild& inner : inners)
      scratch().children.Append(inner.pointer, inner.units, inner.separator);
    BuildInners(at_right_edge, &inners);
    ++content_.height;
    CELLAR_ASSERT(content_.height < kHeightMax);
  }
  if (!inners.empty()) content_.root = inners[0].pointer;
  epochs_.Retire(node);
}

// ---- merging ----

// Joins a small leaf with a neighbour under the same node if they fit one leaf well. False if
// nothing changed. The path is of no use afterwards.
bool Tree::MergeLeaf(Path* path, const Leaf* leaf) {
  if (content_.height == 0 || leaf->used >= kMergeBelowBytes) return false;
  const uint32_t level = content_.height - 1;
  const Inner* const node = path->nodes[level];
  if (node->children == 1) return false;
  const uint32_t i = path->index[level];
  const uint32_t first = i + 1 < node->children ? i : i - 1;
  const auto* left = static_cast<const Leaf*>(node->pointers()[first]);
  const auto* right = static_cast<const Leaf*>(node->pointers()[first + 1]);
  if (left->used + right->used > kMergedBytesMax) return false;
  if (left->count + right->count > static_cast<int>(kLeafEntriesMax / 2)) return false;
  const std::string_view left_prefix = View(left->prefix(), left->prefix_bytes);
  const std::string_view right_prefix = View(right->prefix(), right->prefix_bytes);
  scratch().entries.Reset(left_prefix.substr(0, CommonPrefix(left_prefix, right_prefix)));
  scratch().entries.AppendLeaf(left);
  scratch().entries.AppendLeaf(right);
  ReplaceLeaves(path, first, 2, LeafFill::kWithRoom, LeafWords::kChosen);
  return true;
}

// Joins nodes with few children, along the path of `key`, with a neighbour; lowers the tree.
void Tree::MergeInners(std::string_view key) {
  for (uint32_t level = content_.height; level-- > 1;) {
    if (level >= content_.height) continue;
    Path path;
    Descend(key, &path);
    Inner* const parent = path.nodes[level - 1];
    if (parent->children == 1 || !IsUnderfull(path.nodes[level])) continue;
    const uint32_t i = path.index[level - 1];
    const uint32_t first = i + 1 < parent->children ? i : i - 1;
    auto* const left = static_cast<Inner*>(parent->pointers()[first]);
    auto* const right = static_cast<Inner*>(parent->pointers()[first + 1]);
    std::string between(parent->prefix_view());
    between += parent->rest(first);
    std::string_view base = between;
    if (left->children > 1) base = base.substr(0, CommonPrefix(base, left->prefix_view()));
    if (right->children > 1) base = base.substr(0, CommonPrefix(base, right->prefix_view()));
    scratch().children.Reset(base);
    scratch().children.AppendChildren(left, 0, left->children, {});
    scratch().children.AppendChildren(right, 0, right->children, between);
    std::vector<NewChild> inners;
    BuildInners(false, &inners);
    ReplaceChildren(&path, level - 1, first, 2, inners);
    epochs_.Retire(left);
    epochs_.Retire(right);
  }
  CollapseRoot();
}

void Tree::CollapseRoot() {
  while (content_.height > 0) {
    auto* const root = static_cast<Inner*>(content_.root);
    if (root->children > 1) return;
    ForgetDescents();
    content_.root = root->pointers()[0];
    --content_.height;
    epochs_.Retire(root);
  }
}

// ---- split keys ----

// *key := the key of the entry at about `at_units` units of memory from the start of `node`.
void Tree::SplitBelow(const void* node, uint32_t level, uint64_t at_units, std::string* key) const {
  for (; level > 0; --level) {
    const auto* inner = static_cast<const Inner*>(node);
    uint32_t i = 0;
    while (i + 1 < inner->children && inner->units()[i] <= at_units)
      at_units -= inner->units()[i++];
    node = inner->pointers()[i];
  }
  const auto* leaf = static_cast<const Leaf*>(node);
  const uint64_t bytes_per_entry = leaf->capacity() / leaf->count;
  uint32_t index = 0;
  if (leaf->large_count == 0) {
    const uint64_t before = (at_units * 64 + bytes_per_entry - 1) / bytes_per_entry;
    index = static_cast<uint32_t>(std::min<uint64_t>(before, leaf->count - 1u));
  } else {
    const uint8_t* p = leaf->entries();
    for (uint64_t seen = 0; seen < at_units * 64 && index + 1u < leaf->count; ++index) {
      Entry entry;
      ParseEntry(p, &entry);
      seen += bytes_per_entry + (entry.is_large ? entry.large()->capacity : 0);
      p = entry.end;
    }
  }
  uint32_t group = 0;
  for (; index >= leaf->counts()[group]; ++group) index -= leaf->counts()[group];
  RebuiltKey rebuilt;
  rebuilt.TakeInGroup(leaf, group, index);
  key->assign(View(leaf->prefix(), leaf->prefix_bytes));
  key->append(rebuilt.view());
}

std::vector<std::string> Tree::SplitKeys(size_t parts) const {
  std::vector<std::string> keys;
  if (content_.root == nullptr) return keys;
  const uint64_t total = content_.height == 0
                             ? static_cast<const Leaf*>(content_.root)->units()
                             : static_cast<const Inner*>(content_.root)->total_units();
  std::string key;
  for (size_t i = 1; i < parts; ++i) {
    const auto at = total / parts * i + total % parts * i / parts;
    SplitBelow(content_.root, content_.height, at, &key);
    if (keys.empty() || keys.back() < key) keys.push_back(key);
  }
  return keys;
}

// ---- validation ----

// `low` and `high` are the bounds that the nodes above give; an empty `high` is no bound. Returns
// the units of memory below, which must be what the parent has noted of this child; entries and
// payload are added to *found.
uint64_t Tree::ValidateBelow(const void* node, uint32_t level, std::string_view low,
                             std::string_view high, TreeContent* found) const {
  if (level == 0) {
    const auto* leaf = static_cast<const Leaf*>(node);
    std::string first, last;
    found->payload_bytes += ValidateLeaf(leaf, &first, &last);
    found->entries += leaf->count;
    CELLAR_ASSERT(first >= low);
    CELLAR_ASSERT(high.empty() || last < high);
    return leaf->units();
  }
  const auto* inner = static_cast<const Inner*>(node);
  CELLAR_ASSERT(inner->children > 0);
  CELLAR_ASSERT(inner->used <= inner->capacity);
  CELLAR_ASSERT(inner->used <= kInnerBytesMax || inner->children < kInnerChildrenKept);
  std::string before(low);
  uint64_t units = 0;
  for (uint32_t i = 0; i < inner->children; ++i) {
    std::string behind(high);
    if (i < inner->separators()) {
      const std::string_view rest = inner->rest(i);
      CELLAR_ASSERT(inner->heads()[i] == Head(Bytes(rest), rest.size()));
      behind = std::string(inner->prefix_view()) + std::string(rest);
      CELLAR_ASSERT(behind > before);
      CELLAR_ASSERT(high.empty() || behind < high);
    }
    const uint64_t below = ValidateBelow(inner->pointers()[i], level - 1, before, behind, found);
    CELLAR_ASSERT(below == inner->units()[i]);
    units += below;
    before = behind;
  }
  return units;
}

void Tree::Validate() const {
  CELLAR_ASSERT((content_.root == nullptr) == (content_.entries == 0));
  TreeContent found;
  if (content_.root != nullptr) ValidateBelow(content_.root, content_.height, {}, {}, &found);
  CELLAR_ASSERT(found.entries == content_.entries);
  CELLAR_ASSERT(found.payload_bytes == content_.payload_bytes);
}

}  // namespace cellar::btree_internal
