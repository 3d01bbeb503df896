// What Redis has and Cellar has not: scripts and functions, modules. Clients, proxies and tools ask
// for these without meaning much by it (forget all scripts!), so each is answered as by a Redis
// that happens to have none of them: an empty list, OK where there is nothing to do, Redis' own
// error where something would have to be there. (A cluster: commands/cluster.)
//
// Refused outright is only what would bring one of them into being: EVAL, SCRIPT LOAD, FUNCTION
// LOAD, FUNCTION RESTORE, MODULE LOAD, SYNC.
#include <cstdint>
#include <string>

#include "commands/admin/admin_commands.h"
#include "commands/reports/help.h"
#include "commands/session/command_context.h"
#include "resp/decimal.h"

namespace cellar {
namespace {

// --- scripts and functions

// The count of keys that EVAL and FCALL carry, checked as Redis checks it before it looks for the
// script.
Status CheckNumKeys(Arguments args) {
  ASSIGN_OR_RETURN(const int64_t keys, IntegerArgument(args[2]));
  if (keys < 0) return Status::Error(ErrorCode::kErr, "Number of keys can't be negative");
  if (static_cast<uint64_t>(keys) > args.size() - 3) {
    return Status::Error(ErrorCode::kErr, "Number of keys can't be greater than number of args");
  }
  return Status::Ok();
}

void RefuseScripting(CommandContext& ctx) { ctx.Fail("ERR This instance has scripting disabled"); }

void CmdEval(CommandContext& ctx) {
  REPLY_IF_ERROR(ctx, CheckNumKeys(ctx.args));
  RefuseScripting(ctx);
}

void CmdEvalSha(CommandContext& ctx) {
  REPLY_IF_ERROR(ctx, CheckNumKeys(ctx.args));
  ctx.Fail("NOSCRIPT No matching script. Please use EVAL.");
}

void CmdFCall(CommandContext& ctx) { ctx.Fail("ERR Function not found"); }

void CmdScriptExists(CommandContext& ctx) {
  ctx.reply.Array(ctx.args.size() - 2);
  for (size_t i = 2; i < ctx.args.size(); ++i) ctx.reply.Integer(0);
}

void CmdNotBusy(CommandContext& ctx) { ctx.Fail("NOTBUSY No scripts in execution right now."); }

// SCRIPT FLUSH and FUNCTION FLUSH: nothing is there to be forgotten.
void Flush(CommandContext& ctx, std::string_view refusal) {
  const bool known =
      ctx.args.size() == 2 || (ctx.args.size() == 3 && (EqualsIgnoreCase(ctx.args[2], "sync") ||
                                                        EqualsIgnoreCase(ctx.args[2], "async")));
  if (!known) return ctx.Fail(refusal);
  ctx.reply.Ok();
}
void CmdScriptFlush(CommandContext& ctx) {
  Flush(ctx, "ERR SCRIPT FLUSH only support SYNC|ASYNC option");
}
void CmdFunctionFlush(CommandContext& ctx) {
  Flush(ctx, "ERR FUNCTION FLUSH only supports SYNC|ASYNC option");
}

void CmdFunctionDelete(CommandContext& ctx) { ctx.Fail("ERR Library not found"); }

void CmdFunctionList(CommandContext& ctx) {
  ArgumentCursor at(ctx.args, 2);
  while (!at.done()) {
    if (at.TakeWord("withcode")) continue;
    if (!at.TakeWord("libraryname")) {
      return ctx.Fail("ERR Unknown argument " + std::string(at.Peek()));
    }
    if (at.done()) return ctx.Fail("ERR library name argument was not given");
    (void)at.Take();
  }
  ctx.reply.Array(0);
}

void CmdFunctionStats(CommandContext& ctx) {
  ctx.reply.Map(2);
  ctx.reply.Bulk("running_script");
  ctx.reply.Null();
  ctx.reply.Bulk("engines");
  ctx.reply.Map(0);
}

// --- modules

void CmdModuleList(CommandContext& ctx) { ctx.reply.Array(0); }

void CmdModuleRefused(CommandContext& ctx) {
  ctx.Fail("ERR MODULE command not allowed. This instance has module support disabled.");
}

// --- replicas of Redis

void CmdSync(CommandContext& ctx) {
  ctx.Fail("ERR Replicas of Cellar follow by PEER, not by Redis' protocol");
}

// --- the rows

constexpr Command Script(std::string_view name, int16_t arity, uint32_t flags,
                         std::string_view summary, std::string_view syntax,
                         CommandHandler handler) {
  return {.name = name,
          .arity = arity,
          .flags = kNoScript | flags,
          .categories = kCategoryScripting,
          .group = "scripting",
          .summary = summary,
          .complexity = "O(1)",
          .syntax = syntax,
          .handler = handler};
}

constexpr Command Run(std::string_view name, uint32_t flags, std::string_view summary,
                      std::string_view syntax, CommandHandler handler) {
  Command row = Script(name, -3, kStale | kSkipMonitor | kMovableKeys | kNoMandatoryKeys | flags,
                       summary, syntax, handler);
  row.keys = {.access = (flags & kReadonly) != 0 ? KeyAccess::kRead : KeyAccess::kReadWrite,
              .count = 2};
  return row;
}

constexpr Command Module(std::string_view name, int16_t arity, std::string_view summary,
                         std::string_view syntax, CommandHandler handler) {
  return {.name = name,
          .arity = arity,
          .flags = kAdmin | kNoScript,
          .group = "module",
          .summary = summary,
          .complexity = "O(1)",
          .syntax = syntax,
          .handler = handler};
}

constexpr Command Replication(std::string_view name, int16_t arity, uint32_t flags,
                              std::string_view summary, std::string_view syntax,
                              CommandHandler handler) {
  return {.name = name,
          .arity = arity,
          .flags = kAdmin | kNoScript | flags,
          .group = "redis-replication",
          .summary = summary,
          .complexity = "O(1)",
          .syntax = syntax,
          .handler = handler};
}

constexpr Command kScriptSubcommands[] = {
    Script("debug", 3, 0, "Refused: there is no scripting.", "(YES|SYNC|NO)", RefuseScripting),
    Script("exists", -3, 0, "Returns which scripts are known: none.", "sha1...", CmdScriptExists),
    Script("flush", -2, 0, "Forgets all scripts, of which there are none.", "[ASYNC|SYNC]",
           CmdScriptFlush),
    Script("kill", 2, kAllowBusy, "Ends the running script, of which there is none.", "",
           CmdNotBusy),
    Script("load", 3, kStale, "Refused: there is no scripting.", "script", RefuseScripting),
    HelpSubcommand("scripting"),
};

constexpr Command kFunctionSubcommands[] = {
    Script("delete", 3, kWrite, "Deletes a library, of which there are none.", "library-name",
           CmdFunctionDelete),
    Script("dump", 2, 0, "Refused: there is no scripting.", "", RefuseScripting),
    Script("flush", -2, kWrite, "Deletes all libraries, of which there are none.", "[ASYNC|SYNC]",
           CmdFunctionFlush),
    Script("kill", 2, kAllowBusy, "Ends the running function, of which there is none.", "",
           CmdNotBusy),
    Script("list", -2, 0, "Lists the libraries: none.",
           "[LIBRARYNAME library-name-pattern] [WITHCODE]", CmdFunctionList),
    Script("load", -3, kWrite | kDenyOom, "Refused: there is no scripting.",
           "[REPLACE] function-code", RefuseScripting),
    Script("restore", -3, kWrite | kDenyOom, "Refused: there is no scripting.",
           "serialized-value [FLUSH|APPEND|REPLACE]", RefuseScripting),
    Script("stats", 2, kAllowBusy, "Returns the engines (none) and what runs (nothing).", "",
           CmdFunctionStats),
    HelpSubcommand("scripting"),
};

constexpr Command kModuleSubcommands[] = {
    Module("list", 2, "Lists the modules: none.", "", CmdModuleList),
    Module("load", -3, "Refused: there are no modules.", "path [arg...]", CmdModuleRefused),
    Module("loadex", -3, "Refused: there are no modules.",
           "path [CONFIG name value]... [ARGS args...]", CmdModuleRefused),
    Module("unload", 3, "Refused: there are no modules.", "name", CmdModuleRefused),
    HelpSubcommand("module"),
};

constexpr Command kUnsupportedCommands[] = {
    Run("eval", 0, "Refused: there is no scripting.", "script numkeys [key...] [arg...]", CmdEval),
    Run("eval_ro", kReadonly, "Refused: there is no scripting.", "script numkeys [key...] [arg...]",
        CmdEval),
    Run("evalsha", 0, "Runs a script that is known, of which there are none.",
        "sha1 numkeys [key...] [arg...]", CmdEvalSha),
    Run("evalsha_ro", kReadonly, "Runs a script that is known, of which there are none.",
        "sha1 numkeys [key...] [arg...]", CmdEvalSha),
    Run("fcall", 0, "Runs a function, of which there are none.",
        "function numkeys [key...] [arg...]", CmdFCall),
    Run("fcall_ro", kReadonly, "Runs a function, of which there are none.",
        "function numkeys [key...] [arg...]", CmdFCall),
    {.name = "script",
     .arity = -2,
     .group = "scripting",
     .summary = "Replies as if no script were known.",
     .complexity = "O(1)",
     .subcommands = kScriptSubcommands},
    {.name = "function",
     .arity = -2,
     .group = "scripting",
     .summary = "Replies as if there were no functions.",
     .complexity = "O(1)",
     .subcommands = kFunctionSubcommands},
    {.name = "module",
     .arity = -2,
     .group = "module",
     .summary = "Replies as if no module were loaded.",
     .complexity = "O(1)",
     .subcommands = kModuleSubcommands},
    Replication("psync", -3, kNoMulti, "Refused: replicas follow by PEER.", "replicationid offset",
                CmdSync),
    Replication("sync", 1, kNoMulti, "Refused: replicas follow by PEER.", "", CmdSync),
    Replication("replconf", -1, kLoading | kStale | kAllowBusy, "Refused: replicas follow by PEER.",
                "[arg...]", CmdSync),
};

}  // namespace

std::span<const Command> UnsupportedCommands() { return kUnsupportedCommands; }

}  // namespace cellar
