// See set_message.h.
#include "replica/set/set_message.h"

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
  std::string_view rest = body->Rest();
  LogRecord record;
  while (!rest.empty()) {
    const auto bytes = NextWireRecord(rest, &record);
    if (!bytes) return Malformed("a record in a frame is not sound");
    rest.remove_prefix(*bytes);
    if (!record.is_entry()) continue;
    if (record.lsn.seq != raft.previous_index + 1 + message->records.size() ||
        record.lsn.epoch == 0 || record.lsn.epoch > raft.term)
      return Malformed("a record in a frame is out of order");
    message->records.push_back(record);
  }
  if (message->records.size() != raft.n_entries)
    return Malformed("a frame holds another number of records than it says");
  return Status::Ok();
}

}  // namespace

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
std::string EncodeSetMessage(const SetMessage& message) {
  const RaftMessage& raft = message.raft;
  std::string body(1, static_cast<char>(raft.version));
  const auto flags = static_cast<uint8_t>((raft.disrupts_leader != 0 ? kDisrupts : 0) |
                                          (raft.is_pre_vote != 0 ? kPreVote : 0) |
                                          (raft.granted != 0 ? kGranted : 0));
  switch (raft.kind) {
    case kRaftVote:
      PutFixed64(&body, raft.last_term);
      PutFixed64(&body, raft.last_index);
      body.push_back(static_cast<char>(flags));
      PutFixed64(&body, raft.term);
      break;
    case kRaftVoteResult:
      body.push_back(static_cast<char>(flags));
      PutFixed<uint16_t>(&body, raft.features);
      PutFixed<uint16_t>(&body, raft.capacity);
      PutFixed64(&body, raft.term);
      break;
    case kRaftAppend:
      PutFixed64(&body, raft.previous_term);
      PutFixed64(&body, raft.previous_index);
      PutFixed64(&body, raft.commit);
      PutFixed64(&body, static_cast<uint64_t>(message.retention_micros));
      PutFixed32(&body, raft.n_entries);
      CELLAR_ASSERT(body.size() == kAppendHeadBytes);
      body.append(message.wire);
      break;
    case kRaftAppendResult:
      PutFixed64(&body, raft.rejected);
      PutFixed64(&body, raft.last_index);
      PutFixed<uint16_t>(&body, raft.features);
      PutFixed<uint16_t>(&body, raft.capacity);
      break;
    case kRaftInstall:
      PutLsn(&body, message.offer.lsn);
      PutFixed64(&body, message.offer.bytes);
      PutFixed64(&body, message.offer.hash);
      PutFixed64(&body, message.offer.number);
      PutFixed64(&body, message.offer.end_bytes);
      PutLengthPrefixed(&body, EncodeMembers(message.offer.members));
      PutFixed64(&body, static_cast<uint64_t>(message.offer.commit_micros));
      break;
    default:
      CELLAR_ASSERT(raft.kind == kRaftTimeoutNow);
      PutFixed64(&body, raft.last_term);
      PutFixed64(&body, raft.last_index);
      break;
  }
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
          offer.lsn.epoch == 0 || offer.members.index > offer.lsn.seq)
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
  return body.ok() ? Status::Ok() : Malformed("a frame is too short");
}

}  // namespace cellar
