// RequestParser: bytes from a client to commands, without copying an argument.
//
//   *3\r\n$4\r\nCPUT\r\n$1\r\nt\r\n...      an array of bulk strings (RESP2 and RESP3 alike)
//   cput t row f:q "a \x41 value"\r\n       an inline command, for people with telnet
//
// The views that Next() gives point into the caller's buffer (those of an inline command with
// quotes into the parser's own memory) and live until the buffer changes or Next() is called again.
// An incomplete command keeps its progress: the caller keeps the bytes from the command's first
// byte on, appends what comes, tells Rebase() if they moved, and calls again; nothing is read
// twice. The arguments so far are all that is kept: a count of more than 999 allocates nothing.
//
// Limits and their texts are Redis': see Limits. After kError the client is beyond saving: error()
// is the reply, then the connection is closed. The parser knows no commands and no sockets.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/inline.h"
#include "resp/short_arguments.h"

namespace cellar {

class RequestParser {
 public:
  struct Limits {
    int64_t bulk_bytes_max{512LL * 1024 * 1024};  // proto-max-bulk-len
    // A client that has not yet said who it is may send only small commands (10 arguments of
    // 16 KiB), so that it cannot fill the memory.
    bool unauthenticated{false};

    // May the headers be read that nearly all commands have, without asking for each?
    bool AllowShort() const { return !unauthenticated && bulk_bytes_max >= kShortLengthMax; }
  };
  enum class Outcome : uint8_t {
    kCommand,     // args() is a command, perhaps an empty one, to be skipped without a reply
    kIncomplete,  // all bytes belong to a command that is not all there yet
    kError,
  };

  // Reads one command from `*input` and removes it from there. With kIncomplete `*input` stays; the
  // next call must see the same bytes again, with more behind them.
  // `args` is the caller's: it is cleared when a command begins and must be kept while incomplete.
  Outcome Next(std::string_view* input, const Limits& limits, std::vector<std::string_view>* args);
  // Next for the command that nearly every one is: its headers are short, and all of it is there.
  // Its size; 0 if it is another, which Next must be called for then.
  // REQUIRES: !in_command(), limits.AllowShort().
  CELLAR_INLINE size_t NextShort(std::string_view input, std::vector<std::string_view>* args);

  // Forgets the command that has begun, and an error: the next call begins a command.
  void Forget() {
    position_ = 0;
    args_left_ = 0;
    bulk_bytes_ = -1;
    in_command_ = false;
  }

  // The bytes of the incomplete command have moved from `old_begin` to `new_begin`.
  static void Rebase(const char* old_begin, const char* new_begin,
                     std::vector<std::string_view>* args);

  // Whether a command has begun and is not complete.
  bool in_command() const { return in_command_; }
  // REQUIRES: the last outcome was kError. Without the leading "-ERR ".
  const std::string& error() const { return error_; }

  static constexpr size_t kInlineBytesMax{64 * 1024};
  static constexpr int64_t kArgumentsMax{2147483647};
  static constexpr int64_t kUnauthenticatedArgumentsMax{10};
  static constexpr int64_t kUnauthenticatedBulkBytesMax{16 * 1024};

 private:
  Outcome NextInline(std::string_view* input, std::vector<std::string_view>* args);
  Outcome FailWithoutBulk(std::string_view input);
  // Reads a `*n` or `$n` line at position_. False: incomplete, or error_ is set.
  bool ReadLength(std::string_view input, std::string_view too_long, std::string_view invalid,
                  int64_t* length);
  // Next for commands that are not simply short and all there, or have begun.
  Outcome NextInSteps(std::string_view* input, const Limits& limits,
                      std::vector<std::string_view>* args);
  // Takes arguments of the command that has begun while they are short and all there.
  void AddShortArguments(std::string_view input, std::vector<std::string_view>* args);
  Outcome Fail(std::string text);

  size_t position_{0};      // bytes of the current command already read
  int64_t args_left_{0};    // bulk strings still to come
  int64_t bulk_bytes_{-1};  // size of the one being read, -1: its header is still to come
  bool in_command_{false};
  std::string error_;
  std::unique_ptr<std::string> unquoted_;  // the arguments of an inline command with quotes
};

size_t RequestParser::NextShort(std::string_view input, std::vector<std::string_view>* args) {
  if (input.size() < kShortHeaderBytes) [[unlikely]]
    return 0;
  int64_t length = 0;
  size_t position = ReadShortLength(input.data(), '*', &length);
  const auto count = static_cast<size_t>(length);
  if (position == 0 || count == 0) [[unlikely]]
    return 0;
  // Most commands have as many arguments as the one before.
  if (args->size() != count) args->resize(count);
  std::string_view* const begin = args->data();
  const std::string_view* const end = TakeShortArguments(input, &position, begin, begin + count);
  if (end == begin + count) [[likely]]
    return position;
  args->resize(static_cast<size_t>(end - begin));
  in_command_ = true;
  position_ = position;
  args_left_ = static_cast<int64_t>(count - args->size());
  bulk_bytes_ = -1;
  return 0;
}

// Splits a line into words as redis-cli and Redis' configuration file do: "..." with the escapes
// \n \r \t \b \a \xHH, '...' with \', blanks between. False if a quote is not closed, or is
// followed by anything but a blank. `bytes` receives the words' bytes one after the other
// (reserve() is done here, so the views in `words` stay valid as long as `bytes` is not changed).
[[nodiscard]] bool SplitQuotedWords(std::string_view line, std::string* bytes,
                                    std::vector<std::string_view>* words);

}  // namespace cellar
