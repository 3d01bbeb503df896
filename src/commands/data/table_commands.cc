// TABLE: what tables there are and what they look like.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text/glob.h"
#include "base/text/quote.h"
#include "commands/arguments/cell_arguments.h"
#include "commands/arguments/schema_arguments.h"
#include "commands/cluster/catalog_wait.h"
#include "commands/config/config.h"
#include "commands/data/data_commands.h"
#include "commands/replies/count_run.h"
#include "commands/replies/row_sample.h"
#include "commands/replies/schema_commands.h"
#include "commands/replies/visible_table.h"
#include "commands/reports/help.h"
#include "commands/session/command_context.h"
#include "commands/session/services.h"
#include "commands/session/table_events.h"
#include "engine/schema/rebuild.h"
#include "engine/schema/schema.h"
#include "store/requests.h"
#include "store/store.h"
#include "store/tablet_changes.h"

namespace cellar {

Status CheckKeyspace(CommandContext& ctx, std::string_view keyspace) {
  if (ctx.store().KeyspaceExists(keyspace)) return Status::Ok();
  // It may have been dropped a moment ago, by a record that is not durable yet.
  ctx.DependsOn(ctx.store().schema_lsn());
  return Status::Error(ErrorCode::kNoKeyspace, "no keyspace '" + std::string(keyspace) + "'");
}

bool CheckInfoWords(CommandContext& ctx) {
  const size_t left = ctx.args.size() - ctx.command.words_min;
  if (left == 0 || (left == 1 && EqualsIgnoreCase(ctx.args.back(), "LOCAL"))) return true;
  ctx.Fail("ERR wrong number of arguments for '" + ctx.command.full_name + "' command");
  return false;
}

void NotifyRenamed(Host& host, const TableName& from, const TableName& to) {
  NotifyTable(host, kNotifyGeneric, "rename_from", from.keyspace, from.table);
  NotifyTable(host, kNotifyGeneric, "rename_to", to.keyspace, to.table);
}

void ReplyChange(CommandContext& ctx, const Status& status) {
  ctx.DependsOn(ctx.store().schema_lsn());
  if (!status.ok()) return ctx.Fail(status);
  if (AwaitOtherSets(ctx)) return;
  ctx.reply.Ok();
}

namespace {

void CmdTableCreate(CommandContext& ctx) {
  REPLY_IF_ERROR(ctx, CheckTableName(ctx.args[2]));
  ASSIGN_OR_REPLY(ctx, TableRequest request, ParseTableCreate(ArgumentCursor(ctx.args, 3)));
  const TableName name = SplitTableName(ctx.session.keyspace, ctx.args[2]);
  REPLY_IF_ERROR(ctx, CheckKeyspace(ctx, name.keyspace));
  std::vector<NewFamily> families;
  families.reserve(request.families.size());
  for (FamilyRequest& family : request.families) {
    families.push_back({.name = family.name, .options = std::move(family.options)});
  }
  if (request.split_at.empty()) {
    request.split_at = ctx.host.services().table_cuts.For(request.key.components().front().type,
                                                          request.placement);
  }
  // Said before the store is asked: a refusal, such as that the name is taken, tells of the schema.
  ctx.DependsOn(ctx.store().schema_lsn());
  REPLY_IF_ERROR(ctx, ctx.store().CreateTable(name.keyspace, name.table,
                                              {.key = request.key,
                                               .families = families,
                                               .placement = request.placement,
                                               .split_at = request.split_at}));
  ReplyChange(ctx, Status::Ok());
  NotifyTable(ctx.host, kNotifyNew, "new", name.keyspace, name.table);
  NotifyTable(ctx.host, kNotifyGeneric, "table.create", name.keyspace, name.table);
}

void CmdTableAlter(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[2]));
  ASSIGN_OR_REPLY(ctx, const Placement placement,
                  ParseTableAlter(ArgumentCursor(ctx.args, 3), table->schema().placement));
  const bool changes = placement != table->schema().placement;
  const std::string keyspace = table->keyspace();
  const std::string name = table->name();
  REPLY_IF_ERROR(ctx, TabletChanges(ctx.store()).Place(*table, placement));
  ReplyChange(ctx, Status::Ok());
  if (changes) NotifyTable(ctx.host, kNotifyGeneric, "table.alter", keyspace, name);
}

