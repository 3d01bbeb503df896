// Requests taken apart by the shape of the one before, against the parser that reads every header.
#include "commands/dispatch/request_shapes.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "commands/catalog/command_table.h"
#include "resp/request_parser.h"

namespace cellar {
namespace request_shapes_test {

using Words = std::vector<std::string>;

std::string Request(const Words& words) {
  std::string text = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words)
    text += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  return text;
}

// Takes requests as a connection does: by their shape, else with the parser, which is noted.
class Taker {
 public:
  // The words of the request at the front of `input`; none if it is not all there.
  Words Take(std::string_view input) {
    by_shape = true;
    bytes = shapes_.Take(input, &command_);
    if (bytes == 0) {
      by_shape = false;
      RequestParser parser;
      bytes = parser.NextShort(input, &command_.args);
      if (bytes == 0) return {};
      command_.entry = EntryOf(command_.args[0]);
      shapes_.Note(input, bytes, command_);
    }
    REQUIRE(command_.entry == EntryOf(command_.args[0]));
    return {command_.args.begin(), command_.args.end()};
  }
  Words Take(const Words& words) { return Take(Request(words)); }

  bool by_shape{false};  // the last one was
  size_t bytes{0};       // of the last one

 private:
  // One for each name, but none for those that begin with an X.
  CommandEntry* EntryOf(std::string_view name) {
    return name.starts_with('X') ? nullptr : &entries_[std::string(name)];
  }

  std::map<std::string, CommandEntry> entries_;
  RequestShapes shapes_;
  ParsedCommand command_;
};

TEST_CASE("a request like the two before is taken by its shape", "[request_shapes]") {
  Taker taker;
  const Words words{"CPUT", "t", "plane#000000000001", "meta:miles", "0123456789ab"};
  for (int i = 0; i < 4; ++i) {
    const std::string request = Request(words);
    CHECK(taker.Take(request + "*1\r\n$4\r\nPING\r\n") == words);
    CHECK(taker.bytes == request.size());
    CHECK(taker.by_shape == i >= 2);
  }
  const Words others{"CPUT", "u", "plane#999999999999", "a:\r\n$4\r\n12", std::string(12, '\0')};
  CHECK(taker.Take(others) == others);
  CHECK(taker.by_shape);
}

TEST_CASE("whatever differs in a size, a count or a name is left to the parser",
          "[request_shapes]") {
  Taker taker;
  const Words words{"CPUT", "t", "row", "f:q", "a value of some bytes"};
  for (int i = 0; i < 3; ++i) (void)taker.Take(words);
  REQUIRE(taker.by_shape);
  const std::vector<Words> others{
      {"CPUT", "t", "rows", "f:q", "a value of some byte"},  // as many bytes in all
      {"CPUT", "tt", "ro", "f:q", "a value of some bytes"},
      {"CPUX", "t", "row", "f:q", "a value of some bytes"},
      {"CPU", "t", "row", "f:q", "a value of some bytes 12"},
      {"CPUT", "t", "row", "f:q"},
      {"CPUT", "t", "row", "f:q", "a value of some bytes", "AS"},
      {"cput", "t", "row", "f:q", "a value of some bytes"},
  };
  for (const Words& other : others) {
    CHECK(taker.Take(other) == other);
    CHECK(!taker.by_shape);
    CHECK(taker.Take(words) == words);
  }
  // The same sizes, written in another way: what is refused stays refused.
  std::string odd = Request(words);
  odd.replace(odd.find("$3\r\nrow"), 2, "$+");
  CHECK(taker.Take(odd).empty());
}

TEST_CASE("a request that is not all there is not taken", "[request_shapes]") {
  Taker taker;
  const Words words{"CGET", "t", "row", "f:q"};
  for (int i = 0; i < 3; ++i) (void)taker.Take(words);
  REQUIRE(taker.by_shape);
  const std::string request = Request(words);
  for (size_t bytes = 1; bytes < request.size(); ++bytes) {
    // Of its own memory, so that ASan sees who reads behind its end.
    const std::vector<char> cut(request.begin(),
                                request.begin() + static_cast<std::ptrdiff_t>(bytes));
    CHECK(taker.Take(std::string_view(cut.data(), cut.size())).empty());
  }
}

TEST_CASE("nothing is taken for a request that is none", "[request_shapes]") {
  for (const bool is_used : {false, true}) {
    Taker taker;
    if (is_used) {
      for (const std::string name : {"PING", "CGET", "SET", "X"})
        for (int i = 0; i < 3; ++i) CHECK(taker.Take({name, "t"}) == Words{name, "t"});
    }
    for (const char first : {'\0', '*', '$', 'P'}) {
      for (int second = 0; second < 256; ++second) {  // every slot
        std::string input(8, first);
        input += std::string(40, static_cast<char>(second));
        CHECK(taker.Take(input).empty());
      }
    }
  }
}

TEST_CASE("requests of all sizes come out as the parser has them", "[request_shapes]") {
  const uint64_t seed = 20261122;
  INFO("seed " << seed);
  Random random(seed);
  Taker taker;
  size_t by_shape = 0;
  for (int i = 0; i < 20'000; ++i) {
    static const std::vector<std::string> kNames{"GET",  "CGET",  "CPUT",     "CROW",     "X",
                                                 "PING", "CSCAN", "CINCRBYF", "CMUTATEXX"};
    Words words{kNames[random.Below(kNames.size())]};
    const uint64_t count = random.Below(3) == 0 ? random.Below(12) : 2;
    for (uint64_t n = 0; n < count; ++n) {
      const uint64_t bytes = random.Below(8) == 0 ? random.Below(1100) : random.Below(3) * 9;
      words.emplace_back(bytes, static_cast<char>(random.Below(256)));
    }
    std::string request = Request(words);
    const size_t bytes = request.size();
    if (random.Below(2) == 0) request += Request({"PING"});
    const Words taken = taker.Take(request);
    by_shape += static_cast<size_t>(taker.by_shape);
    if (taken.empty()) {  // a long header, which NextShort does not read
      REQUIRE(
          std::any_of(words.begin(), words.end(), [](const auto& w) { return w.size() > 999; }));
      continue;
    }
    REQUIRE(taken == words);
    REQUIRE(taker.bytes == bytes);
  }
  CHECK(by_shape > 500);
}

}  // namespace request_shapes_test
}  // namespace cellar
