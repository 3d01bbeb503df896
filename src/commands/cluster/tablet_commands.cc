// TABLET: which set owns which rows of a table, as the cluster's map says it, and where tablets
// end. LIST and ROUTE are answered by the node that is asked, from its own copy of the map.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text/quote.h"
#include "cluster/lost_rows.h"
#include "commands/arguments/cell_arguments.h"
#include "commands/arguments/syntax_error.h"
#include "commands/cluster/cluster_commands.h"
#include "commands/cluster/cluster_part.h"
#include "commands/cluster/command_route.h"
#include "commands/cluster/move_commands.h"
#include "commands/cluster/tablet_report.h"
#include "commands/replies/visible_table.h"
#include "commands/reports/cluster_report.h"
#include "commands/reports/help.h"
#include "commands/session/command_context.h"
#include "commands/session/services.h"
#include "store/store.h"
#include "store/tablet_changes.h"

namespace cellar {
namespace {

// The map as this node has it; at the director's as new as what the reply tells of. What is written
// to it depends on its last record.
const MapCache& MapHere(CommandContext& ctx) {
  ClusterPart::Tend(ctx.host);
  const MapCache& map = MapOf(ctx.host);
  const MapTables tables(ctx.store());
  ctx.DependsOn(ctx.store().schema_lsn());
  if (tables.exist()) ctx.DependsOn(tables.tablets().last_lsn());
  return map;
}

void ReplyOrNull(ReplyWriter& reply, const std::optional<uint64_t>& number) {
  if (number)
    reply.Unsigned(*number);
  else
    reply.Null();
}

// --- LIST

struct ListRequest {
  std::optional<std::string_view> table;
  std::optional<std::string_view> from;
  uint64_t count{UINT64_MAX};
  std::optional<uint64_t> since;
};

// The options are pairs of words, so that an odd number of words begins with a table.
Result<ListRequest> ParseList(Arguments args) {
  ListRequest request;
  ArgumentCursor at(args, 2);
  if (args.size() % 2 != 0) request.table = at.Take();
  bool count_said = false;
  while (!at.done()) {
    if (at.TakeWord("FROM")) {
      if (request.from) return RepeatedOption("FROM");
      if (!request.table) return SyntaxErrorBecause("FROM needs a table");
      ASSIGN_OR_RETURN(request.from, at.TakeAny("FROM", "row"));
    } else if (at.TakeWord("COUNT")) {
      if (std::exchange(count_said, true)) return RepeatedOption("COUNT");
      ASSIGN_OR_RETURN(const std::string_view word, at.TakeAny("COUNT", "count"));
      ASSIGN_OR_RETURN(request.count, ParseCount("COUNT", word, 1));
    } else if (at.TakeWord("SINCE")) {
      if (request.since) return RepeatedOption("SINCE");
      ASSIGN_OR_RETURN(const std::string_view word, at.TakeAny("SINCE", "version"));
      ASSIGN_OR_RETURN(request.since, ParseCount("SINCE", word, 0));
    } else {
      return UnexpectedWord(at.Peek(), "FROM, COUNT or SINCE");
    }
  }
  return request;
}

// What LIST tells of an entry; `table` null: it is gone, and the map will say so.
void ReplyTablet(ReplyWriter& reply, std::string_view name, const MapEntry& entry,
                 const Table* table, const TabletReport& report) {
  const auto text = [table](std::string_view bound) {
    return table == nullptr ? std::string(bound) : TabletBoundText(*table, bound);
  };
  reply.Map(12);
  reply.Bulk("table");
  reply.Bulk(name);
  reply.Bulk("start");
  reply.Bulk(text(entry.begin));
  reply.Bulk("end");
  reply.Bulk(text(entry.end));
  reply.Bulk("set");
  reply.Unsigned(SetNumber(entry.set));
  reply.Bulk("epoch");
  reply.Unsigned(entry.epoch);
  reply.Bulk("bytes");
  ReplyOrNull(reply, report.bytes);
  reply.Bulk("rows");
  ReplyOrNull(reply, report.rows);
  reply.Bulk("load");
  ReplyOrNull(reply, report.load);
  reply.Bulk("state");
  reply.Bulk(report.state);
  reply.Bulk("job");
  ReplyOrNull(reply, report.job);
  reply.Bulk("to");
  ReplyOrNull(reply, report.to);
  reply.Bulk("progress");
  if (report.job && !report.progress.empty())
    reply.Bulk(report.progress);
  else
    reply.Null();
}

bool MaySee(const CommandContext& ctx, const Table* table) {
  if (ctx.rights == nullptr) return true;
  return table != nullptr && ctx.rights->MayReadTable(table->keyspace(), table->name());
}

void CmdTabletList(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, const ListRequest request, ParseList(ctx.args));
  if (!ClusterPart::IsOfCluster(ctx)) return;
  const Table* only = nullptr;
  std::string from;
  if (request.table) {
    ASSIGN_OR_REPLY(ctx, only, FindTable(ctx, *request.table));
    REPLY_IF_ERROR(ctx, CheckHasTablets(*only));
    if (request.from) {
      ASSIGN_OR_REPLY(ctx, from, EncodeTabletBound(only->schema(), *request.from));
    }
  }
  const MapCache& map = MapHere(ctx);
  ctx.reply.Array(2);
  ctx.reply.Unsigned(map.version());
  // Older than what can be told, or of another map.
  if (request.since && (*request.since < map.floor() || *request.since > map.version()))
    return ctx.reply.Null();
  const auto mark = ctx.reply.BeginArray(1);
  TabletReports reports(ctx.host);
  uint64_t count = 0;
  for (const auto& [id, mapped] : map.tables()) {
    const Table* const table = ctx.store().TableById(id);
    // Rows of snapshots do not move, and are not told of.
    if (table == nullptr && ctx.store().engine().FindFrozenById(id) != nullptr) continue;
    if ((only != nullptr && table != only) || !MaySee(ctx, table)) continue;
    ctx.host.services().tablet_listeners.Note(
        ctx.session, id, only == nullptr ? mapped.name : std::string(*request.table),
        map.version());
    for (const MapEntry& entry : mapped.tablets) {
      const bool before = !entry.end.empty() && entry.end <= from;
      if (before || (request.since && entry.version <= *request.since)) continue;
      if (count == request.count) break;
      ReplyTablet(ctx.reply, only == nullptr ? mapped.name : *request.table, entry, table,
                  reports.Of(id, entry));
      ++count;
    }
  }
  ctx.reply.EndArray(mark, count);
}

// --- ROUTE

void ReplyRoute(CommandContext& ctx, const Table& table, const Tablet& tablet, uint64_t set,
                uint64_t version) {
  const std::string leader = LeaderTextOf(ctx.host, set);
  ReplyWriter& reply = ctx.reply;
  reply.Map(6);
  reply.Bulk("set");
  reply.Unsigned(SetNumber(set));
  reply.Bulk("epoch");
  reply.Unsigned(tablet.epoch);
  reply.Bulk("start");
  reply.Bulk(TabletBoundText(table, tablet.begin));
  reply.Bulk("end");
  reply.Bulk(TabletBoundText(table, tablet.end));
  reply.Bulk("leader");
  if (leader.empty())
    reply.Null();
  else
    reply.Bulk(leader);
  reply.Bulk("version");
  reply.Unsigned(version);
}

void CmdTabletRoute(CommandContext& ctx) {
  const bool sure = ctx.args.size() > 4;
  if (sure && (ctx.args.size() > 5 || !EqualsIgnoreCase(ctx.args[4], "SURE")))
    return ctx.Fail(UnexpectedWord(ctx.args[4], "SURE"));
  if (!ClusterPart::IsOfCluster(ctx)) return;
  ASSIGN_OR_REPLY(ctx, const Table* const table, FindTable(ctx, ctx.args[2]));
  REPLY_IF_ERROR(ctx, CheckHasTablets(*table));
  ASSIGN_OR_REPLY(ctx, const std::string key, ctx.store().RowKey(*table, ctx.args[3]));
  const MapCache& map = MapHere(ctx);
  if (sure) {
    const Tablet* const tablet = table->tablets()->Find(key);
    if (tablet == nullptr) return ctx.Fail(table->CheckOwned(key));
    return ReplyRoute(ctx, *table, *tablet, ctx.store().engine().cluster().set, map.version());
  }
  const MapEntry* const entry = map.FindTablet(table->id(), key);
  if (entry == nullptr) {
    return ctx.Fail("TRYAGAIN the map does not say who owns row " + Quote(ctx.args[3]) +
                    " of table " + Quote(table->name()));
  }
  ctx.host.services().tablet_listeners.Note(ctx.session, table->id(), std::string(ctx.args[2]),
                                            map.version());
  ReplyRoute(ctx, *table, {entry->begin, entry->end, entry->epoch}, entry->set, map.version());
}

// --- SPLIT, MERGE

// As one record with the map of it.
void ChangeTablets(CommandContext& ctx, std::string what,
                   const std::function<Status(TabletChanges&)>& change) {
  const ClusterTelling telling(ctx.host);
  const Status status = ctx.host.services().cluster_map.Change(
      ctx.store(), ctx.host.replication().term(), std::move(what),
      "asked by " + ctx.session.user_name, [&] {
        TabletChanges changes(ctx.store());
        return change(changes);
      });
  ctx.DependsOn(ctx.host.last_lsn());
  if (!status.ok()) return ctx.Fail(status);
  ctx.reply.Ok();
}

void CmdTabletSplit(CommandContext& ctx) {
  if (!ClusterPart::IsOfCluster(ctx)) return;
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[2]));
  const Arguments rows = ctx.args.subspan(3);
  std::string what = fmt::format("split {} at {}", table->name(), Quote(rows[0]));
  if (rows.size() > 1) what += fmt::format(" and {} more", rows.size() - 1);
  ChangeTablets(ctx, std::move(what),
                [&](TabletChanges& changes) { return changes.Split(*table, rows); });
}

