// TreeModel: a BTree and the std::map that it must equal, driven by a stream of numbers. The unit
// tests draw the numbers from a seed, the fuzzer from its input.
//
// One operation at a time is done to both; cursors and snapshots are kept over many operations, and
// compared. Keys are drawn so that they hurt: prefixes of each other, of every length, with 00 and
// ff bytes, with equal heads, empty, and (rarely) very long.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "btree/btree.h"

namespace tree_model {

using cellar::BTree;
using cellar::BTreeBulkLoader;
using cellar::BTreeCursor;
using cellar::BTreeFinger;
using cellar::BTreeImageReader;
using cellar::BTreePlace;
using cellar::BTreeSnapshot;
using cellar::BTreeWriteResult;
using Map = std::map<std::string, std::string, std::less<>>;

inline size_t Shared(std::string_view a, std::string_view b) {
  size_t n = 0;
  while (n < a.size() && n < b.size() && a[n] == b[n]) ++n;
  return n;
}

// Whether the leaf of an image has a dictionary (btree/nodes/leaf.h: its bytes 38 and 39).
inline bool HasDictionary(std::string_view image) { return image[14] != 0 || image[15] != 0; }

class TreeModel {
 public:
  struct Options {
    uint64_t key_variety{200};       // the smaller, the more often a key is met again
    uint64_t long_key_bytes_max{0};  // 0: none
    uint64_t large_value_bytes_max{4096};
    uint64_t snapshots_max{4};
    bool delete_often{false};
    // Only cells of rows, which share the names of their columns: leaves get dictionaries.
    bool only_cells{false};
    // Nearly all is written by runs (BTree::PutRun).
    bool only_runs{false};
  };
  // `below(n)` gives a number in [0, n).
  using Below = std::function<uint64_t(uint64_t)>;

  TreeModel(const Options& options, Below below) : options_(options), below_(std::move(below)) {}
  ~TreeModel() {
    cursors_.clear();
    images_.clear();
    snapshots_.clear();
  }

  void Step() {
    const uint64_t kind = below_(1000);
    const uint64_t put_share = options_.delete_often ? 330 : 560;
    if (kind < put_share)
      WriteOne();
    else if (kind < 700)
      Delete(Key());
    else if (kind < 760)
      Get(Key());
    else if (kind < 780)
      GetFirst();
    else if (kind < 940)
      StepCursor();
    else if (kind < 950)
      DeleteRange();
    else if (kind < 965)
      TakeOrDropSnapshot();
    else if (kind < 968)
      RollBack();
    else if (kind < 970)
      CompareSnapshot();
    else if (kind < 980)
      MultiGet();
    else if (kind < 985)
      Batch();
    else if (kind < 990)
      SplitKeys();
    else if (kind == 990 && below_(20) == 0)
      Clear();
    else if (kind == 991)
      Reload();
    else if (kind < 994)
      StepImages();
    else
      PutRun();
    CELLAR_ASSERT(tree_.entries() == map_.size());
    CELLAR_ASSERT(tree_.payload_bytes() == payload_bytes_);
  }

  // Both in full, and the invariants.
  void Compare() {
    tree_.Validate();
    CompareAll(BTreeCursor(tree_), map_);
  }

  // Everything goes, and so does the memory.
  void Finish() {
    Compare();
    for (const Held& held : snapshots_) CompareAll(BTreeCursor(held.snapshot), held.map);
    cursors_.clear();
    images_.clear();
    snapshots_.clear();
    tree_.DeleteRange("", "", ~uint64_t{0});
    CELLAR_ASSERT(tree_.entries() == 0);
    CELLAR_ASSERT(tree_.payload_bytes() == 0);
    while (tree_.ReleaseSome(1000)) {
    }
    tree_.Validate();
    CELLAR_ASSERT(tree_.memory_bytes() < 5 * 1024);  // with the notes of a prefetch
  }

  BTree& tree() { return tree_; }
  const Map& map() const { return map_; }

