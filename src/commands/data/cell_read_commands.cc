// CGET, CMGET, CEXISTS, CNEAR, CROW, CROWS, CSCAN, CCOUNT: the commands that read cells.
//
// The first three answer at once. The others read through a Scan, which pauses when it has examined
// much: then the command goes on as a Task on snapshots, while other clients are served, in a
// worker if it is long (scan_run.h, long_read.h).
#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/assert.h"
#include "base/inline.h"
#include "base/text/number.h"
#include "commands/arguments/cell_arguments.h"
#include "commands/arguments/near_arguments.h"
#include "commands/arguments/read_arguments.h"
#include "commands/arguments/read_syntax.h"
#include "commands/arguments/scan_cursor.h"
#include "commands/catalog/command_form.h"
#include "commands/cluster/call_piece.h"
#include "commands/data/data_commands.h"
#include "commands/data/row_listing.h"
#include "commands/replies/cell_reply.h"
#include "commands/replies/count_run.h"
#include "commands/replies/near_task.h"
#include "commands/replies/scan_run.h"
#include "commands/replies/visible_table.h"
#include "commands/replies/whole_row_reply.h"
#include "commands/session/command_context.h"
#include "commands/session/services.h"
#include "engine/keys/timestamp.h"
#include "engine/rows/read_notes.h"
#include "engine/rows/scan.h"
#include "engine/scans/scan_notes.h"
#include "engine/schema/column_set.h"
#include "store/store.h"