void CmdTableDrop(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[2]));
  // The event names the table when it is gone.
  const std::string keyspace = table->keyspace();
  const std::string name = table->name();
  REPLY_IF_ERROR(ctx, ctx.store().DropTable(*table));
  ReplyChange(ctx, Status::Ok());
  NotifyTable(ctx.host, kNotifyGeneric, "table.drop", keyspace, name);
}

void CmdTableTruncate(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[2]));
  const std::string keyspace = table->keyspace();
  const std::string name = table->name();
  REPLY_IF_ERROR(ctx, ctx.store().TruncateTable(*table));
  ReplyChange(ctx, Status::Ok());
  NotifyTable(ctx.host, kNotifyGeneric, "table.truncate", keyspace, name);
}

void CmdTableRename(CommandContext& ctx) {
  REPLY_IF_ERROR(ctx, CheckTableName(ctx.args[3]));
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[2]));
  const TableName name = SplitTableName(ctx.session.keyspace, ctx.args[3]);
  REPLY_IF_ERROR(ctx, CheckKeyspace(ctx, name.keyspace));
  const std::string old_keyspace = table->keyspace();
  const std::string old_name = table->name();
  ctx.DependsOn(ctx.store().schema_lsn());
  REPLY_IF_ERROR(ctx,
                 ctx.store().RenameTable(*table, name.keyspace, name.table, Store::Overwrite::kNo));
  ReplyChange(ctx, Status::Ok());
  NotifyRenamed(ctx.host, {old_keyspace, old_name}, name);
}

void CmdTableList(CommandContext& ctx) {
  std::string_view pattern;
  if (ctx.args.size() > 2) {
    if (!EqualsIgnoreCase(ctx.args[2], "MATCH"))
      return ctx.Fail(UnexpectedWord(ctx.args[2], "MATCH"));
    if (ctx.args.size() != 4) return ctx.Fail(SyntaxErrorBecause("MATCH takes one pattern"));
    pattern = ctx.args[3];
  }
  // Another client may have dropped the one that is selected here.
  REPLY_IF_ERROR(ctx, CheckKeyspace(ctx, ctx.session.keyspace));
  std::vector<std::string_view> names;
  for (const Table* table : VisibleTables(ctx)) {
    if (ctx.args.size() == 2 || GlobMatch(pattern, table->name())) names.push_back(table->name());
  }
  ctx.DependsOn(ctx.store().schema_lsn());
  ReplyNames(ctx.reply, names);
}

// Whether a family is there for this user.
bool ShowsFamily(const CommandContext& ctx, const FamilySchema& family) {
  return ctx.rights == nullptr || ctx.rights->MayRead(family.name);
}