  std::string Key() {
    if (options_.only_cells) return Cell();
    const uint64_t shape = below_(100);
    std::string key;
    if (shape < 3) return key;
    if (shape < 8 && options_.long_key_bytes_max > 0 && below_(8) == 0) {
      key.assign(below_(options_.long_key_bytes_max), static_cast<char>(below_(2) * 255));
      key += static_cast<char>(below_(4));
      return key;
    }
    if (shape < 30) {  // bytes from a small alphabet: prefixes of each other
      const uint64_t n = below_(24);
      static constexpr char kBytes[]{'\x00', '\x01', 'a', 'b', '\xff'};
      for (uint64_t i = 0; i < n; ++i) key += kBytes[below_(sizeof(kBytes))];
      return key;
    }
    if (shape < 45) {  // one run of equal bytes, of every length: shared prefixes of every length
      key.assign(below_(300), 'p');
      key += static_cast<char>(below_(256));
      return key;
    }
    // Like cells: row, column, timestamp.
    char row[40];
    (void)std::snprintf(row, sizeof(row), "plane#%08u",
                        static_cast<unsigned>(below_(options_.key_variety)));
    key = row;
    key += std::string_view("\0\1\2", 3);
    char column[40];
    (void)std::snprintf(column, sizeof(column), "col%u", static_cast<unsigned>(below_(20)));
    key += column;
    key += std::string_view("\0\1", 2);
    const uint64_t version = below_(4);
    for (int i = 0; i < 7; ++i) key += static_cast<char>(version * 37 >> (i % 3));
    return key;
  }

  // The names of columns begin alike, are parts of each other, longer than a word may be, or empty.
  std::string Cell() {
    static const std::vector<std::string> kColumns{"",
                                                   "ab",
                                                   "humidity_of_the_air",
                                                   "pressure_at_sea_level",
                                                   "pressure_at_the_station",
                                                   "temperature",
                                                   "temperature_outside",
                                                   "temperature_outside_of_the_cabin_at_night",
                                                   "wind_direction",
                                                   "\xff\xff\xff\xff"};
    char row[40];
    (void)std::snprintf(row, sizeof(row), "plane#%06u",
                        static_cast<unsigned>(below_(options_.key_variety)));
    std::string key = row;
    key += std::string_view("\0\1\2", 3);
    key += kColumns[below_(kColumns.size())];
    key += std::string_view("\0\1\xf9\xf4", 4);
    key += std::string_view("\xd7\x40\0\xff\1\x99\3", 7).substr(below_(8) == 0, 5);
    return key;
  }

  // Leaves that have a dictionary, and all. O(n).
  struct Leaves {
    uint64_t with_dictionary;
    uint64_t all;
  };
  Leaves CountLeaves() { return CountLeaves(tree_); }
  static Leaves CountLeaves(BTree& tree) {
    const BTreeSnapshot snapshot = tree.TakeSnapshot();
    BTreeImageReader reader(snapshot);
    std::string image;
    Leaves leaves{0, 0};
    for (; image.clear(), reader.Next(&image); ++leaves.all)
      leaves.with_dictionary += static_cast<uint64_t>(HasDictionary(image));
    return leaves;
  }

  std::string Value() {
    const uint64_t shape = options_.only_cells ? below_(90) : below_(100);
    uint64_t n = below_(options_.only_cells ? 12 : 20);
    if (shape >= 80) n = below_(40);
    if (shape >= 92) n = below_(600);
    if (shape >= 97) n = below_(options_.large_value_bytes_max + 1);
    std::string value(n, static_cast<char>('a' + below_(26)));
    if (n > 0) value[n - 1] = static_cast<char>(below_(256));
    return value;
  }

  void Put(const std::string& key, const std::string& value, BTreePlace* place = nullptr) {
    auto [it, inserted] = map_.try_emplace(key);
    const BTreeWriteResult result = tree_.Put(key, value, place);
    CELLAR_ASSERT(result.existed == !inserted);
    CELLAR_ASSERT(result.old_value_bytes == it->second.size());
    payload_bytes_ += value.size() + (inserted ? key.size() : 0) - it->second.size();
    it->second = value;
    CheckShared(result, it);
  }

 private:
  struct Held {
    BTreeSnapshot snapshot;
    Map map;
    uint64_t payload_bytes;
  };
  // A serialiser that has come some way. A second one at the same time keeps its leaves.
  struct HeldImages {
    BTreeSnapshot snapshot;
    std::unique_ptr<BTreeImageReader> reader;
    std::unique_ptr<BTree> copy;
    std::unique_ptr<BTreeBulkLoader> loader;
    Map map;
  };
  struct HeldCursor {
    BTreeCursor cursor;
    bool valid;
    std::string key;
  };

