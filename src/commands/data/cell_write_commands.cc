// CPUT, CADD, CDEL, CDELRANGE, CINCRBY, CINCRBYFLOAT, CAPPEND, CMUTATE, CUPDATE: the commands that
// change cells. Each is a RowWrite (engine/request/row_write.h) that the store carries out at once
// or not at all; CUPDATE is one for each of its rows.
//
// One RowWrite is kept for all commands of the thread, so that the usual command allocates nothing.
#include <algorithm>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/inline.h"
#include "base/text/ascii.h"
#include "base/text/quote.h"
#include "commands/arguments/cell_arguments.h"
#include "commands/arguments/read_arguments.h"
#include "commands/arguments/read_syntax.h"
#include "commands/arguments/write_arguments.h"
#include "commands/catalog/command_form.h"
#include "commands/cluster/call_piece.h"
#include "commands/data/data_commands.h"
#include "commands/data/row_listing.h"
#include "commands/replies/cell_reply.h"
#include "commands/replies/change_task.h"
#include "commands/replies/visible_table.h"
#include "commands/session/command_context.h"
#include "commands/session/services.h"
#include "commands/session/table_events.h"
#include "engine/request/row_update.h"
#include "engine/request/row_write.h"
#include "engine/schema/column_set.h"
#include "store/sliced_change.h"
#include "store/store.h"

namespace cellar {
namespace {

constexpr size_t kRowArgument{2};
constexpr size_t kFirstOption{3};
constexpr std::string_view kNextRecord{"*"};  // as a row key: the next record number

// The thread's RowWrite, cleared, for the row of this command.
CELLAR_INLINE RowWrite& RowWriteOf(const CommandContext& ctx) {
  static thread_local RowWrite write;
  write.Clear();
  write.access = ctx.rights;
  write.row = ctx.args[kRowArgument];
  return write;
}

// NotifyRow, if it has anything to do.
void NotifyRowChanged(const CommandContext& ctx, const Table& table, std::string_view row) {
  if (ctx.host.services().has_row_listeners()) [[unlikely]]
    NotifyRow(ctx.host, ctx.command.row->name, table, row);
}

// Carries `write` out, says on what the reply depends, and tells those who listen for it. The
// result lives until the thread's next write. Null: an error, which has been replied.
const RowWriteResult* WriteToOrReply(CommandContext& ctx, Table& table, const RowWrite& write) {
  static thread_local RowWriteResult result;
  Status done = ctx.store().Write(table, write, &result);
  // Of a refusal too: that a condition did not hold tells what an earlier write has left.
  ctx.DependsOn(table.last_lsn());
  if (!done.ok()) [[unlikely]] {
    ctx.Fail(HintAtTime(std::move(done), table.schema(), write));
    return nullptr;
  }
  if (result.changed_something()) {
    NotifyRowChanged(ctx, table, write.allocates ? result.row : write.row);
  }
  return &result;
}

// The same in the command's table.
const RowWriteResult* WriteOrReply(CommandContext& ctx, const RowWrite& write) {
  const Result<Table*> table = FindTable(ctx, ctx.args[1]);
  if (table.ok()) [[likely]]
    return WriteToOrReply(ctx, **table, write);
  ctx.Fail(table.status());
  return nullptr;
}

// Are the words columns and values in turn, and no options? These have no colon, which columns do.
CELLAR_INLINE bool AreCells(Arguments words) {
  if (words.size() % 2 != 0 || words.size() / 2 > kCellOpsMax) return false;
  for (size_t i = 0; i < words.size(); i += 2) {
    if (!IsColumn(words[i])) return false;
  }
  return true;
}

// CPUT with options, by somebody who may not do everything, or of the next record number.
[[gnu::noinline]] void PutWithOptions(CommandContext& ctx) {
  RowWrite& write = RowWriteOf(ctx);
  REPLY_IF_ERROR(ctx, ParsePut(ArgumentCursor(ctx.args, kFirstOption), &write));
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[1]));
  // In a table whose keys are no record numbers `*` is a key like any other.
  write.allocates = write.row == kNextRecord && table->schema().key.is_recno();
  const RowWriteResult* const result = WriteToOrReply(ctx, *table, write);
  if (result == nullptr) return;
  if (!result->conditions_held) return ctx.reply.Null();
  if (write.allocates) return ctx.reply.Bulk(result->row);
  ctx.reply.Ok();
}

