// Tree: the B-tree itself, behind the interface of btree.h. Search, insert, delete and the changes
// of structure that they need. Memory and snapshots are Epochs' business (epochs.h), bytes inside a
// node that of leaf.h, inner.h and leaf_builder.h.
//
// A write descends and remembers its path. What it does to one leaf in place is done there and
// then; everything else goes through two functions: ReplaceLeaves (decode -> build) and
// ReplaceChildren, which puts one child more into the inner node above if there is room, and else
// builds the nodes above anew, as far up as they split or vanish.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "btree/btree.h"
#include "btree/epochs.h"
#include "btree/nodes/descents.h"
#include "btree/nodes/inner.h"
#include "btree/nodes/leaf.h"
#include "btree/nodes/leaf_builder.h"
#include "btree/version.h"

namespace cellar::btree_internal {

// What a BTreePlace holds: where a prefix stands in the tree, or would.
struct Place {
  static constexpr uint64_t kUsedUp{UINT64_MAX};
  Leaf* leaf{nullptr};        // null: none was noted
  uint64_t changes{kUsedUp};  // the tree's, then
  size_t prefix_bytes{0};
  LeafPlace in_leaf{};
  Path path;
};

// Asks for the lines of a node that its search will read first.
inline void PrefetchLeaf(const void* leaf) { PrefetchLines(leaf, 3); }
inline void PrefetchInner(const void* inner) { PrefetchLines(inner, 10); }

// What an insert leaves free where it has to move a leaf. More means fewer moves, room on the
// nearer side for longer, and more memory: with four granules instead of two a table of which all
// rows or cells came in random order takes 3 to 5 % more, one that came in order up to 2 %.
inline constexpr size_t kInsertRoomBytes{4 * NodeArena::kGranuleBytes};

// Entries of a run that go between the same two of a leaf (tree_run.cc).
struct RunToInsert;

class Tree {
 public:
  Tree() = default;
  ~Tree();
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  BTreeWriteResult Put(std::string_view key, std::string_view value);
  BTreeWriteResult Put(std::string_view key, std::string_view value, Place* place);
  BTreeWriteResult PutRun(std::span<const BTreePut> puts);
  BTreeWriteResult Delete(std::string_view key);
  BTreeWriteResult Replace(std::string_view old_key, std::string_view key, std::string_view value,
                           Place* place);
  uint64_t DeleteRange(std::string_view begin, std::string_view end, uint64_t entries_max);
  void Clear();
  std::optional<std::string_view> Get(std::string_view key) const;
  bool GetFirst(std::string_view prefix, std::string* scratch, BTreeFinger* finger,
                BTree::Match* match) const;
  std::optional<BTree::Match> FindFirst(std::string_view prefix, std::string* scratch,
                                        Place* place) const;
  void MultiGet(std::span<const std::string_view> keys,
                std::span<std::optional<std::string_view>> values) const;
  void Prefetch(std::span<const std::string_view> keys) const;
  bool Compact(std::string* position, size_t nodes_max);
  std::vector<std::string> SplitKeys(size_t parts) const;
  void Validate() const;

  void TakeSnapshot(SnapshotState* snapshot);
  void DropSnapshot(SnapshotState* snapshot) { epochs_.DropSnapshot(snapshot); }
  void RollBackTo(SnapshotState* snapshot);
  // Takes over nodes that were made by epochs(). REQUIRES: the tree is empty.
  void Adopt(const TreeContent& content);
  // Takes the nodes of another tree, which keeps them. Nothing may be written from then on.
  void Borrow(const TreeContent& content);

  // How many versions of this tree there are (version.h).
  size_t versions() const { return versions_; }
  void AddVersion() { ++versions_; }
  void RemoveVersion() { --versions_; }

  const TreeContent& content() const { return content_; }
  uint64_t changes() const { return changes_; }
  uint64_t memory_bytes() const;
  size_t value_bytes_bound() const {
    return std::max(kInlineValueBytesMax, epochs_.largest_value_bytes());
  }
  Epochs& epochs() { return epochs_; }
  const Epochs& epochs() const { return epochs_; }

