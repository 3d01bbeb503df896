// Reads on a follower that are as new as the leader's (Ongaro's thesis, 6.4): once a turn the
// leader is asked up to where the log is committed. It answers when it knows that it still led
// after it had been asked: by its lease, or when a majority has answered it since. What has been
// applied up to there holds all that was acknowledged before the question. See set_node.h.
#include "base/coding.h"
#include "replica/set_links.h"

namespace cellar {

uint64_t SetNode::RequestReadIndex() {
  read_wanted_ = true;
  return read_next_;
}

void SetNode::OnReadIndex(uint64_t node, const Frame& frame) {
  BodyReader body(frame.body);
  const uint64_t ticket = body.U64();
  // One that is dropped is asked again.
  if (!body.ok() || !open() || asked_reads_.size() >= kAskedMax) return;
  asked_reads_.push_back({node, ticket, now(), set().commit()});
}

void SetNode::OnReadAnswer(const Frame& frame) {
  BodyReader body(frame.body);
  const uint64_t ticket = body.U64();
  const Lsn commit = body.ReadLsn();
  const bool is_own = body.ok() && ticket >= read_first_ && ticket < read_next_;
  const uint64_t newest = read_answers_.empty() ? read_ready_ : read_answers_.back().ticket;
  if (is_own && ticket > newest) read_answers_.push_back({ticket, commit});
}

void SetNode::StepReads() {
  if (!open()) asked_reads_.clear();
  while (!asked_reads_.empty() && set().MayRelease(asked_reads_.front().micros)) {
    const AskedRead asked = asked_reads_.front();
    asked_reads_.pop_front();
    std::string body;
    PutFixed64(&body, asked.ticket);
    PutLsn(&body, asked.commit);
    Send(asked.node, EncodeFrame(owner_.MakeHead(FrameKind::kReadAnswer), body));
  }
  Peer* const leader = read_wanted_ ? PeerOf(set().leader()) : nullptr;
  if (leader != nullptr && !open()) {
    std::string body;
    PutFixed64(&body, read_next_++);
    leader->out->Write(EncodeFrame(owner_.MakeHead(FrameKind::kReadIndex), body));
    read_sent_micros_ = now();
    read_wanted_ = false;
  }
  const uint64_t before = read_ready_;
  while (!read_answers_.empty() && !store_.state_is_void() &&
         read_answers_.front().commit.seq <= store_.applied_lsn().seq) {
    read_ready_ = read_answers_.front().ticket;
    read_answers_.pop_front();
  }
  if (read_ready_ != before) owner_.host_.WakeReads();
}

// The question or its answer may be lost with a link, or with who led. An answer to a later one
// will do.
void SetNode::AskAgain() {
  const uint64_t newest = read_answers_.empty() ? read_ready_ : read_answers_.back().ticket;
  const bool waits = read_wanted_ || (read_next_ > read_first_ && newest + 1 < read_next_);
  if (!waits) return;
  if (now() - read_sent_micros_ > owner_.options_.election_micros) read_wanted_ = true;
  owner_.host_.WakeReads();  // some may have waited for too long
}

}  // namespace cellar
