// CEXPLAIN: what a read is going to do, and with ANALYZE what it did.
//
//   CEXPLAIN CSCAN table 0 INDEX name EQ 1 x ANALYZE
//
// The read is parsed and opened as its own command would do it, and then described instead of being
// answered (engine/scans/explain.h); a CUPDATE as the read of its rows, and nothing is changed.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/quote.h"
#include "base/text/time_text.h"
#include "commands/arguments/explain_arguments.h"
#include "commands/arguments/scan_cursor.h"
#include "commands/data/data_commands.h"
#include "commands/replies/schema_commands.h"
#include "commands/replies/sliced_read.h"
#include "commands/replies/visible_table.h"
#include "commands/session/command_context.h"
#include "engine/aggregate/aggregate_plan.h"
#include "engine/request/row_update.h"
#include "engine/rows/arrival_watch.h"
#include "engine/rows/read_notes.h"
#include "engine/rows/row_resolver.h"
#include "engine/rows/time_unit.h"
#include "engine/scans/explain.h"
#include "engine/scans/refusal_order.h"
#include "engine/scans/scan_notes.h"
#include "engine/schema/column_set.h"
#include "store/requests.h"
#include "store/store.h"

namespace cellar {
namespace {

// What is known before anything is read, and what ANALYZE has found.
class ExplainRun {
 public:
  ExplainRun(const Explained& read, ScanExplained explained, std::vector<std::string> notes,
             Clock& clock, bool is_resp3)
      : name_(read.name),
        first_byte_(is_resp3 ? '%' : '*'),
        rows_max_(read.rows_max),
        cells_max_(read.cells_max),
        rows_alone_(!read.request.rows.cells_wanted),
        scan_(std::move(explained.scan)),
        explanation_(std::move(explained.explanation)),
        notes_(std::move(notes)),
        clock_(&clock),
        begin_micros_(clock.MonotonicMicros()) {}

  void Detach() { scan_->Detach(); }
  char FirstByte() const { return first_byte_; }

  // Reads as far as the command would. True when that is done.
  bool Pull(uint64_t cells) {
    scan_->SetBudget(cells);
    for (;;) {
      switch (scan_->Next()) {
        case ScanStep::kRow:
          // As a page of CSCAN, it ends when there is one more row or cell than it may have.
          if (rows_ == rows_max_ || cells_ == cells_max_) return true;
          ++rows_;
          if (rows_alone_) scan_->SkipRow();
          break;
        case ScanStep::kCell:
          if (cells_ == cells_max_) return true;
          ++cells_;
          break;
        case ScanStep::kPause:
          return false;
        case ScanStep::kEnd:
          return true;
      }
    }
  }

  // What is known when it has ended.
  void Reply(ReplyWriter& reply) {
    scan_->AddNotes(&notes_);
    ReplyPlan(reply, 1);
    ReplyExamined(reply);
  }

  // And without reading anything; the map has `more` fields behind it.
  void ReplyPlan(ReplyWriter& reply, size_t more) const {
    reply.Map(13 + more);
    Field(reply, "command", name_);
    Field(reply, "tree", explanation_.index.empty() ? "table" : "index");
    reply.Bulk("index");
    if (explanation_.index.empty()) {
      reply.Null();
    } else {
      reply.Bulk(explanation_.index);
    }
    Field(reply, "cells", explanation_.cells_from);
    Field(reply, "direction", explanation_.reverse ? "reverse" : "forward");
    reply.Bulk("bounds");
    reply.Array(explanation_.bounds.size());
    for (const auto& [min, max] : explanation_.bounds) {
      reply.Array(2);
      reply.Bulk(min);
      reply.Bulk(max);
    }
    List(reply, "groups", explanation_.groups);
    List(reply, "columns", explanation_.columns);
    List(reply, "pushed", explanation_.pushed);
    List(reply, "checked", explanation_.checked);
    List(reply, "considered", explanation_.considered);
    List(reply, "notes", notes_);
    reply.Bulk("estimated");
    reply.Map(2);
    Count(reply, "rows", explanation_.rows_estimated);
    Count(reply, "cells", explanation_.cells_estimated);
  }

 private:
  static void Field(ReplyWriter& reply, std::string_view name, std::string_view text) {
    reply.Bulk(name);
    reply.Bulk(text);
  }
  static void Count(ReplyWriter& reply, std::string_view name, uint64_t count) {
    reply.Bulk(name);
    reply.Unsigned(count);
  }
  static void List(ReplyWriter& reply, std::string_view name,
                   const std::vector<std::string>& texts) {
    reply.Bulk(name);
    ReplyNames(reply, texts);
  }
  void ReplyExamined(ReplyWriter& reply) const {
    const ScanStats& stats = scan_->stats();
    reply.Bulk("examined");
    reply.Map(7);
    Count(reply, "rows", stats.rows);
    Count(reply, "cells", stats.cells);
    Count(reply, "bytes", stats.bytes);
    Count(reply, "groups", stats.groups);
    Count(reply, "rows returned", rows_);
    Count(reply, "cells returned", cells_);
    Count(reply, "micros", static_cast<uint64_t>(clock_->MonotonicMicros() - begin_micros_));
  }

