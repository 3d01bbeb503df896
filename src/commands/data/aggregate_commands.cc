// CAGG: aggregates of a scan. It reads what CSCAN would, and answers groups instead of cells
// (engine/aggregate).
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "commands/arguments/read_arguments.h"
#include "commands/arguments/read_syntax.h"
#include "commands/cluster/call_piece.h"
#include "commands/config/config.h"
#include "commands/data/data_commands.h"
#include "commands/data/row_listing.h"
#include "commands/replies/aggregate_run.h"
#include "commands/replies/scan_run.h"
#include "commands/replies/visible_table.h"
#include "commands/session/command_context.h"
#include "commands/session/services.h"
#include "engine/rows/read_notes.h"
#include "engine/scans/scan_notes.h"
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
  if (rows.index.has_value() ||
      !CompileRows(table.schema(), table.shown(), rows.rows, &ranges).ok() || ranges.empty()) {
    return {};
  }
  return {std::move(ranges.front().begin), std::move(ranges.back().end)};
}

// Each thread has a table of groups. Where work-max-memory is too little for several, there is one.
AggregateLimits LimitsOf(const CommandContext& ctx, size_t work_bytes) {
  const Config& config = ctx.host.services().config;
  const auto groups_max = std::min(static_cast<size_t>(config.agg_max_memory), work_bytes);
  const size_t tables = work_bytes / groups_max;
  return {.memory_bytes_max = groups_max,
          // Inside EXEC the command ends in this turn: there is nothing to do beside it.
          .helpers = ctx.session.exec_running ? nullptr : &ctx.host.services().aggregators,
          .threads = static_cast<uint32_t>(
              std::min<size_t>(static_cast<size_t>(config.agg_threads), tables - 1))};
}

// A part of a table: what is done with all groups is another node's.
void FoldAlone(const CallPiece& piece, ReadRequest* request, AggregateRequest* aggregate) {
  request->rows.seed = piece.seed;
  if (piece.names_rows) NameRows(request);
  aggregate->having.clear();
  aggregate->fill = Fill::kNone;
  aggregate->sort.reset();
  aggregate->skip = 0;
  aggregate->limit = kUnlimited;
}

// Most aggregations end in the first slice, which runs here. A longer one has written nothing by
// then and goes on as a task; only that may ask other threads to help, for which the rows are
// divided. If others have taken the memory for such work, it begins anew in its turn: what the
// first slice has folded is let go.
void CmdCAgg(CommandContext& ctx) {
  static thread_local ReadRequest request;  // both keep their memory
  static thread_local AggregateRequest aggregate;
  REPLY_IF_ERROR(ctx, ParseAggregate(ArgumentCursor(ctx.args, 2), &request, &aggregate));
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[1]));
  const CallPiece* const piece = ctx.host.services().piece;
  const bool folds_piece = piece != nullptr;
  if (folds_piece && piece->lists_rows) return ListRows(ctx, *table, *piece, &request);
  if (folds_piece) FoldAlone(*piece, &request, &aggregate);
  request.cells.access = ctx.rights;
  // What had to be looked at tells of what is hidden.
  if (request.stats && !MayReadTable(ctx)) return ctx.Fail(NoPermission());
  const Config& config = ctx.host.services().config;
  WorkMemory& work = ctx.host.services().work_memory;
  work.Configure(config.work_max_memory, config.maxmemory);
  const AggregateLimits limits = LimitsOf(ctx, work.bound());
  std::optional<CellOptions> again;
  if (!work.HasRoom(work.bound())) again = request.cells;
  std::vector<std::string> notes;
  if (request.stats) notes = ReadNotes(table->schema(), request.rows, request.cells);
  ASSIGN_OR_REPLY(ctx, std::unique_ptr<AggregateJob> job,
                  ctx.store().Aggregate(*table, request.rows, request.cells, aggregate, limits));
  WorkMemory::Lease lease;  // outlives the run
  if (ctx.session.exec_running)
    lease = work.TakeAtOnce(WorkKind::kAggregate, job->memory_bytes_max());
  ctx.DependsOn(table->last_lsn());  // what its index has become may have been logged by the read
  if (request.stats) NoteScan(*table, job->scan(), &notes);
  Clock* const stats_clock = request.stats ? &ctx.host.clock() : nullptr;
  const auto reply_bytes_max = static_cast<size_t>(config.reply_max_bytes);
  AggregateRun run(std::move(job), reply_bytes_max, stats_clock, notes);
  if (folds_piece) run.TellFolded();
  const size_t begin = ctx.reply.position();
  ScanHeat heat(ctx.host, *table, ScanHeat::Way::kForward);
  const bool is_long = !ctx.session.exec_running && !request.rows.each &&
                       IsKnownLong(ctx.host, *table, run.job().scan(), kUnlimited, kUnlimited);
  const bool done = run.Pull(FirstBudget(ctx.session.exec_running, is_long), ctx.reply);
  heat.NoteBegin(run.job().scan());
  if (done) {
    const uint64_t rows = heat.Take(run.job().stats().rows);
    if (rows > 0) heat.NoteRange(rows, RangeOf(*table, request.rows));
    if (!run.refusal().ok()) ctx.Fail(run.refusal());
    return;
  }
  CELLAR_ASSERT(ctx.reply.position() == begin);
  lease = work.Take(WorkKind::kAggregate, run.job().memory_bytes_max());
  if (!lease.granted() && !is_long) {
    request.cells = *std::move(again);
    ASSIGN_OR_REPLY(ctx, job,
                    ctx.store().Aggregate(*table, request.rows, request.cells, aggregate, limits));
    run = AggregateRun(std::move(job), reply_bytes_max, stats_clock, std::move(notes));
    if (folds_piece) run.TellFolded();
  }
  run.job().Detach(run.job().WantsSplitKeys() ? SplitRowKeys(*table, kPieces)
                                              : std::vector<std::string>());
  auto read = std::make_unique<AggregateRead>(std::move(run), ctx.reply.version());
  read->Await(std::move(lease));
  read->SetHeat(heat, RangeOf(*table, request.rows));
  ctx.Continue(std::make_unique<AggregateTask>(ctx.host, std::move(read), StartOf(is_long),
                                               table->last_lsn()));
}

constexpr Command kAggregateCommands[] = {
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
     .syntax = kAggregateSyntax,
     .handler = CmdCAgg},
};

}  // namespace

std::span<const Command> AggregateCommands() { return kAggregateCommands; }

}  // namespace cellar