namespace cellar {
namespace {

// The thread's ReadRequest: reads of one row come so often that its memory is kept.
ReadRequest& ReadRequestOf(const CommandContext&) {
  static thread_local ReadRequest request;
  return request;
}

// The reply of CGET and what INFO counts. `cell` may be null.
CELLAR_INLINE void EndGet(CommandContext& ctx, const CellRead* cell, const GetOptions& options) {
  ctx.host.services().stats.CountLookup(cell != nullptr);
  if (cell == nullptr) return ctx.reply.Null();
  if (options.timestamp) [[unlikely]] {
    ctx.reply.Array(2);
    ctx.reply.Integer(cell->timestamp_micros());
  }
  if (options.state) [[unlikely]]
    return ReplyState(ctx.reply, cell->value.type, cell->value.stored);
  ReplyValue(ctx.reply, cell->value.type, cell->value.stored);
}

// Opens the command's row.
CELLAR_INLINE Result<OpenedRow*> OpenRow(CommandContext& ctx) {
  ASSIGN_OR_RETURN(const Table* const table, FindTable(ctx, ctx.args[1]));
  return ctx.store().OpenRow(*table, ctx.args[2], ctx.rights);
}

// Replies why the columns cannot be read. A word that is no column is wrong whatever the table and
// the row are. By value, so that the caller's Result never has to be in memory.
[[gnu::cold, gnu::noinline]] void FailAtColumns(
    CommandContext& ctx, Arguments columns,
    Status status) {  // NOLINT(performance-unnecessary-value-param): see above
  for (const std::string_view column : columns) REPLY_IF_ERROR(ctx, CheckColumn(column));
  ctx.Fail(status);
}

// The newest cell of `column` in the command's row at or before `at_micros`, or null.
CELLAR_INLINE Result<const CellRead*> GetColumn(CommandContext& ctx, std::string_view column,
                                                int64_t at_micros) {
  ASSIGN_OR_RETURN(OpenedRow* const row, OpenRow(ctx));
  return row->Get(column, at_micros);
}

// CGET, once its options are known.
CELLAR_INLINE void Get(CommandContext& ctx, const GetOptions& options) {
  Result<const CellRead*> cell = GetColumn(ctx, ctx.args[3], options.at_micros);
  if (!cell.ok()) [[unlikely]]
    return FailAtColumns(ctx, ctx.args.subspan(3, 1), std::move(cell).status());
  EndGet(ctx, *cell, options);
}

[[gnu::noinline]] void GetWithOptions(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, const GetOptions options, ParseGetOptions(ArgumentCursor(ctx.args, 4)));
  Get(ctx, options);
}

// Its way is drawn in store/store.h.
void CmdCGet(CommandContext& ctx) {
  if (ctx.args.size() > 4) [[unlikely]]
    return GetWithOptions(ctx);
  Get(ctx, GetOptions{});
}

CELLAR_INLINE void ReplyCellOrNull(CommandContext& ctx, const CellRead* cell) {
  if (cell != nullptr)
    ReplyValue(ctx.reply, cell->value.type, cell->value.stored);
  else
    ctx.reply.Null();
}

// Of the reply of one row.
size_t ReplyBytesMax(const CommandContext& ctx) {
  return static_cast<size_t>(ctx.host.services().config.reply_max_bytes);
}

// The reply of CMGET, as far as nothing is wrong.
CELLAR_INLINE Status GetColumns(CommandContext& ctx, Arguments columns) {
  ASSIGN_OR_RETURN(OpenedRow* const row, OpenRow(ctx));
  ServerStats& stats = ctx.host.services().stats;
  const size_t begin = ctx.reply.position();
  const size_t bytes_max = ReplyBytesMax(ctx);
  ctx.reply.Array(columns.size());
  for (const std::string_view column : columns) {
    ASSIGN_OR_RETURN(const CellRead* const cell, row->Get(column));
    stats.CountLookup(cell != nullptr);
    ReplyCellOrNull(ctx, cell);
    // Asked behind each value: a single one is bounded, so the reply is never far beyond the limit.
    if (ctx.reply.position() - begin > bytes_max) [[unlikely]] {
      return Status::Error(ErrorCode::kTooLarge,
                           "these columns make a reply of more than reply-max-bytes");
    }
  }
  return Status::Ok();
}

void CmdCMGet(CommandContext& ctx) {
  const Arguments columns = ctx.args.subspan(3);
  const size_t begin = ctx.reply.position();
  Status status = GetColumns(ctx, columns);
  if (status.ok()) [[likely]]
    return;
  // The header and the values so far go: the error is the whole reply.
  ctx.reply.Truncate(begin);
  FailAtColumns(ctx, columns, std::move(status));
}

void CmdCExists(CommandContext& ctx) {
  if (ctx.args.size() > 4) return ctx.Fail(SyntaxErrorBecause("CEXISTS takes one column"));
  bool exists = false;
  if (ctx.args.size() == 4) {
    Result<const CellRead*> cell = GetColumn(ctx, ctx.args[3], kTimestampMax);
    if (!cell.ok()) return FailAtColumns(ctx, ctx.args.subspan(3), std::move(cell).status());
    exists = *cell != nullptr;
  } else {
    ASSIGN_OR_REPLY(ctx, OpenedRow* const row, OpenRow(ctx));
    exists = row->IsLive();
  }
  ctx.host.services().stats.CountLookup(exists);
  ctx.reply.Integer(exists ? 1 : 0);
}

// CNEAR table INDEX name n value ...
void CNearIndex(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, const NearIndexRequest request, ParseNearIndex(ctx.args));
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[1]));
  ASSIGN_OR_REPLY(ctx, std::unique_ptr<NearSearch> search,
                  ctx.store().NearIndex(*table, request.index, request.values, ctx.rights));
  const bool is_piece = ctx.host.services().piece != nullptr;
  RunNear(ctx, *table, std::move(search), is_piece ? NearReply::kPlacedEntry : NearReply::kEntry);
}

void CmdCNear(CommandContext& ctx) {
  if (ctx.args.size() > 3) return CNearIndex(ctx);
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[1]));
  ASSIGN_OR_REPLY(ctx, std::unique_ptr<NearSearch> search,
                  ctx.store().Near(*table, ctx.args[2], ctx.rights));
  RunNear(ctx, *table, std::move(search), NearReply::kRow);
}

ScanHeat HeatOfScan(const CommandContext& ctx, const Table& table, const RowOptions& rows) {
  return {ctx.host, table, rows.reverse ? ScanHeat::Way::kReverse : ScanHeat::Way::kForward};
}

