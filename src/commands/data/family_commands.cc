// FAMILY: the column families of a table.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/text/duration.h"
#include "base/text/quote.h"
#include "commands/arguments/schema_arguments.h"
#include "commands/cluster/alter_types.h"
#include "commands/cluster/alter_wait.h"
#include "commands/config/config.h"
#include "commands/data/data_commands.h"
#include "commands/replies/change_task.h"
#include "commands/replies/count_run.h"
#include "commands/replies/schema_commands.h"
#include "commands/replies/visible_table.h"
#include "commands/reports/help.h"
#include "commands/session/command_context.h"
#include "commands/session/table_events.h"
#include "engine/schema/schema.h"
#include "store/sliced_change.h"
#include "store/store.h"

namespace cellar {
namespace {

Result<const FamilySchema*> FindFamily(const Table& table, std::string_view name) {
  const FamilySchema* family = table.schema().FindFamily(name);
  if (family != nullptr) return family;
  return Status::Error(ErrorCode::kNoFamily,
                       "no family " + Quote(name) + " in table '" + table.name() + "'");
}

// OK to a change of the table's families, and the event.
void ReplyAltered(CommandContext& ctx, const Table& table, std::string_view event) {
  ReplyChange(ctx, Status::Ok());
  NotifyTable(ctx.host, kNotifyGeneric, event, table.keyspace(), table.name());
}

void CmdFamilyAdd(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, FamilyRequest family,
                  ParseFamily(FamilyVerb::kAdd, ArgumentCursor(ctx.args, 3)));
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[2]));
  REPLY_IF_ERROR(ctx, CheckMayWrite(ctx, family.name));
  REPLY_IF_ERROR(ctx, ctx.store().AddFamily(
                          *table, {.name = family.name, .options = std::move(family.options)}));
  ReplyAltered(ctx, *table, "family.add");
}

void CmdFamilyAlter(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, FamilyRequest family,
                  ParseFamily(FamilyVerb::kAlter, ArgumentCursor(ctx.args, 3)));
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[2]));
  REPLY_IF_ERROR(ctx, CheckMayWrite(ctx, family.name));
  const FamilyOptions& options = family.options;
  const bool looks = (options.type || !options.columns.empty()) &&
                     options.other_cells.value_or(OtherCells::kRefuse) != OtherCells::kKeep;
  if (looks) REPLY_IF_ERROR(ctx, CheckMayRead(ctx, family.name));  // errors tell of cells
  ASSIGN_OR_REPLY(ctx, std::unique_ptr<Task> task, AlterTypesOfSets(ctx, *table, family));
  if (task != nullptr) return ctx.Continue(std::move(task));
  ASSIGN_OR_REPLY(
      ctx, std::unique_ptr<SlicedChange> change,
      ctx.store().AlterFamily(*table, {.name = family.name, .options = std::move(family.options)},
                              ctx.rights));
  RunChange(ctx, *table, std::move(change), ChangeReply::kOk, {}, AwaitSettled(ctx, *table));
}

void CmdFamilyDrop(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[2]));
  REPLY_IF_ERROR(ctx, CheckMayWrite(ctx, ctx.args[3]));
  REPLY_IF_ERROR(ctx, ctx.store().DropFamily(*table, ctx.args[3]));
  ReplyAltered(ctx, *table, "family.drop");
}

// The family's part of the memory of its locality group, by the bytes of its cells: the shares of a
// group's families add up to what the group takes.
// Who may not read all of the table is told of the cells alone: what the group takes besides moves
// with families that are hidden.
uint64_t MemoryShare(const Table& table, const FamilySchema& family, bool sees_all) {
  if (!sees_all) return table.family_counters(family).bytes;
  uint64_t all{0};
  for (const FamilySchema& other : table.schema().families) {
    if (other.group == family.group) all += table.family_counters(other).bytes;
  }
  if (all == 0) return 0;
  const double part =
      static_cast<double>(table.family_counters(family).bytes) / static_cast<double>(all);
  return static_cast<uint64_t>(part * static_cast<double>(table.tree(family.group).memory_bytes()));
}

