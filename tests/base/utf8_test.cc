// UTF-8 against every code point and against the malformed forms that matter.
#include "base/text/utf8.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>

namespace utf8_test {

using namespace cellar;

std::string EncodeCodePoint(uint32_t c) {
  std::string s;
  const auto put = [&s](uint32_t byte) { s.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0 | c >> 6);
    put(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    put(0xe0 | c >> 12);
    put(0x80 | ((c >> 6) & 0x3f));
    put(0x80 | (c & 0x3f));
  } else {
    put(0xf0 | c >> 18);
    put(0x80 | ((c >> 12) & 0x3f));
    put(0x80 | ((c >> 6) & 0x3f));
    put(0x80 | (c & 0x3f));
  }
  return s;
}

TEST_CASE("Every code point but the surrogates is valid, and no part of one is", "[utf8]") {
  uint64_t wrong = 0;
  for (uint32_t c = 0; c <= 0x110000; c += c < 0x3000 ? 1 : 37) {
    const std::string s = EncodeCodePoint(c);
    const bool valid = (c < 0xd800 || c > 0xdfff) && c <= 0x10ffff;
    if (IsValidUtf8(s) != valid) ++wrong;
    if (valid && IsValidUtf8("0123456789" + s + "x") != valid) ++wrong;
    for (size_t cut = 1; valid && cut < s.size(); ++cut) {
      if (IsValidUtf8(s.substr(0, cut))) ++wrong;
    }
  }
  REQUIRE(wrong == 0);
}

TEST_CASE("Overlong forms, lone followers and truncated characters are not UTF-8", "[utf8]") {
  for (const char* text : {"\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xf0\x80\x80\x80", "\x80",
                           "\xbf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff",
                           "ab\xc3", "\xe2\x82", "\xc3(", "\xe2(\xa1"}) {
    REQUIRE_FALSE(IsValidUtf8(text));
  }
  REQUIRE(ValidUtf8Prefix("abc\xff") == 3);
  REQUIRE(IsAscii("plain text of some length"));
  REQUIRE_FALSE(IsAscii("plain text of some l\xc3\xa4ngth"));
}

}  // namespace utf8_test
