// Links, founding and joining, snapshots. See set_node.h; set_node_figures.cc has what others are
// told.
#include "replica/set_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <tuple>
#include <utility>

#include "base/assert.h"
#include "base/coding.h"
#include "base/os/log.h"
#include "cellar/version.h"
#include "replica/set/refused.h"
#include "replica/set_links.h"
#include "store/snapshot/snapshot_reader.h"

namespace cellar {
namespace {

// Of a kHello.
constexpr uint8_t kHelloWantsIn{1};
constexpr uint8_t kHelloShutsOut{2};

// "host:port"; nothing: it is none.
std::optional<NodeAddress> ParseAddress(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || !IsPlainHost(text.substr(0, colon))) return std::nullopt;
  NodeAddress address{std::string(text.substr(0, colon)), 0};
  const std::string_view port = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (error != std::errc{} || end != port.data() + port.size() || address.port == 0)
    return std::nullopt;
  return address;
}

ReplicaSetOptions OptionsOf(const ReplicationOptions& options, uint64_t node) {
  ReplicaSetOptions set;
  set.node = node;
  set.election_micros = options.election_micros;
  set.heartbeat_micros = options.election_micros / 10;
  set.lease = options.lease;
  set.seed = options.seed;
  return set;
}

}  // namespace

struct SetNode::InstallJob {
  std::unique_ptr<WritableFile> file;
  Status status;
};

SetNode::SetNode(Replication& owner, Store& store)
    : owner_(owner),
      store_(store),
      member_(*this, store, owner.files_, owner.clock_,
              OptionsOf(owner.options_, owner.identity_.node), owner.options_.tail_bytes),
      leaderless_since_(now()),
      // That no answer to another process, before this one, is taken for one of its own.
      read_first_((owner.random_.Next() >> 2) + 1),
      read_next_(read_first_) {
  for (const NodeAddress& address : owner.options_.nodes) {
    if (address == owner.options_.self) continue;
    auto peer = std::make_unique<Peer>();
    peer->text = TextOf(address);
    peer->address = address;
    peer->listed = true;
    peer->out = std::make_unique<OutLink>(*this, *peer);
    peers_.push_back(std::move(peer));
  }
  member_.SetBacklog(owner.options_.backlog_bytes);
  store_.set_feature_gate([this](Feature feature) { return WantLevel(LevelOf(feature)); });
}

SetNode::~SetNode() {
  store_.set_feature_gate(nullptr);
  DropFetch();
  serves_.clear();
}

std::string SetNode::TextOf(const NodeAddress& address) {
  return fmt::format("{}:{}", address.host, address.port);
}

int64_t SetNode::now() const { return owner_.clock_.MonotonicMicros(); }

void SetNode::SetOptions() {
  member_.SetTailBytes(owner_.options_.tail_bytes);
  member_.SetBacklog(owner_.options_.backlog_bytes);
}

Status SetNode::Begin() {
  RETURN_IF_ERROR(CheckKind());
  if (member_.is_member()) RETURN_IF_ERROR(StartMember(ReplicaSet::Begins::kHeld));
  owner_.host_.OnRoleChanged();
  OnTick();
  return Status::Ok();
}

// Refused if the set has come to a feature level that this version does not know, or has this node
// as another kind than its files are of: data that is not there cannot be made up.
Status SetNode::StartMember(ReplicaSet::Begins begins) {
  RETURN_IF_ERROR(member_.Start(owner_.identity_.term, owner_.identity_.vote, begins));
  RETURN_IF_ERROR(BeginPast(begins));
  if (feature_level() > kFeatureLevel) {
    return Refused(fmt::format(
        "the replica set has come to feature level {}, and this version knows no more than {}",
        feature_level(), kFeatureLevel));
  }
  const SetMember* const own = set().members().Find(owner_.identity_.node);
  const bool as_witness = own != nullptr && own->kind == MemberKind::kWitness;
  const bool with_data =
      own != nullptr && (own->kind == MemberKind::kVoter || own->kind == MemberKind::kStandby);
  if (is_witness() ? with_data : as_witness) {
    return Refused(
        fmt::format("the set has this node as a {}, and {} holds {}: empty it, and let "
                    "the node join anew",
                    as_witness ? "witness" : "member with data", owner_.directory_,
                    is_witness() ? "a log alone" : "data"));
  }
  owner_.host_.OnRoleChanged();
  return Status::Ok();
}