// FAMILY INFO, whole but for the count, which a family with retention must count first.
struct FamilyInfo {
  std::string name;
  std::string type;
  std::vector<std::pair<std::string, std::string_view>> columns;  // qualifier, type
  std::string order;
  std::string versions;
  std::string ttl;
  std::string gc;
  std::string group;
  std::string_view aggregate;
  std::string bucket;
  std::string_view compress;
  uint64_t compressed{0};
  uint64_t saved{0};
  Store::FamilyOnDisk on_disk;
  uint64_t memory_bytes{0};
  uint64_t reclaimed{0};
  bool sees_all{true};

  // All is copied at once: the family may be altered or dropped while its cells are counted.
  FamilyInfo(Store& store, const Table& table, const FamilySchema& family, bool may_see_all)
      : name(family.name),
        type(family.type.has_value() ? ValueTypeName(*family.type) : std::string_view("none")),
        order(family.order.spec()),
        versions("ALL"),
        ttl("NONE"),
        gc(family.policy_said().is_expression() ? family.policy_said().text() : "NONE"),
        group(table.schema().groups[family.group].name),
        aggregate(FoldKindName(family.fold)),
        bucket(family.bucket_ms != 0 ? FormatDurationMs(family.bucket_ms) : "NONE"),
        compress(CompressionName(family.compression)),
        compressed(table.family_counters(family).packed_cells),
        saved(table.family_counters(family).saved_bytes),
        on_disk(store.OnDisk(table, family)),
        memory_bytes(MemoryShare(table, family, may_see_all)),
        reclaimed(table.family_counters(family).reclaimed),
        sees_all(may_see_all) {
    for (const TypedColumn& column : family.columns) {
      std::string qualifier;
      const bool decoded = family.order.Decode(column.qualifier, &qualifier);
      CELLAR_ASSERT(decoded);
      columns.emplace_back(std::move(qualifier), ValueTypeName(column.type));
    }
    const RetentionPolicy& policy = family.policy_said();
    if (policy.versions() != 0) versions = std::to_string(policy.versions());
    if (policy.ttl_ms() != 0) ttl = FormatDurationMs(policy.ttl_ms());
  }

  void Reply(ReplyWriter& reply, uint64_t cells) const {
    reply.Map(18);
    const auto text = [&reply](std::string_view field, std::string_view value) {
      reply.Bulk(field);
      reply.Bulk(value);
    };
    const auto number = [&reply](std::string_view field, uint64_t value) {
      reply.Bulk(field);
      reply.Unsigned(value);
    };
    text("name", name);
    text("type", type);
    reply.Bulk("columns");
    reply.Map(columns.size());
    for (const auto& [qualifier, column_type] : columns) text(qualifier, column_type);
    text("order", order);
    text("versions", versions);
    text("ttl", ttl);
    text("gc", gc);
    text("group", group);
    text("aggregate", aggregate);
    text("bucket", bucket);
    text("compress", compress);
    number("cells", cells);
    number("compressed", compressed);
    number("saved", saved);
    number("memory", memory_bytes);
    // The file is that of all tables, divided by what each has in it.
    reply.Bulk("disk");
    if (sees_all) {
      reply.Unsigned(on_disk.snapshot_bytes);
    } else {
      reply.Null();
    }
    number("log_bytes", on_disk.log_bytes);
    number("reclaimed", reclaimed);
  }
};

