// The parser: whole, byte by byte, cut at every place; its limits and error texts.
#include "resp/request_parser.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace cellar {
namespace request_parser_test {

using Words = std::vector<std::string>;
using Outcome = RequestParser::Outcome;

// A client's side of the parser as the connection uses it: bytes come in pieces, commands go out.
class Reader {
 public:
  explicit Reader(bool unauthenticated = false) { limits_.unauthenticated = unauthenticated; }
  explicit Reader(int64_t bulk_bytes_max) { limits_.bulk_bytes_max = bulk_bytes_max; }

  void Feed(std::string_view bytes) {
    const char* old_begin = pending_.data();
    pending_.append(bytes);
    RequestParser::Rebase(old_begin, pending_.data(), &args_);
    std::string_view rest = pending_;
    while (!rest.empty() && error.empty()) {
      const Outcome outcome = parser_.Next(&rest, limits_, &args_);
      if (outcome == Outcome::kIncomplete) break;
      if (outcome == Outcome::kError) error = parser_.error();
      if (outcome == Outcome::kCommand) commands.emplace_back(args_.begin(), args_.end());
    }
    std::string left(rest);
    if (parser_.in_command()) RequestParser::Rebase(rest.data(), left.data(), &args_);
    const char* moved_from = left.data();
    pending_ = std::move(left);
    if (parser_.in_command()) RequestParser::Rebase(moved_from, pending_.data(), &args_);
  }

  std::vector<Words> commands;
  std::string error;

 private:
  RequestParser parser_;
  RequestParser::Limits limits_;
  std::string pending_;
  std::vector<std::string_view> args_;
};

std::vector<Words> ParseWhole(std::string_view bytes) {
  Reader reader;
  reader.Feed(bytes);
  REQUIRE(reader.error.empty());
  return reader.commands;
}

std::string ErrorOf(std::string_view bytes, bool unauthenticated = false) {
  Reader reader(unauthenticated);
  reader.Feed(bytes);
  return reader.error;
}

const std::string kMixed =
    std::string("*3\r\n$4\r\nCPUT\r\n$0\r\n\r\n$5\r\na\r\n\0b\r\n", 31) +
    "ping\r\n*0\r\n\r\n*-1\r\n  echo  \"a\\x41\\n b\" 'it\\'s'  \r\n*1\r\n$4\r\nPING\r\n";

TEST_CASE("Arrays, empty ones and inline commands come out in order", "[resp]") {
  const std::vector<Words> expected = {{"CPUT", "", std::string("a\r\n\0b", 5)},
                                       {"ping"},
                                       {},
                                       {},
                                       {},
                                       {"echo", "aA\n b", "it's"},
                                       {"PING"}};
  REQUIRE(ParseWhole(kMixed) == expected);
}

TEST_CASE("The same commands come out wherever the bytes are cut", "[resp]") {
  const std::vector<Words> expected = ParseWhole(kMixed);
  for (size_t first = 0; first <= kMixed.size(); ++first) {
    for (size_t second = first; second <= kMixed.size(); ++second) {
      Reader reader;
      reader.Feed(std::string_view(kMixed).substr(0, first));
      reader.Feed(std::string_view(kMixed).substr(first, second - first));
      reader.Feed(std::string_view(kMixed).substr(second));
      REQUIRE(reader.error.empty());
      REQUIRE(reader.commands == expected);
    }
  }
}

TEST_CASE("The same commands come out byte by byte", "[resp]") {
  Reader reader;
  for (const char c : kMixed) reader.Feed({&c, 1});
  REQUIRE(reader.commands == ParseWhole(kMixed));
}

TEST_CASE("Arguments of every number of digits are read, wherever the bytes are cut", "[resp]") {
  for (const size_t size : std::vector<size_t>{0, 1, 9, 10, 11, 99, 100, 999, 1000, 12345}) {
    const std::string word(size, 'w');
    const std::string request =
        "*3\r\n$4\r\nECHO\r\n$" + std::to_string(size) + "\r\n" + word + "\r\n$1\r\nx\r\n";
    const std::vector<Words> expected{{"ECHO", word, "x"}, {"ECHO", word, "x"}};
    REQUIRE(ParseWhole(request + request) == expected);
    for (size_t cut = 1; cut < std::min<size_t>(30, request.size()); ++cut) {
      Reader reader;
      reader.Feed(request.substr(0, cut));
      reader.Feed(request.substr(cut));
      reader.Feed(request);
      REQUIRE(reader.commands == expected);
    }
  }
}

TEST_CASE("A command has no more arguments than it says, whatever the one before had", "[resp]") {
  const std::string pings = "*2\r\n$4\r\nPING\r\n$1\r\na\r\n*1\r\n$4\r\nPING\r\n";
  const std::vector<Words> expected{{"PING", "a"}, {"PING"}, {"PING", "a"}, {"PING"}};
  REQUIRE(ParseWhole(pings + pings) == expected);
}

TEST_CASE("A limit below three digits is kept to as well", "[resp]") {
  Reader reader(int64_t{10});
  reader.Feed("*2\r\n$4\r\nECHO\r\n$10\r\n0123456789\r\n*2\r\n$4\r\nECHO\r\n$11\r\n");
  REQUIRE(reader.commands == std::vector<Words>{{"ECHO", "0123456789"}});
  REQUIRE(reader.error == "Protocol error: invalid bulk length");
}

TEST_CASE("A malformed request gets the error text of Redis", "[resp]") {
  REQUIRE(ErrorOf("*3000000000\r\n") == "Protocol error: invalid multibulk length");
  REQUIRE(ErrorOf("*x\r\n") == "Protocol error: invalid multibulk length");
  REQUIRE(ErrorOf("*1\r\n$-1\r\n") == "Protocol error: invalid bulk length");
  REQUIRE(ErrorOf("*1\r\n$536870913\r\n") == "Protocol error: invalid bulk length");
  REQUIRE(ErrorOf("*1\r\nfoo\r\n") == "Protocol error: expected '$', got 'f'");
  REQUIRE(ErrorOf("echo \"a\r\n") == "Protocol error: unbalanced quotes in request");
  REQUIRE(ErrorOf("echo \"a\"b\r\n") == "Protocol error: unbalanced quotes in request");
  REQUIRE(ErrorOf(std::string(70'000, 'a')) == "Protocol error: too big inline request");
  REQUIRE(ErrorOf("*" + std::string(70'000, '1')) == "Protocol error: too big mbulk count string");
  REQUIRE(ErrorOf("*1\r\n$" + std::string(70'000, '1')) ==
          "Protocol error: too big bulk count string");
}

TEST_CASE("A stranger may send only small commands", "[resp]") {
  REQUIRE(ErrorOf("*11\r\n", true) == "Protocol error: unauthenticated multibulk length");
  REQUIRE(ErrorOf("*1\r\n$16385\r\n", true) == "Protocol error: unauthenticated bulk length");
  REQUIRE(ErrorOf("*10\r\n$16384\r\n", true).empty());
}

TEST_CASE("A million announced arguments allocate nothing", "[resp]") {
  RequestParser parser;
  std::vector<std::string_view> args;
  std::string_view input = "*1000000\r\n$4\r\nCPUT\r\n";
  REQUIRE(parser.Next(&input, {}, &args) == Outcome::kIncomplete);
  REQUIRE(args.size() == 1);
  REQUIRE(args.capacity() < 16);
}

}  // namespace request_parser_test
}  // namespace cellar
