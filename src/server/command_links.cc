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
#include "commands/config/config.h"
#include "commands/session/services.h"
#include "commands/session/tracking.h"
#include "replica/greeting.h"
#include "replica/set_node.h"
#include "server/command_link_ends.h"
#include "server/connection/connection.h"
#include "server/local_reads.h"

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

// Of the commands that EXEC is about to run, the first one that each node answers for itself.
const CommandEntry* FirstOfNode(const TransactionState& transaction) {
  for (const QueuedCommand& queued : transaction.queue) {
    const CommandEntry& command = *queued.command;
    const bool anywhere = command.Has(kWrite | kReadonly) || command.Is(CommandRole::kAnywhere) ||
                          command.Is(CommandRole::kSelect);
    if (!anywhere) return &command;
  }
  return nullptr;
}

bool ReadsData(const TransactionState& transaction) {
  return std::any_of(transaction.queue.begin(), transaction.queue.end(),
                     [](const QueuedCommand& queued) { return queued.command->Has(kReadonly); });
}

size_t BytesOf(const Session& session, Arguments args) {
  size_t bytes = session.transaction == nullptr ? 0 : session.transaction->bytes.size();
  for (const std::string_view word : args) bytes += word.size();
  return bytes;
}

}  // namespace

// --- PassedClient

PassedClient::~PassedClient() {
  links_.LetGo(this);
  TellAskers(unblockings.Lost());
}

// Messages that came in the middle of a reply leave behind it (PushTarget).
void PassedClient::OnReply(std::string_view bytes, bool whole, Lsn lsn) {
  Session& session = connection_.session;
  if (lsn.seq > seen.seq) seen = lsn;
  if (session.ended()) return;
  session.output.Append(bytes);
  session.in_command = !whole;
  session.last_activity_micros = links_.host_.now_micros();
  if (whole && session.pushes != nullptr) {
    session.AddGate(session.output.size(), std::exchange(session.pushes_depend_on, Lsn{}));
    session.output.Append(session.pushes->view());
    session.pushes.reset();
  }
  TellAskers(unblockings.Replied(calls().first()));
  if (calls().empty()) {
    if (transaction != nullptr) watches = false;
    // What was read in it this node does not know, so the client shall keep nothing of it.
    if (transaction != nullptr && session.tracking != nullptr && ReadsData(*transaction))
      links_.host_.services().tracking.TellEverything(links_.host_, session);
    transaction.reset();
    session.switches.waits_elsewhere = skips = false;
    EndHolding();
  }
  if (whole) since_micros = 0;
  if (whole && waits) links_.Wake(this);
  links_.host_.ScheduleFlush(session);
}

void PassedClient::OnMoved(std::string requests) {
  Session& session = connection_.session;
  watches_lost = watches_lost || watches;
  watches = session.switches.waits_elsewhere = session.in_command = false;
  TellAskers(unblockings.Lost());
  if (session.ended()) return;
  EndHolding();
  // It stands alone, and goes without a reply the next time too.
  if (std::exchange(skips, false) && !requests.empty()) session.reply_mode = ReplyMode::kSkipping;
  if (transaction != nullptr) {
    CELLAR_ASSERT(session.transaction == nullptr);
    session.transaction = std::move(transaction);
    requests = "*1\r\n$4\r\nEXEC\r\n";
  }
  connection_.GiveBack(requests);
  if (requests.empty()) return links_.Wake(this);
  // Who leads now may not be known yet: a moment later it is tried again, not for ever.
  ++links_.figures_.retried;
  if (since_micros == 0) since_micros = links_.now();
  session.postponed = true;
  links_.Hold(this);
}

void PassedClient::OnUnknown() {
  Session& session = connection_.session;
  ++links_.figures_.closed;
  TellAskers(unblockings.Lost());
  // Behind the replies that are complete.
  if (std::exchange(session.in_command, false)) session.End();
  session.EndAfterReplies();
  transaction.reset();
  links_.host_.ScheduleFlush(session);
}

void PassedClient::OnWrote(int64_t told_micros, std::span<const WrittenSteps> steps) {
  Session& session = connection_.session;
  if (session.tracking == nullptr) return;
  session.tracking->passed.Add(told_micros, steps);
  links_.host_.services().tracking.TellHeld(links_.host_, session);
}

void PassedClient::EndHolding() {
  Session& session = connection_.session;
  if (session.tracking == nullptr) return;
  session.tracking->passed.End();
  links_.host_.services().tracking.TellHeld(links_.host_, session);
}

void PassedClient::OnUnblocked(uint64_t number, bool done) {
  TellAskers(unblockings.Answered(number, done));
}

