// The reply of a CROW without options, straight from the row (engine/rows/whole_row.h).
//
// Nearly all rows are short and are done at once. Of a longer one the front is written here, and a
// scan goes on behind it (scan_run.h), which knows how to let other clients in between.
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
  kBegun,    // *begun has been written, and *rest is where a scan of the row goes on
  kTooLong,  // it has more than `bytes_max`: nothing is left of it
};

// `row_key` is encoded. For somebody who may read all of the table.
WholeRowReply ReplyWholeRow(CommandContext& ctx, const Table& table, std::string_view row_key,
                            size_t bytes_max, std::optional<BegunRow>* begun, ScanPosition* rest);

}  // namespace cellar
