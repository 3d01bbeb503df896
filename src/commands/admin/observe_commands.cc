// SLOWLOG, LATENCY, MONITOR: watching the server at work.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "commands/admin/admin_commands.h"
#include "commands/reports/help.h"
#include "commands/reports/latency_report.h"
#include "commands/session/command_context.h"
#include "commands/session/services.h"
#include "resp/decimal.h"

namespace cellar {
namespace {

// --- SLOWLOG ---

void CmdSlowLogGet(CommandContext& ctx) {
  size_t count = 10;
  const auto& entries = ctx.host.services().slow_log.entries();
  if (ctx.args.size() > 3) {
    return ctx.Fail("ERR wrong number of arguments for 'slowlog|get' command");
  }
  if (ctx.args.size() == 3) {
    int64_t wanted = 0;
    if (!ParseStrictInt64(ctx.args[2], &wanted) || wanted < -1) {
      return ctx.Fail("ERR count should be greater than or equal to -1");
    }
    count = wanted == -1 ? entries.size() : static_cast<size_t>(wanted);
  }
  count = std::min(count, entries.size());
  ctx.reply.Array(count);
  for (size_t i = 0; i < count; ++i) {
    const SlowLogEntry& entry = entries[i];
    ctx.reply.Array(6);
    ctx.reply.Integer(entry.id);
    ctx.reply.Integer(entry.unix_s);
    ctx.reply.Integer(entry.micros);
    // Arguments are rows, values and names: for those who may read everything.
    const bool redacted = ctx.rights != nullptr && !ctx.rights->MayReadEverything();
    ctx.reply.Array(entry.words.size());
    for (size_t k = 0; k < entry.words.size(); ++k) {
      ctx.reply.Bulk(redacted && k > 0 ? "(redacted)" : entry.words[k]);
    }
    ctx.reply.Bulk(entry.address);
    ctx.reply.Bulk(entry.client_name);
  }
}

void CmdSlowLogLen(CommandContext& ctx) {
  ctx.reply.Integer(static_cast<int64_t>(ctx.host.services().slow_log.entries().size()));
}

void CmdSlowLogReset(CommandContext& ctx) {
  ctx.host.services().slow_log.Reset();
  ctx.reply.Ok();
}

// --- LATENCY ---

void CmdLatencyHistory(CommandContext& ctx) {
  const auto& events = ctx.host.services().latency.events();
  const auto found = events.find(ctx.args[2]);
  if (found == events.end()) return ctx.reply.Array(0);
  ctx.reply.Array(found->second.samples.size());
  for (const auto& sample : found->second.samples) {
    ctx.reply.Array(2);
    ctx.reply.Integer(sample.unix_s);
    ctx.reply.Integer(sample.millis);
  }
}

void CmdLatencyLatest(CommandContext& ctx) {
  const auto& events = ctx.host.services().latency.events();
  ctx.reply.Array(events.size());
  for (const auto& [name, event] : events) {
    ctx.reply.Array(4);
    ctx.reply.Bulk(name);
    ctx.reply.Integer(event.samples.back().unix_s);
    ctx.reply.Integer(event.samples.back().millis);
    ctx.reply.Integer(event.worst_millis);
  }
}

void CmdLatencyReset(CommandContext& ctx) {
  LatencyMonitor& latency = ctx.host.services().latency;
  if (ctx.args.size() == 2) return ctx.reply.Integer(static_cast<int64_t>(latency.ResetAll()));
  int64_t count = 0;
  for (const std::string_view event : ctx.args.subspan(2)) count += latency.Reset(event) ? 1 : 0;
  ctx.reply.Integer(count);
}

void CmdLatencyGraph(CommandContext& ctx) {
  const auto& events = ctx.host.services().latency.events();
  const auto found = events.find(ctx.args[2]);
  if (found == events.end()) {
    return ctx.Fail("ERR No samples available for event '" + std::string(ctx.args[2]) + "'");
  }
  ctx.reply.Verbatim(LatencyGraph(found->first, found->second, ctx.now_micros / 1'000'000), "txt");
}

void CmdLatencyDoctor(CommandContext& ctx) {
  const Services& services = ctx.host.services();
  ctx.reply.Verbatim(LatencyAdvice(services.latency, services.config.latency_monitor_threshold),
                     "txt");
}

// As Redis replies: buckets by powers of two, each with the calls of all below it, empty ones left
// out. The unit is 1.024 us (catalog/command_table.h). A container stands for its subcommands too,
// and unknown names are passed over.
void CmdLatencyHistogram(CommandContext& ctx) {
  const CommandTable& table = ctx.host.services().commands;
  std::vector<const CommandEntry*> chosen;
  const auto choose = [&chosen](const CommandEntry* entry) {
    if (entry->stats.calls > 0) chosen.push_back(entry);
    for (const CommandEntry* sub : entry->subcommands) {
      if (sub->stats.calls > 0) chosen.push_back(sub);
    }
  };
  if (ctx.args.size() == 2) {
    for (const CommandEntry* entry : table.commands()) choose(entry);
  }
  for (const std::string_view name : ctx.args.subspan(2)) {
    if (const CommandEntry* entry = table.FindByFullName(name)) choose(entry);
  }
  ctx.reply.Map(chosen.size());
  for (const CommandEntry* entry : chosen) {
    ctx.reply.Bulk(entry->full_name);
    ctx.reply.Map(2);
    ctx.reply.Bulk("calls");
    ctx.reply.Integer(static_cast<int64_t>(entry->stats.calls));
    ctx.reply.Bulk("histogram_usec");
    const auto mark = ctx.reply.BeginMap(4);
    uint64_t buckets = 0;
    uint64_t cumulative = 0;
    for (int i = 0; i < LatencyHistogram::kBuckets; ++i) {
      if (entry->stats.latency.counts[i] == 0) continue;
      cumulative += entry->stats.latency.counts[i];
      ctx.reply.Integer(int64_t{1} << i);
      ctx.reply.Integer(static_cast<int64_t>(cumulative));
      ++buckets;
    }
    ctx.reply.EndMap(mark, buckets);
  }
}

void CmdMonitor(CommandContext& ctx) {
  // Once for each session, however often it asks: its end takes away one.
  if (!ctx.session.monitor) ++ctx.host.services().monitors;
  ctx.session.monitor = true;
  ctx.reply.Ok();
}

constexpr uint32_t kLogFlags = kAdmin | kLoading | kStale;
constexpr uint32_t kLatencyFlags = kAdmin | kNoScript | kLoading | kStale;

constexpr Command kSlowLogSubcommands[] = {
    {.name = "get",
     .arity = -2,
     .flags = kLogFlags,
     .group = "server",
     .summary = "Returns the newest slow commands: 10, or count, or all with -1.",
     .complexity = "O(n) in the number of entries",
     .syntax = "[count]",
     .handler = CmdSlowLogGet},
    {.name = "len",
     .arity = 2,
     .flags = kLogFlags,
     .group = "server",
     .summary = "Returns the number of slow commands in the log.",
     .complexity = "O(1)",
     .handler = CmdSlowLogLen},
    {.name = "reset",
     .arity = 2,
     .flags = kLogFlags,
     .group = "server",
     .summary = "Clears the log of slow commands.",
     .complexity = "O(n) in the number of entries",
     .handler = CmdSlowLogReset},
    HelpSubcommand("server"),
};

constexpr Command kLatencySubcommands[] = {
    {.name = "doctor",
     .arity = 2,
     .flags = kLatencyFlags,
     .group = "server",
     .summary = "Reports in plain words what was slow.",
     .complexity = "O(1)",
     .handler = CmdLatencyDoctor},
    {.name = "graph",
     .arity = 3,
     .flags = kLatencyFlags,
     .group = "server",
     .summary = "Draws a graph of an event's samples.",
     .complexity = "O(1)",
     .syntax = "event",
     .handler = CmdLatencyGraph},
    {.name = "histogram",
     .arity = -2,
     .flags = kLatencyFlags,
     .group = "server",
     .summary = "Returns the latency distribution of commands.",
     .complexity = "O(n) in the number of commands",
     .syntax = "[command...]",
     .handler = CmdLatencyHistogram},
    {.name = "history",
     .arity = 3,
     .flags = kLatencyFlags,
     .group = "server",
     .summary = "Returns the samples of an event.",
     .complexity = "O(1)",
     .syntax = "event",
     .handler = CmdLatencyHistory},
    {.name = "latest",
     .arity = 2,
     .flags = kLatencyFlags,
     .group = "server",
     .summary = "Returns the newest sample of each event.",
     .complexity = "O(1)",
     .handler = CmdLatencyLatest},
    {.name = "reset",
     .arity = -2,
     .flags = kLatencyFlags,
     .group = "server",
     .summary = "Clears the samples of some or all events.",
     .complexity = "O(1)",
     .syntax = "[event...]",
     .handler = CmdLatencyReset},
    HelpSubcommand("server"),
};

constexpr Command kObserveCommands[] = {
    {.name = "slowlog",
     .arity = -2,
     .group = "server",
     .summary = "Shows commands that took long.",
     .complexity = "depends on the subcommand",
     .subcommands = kSlowLogSubcommands},
    {.name = "latency",
     .arity = -2,
     .group = "server",
     .summary = "Shows events that took long.",
     .complexity = "depends on the subcommand",
     .subcommands = kLatencySubcommands},
    {.name = "monitor",
     .arity = 1,
     .flags = kAdmin | kNoScript | kLoading | kStale | kNoMulti,
     .group = "server",
     .summary = "Streams every command that the server executes.",
     .complexity = "slows down all other clients",
     .handler = CmdMonitor},
};

}  // namespace

std::span<const Command> ObserveCommands() { return kObserveCommands; }

}  // namespace cellar