  std::string_view name_;  // of kReaders
  char first_byte_;
  uint64_t rows_max_;
  uint64_t cells_max_;
  bool rows_alone_;
  std::unique_ptr<Scan> scan_;
  Explanation explanation_;
  std::vector<std::string> notes_;
  Clock* clock_;
  int64_t begin_micros_;
  uint64_t rows_{0};
  uint64_t cells_{0};
};

// What the command would refuse beside its scan: BY and REDUCE of a CAGG, the ops of a CUPDATE.
// `cells` are its options as they were said.
Status CheckOtherPart(CommandContext& ctx, const Table& table, Explained* read,
                      const CellOptions& cells) {
  const RowOptions& rows = read->request.rows;
  if (read->aggregate) {
    return InTable(
        AggregatePlan::Compile(table.schema(), *read->aggregate, cells.columns, rows.reverse)
            .status(),
        table);
  }
  if (!read->update) return Status::Ok();
  // Nobody else hears of cells that are not written.
  ArrivalWatch arrivals;
  RowResolver resolver(ctx.store().engine(), arrivals);
  read->update->conditions = rows.where;
  return InTable(resolver.CheckRequest(table, *read->update,
                                       {.now_micros = ctx.store().now_micros(),
                                        .stamp_micros = ctx.store().now_micros(),
                                        .value_bytes_max = ctx.store().options().value_bytes_max}),
                 table);
}

// Compiles the read as its own command would, cursor included. ANALYZE runs it as well and throws
// away what it finds; one that is long goes on as a task.
void CmdCExplain(CommandContext& ctx) {
  Explained read;
  ASSIGN_OR_REPLY(ctx, const bool analyze, ReadExplained(ctx.args.subspan(1), &read));
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, read.table));
  // What would have to be looked at tells of what is hidden, as STATS does.
  if (!MayReadTable(ctx)) return ctx.Fail(NoPermission());
  read.request.cells.access = ctx.rights;
  const RowOptions& rows = read.request.rows;
  ScanPosition from;
  const bool goes_on = !IsStartCursor(read.cursor);
  if (goes_on) {
    const std::string_view index = rows.index ? rows.index->name : std::string_view();
    ASSIGN_OR_REPLY(
        ctx, ScanCursor cursor,
        DecodeCursor(read.cursor, ScanBinding(table->schema().key.spec(), index, rows.reverse)));
    from = std::move(cursor.position);
  }
  std::vector<ColumnSelector> targets;
  const CellOptions plain = read.request.cells;
  if (read.aggregate) NarrowToTargets(*read.aggregate, rows, &read.request.cells, &targets);
  Result<ScanExplained> explained =
      ctx.store().ExplainRows(*table, rows, read.request.cells, goes_on ? &from : nullptr);
  const Status other = CheckOtherPart(ctx, *table, &read, plain);
  if (!other.ok() || !explained.ok()) {
    const ReadView view(*table, ctx.store().now_micros());
    return ctx.Fail(FirstRefusal(view, rows, explained.status(), other, [&] {
      return ctx.store().ScanRows(*table, rows, plain, nullptr).status();
    }));
  }
  ctx.DependsOn(table->last_lsn());  // what its index has become may have been logged by the read
  std::vector<std::string> notes = ReadNotes(table->schema(), rows, read.request.cells);
  NoteScan(*table, *explained->scan, &notes);
  notes.insert(notes.end(), read.notes.begin(), read.notes.end());
  ExplainRun run(read, *std::move(explained), std::move(notes), ctx.host.clock(),
                 ctx.reply.resp3());
  if (!analyze) return run.ReplyPlan(ctx.reply, 0);
  RunInSlices(ctx, std::move(run), table->last_lsn());
}

constexpr Command kExplainCommands[] = {
    {.name = "cexplain",
     .arity = -3,
     .flags = kReadonly,
     .categories = kCategoryCell,
     .keys = {.first = 2, .access = KeyAccess::kRead, .scope = KeyScope::kTable},
     .group = "cell",
     .summary = "Shows how a read is answered: which tree is walked between which bounds, what is "
                "checked, likely mistakes, and with ANALYZE what was examined.",
     .complexity = "O(log n), or with ANALYZE the cost of the read",
     .syntax = "(CAGG|CCOUNT|CEXISTS|CGET|CMGET|CROW|CROWS|CSCAN|CUPDATE) table [argument...] "
               "[ANALYZE]",
     .handler = CmdCExplain},
};

}  // namespace

std::span<const Command> ExplainCommands() { return kExplainCommands; }

}  // namespace cellar
