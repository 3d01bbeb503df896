// Decoding of leaves and building of new ones. See leaf_builder.h.
#include "btree/nodes/leaf_builder.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"

namespace cellar::btree_internal {
namespace {

constexpr size_t kGroupEntriesWithRoom{12};

// Bytes of an item when it is not the first of its group.
size_t DeltaBytes(const EntryList& list, const EntryList::Item& item, uint32_t prefix_bytes) {
  const uint32_t suffix_bytes =
      list.dictionary().StoredBytes(item.key_bytes - item.shared, item.code);
  return EntryOverheadBytes(item.shared - prefix_bytes, suffix_bytes, item.value.shape()) +
         suffix_bytes;
}

size_t FullBytes(const EntryList& list, const EntryList::Item& item, uint32_t prefix_bytes) {
  const uint32_t suffix_bytes = list.dictionary().StoredBytes(item.key_bytes - prefix_bytes, {});
  return EntryOverheadBytes(0, suffix_bytes, item.value.shape()) + suffix_bytes;
}

// The first entry of each group when `count` entries are spread evenly over `groups`.
size_t GroupBegin(size_t group, size_t groups, size_t count) { return group * count / groups; }

// Cuts [begin, end) in two near the middle of its bytes; returns where the second part begins.
size_t CutPoint(const EntryList& list, size_t begin, size_t end) {
  uint64_t total = 0;
  for (size_t i = begin; i < end; ++i) total += DeltaBytes(list, list.item(i), 0);
  size_t best = begin + 1;
  bool best_is_central = false;
  uint64_t best_distance = ~uint64_t{0};
  uint64_t below = DeltaBytes(list, list.item(begin), 0);
  for (size_t i = begin + 1; i < end; ++i) {
    const uint64_t distance = below * 2 > total ? below * 2 - total : total - below * 2;
    // Within an eighth of the middle the earliest difference of keys wins; else the nearest place.
    const bool central = distance * 8 <= total;
    const bool better = central && best_is_central
                            ? list.item(i).shared < list.item(best).shared
                            : central || (!best_is_central && distance < best_distance);
    if (better) {
      best = i;
      best_is_central = central;
      best_distance = distance;
    }
    below += DeltaBytes(list, list.item(i), 0);
  }
  return best;
}

// Where the last quarter of [begin, end) has its earliest difference of keys: rows that arrive in
// order, but their columns not, leave the row that is not complete yet to the next leaf. `begin` if
// what comes before does not fit a leaf. *plan := of that.
size_t CutPointAtEdge(const EntryList& list, size_t begin, size_t end, LeafPlan* plan) {
  size_t best = end - 1;
  for (size_t i = end - 1; i > begin && i > end - (end - begin) / 4; --i)
    if (list.item(i).shared < list.item(best).shared) best = i;
  return FitsLeaf(list, begin, best, LeafFill::kPacked, plan) ? best : begin;
}

void Cut(const EntryList& list, LeafFill fill, size_t begin, size_t end,
         std::vector<LeafCut>* cuts) {
  LeafPlan plan{};
  if (FitsLeaf(list, begin, end, fill, &plan)) {
    cuts->push_back({end, plan});
    return;
  }
  if (fill == LeafFill::kRightEdge && end - begin > 8) {
    const size_t edge = CutPointAtEdge(list, begin, end, &plan);
    if (edge > begin) {
      cuts->push_back({edge, plan});
      Cut(list, fill, edge, end, cuts);
      return;
    }
  }
  const size_t middle = CutPoint(list, begin, end);
  Cut(list, fill, begin, middle, cuts);
  Cut(list, fill, middle, end, cuts);
}

}  // namespace

void EntryList::Reset(std::string_view base) {
  ForgetWords();
  base_ = base;
  keys_end_ = 0;
  items_.clear();
}

// Room for a key, to be filled in, and behind it for what CopyShort writes more. Keys begin so far
// from each other that it may copy from one to the next.
uint8_t* EntryList::NewKey(size_t bytes) {
  const size_t room = std::max(bytes, kShortCopyBytes);
  if (keys_.size() < keys_end_ + room + kShortCopyBytes) [[unlikely]]
    keys_.resize(std::max(keys_end_ + room + kShortCopyBytes, keys_.size() * 2));
  uint8_t* const key = keys_.data() + keys_end_;
  keys_end_ += room;
  return key;
}

void EntryList::UpdateShared(size_t i) {
  if (i >= items_.size()) return;
  items_[i].shared = i == 0 ? 0 : static_cast<uint32_t>(CommonPrefix(key(i - 1), key(i)));
  FindWord(i);
}

void EntryList::AppendLeaf(const Leaf* leaf) {
  const std::string_view prefix = View(leaf->prefix(), leaf->prefix_bytes).substr(base_.size());
  const Dictionary dictionary = leaf->dictionary();
  const uint8_t* const readable_end = leaf->readable_end();
  const uint8_t* p = leaf->entries();
  Entry entry;
  const size_t first = items_.size();
  if (first > 0)
    ForgetWords();
  else
    dictionary_.assign(View(dictionary.words, dictionary.bytes));
  items_.reserve(first + leaf->count);
  for (uint32_t i = 0; i < leaf->count; ++i, p = entry.end) {
    ParseEntry(p, &entry);
    const Suffix suffix = dictionary.Decode(entry);
    const size_t shared = entry.shared + prefix.size();
    const size_t key_bytes = shared + suffix.size();
    uint8_t* const key = NewKey(key_bytes);
    if (i == 0)
      CopyBytes(key, Bytes(prefix), prefix.size());
    else
      CopyShort(key, keys_.data() + items_.back().key_at, shared, key);
    suffix.CopyTo(key + shared, readable_end);
    items_.push_back({static_cast<uint32_t>(key - keys_.data()), static_cast<uint32_t>(key_bytes),
                      static_cast<uint32_t>(shared), entry.value_ref(),
                      first == 0 ? dictionary.CodeOf(entry) : SuffixCode{}});
    // The first of a group does not know what it shares.
    if (entry.shared == 0) UpdateShared(items_.size() - 1);
  }
  UpdateShared(first);
}

void EntryList::Append(std::string_view key, const ValueRef& value) {
  Insert(items_.size(), key, value);
}

void EntryList::Insert(size_t i, std::string_view key, const ValueRef& value) {
  const std::string_view rest = key.substr(base_.size());
  uint8_t* const copy = NewKey(rest.size());
  CopyBytes(copy, Bytes(rest), rest.size());
  items_.insert(items_.begin() + static_cast<std::ptrdiff_t>(i),
                {static_cast<uint32_t>(copy - keys_.data()),
                 static_cast<uint32_t>(rest.size()),
                 0,
                 value,
                 {}});
  UpdateShared(i);
  UpdateShared(i + 1);
}

void EntryList::Erase(size_t begin, size_t end) {
  items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(begin),
               items_.begin() + static_cast<std::ptrdiff_t>(end));
  UpdateShared(begin);
}

