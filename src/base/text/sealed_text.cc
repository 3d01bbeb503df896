// See sealed_text.h.
#include "base/text/sealed_text.h"

#include <fmt/format.h>

#include <utility>

#include "base/assert.h"
#include "base/hash.h"

namespace cellar {
namespace {

constexpr size_t kDigits{16};
constexpr std::string_view kOptionsWord{"# xxh3 "};
constexpr std::string_view kOptionsMark{
    "# The last line is a checksum: who changes this file takes that line and this one out.\n"};

std::string LastLineOf(std::string_view body, std::string_view word) {
  return fmt::format("{}{:016x}\n", word, Hash64(body));
}

}  // namespace

std::string SealText(std::string text, std::string_view word) {
  CELLAR_ASSERT(text.empty() || text.back() == '\n');
  return text + LastLineOf(text, word);
}

// A line is taken for one that was damaged if its word is there at the place that the size of such
// a line gives, whatever has become of its digits or of the newline before it.
SealedText UnsealText(std::string_view text, std::string_view word) {
  const size_t bytes = word.size() + kDigits + 1;
  if (text.size() < bytes) return {Seal::kNone, text};
  const std::string_view body = text.substr(0, text.size() - bytes);
  const std::string_view line = text.substr(body.size());
  if (!line.starts_with(word)) return {Seal::kNone, text};
  return {line == LastLineOf(body, word) ? Seal::kSound : Seal::kWrong, body};
}

std::string SealOptions(std::string text) {
  return SealText(std::move(text.insert(0, kOptionsMark)), kOptionsWord);
}

Seal SealOfOptions(std::string_view text) {
  const Seal seal = UnsealText(text, kOptionsWord).seal;
  const bool is_marked = text.starts_with(kOptionsMark);
  if (seal == Seal::kNone) return is_marked ? Seal::kWrong : Seal::kNone;
  return is_marked ? seal : Seal::kWrong;
}

}  // namespace cellar
