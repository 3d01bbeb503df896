// ChangeTask: a change too large for one turn (CDELRANGE, CUPDATE, FAMILY ALTER), carried on in
// slices. Each slice is atomic and logged by itself; the reply comes when all is done.
#pragma once

#include <memory>

#include "commands/session/command_context.h"
#include "commands/session/task.h"
#include "commands/session/work_memory.h"
#include "store/sliced_change.h"
#include "store/store.h"

namespace cellar {

enum class ChangeReply : uint8_t { kRowsDeleted, kRowsUpdated, kOk, kCopied };

// Does `change` of `table`, at once if it is small (or inside EXEC), else as a Task. Those who
// listen for events of the table are told when it is done. `held` is what it has of the memory for
// such work already. One that may come to hold more waits for that behind its first slice.
// `then`: what its reply waits for when all is done, and which replies then; null: nothing.
void RunChange(CommandContext& ctx, const Table& table, std::unique_ptr<SlicedChange> change,
               ChangeReply reply, WorkMemory::Lease held, std::unique_ptr<Task> then = {});
// The same as a task of somebody who has waited for others before, for a change that is no list of
// rows: the reply is OK, or that of `then`.
std::unique_ptr<Task> ChangeAsTask(Host& host, const Table& table,
                                   std::unique_ptr<SlicedChange> change,
                                   std::unique_ptr<Task> then);
// Does a copy in the same way; its table is there when it is done.
void RunCopy(CommandContext& ctx, std::string_view keyspace, std::string_view table,
             std::unique_ptr<SlicedChange> change);

}  // namespace cellar
