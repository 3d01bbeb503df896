// See snapshot_arguments.h.
#include "commands/arguments/snapshot_arguments.h"

#include "base/text/duration.h"
#include "commands/arguments/cell_arguments.h"
#include "commands/arguments/schema_arguments.h"
#include "commands/arguments/syntax_error.h"

namespace cellar {
namespace {

// `TABLE count name ...`, behind the word; FEED CREATE's ON says the same.
Status ParseTables(std::string_view option, ArgumentCursor* at, SnapshotRequest* request) {
  constexpr std::string_view kWords{"count name ..."};
  if (request->names_tables) return RepeatedOption(option);
  request->names_tables = true;
  ASSIGN_OR_RETURN(const std::string_view word, at->TakeAny(option, kWords));
  ASSIGN_OR_RETURN(const uint64_t count, ParseWordCount(option, kWords, word, 1));
  if (count > at->left()) return TooFewWords(option, count, at->left());
  for (uint64_t i = 0; i < count; ++i) {
    RETURN_IF_ERROR(CheckName("table", at->Peek()));
    request->tables.push_back(at->Take());
  }
  return Status::Ok();
}

}  // namespace

Result<SnapshotRequest> ParseSnapshotCreate(ArgumentCursor at) {
  SnapshotRequest request;
  while (!at.done()) {
    if (at.TakeWord("TABLE")) {
      RETURN_IF_ERROR(ParseTables("TABLE", &at, &request));
    } else if (at.TakeWord("ON")) {
      RETURN_IF_ERROR(ParseTables("ON", &at, &request));
    } else if (at.TakeWord("TTL")) {
      if (request.ttl_ms != 0) return RepeatedOption("TTL");
      ASSIGN_OR_RETURN(const std::string_view word, at.TakeAny("TTL", "duration"));
      ASSIGN_OR_RETURN(request.ttl_ms, ParseDurationMs(word));
    } else if (at.TakeWord("REPLACE")) {
      if (request.replace) return RepeatedOption("REPLACE");
      request.replace = true;
    } else {
      return UnexpectedWord(at.Peek(), "TABLE, ON, TTL or REPLACE");
    }
  }
  return request;
}

}  // namespace cellar
