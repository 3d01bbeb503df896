// See command_links.h.
#include "server/command_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "base/os/log.h"
#include "commands/catalog/command_table.h"
#include "commands/clients/set_users.h"
#include "commands/cluster/cluster_part.h"
#include "commands/cluster/scatter.h"
#include "commands/config/config.h"
#include "commands/session/services.h"
#include "commands/session/tracking.h"
#include "commands/session/transaction_store.h"
#include "replica/greeting.h"
#include "replica/set_node.h"
#include "server/command_link_ends.h"
#include "server/connection/connection.h"
#include "server/feed_homes.h"
#include "server/local_reads.h"
#include "server/remote_asks.h"
#include "server/tablet_mover.h"

namespace cellar {
namespace {

// What is no read of data and depends on it all the same; or on the set's users.
bool AsksForState(const CommandEntry& command) {
  switch (command.role) {
    case CommandRole::kSelect:
    case CommandRole::kDigest:
    case CommandRole::kLogin:
    case CommandRole::kUserChange:
    case CommandRole::kUsers:
    case CommandRole::kCluster:
      return true;
    default:
      return false;
  }
}

// Of these, what no other node asks of one that has just begun, which must let them in before it
// hears of a leader.
bool AsksForData(const CommandEntry& command) {
  return command.Is(CommandRole::kSelect) || command.Is(CommandRole::kDigest);
}

// Of the commands that EXEC is about to run, the first one that each node answers for itself.
const CommandEntry* FirstOfNode(const TransactionState& transaction) {
  for (const QueuedCommand& queued : transaction.queue) {
    const CommandEntry& command = *queued.command;
    const bool anywhere = command.Has(kWrite | kReadonly) || command.Is(CommandRole::kAnywhere) ||
                          command.Is(CommandRole::kSelect) || command.Is(CommandRole::kUnwatch);
    if (!anywhere) return &command;
  }
  return nullptr;
}

// Names of what a client that tracks has read of other sets, and been answered not yet.
constexpr size_t kNamesAwayMax{1'000};

// Whether it is an EXEC that runs its queue, unless something watched has changed.
bool EndsWatched(const Session& session, const CommandEntry& command) {
  return command.Is(CommandRole::kExec) && session.in_multi() && !session.transaction->aborted;
}

size_t BytesOf(const Session& session, Arguments args) {
  size_t bytes = session.transaction == nullptr ? 0 : session.transaction->bytes.size();
  for (const std::string_view word : args) bytes += word.size();
  return bytes;
}

}  // namespace

// --- what is passed on

CommandLinks::CommandLinks(Host& host, ReplicationHost& dialler)
    : host_(host),
      dialler_(dialler),
      messages_(host, dialler),
      cluster_(host, dialler),
      local_(std::make_unique<LocalEnd>(*this)),
      asks_(std::make_unique<RemoteAsks>(
          host, [this](uint64_t set) { return AnyLinkTo(set); },
          [this](uint64_t node) { return LinkToNode(node); },
          [this](uint64_t set) { return LateText(set); })),
      mover_(std::make_unique<TabletMover>(host)),
      homes_(std::make_unique<FeedHomes>(host)),
      tracked_sets_(std::make_unique<TrackedSets>()),
      prefetch_(host) {}

CommandLinks::~CommandLinks() = default;

PassedClient* CommandLinks::MakeClient(Connection* connection) {
  if (connection->passed == nullptr)
    connection->passed = std::make_unique<PassedClient>(*this, *connection);
  return static_cast<PassedClient*>(connection->passed.get());
}

PassedClient* CommandLinks::ClientOf(const Session& session) {
  Connection* const connection = static_cast<const ConnectedSession&>(session).connection;
  return connection == nullptr ? nullptr : static_cast<PassedClient*>(connection->passed.get());
}

bool CommandLinks::Takes(const Session& session, const CommandEntry& command, Arguments args,
                         Doing doing) const {
  // What another node has passed on is not passed on once more.
  const bool is_own = static_cast<const ConnectedSession&>(session).connection != nullptr;
  routed_.reset();
  if (!is_own || set() == nullptr) return false;
  const PassedClient* const client = ClientOf(session);
  if (host_.routes()) {
    // Inside MULTI it is refused, here as anywhere.
    if (command.Is(CommandRole::kWatch) && session.in_multi()) return false;
    const bool queues = session.in_multi() && !command.Has(kImmediate);
    if (queues) {
      routed_.emplace();
    } else {
      routed_ = Routed{args, Route(session, command, args)};
    }
    const CommandRoute& route = routed_->route;
    if (IsAway(route)) return !IsScattered(route, command);
    if (client != nullptr && GoesBeside(*client, session, command, route)) return true;
    // What was watched is not known any more, wherever that was.
    if (EndsWatched(session, command) && LostWatches(session, client)) return true;
  }
  if (!host_.services().config.cluster_forward || set()->open()) return false;
  const bool refused = refused_node_ != 0 && refused_node_ == set()->set().leader();
  if (refused && now() < refused_micros_) return false;
  const bool watched = client != nullptr && client->has_watched();
  switch (command.role) {
    case CommandRole::kWatch:
    case CommandRole::kWait:  // it asks about what this connection has written
      return !session.in_multi();
    case CommandRole::kUnwatch:
      return watched && !client->WatchesAway() && !session.in_multi();
    case CommandRole::kUserChange:
      return SetUsers::AreOfSet(host_) && !session.in_multi();
    case CommandRole::kExec:
      if (!EndsWatched(session, command)) return false;
      if (watched || !session.transaction->watches.empty()) return true;
      break;
    case CommandRole::kOfNode:
      return false;
    default:
      break;
  }
  return doing.writes || (doing.reads && ReadsElsewhere(session, command, args));
}

bool CommandLinks::IsScattered(const CommandRoute& route, const CommandEntry& command) {
  return route.Is(CommandRoute::Kind::kSeveral) && ScatterCommands::Takes(command);
}

bool CommandLinks::Scatters(const Session& session, const CommandEntry& command,
                            Arguments args) const {
  const bool is_own = static_cast<const ConnectedSession&>(session).connection != nullptr;
  const bool queues = session.in_multi() && !command.Has(kImmediate);
  return is_own && !queues && host_.routes() && ScatterCommands::Takes(command) &&
         IsScattered(Route(session, command, args), command);
}

CommandRoute CommandLinks::TakeRoute(const Session& session, const CommandEntry& command,
                                     Arguments args) {
  const bool is_known =
      routed_ && routed_->args.data() == args.data() && routed_->args.size() == args.size();
  CommandRoute route = is_known ? std::move(routed_->route) : Route(session, command, args);
  routed_.reset();
  return route;
}

CommandHandler CommandLinks::scatterer() const { return &ScatterCommands::Begin; }

// Who leads now does not know what its predecessor watched.
bool CommandLinks::LostWatches(const Session& session, const PassedClient* client) const {
  if (client != nullptr && (client->watches_lost || (set()->open() && client->WatchesOn(kOwnSet))))
    return true;
  if (!host_.routes()) return false;
  // What has moved to another set since.
  if (client != nullptr && client->watches() && client->watched.HasMoved(host_)) return true;
  const auto& watches = session.transaction->watches;
  return std::any_of(watches.begin(), watches.end(),
                     [this](const Watch& watch) { return WatchIsBroken(host_, watch); });
}

bool CommandLinks::ReadsElsewhere(const Session& session, const CommandEntry& command,
                                  Arguments args) const {
  const Config& config = host_.services().config;
  const SetNode& own = *set();
  if (own.is_witness() || own.is_empty() || own.member().state_is_void() ||
      static_cast<ReplicaReads>(config.replica_reads) == ReplicaReads::kNo)
    return true;
  if (command.Is(CommandRole::kMapRead)) return false;
  // SURE: its owner is asked, not this node's copy of the map.
  if (command.Is(CommandRole::kRoute)) return args.size() > 4;
  if (session.switches.reads_stale || session.tracking != nullptr) return false;
  if (ClusterReadsOf(config) == ClusterReads::kLeader) return true;
  if (ReadsFeeds(session, command)) return false;
  if (ReadsUnbuiltIndex(host_.store(), session, command, args))
    return !BelongsHere(session, command, args);
  return !command.Is(CommandRole::kScan) && IsBehind(ClientOf(session), false) &&
         !BelongsHere(session, command, args);
}

bool CommandLinks::HasSeenMore(const PassedClient* client, bool in_feeds) const {
  Store& store = host_.store();
  return client != nullptr &&
         client->seen.seq > (in_feeds ? ShownByFeeds(store) : store.applied_lsn()).seq;
}

// What a node has told before it began anew, anybody may have seen. Other nodes ask it for no more
// than to let them in, or it would never hear of a leader.
bool CommandLinks::IsBehind(const PassedClient* client, bool in_feeds) const {
  const bool is_before =
      host_.services().config.cluster_forward && set()->member().is_before_its_end();
  return is_before || HasSeenMore(client, in_feeds);
}

CommandPassing::Outcome CommandLinks::Pass(Session& session, const CommandEntry& command,
                                           Arguments args, Doing doing, std::string* error) {
  doing.writes = doing.writes || SetUsers::IsChange(command);
  PassedClient* const client = MakeClient(Connection::Of(session));
  const Outcome outcome = TryPass(client, command, args, doing, error);
  if (outcome != Outcome::kRefused || !command.Is(CommandRole::kExec)) return outcome;
  // It ends the transaction, and what is watched for it, wherever that is kept.
  if (client->under_way()) {
    Hold(client);
    return Outcome::kWaits;
  }
  client->EndWatches();
  return outcome;
}

CommandPassing::Outcome CommandLinks::TryPass(PassedClient* client, const CommandEntry& command,
                                              Arguments args, Doing doing, std::string* error) {
  Session& session = client->connection().session;
  const bool is_exec = command.Is(CommandRole::kExec);
  if (BytesOf(session, args) > kFrameBytesLimit / 2) {
    *error = "TOOLARGE the command is too long to be passed on to the leader";
    return Outcome::kRefused;
  }
  if (leave_by_micros_ != 0 || IsFull(*client, is_exec)) {
    Hold(client);
    return Outcome::kWaits;
  }
  if (!SetUsers::AreKnown(host_))
    return Wait(
        client, [&] { return LateText(*client, kOwnSet, doing); }, error);
  if (EndsWatched(session, command) && LostWatches(session, client)) return EndWatches(client);
  CommandRoute route = host_.routes() ? TakeRoute(session, command, args) : CommandRoute();
  if (route.Is(CommandRoute::Kind::kSeveral) || route.Is(CommandRoute::Kind::kLost)) {
    *error = std::move(route.error);
    return Outcome::kRefused;
  }
  if (route.Is(CommandRoute::Kind::kUnknown))
    return Wait(
        client, [&route] { return route.error; }, error);
  if (const CommandEntry* const other = is_exec ? FirstOfNode(*session.transaction) : nullptr;
      other != nullptr) {
    *error = fmt::format(
        "ERR '{}' is answered by each node for itself: not in an EXEC that the leader carries out",
        other->full_name);
    return Outcome::kRefused;
  }
  const bool watches_here = session.transaction != nullptr && !session.transaction->watches.empty();
  if (is_exec && watches_here) return EndWatches(client);
  return PassTo(route, session, command, args, doing, error);
}

// What is under way knows of no watches any more.
CommandPassing::Outcome CommandLinks::EndWatches(PassedClient* client) {
  if (client->under_way()) {
    Hold(client);
    return Outcome::kWaits;
  }
  client->EndWatches();
  return Outcome::kNull;
}

CommandPassing::Outcome CommandLinks::PassTo(const CommandRoute& route, Session& session,
                                             const CommandEntry& command, Arguments args,
                                             Doing doing, std::string* error) {
  const uint64_t set = IsAway(route) ? route.set : kOwnSet;
  PassedClient* const client = ClientOf(session);
  const bool is_exec = command.Is(CommandRole::kExec);
  const auto late = [&] { return LateText(*client, set, doing); };
  const bool redirects = session.switches.redirects && (is_exec || command.row->keys.row != 0);
  if (redirects || !host_.services().config.cluster_forward) {
    if (const auto leader = LeaderOf(set); leader) {
      *error = fmt::format("REDIRECT {}:{}", leader->host, leader->port);
      return Outcome::kRefused;
    }
    if (!redirects) return Wait(client, late, error);
  }
  PassedChannel& channel = client->ChannelTo(set);
  const bool beside = MayGoBeside(client, session, command, route);
  if (!client->MayGo(channel, beside)) {
    Hold(client);
    return Outcome::kWaits;
  }
  EntryLink* const link = LinkFor(channel);
  const bool may_pass = link != nullptr && link->MayPass(channel);
  if (may_pass && !link->MakeRoom(channel)) {
    const Outcome outcome = Wait(client, late, error);
    if (outcome == Outcome::kRefused)
      *error = "TRYAGAIN too many clients have commands under way at the leader";
    return outcome;
  }
  // A leader may send calls back again and again: that ends, too.
  if (!may_pass || IsLate(*client)) return Wait(client, late, error);
  client->Goes(&channel, beside);
  PutCall(link, &channel, session, command, args, doing);
  session.switches.waits_elsewhere = session.switches.waits_elsewhere || command.Has(kBlocking);
  // What waits for others may do so for ever, and nothing is to be held back for as long, nor
  // behind it.
  if (session.switches.waits_elsewhere) client->EndHolding();
  client->skips = session.reply_mode == ReplyMode::kSkipping;
  if (set != kOwnSet && session.tracking != nullptr) [[unlikely]]
    NoteReadAway(client, session, command, args);
  if (command.Is(CommandRole::kWatch)) {
    channel.watches = true;
    if (set != kOwnSet) client->watched.Add(set, session.keyspace, command, args);
  }
  if (command.Is(CommandRole::kUnwatch)) {
    channel.watches = client->watches_lost = false;
    client->watched.Clear();
  }
  if (is_exec) client->transaction = std::move(session.transaction);
  if (session.tracking != nullptr) Tracking::EndCaching(session, command);
  ++figures_.calls_out;
  return Outcome::kPassed;
}

// What is read of another set is remembered from before it is asked for.
void CommandLinks::NoteReadAway(PassedClient* client, Session& session, const CommandEntry& command,
                                Arguments args) {
  if (command.Is(CommandRole::kExec)) return;
  std::vector<Tracking::ReadName> names = Tracking::NamesOf(host_, session, command, args);
  if (names.empty()) return;
  if (client->names_away.empty()) client->mark_away = tracked_sets_->Now();
  if (!session.tracking->bcast) host_.services().tracking.RememberNames(host_, session, names);
  std::move(names.begin(), names.end(), std::back_inserter(client->names_away));
}

// An EXEC stands alone, since what it takes with it is the session's; so does what goes without a
// reply, in case it must be asked again.
bool CommandLinks::IsFull(const PassedClient& client, bool is_exec) const {
  if (!client.under_way()) return false;
  if (is_exec || client.transaction != nullptr || client.skips) return true;
  if (client.names_away.size() >= kNamesAwayMax) return true;
  if (client.order.has_back()) return true;
  const auto is_link_full = [](const PassedChannel& channel) {
    return channel.link() != nullptr && channel.link()->call_bytes() > kLinkBytesMax;
  };
  if (client.order.empty()) {
    const PassedChannel& channel = *client.current();
    return channel.calls().bytes() > kClientBytesMax || is_link_full(channel);
  }
  size_t bytes = client.order.memory_bytes();
  bool is_full = false;
  for (const auto& channel : client.channels()) {
    if (channel->calls().empty()) continue;
    bytes += channel->calls().bytes();
    is_full = is_full || is_link_full(*channel);
  }
  return is_full || bytes > kClientBytesMax;
}

void CommandLinks::PutCall(EntryLink* link, PassedChannel* channel, const Session& session,
                           const CommandEntry& command, Arguments args, Doing doing) {
  const CallIdentityView identity{
      .user = session.user_name,
      .keyspace = session.keyspace,
      .address = session.address,
      .version = static_cast<uint8_t>(session.version == RespVersion::k3 ? 3 : 2)};
  std::string* const text = link->Begin(channel, identity);
  if (command.Is(CommandRole::kExec)) {
    PutTransaction(*session.transaction, text);
  } else {
    PutCallCount(1, text);
    PutCallWords(args, text);
  }
  uint8_t flags = 0;
  if (doing.writes) flags |= kCallWrites;
  if (session.reply_mode != ReplyMode::kOn) flags |= kCallMute;
  // Of another set's steps no invalidation here tells.
  const bool tells = channel->is_own() && doing.writes && session.tracking != nullptr;
  if (tells && session.tracking->noloop) {
    flags |= kCallTells;
    session.tracking->passed.Begin();
  }
  link->Pass(channel, flags);
}

// MULTI, what has been queued, EXEC.
void CommandLinks::PutTransaction(const TransactionState& transaction, std::string* text) {
  constexpr std::string_view kMulti[] = {"MULTI", "ATOMIC"};
  constexpr std::string_view kExec[] = {"EXEC"};
  PutCallCount(transaction.queue.size() + 2, text);
  PutCallWords(std::span(kMulti).first(transaction.atomic ? 2 : 1), text);
  std::vector<std::string_view> words;
  for (const QueuedCommand& queued : transaction.queue) {
    transaction.WordsOf(queued, &words);
    PutCallWords(words, text);
  }
  PutCallWords(kExec, text);
}

// Nothing has been sent on, so that an error may still say that nothing was done.
CommandPassing::Outcome CommandLinks::Wait(PassedClient* client,
                                           const std::function<std::string()>& late,
                                           std::string* error) {
  if (client->since_micros == 0) client->since_micros = now();
  if (!IsLate(*client)) {
    Hold(client);
    return Outcome::kWaits;
  }
  client->since_micros = 0;
  *error = late();
  client->misled = false;
  return Outcome::kRefused;
}

bool CommandLinks::IsLate(const PassedClient& client) const {
  return client.since_micros != 0 &&
         now() - client.since_micros >= host_.services().config.cluster_wait * 1000;
}

bool CommandLinks::waits() const {
  return !waiting_.empty() || !sent_back_.empty() || !unsent_.empty() || asks_->waits() ||
         mover_->busy();
}

bool CommandLinks::HoldsBack(Session& session) {
  PassedClient* const client = ClientOf(session);
  if (client == nullptr || !client->under_way()) return false;
  Hold(client);
  return true;
}

bool CommandLinks::Lags(Session& session, const CommandEntry& command, Doing doing,
                        std::string* error) {
  Connection* const connection = static_cast<ConnectedSession&>(session).connection;
  if (connection == nullptr || set() == nullptr || set()->open() || session.switches.reads_stale ||
      !(doing.reads || AsksForState(command)))
    return false;
  const bool in_feeds = doing.reads && ReadsFeeds(session, command);
  if (!(doing.reads || AsksForData(command) ? IsBehind(ClientOf(session), in_feeds)
                                            : HasSeenMore(ClientOf(session), false)))
    return false;
  PassedClient* const client = MakeClient(connection);
  const auto late = [&] { return LateText(*client, kOwnSet, {.writes = false, .reads = true}); };
  const bool waits = Wait(client, late, error) == Outcome::kWaits;
  if (waits && in_feeds) AskForSync(client->since_micros);
  using Lags = PassedClient::Lags;
  client->lags = !waits ? Lags::kNo : in_feeds ? Lags::kFeeds : Lags::kState;
  return true;
}

// No more often than feed-sync says, unless that is too long for who waits.
void CommandLinks::AskForSync(int64_t since_micros) {
  Store& store = host_.store();
  if (now() - since_micros < host_.services().config.cluster_wait * 500)
    return store.feed_log().AskForSync();
  if (store.journal().durable_appended() < store.journal().appended())
    store.journal().RequestSync();
}

bool CommandLinks::lags() const {
  return std::any_of(waiting_.begin(), waiting_.end(), [](const PassedClient* client) {
    return client->lags != PassedClient::Lags::kNo;
  });
}

void CommandLinks::WakeLagging() {
  if (waiting_.empty()) return;
  const Lsn applied = host_.store().applied_lsn();
  const Lsn shown = ShownByFeeds(host_.store());
  if (applied == applied_seen_ && shown == shown_seen_) return;
  applied_seen_ = applied;
  shown_seen_ = shown;
  using Lags = PassedClient::Lags;
  const std::vector<PassedClient*> waiting = waiting_;
  for (PassedClient* client : waiting)
    // One that reads is asked again.
    if (client->lags != Lags::kNo && !HasSeenMore(client, client->lags == Lags::kFeeds))
      Wake(client);
}

// DISCARD and RESET end watches wherever they are kept, and so does an EXEC that is refused here.
// One that this node carries out, since it leads by now, knows nothing of them.
void CommandLinks::OnRunsHere(Session& session, const CommandEntry& command) {
  PassedClient* const client = ClientOf(session);
  if (client == nullptr) return;
  client->since_micros = 0;
  client->misled = false;
  const bool ends = command.Is(CommandRole::kEndsWatches) || command.Is(CommandRole::kExec) ||
                    (command.Is(CommandRole::kUnwatch) && !session.in_multi());
  if (!ends || !client->has_watched()) return;
  if (command.Is(CommandRole::kExec) && session.in_multi()) session.transaction->broken = true;
  client->EndWatches();
}

uint64_t CommandLinks::AskToUnblock(Session& session, UnblockReason reason) {
  PassedClient* const client = ClientOf(session);
  if (client == nullptr || !client->under_way() || !client->order.empty()) return 0;
  PassedChannel* const channel = client->current();
  EntryEnd* const end = EndOf(*channel);
  if (end == nullptr || !end->unblocks()) return 0;
  const bool error = reason == UnblockReason::kError;
  end->entry().Unblock(channel, error ? UnblockHow::kError : UnblockHow::kTimeout);
  client->unblockings.Ask(channel->calls().first(), ++unblocking_last_);
  unblockings_[unblocking_last_] = Unblocked::kNotYet;
  return unblocking_last_;
}

CommandLinks::EntryEnd* CommandLinks::EndOf(const PassedChannel& channel) const {
  const auto end = std::find_if(entries_.begin(), entries_.end(), [&channel](const auto& each) {
    return &each->entry() == channel.link();
  });
  return end == entries_.end() ? nullptr : end->get();
}

void CommandLinks::BeginReply(PassedChannel* channel) {
  EntryEnd* const end = EndOf(*channel);
  if (end != nullptr && end->begins()) end->entry().BeginReply(channel);
}

CommandPassing::Unblocked CommandLinks::AnswerToUnblock(uint64_t ticket) const {
  const auto found = unblockings_.find(ticket);
  CELLAR_ASSERT(found != unblockings_.end());
  return found->second;
}

// Who has asked may have left.
void CommandLinks::AnswerUnblocking(uint64_t ticket, Unblocked answer) {
  const auto found = unblockings_.find(ticket);
  if (found == unblockings_.end()) return;
  found->second = answer;
  host_.WakeTasks();
}

void CommandLinks::Hold(PassedClient* client) {
  if (std::exchange(client->waits, true)) return;
  waiting_.push_back(client);
}

void CommandLinks::LetGo(PassedClient* client) {
  if (std::exchange(client->waits, false)) std::erase(waiting_, client);
}

void CommandLinks::Wake(PassedClient* client) {
  // On a node that leads by now nothing asks any more what is under way.
  const bool leads = set() != nullptr && set()->open() && !host_.routes();
  if (!client->waits || (leads && client->under_way())) return;
  LetGo(client);
  client->lags = PassedClient::Lags::kNo;
  Session& session = client->connection().session;
  session.postponed = false;
  session.last_activity_micros = host_.now_micros();
  host_.ScheduleFlush(session);
}

void CommandLinks::WakeAll() {
  const std::vector<PassedClient*> waiting = waiting_;
  for (PassedClient* client : waiting)
    if (!client->under_way() || client->since_micros != 0) Wake(client);
}

// --- links

FrameHead CommandLinks::Head() const {
  const Replication& replication = host_.replication();
  return {.kind = FrameKind::kError,
          .room = true,
          .term = replication.term(),
          .from = replication.node(),
          .sent_micros = 0,
          .echo_micros = 0};
}

std::unique_ptr<CallServant> CommandLinks::MakeServant(const CallIdentity& identity) {
  return std::make_unique<CommandServant>(host_, static_cast<CommandServantHost&>(*this),
                                          servant_id_++, caller_, identity);
}

void CommandLinks::LookAhead(const CallServant& servant, std::string_view text) {
  static_cast<const CommandServant&>(servant).LookAhead(text, &prefetch_);
}

void CommandLinks::OnTurn(Lsn released) {
  released_ = released;
  UpdateRoutes();
  SetUsers::TakeOver(host_);
  WakeLagging();
  messages_.OnTurn();
  cluster_.OnTurn();
  TabletListeners& listeners = host_.services().tablet_listeners;
  if (!listeners.empty() && set() != nullptr && !host_.loading())
    listeners.Tell(host_, MapOf(host_));
  tracked_sets_->OnTurn(host_, asker_);
  asks_->OnTurn();
  AskAllAgain();
  for (const auto& end : owners_) end->OnTurn();
  for (const auto& end : entries_) end->OnTurn();
  local_->OnTurn();
  mover_->OnTurn();
  homes_->OnTurn();
  std::erase_if(owners_, [](const auto& end) { return end->dead(); });
  std::erase_if(entries_, [](const auto& end) { return end->dead(); });
}

// Sessions whose calls are on their way to who has led wait for these, also where this node leads
// now.
void CommandLinks::OnRoleChanged() {
  if (set() == nullptr) return;
  cluster_.OnRoleChanged();
  UpdateRoutes();
  // What it takes to carry commands out begins anew with who does.
  host_.services().load_samples.Restart(now());
  if (set()->open()) {
    host_.ForEachSession([this](Session& session) {
      if (ClientOf(session) != nullptr && HoldsBack(session)) session.postponed = true;
    });
  }
  WakeAll();
}

void CommandLinks::OnOwnerNoMore(Lsn released) {
  released_ = released;
  for (const auto& end : owners_) end->OnOwnerNoMore();
  local_->OnOwnerNoMore();
}

void CommandLinks::OnTick() {
  const bool stood_still = now() - std::exchange(tick_micros_, now()) > kTickMicrosMax;
  host_.services().tracking.news().OnTick(now());
  messages_.OnTick();
  if (set() == nullptr) return;
  SetUsers::Found(host_);
  ClusterPart::Tend(host_);
  cluster_.OnTick();
  memory_bytes_ = CountMemory();
  const bool closes_idle = now() >= idle_micros_;
  if (closes_idle) idle_micros_ = now() + kIdleMicros;
  if (closes_idle) local_->entry().CloseIdle();
  for (const auto& end : entries_) {
    if (closes_idle) end->entry().CloseIdle();
    if (!end->dead() && end->IsIdle(now())) end->Fail("nothing is passed on");
    end->OnTick(LeaderFor(*end), stood_still);
  }
}

void CommandLinks::LeaveBy(int64_t micros) {
  leave_by_micros_ = micros;
  if (micros == 0) WakeAll();
}

bool CommandLinks::answers_first() const {
  return now() < leave_by_micros_ &&
         std::any_of(entries_.begin(), entries_.end(),
                     [](const auto& end) { return end->entry().calls_due() > 0; });
}

void CommandLinks::OnPoll() {
  WakeAll();
  asks_->OnTurn();
  AskAllAgain();
  SendUnsent();
}

void CommandLinks::ForEachSession(const std::function<void(Session&)>& visit) {
  const std::vector<CommandServant*> servants = servants_;
  for (CommandServant* servant : servants) visit(servant->session());
}

// They stand in the order in which they were made, and so of their ids.
Session* CommandLinks::FindSession(uint64_t id) const {
  const auto found = std::lower_bound(
      servants_.begin(), servants_.end(), id,
      [](CommandServant* servant, uint64_t wanted) { return servant->session().id < wanted; });
  const bool is_there = found != servants_.end() && (*found)->session().id == id;
  return is_there ? &(*found)->session() : nullptr;
}

bool CommandLinks::has_tasks() const {
  return local_->asks() || mover_->busy() ||
         std::any_of(servants_.begin(), servants_.end(),
                     [](const CommandServant* servant) { return servant->running(); });
}

bool CommandLinks::tasks_proceed() const {
  return local_->asks() || mover_->proceeds() ||
         std::any_of(servants_.begin(), servants_.end(), [](CommandServant* servant) {
           return servant->running() && !servant->session().task->waiting;
         });
}

void CommandLinks::RunTasks(const TaskBudget& budget, bool woken) {
  if (local_->asks()) local_->Deliver();
  if (woken || mover_->proceeds()) mover_->Step();
  // Who comes last today comes first next time.
  for (size_t left = servants_.size(); left > 0 && !budget.Spent(); --left) {
    next_servant_ = (next_servant_ + 1) % servants_.size();
    CommandServant* const servant = servants_[next_servant_];
    if (servant->running() && (woken || !servant->session().task->waiting)) servant->Step(budget);
  }
}

uint64_t CommandLinks::CountMemory() const {
  uint64_t bytes = 0;
  for (const CommandServant* servant : servants_) bytes += servant->memory_bytes();
  for (const auto& end : owners_) bytes += end->memory_bytes();
  for (const auto& end : entries_) bytes += end->memory_bytes();
  return bytes + local_->memory_bytes() + asks_->memory_bytes() + tracked_sets_->memory_bytes();
}

uint64_t CommandLinks::held_bytes() const {
  uint64_t bytes = CountMemory();
  for (const auto& end : owners_) bytes += end->waiting_bytes();
  for (const auto& end : entries_) bytes += end->waiting_bytes() + end->entry().call_memory_bytes();
  return bytes;
}

size_t CommandLinks::calls_waiting() const {
  size_t calls = 0;
  for (const auto& end : entries_) calls += end->entry().calls();
  return calls;
}

}  // namespace cellar
