// See scatter.h.
// Each command is parsed as its handler does it, so that what is wrong is told in the same words
// before anybody is asked; what depends on more than the words, the sets refuse.
#include "commands/cluster/scatter.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/hash.h"
#include "base/text/number.h"
#include "base/text/quote.h"
#include "commands/arguments/cell_arguments.h"
#include "commands/arguments/explain_arguments.h"
#include "commands/arguments/near_arguments.h"
#include "commands/arguments/read_arguments.h"
#include "commands/arguments/scan_cursor.h"
#include "commands/arguments/write_arguments.h"
#include "commands/catalog/command_form.h"
#include "commands/cluster/cursor_scan.h"
#include "commands/cluster/merged_info.h"
#include "commands/cluster/merged_reads.h"
#include "commands/cluster/scatter_aggregate.h"
#include "commands/cluster/scatter_choice.h"
#include "commands/cluster/scatter_index_scan.h"
#include "commands/cluster/scatter_info.h"
#include "commands/cluster/scatter_near.h"
#include "commands/cluster/scatter_parts.h"
#include "commands/cluster/scatter_rows.h"
#include "commands/cluster/scatter_scan.h"
#include "commands/cluster/scatter_sum.h"
#include "commands/replies/schema_commands.h"
#include "commands/replies/visible_table.h"
#include "commands/session/command_context.h"
#include "commands/session/services.h"
#include "engine/scans/scan_ranges.h"
#include "engine/schema/column_set.h"
#include "engine/table/index_entry.h"
#include "store/frozen_tables.h"
#include "store/store.h"

