// Dictionary of a leaf: words that many of its suffixes begin with, each stored once.
//
//   | 0 | 0 | bytes u8 | word ... | bytes u8 | word ... |    each entry at an even offset, ascending
//
// The code of a word is its offset / 2, so that it fits a byte and finds the word without a table;
// code 0 is the empty word. In a leaf with a dictionary every suffix (entry.h) is stored as
//
//   | code u8 | what follows the word in the suffix |
//
// The rows of a table mostly have the same columns: the name of a column, what ends it and the
// first bytes of the timestamp, which seldom differ, thus cost one byte. The tree knows nothing of
// that; it takes any beginnings that are frequent (dictionary_choice.h). The first entry of a group
// always has code 0: whole groups are compared, copied and split without the dictionary. A word
// that fits need not be used: which code stands there is the writer's choice.
#pragma once

#include <algorithm>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/copy_bytes.h"
#include "base/equal_bytes.h"
#include "base/inline.h"
#include "btree/nodes/bytes.h"
#include "btree/nodes/entry.h"

namespace cellar::btree_internal {

inline constexpr size_t kWordBytesMax{32};  // readers copy so many
inline constexpr size_t kDictionaryBytesMax{512};
// Before the first word.
inline constexpr size_t kDictionaryStartBytes{2};

// Bytes of a word of `bytes` in a dictionary.
constexpr size_t WordRoom(size_t bytes) { return (bytes + 2) & ~size_t{1}; }

// What a suffix is made of: a word of the dictionary, which may be empty, and what stands in the
// entry itself.
struct Suffix {
  std::string_view word;
  std::string_view own;

  size_t size() const { return word.size() + own.size(); }
  // REQUIRES: i < size().
  uint8_t operator[](size_t i) const {
    return static_cast<uint8_t>(i < word.size() ? word[i] : own[i - word.size()]);
  }
  void AppendTo(std::string* text) const { text->append(word).append(own); }
  // Writes it to `to`, as CopyShort does: which must have room for kShortCopyBytes more.
  // REQUIRES: both parts stand before `readable_end`.
  void CopyTo(uint8_t* to, const uint8_t* readable_end) const {
    if (!word.empty()) CopyShort(to, Bytes(word), word.size(), readable_end);
    CopyShort(to + word.size(), Bytes(own), own.size(), readable_end);
  }
  CELLAR_INLINE bool BeginsWith(std::string_view text) const {
    if (text.size() <= word.size()) return word.starts_with(text);
    return text.starts_with(word) && own.starts_with(text.substr(word.size()));
  }
  // Whether it is `text` from byte `from` on. REQUIRES: from <= size().
  CELLAR_INLINE bool EndsWith(size_t from, std::string_view text) const {
    if (text.size() + from != size()) return false;
    const size_t of_word = word.size() - std::min(from, word.size());
    const size_t of_own = text.size() - of_word;
    return EqualBytes(Behind(word, word.size() - of_word), {text.data(), of_word}) &&
           EqualBytes(Behind(own, own.size() - of_own), Behind(text, of_word));
  }
  // The longest prefix in common with a text.
  CELLAR_INLINE size_t SharedWith(std::string_view text) const {
    const size_t shared = word.empty() ? 0 : CommonPrefix(word, text);
    return shared < word.size() ? shared : shared + CommonPrefix(own, text.substr(shared));
  }
};

// The word that a suffix is written with, and its size.
struct SuffixCode {
  uint8_t code{0};
  uint8_t word_bytes{0};
};

struct Dictionary;
// Dictionary::Find. By value, so that a caller's dictionary stays in registers.
SuffixCode FindWord(Dictionary dictionary, std::string_view text);

// View of a leaf's dictionary. Without one (bytes == 0) suffixes are stored as they are.
struct Dictionary {
  const uint8_t* words{nullptr};
  uint32_t bytes{0};

