// BTree: ordered bytes -> bytes in memory, with O(1) copy-on-write snapshots.
//
// The one container of Cellar: tables, locality groups, indexes and snapshots are B-trees. It knows
// keys that compare by memcmp, and nothing of rows or cells.
//
//                        +----------------------------------------------+
//   root: an inner node  | prefix | heads | children | units | rests    |   at most 4 KiB, about
//                        +-----------------|----------------------------+   140 children
//                           +--------------+--------------+
//                           v              v              v
//                         inner          inner          inner               4 levels hold
//                         |   |                                             300 M cells
//                         v   v
//                       leaf leaf -> a value above 512 bytes: a block of its own
//
// A leaf (leaf.h) is cut to measure, in steps of 128 bytes up to 4 KiB, and changed in place:
//
//   | 40: epoch, sizes, counts | heads 4*G | offsets 2*G | counts G | prefix | dictionary | group...
//                                G groups of at most 16 entries, G = 4, 8, 12, 16
//   a group    | whole key, value | delta, value | delta, value | ...
//   an entry   | lengths u16 | suffix: what differs from the key before | value |      (entry.h)
//   a suffix   | code of a word that it begins with u8 | what follows the word |
//
// Words (dictionary.h) are beginnings that many suffixes of the leaf have in common: the names of
// columns, with what ends them and the first bytes of the timestamp. A leaf where they would save
// less than an eighth has none, and its suffixes have no codes.
//
// Bytes of a cell. The cells of a row share its key; so the entry of a cell in a row of ten, with a
// column name of 5 bytes, has
//
//                               without words, with:
//   29.2   21.0   its own: 5 + 2 of the column, 7 of the timestamp, 13 of the value, 2 of lengths;
//                 or 1 of the code, 5 of the timestamp, 13 and 2
//    -      1.9   the dictionary: 20 words of 10 bytes, over 105 cells
//    -      1.0   the first cell of a row and others whose suffix begins with no word, 9 more
//    0.5    0.6   the row's key anew, 5 of its digits, in every tenth
//    0.9    1.7   the first of a group of 13: more bytes of its key, and 7 of head, offset and count
//    0.5    0.6   a leaf's 40 and its prefix of 15
//    1.2    1.3   what rounding to 128 leaves free and 128 for the next inserts
//    0.3    0.3   inner nodes: 16 of pointer, head, units, and 10 of separator, for each leaf
//   32.6   28.4   together; measured (make bench-btree) are 33.1 and 29.7 after inserts in random
//                 order, where some leaves have no words or not those that they should have
//
// Each letter more in the names costs a cell 1 byte without words; with them some 0.3, its part of
// the dictionary and of the cells that have no word. The arena adds what is free between nodes
// (arena.h): 7 % in random order. std::map takes 153 for the same cell, absl::btree_map 160.
//
// Costs, in cache misses that wait for each other (100..200 ns each when the tree is larger than
// the caches; inner nodes but the lowest level mostly are in them):
//
//   Get, Put, Delete     the lowest inner node; the leaf's header and heads; one group
//   PutRun               like Put for the first of up to 16 neighbours; 150 to 250 instructions for
//                        each of the others
//   MultiGet, Prefetch   the same for 16 keys at once, so that their misses overlap
//   Seek                 like Get; Next is 6..10 ns, and rebuilds only the bytes that differ
//   a split              copies the groups of 4 KiB, once per ~60 inserts; where another dictionary
//                        would help, decodes and builds anew, which takes some 100,000
//                        instructions
//   TakeSnapshot         20 ns: the root is noted and the epoch ends
//   the first write of a leaf after that   copies it: 0.7 us
//
// Epochs (epochs.h). A node remembers the epoch of its birth. It may be written in place iff no
// live snapshot is as old as that; otherwise it is copied, with its path, and the original is kept
// until the last snapshot that sees it is dropped. What nobody sees goes back to the arena, a few
// nodes with each write. Nothing is ever copied because a snapshot was taken, only because
// something was written.
//
// Leaf images (image.h) are the leaves themselves, without their first 24 bytes: a snapshot file is
// written and read at the speed of memcpy, and every byte is checked on the way in.
//
// Threads: a tree has one owner thread, which alone writes, takes and drops snapshots and frees
// nodes. A snapshot may meanwhile be read by others, each with a cursor of its own, or by one with
// a BTreeImageReader: the nodes that it reaches do not change while it lives.
//
// Files, from the bottom. In nodes/: bytes.h, arena, entry, dictionary, leaf, inner (bytes inside a
// node); dictionary_choice, leaf_builder (decode -> build). Here: epochs (memory and snapshots);
// version; tree, tree_run, tree_split, tree_structure, tree_compaction (search, change, giving
// memory back); cursor, cursor_forward, cursor_fronts, image, image_reader, bulk_loader; btree.cc,
// the door.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "btree/front_visitor.h"
#include "btree/nodes/put.h"
#include "cellar/status.h"