// The groups that hold a family, bytewise.
std::vector<std::string_view> GroupNames(const CommandContext& ctx, const TableSchema& schema) {
  std::vector<std::string_view> names;
  for (const FamilySchema& family : schema.families) {
    if (!ShowsFamily(ctx, family)) continue;
    names.push_back(schema.groups[family.group].name);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

// TABLE INFO, whole but for the counts, which a table with retention must count first.
struct TableInfo {
  std::string key;
  std::vector<std::string> families;
  std::vector<std::string> groups;
  std::vector<std::string> indexes;
  uint64_t memory_bytes{0};
  Placement placement;
  std::optional<uint64_t> tablets;  // in a cluster

  // As the user of the command may see it.
  // Narrowed and copied before any counting: the rights die with the handler, and the table may
  // change while a task counts.
  TableInfo(const CommandContext& ctx, const Table& table)
      : key(table.schema().key.spec()),
        memory_bytes(VisibleBytes(ctx.rights, table)),
        placement(table.schema().placement) {
    if (table.tablets() != nullptr) tablets = table.tablets()->list().size();
    const TableSchema& schema = table.schema();
    for (const FamilySchema& family : schema.families) {
      if (ShowsFamily(ctx, family)) families.push_back(family.name);
    }
    for (const std::string_view group : GroupNames(ctx, schema)) groups.emplace_back(group);
    for (const IndexSchema& index : schema.indexes) {
      if (MayReadIndex(ctx, schema, index)) indexes.push_back(index.name);
    }
  }

  void Reply(ReplyWriter& reply, uint64_t rows, uint64_t cells) const {
    const bool shows_placement = tablets || placement.any();
    reply.Map(7U + (shows_placement ? 2 : 0) + (tablets ? 2 : 0));
    reply.Bulk("key");
    reply.Bulk(key);
    reply.Bulk("families");
    ReplyNames(reply, families);
    reply.Bulk("groups");
    ReplyNames(reply, groups);
    reply.Bulk("indexes");
    ReplyNames(reply, indexes);
    reply.Bulk("rows");
    reply.Unsigned(rows);
    reply.Bulk("cells");
    reply.Unsigned(cells);
    reply.Bulk("memory");
    reply.Unsigned(memory_bytes);
    if (shows_placement) {
      reply.Bulk("colocate");
      reply.Unsigned(placement.colocate);
      reply.Bulk("whole");
      reply.Integer(placement.whole ? 1 : 0);
    }
    if (!tablets) return;
    reply.Bulk("tablets");
    reply.Unsigned(*tablets);
    reply.Bulk("sets");
    reply.Integer(1);
  }
};

void CmdTableInfo(CommandContext& ctx) {
  if (!CheckInfoWords(ctx)) return;
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[2]));
  TableInfo info(ctx, *table);
  // Counters are of all families, and of what is stored. They answer only where nothing is hidden
  // from this user, nothing is dead, and nothing another set's.
  if (MayReadTable(ctx) && !table->MayHoldDropped() && table->clamp() == nullptr) {
    return info.Reply(ctx.reply, table->counters().rows, table->cells());
  }
  CellOptions cells;
  cells.access = ctx.rights;
  cells.versions_max = kUnlimited;
  ASSIGN_OR_REPLY(ctx, std::unique_ptr<Scan> scan,
                  ctx.store().ScanRows(*table, RowOptions{}, cells, nullptr));
  CountRun run(std::move(scan), CountBy::kCells, table->schema());
  RunCount<0>(ctx, *table, std::move(run), LongReadStart::kInLoop,
              [info = std::move(info)](ReplyWriter& reply, const CountRun& counted) {
                info.Reply(reply, counted.rows(), counted.count());
              });
}

void CmdTableShow(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[2]));
  ReplyNames(ctx.reply,
             RebuildCommands(table->name(), table->schema(), [&ctx](const FamilySchema& family) {
               return ShowsFamily(ctx, family);
             }));
}

void CmdTableSample(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, const uint64_t parts, ParseCount("the number of parts", ctx.args[3], 1));
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[2]));
  // Keys come from all over the table; that all of it may be read has been asked before
  // (KeyScope::kTable).
  if (ctx.host.services().piece != nullptr) return ReplySamplePoints(ctx, *table, parts);
  ReplyNames(ctx.reply, ctx.store().SampleRows(*table, parts));
}

constexpr KeySpec kTableRead{.first = 2, .access = KeyAccess::kRead};
constexpr KeySpec kTableWritten{.first = 2, .access = KeyAccess::kWrite, .scope = KeyScope::kTable};

