// SNAPSHOT: named snapshots, the tables of which are read as table@snapshot by every command that
// reads. COPY: a table, or one of a snapshot, under another name.
//
// CREATE answers when it is on disk, whatever appendfsync says: who has its `id` may read a feed
// from there on, and must not be told of a moment that a power cut takes back.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text/quote.h"
#include "commands/arguments/cell_arguments.h"
#include "commands/arguments/schema_arguments.h"
#include "commands/arguments/snapshot_arguments.h"
#include "commands/arguments/syntax_error.h"
#include "commands/cluster/cluster_part.h"
#include "commands/cluster/copy_cut.h"
#include "commands/cluster/snapshot_cut.h"
#include "commands/config/config.h"
#include "commands/data/data_commands.h"
#include "commands/replies/change_task.h"
#include "commands/replies/count_run.h"
#include "commands/replies/scan_run.h"
#include "commands/replies/schema_commands.h"
#include "commands/replies/visible_table.h"
#include "commands/reports/help.h"
#include "commands/session/command_context.h"
#include "commands/session/table_events.h"
#include "engine/feeds/feed.h"
#include "engine/schema/column_set.h"
#include "engine/state/snapshot_set.h"
#include "store/frozen_tables.h"
#include "store/sliced_change.h"
#include "store/store.h"

namespace cellar {
namespace {

constexpr int64_t kMicrosOfMs{1000};

Status CheckSnapshotName(std::string_view word) {
  if (IsSnapshotName(word)) return Status::Ok();
  return Status::Error(ErrorCode::kErr, "invalid snapshot name " + Quote(word) +
                                            ": it must match [A-Za-z0-9_][A-Za-z0-9_.-]{0,127}");
}

// `[keyspace/]name`: of the client's keyspace, or that one.
TableName SnapshotNameOf(const CommandContext& ctx) {
  return SplitTableName(ctx.session.keyspace, ctx.args[2]);
}

// The tables that CREATE is to keep. The right to make one is that to truncate its tables.
Result<std::vector<const Table*>> TablesToKeep(CommandContext& ctx, std::string_view keyspace,
                                               const SnapshotRequest& request) {
  std::vector<const Table*> tables;
  if (!request.names_tables) {
    for (const Table* table : ctx.store().Tables(keyspace)) tables.push_back(table);
  }
  for (const std::string_view name : request.tables) {
    ASSIGN_OR_RETURN(const Table* table, ctx.store().FindTable(keyspace, name));
    if (std::find(tables.begin(), tables.end(), table) == tables.end()) tables.push_back(table);
  }
  const bool may =
      ctx.rights == nullptr || std::all_of(tables.begin(), tables.end(), [&](const Table* table) {
        return ctx.rights->MayWriteTable(keyspace, table->name());
      });
  if (!may) return NoPermission();
  return tables;
}

// Waits until what was logged is on disk.
class SyncedTask final : public Task {
 public:
  SyncedTask(Store& store, Lsn lsn) : store_(store), lsn_(lsn) {}

  TaskProgress Step(TaskContext& context) override {
    Journal& journal = store_.journal();
    // Without a log nothing is ever synced, and so there is nothing to wait for.
    const bool waits = journal.Stats().log_enabled && journal.durable_lsn() < lsn_;
    if (waits && !context.budget.unlimited()) {
      journal.RequestSync();
      return TaskProgress::kWaiting;
    }
    context.depends_on = lsn_;
    context.reply.Ok();
    return TaskProgress::kDone;
  }

