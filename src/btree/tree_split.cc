// What becomes of a leaf that is full: two leaves, or one built anew with other words, or the last
// one of a tree that is filled in ascending order. See tree.h.
#include <algorithm>
#include <bitset>
#include <cstring>
#include <string>

#include "base/assert.h"
#include "btree/nodes/dictionary_choice.h"
#include "btree/tree.h"

namespace cellar::btree_internal {
namespace {

// A leaf of fewer groups is not split by copying them.
constexpr uint32_t kGroupsToSplit{8};

// Of bytes; it may be full of groups before.
bool IsFull(const Leaf* leaf) { return leaf->used >= kLeafBytesMax / 4 * 3; }

// What a walk over a full leaf tells.
struct LeafSurvey {
  // No key's lengths need more than the u16: then a longer prefix changes nothing but that.
  bool has_short_keys{true};
  // The leaf would probably be smaller with other words in its dictionary: a quarter of its
  // suffixes have none, and begin with bytes that are met again. A guess, at a fraction of what it
  // costs to choose words.
  bool wants_other_words{false};
  // Two thirds of its suffixes have no word, and the dictionary saves too little to be read.
  bool wants_no_words{false};
};

// Guesses without choosing a word: the first three bytes of each suffix that has none are hashed
// into a bitset, and a suffix whose bit is set already counts as repeated. Where two hashes meet by
// chance the guess is too high.
LeafSurvey SurveyLeaf(const Leaf* leaf) {
  constexpr uint32_t kSampledMask{0xffffff};
  constexpr uint32_t kSampledBytes{3};  // of those that may be in a word
  constexpr uint32_t kBits{2048};
  std::bitset<kBits> seen;
  uint32_t repeated = 0;
  uint32_t wordless = 0;
  uint32_t words_bytes = 0;  // that suffixes would have without words
  LeafSurvey survey;
  const Dictionary dictionary = leaf->dictionary();
  const uint32_t code_bytes = dictionary.code_bytes();
  const uint8_t* const end = leaf->entries_end();
  Entry entry;
  for (const uint8_t* p = leaf->entries(); p < end; p = entry.end) {
    if (!ParseShortEntry(p, &entry)) [[unlikely]] {
      entry = ParseLongEntry(p);
      if (entry.shared >= kSharedEscape || entry.suffix_bytes >= kSuffixEscape)
        survey.has_short_keys = false;
    }
    if (code_bytes > 0 && entry.suffix[0] != 0) {
      words_bytes += dictionary.CodeOf(entry).word_bytes;
      continue;
    }
    ++wordless;
    if (entry.suffix_bytes < code_bytes + kSampledBytes + kWordlessBytes) continue;
    const uint32_t start = LoadLittleEndian<uint32_t>(entry.suffix + code_bytes) & kSampledMask;
    const size_t bit = start * uint32_t{0x9E3779B1} / (UINT32_MAX / kBits + 1);  // Knuth's hash
    repeated += static_cast<uint32_t>(seen[bit]);
    seen.set(bit);
  }
  survey.wants_other_words = repeated * 4 > leaf->count;
  if (code_bytes > 0 && (wordless - leaf->groups) * 3 > leaf->count * 2u) {
    const int64_t saved_bytes = int64_t{words_bytes} - leaf->count - leaf->dictionary_bytes;
    survey.wants_no_words =
        !IsWorthReading(saved_bytes, leaf->entries_bytes() + words_bytes - leaf->count);
  }
  return survey;
}

// The last key of `group`, behind the prefix.
std::string_view LastOfGroup(const Leaf* leaf, uint32_t group, RebuiltKey* scratch) {
  (void)scratch->TakeInGroup(leaf, group, leaf->counts()[group] - 1u);
  return scratch->view();
}

// Copies a group to `to`, without the first `more` bytes of its keys; returns the copy's end.
uint8_t* CopyGroup(const Leaf* leaf, uint32_t group, size_t more, uint8_t* to) {
  const uint8_t* const from = leaf->entries() + leaf->offsets()[group];
  const uint8_t* const end = leaf->group_end(group);
  Entry entry;
  ParseEntry(from, &entry);
  // The first one has all of its key in the suffix; the others share what goes with it.
  const uint8_t* const key = entry.suffix + leaf->dictionary().code_bytes();
  const auto before_bytes = static_cast<size_t>(key - from);
  std::memcpy(to, from, before_bytes);
  StoreLittleEndian(to, static_cast<uint16_t>(LoadLittleEndian<uint16_t>(from) - (more << 6)));
  uint8_t* p = to + before_bytes;
  const auto rest_bytes = static_cast<size_t>(end - key) - more;
  std::memcpy(p, key + more, rest_bytes);
  uint8_t* const copy_end = p + rest_bytes;
  if (more == 0) return copy_end;
  for (p += entry.end - key - static_cast<std::ptrdiff_t>(more); p < copy_end;) {
    ParseEntry(p, &entry);
    StoreLittleEndian(p, static_cast<uint16_t>(LoadLittleEndian<uint16_t>(p) - more));
    p += entry.end - p;
  }
  return copy_end;
}

}  // namespace

bool Tree::InsertIntoFull(Path* path, Leaf* leaf, std::string_view key, const ValueRef& value,
                          bool is_last) {
  const LeafSurvey survey = SurveyLeaf(leaf);
  if (IsFull(leaf) && survey.wants_other_words && MayLookForWords()) {
    const bool had_words = leaf->dictionary_bytes > 0;
    InsertByRebuild(path, leaf, key, value, LeafWords::kChosen);
    const bool has_words = scratch().entries.dictionary().bytes > 0;
    constexpr uint32_t kWishesMax{64};
    wishes_granted_one_in_ =
        had_words || has_words ? 1 : std::min(wishes_granted_one_in_ * 2, kWishesMax);
    return true;
  }
  if (IsFull(leaf) && survey.wants_no_words) {
    InsertByRebuild(path, leaf, key, value, LeafWords::kNone);
    return true;
  }
  if (is_last) {
    AppendNewLeaf(path, leaf, key, value);
    return true;
  }
  if (survey.has_short_keys && SplitLeaf(path, leaf)) return false;
  InsertByRebuild(path, leaf, key, value, LeafWords::kKept);
  return true;
}

bool Tree::MayLookForWords() {
  if (++wishes_ < wishes_granted_one_in_) return false;
  wishes_ = 0;
  return true;
}

// Groups begin with full keys, so whole groups can be copied; only what a half's keys have in
// common goes from them into its prefix. Both halves keep the dictionary.
bool Tree::SplitLeaf(Path* path, Leaf* leaf) {
  if (content_.height == 0 || leaf->groups < kGroupsToSplit || leaf->large_count > 0 ||
      (!IsFull(leaf) && leaf->groups < kLeafGroupsMax) || leaf->prefix_bytes > kLongPrefixBytes ||
      IsRightEdge(*path)) {
    return false;
  }
  uint32_t middle = 1;
  while (middle + 1u < leaf->groups && leaf->offsets()[middle] < leaf->entries_bytes() / 2)
    ++middle;
  // The separator is the shortest text above the last key of the left half.
  std::string_view last = LastOfGroup(leaf, middle - 1, &scratch().key);
  const std::string_view first = GroupFirst(leaf, middle);
  std::string separator(View(leaf->prefix(), leaf->prefix_bytes));
  separator += first.substr(0, CommonPrefix(last, first) + 1);

  const uint32_t level = content_.height - 1;
  Leaf* const left = CopyGroups(leaf, 0, middle, CommonPrefix(GroupFirst(leaf, 0), last));
  last = LastOfGroup(leaf, leaf->groups - 1u, &scratch().key);
  Leaf* const right = CopyGroups(leaf, middle, leaf->groups, CommonPrefix(first, last));
  std::vector<NewChild>& halves = scratch().new_leaves;
  halves.clear();
  halves.push_back({left, left->units(), {}});
  halves.push_back({right, right->units(), std::move(separator)});
  ReplaceChildren(path, level, path->index[level], 1, halves);
  epochs_.Retire(leaf);
  return true;
}

// A leaf of the groups [first, end) of `leaf`, with a prefix that is longer by `more`: all of these
// keys have that much in common. REQUIRES: no key's lengths stand in "more lengths" (entry.h), no
// large values.
Leaf* Tree::CopyGroups(const Leaf* leaf, uint32_t first, uint32_t end, size_t more) {
  const uint32_t groups = end - first;
  const uint8_t* const from = leaf->entries() + leaf->offsets()[first];
  const auto entries_bytes = static_cast<size_t>(leaf->group_end(end - 1) - from);
  const size_t group_capacity =
      std::min(kLeafGroupsMax, (groups + kGroupRoomStep) / kGroupRoomStep * kGroupRoomStep);
  const size_t prefix_bytes = leaf->prefix_bytes + more;
  const size_t used = LeafHeaderBytes(group_capacity) + prefix_bytes + leaf->dictionary_bytes +
                      entries_bytes - more * groups;
  Leaf* const copy = epochs_.NewLeaf(used);
  copy->large_units = 0;
  copy->used = static_cast<uint32_t>(used);
  copy->prefix_bytes = static_cast<uint32_t>(prefix_bytes);
  copy->groups = static_cast<uint8_t>(groups);
  copy->group_capacity = static_cast<uint8_t>(group_capacity);
  copy->large_count = 0;
  copy->dictionary_bytes = leaf->dictionary_bytes;
  std::memset(copy->heads() + groups, 0, (group_capacity - groups) * sizeof(uint32_t));
  std::memcpy(copy->prefix(), leaf->prefix(), leaf->prefix_bytes);
  std::memcpy(copy->prefix() + leaf->prefix_bytes, GroupFirst(leaf, first).data(), more);
  if (leaf->dictionary_bytes > 0)
    std::memcpy(copy->prefix() + prefix_bytes, leaf->dictionary().words, leaf->dictionary_bytes);
  uint32_t count = 0;
  uint8_t* to = copy->entries();
  for (uint32_t g = 0; g < groups; ++g) {
    copy->offsets()[g] = static_cast<uint16_t>(to - copy->entries());
    copy->counts()[g] = leaf->counts()[first + g];
    count += copy->counts()[g];
    to = CopyGroup(leaf, first + g, more, to);
    const std::string_view key = GroupFirst(copy, g);
    copy->heads()[g] = Head(Bytes(key), key.size());
  }
  copy->count = static_cast<uint16_t>(count);
  CELLAR_ASSERT(to == copy->entries_end());
  return copy;
}

void Tree::InsertByRebuild(Path* path, Leaf* leaf, std::string_view key, const ValueRef& value,
                           LeafWords words) {
  const size_t base_bytes = CommonPrefix(View(leaf->prefix(), leaf->prefix_bytes), key);
  scratch().entries.Reset(key.substr(0, base_bytes));
  scratch().entries.AppendLeaf(leaf);
  const size_t i = scratch().entries.LowerBound(key);
  scratch().entries.Insert(i, key, value);
  const bool appending = i + 32 >= scratch().entries.size() && IsRightEdge(*path);
  ReplaceLeaves(path, content_.height > 0 ? path->index[content_.height - 1] : 0, 1,
                appending ? LeafFill::kRightEdge : LeafFill::kWithRoom, words);
}

// The tree is being filled in ascending order: the full leaf stays full, and the next one begins
// with its words.
void Tree::AppendNewLeaf(Path* path, Leaf* leaf, std::string_view key, const ValueRef& value) {
  const std::string prefix(View(leaf->prefix(), leaf->prefix_bytes));
  const std::string first = prefix + std::string(GroupFirst(leaf, 0));
  const std::string last =
      prefix + std::string(LastOfGroup(leaf, leaf->groups - 1u, &scratch().key));
  const size_t shared = CommonPrefix(last, key);
  CELLAR_ASSERT(shared < key.size());

  // What a leaf's first key shares with this one, its own ones will probably share with each other.
  scratch().entries.Reset(key.substr(0, CommonPrefix(first, key)));
  scratch().entries.Append(key, value);
  scratch().entries.UseWords(leaf->dictionary());
  BuildLeaves(LeafFill::kWithRoom, LeafWords::kKept, &scratch().new_leaves);
  scratch().new_leaves[0].separator = key.substr(0, shared + 1);
  scratch().new_leaves.insert(scratch().new_leaves.begin(), {leaf, leaf->units(), {}});
  if (content_.height == 0) {
    scratch().children.Reset({});
    for (const NewChild& child : scratch().new_leaves)
      scratch().children.Append(child.pointer, child.units, child.separator);
    std::vector<NewChild> roots;
    BuildInners(true, &roots);
    CELLAR_ASSERT(roots.size() == 1);
    content_.root = roots[0].pointer;
    content_.height = 1;
    return;
  }
  const uint32_t level = content_.height - 1;
  ReplaceChildren(path, level, path->index[level], 1, scratch().new_leaves);
}

}  // namespace cellar::btree_internal
