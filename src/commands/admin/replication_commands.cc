// REPLICAOF, SLAVEOF, ROLE, WAIT, WAITAOF, FAILOVER, and PEER, by which another node makes its
// connection a link. Words and replies are Redis'; what is behind them is replica/replication.h.
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "commands/acl/acl.h"
#include "commands/acl/acl_check.h"
#include "commands/admin/admin_commands.h"
#include "commands/arguments/address_arguments.h"
#include "commands/clients/acl_sessions.h"
#include "commands/session/command_context.h"
#include "commands/session/host.h"
#include "commands/session/services.h"
#include "replica/replication.h"
#include "resp/decimal.h"
#include "store/store.h"

namespace cellar {
namespace {

constexpr int64_t kMillisMax{std::numeric_limits<int64_t>::max() / 4000};

Result<uint16_t> PortArgument(std::string_view word, std::string_view error) {
  const std::optional<uint16_t> port = ParsePort(word);
  if (!port) return Status::Error(ErrorCode::kErr, std::string(error));
  return *port;
}

void CmdReplicaOf(CommandContext& ctx) {
  if (EqualsIgnoreCase(ctx.args[1], "no") && EqualsIgnoreCase(ctx.args[2], "one")) {
    REPLY_IF_ERROR(ctx, ctx.host.FollowLeader("", 0));
    return ctx.reply.Ok();
  }
  ASSIGN_OR_REPLY(ctx, const uint16_t port, PortArgument(ctx.args[2], "Invalid master port"));
  if (!IsHostWord(ctx.args[1])) return ctx.Fail("ERR Invalid master host");
  const Replication& replication = ctx.host.replication();
  const NodeAddress leader{std::string(ctx.args[1]), port};
  // Nothing changes, and the link that there is goes on.
  if (replication.set() == nullptr && !replication.is_leader() && replication.leader() == leader)
    return ctx.reply.SimpleString("OK Already connected to specified master");
  REPLY_IF_ERROR(ctx, ctx.host.FollowLeader(leader.host, port));
  ctx.reply.Ok();
}

void CmdRole(CommandContext& ctx) {
  const Replication& replication = ctx.host.replication();
  const auto offset = static_cast<int64_t>(ctx.host.last_lsn().seq);
  if (const auto upstream = replication.upstream()) {
    ctx.reply.Array(5);
    ctx.reply.Bulk("slave");
    ctx.reply.Bulk(upstream->address.host);
    ctx.reply.Integer(upstream->address.port);
    ctx.reply.Bulk(LinkStateWord(upstream->state));
    const bool tells = upstream->state == LinkState::kConnected || replication.set() != nullptr;
    return ctx.reply.Integer(tells ? offset : -1);
  }
  ctx.reply.Array(3);
  ctx.reply.Bulk("master");
  ctx.reply.Integer(offset);
  std::vector<FollowerFigures> followers = replication.followers();
  std::erase_if(followers, [](const FollowerFigures& one) { return one.state != "online"; });
  ctx.reply.Array(followers.size());
  for (const FollowerFigures& follower : followers) {
    ctx.reply.Array(3);
    ctx.reply.Bulk(follower.address.host);
    ctx.reply.BulkInteger(follower.address.port);
    ctx.reply.BulkInteger(static_cast<int64_t>(follower.durable.seq));
  }
}

// --- WAIT, WAITAOF

// What a client waits for: a record on so many disks.
struct Wanted {
  Lsn lsn;
  bool local{false};  // on the own one
  size_t followers{0};
  bool tells_local{false};  // WAITAOF
};

bool IsMet(Host& host, const Wanted& wanted) {
  return (!wanted.local || host.durable_lsn() >= wanted.lsn) &&
         host.replication().FollowersWith(wanted.lsn) >= wanted.followers;
}

void ReplyWaited(Host& host, ReplyWriter& reply, const Wanted& wanted) {
  if (wanted.tells_local) {
    reply.Array(2);
    reply.Integer(wanted.local && host.durable_lsn() >= wanted.lsn ? 1 : 0);
  }
  reply.Unsigned(host.replication().FollowersWith(wanted.lsn));
}

// Until all of that is so, or the time is over.
class WaitTask final : public BlockedTask {
 public:
  WaitTask(Host& host, const Wanted& wanted, int64_t deadline_micros)
      : host_(host), wanted_(wanted), deadline_micros_(deadline_micros) {}

  TaskProgress Step(TaskContext& context) override {
    const bool leads = host_.replication().is_leader();
    const bool waits = leads && !IsMet(host_, wanted_) && context.now_micros < deadline_micros_;
    if (waits && !unblocked() && !context.budget.unlimited()) return TaskProgress::kWaiting;
    if (unblocked() == UnblockReason::kError) {
      context.Fail(kUnblockedError);
    } else if (!leads) {
      context.Fail(
          "UNBLOCKED force unblock from blocking operation, instance state "
          "changed (master -> replica?)");
    } else {
      ReplyWaited(host_, context.reply, wanted_);
    }
    return TaskProgress::kDone;
  }