namespace cellar {

namespace btree_internal {
class BulkLoad;
class ImageRead;
class LeafWalk;
class Tree;
struct Entry;
struct Inner;
struct Leaf;
struct Place;
struct SnapshotState;
struct TreeContent;
struct Version;
}  // namespace btree_internal

// What a write found at its place.
struct BTreeWriteResult {
  bool existed{false};        // an entry with this key was there before
  size_t old_value_bytes{0};  // its value's size; 0 unless existed
  // A lower bound of the longest prefix that the key shares with the entry before or behind it
  // (after the write). Only neighbours in the same leaf are looked at, so it costs nothing; a
  // caller that needs certainty seeks when the bound is too low and it is not exact.
  size_t shared_with_neighbor{0};
  // Both neighbours are in the leaf, or at the tree's right edge there is none behind.
  bool shared_is_exact{false};
};

class BTreeSnapshot;
class BTreeCursor;

// Where BTree::FindFirst has looked, for a write of the same thread that follows the read: of a key
// that begins with the prefix and is below that of the match, or is the match's. While the tree has
// not been changed the write goes there without a search of its own; a place that is out of date,
// or that FindFirst could not note (at the end of a leaf), costs it nothing but the search. Keeps
// its memory from one search to the next; may be used no more when its tree is gone.
class BTreePlace {
 public:
  BTreePlace();
  ~BTreePlace();
  BTreePlace(const BTreePlace&) = delete;
  BTreePlace& operator=(const BTreePlace&) = delete;

 private:
  friend class BTree;
  std::unique_ptr<btree_internal::Place> place_;
};

// Where BTree::GetFirst has looked, for the next one of a prefix that is probably near (the columns
// of a row): it looks into the same leaf before it descends from the root. Out of date, or of
// another tree, it costs nothing. To be forgotten (`= {}`) when its tree may be gone.
class BTreeFinger {
 private:
  friend class btree_internal::Tree;
  const btree_internal::Tree* tree_{nullptr};
  const btree_internal::Leaf* leaf_{nullptr};
  uint64_t changes_{0};  // the tree's, then
};

class BTree {
 public:
  BTree();
  ~BTree();  // REQUIRES: no snapshot and no cursor of this tree is alive.
  BTree(const BTree&) = delete;
  BTree& operator=(const BTree&) = delete;

  // Inserts, or replaces the value of an equal key. O(log n). `key` and `value` are copied.
  // REQUIRES: key.size() <= kTreeKeyBytesMax; neither points into this tree (copy what Get gave
  // first).
  BTreeWriteResult Put(std::string_view key, std::string_view value);
  // Put at a place that was noted, which is used up. REQUIRES: null, or as BTreePlace says.
  BTreeWriteResult Put(std::string_view key, std::string_view value, BTreePlace* place);
  // Put of each, in this order; what the first one finds is returned. Entries that go between the
  // same two are found by one search and written at once, up to 16 together, so that each but the
  // first costs a fraction of a Put. O(log n) for each such stretch. REQUIRES: not empty; the keys
  // ascend strictly; of each, as Put.
  BTreeWriteResult PutRun(std::span<const BTreePut> puts);
  // Removes the entry if it is there. O(log n).
  BTreeWriteResult Delete(std::string_view key);
  // Delete(old_key) and then Put(key, value). Where the keys are neighbours, key the lower one, and
  // of the same length (a newer version of a cell takes the place of the only one) it costs less
  // than the Put: the entry is written over. `existed` and `old_value_bytes` are the old entry's,
  // the rest is as from Put. REQUIRES: as Put; key != old_key.
  BTreeWriteResult Replace(std::string_view old_key, std::string_view key, std::string_view value);
  // Replace at the place noted for `key`, which is used up. REQUIRES: null, or as BTreePlace says.
  BTreeWriteResult Replace(std::string_view old_key, std::string_view key, std::string_view value,
                           BTreePlace* place);
  // Removes at most `entries_max` entries of [begin, end), lowest first; an empty `end` is no
  // bound. Returns how many. O(log n + removed).
  uint64_t DeleteRange(std::string_view begin, std::string_view end, uint64_t entries_max);
  // Removes everything, live snapshots excepted. Memory goes back a few nodes per later operation.
  void Clear();

