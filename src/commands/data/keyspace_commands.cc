// KEYSPACE: the groups of tables there are. Dropping one takes its tables along, as one record of
// the log.
#include <string>
#include <utility>
#include <vector>

#include "commands/arguments/schema_arguments.h"
#include "commands/data/data_commands.h"
#include "commands/replies/schema_commands.h"
#include "commands/reports/help.h"
#include "commands/session/command_context.h"
#include "commands/session/table_events.h"
#include "engine/table/table.h"
#include "store/store.h"

namespace cellar {
namespace {

void CmdKeyspaceCreate(CommandContext& ctx) {
  REPLY_IF_ERROR(ctx, CheckName("keyspace", ctx.args[2]));
  ReplyChange(ctx, ctx.store().CreateKeyspace(ctx.args[2]));
}

void CmdKeyspaceDrop(CommandContext& ctx) {
  // Taken down before the drop, behind which the tables of the events are gone.
  std::vector<std::pair<std::string, std::string>> names;
  for (const Table* table : ctx.store().Tables(ctx.args[2])) {
    names.emplace_back(table->keyspace(), table->name());
  }
  const Status status = ctx.store().DropKeyspace(ctx.args[2]);
  ReplyChange(ctx, status);
  if (status.ok()) NotifyFlushed(ctx.host, "table.drop", names);
}

void CmdKeyspaceList(CommandContext& ctx) {
  ctx.DependsOn(ctx.store().schema_lsn());
  ReplyNames(ctx.reply, ctx.store().Keyspaces());
}

constexpr KeySpec kEveryTable{.access = KeyAccess::kWrite, .scope = KeyScope::kEverything};

constexpr Command kKeyspaceRows[] = {
    {.name = "create",
     .arity = 3,
     .flags = kWrite | kDenyOom,
     .categories = kCategorySchema,
     .group = "schema",
     .summary = "Creates a keyspace.",
     .complexity = "O(log n) where n is the number of keyspaces",
     .syntax = "keyspace",
     .handler = CmdKeyspaceCreate},
    {.name = "drop",
     .arity = 3,
     .flags = kWrite,
     .categories = kCategorySchema | kCategoryDangerous,
     .keys = kEveryTable,
     .group = "schema",
     .summary = "Drops a keyspace and its tables. Keyspaces 0 to 15 cannot be dropped.",
     .complexity = "O(n) where n is the number of tables of the keyspace",
     .syntax = "keyspace",
     .handler = CmdKeyspaceDrop},
    {.name = "list",
     .arity = 2,
     .flags = kReadonly,
     .categories = kCategorySchema,
     .group = "schema",
     .summary = "Returns the names of all keyspaces, sorted.",
     .complexity = "O(n) where n is the number of keyspaces",
     .syntax = "",
     .handler = CmdKeyspaceList},
    HelpSubcommand("schema"),
};

constexpr Command kKeyspaceCommands[] = {
    {.name = "keyspace",
     .arity = -2,
     .group = "schema",
     .summary = "Creates, drops and lists keyspaces.",
     .complexity = "Depends on the subcommand.",
     .subcommands = kKeyspaceRows},
};

}  // namespace

std::span<const Command> KeyspaceCommands() { return kKeyspaceCommands; }

}  // namespace cellar
