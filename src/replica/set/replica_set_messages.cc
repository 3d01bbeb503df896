// What a member receives and sends. See replica_set.h.
#include <algorithm>

#include "base/assert.h"
#include "replica/set/replica_set.h"

namespace cellar {

// --- receiving

Status ReplicaSet::OnFrame(const Frame& frame) {
  SetMessage message;
  RETURN_IF_ERROR(DecodeSetMessage(frame, &message));
  if (message.raft.term == 0 || message.raft.term > UINT32_MAX)
    return Status::Error(ErrorCode::kCorruption, "a frame of an impossible term");
  if (core_ == nullptr || frame.from == options_.node) return Status::Ok();
  NoteSender(frame, message);
  switch (message.raft.kind) {
    case kRaftVote:
      ReceiveVote(message);
      break;
    case kRaftAppend:
      ReceiveAppend(&message);
      break;
    case kRaftInstall:
      ReceiveInstall(&message);
      break;
    default:
      StepReceive(message);
      break;
  }
  return Status::Ok();
}

void ReplicaSet::NoteSender(const Frame& frame, const SetMessage& message) {
  const auto room = std::find_if(rooms_.begin(), rooms_.end(),
                                 [&](const auto& each) { return each.first == frame.from; });
  if (room != rooms_.end())
    room->second = frame.room;
  else if (log_.members().Find(frame.from) != nullptr)
    rooms_.emplace_back(frame.from, frame.room);
  if (message.raft.kind == kRaftAppend && message.raft.term >= term_) {
    const auto term = static_cast<uint32_t>(message.raft.term);
    if (term != heard_term_) heard_sent_micros_ = 0;
    heard_micros_ = now();
    heard_term_ = term;
    heard_sent_micros_ = std::max(heard_sent_micros_, frame.sent_micros);
    retention_micros_ = std::max(retention_micros_, message.retention_micros);
  }
  if (message.raft.kind == kRaftInstall && message.raft.term >= term_) heard_micros_ = now();
  const bool is_echo = message.raft.kind == kRaftAppendResult && frame.echo_micros > 0;
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

// The core is given only what this node can keep: without room on the disk, or while a snapshot
// comes, the records are taken out, and what is left says that the leader lives. What remains may
// take several steps, each of which begins with at most one change of members.
void ReplicaSet::ReceiveAppend(SetMessage* message) {
  std::vector<LogRecord>& records = message->records;
  size_t bytes = 0;
  for (const LogRecord& record : records) {
    SetMembers members;
    if (record.kind == RecordKind::kMembers &&
        (!DecodeMembers(record.payload, &members) || members.index != record.lsn.seq))
      return Break("a record of members cannot be read");
    bytes += kRecordHeaderBytes + record.payload.size();
  }
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
  if (faults_.no_divide) return StepAppend(*message, 0, records.size());
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
}

void ReplicaSet::ReceiveInstall(SetMessage* message) {
  // It is being fetched, or another one is: the leader offers it again.
  if (installing_) return;
  lists_.clear();
  message->raft.members = CoreForm(message->offer.members);
  StepReceive(*message);
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
    default:
      break;
  }
  SetMessage message;
  message.raft = raft;
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
  uint64_t left = raft.n_entries;
  uint64_t& long_sent = LongSentTo(raft.peer);
  // A core that has had no answer for a while sends all of it again with every heartbeat.
  const bool is_repeated = left > 0 && raft.previous_index < long_sent;
  if (is_repeated && !faults_.repeats_long && host_.IsSendingLong(raft.peer)) left = 0;
  do {
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
}

void ReplicaSet::SendInstall(const RaftMessage& raft) {
  const auto offer =
      host_.OfferSnapshot({static_cast<uint32_t>(raft.snapshot_term), raft.snapshot_index});
  if (!offer) return;
  SetMessage message;
  message.raft = raft;
  message.offer = *offer;
  CELLAR_ASSERT(offer->lsn.seq == raft.snapshot_index);
  message.offer.members = log_.MembersAt(raft.snapshot_index);
  SendFrame(message);
}

// How long it is.
size_t ReplicaSet::SendFrame(const SetMessage& message) {
  FrameHead head;
  head.kind = FrameKindOf(message.raft.kind);
  head.room = host_.HasRoom(0);
  head.term = term_;
  head.from = options_.node;
  head.sent_micros = now();
  if (message.raft.kind == kRaftAppendResult && heard_term_ == message.raft.term)
    head.echo_micros = heard_sent_micros_;
  std::string frame = EncodeFrame(head, EncodeSetMessage(message));
  const size_t bytes = frame.size();
  host_.Send(message.raft.peer, std::move(frame));
  return bytes;
}

}  // namespace cellar