// A page that becomes long is as long as there is room for.
WorkMemory::Lease TakePage(CommandContext& ctx, ScanRun* run) {
  const Config& config = ctx.host.services().config;
  WorkMemory& work = ctx.host.services().work_memory;
  work.Configure(config.work_max_memory, config.maxmemory);
  WorkMemory::Lease page = work.TakePage(run->page_bytes_max());
  run->LimitPage(page.bytes());
  return page;
}

// Runs a scan in the handler, or hands it over as a task.
void Run(CommandContext& ctx, Table& table, std::unique_ptr<Scan> scan, ScanRunOptions&& options) {
  ctx.DependsOn(table.last_lsn());  // what its index has become may have been logged by the read
  options.rights = ctx.rights;
  options.reply_bytes_max = ReplyBytesMax(ctx);
  const bool is_row = options.shown == ScanShown::kRow;
  const bool is_page = options.shown == ScanShown::kPage;
  const bool is_begun = options.begun.has_value();
  const bool is_long = is_page && !ctx.session.exec_running &&
                       IsKnownLong(ctx.host, table, *scan, options.rows_max, options.cells_max);
  ScanRun run(std::move(scan), std::move(options), ctx.store(), &ctx.reply.buffer(),
              ctx.reply.version());
  const bool done = run.Pull(FirstBudget(ctx.session.exec_running, is_long));
  // Of those that come here CROW alone is a look-up of one key, as INFO counts them.
  if (is_row) ctx.host.services().stats.CountLookup(is_begun || run.rows() > 0);
  if (done) {
    run.Finish(&table);
    if (!run.refusal().ok()) ctx.Fail(run.refusal());
    return;
  }
  run.Detach(table);
  WorkMemory::Lease page;
  if (is_page) page = TakePage(ctx, &run);
  ctx.Continue(std::make_unique<ScanTask>(ctx.host, std::move(run), std::move(page),
                                          StartOf(is_long), table.last_lsn()));
}

// `CROW table row` by somebody who may read everything, as most are: without a scan, or by one that
// reads what is left of a long row. False if there is no such table, or the row's key is in doubt.
bool ReadWholeRow(CommandContext& ctx) {
  // Whatever is wrong here, the general way finds again and replies.
  const Result<Table*> found = FindTable(ctx, ctx.args[1]);
  if (!found.ok()) [[unlikely]]
    return false;
  Table* const table = *found;
  static thread_local std::string key;  // keeps its memory
  key.clear();
  if (!EncodeRowKey(table->schema(), ctx.args[2], &key).ok() || !table->CheckOwned(key).ok())
      [[unlikely]]
    return false;
  ScanRunOptions options;
  ScanPosition rest;
  const WholeRowReply said =
      ReplyWholeRow(ctx, *table, key, ReplyBytesMax(ctx), &options.begun, &rest);
  if (said != WholeRowReply::kBegun) [[likely]]
    return said == WholeRowReply::kDone;
  ReadRequest& request = ReadRequestOf(ctx);
  request.Clear();
  request.rows.rows.push_back({RowSelector::Kind::kRow, ctx.args[2], {}});
  Result<std::unique_ptr<Scan>> scan =
      ctx.store().ScanRows(*table, request.rows, request.cells, &rest);
  CELLAR_ASSERT(scan.ok());  // the row's key is in order
  options.shown = ScanShown::kRow;
  Run(ctx, *table, *std::move(scan), std::move(options));
  return true;
}

