// Editing of one leaf. See leaf.h for the picture, and leaf_search.h for the search.
#include "btree/nodes/leaf.h"

#include <array>
#include <cstring>
#include <string>

#include "base/assert.h"
#include "btree/nodes/leaf_search.h"

namespace cellar::btree_internal {
namespace {

// The free bytes before the `bytes` of entries go behind them. Returns where these begin then.
[[gnu::noinline]] uint8_t* CloseFront(Leaf* leaf, size_t bytes) {
  uint8_t* const to = leaf->entries() - leaf->front_bytes;
  std::memmove(to, leaf->entries(), bytes);
  leaf->front_bytes = 0;
  return to;
}

// Replaces old_bytes at `at` by room for new_bytes, whose content is the caller's; returns it.
// Entries may move. REQUIRES: `entries` are the leaf's.
CELLAR_INLINE uint8_t* Resize(Leaf* leaf, uint8_t* entries, uint32_t at, uint32_t old_bytes,
                              uint32_t new_bytes) {
  const auto growth = static_cast<int64_t>(new_bytes) - old_bytes;
  const auto tail_bytes = static_cast<uint32_t>(leaf->entries_end() - entries) - at - old_bytes;
  const int64_t back_bytes =
      static_cast<int64_t>(leaf->capacity()) - leaf->used - leaf->front_bytes;
  CELLAR_ASSERT(growth <= back_bytes + leaf->front_bytes);
  leaf->used = static_cast<uint32_t>(leaf->used + growth);
  const bool moves_head = at < tail_bytes ? leaf->front_bytes >= growth : back_bytes < growth;
  if (moves_head ? leaf->front_bytes < growth : back_bytes < growth) [[unlikely]] {
    uint8_t* const closed = CloseFront(leaf, at + old_bytes + tail_bytes);
    std::memmove(closed + at + new_bytes, closed + at + old_bytes, tail_bytes);
    return closed + at;
  }
  if (moves_head) {
    leaf->front_bytes = static_cast<uint16_t>(leaf->front_bytes - growth);
    std::memmove(entries - growth, entries, at);
    return entries - growth + at;
  }
  std::memmove(entries + at + new_bytes, entries + at + old_bytes, tail_bytes);
  return entries + at;
}
CELLAR_INLINE uint8_t* Resize(Leaf* leaf, uint32_t at, uint32_t old_bytes, uint32_t new_bytes) {
  return Resize(leaf, leaf->entries(), at, old_bytes, new_bytes);
}

CELLAR_INLINE void ShiftOffsets(Leaf* leaf, uint32_t from_group, int64_t growth) {
  AddFrom(leaf->offsets(), leaf->group_capacity, from_group, static_cast<uint16_t>(growth));
}

// Heads, offsets and counts are arrays of their own, so that a search touches the heads alone; all
// three make room at the same place.
void InsertGroup(Leaf* leaf, uint32_t group, uint32_t head, uint32_t offset, uint32_t count) {
  CELLAR_ASSERT(leaf->groups < leaf->group_capacity);
  const size_t moved = leaf->groups - group;
  std::memmove(leaf->heads() + group + 1, leaf->heads() + group, moved * sizeof(uint32_t));
  std::memmove(leaf->offsets() + group + 1, leaf->offsets() + group, moved * sizeof(uint16_t));
  std::memmove(leaf->counts() + group + 1, leaf->counts() + group, moved);
  leaf->heads()[group] = head;
  leaf->offsets()[group] = static_cast<uint16_t>(offset);
  leaf->counts()[group] = static_cast<uint8_t>(count);
  ++leaf->groups;
}

void RemoveGroup(Leaf* leaf, uint32_t group) {
  const size_t moved = static_cast<size_t>(leaf->groups) - group - 1;
  std::memmove(leaf->heads() + group, leaf->heads() + group + 1, moved * sizeof(uint32_t));
  std::memmove(leaf->offsets() + group, leaf->offsets() + group + 1, moved * sizeof(uint16_t));
  std::memmove(leaf->counts() + group, leaf->counts() + group + 1, moved);
  --leaf->groups;
}

void CountLarge(Leaf* leaf, const LargeValue* value, int sign) {
  if (value == nullptr) return;
  const uint32_t units = value->capacity / 64;
  leaf->large_count = sign > 0 ? leaf->large_count + 1 : leaf->large_count - 1;
  leaf->large_units = sign > 0 ? leaf->large_units + units : leaf->large_units - units;
}

size_t LengthsBytes(uint32_t shared, uint32_t suffix_bytes, ValueShape value) {
  const size_t value_bytes = value.is_large ? kLargeReferenceBytes : value.bytes;
  return EntryOverheadBytes(shared, suffix_bytes, value) - value_bytes;
}

// A word that the suffix begins with: the one behind `last` if that is one, since the columns of a
// row mostly come in the order of the words.
CELLAR_INLINE SuffixCode FindWordBehind(const Dictionary& dictionary, SuffixCode last,
                                        std::string_view suffix) {
  const uint8_t* const word =
      dictionary.words + size_t{2} * last.code + WordRoom(last.word_bytes);  // of none: the first
  if (word < dictionary.words + dictionary.bytes && HasPrefix(suffix, word + 1, *word)) [[likely]]
    return {static_cast<uint8_t>((word - dictionary.words) / 2), *word};
  return dictionary.Find(suffix);
}

}  // namespace

// Entries say only what they do not share with the one before, so the keys before it have to be
// parsed; but of each only the bytes are copied that the wanted key really has from it.
const uint8_t* RebuiltKey::TakeInGroup(const Leaf* leaf, uint32_t group, uint32_t index) {
  CELLAR_ASSERT(index < leaf->counts()[group]);
  CELLAR_ASSERT(index < kGroupEntriesMax);
  const Dictionary dictionary = leaf->dictionary();
  std::array<const uint8_t*, kGroupEntriesMax> at;
  std::array<uint32_t, kGroupEntriesMax> shared;
  Entry entry;
  const uint8_t* p = leaf->entries() + leaf->offsets()[group];
  for (uint32_t i = 0;; ++i, p = entry.end) {
    ParseEntry(p, &entry);
    at[i] = p;
    shared[i] = entry.shared;
    if (i == index) break;
  }
  bytes_ = entry.shared + dictionary.Decode(entry).size();
  Reserve(bytes_);
  // Backwards: each one has what the one behind it shares, but for what it shares itself.
  size_t missing = bytes_;
  for (uint32_t i = index;; --i) {
    if (shared[i] < missing) {
      ParseEntry(at[i], &entry);
      const Suffix suffix = dictionary.Decode(entry);
      const size_t bytes = missing - shared[i];
      const size_t word_bytes = std::min(bytes, suffix.word.size());
      CopyBytes(buffer_.data() + shared[i], suffix.word.data(), word_bytes);
      CopyBytes(buffer_.data() + shared[i] + word_bytes, suffix.own.data(), bytes - word_bytes);
      missing = shared[i];
    }
    if (missing == 0) return p;
  }
}

// Heads are four bytes of a key: where several groups have the same, whole keys decide.
uint32_t FindAmongEqualHeads(const Leaf* leaf, std::string_view rest, uint32_t low, uint32_t high) {
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (IsBelow(rest, GroupFirst(leaf, middle)))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

void FindInLeaf(const Leaf* leaf, std::string_view key, LeafPlace* place) {
  *place = SearchLeaf(leaf, key);
}

void TouchGroup(const Leaf* leaf, std::string_view key) {
  uint32_t group = 0;
  if (key.size() > leaf->prefix_bytes) {
    const std::string_view rest = key.substr(leaf->prefix_bytes);
    const uint32_t head = Head(Bytes(rest), rest.size());
    const uint32_t not_above = HeadsNotAboveOfAll(leaf->heads(), leaf->groups, head);
    if (not_above > 0) group = not_above - 1;
  }
  TouchLines(leaf->prefix(), leaf->bytes() + leaf->header_bytes());
  TouchLines(leaf->entries() + leaf->offsets()[group], leaf->group_end(group));
}

namespace {

// The entry `next`, at `at`, will share `shared` bytes with the one before, more than it does.
void PlanNext(const Dictionary& dictionary, const uint8_t* at, const Entry& next, uint32_t shared,
              LeafEdit* edit) {
  const uint32_t dropped = shared - next.shared;
  edit->next = CutSuffix(dictionary, dictionary.Decode(next), dropped);
  edit->next_suffix_bytes = next.suffix_bytes - edit->next.own_dropped + edit->next.literal_bytes;
  edit->next_shape = next.value_shape();
  edit->old_bytes =
      static_cast<uint32_t>(next.suffix - at) + dictionary.code_bytes() + edit->next.own_dropped;
  edit->new_bytes =
      dictionary.code_bytes() + edit->next.literal_bytes +
      static_cast<uint32_t>(LengthsBytes(shared, edit->next_suffix_bytes, edit->next_shape));
}

// What PlanNext has planned, at `to`: what the entry keeps of its own stands behind. Returns where.
uint8_t* WriteNext(uint8_t* to, const Dictionary& dictionary, const LeafEdit& edit,
                   uint32_t shared) {
  uint8_t* const p = WriteEntryLengths(to, shared, edit.next_suffix_bytes, edit.next_shape);
  return dictionary.Write(p, {edit.next.code, 0},
                          View(dictionary.words + edit.next.literal_at, edit.next.literal_bytes));
}

}  // namespace

LeafEdit PlanInsert(const Leaf* leaf, const LeafPlace& place, std::string_view key,
                    const ValueRef& value) {
  CELLAR_ASSERT(!place.found);
  CELLAR_ASSERT(place.has_prefix);
  const Dictionary dictionary = leaf->dictionary();
  LeafEdit edit;
  // The next entry shares at least as much with the new key as with its old predecessor.
  bool has_code = place.index == 0 || dictionary.bytes == 0;  // and it is 0
  if (place.group < leaf->groups && place.index < leaf->counts()[place.group]) {
    const uint8_t* const at = leaf->entries() + place.at;
    Entry next;
    ParseEntry(at, &next);
    CELLAR_ASSERT(place.shared_after >= next.shared);
    const uint32_t dropped = place.shared_after - next.shared;
    if (dropped > 0) {
      const Suffix next_suffix = dictionary.Decode(next);
      // What the next one loses the new one begins with.
      if (!has_code && dropped >= next_suffix.word.size() && place.shared_before == next.shared) {
        edit.code = dictionary.CodeOf(next);
        has_code = edit.code.word_bytes > 0;
      }
      PlanNext(dictionary, at, next, place.shared_after, &edit);
    }
  }
  const std::string_view suffix = Behind(key, leaf->prefix_bytes + place.shared_before);
  if (!has_code) edit.code = dictionary.Find(suffix);
  edit.suffix_bytes = dictionary.StoredBytes(suffix.size(), edit.code);
  edit.new_bytes += edit.suffix_bytes + static_cast<uint32_t>(EntryOverheadBytes(
                                            place.shared_before, edit.suffix_bytes, value.shape()));
  return edit;
}

void ApplyInsert(Leaf* leaf, const LeafPlace& place, const LeafEdit& edit, std::string_view key,
                 const ValueRef& value) {
  const std::string_view rest = Behind(key, leaf->prefix_bytes);
  const Dictionary dictionary = leaf->dictionary();
  if (place.group == leaf->groups) InsertGroup(leaf, place.group, 0, place.at, 0);
  CELLAR_ASSERT(leaf->counts()[place.group] < kGroupEntriesMax);
  uint8_t* const at = Resize(leaf, place.at, edit.old_bytes, edit.new_bytes);

  const std::string_view suffix = Behind(rest, place.shared_before);
  uint8_t* p = WriteEntryLengths(at, place.shared_before, edit.suffix_bytes, value.shape());
  p = WriteEntryValue(dictionary.Write(p, edit.code, suffix), value);
  if (edit.old_bytes > 0) p = WriteNext(p, dictionary, edit, place.shared_after);
  CELLAR_ASSERT(p == at + edit.new_bytes);

  ShiftOffsets(leaf, place.group + 1, edit.growth());
  if (place.index == 0) leaf->heads()[place.group] = Head(Bytes(rest), rest.size());
  ++leaf->counts()[place.group];
  ++leaf->count;
  CountLarge(leaf, value.large, 1);
}

// Stops before the first put that would make the leaf grow too much: plan->count of them go in.
void PlanRun(const Leaf* leaf, const RunInLeaf& run, int64_t growth_max, RunPlan* plan) {
  const LeafPlace& place = run.place;
  CELLAR_ASSERT(run.puts.size() <= kGroupEntriesMax);
  CELLAR_ASSERT(place.has_prefix);
  CELLAR_ASSERT(run.opens_group || place.index <= leaf->counts()[place.group]);
  const Dictionary dictionary = leaf->dictionary();
  LeafEdit& edit = plan->edit;
  edit = {};
  if (!run.opens_group && place.index < leaf->counts()[place.group]) {
    const uint8_t* const at = leaf->entries() + place.at;
    Entry next;
    ParseEntry(at, &next);
    CELLAR_ASSERT(place.shared_after >= next.shared);
    if (place.shared_after > next.shared) PlanNext(dictionary, at, next, place.shared_after, &edit);
  }
  SuffixCode code;
  size_t& i = plan->count;
  for (i = 0; i < run.puts.size(); ++i) {
    const auto& [key, value] = run.puts[i];
    const uint32_t shared = i == 0 ? place.shared_before : run.shared[i] - leaf->prefix_bytes;
    const std::string_view suffix = Behind(key, leaf->prefix_bytes + shared);
    const bool is_first = i == 0 && place.index == 0;
    if (dictionary.bytes > 0 && !is_first) code = FindWordBehind(dictionary, code, suffix);
    plan->codes[i] = code;
    plan->suffix_bytes[i] = dictionary.StoredBytes(suffix.size(), plan->codes[i]);
    const size_t bytes =
        plan->suffix_bytes[i] + EntryOverheadBytes(shared, plan->suffix_bytes[i],
                                                   {static_cast<uint32_t>(value.size()), false});
    if (edit.growth() + static_cast<int64_t>(bytes) > growth_max) return;
    edit.new_bytes += static_cast<uint32_t>(bytes);
  }
}

void ApplyRun(Leaf* leaf, const RunInLeaf& run, const RunPlan& plan) {
  const LeafPlace& place = run.place;
  const LeafEdit& edit = plan.edit;
  const Dictionary dictionary = leaf->dictionary();
  CELLAR_ASSERT(plan.count > 0);
  if (run.opens_group) InsertGroup(leaf, place.group, 0, place.at, 0);
  CELLAR_ASSERT(leaf->counts()[place.group] + plan.count <= kGroupEntriesMax);
  uint8_t* const at = Resize(leaf, place.at, edit.old_bytes, edit.new_bytes);
  uint8_t* p = at;
  for (size_t i = 0; i < plan.count; ++i) {
    const auto& [key, value] = run.puts[i];
    const uint32_t shared = i == 0 ? place.shared_before : run.shared[i] - leaf->prefix_bytes;
    p = WriteEntryLengths(p, shared, plan.suffix_bytes[i],
                          {static_cast<uint32_t>(value.size()), false});
    p = dictionary.Write(p, plan.codes[i], Behind(key, leaf->prefix_bytes + shared));
    CopyBytes(p, Bytes(value), value.size());
    p += value.size();
  }
  if (edit.old_bytes > 0) p = WriteNext(p, dictionary, edit, place.shared_after);
  CELLAR_ASSERT(p == at + edit.new_bytes);
  ShiftOffsets(leaf, place.group + 1, edit.growth());
  if (place.index == 0) {
    const std::string_view rest = Behind(run.puts[0].key, leaf->prefix_bytes);
    leaf->heads()[place.group] = Head(Bytes(rest), rest.size());
  }
  leaf->counts()[place.group] = static_cast<uint8_t>(leaf->counts()[place.group] + plan.count);
  leaf->count = static_cast<uint16_t>(leaf->count + plan.count);
}

// All lengths are known before the first byte is written, so that "false" leaves the leaf as it
// was. The next entry shares more with the new key than with the one before it: it keeps its value
// and the end of its suffix, and only what stands in front of these is written anew.
// NOLINTNEXTLINE(readability-function-size): one pass; calls for its inner parts cost each insert.
bool InsertShort(Leaf* leaf, const LeafPlace& place, std::string_view key, const ValueRef& value) {
  // Tree::Insert has asked for the prefix and the group's room a moment ago: not twice per insert.
  CELLAR_DEBUG_ASSERT(!place.found && place.has_prefix && place.group < leaf->groups);
  CELLAR_DEBUG_ASSERT(leaf->counts()[place.group] < kGroupEntriesMax);
  const Dictionary dictionary = leaf->dictionary();
  uint8_t* const entries = leaf->entries();
  uint8_t* const count = leaf->counts() + place.group;
  const uint32_t code_bytes = dictionary.code_bytes();
  SuffixCode code;
  // If the next entry loses a part of its suffix: its lengths and code, so many bytes, which are
  // written anew, and how many bytes behind them go.
  uint32_t next_bytes = 0;
  uint32_t next_lengths = 0;
  uint8_t next_code = 0;
  uint32_t next_dropped = 0;
  if (place.index < *count) {
    Entry next;
    if (!ParseShortEntry(entries + place.at, &next)) [[unlikely]]
      return false;
    CELLAR_DEBUG_ASSERT(place.shared_after >= next.shared);
    const uint32_t lost = place.shared_after - next.shared;
    if (lost > 0) {
      next_bytes = 2 + code_bytes;
      next_dropped = lost;
      if (code_bytes > 0) {
        const SuffixCode word = dictionary.CodeOf(next);
        if (word.word_bytes == 0) {  // what is left may begin with one
          const std::string_view own = View(next.suffix + 1, next.suffix_bytes - 1);
          const SuffixCode found = dictionary.Find(Behind(own, lost));
          next_code = found.code;
          next_dropped += found.word_bytes;
        } else if (lost < word.word_bytes) {
          return false;
        } else {
          next_dropped -= word.word_bytes;
          if (place.index > 0) code = word;  // what the next one loses the new one begins with
        }
      }
      next_lengths =
          ShortLengths(place.shared_after, next.suffix_bytes - next_dropped, next.value_bytes);
    }
  }
  const std::string_view suffix = Behind(key, leaf->prefix_bytes + place.shared_before);
  if (code_bytes > 0 && place.index > 0 && code.word_bytes == 0) code = dictionary.Find(suffix);
  const uint32_t suffix_bytes = dictionary.StoredBytes(suffix.size(), code);
  if (!AreShortLengths(place.shared_before, suffix_bytes, value.shape()) ||
      place.shared_after >= kSharedEscape) [[unlikely]]
    return false;
  // Below 0 for the few entries that a word makes shorter than what it saves: far above all room.
  const uint32_t growth = 2 + suffix_bytes + value.bytes - next_dropped;
  if (growth > leaf->capacity() - leaf->used || leaf->used + growth > kLeafBytesMax) [[unlikely]]
    return false;

  uint8_t* to = Resize(leaf, entries, place.at, next_bytes + next_dropped,
                       next_bytes + next_dropped + growth);
  ShiftOffsets(leaf, place.group + 1, growth);
  ++*count;
  ++leaf->count;
  if (place.index == 0) {
    const std::string_view rest = Behind(key, leaf->prefix_bytes);
    leaf->heads()[place.group] = Head(Bytes(rest), rest.size());
  }
  StoreLittleEndian(to, ShortLengths(place.shared_before, suffix_bytes, value.bytes));
  to = dictionary.Write(to + 2, code, suffix);
  CopyBytes(to, value.data, value.bytes);
  if (next_bytes > 0) {
    to += value.bytes;
    StoreLittleEndian(to, static_cast<uint16_t>(next_lengths));
    if (code_bytes > 0) to[2] = next_code;
  }
  return true;
}

LeafEdit PlanReplace(const Leaf* leaf, const LeafPlace& place, const ValueRef& value) {
  CELLAR_ASSERT(place.found);
  const uint8_t* const at = leaf->entries() + place.at;
  Entry entry;
  ParseEntry(at, &entry);
  LeafEdit edit;
  edit.old_bytes = static_cast<uint32_t>(entry.end - at);
  edit.new_bytes = static_cast<uint32_t>(
      EntryOverheadBytes(entry.shared, entry.suffix_bytes, value.shape()) + entry.suffix_bytes);
  return edit;
}

void ApplyReplace(Leaf* leaf, const LeafPlace& place, const LeafEdit& edit, const ValueRef& value) {
  const uint8_t* const at = leaf->entries() + place.at;
  Entry entry;
  ParseEntry(at, &entry);
  CountLarge(leaf, entry.is_large ? entry.large() : nullptr, -1);
  const auto growth = edit.growth();
  const auto before_suffix_bytes = static_cast<size_t>(entry.suffix - at);
  const auto before_value_bytes = static_cast<uint32_t>(entry.value - at);
  std::string moved_suffix;
  if (growth != 0) {
    if (LengthsBytes(entry.shared, entry.suffix_bytes, value.shape()) == before_suffix_bytes) {
      Resize(leaf, place.at + before_value_bytes, edit.old_bytes - before_value_bytes,
             edit.new_bytes - before_value_bytes);
    } else {
      moved_suffix = View(entry.suffix, entry.suffix_bytes);
      Resize(leaf, place.at, edit.old_bytes, edit.new_bytes);
    }
    ShiftOffsets(leaf, place.group + 1, growth);
  }
  uint8_t* p = leaf->entries() + place.at;
  p = WriteEntryLengths(p, entry.shared, entry.suffix_bytes, value.shape());
  CopyBytes(p, moved_suffix.data(), moved_suffix.size());
  WriteEntryValue(p + entry.suffix_bytes, value);
  CountLarge(leaf, value.large, 1);
}

LeafEdit PlanRewrite(const Leaf* leaf, const LeafPlace& place, std::string_view rest,
                     const ValueRef& value) {
  const uint8_t* const at = leaf->entries() + place.at;
  Entry old;
  ParseEntry(at, &old);
  const std::string_view suffix = rest.substr(place.shared_before);
  const Dictionary dictionary = leaf->dictionary();
  LeafEdit edit;
  if (place.index > 0 && dictionary.bytes > 0) {
    edit.code = dictionary.CodeOf(old);  // mostly the key differs in its last bytes only
    if (edit.code.code == 0 ||
        !HasPrefix(suffix, Bytes(dictionary.word(edit.code.code)), edit.code.word_bytes))
      edit.code = dictionary.Find(suffix);
  }
  const uint32_t suffix_bytes = dictionary.StoredBytes(suffix.size(), edit.code);
  edit.old_bytes = static_cast<uint32_t>(old.end - at);
  edit.new_bytes = static_cast<uint32_t>(
      EntryOverheadBytes(place.shared_before, suffix_bytes, value.shape()) + suffix_bytes);
  return edit;
}

void ApplyRewrite(Leaf* leaf, const LeafPlace& place, const LeafEdit& edit, std::string_view rest,
                  const ValueRef& value) {
  if (edit.growth() != 0) {
    Resize(leaf, place.at, edit.old_bytes, edit.new_bytes);
    ShiftOffsets(leaf, place.group + 1, edit.growth());
  }
  uint8_t* const at = leaf->entries() + place.at;
  const std::string_view suffix = rest.substr(place.shared_before);
  const Dictionary dictionary = leaf->dictionary();
  uint8_t* const p = WriteEntryLengths(
      at, place.shared_before, dictionary.StoredBytes(suffix.size(), edit.code), value.shape());
  uint8_t* const end = WriteEntryValue(dictionary.Write(p, edit.code, suffix), value);
  CELLAR_ASSERT(end == at + edit.new_bytes);
  if (place.index == 0) leaf->heads()[place.group] = Head(Bytes(rest), rest.size());
}

bool RewriteShort(Leaf* leaf, const LeafPlace& place, const Entry& old, std::string_view rest,
                  const ValueRef& value) {
  if (place.shared_before != old.shared || value.bytes != old.value_bytes) return false;
  const std::string_view suffix = Behind(rest, place.shared_before);
  const Dictionary dictionary = leaf->dictionary();
  const SuffixCode code = dictionary.CodeOf(old);
  if (place.index > 0 && dictionary.bytes > 0) {
    if (code.word_bytes == 0) return false;  // it may get one
    if (!HasPrefix(suffix, Bytes(dictionary.word(code.code)), code.word_bytes)) return false;
  }
  const std::string_view own = Behind(suffix, code.word_bytes);
  CELLAR_ASSERT(own.size() + dictionary.code_bytes() == old.suffix_bytes);
  uint8_t* const at = leaf->bytes() + (old.value - leaf->bytes());
  CopyBytes(at - own.size(), Bytes(own), own.size());
  CopyBytes(at, value.data, value.bytes);
  if (place.index == 0) leaf->heads()[place.group] = Head(Bytes(rest), rest.size());
  return true;
}

LeafEdit PlanRemove(const Leaf* leaf, const LeafPlace& place, std::string* next_suffix) {
  CELLAR_ASSERT(place.found);
  CELLAR_ASSERT(leaf->count > 1);
  const uint8_t* const at = leaf->entries() + place.at;
  Entry removed;
  ParseEntry(at, &removed);
  LeafEdit edit;
  edit.old_bytes = static_cast<uint32_t>(removed.end - at);
  if (place.index + 1u == leaf->counts()[place.group]) return edit;
  Entry next;
  ParseEntry(removed.end, &next);
  // The next one is then the group's first, which has its whole key; or takes over what it has to.
  const bool is_first = place.index == 0;
  const uint32_t gained = next.shared > removed.shared ? next.shared - removed.shared : 0;
  const Dictionary dictionary = leaf->dictionary();
  if (gained == 0 && !(is_first && dictionary.bytes > 0)) return edit;
  next_suffix->clear();
  dictionary.Decode(removed).AppendTo(next_suffix);
  next_suffix->resize(gained);
  dictionary.Decode(next).AppendTo(next_suffix);
  if (!is_first) edit.code = dictionary.Find(*next_suffix);
  const uint32_t suffix_bytes = dictionary.StoredBytes(next_suffix->size(), edit.code);
  edit.old_bytes = static_cast<uint32_t>(next.value - at);
  edit.new_bytes = suffix_bytes + static_cast<uint32_t>(LengthsBytes(removed.shared, suffix_bytes,
                                                                     next.value_shape()));
  return edit;
}

void ApplyRemove(Leaf* leaf, const LeafPlace& place, const LeafEdit& edit,
                 std::string_view next_suffix) {
  Entry removed;
  ParseEntry(leaf->entries() + place.at, &removed);
  CountLarge(leaf, removed.is_large ? removed.large() : nullptr, -1);
  Entry next{};
  if (edit.new_bytes > 0) ParseEntry(removed.end, &next);
  const ValueShape next_shape = next.value_shape();
  uint8_t* const at = Resize(leaf, place.at, edit.old_bytes, edit.new_bytes);
  ShiftOffsets(leaf, place.group + 1, edit.growth());
  if (edit.new_bytes > 0) {
    const Dictionary dictionary = leaf->dictionary();
    uint8_t* const p = WriteEntryLengths(
        at, removed.shared, dictionary.StoredBytes(next_suffix.size(), edit.code), next_shape);
    const uint8_t* const end = dictionary.Write(p, edit.code, next_suffix);
    CELLAR_ASSERT(end == at + edit.new_bytes);
  }
  --leaf->count;
  if (--leaf->counts()[place.group] == 0) {
    RemoveGroup(leaf, place.group);
  } else if (place.index == 0) {
    const std::string_view first = GroupFirst(leaf, place.group);
    leaf->heads()[place.group] = Head(Bytes(first), first.size());
  }
}

GroupSplit PlanSplitGroup(const Leaf* leaf, uint32_t group, uint32_t first_index, RebuiltKey* key) {
  CELLAR_ASSERT(first_index > 0);
  CELLAR_ASSERT(first_index < leaf->counts()[group]);
  const uint8_t* const at = key->TakeInGroup(leaf, group, first_index);
  Entry entry;
  ParseEntry(at, &entry);
  GroupSplit split{group, first_index, static_cast<uint32_t>(at - leaf->entries()), {}};
  LeafEdit& edit = split.edit;
  edit.next_shape = entry.value_shape();
  edit.suffix_bytes = leaf->dictionary().StoredBytes(key->view().size(), {});
  edit.old_bytes = static_cast<uint32_t>(entry.value - at);
  edit.new_bytes = edit.suffix_bytes +
                   static_cast<uint32_t>(LengthsBytes(0, edit.suffix_bytes, edit.next_shape));
  return split;
}

void ApplySplitGroup(Leaf* leaf, const GroupSplit& split, std::string_view key) {
  const LeafEdit& edit = split.edit;
  uint8_t* const at = Resize(leaf, split.at, edit.old_bytes, edit.new_bytes);
  uint8_t* const to = WriteEntryLengths(at, 0, edit.suffix_bytes, edit.next_shape);
  (void)leaf->dictionary().Write(to, {}, key);
  ShiftOffsets(leaf, split.group + 1, edit.growth());
  const uint32_t count = leaf->counts()[split.group];
  leaf->counts()[split.group] = static_cast<uint8_t>(split.first_index);
  InsertGroup(leaf, split.group + 1, Head(Bytes(key), key.size()), split.at,
              count - split.first_index);
}

void AddGroupRoom(Leaf* leaf) {
  CELLAR_ASSERT(leaf->group_capacity + kGroupRoomStep <= kLeafGroupsMax);
  CELLAR_ASSERT(leaf->used + kGroupRoomGrowth <= leaf->capacity());
  if (leaf->front_bytes < kGroupRoomGrowth) (void)CloseFront(leaf, leaf->entries_bytes());
  const bool takes_front = leaf->front_bytes > 0;
  // From the back to the front, since each part moves up over the place of the one behind it.
  const uint8_t* const counts = leaf->counts();
  const uint16_t* const offsets = leaf->offsets();
  uint8_t* const prefix = leaf->prefix();
  const size_t moved_bytes = takes_front ? leaf->prefix_bytes + size_t{leaf->dictionary_bytes}
                                         : static_cast<size_t>(leaf->entries_end() - prefix);
  std::memmove(prefix + kGroupRoomGrowth, prefix, moved_bytes);
  if (takes_front) leaf->front_bytes = static_cast<uint16_t>(leaf->front_bytes - kGroupRoomGrowth);
  leaf->group_capacity = static_cast<uint8_t>(leaf->group_capacity + kGroupRoomStep);
  leaf->used += static_cast<uint32_t>(kGroupRoomGrowth);
  std::memmove(leaf->counts(), counts, leaf->groups);
  std::memmove(leaf->offsets(), offsets, leaf->groups * sizeof(uint16_t));
  // HeadsNotAbove reads whole quadruples: what it may see must be defined.
  std::memset(leaf->heads() + leaf->groups, 0,
              (leaf->group_capacity - static_cast<size_t>(leaf->groups)) * sizeof(uint32_t));
}

// Rebuilds every key and counts again what the header counts. Whether the keys lie within the
// bounds that the parents give is for the caller to check (Tree::ValidateBelow).
uint64_t ValidateLeaf(const Leaf* leaf, std::string* first, std::string* last) {
  CELLAR_ASSERT(leaf->count > 0);
  CELLAR_ASSERT(leaf->groups > 0);
  CELLAR_ASSERT(leaf->groups <= leaf->group_capacity);
  CELLAR_ASSERT(leaf->group_capacity <= kLeafGroupsMax);
  CELLAR_ASSERT(leaf->group_capacity % 4 == 0);
  CELLAR_ASSERT(leaf->used + leaf->front_bytes <= leaf->capacity());
  CELLAR_ASSERT(leaf->count == 1 || leaf->used <= LeafBytesLimit(leaf->prefix_bytes));
  CodeSet codes;
  if (leaf->dictionary_bytes > 0)
    CELLAR_ASSERT(CheckDictionary(View(leaf->dictionary().words, leaf->dictionary_bytes), &codes));
  const std::string prefix(View(leaf->prefix(), leaf->prefix_bytes));
  uint64_t payload_bytes = 0;
  uint32_t large_count = 0, large_units = 0, group = 0, in_group = 0;
  std::string previous;
  RebuiltKey scratch;
  const uint8_t* p = leaf->entries();
  WalkLeaf(leaf, &scratch, [&](uint32_t i, std::string_view rest, const Entry& entry) {
    if (leaf->dictionary_bytes > 0) CELLAR_ASSERT(codes[entry.suffix[0]]);
    if (in_group == 0) {
      CELLAR_ASSERT(leaf->dictionary_bytes == 0 || entry.suffix[0] == 0);
      CELLAR_ASSERT(group < leaf->groups);
      CELLAR_ASSERT(leaf->offsets()[group] == p - leaf->entries());
      CELLAR_ASSERT(leaf->heads()[group] == Head(Bytes(rest), rest.size()));
      CELLAR_ASSERT(leaf->counts()[group] > 0);
      CELLAR_ASSERT(leaf->counts()[group] <= kGroupEntriesMax);
      CELLAR_ASSERT(entry.shared == 0);
    } else {
      CELLAR_ASSERT(entry.shared == CommonPrefix(previous, rest));
    }
    if (i == 0)
      *first = prefix + std::string(rest);
    else
      CELLAR_ASSERT(previous < rest);
    CELLAR_ASSERT(entry.is_large == (entry.value_bytes > kInlineValueBytesMax));
    if (entry.is_large) {
      CELLAR_ASSERT(entry.large()->bytes == entry.value_bytes);
      ++large_count;
      large_units += entry.large()->capacity / 64;
    }
    payload_bytes += prefix.size() + rest.size() + entry.value_bytes;
    CELLAR_ASSERT(prefix.size() + rest.size() <= kTreeKeyBytesMax);
    previous = rest;
    p = entry.end;
    if (++in_group == leaf->counts()[group]) {
      ++group;
      in_group = 0;
    }
    return true;
  });
  CELLAR_ASSERT(group == leaf->groups);
  CELLAR_ASSERT(p == leaf->entries_end());
  CELLAR_ASSERT(large_count == leaf->large_count);
  CELLAR_ASSERT(large_units == leaf->large_units);
  *last = prefix + previous;
  return payload_bytes;
}

}  // namespace cellar::btree_internal