  // The view dies at the next write to this tree. O(log n).
  std::optional<std::string_view> Get(std::string_view key) const;
  // The first entry whose key begins with `prefix`, and what its key has behind it. The views die
  // at the next write to this tree, key_rest (which may stand in *scratch) also with that. What a
  // cursor's Seek gives, without one and without its key. O(log n).
  struct Match {
    std::string_view key_rest;
    std::string_view value;
    // From FindFirst: no other key begins with the prefix. False also where that is not known
    // without a look into the next leaf.
    bool is_only{false};
  };
  // False if there is none; then *match is unspecified.
  [[nodiscard]] bool GetFirst(std::string_view prefix, std::string* scratch, BTreeFinger* finger,
                              Match* match) const;
  // GetFirst that notes the place, and tells whether the match is the only one.
  std::optional<Match> FindFirst(std::string_view prefix, std::string* scratch,
                                 BTreePlace* place) const;
  // Get of several keys, descended together so that their cache misses overlap.
  // REQUIRES: values.size() == keys.size().
  void MultiGet(std::span<const std::string_view> keys,
                std::span<std::optional<std::string_view>> values) const;

  // Brings into the cache what Put, Delete or Get of these keys, or of keys that begin with them,
  // will read, and notes the ways there: look-ups that follow in the same order need not descend.
  // O(keys * log entries); the first call takes 3 KiB for the notes, which the tree keeps.
  void Prefetch(std::span<const std::string_view> keys) const;

  // O(1), never allocates a node.
  BTreeSnapshot TakeSnapshot();
  // One that only a single BTreeImageReader may read: leaves that it has passed are given up early,
  // so that writes meanwhile copy less. No cursor may be made of it, and no rollback to it. Taken
  // while there is another one, it keeps its leaves like any snapshot.
  BTreeSnapshot TakeSnapshotForImages();
  // --- versions: what the tree was, as a tree that may only be read, for as long as it is wanted
  // (version.h). It dies before this tree does; writes here copy what it shares. Of a version
  // itself none can be made.
  std::unique_ptr<BTree> Freeze();  // O(1)
  bool frozen() const { return version_ != nullptr; }
  // Versions of this tree that are there.
  size_t versions() const;
  // Of a version: memory of what it, and perhaps older ones, still see, and nobody newer does.
  uint64_t held_bytes() const;
  // Of a version: when it was made, among those of its tree.
  uint64_t version_epoch() const;
  // The tree that a version is of.
  const void* origin() const;
  // --- loading of versions. The tree first: it is told how many there will be, before it is
  // filled, and then each from the newest (of the number `count`) to the oldest (1).
  void ReserveVersions(size_t count);
  // An empty version, to be filled by a BTreeBulkLoader. Runs are of `newer`; null: there are none.
  static std::unique_ptr<BTree> VersionToLoad(BTree* origin, uint64_t number, const BTree* newer);
  // All older ones are loaded, or never will be.
  void FinishVersion();

  // Makes the content what it was when `snapshot` was taken. Snapshots taken later stay valid.
  // O(1), the abandoned nodes are freed a few per operation.
  void RollBackTo(const BTreeSnapshot& snapshot);