// Which other set has the tablet behind that of the row, as far as the map says.
std::optional<uint64_t> OtherOwnerOfNext(const CommandContext& ctx, const Table& table,
                                         std::string_view row) {
  const MapTable* const map = MapOf(ctx.host).Find(table.id());
  const Result<std::string> bound = EncodeTabletBound(table.schema(), row);
  if (map == nullptr || !bound.ok()) return std::nullopt;
  const Tablet* const here = table.tablets()->Find(*bound);
  // What is here the map may not know of yet.
  if (here == nullptr || here->end.empty() || table.tablets()->Find(here->end) != nullptr)
    return std::nullopt;
  const auto& tablets = map->tablets;
  const auto next = std::upper_bound(
      tablets.begin(), tablets.end(), *bound,
      [](const std::string& sought, const MapEntry& entry) { return sought < entry.begin; });
  if (next == tablets.begin() || next == tablets.end()) return std::nullopt;
  const auto own = std::prev(next);
  const bool is_others = own->end == next->begin && own->set != next->set;
  return is_others ? std::optional(next->set) : std::nullopt;
}

void CmdTabletMerge(CommandContext& ctx) {
  if (!ClusterPart::IsOfCluster(ctx)) return;
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[2]));
  if (const auto set = OtherOwnerOfNext(ctx, *table, ctx.args[3]); set) {
    return ctx.Fail(
        fmt::format("ERR the next tablet is set {}'s: TABLET MOVE first", SetNumber(*set)));
  }
  ChangeTablets(ctx, fmt::format("merge {} at {}", table->name(), Quote(ctx.args[3])),
                [&](TabletChanges& changes) { return changes.Merge(*table, ctx.args[3]); });
}

