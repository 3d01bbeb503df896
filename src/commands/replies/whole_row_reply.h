// The replies of CROW and CROWS without options, straight from the rows (engine/rows/whole_row.h).
//
// Nearly all rows are short and are done at once. Of a longer one, or of many, the front is written
// here, and a scan goes on behind it (scan_run.h), which knows how to let other clients in between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "commands/replies/scan_run.h"
#include "commands/session/command_context.h"
#include "engine/rows/scan.h"

namespace cellar {

enum class WholeRowReply : uint8_t {
  kDone,
  kBegun,    // *begun has been written, and the rest is for a scan
  kRefused,  // it cannot be done here, for a reason that a scan will tell: nothing is left of it
};

// `row_key` is encoded. For somebody who may read all of the table. kBegun: the scan is of the row,
// and goes on at *rest. kRefused: the row has more than `bytes_max`.
WholeRowReply ReplyWholeRow(CommandContext& ctx, const Table& table, std::string_view row_key,
                            size_t bytes_max, std::optional<BegunReply>* begun, ScanPosition* rest);

// The rows with these keys, as they are named. For somebody who may read all of the table. kBegun:
// the scan is of the rows behind those of *begun. kRefused: a key is in doubt.
WholeRowReply ReplyWholeRows(CommandContext& ctx, const Table& table, Arguments rows,
                             size_t bytes_max, std::optional<BegunReply>* begun);

}  // namespace cellar