  uint64_t entries() const;        // exact
  uint64_t payload_bytes() const;  // exact sum of key and value sizes
  uint64_t memory_bytes() const;   // held for this tree: nodes, large values, retired ones included
  // No value larger than this is or ever was in the tree. O(1), and rough: 512 if all are small.
  size_t value_bytes_bound() const;

  // Snapshots taken and not dropped yet.
  uint64_t snapshots_alive() const;

  // At most `parts - 1` keys, ascending and distinct, that split the tree into `parts` parts of
  // about equal bytes; each is the key of an entry. O(parts log n).
  std::vector<std::string> SplitKeys(size_t parts) const;

  // Frees at most about `nodes_max` of the nodes that Clear, RollBackTo and dropped snapshots left
  // behind, as every write does for a few; false when none are left. For idle time, and for trees
  // that are about to be destroyed: the destructor frees what is left in one go (100 ns a node).
  bool ReleaseSome(size_t nodes_max);

  // While the arena compacts: moves the nodes and values that stand in chunks to be left, from the
  // key *position on; what a live snapshot sees stays. Stops after the work of about `nodes_max`
  // moves, with *position where to go on, and says true; false at the end. O(nodes_max log n).
  bool Compact(std::string* position, size_t nodes_max);

  // Walks everything and asserts every invariant of the structure. O(n). For tests.
  void Validate() const;

 private:
  friend class BTreeSnapshot;
  friend class BTreeCursor;
  friend class BTreeImageReader;
  friend class BTreeBulkLoader;
  friend class BTreeCopier;
  std::unique_ptr<btree_internal::Tree> tree_;
  std::unique_ptr<btree_internal::Version> version_;  // null: it is no version
};

// The content of a tree at one moment. Movable. Must be dropped on the owner thread, before its
// tree.
class BTreeSnapshot {
 public:
  BTreeSnapshot();  // empty: valid() is false
  ~BTreeSnapshot();
  BTreeSnapshot(BTreeSnapshot&&) noexcept;
  BTreeSnapshot& operator=(BTreeSnapshot&&) noexcept;

  bool valid() const { return state_ != nullptr; }
  uint64_t entries() const;
  uint64_t payload_bytes() const;

 private:
  friend class BTree;
  friend class BTreeCursor;
  friend class BTreeImageReader;
  friend class BTreeCopier;
  explicit BTreeSnapshot(std::unique_ptr<btree_internal::SnapshotState> state);
  void Drop();
  std::unique_ptr<btree_internal::SnapshotState> state_;
};

// A position in a tree or in a snapshot. A cursor over the live tree may be kept while the tree is
// written (by the same thread): its next movement starts from the key where it stood, whether or
// not that entry is still there. One over a snapshot never notices writes.
class BTreeCursor {
 public:
  explicit BTreeCursor(const BTree& tree);
  explicit BTreeCursor(const BTreeSnapshot& snapshot);  // must not outlive `snapshot`
  ~BTreeCursor();
  BTreeCursor(BTreeCursor&&) noexcept;
  BTreeCursor& operator=(BTreeCursor&&) noexcept;

  bool valid() const { return valid_; }   // on an entry
  void Seek(std::string_view key);        // first entry >= key
  void SeekBefore(std::string_view key);  // last entry < key
  void SeekFirst();
  void SeekLast();
  void Next();  // REQUIRES: valid()
  void Prev();  // REQUIRES: valid()
  // Next() until an entry has not the first `prefix_bytes` of this one's key. No key is put
  // together for those that have them: each costs a quarter of a step, and many cost a Seek.
  // REQUIRES: valid(); prefix_bytes <= key().size().
  void Leave(size_t prefix_bytes);
  // Next() until an entry is not below `key`, which may be this one: a Seek for a key that is
  // probably near, likewise. Returns how many leading bytes of `key` the entry's key has; 0 if
  // there is no such entry. REQUIRES: valid(); `key` does not stand in this cursor.
  size_t SeekForward(std::string_view key);
  // Seek for a key that is probably a little behind this entry's, if there is one: looks there
  // first. REQUIRES: `key` does not stand in this cursor.
  void SeekNear(std::string_view key);
  // What NextRun has passed: so many entries, whose keys had so many bytes together.
  struct Run {
    size_t entries{0};
    size_t key_bytes{0};
  };
  // Next() while the entry behind has the first `prefix_bytes` of this one's key and its front is
  // another one's; at most values.size() times, and never out of a leaf. Two keys have one front if
  // they share `front_bytes`, and all but the last `tail_bytes` of the first one. Puts down what
  // value() is of each; these die as value() does. What it stops at is for Next(): it may have
  // stopped for no reason. REQUIRES: valid(); prefix_bytes <= key().size().
  Run NextRun(size_t prefix_bytes, size_t front_bytes, size_t tail_bytes,
              std::span<std::string_view> values);

