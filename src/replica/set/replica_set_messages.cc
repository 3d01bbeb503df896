// What a member receives and sends. See replica_set.h.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "replica/set/replica_set.h"

namespace cellar {
namespace {

Status Nonsense(std::string what) { return Status::Error(ErrorCode::kCorruption, std::move(what)); }

}  // namespace

// --- receiving

Status ReplicaSet::OnFrame(const Frame& frame) {
  step_fault_ = Status::Ok();
  Status taken = Receive(frame);
  if (taken.ok()) taken = std::exchange(step_fault_, Status::Ok());
  if (!taken.ok()) ++frames_refused_;
  return taken;
}

Status ReplicaSet::Receive(const Frame& frame) {
  SetMessage message;
  RETURN_IF_ERROR(DecodeSetMessage(frame, &message));
  if (message.raft.term == 0 || message.raft.term > UINT32_MAX)
    return Status::Error(ErrorCode::kCorruption, "a frame of an impossible term");
  if (core_ == nullptr || frame.from == options_.node) return Status::Ok();
  RETURN_IF_ERROR(CheckSense(frame, message));
  sense_.Forget(log_.members());
  const uint64_t term = sense_.BelieveTerm(frame.from, term_, message.raft, log_.last() == Lsn{});
  if (term < message.raft.term && !faults_.any_term) {
    if (term > term_) StepTowards(frame.from, term);
    return Status::Ok();
  }
  NoteSender(frame, message);
  switch (message.raft.kind) {
    case kRaftVote:
      ReceiveVote(message);
      break;
    case kRaftAppend:
      return ReceiveAppend(&message);
    case kRaftInstall:
      return ReceiveInstall(&message);
    case kRaftAppendResult:
      ReceiveResult(message);
      break;
    default:
      StepReceive(message);
      break;
  }
  return Status::Ok();
}

// What only a damaged frame can say (frame_sense.h); some of it the core takes for impossible.
Status ReplicaSet::CheckSense(const Frame& frame, const SetMessage& message) const {
  const RaftMessage& raft = message.raft;
  switch (raft.kind) {
    case kRaftVote:
      if (raft.term != uint64_t{frame.term} + raft.is_pre_vote)
        return Nonsense("a vote is asked for in another term than its sender's");
      break;
    case kRaftVoteResult: {
      const uint64_t next = uint64_t{term_} + 1;
      const bool is_asked = raft.is_pre_vote != 0 && raft.term <= next;
      if ((raft.term != frame.term && !is_asked) ||
          (raft.is_pre_vote != 0 && raft.granted != 0 && raft.term > next))
        return Nonsense("a vote for a term that nobody has asked for");
      break;
    }
    case kRaftAppendResult: {
      const uint64_t index = raft.rejected > 0 ? raft.rejected : raft.last_index;
      if (lead_term_ != 0 && raft.term == lead_term_ && !faults_.any_ack &&
          !sense_.WasSent(frame.from, index))
        return Nonsense(fmt::format("record {} is {}, which was not sent", index,
                                    raft.rejected > 0 ? "refused" : "acknowledged"));
      const uint32_t own = log_.TermOf(index);
      const bool is_other = raft.last_term > 0 && own != 0 && raft.last_term != uint64_t{own} + 1;
      if (lead_term_ != 0 && raft.term == lead_term_ && raft.rejected == 0 && is_other &&
          !faults_.any_ack)
        return Nonsense(fmt::format("another record {} is acknowledged than there is", index));
      break;
    }
    case kRaftAppend:
    case kRaftInstall: {
      if (raft.term != term_) break;
      if (role() == SetRole::kLeader) return Nonsense("another one leads in this node's own term");
      const bool is_second = raft.term == heard_term_ && heard_leader_ != frame.from;
      const bool is_heard = heard_again_ && now() - heard_micros_ < options_.election_micros;
      if (is_second && (is_heard || faults_.one_leader))
        return Nonsense(fmt::format("a second leader of term {}", term_));
      break;
    }
    default:
      break;
  }
  return Status::Ok();
}

// A candidate of no log, whom nobody votes for: all that it brings is its term.
void ReplicaSet::StepTowards(uint64_t peer, uint64_t term) {
  SetMessage message;
  message.raft.kind = kRaftVote;
  message.raft.peer = message.raft.candidate = peer;
  message.raft.version = 1;
  message.raft.term = term;
  message.raft.disrupts_leader = 1;
  StepReceive(message);
}

void ReplicaSet::NotePeer(const RaftMessage& result) {
  const uint64_t index = std::min(result.last_index, log_.last().seq);
  past_.NoteAcknowledged(result.peer, {lead_term_, index}, log_.TermOf(index));
}

// A follower that refuses what the core has it down for has lost it: it was not synced when the
// power went, or a frame has said more than was so. To the core such a refusal is an old one, for
// ever, or makes it go back behind what it takes for matched, and send nothing from then on: it
// does not hear of it.
void ReplicaSet::ReceiveResult(const SetMessage& message) {
  const RaftMessage& raft = message.raft;
  if (lead_term_ == 0 || raft.term != lead_term_) return StepReceive(message);
  const uint64_t match = raft_core_match(core_, raft.peer);
  const auto known = std::find_if(lacking_.begin(), lacking_.end(),
                                  [&](const auto& each) { return each.first == raft.peer; });
  if (raft.rejected > 0 && std::min(raft.rejected, raft.last_index + 1) <= match &&
      !faults_.keeps_match) {
    if (known == lacking_.end()) return void(lacking_.emplace_back(raft.peer, now()));
    if (now() - known->second >= options_.election_micros) BeginAnew();
    return;
  }
  if (raft.rejected == 0) {
    if (known != lacking_.end()) lacking_.erase(known);
    // Noted before it counts: what follows from it may be a commit.
    NotePeer(raft);
  }
  StepReceive(message);
}

void ReplicaSet::NoteSender(const Frame& frame, const SetMessage& message) {
  auto other = std::find_if(others_.begin(), others_.end(),
                            [&](const Other& each) { return each.node == frame.from; });
  if (other == others_.end() && log_.members().Find(frame.from) != nullptr)
    other = others_.insert(other, {.node = frame.from});
  if (other != others_.end()) {
    other->room = frame.room;
    other->awaits = frame.awaits;
  }
  if (message.raft.kind == kRaftAppend && message.raft.term >= term_) {
    const auto term = static_cast<uint32_t>(message.raft.term);
    heard_again_ = term == heard_term_ && heard_leader_ == frame.from;
    heard_micros_ = now();
    heard_term_ = term;
    heard_leader_ = frame.from;
    // Of what comes in order the last one is the newest; a wrong one must not stay.
    heard_sent_micros_ = frame.sent_micros;
    const int64_t told = sense_.BelieveTime(frame.from, message.retention_micros);
    NoteRetention(faults_.one_time ? message.retention_micros : told);
  }
  if (message.raft.kind == kRaftInstall && message.raft.term >= term_) heard_micros_ = now();
  const bool is_echo = message.raft.kind == kRaftAppendResult && frame.echo_micros > 0 &&
                       (frame.echo_micros <= now() || faults_.any_echo);
  if (is_echo && lead_term_ != 0 && message.raft.term == lead_term_)
    lease_.OnEcho(frame.from, frame.echo_micros);
}

void ReplicaSet::ReceiveVote(const SetMessage& message) {
  // Before this start a leader may have been promised that nobody is voted for.
  if (!faults_.no_vote_pause && now() - started_micros_ < options_.election_micros) return;
  // Who does not vote has no election of its own in which the core would give a leader up.
  if (!faults_.no_forgotten_leader && now() - heard_micros_ >= options_.election_micros)
    raft_core_forget_leader(core_);
  const bool has_leader =
      role() == SetRole::kLeader || (role() == SetRole::kFollower && raft_core_leader(core_) != 0);
  asked_ = &message.raft;
  asked_had_leader_ = has_leader && message.raft.disrupts_leader == 0;
  StepReceive(message);
  asked_ = nullptr;
}

// What the own snapshot holds is committed, and so the same everywhere; the core has forgotten it
// and would refuse it for ever.
void ReplicaSet::CutBehindSnapshot(SetMessage* message) const {
  RaftMessage& raft = message->raft;
  const Lsn snapshot = log_.snapshot();
  if (raft.previous_index >= snapshot.seq) return;
  const uint64_t end = raft.previous_index + raft.n_entries;
  const uint64_t skip = std::min(end, snapshot.seq) - raft.previous_index;
  message->records.erase(message->records.begin(),
                         message->records.begin() + static_cast<std::ptrdiff_t>(skip));
  raft.n_entries = static_cast<uint32_t>(message->records.size());
  raft.previous_index = snapshot.seq;
  raft.previous_term = snapshot.epoch;
}

// An append of nothing behind `previous`, which this node and every leader have in common.
void ReplicaSet::MakeSignOfLife(SetMessage* message, Lsn previous) const {
  message->records.clear();
  message->raft.n_entries = 0;
  message->raft.previous_index = previous.seq;
  message->raft.previous_term = previous.epoch;
}

// While the leader sends a long record nothing else can come from it: the core would begin an
// election, and the leader, whom nobody answers, would step down, as often as it sends the record.
// The time of the head says when it was written, not when these bytes were sent, so that no lease
// comes of it.
void ReplicaSet::OnArriving(const FrameHead& head) {
  if (core_ == nullptr || faults_.deaf_to_arriving || head.kind != FrameKind::kAppend) return;
  if (head.term != term_ || lead_term_ != 0 || raft_core_leader(core_) != head.from) return;
  heard_micros_ = now();
  SetMessage message;
  message.raft.kind = kRaftAppend;
  message.raft.peer = head.from;
  message.raft.term = head.term;
  message.raft.commit = commit_.seq;
  MakeSignOfLife(&message, installing_ ? incoming_.lsn : commit_);
  StepReceive(message);
}

// What a leader sends is what stands here, as far as it is committed, and as far as it has written
// it itself. While a snapshot comes nothing is to be compared.
Status ReplicaSet::CheckRecords(const SetMessage& message) {
  const RaftMessage& raft = message.raft;
  for (const LogRecord& record : message.records) {
    SetMembers members;
    if (record.kind == RecordKind::kMembers &&
        (!DecodeMembers(record.payload, &members) || members.index != record.lsn.seq))
      return Nonsense("a record of members cannot be read");
  }
  if (installing_ || raft.term < term_) return Status::Ok();
  Lsn other{static_cast<uint32_t>(raft.previous_term), raft.previous_index};
  const auto differs = [this](Lsn lsn) {
    const uint32_t own = log_.TermOf(lsn.seq);
    return lsn.seq != 0 && own != 0 && own != lsn.epoch;
  };
  const bool agrees = !differs(other) && other.seq >= commit_.seq && other.seq <= log_.last().seq;
  for (size_t i = 0; i < message.records.size() && !differs(other); ++i)
    other = message.records[i].lsn;
  if (!differs(other)) {
    if (agrees) sense_.NoteAgreement(raft.peer);
    return Status::Ok();
  }
  const std::string what = fmt::format("the leader has another record {}", other.seq);
  if (other.seq <= commit_.seq) {
    if (sense_.BelieveContradiction(raft.peer, raft.term) || faults_.one_contradiction) {
      Contradict(fmt::format("{}, and up to {} all are committed here", what, commit_.seq));
    }
    return Nonsense(what + ", which is committed here");
  }
  if (log_.TermOf(other.seq) == raft.term) return Nonsense(what + " of its own term");
  return Status::Ok();
}

// The core is given only what this node can keep: without room on the disk, or while a snapshot
// comes, the records are taken out, and what is left says that the leader lives. What remains may
// take several steps, each of which begins with at most one change of members.
Status ReplicaSet::ReceiveAppend(SetMessage* message) {
  RETURN_IF_ERROR(CheckRecords(*message));
  std::vector<LogRecord>& records = message->records;
  size_t bytes = 0;
  for (const LogRecord& record : records) bytes += kRecordHeaderBytes + record.payload.size();
  // Without room it is a sign of life and nothing else.
  if (!records.empty() && !host_.HasRoom(bytes)) {
    records.clear();
    message->raft.n_entries = 0;
  }
  if (installing_ && faults_.refuses_while_installing) {
    // As it comes.
  } else if (installing_) {
    // The core takes the snapshot that comes for its log, and would refuse what stands before it,
    // which this node has said to have. A sign of life is all that can be made of it.
    MakeSignOfLife(message, incoming_.lsn);
  } else if (!faults_.no_cut) {
    CutBehindSnapshot(message);
  }
  if (faults_.no_divide) {
    StepAppend(*message, 0, records.size());
    return Status::Ok();
  }
  // The core notes a change under the index of the first record that it is given, and a second one
  // makes it forget the first: by then that must be known as committed, if it is.
  size_t begin = 0;
  for (size_t i = 0; i < records.size(); ++i) {
    if (records[i].kind != RecordKind::kMembers) continue;
    const bool confirms = i == 0 && core_ != nullptr && raft_core_members_uncommitted(core_) != 0;
    if (i > begin || confirms) StepAppend(*message, begin, i);
    begin = i;
  }
  StepAppend(*message, begin, records.size());
  return Status::Ok();
}

// Gives the core records [begin, end) of the message.
void ReplicaSet::StepAppend(const SetMessage& message, size_t begin, size_t end) {
  SetMessage part;
  part.raft = message.raft;
  part.records.assign(message.records.begin() + static_cast<std::ptrdiff_t>(begin),
                      message.records.begin() + static_cast<std::ptrdiff_t>(end));
  if (begin > 0) {
    part.raft.previous_index = message.records[begin - 1].lsn.seq;
    part.raft.previous_term = message.records[begin - 1].lsn.epoch;
  }
  entries_.clear();
  lists_.clear();
  for (const LogRecord& record : part.records) {
    SetMembers members;
    const bool names = record.kind == RecordKind::kMembers;
    if (names && !DecodeMembers(record.payload, &members)) CELLAR_ASSERT(false);
    AddCoreEntry(record.lsn.epoch, record.kind, names ? &members : nullptr);
  }
  part.raft.n_entries = static_cast<uint32_t>(entries_.size());
  part.raft.entries = entries_.data();
  StepReceive(part);
  if (core_ != nullptr && heard_again_ && raft_core_leader(core_) == part.raft.peer &&
      part.raft.term == term_)
    past_.NoteLed(part.raft.peer, {term_, log_.last().seq});
}

Status ReplicaSet::ReceiveInstall(SetMessage* message) {
  // It is being fetched, or another one is: the leader offers it again.
  if (installing_) return Status::Ok();
  const RaftMessage& raft = message->raft;
  const bool is_repeated = sense_.BelieveOffer(raft.peer, raft.term, message->offer);
  if (!is_repeated && !faults_.one_offer) return Status::Ok();
  const Lsn offered = message->offer.lsn;
  const bool is_known = offered.seq >= log_.first() && offered.seq <= commit_.seq;
  if (is_known && raft.term >= term_ && log_.At(offered.seq) != offered) {
    const std::string what =
        fmt::format("a snapshot is offered that holds another record {}", offered.seq);
    if (sense_.BelieveContradiction(raft.peer, raft.term)) Contradict(what);
    return Nonsense(what);
  }
  lists_.clear();
  message->raft.members = CoreForm(message->offer.members);
  StepReceive(*message);
  return Status::Ok();
}

// --- sending

void ReplicaSet::SendMessages(uint32_t count) {
  for (uint32_t i = 0; i < count && core_ != nullptr; ++i) {
    RaftMessage raft;
    raft_core_message(core_, i, &raft);
    SendOne(raft);
  }
}

void ReplicaSet::SendOne(RaftMessage raft) {
  switch (raft.kind) {
    case kRaftAppend:
      return SendAppend(raft);
    case kRaftInstall:
      return SendInstall(raft);
    case kRaftVoteResult:
      if (!MendVote(&raft)) return;
      break;
    case kRaftTimeoutNow:
      TellTime(raft.peer);
      break;
    default:
      break;
  }
  SetMessage message;
  message.raft = raft;
  // Of a record that a snapshot holds the term is not known, which is not the term 0.
  const uint64_t last_term = log_.TermOf(raft.last_index);
  if (raft.kind == kRaftAppendResult && (last_term > 0 || raft.last_index == 0))
    message.raft.last_term = last_term + 1;
  SendFrame(message);
}

// What the core of 0.22 gets wrong about votes. False: the answer must not leave.
bool ReplicaSet::MendVote(RaftMessage* raft) {
  if (raft->granted != 0 || asked_ == nullptr) return true;
  const RaftMessage& asked = *asked_;
  const std::vector<RaftMember> members = CoreMembers();
  const bool is_voter = std::any_of(members.begin(), members.end(), [&](const RaftMember& member) {
    return member.id == options_.node && member.kind == kRaftVoter;
  });
  // A candidate that asks this node has it as a voter, by a record that may not have come here yet.
  // That it counts there is all that matters.
  const Lsn last = log_.last();
  const bool is_fresh = asked.last_term > last.epoch ||
                        (asked.last_term == last.epoch && asked.last_index >= last.seq);
  const bool is_free = asked.is_pre_vote != 0
                           ? asked.term >= term_
                           : asked.term == term_ && (vote_ == 0 || vote_ == asked.candidate);
  if (!faults_.no_vote_of_strangers && !is_voter && is_fresh && is_free && !installing_ &&
      !asked_had_leader_ && role() == SetRole::kFollower) {
    if (asked.is_pre_vote == 0) {
      raft_core_set_vote(core_, asked.candidate);
      if (!SaveVote()) return false;
    }
    raft->granted = 1;
    return true;
  }
  // Else a long log of a low term and a short one of a high term refuse each other for ever.
  if (!faults_.no_told_term && asked.is_pre_vote != 0)
    raft->term = std::max<uint64_t>(raft->term, term_);
  return true;
}

uint64_t& ReplicaSet::LongSentTo(uint64_t node) {
  const auto sent = std::find_if(long_sent_.begin(), long_sent_.end(),
                                 [node](const auto& each) { return each.first == node; });
  return sent != long_sent_.end() ? sent->second : long_sent_.emplace_back(node, 0).second;
}

// What the core sends at once may be more than a frame holds: it goes out in frames that follow one
// another, their records as they lie in the log. While a long frame is on its way, repeats of it go
// without records.
void ReplicaSet::SendAppend(RaftMessage raft) {
  SetMessage message;
  message.retention_micros = retention_micros_;
  append_version_ = raft.version;
  uint64_t left = raft.n_entries;
  uint64_t& long_sent = LongSentTo(raft.peer);
  // A core that has had no answer for a while sends all of it again with every heartbeat.
  const bool is_repeated = left > 0 && raft.previous_index < long_sent;
  if (is_repeated && !faults_.repeats_long && host_.IsSendingLong(raft.peer)) left = 0;
  do {
    // With records of some MB behind one another most of these would be made for nothing.
    if (host_.IsFull(raft.peer)) break;
    message.raft = raft;
    message.raft.n_entries = 0;
    message.wire = {};
    if (left > 0) {
      const Lsn after{static_cast<uint32_t>(raft.previous_term), raft.previous_index};
      const auto piece =
          host_.Records(after, log_.At(raft.previous_index + left), options_.frame_bytes_max);
      if (!piece) {
        // To the core a lost message; to the follower a sign of life.
        left = 0;
      } else {
        CELLAR_ASSERT(piece->last.seq > raft.previous_index);
        const uint64_t n = piece->last.seq - raft.previous_index;
        CELLAR_ASSERT(n <= left);
        message.wire = piece->wire;
        message.raft.n_entries = static_cast<uint32_t>(n);
        raft.previous_index = piece->last.seq;
        raft.previous_term = piece->last.epoch;
        left -= n;
      }
    }
    const size_t bytes = SendFrame(message);
    if (bytes >= kLongFrameBytes) long_sent = raft.previous_index;
  } while (left > 0);
  sense_.NoteSent(raft.peer, raft.previous_index);
  for (Other& other : others_) {
    if (other.node == raft.peer)
      other.told = std::max(other.told, std::min(raft.commit, raft.previous_index));
  }
}

// A follower learns what is committed with the next record or heartbeat. One with readers that wait
// is told at once, as far as it has acknowledged the records, by a heartbeat of its own; not where
// records that are on their way say it already.
void ReplicaSet::TellCommits() {
  if (lead_term_ == 0 || installing_) return;
  for (const Other& other : others_) {
    if (!other.awaits || log_.members().Find(other.node) == nullptr) continue;
    const Lsn match = MatchOf(other.node);
    const uint64_t known = std::min(match.seq, commit_.seq);
    if (match.epoch != 0 && known > other.told) SendHeartbeat(other.node, match);
  }
}

// Who leads next must not show what has been due here (FrameSense::BelieveTime), and what was read
// last may have been judged since the last heartbeat.
void ReplicaSet::TellTime(uint64_t node) {
  const Lsn match = MatchOf(node);
  if (lead_term_ == 0 || match.epoch == 0 || faults_.untold_time) return;
  SendHeartbeat(node, match);
  SendHeartbeat(node, match);
}

void ReplicaSet::SendHeartbeat(uint64_t node, Lsn match) {
  RaftMessage raft{};
  raft.kind = kRaftAppend;
  raft.peer = node;
  raft.term = term_;
  raft.version = append_version_;
  raft.previous_index = match.seq;
  raft.previous_term = match.epoch;
  raft.commit = commit_.seq;
  SendAppend(raft);
}

// To one that cannot be reached the core sends it with every heartbeat.
void ReplicaSet::SendInstall(const RaftMessage& raft) {
  if (host_.IsFull(raft.peer)) return;
  const auto offer =
      host_.OfferSnapshot({static_cast<uint32_t>(raft.snapshot_term), raft.snapshot_index});
  if (!offer) return;
  SetMessage message;
  message.raft = raft;
  message.offer = *offer;
  CELLAR_ASSERT(offer->lsn.seq == raft.snapshot_index);
  message.offer.members = log_.MembersAt(raft.snapshot_index);
  sense_.NoteSent(raft.peer, raft.snapshot_index);
  // Believed when it is said twice.
  SendFrame(message);
  SendFrame(message);
}

// How long it is.
size_t ReplicaSet::SendFrame(const SetMessage& message) {
  FrameHead head;
  head.kind = FrameKindOf(message.raft.kind);
  head.room = host_.HasRoom(0);
  head.awaits = awaits_commits_;
  head.term = term_;
  head.from = options_.node;
  head.sent_micros = now();
  if (message.raft.kind == kRaftAppendResult && message.raft.rejected == 0 && !asked_is_old_)
    past_.NoteOwn({term_, message.raft.last_index}, log_.TermOf(message.raft.last_index));
  if (message.raft.kind == kRaftAppendResult && heard_term_ == message.raft.term)
    head.echo_micros = heard_sent_micros_;
  std::string frame;
  frame.reserve(kFrameHeadBytes + kAppendHeadBytes + message.wire.size());  // copied once
  BeginFrame(head, &frame);
  AppendSetMessage(message, &frame);
  SealFrame(&frame);
  const size_t bytes = frame.size();
  host_.Send(message.raft.peer, std::move(frame));
  return bytes;
}

}  // namespace cellar
