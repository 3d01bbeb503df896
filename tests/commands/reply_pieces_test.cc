// A reply in pieces is what it would be in one buffer, also where counts outgrow their guesses.
#include "commands/replies/reply_pieces.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/random.h"

namespace cellar::reply_pieces_test {

// All that was written, by delivery to an empty client.
std::string Delivered(ReplyPieces* pieces) {
  OutputBuffer client;
  ReplyWriter writer(&client, RespVersion::k2);
  std::string text;
  const TaskBudget budget = TaskBudget::Unlimited();
  while (!pieces->Deliver(writer, budget)) {
    text += client.view();
    client.Truncate(0);
  }
  return text + std::string(client.view());
}

TEST_CASE("Counts that outgrow their guess in a piece that is closed are counted", "[replies]") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    OutputBuffer in_pieces;
    OutputBuffer in_one;
    ReplyPieces pieces(&in_pieces, RespVersion::k2);
    ReplyPieces whole(&in_one, RespVersion::k2);
    pieces.Own();
    const auto write = [&](size_t bytes) {
      const std::string text(bytes, 'x');
      pieces.writer().Bulk(text);
      whole.writer().Bulk(text);
      pieces.NextPiece();
    };
    const ReplyPieces::Place begin = pieces.here();
    const ReplyPieces::Place begin_whole = whole.here();
    const int rows = 1 + static_cast<int>(random.Below(4));
    for (int row = 0; row < rows; ++row) {
      // Guesses with fewer digits than the count has, and with more.
      const uint64_t guess = random.OneIn(2) ? 4 : 100'000;
      const bool as_map = random.OneIn(2);
      const ReplyPieces::Mark mark = as_map ? pieces.BeginMap(guess) : pieces.BeginArray(guess);
      const ReplyPieces::Mark one = as_map ? whole.BeginMap(guess) : whole.BeginArray(guess);
      const auto cells = random.Below(60);
      for (uint64_t cell = 0; cell < cells; ++cell) write(random.Below(40'000));
      if (as_map) {
        pieces.EndMap(mark, cells / 2);
        whole.EndMap(one, cells / 2);
      } else {
        pieces.EndArray(mark, cells);
        whole.EndArray(one, cells);
      }
      REQUIRE(pieces.bytes() == whole.bytes());
    }
    if (random.OneIn(3)) {
      pieces.Truncate(begin);
      whole.Truncate(begin_whole);
      REQUIRE(pieces.bytes() == 0);
      write(100);
    }
    REQUIRE(pieces.bytes() == whole.bytes());
    REQUIRE(Delivered(&pieces) == in_one.view());
  }
}

}  // namespace cellar::reply_pieces_test
