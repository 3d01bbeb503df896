// See command_words.h.
#include "client/command_words.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

#include "base/assert.h"

namespace cellar::client {
namespace {

void AppendLength(char mark, size_t length, std::string* out) {
  std::array<char, 24> line;  // NOLINT(cppcoreguidelines-pro-type-member-init): a hot path
  line[0] = mark;
  const auto [end, error] = std::to_chars(line.data() + 1, line.data() + line.size() - 2, length);
  CELLAR_ASSERT(error == std::errc());
  end[0] = '\r';
  end[1] = '\n';
  out->append(line.data(), end + 2);
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The character that \\`text` stands for, of whose bytes *used are taken.
char Unescape(std::string_view text, size_t* used) {
  *used = 1;
  if (text.size() >= 3 && text[0] == 'x' && HexDigit(text[1]) >= 0 && HexDigit(text[2]) >= 0) {
    *used = 3;
    return static_cast<char>(HexDigit(text[1]) * 16 + HexDigit(text[2]));
  }
  switch (text[0]) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'a':
      return '\a';
    case 'b':
      return '\b';
    default:
      return text[0];
  }
}

}  // namespace

void AppendBulk(std::string_view word, std::string* out) {
  AppendLength('$', word.size(), out);
  out->append(word);
  out->append("\r\n");
}

void AppendCommand(std::span<const std::string_view> words, std::string* out) {
  AppendLength('*', words.size(), out);
  for (const std::string_view word : words) AppendBulk(word, out);
}

void AppendCommand(std::initializer_list<std::string_view> words, std::string* out) {
  AppendCommand(std::span<const std::string_view>(words.begin(), words.size()), out);
}

std::vector<std::string> SplitCliWords(std::string_view line) {
  std::vector<std::string> words;
  char quote{0};
  bool in_word{false};
  for (size_t at{0}; at < line.size(); ++at) {
    const char c{line[at]};
    if (quote == 0 && c == ' ') {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    if (quote == '"' && c == '\\' && at + 1 < line.size()) {
      size_t used{0};
      words.back().push_back(Unescape(line.substr(at + 1), &used));
      at += used;
    } else if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (quote == c) {
      quote = 0;
    } else {
      words.back().push_back(c);
    }
  }
  return words;
}

}  // namespace cellar::client