void EntryList::ForgetWords() {
  if (dictionary_.empty()) return;
  dictionary_.clear();
  for (Item& item : items_) item.code = {};
}

void EntryList::FindWord(size_t i) {
  if (!dictionary_.empty()) items_[i].code = dictionary().Find(key(i).substr(items_[i].shared));
}

void EntryList::UseWords(const Dictionary& dictionary) {
  ForgetWords();
  dictionary_.assign(View(dictionary.words, dictionary.bytes));
  for (size_t i = 0; i < items_.size(); ++i) FindWord(i);
}

void EntryList::ChooseWords() {
  ForgetWords();
  choice_.Reset();
  size_t entries_bytes = 0;
  for (size_t i = 0; i < items_.size(); ++i) {
    const std::string_view suffix = key(i).substr(items_[i].shared);
    choice_.Add(suffix.substr(0, suffix.size() - std::min(suffix.size(), kWordlessBytes)));
    entries_bytes += DeltaBytes(*this, items_[i], 0);
  }
  choice_.Choose(1 + entries_bytes / kLeafBytesMax, entries_bytes, &dictionary_, &codes_);
  if (dictionary_.empty()) return;
  for (size_t i = 0; i < items_.size(); ++i) items_[i].code = codes_[i];
}

size_t EntryList::LowerBound(std::string_view key) const {
  const std::string_view head = key.substr(0, base_.size());
  if (head != base_) return head < base_ ? 0 : size();
  const std::string_view rest = key.substr(base_.size());
  const auto it = std::partition_point(items_.begin(), items_.end(), [&](const Item& item) {
    return View(keys_.data() + item.key_at, item.key_bytes) < rest;
  });
  return static_cast<size_t>(it - items_.begin());
}

void EntryList::ShrinkIfLarge() {
  constexpr size_t kKeptBytes{64 * 1024};
  if (memory_bytes() <= kKeptBytes) return;
  std::string().swap(base_);  // assigning would keep the memory
  std::vector<uint8_t>().swap(keys_);
  std::vector<Item>().swap(items_);
  choice_ = {};
}