  // Bytes of the code: 1 or 0.
  uint32_t code_bytes() const { return static_cast<uint32_t>(bytes > 0); }
  // REQUIRES: bytes > 0; a code of this dictionary.
  std::string_view word(uint8_t code) const {
    const uint8_t* const at = words + size_t{2} * code;
    return View(at + 1, *at);
  }
  Suffix Decode(const Entry& entry) const {
    if (bytes == 0) return {{}, View(entry.suffix, entry.suffix_bytes)};
    return {word(entry.suffix[0]), View(entry.suffix + 1, entry.suffix_bytes - 1)};
  }
  CELLAR_INLINE SuffixCode CodeOf(const Entry& entry) const {
    if (bytes == 0) return {};
    return {entry.suffix[0], words[size_t{2} * entry.suffix[0]]};
  }
  // What the suffix begins with: its word, or else what it has of its own. REQUIRES: the suffix is
  // not empty; bytes > 0.
  const uint8_t* Start(const Entry& entry) const {
    const uint8_t code = entry.suffix[0];
    return code == 0 ? entry.suffix + 1 : words + size_t{2} * code + 1;
  }
  // The byte there.
  uint8_t FirstByte(const Entry& entry) const {
    const uint8_t code = entry.suffix[0];
    return code == 0 ? entry.suffix[1] : words[size_t{2} * code + 1];
  }
  uint32_t StartBytes(const Entry& entry) const {
    const uint8_t code = entry.suffix[0];
    return code == 0 ? entry.suffix_bytes - 1 : words[size_t{2} * code];
  }
  // The whole suffix of the first entry of a group.
  std::string_view DecodeFirst(const Entry& entry) const {
    return View(entry.suffix + code_bytes(), entry.suffix_bytes - code_bytes());
  }
  // A word that `text` begins with; the empty one if there is none. O(words).
  SuffixCode Find(std::string_view text) const { return FindWord(*this, text); }
  // Bytes that a suffix of `bytes` takes in an entry.
  uint32_t StoredBytes(size_t suffix_bytes, SuffixCode code) const {
    return static_cast<uint32_t>(code_bytes() + suffix_bytes - code.word_bytes);
  }
  // Writes a suffix; returns its end.
  uint8_t* Write(uint8_t* to, SuffixCode code, std::string_view suffix) const {
    if (bytes > 0) *to++ = code.code;
    const size_t rest_bytes = suffix.size() - code.word_bytes;
    CopyBytes(to, Bytes(suffix) + code.word_bytes, rest_bytes);
    return to + rest_bytes;
  }
};

// Writes the suffix of an entry without "more lengths", by copies of 16 bytes, and returns its end.
// `words` is null where there is no dictionary. REQUIRES: room for 32 bytes behind; as many may be
// read from the suffix on: the dictionary is before the entries, so behind a word too.
CELLAR_INLINE uint8_t* CopyShortSuffix(uint8_t* to, const Entry& entry, const uint8_t* words) {
  const uint8_t* own = entry.suffix;
  size_t own_bytes = entry.suffix_bytes;
  if (words != nullptr) {
    const uint8_t* const word = words + size_t{2} * *own++;
    const size_t word_bytes = *word;
    std::memcpy(to, word + 1, 16);
    if (word_bytes > 16) [[unlikely]]
      std::memcpy(to + 16, word + 17, 16);
    to += word_bytes;
    --own_bytes;
  }
  std::memcpy(to, own, 16);
  if (own_bytes > 16) [[unlikely]]
    std::memcpy(to + 16, own + 16, 16);
  return to + own_bytes;
}

// How a suffix is written again without its first bytes: the code, then a part of the word that it
// had, then what it has of its own but for the first `own_dropped` bytes.
struct SuffixCut {
  uint8_t code{0};
  uint16_t literal_at{0};  // in the dictionary
  uint16_t literal_bytes{0};
  uint32_t own_dropped{0};
};
// CutSuffix where a part of the word is left, or there was none: looks for another one.
SuffixCut CutIntoWord(Dictionary dictionary, Suffix suffix, uint32_t dropped);
// REQUIRES: dropped <= suffix.size().
inline SuffixCut CutSuffix(const Dictionary& dictionary, const Suffix& suffix, uint32_t dropped) {
  if (suffix.word.empty() || dropped < suffix.word.size()) [[unlikely]]
    return CutIntoWord(dictionary, suffix, dropped);
  SuffixCut cut;
  cut.own_dropped = dropped - static_cast<uint32_t>(suffix.word.size());
  return cut;
}

// Whether these bytes are a dictionary: words that end inside of it, ascending, and nothing else.
// *codes := the codes that it has. O(bytes).
using CodeSet = std::bitset<kDictionaryBytesMax / 2>;
bool CheckDictionary(std::string_view bytes, CodeSet* codes);

}  // namespace cellar::btree_internal
