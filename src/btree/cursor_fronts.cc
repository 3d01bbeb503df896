// Walking over fronts (front_visitor.h): one pass over the entries of a leaf.
//
// As in cursor_forward.cc no key is put together that nobody asks for, and each entry says how much
// of the key before it shares:
//
//   less than the front       another front begins; the bytes that it shares stand in the buffer
//   else, while it is left    nothing to be done
//   else, while a tail        `known` is how much of the tail the entry before has. One that shares
//   is sought                 more with that is below it, and only the others are compared
//
// Between two fronts the cursor is therefore on no entry: the buffer holds the front and what is
// known of the tail, and next_ says where to go on. Whoever leaves this file has moved on.
#include <algorithm>
#include <cstddef>
#include <string>

#include "base/assert.h"
#include "base/copy_bytes.h"
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
using btree_internal::kSharedEscape;
using btree_internal::ParseEntry;
using btree_internal::ParseShortEntry;
using btree_internal::SharedField;
using btree_internal::Suffix;
using btree_internal::View;
using What = FrontStep::What;

namespace {

// Of a front that goes on in the next leaf, what stands in this one: if it is more, it is sought.
constexpr ptrdiff_t kBytesPassed{1'500};

// CommonPrefix of texts that are short, mostly.
inline size_t SharedShort(std::string_view a, std::string_view b) {
  const size_t bytes_max = std::min(a.size(), b.size());
  if (bytes_max > 8) return CommonPrefix(Bytes(a), Bytes(b), bytes_max);
  size_t shared = 0;
  while (shared < bytes_max && a[shared] == b[shared]) ++shared;
  return shared;
}

// Of `suffix` behind its first `skipped` bytes, how many are those of `text`; *is_below := and the
// next one is below, or missing. REQUIRES: text is not empty; skipped <= suffix.size().
inline size_t SharedWith(const Suffix& suffix, size_t skipped, std::string_view text,
                         bool* is_below) {
  Suffix rest = suffix;
  if (skipped > 0) [[unlikely]] {
    const size_t of_word = std::min(skipped, suffix.word.size());
    rest = {Behind(suffix.word, of_word), Behind(suffix.own, skipped - of_word)};
  }
  if (rest.size() == 0) {
    *is_below = true;
    return 0;
  }
  // Mostly the first byte tells.
  const uint8_t first = rest[0];
  const auto wanted = static_cast<uint8_t>(text[0]);
  if (first != wanted) {
    *is_below = first < wanted;
    return 0;
  }
  size_t shared = SharedShort(rest.word, text);
  if (shared == rest.word.size()) shared += SharedShort(rest.own, Behind(text, shared));
  *is_below = shared < text.size() &&
              (shared == rest.size() || rest[shared] < static_cast<uint8_t>(text[shared]));
  return shared;
}

// Likewise, of what a front has behind the leaf's prefix.
inline size_t SharedFront(const Suffix& suffix, std::string_view front) {
  if (suffix.size() == 0 || suffix[0] != static_cast<uint8_t>(front[0])) return 0;
  return suffix.SharedWith(front);
}

// From the entry at `at` on, over those that say that they share so many bytes behind the leaf's
// prefix: to the first other one.
inline const uint8_t* PassShared(const uint8_t* at, const uint8_t* end, size_t own_bytes) {
  while (at != end && SharedField(at) >= own_bytes) at = EntryEnd(at);
  return at;
}

// The same over those that are below a key that has `known` bytes, behind the leaf's prefix, of the
// entry before, and then `wanted`: as far as what they share and their first byte tell.
inline const uint8_t* PassBelow(const uint8_t* at, const uint8_t* end, const uint8_t* words,
                                size_t known, uint8_t wanted) {
  if (known == 0 || known >= kSharedEscape) return at;
  while (at != end) {
    const uint32_t field = SharedField(at);
    if (field > known) {
      at = EntryEnd(at);
      continue;
    }
    Entry entry;
    if (field < known || !ParseShortEntry(at, &entry)) break;
    const uint8_t* first = entry.suffix;
    if (words != nullptr) first = *first == 0 ? first + 1 : words + size_t{2} * *first + 1;
    if (*first >= wanted) break;
    at = entry.end;
  }
  return at;
}

}  // namespace

struct BTreeCursor::FrontWalk {
  FrontVisitor* visitor;
  size_t front_bytes;
  FrontStep step;
  size_t known{0};  // while a tail is sought: how much of it the entry has, which is below

