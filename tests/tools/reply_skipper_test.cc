// Tests of the load generator's reply skipper.
#include "cellar-benchmark/reply_skipper.h"

#include <catch2/catch.hpp>

namespace reply_skipper_test {

using cellar::benchmark::ReplySkipper;

uint64_t SkipInPieces(ReplySkipper* skipper, std::string_view bytes, size_t piece_bytes) {
  uint64_t replies = 0;
  for (size_t at = 0; at < bytes.size(); at += piece_bytes) {
    const std::string_view piece = bytes.substr(at, piece_bytes);
    replies += skipper->Skip(piece.data(), piece.size());
  }
  return replies;
}

TEST_CASE("Replies are counted wherever the stream is cut", "[reply_skipper]") {
  const std::string bytes =
      "+OK\r\n:42\r\n$5\r\nhe\r\no\r\n$12\r\n$5\r\nabc\r\n+OK\r\n$-1\r\n*-1\r\n$0\r\n\r\n*0\r\n"
      "*2\r\n$1\r\n0\r\n*2\r\n*2\r\n$1\r\na\r\n*2\r\n$1\r\nb\r\n:1\r\n*2\r\n$1\r\nc\r\n*0\r\n"
      "%1\r\n+key\r\n_\r\n,1.5\r\n#t\r\n-NOTABLE no table 't'\r\n";
  for (size_t piece_bytes = 1; piece_bytes <= bytes.size(); ++piece_bytes) {
    ReplySkipper skipper;
    CHECK(SkipInPieces(&skipper, bytes, piece_bytes) == 13);
    CHECK(skipper.errors() == 1);
    CHECK(skipper.first_error() == "NOTABLE no table 't'");
    CHECK(skipper.nulls() == 3);
    CHECK(skipper.values() == 16);
  }
}

TEST_CASE("An unfinished reply does not count", "[reply_skipper]") {
  ReplySkipper skipper;
  CHECK(SkipInPieces(&skipper, "*2\r\n$1\r\na\r\n", 100) == 0);
  CHECK(SkipInPieces(&skipper, "$1\r\nb\r", 100) == 0);
  CHECK(SkipInPieces(&skipper, "\n", 100) == 1);
}

}  // namespace reply_skipper_test