constexpr KeySpec kRead{.first = 2, .access = KeyAccess::kRead, .scope = KeyScope::kTable};
constexpr KeySpec kListed{
    .first = 2, .access = KeyAccess::kRead, .if_odd = true, .scope = KeyScope::kTable};
constexpr KeySpec kWritten{.first = 2, .access = KeyAccess::kWrite, .scope = KeyScope::kTable};
constexpr uint32_t kOwners = kAdmin | kWrite | kNoScript | kNoMulti;

constexpr Command kTabletSubcommands[] = {
    {.name = "adopt",
     .arity = 6,
     .flags = kOwners,
     .categories = kCategorySchema,
     .keys = kWritten,
     .group = "cluster",
     .summary = "Gives rows that were lost with a set to another one, empty.",
     .complexity = "O(n) where n is the number of sets",
     .syntax = "table row SET set",
     .handler = CmdTabletAdopt},
    {.name = "cancel",
     .arity = 3,
     .flags = kOwners,
     .categories = kCategorySchema,
     .group = "cluster",
     .summary = "Cancels a job that moves a tablet, unless the other set owns it already.",
     .complexity = "O(1)",
     .syntax = "job",
     .handler = CmdTabletCancel},
    {.name = "jobs",
     .arity = 2,
     .flags = kReadonly,
     .categories = kCategorySchema,
     .group = "cluster",
     .summary = "Returns the tablets that move, and those that have within the last hour.",
     .complexity = "O(n) where n is the number of jobs",
     .syntax = "",
     .handler = CmdTabletJobs},
    {.name = "list",
     .arity = -2,
     .flags = kReadonly | kNoMandatoryKeys,
     .categories = kCategorySchema,
     .keys = kListed,
     .group = "cluster",
     .summary = "Returns the version of the map, and the tablets of a table or of all.",
     .complexity = "O(n) where n is the number of tablets of the cluster",
     .syntax = "[table] [FROM row] [COUNT count] [SINCE version]",
     .handler = CmdTabletList},
    {.name = "merge",
     .arity = 4,
     .flags = kOwners,
     .categories = kCategorySchema,
     .keys = kWritten,
     .group = "cluster",
     .summary = "Makes the tablet of a row and the next one one tablet.",
     .complexity = "O(n) where n is the number of tablets of the table",
     .syntax = "table row",
     .handler = CmdTabletMerge},
    {.name = "move",
     .arity = -6,
     .flags = kOwners,
     .categories = kCategorySchema,
     .keys = kWritten,
     .group = "cluster",
     .summary = "Moves the tablet of a row to another set; returns the number of the job, or OK "
                "when it is there.",
     .complexity = "O(1), and the copy in the background",
     .syntax = "table row TO set [WAIT ms]",
     .handler = CmdTabletMove},
    {.name = "route",
     .arity = -4,
     .flags = kReadonly,
     .categories = kCategorySchema,
     .keys = kRead,
     .group = "cluster",
     .summary = "Returns which set owns a row, from this node's map; SURE asks the owner.",
     .complexity = "O(log n) where n is the number of tablets",
     .syntax = "table row [SURE]",
     .handler = CmdTabletRoute},
    {.name = "split",
     .arity = -4,
     .flags = kOwners,
     .categories = kCategorySchema,
     .keys = kWritten,
     .group = "cluster",
     .summary = "Cuts tablets of a table, all or none: others begin at these rows. No row moves.",
     .complexity = "O(n) where n is the number of tablets of the table",
     .syntax = "table row...",
     .handler = CmdTabletSplit},
    HelpSubcommand("cluster"),
};

constexpr Command kTabletRows[] = {
    {.name = "tablet",
     .arity = -2,
     .group = "cluster",
     .summary = "Shows and changes where the tablets of tables end.",
     .complexity = "depends on the subcommand",
     .subcommands = kTabletSubcommands},
};

}  // namespace

std::span<const Command> TabletCommands() { return kTabletRows; }

}  // namespace cellar
