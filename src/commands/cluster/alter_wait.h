// What FAMILY ALTER waits for where rows lie on other sets: OK is told when each of them goes by
// what the family keeps now (store/policy_changes.h). The sets are asked by CLUSTER SETTLED, which
// answers then.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "commands/session/task.h"

namespace cellar {

class Table;
struct CommandContext;

// Whether there are other sets, and this node directs them.
bool HasSetsToAwait(const CommandContext& ctx);
// Null: there is nobody to wait for.
std::unique_ptr<Task> AwaitSettled(CommandContext& ctx, const Table& table);
// `then` goes on in the place of OK. REQUIRES: HasSetsToAwait.
std::unique_ptr<Task> AwaitSettled(CommandContext& ctx, const Table& table,
                                   std::unique_ptr<Task> then);

// Whether these words of a call between nodes are that.
bool IsSettledCall(std::span<const std::string_view> words);
// CLUSTER SETTLED what: a table, with its keyspace.
void CmdClusterSettled(CommandContext& ctx);

}  // namespace cellar
