// CAGG: aggregates of a scan. It reads what CSCAN would, and answers groups instead of cells
// (engine/aggregate).
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "commands/catalog/read_syntax.h"
#include "commands/config/config.h"
#include "commands/data/data_commands.h"
#include "commands/replies/aggregate_run.h"
#include "commands/replies/scan_run.h"
#include "commands/replies/visible_table.h"
#include "commands/session/command_context.h"
#include "commands/session/services.h"
#include "commands/words/read_arguments.h"
#include "engine/scans/table_scan.h"
#include "engine/table/row_split.h"
#include "store/store.h"

namespace cellar {
namespace {

// A large table is folded in so many pieces, of which each thread takes one after the other.
constexpr uint64_t kPieces{64};

// In which all rows lie that the command examines.
KeyRange RangeOf(const Table& table, const RowOptions& rows) {
  std::vector<KeyRange> ranges;
  if (rows.index.has_value() || !CompileRows(table.schema(), rows.rows, &ranges).ok() ||
      ranges.empty()) {
    return {};
  }
  return {std::move(ranges.front().begin), std::move(ranges.back().end)};
}

// Most aggregations end in the first slice, which runs here. A longer one has written nothing by
// then and goes on as a task; only that may ask other threads to help, for which the rows are
// divided.
void CmdCAgg(CommandContext& ctx) {
  static thread_local ReadRequest request;  // both keep their memory
  static thread_local AggregateRequest aggregate;
  REPLY_IF_ERROR(ctx, ParseAggregate(ArgumentCursor(ctx.args, 2), &request, &aggregate));
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[1]));
  request.cells.access = ctx.rights;
  // What had to be looked at tells of what is hidden.
  if (request.stats && !MayReadTable(ctx)) return ctx.Fail(NoPermission());
  const Config& config = ctx.host.services().config;
  const AggregateLimits limits{
      .memory_bytes_max = static_cast<size_t>(config.agg_max_memory),
      // Inside EXEC the command ends in this turn: there is nothing to do beside it.
      .helpers = ctx.session.exec_running ? nullptr : &ctx.host.services().aggregators,
      .threads = static_cast<uint32_t>(config.agg_threads)};
  ASSIGN_OR_REPLY(ctx, std::unique_ptr<AggregateJob> job,
                  ctx.store().Aggregate(*table, request.rows, request.cells, aggregate, limits));
  ctx.DependsOn(table->last_lsn());  // what its index has become may have been logged by the read
  AggregateRun run(std::move(job), static_cast<size_t>(config.reply_max_bytes),
                   request.stats ? &ctx.host.clock() : nullptr);
  const size_t begin = ctx.reply.position();
  ScanHeat heat(ctx.host, *table, ScanHeat::Way::kForward);
  const bool is_long = !ctx.session.exec_running && !request.rows.each &&
                       IsKnownLong(ctx.host, *table, run.job().scan(), kUnlimited, kUnlimited);
  if (run.Pull(FirstBudget(ctx.session.exec_running, is_long), ctx.reply)) {
    const uint64_t rows = heat.Take(run.job().stats().rows);
    if (rows > 0) heat.NoteRange(rows, RangeOf(*table, request.rows));
    if (!run.refusal().ok()) ctx.Fail(run.refusal());
    return;
  }
  CELLAR_ASSERT(ctx.reply.position() == begin);
  run.job().Detach(run.job().WantsSplitKeys() ? SplitRowKeys(*table, kPieces)
                                              : std::vector<std::string>());
  auto read = std::make_unique<AggregateRead>(std::move(run), ctx.reply.version());
  read->SetHeat(heat, RangeOf(*table, request.rows));
  ctx.Continue(std::make_unique<AggregateTask>(ctx.host, std::move(read), StartOf(is_long),
                                               table->last_lsn()));
}

constexpr Command kRows[] = {
    {.name = "cagg",
     .arity = -5,
     .flags = kReadonly,
     .categories = kCategoryCell,
     .keys = {.first = 1, .access = KeyAccess::kRead},
     .group = "cell",
     .summary = "Groups the cells that a scan would return, and returns sums, averages, extremes, "
                "counts, distributions of each group.",
     .complexity = "O(log n + m + g log g) where m is the number of cells examined and g that of "
                   "groups; large ones in threads",
     .syntax = "table " CELLAR_ROW_OPTIONS " " CELLAR_CELL_OPTIONS
               " [BY (KEY [components] | PART component [STEP step] | BYTES bytes | FAMILY | "
               "COLUMN | QUALIFIER components | TIME duration | VALUE column [STEP step])]... "
               "(REDUCE (ROWS|COUNT|SUM|AVG|MIN|MAX|DISTINCT|QUANTILE|HISTOGRAM) "
               "(column|family|*) [count number...] [AS name])... "
               "[SORT name [ASC|DESC]] [LIMIT offset count]",
     .handler = CmdCAgg},
};

}  // namespace

std::span<const Command> AggregateCommands() { return kRows; }

}  // namespace cellar
