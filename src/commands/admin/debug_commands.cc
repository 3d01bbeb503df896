// DEBUG, for tests. The dispatcher asks enable-debug-command before any of it runs.
#include <unistd.h>

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/os/log.h"
#include "commands/admin/admin_commands.h"
#include "commands/arguments/cell_arguments.h"
#include "commands/arguments/syntax_error.h"
#include "commands/cluster/cluster_digest.h"
#include "commands/cluster/cluster_part.h"
#include "commands/replies/visible_table.h"
#include "commands/reports/help.h"
#include "commands/session/command_context.h"
#include "commands/session/services.h"
#include "engine/keys/key_component.h"
#include "replica/replication.h"
#include "store/store.h"
#include "store/tablet_changes.h"

namespace cellar {
namespace {

// Holds the whole server, as in Redis: that is what it is for.
void CmdDebugSleep(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, const double seconds, DoubleArgument(ctx.args[2]));
  constexpr double kSecondsMax{3600};
  if (seconds > 0) (void)usleep(static_cast<useconds_t>(std::fmin(seconds, kSecondsMax) * 1e6));
  ctx.reply.Ok();
}

// One reply of each kind, so that a client's parser can be tested.
void CmdDebugProtocol(CommandContext& ctx) {
  ReplyWriter& reply = ctx.reply;
  const std::string_view kind = ctx.args[2];
  if (EqualsIgnoreCase(kind, "string")) {
    reply.Bulk("Hello World");
  } else if (EqualsIgnoreCase(kind, "integer")) {
    reply.Integer(12345);
  } else if (EqualsIgnoreCase(kind, "double")) {
    reply.Double(3.141);
  } else if (EqualsIgnoreCase(kind, "null")) {
    reply.Null();
  } else if (EqualsIgnoreCase(kind, "array")) {
    reply.Array(3);
    for (int64_t i = 0; i < 3; ++i) reply.Integer(i);
  } else if (EqualsIgnoreCase(kind, "set")) {
    reply.Set(3);
    for (int64_t i = 0; i < 3; ++i) reply.Integer(i);
  } else if (EqualsIgnoreCase(kind, "map")) {
    reply.Map(3);
    for (int64_t i = 0; i < 3; ++i) {
      reply.Integer(i);
      reply.Boolean(i == 1);
    }
  } else if (EqualsIgnoreCase(kind, "attrib")) {
    if (reply.resp3()) reply.Raw("|1\r\n$14\r\nkey-popularity\r\n*2\r\n$7\r\nkey:123\r\n:90\r\n");
    reply.Bulk("Some real reply following the attribute");
  } else if (EqualsIgnoreCase(kind, "push")) {
    if (!reply.resp3()) return ctx.Fail("ERR RESP2 is not supported by this command");
    reply.Push(2);
    reply.Bulk("server-cpu-usage");
    reply.Integer(42);
  } else if (EqualsIgnoreCase(kind, "true")) {
    reply.Boolean(true);
  } else if (EqualsIgnoreCase(kind, "false")) {
    reply.Boolean(false);
  } else if (EqualsIgnoreCase(kind, "verbatim")) {
    reply.Verbatim("This is a verbatim\nstring", "txt");
  } else if (EqualsIgnoreCase(kind, "bignum")) {
    reply.BigNumber("1234567999999999999999999999999999999");
  } else {
    ctx.Fail(
        "ERR Wrong protocol type name. Please use one of the following: "
        "string|integer|double|null|array|set|map|attrib|push|verbatim|true|false");
  }
}

void CmdDebugLog(CommandContext& ctx) {
  Log(LogSeverity::kWarning, "DEBUG LOG: " + std::string(ctx.args[2]));
  ctx.reply.Ok();
}

void CmdDebugSetTime(CommandContext& ctx) {
  if (EqualsIgnoreCase(ctx.args[2], "now")) {
    ctx.store().OverrideTime(std::nullopt);
  } else {
    ASSIGN_OR_REPLY(ctx, const int64_t micros, ParseTimestamp(ctx.args[2]));
    ctx.store().OverrideTime(micros);
  }
  ctx.reply.Ok();
}

void CmdDebugDigest(CommandContext& ctx) {
  if (ctx.args.size() > 2 && EqualsIgnoreCase(ctx.args[2], "cluster"))
    return CmdDebugDigestCluster(ctx);
  ctx.DependsOn(ctx.host.last_lsn());
  if (ctx.args.size() > 3) return ctx.Fail(Status::SyntaxError());
  // An index is a function of its table, so that the digest of the one vouches for both.
  REPLY_IF_ERROR(ctx, ctx.store().VerifyIndexes());
  if (ctx.args.size() == 3 && !EqualsIgnoreCase(ctx.args[2], "withlsn")) {
    ASSIGN_OR_REPLY(ctx, const Table* const table, FindTable(ctx, ctx.args[2]));
    return ctx.reply.SimpleString(ctx.store().DigestTable(*table));
  }
  // Clocks of nodes differ, and so would what each of them hides.
  const std::string digest = ctx.store().Digest(
      ctx.host.replication().active() ? Store::DigestTime::kNewestStamp : Store::DigestTime::kNow);
  if (ctx.args.size() == 2) return ctx.reply.SimpleString(digest);
  ctx.reply.Array(2);
  ctx.reply.Bulk(digest);
  // Of a follower the log is ahead of the state.
  ctx.reply.Bulk(LsnText(ctx.store().applied_lsn()));
}

void CmdDebugReload(CommandContext& ctx) {
  if (ctx.session.exec_running) return ctx.Fail("ERR DEBUG RELOAD inside EXEC");
  REPLY_IF_ERROR(ctx, ctx.host.ReloadStore());
  ctx.reply.Ok();
}

// Whatever else stands in the table is as if it were another set's: for tests of all that reads.
void CmdDebugTablets(CommandContext& ctx) {
  if (ctx.args.size() % 2 == 0) return ctx.Fail(Status::SyntaxError());
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[2]));
  std::vector<Tablet> tablets;
  for (size_t i = 3; i < ctx.args.size(); i += 2) {
    ASSIGN_OR_REPLY(ctx, std::string begin, EncodeTabletBound(table->schema(), ctx.args[i]));
    ASSIGN_OR_REPLY(ctx, std::string end, EncodeTabletBound(table->schema(), ctx.args[i + 1]));
    tablets.push_back({.begin = std::move(begin), .end = std::move(end)});
  }
  TabletChanges changes(ctx.store());
  if (!ctx.store().engine().cluster().active()) REPLY_IF_ERROR(ctx, changes.Init(1));
  REPLY_IF_ERROR(ctx, changes.Assign(*table, std::move(tablets)));
  ctx.reply.Ok();
}

