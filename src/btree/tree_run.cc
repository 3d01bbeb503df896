// Puts of several entries in ascending order. See tree.h.
//
// What a put of one entry spends mostly, the descent, the search of the leaf and the moving of what
// stands behind the place, is spent once for all that go between the same two entries:
//
//   leaf      ... | row 4, c8 | row 4, c9 |                 gap                  | row 7, c0 | ...
//   the run                                row 5, c0 | row 5, c1 | ... | row 5, c9
//
// The gap ends before the entry behind it; at a leaf's end before the separator behind the leaf, or
// nowhere. A key of the run is in it if it begins with the leaf's prefix and leaves the first key
// where that leaves the gap's end, and then with a smaller byte, or behind there. So one comparison
// with the key before, whose result is what the entry stores, decides.
//
// A run goes into one group: that of the place if it has room; else the group is cut in two at the
// place, and the run goes to the first part, to the second, or to a group of its own between them.
// Where a leaf has no room left, for bytes or groups, one entry goes the way of all (Tree::Put),
// which splits the leaf, and the rest of the run looks for its place anew.
#include <algorithm>
#include <array>

#include "base/assert.h"
#include "btree/nodes/leaf_search.h"
#include "btree/tree.h"

namespace cellar::btree_internal {

struct RunToInsert {
  RunInLeaf leaf_run;
  // With the entry behind the gap, behind the leaf's prefix, if that stands in the leaf.
  uint32_t shared_behind{0};
};

namespace {

// Where a gap of the tree ends: at what shares `shared` bytes with the run's first key, and has
// `byte` then, which is larger than the key's.
struct GapEnd {
  static constexpr uint32_t kNoByte{256};  // nothing is behind
  size_t shared{0};
  uint32_t byte{kNoByte};
};

GapEnd SeparatorBehind(const Path& path, uint32_t height, std::string_view key) {
  for (uint32_t level = height; level-- > 0;) {
    const Inner* const node = path.nodes[level];
    const uint32_t i = path.index[level];
    if (i == node->separators()) continue;
    const std::string_view prefix = node->prefix_view();
    const std::string_view rest = node->rest(i);
    size_t shared = CommonPrefix(key, prefix);
    if (shared < prefix.size()) return {shared, static_cast<uint8_t>(prefix[shared])};
    const size_t of_rest = CommonPrefix(key.substr(shared), rest);
    CELLAR_ASSERT(of_rest < rest.size());  // the key is below the separator
    return {shared + of_rest, static_cast<uint8_t>(rest[of_rest])};
  }
  return {};
}

// The end of the gap that `place`, of a key that is not there, is in.
GapEnd EndOfGap(const Path& path, uint32_t height, const Leaf* leaf, const LeafPlace& place,
                std::string_view key) {
  if (place.index < leaf->counts()[place.group]) {
    Entry next;
    ParseEntry(leaf->entries() + place.at, &next);
    CELLAR_ASSERT(next.shared <= place.shared_after);
    const Suffix suffix = leaf->dictionary().Decode(next);
    return {leaf->prefix_bytes + size_t{place.shared_after},
            suffix[place.shared_after - next.shared]};
  }
  if (place.group + 1u < leaf->groups) {
    const std::string_view next = GroupFirst(leaf, place.group + 1);
    const size_t shared = CommonPrefix(Behind(key, leaf->prefix_bytes), next);
    CELLAR_ASSERT(shared < next.size());
    return {leaf->prefix_bytes + shared, static_cast<uint8_t>(next[shared])};
  }
  return SeparatorBehind(path, height, key);
}

// How many of the puts, from the first on, go into the gap; at most what a group holds. shared[i]
// := what the i-th key has in common with the one before.
size_t CountInGap(std::span<const BTreePut> puts, const Leaf* leaf, const GapEnd& end,
                  std::array<uint32_t, kGroupEntriesMax>* shared) {
  const size_t count_max = std::min(puts.size(), kGroupEntriesMax);
  const size_t shared_min = std::max<size_t>(leaf->prefix_bytes, end.shared);
  for (size_t i = 1; i < count_max; ++i) {
    const std::string_view key = puts[i].key;
    CELLAR_ASSERT(key.size() <= kTreeKeyBytesMax);
    const size_t common = CommonPrefix(puts[i - 1].key, key);
    CELLAR_ASSERT(common < key.size());  // the keys ascend
    if (common < shared_min || puts[i].value.size() > kInlineValueBytesMax) return i;
    if (common == end.shared && static_cast<uint8_t>(key[common]) >= end.byte) return i;
    (*shared)[i] = static_cast<uint32_t>(common);
  }
  return count_max;
}

}  // namespace

BTreeWriteResult Tree::PutRun(std::span<const BTreePut> puts) {
  CELLAR_ASSERT(!puts.empty());
  BTreeWriteResult first;
  size_t done = PutSome(puts, &first);
  while (done < puts.size()) {
    BTreeWriteResult other;
    done += PutSome(puts.subspan(done), &other);
  }
  return first;
}

// Puts the first one, and with it those behind that go to the same place. Returns how many.
size_t Tree::PutSome(std::span<const BTreePut> puts, BTreeWriteResult* result) {
  const auto& [key, value] = puts[0];
  CELLAR_ASSERT(key.size() <= kTreeKeyBytesMax);
  if (puts.size() == 1 || content_.root == nullptr || value.size() > kInlineValueBytesMax) {
    *result = Put(key, value);
    return 1;
  }
  epochs_.ReleaseSome();
  Path own_path;
  Path* path = nullptr;
  LeafPlace place;
  Leaf* const leaf = LocateForRun(key, &own_path, &path, &place, result);
  size_t count = 1;
  RunToInsert run;
  if (!place.found && place.has_prefix) {
    const GapEnd end = EndOfGap(*path, content_.height, leaf, place, key);
    count = CountInGap(puts, leaf, end, &run.leaf_run.shared);
    if (place.at < leaf->entries_bytes())
      run.shared_behind = static_cast<uint32_t>(end.shared - leaf->prefix_bytes);
  }
  if (count == 1) {
    *result = PutLocated(path, leaf, place, key, value);
    return 1;
  }
  run.leaf_run.puts = puts.first(count);
  run.leaf_run.place = place;
  if (const size_t done = InsertRun(path, leaf, &run); done > 0) return done;
  *result = Put(key, value);
  return 1;
}

// Inserts as many of the run as there is room for in the leaf. Returns how many.
size_t Tree::InsertRun(Path* path, Leaf* leaf, RunToInsert* run) {
  const RunInLeaf& leaf_run = run->leaf_run;
  const bool at_end = leaf_run.place.at == leaf->entries_bytes();
  if (!PlaceRun(path, &leaf, run)) return 0;
  RunPlan plan;
  const auto growth_max = static_cast<int64_t>(LeafBytesLimit(leaf->prefix_bytes)) - leaf->used;
  PlanRun(leaf, leaf_run, growth_max, &plan);
  if (plan.count == 0) return 0;
  const auto used = static_cast<size_t>(leaf->used + plan.edit.growth());
  // At the right edge more of the same will follow.
  const bool grows_fast = at_end && used > leaf->capacity() && IsRightEdge(*path);
  leaf = PrepareInsert(path, leaf, used, grows_fast ? used / 2 : kInsertRoomBytes);
  ApplyRun(leaf, leaf_run, plan);
  ++changes_;
  content_.entries += plan.count;
  for (const auto& [key, value] : leaf_run.puts.first(plan.count))
    content_.payload_bytes += key.size() + value.size();
  return plan.count;
}

// Finds the group for a run, or makes one, or shortens the run to what fits. False if the leaf has
// no room for that. What it has changed in the leaf is right in any case.
bool Tree::PlaceRun(Path* path, Leaf** leaf, RunToInsert* run) {
  RunInLeaf& leaf_run = run->leaf_run;
  LeafPlace& place = leaf_run.place;
  const size_t count = leaf_run.puts.size();
  const size_t in_group = (*leaf)->counts()[place.group];
  if (in_group + count <= kGroupEntriesMax) return true;
  const bool in_last = place.group + 1u == (*leaf)->groups;
  if (in_last && place.index == in_group && in_group < kGroupEntriesMax) {
    // In ascending order groups get full.
    leaf_run.puts = leaf_run.puts.first(kGroupEntriesMax - in_group);
    return true;
  }
  if (place.index > 0 && place.index < in_group) {
    if (!SplitGroupAt(path, leaf, &place)) return false;
    if (place.index + count <= kGroupEntriesMax) return true;
  }
  if (place.index > 0) {  // at the end of its group now
    place.group += 1;
    place.index = 0;
    place.shared_before = 0;
    const bool has_group = place.group < (*leaf)->groups;
    place.shared_after = has_group ? run->shared_behind : 0;
    if (has_group && (*leaf)->counts()[place.group] + count <= kGroupEntriesMax) return true;
  }
  leaf_run.opens_group = true;
  return OpenGroupRoom(path, leaf);
}

// Makes two groups of the place's, which is at the end of the first one then. False if there is no
// room for that.
bool Tree::SplitGroupAt(Path* path, Leaf** leaf, LeafPlace* place) {
  if (!OpenGroupRoom(path, leaf)) return false;
  RebuiltKey& first = scratch().key;
  const GroupSplit split = PlanSplitGroup(*leaf, place->group, place->index, &first);
  const auto used = static_cast<size_t>((*leaf)->used + split.edit.growth());
  if (used > LeafBytesLimit((*leaf)->prefix_bytes)) return false;
  *leaf = PrepareInsert(path, *leaf, used, kInsertRoomBytes);
  ApplySplitGroup(*leaf, split, first.view());
  place->shared_after = 0;
  return true;
}

}  // namespace cellar::btree_internal
