// SENTINEL: what clients that know Redis' Sentinel ask to find the leader, answered by each node of
// a replica set, on its data port. So they need no Sentinel: the nodes are given to them as such.
//
// Fields and errors are those of Redis 7.0's Sentinel, as far as clients read them. A node answers
// with what it knows; who leads, once the leader has been heard since the question (LeaderTask).
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text/ascii.h"
#include "commands/admin/admin_commands.h"
#include "commands/replies/order_task.h"
#include "commands/reports/help.h"
#include "commands/session/command_context.h"
#include "commands/session/host.h"
#include "commands/session/services.h"
#include "replica/replication.h"
#include "replica/set_node.h"

namespace cellar {
namespace {

constexpr std::string_view kNoSuchMaster{"ERR No such master with that name"};

// What this node knows of its set.
struct Known {
  std::string name;
  std::vector<MemberFigures> members;
  const MemberFigures* leader{nullptr};  // null: none is known
  size_t usable{0};                      // nodes that are linked with this one, and it
  size_t quorum{0};
};

// A witness is asked who leads, and for nothing else.
bool HoldsData(const MemberFigures& member) { return member.kind != "witness"; }

const SetNode* SetOf(CommandContext& ctx) {
  const SetNode* const set = ctx.host.replication().set();
  if (set == nullptr) ctx.Fail("ERR this node is in no replica set: see cluster-nodes");
  return set;
}

Known WhatIsKnown(Host& host, const SetNode& set) {
  Known known;
  known.name = host.services().config.sentinel_name;
  if (known.name.empty()) known.name = "mymaster";
  known.members = set.Members();
  size_t voters = 0;
  for (const MemberFigures& member : known.members) {
    const bool votes = member.kind != "standby";
    voters += votes ? 1 : 0;
    known.usable += votes && member.state != "down" ? 1 : 0;
    if (member.state == "leader") known.leader = &member;
  }
  known.quorum = voters / 2 + 1;
  return known;
}

// Whether the set is called so; without sentinel-name it has any name.
bool IsCalled(Host& host, std::string_view name) {
  const std::string& own = host.services().config.sentinel_name;
  return own.empty() || own == name;
}

std::string RunIdOf(const MemberFigures& member) {
  std::string id(24, '0');
  for (int shift = 56; shift >= 0; shift -= 8)
    AppendHex(static_cast<char>(member.node >> shift & 0xff), &id);
  return id;
}

using Fields = std::vector<std::pair<std::string_view, std::string>>;

void ReplyFields(ReplyWriter& reply, const Fields& fields) {
  reply.Map(fields.size());
  for (const auto& [name, value] : fields) {
    reply.Bulk(name);
    reply.Bulk(value);
  }
}

Fields NodeFields(const MemberFigures& member, std::string name, std::string flags) {
  const bool down = member.state == "down";
  if (down) flags += ",s_down,disconnected";
  return {{"name", std::move(name)},
          {"ip", member.address.host},
          {"port", std::to_string(member.address.port)},
          {"runid", RunIdOf(member)},
          {"flags", std::move(flags)},
          {"link-pending-commands", "0"},
          {"link-refcount", "1"},
          {"last-ping-sent", "0"},
          {"last-ok-ping-reply", "0"},
          {"last-ping-reply", "0"},
          {"down-after-milliseconds", "0"}};
}

std::string TextOf(const NodeAddress& address) {
  return address.host + ":" + std::to_string(address.port);
}

// --- who leads

void ReplyMaster(Host& host, ReplyWriter& reply, const Known& known, const std::string& name) {
  Fields fields = NodeFields(*known.leader, name, "master");
  const size_t others = known.members.size() - 1;
  const auto copies = std::count_if(known.members.begin(), known.members.end(), HoldsData);
  fields.emplace_back("role-reported", "master");
  fields.emplace_back("config-epoch", std::to_string(host.replication().term()));
  fields.emplace_back("num-slaves", std::to_string(copies - 1));
  fields.emplace_back("num-other-sentinels", std::to_string(others));
  fields.emplace_back("quorum", std::to_string(known.quorum));
  fields.emplace_back("failover-timeout", "0");
  fields.emplace_back("parallel-syncs", "1");
  ReplyFields(reply, fields);
}

enum class LeaderQuestion : uint8_t { kAddress, kMaster, kMasters };

void ReplyLeader(Host& host, TaskContext& context, LeaderQuestion question,
                 const std::string& name) {
  const SetNode* const set = host.replication().set();
  if (set == nullptr) return context.Fail("ERR this node has left its replica set");
  const Known known = WhatIsKnown(host, *set);
  const NodeAddress address = known.leader == nullptr ? NodeAddress{} : known.leader->address;
  ReplyWriter& reply = context.reply;
  switch (question) {
    case LeaderQuestion::kAddress:
      if (known.leader == nullptr) return reply.NullArray();
      reply.Array(2);
      reply.Bulk(address.host);
      return reply.Bulk(std::to_string(address.port));
    case LeaderQuestion::kMaster:
      if (known.leader == nullptr) return context.Fail("ERR no leader: " + set->NoLeaderText());
      return ReplyMaster(host, reply, known, name);
    case LeaderQuestion::kMasters:
      reply.Array(known.leader == nullptr ? 0 : 1);
      if (known.leader != nullptr) ReplyMaster(host, reply, known, known.name);
      return;
  }
}

// Waits until this node leads, or the leader has been heard since the question was asked: a client
// that asks because its leader has just died would be sent there again, and some of them stay. Then
// the answer is the next leader, once there is one, or, after a time, what is known.
class LeaderTask final : public BlockedTask {
 public:
  // As long as an election takes, and less than clients wait for a Sentinel.
  static constexpr int64_t kMicrosMax{900'000};

  LeaderTask(Host& host, LeaderQuestion question, std::string name, int64_t deadline_micros)
      : host_(host),
        question_(question),
        name_(std::move(name)),
        deadline_micros_(deadline_micros),
        heard_micros_(host.replication().set()->set().heard_leader_micros()) {}

  TaskProgress Step(TaskContext& context) override {
    const SetNode* const set = host_.replication().set();
    const bool waits = set != nullptr && !IsCertain(*set) && context.now_micros < deadline_micros_;
    if (waits && !unblocked() && !context.budget.unlimited()) return TaskProgress::kWaiting;
    if (unblocked() == UnblockReason::kError) {
      context.Fail(kUnblockedError);
    } else {
      ReplyLeader(host_, context, question_, name_);
    }
    return TaskProgress::kDone;
  }

  bool IsCertain(const SetNode& set) const {
    if (set.open()) return true;
    return set.set().heard_leader_micros() != heard_micros_ &&
           WhatIsKnown(host_, set).leader != nullptr;
  }

 private:
  Host& host_;
  const LeaderQuestion question_;
  const std::string name_;
  const int64_t deadline_micros_;
  const int64_t heard_micros_;
};

void AskForLeader(CommandContext& ctx, LeaderQuestion question, std::string name) {
  ctx.Continue(std::make_unique<LeaderTask>(ctx.host, question, std::move(name),
                                            ctx.now_micros + LeaderTask::kMicrosMax));
}

void CmdAddress(CommandContext& ctx) {
  if (SetOf(ctx) == nullptr) return;
  if (!IsCalled(ctx.host, ctx.args[2])) return ctx.reply.NullArray();
  AskForLeader(ctx, LeaderQuestion::kAddress, {});
}

void CmdMaster(CommandContext& ctx) {
  if (SetOf(ctx) == nullptr) return;
  if (!IsCalled(ctx.host, ctx.args[2])) return ctx.Fail(kNoSuchMaster);
  AskForLeader(ctx, LeaderQuestion::kMaster, std::string(ctx.args[2]));
}

void CmdMasters(CommandContext& ctx) {
  if (SetOf(ctx) != nullptr) AskForLeader(ctx, LeaderQuestion::kMasters, {});
}

// --- the others

void CmdReplicas(CommandContext& ctx) {
  const SetNode* const set = SetOf(ctx);
  if (set == nullptr) return;
  const Known known = WhatIsKnown(ctx.host, *set);
  if (!IsCalled(ctx.host, ctx.args[2])) return ctx.Fail(kNoSuchMaster);
  const auto is_replica = [&](const MemberFigures& member) {
    return &member != known.leader && HoldsData(member);
  };
  ctx.reply.Array(
      static_cast<size_t>(std::count_if(known.members.begin(), known.members.end(), is_replica)));
  for (const MemberFigures& member : known.members) {
    if (!is_replica(member)) continue;
    Fields fields = NodeFields(member, TextOf(member.address), "slave");
    const bool linked = known.leader != nullptr && member.state != "down";
    fields.emplace_back("role-reported", "slave");
    fields.emplace_back("master-link-status", linked ? "ok" : "err");
    fields.emplace_back("master-host", known.leader == nullptr ? "?" : known.leader->address.host);
    fields.emplace_back("master-port",
                        std::to_string(known.leader == nullptr ? 0 : known.leader->address.port));
    fields.emplace_back("slave-priority", std::to_string(member.priority));
    fields.emplace_back("slave-repl-offset", std::to_string(member.lsn.seq));
    fields.emplace_back("replica-announced", "1");
    ReplyFields(ctx.reply, fields);
  }
}

void CmdSentinels(CommandContext& ctx) {
  const SetNode* const set = SetOf(ctx);
  if (set == nullptr) return;
  const Known known = WhatIsKnown(ctx.host, *set);
  if (!IsCalled(ctx.host, ctx.args[2])) return ctx.Fail(kNoSuchMaster);
  const uint64_t own = ctx.host.replication().node();
  std::vector<const MemberFigures*> others;
  for (const MemberFigures& member : known.members)
    if (member.node != own) others.push_back(&member);
  ctx.reply.Array(others.size());
  for (const MemberFigures* member : others)
    ReplyFields(ctx.reply, NodeFields(*member, RunIdOf(*member), "sentinel"));
}

void CmdCkQuorum(CommandContext& ctx) {
  const SetNode* const set = SetOf(ctx);
  if (set == nullptr) return;
  const Known known = WhatIsKnown(ctx.host, *set);
  if (!IsCalled(ctx.host, ctx.args[2])) return ctx.Fail(kNoSuchMaster);
  const std::string usable = std::to_string(known.usable) + " usable Sentinels. ";
  if (known.usable < known.quorum || known.members.empty()) {
    return ctx.Fail("NOQUORUM " + usable +
                    "Not enough available Sentinels to reach the majority and authorize a "
                    "failover");
  }
  ctx.reply.SimpleString("OK " + usable + "Quorum and failover authorization can be reached");
}

void CmdMyId(CommandContext& ctx) {
  if (SetOf(ctx) == nullptr) return;
  MemberFigures own;
  own.node = ctx.host.replication().node();
  ctx.reply.Bulk(RunIdOf(own));
}

// As Sentinel says it.
std::string WhyNoFailover(const Status& status) {
  if (status.text() == "FAILOVER requires connected replicas.")
    return "NOGOODSLAVE No suitable replica to promote";
  if (status.text() == "FAILOVER already in progress.")
    return "INPROG Failover already in progress";
  return status.ToString();
}

void CmdSentinelFailover(CommandContext& ctx) {
  if (SetOf(ctx) == nullptr) return;
  if (!IsCalled(ctx.host, ctx.args[2])) return ctx.Fail(kNoSuchMaster);
  ASSIGN_OR_REPLY(ctx, const uint64_t ticket,
                  ctx.host.replication().set()->BeginOrder({.kind = OrderKind::kFailover}));
  ctx.Continue(std::make_unique<OrderTask>(ctx.host, ticket, WhyNoFailover));
}

constexpr uint32_t kSentinelFlags{kNoScript | kLoading | kStale};

constexpr Command kSentinelRows[] = {
    {.name = "get-master-addr-by-name",
     .arity = 3,
     .flags = kSentinelFlags,
     .group = "server",
     .summary = "Returns host and port of the replica set's leader.",
     .complexity = "O(n) where n is the number of nodes",
     .syntax = "name",
     .handler = CmdAddress},
    {.name = "master",
     .arity = 3,
     .flags = kSentinelFlags,
     .group = "server",
     .summary = "Returns what is known of the leader.",
     .complexity = "O(n) where n is the number of nodes",
     .syntax = "name",
     .handler = CmdMaster},
    {.name = "masters",
     .arity = 2,
     .flags = kSentinelFlags,
     .group = "server",
     .summary = "Returns a list of what is known of the leader, empty without one.",
     .complexity = "O(n) where n is the number of nodes",
     .handler = CmdMasters},
    {.name = "replicas",
     .arity = 3,
     .flags = kSentinelFlags,
     .group = "server",
     .summary = "Returns what is known of the other nodes.",
     .complexity = "O(n) where n is the number of nodes",
     .syntax = "name",
     .handler = CmdReplicas},
    {.name = "slaves",
     .arity = 3,
     .flags = kSentinelFlags,
     .group = "server",
     .summary = "The old name of SENTINEL REPLICAS.",
     .complexity = "O(n) where n is the number of nodes",
     .syntax = "name",
     .handler = CmdReplicas},
    {.name = "sentinels",
     .arity = 3,
     .flags = kSentinelFlags,
     .group = "server",
     .summary = "Returns the other nodes, as Sentinels.",
     .complexity = "O(n) where n is the number of nodes",
     .syntax = "name",
     .handler = CmdSentinels},
    {.name = "ckquorum",
     .arity = 3,
     .flags = kSentinelFlags,
     .group = "server",
     .summary = "Tells whether a majority of the nodes is there.",
     .complexity = "O(n) where n is the number of nodes",
     .syntax = "name",
     .handler = CmdCkQuorum},
    {.name = "myid",
     .arity = 2,
     .flags = kSentinelFlags,
     .group = "server",
     .summary = "Returns the id of this node.",
     .complexity = "O(1)",
     .handler = CmdMyId},
    {.name = "failover",
     .arity = 3,
     .flags = kSentinelFlags | kNoMulti | kBlocking,
     .group = "server",
     .summary = "Has the leader hand over to another node.",
     .complexity = "O(n) where n is the number of nodes",
     .syntax = "name",
     .handler = CmdSentinelFailover},
    HelpSubcommand("server"),
};

constexpr Command kSentinelCommands[] = {
    {.name = "sentinel",
     .arity = -2,
     .group = "server",
     .summary = "Tells clients that know Redis' Sentinel who leads the replica set.",
     .complexity = "Depends on the subcommand.",
     .subcommands = kSentinelRows},
};

}  // namespace

std::span<const Command> SentinelCommands() { return kSentinelCommands; }

}  // namespace cellar