  void Delete(const std::string& key) {
    const auto it = map_.find(key);
    const BTreeWriteResult result = tree_.Delete(key);
    CELLAR_ASSERT(result.existed == (it != map_.end()));
    if (it == map_.end()) return;
    CELLAR_ASSERT(result.old_value_bytes == it->second.size());
    payload_bytes_ -= key.size() + it->second.size();
    CheckShared(result, it);
    map_.erase(it);
  }

  // What a write of *it said of its neighbours.
  void CheckShared(const BTreeWriteResult& result, Map::const_iterator it) const {
    size_t shared = 0;
    if (it != map_.begin()) shared = Shared(std::prev(it)->first, it->first);
    if (std::next(it) != map_.end())
      shared = std::max(shared, Shared(std::next(it)->first, it->first));
    CELLAR_ASSERT(result.shared_with_neighbor <= shared);
    if (result.shared_is_exact) CELLAR_ASSERT(result.shared_with_neighbor == shared);
  }

  // Mostly a key that is there, by one that is a little lower: a cell's newer version.
  void WriteOne() {
    if (options_.only_runs && below_(8) > 0) return PutRun();
    switch (below_(8)) {
      case 0:
        return Replace();
      case 1:
      case 2:
        return WriteAtPlace();
      default:
        return Put(Key(), Value());
    }
  }

  void Replace() {
    std::string old_key = Key();
    if (const auto it = map_.lower_bound(old_key); it != map_.end() && below_(8) > 0)
      old_key = it->first;
    std::string key = old_key;
    if (below_(4) == 0) key = Key();
    const uint64_t back = 1 + below_(8);
    if (key.size() >= back && below_(8) > 0)
      key[key.size() - back] -= static_cast<char>(1 + below_(3));
    if (key != old_key) Replace(old_key, key, nullptr);
  }

  void Replace(const std::string& old_key, const std::string& key, BTreePlace* place) {
    const std::string value = Value();
    const BTreeWriteResult result = tree_.Replace(old_key, key, value, place);
    const auto old = map_.find(old_key);
    CELLAR_ASSERT(result.existed == (old != map_.end()));
    if (old != map_.end()) {
      CELLAR_ASSERT(result.old_value_bytes == old->second.size());
      payload_bytes_ -= old_key.size() + old->second.size();
      map_.erase(old);
    }
    auto [it, inserted] = map_.try_emplace(key);
    payload_bytes_ += value.size() + (inserted ? key.size() : 0) - it->second.size();
    it->second = value;
    CheckShared(result, it);
  }

  // What an increment does: finds the first key with a prefix, and puts one before it. In between
  // the tree may change; the place is then of no use.
  void WriteAtPlace() {
    std::string prefix = Key();
    auto match = map_.lower_bound(prefix);
    if (match != map_.end() && below_(8) > 0) prefix = match->first;
    prefix.resize(prefix.size() - below_(below_(2) == 0 ? 4 : 40) % (prefix.size() + 1));
    std::string scratch;
    const auto found = tree_.FindFirst(prefix, &scratch, &place_);
    match = map_.lower_bound(prefix);
    const bool is_there = match != map_.end() && match->first.starts_with(prefix);
    CELLAR_ASSERT(found.has_value() == is_there);
    std::string key = prefix;
    std::string old_key = Key();
    if (is_there) {
      const std::string rest(found->key_rest);
      CELLAR_ASSERT(prefix + rest == match->first);
      CELLAR_ASSERT(found->value == match->second);
      const auto behind = std::next(match);
      const bool is_only = behind == map_.end() || !behind->first.starts_with(prefix);
      CELLAR_ASSERT(is_only || !found->is_only);
      if (below_(8) > 0) old_key = match->first;
      const size_t same = rest.empty() ? 0 : below_(rest.size());
      key += rest.substr(0, same);
      const uint8_t byte = rest.empty() ? 0 : static_cast<uint8_t>(rest[same]);
      if (byte > 0) {
        key.push_back(static_cast<char>(below_(byte)));
        if (below_(4) > 0) key.append(rest.substr(same + 1));
      }
      // The match itself is written over, or another key, of which nobody has noted the place.
      if (rest.empty() && below_(4) == 0) key.push_back(static_cast<char>(below_(256)));
    } else {
      for (uint64_t n = below_(6); n > 0; --n) key.push_back(static_cast<char>(below_(256)));
    }
    if (below_(4) == 0) TakeOrDropSnapshot();
    if (below_(8) == 0) below_(2) == 0 ? Put(Key(), Value()) : Delete(Key());
    if (key == old_key || below_(2) == 0)
      Put(key, Value(), &place_);
    else
      Replace(old_key, key, &place_);
  }