// What replica-kind says counts for a node that has nothing yet.
Status SetNode::CheckKind() const {
  const bool wanted = owner_.options_.kind == MemberKind::kWitness;
  if (wanted == is_witness()) return Status::Ok();
  if (wanted && !member_.is_member())
    return Refused("replica-kind is witness, and " + owner_.directory_ +
                   " holds data of no set: empty it");
  Log(LogSeverity::kWarning,
      fmt::format("replica-kind counts for a node that joins: this one stays a {}. To change that, "
                  "REMOVE it, and let it join with an empty {}",
                  is_witness() ? "witness" : "member with data", owner_.directory_));
  return Status::Ok();
}

// As what it is to be added.
MemberKind SetNode::kind() const {
  if (is_witness()) return MemberKind::kWitness;
  return owner_.options_.kind == MemberKind::kWitness ? MemberKind::kVoter : owner_.options_.kind;
}

void SetNode::End() {
  member_.Close();
  ClosePast();
  for (const auto& peer : peers_) peer->out->Close();
  for (const auto& link : in_links_) link->Drop();
}

void SetNode::Refuse(const std::string& why) { owner_.host_.EndProcess(why); }

// A node has one link to this one. A second one means that the first has died, though this end may
// not have noticed yet.
Result<PeerHandler*> SetNode::AcceptMember(PeerLink* link, uint64_t cluster, uint64_t node) {
  if (node == owner_.identity_.node)
    return Refused("PEER: this node's own id; was its cellar.replica copied?");
  for (auto& each : in_links_) {
    if (each->node() != node) continue;
    each->Drop();
    dropped_.push_back(std::move(each));
  }
  std::erase(in_links_, nullptr);
  in_links_.push_back(std::make_unique<InLink>(*this, link, cluster, node));
  return static_cast<PeerHandler*>(in_links_.back().get());
}

SetNode::Peer* SetNode::PeerOf(uint64_t node) {
  for (const auto& peer : peers_) {
    if (peer->out->stands() && peer->out->node() == node) return peer.get();
  }
  return nullptr;
}

const SetNode::Peer* SetNode::PeerOf(uint64_t node) const {
  return const_cast<SetNode*>(this)->PeerOf(node);
}

std::optional<NodeAddress> SetNode::AddressOf(uint64_t node) const {
  const SetMember* const known = set().members().Find(node);
  if (known != nullptr) return NodeAddress{known->host, known->port};
  const Peer* const peer = PeerOf(node);
  return peer == nullptr ? std::nullopt : std::optional(peer->address);
}

void SetNode::Send(uint64_t node, std::string frame) {
  if (!IsFull(node)) PeerOf(node)->out->Write(frame);
}

bool SetNode::IsFull(uint64_t node) {
  Peer* const peer = PeerOf(node);
  return peer == nullptr || peer->out->waiting_bytes() > kWindowBytes;
}

bool SetNode::IsSendingLong(uint64_t node) {
  Peer* const peer = PeerOf(node);
  return peer != nullptr && peer->out->IsSendingLong();
}

// --- who is there

SetNode::Has SetNode::has() const {
  if (member_.is_member()) return Has::kSet;
  return store_.last_lsn() == Lsn{} ? Has::kNothing : Has::kData;
}

// Sorted and without doubles, so that equal lists are equal texts.
std::string SetNode::ListText() const {
  std::vector<std::string> texts;
  for (const NodeAddress& address : owner_.options_.nodes) texts.push_back(TextOf(address));
  // Who is to join learns of all members by that.
  for (const SetMember& member : set().members().list)
    texts.push_back(TextOf({member.host, member.port}));
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  return fmt::format("{}", fmt::join(texts, " "));
}

