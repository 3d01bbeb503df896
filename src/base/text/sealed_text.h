// SealedText: a small text file that ends in its own checksum, so that any byte that was changed or
// lost is noticed:
//
//   cellar-backup 2
//   start 1795720514
//   xxh3 0123456789abcdef      XXH3 of all bytes before this line, in small hex digits
//
// The last line is compared as text, so that a digit in the other case is noticed too.
//
// In a file whose lines are options the checksum stands in a comment, and another comment says that
// it has one; people may take out both.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cellar {

inline constexpr std::string_view kSealWord{"xxh3 "};

// `text`, which is empty or ends in a newline, with the last line behind it.
std::string SealText(std::string text, std::string_view word = kSealWord);

enum class Seal : uint8_t {
  kNone,   // the last line is no checksum, nor one that was damaged as far as can be told
  kSound,  // and nothing has changed
  kWrong,
};
struct SealedText {
  Seal seal{Seal::kNone};
  std::string_view body;  // without that line; all of the text if it is kNone
};
// The views are of `text`.
SealedText UnsealText(std::string_view text, std::string_view word = kSealWord);

// `text`, whose lines are options, with both comments.
std::string SealOptions(std::string text);
// kNone: there is neither of them.
Seal SealOfOptions(std::string_view text);

}  // namespace cellar