[[gnu::cold, gnu::noinline]] void RefusePut(CommandContext& ctx, const Table& table,
                                            Arguments cells, const Status& why) {
  // Two words go to Put unseen (CmdCPut). If the first is no column, parsing them yields the proper
  // error.
  if (!IsColumn(cells[0])) return PutWithOptions(ctx);
  ctx.DependsOn(table.last_lsn());  // what was refused depends on what was there
  ctx.Fail(why);
}

// The way of most of them is drawn in store/store.h. What is wrong with the words is wrong whatever
// the table is: PutWithOptions says it.
void CmdCPut(CommandContext& ctx) {
  const std::string_view row = ctx.args[kRowArgument];
  const Arguments cells = ctx.args.subspan(kFirstOption);
  // Two words are a cell or wrong: which of both is not asked before they have been refused.
  const bool may_be_cells = cells.size() == 2 || AreCells(cells);
  if (ctx.rights != nullptr || row == kNextRecord || !may_be_cells) [[unlikely]]
    return PutWithOptions(ctx);
  Table* const table = FindTableToChange(ctx, ctx.args[1]);
  if (table == nullptr) [[unlikely]]
    return PutWithOptions(ctx);
  if (const Status done = ctx.store().Put(*table, row, cells); !done.ok()) [[unlikely]]
    return RefusePut(ctx, *table, cells, done);
  ctx.DependsOn(table->last_lsn());
  NotifyRowChanged(ctx, *table, row);
  ctx.reply.Ok();
}

void CmdCAdd(CommandContext& ctx) {
  RowWrite& write = RowWriteOf(ctx);
  REPLY_IF_ERROR(ctx, ParseAdd(ArgumentCursor(ctx.args, kFirstOption), &write));
  const RowWriteResult* const result = WriteOrReply(ctx, write);
  if (result == nullptr) return;
  if (!result->conditions_held) return ctx.reply.Null();
  ctx.reply.Ok();
}

// NOFAMILY with CDEL's form, if a family that the table has not is a word that reads have in front
// of their columns. The error of a bad row key comes first; who may not do everything is not told
// which families there are.
Status CheckDeletedFamilies(const CommandContext& ctx, const Table& table, const RowWrite& write) {
  constexpr std::string_view kWords[]{"COLUMNS", "COUNT",  "FAMILY", "FILTER", "INDEX",
                                      "PREFIX",  "RANGE",  "ROWS",   "TS",     "VERSIONS",
                                      "WHERE",   "COLUMN", "AT"};
  if (ctx.rights != nullptr) return Status::Ok();
  for (const CellOp& op : write.ops) {
    if (op.kind != CellOp::Kind::kDelete ||
        table.schema().FindFamily(op.selector.family) != nullptr)
      continue;
    const std::string_view name = op.selector.family;
    const bool is_word =
        std::any_of(std::begin(kWords), std::end(kWords),
                    [name](std::string_view word) { return EqualsIgnoreCase(name, word); });
    std::string key;
    if (!is_word || !EncodeRowKey(table.schema(), write.row, &key).ok()) return Status::Ok();
    return WithForm(ctx.command,
                    Status::Error(ErrorCode::kNoFamily,
                                  "no family " + Quote(name) + " in table " + Quote(table.name())));
  }
  return Status::Ok();
}

void CmdCDel(CommandContext& ctx) {
  RowWrite& write = RowWriteOf(ctx);
  REPLY_IF_ERROR(ctx, ParseDelete(ArgumentCursor(ctx.args, kFirstOption), &write));
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[1]));
  REPLY_IF_ERROR(ctx, CheckDeletedFamilies(ctx, *table, write));
  const RowWriteResult* const result = WriteToOrReply(ctx, *table, write);
  if (result == nullptr) return;
  if (!result->conditions_held) return ctx.reply.Null();
  uint64_t cells = 0;
  for (const CellOpResult& op : result->results) cells += op.count;
  ctx.reply.Unsigned(cells);
}

void CmdCDelRange(CommandContext& ctx) {
  RowOptions rows;
  REPLY_IF_ERROR(ctx, ParseDeleteRange(ArgumentCursor(ctx.args, 2), &rows));
  // No family is asked about: access control has demanded the whole table (KeyScope::kTable).
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[1]));
  ASSIGN_OR_REPLY(ctx, std::unique_ptr<SlicedChange> change, ctx.store().DeleteRows(*table, rows));
  RunChange(ctx, *table, std::move(change), ChangeReply::kRowsDeleted, {});
}