void PassedClient::TellAskers(const std::vector<Unblockings::Told>& told) {
  using Unblocked = CommandLinks::Unblocked;
  for (const Unblockings::Told& each : told)
    links_.AnswerUnblocking(each.ticket, each.done ? Unblocked::kYes : Unblocked::kNo);
}

bool PassedClient::TakesMore() const {
  const Session& session = connection_.session;
  return session.output.size() + session.output_in_flight < Session::kOutputPauseBytes / 2;
}

// --- what is passed on

CommandLinks::CommandLinks(Host& host, ReplicationHost& dialler)
    : host_(host), dialler_(dialler), messages_(host, dialler) {}

CommandLinks::~CommandLinks() = default;

PassedClient* CommandLinks::ClientOf(const Session& session) {
  Connection* const connection = static_cast<const ConnectedSession&>(session).connection;
  return connection == nullptr ? nullptr : static_cast<PassedClient*>(connection->passed.get());
}

bool CommandLinks::Takes(const Session& session, const CommandEntry& command, Arguments args,
                         Doing doing) const {
  // What another node has passed on is not passed on once more.
  const bool is_own = static_cast<const ConnectedSession&>(session).connection != nullptr;
  if (!is_own || !host_.services().config.cluster_forward || set() == nullptr || set()->open())
    return false;
  const bool refused = refused_node_ != 0 && refused_node_ == set()->set().leader();
  if (refused && now() < refused_micros_) return false;
  const PassedClient* const client = ClientOf(session);
  const bool watched = client != nullptr && (client->watches || client->watches_lost);
  switch (command.role) {
    case CommandRole::kWatch:
    case CommandRole::kWait:  // it asks about what this connection has written
      return !session.in_multi();
    case CommandRole::kUnwatch:
      return watched && !session.in_multi();
    case CommandRole::kUserChange:
      return SetUsers::AreOfSet(host_) && !session.in_multi();
    case CommandRole::kExec:
      if (!session.in_multi() || session.transaction->aborted) return false;
      if (watched || !session.transaction->watches.empty()) return true;
      break;
    case CommandRole::kOfNode:
      return false;
    default:
      break;
  }
  return doing.writes || (doing.reads && ReadsElsewhere(session, command, args));
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
  const PassedClient* const client = ClientOf(session);
  return client != nullptr && !command.Is(CommandRole::kScan) && IsBehind(*client, false) &&
         !BelongsHere(session, command, args);
}

bool CommandLinks::IsBehind(const PassedClient& client, bool in_feeds) const {
  Store& store = host_.store();
  return client.seen.seq > (in_feeds ? ShownByFeeds(store) : store.applied_lsn()).seq;
}

CommandPassing::Outcome CommandLinks::Pass(Session& session, const CommandEntry& command,
                                           Arguments args, Doing doing, std::string* error) {
  doing.writes = doing.writes || SetUsers::IsChange(command);
  Connection& connection = *Connection::Of(session);
  if (connection.passed == nullptr)
    connection.passed = std::make_unique<PassedClient>(*this, connection);
  auto* const client = static_cast<PassedClient*>(connection.passed.get());
  const bool is_exec = command.Is(CommandRole::kExec);
  if (BytesOf(session, args) > kFrameBytesLimit / 2) {
    *error = "TOOLARGE the command is too long to be passed on to the leader";
    return Outcome::kRefused;
  }
  if (leave_by_micros_ != 0 || IsFull(*client, is_exec)) {
    Hold(client);
    return Outcome::kWaits;
  }
  if (!SetUsers::AreKnown(host_)) return Wait(client, doing, error);
  if (const CommandEntry* const other = is_exec ? FirstOfNode(*session.transaction) : nullptr;
      other != nullptr) {
    *error = fmt::format(
        "ERR '{}' is answered by each node for itself: not in an EXEC that the leader carries out",
        other->full_name);
    return Outcome::kRefused;
  }
  const bool watches_here = session.transaction != nullptr && !session.transaction->watches.empty();
  if (is_exec && (watches_here || client->watches_lost)) {
    client->watches_lost = false;
    if (client->watches) EndWatches(client);
    return Outcome::kNull;
  }
  const auto leader = session.switches.redirects ? set()->KnownLeader() : std::nullopt;
  if (leader && (is_exec || command.row->keys.row != 0)) {
    *error = fmt::format("REDIRECT {}:{}", leader->host, leader->port);
    return Outcome::kRefused;
  }
  EntryEnd* const end = LeaderLink();
  const bool may_pass = end != nullptr && end->entry().MayPass(*client);
  if (may_pass && !end->entry().MakeRoom(*client)) {
    const Outcome outcome = Wait(client, doing, error);
    if (outcome == Outcome::kRefused)
      *error = "TRYAGAIN too many clients have commands under way at the leader";
    return outcome;
  }
  // A leader may send calls back again and again: that ends, too.
  if (!may_pass || IsLate(*client)) return Wait(client, doing, error);
  PutCall(end, client, session, command, args, doing);
  session.switches.waits_elsewhere = session.switches.waits_elsewhere || command.Has(kBlocking);
  // What waits for others may do so for ever, and nothing is to be held back for as long, nor
  // behind it.
  if (session.switches.waits_elsewhere) client->EndHolding();
  client->skips = session.reply_mode == ReplyMode::kSkipping;
  if (command.Is(CommandRole::kWatch)) client->watches = true;
  if (command.Is(CommandRole::kUnwatch)) client->watches = client->watches_lost = false;
  if (is_exec) client->transaction = std::move(session.transaction);
  ++figures_.calls_out;
  return Outcome::kPassed;
}