LeafPlan PlanLeaf(const EntryList& list, size_t begin, size_t end, LeafFill fill) {
  CELLAR_ASSERT(begin < end);
  const size_t count = end - begin;
  CELLAR_ASSERT(count <= kLeafEntriesMax);
  LeafPlan plan{};
  if (count > 1) {
    plan.prefix_bytes = list.item(begin + 1).shared;
    for (size_t i = begin + 2; i < end; ++i)
      plan.prefix_bytes = std::min(plan.prefix_bytes, list.item(i).shared);
  }
  // Those to come are probably as different from these as these are from those of a leaf before.
  if (fill == LeafFill::kRightEdge)
    for (size_t i = 1; i <= begin; ++i)
      plan.prefix_bytes = std::min(plan.prefix_bytes, list.item(i).shared);
  const size_t per_group = fill == LeafFill::kPacked ? kGroupEntriesMax : kGroupEntriesWithRoom;
  plan.groups =
      static_cast<uint32_t>(std::min((count + per_group - 1) / per_group, kLeafGroupsMax));
  const uint32_t spare = fill == LeafFill::kPacked ? 0 : plan.groups / 2;
  plan.group_capacity = std::min<uint32_t>((plan.groups + spare + 3) & ~uint32_t{3},
                                           static_cast<uint32_t>(kLeafGroupsMax));
  plan.used = LeafHeaderBytes(plan.group_capacity) + list.base().size() + plan.prefix_bytes +
              list.dictionary().bytes;
  for (uint32_t g = 0; g < plan.groups; ++g) {
    const size_t group_begin = begin + GroupBegin(g, plan.groups, count);
    const size_t group_end = begin + GroupBegin(g + 1, plan.groups, count);
    plan.used += FullBytes(list, list.item(group_begin), plan.prefix_bytes);
    for (size_t i = group_begin + 1; i < group_end; ++i)
      plan.used += DeltaBytes(list, list.item(i), plan.prefix_bytes);
  }
  return plan;
}

bool FitsLeaf(const EntryList& list, size_t begin, size_t end, LeafFill fill, LeafPlan* plan) {
  // At the right edge a leaf that is full of groups would soon be so again: it is time for the
  // next.
  constexpr size_t kGroupEntriesAtEdge{9};
  const size_t per_group = fill == LeafFill::kPacked      ? kGroupEntriesMax
                           : fill == LeafFill::kRightEdge ? kGroupEntriesAtEdge
                                                          : kGroupEntriesWithRoom;
  if (end - begin > per_group * kLeafGroupsMax) return false;
  *plan = PlanLeaf(list, begin, end, fill);
  return end - begin == 1 || plan->used <= LeafBytesLimit(list.base().size() + plan->prefix_bytes);
}

// Groups get as even a share of the entries as can be. The first entry of a group stands whole
// behind the prefix and without a word, so that a search can begin there. PlanLeaf has added up the
// same bytes: the assert at the end is where the two meet.
void WriteLeaf(const EntryList& list, size_t begin, size_t end, const LeafPlan& plan, Leaf* leaf) {
  const size_t count = end - begin;
  leaf->large_units = 0;
  leaf->used = static_cast<uint32_t>(plan.used);
  leaf->prefix_bytes = static_cast<uint32_t>(list.base().size()) + plan.prefix_bytes;
  leaf->count = static_cast<uint16_t>(count);
  leaf->groups = static_cast<uint8_t>(plan.groups);
  leaf->group_capacity = static_cast<uint8_t>(plan.group_capacity);
  leaf->large_count = 0;
  const Dictionary dictionary = list.dictionary();
  leaf->dictionary_bytes = static_cast<uint16_t>(dictionary.bytes);
  for (uint32_t g = plan.groups; g < plan.group_capacity; ++g) {
    leaf->heads()[g] = 0;
    leaf->offsets()[g] = 0;
    leaf->counts()[g] = 0;
  }
  uint8_t* p = leaf->prefix();
  if (!list.base().empty()) std::memcpy(p, list.base().data(), list.base().size());
  p += list.base().size();
  if (plan.prefix_bytes > 0) std::memcpy(p, list.key(begin).data(), plan.prefix_bytes);
  p += plan.prefix_bytes;
  if (dictionary.bytes > 0) std::memcpy(p, dictionary.words, dictionary.bytes);

  p = leaf->entries();
  for (uint32_t g = 0; g < plan.groups; ++g) {
    const size_t group_begin = begin + GroupBegin(g, plan.groups, count);
    const size_t group_end = begin + GroupBegin(g + 1, plan.groups, count);
    leaf->offsets()[g] = static_cast<uint16_t>(p - leaf->entries());
    leaf->counts()[g] = static_cast<uint8_t>(group_end - group_begin);
    const std::string_view first = list.key(group_begin).substr(plan.prefix_bytes);
    leaf->heads()[g] = Head(Bytes(first), first.size());
    for (size_t i = group_begin; i < group_end; ++i) {
      const EntryList::Item& item = list.item(i);
      const uint32_t shared = i == group_begin ? plan.prefix_bytes : item.shared;
      const SuffixCode code = i == group_begin ? SuffixCode{} : item.code;
      const std::string_view suffix = list.key(i).substr(shared);
      p = WriteEntryLengths(p, shared - plan.prefix_bytes,
                            dictionary.StoredBytes(suffix.size(), code), item.value.shape());
      p = WriteEntryValue(dictionary.Write(p, code, suffix), item.value);
      if (item.value.large != nullptr) {
        ++leaf->large_count;
        leaf->large_units += item.value.large->capacity / 64;
      }
    }
  }
  CELLAR_ASSERT(p == leaf->bytes() + plan.used);
}

void CutIntoLeaves(const EntryList& list, LeafFill fill, std::vector<LeafCut>* cuts) {
  cuts->clear();
  if (list.size() > 0) Cut(list, fill, 0, list.size(), cuts);
}

}  // namespace cellar::btree_internal