// Before there is a set a greeting decides only when it has been said several times.
void SetNode::Greet(OutLink* link) {
  for (int i = member_.started() ? kAlikeMin - 1 : 0; i < kAlikeMin && link->stands(); ++i)
    SayHello(link);
}

// Fields are only ever added at the end; NoteHello says what a missing one means.
void SetNode::SayHello(OutLink* link) {
  std::string body(1, static_cast<char>(has()));
  PutFixed64(&body, has() == Has::kSet ? owner_.identity_.cluster : 0);
  PutFixed64(&body, static_cast<uint64_t>(owner_.clock_.WallMicros()));
  PutLengthPrefixed(&body, TextOf(owner_.options_.self));
  PutLengthPrefixed(&body, ListText());
  PutFixed32(&body, kFeatureLevel);
  const SetMembers& committed = set().log().MembersAt(set().commit().seq);
  const bool shuts_out = !committed.list.empty() && committed.Find(link->node()) == nullptr;
  body.push_back(
      static_cast<char>((WantsIn() ? kHelloWantsIn : 0) | (shuts_out ? kHelloShutsOut : 0)));
  body.push_back(static_cast<char>(kind()));
  PutLengthPrefixed(&body, kVersion);
  PutFixed64(&body, uint64_t{owner_.options_.priority} + 1);
  const bool is_member = member_.started();
  PutLengthPrefixed(&body, is_member
                               ? set().past().Hello(link->node(), set().term(), set().log().last())
                               : std::string());
  link->Write(EncodeFrame(owner_.MakeHead(FrameKind::kHello), body));
}

// Also how a node that joins gets to know members that its own configuration does not list.
void SetNode::OnHello(InLink* link, const Frame& frame) {
  BodyReader body(frame.body);
  const uint8_t has_what = body.Byte();
  (void)body.U64();
  (void)body.Micros();
  const std::optional<NodeAddress> address = ParseAddress(body.Prefixed());
  (void)body.Prefixed();
  if (!body.ok() || !address || has_what > static_cast<uint8_t>(Has::kSet))
    return link->Fail("its greeting cannot be read");
  Peer* const peer = LearnPeer(*address);
  if (peer == nullptr) return;
  NoteHello(peer, frame, link->node());
  // Where a set is, its other members are found.
  if (peer->has != Has::kSet || member_.started()) return;
  const std::string list = peer->list;
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(' ', at), list.size());
    if (const auto each = ParseAddress(std::string_view(list).substr(at, end - at)))
      (void)LearnPeer(*each);
    at = end + 1;
  }
}

