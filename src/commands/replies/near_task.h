// CNEAR at work: in the handler as far as its first slice goes, else as a task.
#pragma once

#include <cstdint>
#include <memory>

#include "commands/session/command_context.h"
#include "engine/scans/near_search.h"

namespace cellar {

// [row, direction]; of an index [[value ...], row, direction]; null if there is nothing at all. For
// a node that takes the nearest of several sets [the entry's key, 1 if it lies before, that].
enum class NearReply : uint8_t { kRow, kEntry, kPlacedEntry };

// REQUIRES: called last, as CommandContext::Continue().
void RunNear(CommandContext& ctx, const Table& table, std::unique_ptr<NearSearch> search,
             NearReply form);

}  // namespace cellar
