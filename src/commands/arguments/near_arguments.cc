// See near_arguments.h.
#include "commands/arguments/near_arguments.h"

#include "commands/arguments/cell_arguments.h"
#include "commands/arguments/syntax_error.h"

namespace cellar {

Result<NearIndexRequest> ParseNearIndex(Arguments args) {
  ArgumentCursor at(args, 2);
  if (!at.TakeWord("INDEX"))
    return SyntaxErrorBecause("CNEAR takes one row, or INDEX index count value ...");
  if (at.left() < 3) return IncompleteOption("INDEX", "index count value ...");
  NearIndexRequest request;
  request.index = at.Take();
  ASSIGN_OR_RETURN(const uint64_t count,
                   ParseWordCount("INDEX index", "count value ...", at.Take(), 1));
  if (at.left() < count) return TooFewWords("INDEX", count, at.left());
  if (at.left() > count) return SyntaxErrorBecause("more values than the count says");
  const Arguments rest = at.Rest();
  request.values = {rest.begin(), rest.end()};
  return request;
}

}  // namespace cellar
