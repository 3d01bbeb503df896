// Redis' glob syntax, example by example, against a slow recursive matcher, and against explosion.
#include "base/text/glob.h"

#include <catch2/catch.hpp>
#include <string>

#include "base/random.h"

namespace glob_test {

using namespace cellar;

TEST_CASE("Globs match as Redis' do", "[glob]") {
  struct Case {
    const char* pattern;
    const char* text;
    bool matches;
  };
  for (const Case& c : {Case{"", "", true},
                        Case{"", "a", false},
                        Case{"*", "", true},
                        Case{"*", "anything", true},
                        Case{"h?llo", "hello", true},
                        Case{"h?llo", "hllo", false},
                        Case{"h*llo", "heeeello", true},
                        Case{"h[ae]llo", "hallo", true},
                        Case{"h[ae]llo", "hillo", false},
                        Case{"h[^e]llo", "hallo", true},
                        Case{"h[^e]llo", "hello", false},
                        Case{"h[a-c]llo", "hbllo", true},
                        Case{"h[c-a]llo", "hbllo", true},
                        Case{"h[a-c]llo", "hdllo", false},
                        Case{"\\*", "*", true},
                        Case{"\\*", "a", false},
                        Case{"a\\", "a\\", true},
                        Case{"[\\]]", "]", true},
                        Case{"[abc", "b", true},
                        Case{"[a", "b", false},
                        Case{"a*b*c", "aXbYc", true},
                        Case{"a*b*c", "aXcYb", false},
                        Case{"**a", "ba", true},
                        Case{"?*?", "a", false},
                        Case{"[^]", "x", true},
                        Case{"[]", "x", false},
                        Case{"news.*", "news.art", true},
                        Case{"ABC", "abc", false}}) {
    INFO(c.pattern << " against " << c.text);
    REQUIRE(GlobMatch(c.pattern, c.text) == c.matches);
  }
  REQUIRE(GlobMatch("ABC[D-F]*", "abceX", GlobCase::kInsensitive));
}

TEST_CASE("A glob without special characters is a literal", "[glob]") {
  REQUIRE(GlobIsLiteral("planes"));
  for (const char* pattern : {"*", "a?", "[a]", "a\\b"}) REQUIRE_FALSE(GlobIsLiteral(pattern));
}

TEST_CASE("Many stars cost no more than pattern times text", "[glob]") {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "*a";
  pattern += "b";
  REQUIRE_FALSE(GlobMatch(pattern, std::string(20'000, 'a')));
}

// Tries everything; knows stars, question marks and letters.
bool SlowMatch(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*') {
    return SlowMatch(pattern.substr(1), text) ||
           (!text.empty() && SlowMatch(pattern, text.substr(1)));
  }
  return !text.empty() && (pattern[0] == '?' || pattern[0] == text[0]) &&
         SlowMatch(pattern.substr(1), text.substr(1));
}

TEST_CASE("Random patterns match as a matcher that tries everything says", "[glob]") {
  const uint64_t seed = 77;
  INFO("seed " << seed);
  Random random(seed);
  for (int i = 0; i < 20'000; ++i) {
    std::string pattern;
    std::string text;
    for (uint64_t n = random.Below(7); n > 0; --n) pattern.push_back("ab*?*"[random.Below(5)]);
    for (uint64_t n = random.Below(8); n > 0; --n) text.push_back("ab"[random.Below(2)]);
    INFO(pattern << " against " << text);
    REQUIRE(GlobMatch(pattern, text) == SlowMatch(pattern, text));
  }
}

TEST_CASE("A pattern reaches none, some or all of the texts behind a prefix", "[glob]") {
  REQUIRE(GlobReachBehind("*", "web:") == GlobReach::kAll);
  REQUIRE(GlobReachBehind("w*", "web:") == GlobReach::kAll);
  REQUIRE(GlobReachBehind("web:*", "web:") == GlobReach::kAll);
  REQUIRE(GlobReachBehind("web:**", "web:") == GlobReach::kAll);
  REQUIRE(GlobReachBehind("[uvw]eb:*", "web:") == GlobReach::kAll);
  REQUIRE(GlobReachBehind("web:anchor", "web:") == GlobReach::kSome);
  REQUIRE(GlobReachBehind("*:anchor", "web:") == GlobReach::kSome);
  REQUIRE(GlobReachBehind("web:?*", "web:") == GlobReach::kSome);
  REQUIRE(GlobReachBehind("web:", "web:") == GlobReach::kNone);
  REQUIRE(GlobReachBehind("web", "web:") == GlobReach::kNone);
  REQUIRE(GlobReachBehind("webs:*", "web:") == GlobReach::kNone);
  REQUIRE(GlobReachBehind("", "web:") == GlobReach::kNone);
  REQUIRE(GlobReachBehind("a\\*", "a") == GlobReach::kSome);
  REQUIRE(GlobReachBehind("*a*b*c", "xaxbx") == GlobReach::kSome);
}

}  // namespace glob_test