  // Goes over fronts: beginnings that keys have in common, of which a visitor knows where they end
  // (front_visitor.h). From this entry, of whose front the first `front_bytes` are known, with what
  // is said to be done first; 0: the front of this entry is begun. Stops where the visitor says so,
  // or where nothing is left. Entries that nobody asks for cost a few instructions each.
  // REQUIRES: valid(); `front_bytes` <= key().size().
  void WalkFronts(size_t front_bytes, FrontStep step, FrontVisitor* visitor);

  // Has the live tree been changed since the last movement? Then entries may have come, or gone,
  // beside this one.
  bool changed() const;

  // REQUIRES: valid(). key() lives until the cursor moves; value() until the live tree is written,
  // or the snapshot dropped.
  std::string_view key() const { return {reinterpret_cast<const char*>(key_), key_bytes_}; }
  std::string_view value() const { return {reinterpret_cast<const char*>(value_), value_bytes_}; }
  // Which part of the tree's memory stands before this entry, about: 0 at the first one. Exact but
  // for the large values inside its leaf. O(height * children of a node), some 100 ns.
  // REQUIRES: valid(), and a tree that has not changed since the last movement.
  double share_before() const;
  // How many leading bytes of key() are the same as those of the entry where the cursor stood
  // before its last Next() or Leave(), exactly: the next byte differs, or one of the keys ends. 0
  // after any other movement, but for NextRun(), where it is as after the last of its steps. Lets a
  // scan skip what it has decoded, and tells it where a prefix ends.
  size_t shared_with_last() const { return shared_with_last_; }
  // After a Next(): is there an entry that has the first `prefix_bytes` of the one before it?
  bool StillBegins(size_t prefix_bytes) const {
    return valid_ && shared_with_last_ >= prefix_bytes;
  }

 private:
  static constexpr uint32_t kHeightMax{16};
  static constexpr size_t kShortKeyBytes{192};
  // Entries that are passed one by one before it is sought: a seek costs as much as about so many.
  static constexpr int kEntriesPassed{64};
  // Where the last movement had to go further, the next ones mostly have to as well: so many of
  // them seek at once.
  static constexpr uint8_t kSeeksAtOnce{15};
  // Of a leaf, ahead of what is read (Next).
  static constexpr size_t kPrefetchedBytes{512};
  struct Step {
    const btree_internal::Inner* node;
    uint32_t index;
  };

  void TakeFrom(BTreeCursor* other);
  const btree_internal::TreeContent& content() const;
  void Descend(std::string_view key);
  void DescendEdge(const void* node, uint32_t level, bool to_last);
  bool MoveLeaf(bool forward);
  void EnterLeaf(const void* leaf);
  void Start();
  void LoadFirst();
  void Load(const uint8_t* at, const btree_internal::Entry& entry, size_t shared);
  void LoadBefore(const uint8_t* end);
  void StepInside();
  void StepOver();
  void SeekAgain();
  void NextElsewhere();
  void SeekBehind(size_t prefix_bytes);
  size_t SeekAndCompare(std::string_view sought, std::string_view with);
  struct FrontWalk;
  void MeetEntry(FrontWalk* walk);
  bool PassEntries(FrontWalk* walk);
  size_t GoFurther(const FrontWalk& walk);
  void KeepTail(size_t front_bytes, std::string_view tail);
  void LoadFront(const uint8_t* at, const btree_internal::Entry& entry, size_t begin);
  // Room for a key of `bytes`; what is in the buffer stays.
  void ReserveKey(size_t bytes) {
    if (bytes + 32 > key_capacity_) [[unlikely]]
      GrowKey(bytes);
  }
  void GrowKey(size_t bytes);