namespace cellar {
namespace {

// Not 0.
uint64_t DrawSeed(const CommandContext& ctx) {
  Services& services = ctx.host.services();
  return std::max<uint64_t>(
      1, Hash64(services.run_id, static_cast<uint64_t>(ctx.host.clock().MonotonicMicros())));
}

// Where there are none it is for who is asked to say so, or what is wrong.
KeyRangeSet RowsAsked(const Table& table, const std::vector<RowSelector>& rows) {
  KeyRangeSet asked = RowsOf(table, rows);
  return asked.empty() ? KeyRangeSet::All() : asked;
}

// Whether all groups of so many key components lie on one set each, as far as the map is right.
bool KeepsGroups(Host& host, const Table& table, uint64_t components) {
  const Order& key = table.schema().key;
  const MapTable* const map = MapOf(host).Find(table.id());
  if (map == nullptr || components > key.components().size()) return true;  // refused anyway
  return std::all_of(map->tablets.begin(), map->tablets.end(), [&](const MapEntry& entry) {
    if (entry.begin.empty()) return true;
    const size_t front = key.ComponentsSize(entry.begin, components);
    return front == 0 || front == entry.begin.size();
  });
}

// How the rows are chosen that no set can say alone.
ScatterChoice::Plan ChoiceOf(const Table& table, const RowOptions& rows, uint64_t seed) {
  ScatterChoice::Plan plan;
  plan.rows = rows.index ? KeyRangeSet::All() : RowsAsked(table, rows.rows);
  plan.reverse = rows.reverse;
  plan.each = rows.each;
  plan.seed = seed;
  if (!rows.index) return plan;
  // If there is none of that name the sets say so.
  const IndexSchema* const index = table.schema().FindIndex(rows.index->name);
  plan.index = index == nullptr ? IndexOrder() : IndexOrder(table.schema(), *index);
  return plan;
}

// Whether it takes all sets to say which rows EACH leaves.
bool GroupsCross(Host& host, const Table& table, const RowOptions& rows) {
  return rows.each && (rows.index || !KeepsGroups(host, table, rows.each->components));
}

ScatterPage::Shape ShapeOf(const ReadRequest& request) {
  return {.keys_only = request.keys_only,
          .arrays = request.format.arrays(),
          .stats = request.stats,
          .counts_cells = request.cells_max != kUnlimited};
}

size_t PageBytesMax(const CommandContext& ctx) {
  const Config& config = ctx.host.services().config;
  return static_cast<size_t>(std::min(config.scan_reply_max_bytes, config.reply_max_bytes));
}

// Of an index that is not there the sets say so.
std::unique_ptr<ScatterTask> IndexScan(CommandContext& ctx, const Table& table,
                                       const ReadRequest& request, const ScanPosition& from,
                                       uint64_t binding) {
  const IndexSchema* const index = table.schema().FindIndex(request.rows.index->name);
  ScatterIndexScan::Plan plan;
  plan.reverse = request.rows.reverse;
  plan.each = request.rows.each;
  plan.rows_max = request.rows_max;
  plan.cells_max = request.cells_max;
  plan.bytes_max = PageBytesMax(ctx);
  plan.index_id = index != nullptr ? index->id : 0;
  plan.binding = binding;
  if (table.frozen()) plan.pin = kFrozenPin | table.id();
  plan.seed = from.seed != 0 ? from.seed : DrawSeed(ctx);
  plan.draws_rows = DrawsRows(request);
  plan.from = from;
  if (plan.each && index != nullptr && !from.row_key.empty()) {
    const IndexOrder order(table.schema(), *index);
    const size_t components = std::min<size_t>(plan.each->components, order.columns());
    plan.group_front = from.row_key.substr(0, order.ValuesSize(from.row_key, components));
  }
  plan.shape = ShapeOf(request);
  return std::make_unique<ScatterIndexScan>(ctx, table, std::move(plan));
}

void BeginScan(CommandContext& ctx) {
  ReadRequest request;
  REPLY_IF_ERROR(ctx, WithForm(ctx.command, CheckCursorForm(ctx.args[2])));
  REPLY_IF_ERROR(ctx, ParseReadOptions(ReadCommand::kScan, ArgumentCursor(ctx.args, 3), &request));
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[1]));
  if (request.stats && !MayReadTable(ctx)) return ctx.Fail(NoPermission());
  const bool by_index = request.rows.index.has_value();
  const std::string_view index = by_index ? request.rows.index->name : std::string_view();
  ScatterScan::Plan plan;
  plan.binding = ScanBinding(table->schema().key.spec(), index, request.rows.reverse);
  ScanCursor cursor;
  if (!IsStartCursor(ctx.args[2])) {
    ASSIGN_OR_REPLY(ctx, cursor, DecodeCursor(ctx.args[2], plan.binding));
  }
  const bool begins = IsStartCursor(ctx.args[2]);
  // What it reads besides: what a cursor of a moment is of.
  const Table* const frozen = table->frozen() ? table
                              : cursor.pin    ? FrozenOfCursor(ctx.host, *table, *cursor.pin)
                                              : nullptr;
  if (!begins &&
      cursor.pin != (frozen == nullptr ? std::optional<uint64_t>() : kFrozenPin | frozen->id())) {
    return ctx.Fail(Status::Error(ErrorCode::kStaleCursor,
                                  "the snapshot of this cursor is gone: it was dropped, or unused "
                                  "for snapshot-cursor-timeout"));
  }
  if (table->frozen()) plan.pin = kFrozenPin | table->id();
  const bool of_moment = !table->frozen() && (begins ? request.snapshot : frozen != nullptr);
  const auto run = [&](std::unique_ptr<ScatterTask> page) {
    if (of_moment)
      ctx.Continue(std::make_unique<CursorScan>(ctx, *table, std::move(page), frozen));
    else
      ctx.Continue(std::move(page));
  };
  if (by_index) return run(IndexScan(ctx, *table, request, cursor.position, plan.binding));
  plan.reverse = request.rows.reverse;
  plan.each = request.rows.each.has_value();
  plan.rows_max = request.rows_max;
  plan.cells_max = request.cells_max;
  plan.bytes_max = PageBytesMax(ctx);
  plan.seed = cursor.position.seed != 0 ? cursor.position.seed : DrawSeed(ctx);
  plan.shape = ShapeOf(request);
  plan.ranges = RowsAsked(*table, request.rows.rows).ranges();
  if (!IsStartCursor(ctx.args[2])) ClipRanges(cursor.position, plan.reverse, &plan.ranges);
  if (plan.ranges.empty()) plan.ranges = KeyRangeSet::All().ranges();  // who is asked finds none
  run(std::make_unique<ScatterScan>(ctx, *table, std::move(plan)));
}

void BeginCount(CommandContext& ctx) {
  ReadRequest request;
  REPLY_IF_ERROR(ctx, ParseReadOptions(ReadCommand::kCount, ArgumentCursor(ctx.args, 2), &request));
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[1]));
  if (GroupsCross(ctx.host, *table, request.rows)) {
    return ctx.Continue(std::make_unique<ScatterSum>(ctx, *table,
                                                     ChoiceOf(*table, request.rows, DrawSeed(ctx)),
                                                     kUnlimited, request.by == CountBy::kRows));
  }
  KeyRangeSet rows = request.rows.index ? KeyRangeSet::All() : RowsAsked(*table, request.rows.rows);
  ctx.Continue(
      std::make_unique<ScatterSum>(ctx, *table, std::move(rows), kUnlimited, DrawSeed(ctx)));
}