// STOP-AT (step | OFF): the node stops itself there once, as by SIGSTOP.
void DebugStopAt(CommandContext& ctx) {
  if (ctx.args.size() != 4) return ctx.SyntaxError();
  MoveTrials& trials = ctx.host.services().move_trials;
  const std::optional<MoveTrials::Step> step = MoveTrials::Parse(ctx.args[3]);
  if (!step && !EqualsIgnoreCase(ctx.args[3], "OFF"))
    return ctx.Fail(UnexpectedWord(ctx.args[3], MoveTrials::kWords));
  trials.StopAt(step);
  ctx.reply.Ok();
}

// A number in place of one that stands in the code. It counts at the director.
struct TrialNumber {
  std::string_view word;
  uint64_t min;
  std::optional<int64_t> MoveTrials::*micros;  // null: it is busy_percent
};
constexpr TrialNumber kTrialNumbers[] = {{"JOB-PATIENCE", 1, &MoveTrials::patience_micros},
                                         {"BUSY-AT", 0, nullptr},
                                         {"QUIET-AFTER", 0, &MoveTrials::quiet_micros},
                                         {"LEADS-EVERY", 1, &MoveTrials::leads_micros}};

const TrialNumber* FindTrialNumber(std::string_view word) {
  for (const TrialNumber& number : kTrialNumbers)
    if (EqualsIgnoreCase(word, number.word)) return &number;
  return nullptr;
}

void DebugNumber(CommandContext& ctx, const TrialNumber& number) {
  if (ctx.args.size() != 4) return ctx.SyntaxError();
  ASSIGN_OR_REPLY(ctx, const uint64_t value, ParseCount(number.word, ctx.args[3], number.min));
  MoveTrials& trials = ctx.host.services().move_trials;
  if (number.micros == nullptr)
    trials.busy_percent = value;
  else
    trials.*number.micros = static_cast<int64_t>(std::min<uint64_t>(value, 1ULL << 40)) * 1000;
  ctx.reply.Ok();
}

