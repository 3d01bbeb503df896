// Moves nodes out of chunks that the arena wants to give back. See arena.h.
#include "base/assert.h"
#include "btree/tree.h"

namespace cellar::btree_internal {

// The inner nodes of the path. Returns how many were moved.
size_t Tree::MoveInners(Path* path) {
  size_t moved = 0;
  for (uint32_t level = 0; level < content_.height; ++level) {
    Inner* const node = path->nodes[level];
    if (!NodeArena::IsLeaving(node, node->capacity) || !epochs_.MayWrite(node)) continue;
    EnsurePathWritable(path, level);
    CopyInner(path, level);
    ++moved;
  }
  return moved;
}

// The values out of line of a leaf that may be written. Returns how many were moved.
size_t Tree::MoveValues(Leaf* leaf) {
  if (leaf->large_count == 0) return 0;
  size_t moved = 0;
  Entry entry;
  for (uint8_t* p = leaf->entries(); p < leaf->entries_end(); p += entry.end - p) {
    ParseEntry(p, &entry);
    if (!entry.is_large) continue;
    LargeValue* const old = entry.large();
    if (!NodeArena::IsLeaving(old, old->capacity)) continue;
    LargeValue* const copy = epochs_.NewValue(entry.value_view());
    StoreLittleEndian(p + (entry.value - p), uint64_t{reinterpret_cast<uintptr_t>(copy)});
    epochs_.Retire(old);
    ++moved;
  }
  return moved;
}

// The path's leaf and its values. Returns how many were moved.
size_t Tree::MoveLeafAndValues(Path* path, Leaf* leaf) {
  size_t moved = 0;
  if (NodeArena::IsLeaving(leaf, leaf->capacity()) && epochs_.MayWrite(leaf)) {
    leaf = MoveLeaf(path, leaf, leaf->capacity(), 0);
    ++moved;
  }
  // A snapshot may share values with a leaf that is newer than it.
  if (epochs_.snapshots() == 0) moved += MoveValues(leaf);
  return moved;
}

// The leaves below one lowest inner node, then on by its separator to the next: the place is a key,
// since the tree may change between two calls. Places that others have noted are void after each.
bool Tree::Compact(std::string* position, size_t nodes_max) {
  constexpr size_t kLookedForMove{8};  // to look at so many costs about as much as to move one
  epochs_.ReleaseSome();
  ++changes_;
  size_t moved = 0;
  size_t looked = 0;
  while (content_.root != nullptr) {
    Path path;
    Leaf* const leaf = Descend(*position, &path);
    moved += MoveInners(&path);
    if (content_.height == 0) {
      (void)MoveLeafAndValues(&path, leaf);
      break;
    }
    // The leaves below the lowest node from here on.
    const uint32_t lowest = content_.height - 1;
    for (uint32_t i = path.index[lowest];; ++i) {
      path.index[lowest] = i;
      const Inner* const node = path.nodes[lowest];
      if (i + 4 < node->children) __builtin_prefetch(node->pointers()[i + 4]);
      moved += MoveLeafAndValues(&path, static_cast<Leaf*>(node->pointers()[i]));
      ++looked;
      if (i == path.nodes[lowest]->separators() || moved + looked / kLookedForMove >= nodes_max)
        break;
    }
    std::optional<std::string> next = NextSeparator(path, content_.height);
    if (!next) break;
    *position = *std::move(next);
    if (moved + looked / kLookedForMove >= nodes_max) return true;
  }
  position->clear();
  return false;
}

}  // namespace cellar::btree_internal