 private:
  struct NewChild {
    void* pointer;
    uint32_t units;
    std::string separator;  // before it; that of the first is not used
  };

  // The dictionary of leaves that are built anew: chosen for them, that of the leaf before, or
  // none.
  enum class LeafWords : uint8_t { kChosen, kKept, kNone };

  // Kept between operations, for all trees of a thread, so that a split allocates nothing but
  // nodes.
  struct Scratch {
    EntryList entries;
    ChildList children;
    std::vector<LeafCut> cuts;
    std::vector<NewChild> new_leaves;
    std::string text;
    RebuiltKey key;
  };
  static Scratch& scratch();

  Leaf* Descend(std::string_view key, Path* path) const;
  Leaf* Locate(std::string_view key, Path* own_path, Path** path, LeafPlace* place) const;
  Leaf* LocateNoted(std::string_view key, Path** path, LeafPlace* place) const;
  void ForgetDescents();
  static bool MatchAt(const Leaf* leaf, const LeafPlace& place, std::string_view prefix,
                      std::string* scratch, Entry* entry, BTree::Match* match);
  const Leaf* LeafBehind(const Path& path) const;
  bool MatchBehind(const Path& path, std::string_view prefix, std::string* scratch,
                   BTree::Match* match) const;
  bool DescendAndMatchBehind(std::string_view prefix, std::string* scratch,
                             BTree::Match* match) const;
  bool LookAtFinger(const BTreeFinger& finger, std::string_view prefix, std::string* scratch,
                    BTree::Match* match, bool* is_found) const;
  bool TakePlace(Place* place, std::string_view key) const;
  bool IsPathTo(std::string_view key, const Path& path, const Leaf* leaf) const;
  bool IsPlaceOf(const Place& place, std::string_view key) const;
  BTreeWriteResult PutAt(Path* path, Leaf* leaf, const LeafPlace& place, std::string_view key,
                         std::string_view value);
  ValueRef MakeValue(std::string_view value);
  void PutFirst(std::string_view key, std::string_view value);
  void Overwrite(Path* path, Leaf* leaf, const LeafPlace& place, const ValueRef& value);
  void Insert(Path* path, Leaf* leaf, const LeafPlace& place, std::string_view key,
              const ValueRef& value);
  void InsertWithRoom(Path* path, Leaf* leaf, LeafPlace place, std::string_view key,
                      const ValueRef& value);
  bool ReplaceElsewhere(std::string_view old_key, std::string_view key, std::string_view value,
                        BTreeWriteResult* result);
  bool ReplaceInPlace(Place* at, std::string_view old_key, std::string_view key,
                      std::string_view value, BTreeWriteResult* result);
  bool Rewrite(Path* path, Leaf* leaf, const LeafPlace& place, std::string_view rest,
               const ValueRef& value);
  void JudgeNeighbors(const Path& path, const Leaf* leaf, const LeafPlace& place,
                      std::string_view key, BTreeWriteResult* result) const;
  void JudgeOthers(const Path& path, const Leaf* leaf, const LeafPlace& place, std::string_view key,
                   BTreeWriteResult* result) const;
  // --- runs (tree_run.cc)
  Leaf* LocateForRun(std::string_view key, Path* own_path, Path** path, LeafPlace* place,
                     BTreeWriteResult* result) const;
  BTreeWriteResult PutLocated(Path* path, Leaf* leaf, const LeafPlace& place, std::string_view key,
                              std::string_view value);
  size_t PutSome(std::span<const BTreePut> puts, BTreeWriteResult* result);
  size_t InsertRun(Path* path, Leaf* leaf, RunToInsert* run);
  bool PlaceRun(Path* path, Leaf** leaf, RunToInsert* run);
  bool OpenGroupRoom(Path* path, Leaf** leaf);
  bool SplitGroupAt(Path* path, Leaf** leaf, LeafPlace* place);
  bool MakeGroupRoom(Path* path, Leaf** leaf, LeafPlace* place, std::string_view key);
  void InsertWithSplit(Path* path, Leaf* leaf, std::string_view key, const ValueRef& value,
                       bool is_last);
  // Inserts into a leaf that has no room (is_last: nothing in the tree is above the key), or makes
  // two of it and returns false: the path is of no use then.
  [[nodiscard]] bool InsertIntoFull(Path* path, Leaf* leaf, std::string_view key,
                                    const ValueRef& value, bool is_last);
  // Makes two leaves of a full one by copying whole groups. False if it is not fit for that; else
  // the path is of no use afterwards. REQUIRES: no key's lengths stand in "more lengths" (entry.h).
  bool SplitLeaf(Path* path, Leaf* leaf);
  // Whether another leaf may be built anew for the sake of its dictionary. Where that has been in
  // vain it is tried less and less often.
  bool MayLookForWords();
  Leaf* CopyGroups(const Leaf* leaf, uint32_t first, uint32_t end, size_t more);
  void InsertByRebuild(Path* path, Leaf* leaf, std::string_view key, const ValueRef& value,
                       LeafWords words);
  void AppendNewLeaf(Path* path, Leaf* leaf, std::string_view key, const ValueRef& value);
  void Remove(Path* path, Leaf* leaf, const LeafPlace& place, std::string_view key);
  void RemoveByRebuild(Path* path, Leaf* leaf, const LeafPlace& place);
  uint64_t RemoveRange(Path* path, Leaf* leaf, std::string_view begin, std::string_view end,
                       uint64_t entries_max, bool* is_last);