// CUT-TABLES (type row... | OFF): tables created from now on whose key begins with a component of
// that type are cut at these rows. It counts at the director.
void CmdDebugCluster(CommandContext& ctx) {
  if (EqualsIgnoreCase(ctx.args[2], "STOP-AT")) return DebugStopAt(ctx);
  if (const auto* number = FindTrialNumber(ctx.args[2])) return DebugNumber(ctx, *number);
  if (!EqualsIgnoreCase(ctx.args[2], "CUT-TABLES")) {
    return ctx.Fail(UnexpectedWord(
        ctx.args[2], "CUT-TABLES, STOP-AT, JOB-PATIENCE, BUSY-AT, QUIET-AFTER or LEADS-EVERY"));
  }
  if (!ClusterPart::IsOfCluster(ctx)) return;
  TableCuts& cuts = ctx.host.services().table_cuts;
  if (ctx.args.size() == 4 && EqualsIgnoreCase(ctx.args[3], "OFF")) {
    cuts.Clear();
    return ctx.reply.Ok();
  }
  ComponentType type{};
  if (ctx.args.size() < 5 || !ParseComponentType(ctx.args[3], &type)) return ctx.SyntaxError();
  const Order order = Order::FromComponents({{.type = type}}, '\0');
  for (const std::string_view row : ctx.args.subspan(4)) {
    std::string key;
    REPLY_IF_ERROR(ctx, order.Encode(row, &key));
  }
  cuts.Set(type, {ctx.args.begin() + 4, ctx.args.end()});
  ctx.reply.Ok();
}

constexpr Command Sub(std::string_view name, int16_t arity, std::string_view summary,
                      std::string_view syntax, CommandHandler handler, KeySpec keys = {}) {
  return {.name = name,
          .arity = arity,
          .flags = kAdmin | kNoScript | kLoading | kStale | kDebugging,
          .keys = keys,
          .group = "server",
          .summary = summary,
          .complexity = "depends",
          .syntax = syntax,
          .handler = handler};
}

constexpr Command kDebugSubcommands[] = {
    Sub("cluster", -4,
        "Cuts tables that are created into tablets, by the type of their keys; has the node stop "
        "itself at a step of a move; cancels jobs that come no further sooner; says when a set is "
        "busy or a tablet quiet, and how often leads are evened out.",
        "(CUT-TABLES (type row... | OFF) | STOP-AT (step | OFF) | JOB-PATIENCE ms | BUSY-AT "
        "percent | QUIET-AFTER ms | LEADS-EVERY ms)",
        CmdDebugCluster),
    Sub("digest", -2,
        "Returns a hash of the schema and all live cells, or those of one table. WITHLSN adds the "
        "record it is of: nodes compare theirs at the same one. CLUSTER: of the rows of all sets "
        "at "
        "one moment, or of a snapshot; LOCAL: of those that this node's set has.",
        "[WITHLSN | CLUSTER [LOCAL | SNAPSHOT name | CUT | PART what] | name]", CmdDebugDigest,
        {.access = KeyAccess::kRead, .scope = KeyScope::kEverything}),
    Sub("log", 3, "Writes a line to the server's log.", "message", CmdDebugLog),
    Sub("protocol", 3, "Returns a reply of the given type.", "type", CmdDebugProtocol),
    Sub("reload", 2, "Reloads all data from snapshot and log, in place.", "", CmdDebugReload),
    Sub("set-time", 3, "Sets the clock of retention and timestamps.", "(micros | NOW)",
        CmdDebugSetTime),
    Sub("sleep", 3, "Blocks the whole server.", "seconds", CmdDebugSleep),
    Sub("tablets", -3, "Sets which rows of a table this set owns.", "table [(start end)...]",
        CmdDebugTablets, {.first = 2, .access = KeyAccess::kWrite, .scope = KeyScope::kTable}),
    HelpSubcommand("server"),
};

constexpr Command kDebugCommands[] = {
    {.name = "debug",
     .arity = -2,
     .flags = kAdmin | kNoScript | kLoading | kStale | kDebugging,
     .group = "server",
     .summary = "For tests; needs enable-debug-command.",
     .complexity = "depends on the subcommand",
     .subcommands = kDebugSubcommands},
};

}  // namespace

std::span<const Command> DebugCommands() { return kDebugCommands; }

}  // namespace cellar
