// See request_parser.h. The error texts are those of Redis 7.0.
#include "resp/request_parser.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/assert.h"
#include "resp/decimal.h"
#include "resp/short_arguments.h"

namespace cellar {
namespace {

bool IsBlank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// What ends a word that is not quoted; narrower than what may stand between words, as in Redis.
bool EndsWord(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Where the first CR of `input` at or after `from` stands, npos if there is none. Headers are
// short, so the bytes at hand are looked at before memchr is called.
size_t FindCarriageReturn(std::string_view input, size_t from) {
  const size_t near = from + 8 < input.size() ? from + 8 : input.size();
  for (size_t i = from; i < near; ++i) {
    if (input[i] == '\r') return i;
  }
  if (near == input.size()) return std::string_view::npos;
  const void* at = std::memchr(input.data() + near, '\r', input.size() - near);
  if (at == nullptr) return std::string_view::npos;
  return static_cast<size_t>(static_cast<const char*>(at) - input.data());
}

// One character of a "..." word at `line[*at]`, which is a backslash; moves `*at` to its last byte.
char Unescape(std::string_view line, size_t* at) {
  const size_t i = *at;
  if (line[i + 1] == 'x' && i + 3 < line.size()) {
    const int high = HexDigit(line[i + 2]);
    const int low = HexDigit(line[i + 3]);
    if (high >= 0 && low >= 0) {
      *at = i + 3;
      return static_cast<char>(high * 16 + low);
    }
  }
  *at = i + 1;
  switch (line[i + 1]) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'b':
      return '\b';
    case 'a':
      return '\a';
    default:
      return line[i + 1];
  }
}

// Reads the quoted part that begins at `line[*at]`, appends it to `bytes` and moves `*at` behind
// it.
bool ReadQuoted(std::string_view line, size_t* at, std::string* bytes) {
  const char quote = line[*at];
  for (size_t i = *at + 1; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '\\' && i + 1 < line.size() && quote == '"') {
      bytes->push_back(Unescape(line, &i));
    } else if (c == '\\' && i + 1 < line.size() && line[i + 1] == '\'') {
      bytes->push_back('\'');
      ++i;
    } else if (c == quote) {
      *at = i + 1;
      return *at == line.size() || IsBlank(line[*at]);
    } else {
      bytes->push_back(c);
    }
  }
  return false;
}

}  // namespace

bool SplitQuotedWords(std::string_view line, std::string* bytes,
                      std::vector<std::string_view>* words) {
  bytes->clear();
  // Unescaped words are never longer than the line, so `bytes` does not move under the views of it.
  bytes->reserve(line.size());
  words->clear();
  size_t i = 0;
  while (true) {
    while (i < line.size() && IsBlank(line[i])) ++i;
    if (i == line.size()) return true;
    const size_t begin = bytes->size();
    while (i < line.size() && !EndsWord(line[i])) {
      if (line[i] == '"' || line[i] == '\'') {
        if (!ReadQuoted(line, &i, bytes)) return false;
      } else {
        bytes->push_back(line[i++]);
      }
    }
    words->emplace_back(bytes->data() + begin, bytes->size() - begin);
  }
}

RequestParser::Outcome RequestParser::Fail(std::string text) {
  error_ = std::move(text);
  return Outcome::kError;
}

bool RequestParser::ReadLength(std::string_view input, std::string_view too_long,
                               std::string_view invalid, int64_t* length) {
  const size_t end = FindCarriageReturn(input, position_);
  if (end == std::string_view::npos) {
    if (input.size() - position_ > kInlineBytesMax) error_ = too_long;
    return false;
  }
  if (end + 2 > input.size()) return false;  // the LF is still to come
  if (!ParseStrictInt64(input.substr(position_ + 1, end - position_ - 1), length)) {
    error_ = invalid;
    return false;
  }
  position_ = end + 2;
  return true;
}

void RequestParser::AddShortArguments(std::string_view input, std::vector<std::string_view>* args) {
  std::array<std::string_view, 16> room;
  std::string_view* end = nullptr;
  do {
    const auto wanted = std::min<int64_t>(args_left_, room.size());
    end = TakeShortArguments(input, &position_, room.data(), room.data() + wanted);
    args_left_ -= end - room.data();
    args->insert(args->end(), room.data(), end);
  } while (args_left_ > 0 && end == room.data() + room.size());
}

RequestParser::Outcome RequestParser::Next(std::string_view* input, const Limits& limits,
                                           std::vector<std::string_view>* args) {
  if (!in_command_ && limits.AllowShort()) {
    const size_t bytes = NextShort(*input, args);
    if (bytes > 0) {
      input->remove_prefix(bytes);
      return Outcome::kCommand;
    }
  }
  return NextInSteps(input, limits, args);
}

