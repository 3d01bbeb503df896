// The arguments of the commands that write one row, as a RowWrite. Pure functions: words in,
// request or syntax error out (see cell_arguments.h for what is checked here and what is not).
//
//   CPUT    [NX|XX] [IF predicate]... column value [AS type] [TS time]
//           [TTL duration | EXPIREAT time] ...
//   CDEL    [IF predicate]... [column|family ...] [COLPREFIX family prefix]...
//           [COLRANGE family min max]... [TIME min max]
//   CADD    [IF predicate]... column input [TS time] ...
//   CMUTATE [IF predicate]... op ... [ELSE op ...]
//
// Where a word could be two things: in CPUT a column always has a ':', so a word without one is an
// option of what stands before it. In CDEL and CMUTATE keywords win over families of the same name,
// except TIME in CDEL, which is the option only with exactly two words behind it. Who writes TIME
// with fewer or more is told NOFAMILY, since that shows only once the table is known, and a hint.
#pragma once

#include <string_view>
#include <vector>

#include "base/assert.h"
#include "base/inline.h"
#include "cellar/status.h"
#include "commands/arguments/arguments.h"
#include "commands/arguments/cell_arguments.h"
#include "engine/request/row_write.h"
#include "engine/schema/schema.h"

namespace cellar {

// Each takes what follows the row key, up to the end, and adds to *write, which holds the row and
// is otherwise cleared. *write keeps its memory from command to command: nothing is allocated once
// it has grown to the size of the usual command.
CELLAR_INLINE Status ParsePut(ArgumentCursor at, RowWrite* write);
Status ParseDelete(ArgumentCursor at, RowWrite* write);
Status ParseAdd(ArgumentCursor at, RowWrite* write);
Status ParseMutate(ArgumentCursor at, RowWrite* write);
// The ops of CUPDATE, up to the end.
Status ParseUpdateOps(ArgumentCursor at, RowWrite* write);
// `PREFIX p`, `RANGE min max` or `ALL`, as rows to delete; ALL is no selector.
Status ParseDeleteRange(ArgumentCursor at, RowOptions* rows);
// Does an op of CMUTATE begin with this word?
bool IsOpWord(std::string_view word);
// `column text`: CINCRBY, CINCRBYFLOAT, CAPPEND. REQUIRES: two words are left.
Status ParseColumnOp(ArgumentCursor at, CellOp::Kind kind, RowWrite* write);

// `refusal` of a write in a table with these families. If it is that of a family TIME which is not
// there, and which will have been meant as the option, a hint is added:
//
//   NOFAMILY no family 'TIME' in table 't' -- as an option TIME takes min and max, at the end
[[gnu::cold]] Status HintAtTime(Status refusal, const TableSchema& schema, const RowWrite& write);

// --- parts of ParsePut. It is inlined, since every CPUT takes it; what is rare lies behind these.

// Steps over the next argument if it is a column.
CELLAR_INLINE bool TakeColumn(ArgumentCursor* at, std::string_view* family,
                              std::string_view* qualifier) {
  if (at->done() || !SplitColumn(at->Peek(), family, qualifier)) return false;
  (void)at->Take();
  return true;
}
CELLAR_INLINE CellOp& AddPut(std::string_view family, std::string_view qualifier,
                             std::string_view text, std::vector<CellOp>* ops) {
  return ops->emplace_back(CellPut{family, qualifier, text});
}
// NX, XX, IF before the columns of CPUT.
Status TakePutOption(ArgumentCursor* at, RowWrite* write);
// AS, TS and TTL behind a value. Stops before the first word that is none of them; a second one of
// the same kind is a syntax error.
Status TakeValueOptions(ArgumentCursor* at, PutOptions* options);
// The word after a value and its options, which is no column.
[[gnu::cold]] Status NotNextColumn(std::string_view word);
[[gnu::cold]] Status NoValue(std::string_view family, std::string_view qualifier);

Status ParsePut(ArgumentCursor at, RowWrite* write) {
  CELLAR_ASSERT(write->ops.empty());
  std::string_view family;
  std::string_view qualifier;
  // Others get a copy of the cursor, so that it can stay in registers here.
  while (!TakeColumn(&at, &family, &qualifier)) [[unlikely]] {
      ArgumentCursor copy = at;
      RETURN_IF_ERROR(TakePutOption(&copy, write));
      at = copy;
    }
  while (true) {
    if (at.done()) [[unlikely]]
      return NoValue(family, qualifier);
    CellOp& op = AddPut(family, qualifier, at.Take(), &write->ops);
    if (at.done()) return Status::Ok();
    // What follows a value is nearly always the next column.
    if (TakeColumn(&at, &family, &qualifier)) [[likely]]
      continue;
    ArgumentCursor copy = at;
    RETURN_IF_ERROR(TakeValueOptions(&copy, &op));
    at = copy;
    if (at.done()) return Status::Ok();
    if (!TakeColumn(&at, &family, &qualifier)) return NotNextColumn(at.Peek());
  }
}

}  // namespace cellar
