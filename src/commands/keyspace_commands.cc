// TTL, PTTL and OBJECT: what generic clients ask of a key. A table never expires, and has one
// encoding. The other generic commands are in table_key_commands.cc.

#include "commands/command_context.h"
#include "commands/command_groups.h"
#include "commands/help.h"
#include "commands/services.h"
#include "commands/visible_table.h"
#include "store/store.h"

namespace cellar {
namespace {

// The table, or null. Replies depend on the schema either way.
Table* Find(CommandContext& ctx, std::string_view name) {
  const Result<Table*> found = FindVisibleTable(ctx, name);
  ctx.DependsOn(ctx.store().schema_lsn());
  ctx.host.services().stats.CountLookup(found.ok());
  return found.ok() ? *found : nullptr;
}

void CmdTtl(CommandContext& ctx) { ctx.reply.Integer(Find(ctx, ctx.args[1]) == nullptr ? -2 : -1); }

void CmdObjectEncoding(CommandContext& ctx) {
  if (Find(ctx, ctx.args[2]) == nullptr) return ctx.reply.Null();
  ctx.reply.Bulk("btree");
}
void CmdObjectRefCount(CommandContext& ctx) {
  if (Find(ctx, ctx.args[2]) == nullptr) return ctx.reply.Null();
  ctx.reply.Integer(1);
}
void CmdObjectIdleTime(CommandContext& ctx) {
  if (Find(ctx, ctx.args[2]) == nullptr) return ctx.reply.Null();
  ctx.reply.Integer(0);
}
void CmdObjectFreq(CommandContext& ctx) {
  if (Find(ctx, ctx.args[2]) == nullptr) return ctx.reply.Null();
  ctx.reply.Error(
      "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that "
      "when switching between policies at runtime LRU and LFU data will take some time to adjust.");
}

constexpr KeySpec kReadOne{.first = 1, .access = KeyAccess::kRead, .scope = KeyScope::kName};
constexpr Command Object(std::string_view name, std::string_view summary, CommandHandler handler) {
  return {.name = name,
          .arity = 3,
          .flags = kReadonly,
          .categories = kCategoryKeyspace,
          .keys = {.first = 2, .access = KeyAccess::kRead, .scope = KeyScope::kName},
          .group = "generic",
          .summary = summary,
          .complexity = "O(1)",
          .syntax = "table",
          .handler = handler};
}

constexpr Command kObjectSubcommands[] = {
    Object("encoding", "Returns how a table is kept: btree.", CmdObjectEncoding),
    Object("freq", "Refused: no use is counted.", CmdObjectFreq),
    Object("idletime", "Returns 0: no use is recorded.", CmdObjectIdleTime),
    Object("refcount", "Returns 1.", CmdObjectRefCount),
    HelpSubcommand("generic"),
};

constexpr Command Generic(std::string_view name, int16_t arity, uint32_t flags, KeySpec keys,
                          std::string_view summary, std::string_view complexity,
                          std::string_view syntax, CommandHandler handler) {
  return {.name = name,
          .arity = arity,
          .flags = flags,
          .categories = kCategoryKeyspace,
          .keys = keys,
          .group = "generic",
          .summary = summary,
          .complexity = complexity,
          .syntax = syntax,
          .handler = handler};
}

constexpr Command kRows[] = {
    Generic("ttl", 2, kReadonly | kFast, kReadOne, "Returns -1: tables do not expire, cells do.",
            "O(1)", "table", CmdTtl),
    Generic("pttl", 2, kReadonly | kFast, kReadOne, "Returns -1: tables do not expire, cells do.",
            "O(1)", "table", CmdTtl),
    {.name = "object",
     .arity = -2,
     .categories = kCategoryKeyspace,
     .group = "generic",
     .summary = "Looks at a table from inside.",
     .complexity = "depends on the subcommand",
     .subcommands = kObjectSubcommands},
};

}  // namespace

std::span<const Command> KeyspaceCommands() { return kRows; }

}  // namespace cellar