  // Ascending neighbours, as a row or an import writes them, one by one or as a run.
  void PutRun() {
    std::map<std::string, std::string> puts = Ascending();
    if (below_(2) == 0) {
      for (const auto& [key, value] : puts) Put(key, value);
      return;
    }
    if (puts.empty()) return;
    std::vector<cellar::BTreePut> run;
    for (const auto& [key, value] : puts) run.push_back({key, value});
    const BTreeWriteResult result = tree_.PutRun(run);
    const std::string& first = puts.begin()->first;
    const auto old = map_.find(first);
    CELLAR_ASSERT(result.existed == (old != map_.end()));
    CELLAR_ASSERT(result.old_value_bytes == (result.existed ? old->second.size() : 0));
    // Of the neighbours it tells what they were before the rest of the run came.
    const auto put_in_map = [&](const std::string& key, const std::string& value) {
      const auto [it, inserted] = map_.try_emplace(key);
      payload_bytes_ += value.size() + (inserted ? key.size() : 0) - it->second.size();
      it->second = value;
      return it;
    };
    const auto it = put_in_map(first, puts.begin()->second);
    if (!result.existed) CheckShared(result, it);
    for (const auto& [key, value] : puts) put_in_map(key, value);
  }

  // Keys with values, mostly neighbours of each other, some there already; sizes up to the limits.
  std::map<std::string, std::string> Ascending() {
    std::map<std::string, std::string> puts;
    const std::string key = Key();
    if (key.size() > 1000 && below_(20) > 0) return puts;
    const uint64_t n = below_(4) == 0 ? below_(200) : 1 + below_(20);
    const uint64_t kind = below_(5);
    const size_t kept = below_(key.size() + 1);
    constexpr size_t kRowBytes{12};  // of a cell's key: "plane#000123"
    for (uint64_t i = 0; i < n; ++i) {
      std::string next = key;
      if (options_.only_cells) {  // of one row, or of any
        const std::string cell = Key();
        next = kind < 3 ? key.substr(0, kRowBytes) + cell.substr(kRowBytes) : cell;
        puts[next] = Value();
        continue;
      }
      switch (kind) {
        case 0:  // of one length
          next += static_cast<char>(i >> 8);
          next += static_cast<char>(i);
          break;
        case 1:
          next += std::to_string(i);
          break;
        case 2:  // anywhere, or each a prefix of the next one
          next = below_(2) == 0 ? Key() : next + std::string(i, 'x');
          break;
        case 3:  // the columns of a row, with one timestamp
          next.resize(kept);
          next += "c" + std::to_string(i % 12) + "=" + key.substr(kept);
          break;
        default:  // the keys that follow, or what is just above them
          if (const auto it = map_.lower_bound(puts.empty() ? key : puts.rbegin()->first);
              it != map_.end())
            next = it->first;
          if (below_(4) > 0) next += static_cast<char>(below_(3));
      }
      if (next.size() <= cellar::kTreeKeyBytesMax) puts[next] = Value();
    }
    return puts;
  }

  void Get(const std::string& key) {
    const auto found = tree_.Get(key);
    const auto it = map_.find(key);
    CELLAR_ASSERT(found.has_value() == (it != map_.end()));
    if (found.has_value()) CELLAR_ASSERT(*found == it->second);
  }

  // Mostly a prefix of a key that is there.
  std::string Prefix(std::string prefix) {
    if (const auto it = map_.lower_bound(prefix); it != map_.end() && below_(8) > 0)
      prefix = it->first;
    prefix.resize(prefix.size() - below_(below_(2) == 0 ? 4 : 40) % (prefix.size() + 1));
    return prefix;
  }

  // With a finger that has been elsewhere before the last writes, and with one that has been
  // nowhere. Now and then some of them, of keys that are near each other.
  void GetFirst() {
    std::string prefix = Prefix(Key());
    for (uint64_t n = below_(4) == 0 ? below_(12) : 0;; --n) {
      CheckFirst(prefix, &finger_);
      BTreeFinger nowhere;
      CheckFirst(prefix, &nowhere);
      if (n == 0) return;
      auto it = map_.lower_bound(prefix);
      for (uint64_t steps = below_(24); steps > 0 && it != map_.end(); --steps) ++it;
      for (uint64_t steps = below_(24); steps > 0 && it != map_.begin(); --steps) --it;
      prefix = it == map_.end() ? Prefix(Key()) : Prefix(it->first);
    }
  }

