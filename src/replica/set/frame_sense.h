// FrameSense: what a member believes of what another one says. A checksum tells of bytes that have
// changed on their way; it does not tell of a sender whose memory has, or whose program is wrong.
// What such a frame brings about must not outlast it, or one frame after the other ends the set.
//
// What cannot be is refused, and its link closed (ReplicaSet::OnFrame):
//   - an acknowledgement, or a refusal, of what this node has not sent there in its term, or of
//     another record than stands here
//   - a term in a vote's body that its head does not have, an entry or snapshot of a later term
//   - records that go back in terms, or that another record of the sender's own term stands against
//   - a leader in a term in which another one is heard
// What can be and would last is believed when it is said twice, one frame behind the other:
//   - a term further than a few elections ahead, or of a leader that is not known to be one
//   - a snapshot to be installed, whose list of members is that of the file, too
//   - the time up to which the leader has judged what is due
//   - a new start of a member (set_past.h)
// and three times before a node is taken for one whose records contradict the set's, or for one
// that holds less than it acknowledged. An election takes two rounds anyway, a pre-vote and a vote.
// A time that is echoed before it was said is no echo.
//
// What remains: a sender that is wrong may acknowledge what it was sent and has not kept, grant a
// vote that it has given away, or say that a record is committed which is not. No check here can
// tell that from the truth. So of damage with right checksums it is promised that the set goes on,
// at the latest when the damage ends; not that nothing which was acknowledged is lost. The
// simulation holds it to that (--damage, and tests/replica/forgeries.h for each rule).
#pragma once

#include <cstdint>
#include <map>

#include "replica/set/raft_core.h"
#include "replica/set/set_members.h"
#include "replica/set/set_message.h"

namespace cellar {

// So many terms ahead a vote is taken at its word: elections that nobody has won.
inline constexpr uint64_t kTermStride{16};

class FrameSense {
 public:
  // The term in which a frame of `peer` is to be seen, that names `named` while this node's own is
  // `own`: `named` where it is believed, else how far this node goes towards it. `knows_nothing`:
  // it has no log, and no step is too wide.
  uint64_t BelieveTerm(uint64_t peer, uint64_t own, const RaftMessage& message, bool knows_nothing);

  // Of a leader: a new term begins, in which nothing has been sent; records up to `index` have
  // been; whether `peer` may name that one.
  void ForgetSent();
  void NoteSent(uint64_t peer, uint64_t index);
  bool WasSent(uint64_t peer, uint64_t index) const;

  // Whether the leader of `term` has offered that before.
  bool BelieveOffer(uint64_t peer, uint64_t term, const SnapshotOffer& offer);

  // The lesser of the last two times that `peer` has told.
  int64_t BelieveTime(uint64_t peer, int64_t micros);

  // `peer`, leading that term, has records that contradict what is committed here: whether it is
  // believed. And it has the same.
  bool BelieveContradiction(uint64_t peer, uint64_t term);
  void NoteAgreement(uint64_t peer);

  // Those that are no members are forgotten when there are many.
  void Forget(const SetMembers& members);

 private:
  static constexpr int kContradictionTimes{3};

  struct Peer {
    uint64_t term{0};  // as its last frame has named it
    uint64_t sent{0};
    uint64_t offer_term{0};
    SnapshotOffer offer;
    int64_t time_micros{0};
    uint64_t contradicted_term{0};
    int contradictions{0};
  };

  std::map<uint64_t, Peer> peers_;
};

}  // namespace cellar
