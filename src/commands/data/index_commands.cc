// INDEX: the indexes of a table.
//
//   INDEX CREATE table name ON n column [AS type] ... [INCLUDE m column|family ...] [UNIQUE]
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text/quote.h"
#include "commands/arguments/cell_arguments.h"
#include "commands/arguments/schema_arguments.h"
#include "commands/catalog/command_form.h"
#include "commands/config/config.h"
#include "commands/data/data_commands.h"
#include "commands/replies/count_run.h"
#include "commands/replies/schema_commands.h"
#include "commands/replies/visible_table.h"
#include "commands/reports/help.h"
#include "commands/session/command_context.h"
#include "commands/session/table_events.h"
#include "engine/schema/column_set.h"
#include "engine/schema/schema.h"
#include "store/requests.h"
#include "store/store.h"

namespace cellar {
namespace {

// "family:qualifier", or a whole family.
NewIndexColumn SplitIndexColumn(std::string_view word) {
  NewIndexColumn column;
  std::string_view qualifier;
  if (SplitColumn(word, &column.family, &qualifier)) {
    column.qualifier = qualifier;
  } else {
    column.family = word;
  }
  return column;
}

// ON or INCLUDE, whose word has been taken: how many columns follow.
struct ColumnList {
  std::string_view option;
  std::string_view words;
  uint64_t least;
  uint64_t most;
};
constexpr ColumnList kOn{"ON", "count column [AS type] ...", 0, kIndexColumnsMax};
constexpr ColumnList kInclude{"INCLUDE", "count column|family ...", 1, kIndexIncludeMax};

Result<uint64_t> TakeCount(const ColumnList& list, ArgumentCursor* at) {
  const auto& [option, words, least, most] = list;
  ASSIGN_OR_RETURN(const std::string_view word, at->TakeAny(option, words));
  ASSIGN_OR_RETURN(const uint64_t count, ParseWordCount(option, words, word, least));
  if (count > most) {
    return Status::Error(ErrorCode::kTooLarge, std::string(option) + " of an index takes at most " +
                                                   std::to_string(most) + " columns");
  }
  return count;
}

[[gnu::cold]] Status NotIndexOption(std::string_view word) {
  for (const std::string_view once : {"INCLUDE", "UNIQUE"}) {
    if (EqualsIgnoreCase(word, once)) return RepeatedOption(once);
  }
  return UnexpectedWord(word, "AS, INCLUDE or UNIQUE");
}

Status TakeOn(ArgumentCursor* at, NewIndex* index) {
  ASSIGN_OR_RETURN(const uint64_t count, TakeCount(kOn, at));
  for (uint64_t i = 0; i < count; ++i) {
    if (at->done()) return TooFewWords("ON", count, i);
    std::string_view word = at->Take();
    const bool descending = word.starts_with('-');
    if (descending) word.remove_prefix(1);
    NewIndexColumn column = SplitIndexColumn(word);
    column.descending = descending;
    if (!column.qualifier && count > 1) {
      return Status::Error(ErrorCode::kErr,
                           "a whole family must be the only ON column: " + Quote(word));
    }
    if (at->TakeWord("AS")) {
      ASSIGN_OR_RETURN(const std::string_view name, at->TakeAny("AS", "type"));
      ASSIGN_OR_RETURN(column.type, ParseValueType(name));
    }
    index->on.push_back(column);
  }
  return Status::Ok();
}

Result<NewIndex> ParseIndexCreate(ArgumentCursor at) {
  NewIndex index;
  index.name = at.Take();
  RETURN_IF_ERROR(CheckName("index", index.name));
  if (!at.TakeWord("ON")) return UnexpectedWord(at.Peek(), "ON");
  RETURN_IF_ERROR(TakeOn(&at, &index));
  while (!at.done()) {
    if (index.include.empty() && at.TakeWord("INCLUDE")) {
      ASSIGN_OR_RETURN(const uint64_t count, TakeCount(kInclude, &at));
      for (uint64_t i = 0; i < count; ++i) {
        if (at.done()) return TooFewWords("INCLUDE", count, i);
        index.include.push_back(SplitIndexColumn(at.Take()));
      }
    } else if (!index.unique && at.TakeWord("UNIQUE")) {
      index.unique = true;
    } else {
      return NotIndexOption(at.Peek());
    }
  }
  if (index.on.empty() && index.include.empty()) {
    return Status::Error(ErrorCode::kErr, "ON 0 needs INCLUDE: the index would hold nothing");
  }
  return index;
}

// NOPERM for an index with a family that may not be read.
Status CheckIndex(const CommandContext& ctx, const Table& table, std::string_view name) {
  const IndexSchema* index = table.schema().FindIndex(name);
  if (index == nullptr || MayReadIndex(ctx, table.schema(), *index)) return Status::Ok();
  return NoPermission();
}

void CmdIndexCreate(CommandContext& ctx) {
  const Result<NewIndex> parsed = ParseIndexCreate(ArgumentCursor(ctx.args, 3));
  if (!parsed.ok()) return ctx.Fail(WithForm(ctx.command, parsed.status()));
  const NewIndex& index = *parsed;
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[2]));
  // The index will hold copies of these cells, so whoever makes it must have both rights.
  for (const auto* columns : {&index.on, &index.include}) {
    for (const NewIndexColumn& column : *columns) {
      REPLY_IF_ERROR(ctx, CheckMayRead(ctx, column.family));
      REPLY_IF_ERROR(ctx, CheckMayWrite(ctx, column.family));
    }
  }
  const Status status = ctx.store().CreateIndex(*table, index);
  ReplyChange(ctx, status);
  if (status.ok()) {
    NotifyTable(ctx.host, kNotifyGeneric, "index.create", table->keyspace(), table->name());
  }
}