void CmdCRow(CommandContext& ctx) {
  if (ctx.args.size() == 3 && ctx.rights == nullptr && ReadWholeRow(ctx)) [[likely]]
    return;
  ReadRequest& request = ReadRequestOf(ctx);
  REPLY_IF_ERROR(ctx, ParseReadOptions(ReadCommand::kRow, ArgumentCursor(ctx.args, 3), &request));
  request.cells.access = ctx.rights;
  request.rows.rows.push_back({RowSelector::Kind::kRow, ctx.args[2], {}});
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[1]));
  ASSIGN_OR_REPLY(ctx, std::unique_ptr<Scan> scan,
                  ctx.store().ScanRows(*table, request.rows, request.cells, nullptr));
  if (table->clamp() != nullptr) [[unlikely]] {
    ASSIGN_OR_REPLY(ctx, const std::string key, ctx.store().RowKey(*table, ctx.args[2]));
    REPLY_IF_ERROR(ctx, table->CheckOwned(key));
  }
  ScanRunOptions options;
  options.shown = ScanShown::kRow;
  options.format = request.format;
  Run(ctx, *table, std::move(scan), std::move(options));
}

// `CROWS table count row ...` by somebody who may read everything, in the same way.
bool ReadWholeRows(CommandContext& ctx, Arguments rows) {
  const Result<Table*> found = FindTable(ctx, ctx.args[1]);
  if (!found.ok() || rows.size() > kRowsNamedMax) [[unlikely]]
    return false;
  Table* const table = *found;
  ScanRunOptions options;
  const WholeRowReply said = ReplyWholeRows(ctx, *table, rows, ReplyBytesMax(ctx), &options.begun);
  if (said != WholeRowReply::kBegun) [[likely]]
    return said == WholeRowReply::kDone;
  ReadRequest& request = ReadRequestOf(ctx);
  request.Clear();
  // Rows that stand whole in the reply are not read again.
  Result<std::unique_ptr<Scan>> scan =
      ctx.store().ReadRows(*table, rows.subspan(options.begun->count), request.cells);
  if (!scan.ok()) {  // one of the keys behind is in doubt
    ctx.reply.Truncate(options.begun->begin);
    return false;
  }
  options.shown = ScanShown::kList;
  options.rows_max = rows.size();
  options.heat = ScanHeat(ctx.host, *table, ScanHeat::Way::kJumps);
  Run(ctx, *table, *std::move(scan), std::move(options));
  return true;
}

void CmdCRows(CommandContext& ctx) {
  ReadRequest& request = ReadRequestOf(ctx);
  ArgumentCursor at(ctx.args, 2);
  ASSIGN_OR_REPLY(ctx, const uint64_t count,
                  ParseWordCount("CROWS table", "count row ...", at.Take(), 1));
  if (count > at.left()) return ctx.Fail(TooFewWords("CROWS table", count, at.left()));
  const Arguments rows = ctx.args.subspan(at.position(), count);
  if (count == at.left() && ctx.rights == nullptr && ReadWholeRows(ctx, rows)) return;
  REPLY_IF_ERROR(ctx, ParseReadOptions(ReadCommand::kRows,
                                       ArgumentCursor(ctx.args, at.position() + count), &request));
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[1]));
  REPLY_IF_ERROR(ctx, CheckRowsNamed(count));
  request.cells.timestamps = request.format.arrays();
  request.cells.access = ctx.rights;
  ASSIGN_OR_REPLY(ctx, std::unique_ptr<Scan> scan,
                  ctx.store().ReadRows(*table, rows, request.cells));
  ScanRunOptions options;
  options.shown = ScanShown::kList;
  options.rows_max = count;
  options.format = request.format;
  options.heat = ScanHeat(ctx.host, *table, ScanHeat::Way::kJumps);
  Run(ctx, *table, std::move(scan), std::move(options));
}

