// See replication.h.
#include "replica/replication.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/assert.h"
#include "base/free_string.h"
#include "base/os/log.h"
#include "replica/follower_feed.h"
#include "replica/greeting.h"
#include "replica/set/refused.h"
#include "replica/set_node.h"
#include "replica/snapshot_fetch.h"
#include "replica/snapshot_serve.h"
#include "replica/upstream.h"

namespace cellar {
namespace {

bool ParseHex(std::string_view text, uint64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value, 16);
  return error == std::errc{} && end == text.data() + text.size();
}

// How long a replica may take to say that it has taken over. A message that it gets later than
// kHandOverFreshMicros (upstream.cc) is ignored, so that afterwards it surely will not.
constexpr int64_t kHandOverMicros{5'000'000};
// Of a turn, for records of a set that have been committed.
constexpr int64_t kApplySliceMicros{1000};

constexpr std::string_view kNotInSet =
    "REPLICAOF is not allowed in a replica set, use FAILOVER or REPLICA";

std::string AddressText(const NodeAddress& address) {
  return fmt::format("{}:{}", address.host, address.port);
}

}  // namespace

std::string_view LinkStateWord(LinkState state) {
  constexpr std::string_view kWords[] = {"connect", "connecting", "sync", "connected"};
  return kWords[static_cast<size_t>(state)];
}

std::string_view FailoverStateWord(FailoverState state) {
  constexpr std::string_view kWords[] = {"no-failover", "waiting-for-sync", "failover-in-progress"};
  return kWords[static_cast<size_t>(state)];
}

Replication::Replication(ReplicationHost& host, FileSystem& files, Clock& clock)
    : host_(host),
      files_(files),
      clock_(clock),
      random_(0),
      tail_(ReplicationOptions{}.tail_bytes) {}

Replication::~Replication() = default;

void Replication::SetOptions(ReplicationOptions options) {
  if (identity_.node == 0) {
    random_ = Random(options.seed);
    // Until a file says otherwise: an id of this process.
    identity_.cluster = random_.Next();
    identity_.node = random_.Next() | 1;
  }
  options_ = std::move(options);
  tail_.SetBytesMax(options_.tail_bytes);
  if (identity_file_ != nullptr && store_ != nullptr)
    store_->journal().SetBacklog(options_.backlog_bytes);
  if (set_ != nullptr) set_->SetOptions();
}

bool Replication::is_leader() const {
  if (in_set()) return set_ != nullptr && set_->open();
  return upstream_ == nullptr && !will_follow();
}

size_t Replication::tail_bytes() const {
  return tail_.memory_bytes() + (set_ == nullptr ? 0 : set_->tail_bytes());
}

FailoverState Replication::failover_state() const {
  return set_ == nullptr ? failover_state_ : set_->failover_state();
}

// A member of a set that has lost its kReplicaFileName does not know any more whom it has voted
// for, and could vote twice in one term: it must not take part.
Status Replication::Attach(Store* store, const std::string& directory) {
  store_ = store;
  directory_ = directory;
  ASSIGN_OR_RETURN(const bool known, files_.Exists(JoinPath(directory, kReplicaFileName)));
  if (!options_.nodes.empty()) {
    // What it has promised is not known any more.
    if (!known && store->names_members())
      return Refused(directory + " belongs to a member of a replica set, but its " +
                     std::string(kReplicaFileName) +
                     " is gone: empty it to join the set as a new node");
    RETURN_IF_ERROR(EnsureIdentity());
    set_ = std::make_unique<SetNode>(*this, *store);
    return set_->Begin();
  }
  if (!known) return Status::Ok();
  RETURN_IF_ERROR(EnsureIdentity());
  store_->journal().SetBacklog(options_.backlog_bytes);
  return Status::Ok();
}

void Replication::Detach() {
  if (set_ != nullptr) set_->End();
  set_.reset();
  feeds_.clear();
  dropped_.clear();
  if (upstream_ != nullptr) upstream_->End();
  if (tail_runs_) store_->journal().SetSink(nullptr);
  tail_runs_ = false;
  store_ = nullptr;
}

Status Replication::EnsureIdentity() {
  if (identity_file_ != nullptr) return Status::Ok();
  ASSIGN_OR_RETURN(identity_file_, IdentityFile::Open(files_, directory_, identity_));
  identity_ = identity_file_->identity();
  return Status::Ok();
}