void BeginDeleteRange(CommandContext& ctx) {
  RowOptions rows;
  REPLY_IF_ERROR(ctx, ParseDeleteRange(ArgumentCursor(ctx.args, 2), &rows));
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[1]));
  REPLY_IF_ERROR(ctx, FrozenTables::CheckMayChange(*table));
  ctx.Continue(
      std::make_unique<ScatterSum>(ctx, *table, RowsAsked(*table, rows.rows), kUnlimited, 0));
}

void BeginUpdate(CommandContext& ctx) {
  ArgumentCursor at(ctx.args, 2);
  ReadRequest request;
  RowWrite write;
  REPLY_IF_ERROR(ctx, ParseUpdateOptions(&at, &request));
  REPLY_IF_ERROR(ctx, ParseUpdateOps(at, &write));
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[1]));
  REPLY_IF_ERROR(ctx, FrozenTables::CheckMayChange(*table));
  if (request.rows.index && request.changes_max != kUnlimited) {
    ScatterChoice::Plan plan = ChoiceOf(*table, request.rows, DrawSeed(ctx));
    plan.once = true;
    return ctx.Continue(
        std::make_unique<ScatterSum>(ctx, *table, std::move(plan), request.changes_max, false));
  }
  KeyRangeSet rows = request.rows.index ? KeyRangeSet::All() : RowsAsked(*table, request.rows.rows);
  ctx.Continue(std::make_unique<ScatterSum>(ctx, *table, std::move(rows), request.changes_max, 0));
}

void BeginRows(CommandContext& ctx) {
  ReadRequest request;
  ArgumentCursor at(ctx.args, 2);
  ASSIGN_OR_REPLY(ctx, const uint64_t count,
                  ParseWordCount("CROWS table", "count row ...", at.Take(), 1));
  if (count > at.left()) return ctx.Fail(TooFewWords("CROWS table", count, at.left()));
  const size_t first_word = at.position();
  REPLY_IF_ERROR(ctx, ParseReadOptions(ReadCommand::kRows,
                                       ArgumentCursor(ctx.args, first_word + count), &request));
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[1]));
  REPLY_IF_ERROR(ctx, CheckRowsNamed(count));
  std::vector<std::string> keys(count);
  for (size_t i = 0; i < count; ++i) {
    REPLY_IF_ERROR(
        ctx, InTable(EncodeRowKey(table->schema(), ctx.args[first_word + i], &keys[i]), *table));
  }
  ctx.Continue(std::make_unique<ScatterRows>(
      ctx, *table, std::move(keys), first_word,
      static_cast<size_t>(ctx.host.services().config.reply_max_bytes)));
}

// The plan is made of this node's schema, over no rows: none of the table is seen while it is made.
Result<std::unique_ptr<AggregateJob>> PlanAggregate(CommandContext& ctx, Table& table,
                                                    ReadRequest* request,
                                                    const AggregateRequest& aggregate,
                                                    size_t memory_bytes_max) {
  // What is wrong with the rows asked for is told before what is wrong with the groups, so both are
  // looked at; none is chosen that is not named.
  if (!request->rows.index) request->rows.no_index = true;
  request->cells.access = ctx.rights;
  table.ShowPiece(Tablets::None());
  Result<std::unique_ptr<AggregateJob>> job =
      ctx.store().Aggregate(table, request->rows, request->cells, aggregate,
                            {.memory_bytes_max = memory_bytes_max, .helpers = nullptr});
  if (job.ok()) (*job)->Detach({});
  table.ShowPiece(nullptr);
  return job;
}