 private:
  Store& store_;
  const Lsn lsn_;
};

void CmdSnapshotCreate(CommandContext& ctx) {
  const TableName name = SnapshotNameOf(ctx);
  REPLY_IF_ERROR(ctx, CheckSnapshotName(name.table));
  ASSIGN_OR_REPLY(ctx, const SnapshotRequest request,
                  ParseSnapshotCreate(ArgumentCursor(ctx.args, 3)));
  REPLY_IF_ERROR(ctx, CheckKeyspace(ctx, name.keyspace));
  ctx.DependsOn(ctx.store().schema_lsn());
  ASSIGN_OR_REPLY(ctx, const std::vector<const Table*> tables,
                  TablesToKeep(ctx, name.keyspace, request));
  for (const Table* const table : tables)
    REPLY_IF_ERROR(ctx, ClusterPart::CheckAllThere(ctx.host, *table));
  Store& store = ctx.store();
  if (SnapshotsAreOfSets(ctx)) {
    ClusterSnapshot snapshot{.keyspace = std::string(name.keyspace),
                             .name = std::string(name.table),
                             .tables = {},
                             .all_tables = !request.names_tables && ctx.rights == nullptr,
                             .ttl_micros = request.ttl_ms * kMicrosOfMs,
                             .replace = request.replace};
    // Of who may not do everything, those that he may.
    if (!snapshot.all_tables)
      for (const Table* table : tables) snapshot.tables.push_back(table->name());
    REPLY_IF_ERROR(ctx, FrozenTables(store).CheckName(
                            name.keyspace, name.table,
                            request.replace ? Store::Overwrite::kYes : Store::Overwrite::kNo));
    return CreateClusterSnapshot(ctx, std::move(snapshot));
  }
  REPLY_IF_ERROR(
      ctx, store.CreateSnapshot(name.keyspace, name.table, tables, request.ttl_ms * kMicrosOfMs,
                                request.replace ? Store::Overwrite::kYes : Store::Overwrite::kNo));
  NotifyTable(ctx.host, kNotifyGeneric, "snapshot", name.keyspace, name.table);
  // The record of an EXEC is logged at its end: here there is nothing to wait for yet.
  if (ctx.session.exec_running) return ReplyChange(ctx, Status::Ok());
  store.journal().RequestSync();
  ctx.Continue(std::make_unique<SyncedTask>(store, store.schema_lsn()));
}

// Whether it shows anything that the user may know of.
bool Sees(const CommandContext& ctx, const NamedSnapshot& snapshot) {
  if (ctx.rights == nullptr || snapshot.tables.empty()) return true;
  return std::any_of(snapshot.tables.begin(), snapshot.tables.end(),
                     [&ctx](const auto& table) { return ctx.rights->Sees(*table.second); });
}

Result<const NamedSnapshot*> FindVisible(CommandContext& ctx) {
  const TableName name = SnapshotNameOf(ctx);
  ctx.DependsOn(ctx.store().schema_lsn());
  ASSIGN_OR_RETURN(const NamedSnapshot* snapshot,
                   ctx.store().FindSnapshot(name.keyspace, name.table));
  if (IsCursorName(snapshot->name)) return CheckSnapshotName(snapshot->name);
  return Sees(ctx, *snapshot) ? Result(snapshot) : NoPermission();
}

void CmdSnapshotDrop(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, const NamedSnapshot* const snapshot, FindVisible(ctx));
  const bool may =
      ctx.rights == nullptr ||
      std::all_of(snapshot->tables.begin(), snapshot->tables.end(), [&](const auto& table) {
        return ctx.rights->MayWriteTable(snapshot->keyspace, table.first);
      });
  if (!may) return ctx.Fail(NoPermission());
  ReplyChange(ctx, ctx.store().DropSnapshot(*snapshot));
}

void CmdSnapshotList(CommandContext& ctx) {
  REPLY_IF_ERROR(ctx, CheckKeyspace(ctx, ctx.session.keyspace));
  ctx.DependsOn(ctx.store().schema_lsn());
  std::vector<std::string_view> names;
  for (const NamedSnapshot* snapshot : ctx.store().engine().snapshots().In(ctx.session.keyspace)) {
    if (Sees(ctx, *snapshot) && !IsCursorName(snapshot->name)) names.push_back(snapshot->name);
  }
  ReplyNames(ctx.reply, names);
}

// Counts what is live in the tables, one after the other.
class SnapshotInfoTask final : public Task {
 public:
  SnapshotInfoTask(CommandContext& ctx, const NamedSnapshot& snapshot)
      : name_(snapshot.name),
        created_micros_(snapshot.created_micros),
        depends_on_(ctx.store().schema_lsn()) {
    if (snapshot.ttl_micros > 0) {
      // A cut may be a little ahead of this node's clock.
      const int64_t left = snapshot.due_micros() - ctx.store().now_micros();
      ttl_ms_ = std::clamp<int64_t>(left, 0, snapshot.ttl_micros) / kMicrosOfMs;
    }
    for (const auto& [name, table] : snapshot.tables) {
      if (ctx.rights != nullptr && !ctx.rights->Sees(*table)) continue;
      tables_.push_back(name);
      Add(ctx, *table);
    }
  }

  bool counts() const { return !runs_.empty(); }

  TaskProgress Step(TaskContext& context) override {
    while (!runs_.empty()) {
      if (!runs_.back().Pull(context.budget.unlimited() ? kUnlimited : kSliceCells)) {
        if (context.budget.Spent()) return TaskProgress::kMore;
        continue;
      }
      rows_ += runs_.back().rows();
      cells_ += runs_.back().count();
      runs_.pop_back();
    }
    context.depends_on = depends_on_;
    Reply(context.reply);
    return TaskProgress::kDone;
  }