void CmdIndexDrop(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[2]));
  REPLY_IF_ERROR(ctx, CheckIndex(ctx, *table, ctx.args[3]));
  const Status status = ctx.store().DropIndex(*table, ctx.args[3]);
  ReplyChange(ctx, status);
  if (status.ok()) {
    NotifyTable(ctx.host, kNotifyGeneric, "index.drop", table->keyspace(), table->name());
  }
}

void CmdIndexList(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[2]));
  std::vector<std::string_view> names;
  for (const IndexSchema& index : table->schema().indexes) {
    if (MayReadIndex(ctx, table->schema(), index)) names.push_back(index.name);
  }
  ReplyNames(ctx.reply, names);
}

// INDEX INFO, whole but for the number of entries, which may have to be counted first.
struct IndexInfoReply {
  std::string name;
  std::string table;
  std::vector<std::string> on;
  std::vector<std::string> include;
  bool unique{false};
  std::string state;
  std::string failure;  // if the state is failed
  double progress{0};
  uint64_t bytes{0};
  uint64_t rows_left_out{0};

  // Copies what it shows: the table may be altered or dropped while entries are counted.
  IndexInfoReply(const Table& of, const IndexInfo& info)
      : name(info.schema->name),
        table(of.name()),
        unique(info.schema->unique),
        state(info.state),
        failure(info.schema->failure.ok() ? "" : info.schema->failure.ToString()),
        progress(info.progress),
        bytes(info.bytes),
        rows_left_out(info.rows_left_out) {
    for (const IndexColumn& column : info.schema->on) {
      on.push_back(IndexColumnText(of.schema(), column));
    }
    for (const IndexColumn& column : info.schema->include) {
      include.push_back(IndexColumnText(of.schema(), column));
    }
  }

  void Reply(ReplyWriter& reply, uint64_t entries) const {
    reply.Map(state == "failed" ? 11 : 10);
    reply.Bulk("name");
    reply.Bulk(name);
    reply.Bulk("table");
    reply.Bulk(table);
    reply.Bulk("on");
    ReplyNames(reply, on);
    reply.Bulk("include");
    ReplyNames(reply, include);
    reply.Bulk("unique");
    reply.Integer(unique ? 1 : 0);
    reply.Bulk("state");
    reply.Bulk(state);
    reply.Bulk("progress");
    reply.Double(progress);
    reply.Bulk("entries");
    reply.Unsigned(entries);
    reply.Bulk("bytes");
    reply.Unsigned(bytes);
    reply.Bulk("left_out");
    reply.Unsigned(rows_left_out);
    if (state != "failed") return;
    reply.Bulk("error");
    reply.Bulk(failure);
  }
};