// Opens the scan of a CSCAN: from the start, from a cursor, over a pinned view.
Result<std::unique_ptr<Scan>> OpenScan(CommandContext& ctx, Table& table,
                                       const ReadRequest& request, ScanRunOptions* options) {
  Store& store = ctx.store();
  const std::string_view index =
      request.rows.index.has_value() ? request.rows.index->name : std::string_view{};
  options->cursor_binding = ScanBinding(table.schema().key.spec(), index, request.rows.reverse);
  // Its cursors are of this snapshot, and of no other that gets its name.
  if (table.frozen()) options->pin = kFrozenPin | table.id();
  if (IsStartCursor(ctx.args[2])) {
    options->pin_wanted = request.snapshot && !table.frozen();
    return store.ScanRows(table, request.rows, request.cells, nullptr);
  }
  ASSIGN_OR_RETURN(const ScanCursor cursor, DecodeCursor(ctx.args[2], options->cursor_binding));
  // A cursor of another snapshot carries another number. It goes to ScanPinned, which knows no such
  // view and says STALECURSOR.
  if (table.frozen() && cursor.pin == options->pin)
    return store.ScanRows(table, request.rows, request.cells, &cursor.position);
  options->pin = cursor.pin;
  if (cursor.pin.has_value()) {
    return store.ScanPinned(*cursor.pin, table, request.rows, request.cells, &cursor.position);
  }
  return store.ScanRows(table, request.rows, request.cells, &cursor.position);
}

// How long the page may be. The pages of an EXEC share one: each gets what is left, and a row at
// least.
size_t PageBytesMax(CommandContext& ctx) {
  const auto bytes = static_cast<size_t>(ctx.host.services().config.scan_reply_max_bytes);
  if (!ctx.session.exec_running) return bytes;
  CELLAR_ASSERT(ctx.session.exec_position <= ctx.reply.buffer().size());
  return bytes - std::min(bytes, ctx.reply.buffer().size() - ctx.session.exec_position);
}

// The table of a CSCAN. STALECURSOR if it is one of a snapshot that was there when the scan began.
Result<Table*> FindScanned(CommandContext& ctx) {
  Result<Table*> table = FindTable(ctx, ctx.args[1]);
  if (table.ok() || IsStartCursor(ctx.args[2]) || table.status().code() != ErrorCode::kNoSnapshot)
    return table;
  return Status::Error(ErrorCode::kStaleCursor,
                       "the snapshot of this cursor is gone: it was dropped");
}

// Of a page that lies on several sets this one is asked for a part.
[[gnu::cold]] void ReadPiece(const CallPiece& piece, ReadRequest* request,
                             ScanRunOptions* options) {
  request->rows.seed = piece.seed;
  options->rows_max = std::min(options->rows_max, piece.rows_max);
  options->cells_max = std::min(options->cells_max, piece.cells_max);
  options->page_bytes_max = static_cast<size_t>(piece.bytes_max);
  options->rows_before = piece.rows_before;
  options->tells_place = piece.tells_place;
  options->tells_places = piece.tells_places;
}

void CmdCScan(CommandContext& ctx) {
  ReadRequest& request = ReadRequestOf(ctx);
  REPLY_IF_ERROR(ctx, WithForm(ctx.command, CheckCursorForm(ctx.args[2])));
  REPLY_IF_ERROR(ctx, ParseReadOptions(ReadCommand::kScan, ArgumentCursor(ctx.args, 3), &request));
  ASSIGN_OR_REPLY(ctx, Table* const table, FindScanned(ctx));
  ScanRunOptions options;
  options.keys_only = request.keys_only;
  options.format = request.format;
  options.rows_max = request.rows_max;
  options.cells_max = request.cells_max;
  options.page_bytes_max = PageBytesMax(ctx);
  options.draws_rows = DrawsRows(request);
  if (const CallPiece* const piece = ctx.host.services().piece; piece != nullptr) [[unlikely]]
    ReadPiece(*piece, &request, &options);
  request.rows.cells_wanted = !request.keys_only;
  request.cells.values = !request.keys_only;
  request.cells.timestamps = request.format.arrays();
  request.cells.access = ctx.rights;
  // What had to be looked at tells of what is hidden.
  if (request.stats && !MayReadTable(ctx)) return ctx.Fail(NoPermission());
  if (request.stats) {
    options.stats_clock = &ctx.host.clock();
    options.notes = ReadNotes(table->schema(), request.rows, request.cells);
  }
  ASSIGN_OR_REPLY(ctx, std::unique_ptr<Scan> scan, OpenScan(ctx, *table, request, &options));
  if (request.stats) NoteScan(*table, *scan, &options.notes);
  options.heat = HeatOfScan(ctx, *table, request.rows);
  Run(ctx, *table, std::move(scan), std::move(options));
}

