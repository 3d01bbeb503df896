// ListRows: in the place of what a command would do with its rows, a page of them, for the node
// that puts together what several sets have (cluster/scatter_choice.h).
#pragma once

#include "commands/arguments/read_arguments.h"
#include "commands/cluster/call_piece.h"
#include "commands/session/command_context.h"

namespace cellar {

class Table;

// As CSCAN ... KEYSONLY from the piece's cursor on would, with places: its errors, too. REQUIRES:
// called last, as CommandContext::Continue().
void ListRows(CommandContext& ctx, Table& table, const CallPiece& piece, ReadRequest* request);

// Of a piece whose rows were found so: no others are looked for.
void NameRows(ReadRequest* request);

}  // namespace cellar
