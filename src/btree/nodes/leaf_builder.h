// EntryList, PlanLeaf and WriteLeaf: the one path by which leaves are made anew. Splits, merges,
// changes of a leaf's prefix, new dictionaries, removals of many entries and bulk loads all decode
// into an EntryList, change that, and build leaves from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "btree/nodes/dictionary_choice.h"
#include "btree/nodes/entry.h"
#include "btree/nodes/leaf.h"

namespace cellar::btree_internal {

// Decoded entries in key order. Keys are copied, behind a base that all of them have in common;
// values are borrowed from where they were, which must live until the leaves are built.
class EntryList {
 public:
  struct Item {
    uint32_t key_at;     // in keys_
    uint32_t key_bytes;  // behind the base
    uint32_t shared;     // exactly, with the item before, behind the base; 0 for the first
    ValueRef value;
    SuffixCode code;  // of what it does not share, in the list's dictionary
  };

  // Empties the list. `base` must be a prefix of every key to come.
  void Reset(std::string_view base);
  // REQUIRES: the leaf's prefix begins with the base; its keys are above those in the list.
  void AppendLeaf(const Leaf* leaf);
  // REQUIRES: above all keys in the list, beginning with the base.
  void Append(std::string_view key, const ValueRef& value);
  // Before item `i`. REQUIRES: it belongs there.
  void Insert(size_t i, std::string_view key, const ValueRef& value);
  void Erase(size_t begin, size_t end);
  void SetValue(size_t i, const ValueRef& value) { items_[i].value = value; }
  // Finds out which words its leaves should have, and codes the items. Without it they get those of
  // the leaf that was appended first, if no other was. O(n log n).
  void ChooseWords();
  // They get the words of another leaf, be it none. O(n * words).
  void UseWords(const Dictionary& dictionary);

  size_t size() const { return items_.size(); }
  const Item& item(size_t i) const { return items_[i]; }
  std::string_view base() const { return base_; }
  Dictionary dictionary() const {
    return {Bytes(dictionary_), static_cast<uint32_t>(dictionary_.size())};
  }
  // Behind the base.
  std::string_view key(size_t i) const {
    return View(keys_.data() + items_[i].key_at, items_[i].key_bytes);
  }
  // The first item whose complete key is >= `key`.
  size_t LowerBound(std::string_view key) const;
  // Memory that it holds for later use.
  size_t memory_bytes() const {
    return base_.capacity() + keys_.size() + items_.capacity() * sizeof(Item);
  }
  void ShrinkIfLarge();

 private:
  uint8_t* NewKey(size_t bytes);
  void UpdateShared(size_t i);
  void FindWord(size_t i);
  void ForgetWords();

  std::string base_;
  std::vector<uint8_t> keys_;  // mostly more than are in use
  size_t keys_end_{0};         // of those in use
  std::vector<Item> items_;
  std::string dictionary_;
  DictionaryChoice choice_;
  std::vector<SuffixCode> codes_;  // of the last choice
};

// How the entries of new leaves are cut. Leaves that will see inserts at random places are about
// equal, and leave their groups room. Packed ones, of a bulk load, do not. At the right edge of a
// tree that is filled more or less in order, the leaf that is full is packed, and the last one has
// a prefix that the keys to come will probably have.
enum class LeafFill : uint8_t { kWithRoom, kPacked, kRightEdge };

// What a leaf of some entries of a list will look like.
struct LeafPlan {
  uint32_t prefix_bytes;  // behind the list's base
  uint32_t groups;
  uint32_t group_capacity;
  uint64_t used;
};

// O(end - begin), at the right edge O(end). REQUIRES: begin < end; at most kLeafEntriesMax of them.
LeafPlan PlanLeaf(const EntryList& list, size_t begin, size_t end, LeafFill fill);
// May these entries be one leaf? One always may. *plan := what it will look like, if so.
bool FitsLeaf(const EntryList& list, size_t begin, size_t end, LeafFill fill, LeafPlan* plan);
// Writes *leaf, whose memory has room for plan.used bytes; sets all but birth, passed and capacity.
void WriteLeaf(const EntryList& list, size_t begin, size_t end, const LeafPlan& plan, Leaf* leaf);

// A stretch of entries that will be a leaf: from the end of the stretch before.
struct LeafCut {
  size_t end;
  LeafPlan plan;
};

// Cuts [0, size) into stretches that fit a leaf each, about equal in bytes and preferably where
// keys differ early, so that prefixes are long and separators short.
void CutIntoLeaves(const EntryList& list, LeafFill fill, std::vector<LeafCut>* cuts);

}  // namespace cellar::btree_internal
