// Frames between nodes: what their sender makes their reader takes.
#include "replica/links/frame.h"

#include <catch2/catch.hpp>
#include <string>

namespace cellar::frame_test {

TEST_CASE("An error is taken with a text up to the limit", "[replica][frame]") {
  for (const size_t bytes : {size_t{0}, size_t{1}, kErrorTextBytesMax, kErrorTextBytesMax + 1}) {
    FrameReader reader{FrameKind::kError};
    reader.Add(EncodeFrame({.kind = FrameKind::kError}, std::string(bytes, 'x')));
    Frame frame;
    CHECK(reader.Next(&frame).ok() == (bytes <= kErrorTextBytesMax));
  }
}

TEST_CASE("A peer's text is one line of what can be printed", "[replica][frame]") {
  CHECK(PrintableText("a\r\n+OK\x7f\xff\x1b[2J b") == "a??+OK???[2J b");
  CHECK(PrintableText(std::string(5000, 'y')).size() == kPeerTextBytesMax);
  Frame frame;
  frame.body = "no\nmore";
  CHECK(WhatItSays(frame) == "it says: no?more");
}

}  // namespace cellar::frame_test