// Where an incomplete command stopped is kept in position_, args_left_ and bulk_bytes_, so that
// bytes that trickle in are not parsed twice. The arguments are views of *input, and nothing is
// taken from that before the command is complete.
RequestParser::Outcome RequestParser::NextInSteps(std::string_view* input, const Limits& limits,
                                                  std::vector<std::string_view>* args) {
  if (input->empty()) return Outcome::kIncomplete;
  error_.clear();
  if (!in_command_) {
    args->clear();
    if (input->front() != '*') return NextInline(input, args);
    bulk_bytes_ = -1;
    constexpr std::string_view kInvalid = "Protocol error: invalid multibulk length";
    position_ =
        input->size() < kShortHeaderBytes ? 0 : ReadShortLength(input->data(), '*', &args_left_);
    if (position_ == 0 &&
        !ReadLength(*input, "Protocol error: too big mbulk count string", kInvalid, &args_left_)) {
      args_left_ = 0;
      return error_.empty() ? Outcome::kIncomplete : Outcome::kError;
    }
    if (args_left_ > kArgumentsMax) return Fail(std::string(kInvalid));
    if (limits.unauthenticated && args_left_ > kUnauthenticatedArgumentsMax) {
      return Fail("Protocol error: unauthenticated multibulk length");
    }
    // `*0` and `*-1` are requests without a word, as in Redis.
    if (args_left_ <= 0) {
      input->remove_prefix(position_);
      return Outcome::kCommand;
    }
    in_command_ = true;
  }
  while (args_left_ > 0) {
    // The fast way asks for no limits, so it is taken only where a short argument cannot exceed
    // any.
    if (bulk_bytes_ < 0 && !limits.unauthenticated && limits.bulk_bytes_max >= kShortLengthMax) {
      AddShortArguments(*input, args);
    }
    if (args_left_ == 0) break;
    if (bulk_bytes_ < 0) {
      if (position_ < input->size() && (*input)[position_] != '$') return FailWithoutBulk(*input);
      constexpr std::string_view kInvalid = "Protocol error: invalid bulk length";
      int64_t bytes = 0;
      if (!ReadLength(*input, "Protocol error: too big bulk count string", kInvalid, &bytes)) {
        return error_.empty() ? Outcome::kIncomplete : Outcome::kError;
      }
      if (bytes < 0 || bytes > limits.bulk_bytes_max) return Fail(std::string(kInvalid));
      if (limits.unauthenticated && bytes > kUnauthenticatedBulkBytesMax) {
        return Fail("Protocol error: unauthenticated bulk length");
      }
      bulk_bytes_ = bytes;
    }
    const auto bytes = static_cast<size_t>(bulk_bytes_);
    if (input->size() - position_ < bytes + 2) return Outcome::kIncomplete;
    args->emplace_back(input->data() + position_, bytes);
    position_ += bytes + 2;
    bulk_bytes_ = -1;
    --args_left_;
  }
  in_command_ = false;
  input->remove_prefix(position_);
  return Outcome::kCommand;
}

// Something else stands where an argument should begin. As in Redis that is told when the line is
// complete, though its first byte is enough to know.
RequestParser::Outcome RequestParser::FailWithoutBulk(std::string_view input) {
  if (FindCarriageReturn(input, position_) != std::string_view::npos) {
    return Fail(std::string("Protocol error: expected '$', got '") + input[position_] + "'");
  }
  if (input.size() - position_ <= kInlineBytesMax) return Outcome::kIncomplete;
  return Fail("Protocol error: too big bulk count string");
}

RequestParser::Outcome RequestParser::NextInline(std::string_view* input,
                                                 std::vector<std::string_view>* args) {
  const size_t end = input->find('\n');
  if (end == std::string_view::npos) {
    if (input->size() > kInlineBytesMax) return Fail("Protocol error: too big inline request");
    return Outcome::kIncomplete;
  }
  std::string_view line = input->substr(0, end);
  if (line.ends_with('\r')) line.remove_suffix(1);
  input->remove_prefix(end + 1);
  if (line.find('"') != std::string_view::npos || line.find('\'') != std::string_view::npos) {
    if (!unquoted_) unquoted_ = std::make_unique<std::string>();
    if (!SplitQuotedWords(line, unquoted_.get(), args)) {
      return Fail("Protocol error: unbalanced quotes in request");
    }
    return Outcome::kCommand;
  }
  size_t i = 0;
  while (true) {
    while (i < line.size() && IsBlank(line[i])) ++i;
    if (i == line.size()) return Outcome::kCommand;
    const size_t begin = i;
    while (i < line.size() && !EndsWord(line[i])) ++i;
    args->push_back(line.substr(begin, i - begin));
  }
}

void RequestParser::Rebase(const char* old_begin, const char* new_begin,
                           std::vector<std::string_view>* args) {
  if (old_begin == new_begin) return;
  for (std::string_view& arg : *args) {
    arg = {new_begin + (arg.data() - old_begin), arg.size()};
  }
}

}  // namespace cellar