void BeginAggregate(CommandContext& ctx) {
  ReadRequest request;
  AggregateRequest aggregate;
  REPLY_IF_ERROR(ctx, ParseAggregate(ArgumentCursor(ctx.args, 2), &request, &aggregate));
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[1]));
  if (request.stats && !MayReadTable(ctx)) return ctx.Fail(NoPermission());
  const uint64_t seed = DrawSeed(ctx);
  std::optional<ScatterChoice::Plan> choice;
  if (GroupsCross(ctx.host, *table, request.rows)) choice = ChoiceOf(*table, request.rows, seed);
  KeyRangeSet rows;
  if (!choice)
    rows = request.rows.index ? KeyRangeSet::All() : RowsAsked(*table, request.rows.rows);
  const Config& config = ctx.host.services().config;
  WorkMemory& work = ctx.host.services().merge_memory;
  work.Configure(config.work_max_memory, config.maxmemory);
  const size_t bytes_max = std::min(static_cast<size_t>(config.agg_max_memory), work.bound());
  Clock* const stats_clock = request.stats ? &ctx.host.clock() : nullptr;
  ASSIGN_OR_REPLY(ctx, std::unique_ptr<AggregateJob> job,
                  PlanAggregate(ctx, *table, &request, aggregate, bytes_max));
  WorkMemory::Lease lease = work.Take(WorkKind::kAggregate, job->memory_bytes_max());
  AggregateRun run(std::move(job), static_cast<size_t>(config.reply_max_bytes), stats_clock, {});
  auto task = std::make_unique<ScatterAggregate>(ctx, *table, std::move(run), std::move(rows), seed,
                                                 std::move(lease));
  if (choice) task->Choose(*std::move(choice));
  ctx.Continue(std::move(task));
}

void BeginNear(CommandContext& ctx) {
  const bool of_index = ctx.args.size() > 3;
  if (of_index) REPLY_IF_ERROR(ctx, ParseNearIndex(ctx.args).status());
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[1]));
  if (of_index) return ctx.Continue(std::make_unique<ScatterNearEntry>(ctx, *table));
  std::string key;
  REPLY_IF_ERROR(ctx, EncodeRowKey(table->schema(), ctx.args[2], &key));
  ctx.Continue(std::make_unique<ScatterNear>(ctx, *table, key));
}

void BeginSample(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, const uint64_t parts, ParseCount("the number of parts", ctx.args[3], 1));
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[2]));
  ctx.Continue(std::make_unique<ScatterSample>(ctx, *table, parts));
}

void BeginExplain(CommandContext& ctx) {
  Explained read;
  REPLY_IF_ERROR(ctx, ReadExplained(ctx.args.subspan(1), &read).status());
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, read.table));
  if (!MayReadTable(ctx)) return ctx.Fail(NoPermission());
  const RowOptions& options = read.request.rows;
  KeyRangeSet rows = options.index ? KeyRangeSet::All() : RowsAsked(*table, options.rows);
  ctx.Continue(std::make_unique<ScatterExplain>(ctx, *table, std::move(rows)));
}

void BeginInfo(CommandContext& ctx) {
  if (!CheckInfoWords(ctx)) return;
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[2]));
  ctx.Continue(std::make_unique<ScatterInfo>(ctx, *table));
}

struct Scatterer {
  std::string_view name;
  void (*begin)(CommandContext&);
};

constexpr Scatterer kScatterers[]{{"cagg", BeginAggregate},
                                  {"ccount", BeginCount},
                                  {"cdelrange", BeginDeleteRange},
                                  {"cexplain", BeginExplain},
                                  {"cnear", BeginNear},
                                  {"crows", BeginRows},
                                  {"cscan", BeginScan},
                                  {"cupdate", BeginUpdate},
                                  {"family|info", BeginInfo},
                                  {"feed|info", BeginMergedInfo},
                                  {"index|info", BeginInfo},
                                  {"table|info", BeginInfo},
                                  {"table|sample", BeginSample},
                                  {"xinfo|stream", BeginMergedInfo},
                                  {"xlen", BeginMergedLength},
                                  {"xrange", BeginMergedRange},
                                  {"xread", BeginMergedRead},
                                  {"xrevrange", BeginMergedRange}};

const Scatterer* FindScatterer(const CommandEntry& command) {
  for (const Scatterer& scatterer : kScatterers)
    if (scatterer.name == command.full_name) return &scatterer;
  return nullptr;
}

}  // namespace

bool ScatterCommands::Takes(const CommandEntry& command) {
  return FindScatterer(command) != nullptr;
}

void ScatterCommands::Begin(CommandContext& ctx) {
  const Scatterer* const scatterer = FindScatterer(ctx.command);
  CELLAR_ASSERT(scatterer != nullptr);
  scatterer->begin(ctx);
}

}  // namespace cellar