constexpr Command kTableRows[] = {
    {.name = "create",
     .arity = -3,
     .flags = kWrite | kDenyOom,
     .categories = kCategorySchema,
     .keys = kTableWritten,
     .group = "schema",
     .summary = "Creates a table: the order of its row keys, and its families.",
     .complexity = "O(n) where n is the number of families",
     .syntax = "table [KEY order] [COLOCATE count] [WHOLE] [SPLIT AT count row...] "
               "[FAMILY family [TYPE type] [COLUMN qualifier type]... "
               "[ORDER order] [VERSIONS count|ALL] "
               "[TTL duration|NONE] [GC policy] [GROUP group] [AGGREGATE sum|min|max|hll] [BUCKET "
               "duration] [COMPRESS lz4|zstd|none]]...",
     .handler = CmdTableCreate},
    {.name = "alter",
     .arity = -4,
     .flags = kWrite,
     .categories = kCategorySchema,
     .keys = kTableWritten,
     .group = "schema",
     .summary = "Says which rows of a table stay on one set of a cluster: those with equal first "
                "key components, all, or none.",
     .complexity = "O(n) where n is the number of tablets of the table",
     .syntax = "table (COLOCATE count | WHOLE | SPREAD)",
     .handler = CmdTableAlter},
    {.name = "drop",
     .arity = 3,
     .flags = kWrite,
     .categories = kCategorySchema | kCategoryDangerous,
     .keys = kTableWritten,
     .group = "schema",
     .summary = "Drops a table.",
     .complexity = "O(1)",
     .syntax = "table",
     .handler = CmdTableDrop},
    {.name = "truncate",
     .arity = 3,
     .flags = kWrite,
     .categories = kCategorySchema | kCategoryDangerous,
     .keys = kTableWritten,
     .group = "schema",
     .summary = "Deletes all rows of a table and keeps its schema.",
     .complexity = "O(n) where n is the number of locality groups",
     .syntax = "table",
     .handler = CmdTableTruncate},
    {.name = "rename",
     .arity = 4,
     .flags = kWrite,
     .categories = kCategorySchema,
     .keys = {.first = 2, .last = 3, .access = KeyAccess::kReadWrite, .scope = KeyScope::kTable},
     .group = "schema",
     .summary = "Renames a table, even into another keyspace. BUSYKEY if the name is taken.",
     .complexity = "O(log n) where n is the number of tables",
     .syntax = "table new-table",
     .handler = CmdTableRename},
    {.name = "list",
     .arity = -2,
     .flags = kReadonly,
     .categories = kCategorySchema,
     .group = "schema",
     .summary = "Returns the names of the tables in the keyspace, sorted.",
     .complexity = "O(n) where n is the number of tables of the keyspace",
     .syntax = "[MATCH pattern]",
     .handler = CmdTableList},
    {.name = "info",
     .arity = -3,
     .flags = kReadonly,
     .categories = kCategorySchema,
     .keys = kTableRead,
     .group = "schema",
     .summary = "Returns a table's key order, families, groups and indexes, and exact counts.",
     .complexity = "O(1), or O(n) in the number of cells if cells can expire",
     .syntax = "table [LOCAL]",
     .handler = CmdTableInfo},
    {.name = "show",
     .arity = 3,
     .flags = kReadonly,
     .categories = kCategorySchema,
     .keys = kTableRead,
     .group = "schema",
     .summary = "Returns the commands that rebuild the table, ready for redis-cli.",
     .complexity = "O(n) where n is the number of families",
     .syntax = "table",
     .handler = CmdTableShow},
    {.name = "sample",
     .arity = 4,
     .flags = kReadonly,
     .categories = kCategorySchema,
     .keys = {.first = 2, .access = KeyAccess::kRead, .scope = KeyScope::kTable},
     .group = "schema",
     .summary = "Returns row keys that split the table into parts of about the same size.",
     .complexity = "O(n log m) where n is the number of parts and m that of cells",
     .syntax = "table parts",
     .handler = CmdTableSample},
    HelpSubcommand("schema"),
};

constexpr Command kTableCommands[] = {
    {.name = "table",
     .arity = -2,
     .group = "schema",
     .summary = "Creates, changes and describes tables.",
     .complexity = "Depends on the subcommand.",
     .subcommands = kTableRows},
};

}  // namespace

std::span<const Command> TableCommands() { return kTableCommands; }

}  // namespace cellar
