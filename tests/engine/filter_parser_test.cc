// The syntax of filters: what is one, what is none and where, how it prints.
#include <catch2/catch.hpp>
#include <string>

#include "engine/filter/filter.h"

namespace filter_parser_test {

using namespace cellar;

std::string Printed(std::string_view text) {
  const auto filter = Filter::Parse(text);
  INFO(text);
  if (!filter.ok()) return filter.status().ToString();
  const std::string printed = (*filter)->ToString();
  const auto again = Filter::Parse(printed);
  REQUIRE(again.ok());
  REQUIRE((*again)->ToString() == printed);
  return printed;
}

TEST_CASE("Filters print canonically and read back", "[filter]") {
  REQUIRE(Printed("pass") == "pass");
  REQUIRE(Printed(" row~\"a.*\"|latest( 2 ) ") == "row ~ \"a.*\" | latest(2)");
  REQUIRE(Printed("{a}").starts_with("BADFILTER"));
  REQUIRE(Printed("{pass,block}") == "{pass, block}");
  REQUIRE(Printed("{pass}") == "pass");
  REQUIRE(Printed("((pass|strip)|sink)") == "pass | strip | sink");
  REQUIRE(Printed("if(value>4.5;label(\"big-1\"))") == "if(value > 4.5; label(\"big-1\"))");
  REQUIRE(Printed("if(pass;block;limit(3)|offset(1))") == "if(pass; block; limit(3) | offset(1))");
  REQUIRE(Printed("family=\"f\"|qualifier in [\"a\",\"b\")") ==
          "family = \"f\" | qualifier in [\"a\",\"b\")");
  REQUIRE(Printed("ts in (,10]") == "ts in (,10]");
  REQUIRE(Printed("value in [,]") == "value in [,]");
  REQUIRE(Printed("value != true | value=false") == "value != true | value = false");
  REQUIRE(Printed("sample(0.25)") == "sample(0.25)");
  REQUIRE(Printed("value = -1.5e3") == "value = -1.5e3");
  REQUIRE(Printed("ts>=inf") == "ts >= inf");
  REQUIRE(Printed("ts < 2026-11-26") == "ts < 1795651200000000");
  REQUIRE(Printed("ts in [\"2026-11-26T01:00:00.5+01:00\", 2026-11-27)") ==
          "ts in [1795651200500000,1795737600000000)");
}

TEST_CASE("Strings decode their escapes, other backslashes stand for themselves", "[filter]") {
  const auto decoded = [](std::string_view text) {
    const auto filter = Filter::Parse(text);
    INFO(text);
    REQUIRE(filter.ok());
    return (*filter)->nodes()[0].literal.text;
  };
  REQUIRE(decoded(R"(value = "a\"b\\c\n\r\t")") == "a\"b\\c\n\r\t");
  REQUIRE(decoded(R"(value = "\x00\x41\xff")") == std::string("\0A\xff", 3));
  REQUIRE(decoded(R"(value = "\d\x4\xzz\")"
                  "\"") == "\\d\\x4\\xzz\"");
  REQUIRE(decoded("value = \"raw \x01\xff bytes\"") == "raw \x01\xff bytes");
}

TEST_CASE("A word that no filter begins with is told those that do", "[filter]") {
  const std::string error = Printed("colour = 1");
  CHECK(error.starts_with("BADFILTER at position 1: expected row, family,"));
  for (const std::string word :
       {"row", "family", "qualifier", "value", "ts", "latest", "limit", "offset", "sample", "strip",
        "label", "pass", "block", "sink", "if"}) {
    INFO(word);
    CHECK(error.find(" " + word + ",") != std::string::npos);
    CHECK(Printed(word + "\x01").find("expected row") == std::string::npos);  // it is known
  }
}

TEST_CASE("What is no filter is refused with the position", "[filter]") {
  struct Case {
    const char* text;
    const char* position;
  };
  for (const Case& c : {Case{"", "position 1:"},
                        Case{"pass |", "position 7:"},
                        Case{"pas", "position 1:"},
                        Case{"pass pass", "position 6:"},
                        Case{"(pass", "position 6:"},
                        Case{"pass)", "position 5:"},
                        Case{"{pass", "position 6:"},
                        Case{"{}", "position 2:"},
                        Case{"if(pass)", "position 8:"},
                        Case{"if(pass;pass;pass;pass)", "position 18:"},
                        Case{"latest(0)", "position 8:"},
                        Case{"limit(0)", "position 7:"},
                        Case{"offset(0)", "position 8:"},
                        Case{"limit(-1)", "position 7:"},
                        Case{"limit(1.5)", "position 7:"},
                        Case{"limit()", "position 7:"},
                        Case{"latest", "position 7:"},
                        Case{"sample(1.1)", "position 8:"},
                        Case{"sample(nan)", "position 8:"},
                        Case{"label(\"\")", "position 7:"},
                        Case{"label(\"UPPER\")", "position 7:"},
                        Case{"label(\"sixteen-letters1\")", "position 7:"},
                        Case{"label(x)", "position 7:"},
                        Case{"value", "position 6:"},
                        Case{"value =", "position 8:"},
                        Case{"value == 1", "position 8:"},
                        Case{"value = nan", "position 9:"},
                        Case{"value = abc", "position 9:"},
                        Case{"value = \"abc", "position 9:"},
                        Case{"value ~ 5", "position 9:"},
                        Case{"value ~ \"(\"", "position 9:"},
                        Case{"value ~ \"a**\"", "position 9:"},
                        Case{"ts = \"1\"", "position 6:"},
                        Case{"ts ~ \"1\"", "position 4:"},
                        Case{"ts in [\"a\",]", "position 8:"},
                        Case{"value in 5", "position 10:"},
                        Case{"value in [1 2]", "position 13:"},
                        Case{"value in [1,2", "position 14:"},
                        Case{"value in [1,\"a\"]", "position 16:"},
                        Case{"if(sink;pass)", "position 3:"},
                        Case{"if(pass;{pass,sink})", "position 3:"},
                        Case{"PASS", "position 1:"},
                        Case{"pass|;", "position 6:"}}) {
    INFO(c.text);
    const auto filter = Filter::Parse(c.text);
    REQUIRE_FALSE(filter.ok());
    REQUIRE(filter.status().code() == ErrorCode::kBadFilter);
    INFO(filter.status().text());
    REQUIRE(filter.status().text().find(c.position) != std::string::npos);
  }
}

std::string Nested(std::string_view open, std::string_view close, int depth) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += open;
  text += "pass";
  for (int i = 0; i < depth; ++i) text += close;
  return text;
}