// CINCRBY, CINCRBYFLOAT, CAPPEND: one op, whose result is the reply. Null: an error, which has been
// replied.
const CellOpResult* WriteColumnOpOrReply(CommandContext& ctx, CellOp::Kind kind) {
  RowWrite& write = RowWriteOf(ctx);
  const Status parsed = ParseColumnOp(ArgumentCursor(ctx.args, kFirstOption), kind, &write);
  if (!parsed.ok()) [[unlikely]] {
    ctx.Fail(parsed);
    return nullptr;
  }
  const RowWriteResult* const result = WriteOrReply(ctx, write);
  if (result == nullptr) return nullptr;
  CELLAR_ASSERT(result->results.size() == 1);
  return result->results.data();
}

void CmdCIncrBy(CommandContext& ctx) {
  const CellOpResult* const sum = WriteColumnOpOrReply(ctx, CellOp::Kind::kIncrement);
  if (sum != nullptr) [[likely]]
    ReplyValue(ctx.reply, sum->type, sum->stored);
}

void CmdCIncrByFloat(CommandContext& ctx) {
  const CellOpResult* const sum = WriteColumnOpOrReply(ctx, CellOp::Kind::kIncrementFloat);
  if (sum != nullptr) [[likely]]
    ReplyValue(ctx.reply, sum->type, sum->stored);
}

void CmdCAppend(CommandContext& ctx) {
  const CellOpResult* const appended = WriteColumnOpOrReply(ctx, CellOp::Kind::kAppend);
  if (appended != nullptr) [[likely]]
    ctx.reply.Unsigned(appended->count);
}

void ReplyOpResult(ReplyWriter& reply, const CellOpResult& result) {
  switch (result.kind) {
    case CellOp::Kind::kPut:
    case CellOp::Kind::kAdd:
    case CellOp::Kind::kMerge:
      return reply.Ok();
    case CellOp::Kind::kDelete:
    case CellOp::Kind::kDeleteRow:
    case CellOp::Kind::kAppend:
      return reply.Unsigned(result.count);
    case CellOp::Kind::kIncrement:
    case CellOp::Kind::kIncrementFloat:
    case CellOp::Kind::kIncrementAny:
      return ReplyValue(reply, result.type, result.stored);
  }
}

void CmdCMutate(CommandContext& ctx) {
  RowWrite& write = RowWriteOf(ctx);
  REPLY_IF_ERROR(ctx, ParseMutate(ArgumentCursor(ctx.args, kFirstOption), &write));
  const RowWriteResult* const result = WriteOrReply(ctx, write);
  if (result == nullptr) return;
  ctx.reply.Array(1 + result->results.size());
  ctx.reply.Integer(result->conditions_held ? 1 : 0);
  for (const CellOpResult& op : result->results) ReplyOpResult(ctx.reply, op);
}

void CmdCUpdate(CommandContext& ctx) {
  // The update may go on after this handler, and its words die with the handler. So it owns a copy,
  // and all that is parsed borrows from that.
  auto update = std::make_unique<RowUpdate>();
  update->words.assign(ctx.args.begin(), ctx.args.end());
  const std::vector<std::string_view> words(update->words.begin(), update->words.end());
  ArgumentCursor at(words, 2);
  ReadRequest request;
  REPLY_IF_ERROR(ctx, ParseUpdateOptions(&at, &request));
  REPLY_IF_ERROR(ctx, ParseUpdateOps(at, &update->write));
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[1]));
  const CallPiece* const piece = ctx.host.services().piece;
  if (piece != nullptr && piece->lists_rows) [[unlikely]]
    return ListRows(ctx, *table, *piece, &request);
  update->rows = std::move(request.rows);
  update->rows_max = request.changes_max;
  if (piece != nullptr) [[unlikely]]
    update->rows_max = std::min(update->rows_max, piece->rows_max);
  const Config& config = ctx.host.services().config;
  WorkMemory& work = ctx.host.services().work_memory;
  work.Configure(config.work_max_memory, config.maxmemory);
  WorkMemory::Lease list = work.TakeIfRoom(WorkKind::kUpdate, kUpdateRowsSortedBytes);
  update->may_sort = list.bytes() > 0;
  ASSIGN_OR_REPLY(ctx, std::unique_ptr<SlicedChange> change,
                  ctx.store().UpdateRows(*table, std::move(update), ctx.rights));
  RunChange(ctx, *table, std::move(change), ChangeReply::kRowsUpdated, std::move(list));
}

constexpr KeySpec kRowWritten{.first = 1, .access = KeyAccess::kReadWrite, .row = 2};

