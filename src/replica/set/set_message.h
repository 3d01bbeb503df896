// What the members of a replica set say to each other, as bodies of frames (frame.h). RaftMessage
// is what the core knows of it; entries and members travel beside.
//
// All integers are little-endian; each body begins with the core's version of the message, u8.
//
//   kVote         last term u64, last index u64, flags u8: 1 disrupts the leader, 2 pre-vote;
//                 term asked for u64
//   kVoteResult   flags u8: 2 pre-vote, 4 granted; features u16; capacity u16; term u64
//   kAppend       previous term u64, previous index u64, commit u64, retention time i64, count u32;
//                 that many records in wire form (store/log/log_stream.h)
//   kAppendResult rejected u64, last index u64, features u16, capacity u16; then, from versions on
//                 that name the record, its term plus one as it stands at the sender u64
//   kInstall      snapshot: epoch u32, seq u64, bytes u64, hash u64, number u64, end u64: bytes
//                 of footer and trailer; members' payload (length-prefixed, set_members.h); from
//                 feature level 3 on the record's commit time, i64
//   kTimeoutNow   last term u64, last index u64
//
// The term of a message is its frame's, but for votes: a pre-vote names a term that nobody has.
//
// A term is 32 bits, and no node ever goes back to a lower one: who could name any would use up
// those that elections need. Within kTermReach of its own a node takes what is named; towards more
// it goes in steps of that, one for each frame, and from kTermCeiling on in steps of one. So half
// of
// all terms are left for elections, which would take decades, and nodes that are far apart still
// meet.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "replica/links/frame.h"
#include "replica/set/raft_core.h"
#include "replica/set/set_members.h"
#include "store/format/log_format.h"

namespace cellar {

inline constexpr uint64_t kTermCeiling{uint64_t{1} << 31};
inline constexpr uint64_t kTermReach{uint64_t{1} << 20};

// How far a node whose term is `own` goes when `named` is named.
uint64_t TermTowards(uint64_t own, uint64_t named);

// A snapshot that a leader offers: its bulk is fetched beside, by number.
struct SnapshotOffer {
  Lsn lsn;
  uint64_t bytes{0};
  uint64_t hash{0};
  uint64_t number{0};
  uint64_t end_bytes{0};     // of footer and trailer
  int64_t commit_micros{0};  // of `lsn`; 0: an older version does not say
  SetMembers members;
};

struct SetMessage {
  RaftMessage raft{};
  int64_t retention_micros{0};     // kAppend
  std::string_view wire;           // kAppend, to be sent: the records
  std::vector<LogRecord> records;  // kAppend, received: they borrow the frame's body
  SnapshotOffer offer;             // kInstall
};

// REQUIRES: wire and offer belong to the kind.
std::string EncodeSetMessage(const SetMessage& message);
// The same, behind what is there.
void AppendSetMessage(const SetMessage& message, std::string* to);
FrameKind FrameKindOf(int raft_kind);
bool IsSetFrame(FrameKind kind);
// Of what members say to each other.
FrameReader MakeSetFrameReader();
// kCorruption: the body is none of its kind's. raft.entries is left to the caller.
Status DecodeSetMessage(const Frame& frame, SetMessage* message);

}  // namespace cellar