  void CheckFirst(std::string_view prefix, BTreeFinger* finger) {
    std::string scratch;
    BTree::Match found;
    const bool is_found = tree_.GetFirst(prefix, &scratch, finger, &found);
    const auto expected = map_.lower_bound(prefix);
    const bool is_there = expected != map_.end() && expected->first.starts_with(prefix);
    CELLAR_ASSERT(is_found == is_there);
    if (!is_there) return;
    CELLAR_ASSERT(std::string(prefix) + std::string(found.key_rest) == expected->first);
    CELLAR_ASSERT(found.value == expected->second);
  }

  void MultiGet() {
    std::vector<std::string> keys;
    for (uint64_t n = below_(40); n > 0; --n) keys.push_back(Key());
    std::vector<std::string_view> views(keys.begin(), keys.end());
    std::vector<std::optional<std::string_view>> values(keys.size());
    tree_.MultiGet(views, values);
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto it = map_.find(keys[i]);
      CELLAR_ASSERT(values[i].has_value() == (it != map_.end()));
      if (values[i].has_value()) CELLAR_ASSERT(*values[i] == it->second);
    }
  }

  // What a server does with commands that wait for each other: keys are prefetched, as far as they
  // are known, and then looked up in this order; anything may happen in between.
  void Batch() {
    if (in_batch_) return;
    in_batch_ = true;
    std::vector<std::string> keys;
    std::vector<std::string_view> views;
    for (uint64_t n = below_(20); n > 0; --n) keys.push_back(Key());
    for (const std::string& key : keys)
      views.emplace_back(key.data(), key.size() - std::min<size_t>(below_(16), key.size()));
    tree_.Prefetch(views);
    for (const std::string& key : keys) {
      switch (below_(12)) {
        case 0:
          Delete(key);
          break;
        case 1:
          Get(key);
          break;
        case 2:
          GetFirst();
          break;
        case 3: {
          BTreeFinger nowhere;
          CheckFirst(Prefix(key), &nowhere);
          break;
        }
        case 4:
          WriteAtPlace();
          break;
        case 5:
          Step();
          break;
        case 6:
          break;  // refused before it came to the tree
        default:
          Put(key, Value());
          if (below_(4) == 0) Put(key + "x", Value());
      }
    }
    in_batch_ = false;
  }

  void DeleteRange() {
    std::string begin = Key(), end = Key();
    if (below_(4) == 0) {
      end = begin;
      end += '\xff';
    }
    if (end < begin) std::swap(begin, end);
    const uint64_t entries_max = below_(3) == 0 ? ~uint64_t{0} : below_(100);
    auto it = map_.lower_bound(begin);
    uint64_t removed = 0;
    while (removed < entries_max && it != map_.end() && (end.empty() || it->first < end)) {
      payload_bytes_ -= it->first.size() + it->second.size();
      it = map_.erase(it);
      ++removed;
    }
    CELLAR_ASSERT(tree_.DeleteRange(begin, end, entries_max) == removed);
  }

  void Clear() {
    tree_.Clear();
    map_.clear();
    payload_bytes_ = 0;
  }

  void TakeOrDropSnapshot() {
    if (snapshots_.size() < options_.snapshots_max && below_(2) == 0) {
      snapshots_.push_back({tree_.TakeSnapshot(), map_, payload_bytes_});
      CELLAR_ASSERT(snapshots_.back().snapshot.entries() == map_.size());
    } else if (!snapshots_.empty()) {
      const auto i = static_cast<std::ptrdiff_t>(below_(snapshots_.size()));
      if (below_(2) == 0)
        CompareAll(BTreeCursor(snapshots_[static_cast<size_t>(i)].snapshot),
                   snapshots_[static_cast<size_t>(i)].map);
      snapshots_.erase(snapshots_.begin() + i);
    }
  }

  void RollBack() {
    if (snapshots_.empty()) return;
    const Held& held = snapshots_[below_(snapshots_.size())];
    tree_.RollBackTo(held.snapshot);
    map_ = held.map;
    payload_bytes_ = held.payload_bytes;
  }