// Members greet each other more than once, so every field is taken anew. Older versions leave out
// the last ones, which then read as zero: each zero has its meaning here.
void SetNode::NoteHello(Peer* peer, const Frame& frame, uint64_t node) {
  BodyReader body(frame.body);
  const uint8_t has_what = body.Byte();
  const uint64_t cluster = body.U64();
  const int64_t wall_micros = body.Micros();
  (void)body.Prefixed();
  const auto decisive = [peer] {
    return std::tuple(peer->node, peer->cluster, peer->has, peer->list, peer->level, peer->wanted);
  };
  const auto before = decisive();
  peer->answered = true;
  peer->heard_micros = now();
  peer->node = node;
  peer->cluster = cluster;
  peer->has = static_cast<Has>(std::min(has_what, static_cast<uint8_t>(Has::kSet)));
  peer->list = body.Prefixed();
  // What older versions do not say is zero.
  peer->level = std::max<uint32_t>(body.U32(), 1);
  const uint8_t flags = body.Byte();
  peer->wants_in = (flags & kHelloWantsIn) != 0;
  peer->shuts_out = (flags & kHelloShutsOut) != 0;
  const auto wanted = static_cast<MemberKind>(body.Byte());
  const bool is_special = wanted == MemberKind::kStandby || wanted == MemberKind::kWitness;
  peer->wanted = is_special ? wanted : MemberKind::kVoter;
  peer->alike = before == decisive() ? std::min(peer->alike + 1, kAlikeMin) : 1;
  constexpr size_t kVersionBytesMax{32};
  peer->version = body.Prefixed().substr(0, kVersionBytesMax);
  const uint64_t priority = body.U64();
  peer->priority = priority == 0 ? kPriorityDefault : static_cast<uint32_t>(priority - 1);
  const std::string_view past = body.Prefixed();
  // A greeting may have waited: of two the one counts that says less.
  const int64_t now_micros = owner_.clock_.WallMicros();
  const int64_t said = wall_micros - now_micros;
  const int64_t former = std::exchange(peer->said_skew_micros, said);
  const int64_t least = std::abs(said) < std::abs(former) ? said : former;
  peer->skew_micros = owner_.SkewOf(peer->address, now_micros + least, peer->skew_micros);
  const bool other =
      peer->has == Has::kSet && has() == Has::kSet && cluster != owner_.identity_.cluster;
  if (other && !peer->told_of)
    Log(LogSeverity::kWarning, peer->text + " belongs to another replica set");
  peer->told_of = other;
  if (peer->has != Has::kSet || cluster != owner_.identity_.cluster || !member_.started()) return;
  const bool is_due = member_.set().past().OnHello(node, past);
  if (is_due && peer->out->stands() && peer->out->node() == node) SayHello(peer->out.get());
  StepPast();
}

// Nobody is listened to who has not said which set it is of.
SetNode::Peer* SetNode::MemberBehind(const InLink& link) const {
  const auto peer = std::find_if(peers_.begin(), peers_.end(), [&link](const auto& each) {
    return each->answered && each->node == link.node();
  });
  return peer == peers_.end() || (*peer)->has != Has::kSet ? nullptr : peer->get();
}

// The first frame of a set to a node that has nothing makes it a member of that set. The cluster's
// id is on the disk before the frame is handled.
void SetNode::OnMemberFrame(InLink* link, const Frame& frame) {
  Peer* const peer = MemberBehind(*link);
  if (peer == nullptr) return;
  if (!member_.started()) {
    if (has() != Has::kNothing) return;
    Identity identity = owner_.identity_;
    identity.cluster = peer->cluster;
    if (!owner_.WriteIdentity(identity).ok()) return;
    Log(LogSeverity::kNotice, fmt::format("Joining replica set {:016x}", identity.cluster));
    if (const Status started = StartMember(); !started.ok()) return Refuse(started.text());
  }
  if (peer->cluster != owner_.identity_.cluster) return;
  if (frame.kind == FrameKind::kReadIndex) return OnReadIndex(link->node(), frame);
  if (frame.kind == FrameKind::kReadAnswer) return OnReadAnswer(frame);
  if (frame.kind == FrameKind::kOrder) return OnOrder(link->node(), frame);
  if (frame.kind == FrameKind::kOrderAnswer) return OnOrderAnswer(frame);
  const Status taken = member_.OnFrame(frame);
  if (taken.ok()) return;
  // What is wrong with it may be wrong with many: they are counted, and now and then one is told.
  constexpr int64_t kTellMicros{60'000'000};
  if (peer->refused_micros != 0 && now() - peer->refused_micros < kTellMicros) return link->Drop();
  peer->refused_micros = now();
  link->Fail(taken.text());
}

void SetNode::OnArriving(const InLink& link, const FrameHead& head) {
  const Peer* const peer = MemberBehind(link);
  if (peer == nullptr || !member_.started() || peer->cluster != owner_.identity_.cluster) return;
  member_.OnArriving(head);
}

// --- the loop

int64_t SetNode::timer_micros() const {
  return member_.started() ? set().timer_micros() : INT64_MAX;
}

void SetNode::OnTimer() {
  if (member_.started() && now() >= set().timer_micros()) member_.OnTimer();
}

