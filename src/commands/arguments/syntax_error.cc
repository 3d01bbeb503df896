// See syntax_error.h.
#include "commands/arguments/syntax_error.h"

#include <string>

#include "base/assert.h"
#include "base/text/number.h"
#include "base/text/quote.h"

namespace cellar {

Status SyntaxErrorBecause(std::string_view text) {
  return Status::Error(ErrorCode::kErr, std::string("syntax error: ").append(text));
}

Status UnexpectedWord(std::string_view word, std::string_view expected) {
  return SyntaxErrorBecause(Quote(word).append(" is not ").append(expected));
}

Status IncompleteOption(std::string_view option, std::string_view words) {
  std::string text = "too few words after ";
  text.append(option).append(" (").append(words).append(")");
  return SyntaxErrorBecause(text);
}

Status RepeatedOption(std::string_view option) {
  return SyntaxErrorBecause(std::string(option).append(" is given twice"));
}

Status NotCount(std::string_view word, std::string_view option, std::string_view words) {
  std::string expected = "a count, as in ";
  return UnexpectedWord(word, expected.append(option).append(" ").append(words));
}

Status TooFewWords(std::string_view option, uint64_t count, uint64_t left) {
  CELLAR_ASSERT(count > left);
  const std::string number = FormatUint64(count);
  return SyntaxErrorBecause(std::string(option) + " " + number + " needs " + number +
                            (count == 1 ? " word" : " words") + " after it, not " +
                            FormatUint64(left));
}

}  // namespace cellar