void CmdIndexInfo(CommandContext& ctx) {
  if (!CheckInfoWords(ctx)) return;
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[2]));
  REPLY_IF_ERROR(ctx, CheckIndex(ctx, *table, ctx.args[3]));
  ASSIGN_OR_REPLY(ctx, const IndexInfo info, ctx.store().DescribeIndex(*table, ctx.args[3]));
  ctx.DependsOn(table->last_lsn());  // what its index has become may have been logged by the read
  IndexInfoReply reply(*table, info);
  // Where some entries may be of dead cells, a scan of the index counts those that are live.
  if (info.entries_are_live) return reply.Reply(ctx.reply, info.entries);
  RowOptions rows;
  rows.index.emplace();
  rows.index->name = reply.name;
  rows.cells_wanted = false;
  ASSIGN_OR_REPLY(ctx, std::unique_ptr<Scan> scan,
                  ctx.store().ScanRows(*table, rows, CellOptions{}, nullptr));
  CountRun run(std::move(scan), CountBy::kRows, table->schema());
  RunCount<0>(ctx, *table, std::move(run), LongReadStart::kInLoop,
              [info = std::move(reply)](ReplyWriter& writer, const CountRun& counted) {
                info.Reply(writer, counted.count());
              });
}

constexpr KeySpec kTableRead{.first = 2, .access = KeyAccess::kRead};
constexpr KeySpec kTableWritten{.first = 2, .access = KeyAccess::kReadWrite};

constexpr Command kIndexRows[] = {
    {.name = "create",
     .arity = -6,
     .flags = kWrite | kDenyOom,
     .categories = kCategorySchema,
     .keys = kTableWritten,
     .group = "schema",
     .summary = "Creates an index of a table, in the background: by values, by row (ON 0), or by "
                "qualifier (ON 1 family).",
     .complexity = "O(n log n) where n is the number of rows (ON 1 family: of columns), in slices",
     .syntax = "table index ON count [column [AS type]]... [INCLUDE count (column|family)...] "
               "[UNIQUE]",
     .handler = CmdIndexCreate},
    {.name = "drop",
     .arity = 4,
     .flags = kWrite,
     .categories = kCategorySchema | kCategoryDangerous,
     .keys = kTableWritten,
     .group = "schema",
     .summary = "Drops an index.",
     .complexity = "O(n) where n is the number of indexes of the table",
     .syntax = "table index",
     .handler = CmdIndexDrop},
    {.name = "list",
     .arity = 3,
     .flags = kReadonly,
     .categories = kCategorySchema,
     .keys = kTableRead,
     .group = "schema",
     .summary = "Returns the names of the indexes of a table, sorted.",
     .complexity = "O(n) where n is the number of indexes of the table",
     .syntax = "table",
     .handler = CmdIndexList},
    {.name = "info",
     .arity = -4,
     .flags = kReadonly,
     .categories = kCategorySchema,
     .keys = kTableRead,
     .group = "schema",
     .summary = "Returns the columns, state, progress, entries and memory of an index, the "
                "rows that it leaves out, and the error if it failed.",
     .complexity = "O(n) where n is the number of indexes of the table",
     .syntax = "table index [LOCAL]",
     .handler = CmdIndexInfo},
    HelpSubcommand("schema"),
};

constexpr Command kIndexCommands[] = {
    {.name = "index",
     .arity = -2,
     .group = "schema",
     .summary = "Creates, drops and describes indexes of a table.",
     .complexity = "Depends on the subcommand.",
     .subcommands = kIndexRows},
};

}  // namespace

std::span<const Command> IndexCommands() { return kIndexCommands; }

}  // namespace cellar