  void Reply(ReplyWriter& reply) const {
    const auto number = [&reply](std::string_view field, int64_t value) {
      reply.Bulk(field);
      reply.Integer(value);
    };
    reply.Map(9);
    reply.Bulk("name");
    reply.Bulk(name_);
    number("created", created_micros_);
    reply.Bulk("id");
    reply.Bulk(FeedId::Of(created_micros_, 0).text());
    number("ttl", ttl_ms_);
    reply.Bulk("tables");
    ReplyNames(reply, tables_);
    number("rows", static_cast<int64_t>(rows_));
    number("cells", static_cast<int64_t>(cells_));
    number("memory", static_cast<int64_t>(memory_bytes_));
    number("held", static_cast<int64_t>(held_bytes_));
  }

 private:
  // Counters are of all families, and of what is stored: they answer only where nothing is hidden
  // from this user and nothing is dead. What the snapshot alone holds is not known by family.
  void Add(CommandContext& ctx, Table& table) {
    std::optional<CommandRights> rights;
    if (ctx.rights != nullptr) {
      rights.emplace(*ctx.rights);
      rights->SetTable(table.keyspace(), table.name());
      if (rights->MayReadAll()) rights.reset();
    }
    memory_bytes_ += VisibleBytes(rights ? &*rights : nullptr, table);
    if (!rights) held_bytes_ += table.held_bytes();
    if (!rights && !table.MayHoldDropped()) {
      rows_ += table.counters().rows;
      cells_ += table.cells();
      return;
    }
    CellOptions cells;
    cells.access = rights ? &*rights : nullptr;
    cells.versions_max = kUnlimited;
    Result<std::unique_ptr<Scan>> scan = ctx.store().ScanRows(table, {}, cells, nullptr);
    CELLAR_ASSERT(scan.ok());
    runs_.emplace_back(*std::move(scan), CountBy::kCells, table.schema());
    // Between the steps the snapshot may be dropped, and others may write.
    runs_.back().Detach();
  }

  std::string name_;
  int64_t created_micros_;
  int64_t ttl_ms_{-1};
  std::vector<std::string> tables_;
  uint64_t rows_{0};
  uint64_t cells_{0};
  uint64_t memory_bytes_{0};
  uint64_t held_bytes_{0};
  std::vector<CountRun> runs_;
  Lsn depends_on_;
};

void CmdSnapshotInfo(CommandContext& ctx) {
  if (!CheckInfoWords(ctx)) return;
  const bool is_local = ctx.args.size() > 3;
  ASSIGN_OR_REPLY(ctx, const NamedSnapshot* const snapshot, FindVisible(ctx));
  if (!is_local && !ctx.session.exec_running && SnapshotsAreOfSets(ctx))
    return DescribeClusterSnapshot(ctx, ctx.args[2]);
  auto task = std::make_unique<SnapshotInfoTask>(ctx, *snapshot);
  if (task->counts()) return ctx.Continue(std::move(task));
  task->Reply(ctx.reply);
}

// --- COPY

struct CopyRequest {
  std::optional<std::string_view> keyspace;
  bool replace{false};
};

Result<CopyRequest> ParseCopy(ArgumentCursor at) {
  CopyRequest request;
  while (!at.done()) {
    if (at.TakeWord("DB")) {
      if (request.keyspace) return RepeatedOption("DB");
      ASSIGN_OR_RETURN(request.keyspace, at.TakeAny("DB", "keyspace"));
    } else if (at.TakeWord("REPLACE")) {
      if (request.replace) return RepeatedOption("REPLACE");
      request.replace = true;
    } else {
      return UnexpectedWord(at.Peek(), "DB or REPLACE");
    }
  }
  return request;
}

// The source; null if there is none.
Result<Table*> FindSource(CommandContext& ctx) {
  Result<Table*> table = FindTable(ctx, ctx.args[1]);
  if (table.ok()) return table;
  const ErrorCode code = table.status().code();
  if (code == ErrorCode::kNoTable || code == ErrorCode::kNoKeyspace) return nullptr;
  return table;
}

void CmdCopy(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, const CopyRequest request, ParseCopy(ArgumentCursor(ctx.args, 3)));
  REPLY_IF_ERROR(ctx, CheckTableName(ctx.args[2]));
  const bool has_keyspace = ctx.args[2].find('/') != std::string_view::npos;
  if (request.keyspace && has_keyspace)
    return ctx.Fail(SyntaxErrorBecause("DB goes with a destination that names no keyspace"));
  const TableName to = SplitTableName(request.keyspace.value_or(ctx.session.keyspace), ctx.args[2]);
  ctx.DependsOn(ctx.store().schema_lsn());
  ASSIGN_OR_REPLY(ctx, Table* const source, FindSource(ctx));
  // A table of a snapshot may be copied to the name that it had: that is another table.
  if (source != nullptr && !source->frozen() && source->keyspace() == to.keyspace &&
      source->name() == to.table) {
    return ctx.Fail("ERR source and destination objects are the same");
  }
  REPLY_IF_ERROR(ctx, CheckKeyspace(ctx, to.keyspace));
  const bool may = ctx.rights == nullptr || ctx.rights->MayWriteTable(to.keyspace, to.table);
  if (!may) return ctx.Fail(NoPermission());
  // As in Redis, a source that is not there is no error, and neither is a name that is taken.
  if (source == nullptr) return ctx.reply.Integer(0);
  Engine& engine = ctx.store().engine();
  if (engine.feeds().Find(to.keyspace, to.table) != nullptr) return ctx.Fail(Status::WrongKind());
  if (!request.replace && engine.FindTable(to.keyspace, to.table) != nullptr)
    return ctx.reply.Integer(0);
  REPLY_IF_ERROR(ctx, ClusterPart::CheckAllThere(ctx.host, *source));
  if (SnapshotsAreOfSets(ctx)) {
    return CopyClusterTable(ctx, *source,
                            {.keyspace = std::string(to.keyspace),
                             .name = std::string(to.table),
                             .replace = request.replace});
  }
  ASSIGN_OR_REPLY(
      ctx, std::unique_ptr<SlicedChange> change,
      ctx.store().CopyTable(*source, to.keyspace, to.table,
                            request.replace ? Store::Overwrite::kYes : Store::Overwrite::kNo));
  RunCopy(ctx, to.keyspace, to.table, std::move(change));
}

