// What a client is told that has written a command wrongly. The text begins with Redis' own words,
// by which clients and their tests know it, and goes on with the word at fault and what should
// stand there:
//
//   ERR syntax error: 'model' is not a column (family:qualifier), AS, TS or TTL
//
// All of it is cold: no command that is right comes here. The generic commands of Redis keep its
// bare text (Status::SyntaxError).
#pragma once

#include <cstdint>
#include <string_view>

#include "cellar/status.h"

namespace cellar {

// "syntax error: TEXT".
[[gnu::cold]] Status SyntaxErrorBecause(std::string_view text);
// "syntax error: 'WORD' is not EXPECTED". `word` is the client's.
[[gnu::cold]] Status UnexpectedWord(std::string_view word, std::string_view expected);
// "syntax error: too few words after OPTION (WORDS)". `words` as in the command's syntax.
[[gnu::cold]] Status IncompleteOption(std::string_view option, std::string_view words);
// "syntax error: OPTION is given twice".
[[gnu::cold]] Status RepeatedOption(std::string_view option);
// "syntax error: 'WORD' is not a count, as in OPTION WORDS". `words` begins with `count`.
[[gnu::cold]] Status NotCount(std::string_view word, std::string_view option,
                              std::string_view words);
// "syntax error: OPTION 3 needs 3 words after it, not 2". REQUIRES: count > left.
[[gnu::cold]] Status TooFewWords(std::string_view option, uint64_t count, uint64_t left);

}  // namespace cellar
