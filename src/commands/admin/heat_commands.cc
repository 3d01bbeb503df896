// HEAT and HOTKEYS: where a table is read and written, and which rows cost most (heat_map.h,
// hot_keys.h).
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text/duration.h"
#include "base/text/quote.h"
#include "commands/admin/admin_commands.h"
#include "commands/arguments/cell_arguments.h"
#include "commands/arguments/syntax_error.h"
#include "commands/cluster/merged_heat.h"
#include "commands/cluster/node_commands.h"
#include "commands/dispatch/dispatch.h"
#include "commands/replies/visible_table.h"
#include "commands/reports/heat_task.h"
#include "commands/reports/help.h"
#include "commands/session/command_context.h"
#include "commands/session/services.h"

namespace cellar {
namespace {

// --- HEAT

constexpr int64_t kMinuteMs{60'000};

// What is known before the table is.
struct HeatWords {
  HeatQuery query;
  std::optional<std::vector<std::string_view>> keys{};
  bool local{false};
};

Result<HeatWords> ParseHeat(ArgumentCursor at) {
  HeatWords words;
  HeatQuery& query = words.query;
  while (!at.done()) {
    if (at.TakeWord("FROM")) {
      ASSIGN_OR_RETURN(const std::string_view word, at.TakeAny("FROM", "time"));
      ASSIGN_OR_RETURN(query.from_micros, ParseTimestamp(word));
    } else if (at.TakeWord("TO")) {
      ASSIGN_OR_RETURN(const std::string_view word, at.TakeAny("TO", "time"));
      ASSIGN_OR_RETURN(query.to_micros, ParseTimestamp(word));
    } else if (at.TakeWord("STEP")) {
      ASSIGN_OR_RETURN(const std::string_view word, at.TakeAny("STEP", "duration"));
      ASSIGN_OR_RETURN(const int64_t step_ms, ParseDurationMs(word));
      if (step_ms % kMinuteMs != 0) {
        return Status::Error(ErrorCode::kErr, "STEP must be whole minutes, not " + Quote(word));
      }
      query.step_minutes = step_ms / kMinuteMs;
    } else if (at.TakeWord("RANGES")) {
      ASSIGN_OR_RETURN(const std::string_view word, at.TakeAny("RANGES", "count"));
      ASSIGN_OR_RETURN(const uint64_t ranges, ParseCount("RANGES", word, 1));
      if (ranges > HeatMap::kRangesMax) {
        return Status::Error(ErrorCode::kErr, "RANGES must be between 1 and 256");
      }
      query.ranges = static_cast<size_t>(ranges);
    } else if (at.TakeWord("KEYS")) {
      ASSIGN_OR_RETURN(const std::string_view word, at.TakeAny("KEYS", "count"));
      ASSIGN_OR_RETURN(const uint64_t count, ParseCount("KEYS", word, 0));
      if (count >= HeatMap::kRangesMax)
        return Status::Error(ErrorCode::kErr, "KEYS must be between 0 and 255");
      words.keys.emplace();
      for (uint64_t i = 0; i < count; ++i) {
        ASSIGN_OR_RETURN(const std::string_view key, at.TakeAny("KEYS", "row"));
        words.keys->push_back(key);
      }
    } else if (at.TakeWord("HEAD")) {
      query.head_only = true;
    } else if (at.TakeWord("LOCAL")) {
      words.local = true;
    } else {
      return UnexpectedWord(at.Peek(), "FROM, TO, STEP, RANGES, KEYS, HEAD or LOCAL");
    }
  }
  return words;
}

// BADKEY; ERR: they do not ascend.
Status EncodeHeatKeys(const Table& table, const std::vector<std::string_view>& texts,
                      std::vector<std::string>* keys) {
  for (const std::string_view text : texts) {
    std::string key;
    RETURN_IF_ERROR(table.schema().key.Encode(text, &key));
    const bool ascends = keys->empty() ? !key.empty() : keys->back() < key;
    if (!ascends) return Status::Error(ErrorCode::kErr, "KEYS must ascend: " + Quote(text));
    keys->push_back(std::move(key));
  }
  return Status::Ok();
}

void CmdHeat(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, HeatWords words, ParseHeat(ArgumentCursor(ctx.args, 2)));
  ASSIGN_OR_REPLY(ctx, const Table* const table, FindTable(ctx, ctx.args[1]));
  if (words.keys) {
    REPLY_IF_ERROR(ctx, EncodeHeatKeys(*table, *words.keys, &words.query.keys.emplace()));
  }
  if (!words.local && IsHeatOfSets(ctx)) return RunMergedHeat(ctx, *table, words.query);
  RunHeat(ctx, *table, words.query);
}

// --- HOTKEYS

constexpr size_t kMetrics{2};
constexpr int64_t kCountMax{64};
constexpr int64_t kDurationMax{1'000'000};

// METRICS n name ...: names that are not known are stepped over, for those of later versions.
Status ParseMetrics(ArgumentCursor* at, HotKeys::Options* options) {
  int64_t count = 0;
  const std::string_view word = at->done() ? std::string_view() : at->Take();
  if (!ParseStrictInt64(word, &count) || count < 1 || count > static_cast<int64_t>(kMetrics)) {
    return Status::Error(ErrorCode::kErr, "METRICS count must be > 0 and <= 2");
  }
  for (int64_t i = 0; i < count; ++i) {
    if (at->done()) {
      return Status::Error(ErrorCode::kErr,
                           "METRICS count does not match number of metric types provided");
    }
    for (const auto& [name, wanted] : {std::pair{"CPU", &options->cpu}, {"NET", &options->net}}) {
      if (!EqualsIgnoreCase(at->Peek(), name)) continue;
      if (*wanted) {
        return Status::Error(ErrorCode::kErr,
                             std::string("METRICS ") + name + " defined more than once!");
      }
      *wanted = true;
    }
    (void)at->Take();
  }
  if (options->cpu || options->net) return Status::Ok();
  return Status::Error(ErrorCode::kErr, "METRICS no valid metrics passed. Supported: CPU|NET");
}

Result<int64_t> TakeNumber(ArgumentCursor* at, int64_t most, std::string_view refusal) {
  if (at->done()) return Status::SyntaxError();
  return IntegerArgument(at->Take(), 1, most, refusal);
}

Result<HotKeys::Options> ParseHotKeys(ArgumentCursor at) {
  HotKeys::Options options;
  if (!at.TakeWord("METRICS")) {
    return Status::Error(ErrorCode::kErr, "METRICS parameter is required");
  }
  RETURN_IF_ERROR(ParseMetrics(&at, &options));
  while (!at.done()) {
    if (at.TakeWord("COUNT")) {
      ASSIGN_OR_RETURN(const int64_t count,
                       TakeNumber(&at, kCountMax, "COUNT must be between 1 and 64"));
      options.count = static_cast<size_t>(count);
    } else if (at.TakeWord("DURATION")) {
      ASSIGN_OR_RETURN(options.duration_s,
                       TakeNumber(&at, kDurationMax, "DURATION must be between 1 and 1000000"));
    } else if (at.TakeWord("SAMPLE")) {
      ASSIGN_OR_RETURN(const int64_t sample,
                       TakeNumber(&at, INT32_MAX, "SAMPLE ratio must be positive"));
      options.sample = static_cast<uint64_t>(sample);
    } else if (at.TakeWord("SLOTS")) {
      return Status::Error(ErrorCode::kErr, "SLOTS parameter cannot be used in non-cluster mode");
    } else {
      return Status::SyntaxError();
    }
  }
  return options;
}

// Words without the LOCAL behind them.
Arguments WithoutLocal(Arguments args) {
  return EqualsIgnoreCase(args.back(), "LOCAL") ? args.first(args.size() - 1) : args;
}

// GET, STOP and RESET: whether nothing stands behind them but LOCAL. If not, it has been answered.
bool CheckLocal(CommandContext& ctx) {
  if (WithoutLocal(ctx.args).size() == 2) return true;
  ctx.Fail("ERR wrong number of arguments for '" + ctx.command.full_name + "' command");
  return false;
}

// The one that there is, ended if its time is over.
HotKeys& HotKeysNow(CommandContext& ctx) {
  ctx.host.dispatcher().sampler().Tick();
  return ctx.host.services().hot_keys;
}

void CmdHotKeysStart(CommandContext& ctx) {
  HotKeys& hot = HotKeysNow(ctx);
  if (hot.active() && !IsOfAllNodes(ctx))
    return ctx.Fail("ERR hotkey tracking session already in progress");
  const Arguments args = WithoutLocal(ctx.args);
  ASSIGN_OR_REPLY(ctx, const HotKeys::Options options, ParseHotKeys(ArgumentCursor(args, 2)));
  if (AskAllNodes(ctx)) return;
  hot.Start(options, ctx.now_micros, HotKeyTotals(ctx.host.services()));
  // The countdown that runs was drawn without HOTKEYS.
  ctx.host.dispatcher().sampler().Restart();
  ctx.reply.Ok();
}

void CmdHotKeysStop(CommandContext& ctx) {
  if (!CheckLocal(ctx) || AskAllNodes(ctx)) return;
  HotKeys& hot = HotKeysNow(ctx);
  if (!hot.there()) return ctx.reply.Null();
  hot.Stop(ctx.now_micros, HotKeyTotals(ctx.host.services()));
  ctx.host.dispatcher().sampler().Restart();
  ctx.reply.Ok();
}

void CmdHotKeysReset(CommandContext& ctx) {
  if (!CheckLocal(ctx) || AskAllNodes(ctx)) return;
  HotKeys& hot = HotKeysNow(ctx);
  if (hot.active()) {
    return ctx.Fail("ERR hotkey tracking session in progress, stop tracking first");
  }
  hot.Reset();
  ctx.reply.Ok();
}

void ReplyHits(ReplyWriter& reply, const HeavyHitters& hitters, size_t count, uint64_t unit) {
  std::vector<HeavyHitters::Hit> hits = hitters.Largest(count);
  // What would be 0 in the unit that is shown is left out.
  std::erase_if(hits, [unit](const HeavyHitters::Hit& hit) { return hit.amount < unit; });
  reply.Array(hits.size() * 2);
  for (const HeavyHitters::Hit& hit : hits) {
    reply.Bulk(hit.key);
    reply.Unsigned(hit.amount / unit);
  }
}

// The fields, their names and their order are those of Redis 8.6; only the hits are this server's
// rows in place of keys.
void CmdHotKeysGet(CommandContext& ctx) {
  if (!CheckLocal(ctx) || AskAllNodes(ctx)) return;
  const HotKeys& hot = HotKeysNow(ctx);
  ReplyWriter& reply = ctx.reply;
  if (!hot.there()) return reply.Null();
  const HotKeys::Options& options = hot.options();
  const HotKeys::Totals spent = hot.Spent(HotKeyTotals(ctx.host.services()));
  // An array around the map: in a cluster there is one for each node.
  reply.Array(1);
  reply.Map(7U + (options.cpu ? 3U : 0U) + (options.net ? 2U : 0U));
  const auto field = [&reply](std::string_view name, int64_t value) {
    reply.Bulk(name);
    reply.Integer(value);
  };
  field("tracking-active", hot.active() ? 1 : 0);
  field("sample-ratio", static_cast<int64_t>(options.sample));
  reply.Bulk("selected-slots");
  reply.Array(0);  // there is no cluster
  field("all-commands-all-slots-us", static_cast<int64_t>(spent.command_nanos / 1000));
  field("net-bytes-all-commands-all-slots", static_cast<int64_t>(spent.net_bytes));
  field("collection-start-time-unix-ms", hot.start_micros() / 1000);
  field("collection-duration-ms", hot.duration_micros(ctx.now_micros) / 1000);
  if (options.cpu) {
    field("total-cpu-time-user-ms", spent.user_micros / 1000);
    field("total-cpu-time-sys-ms", spent.system_micros / 1000);
  }
  if (options.net) field("total-net-bytes", static_cast<int64_t>(hot.net_bytes()));
  if (options.cpu) {
    reply.Bulk("by-cpu-time-us");
    ReplyHits(reply, hot.by_cpu(), options.count, 1000);
  }
  if (options.net) {
    reply.Bulk("by-net-bytes");
    ReplyHits(reply, hot.by_net(), options.count, 1);
  }
}

constexpr uint32_t kHotKeysFlags = kAdmin | kNoScript;

constexpr Command kHotKeysSubcommands[] = {
    {.name = "get",
     .arity = -2,
     .flags = kHotKeysFlags,
     .keys = {.access = KeyAccess::kRead, .scope = KeyScope::kEverything},
     .group = "server",
     .summary = "Returns the rows that cost most since HOTKEYS START.",
     .complexity = "O(n log n) in the number of counters, some hundreds",
     .syntax = "[LOCAL]",
     .handler = CmdHotKeysGet},
    {.name = "reset",
     .arity = -2,
     .flags = kHotKeysFlags,
     .group = "server",
     .summary = "Forgets what HOTKEYS has counted.",
     .complexity = "O(1)",
     .syntax = "[LOCAL]",
     .handler = CmdHotKeysReset},
    {.name = "start",
     .arity = -2,
     .flags = kHotKeysFlags,
     .group = "server",
     .summary = "Begins to count which rows take most time, or most bytes of the network.",
     .complexity = "O(1)",
     .syntax = "METRICS count [CPU] [NET] [COUNT k] [DURATION seconds] [SAMPLE ratio] [LOCAL]",
     .handler = CmdHotKeysStart},
    {.name = "stop",
     .arity = -2,
     .flags = kHotKeysFlags,
     .group = "server",
     .summary = "Ends the counting; HOTKEYS GET still tells.",
     .complexity = "O(1)",
     .syntax = "[LOCAL]",
     .handler = CmdHotKeysStop},
    HelpSubcommand("server"),
};

constexpr Command kHeatCommands[] = {
    {.name = "heat",
     .arity = -2,
     .flags = kReadonly,
     .categories = kCategoryCell,
     .keys = {.first = 1, .access = KeyAccess::kRead, .scope = KeyScope::kTable},
     .group = "server",
     .summary = "Returns how often ranges of a table were read and written, minute by minute.",
     .complexity = "O(n) in the number of steps kept times ranges",
     .syntax = "table [FROM time] [TO time] [STEP duration] [RANGES count] [KEYS count [row ...]] "
               "[HEAD] [LOCAL]",
     .handler = CmdHeat},
    {.name = "hotkeys",
     .arity = -2,
     .group = "server",
     .summary = "Finds the rows that take most time, or most bytes of the network.",
     .complexity = "depends on the subcommand",
     .subcommands = kHotKeysSubcommands},
};

}  // namespace

std::span<const Command> HeatCommands() { return kHeatCommands; }

}  // namespace cellar
