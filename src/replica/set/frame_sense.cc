// See frame_sense.h.
#include "replica/set/frame_sense.h"

#include <algorithm>
#include <utility>

namespace cellar {

// A vote names its term twice, in head and body (CheckSense); all others once, so that what they
// name is no more than the lesser of the last two. A pre-vote asks for a term and has none.
uint64_t FrameSense::BelieveTerm(uint64_t peer, uint64_t own, const RaftMessage& message,
                                 bool knows_nothing) {
  const uint64_t named = message.term;
  const uint64_t before = std::exchange(peers_[peer].term, named);
  if (named <= own) return named;
  const bool is_vote = message.kind == kRaftVote || message.kind == kRaftVoteResult;
  if (is_vote && named <= own + kTermStride) return named;
  const uint64_t both = std::min(before, named);
  if (knows_nothing && both == named && named < kTermCeiling) return named;
  return std::max(own, TermTowards(own, both));
}

void FrameSense::ForgetSent() {
  for (auto& [node, peer] : peers_) peer.sent = 0;
}

void FrameSense::NoteSent(uint64_t peer, uint64_t index) {
  uint64_t& sent = peers_[peer].sent;
  sent = std::max(sent, index);
}

bool FrameSense::WasSent(uint64_t peer, uint64_t index) const {
  const auto known = peers_.find(peer);
  return known != peers_.end() && index <= known->second.sent;
}

// By another number each time: it is a new ticket for the same file.
bool FrameSense::BelieveOffer(uint64_t peer, uint64_t term, const SnapshotOffer& offer) {
  Peer& known = peers_[peer];
  const SnapshotOffer before = std::exchange(known.offer, offer);
  const uint64_t term_before = std::exchange(known.offer_term, term);
  return term_before == term && before.lsn == offer.lsn && before.bytes == offer.bytes &&
         before.hash == offer.hash && before.end_bytes == offer.end_bytes &&
         before.commit_micros == offer.commit_micros && before.members == offer.members;
}

int64_t FrameSense::BelieveTime(uint64_t peer, int64_t micros) {
  return std::min(micros, std::exchange(peers_[peer].time_micros, micros));
}

bool FrameSense::BelieveContradiction(uint64_t peer, uint64_t term) {
  Peer& known = peers_[peer];
  if (std::exchange(known.contradicted_term, term) != term) known.contradictions = 0;
  return ++known.contradictions >= kContradictionTimes;
}

void FrameSense::NoteAgreement(uint64_t peer) { peers_[peer].contradictions = 0; }

void FrameSense::Forget(const SetMembers& members) {
  if (peers_.size() < 2 * kSetMembersMax) return;
  std::erase_if(peers_, [&](const auto& each) { return members.Find(each.first) == nullptr; });
}

}  // namespace cellar
