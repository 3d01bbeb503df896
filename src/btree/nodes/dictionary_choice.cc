// Choice of the words of a dictionary. See dictionary_choice.h.
//
// In sorted order suffixes that begin with the same word are neighbours. So a stretch of them with
// a common prefix either gets that prefix as its word, or the parts that it falls into where the
// prefix ends get longer words of their own, whichever saves more: one pass down and up over the
// tree of these stretches, which is at most kWordBytesMax deep. No word is the beginning of
// another.
#include "btree/nodes/dictionary_choice.h"

#include <algorithm>
#include <bit>

#include "base/copy_bytes.h"
#include "btree/nodes/bytes.h"

namespace cellar::btree_internal {
namespace {

constexpr size_t kHeadsBytes{2 * sizeof(uint64_t)};

uint64_t HeadOf8(std::string_view text) {
  uint64_t head = 0;
  CopyBytes(&head, text.data(), std::min(text.size(), sizeof(head)));
  return __builtin_bswap64(head);
}

}  // namespace

void DictionaryChoice::Add(std::string_view suffix) {
  const uint64_t behind_head = suffix.size() > 8 ? HeadOf8(Behind(suffix, 8)) : 0;
  suffixes_.push_back({HeadOf8(suffix), behind_head, static_cast<uint32_t>(suffix.size()),
                       static_cast<uint32_t>(texts_.size())});
  texts_.push_back(suffix);
}

bool DictionaryChoice::IsBelow(const Sorted& a, const Sorted& b) const {
  if (a.head != b.head) return a.head < b.head;
  if (a.behind_head != b.behind_head) return a.behind_head < b.behind_head;
  // The end of a text counts as zeros in its heads.
  if (std::min(a.bytes, b.bytes) <= kHeadsBytes) return a.bytes < b.bytes;
  return texts_[a.index] < texts_[b.index];
}

size_t DictionaryChoice::SharedBytes(const Sorted& a, const Sorted& b) const {
  const size_t bytes_max = std::min(a.bytes, b.bytes);
  size_t shared = static_cast<size_t>(std::countl_zero(a.head ^ b.head)) / 8;
  if (shared == sizeof(a.head) && bytes_max > shared) {
    shared += static_cast<size_t>(std::countl_zero(a.behind_head ^ b.behind_head)) / 8;
    if (shared == kHeadsBytes && bytes_max > shared)
      return CommonPrefix(texts_[a.index], texts_[b.index]);
  }
  return std::min(shared, bytes_max);
}

// Appends the best words for the stretch [begin, end) to words_; returns what they save.
int64_t DictionaryChoice::ChooseIn(size_t begin, size_t end) {
  if (end - begin == 1) return 0;
  size_t shared = kWordBytesMax;
  for (size_t i = begin; i + 1 < end; ++i) shared = std::min<size_t>(shared, shared_[i]);
  const Word own{begin, end, shared,
                 static_cast<int64_t>((end - begin) * shared) -
                     leaves_ * static_cast<int64_t>(WordRoom(shared))};
  if (shared == kWordBytesMax) return Take(words_.size(), own, 0);
  const size_t words_before = words_.size();
  int64_t saved_bytes = 0;
  for (size_t part = begin; part < end;) {
    size_t part_end = part + 1;
    while (part_end < end && shared_[part_end - 1] > shared) ++part_end;
    saved_bytes += ChooseIn(part, part_end);
    part = part_end;
  }
  return Take(words_before, own, saved_bytes);
}

// The words from the `first`-th on give way to a single one if that saves more.
int64_t DictionaryChoice::Take(size_t first, const Word& word, int64_t saved_bytes) {
  if (word.saved_bytes <= saved_bytes) return saved_bytes;
  words_.resize(first);
  words_.push_back(word);
  return word.saved_bytes;
}

// Sorted, the suffixes that could share a word stand side by side, so that the shared lengths of
// neighbours are all that ChooseIn needs. Codes are assigned last: they say where a word stands in
// the finished dictionary.
void DictionaryChoice::Choose(size_t leaves, size_t entries_bytes, std::string* dictionary,
                              std::vector<SuffixCode>* codes) {
  constexpr size_t kEntriesMin{16};
  dictionary->clear();
  if (suffixes_.size() < kEntriesMin) return;
  leaves_ = static_cast<int64_t>(leaves);
  std::sort(suffixes_.begin(), suffixes_.end(),
            [this](const Sorted& a, const Sorted& b) { return IsBelow(a, b); });
  shared_.clear();
  for (size_t i = 0; i + 1 < suffixes_.size(); ++i)
    shared_.push_back(
        static_cast<uint8_t>(std::min(SharedBytes(suffixes_[i], suffixes_[i + 1]), kWordBytesMax)));
  words_.clear();
  (void)ChooseIn(0, suffixes_.size());

  // Those that save most, as far as there are codes; then in their order again.
  const auto saves_more = [](const Word& a, const Word& b) {
    return a.saved_bytes > b.saved_bytes;
  };
  std::stable_sort(words_.begin(), words_.end(), saves_more);
  size_t bytes = kDictionaryStartBytes;
  int64_t saved_bytes = -static_cast<int64_t>(suffixes_.size() + leaves * bytes);
  size_t count = 0;
  for (; count < words_.size() && bytes + WordRoom(words_[count].bytes) <= kDictionaryBytesMax;
       ++count) {
    bytes += WordRoom(words_[count].bytes);
    saved_bytes += words_[count].saved_bytes;
  }
  if (!IsWorthReading(saved_bytes, entries_bytes)) return;
  words_.resize(count);
  std::sort(words_.begin(), words_.end(),
            [](const Word& a, const Word& b) { return a.begin < b.begin; });

  codes->assign(suffixes_.size(), {});
  dictionary->assign(kDictionaryStartBytes, '\0');
  for (const Word& word : words_) {
    const SuffixCode code{static_cast<uint8_t>(dictionary->size() / 2),
                          static_cast<uint8_t>(word.bytes)};
    for (size_t i = word.begin; i < word.end; ++i) (*codes)[suffixes_[i].index] = code;
    dictionary->push_back(static_cast<char>(word.bytes));
    dictionary->append(Text(word));
    if (dictionary->size() % 2 != 0) dictionary->push_back('\0');
  }
}

}  // namespace cellar::btree_internal