 private:
  Host& host_;
  const Wanted wanted_;
  const int64_t deadline_micros_;
};

void Wait(CommandContext& ctx, const Wanted& wanted, std::string_view timeout_word) {
  const auto timeout = IntegerArgument(timeout_word);
  if (!timeout.ok() || *timeout > kMillisMax) {
    return ctx.Fail("ERR timeout is not an integer or out of range");
  }
  if (*timeout < 0) return ctx.Fail("ERR timeout is negative");
  if (wanted.local && !ctx.host.services().config.appendonly) {
    return ctx.Fail("ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.");
  }
  // Nothing waits inside EXEC: as in Redis the reply tells how far it is by now.
  if (IsMet(ctx.host, wanted) || ctx.session.exec_running)
    return ReplyWaited(ctx.host, ctx.reply, wanted);
  // Nobody may wait for a sync that is not under way.
  if (wanted.local) {
    ctx.store().Flush();
    ctx.store().journal().RequestSync();
  }
  if (wanted.followers > 0) ctx.host.replication().AskForSync();
  const int64_t deadline =
      *timeout == 0 ? std::numeric_limits<int64_t>::max() : ctx.now_micros + *timeout * 1000;
  ctx.Continue(std::make_unique<WaitTask>(ctx.host, wanted, deadline));
}

void CmdWait(CommandContext& ctx) {
  if (!ctx.host.replication().is_leader()) {
    return ctx.Fail(
        "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if "
        "a replica is configured to be writable (which is not the default) writes to replicas are "
        "just local and are not propagated.");
  }
  ASSIGN_OR_REPLY(ctx, const int64_t followers, IntegerArgument(ctx.args[1]));
  Wait(ctx,
       {.lsn = ctx.host.last_lsn(),
        .followers = static_cast<size_t>(std::max<int64_t>(followers, 0))},
       ctx.args[2]);
}

void CmdWaitAof(CommandContext& ctx) {
  constexpr std::string_view kNegative{"value is out of range, must be positive"};
  ASSIGN_OR_REPLY(ctx, const int64_t local, IntegerArgument(ctx.args[1], 0, 1, kNegative));
  ASSIGN_OR_REPLY(ctx, const int64_t followers,
                  IntegerArgument(ctx.args[2], 0, std::numeric_limits<int64_t>::max(), kNegative));
  if (!ctx.host.replication().is_leader()) {
    return ctx.Fail(
        "ERR WAITAOF cannot be used with replica instances. Please also note that writes to "
        "replicas are just local and are not propagated.");
  }
  Wait(ctx,
       {.lsn = ctx.host.last_lsn(),
        .local = local > 0,
        .followers = static_cast<size_t>(followers),
        .tells_local = true},
       ctx.args[3]);
}

// --- FAILOVER

struct FailoverWords {
  std::optional<NodeAddress> to;
  bool force{false};
  bool abort{false};
  int64_t timeout_millis{0};
};

Result<FailoverWords> ParseFailover(ArgumentCursor at) {
  FailoverWords words;
  while (!at.done()) {
    if (!words.abort && at.TakeWord("ABORT")) {
      words.abort = true;
    } else if (words.timeout_millis == 0 && at.left() >= 2 && at.TakeWord("TIMEOUT")) {
      ASSIGN_OR_RETURN(words.timeout_millis, at.TakeInteger());
      if (words.timeout_millis <= 0 || words.timeout_millis > kMillisMax)
        return Status::Error(ErrorCode::kErr, "FAILOVER timeout must be greater than 0");
    } else if (!words.to && at.left() >= 3 && at.TakeWord("TO")) {
      const std::string host(at.Take());
      ASSIGN_OR_RETURN(const uint16_t port,
                       PortArgument(at.Take(), "value is not an integer or out of range"));
      words.to = NodeAddress{host, port};
    } else if (words.to && !words.force && at.TakeWord("FORCE")) {
      words.force = true;
    } else {
      return Status::SyntaxError();
    }
  }
  if (words.abort && (words.to || words.timeout_millis > 0)) return Status::SyntaxError();
  if (words.force && words.timeout_millis == 0) {
    return Status::Error(ErrorCode::kErr,
                         "FAILOVER with force option requires both a timeout and target HOST and "
                         "IP.");
  }
  return words;
}

void CmdFailover(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, const FailoverWords words, ParseFailover(ArgumentCursor(ctx.args, 1)));
  Replication& replication = ctx.host.replication();
  REPLY_IF_ERROR(ctx, words.abort ? replication.AbortFailover()
                                  : replication.BeginFailover(words.to, words.timeout_millis * 1000,
                                                              words.force));
  ctx.reply.Ok();
}

// Who may do everything else has not been asked for yet, since PEER must be named.
void CmdPeer(CommandContext& ctx) {
  const User& user =
      ctx.session.user != nullptr ? *ctx.session.user : ctx.host.services().acl.default_user();
  const CommandEntry& command = *ctx.session.last_command;
  const AclVerdict verdict = CheckCommand(user, command, ctx.args, ctx.session.keyspace);
  if (verdict.denied != Denied::kNothing) {
    LogDenied(ctx.host, ctx.session, verdict.denied, command.full_name, user.name);
    return ctx.Fail(DeniedText(verdict.denied, command));
  }
  ASSIGN_OR_REPLY(ctx, const std::string greeting,
                  ctx.host.AcceptPeer(ctx.session, ctx.args[1], ctx.args[2], ctx.args[3],
                                      ctx.args[4], ctx.args[5]));
  ctx.reply.SimpleString(greeting);
}

void SetReadsStale(CommandContext& ctx, bool stale) {
  if (!ctx.host.replication().in_set())
    return ctx.Fail("ERR This instance has cluster support disabled");
  ctx.session.switches.reads_stale = stale;
  ctx.reply.Ok();
}

void CmdReadonly(CommandContext& ctx) { SetReadsStale(ctx, true); }
void CmdReadwrite(CommandContext& ctx) { SetReadsStale(ctx, false); }

constexpr Command kReplicationCommands[] = {
    {.name = "readonly",
     .arity = 1,
     .flags = kLoading | kStale | kFast,
     .categories = kCategoryConnection,
     .group = "cluster",
     .summary = "Lets this connection's reads, on a follower of a set, be older than its writes.",
     .complexity = "O(1)",
     .handler = CmdReadonly},
    {.name = "readwrite",
     .arity = 1,
     .flags = kLoading | kStale | kFast,
     .categories = kCategoryConnection,
     .group = "cluster",
     .summary = "Ends what READONLY has begun.",
     .complexity = "O(1)",
     .handler = CmdReadwrite},
    {.name = "replicaof",
     .arity = 3,
     .flags = kAdmin | kNoScript | kStale,
     .group = "server",
     .summary = "Makes the server a replica of another one, or, with NO ONE, a master again.",
     .complexity = "O(1)",
     .syntax = "(NO ONE | host port)",
     .handler = CmdReplicaOf},
    {.name = "slaveof",
     .arity = 3,
     .flags = kAdmin | kNoScript | kStale,
     .group = "server",
     .summary = "The old name of REPLICAOF.",
     .complexity = "O(1)",
     .syntax = "(NO ONE | host port)",
     .handler = CmdReplicaOf},
    {.name = "role",
     .arity = 1,
     .flags = kNoScript | kLoading | kStale | kFast,
     .categories = kCategoryAdmin | kCategoryDangerous,
     .group = "server",
     .summary = "Returns the server's role in replication, and who is at the other end.",
     .complexity = "O(n) where n is the number of replicas",
     .handler = CmdRole},
    {.name = "wait",
     .arity = 3,
     .flags = kNoScript | kBlocking,
     .categories = kCategoryConnection,
     .group = "generic",
     .summary = "Waits until replicas have all that was written so far on their disks.",
     .complexity = "O(n) where n is the number of replicas",
     .syntax = "numreplicas timeout",
     .handler = CmdWait},
    {.name = "waitaof",
     .arity = 4,
     .flags = kNoScript | kBlocking,
     .categories = kCategoryConnection,
     .group = "generic",
     .summary = "Waits until all writes so far are in the log on disk, here and on replicas.",
     .complexity = "O(n) where n is the number of replicas",
     .syntax = "numlocal numreplicas timeout",
     .handler = CmdWaitAof},
    {.name = "failover",
     .arity = -1,
     .flags = kAdmin | kNoScript | kStale,
     .group = "server",
     .summary = "Hands over to a replica that has everything, and follows it.",
     .complexity = "O(1)",
     .syntax = "[TO host port [FORCE]] [ABORT] [TIMEOUT milliseconds]",
     .handler = CmdFailover},
    {.name = "peer",
     .arity = 6,
     .flags = kAdmin | kNoScript | kNoMulti,
     .categories = kCategoryReplication,
     .group = "server",
     .summary = "Turns the connection into a link to another node of Cellar, which sends it.",
     .complexity = "O(1)",
     .syntax = "version cluster node purpose features",
     .handler = CmdPeer},
};

}  // namespace

std::span<const Command> ReplicationCommands() { return kReplicationCommands; }

}  // namespace cellar