Status Replication::WriteIdentity(const Identity& identity) {
  RETURN_IF_ERROR(identity_file_->Write(identity));
  identity_ = identity;
  return Status::Ok();
}

std::string Replication::cluster_text() const {
  return fmt::format("{:016x}{:024x}", identity_.cluster, 0);
}

uint32_t Replication::term() const {
  const uint32_t in_log = store_ == nullptr ? 0 : store_->journal().epoch();
  return std::max(identity_.term, in_log);
}

std::string_view Replication::state_word() const {
  if (in_set()) return set_ == nullptr ? "joining" : set_->state_word();
  if (failover_state_ != FailoverState::kNone) return "handing-over";
  if (is_leader()) return active() ? "leader" : "standalone";
  return "follower";
}

Lsn Replication::commit() const {
  if (set_ != nullptr) return set_->member().commit();
  if (upstream_ != nullptr) return upstream_->Figures().commit;
  if (store_ == nullptr) return {};
  return std::min(store_->journal().released_lsn(), store_->journal().last_lsn());
}

int64_t Replication::skew_micros() const {
  int64_t largest = upstream_ == nullptr ? 0 : upstream_->Figures().skew_micros;
  if (set_ != nullptr) largest = set_->skew_micros();
  for (const auto& feed : feeds_) {
    const int64_t skew = feed->Figures().skew_micros;
    if (std::abs(skew) > std::abs(largest)) largest = skew;
  }
  return largest;
}

