// Small helpers that every command needs to read its arguments: words in any case, numbers with
// Redis' error texts, and a cursor over the arguments of a command with options.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/assert.h"
#include "base/text/ascii.h"
#include "cellar/status.h"
#include "commands/arguments/syntax_error.h"

namespace cellar {

using Arguments = std::span<const std::string_view>;

// "ERR value is not an integer or out of range".
Result<int64_t> IntegerArgument(std::string_view text);
// An integer in [low, high]: `out_of_range` (without "ERR ") if it is outside.
Result<int64_t> IntegerArgument(std::string_view text, int64_t low, int64_t high,
                                std::string_view out_of_range);
// "ERR value is not a valid float".
Result<double> DoubleArgument(std::string_view text);
// Memory sizes of CONFIG: "100", "64kb", "1mb", "2g", "1k" (1000), as Redis reads them.
Result<int64_t> MemoryArgument(std::string_view text);

// Walks the arguments of a command from left to right.
//
//   ArgumentCursor at(ctx.args, 1);
//   std::string_view table = at.Take();
//   while (!at.done()) {
//     if (!at.TakeWord("COUNT")) return Status::SyntaxError();
//     ASSIGN_OR_RETURN(count, at.TakeInteger());
//   }
class ArgumentCursor {
 public:
  // REQUIRES: `first` is not beyond the end of `args`.
  ArgumentCursor(Arguments args, size_t first) : args_(args), next_(first) {
    CELLAR_DEBUG_ASSERT(first <= args.size());
  }

  bool done() const { return next_ >= args_.size(); }
  size_t left() const { return args_.size() - next_; }
  size_t position() const { return next_; }
  // REQUIRES: !done().
  std::string_view Peek() const {
    CELLAR_DEBUG_ASSERT(!done());
    return args_[next_];
  }
  std::string_view Take() {
    CELLAR_DEBUG_ASSERT(!done());
    return args_[next_++];
  }
  // Steps over the next argument if it is `word`, in any case.
  bool TakeWord(std::string_view word) {
    if (done() || !EqualsIgnoreCase(args_[next_], word)) return false;
    ++next_;
    return true;
  }
  // Takes the next argument, of an option; if there is none, the error says that `words`
  // must follow `option` (see syntax_error.h).
  Result<std::string_view> TakeAny(std::string_view option, std::string_view words) {
    if (done()) return IncompleteOption(option, words);
    return args_[next_++];
  }
  // Takes an integer; a missing one is a syntax error.
  Result<int64_t> TakeInteger() {
    if (done()) return Status::SyntaxError();
    return IntegerArgument(args_[next_++]);
  }
  // All that is left.
  Arguments Rest() {
    const Arguments rest = args_.subspan(next_);
    next_ = args_.size();
    return rest;
  }

 private:
  Arguments args_;
  size_t next_;
};

}  // namespace cellar