// Once a turn, behind the flush. The order matters: what comes is stored and applied first, then
// what depends on the commit is decided.
void SetNode::OnTurn(int64_t deadline_micros) {
  dropped_.clear();
  if (!member_.started()) return;
  bool more = StepFetch(deadline_micros);
  const Result<bool> advanced = member_.Advance(deadline_micros);
  if (!advanced.ok()) return Refuse(advanced.status().text());
  more = more || *advanced;
  // Readers wait for what is committed, and at a follower applied.
  const Lsn commit = set().commit();
  const Lsn applied = store_.applied_lsn();
  const Lsn shown = commit.seq <= applied.seq ? commit : applied;
  if (std::exchange(shown_, shown) != shown) owner_.host_.WakeTasks();
  NoteRoom();
  StepAside();
  StepReads();
  StepFailover();
  StepOrder();
  if (more) owner_.host_.WakeSoon();
}

// Ten times a second or so: links, greetings, founding, and whatever waits for a time.
void SetNode::OnTick() {
  SyncPeers();
  for (const auto& peer : peers_)
    if (!IsRedundant(*peer)) peer->out->DialIfDue();
  for (const auto& link : in_links_) link->OnTick();
  std::erase_if(in_links_, [](const auto& link) { return !link->stands(); });
  if (now() - hello_micros_ >= kHelloMicros || set().held()) {
    hello_micros_ = now();
    for (const auto& peer : peers_) {
      if (peer->out->stands()) SayHello(peer->out.get());
    }
  }
  FoundIfDue();
  StepPast();
  KeepPast();
  member_.OnTick();
  NoteLeader();
  AskAgain();
  HandOverIfFull();
  TendMembers();
  StepOrder();
  StepAsked();
  for (const auto& serve : serves_) serve->OnTick();
  std::erase_if(serves_, [](const auto& serve) { return serve->ended(); });
}

void SetNode::NoteLeader() {
  const bool known = open() || KnownLeader().has_value();
  if (known) {
    leaderless_since_ = 0;
  } else if (leaderless_since_ == 0) {
    leaderless_since_ = now();
  }
}

// --- what the member wants

Status SetNode::SaveVote(uint32_t term, uint64_t vote) {
  Identity identity = owner_.identity_;
  identity.term = term;
  identity.vote = vote;
  Status written = owner_.WriteIdentity(identity);
  if (!written.ok()) Log(LogSeverity::kWarning, "cannot save the vote: " + written.text());
  return written;
}

// Compares with what was so the last time, since the core reports more often than anything changes.
// A node that has lost the lead disconnects its clients: of the writes that they wait for nobody
// here can say any more what becomes of them.
void SetNode::OnRoleChanged() {
  const bool is_open = open();
  const uint64_t leader = set().leader();
  if (was_open_ && !is_open) {
    Log(LogSeverity::kNotice,
        fmt::format("No longer the leader, in term {}: clients are disconnected", set().term()));
    // What they would still have been answered is as nobody has asked.
    owner_.host_.DropClients();
    if (failover_ != FailoverState::kNone) EndFailover();
    removed_.clear();
    if (order_.ticket != 0)
      EndOrder(Status::Error(ErrorCode::kTryAgain, "the leader has changed: ask the new one"));
  }
  if (is_open && !was_open_)
    Log(LogSeverity::kNotice, fmt::format("Leading from now on, in term {}", set().term()));
  const auto address = KnownLeader();
  if (leader != leader_ && address)
    Log(LogSeverity::kNotice, fmt::format("{} leads, in term {}", TextOf(*address), set().term()));
  was_open_ = is_open;
  leader_ = leader;
  NoteLeader();
  owner_.host_.OnRoleChanged();
  owner_.host_.WakeTasks();
}

void SetNode::OnBroken(std::string_view why) {
  Log(LogSeverity::kWarning, "This node takes no part in its replica set any more: " +
                                 std::string(why) + ". Restart it; if that does not help, empty " +
                                 owner_.directory_ + " and let it join anew");
}

