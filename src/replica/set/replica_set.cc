// Events, and what a step of the core leads to. See replica_set.h; replica_set_messages.cc has what
// is received and sent.
#include "replica/set/replica_set.h"

#include <algorithm>

#include "base/assert.h"

namespace cellar {
namespace {

constexpr int64_t kMicrosPerMilli = 1000;
// A member counts as near the leader that lacks no more records than this.
constexpr uint64_t kNearEntries = 1000;

int CoreKind(RecordKind kind) {
  if (kind == RecordKind::kBarrier) return kRaftBarrier;
  return kind == RecordKind::kMembers ? kRaftChange : kRaftCommand;
}

}  // namespace

ReplicaSet::ReplicaSet(ReplicaSetHost& host, Clock& clock, ReplicaSetOptions options)
    : host_(host), clock_(clock), options_(options), random_(options.seed) {
  CELLAR_ASSERT(options_.node != 0);
}

ReplicaSet::~ReplicaSet() { raft_core_free(core_); }

// --- starting

// Term and vote come from their own file, which may be older than the log: an entry of a later term
// proves that the term has come, and then the vote of the older one means nothing.
void ReplicaSet::Start(uint32_t term, uint64_t vote, EntryLog log, Lsn committed, Begins begins) {
  CELLAR_ASSERT(core_ == nullptr);
  log_ = std::move(log);
  term_ = std::max(term, log_.last().epoch);
  vote_ = term_ == term ? vote : 0;
  commit_ = std::max(committed, log_.snapshot());
  durable_ = log_.appended();
  held_ = begins == Begins::kHeld;
  if (!held_) return StartCore();
  waits_to_start_ = true;
  timer_micros_ = INT64_MAX;
}

// If the term cannot be saved the caller comes again.
void ReplicaSet::Release(uint32_t newest_term) {
  CELLAR_ASSERT(held_);
  if (newest_term != 0) {
    newest_term = std::max(newest_term, term_);
    if (!host_.SaveVote(newest_term, options_.node).ok()) return;
    term_ = newest_term;
    vote_ = options_.node;
  }
  held_ = false;
  StartAgain();
}

// The members in scratch memory that lives until the next step. In the order of their ids: the core
// keeps what it knows of them by their place, and looks for them anew only if their number changes.
RaftMembers ReplicaSet::CoreForm(const SetMembers& members) {
  std::vector<RaftMember>& list = lists_.emplace_back();
  for (const SetMember& member : members.list)
    list.push_back({member.id, member.votes() ? kRaftVoter : kRaftStandby});
  if (!faults_.no_order)
    std::sort(list.begin(), list.end(),
              [](const RaftMember& a, const RaftMember& b) { return a.id < b.id; });
  return {list.data(), static_cast<uint32_t>(list.size())};
}

void ReplicaSet::AddCoreEntry(uint32_t term, RecordKind kind, const SetMembers* members) {
  RaftEntry entry{.term = term, .kind = CoreKind(kind), .members = {}};
  if (members != nullptr) entry.members = CoreForm(*members);
  entries_.push_back(entry);
}

// Gives the core what it must remember: term and vote, the entries of the log behind the snapshot,
// and who were the members at the snapshot. If the vote cannot be made durable the start is put off
// (waits_to_start_).
void ReplicaSet::StartCore() {
  CELLAR_ASSERT(core_ == nullptr);
  CELLAR_ASSERT(!installing_);
  waits_to_start_ = false;
  // A sole voter is elected by nobody, and the core lets it lead on in its old term: what it wrote
  // there and lost, a standby may have. So it begins a term of its own.
  const SetMembers& members = log_.members();
  const auto voters = std::count_if(members.list.begin(), members.list.end(),
                                    [](const SetMember& member) { return member.votes(); });
  const SetMember* const own = members.Find(options_.node);
  if (voters == 1 && own != nullptr && own->votes() && !faults_.no_new_term) {
    if (term_ == UINT32_MAX) return Break("there is no term left");
    if (!host_.SaveVote(term_ + 1, options_.node).ok()) {
      waits_to_start_ = true;
      return;
    }
    ++term_;
    vote_ = options_.node;
  }
  const auto millis = [](int64_t micros) {
    return static_cast<uint32_t>(micros / kMicrosPerMilli);
  };
  const RaftCoreOptions core{.id = options_.node,
                             .election_ms = millis(options_.election_micros),
                             .heartbeat_ms = millis(options_.heartbeat_micros),
                             .install_ms = millis(options_.install_micros),
                             .inflight_entries_max = options_.inflight_entries_max,
                             .seed = static_cast<uint32_t>(random_.Next())};
  core_ = raft_core_new(&core);
  started_micros_ = now();
  entries_.clear();
  lists_.clear();
  for (uint64_t i = log_.first(); i <= log_.last().seq; ++i) {
    const bool names = log_.NamesMembers(i);
    AddCoreEntry(log_.TermOf(i), names ? RecordKind::kMembers : RecordKind::kCommand,
                 names ? &log_.MembersAt(i) : nullptr);
  }
  RaftSnapshot snapshot{};
  if (log_.snapshot() != Lsn{}) {
    const SetMembers& then = log_.MembersAt(log_.snapshot().seq);
    snapshot = {.index = log_.snapshot().seq,
                .term = log_.snapshot().epoch,
                .members_index = then.index,
                .members = CoreForm(then)};
  } else {
    CELLAR_ASSERT(entries_.empty() || (log_.first() == 1 && log_.NamesMembers(1)));
  }
  RunSafely(nullptr, [&](uint64_t now_ms, RaftUpdate* update) {
    return raft_core_start(core_, now_ms, term_, vote_, &snapshot, log_.first(), entries_.data(),
                           static_cast<uint32_t>(entries_.size()), update);
  });
}

// Without its core a node neither votes nor leads; the log stays as it is.
void ReplicaSet::Stop() {
  raft_core_free(core_);
  core_ = nullptr;
  timer_micros_ = INT64_MAX;
  if (lead_term_ != 0) StepDown();
  known_leader_ = 0;
}

// The core takes all that it is told of the log at its start for durable. A snapshot that is being
// fetched comes first.
void ReplicaSet::StartAgain() {
  if (waits_to_start_ && !held_ && !installing_ && log_.DurableIndex(durable_) >= log_.last().seq)
    StartCore();
}

void ReplicaSet::BeginAnew() {
  Stop();
  waits_to_start_ = true;
  timer_micros_ = now() + options_.heartbeat_micros;
  host_.OnRoleChanged();
  StartAgain();
}

void ReplicaSet::Break(std::string_view why) {
  Stop();
  waits_to_start_ = false;
  host_.OnBroken(why);
}

void ReplicaSet::Contradict(std::string_view why) {
  Stop();
  waits_to_start_ = false;
  host_.OnContradicted(why);
}

// --- events

// Records that this node, as the leader, has written. They stand in the log already, so the core
// only gets to know their numbers.
void ReplicaSet::OnAppended(Lsn last) {
  if (last == log_.last()) return;
  CELLAR_ASSERT(may_append());
  CELLAR_ASSERT(last.epoch == lead_term_);
  entries_.clear();
  lists_.clear();
  for (uint64_t i = log_.last().seq + 1; i <= last.seq; ++i) {
    const bool appended = log_.Append({last.epoch, i}, RecordKind::kCommand, {});
    CELLAR_ASSERT(appended);
    AddCoreEntry(last.epoch, RecordKind::kCommand, nullptr);
  }
  RunSafely(nullptr, [&](uint64_t now_ms, RaftUpdate* update) {
    return raft_core_submit(core_, now_ms, entries_.data(), static_cast<uint32_t>(entries_.size()),
                            update);
  });
}

// The core counts an entry of its own for the majority only from here on.
void ReplicaSet::OnDurable(uint64_t appended) {
  CELLAR_ASSERT(appended >= durable_ && appended <= log_.appended());
  durable_ = appended;
  if (core_ == nullptr) return StartAgain();
  if (installing_) return;
  NoteOwn();
  const uint64_t index = log_.DurableIndex(durable_);
  if (index <= raft_core_stored_index(core_)) return;
  RunSafely(nullptr, [&](uint64_t now_ms, RaftUpdate* update) {
    return raft_core_persisted(core_, now_ms, index, update);
  });
}

// A leader counts what is on its own disk.
void ReplicaSet::NoteOwn() {
  if (lead_term_ == 0) return;
  const uint64_t index = log_.DurableIndex(durable_);
  past_.NoteOwn({lead_term_, index}, log_.TermOf(index));
}

void ReplicaSet::OnTimer() {
  if (core_ == nullptr) {
    timer_micros_ = waits_to_start_ && !held_ ? now() + options_.heartbeat_micros : INT64_MAX;
    return StartAgain();
  }
  if (now_ms() < raft_core_timeout_at(core_)) return SetTimer();
  RunSafely(nullptr, [&](uint64_t now_ms, RaftUpdate* update) {
    return raft_core_timeout(core_, now_ms, update);
  });
}

void ReplicaSet::OnSnapshotTaken(Lsn lsn, uint64_t first) {
  CELLAR_ASSERT(lsn.seq <= commit_.seq);
  const bool is_new = lsn != log_.snapshot();
  // What it holds is on the disk, whatever the log says; the core must hear of that first, or it is
  // told of records that it does not know any more.
  if (core_ != nullptr && !installing_ && is_new && lsn.seq > raft_core_stored_index(core_))
    RunSafely(nullptr, [&](uint64_t now_ms, RaftUpdate* update) {
      return raft_core_persisted(core_, now_ms, lsn.seq, update);
    });
  log_.TakeSnapshot(lsn, first);
  if (core_ == nullptr || installing_ || !is_new) return;
  const SetMembers& members = log_.MembersAt(lsn.seq);
  lists_.clear();
  const RaftSnapshot snapshot{.index = lsn.seq,
                              .term = lsn.epoch,
                              .members_index = members.index,
                              .members = CoreForm(members)};
  RunSafely(nullptr, [&](uint64_t now_ms, RaftUpdate* update) {
    return raft_core_snapshot_taken(core_, now_ms, &snapshot,
                                    static_cast<uint32_t>(lsn.seq + 1 - first), update);
  });
}

// The snapshot is in place, and the log before it is gone; now the core may count from there.
void ReplicaSet::OnInstalled() {
  CELLAR_ASSERT(installing_);
  installing_ = false;
  log_.Restart(incoming_.lsn, incoming_.members);
  commit_ = std::max(commit_, incoming_.lsn);
  durable_ = log_.appended();  // what is not of the snapshot is gone
  if (core_ == nullptr) return StartAgain();
  lists_.clear();
  const RaftSnapshot snapshot{.index = incoming_.lsn.seq,
                              .term = incoming_.lsn.epoch,
                              .members_index = incoming_.members.index,
                              .members = CoreForm(incoming_.members)};
  RunSafely(nullptr, [&](uint64_t now_ms, RaftUpdate* update) {
    return raft_core_installed(core_, now_ms, &snapshot, update);
  });
  host_.OnRoleChanged();
}

// The core has forgotten what the log holds when it began the install; the log has not.
void ReplicaSet::OnInstallFailed() {
  CELLAR_ASSERT(installing_);
  installing_ = false;
  if (core_ != nullptr) {
    Stop();
    waits_to_start_ = true;
  }
  StartAgain();
}

// --- orders

Status ReplicaSet::Transfer(uint64_t to) {
  if (!may_append()) return Status::Error(ErrorCode::kErr, "the leader is not open");
  const int code = Run(nullptr, [&](uint64_t now_ms, RaftUpdate* update) {
    return raft_core_transfer(core_, now_ms, to, update);
  });
  if (code != 0) return Status::Error(ErrorCode::kErr, raft_core_error(code));
  transferring_ = lead_term_ != 0 && raft_core_transferee(core_) != 0;
  return Status::Ok();
}

// Those that will decide must be able to, or nothing is committed any more.
Status ReplicaSet::CheckQuorum(const SetMembers& members, int64_t since_micros) const {
  if (lead_term_ == 0) return Status::Error(ErrorCode::kErr, "this node does not lead");
  size_t voters = 0;
  size_t near = 0;
  for (const SetMember& member : members.list) {
    if (!member.votes()) continue;
    ++voters;
    const bool is_near = member.id == options_.node ||
                         (lease_.EchoOf(member.id) >= since_micros &&
                          raft_core_match(core_, member.id) + kNearEntries >= log_.last().seq);
    if (is_near) ++near;
  }
  if (near * 2 > voters) return Status::Ok();
  if (voters == 0) return Status::Error(ErrorCode::kErr, "a set without voters has no quorum");
  return Status::Error(ErrorCode::kErr,
                       "a set of " + std::to_string(voters) + (voters == 1 ? " voter" : " voters") +
                           ", " + (near == 0 ? std::string("none") : std::to_string(near)) +
                           " of which is up and has caught up, has no quorum");
}

// One member at a time, and only on top of a committed change: then any two majorities, of before
// and of behind, have a node in common. The change holds from the moment it is in the log,
// committed or not.
Status ReplicaSet::ChangeMembers(SetMembers members) {
  if (!may_append()) return Status::Error(ErrorCode::kErr, "the leader is not open");
  if (!members_committed() && !faults_.changes_together)
    return Status::Error(ErrorCode::kTryAgain, "a member change is under way");
  const SetMember* const own = members.Find(options_.node);
  if (own == nullptr || !own->votes())
    return Status::Error(ErrorCode::kErr, "a leader hands over before it is no voter any more");
  const SetMembers& before = log_.members();
  size_t changes = 0;
  for (const SetMember& member : members.list) {
    const SetMember* const old = before.Find(member.id);
    if (old == nullptr || old->kind != member.kind) ++changes;
  }
  for (const SetMember& member : before.list) changes += members.Find(member.id) == nullptr ? 1 : 0;
  if (changes > 1 && !faults_.changes_together)
    return Status::Error(ErrorCode::kErr, "one change at a time");
  if (!faults_.no_quorum_check) RETURN_IF_ERROR(CheckQuorum(members, heard_since_micros()));
  members.index = log_.last().seq + 1;
  const std::string payload = EncodeMembers(members);
  host_.AppendOwn(RecordKind::kMembers, lead_term_, payload);
  const bool appended = log_.Append({lead_term_, members.index}, RecordKind::kMembers, payload);
  CELLAR_ASSERT(appended);
  entries_.clear();
  lists_.clear();
  AddCoreEntry(lead_term_, RecordKind::kMembers, &members);
  RunSafely(nullptr, [&](uint64_t now_ms, RaftUpdate* update) {
    return raft_core_submit(core_, now_ms, entries_.data(), 1, update);
  });
  host_.OnRoleChanged();
  return Status::Ok();
}

// --- what follows from a step

// A step of the core, and all that follows from it, before any other step is taken.
template <typename Step>
int ReplicaSet::Run(const SetMessage* message, Step step) {
  CELLAR_ASSERT(core_ != nullptr);
  RaftUpdate update{};
  const int code = step(now_ms(), &update);
  if (code == 0) Carry(update, message);
  return code;
}

template <typename Step>
void ReplicaSet::RunSafely(const SetMessage* message, Step step) {
  const int code = Run(message, step);
  if (code == 0) return;
  const std::string text = raft_core_error(code);
  if (raft_core_is_conflict(code)) return Contradict("a leader has other records: " + text);
  Break("a step of the core failed: " + text);
}

// A frame that the core fails at may be damaged: what the core has made of it is forgotten. One
// that comes again and again is not.
void ReplicaSet::StepReceive(const SetMessage& message) {
  if (core_ == nullptr) return;
  asked_is_old_ = message.raft.term < term_;
  const int code = Run(&message, [&](uint64_t now_ms, RaftUpdate* update) {
    return raft_core_receive(core_, now_ms, &message.raft, update);
  });
  asked_is_old_ = false;
  if (code == 0) return;
  const std::string text = raft_core_error(code);
  step_fault_ = Status::Error(ErrorCode::kCorruption, "a frame cannot be followed: " + text);
  if (!sense_.BelieveContradiction(message.raft.peer, message.raft.term)) return BeginAnew();
  if (raft_core_is_conflict(code)) return Contradict("a leader has other records: " + text);
  Break("a step of the core failed: " + text);
}

// What a step asks for, in the order in which it must happen: a promise is durable before anybody
// is sent anything, entries are in the log before they are answered for.
void ReplicaSet::Carry(const RaftUpdate& update, const SetMessage* message) {
  if (update.vote_changed != 0 && !SaveVote()) return;
  if (update.begins_install != 0) installing_ = true;
  if (update.first_entry != 0) TakeEntries(update, message);
  if (core_ == nullptr) return;
  NoteRole();
  NoteCommit();
  SendMessages(update.n_messages);
  if (core_ == nullptr) return;
  TellCommits();
  SetTimer();
  if (update.begins_install != 0) {
    CELLAR_ASSERT(message != nullptr);  // only what a peer offers is installed
    incoming_ = message->offer;
    host_.FetchSnapshot(message->raft.peer, incoming_);
    return;
  }
  ConfirmMembers();
  OpenIfDue();
  if (lead_term_ != 0 && open_index_ == 0) SubmitBarrier();
}

// What a step has promised is on the disk before anybody hears of it. If it cannot be, the step is
// as good as never done: the core begins again from what is there.
bool ReplicaSet::SaveVote() {
  if (raft_core_term(core_) > UINT32_MAX) {
    Break("there is no term left");
    return false;
  }
  const auto term = static_cast<uint32_t>(raft_core_term(core_));
  const uint64_t vote = raft_core_vote(core_);
  if (term == term_ && vote == vote_) return true;
  CELLAR_ASSERT(term >= term_);
  if (!host_.SaveVote(term, vote).ok()) {
    Stop();
    waits_to_start_ = true;
    timer_micros_ = now() + options_.election_micros;
    host_.OnRoleChanged();
    return false;
  }
  term_ = term;
  vote_ = vote;
  return true;
}

// Entries that the step has accepted go to the log: those of a message, as they came, or the
// barrier that a new leader writes.
void ReplicaSet::TakeEntries(const RaftUpdate& update, const SetMessage* message) {
  if (update.is_own_barrier != 0) {
    CELLAR_ASSERT(update.first_entry == log_.last().seq + 1);
    host_.AppendOwn(RecordKind::kBarrier, term_, {});
    const bool appended =
        log_.Append({term_, update.first_entry}, RecordKind::kBarrier, std::string_view());
    CELLAR_ASSERT(appended);
    return;
  }
  if (message == nullptr) return;  // submitted: they stand in the log
  const std::vector<LogRecord>& records = message->records;
  CELLAR_ASSERT(update.n_entries <= records.size());
  // The core knows no more of the commit than it has been told since its start.
  if (update.first_entry <= commit_.seq) {
    return Contradict("the leader has another record " + std::to_string(update.first_entry) +
                      ", and up to " + std::to_string(commit_.seq) + " all are committed here");
  }
  for (size_t i = records.size() - update.n_entries; i < records.size(); ++i) {
    const bool appended = log_.Append(records[i].lsn, records[i].kind, records[i].payload);
    CELLAR_ASSERT(appended);
    host_.AppendEntry(records[i]);
  }
}

void ReplicaSet::StepDown() {
  lead_term_ = 0;
  open_index_ = 0;
  open_ = false;
  transferring_ = false;
}

// A leader may not answer before the barrier of its own term is committed (OpenIfDue): until then
// entries of earlier terms may still be lost.
void ReplicaSet::NoteRole() {
  bool changed = false;
  const bool leads_now = raft_core_role(core_) == kRaftLeader;
  if (leads_now && lead_term_ == 0) {
    lead_term_ = term_;
    CELLAR_ASSERT(raft_core_term(core_) == term_);
    // The barrier, if the core has written one.
    open_index_ = log_.last().epoch == term_ || faults_.no_barrier ? log_.last().seq : 0;
    lease_.Restart();
    lease_lost_ = false;
    lacking_.clear();
    sense_.ForgetSent();
    NoteOwn();
    others_.clear();
    changed = true;
  } else if (!leads_now && lead_term_ != 0) {
    StepDown();
    changed = true;
  }
  if (transferring_ && raft_core_transferee(core_) == 0) {
    // Given up; whom it was offered to may still be elected against what others have promised.
    transferring_ = false;
    lease_lost_ = true;
    changed = true;
  }
  const uint64_t leader = raft_core_leader(core_);
  if (leader != known_leader_) changed = true;
  known_leader_ = leader;
  if (changed) host_.OnRoleChanged();
}

// Behind the first line all is for simulations: a fault that counts entries of old terms, which
// they must find.
uint64_t ReplicaSet::CommitIndex() const {
  const uint64_t index = raft_core_commit(core_);
  if (!faults_.counts_old_terms || lead_term_ == 0) return index;
  std::vector<uint64_t> matches;
  for (const RaftMember& member : CoreMembers()) {
    if (member.kind == kRaftVoter) matches.push_back(raft_core_match(core_, member.id));
  }
  std::sort(matches.begin(), matches.end());
  return std::max(index, matches.empty() ? 0 : matches[(matches.size() - 1) / 2]);
}

void ReplicaSet::NoteCommit() {
  // While a snapshot comes the core counts in that history, which is not here yet.
  if (installing_) return;
  const uint64_t index = CommitIndex();
  if (index <= commit_.seq) return;
  commit_ = log_.At(index);
  CELLAR_ASSERT(commit_.epoch != 0);
  host_.OnCommitted(commit_);
}

void ReplicaSet::OpenIfDue() {
  if (open_ || lead_term_ == 0 || open_index_ == 0) return;
  if (commit_.seq < open_index_ || host_.applied().seq < open_index_) return;
  open_ = true;
  host_.OnRoleChanged();
}

void ReplicaSet::Confirm() {
  CELLAR_ASSERT(may_append());
  SubmitBarrier();
}

// An entry without content, of this term: when it is committed, all before it is.
void ReplicaSet::SubmitBarrier() {
  host_.AppendOwn(RecordKind::kBarrier, lead_term_, {});
  const uint64_t index = log_.last().seq + 1;
  if (open_index_ == 0) open_index_ = index;
  const bool appended = log_.Append({lead_term_, index}, RecordKind::kBarrier, {});
  CELLAR_ASSERT(appended);
  entries_.clear();
  lists_.clear();
  AddCoreEntry(lead_term_, RecordKind::kBarrier, nullptr);
  RunSafely(nullptr, [&](uint64_t now_ms, RaftUpdate* update) {
    return raft_core_submit(core_, now_ms, entries_.data(), 1, update);
  });
}

void ReplicaSet::ConfirmMembers() {
  if (core_ == nullptr || installing_) return;
  const uint64_t index = raft_core_members_uncommitted(core_);
  if (index == 0 || index > commit_.seq) return;
  lists_.clear();
  const RaftMembers members = CoreForm(log_.MembersAt(index));
  RunSafely(nullptr, [&](uint64_t now_ms, RaftUpdate* update) {
    return raft_core_configured(core_, now_ms, index, members, update);
  });
}

void ReplicaSet::SetTimer() {
  // Never at once: a core that is wrong about the time must not keep the loop busy.
  timer_micros_ = std::max(static_cast<int64_t>(raft_core_timeout_at(core_)) * kMicrosPerMilli,
                           now() + kMicrosPerMilli / 2);
}

// --- figures

std::vector<RaftMember> ReplicaSet::CoreMembers() const {
  RaftMember list[kSetMembersMax];
  const uint32_t n = raft_core_members(core_, list, kSetMembersMax);
  CELLAR_ASSERT(n <= kSetMembersMax);
  return {list, list + n};
}

int64_t ReplicaSet::MajorityEcho() const {
  RaftMember list[kSetMembersMax];
  const uint32_t n = raft_core_members(core_, list, kSetMembersMax);
  CELLAR_ASSERT(n <= kSetMembersMax);
  return lease_.MajorityEcho({list, n}, options_.node, now());
}

SetRole ReplicaSet::role() const {
  if (core_ == nullptr) return SetRole::kFollower;
  const int role = raft_core_role(core_);
  if (role == kRaftLeader) return SetRole::kLeader;
  return role == kRaftCandidate ? SetRole::kCandidate : SetRole::kFollower;
}

// Who does not vote has no election in which the core would give a silent leader up.
uint64_t ReplicaSet::leader() const {
  const SetMember* const own = log_.members().Find(options_.node);
  const bool votes = own != nullptr && own->votes();
  const bool is_silent = now() - heard_micros_ > 2 * options_.election_micros;
  return !votes && lead_term_ == 0 && is_silent ? 0 : known_leader_;
}

bool ReplicaSet::members_committed() const {
  return core_ != nullptr && raft_core_members_uncommitted(core_) == 0;
}

// The core keeps its own list of members; that both lists are the same is an invariant that tests
// ask for.
bool ReplicaSet::MembersAgree() const {
  if (core_ == nullptr || installing_) return true;
  const std::vector<RaftMember> core = CoreMembers();
  const SetMembers& named = log_.members();
  return core.size() == named.list.size() &&
         std::all_of(core.begin(), core.end(), [&](const RaftMember& member) {
           const SetMember* const same = named.Find(member.id);
           return same != nullptr && same->votes() == (member.kind == kRaftVoter);
         });
}

// Until when no other node can have been elected: a majority has answered within an election
// timeout, counted from the sending of the question. A tenth is left for clocks that do not run
// alike.
int64_t ReplicaSet::lease_micros() const {
  if (lead_term_ == 0 || !options_.lease || lease_lost_ || transferring_) return 0;
  const int64_t echo = MajorityEcho();
  if (echo == 0) return 0;
  const int64_t holds = options_.election_micros / 10 * 9;
  return echo + (faults_.long_lease ? options_.election_micros * 5 / 2 : holds);
}

bool ReplicaSet::MayRelease(int64_t since_micros) const {
  if (lead_term_ == 0) return false;
  if (now() < lease_micros()) return true;
  const int64_t echo = MajorityEcho();
  return echo != 0 && echo >= since_micros;
}

Lsn ReplicaSet::MatchOf(uint64_t node) const {
  return lead_term_ == 0 ? Lsn{} : log_.At(raft_core_match(core_, node));
}

bool ReplicaSet::has_room(uint64_t node) const {
  const auto it = std::find_if(others_.begin(), others_.end(),
                               [node](const Other& other) { return other.node == node; });
  return it == others_.end() || it->room;
}

}  // namespace cellar
