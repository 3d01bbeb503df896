// Movements of a cursor over several entries at once, inside its leaf mostly.
//
// Each entry says how much of the key before it shares, so most can be passed without their keys.
// While all share the first bytes of the cursor's key, the buffer goes on holding these:
//
//   Leave         an entry that shares less is the one, and has all of what it shares in the buffer
//   SeekForward   keeps m, how much of the target the entry before shares. One that shares more with
//                 that is below the target as it is, one that shares less is above, and only one
//                 that shares exactly m is looked at (as in leaf.h). The entry found shares with the
//                 target what it shares with the one before, and more.
#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "base/assert.h"
#include "base/coding.h"
#include "btree/btree.h"
#include "btree/tree.h"

namespace cellar {

using btree_internal::Behind;
using btree_internal::Bytes;
using btree_internal::CommonPrefix;
using btree_internal::CopyShortSuffix;
using btree_internal::Dictionary;
using btree_internal::Entry;
using btree_internal::EntryEnd;
using btree_internal::ParseEntry;
using btree_internal::ParseShortEntry;
using btree_internal::SharedField;
using btree_internal::Suffix;
using btree_internal::View;

namespace {

// CommonPrefix of keys that are mostly alike for longer than a word.
inline size_t LongPrefix(const uint8_t* a, const uint8_t* b, size_t bytes_max) {
  size_t at = 0;
  for (; at + 8 <= bytes_max; at += 8) {
    const uint64_t difference =
        LoadLittleEndian<uint64_t>(a + at) ^ LoadLittleEndian<uint64_t>(b + at);
    if (difference != 0) return at + static_cast<size_t>(std::countr_zero(difference)) / 8;
  }
  while (at < bytes_max && a[at] == b[at]) ++at;
  return at;
}

}  // namespace

bool BTreeCursor::changed() const { return tree_ != nullptr && tree_->changes() != seen_changes_; }

// The first entry of a group does not know what it shares with the one before, and is compared with
// the bytes to be left.
void BTreeCursor::Leave(size_t prefix_bytes) {
  CELLAR_ASSERT(valid_);
  CELLAR_ASSERT(prefix_bytes <= key_bytes_);
  if (changed()) [[unlikely]] {
    Next();
    if (!StillBegins(prefix_bytes)) return;
  }
  if (seeks_at_once_ > 0) {
    --seeks_at_once_;
    return SeekBehind(prefix_bytes);
  }
  int passed = 0;
  while (passed < kEntriesPassed) {
    const Dictionary dictionary = leaf_->dictionary();
    // Of an entry that begins so, behind the leaf's prefix.
    const size_t own_bytes = prefix_bytes - std::min(prefix_bytes, prefix_bytes_);
    const uint8_t* const end = leaf_end_;
    const uint8_t* at = next_;
    for (; own_bytes > 0 && at != end && passed < kEntriesPassed; at = EntryEnd(at), ++passed) {
      const uint32_t field = SharedField(at);
      if (field >= own_bytes) [[likely]]
        continue;
      Entry entry;
      ParseEntry(at, &entry);
      size_t shared = entry.shared;
      if (shared == 0)
        shared = dictionary.Decode(entry).SharedWith(View(key_ + prefix_bytes_, own_bytes));
      if (shared >= own_bytes) continue;
      Load(at, entry, prefix_bytes_ + entry.shared);
      shared_with_last_ = prefix_bytes_ + shared;
      return;
    }
    if (own_bytes > 0 && at != end) break;
    if (own_bytes == 0) passed += kEntriesPassed / 2;  // the whole leaf
    key_bytes_ = prefix_bytes;                         // no more of it is known
    StepOver();
    if (!StillBegins(prefix_bytes)) return;
  }
  seeks_at_once_ = kSeeksAtOnce;
  SeekBehind(prefix_bytes);
}

// To the first entry that has not the first `prefix_bytes` of this one's key.
void BTreeCursor::SeekBehind(size_t prefix_bytes) {
  const std::string prefix(key().substr(0, prefix_bytes));
  std::string behind = prefix;
  while (!behind.empty() && behind.back() == '\xff') behind.pop_back();
  if (behind.empty()) {
    SeekLast();
    Next();
    return;
  }
  behind.back() = static_cast<char>(behind.back() + 1);
  Seek(behind);
  if (valid_) shared_with_last_ = CommonPrefix(prefix, key());
}

size_t BTreeCursor::SeekForward(std::string_view target) {
  CELLAR_ASSERT(valid_);
  const size_t known =  // stands in the buffer
      LongPrefix(key_, Bytes(target), std::min(key_bytes_, target.size()));
  const bool is_below = known < target.size() &&
                        (known == key_bytes_ || key_[known] < static_cast<uint8_t>(target[known]));
  if (changed()) [[unlikely]]
    return SeekAndCompare(is_below ? target : key(), target);
  if (!is_below) return known;
  if (known < prefix_bytes_) return SeekAndCompare(target, target);
  if (seeks_at_once_ > 0) {
    --seeks_at_once_;
    return SeekAndCompare(target, target);
  }
  const Dictionary dictionary = leaf_->dictionary();
  size_t shared = known;  // by the target and the entry before
  const uint8_t* const end = leaf_end_;
  int passed = 0;
  for (const uint8_t* at = next_; at != end && passed < kEntriesPassed;
       at = EntryEnd(at), ++passed) {
    if (prefix_bytes_ + SharedField(at) > shared) continue;
    Entry entry;
    ParseEntry(at, &entry);
    const size_t begin = prefix_bytes_ + entry.shared;
    if (begin > shared) continue;
    if (begin == shared || entry.shared == 0) {
      const Suffix suffix = dictionary.Decode(entry);
      const std::string_view rest = Behind(target, begin);
      CELLAR_DEBUG_ASSERT(!rest.empty());
      // Mostly the first byte tells.
      if (suffix.size() > 0 && suffix[0] < static_cast<uint8_t>(rest[0])) {
        shared = begin;
        continue;
      }
      const size_t of_suffix = suffix.SharedWith(rest);
      shared = begin + of_suffix;
      if (of_suffix < rest.size() &&
          (of_suffix == suffix.size() || suffix[of_suffix] < static_cast<uint8_t>(rest[of_suffix])))
        continue;
    } else {
      shared = begin;
    }
    if (begin > known) {
      key_bytes_ = known;
      ReserveKey(begin);
      std::memcpy(key_ + known, target.data() + known, begin - known);
    }
    Load(at, entry, begin);
    shared_with_last_ = 0;
    return shared;
  }
  if (passed == kEntriesPassed) seeks_at_once_ = kSeeksAtOnce;
  return SeekAndCompare(target, target);
}

void BTreeCursor::SeekNear(std::string_view target) {
  if (valid_ && !changed() && key() < target)
    (void)SeekForward(target);
  else
    Seek(target);
}

size_t BTreeCursor::SeekAndCompare(std::string_view sought, std::string_view with) {
  Seek(sought);
  return valid_ ? CommonPrefix(key(), with) : 0;
}

// Next() for as many entries as can be taken by its shortest way.
BTreeCursor::Run BTreeCursor::NextRun(size_t prefix_bytes, size_t front_bytes, size_t tail_bytes,
                                      std::span<std::string_view> values) {
  CELLAR_ASSERT(valid_);
  CELLAR_ASSERT(prefix_bytes <= key_bytes_);
  Run run;
  if (changed()) [[unlikely]]
    return run;
  uint8_t* const key = key_;
  const uint8_t* const words = words_;
  const uint8_t* const end = short_end_;
  const size_t leaf_prefix_bytes = prefix_bytes_;
  const uint8_t* next = next_;
  const Dictionary dictionary = leaf_->dictionary();
  const uint8_t* entry_at = nullptr;
  size_t shared_at = 0;
  size_t key_bytes = key_bytes_;
  Entry entry;
  while (run.entries < values.size() && next < end && ParseShortEntry(next, &entry)) {
    size_t shared = leaf_prefix_bytes + entry.shared;
    if (entry.shared == 0)  // the first of a group does not know
      shared += dictionary.Decode(entry).SharedWith(View(key + shared, key_bytes - shared));
    if (shared < prefix_bytes || (shared >= front_bytes && shared + tail_bytes >= key_bytes)) break;
    __builtin_prefetch(next + kPrefetchedBytes);
    uint8_t* const suffix = key + leaf_prefix_bytes + entry.shared;
    key_bytes = static_cast<size_t>(CopyShortSuffix(suffix, entry, words) - key);
    values[run.entries++] = View(entry.value, entry.value_bytes);
    run.key_bytes += key_bytes;
    entry_at = next;
    shared_at = shared;
    next = entry.end;
  }
  if (run.entries == 0) return run;
  const std::string_view value = values[run.entries - 1];
  value_ = Bytes(value);
  value_bytes_ = value.size();
  entry_ = entry_at;
  shared_with_last_ = shared_at;
  key_bytes_ = key_bytes;
  next_ = next;
  return run;
}

}  // namespace cellar
