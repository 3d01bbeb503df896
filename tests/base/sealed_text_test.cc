// A checksum in the last line notices whatever has changed.
#include "base/text/sealed_text.h"

#include <catch2/catch.hpp>

#include "base/random.h"

namespace cellar::sealed_text_test {

TEST_CASE("A sealed text is read back, and any flipped bit, cut or byte more is noticed",
          "[sealed]") {
  Random random(7);
  for (const std::string_view word : {kSealWord, std::string_view("# xxh3 ")}) {
    for (int round = 0; round < 20; ++round) {
      std::string body;
      for (uint64_t line = random.Below(6); line > 0; --line)
        body += std::string(random.Below(30), static_cast<char>('a' + random.Below(26))) + '\n';
      const std::string text = SealText(body, word);
      REQUIRE(UnsealText(text, word).seal == Seal::kSound);
      REQUIRE(UnsealText(text, word).body == body);
      for (size_t bit = 0; bit < text.size() * 8; ++bit) {
        std::string flipped = text;
        flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
        INFO("bit " << bit);
        REQUIRE(UnsealText(flipped, word).seal != Seal::kSound);
        // Only where its own word is gone it looks as if there had been none.
        const size_t at = bit / 8;
        const bool in_word = at >= body.size() && at < body.size() + word.size();
        REQUIRE((UnsealText(flipped, word).seal == Seal::kNone) == in_word);
      }
      for (size_t cut = 0; cut < text.size(); ++cut)
        REQUIRE(UnsealText(text.substr(0, cut), word).seal != Seal::kSound);
      REQUIRE(UnsealText(text + '\n', word).seal != Seal::kSound);
    }
  }
  CHECK(UnsealText("").seal == Seal::kNone);
  CHECK(UnsealText("start 7\n").body == "start 7\n");
}

}  // namespace cellar::sealed_text_test