constexpr Command kSnapshotRows[] = {
    {.name = "create",
     .arity = -3,
     .flags = kWrite | kDenyOom,
     .categories = kCategorySchema,
     .group = "schema",
     .summary = "Keeps tables as they are now, to be read as table@snapshot.",
     .complexity = "O(n) where n is the number of locality groups and indexes of the tables",
     .syntax = "snapshot [(TABLE|ON) count name...] [TTL duration] [REPLACE]",
     .handler = CmdSnapshotCreate},
    {.name = "drop",
     .arity = 3,
     .flags = kWrite,
     .categories = kCategorySchema | kCategoryDangerous,
     .group = "schema",
     .summary = "Drops a snapshot.",
     .complexity = "O(n) in its locality groups and indexes; memory is freed in slices",
     .syntax = "snapshot",
     .handler = CmdSnapshotDrop},
    {.name = "list",
     .arity = 2,
     .flags = kReadonly,
     .categories = kCategorySchema,
     .group = "schema",
     .summary = "Returns the names of the snapshots of the keyspace, sorted.",
     .complexity = "O(n) where n is the number of snapshots of the keyspace",
     .syntax = "",
     .handler = CmdSnapshotList},
    {.name = "info",
     .arity = -3,
     .flags = kReadonly,
     .categories = kCategorySchema,
     .group = "schema",
     .summary = "Returns when a snapshot was made, its tables, and the memory that it needs.",
     .complexity = "O(1), or O(n) in the number of cells if cells can expire",
     .syntax = "snapshot [LOCAL]",
     .handler = CmdSnapshotInfo},
    HelpSubcommand("schema"),
};

constexpr Command kSnapshotCommands[] = {
    {.name = "snapshot",
     .arity = -2,
     .group = "schema",
     .summary = "Keeps tables as they are at one moment.",
     .complexity = "Depends on the subcommand.",
     .subcommands = kSnapshotRows},
    {.name = "copy",
     .arity = -3,
     .flags = kWrite | kDenyOom,
     .categories = kCategoryKeyspace,
     .keys = {.first = 1, .access = KeyAccess::kRead, .scope = KeyScope::kTable},
     .group = "generic",
     .summary =
         "Copies a table, or one of a snapshot, to another name. Returns 1, or 0 if there is "
         "no such table or the name is taken.",
     .complexity = "O(n) in the number of cells, in slices between other commands",
     .syntax = "table new-table [DB keyspace] [REPLACE]",
     .handler = CmdCopy},
};

}  // namespace

std::span<const Command> SnapshotCommands() { return kSnapshotCommands; }

}  // namespace cellar