// An EXEC stands alone, since what it takes with it is the session's; so does what goes without a
// reply, in case it must be asked again.
bool CommandLinks::IsFull(const PassedClient& client, bool is_exec) const {
  if (client.calls().empty()) return false;
  if (is_exec || client.transaction != nullptr || client.skips) return true;
  if (client.calls().bytes() > kClientBytesMax) return true;
  return client.link() != nullptr && client.link()->call_bytes() > kLinkBytesMax;
}

void CommandLinks::PutCall(EntryEnd* end, PassedClient* client, const Session& session,
                           const CommandEntry& command, Arguments args, Doing doing) {
  const CallIdentityView identity{
      .user = session.user_name,
      .keyspace = session.keyspace,
      .address = session.address,
      .version = static_cast<uint8_t>(session.version == RespVersion::k3 ? 3 : 2)};
  std::string* const text = end->entry().Begin(client, identity);
  if (command.Is(CommandRole::kExec)) {
    PutTransaction(*session.transaction, text);
  } else {
    PutCallCount(1, text);
    PutCallWords(args, text);
  }
  uint8_t flags = 0;
  if (doing.writes) flags |= kCallWrites;
  if (session.reply_mode != ReplyMode::kOn) flags |= kCallMute;
  if (doing.writes && session.tracking != nullptr && session.tracking->noloop) {
    flags |= kCallTells;
    session.tracking->passed.Begin();
  }
  end->entry().Pass(client, flags);
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
CommandPassing::Outcome CommandLinks::Wait(PassedClient* client, Doing doing, std::string* error) {
  if (client->since_micros == 0) client->since_micros = now();
  if (!IsLate(*client)) {
    Hold(client);
    return Outcome::kWaits;
  }
  client->since_micros = 0;
  const auto leader = set()->KnownLeader();
  const bool behind = !doing.writes && IsBehind(*client, true);
  *error = !leader  ? "CLUSTERDOWN no leader: " + set()->NoLeaderText()
           : behind ? "TRYAGAIN what this connection has been told of has not come here yet"
                    : fmt::format("CLUSTERDOWN no leader: {}:{} does not answer", leader->host,
                                  leader->port);
  return Outcome::kRefused;
}

bool CommandLinks::IsLate(const PassedClient& client) const {
  return client.since_micros != 0 &&
         now() - client.since_micros >= host_.services().config.cluster_wait * 1000;
}

bool CommandLinks::HoldsBack(Session& session) {
  PassedClient* const client = ClientOf(session);
  if (client == nullptr || client->calls().empty()) return false;
  Hold(client);
  return true;
}

bool CommandLinks::Lags(Session& session, const CommandEntry& command, Doing doing,
                        std::string* error) {
  PassedClient* const client = ClientOf(session);
  if (client == nullptr || set() == nullptr || set()->open() || session.switches.reads_stale ||
      !(doing.reads || AsksForState(command)))
    return false;
  const bool in_feeds = doing.reads && ReadsFeeds(session, command);
  if (!IsBehind(*client, in_feeds)) return false;
  const bool waits = Wait(client, {.writes = false, .reads = true}, error) == Outcome::kWaits;
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
    if (client->lags != Lags::kNo && !IsBehind(*client, client->lags == Lags::kFeeds)) Wake(client);
}

// DISCARD and RESET end watches wherever they are kept, and so does an EXEC that is refused here.
void CommandLinks::OnRunsHere(Session& session, const CommandEntry& command) {
  PassedClient* const client = ClientOf(session);
  if (client == nullptr) return;
  client->since_micros = 0;
  const bool ends = command.Is(CommandRole::kEndsWatches) || command.Is(CommandRole::kExec);
  if (ends && (client->watches || client->watches_lost)) EndWatches(client);
}

void CommandLinks::EndWatches(PassedClient* client) {
  CELLAR_ASSERT(client->calls().empty());
  client->watches = client->watches_lost = false;
  if (client->link() != nullptr) client->link()->Leave(client);
}

uint64_t CommandLinks::AskToUnblock(Session& session, UnblockReason reason) {
  PassedClient* const client = ClientOf(session);
  if (client == nullptr || client->calls().empty()) return 0;
  const auto end = std::find_if(entries_.begin(), entries_.end(), [client](const auto& each) {
    return &each->entry() == client->link();
  });
  if (end == entries_.end() || !(*end)->unblocks()) return 0;
  const bool error = reason == UnblockReason::kError;
  (*end)->entry().Unblock(client, error ? UnblockHow::kError : UnblockHow::kTimeout);
  client->unblockings.Ask(client->calls().first(), ++unblocking_last_);
  unblockings_[unblocking_last_] = Unblocked::kNotYet;
  return unblocking_last_;
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
  const bool leads = set() != nullptr && set()->open();
  if (!client->waits || (leads && !client->calls().empty())) return;
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
    if (client->calls().empty() || client->since_micros != 0) Wake(client);
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

CommandLinks::EntryEnd* CommandLinks::LeaderLink() {
  const uint64_t leader = set()->set().leader();
  if (leader == 0) return nullptr;
  for (const auto& end : entries_)
    if (end->node() == leader && !end->dead()) return end->stands() ? end.get() : nullptr;
  const auto address = set()->KnownLeader();
  if (!address || now() < redial_micros_) return nullptr;
  redial_micros_ = now() + kRedialMicros;
  entries_.push_back(std::make_unique<EntryEnd>(*this, leader, *address));
  entries_.back()->Begin();
  return nullptr;
}

PeerHandler* CommandLinks::Accept(PeerLink* link, uint64_t node) {
  const SetMember* const member = set()->set().members().Find(node);
  CELLAR_ASSERT(member != nullptr);
  owners_.push_back(std::make_unique<OwnerEnd>(*this, link, node,
                                               fmt::format("{}:{}", member->host, member->port)));
  return owners_.back().get();
}

std::unique_ptr<CallServant> CommandLinks::MakeServant(const CallIdentity& identity) {
  return std::make_unique<CommandServant>(host_, static_cast<CommandServantHost&>(*this),
                                          servant_id_++, caller_, identity);
}

void CommandLinks::OnTurn(Lsn released) {
  released_ = released;
  SetUsers::TakeOver(host_);
  WakeLagging();
  messages_.OnTurn();
  for (const auto& end : owners_) end->OnTurn();
  for (const auto& end : entries_) end->OnTurn();
  std::erase_if(owners_, [](const auto& end) { return end->dead(); });
  std::erase_if(entries_, [](const auto& end) { return end->dead(); });
}

// Sessions whose calls are on their way to who has led wait for these, also where this node leads
// now.
void CommandLinks::OnRoleChanged() {
  if (set() == nullptr) return;
  if (set()->open()) {
    host_.ForEachSession([this](Session& session) {
      if (ClientOf(session) != nullptr && HoldsBack(session)) session.postponed = true;
    });
  }
  stale_micros_ = now() + host_.services().config.cluster_wait * 1000;
  WakeAll();
}

void CommandLinks::OnOwnerNoMore(Lsn released) {
  released_ = released;
  for (const auto& end : owners_) end->OnOwnerNoMore();
}

// A link to one that leads no more is given up when it has had the time to say what is to be said.
void CommandLinks::OnTick() {
  messages_.OnTick();
  if (set() == nullptr) return;
  SetUsers::Found(host_);
  ClusterPart::Tend(host_);
  memory_bytes_ = CountMemory();
  const bool closes_idle = now() >= idle_micros_;
  if (closes_idle) idle_micros_ = now() + kIdleMicros;
  const uint64_t leader = set()->set().leader();
  for (const auto& end : entries_) {
    if (closes_idle) end->entry().CloseIdle();
    const bool stale = leader != 0 && end->node() != leader;
    const bool rests = end->stands() && end->entry().calls() == 0;
    if (stale && (rests || now() >= stale_micros_)) end->Fail("it leads no more");
    if (!end->dead() && end->IsIdle(now())) end->Fail("nothing is passed on");
    end->OnTick();
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

void CommandLinks::OnPoll() { WakeAll(); }

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
  return std::any_of(servants_.begin(), servants_.end(),
                     [](const CommandServant* servant) { return servant->running(); });
}

bool CommandLinks::tasks_proceed() const {
  return std::any_of(servants_.begin(), servants_.end(), [](CommandServant* servant) {
    return servant->running() && !servant->session().task->waiting;
  });
}

void CommandLinks::RunTasks(const TaskBudget& budget, bool woken) {
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
  return bytes;
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