void SetNode::OnContradicted(std::string_view why) {
  Refuse(
      fmt::format("what is committed in {} contradicts the history of its replica set ({}): this "
                  "node takes no part. Keep {}: it may hold what the set has lost. To go on "
                  "without that, start the node with an empty directory",
                  owner_.directory_, why, owner_.directory_));
}

void SetNode::RunInBackground(std::function<void()> work, std::function<void()> done) {
  owner_.host_.RunInBackground(std::move(work), std::move(done));
}

// MISCONF is the reload's own refusal, and not the store's end: the host goes on with what there
// is, and the caller is told.
Status SetNode::ReloadStore(const std::function<Status()>& reload) {
  Log(LogSeverity::kNotice, "The state is made anew from the files");
  Status refused;
  RETURN_IF_ERROR(owner_.host_.ReplaceStore([&](Status* status) {
    Status done = reload();
    if (done.ok() || done.code() != ErrorCode::kMisconf) return done;
    *status = refused = std::move(done);
    return Status::Ok();
  }));
  return refused;
}

// --- snapshots

// The file stays open in the serve, so it can be fetched also when a newer one has replaced it.
// Where there are as many as there may be, one gives way that nobody has come for, the oldest
// first; not one that is being sent.
std::optional<SnapshotOffer> SetNode::OfferSnapshot(const SnapshotEntry& entry) {
  if (owner_.remake_.Replaces(entry.number)) return std::nullopt;
  if (serves_.size() >= kServesMax) {
    const auto idle = std::find_if(serves_.begin(), serves_.end(), [](const auto& serve) {
      return !serve->attached() || serve->ended();
    });
    if (idle == serves_.end()) return std::nullopt;
    serves_.erase(idle);
  }
  const std::string path =
      JoinPath(owner_.directory_, FormatFileName(StoreFileKind::kSnapshot, entry.number));
  auto reader = SnapshotReader::Open(owner_.files_, path);
  auto file = owner_.files_.OpenForReading(path);
  if (!reader.ok() || !file.ok()) {
    owner_.remake_.Note(entry.number, reader.ok() ? file.status().text() : reader.status().text());
    return std::nullopt;
  }
  SnapshotOffer offer;
  offer.lsn = entry.lsn;
  offer.bytes = entry.bytes;
  offer.hash = entry.hash;
  offer.number = owner_.random_.Next();
  offer.end_bytes = (*reader)->file_bytes() - (*reader)->footer_offset();
  offer.commit_micros = (*reader)->header().commit_micros;
  serves_.push_back(
      std::make_unique<SnapshotServe>(owner_, 0, offer.number,
                                      SnapshotServe::Source{.file = *std::move(file),
                                                            .number = entry.number,
                                                            .bytes = entry.bytes,
                                                            .end_bytes = offer.end_bytes}));
  ++owner_.stats_.full_syncs_served;
  return offer;
}

SnapshotServe* SetNode::ServeOf(uint64_t ticket) {
  for (const auto& serve : serves_) {
    if (serve->ticket() == ticket) return serve.get();
  }
  return nullptr;
}

// Inside a step: what becomes of it is told in a later turn.
void SetNode::FetchSnapshot(uint64_t node, const SnapshotOffer& offer) {
  if (is_witness()) {
    restart_ = offer;
    return owner_.host_.WakeSoon();
  }
  const auto address = AddressOf(node);
  const SnapshotEntry entry{
      .number = 0, .lsn = offer.lsn, .bytes = offer.bytes, .hash = offer.hash};
  ++owner_.stats_.full_syncs;
  Log(LogSeverity::kNotice, fmt::format("A copy comes: a snapshot of {} bytes, up to record {}",
                                        offer.bytes, FormatLsn(offer.lsn)));
  fetch_ = std::make_unique<SnapshotFetch>(owner_, owner_.feed_id_next_++, entry, offer.end_bytes);
  fetch_failed_ =
      !address ||
      !fetch_->Begin(*address, JoinPath(owner_.directory_, kSyncName), offer.number).ok();
  owner_.host_.WakeSoon();
}

