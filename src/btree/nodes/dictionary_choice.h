// Which words a new leaf's dictionary gets: those that save most bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "btree/nodes/dictionary.h"

namespace cellar::btree_internal {

// No word has the last bytes of a key, which tell it from its like. In a timestamp of microseconds,
// as cells end with, the bytes before these last 12 days: the words that fit the cells of now fit
// those that come.
inline constexpr size_t kWordlessBytes{5};

// Whether a dictionary that saves so many of the bytes that entries take without it is worth the
// time it takes to read words: an eighth.
constexpr bool IsWorthReading(int64_t saved_bytes, size_t entries_bytes) {
  return saved_bytes * 8 >= static_cast<int64_t>(entries_bytes);
}

// Chooses the words for entries whose suffixes are given one by one. Keeps its memory from one
// choice to the next.
class DictionaryChoice {
 public:
  void Reset() {
    texts_.clear();
    suffixes_.clear();
  }
  void Add(std::string_view suffix);

  // *dictionary := the one (dictionary.h) for the suffixes added, of which each stands in one of
  // `leaves` leaves, that all get it; codes[i] := the i-th one's. Empty, and nothing is done to the
  // codes, if it would not be worth reading; `entries_bytes` is what the entries take without.
  // O(n log n), some 300 instructions a suffix.
  void Choose(size_t leaves, size_t entries_bytes, std::string* dictionary,
              std::vector<SuffixCode>* codes);

 private:
  // A suffix by its first 16 bytes, as numbers that compare as they do.
  struct Sorted {
    uint64_t head;
    uint64_t behind_head;
    uint32_t bytes;
    uint32_t index;  // in texts_
  };
  // A word that the suffixes [begin, end) begin with, and how many bytes it saves.
  struct Word {
    size_t begin;
    size_t end;
    size_t bytes;
    int64_t saved_bytes;
  };

  bool IsBelow(const Sorted& a, const Sorted& b) const;
  size_t SharedBytes(const Sorted& a, const Sorted& b) const;
  int64_t ChooseIn(size_t begin, size_t end);
  int64_t Take(size_t first, const Word& word, int64_t saved_bytes);
  std::string_view Text(const Word& word) const {
    return texts_[suffixes_[word.begin].index].substr(0, word.bytes);
  }

  std::vector<std::string_view> texts_;
  std::vector<Sorted> suffixes_;
  std::vector<uint8_t> shared_;  // of suffix i with the next one
  std::vector<Word> words_;
  int64_t leaves_{1};
};

}  // namespace cellar::btree_internal