// What is counted anyway: all rows of the table, or all its cells, if all that is stored is live.
std::optional<uint64_t> KnownCount(const CommandContext& ctx, const Table& table,
                                   const ReadRequest& request) {
  const RowOptions& rows = request.rows;
  const CellOptions& cells = request.cells;
  const bool all_rows =
      rows.rows.empty() && !rows.index && !rows.each && rows.where.empty() && !rows.sample;
  const bool all_cells = cells.columns.empty() && cells.time.all() && !cells.filter &&
                         cells.columns_skip == 0 && cells.super_columns_max == kUnlimited &&
                         cells.columns_max == kUnlimited;
  if (!all_rows || !all_cells || !MayReadTable(ctx) || table.MayHoldDropped() ||
      table.shown() != nullptr)
    return std::nullopt;
  if (request.by == CountBy::kRows) return table.counters().rows;
  if (request.by == CountBy::kCells && cells.versions_max == kUnlimited) return table.cells();
  return std::nullopt;
}

// False: it has answered.
[[gnu::cold]] bool CountPiece(CommandContext& ctx, Table& table, const CallPiece& piece,
                              ReadRequest* request) {
  request->rows.seed = piece.seed;
  if (piece.names_rows) NameRows(request);
  if (piece.lists_rows) ListRows(ctx, table, piece, request);
  return !piece.lists_rows;
}

void CmdCCount(CommandContext& ctx) {
  ReadRequest& request = ReadRequestOf(ctx);
  REPLY_IF_ERROR(ctx, ParseReadOptions(ReadCommand::kCount, ArgumentCursor(ctx.args, 2), &request));
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[1]));
  const CallPiece* const piece = ctx.host.services().piece;
  if (piece != nullptr && !CountPiece(ctx, *table, *piece, &request)) [[unlikely]]
    return;
  if (const std::optional<uint64_t> known = KnownCount(ctx, *table, request)) {
    return ctx.reply.Unsigned(*known);
  }
  request.rows.cells_wanted = request.by != CountBy::kRows;
  // A count is the same in any order, so rows may come in that of any index.
  request.rows.reordered_max = kUnlimited;
  request.cells.timestamps = false;
  request.cells.values = false;
  request.cells.access = ctx.rights;
  ASSIGN_OR_REPLY(ctx, CountRun run, CountRun::Open(ctx.store(), *table, &request));
  const bool is_long = !ctx.session.exec_running && !request.rows.each &&
                       IsKnownLong(ctx.host, *table, run.scan(), kUnlimited, kUnlimited);
  run.SetHeat(HeatOfScan(ctx, *table, request.rows));
  RunCount<':'>(
      ctx, *table, std::move(run), StartOf(is_long),
      [](ReplyWriter& reply, const CountRun& counted) { reply.Unsigned(counted.count()); });
}

constexpr KeySpec kRowRead{.first = 1, .access = KeyAccess::kRead, .row = 2};
constexpr KeySpec kTableRead{.first = 1, .access = KeyAccess::kRead};