  bool IsRightEdge(const Path& path) const;
  Leaf* PrepareLeaf(Path* path, Leaf* leaf, size_t bytes);
  // PrepareLeaf for an insert that makes it `used` bytes long: if the leaf has to move for that,
  // then to where `room` bytes are left for the next ones.
  Leaf* PrepareInsert(Path* path, Leaf* leaf, size_t used, size_t room);
  // To `bytes` of other memory, of which `front_bytes` before the entries stay free.
  Leaf* MoveLeaf(Path* path, Leaf* leaf, size_t bytes, size_t front_bytes);
  void EnsurePathWritable(Path* path, uint32_t levels);
  void CopyInner(Path* path, uint32_t level);
  void SetChild(Path* path, uint32_t level, void* pointer, uint32_t units);
  void UpdateUnits(Path* path, const Leaf* leaf);
  void BuildLeaves(LeafFill fill, LeafWords words, std::vector<NewChild>* leaves);
  void ReplaceLeaves(Path* path, uint32_t first, uint32_t count, LeafFill fill, LeafWords words);
  void ReplaceChildren(Path* path, uint32_t level, uint32_t first, uint32_t count,
                       const std::vector<NewChild>& children);
  bool InsertChildAt(Path* path, uint32_t level, uint32_t i, const NewChild& left,
                     const NewChild& right);
  void FillChildList(const Inner* node, uint32_t first, uint32_t count,
                     const std::vector<NewChild>& children);
  void BuildInners(bool at_right_edge, std::vector<NewChild>* inners);
  bool MergeLeaf(Path* path, const Leaf* leaf);
  void MergeInners(std::string_view key);
  void CollapseRoot();
  static std::optional<std::string> NextSeparator(const Path& path, uint32_t levels);
  size_t MoveInners(Path* path);
  size_t MoveValues(Leaf* leaf);
  size_t MoveLeafAndValues(Path* path, Leaf* leaf);
  void SplitBelow(const void* node, uint32_t level, uint64_t at_units, std::string* key) const;
  uint64_t ValidateBelow(const void* node, uint32_t level, std::string_view low,
                         std::string_view high, TreeContent* found) const;

  TreeContent content_;
  bool borrows_{false};
  size_t versions_{0};
  uint64_t changes_{0};
  // Of the leaves that want other words (MayLookForWords).
  uint32_t wishes_{0};
  uint32_t wishes_granted_one_in_{1};
  // Of the keys that were prefetched last; null before the first ones.
  mutable std::unique_ptr<Descents> descents_;
  Epochs epochs_;
};

}  // namespace cellar::btree_internal
