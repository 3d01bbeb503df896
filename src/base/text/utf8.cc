// The table of well-formed byte sequences (Unicode, table 3-7), eight ASCII bytes at a time first.
#include "base/text/utf8.h"

#include <cstdint>
#include <cstring>

namespace cellar {
namespace {

constexpr uint64_t kHighBits{0x8080808080808080ULL};

// Length of the ASCII run at the front, rounded down to whole words.
size_t AsciiWords(std::string_view text) {
  size_t at = 0;
  while (at + 8 <= text.size()) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + at, 8);
    if ((word & kHighBits) != 0) break;
    at += 8;
  }
  return at;
}

// What may follow a lead byte: how many bytes, and the range of the first of them.
struct LeadByte {
  size_t followers;  // 0: not a lead byte of a longer character
  uint8_t low;
  uint8_t high;
};

LeadByte LeadByteOf(uint8_t byte) {
  if (byte >= 0xc2 && byte <= 0xdf) return {1, 0x80, 0xbf};
  if (byte == 0xe0) return {2, 0xa0, 0xbf};
  if (byte == 0xed) return {2, 0x80, 0x9f};
  if (byte >= 0xe1 && byte <= 0xef) return {2, 0x80, 0xbf};
  if (byte == 0xf0) return {3, 0x90, 0xbf};
  if (byte >= 0xf1 && byte <= 0xf3) return {3, 0x80, 0xbf};
  if (byte == 0xf4) return {3, 0x80, 0x8f};
  return {0, 0, 0};
}

// How many of the `followers` bytes behind the lead byte are there and fit.
size_t FittingFollowers(std::string_view text, const LeadByte& lead) {
  size_t count = 0;
  while (count < lead.followers && count + 1 < text.size()) {
    const auto byte = static_cast<uint8_t>(text[count + 1]);
    const uint8_t low = count == 0 ? lead.low : 0x80;
    const uint8_t high = count == 0 ? lead.high : 0xbf;
    if (byte < low || byte > high) break;
    ++count;
  }
  return count;
}

}  // namespace

size_t ValidUtf8Prefix(std::string_view text) {
  size_t at = AsciiWords(text);
  while (at < text.size()) {
    const auto byte = static_cast<uint8_t>(text[at]);
    if (byte < 0x80) {
      ++at;
      continue;
    }
    const LeadByte lead = LeadByteOf(byte);
    if (lead.followers == 0) return at;
    if (FittingFollowers(text.substr(at), lead) != lead.followers) return at;
    at += lead.followers + 1;
  }
  return at;
}

bool IsAscii(std::string_view text) {
  for (size_t at = AsciiWords(text); at < text.size(); ++at) {
    if (static_cast<uint8_t>(text[at]) >= 0x80) return false;
  }
  return true;
}

}  // namespace cellar
