// What the files of schema commands share.
#pragma once

#include <string_view>

#include "cellar/status.h"
#include "commands/arguments/schema_arguments.h"
#include "commands/session/command_context.h"

namespace cellar {

// The keyspace that `name` names: NOKEYSPACE if there is none.
Status CheckKeyspace(CommandContext& ctx, std::string_view keyspace);

// Replies the Status of a schema change: OK, or the error.
void ReplyChange(CommandContext& ctx, const Status& status);

// Of TABLE INFO, FAMILY INFO, INDEX INFO: whether nothing but LOCAL stands behind what they name;
// replies if something else does.
bool CheckInfoWords(CommandContext& ctx);

// The two events of a renamed table.
void NotifyRenamed(Host& host, const TableName& from, const TableName& to);

// Replies `names` as an array of bulk strings.
template <typename Names>
void ReplyNames(ReplyWriter& reply, const Names& names) {
  reply.Array(names.size());
  for (const auto& name : names) reply.Bulk(name);
}

// MEMORY USAGE, for the rows of the MEMORY container (arity -3, keys.first = 2).
void CmdMemoryUsage(CommandContext& ctx);

}  // namespace cellar