  void CompareSnapshot() {
    if (snapshots_.empty()) return;
    const Held& held = snapshots_[below_(snapshots_.size())];
    CompareAll(BTreeCursor(held.snapshot), held.map);
  }

  void StepImages() {
    if (images_.size() < 2 && below_(3) == 0) {
      HeldImages& held = *images_.emplace_back(std::make_unique<HeldImages>());
      held.snapshot = tree_.TakeSnapshotForImages();
      held.reader = std::make_unique<BTreeImageReader>(held.snapshot);
      held.copy = std::make_unique<BTree>();
      held.loader = std::make_unique<BTreeBulkLoader>(held.copy.get());
      held.map = map_;
      return;
    }
    if (images_.empty()) return;
    const auto i = static_cast<std::ptrdiff_t>(below_(images_.size()));
    HeldImages& held = *images_[static_cast<size_t>(i)];
    bool is_over = below_(16) == 0;  // given up early
    std::string image;
    for (uint64_t n = below_(8); n > 0 && !is_over; --n) {
      image.clear();
      if (held.reader->Next(&image)) {
        CELLAR_ASSERT(held.loader->AddImage(image).ok());
        continue;
      }
      CELLAR_ASSERT(held.loader->Finish().ok());
      CompareAll(BTreeCursor(*held.copy), held.map);
      is_over = true;
    }
    if (is_over) images_.erase(images_.begin() + i);
  }

  // Through images into another tree and back into comparison.
  void Reload() {
    BTreeSnapshot snapshot = below_(2) == 0 ? tree_.TakeSnapshot() : tree_.TakeSnapshotForImages();
    BTreeImageReader reader(snapshot);
    BTree copy;
    {
      BTreeBulkLoader loader(&copy);
      std::string image;
      std::string last;
      for (; image.clear(), reader.Next(&image);) {
        const auto status = loader.AddImage(image);
        CELLAR_ASSERT(status.ok());
      }
      if (below_(2) == 0) {
        const std::string above = (map_.empty() ? "" : map_.rbegin()->first) + "x";
        CELLAR_ASSERT(loader.Add(above, "y").ok());
        CELLAR_ASSERT(loader.Finish().ok());
        CELLAR_ASSERT(copy.Delete(above).existed);
      } else {
        CELLAR_ASSERT(loader.Finish().ok());
      }
    }
    copy.Validate();
    CompareAll(BTreeCursor(copy), map_);
    BTree again;
    BTreeBulkLoader loader(&again);
    for (const auto& [key, value] : map_) CELLAR_ASSERT(loader.Add(key, value).ok());
    CELLAR_ASSERT(loader.Finish().ok());
    again.Validate();
    CompareAll(BTreeCursor(again), map_);
  }

  void SplitKeys() {
    const size_t parts = 1 + below_(12);
    const std::vector<std::string> keys = tree_.SplitKeys(parts);
    CELLAR_ASSERT(keys.size() < parts);
    for (size_t i = 0; i < keys.size(); ++i) {
      CELLAR_ASSERT(map_.contains(keys[i]));
      if (i > 0) CELLAR_ASSERT(keys[i - 1] < keys[i]);
    }
  }

  // A cursor that may have been kept over many changes moves on from where it stood.
  void StepCursor() {
    if (cursors_.size() < 4) cursors_.push_back({BTreeCursor(tree_), false, {}});
    HeldCursor& held = cursors_[below_(cursors_.size())];
    const uint64_t kind = below_(10);
    if (!held.valid || kind < 3) {
      const std::string key = Key();
      auto it = map_.lower_bound(key);
      if (kind == 0) {
        held.cursor.SeekBefore(key);
        it = it == map_.begin() ? map_.end() : std::prev(it);
      } else if (kind == 1 && below_(4) == 0) {
        held.cursor.SeekFirst();
        it = map_.begin();
      } else if (kind == 1 && below_(4) == 0) {
        held.cursor.SeekLast();
        it = map_.empty() ? map_.end() : std::prev(map_.end());
      } else if (kind == 2) {
        held.cursor.SeekNear(key);
      } else {
        held.cursor.Seek(key);
      }
      Check(&held, it);
      return;
    }
    for (uint64_t n = below_(below_(10) == 0 ? 300 : 8); n > 0 && held.valid; --n) {
      if (kind < 7) {
        StepForward(&held);
      } else {
        const auto it = map_.lower_bound(held.key);
        held.cursor.Prev();
        Check(&held, it == map_.begin() ? map_.end() : std::prev(it));
      }
    }
    if (below_(10) == 0) {
      BTreeCursor moved(std::move(held.cursor));
      held.cursor = std::move(moved);
    }
  }

