// Quoting for people, and the letters and digits below it.
#include "base/text/quote.h"

#include <catch2/catch.hpp>
#include <string>

#include "base/text/ascii.h"

namespace cellar {
namespace {

std::string DoubleQuoted(std::string_view bytes) {
  std::string text;
  AppendDoubleQuoted(bytes, &text);
  return text;
}

TEST_CASE("quotes show every byte, and errors are cut short") {
  using std::string_view_literals::operator""sv;
  CHECK(Quote("") == "''");
  CHECK(Quote("a b\n\xff'\\\0"sv) == R"('a b\x0a\xff'\\x00')");
  CHECK(Quote(std::string(64, 'x')) == "'" + std::string(64, 'x') + "'");
  CHECK(Quote(std::string(65, 'x')) == "'" + std::string(64, 'x') + "...'");
  CHECK(DoubleQuoted("") == "\"\"");
  CHECK(DoubleQuoted("a'b \"c\" \\d\x7f\0"sv) == R"("a'b \"c\" \\d\x7f\x00")");
  CHECK(DoubleQuoted(std::string(100, 'x')).size() == 102);
}

TEST_CASE("a word is quoted where redis-cli would not read it as one") {
  for (const char* plain : {"a", "utf8#-u64", "[r~", "f:a", "*"}) CHECK(QuoteWord(plain) == plain);
  CHECK(QuoteWord("") == "\"\"");
  CHECK(QuoteWord("a b") == "\"a b\"");
  CHECK(QuoteWord("a\"") == R"("a\"")");
  CHECK(QuoteWord("a'") == "\"a'\"");
  CHECK(QuoteWord("\xc3\xa4") == R"("\xc3\xa4")");
}

TEST_CASE("letters change their case in ASCII alone") {
  CHECK(UpperText("aZ9_\xe4") == "AZ9_\xe4");
  CHECK(EqualsIgnoreCase("CsCaN", "cscan"));
  CHECK_FALSE(EqualsIgnoreCase("a", "ab"));
  CHECK_FALSE(EqualsIgnoreCase("\xe4", "\xc4"));
  CHECK_FALSE(EqualsIgnoreCase("[", "{"));  // 32 apart, as letters are
  CHECK(HexText("\x01\xfe") == "01fe");
}

}  // namespace
}  // namespace cellar
