// The arguments of the commands that write one row, as a RowWrite. Pure functions: words in,
// request or syntax error out (see cell_arguments.h for what is checked here and what is not).
//
//   CPUT    [NX|XX] [IF predicate]... column value [AS type] [TS micros] [TTL duration] ...
//   CDEL    [IF predicate]... [column|family ...] [COLPREFIX family prefix]...
//           [COLRANGE family min max]... [TIME min max]
//   CMUTATE [IF predicate]... op ... [ELSE op ...]
//
// Where a word could be two things: in CPUT a column always has a ':', so a word without one is an
// option of what stands before it. In CDEL and CMUTATE keywords win over families of the same name,
// except TIME in CDEL, which is the option only with exactly two words behind it.
#pragma once

#include "cellar/status.h"
#include "commands/arguments.h"
#include "engine/row_write.h"

namespace cellar {

// Each takes what follows the row key, up to the end, and adds to *write, which holds the row and
// is otherwise cleared. *write keeps its memory from command to command: nothing is allocated once
// it has grown to the size of the usual command.
Status ParsePut(ArgumentCursor at, RowWrite* write);
Status ParseDelete(ArgumentCursor at, RowWrite* write);
Status ParseMutate(ArgumentCursor at, RowWrite* write);
// `column text`: CINCRBY, CINCRBYFLOAT, CAPPEND. REQUIRES: two words are left.
Status ParseColumnOp(ArgumentCursor at, CellOp::Kind kind, RowWrite* write);

}  // namespace cellar
