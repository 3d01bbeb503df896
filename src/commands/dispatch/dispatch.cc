// See dispatch.h.
// A request goes through ExecuteInOrder, ExecuteFound, Admit if something may hinder it (or the
// lane of commands of one row, if only other nodes may), Run and Finish. A command of EXEC comes in
// by Call, since it was admitted when it was queued. A task is left behind by Run and ends by
// StepTask, FinishTask and Finish.
#include "commands/dispatch/dispatch.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/assert.h"
#include "base/inline.h"
#include "base/os/log.h"
#include "base/text/ascii.h"
#include "commands/acl/acl_check.h"
#include "commands/arguments/repr.h"
#include "commands/catalog/command_form.h"
#include "commands/catalog/command_hints.h"
#include "commands/catalog/command_keys.h"
#include "commands/catalog/secrets.h"
#include "commands/clients/acl_sessions.h"
#include "commands/clients/authentication.h"
#include "commands/dispatch/command_passing.h"
#include "commands/dispatch/monitor_sight.h"
#include "commands/session/command_context.h"
#include "commands/session/pubsub.h"
#include "commands/session/services.h"
#include "commands/session/tracking.h"
#include "commands/session/transaction.h"
#include "replica/replication.h"
#include "replica/set_node.h"
#include "store/store.h"