int64_t Replication::SkewOf(const NodeAddress& address, int64_t wall_micros,
                            int64_t before_micros) const {
  constexpr int64_t kTellMicros{500'000};
  const int64_t skew = wall_micros - clock_.WallMicros();
  if (std::abs(skew) > kTellMicros && std::abs(before_micros) <= kTellMicros) {
    Log(LogSeverity::kWarning,
        fmt::format("the clock of {} is {} ms {} this one's: what is due is hidden earlier on one "
                    "of them than on the other",
                    AddressText(address), std::abs(skew) / 1000, skew > 0 ? "ahead of" : "behind"));
  }
  return skew;
}

// Times are this node's own clock: the other end only sends them back, as an echo, and never
// compares them with its own.
FrameHead Replication::MakeHead(FrameKind kind) const {
  return {.kind = kind,
          .room = true,
          .term = term(),
          .from = identity_.node,
          .sent_micros = clock_.MonotonicMicros(),
          .echo_micros = 0};
}

void Replication::Send(PeerLink* link, FrameKind kind, std::string_view body) {
  Send(link, MakeHead(kind), body);
}

void Replication::Send(PeerLink* link, const FrameHead& head, std::string_view body,
                       std::string_view rest) {
  // An error may name a path, or repeat an answer, of any length.
  if (head.kind == FrameKind::kError) body = body.substr(0, kErrorTextBytesMax);
  BeginFrame(head, &frame_);
  frame_.append(body).append(rest);
  SealFrame(&frame_);
  SendFrame(link, frame_);
  if (frame_.capacity() > kFrameKeptBytes) FreeString(&frame_);
}

void Replication::SendFrame(PeerLink* link, std::string_view frame) {
  stats_.link_bytes_out += frame.size();
  link->Write(frame);
}

// The tail is filled from the first follower on; a single server pays nothing for it.
void Replication::StartTail() {
  store_->Flush();
  tail_.Restart(store_->journal().flushed_lsn());
  store_->journal().SetBacklog(options_.backlog_bytes);
  store_->journal().SetSink(&tail_);
  tail_runs_ = true;
  UpdateRetention();
}

void Replication::OnReloaded() {
  if (tail_runs_) return StartTail();
  if (identity_file_ != nullptr) store_->journal().SetBacklog(options_.backlog_bytes);
}

// --- roles

// Nothing of the log is dropped here. What this node has and the leader does not is found out by
// the handshake, and saved then (Upstream::SaveDiverged).
Status Replication::Follow(const NodeAddress& leader) {
  CELLAR_ASSERT(store_ != nullptr);
  if (set_ != nullptr) return Refused(std::string(kNotInSet));
  take_back_micros_ = 0;
  if (!store_->journal().Stats().log_enabled)
    return Refused("a follower needs a log: appendonly is no");
  RETURN_IF_ERROR(EnsureIdentity());
  if (upstream_ != nullptr) {
    if (upstream_->leader() == leader) return Status::Ok();
    upstream_->End();
    dropped_upstreams_.push_back(std::move(upstream_));
  }
  Log(LogSeverity::kNotice, "Following " + AddressText(leader) + " from now on");
  store_->SetFollowing(true);
  upstream_ = std::make_unique<Upstream>(*this, feed_id_next_++, leader);
  told_circle_ = 0;
  upstream_->Begin();
  host_.OnRoleChanged();
  return Status::Ok();
}

// What has come from the leader and is committed is applied first: clients of the old leader have
// been told of it. Then an epoch of its own begins, and only then does the node say that it leads.
Status Replication::Lead() {
  CELLAR_ASSERT(store_ != nullptr);
  if (set_ != nullptr) return Refused(std::string(kNotInSet));
  if (upstream_ == nullptr) return Status::Ok();
  while (upstream_->ApplySlice(INT64_MAX)) {
  }
  RETURN_IF_ERROR(BeginEpoch());
  take_back_micros_ = 0;
  upstream_->TellThatItLeads();
  upstream_->End();
  dropped_upstreams_.push_back(std::move(upstream_));
  store_->SetFollowing(false);
  Log(LogSeverity::kNotice, fmt::format("Leading from now on, in epoch {}", term()));
  host_.OnRoleChanged();
  host_.WakeTasks();
  return Status::Ok();
}

// What follows is of another history than what the former leader may still write: a record says so
// before all else, so that the two can be told apart.
Status Replication::BeginEpoch() {
  const uint32_t highest = std::max(term(), seen_term_);
  if (highest == UINT32_MAX) return Refused("there is no epoch left to lead in");
  Identity identity = identity_;
  identity.term = highest + 1;
  RETURN_IF_ERROR(WriteIdentity(identity));
  return store_->BeginEpoch(identity.term);
}

// A follower that holds nothing yet has no stale answers to give either: it says LOADING.
bool Replication::awaits_first_copy() const {
  if (upstream_ == nullptr || !upstream_->copies()) return false;
  return store_->engine().FindTableFrom(0) == nullptr;
}

const NodeAddress& Replication::leader() const {
  if (will_follow()) return *options_.follows;
  CELLAR_ASSERT(upstream_ != nullptr);
  return upstream_->leader();
}

// --- failover

// Three steps: writes are held and a follower catches up (kWaitForSync); it is told to lead
// (kInProgress); this node follows it. Until the second step all can be taken back.
Status Replication::BeginFailover(const std::optional<NodeAddress>& to, int64_t timeout_micros,
                                  bool force) {
  if (set_ != nullptr) {
    if (force) return Refused("FAILOVER with FORCE is not allowed in a replica set");
    return set_->BeginFailover(to, timeout_micros);
  }
  if (failover_state_ != FailoverState::kNone) return Refused("FAILOVER already in progress.");
  if (!is_leader()) return Refused("FAILOVER is not valid when server is a replica.");
  const bool any =
      std::any_of(feeds_.begin(), feeds_.end(), [](const auto& f) { return f->online(); });
  if (!any) return Refused("FAILOVER requires connected replicas.");
  if (to) {
    const bool there = std::any_of(feeds_.begin(), feeds_.end(), [&to](const auto& feed) {
      return feed->online() && feed->address() == *to;
    });
    if (!there) return Refused("FAILOVER target HOST and PORT is not a replica.");
  }
  failover_state_ = FailoverState::kWaitForSync;
  failover_to_ = to;
  failover_force_ = force;
  failover_deadline_micros_ = timeout_micros == 0 ? 0 : clock_.MonotonicMicros() + timeout_micros;
  Log(LogSeverity::kNotice, "FAILOVER begins: writes are held");
  host_.HoldWrites(true);
  AskForSync();
  host_.WakeSoon();
  return Status::Ok();
}

Status Replication::AbortFailover() {
  if (set_ != nullptr) return set_->AbortFailover();
  if (failover_state_ == FailoverState::kNone) return Refused("No failover in progress.");
  if (failover_state_ == FailoverState::kInProgress)
    return Refused("The replica is taking over: that cannot be undone.");
  Log(LogSeverity::kNotice, "FAILOVER was given up");
  EndFailover();
  return Status::Ok();
}

void Replication::EndFailover() {
  failover_state_ = FailoverState::kNone;
  failover_to_.reset();
  host_.HoldWrites(false);
}

// In the first step waits for a follower that has everything on its disk. In the second, for its
// answer: without one nobody knows who leads, so this node stops to write and follows, and leads
// again only if the other surely does not (take_back_micros_).
void Replication::StepFailover() {
  if (failover_state_ == FailoverState::kNone || store_ == nullptr) return;
  if (failover_state_ == FailoverState::kInProgress) {
    FollowerFeed* const feed = FeedById(successor_feed_);
    if (feed != nullptr && clock_.MonotonicMicros() < hand_over_end_micros_) return;
    // It may lead or not: nothing is written here until that is known.
    if (feed != nullptr) feed->Fail("it does not say whether it leads now");
    FollowSuccessor();
    take_back_micros_ = hand_over_end_micros_;
    return;
  }
  const Lsn last = store_->journal().last_lsn();
  const int64_t now = clock_.MonotonicMicros();
  const bool late = failover_deadline_micros_ != 0 && now >= failover_deadline_micros_;
  FollowerFeed* best = nullptr;
  for (const auto& feed : feeds_) {
    if (!feed->online() || (failover_to_ && feed->address() != *failover_to_)) continue;
    if (best == nullptr || feed->durable() > best->durable()) best = feed.get();
  }
  const bool ready = best != nullptr && best->durable() >= last;
  if (!ready && late && (!failover_force_ || best == nullptr)) {
    Log(LogSeverity::kWarning, "FAILOVER: no follower had everything in time; it is given up");
    return EndFailover();
  }
  if (!ready && !late) return best == nullptr ? void() : best->AskForSync();
  HandOver(best);
}

// From here on nothing is added to the log: what the other has is all there is.
void Replication::HandOver(FollowerFeed* feed) {
  failover_state_ = FailoverState::kInProgress;
  successor_feed_ = feed->id();
  successor_ = feed->address();
  hand_over_end_micros_ = clock_.MonotonicMicros() + kHandOverMicros;
  Log(LogSeverity::kNotice, "FAILOVER: " + AddressText(successor_) + " takes over");
  store_->SetFollowing(true);
  feed->HandOver(store_->journal().last_lsn());
}

void Replication::EndHandOver(FollowerFeed* feed, bool leads) {
  if (failover_state_ != FailoverState::kInProgress || successor_feed_ != feed->id()) return;
  if (leads) return FollowSuccessor();
  Log(LogSeverity::kWarning, "FAILOVER: it cannot take over; this node goes on leading");
  store_->SetFollowing(false);
  EndFailover();
}

void Replication::FollowSuccessor() {
  if (const Status followed = Follow(successor_); !followed.ok())
    Log(LogSeverity::kWarning, "cannot follow it: " + followed.text());
  host_.DisconnectClients();
  EndFailover();
}

// Asked when a link says whether its end leads. Behind a handing over that failed, this node takes
// the lead back once the message that offered it must have expired.
bool Replication::MayFollow(bool leads) {
  if (leads || take_back_micros_ == 0) {
    take_back_micros_ = 0;
    return true;
  }
  if (clock_.MonotonicMicros() < take_back_micros_) return false;
  Log(LogSeverity::kWarning, "FAILOVER: who should have taken over has not; this node leads again");
  if (const Status led = Lead(); !led.ok()) Log(LogSeverity::kWarning, led.text());
  return false;
}

// --- peers

// PEER: what the connection is for decides who sits on it. The ids come from the other node and are
// checked; that it may connect at all is access control's to say.
Result<PeerHandler*> Replication::Accept(PeerLink* link, std::string_view version,
                                         std::string_view cluster, std::string_view node,
                                         std::string_view purpose, std::string_view features) {
  if (version != fmt::format("{}", kPeerVersion)) {
    return Refused(fmt::format("PEER version {} is not spoken here ({})", version.substr(0, 16),
                               kPeerVersion));
  }
  uint64_t cluster_id = 0;
  uint64_t node_id = 0;
  if (!ParseHex(cluster, &cluster_id) || !ParseHex(node, &node_id) || node_id == 0)
    return Refused("PEER takes the ids of cluster and node in hexadecimal digits");
  if (purpose == "bulk") return AcceptBulk(link, node_id, features);
  if (purpose == "member") {
    if (set_ == nullptr) return Refused("this server is no member of a replica set");
    return set_->AcceptMember(link, cluster_id, node_id);
  }
  if (set_ != nullptr) return Refused("a member of a replica set is not followed");
  if (purpose != "follow") return Refused("PEER: there is no such purpose; `follow` is one");
  return AcceptFollower(link, node_id);
}

Result<uint64_t> Replication::CheckCaller(std::string_view version, std::string_view cluster,
                                          std::string_view node, bool is_known) const {
  if (version != fmt::format("{}", kPeerVersion)) return Refused("PEER version is not spoken here");
  uint64_t cluster_id = 0;
  uint64_t node_id = 0;
  if (!ParseHex(cluster, &cluster_id) || !ParseHex(node, &node_id) || node_id == 0)
    return Refused("PEER takes the ids of cluster and node in hexadecimal digits");
  if (set_ == nullptr) return Refused("this server is no member of a replica set");
  const bool knows = is_known || (cluster_id == identity_.cluster &&
                                  set_->set().members().Find(node_id) != nullptr);
  if (!knows || node_id == identity_.node) return Refused("PEER: no member of this replica set");
  return node_id;
}

std::string Replication::BeginGreeting(PeerGreeting* greeting, std::string_view purpose,
                                       uint64_t features) const {
  return greeting->Begin(options_, identity_, purpose, features);
}

Result<PeerHandler*> Replication::AcceptFollower(PeerLink* link, uint64_t node) {
  if (!store_->journal().Stats().log_enabled)
    return Refused("this server has no log that could be followed: appendonly is no");
  RETURN_IF_ERROR(EnsureIdentity());
  if (node == identity_.node)
    return Refused(
        "PEER: a node cannot follow itself, nor one that was copied with its "
        "cellar.replica");
  for (const auto& feed : feeds_) {
    // A follower that dials anew has lost its link, though this end may not know it yet.
    if (feed->node() != node) continue;
    feed->Fail("another connection came from a node with its id");
    break;
  }
  if (!tail_runs_) StartTail();
  feeds_.push_back(std::make_unique<FollowerFeed>(*this, link, feed_id_next_++, node));
  LookForCircle();
  return static_cast<PeerHandler*>(feeds_.back().get());
}

// Two nodes are a circle that both ends see. Each of them only follows: nobody takes a write.
void Replication::LookForCircle() {
  if (upstream_ == nullptr) return;
  const uint64_t leader = upstream_->leader_node();
  const bool circle =
      leader != 0 && std::any_of(feeds_.begin(), feeds_.end(),
                                 [leader](const auto& feed) { return feed->node() == leader; });
  if (!circle || told_circle_ == leader) return;
  told_circle_ = leader;
  const NodeAddress& address = upstream_->leader();
  Log(LogSeverity::kWarning,
      fmt::format("This node follows {}:{}, which follows it: neither of them takes writes. "
                  "REPLICAOF NO ONE makes one of them the leader",
                  address.host, address.port));
}

Result<PeerHandler*> Replication::AcceptBulk(PeerLink* link, uint64_t node,
                                             std::string_view ticket) {
  uint64_t number = 0;
  const bool parsed = ParseHex(ticket, &number);
  SnapshotServe* const of_set = set_ != nullptr && parsed ? set_->ServeOf(number) : nullptr;
  if (of_set != nullptr && !of_set->attached()) {
    of_set->Attach(link);
    return static_cast<PeerHandler*>(of_set);
  }
  for (const auto& feed : feeds_) {
    SnapshotServe* const serve = feed->serve();
    if (!parsed || feed->node() != node || serve == nullptr || serve->ticket() != number) continue;
    if (serve->attached()) break;
    serve->Attach(link);
    return static_cast<PeerHandler*>(serve);
  }
  return Refused("PEER: no copy is waiting to be fetched with that ticket");
}

SnapshotServe* Replication::ServeOf(uint64_t feed, uint64_t ticket) {
  if (feed == 0) return set_ == nullptr ? nullptr : set_->ServeOf(ticket);
  FollowerFeed* const found = FeedById(feed);
  SnapshotServe* const serve = found == nullptr ? nullptr : found->serve();
  return serve != nullptr && serve->ticket() == ticket ? serve : nullptr;
}

SnapshotFetch* Replication::FetchById(uint64_t id) {
  SnapshotFetch* const fetch = set_ != nullptr        ? set_->fetch()
                               : upstream_ == nullptr ? nullptr
                                                      : upstream_->fetch();
  return fetch != nullptr && fetch->id() == id ? fetch : nullptr;
}

// Log that a follower's copy lacks must stay until the follower has come behind it.
void Replication::UpdateRetention() {
  uint64_t behind = UINT64_MAX;
  for (const auto& feed : feeds_) {
    if (feed->copies()) behind = std::min(behind, feed->position().seq);
  }
  if (store_ != nullptr) store_->journal().SetRetainBehind(behind);
}

FollowerFeed* Replication::FeedById(uint64_t id) {
  for (const auto& feed : feeds_) {
    if (feed->id() == id) return feed.get();
  }
  return nullptr;
}

// Called from inside the feed's own functions: it is destroyed at the end of the turn.
void Replication::DropFeed(FollowerFeed* feed) {
  const auto found = std::find_if(feeds_.begin(), feeds_.end(),
                                  [feed](const auto& each) { return each.get() == feed; });
  if (found == feeds_.end()) return;
  dropped_.push_back(std::move(*found));
  feeds_.erase(found);
  UpdateRetention();
}

// --- the loop

bool Replication::postpones() const {
  return std::any_of(feeds_.begin(), feeds_.end(), [](const auto& f) { return f->postpones(); });
}

// Behind the turn's flush: records go to the followers as they go to the disk, and acknowledgements
// to the leader.
void Replication::OnFlushed() {
  if (store_ == nullptr) return;
  if (set_ != nullptr) return set_->OnTurn(clock_.MonotonicMicros() + kApplySliceMicros);
  for (size_t i = 0; i < feeds_.size(); ++i) feeds_[i]->Pump();
  if (upstream_ != nullptr) upstream_->SendAck();
  if (failover_state_ != FailoverState::kNone) StepFailover();
  dropped_.clear();
  dropped_upstreams_.clear();
}

bool Replication::ApplySlice(int64_t deadline_micros) {
  return store_ != nullptr && upstream_ != nullptr && upstream_->ApplySlice(deadline_micros);
}

void Replication::OnTick() {
  if (store_ == nullptr) return;
  remake_.OnTick(store_->journal(), clock_);
  if (set_ != nullptr) return set_->OnTick();
  for (size_t i = 0; i < feeds_.size(); ++i) feeds_[i]->OnTick();
  if (upstream_ != nullptr) upstream_->OnTick();
  StepFailover();
  dropped_.clear();
}

// --- figures

std::vector<FollowerFigures> Replication::followers() const {
  if (set_ != nullptr) return set_->Followers();
  std::vector<FollowerFigures> all;
  for (const auto& feed : feeds_) all.push_back(feed->Figures());
  return all;
}

std::optional<UpstreamFigures> Replication::upstream() const {
  if (in_set()) {
    UpstreamFigures none;
    none.state = LinkState::kConnecting;
    if (set_ == nullptr) return none;
    return set_->open() ? std::nullopt : std::optional(set_->Upstream());
  }
  if (will_follow()) {
    UpstreamFigures none;
    none.address = *options_.follows;
    none.down_since_micros = clock_.MonotonicMicros();
    return none;
  }
  if (upstream_ == nullptr) return std::nullopt;
  return upstream_->Figures();
}

size_t Replication::waiting_bytes() const {
  if (set_ != nullptr) return set_->waiting_bytes();
  return upstream_ == nullptr ? 0 : upstream_->memory_bytes();
}

void Replication::AskForSync() {
  store_->Flush();
  for (size_t i = 0; i < feeds_.size(); ++i) feeds_[i]->AskForSync();
}

size_t Replication::FollowersWith(Lsn lsn) const {
  if (set_ != nullptr) return set_->open() ? set_->MembersWith(lsn) : 0;
  return static_cast<size_t>(std::count_if(feeds_.begin(), feeds_.end(), [lsn](const auto& feed) {
    return feed->online() && feed->durable() >= lsn;
  }));
}

size_t Replication::FollowersWithin(int64_t lag_micros) const {
  const int64_t now = clock_.MonotonicMicros();
  return static_cast<size_t>(
      std::count_if(feeds_.begin(), feeds_.end(), [now, lag_micros](const auto& feed) {
        return feed->online() && now - feed->acked_micros() <= lag_micros;
      }));
}

}  // namespace cellar
