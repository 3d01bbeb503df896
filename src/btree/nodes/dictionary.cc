// Looking for words, and dictionaries of doubtful origin. See dictionary.h.
#include "btree/nodes/dictionary.h"

#include <algorithm>

namespace cellar::btree_internal {

// Words that begin with the same byte are few; those that begin with a smaller one are passed by.
SuffixCode FindWord(Dictionary dictionary, std::string_view text) {
  if (text.empty()) return {};
  const auto first = static_cast<uint8_t>(text[0]);
  const uint8_t* const words = dictionary.words;
  const uint8_t* word = words + kDictionaryStartBytes;
  const uint8_t* const end = words + dictionary.bytes;
  while (word < end && word[1] < first) word += WordRoom(*word);
  for (; word < end && word[1] == first; word += WordRoom(*word))
    if (HasPrefix(text, word + 1, *word)) return {static_cast<uint8_t>((word - words) / 2), *word};
  return {};
}

SuffixCut CutIntoWord(Dictionary dictionary, Suffix suffix, uint32_t dropped) {
  const size_t of_word = std::min<size_t>(dropped, suffix.word.size());
  const std::string_view word_left = suffix.word.substr(of_word);
  SuffixCut cut;
  cut.own_dropped = static_cast<uint32_t>(dropped - of_word);
  // What is left of a word, or of a whole key, may begin with another word.
  char start[kWordBytesMax];
  size_t start_bytes = word_left.copy(start, sizeof(start));
  const std::string_view own_left = suffix.own.substr(cut.own_dropped);
  start_bytes += own_left.copy(start + start_bytes, sizeof(start) - start_bytes);
  const SuffixCode found = dictionary.Find({start, start_bytes});
  cut.code = found.code;
  const size_t of_literal = std::min<size_t>(found.word_bytes, word_left.size());
  cut.own_dropped += static_cast<uint32_t>(found.word_bytes - of_literal);
  if (of_literal < word_left.size()) {
    cut.literal_at = static_cast<uint16_t>(Bytes(word_left) + of_literal - dictionary.words);
    cut.literal_bytes = static_cast<uint16_t>(word_left.size() - of_literal);
  }
  return cut;
}

bool CheckDictionary(std::string_view bytes, CodeSet* codes) {
  codes->reset();
  if (bytes.size() < kDictionaryStartBytes || bytes.size() > kDictionaryBytesMax || bytes[0] != 0 ||
      bytes[1] != 0) {
    return false;
  }
  codes->set(0);
  std::string_view before;
  for (size_t at = kDictionaryStartBytes; at < bytes.size();) {
    const auto word_bytes = static_cast<uint8_t>(bytes[at]);
    const size_t end = at + WordRoom(word_bytes);
    if (word_bytes == 0 || word_bytes > kWordBytesMax || end > bytes.size()) return false;
    const std::string_view word = bytes.substr(at + 1, word_bytes);
    if (word <= before) return false;
    if (at + 1 + word_bytes < end && bytes[end - 1] != 0) return false;
    codes->set(at / 2);
    before = word;
    at = end;
  }
  return true;
}

}  // namespace cellar::btree_internal
