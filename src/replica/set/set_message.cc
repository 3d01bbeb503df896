// See set_message.h.
#include "replica/set/set_message.h"

#include <algorithm>

#include "base/assert.h"
#include "base/coding.h"
#include "store/log/log_stream.h"

namespace cellar {
namespace {

constexpr uint8_t kDisrupts = 1;
constexpr uint8_t kPreVote = 2;
constexpr uint8_t kGranted = 4;

Status Malformed(const char* what) { return Status::Error(ErrorCode::kCorruption, what); }

void ReadVote(BodyReader* body, RaftMessage* raft, uint64_t from) {
  raft->last_term = body->U64();
  raft->last_index = body->U64();
  const uint8_t flags = body->Byte();
  raft->disrupts_leader = (flags & kDisrupts) != 0 ? 1 : 0;
  raft->is_pre_vote = (flags & kPreVote) != 0 ? 1 : 0;
  raft->term = body->U64();
  raft->candidate = from;
}

void ReadVoteResult(BodyReader* body, RaftMessage* raft) {
  const uint8_t flags = body->Byte();
  raft->is_pre_vote = (flags & kPreVote) != 0 ? 1 : 0;
  raft->granted = (flags & kGranted) != 0 ? 1 : 0;
  raft->features = body->U16();
  raft->capacity = body->U16();
  raft->term = body->U64();
}

Status ReadAppend(BodyReader* body, SetMessage* message) {
  RaftMessage& raft = message->raft;
  raft.previous_term = body->U64();
  raft.previous_index = body->U64();
  raft.commit = body->U64();
  message->retention_micros = body->Micros();
  raft.n_entries = body->U32();
  if (!body->ok()) return Malformed("a frame with records is too short");
  if ((raft.previous_index == 0) != (raft.previous_term == 0))
    return Malformed("a frame with records follows no record");
  if (raft.previous_term > raft.term) return Malformed("a frame with records follows a later term");
  uint64_t term = raft.previous_term;
  std::string_view rest = body->Rest();
  LogRecord record;
  while (!rest.empty()) {
    const auto bytes = NextWireRecord(rest, &record);
    if (!bytes) return Malformed("a record in a frame is not sound");
    rest.remove_prefix(*bytes);
    if (!record.is_entry()) continue;
    if (record.lsn.seq != raft.previous_index + 1 + message->records.size() ||
        record.lsn.epoch < std::max<uint64_t>(term, 1) || record.lsn.epoch > raft.term)
      return Malformed("a record in a frame is out of order");
    term = record.lsn.epoch;
    message->records.push_back(record);
  }
  if (message->records.size() != raft.n_entries)
    return Malformed("a frame holds another number of records than it says");
  return Status::Ok();
}

// 0.22 is the oldest core that speaks here: what it says of votes has this version or a later one,
// and by an earlier one a pre-vote would count for a vote.
constexpr uint8_t kVoteVersionMin = 2;

Status CheckMessage(const RaftMessage& raft) {
  const bool is_vote = raft.kind == kRaftVote || raft.kind == kRaftVoteResult;
  if (is_vote && raft.version < kVoteVersionMin) return Malformed("a vote of an unknown version");
  const uint64_t last_term =
      raft.last_term - (raft.kind == kRaftAppendResult && raft.last_term > 0 ? 1 : 0);
  if (last_term > raft.term) return Malformed("a frame names a record of a later term");
  return Status::Ok();
}

}  // namespace

uint64_t TermTowards(uint64_t own, uint64_t named) {
  if (named <= own) return named;
  if (own >= kTermCeiling) return own + 1;
  return std::min({named, own + kTermReach, kTermCeiling});
}

FrameKind FrameKindOf(int raft_kind) {
  switch (raft_kind) {
    case kRaftAppend:
      return FrameKind::kAppend;
    case kRaftAppendResult:
      return FrameKind::kAppendResult;
    case kRaftVote:
      return FrameKind::kVote;
    case kRaftVoteResult:
      return FrameKind::kVoteResult;
    case kRaftInstall:
      return FrameKind::kInstall;
    default:
      CELLAR_ASSERT(raft_kind == kRaftTimeoutNow);
      return FrameKind::kTimeoutNow;
  }
}

bool IsSetFrame(FrameKind kind) {
  return kind >= FrameKind::kVote && kind <= FrameKind::kTimeoutNow;
}

FrameReader MakeSetFrameReader() {
  return FrameReader({FrameKind::kVote, FrameKind::kVoteResult, FrameKind::kAppend,
                      FrameKind::kAppendResult, FrameKind::kInstall, FrameKind::kTimeoutNow,
                      FrameKind::kHello, FrameKind::kReadIndex, FrameKind::kReadAnswer,
                      FrameKind::kOrder, FrameKind::kOrderAnswer, FrameKind::kError});
}

// The order is the format (set_message.h), and DecodeSetMessage reads by it. Members of two
// versions talk with each other while a set is updated: what is new goes to the end of a body,
// where it may be missing, as the offer's commit time does.
void AppendSetMessage(const SetMessage& message, std::string* to) {
  const RaftMessage& raft = message.raft;
  const size_t begin = to->size();
  to->push_back(static_cast<char>(raft.version));
  const auto flags = static_cast<uint8_t>((raft.disrupts_leader != 0 ? kDisrupts : 0) |
                                          (raft.is_pre_vote != 0 ? kPreVote : 0) |
                                          (raft.granted != 0 ? kGranted : 0));
  switch (raft.kind) {
    case kRaftVote:
      PutFixed64(to, raft.last_term);
      PutFixed64(to, raft.last_index);
      to->push_back(static_cast<char>(flags));
      PutFixed64(to, raft.term);
      break;
    case kRaftVoteResult:
      to->push_back(static_cast<char>(flags));
      PutFixed<uint16_t>(to, raft.features);
      PutFixed<uint16_t>(to, raft.capacity);
      PutFixed64(to, raft.term);
      break;
    case kRaftAppend:
      PutFixed64(to, raft.previous_term);
      PutFixed64(to, raft.previous_index);
      PutFixed64(to, raft.commit);
      PutFixed64(to, static_cast<uint64_t>(message.retention_micros));
      PutFixed32(to, raft.n_entries);
      CELLAR_ASSERT(to->size() - begin == kAppendHeadBytes);
      to->append(message.wire);
      break;
    case kRaftAppendResult:
      PutFixed64(to, raft.rejected);
      PutFixed64(to, raft.last_index);
      PutFixed<uint16_t>(to, raft.features);
      PutFixed<uint16_t>(to, raft.capacity);
      PutFixed64(to, raft.last_term);
      break;
    case kRaftInstall:
      PutLsn(to, message.offer.lsn);
      PutFixed64(to, message.offer.bytes);
      PutFixed64(to, message.offer.hash);
      PutFixed64(to, message.offer.number);
      PutFixed64(to, message.offer.end_bytes);
      PutLengthPrefixed(to, EncodeMembers(message.offer.members));
      PutFixed64(to, static_cast<uint64_t>(message.offer.commit_micros));
      break;
    default:
      CELLAR_ASSERT(raft.kind == kRaftTimeoutNow);
      PutFixed64(to, raft.last_term);
      PutFixed64(to, raft.last_index);
      break;
  }
}

std::string EncodeSetMessage(const SetMessage& message) {
  std::string body;
  AppendSetMessage(message, &body);
  return body;
}

// BodyReader reads zeros behind the end and remembers that it did, so one test at the bottom
// suffices for plain numbers. Records and lists of members are checked where they are read.
Status DecodeSetMessage(const Frame& frame, SetMessage* message) {
  *message = {};
  RaftMessage& raft = message->raft;
  raft.peer = frame.from;
  raft.term = frame.term;
  BodyReader body(frame.body);
  raft.version = body.Byte();
  switch (frame.kind) {
    case FrameKind::kVote:
      raft.kind = kRaftVote;
      ReadVote(&body, &raft, frame.from);
      break;
    case FrameKind::kVoteResult:
      raft.kind = kRaftVoteResult;
      ReadVoteResult(&body, &raft);
      break;
    case FrameKind::kAppend:
      raft.kind = kRaftAppend;
      RETURN_IF_ERROR(ReadAppend(&body, message));
      break;
    case FrameKind::kAppendResult:
      raft.kind = kRaftAppendResult;
      raft.rejected = body.U64();
      raft.last_index = body.U64();
      raft.features = body.U16();
      raft.capacity = body.U16();
      if (!body.at_end()) raft.last_term = body.U64();
      break;
    case FrameKind::kInstall: {
      raft.kind = kRaftInstall;
      SnapshotOffer& offer = message->offer;
      offer.lsn = body.ReadLsn();
      offer.bytes = body.U64();
      offer.hash = body.U64();
      offer.number = body.U64();
      offer.end_bytes = body.U64();
      if (!DecodeMembers(body.Prefixed(), &offer.members) || offer.members.list.empty() ||
          offer.lsn.epoch == 0 || offer.lsn.epoch > raft.term ||
          offer.members.index > offer.lsn.seq)
        return Malformed("an offer of a snapshot cannot be read");
      if (!body.at_end()) offer.commit_micros = body.Micros();
      raft.snapshot_index = offer.lsn.seq;
      raft.snapshot_term = offer.lsn.epoch;
      raft.members_index = offer.members.index;
      break;
    }
    default:
      if (frame.kind != FrameKind::kTimeoutNow) return Malformed("that is no frame of a set");
      raft.kind = kRaftTimeoutNow;
      raft.last_term = body.U64();
      raft.last_index = body.U64();
      break;
  }
  if (!body.ok()) return Malformed("a frame is too short");
  return CheckMessage(raft);
}

}  // namespace cellar