namespace cellar {
namespace {

// Redis shows at most this much of the arguments of an unknown command.
constexpr size_t kUnknownBytesMax{128};

// Of a reply in parts: what may wait to be sent before the next part is asked for.
constexpr size_t kStreamedBytesMax{1024 * 1024};

// A browser tricked into talking to us sends these as its first word (cross-protocol scripting).
bool IsHttp(std::string_view name) {
  return EqualsIgnoreCase(name, "post") || EqualsIgnoreCase(name, "host:");
}

// Once a minute at most, so that an attack does not fill the log.
void TellOfAttack(ServerStats& stats, const Session& session, int64_t now_micros) {
  constexpr int64_t kIntervalMicros{60'000'000};
  if (now_micros - stats.attack_told_micros < kIntervalMicros) return;
  stats.attack_told_micros = now_micros;
  Log(LogSeverity::kWarning,
      fmt::format("Possible SECURITY ATTACK: {} sends POST or Host:, like a web client tricked "
                  "into talking to this port; connection closed",
                  session.address));
}

// What handlers are held to in debug builds: the reply waits for the newest change of every table
// that the command names, or of the schema where there is none. A task says so at its end.
[[maybe_unused]] bool DependsOnItsTables(const CommandContext& context) {
  if (context.outcome.failed() || context.host.loading()) return true;
  if (context.session.task != nullptr && context.command.Has(kWrite)) return true;
  Store& store = context.store();
  const std::vector<size_t> keys = KeyPositions(context.command.row->keys, context.args);
  return std::all_of(keys.begin(), keys.end(), [&](size_t at) {
    const Table* const table = store.FindTableIfAny(context.session.keyspace, context.args[at]);
    return context.depends_on >= (table != nullptr ? table->last_lsn() : store.schema_lsn());
  });
}

// Whether there is nothing to do for it in a set that has no table yet, and is to have none of its
// own.
bool ConcernsTable(const CommandEntry& command) {
  return !command.row->keys.none() && command.reach != CommandReach::kNode &&
         command.reach != CommandReach::kUsers;
}

std::string AwaitingText(const SetNode& set, uint64_t own_node) {
  const SetMember* const own = set.set().members().Find(own_node);
  const auto leader = set.KnownLeader();
  std::string at = "an unknown address";
  if (leader)
    at = fmt::format("{}:{}", leader->host, leader->port);
  else if (own != nullptr)
    at = fmt::format("{}:{}", own->host, own->port);
  return fmt::format("CLUSTERDOWN set at {} waits for CLUSTER ADMIT", at);
}

// What outcomes are held against.
[[maybe_unused]] bool BeginsWithError(const OutputBuffer& output, size_t position) {
  return output.size() > position && output.data()[position] == '-';
}

// Of an EXEC: its transaction is over, and what is refused is not that it was queued.
bool EndsPlainly(std::string_view error) {
  return error.starts_with("REDIRECT ") || error.starts_with("CROSSSET ");
}

bool IsExec(const CommandEntry& command) { return command.Is(CommandRole::kExec); }

// Whether the command has one of the flags; EXEC has those of what it is about to run.
bool Does(const Session& session, const CommandEntry& command, uint32_t flags) {
  if (!session.in_multi() || !IsExec(command)) [[likely]]
    return command.Has(flags);
  const auto& queue = session.transaction->queue;
  return std::any_of(queue.begin(), queue.end(),
                     [flags](const QueuedCommand& queued) { return queued.command->Has(flags); });
}

CommandPassing::Doing DoingOf(const Session& session, const CommandEntry& command) {
  return {.writes = Does(session, command, kWrite), .reads = Does(session, command, kReadonly)};
}

// Another node, by which this one gets to know the users that there are. AcceptPeer asks who it is.
bool IsNodeAtDoor(const Host& host, const Session& session, const CommandEntry& command) {
  const Acl& acl = host.services().acl;
  return acl.taken_over().holds && command.Is(CommandRole::kPeer) &&
         session.user_name == kDefaultUser && acl.Find(kDefaultUser)->enabled &&
         acl.Find(kDefaultUser)->no_password;
}

// While the users of the set are not known, another node that has logged in does what it has come
// for and nothing else.
bool IsLetIn(const Host& host, const Session& session, const CommandEntry& command) {
  if (command.Has(kNoAuth) || IsNodeAtDoor(host, session, command)) return true;
  if (!session.authenticated) return false;
  return !host.services().acl.taken_over().holds || session.peer != PeerRole::kNone ||
         command.Is(CommandRole::kPeer);
}

// Of a client that tracks, reads are answered where it is told of changes, and as the leader would.
bool AsksBeforeReads(const Config& config, const Session& session) {
  if (static_cast<ReplicaReads>(config.replica_reads) == ReplicaReads::kLinearizable) return true;
  if (!config.cluster_forward) return false;
  const ClusterReads reads = ClusterReadsOf(config);
  return reads == ClusterReads::kLinearizable ||
         (reads == ClusterReads::kLeader && session.tracking != nullptr &&
          !session.switches.reads_stale);
}

}  // namespace

std::string Dispatcher::DebugRefusal(const Session& session, const CommandEntry& command) const {
  if (!command.Has(kDebugging)) return {};
  const auto access = static_cast<DebugAccess>(host_.services().config.enable_debug_command);
  const bool local = session.unix_socket || session.address.starts_with("127.") ||
                     session.address.starts_with("[::1]");
  if (access == DebugAccess::kYes || (access == DebugAccess::kLocal && local)) return {};
  return "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", "
         "you can run it from a local connection, otherwise you need to set this option in the "
         "configuration file, and then restart the server.";
}

// Redis' texts, and behind them what may have been meant.
std::string Dispatcher::UnknownCommand(const Session& session, const CommandEntry* container,
                                       Arguments args) const {
  CELLAR_ASSERT(container == nullptr || args.size() > 1);
  const auto limited = [](std::string_view word) {
    return std::string(word.substr(0, kUnknownBytesMax));
  };
  if (container != nullptr) {
    std::string refusal = DebugRefusal(session, *container);
    if (!refusal.empty()) return refusal;
    return "ERR unknown subcommand '" + limited(args[1]) + "'. Try " +
           UpperText(container->row->name) + " HELP." + SubcommandHint(*container, args[1]);
  }
  std::string text = "ERR unknown command '" + limited(args[0]) + "', with args beginning with: ";
  std::string shown;
  for (size_t i = 1; i < args.size() && shown.size() < kUnknownBytesMax; ++i) {
    shown += "'" + std::string(args[i].substr(0, kUnknownBytesMax - shown.size())) + "' ";
  }
  return text + shown + CommandHint(host_.services().commands, args[0]);
}

// Clients see the first reason alone, so the order is part of the contract (dispatch.h). Whoever
// has not authenticated learns nothing, not even how many arguments a command takes.
std::string Dispatcher::Refusal(Session& session, const CommandEntry& command, Arguments args,
                                Way* way) {
  if (!IsLetIn(host_, session, command)) return std::string(UnauthenticatedText(host_));
  if (!command.Takes(args.size())) {
    return "ERR wrong number of arguments for '" + command.full_name + "' command" +
           FormBehindError(command);
  }
  if (std::string refusal = DebugRefusal(session, command); !refusal.empty()) return refusal;
  const bool is_judged =
      session.switches.queues_judged && session.in_multi() && !command.Has(kImmediate);
  if (session.restricted && !is_judged) [[unlikely]] {
    uint64_t selectors = 0;
    if (std::string refusal = AclRefusal(session, command, args, &selectors); !refusal.empty()) {
      return refusal;
    }
  }
  const Config& config = host_.services().config;
  if (config.maxmemory > 0 && Does(session, command, kDenyOom) &&
      host_.memory_used_bytes() > static_cast<uint64_t>(config.maxmemory)) {
    return "OOM command not allowed when used memory > 'maxmemory'.";
  }
  if (host_.loading() && !command.Has(kLoading)) {
    return "LOADING Cellar is loading the dataset in memory";
  }
  if (host_.awaits_cluster() && ConcernsTable(command)) [[unlikely]]
    return AwaitingText(*host_.replication().set(), host_.replication().node());
  *way = WayOf(session, command, args);
  const bool is_closed = host_.closed() && !command.Has(kStale) &&
                         (Does(session, command, kWrite) || Does(session, command, kReadonly));
  if (is_closed) [[unlikely]]
    return "CLUSTERDOWN recovery: " + host_.services().cluster_view.closed;
  if (host_.restrains_writes() && *way == Way::kHere) [[unlikely]] {
    if (std::string refusal = ReplicaRefusal(session, command); !refusal.empty()) return refusal;
  }
  if (session.version == RespVersion::k2 && InSubscribedMode(session)) {
    static constexpr std::string_view kAllowed[] = {"ping",         "subscribe",   "psubscribe",
                                                    "ssubscribe",   "unsubscribe", "punsubscribe",
                                                    "sunsubscribe", "quit",        "reset"};
    bool allowed = false;
    for (const std::string_view name : kAllowed) allowed = allowed || name == command.full_name;
    if (!allowed) {
      return "ERR Can't execute '" + command.full_name +
             "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this "
             "context";
    }
  }
  if (session.in_multi() && command.Has(kNoMulti)) {
    return "ERR Command not allowed inside a transaction";
  }
  // A change of role cannot be undone.
  const bool changes_role = command.Is(CommandRole::kFollowing);
  if (changes_role && session.in_multi() && session.transaction->atomic) [[unlikely]]
    return "ERR Command not allowed inside MULTI ATOMIC";
  return {};
}

// What a follower does not answer, and a leader that has lost its followers.
std::string Dispatcher::ReplicaRefusal(const Session& session, const CommandEntry& command) const {
  if (host_.loading()) return {};
  const Replication& replication = host_.replication();
  const Config& config = host_.services().config;
  const bool writes = Does(session, command, kWrite);
  if (replication.set() != nullptr) return SetRefusal(*replication.set(), session, command);
  if (replication.is_leader()) {
    const size_t good = replication.FollowersWithin(config.min_replicas_max_lag * 1'000'000);
    const bool enough = good >= static_cast<size_t>(config.min_replicas_to_write);
    return !writes || enough ? "" : "NOREPLICAS Not enough good replicas to write.";
  }
  const auto refusal = [&leader = replication.leader()] {
    return "READONLY You can't write against a read only replica. The master is " + leader.host +
           ":" + std::to_string(leader.port);
  };
  if (writes) return refusal();
  if (!Does(session, command, kReadonly)) return {};
  if (replication.awaits_first_copy()) return "LOADING Cellar is loading the dataset in memory";
  if (static_cast<ReplicaReads>(config.replica_reads) != ReplicaReads::kStale) return refusal();
  if (config.replica_max_lag == 0) return {};
  const auto upstream = replication.upstream();
  CELLAR_ASSERT(upstream.has_value());  // neither a leader nor in a set
  const int64_t lag = upstream->lag_micros;
  // Below zero: how far it is behind is not known, which is as bad as too far.
  if (lag >= 0 && lag <= config.replica_max_lag * 1000) return {};
  return "MASTERDOWN Link with MASTER is down and replica-max-lag is exceeded";
}

// What a member of a replica set does not answer that does not lead it.
std::string Dispatcher::SetRefusal(const SetNode& set, const Session& session,
                                   const CommandEntry& command) const {
  const Config& config = host_.services().config;
  const bool writes = Does(session, command, kWrite);
  if (set.open()) {
    // While it hands over, writes are held as under CLIENT PAUSE.
    const bool refuses = writes && !set.may_append() && !host_.writes_paused();
    if (refuses) return "CLUSTERDOWN no leader: handing over";
    if (writes && !set.has_room())
      return "MISCONF the disks of a majority of the replica set take no more";
    return {};
  }
  // A former leader: without another one nobody can say what of its last writes is to stay.
  const bool is_undecided = set.member().state_is_ahead() && !set.KnownLeader();
  if (!writes && !Does(session, command, kReadonly)) {
    // Their replies depend on the state all the same.
    const bool asks_state = command.Is(CommandRole::kSelect) || command.Is(CommandRole::kDigest);
    return asks_state && is_undecided ? "CLUSTERDOWN no leader: " + set.NoLeaderText() : "";
  }
  const auto how = static_cast<ReplicaReads>(config.replica_reads);
  const bool reads = !writes && !set.is_empty() && how != ReplicaReads::kNo;
  if (!reads || set.is_witness()) {
    const auto leader = set.KnownLeader();
    if (!leader) return "CLUSTERDOWN no leader: " + set.NoLeaderText();
    if (set.is_witness()) {
      return "CLUSTERDOWN this node is a witness, the leader is " + leader->host + ":" +
             std::to_string(leader->port);
    }
    return "READONLY You can't write against a read only replica. The leader is " + leader->host +
           ":" + std::to_string(leader->port);
  }
  if (set.member().state_is_void()) return "LOADING Cellar is loading the dataset in memory";
  if (AsksBeforeReads(config, session)) return {};
  if (is_undecided) return "CLUSTERDOWN no leader: " + set.NoLeaderText();
  if (config.replica_max_lag == 0) return {};
  const int64_t lag = set.lag_micros();
  if (lag >= 0 && lag <= config.replica_max_lag * 1000) return {};
  return "MASTERDOWN Link with MASTER is down and replica-max-lag is exceeded";
}

// Where a follower answers as the leader would: the command waits until the leader has been asked
// and what it says is applied here.
bool Dispatcher::MayRead(Session& session, CommandEntry& command) {
  SetNode* const set = host_.replication().set();
  const bool asks = set != nullptr && !set->open() && !set->is_witness() &&
                    AsksBeforeReads(host_.services().config, session) &&
                    (!session.in_multi() || IsExec(command)) && Does(session, command, kReadonly);
  const int64_t now = host_.clock().MonotonicMicros();
  // The first try asks the leader and waits. The command is then tried again, until the leader has
  // answered or patience is over.
  if (asks && session.read_ticket == 0) {
    session.read_ticket = set->RequestReadIndex();
    session.read_since_micros = now;
  } else if (!asks || set->read_ready() >= session.read_ticket) {
    session.read_ticket = 0;
    return true;
  } else if (now - session.read_since_micros > set->read_patience_micros()) {
    session.read_ticket = 0;
    Reject(session, &command, "CLUSTERDOWN no leader: " + set->NoLeaderText());
    return false;
  }
  session.postponed = true;
  return false;
}

Dispatcher::Way Dispatcher::WayOf(const Session& session, const CommandEntry& command,
                                  Arguments args) const {
  if (passing_ == nullptr || !host_.asks_nodes() || host_.loading()) return Way::kHere;
  if (passing_->Takes(session, command, args, DoingOf(session, command))) return Way::kPassedOn;
  return passing_->Scatters(session, command, args) ? Way::kScattered : Way::kHere;
}

void Dispatcher::PassOn(Session& session, CommandEntry& command, Arguments args) {
  std::string error;
  session.last_command = &command;
  switch (passing_->Pass(session, command, args, DoingOf(session, command), &error)) {
    case CommandPassing::Outcome::kPassed:
      ++session.commands;
      ++host_.services().stats.commands;
      EndSkipping(session);
      break;
    case CommandPassing::Outcome::kWaits:
      session.postponed = true;
      break;
    case CommandPassing::Outcome::kNull:
      DiscardTransaction(host_, session);
      ++session.commands;
      if (session.reply_mode == ReplyMode::kOn) session.writer().NullArray();
      EndSkipping(session);
      break;
    case CommandPassing::Outcome::kRefused:
      if (IsExec(command) && EndsPlainly(error)) DiscardTransaction(host_, session);
      Reject(session, &command, error);
      break;
  }
}

bool Dispatcher::HoldBack(Session& session) {
  if (passing_ == nullptr || !passing_->HoldsBack(session)) return false;
  session.postponed = true;
  return true;
}

bool Dispatcher::MayRunHere(Session& session, CommandEntry& command) {
  if (HoldBack(session)) return false;
  const bool queues = session.in_multi() && !command.Has(kImmediate);
  std::string error;
  if (queues || !host_.restrains_writes() || host_.loading() ||
      !passing_->Lags(session, command, DoingOf(session, command), &error))
    return true;
  if (error.empty()) {
    session.postponed = true;
  } else {
    Reject(session, &command, error);
  }
  return false;
}

void Dispatcher::EndSkipping(Session& session) {
  if (session.reply_mode == ReplyMode::kSkipping) session.reply_mode = ReplyMode::kOn;
}

std::string Dispatcher::AclRefusal(Session& session, const CommandEntry& command, Arguments args,
                                   uint64_t* selectors) {
  CELLAR_ASSERT(session.user != nullptr);
  const AclVerdict verdict = CheckCommand(*session.user, command, args, session.keyspace);
  *selectors = verdict.selectors;
  if (verdict.denied == Denied::kNothing) return {};
  session.last_command = &command;  // what the log's client-info tells
  const bool names_argument = verdict.denied != Denied::kCommand && verdict.argument > 0;
  LogDenied(host_, session, verdict.denied,
            names_argument ? args[verdict.argument] : std::string_view(command.full_name),
            session.user->name);
  return session.exec_running ? DeniedInExecText(verdict.denied)
                              : DeniedText(verdict.denied, command);
}

CELLAR_INLINE void Dispatcher::Handle(CommandHandler handler, CommandContext& context) {
  if (handler != nullptr) [[likely]] {
    handler(context);
  } else {
    context.Fail("ERR wrong number of arguments for '" + context.command.full_name + "' command");
  }
}

// Access control has two parts. What the words alone tell is asked here, before the handler; what
// depends on the families that the command turns out to touch, the handler asks through `rights`.
// Only refusals of the second kind have to be looked for in the reply.
void Dispatcher::HandleRestricted(CommandHandler handler, CommandContext& context) {
  Session& session = context.session;
  CELLAR_ASSERT(session.user != nullptr);
  CELLAR_ASSERT(context.rights == nullptr);
  uint64_t selectors = 0;
  if (session.exec_running) {
    // What was asked when the command was queued may have changed.
    const std::string refusal = AclRefusal(session, context.command, context.args, &selectors);
    if (!refusal.empty()) return context.Fail(refusal);
  } else {
    selectors =
        CheckCommand(*session.user, context.command, context.args, session.keyspace).selectors;
  }
  CommandRights rights(*session.user, selectors);
  const std::vector<size_t> keys = KeyPositions(context.command.row->keys, context.args);
  if (!keys.empty()) rights.SetTable(session.keyspace, context.args[keys[0]]);
  context.rights = &rights;
  Handle(handler, context);
  context.rights = nullptr;  // and the user may be gone
  if (context.outcome.failed() && ErrorWordOf(context.outcome.error()) == "NOPERM") {
    const std::string& refused = rights.refused();
    LogDenied(host_, session, Denied::kKey, refused.empty() ? context.command.full_name : refused,
              session.user_name);
  }
}

// Whether CLIENT PAUSE holds this command back. Inside MULTI it is only queued.
bool Dispatcher::MustWait(const Session& session, const CommandEntry& command) const {
  if (host_.all_paused()) return true;
  if (session.in_multi() && !IsExec(command)) return false;
  // Once the lead has been offered to another node this one may not lead any more. Where commands
  // are passed on, reads wait to be passed on then.
  const SetNode* const set = host_.replication().set();
  const bool offers = passing_ != nullptr && host_.services().config.cluster_forward &&
                      set->open() && !set->may_append();
  if (offers && Does(session, command, kReadonly)) return true;
  return Does(session, command, kWrite | kMayReplicate);
}

// One look at everything that can hinder a session, so that the usual command passes no check of
// its own.
CELLAR_INLINE bool Dispatcher::Unhindered(const Session& session) const {
  const auto memory_max = static_cast<uint64_t>(host_.services().config.maxmemory);
  return session.authenticated && !session.restricted && session.transaction == nullptr &&
         session.pubsub == nullptr && !host_.loading() && !host_.writes_paused() &&
         (memory_max == 0 || host_.memory_used_bytes() <= memory_max);
}

// The way in for all whom something may hinder (Unhindered). Null: the error, or QUEUED, has been
// written; or the command waits, for the end of a pause or for a linearizable read, and will be
// tried again.
CommandEntry* Dispatcher::Admit(Session& session, CommandEntry* command, Arguments args,
                                CommandHandler* handler) {
  CELLAR_ASSERT(!args.empty());
  CELLAR_ASSERT(!session.exec_running);  // what is queued was admitted when it came
  const CommandEntry* container = nullptr;
  if (command != nullptr && !command->subcommands.empty() && args.size() > 1) {
    container = command;
    command = CommandTable::FindSubcommand(*container, args[1]);
  }
  if (command == nullptr) {
    // As in Redis the connection ends without a reply.
    if (container == nullptr && IsHttp(args[0])) {
      TellOfAttack(host_.services().stats, session, now_micros_);
      session.EndAfterReplies();
    } else if (!session.authenticated) {
      Reject(session, nullptr, UnauthenticatedText(host_));
    } else {
      Reject(session, nullptr, UnknownCommand(session, container, args));
    }
    return nullptr;
  }
  Way way = Way::kHere;
  if (const std::string refusal = Refusal(session, *command, args, &way); !refusal.empty()) {
    Reject(session, command, refusal);
    return nullptr;
  }
  // Behind all refusals: what would be refused anyway need not wait for that.
  if (host_.writes_paused() && MustWait(session, *command)) {
    session.postponed = true;
    return nullptr;
  }
  const bool queues = session.in_multi() && !command->Has(kImmediate);
  if (passing_ != nullptr) {
    if (!queues && way == Way::kPassedOn) {
      PassOn(session, *command, args);
      return nullptr;
    }
    const bool waits = way == Way::kScattered ? HoldBack(session) : !MayRunHere(session, *command);
    if (waits) return nullptr;
    passing_->OnRunsHere(session, *command);
  }
  const bool asks = host_.restrains_writes() && way != Way::kScattered;
  if (asks && !MayRead(session, *command)) return nullptr;
  CELLAR_ASSERT(way == Way::kHere || passing_ != nullptr);
  *handler = way == Way::kScattered ? passing_->scatterer() : command->row->handler;
  // EXEC, DISCARD and their like run at once inside MULTI; anything else is queued.
  if (!queues) return command;
  session.last_command = command;
  const auto limit = static_cast<size_t>(host_.services().config.client_query_buffer_limit);
  if (session.kept_bytes() > limit) {
    Reject(session, command, "ERR the transaction exceeds client-query-buffer-limit");
  } else {
    QueueCommand(session, *command, args);
    if (session.reply_mode == ReplyMode::kOn) session.writer().SimpleString("QUEUED");
    EndSkipping(session);
  }
  return nullptr;
}

// Before the handler: nothing of the command has happened. Inside MULTI the transaction is marked,
// so that EXEC refuses it.
void Dispatcher::Reject(Session& session, CommandEntry* command, std::string_view error) {
  CELLAR_ASSERT(!error.empty());
  CELLAR_ASSERT(session.task == nullptr);  // whose reply this would stand in
  if (HoldBack(session)) [[unlikely]]
    return;
  std::string aborted;
  // A refused EXEC ends its transaction, and says so in place of the code of the error.
  if (session.in_multi() && command != nullptr && IsExec(*command)) {
    if (passing_ != nullptr) passing_->OnRunsHere(session, *command);
    DiscardTransaction(host_, session);
    const size_t code_bytes = error.starts_with("ERR ") ? 4 : 0;
    aborted = "EXECABORT Transaction discarded because of: ";
    error = aborted.append(error.substr(code_bytes));
  }
  if (session.in_multi()) session.transaction->aborted = true;
  if (command != nullptr) ++command->stats.rejected_calls;
  ++session.commands;
  CountError(error);
  if (session.reply_mode == ReplyMode::kOn) session.writer().Error(error);
  EndSkipping(session);
}

// Counts the command, notes slow ones, takes back a reply that CLIENT REPLY does not want, and then
// lets out the pushes that came in the middle of the command.
CELLAR_INLINE void Dispatcher::Finish(Session& session, CommandEntry& command, Arguments args,
                                      size_t reply_position, WorkTime time,
                                      const Outcome& outcome) {
  CommandStats& stats = command.stats;
  const uint64_t nanos = cycles_.ToNanos(time.cycles);
  CELLAR_DEBUG_ASSERT(session.task == nullptr);
  CELLAR_DEBUG_ASSERT(reply_position <= session.output.size());
  ++stats.calls;
  stats.nanos += nanos;
  stats.latency.Add(nanos);
  ++session.commands;
  ++host_.services().stats.commands;
  OutputBuffer& output = session.output;
  if (sampler_.Takes()) [[unlikely]] {
    sampler_.Look(session, {.command = command,
                            .args = args,
                            .reply_bytes = output.size() - std::min(reply_position, output.size()),
                            .nanos = nanos,
                            .in_slices = time.cycles != time.last_slice_cycles,
                            .failed = outcome.failed()});
  }
  if (time.cycles >= slow_cycles_) [[unlikely]] {
    RecordSlow(session, command, args, time.cycles);
    RecordStall(command, time.last_slice_cycles);
  }
  if (outcome.failed()) [[unlikely]] {
    ++stats.failed_calls;
    CountError(outcome.error());
  }
  // CLIENT REPLY SKIP leaves two commands without a reply: itself (kSkipNext) and the next one
  // (kSkipping).
  if (session.reply_mode != ReplyMode::kOn) [[unlikely]] {
    output.Truncate(reply_position);
    if (session.reply_mode == ReplyMode::kSkipping) session.reply_mode = ReplyMode::kOn;
    if (session.reply_mode == ReplyMode::kSkipNext) session.reply_mode = ReplyMode::kSkipping;
  }
  // Inside EXEC they wait until all of its replies are written.
  if (session.pushes && !session.in_command) [[unlikely]] {
    session.AddGate(output.size(), session.pushes_depend_on);
    output.Append(session.pushes->view());
    session.pushes.reset();
    session.pushes_depend_on = Lsn{};
  }
}

// The handler and what has its place around it: monitors, what the reply depends on, tracking, the
// gate, statistics. A handler that leaves a task has written nothing: StepTask writes the reply,
// and Finish comes at its end.
CELLAR_INLINE uint64_t Dispatcher::Run(Session& session, CommandEntry& command,
                                       CommandHandler handler, Arguments args,
                                       uint64_t begin_cycles, Outcome* outcome) {
  CELLAR_DEBUG_ASSERT(command.Takes(args.size()));
  CELLAR_DEBUG_ASSERT(session.task == nullptr);
  CELLAR_DEBUG_ASSERT(session.in_command == session.exec_running);
  const size_t position = session.output.size();
  const bool outermost = !session.in_command;
  session.in_command = true;
  CommandContext context{.args = args,
                         .command = command,
                         .session = session,
                         .host = host_,
                         .reply = session.writer(),
                         .now_micros = now_micros_};
  Services& services = host_.services();
  // Those who watch see EXEC behind what it runs, where it ends.
  if (services.monitors > 0 && !IsExec(command)) [[unlikely]]
    FeedMonitors(session, command, args);
  if (services.tracking.active()) [[unlikely]]
    services.tracking.SetWriter(session);
  if (!session.restricted) [[likely]] {
    Handle(handler, context);
  } else {
    HandleRestricted(handler, context);
  }
  CELLAR_DEBUG_ASSERT(DependsOnItsTables(context));
  if (has_floor_) [[unlikely]]
    context.depends_on = AtLeastFloor(command, context.depends_on);
  if (session.exec_running) [[unlikely]]
    EndInsideExec(context);
  const uint64_t end_cycles = CycleClock::Now();
  const uint64_t cycles = end_cycles - begin_cycles;
  if (services.monitors > 0 && IsExec(command)) [[unlikely]]
    FeedMonitors(session, command, args);
  if (session.tracking) [[unlikely]] {
    services.tracking.Remember(host_, session, command, args);
    Tracking::EndCaching(session, command);
  }
  // What was released when the turn began, or is without a log, waits for nothing.
  if (context.depends_on > released_) session.AddGate(position, context.depends_on);
  if (session.task != nullptr) [[unlikely]] {
    CELLAR_ASSERT(session.output.size() == position);
    session.task->command = &command;
    session.task->cycles = cycles;
    // Its arguments die with the handler, and the slow log may want them at the end.
    session.task->words = ShortenedWords(WithoutSecrets(command, args));
    CELLAR_ASSERT(!context.outcome.failed());
    RecordStall(command, cycles);
    sampler_.EndSlice(cycles_.ToNanos(cycles));
    session.in_command = false;
    return end_cycles;
  }
  session.in_command = !outermost;
  CELLAR_DEBUG_ASSERT(session.ended() ||
                      BeginsWithError(session.output, position) == context.outcome.failed());
  Finish(session, command, args, position, {cycles, cycles}, context.outcome);
  if (outcome != nullptr) *outcome = std::move(context.outcome);
  return end_cycles;
}

uint64_t Dispatcher::RunByCall(Session& session, CommandEntry& command, Arguments args,
                               uint64_t begin_cycles, Outcome* outcome) {
  return Run(session, command, command.row->handler, args, begin_cycles, outcome);
}

Outcome Dispatcher::Call(Session& session, CommandEntry& command, Arguments args) {
  Outcome outcome;
  (void)RunByCall(session, command, args, CycleClock::Now(), &outcome);
  return outcome;
}

// Only commands of one row have a lane, where nothing but other nodes may hinder them.
bool Dispatcher::HasLane(const Session& session, const CommandEntry* command,
                         Arguments args) const {
  return command != nullptr && command->reach == CommandReach::kRow && host_.has_lane() &&
         passing_ != nullptr && command->subcommands.empty() && Unhindered(session) &&
         command->Takes(args.size());
}

CommandEntry* Dispatcher::FindWay(Session& session, CommandEntry* command, Arguments args,
                                  uint64_t* begin_cycles, CommandHandler* handler) {
  if (!HasLane(session, command, args)) return Admit(session, command, args, handler);
  switch (passing_->TakeLane(session, *command, args)) {
    case CommandPassing::Lane::kNone:
      return Admit(session, command, args, handler);
    case CommandPassing::Lane::kHere:
      *handler = command->row->handler;
      return command;
    case CommandPassing::Lane::kPassed:
      ++session.commands;
      ++host_.services().stats.commands;
      break;
    case CommandPassing::Lane::kBehind:
      passing_->BeginBehind(session);
      *begin_cycles = RunByCall(session, *command, args, *begin_cycles, nullptr);
      passing_->EndBehind(session);
      break;
  }
  session.last_command = command;
  return nullptr;
}

CELLAR_INLINE uint64_t Dispatcher::ExecuteFound(Session& session, CommandEntry* command,
                                                Arguments args, uint64_t begin_cycles) {
  CommandHandler handler = nullptr;
  // One test lets the usual command through. Whatever does not pass it goes by the whole list of
  // checks, or has a lane of its own.
  if (command == nullptr || !command->subcommands.empty() || !Unhindered(session) ||
      host_.asks_nodes() || !command->Takes(args.size())) [[unlikely]] {
    CommandHandler admitted = nullptr;
    uint64_t cycles = begin_cycles;
    command = FindWay(session, command, args, &cycles, &admitted);
    if (command == nullptr) return cycles;
    handler = admitted;
  } else {
    handler = command->row->handler;
  }
  session.last_command = command;
  return Run(session, *command, handler, args, begin_cycles, nullptr);
}

size_t Dispatcher::ExecuteInOrder(Session& session, std::span<const ParsedCommand> commands) {
  CELLAR_DEBUG_ASSERT(!commands.empty());
  // One command begins where the one before it ends: the clock is read once for both.
  uint64_t cycles = CycleClock::Now();
  size_t executed = 0;
  do {
    const ParsedCommand& command = commands[executed++];
    if (!command.args.empty()) [[likely]]
      cycles = ExecuteFound(session, command.entry, command.args, cycles);
  } while (executed < commands.size() && session.authenticated && session.Proceeds());
  return executed;
}

Lsn Dispatcher::AtLeastFloor(const CommandEntry& command, Lsn depends_on) {
  if (!has_floor_ || !command.Has(kReadonly | kWrite)) return depends_on;
  floor_used_ = true;
  return std::max(depends_on, floor_);
}

// The reply is part of EXEC's: a task is run to its end, and EXEC's gate is for all of them.
void Dispatcher::EndInsideExec(CommandContext& context) {
  Session& session = context.session;
  if (session.task != nullptr) {
    const std::unique_ptr<Task> task = std::move(session.task->work);
    session.task.reset();
    const TaskBudget budget = TaskBudget::Unlimited();
    TaskContext step{.reply = context.reply, .budget = budget, .now_micros = now_micros_};
    const TaskProgress progress = task->Step(step);
    CELLAR_ASSERT(progress == TaskProgress::kDone);
    context.DependsOn(step.depends_on);
    context.outcome = std::move(step.outcome);
  }
  CELLAR_ASSERT(session.task == nullptr);
  session.exec_depends_on = std::max(session.exec_depends_on, context.depends_on);
  context.depends_on = Lsn{};
}

// The reply gathers in the task's output until the task is done, so that nothing of it leaves early
// and it may still become an error. A task that streams hands over what it has after each step, as
// far as the client takes it.
bool Dispatcher::StepTask(Session& session, const TaskBudget& budget) {
  CELLAR_ASSERT(session.task != nullptr);
  RunningTask& task = *session.task;
  CELLAR_ASSERT(task.command != nullptr);
  CELLAR_ASSERT(!session.in_command);
  if (task.revoked) [[unlikely]] {
    EndRevokedTask(session);
    return true;
  }
  if (task.work->Streams() &&
      session.output.size() + session.output_in_flight > kStreamedBytesMax) {
    // The client reads more slowly than the task writes: more would only pile up, and piling up
    // moves megabytes. The server calls again when some of it has been taken.
    task.waiting = true;
    return false;
  }
  ReplyWriter reply(&task.output, session.version);
  TaskContext step{.reply = reply, .budget = budget, .now_micros = now_micros_};
  const uint64_t begin = CycleClock::Now();
  Tracking& tracking = host_.services().tracking;
  if (tracking.active()) [[unlikely]]
    tracking.SetWriter(session);
  session.in_command = true;
  const TaskProgress progress = task.work->Step(step);
  session.in_command = false;
  const uint64_t slice_cycles = CycleClock::Now() - begin;
  task.cycles += slice_cycles + step.cycles_beside;
  sampler_.EndSlice(cycles_.ToNanos(slice_cycles));
  if (progress != TaskProgress::kDone) RecordStall(*task.command, slice_cycles);
  task.waiting = progress == TaskProgress::kWaiting;
  task.outcome = std::move(step.outcome);
  const bool streams = task.work->Streams();  // it may have begun to
  CELLAR_DEBUG_ASSERT(progress != TaskProgress::kDone || streams ||
                      BeginsWithError(task.output, 0) == task.outcome.failed());
  CELLAR_ASSERT(progress == TaskProgress::kDone || !task.outcome.failed());
  const size_t position = session.output.size();
  task.depends_on = std::max(task.depends_on, step.depends_on);
  if (task.reply_begun && !task.output.empty() && (progress == TaskProgress::kDone || streams))
      [[unlikely]]
    SkipFirstByte(session);
  if (progress != TaskProgress::kDone && !streams) return false;
  // Pieces of a reply that nobody wants go as they come: Finish sees only the last one.
  if (session.reply_mode != ReplyMode::kOn) [[unlikely]]
    task.output.Clear();
  session.AddGate(position, AtLeastFloor(*task.command, task.depends_on));
  // Nothing stands before it: the reply changes hands and is not copied.
  if (position == 0) {
    session.output.Swap(task.output);
  } else {
    session.output.Append(task.output.view());
  }
  task.output.Free();
  if (progress != TaskProgress::kDone) return false;
  FinishTask(session, position, slice_cycles);
  return true;
}

// A client that has closed its side may be gone or may wait for the reply: only writing to it
// tells.
void Dispatcher::BeginReplyAhead(Session& session) {
  const char first = session.task == nullptr ? '\0' : session.task->work->FirstByte();
  if (first == 0 || session.task->work->Streams() || session.task->reply_begun ||
      session.reply_mode != ReplyMode::kOn)
    return;
  if (!session.output.empty() || session.output_in_flight > 0) return;  // that will tell
  session.task->reply_begun = true;
  session.output.Append({&first, 1});
  host_.ScheduleFlush(session);
}

void Dispatcher::SkipFirstByte(Session& session) {
  RunningTask& task = *session.task;
  CELLAR_ASSERT(!task.output.empty());
  task.reply_begun = false;
  // An error cannot take the place of a reply that has begun.
  if (task.output.data()[0] != task.work->FirstByte()) session.End();
  task.output.Replace(0, 1, {});
}

// The words of the command are those that were kept for the slow log: its arguments died with its
// handler.
void Dispatcher::FinishTask(Session& session, size_t position, uint64_t slice_cycles) {
  CELLAR_ASSERT(session.task != nullptr);
  const std::unique_ptr<RunningTask> task = std::move(session.task);
  const std::vector<std::string_view> words(task->words.begin(), task->words.end());
  session.last_activity_micros = now_micros_;  // who has waited was not idle
  Finish(session, *task->command, words, position, {task->cycles, slice_cycles}, task->outcome);
}

// The user has lost the right while the read went on. What has been read is not shown.
void Dispatcher::EndRevokedTask(Session& session) {
  RunningTask& task = *session.task;
  CELLAR_ASSERT(task.revoked);
  // A part of the reply may be on its way: no error can take its place.
  if (task.work->Streams() || task.reply_begun) session.End();
  const std::vector<std::string_view> words(task.words.begin(), task.words.end());
  const size_t position = session.output.size();
  const CommandEntry& command = *task.command;
  ReplyWriter reply = session.writer();
  task.outcome.Fail(reply, DeniedText(Denied::kKey, command));
  const std::vector<size_t> keys = KeyPositions(command.row->keys, words);
  LogDenied(host_, session, Denied::kKey, keys.empty() ? std::string_view() : words[keys[0]],
            session.user_name);
  FinishTask(session, position, 0);
}

// The smaller of both thresholds, in cycles: a command that is faster is compared with one number.
void Dispatcher::UpdateSlowBound() {
  const Config& config = host_.services().config;
  int64_t micros = config.slowlog_log_slower_than;
  if (config.latency_monitor_threshold > 0) {
    const int64_t threshold = config.latency_monitor_threshold * 1000;
    micros = micros < 0 ? threshold : std::min(micros, threshold);
  }
  slow_cycles_ = micros < 0 ? UINT64_MAX : cycles_.FromMicros(static_cast<uint64_t>(micros));
}

void Dispatcher::RecordSlow(const Session& session, const CommandEntry& command, Arguments args,
                            uint64_t cycles) {
  Services& services = host_.services();
  const Config& config = services.config;
  const auto micros = static_cast<int64_t>(cycles_.ToNanos(cycles) / 1000);
  if (config.slowlog_log_slower_than < 0 || micros < config.slowlog_log_slower_than) return;
  if (command.Has(kSkipSlowlog)) return;
  services.slow_log.Add(session, WithoutSecrets(command, args), now_micros_ / 1'000'000, micros,
                        static_cast<size_t>(config.slowlog_max_len));
}

void Dispatcher::RecordStall(const CommandEntry& command, uint64_t cycles) {
  Services& services = host_.services();
  const int64_t threshold_millis = services.config.latency_monitor_threshold;
  if (cycles < slow_cycles_ || threshold_millis <= 0) return;
  const auto millis = static_cast<int64_t>(cycles_.ToNanos(cycles) / 1'000'000);
  if (millis < threshold_millis) return;
  services.latency.Add(command.Has(kFast) ? "fast-command" : "command", now_micros_ / 1'000'000,
                       millis);
}

// 1339518083.107412 [0 127.0.0.1:60866] "cget" "t" "row" "f:q"
void Dispatcher::FeedMonitors(const Session& session, const CommandEntry& command, Arguments args) {
  CELLAR_ASSERT(host_.services().monitors > 0);
  // As in Redis, what administrators do is not shown.
  if (command.Has(kSkipMonitor | kAdmin)) return;
  std::string line = fmt::format("+{}.{:06} [{} {}]", now_micros_ / 1'000'000,
                                 now_micros_ % 1'000'000, session.keyspace, session.address);
  for (const std::string_view word : WithoutSecrets(command, args)) {
    line += ' ';
    AppendRepr(word, &line);
  }
  line += "\r\n";
  host_.ForEachSession([&](Session& listener) {
    if (!listener.monitor || listener.ended()) return;
    if (listener.restricted) {
      CELLAR_ASSERT(listener.user != nullptr);  // as of everyone who is restricted
      if (!MaySeeCommand(host_, *listener.user, session.keyspace, command, args)) return;
    }
    PushTarget(listener).Append(line);
    host_.Pushed(listener, line.size());
  });
}

void Dispatcher::CountError(std::string_view line) {
  // Redis counts at most so many different codes, so that a client cannot fill the memory.
  constexpr size_t kCodesMax{128};
  const std::string_view code = ErrorWordOf(line);
  CELLAR_ASSERT(!code.empty());
  ServerStats& stats = host_.services().stats;
  ++stats.error_replies;
  const auto found = stats.errors.find(code);
  if (found != stats.errors.end()) {
    ++found->second;
  } else if (stats.errors.size() < kCodesMax) {
    stats.errors.emplace(code, 1);
  }
}

}  // namespace cellar
