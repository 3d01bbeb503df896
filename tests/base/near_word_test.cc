// Slips of the finger are counted, and only words that can be names are taken for slips.
#include "base/text/near_word.h"

#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace near_word_test {

using namespace cellar;

TEST_CASE("A slip is a letter more, less, another, or two swapped", "[near_word]") {
  CHECK(SlipsBetween("cput", "CPUT") == 0);
  CHECK(SlipsBetween("cputt", "cput") == 1);
  CHECK(SlipsBetween("put", "cput") == 1);
  CHECK(SlipsBetween("cpit", "cput") == 1);
  CHECK(SlipsBetween("cptu", "cput") == 1);
  CHECK(SlipsBetween("", "cput") == 4);
  CHECK(SlipsBetween("kitten", "sitting") == 3);
  const std::string long_word(kNearWordBytesMax, 'a');
  CHECK(SlipsBetween(long_word, "b") == kNearWordBytesMax);
}

TEST_CASE("The nearest name is found, the first of several, or none", "[near_word]") {
  const std::vector<std::string_view> names = {"port", "bind", "appendonly", "appendfsync"};
  const auto find = [&](std::string_view word) {
    const auto found = FindNearWord(names, word, [](std::string_view name) { return name; });
    return found == names.end() ? std::string_view("none") : *found;
  };
  CHECK(find("prot") == "port");
  CHECK(find("Port") == "port");
  CHECK(find("apendfsinc") == "appendfsync");
  CHECK(find("p") == "none");
  CHECK(find("") == "none");
  CHECK(find("part1") == "none");
  CHECK(find("port ") == "none");
  CHECK(find(std::string(1000, 'p')) == "none");
}

}  // namespace near_word_test
