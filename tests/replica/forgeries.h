// Schedules of the simulation written by hand in which a frame comes that nobody has sent, with a
// right checksum (frame_sense.h): what it brings about must not outlast it.
#pragma once

#include <string>
#include <vector>

#include "tests/replica/schedules.h"

namespace cellar {

inline SimOptions Forged(const SimFaults& faults) {
  SimOptions options = ByHand(faults, 3, false);
  options.forged = true;
  return options;
}

// A frame of `kind` in the name of `from`, as it would be by its term.
inline SetMessage Forgery(const SimNode& from, int kind) {
  SetMessage message;
  message.raft.kind = kind;
  message.raft.peer = from.id;
  message.raft.term = from.set->term();
  message.raft.version = kind == kRaftAppendResult ? 2 : 0;
  return message;
}

// As a heartbeat of a leader behind what `to` has committed.
inline SetMessage ForgedBeat(const SimNode& from, const SimNode& to) {
  SetMessage message = Forgery(from, kRaftAppend);
  message.raft.previous_index = to.set->commit().seq;
  message.raft.previous_term = to.set->commit().epoch;
  message.raft.commit = to.set->commit().seq;
  return message;
}

inline void Forge(SimNode& from, SimNode& to, const SetMessage& message, int64_t echo_micros = 0) {
  FrameHead head;
  head.kind = FrameKindOf(message.raft.kind);
  head.term = static_cast<uint32_t>(message.raft.term);
  head.from = from.id;
  head.sent_micros = from.clock.MonotonicMicros();
  head.echo_micros = echo_micros;
  to.Receive(EncodeFrame(head, EncodeSetMessage(message)), from.slot, from.incarnation);
}

// Until the links that a forgery has closed stand again.
inline void Mend(Simulation& sim) { Settle(sim, 500'000); }

// A follower acknowledges what its leader has not written yet, and then another record than the
// leader's. If that counted, what only the leader has would be acknowledged.
inline void ForgedAcknowledgement(const SimFaults& faults, uint64_t seed) {
  for (const bool of_another : {false, true}) {
    Simulation sim(Forged(faults));
    sim.Begin(seed);
    SimNode& one = *WaitForLeader(sim);
    const std::vector<SimNode*> others = Others(sim, one);
    Settle(sim);
    for (const SimNode* node : others) sim.Cut(one.slot, node->slot, true);
    const uint64_t before = sim.max_acknowledged;
    if (of_another) one.Write(5);
    const uint64_t last = one.log->last().seq;
    SetMessage ack = Forgery(one, kRaftAppendResult);
    ack.raft.peer = others[0]->id;
    ack.raft.last_index = last + (of_another ? 0 : 3);
    ack.raft.last_term = one.set->term() + (of_another ? 0 : 1);
    Forge(*others[0], one, ack);
    if (!of_another) one.Write(3);
    Settle(sim, 50'000);
    if (sim.max_acknowledged != before) sim.Fail("what one node has is acknowledged");
    End(sim);
  }
}

// A follower has acknowledged what it was sent, and does not have it: its leader gives up its term,
// or never sends it that.
inline void ForgedMatch(const SimFaults& faults, uint64_t seed) {
  Simulation sim(Forged(faults));
  sim.Begin(seed);
  SimNode& one = *WaitForLeader(sim);
  SimNode& two = *Others(sim, one)[0];
  Settle(sim);
  sim.Cut(one.slot, two.slot, true);
  one.Write(5);
  Settle(sim, 50'000);
  SetMessage ack = Forgery(one, kRaftAppendResult);
  ack.raft.peer = two.id;
  ack.raft.last_index = one.log->last().seq;
  Forge(two, one, ack);
  sim.Cut(one.slot, two.slot, false);
  Settle(sim, 5'000'000);
  if (two.set->commit().seq < one.log->last().seq) sim.Fail("a follower is sent nothing");
  End(sim);
}

// One heartbeat of a term that is far ahead.
inline void ForgedTerm(const SimFaults& faults, uint64_t seed) {
  Simulation sim(Forged(faults));
  sim.Begin(seed);
  SimNode& one = *WaitForLeader(sim);
  SimNode& two = *Others(sim, one)[0];
  Settle(sim);
  const uint32_t term = one.set->term();
  SetMessage beat = ForgedBeat(one, two);
  beat.raft.term += 1'000;
  Forge(one, two, beat);
  Mend(sim);
  if (two.set->term() != term || !one.leads()) sim.Fail("a term is believed at once");
  End(sim);
}

// Two, which has just voted for Three, hears of One as the leader of that term.
inline void ForgedLeader(const SimFaults& faults, uint64_t seed) {
  Simulation sim(Forged(faults));
  sim.Begin(seed);
  SimNode& one = *WaitForLeader(sim);
  SimNode &two = *Others(sim, one)[0], &three = *Others(sim, one)[1];
  Settle(sim, 500'000);
  const uint32_t term = two.set->term();
  (void)one.set->Transfer(three.id);
  one.Touch();
  if (!sim.WaitFor(500'000, [&] { return two.set->term() > term; })) sim.Fail("no election");
  SetMessage beat = ForgedBeat(two, two);
  beat.raft.peer = one.id;
  for (int i = 0; i < 2; ++i) Forge(one, two, beat);
  Settle(sim, 1'000'000);
  three.Write(3);
  Settle(sim, 3'000'000);
  if (!three.leads() || two.set->commit() != three.set->commit())
    sim.Fail("the leader of a term is not followed");
  End(sim);
}

// One heartbeat behind a committed record that is not what is committed.
inline void ForgedContradiction(const SimFaults& faults, uint64_t seed) {
  Simulation sim(Forged(faults));
  sim.Begin(seed);
  SimNode& one = *WaitForLeader(sim);
  SimNode& two = *Others(sim, one)[0];
  one.Write(5);
  Settle(sim);
  SetMessage beat = ForgedBeat(one, two);
  beat.raft.previous_index -= 1;
  beat.raft.previous_term += 1;
  beat.raft.term += 1;
  for (int i = 0; i < 2; ++i) Forge(one, two, beat);
  beat = ForgedBeat(one, two);
  beat.raft.previous_index = 1;
  beat.raft.previous_term = one.set->term();
  if (two.set->log().TermOf(1) != one.set->term())
    for (int i = 0; i < 2; ++i) Forge(one, two, beat);
  Mend(sim);
  End(sim);
}

// One offer of a snapshot, which no file is behind.
inline void ForgedOffer(const SimFaults& faults, uint64_t seed) {
  Simulation sim(Forged(faults));
  sim.Begin(seed);
  SimNode& one = *WaitForLeader(sim);
  SimNode& two = *Others(sim, one)[0];
  Settle(sim);
  SetMessage offer = Forgery(one, kRaftInstall);
  offer.offer.lsn = {one.set->term(), one.log->last().seq + 100};
  offer.offer.members = one.set->members();
  offer.offer.number = 77;
  Forge(one, two, offer);
  if (two.set->installing()) sim.Fail("what is offered once is fetched");
  End(sim);
}

// One heartbeat that has judged what is due up to a time far ahead.
inline void ForgedTime(const SimFaults& faults, uint64_t seed) {
  Simulation sim(Forged(faults));
  sim.Begin(seed);
  SimNode& one = *WaitForLeader(sim);
  SimNode& two = *Others(sim, one)[0];
  Settle(sim);
  SetMessage beat = ForgedBeat(one, two);
  beat.retention_micros = INT64_MAX / 2;
  Forge(one, two, beat);
  Mend(sim);
  if (two.set->retention_micros() >= beat.retention_micros) sim.Fail("all is due");
  End(sim);
}

// An acknowledgement that echoes a time which has not come yet: no lease is as long as that.
inline void ForgedEcho(const SimFaults& faults, uint64_t seed) {
  Simulation sim(Forged(faults));
  sim.Begin(seed);
  SimNode& one = *WaitForLeader(sim);
  SimNode& two = *Others(sim, one)[0];
  Settle(sim);
  SetMessage ack = Forgery(one, kRaftAppendResult);
  ack.raft.peer = two.id;
  const int64_t now = one.clock.MonotonicMicros();
  Forge(two, one, ack, now + 60'000'000);
  if (one.set->heard_micros(two.id) > now) sim.Fail("a time that has not come is believed");
  End(sim);
}

// A greeting of Two names a start that Two has not made, and what it has never acknowledged. Two
// starts again, and is told of nothing but what was so.
inline void ForgedGreeting(const SimFaults& faults, uint64_t seed) {
  Simulation sim(Forged(faults));
  sim.Begin(seed);
  SimNode& one = *WaitForLeader(sim);
  SimNode& two = *Others(sim, one)[0];
  Settle(sim, 1'000'000);
  std::string text = two.set->past().Hello(one.id, two.set->term(), two.set->log().last());
  constexpr size_t kFlags{1}, kStart{2}, kAcknowledged{18};
  text[kFlags] = static_cast<char>(text[kFlags] | 4);  // it is all
  text[kStart] ^= 1;
  EncodeFixed64(&text[kAcknowledged + 4], 1'000'000);
  EncodeFixed32(&text[kAcknowledged], two.set->term());
  FrameHead head;
  head.kind = FrameKind::kHello;
  head.term = two.set->term();
  head.from = two.id;
  one.Receive(EncodeFrame(head, text), two.slot, two.incarnation);
  Settle(sim, 1'000'000);
  two.Crash(false);
  two.Start();
  Settle(sim, 5'000'000);
  if (!two.up() || two.set->held()) sim.Fail("it is kept out");
  End(sim);
}

}  // namespace cellar
