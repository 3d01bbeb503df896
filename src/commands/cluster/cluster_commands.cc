// CLUSTER: what a set is part of, and what all of a cluster goes by. Redis' cluster is one of
// slots, which there are none of: its other words are answered as by a Redis that is no part of
// one.
#include "commands/cluster/cluster_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/text/glob.h"
#include "base/text/quote.h"
#include "commands/arguments/cell_arguments.h"
#include "commands/arguments/syntax_error.h"
#include "commands/cluster/alter_wait.h"
#include "commands/cluster/cluster_part.h"
#include "commands/cluster/cursor_scan.h"
#include "commands/cluster/cut_commands.h"
#include "commands/cluster/node_commands.h"
#include "commands/cluster/tracked_sets.h"
#include "commands/cluster/type_part_call.h"
#include "commands/config/cluster_options.h"
#include "commands/replies/schema_commands.h"
#include "commands/reports/cluster_report.h"
#include "commands/reports/help.h"
#include "commands/reports/info.h"
#include "commands/session/command_context.h"
#include "commands/session/services.h"
#include "replica/set_node.h"
#include "store/store.h"

namespace cellar {
namespace {

// Told among the options of the cluster; it rises by itself.
constexpr std::string_view kFeatureLevelName{"feature-level"};

void CmdClusterDisabled(CommandContext& ctx) { ctx.Fail(kClusterDisabled); }

// Of another cluster that this store is part of some day the number is another one.
uint64_t DrawClusterId(const CommandContext& ctx) {
  const std::string seed = ctx.host.services().run_id + ctx.host.replication().cluster_text();
  return std::max<uint64_t>(1, Hash64(seed, static_cast<uint64_t>(ctx.now_micros)));
}

void CmdClusterInit(CommandContext& ctx) {
  if (!ClusterPart::IsOfSet(ctx)) return;
  const std::string& joins = ctx.host.services().config.cluster_join;
  if (!ctx.store().engine().cluster().active() && !joins.empty()) {
    return ctx.Fail(fmt::format(
        "ERR this set waits to be taken into another cluster (cluster-join {}): CLUSTER ADMIT it "
        "there, or start it without cluster-join",
        joins));
  }
  ctx.DependsOn(ctx.store().schema_lsn());
  const ClusterMap::Founding founding{.cluster_id = DrawClusterId(ctx),
                                      .set_id = ctx.host.replication().cluster_text().substr(0, 16),
                                      .who = "CLUSTER INIT"};
  const ClusterTelling telling(ctx.host);
  const Status status =
      ctx.host.services().cluster_map.Begin(ctx.store(), ctx.host.replication().term(), founding);
  ClusterPart::Tend(ctx.host);
  ReplyChange(ctx, status);
}

void CmdClusterEnd(CommandContext& ctx) {
  if (!ClusterPart::IsOfCluster(ctx)) return;
  const ClusterTelling telling(ctx.host);
  const Status status = ctx.host.services().cluster_map.End(ctx.store());
  ClusterPart::Tend(ctx.host);
  ReplyChange(ctx, status);
}

void ReplyMember(ReplyWriter& reply, const ClusterMember& member) {
  reply.Map(8);
  reply.Bulk("id");
  reply.Bulk(fmt::format("{:016x}", member.node));
  reply.Bulk("ip");
  reply.Bulk(member.host);
  reply.Bulk("port");
  reply.Integer(member.port);
  reply.Bulk("kind");
  reply.Bulk(member.kind);
  reply.Bulk("state");
  reply.Bulk(member.state);
  reply.Bulk("version");
  reply.Bulk(member.version);
  reply.Bulk("zone");
  reply.Bulk(member.zone);
  reply.Bulk("machine");
  reply.Bulk(member.machine);
}

void ReplySet(ReplyWriter& reply, const ClusterSet& set, std::string_view state) {
  const ClusterMember* const leader = set.Find(set.leader);
  reply.Map(11);
  reply.Bulk("set");
  if (state == "waiting")
    reply.Null();
  else
    reply.Unsigned(set.number);
  reply.Bulk("id");
  reply.Bulk(fmt::format("{:016x}", set.id));
  reply.Bulk("state");
  reply.Bulk(state);
  reply.Bulk("leader");
  reply.Bulk(leader == nullptr ? std::string() : fmt::format("{}:{}", leader->host, leader->port));
  reply.Bulk("members");
  reply.Array(set.members.size());
  for (const ClusterMember& member : set.members) ReplyMember(reply, member);
  reply.Bulk("tablets");
  reply.Unsigned(set.tablets);
  reply.Bulk("bytes");
  reply.Unsigned(set.bytes);
  reply.Bulk("maxmemory");
  reply.Unsigned(set.maxmemory);
  reply.Bulk("catalog");
  reply.Unsigned(set.catalog);
  reply.Bulk("load");
  reply.Unsigned(set.load);
  reply.Bulk("jobs");
  reply.Unsigned(set.jobs);
}

// What this node has heard: it says so at once, also as a former leader that nobody follows, whose
// last records may never be committed.
void CmdClusterSets(CommandContext& ctx) {
  if (!ClusterPart::IsOfSet(ctx)) return;
  if (!IsInCluster(ctx.host)) return ctx.reply.Array(0);
  const Services& services = ctx.host.services();
  const std::vector<WaitingSet> waiting =
      services.director == nullptr ? std::vector<WaitingSet>() : services.director->Waiting();
  // Of its own set this node knows more than others tell.
  SetDirectory sets = services.cluster_view.sets;
  (void)sets.Put(OwnClusterSet(ctx.host));
  ctx.reply.Array(sets.sets().size() + waiting.size());
  for (const auto& [number, set] : sets.sets()) ReplySet(ctx.reply, set, SetStateOf(set));
  for (const WaitingSet& set : waiting) ReplySet(ctx.reply, set.set, "waiting");
}

// CLUSTER ADMIT h:p|id
void CmdClusterAdmit(CommandContext& ctx) {
  if (!ClusterPart::IsOfCluster(ctx)) return;
  const std::string_view word = ctx.args[2];
  Services& services = ctx.host.services();
  if (services.director == nullptr || !ClusterPart::Directs(ctx.host))
    return ctx.Fail("TRYAGAIN this node does not lead set 0");
  for (const WaitingSet& waiting : services.director->Waiting()) {
    const bool is_it = fmt::format("{:016x}", waiting.set.id) == word ||
                       std::any_of(waiting.set.members.begin(), waiting.set.members.end(),
                                   [word](const ClusterMember& member) {
                                     return fmt::format("{}:{}", member.host, member.port) == word;
                                   });
    if (!is_it) continue;
    if (!waiting.refusal.empty())
      return ctx.Fail("ERR the set is not empty: it has " + waiting.refusal);
    const ClusterTelling telling(ctx.host);
    const Result<uint64_t> number = services.cluster_map.Admit(
        ctx.store(), ctx.host.replication().term(), waiting.set.id,
        "set " + fmt::format("{:016x}", waiting.set.id), "CLUSTER ADMIT");
    ctx.DependsOn(ctx.host.last_lsn());
    if (!number.ok()) return ctx.Fail(number.status());
    services.director->OnAdmitted();
    return ctx.reply.Ok();
  }
  ctx.Fail(fmt::format("ERR no set at {} has asked", Quote(word)));
}

// CLUSTER DRAIN, UNDRAIN and REMOVE n.
void ChangeSet(CommandContext& ctx,
               const std::function<Status(ClusterMap&, uint64_t set, std::string why)>& change) {
  ASSIGN_OR_REPLY(ctx, const uint64_t set, ParseCount("set", ctx.args[2], 0));
  if (!ClusterPart::IsOfCluster(ctx)) return;
  Services& services = ctx.host.services();
  if (services.director == nullptr || !ClusterPart::Directs(ctx.host))
    return ctx.Fail("TRYAGAIN this node does not lead set 0");
  ClusterPart::Tend(ctx.host);
  const ClusterTelling telling(ctx.host);
  const Status status = change(services.cluster_map, set, "asked by " + ctx.session.user_name);
  ctx.DependsOn(ctx.host.last_lsn());
  if (!status.ok()) return ctx.Fail(status);
  services.director->OnAdmitted();
  if (services.moves != nullptr) services.moves->OnSets();
  ctx.reply.Ok();
}

void CmdClusterDrain(CommandContext& ctx) {
  ChangeSet(ctx, [&ctx](ClusterMap& map, uint64_t set, std::string why) {
    return map.Drain(ctx.store(), set, true, std::move(why));
  });
}

void CmdClusterUndrain(CommandContext& ctx) {
  ChangeSet(ctx, [&ctx](ClusterMap& map, uint64_t set, std::string why) {
    return map.Drain(ctx.store(), set, false, std::move(why));
  });
}

// Nobody shall give up a set that has an election, or has not come to a new director yet.
constexpr int64_t kAwayMicros{5'000'000};

// CLUSTER REMOVE n [FORCE]
void CmdClusterRemove(CommandContext& ctx) {
  const bool forces = ctx.args.size() > 3;
  if (forces && (ctx.args.size() > 4 || !EqualsIgnoreCase(ctx.args[3], "FORCE")))
    return ctx.Fail(UnexpectedWord(ctx.args[3], "FORCE"));
  ChangeSet(ctx, [&ctx, forces](ClusterMap& map, uint64_t set, std::string why) {
    const int64_t away_micros = ctx.host.services().director->AwayMicros(set);
    const bool is_away = away_micros > 0 && set != 0 && map.Has(ctx.store(), set);
    if (is_away && forces && away_micros < kAwayMicros) {
      return Status::Error(ErrorCode::kTryAgain,
                           fmt::format("set {} is given up once it has been away for {} seconds",
                                       set, kAwayMicros / 1'000'000));
    }
    if (is_away && forces)
      return map.GiveUp(ctx.store(), ctx.host.replication().term(), set, std::move(why));
    if (is_away) {
      return Status::Error(
          ErrorCode::kTryAgain,
          fmt::format("set {} is away. If it is lost for good, with all that it owns: CLUSTER "
                      "REMOVE {} FORCE",
                      set, set));
    }
    for (const auto& [number, job] : ctx.host.services().move_jobs.All(ctx.store())) {
      const bool is_dropped = job.state == MoveJob::State::kCancelling && job.to == set;
      if (!job.ended() && !is_dropped && (job.from == set || job.to == set)) {
        return Status::Error(ErrorCode::kErr, fmt::format("job {} of set {} goes on", number, set));
      }
    }
    return map.Remove(ctx.store(), set, forces, std::move(why));
  });
}

// Likewise.
void CmdClusterInfo(CommandContext& ctx) {
  if (!ClusterPart::IsOfSet(ctx)) return;
  if (!IsInCluster(ctx.host)) return ctx.Fail(kClusterDisabled);
  constexpr std::string_view kSection[] = {"cluster"};
  ctx.reply.Verbatim(InfoText(ctx.host, kSection, InfoScope::kAll), "txt");
}

void CmdClusterEvents(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, const uint64_t count, ClusterPart::CountAsked(ctx.args.subspan(2)));
  if (!ClusterPart::IsOfCluster(ctx)) return;
  ctx.DependsOn(ctx.host.last_lsn());
  const std::vector<ClusterEvent> events = MapTables(ctx.store()).Events(count);
  ctx.reply.Array(events.size());
  for (const ClusterEvent& event : events) {
    ctx.reply.Array(3);
    ctx.reply.Integer(event.unix_ms);
    ctx.reply.Bulk(event.what);
    ctx.reply.Bulk(event.why);
  }
}

void CmdClusterMap(CommandContext& ctx) {
  const bool check = EqualsIgnoreCase(ctx.args[2], "CHECK");
  if (!check && !EqualsIgnoreCase(ctx.args[2], "REBUILD"))
    return ctx.Fail(UnexpectedWord(ctx.args[2], "CHECK or REBUILD"));
  if (!ClusterPart::IsOfCluster(ctx)) return;
  const Services& services = ctx.host.services();
  if (ctx.host.closed()) {
    if (!check) return ctx.Fail("CLUSTERDOWN recovery: " + services.cluster_view.closed);
    const bool directs = services.director != nullptr && !services.director->Returns().empty();
    return ReplyNames(ctx.reply, directs ? services.director->Returns()
                                         : std::vector<std::string>{services.cluster_view.closed});
  }
  ClusterMap& map = ctx.host.services().cluster_map;
  const ClusterTelling telling(ctx.host);
  const uint32_t term = ctx.host.replication().term();
  if (check) {
    std::vector<std::string> texts = map.Check(ctx.store(), term);
    if (services.director != nullptr)
      texts.insert(texts.end(), services.director->Returns().begin(),
                   services.director->Returns().end());
    ReplyNames(ctx.reply, texts);
  } else {
    REPLY_IF_ERROR(ctx, map.Rebuild(ctx.store(), term));
    ctx.reply.Ok();
  }
  ctx.DependsOn(ctx.host.last_lsn());
}

void ReplyOptions(CommandContext& ctx, std::string_view pattern) {
  const std::map<std::string, std::string> given = MapTables(ctx.store()).Options();
  const auto mark = ctx.reply.BeginMap(1);
  uint64_t count = 0;
  for (const ClusterOption& option : ClusterOptions()) {
    if (!GlobMatch(pattern, option.name, GlobCase::kInsensitive)) continue;
    const auto found = given.find(std::string(option.name));
    ctx.reply.Bulk(option.name);
    ctx.reply.Bulk(found == given.end() ? option.value : std::string_view(found->second));
    ++count;
  }
  if (GlobMatch(pattern, kFeatureLevelName, GlobCase::kInsensitive)) {
    const uint32_t own = ctx.host.replication().set()->feature_level();
    ctx.reply.Bulk(kFeatureLevelName);
    ctx.reply.Bulk(fmt::format("{}", ctx.host.services().cluster_map.FeatureLevel(own)));
    ++count;
  }
  ctx.reply.EndMap(mark, count);
}

void SetOption(CommandContext& ctx, std::string_view name, std::string_view text) {
  if (EqualsIgnoreCase(name, kFeatureLevelName)) {
    return ctx.Fail(
        "ERR feature-level cannot be set: it rises by itself, once all members of all sets know "
        "more");
  }
  const ClusterOption* const option = FindClusterOption(name);
  if (option == nullptr) return ctx.Fail("ERR Unknown option of the cluster - " + Quote(name));
  const Result<std::string> value = CheckClusterOption(*option, text);
  if (!value.ok()) {
    return ctx.Fail(
        fmt::format("ERR CLUSTER CONFIG SET failed (possibly related to argument '{}') - {}",
                    option->name, value.status().text()));
  }
  REPLY_IF_ERROR(ctx, ctx.host.services().cluster_map.SetOption(ctx.store(), option->name, *value));
  ctx.reply.Ok();
}

void CmdClusterConfig(CommandContext& ctx) {
  const bool get = EqualsIgnoreCase(ctx.args[2], "GET");
  if (!get && !EqualsIgnoreCase(ctx.args[2], "SET"))
    return ctx.Fail(UnexpectedWord(ctx.args[2], "GET or SET"));
  if (ctx.args.size() != (get ? 4U : 5U))
    return ctx.Fail("ERR wrong number of arguments for 'cluster|config' command");
  if (!ClusterPart::IsOfCluster(ctx)) return;
  const ClusterTelling telling(ctx.host);
  if (get)
    ReplyOptions(ctx, ctx.args[3]);
  else
    SetOption(ctx, ctx.args[3], ctx.args[4]);
  ctx.DependsOn(ctx.host.last_lsn());
}

// --- the rows

constexpr Command Disabled(std::string_view name, int16_t arity, std::string_view syntax) {
  return {.name = name,
          .arity = arity,
          .flags = kLoading | kStale,
          .group = "redis-cluster",
          .summary = "Refused: there are no slots.",
          .complexity = "O(1)",
          .syntax = syntax,
          .handler = CmdClusterDisabled};
}

constexpr Command Switch(std::string_view name) {
  Command row = Disabled(name, 1, "");
  row.flags |= kFast;
  row.categories = kCategoryConnection;
  return row;
}

constexpr uint32_t kDirectors = kAdmin | kWrite | kNoScript | kNoMulti;

constexpr Command kSubcommands[] = {
    Disabled("addslots", -3, "slot..."),
    Disabled("addslotsrange", -4, "(start-slot end-slot)..."),
    {.name = "admit",
     .arity = 3,
     .flags = kDirectors,
     .group = "cluster",
     .summary = "Takes a set that has asked into the cluster.",
     .complexity = "O(n) where n is the number of tables",
     .syntax = "set",
     .handler = CmdClusterAdmit},
    Disabled("bumpepoch", 2, ""),
    {.name = "config",
     .arity = -4,
     .flags = kDirectors,
     .group = "cluster",
     .summary = "Reads and changes the options of the cluster, which are those of all its nodes.",
     .complexity = "O(n) in the number of options",
     .syntax = "(GET pattern | SET name value)",
     .handler = CmdClusterConfig},
    {.name = "changed",
     .arity = 4,
     .flags = kAdmin | kNoScript | kNoMulti,
     .group = "cluster",
     .summary = "Waits until rows of this set change, for nodes whose clients track them.",
     .complexity = "O(n) in the number of names told",
     .syntax = "epoch number",
     .handler = CmdClusterChanged},
    Disabled("count-failure-reports", 3, "node-id"),
    Disabled("countkeysinslot", 3, "slot"),
    {.name = "cursor",
     .arity = 4,
     .flags = kDirectors,
     .group = "cluster",
     .summary = "What nodes ask set 0 for CSCAN ... SNAPSHOT.",
     .complexity = "O(n) where n is the number of sets",
     .syntax = "(OPEN what | USE id | CLOSE id)",
     .handler = CmdClusterCursor},
    {.name = "cut",
     .arity = -2,
     .flags = kDirectors,
     .group = "cluster",
     .summary = "Makes a restore point, one moment over all sets; returns its number.",
     .complexity = "O(n) where n is the number of sets",
     .syntax = "[BACKUP]",
     .handler = CmdClusterCut},
    {.name = "cuts",
     .arity = -2,
     .flags = kAdmin | kReadonly,
     .group = "cluster",
     .summary = "Returns moments over all sets, and what has become of them, newest first.",
     .complexity = "O(n) where n is the number of cuts returned",
     .syntax = "[COUNT count]",
     .handler = CmdClusterCuts},
    Disabled("delslots", -3, "slot..."),
    Disabled("delslotsrange", -4, "(start-slot end-slot)..."),
    {.name = "drain",
     .arity = 3,
     .flags = kDirectors,
     .group = "cluster",
     .summary = "What a set owns is to go to the others.",
     .complexity = "O(1), and the moves in the background",
     .syntax = "set",
     .handler = CmdClusterDrain},
    {.name = "end",
     .arity = 2,
     .flags = kDirectors,
     .group = "cluster",
     .summary = "The set is part of no cluster any more.",
     .complexity = "O(n) where n is the number of tables",
     .handler = CmdClusterEnd},
    {.name = "events",
     .arity = -2,
     .flags = kAdmin | kReadonly | kStale,
     .group = "cluster",
     .summary = "Returns what has been done to the cluster, and why, newest first.",
     .complexity = "O(n) where n is the number of events returned",
     .syntax = "[COUNT count]",
     .handler = CmdClusterEvents},
    Disabled("failover", -2, "[FORCE|TAKEOVER]"),
    Disabled("flushslots", 2, ""),
    Disabled("forget", 3, "node-id"),
    Disabled("getkeysinslot", 4, "slot count"),
    {.name = "info",
     .arity = 2,
     .flags = kLoading | kStale,
     .group = "cluster",
     .summary = "Returns INFO's section of the cluster.",
     .complexity = "O(n) where n is the number of tables",
     .handler = CmdClusterInfo},
    {.name = "init",
     .arity = 2,
     .flags = kDirectors,
     .group = "cluster",
     .summary = "Makes this replica set a cluster of one, in which each table is one tablet.",
     .complexity = "O(n) where n is the number of tables",
     .handler = CmdClusterInit},
    Disabled("keyslot", 3, "key"),
    Disabled("links", 2, ""),
    {.name = "map",
     .arity = 3,
     .flags = kDirectors | kStale,
     .group = "cluster",
     .summary = "Takes the map against what the sets own, or makes it anew.",
     .complexity = "O(n) where n is the number of tablets",
     .syntax = "(CHECK|REBUILD)",
     .handler = CmdClusterMap},
    Disabled("meet", -4, "ip port [cluster-bus-port]"),
    Disabled("myid", 2, ""),
    Disabled("myshardid", 2, ""),
    Disabled("nodes", 2, ""),
    {.name = "on",
     .arity = -4,
     .flags = kAdmin | kNoScript | kNoMulti,
     .group = "cluster",
     .summary = "Asks a node, or each node of a set or of the cluster, a command about itself.",
     .complexity = "that of the command",
     .syntax = "(node | SET set | ALL) command [argument...]",
     .handler = CmdClusterOn},
    {.name = "remove",
     .arity = -3,
     .flags = kDirectors,
     .group = "cluster",
     .summary =
         "A set that owns nothing, or with FORCE one that is lost, is part of the cluster no "
         "more.",
     .complexity = "O(n) where n is the number of tablets",
     .syntax = "set [FORCE]",
     .handler = CmdClusterRemove},
    Disabled("replicas", 3, "node-id"),
    Disabled("replicate", 3, "node-id"),
    Disabled("reset", -2, "[HARD|SOFT]"),
    Disabled("saveconfig", 2, ""),
    Disabled("set-config-epoch", 3, "config-epoch"),
    {.name = "sets",
     .arity = 2,
     .flags = kLoading | kStale,
     .group = "cluster",
     .summary = "Returns the sets of the cluster and their members.",
     .complexity = "O(n) where n is the number of tables",
     .handler = CmdClusterSets},
    Disabled("setslot", -4, "slot (IMPORTING node-id | MIGRATING node-id | NODE node-id | STABLE)"),
    {.name = "settled",
     .arity = 3,
     .flags = kAdmin | kNoScript | kNoMulti,
     .group = "cluster",
     .summary = "Waits until this set goes by what FAMILY ALTER has said; for nodes.",
     .complexity = "O(n) in the number of cells of the family, in the background",
     .syntax = "what",
     .handler = CmdClusterSettled},
    Disabled("shards", 2, ""),
    Disabled("slaves", 3, "node-id"),
    Disabled("slots", 2, ""),
    {.name = "types",
     .arity = -7,
     .flags = kAdmin | kNoScript | kNoMulti,
     .group = "cluster",
     .summary = "Looks at cells of this set, or converts them, for a FAMILY ALTER; for nodes.",
     .complexity = "O(n) in the number of cells of the family, in slices",
     .syntax = "(LOOK|CONVERT|SEE) wanted what family option [option ...]",
     .handler = CmdClusterTypes},
    {.name = "undrain",
     .arity = 3,
     .flags = kDirectors,
     .group = "cluster",
     .summary = "A set takes tablets again.",
     .complexity = "O(1)",
     .syntax = "set",
     .handler = CmdClusterUndrain},
    HelpSubcommand("cluster"),
};

constexpr Command kRows[] = {
    {.name = "cluster",
     .arity = -2,
     .group = "cluster",
     .summary = "Makes a cluster of a replica set, and describes it.",
     .complexity = "depends on the subcommand",
     .subcommands = kSubcommands},
    Switch("asking"),
};

}  // namespace

std::span<const Command> ClusterCommands() { return kRows; }

}  // namespace cellar