void SetNode::DropFetch() {
  if (fetch_ == nullptr) return;
  store_.Discard(fetch_->TakeEngine());
  fetch_.reset();
  fetch_failed_ = false;
}

// Of what a snapshot holds a witness needs to know where it ends.
void SetNode::EndRestart() {
  const SnapshotOffer offer = *std::exchange(restart_, std::nullopt);
  member_.Install([&] {
    return owner_.host_.ReplaceStore([&](Status* status) {
      return store_.RestartLog(offer.lsn, offer.commit_micros, EncodeMembers(offer.members),
                               status);
    });
  });
  Log(LogSeverity::kNotice, "The log goes on behind record " + FormatLsn(offer.lsn));
}

// One slice of a copy that comes: fetch, then sync the file in another thread, then install
// (EndInstall).
bool SetNode::StepFetch(int64_t deadline_micros) {
  if (restart_) EndRestart();
  if (fetch_ == nullptr || installs_) return false;
  const auto more =
      fetch_failed_ ? Result<bool>(Refused("it cannot begin")) : fetch_->Step(deadline_micros);
  const bool late = now() - fetch_->heard_micros() > owner_.options_.timeout_micros;
  if (!more.ok() || late) {
    Log(LogSeverity::kWarning,
        "No copy: " + (late ? std::string("nothing comes any more") : more.status().text()));
    DropFetch();
    member_.InstallFailed();
    return false;
  }
  if (!fetch_->done()) return *more;
  // The offer came in a frame, which may have been wrong.
  SetMembers named;
  if (!fetch_->members().empty() &&
      (!DecodeMembers(fetch_->members(), &named) || named != set().incoming().members)) {
    Log(LogSeverity::kWarning, "No copy: it names other members than its offer");
    DropFetch();
    member_.InstallFailed();
    return false;
  }
  installs_ = true;
  auto job = std::make_unique<InstallJob>();
  job->file = fetch_->TakeFile();
  InstallJob* const raw = job.release();  // adopted by the second function, which always runs
  owner_.host_.RunInBackground(
      [raw] {
        raw->status = raw->file->Sync();
        if (raw->status.ok()) raw->status = raw->file->Close();
      },
      [raw, owner = &owner_] {
        const std::unique_ptr<InstallJob> self(raw);
        if (owner->set_ != nullptr) owner->set_->EndInstall(raw);
      });
  return false;
}

void SetNode::EndInstall(InstallJob* job) {
  installs_ = false;
  if (!job->status.ok()) {
    Log(LogSeverity::kWarning, "No copy: " + job->status.text());
    DropFetch();
    return member_.InstallFailed();
  }
  const SnapshotEntry entry = fetch_->entry();
  std::unique_ptr<Engine> loaded = fetch_->TakeEngine();
  fetch_.reset();
  const std::string path = JoinPath(owner_.directory_, kSyncName);
  member_.Install([&] {
    return owner_.host_.ReplaceStore([&](Status* status) {
      return store_.ReplaceContent(path, entry, std::move(loaded), status);
    });
  });
  Log(LogSeverity::kNotice, "The copy is in place");
}

// --- handing over

// Everything that can be refused is refused before writes are held.
Status SetNode::BeginFailover(const std::optional<NodeAddress>& to, int64_t timeout_micros) {
  constexpr int64_t kTimeoutMicros{5'000'000};
  if (failover_ != FailoverState::kNone) return Refused("FAILOVER already in progress.");
  if (!open()) return Refused("FAILOVER is not valid when server is a replica.");
  if (Successor() == 0) return Refused("FAILOVER requires connected replicas.");
  failover_to_ = 0;
  for (const SetMember& member : set().members().list) {
    const bool is_it = to && member.host == to->host && member.port == to->port;
    if (is_it && member.kind == MemberKind::kWitness)
      return Refused("FAILOVER target is a witness, which holds no data.");
    if (is_it && member.votes() && PeerOf(member.id) != nullptr) failover_to_ = member.id;
  }
  if (to && failover_to_ == 0) return Refused("FAILOVER target HOST and PORT is not a replica.");
  failover_ = FailoverState::kWaitForSync;
  failover_deadline_ = now() + (timeout_micros == 0 ? kTimeoutMicros : timeout_micros);
  Log(LogSeverity::kNotice, "FAILOVER begins: writes are held");
  owner_.host_.HoldWrites(true);
  owner_.host_.WakeSoon();
  return Status::Ok();
}