TEST_CASE("Depth, length and copies have limits", "[filter]") {
  REQUIRE(Filter::Parse(Nested("(", ")", 20)).ok());
  REQUIRE_FALSE(Filter::Parse(Nested("(", ")", 21)).ok());
  REQUIRE(Filter::Parse(Nested("{pass,", "}", 20)).ok());
  REQUIRE_FALSE(Filter::Parse(Nested("{", "}", 21)).ok());
  REQUIRE(Filter::Parse(Nested("if(pass;", ";block)", 20)).ok());
  REQUIRE_FALSE(Filter::Parse(Nested("if(pass;", ")", 21)).ok());
  REQUIRE_FALSE(Filter::Parse(std::string(20'000, '(')).ok());
  std::string longest = "pass";
  while (longest.size() + 5 <= kFilterBytesMax) longest += "|pass";
  REQUIRE(Filter::Parse(longest).ok());
  longest.append(kFilterBytesMax + 1 - longest.size(), ' ');
  REQUIRE_FALSE(Filter::Parse(longest).ok());
  std::string doubling = "pass";
  for (int i = 0; i < 16; ++i) doubling += "|{pass,pass}";
  REQUIRE(Filter::Parse(doubling).ok());
  REQUIRE_FALSE(Filter::Parse(doubling + "|{pass,pass}").ok());
}

TEST_CASE("Conditions are numbered by what they wait for", "[filter]") {
  const auto stages = [](std::string_view text) { return (*Filter::Parse(text))->stages(); };
  REQUIRE(stages("pass") == 0);
  REQUIRE(stages("if(pass;pass)") == 1);
  REQUIRE(stages("{if(pass;pass),if(block;pass)}") == 1);
  REQUIRE(stages("if(pass;pass)|if(pass;pass)") == 2);
  REQUIRE(stages("if(if(pass;pass);pass)") == 2);
  REQUIRE(stages("if(pass;if(pass;pass);if(pass;pass))") == 2);
}

TEST_CASE("Families that a filter is compared with are its names", "[filter]") {
  const auto filter = Filter::Parse(
      "family = \"a\" | {family != \"b\", family = \"a\", family ~ \"c\", family in "
      "[\"d\",\"e\"]}");
  REQUIRE((*filter)->NamedFamilies() == std::vector<std::string_view>{"a", "b"});
}

}  // namespace filter_parser_test