  // One movement forward, over one entry or several.
  void StepForward(HeldCursor* held) {
    const std::string last = held->key;
    switch (below_(8)) {
      case 0: {
        const std::string_view prefix = std::string_view(last).substr(0, below_(last.size() + 1));
        held->cursor.Leave(prefix.size());
        auto it = map_.upper_bound(last);
        while (it != map_.end() && it->first.starts_with(prefix)) ++it;
        Check(held, it);
        if (held->valid) CELLAR_ASSERT(held->cursor.shared_with_last() == Shared(last, held->key));
        return;
      }
      case 1: {
        std::string target = Key();
        auto near = map_.upper_bound(last);
        for (uint64_t n = below_(60); n > 0 && near != map_.end(); --n) ++near;
        if (near != map_.end() && below_(4) != 0) target = near->first;
        if (!target.empty() && below_(4) == 0) target.pop_back();
        const size_t shared = held->cursor.SeekForward(target);
        Check(held, map_.lower_bound(std::max(last, target)));
        CELLAR_ASSERT(shared == (held->valid ? Shared(target, held->key) : 0));
        return;
      }
      case 2: {
        const std::string_view prefix = std::string_view(last).substr(0, below_(last.size() + 1));
        const size_t front_bytes = below_(last.size() + 10);
        const size_t tail_bytes = below_(12);
        std::vector<std::string_view> values(below_(20));
        const BTreeCursor::Run run =
            held->cursor.NextRun(prefix.size(), front_bytes, tail_bytes, values);
        auto it = map_.find(last);
        size_t key_bytes = 0;
        for (size_t i = 0; i < run.entries; ++i) {
          const std::string& before = it->first;
          ++it;
          CELLAR_ASSERT(it->first.starts_with(prefix));
          const size_t shared = Shared(before, it->first);
          CELLAR_ASSERT(shared < front_bytes || shared + tail_bytes < before.size());
          CELLAR_ASSERT(it->second == values[i]);
          CELLAR_ASSERT(i + 1 < run.entries || held->cursor.shared_with_last() == shared);
          key_bytes += it->first.size();
        }
        CELLAR_ASSERT(run.key_bytes == key_bytes);
        if (run.entries > 0) Check(held, it);
        return;
      }
      default:
        held->cursor.Next();
        Check(held, map_.upper_bound(last));
        if (held->valid) CELLAR_ASSERT(held->cursor.shared_with_last() == Shared(last, held->key));
    }
  }

  void Check(HeldCursor* held, Map::const_iterator expected) {
    held->valid = held->cursor.valid();
    CELLAR_ASSERT(held->valid == (expected != map_.end()));
    if (!held->valid) return;
    held->key = held->cursor.key();
    CELLAR_ASSERT(held->key == expected->first);
    CELLAR_ASSERT(held->cursor.value() == expected->second);
  }

  static void CompareAll(BTreeCursor cursor, const Map& map) {
    cursor.SeekFirst();
    for (const auto& [key, value] : map) {
      CELLAR_ASSERT(cursor.valid());
      CELLAR_ASSERT(cursor.key() == key);
      CELLAR_ASSERT(cursor.value() == value);
      cursor.Next();
    }
    CELLAR_ASSERT(!cursor.valid());
    cursor.SeekLast();
    for (auto it = map.rbegin(); it != map.rend(); ++it) {
      CELLAR_ASSERT(cursor.valid());
      CELLAR_ASSERT(cursor.key() == it->first);
      cursor.Prev();
    }
    CELLAR_ASSERT(!cursor.valid());
  }

  Options options_;
  Below below_;
  BTree tree_;
  Map map_;
  uint64_t payload_bytes_{0};
  std::vector<HeldCursor> cursors_;
  BTreePlace place_;
  BTreeFinger finger_;
  bool in_batch_{false};
  std::vector<Held> snapshots_;
  std::vector<std::unique_ptr<HeldImages>> images_;
};

}  // namespace tree_model