  void Miss() {
    while (step.what == What::kSeek) step = visitor->Missed();
    CELLAR_ASSERT(step.what == What::kLeave);
  }
};

// Onto an entry of which the first `begin` bytes stand in the buffer: mostly as Next() does.
void BTreeCursor::LoadFront(const uint8_t* at, const Entry& entry, size_t begin) {
  if (at >= short_end_ || entry.suffix != at + 2 || entry.is_large) [[unlikely]]
    return Load(at, entry, begin);
  const uint8_t* const key_end = CopyShortSuffix(key_ + begin, entry, words_);
  key_bytes_ = static_cast<size_t>(key_end - key_);
  value_ = entry.value;
  value_bytes_ = entry.value_bytes;
  entry_ = at;
  next_ = entry.end;
}

// The buffer is to hold the front and these bytes.
void BTreeCursor::KeepTail(size_t front_bytes, std::string_view tail) {
  key_bytes_ = front_bytes;
  ReserveKey(front_bytes + tail.size());
  CopyBytes(key_ + front_bytes, tail.data(), tail.size());
  key_bytes_ += tail.size();
}

// The cursor's entry, which is of the front, against what is sought.
void BTreeCursor::MeetEntry(FrontWalk* walk) {
  while (walk->step.what == What::kSeek) {
    const std::string_view rest = Behind(key(), walk->front_bytes);
    const std::string_view tail = walk->step.tail;
    const size_t known = CommonPrefix(rest, tail);
    if (known == tail.size()) {
      walk->step = walk->visitor->Found(value(), key_bytes_);
    } else if (known == rest.size() ||
               static_cast<uint8_t>(rest[known]) < static_cast<uint8_t>(tail[known])) {
      walk->known = known;
      return;
    } else {
      walk->step = walk->visitor->Missed();
    }
  }
}

// The entries of the leaf behind the cursor's. True: it is on one that is to be met, or the visitor
// has said to stop. False: it is on none, and has to go further.
bool BTreeCursor::PassEntries(FrontWalk* walk) {
  size_t front_bytes = walk->front_bytes;
  const Dictionary dictionary = leaf_->dictionary();
  const uint8_t* const end = leaf_end_;
  bool seeks = walk->step.what == What::kSeek;
  if (!seeks && prefix_bytes_ >= front_bytes) return false;  // no entry of the leaf is another's
  const uint8_t* at = next_;
  const uint8_t* from_at = at;  // where the front begins, or the leaf
  Entry entry;
  while (at != end) {
    if (seeks) {
      const size_t known_bytes = front_bytes + walk->known;
      at = PassBelow(at, end, words_, known_bytes - std::min(known_bytes, prefix_bytes_),
                     static_cast<uint8_t>(walk->step.tail[walk->known]));
    } else {
      at = PassShared(at, end, front_bytes - std::min(front_bytes, prefix_bytes_));
    }
    if (at == end) break;
    ParseEntry(at, &entry);
    const size_t begin = prefix_bytes_ + entry.shared;
    size_t shared = begin;
    if (entry.shared == 0 && begin < front_bytes)  // the first of a group does not know
      shared += SharedFront(dictionary.Decode(entry), View(key_ + begin, front_bytes - begin));
    if (shared < front_bytes) {
      walk->Miss();
      LoadFront(at, entry, begin);
      shared_with_last_ = shared;
      __builtin_prefetch(next_ + kPrefetchedBytes);
      walk->step = walk->visitor->BeginFront(key(), shared, &walk->front_bytes);
      MeetEntry(walk);
      if (walk->step.what == What::kStop) return true;
      front_bytes = walk->front_bytes;
      seeks = walk->step.what == What::kSeek;
      at = from_at = next_;
      continue;
    }
    const uint8_t* const here = at;
    at = entry.end;
    if (!seeks) continue;
    const size_t from = std::max(begin, front_bytes) - front_bytes;  // of the tail
    if (from > walk->known) continue;
    const std::string_view tail = walk->step.tail;
    const Suffix suffix = dictionary.Decode(entry);
    bool is_below = false;
    const size_t known =
        from + SharedWith(suffix, front_bytes + from - begin, Behind(tail, from), &is_below);
    if (is_below) {
      walk->known = known;
      continue;
    }
    const bool found = known == tail.size();
    walk->step = found ? walk->visitor->Found(entry.value_view(), begin + suffix.size())
                       : walk->visitor->Missed();
    seeks = walk->step.what == What::kSeek;
    if (walk->step.what == What::kLeave) continue;
    if (found && seeks) {
      walk->known = CommonPrefix(tail, walk->step.tail);
      CELLAR_ASSERT(walk->known < tail.size());
      continue;
    }
    KeepTail(front_bytes, tail.substr(0, from));
    Load(here, entry, begin);
    shared_with_last_ = 0;
    return true;
  }
  if (end - from_at > kBytesPassed) seeks_at_once_ = kSeeksAtOnce;
  next_ = at;
  KeepTail(front_bytes, seeks ? walk->step.tail.substr(0, walk->known) : std::string_view());
  return false;
}

// To the next entry, or over many. Returns how much of the front it has; 0: also if there is none.
size_t BTreeCursor::GoFurther(const FrontWalk& walk) {
  if (next_ == leaf_end_ && seeks_at_once_ == 0) {
    StepOver();
    return valid_ ? shared_with_last_ : 0;
  }
  if (walk.step.what == What::kLeave) {
    Leave(walk.front_bytes);
    return valid_ ? shared_with_last_ : 0;
  }
  std::string target(key().substr(0, walk.front_bytes));
  target += walk.step.tail;
  return SeekForward(target);
}

void BTreeCursor::WalkFronts(size_t front_bytes, FrontStep step, FrontVisitor* visitor) {
  CELLAR_ASSERT(valid_);
  CELLAR_ASSERT(!changed());
  FrontWalk walk{.visitor = visitor, .front_bytes = front_bytes, .step = step};
  if (front_bytes == 0) walk.step = visitor->BeginFront(key(), 0, &walk.front_bytes);
  for (;;) {
    CELLAR_ASSERT(walk.step.what == What::kStop || walk.front_bytes > 0);
    MeetEntry(&walk);
    if (walk.step.what == What::kStop) return;
    if (seeks_at_once_ == 0 && PassEntries(&walk)) continue;
    const size_t shared = GoFurther(walk);
    if (valid_ && shared >= walk.front_bytes) continue;
    walk.Miss();
    if (!valid_) return;
    walk.step = visitor->BeginFront(key(), shared, &walk.front_bytes);
  }
}

}  // namespace cellar