// Of the voters with data that were heard lately and have room: the one that has most of the log,
// so that handing over is short. 0: there is none.
uint64_t SetNode::Successor() const {
  uint64_t best = 0;
  for (const SetMember& member : set().members().list) {
    const bool fits = member.id != owner_.identity_.node && member.kind == MemberKind::kVoter &&
                      PeerOf(member.id) != nullptr && set().has_room(member.id) &&
                      now() - set().heard_micros(member.id) < owner_.options_.election_micros;
    if (fits && (best == 0 || set().MatchOf(member.id) > set().MatchOf(best))) best = member.id;
  }
  return best;
}

// A witness that leads has the newest records, or nobody else would. Who has the data gets them,
// and the lead.
void SetNode::StepAside() {
  if (!is_witness() || !set().may_append() || now() < aside_micros_) return;
  aside_micros_ = now() + kAsideMicros;
  if (const uint64_t to = Successor(); to != 0) (void)member_.Transfer(to);
}

// Where most cannot take in a record it would not be committed, nor told apart from one that is: so
// writes end while there is some room left.
void SetNode::NoteRoom() {
  size_t voters = 0;
  size_t with_room = 0;
  for (const SetMember& member : set().members().list) {
    if (!open() || !member.votes()) continue;
    ++voters;
    const bool is_own = member.id == owner_.identity_.node;
    if (is_own ? member_.has_room() : set().has_room(member.id)) ++with_room;
  }
  const bool has_room = !open() || 2 * with_room > voters;
  if (has_room == has_room_) return;
  has_room_ = has_room;
  Log(LogSeverity::kWarning, has_room ? "A majority's disks take records again"
                                      : "The disks of a majority are full: writes are refused");
  owner_.host_.OnRoleChanged();
}

// A leader whose disk takes nothing more lets one lead that has room.
void SetNode::HandOverIfFull() {
  constexpr int64_t kHoldMicros{1'000'000};
  constexpr int64_t kAgainMicros{5'000'000};
  if (!open() || failover_ != FailoverState::kNone || now() < full_retry_micros_) return;
  if (member_.has_room() || Successor() == 0) return;
  full_retry_micros_ = now() + kAgainMicros;
  Log(LogSeverity::kWarning, "This node's disk takes no more records: another one is to lead");
  (void)BeginFailover(std::nullopt, kHoldMicros);
}

Status SetNode::AbortFailover() {
  if (failover_ == FailoverState::kNone) return Refused("No failover in progress.");
  if (set().transferring()) return Refused("The replica is taking over: that cannot be undone.");
  EndFailover();
  return Status::Ok();
}

void SetNode::EndFailover() {
  failover_ = FailoverState::kNone;
  owner_.host_.HoldWrites(false);
}

// Hands over as soon as all that is written is committed: a successor then lacks nothing that a
// client may have been told of.
void SetNode::StepFailover() {
  if (failover_ == FailoverState::kNone || set().transferring()) return;
  if (now() >= failover_deadline_) {
    Log(LogSeverity::kWarning,
        "FAILOVER: nobody has taken over in time; this node goes on leading");
    return EndFailover();
  }
  failover_ = FailoverState::kWaitForSync;
  if (set().commit() != store_.last_lsn()) return;
  const uint64_t to = failover_to_ != 0 ? failover_to_ : Successor();
  if (to == 0 || !member_.Transfer(to).ok()) return;
  failover_ = set().open() ? FailoverState::kInProgress : FailoverState::kNone;
  owner_.host_.OnRoleChanged();
}

}  // namespace cellar
