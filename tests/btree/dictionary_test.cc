// Dictionaries of leaves: the words chosen, the words found, bytes of doubtful origin.
#include "btree/nodes/dictionary.h"

#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "btree/nodes/dictionary_choice.h"

namespace dictionary_test {

using namespace std::string_view_literals;
using cellar::Random;
using cellar::btree_internal::CheckDictionary;
using cellar::btree_internal::CodeSet;
using cellar::btree_internal::CutSuffix;
using cellar::btree_internal::Dictionary;
using cellar::btree_internal::DictionaryChoice;
using cellar::btree_internal::kDictionaryBytesMax;
using cellar::btree_internal::kWordBytesMax;
using cellar::btree_internal::Suffix;
using cellar::btree_internal::SuffixCode;
using cellar::btree_internal::SuffixCut;
using cellar::btree_internal::WordRoom;

Dictionary View(const std::string& bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<uint32_t>(bytes.size())};
}

std::vector<std::string> Words(const std::string& dictionary) {
  std::vector<std::string> words;
  for (size_t at = 2; at < dictionary.size(); at += WordRoom(static_cast<uint8_t>(dictionary[at])))
    words.push_back(dictionary.substr(at + 1, static_cast<uint8_t>(dictionary[at])));
  return words;
}

struct Chosen {
  std::string dictionary;
  std::vector<SuffixCode> codes;
};

Chosen Choose(const std::vector<std::string>& suffixes, size_t leaves = 1) {
  Chosen chosen;
  DictionaryChoice choice;
  choice.Reset();
  size_t bytes = 0;
  for (const std::string& suffix : suffixes) {
    choice.Add(suffix);
    bytes += suffix.size() + 2;
  }
  choice.Choose(leaves, bytes, &chosen.dictionary, &chosen.codes);
  return chosen;
}

TEST_CASE("the words chosen are what the columns of rows begin with", "[dictionary]") {
  std::vector<std::string> suffixes;
  for (char row = 'a'; row < 'k'; ++row)
    for (const char* column : {"altitude", "heading", "speed", "squawk"})
      suffixes.push_back(std::string(column) + ":" + row + "xyz");
  const Chosen chosen = Choose(suffixes);
  CHECK(Words(chosen.dictionary) ==
        std::vector<std::string>{"altitude:", "heading:", "speed:", "squawk:"});
  for (size_t i = 0; i < suffixes.size(); ++i)
    CHECK(View(chosen.dictionary).word(chosen.codes[i].code) ==
          suffixes[i].substr(0, suffixes[i].find(':') + 1));
}