  const btree_internal::Tree* tree_{nullptr};  // the live tree, or
  const btree_internal::SnapshotState* snapshot_{nullptr};
  uint64_t seen_changes_{0};
  bool valid_{false};
  const btree_internal::Leaf* leaf_{nullptr};
  size_t prefix_bytes_{0};                // of the leaf
  const uint8_t* words_{nullptr};         // of its dictionary; null if it has none
  const uint8_t* leaf_end_{nullptr};      // of its entries
  const uint8_t* short_end_{nullptr};     // from here on Next() has to look twice
  const uint8_t* readable_end_{nullptr};  // of its memory
  const uint8_t* next_{nullptr};          // the entry behind the cursor's
  uint8_t* key_{short_key_};
  size_t key_bytes_{0};
  size_t key_capacity_{sizeof(short_key_)};
  const uint8_t* value_{nullptr};
  size_t value_bytes_{0};
  size_t shared_with_last_{0};
  uint8_t seeks_at_once_{0};       // so many Leave and SeekForward do not go entry by entry
  const uint8_t* entry_{nullptr};  // not beside next_: stores of both at once, as compilers like
                                   // them, made the next load of that wait
  std::unique_ptr<uint8_t[]> long_key_;
  Step path_[kHeightMax];
  uint8_t short_key_[kShortKeyBytes + 32];  // 32: room for copies of a fixed size
};

// Reads a snapshot as a sequence of self-contained leaf images in key order: what a snapshot file
// holds. For one thread, which need not be the owner of the tree.
class BTreeImageReader {
 public:
  // What the large values in one image come to; more only if it holds a single one.
  static constexpr uint64_t kValueBytesMax{16 << 20};

  // Must not outlive `snapshot`. Another bound than the usual one: for tests.
  explicit BTreeImageReader(const BTreeSnapshot& snapshot,
                            uint64_t value_bytes_max = kValueBytesMax);
  // Of a version, whose epoch that is: what stands in `newer` too is told as runs of its leaves.
  // Neither is for images only.
  BTreeImageReader(const BTreeSnapshot& snapshot, const BTreeSnapshot& newer, uint64_t epoch,
                   uint64_t value_bytes_max = kValueBytesMax);
  ~BTreeImageReader();
  // Appends the next image to *image; false at the end. An image holds its large values too.
  bool Next(std::string* image);

 private:
  std::unique_ptr<btree_internal::ImageRead> read_;
};

// Fills an empty tree in ascending order.
class BTreeBulkLoader {
 public:
  explicit BTreeBulkLoader(BTree* tree);  // REQUIRES: tree->entries() == 0
  ~BTreeBulkLoader();
  // The next leaf image, as BTreeImageReader made it. kCorruption, with what is wrong, if it is not
  // a well-formed image or not above everything added before; the tree is then good only to be
  // dropped.
  Status AddImage(std::string_view image);
  // One entry. kCorruption unless `key` is above everything added before.
  Status Add(std::string_view key, std::string_view value);
  // As AddImage, but after an error all is as it was: the image is left out.
  Status TryImage(std::string_view image);
  // The last key added. REQUIRES: there is one.
  std::string_view last_key() const;
  // Completes the tree. Nothing may be added afterwards.
  Status Finish();

 private:
  std::unique_ptr<btree_internal::BulkLoad> load_;
};

// Copies what a snapshot holds into an empty tree, leaf by leaf.
class BTreeCopier {
 public:
  // REQUIRES: to->entries() == 0. `from` is not for images only, and outlives the copier.
  BTreeCopier(const BTreeSnapshot& from, BTree* to);
  ~BTreeCopier();
  // Copies about so many bytes of leaves and their values. True when all is copied.
  bool Step(uint64_t bytes_max);
  // Ends it where it is: the tree has what was copied.
  void Finish();

 private:
  std::unique_ptr<btree_internal::LeafWalk> leaves_;
  std::unique_ptr<btree_internal::BulkLoad> load_;
};

}  // namespace cellar
