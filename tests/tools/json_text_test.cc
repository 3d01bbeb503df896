// Texts that are JSON strings as they stand.
#include "client/json_text.h"

#include <catch2/catch.hpp>
#include <string>

namespace json_text_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)

TEST_CASE("a text is plain JSON unless one of its bytes is none that a string has", "[import]") {
  for (size_t size = 0; size <= 20; ++size) {
    CHECK(client::IsPlainJson(std::string(size, 'x')));
    for (size_t at = 0; at < size; ++at) {
      for (int byte = 0; byte < 256; ++byte) {
        for (const char around : {'x', ' ', '~', '!', '#', '[', ']'}) {
          std::string text(size, around);
          text[at] = static_cast<char>(byte);
          const bool plain = byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
          if (client::IsPlainJson(text) == plain) continue;
          INFO(size << " " << at << " " << byte << " " << around);
          REQUIRE(client::IsPlainJson(text) == plain);
        }
      }
    }
  }
}

}  // namespace json_text_test