TEST_CASE("one word serves names that only begin alike", "[dictionary]") {
  std::vector<std::string> suffixes;
  for (int i = 0; i < 40; ++i)
    suffixes.push_back("sensor_" + std::to_string(i * 7919 % 100'000) + "xyz");
  CHECK(Words(Choose(suffixes).dictionary) == std::vector<std::string>{"sensor_"});
}

TEST_CASE("there is no dictionary where it would save little", "[dictionary]") {
  std::vector<std::string> suffixes;
  Random random(3);
  for (int i = 0; i < 200; ++i) {
    std::string suffix;
    for (int j = 0; j < 12; ++j) suffix += static_cast<char>(random.Below(256));
    suffixes.push_back(suffix);
  }
  CHECK(Choose(suffixes).dictionary.empty());
  CHECK(Choose(std::vector<std::string>(15, "always the same")).dictionary.empty());
  CHECK(!Choose(std::vector<std::string>(16, "always the same")).dictionary.empty());
  // What every leaf has to hold must be saved in every leaf.
  CHECK(Choose(std::vector<std::string>(16, "always the same"), 16).dictionary.empty());
}

TEST_CASE("random suffixes are what their words and the rest say, and take less", "[dictionary]") {
  Random random(7);
  for (int round = 0; round < 300; ++round) {
    const uint64_t alphabet = 1 + random.Below(4);
    const uint64_t bytes_max = 1 + random.Below(60);
    std::vector<std::string> suffixes;
    for (uint64_t n = random.Below(300); n > 0; --n) {
      std::string suffix;
      for (uint64_t j = random.Below(bytes_max); j > 0; --j)
        suffix += static_cast<char>(
            "\0a\xff"
            "z"[random.Below(alphabet)]);
      suffixes.push_back(suffix);
    }
    const Chosen chosen = Choose(suffixes);
    if (chosen.dictionary.empty()) continue;
    CodeSet codes;
    REQUIRE(CheckDictionary(chosen.dictionary, &codes));
    REQUIRE(chosen.dictionary.size() <= kDictionaryBytesMax);
    const Dictionary dictionary = View(chosen.dictionary);
    size_t bytes_before = 0, bytes_after = chosen.dictionary.size();
    for (size_t i = 0; i < suffixes.size(); ++i) {
      REQUIRE(codes[chosen.codes[i].code]);
      const std::string_view word = dictionary.word(chosen.codes[i].code);
      REQUIRE(word.size() == chosen.codes[i].word_bytes);
      REQUIRE(word.size() <= kWordBytesMax);
      REQUIRE(suffixes[i].starts_with(word));
      const SuffixCode found = dictionary.Find(suffixes[i]);
      REQUIRE(suffixes[i].starts_with(dictionary.word(found.code)));
      REQUIRE(found.word_bytes >= (word.empty() ? 0 : 1));
      bytes_before += suffixes[i].size();
      bytes_after += dictionary.StoredBytes(suffixes[i].size(), chosen.codes[i]);
    }
    CHECK(bytes_after < bytes_before);
  }
}

TEST_CASE("a suffix that is cut is what was left of it", "[dictionary]") {
  std::vector<std::string> suffixes;
  for (int i = 0; i < 20; ++i)
    for (const char* column : {"temperature", "ature", "re\xff", "pressure_outside_the_cabin"})
      suffixes.push_back(column + std::string(1, static_cast<char>(i)) + "abc");
  const Chosen chosen = Choose(suffixes);
  REQUIRE(Words(chosen.dictionary).size() == 4);
  const Dictionary dictionary = View(chosen.dictionary);
  for (size_t i = 0; i < suffixes.size(); ++i) {
    const std::string& whole = suffixes[i];
    for (const SuffixCode code : {chosen.codes[i], SuffixCode{}}) {
      const Suffix suffix{dictionary.word(code.code),
                          std::string_view(whole).substr(code.word_bytes)};
      for (uint32_t dropped = 0; dropped <= whole.size(); ++dropped) {
        const SuffixCut cut = CutSuffix(dictionary, suffix, dropped);
        std::string left(dictionary.word(cut.code));
        left += chosen.dictionary.substr(cut.literal_at, cut.literal_bytes);
        left += suffix.own.substr(cut.own_dropped);
        CHECK(left == whole.substr(dropped));
      }
    }
  }
}

TEST_CASE("a suffix of two pieces compares as the whole does", "[dictionary]") {
  const std::string whole = "heading\xff\1x";
  for (size_t at = 0; at <= whole.size(); ++at) {
    const std::string_view view(whole);
    const Suffix suffix{view.substr(0, at), view.substr(at)};
    CHECK(!suffix.EndsWith(0, view.substr(0, 7)));
    for (size_t n = 0; n <= whole.size(); ++n) {
      const std::string end = whole.substr(n);
      CHECK(suffix.EndsWith(n, end));
      CHECK(!suffix.EndsWith(n, end + "?"));
      for (size_t wrong = 0; wrong < end.size(); ++wrong) {
        std::string other = end;
        ++other[wrong];
        CHECK(!suffix.EndsWith(n, other));
      }
      CHECK(suffix.BeginsWith(view.substr(0, n)));
      CHECK(suffix.SharedWith(view.substr(0, n)) == n);
      CHECK(suffix.SharedWith(std::string(view.substr(0, n)) + "?") == n);
      CHECK(!suffix.BeginsWith(std::string(view.substr(0, n)) + "?"));
      if (n < whole.size()) CHECK(suffix[n] == static_cast<uint8_t>(whole[n]));
    }
  }
}

TEST_CASE("bytes that are no dictionary are told", "[dictionary]") {
  CodeSet codes;
  CHECK(CheckDictionary("\0\0"sv, &codes));
  CHECK(codes.count() == 1);
  CHECK(CheckDictionary("\0\0\1a\2bc\0"sv, &codes));
  CHECK((codes[0] && codes[1] && codes[2] && codes.count() == 3));
  CHECK(!CheckDictionary(""sv, &codes));
  CHECK(!CheckDictionary("\0"sv, &codes));
  CHECK(!CheckDictionary("\1\0"sv, &codes));
  CHECK(!CheckDictionary("\0\1"sv, &codes));
  CHECK(!CheckDictionary("\0\0\0\0"sv, &codes));    // an empty word
  CHECK(!CheckDictionary("\0\0\3a"sv, &codes));     // ends behind
  CHECK(!CheckDictionary("\0\0\2bc"sv, &codes));    // not padded
  CHECK(!CheckDictionary("\0\0\2bcx"sv, &codes));   // padded with something
  CHECK(!CheckDictionary("\0\0\1b\1a"sv, &codes));  // out of order
  CHECK(!CheckDictionary("\0\0\1a\1a"sv, &codes));  // twice
  CHECK(!CheckDictionary("\0\0\1a\1"sv, &codes));
  CHECK(!CheckDictionary("\0\0\x21" + std::string(kWordBytesMax + 1, 'a'), &codes));
  CHECK(!CheckDictionary(std::string(kDictionaryBytesMax + 2, '\0'), &codes));
}

}  // namespace dictionary_test