constexpr Command kCellReadCommands[] = {
    {.name = "cget",
     .arity = -4,
     .flags = kReadonly | kFast,
     .categories = kCategoryCell,
     .keys = kRowRead,
     .group = "cell",
     .summary = "Returns the newest value of a column, or the newest at or before a time.",
     .complexity = "O(log n) where n is the number of cells in the locality group",
     .syntax = "table row column [AT time] [WITHTS] [STATE]",
     .handler = CmdCGet},
    {.name = "cmget",
     .arity = -4,
     .flags = kReadonly | kFast,
     .categories = kCategoryCell,
     .keys = kRowRead,
     .group = "cell",
     .summary = "Returns the newest values of several columns of a row.",
     .complexity = "O(log n) for each column",
     .syntax = "table row column...",
     .handler = CmdCMGet},
    {.name = "cexists",
     .arity = -3,
     .flags = kReadonly | kFast,
     .categories = kCategoryCell,
     .keys = kRowRead,
     .group = "cell",
     .summary = "Returns 1 if the row, or a column of it, exists, and 0 if not.",
     .complexity = "O(log n)",
     .syntax = "table row [column]",
     .handler = CmdCExists},
    {.name = "cnear",
     .arity = -3,
     .flags = kReadonly | kFast,
     .categories = kCategoryCell,
     .keys = kTableRead,
     .group = "cell",
     .summary = "Returns the row, or else the next one (1), or else the one before (-1); 0 is the "
                "row itself.",
     .complexity = "O(log n)",
     .syntax = "table (row | INDEX index count value...)",
     .handler = CmdCNear},
    {.name = "crow",
     .arity = -3,
     .flags = kReadonly,
     .categories = kCategoryCell,
     .keys = kRowRead,
     .group = "cell",
     .summary = "Returns a row as a map from column to value.",
     .complexity = "O(log n + m) where m is the number of cells of the row",
     .syntax = kRowSyntax,
     .handler = CmdCRow},
    {.name = "crows",
     .arity = -4,
     .flags = kReadonly,
     .categories = kCategoryCell,
     .keys = kTableRead,
     .group = "cell",
     .summary = "Returns rows as maps from column to value, in the order in which they are named, "
                "all as at one moment. The map of a row that is not there is empty.",
     .complexity = "O(n log n + m) for n rows of m cells",
     .syntax = kRowsSyntax,
     .handler = CmdCRows},
    {.name = "cscan",
     .arity = -3,
     .flags = kReadonly,
     .categories = kCategoryCell,
     .keys = kTableRead,
     .group = "cell",
     .summary = "Returns rows in key order, with a cursor for the next call. A scan begins and "
                "ends with 0.",
     .complexity = "O(log n + m) for each call, where m is the number of cells examined",
     .syntax = kScanSyntax,
     .handler = CmdCScan},
    {.name = "ccount",
     .arity = -2,
     .flags = kReadonly,
     .categories = kCategoryCell,
     .keys = kTableRead,
     .group = "cell",
     .summary = "Counts the rows, super columns, columns or cells that a scan would return.",
     .complexity =
         "O(log n + m) where m is the number of cells examined; O(families) for all rows, or all "
         "cells (VERSIONS ALL BY CELLS), of a table of which retention drops nothing",
     .syntax = kCountSyntax,
     .handler = CmdCCount},
};

}  // namespace

void ListRows(CommandContext& ctx, Table& table, const CallPiece& piece, ReadRequest* request) {
  RowOptions& rows = request->rows;
  rows.cells_wanted = false;
  request->cells.values = false;
  request->cells.timestamps = false;
  request->cells.access = ctx.rights;
  ScanRunOptions options;
  options.keys_only = true;
  options.draws_rows = DrawsRows(*request);
  options.cursor_binding = ScanBinding(
      table.schema().key.spec(), rows.index ? rows.index->name : std::string_view(), rows.reverse);
  ReadPiece(piece, request, &options);
  ScanCursor from;
  if (!IsStartCursor(piece.cursor)) {
    ASSIGN_OR_REPLY(ctx, from, DecodeCursor(piece.cursor, options.cursor_binding));
  }
  ASSIGN_OR_REPLY(ctx, std::unique_ptr<Scan> scan,
                  ctx.store().ScanRows(table, rows, request->cells,
                                       IsStartCursor(piece.cursor) ? nullptr : &from.position));
  options.heat = HeatOfScan(ctx, table, rows);
  Run(ctx, table, std::move(scan), std::move(options));
}

void NameRows(ReadRequest* request) {
  request->rows.rows.clear();
  request->rows.index.reset();
  request->rows.each.reset();
  request->rows.no_index = true;
}

std::span<const Command> CellReadCommands() { return kCellReadCommands; }

}  // namespace cellar