void CmdFamilyInfo(CommandContext& ctx) {
  if (!CheckInfoWords(ctx)) return;
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[2]));
  REPLY_IF_ERROR(ctx, CheckMayRead(ctx, ctx.args[3]));
  ASSIGN_OR_REPLY(ctx, const FamilySchema* const family, FindFamily(*table, ctx.args[3]));
  FamilyInfo info(ctx.store(), *table, *family, MayReadTable(ctx));
  // The counter is of stored cells. Where some of them may be dead, or another set's, only a scan
  // can tell.
  if (table->clamp() == nullptr &&
      (table->family_is_all_live(*family) || !table->MayHoldDropped())) {
    return info.Reply(ctx.reply, table->family_counters(*family).cells);
  }
  CellOptions cells;
  cells.versions_max = kUnlimited;
  cells.values = false;
  cells.columns.push_back(
      {.kind = ColumnSelector::Kind::kFamily, .family = family->name, .first = {}, .second = {}});
  ASSIGN_OR_REPLY(ctx, std::unique_ptr<Scan> scan,
                  ctx.store().ScanRows(*table, RowOptions{}, cells, nullptr));
  CountRun run(std::move(scan), CountBy::kCells, table->schema());
  // 0: whether a map begins with % or * is up to the protocol, so no byte goes ahead.
  RunCount<0>(ctx, *table, std::move(run), LongReadStart::kInLoop,
              [info = std::move(info)](ReplyWriter& reply, const CountRun& counted) {
                info.Reply(reply, counted.count());
              });
}

constexpr KeySpec kTableRead{.first = 2, .access = KeyAccess::kRead};
constexpr KeySpec kTableWritten{.first = 2, .access = KeyAccess::kReadWrite};

constexpr Command kFamilyRows[] = {
    {.name = "add",
     .arity = -4,
     .flags = kWrite | kDenyOom,
     .categories = kCategorySchema,
     .keys = kTableWritten,
     .group = "schema",
     .summary = "Adds a family to a table.",
     .complexity = "O(n) where n is the number of families",
     .syntax = "table family [TYPE type] [COLUMN qualifier type]... [ORDER order] "
               "[VERSIONS count|ALL] [TTL duration|NONE] "
               "[GC policy] [GROUP group] [AGGREGATE sum|min|max|hll] [BUCKET duration] "
               "[COMPRESS lz4|zstd|none]",
     .handler = CmdFamilyAdd},
    {.name = "alter",
     .arity = -4,
     .flags = kWrite | kDenyOom,
     .categories = kCategorySchema,
     .keys = kTableWritten,
     .group = "schema",
     .summary = "Changes the types, the retention or the compression of a family. Other options "
                "stay.",
     .complexity = "O(n) in the number of cells of a family with retention, or whose types change, "
                   "in slices",
     .syntax = "table family [TYPE type|NONE] [COLUMN qualifier type]... [NOCOLUMN qualifier]... "
               "[CONVERT [SKIP] | KEEP] [VERSIONS count|ALL] [TTL duration|NONE] [GC policy] "
               "[COMPRESS lz4|zstd|none]",
     .handler = CmdFamilyAlter},
    {.name = "drop",
     .arity = 4,
     .flags = kWrite,
     .categories = kCategorySchema | kCategoryDangerous,
     .keys = kTableWritten,
     .group = "schema",
     .summary = "Drops a family and its cells.",
     .complexity = "O(n) where n is the number of families; the cells are removed in slices",
     .syntax = "table family",
     .handler = CmdFamilyDrop},
    {.name = "info",
     .arity = -4,
     .flags = kReadonly,
     .categories = kCategorySchema,
     .keys = kTableRead,
     .group = "schema",
     .summary = "Returns the options of a family, its exact number of cells, its memory and disk.",
     .complexity = "O(1), or O(n) in the number of cells if they can expire",
     .syntax = "table family [LOCAL]",
     .handler = CmdFamilyInfo},
    HelpSubcommand("schema"),
};

constexpr Command kFamilyCommands[] = {
    {.name = "family",
     .arity = -2,
     .group = "schema",
     .summary = "Adds, changes, drops and describes families of a table.",
     .complexity = "Depends on the subcommand.",
     .subcommands = kFamilyRows},
};

}  // namespace

std::span<const Command> FamilyCommands() { return kFamilyCommands; }

}  // namespace cellar
