// REPLICA: the members of a replica set: who they are, and how they come, go and vote. Each node
// lists them; the leader alone changes them, one at a time (replica/set_order.h).
#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "commands/admin/admin_commands.h"
#include "commands/arguments/address_arguments.h"
#include "commands/replies/order_task.h"
#include "commands/reports/help.h"
#include "commands/session/command_context.h"
#include "commands/session/host.h"
#include "replica/replication.h"
#include "replica/set_node.h"

namespace cellar {
namespace {

constexpr std::string_view kNoSet{"ERR this node is in no replica set: see cluster-nodes"};

// IPv6 as it is announced, without brackets.
std::string HostOf(std::string_view word) {
  const bool brackets = word.size() > 2 && word.front() == '[' && word.back() == ']';
  return std::string(brackets ? word.substr(1, word.size() - 2) : word);
}

// The set, if this node leads it; else it has been said who does.
SetNode* LedSet(CommandContext& ctx) {
  SetNode* const set = ctx.host.replication().set();
  if (set == nullptr) {
    ctx.Fail(kNoSet);
    return nullptr;
  }
  if (set->may_append()) return set;
  const auto leader = set->KnownLeader();
  if (set->open()) {
    ctx.Fail("CLUSTERDOWN no leader: handing over");
  } else if (leader) {
    ctx.Fail("READONLY You can't write against a read only replica. The leader is " + leader->host +
             ":" + std::to_string(leader->port));
  } else {
    ctx.Fail("CLUSTERDOWN no leader: " + set->NoLeaderText());
  }
  return nullptr;
}

void CmdList(CommandContext& ctx) {
  const Replication& replication = ctx.host.replication();
  if (!replication.in_set()) return ctx.Fail(kNoSet);
  std::vector<MemberFigures> members;
  if (replication.set() != nullptr) members = replication.set()->Members();
  std::sort(members.begin(), members.end(),
            [](const MemberFigures& a, const MemberFigures& b) { return a.node < b.node; });
  ctx.reply.Array(members.size());
  for (const MemberFigures& member : members) {
    std::string id;
    for (int shift = 56; shift >= 0; shift -= 8)
      AppendHex(static_cast<char>(member.node >> shift & 0xff), &id);
    const std::pair<std::string_view, std::string_view> words[] = {
        {"id", id}, {"ip", member.address.host}, {"kind", member.kind}, {"state", member.state}};
    const std::string lsn = fmt::format("{}:{}", member.lsn.epoch, member.lsn.seq);
    ctx.reply.Map(std::size(words) + 4);
    for (const auto& [name, value] : words) {
      ctx.reply.Bulk(name);
      ctx.reply.Bulk(value);
      if (name != "ip") continue;
      ctx.reply.Bulk("port");
      ctx.reply.Integer(member.address.port);
    }
    ctx.reply.Bulk("lsn");
    ctx.reply.Bulk(lsn);
    ctx.reply.Bulk("lag-ms");
    ctx.reply.Integer(member.lag_micros / 1000);
    ctx.reply.Bulk("version");
    ctx.reply.Bulk(member.version);
  }
}

void Carry(CommandContext& ctx, SetNode* set, const SetOrder& order) {
  ASSIGN_OR_REPLY(ctx, const uint64_t ticket, set->BeginOrder(order));
  ctx.Continue(std::make_unique<OrderTask>(ctx.host, ticket));
}

void CmdAdd(CommandContext& ctx) {
  SetOrder order;
  const auto port = ParsePort(ctx.args[3]);
  if (!port || !IsHostWord(ctx.args[2]))
    return ctx.Fail("ERR REPLICA ADD takes the host and the port of a node");
  if (ctx.args.size() > 4) {
    const bool stands_by = EqualsIgnoreCase(ctx.args[4], "STANDBY");
    if (ctx.args.size() > 5 || (!stands_by && !EqualsIgnoreCase(ctx.args[4], "WITNESS"))) {
      return ctx.Fail("ERR behind host and port REPLICA ADD takes STANDBY, WITNESS or nothing");
    }
    order.kind = stands_by ? OrderKind::kAddStandby : OrderKind::kAddWitness;
  }
  order.address = {HostOf(ctx.args[2]), *port};
  SetNode* const set = LedSet(ctx);
  if (set != nullptr) Carry(ctx, set, order);
}

// id or host:port.
std::optional<SetOrder> ParseMember(OrderKind kind, std::string_view word) {
  constexpr size_t kIdDigits{16};
  SetOrder order{.kind = kind};
  const size_t colon = word.rfind(':');
  if (colon == std::string_view::npos) {
    const char* const end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, order.node, 16);
    const bool whole = word.size() == kIdDigits && error == std::errc{} && stop == end;
    return whole && order.node != 0 ? std::optional(order) : std::nullopt;
  }
  const auto port = ParsePort(word.substr(colon + 1));
  if (!port || !IsHostWord(word.substr(0, colon))) return std::nullopt;
  order.address = {HostOf(word.substr(0, colon)), *port};
  return order;
}

void Order(CommandContext& ctx, OrderKind kind, std::string_view name) {
  const auto order = ParseMember(kind, ctx.args[2]);
  if (!order) {
    return ctx.Fail("ERR REPLICA " + std::string(name) +
                    " takes a member's id, 16 hexadecimal digits, or its host:port");
  }
  SetNode* const set = LedSet(ctx);
  if (set != nullptr) Carry(ctx, set, *order);
}

void CmdRemove(CommandContext& ctx) { Order(ctx, OrderKind::kRemove, "REMOVE"); }
void CmdPromote(CommandContext& ctx) { Order(ctx, OrderKind::kPromote, "PROMOTE"); }
void CmdDemote(CommandContext& ctx) { Order(ctx, OrderKind::kDemote, "DEMOTE"); }

constexpr uint32_t kOrderFlags{kAdmin | kNoScript | kNoMulti | kStale | kBlocking};

constexpr Command kReplicaRows[] = {
    {.name = "list",
     .arity = 2,
     .flags = kNoScript | kLoading | kStale,
     .categories = kCategoryAdmin | kCategoryDangerous,
     .group = "server",
     .summary = "Returns the members of the replica set.",
     .complexity = "O(n) where n is the number of members",
     .handler = CmdList},
    {.name = "add",
     .arity = -4,
     .flags = kOrderFlags,
     .group = "server",
     .summary = "Adds a node to the replica set: it gets a copy, and votes once it has caught up.",
     .complexity = "O(n) where n is the number of members",
     .syntax = "host port [STANDBY | WITNESS]",
     .handler = CmdAdd},
    {.name = "remove",
     .arity = 3,
     .flags = kOrderFlags,
     .group = "server",
     .summary = "Takes a member out of the replica set.",
     .complexity = "O(n) where n is the number of members",
     .syntax = "(id | host:port)",
     .handler = CmdRemove},
    {.name = "promote",
     .arity = 3,
     .flags = kOrderFlags,
     .group = "server",
     .summary = "Has a standby vote.",
     .complexity = "O(n) where n is the number of members",
     .syntax = "(id | host:port)",
     .handler = CmdPromote},
    {.name = "demote",
     .arity = 3,
     .flags = kOrderFlags,
     .group = "server",
     .summary = "Makes a voter a standby, which keeps its copy and does not vote.",
     .complexity = "O(n) where n is the number of members",
     .syntax = "(id | host:port)",
     .handler = CmdDemote},
    HelpSubcommand("server"),
};

constexpr Command kReplicaCommands[] = {
    {.name = "replica",
     .arity = -2,
     .group = "server",
     .summary = "Lists and changes the members of a replica set.",
     .complexity = "Depends on the subcommand.",
     .subcommands = kReplicaRows},
};

}  // namespace

std::span<const Command> ReplicaCommands() { return kReplicaCommands; }

}  // namespace cellar
