// ScatterCommands: commands whose rows lie on several sets of a cluster. They run as tasks
// (session/task.h) at the node that the client is connected to, ask each set for its rows through
// RemoteCalls, and put the replies together: the reply is byte for byte what one server with all
// the rows would give.
//
//   CSCAN             piece after piece, from where the cursor stands, for what is left of the page
//                     (scatter_scan.h)
//   CNEAR             the row's owner, then whoever has the rows beside it; of an index all sets
//   CROWS             each set is asked for its rows
//   CCOUNT CDELRANGE  all sets beside each other; the counts are added
//   CUPDATE           likewise, and with LIMIT piece after piece
//   ... INFO          likewise, of a table, family or index (scatter_info.h)
//   CAGG              all sets fold their rows; the groups are merged (scatter_aggregate.h)
//   ... EACH, CUPDATE ... INDEX ... LIMIT   which rows these are is merged first, from lists of all
//                     sets (scatter_choice.h)
//   XREAD XRANGE XREVRANGE XLEN   entries of a feed, merged (merged_feed.h)
//   TABLE SAMPLE, CEXPLAIN   all sets beside each other (scatter_parts.h)
//
// A piece is the client's own command, restricted to rows that the map says a set owns
// (call_piece.h). What cannot be exact over several sets is refused: CROSSSET, nothing was done.
#pragma once

namespace cellar {

struct CommandContext;
struct CommandEntry;

class ScatterCommands {
 public:
  // Whether the command is one of them.
  static bool Takes(const CommandEntry& command);
  // In the place of the command's handler: it is answered, or goes on as a task. REQUIRES: Takes.
  static void Begin(CommandContext& ctx);
};

}  // namespace cellar