constexpr Command kCellWriteCommands[] = {
    {.name = "cput",
     .arity = -5,
     .flags = kWrite | kDenyOom | kFast,
     .categories = kCategoryCell,
     .keys = {.first = 1, .access = KeyAccess::kWrite, .row = 2},
     .group = "cell",
     .summary = "Writes cells of a row, all or none. Null if a condition does not hold.",
     .complexity = "O(log n) for each cell and each index of its column, where n is the number of "
                   "cells in the locality group",
     .syntax = "table row [NX|XX] [IF predicate]... (column value [AS type] [TS time] "
               "[TTL duration|EXPIREAT time])...",
     .handler = CmdCPut},
    {.name = "cadd",
     .arity = -5,
     .flags = kWrite | kDenyOom | kFast,
     .categories = kCategoryCell,
     .keys = {.first = 1, .access = KeyAccess::kWrite, .row = 2},
     .group = "cell",
     .summary = "Folds inputs into cells of aggregate families, all or none. Null if a condition "
                "does not hold.",
     .complexity = "O(log n) for each input",
     .syntax = "table row [IF predicate]... (column input [TS time])...",
     .handler = CmdCAdd},
    {.name = "cdel",
     .arity = -3,
     .flags = kWrite | kFast,
     .categories = kCategoryCell,
     .keys = kRowWritten,
     .group = "cell",
     .summary = "Deletes a row, or some of its columns, families or versions. Returns the number "
                "of cells deleted.",
     .complexity = "O(log n + m) where m is the number of cells deleted",
     .syntax = "table row [IF predicate]... [column|family]... [COLPREFIX family prefix]... "
               "[COLRANGE family min max]... [TIME min max]",
     .handler = CmdCDel},
    {.name = "cdelrange",
     .arity = -3,
     .flags = kWrite,
     .categories = kCategoryCell,
     .keys = {.first = 1, .access = KeyAccess::kWrite, .scope = KeyScope::kTable},
     .group = "cell",
     .summary = "Deletes a range of rows, each atomically. Returns the number of rows deleted.",
     .complexity = "O(log n + m) where m is the number of cells deleted, in slices",
     .syntax = "table (PREFIX prefix | RANGE min max | ALL)",
     .handler = CmdCDelRange},
    {.name = "cincrby",
     .arity = 5,
     .flags = kWrite | kDenyOom | kFast,
     .categories = kCategoryCell,
     .keys = kRowWritten,
     .group = "cell",
     .summary = "Adds an integer to a cell, as a new version. Returns the new value.",
     .complexity = "O(log n)",
     .syntax = "table row column delta",
     .handler = CmdCIncrBy},
    {.name = "cincrbyfloat",
     .arity = 5,
     .flags = kWrite | kDenyOom | kFast,
     .categories = kCategoryCell,
     .keys = kRowWritten,
     .group = "cell",
     .summary = "Adds a floating-point number to a cell, as a new version. Returns the new value.",
     .complexity = "O(log n)",
     .syntax = "table row column delta",
     .handler = CmdCIncrByFloat},
    {.name = "cappend",
     .arity = 5,
     .flags = kWrite | kDenyOom | kFast,
     .categories = kCategoryCell,
     .keys = kRowWritten,
     .group = "cell",
     .summary = "Appends bytes to a cell, as a new version. Returns the new length.",
     .complexity = "O(log n + m) where m is the length of the value",
     .syntax = "table row column bytes",
     .handler = CmdCAppend},
    {.name = "cmutate",
     .arity = -4,
     .flags = kWrite | kDenyOom,
     .categories = kCategoryCell,
     .keys = kRowWritten,
     .group = "cell",
     .summary = "Changes one row in several steps, atomically. ELSE gives the steps to take if a "
                "condition does not hold.",
     .complexity = "O(log n) for each change",
     .syntax = "table row [IF predicate]... "
               "(PUT column value [AS type] [TS time] [TTL duration | EXPIREAT time] | "
               "ADD column input [TS time] | MERGE column state [TS time] | "
               "DEL (column|family|COLPREFIX family prefix|COLRANGE family min max) "
               "[TIME min max] | DELROW | INCR column delta | APPEND column bytes)... "
               "[ELSE op...]",
     .handler = CmdCMutate},
    {.name = "cupdate",
     .arity = -4,
     .flags = kWrite | kDenyOom,
     .categories = kCategoryCell,
     .keys = {.first = 1, .access = KeyAccess::kReadWrite},
     .group = "cell",
     .summary = "Changes the rows of a selection, each atomically, as CMUTATE does. Returns the "
                "number of rows changed.",
     .complexity = "O(log n + m) where m is the number of rows in the selection, and O(log n) for "
                   "each change, in slices",
     .syntax = kUpdateSyntax,
     .handler = CmdCUpdate},
};

}  // namespace

std::span<const Command> CellWriteCommands() { return kCellWriteCommands; }

}  // namespace cellar
