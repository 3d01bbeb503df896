// Schedules of the simulation written by hand, for faults that random ones do not hit: each is a
// story of a few nodes in which one rule of ReplicaSet decides. With all rules they hold; with the
// one left out they end in a Violation.
#pragma once

#include <string>

#include "tests/replica/simulation.h"

namespace cellar {

inline SimOptions ByHand(const SimFaults& faults, uint32_t nodes, bool members) {
  SimOptions options;
  options.faults = faults;
  options.nodes = nodes;
  options.members = members;
  options.chaos = false;
  options.loss = 0;
  return options;
}

inline SimNode* WaitForLeader(Simulation& sim) {
  if (!sim.WaitFor(5'000'000, [&] { return sim.Leader() != nullptr; })) sim.Fail("nobody leads");
  return sim.Leader();
}

inline void WaitUntilLeads(Simulation& sim, SimNode& node) {
  if (!sim.WaitFor(10'000'000, [&] { return node.leads(); })) sim.Fail("it is not elected");
}

inline void Settle(Simulation& sim, int64_t micros = 100'000) { sim.RunUntil(sim.now() + micros); }

inline void End(Simulation& sim) {
  sim.Heal();
  Settle(sim, 10'000'000);
  if (SimNode* const leader = sim.Leader()) leader->Write(3);
  Settle(sim, 2'000'000);
  sim.CheckEnd();
}

// The others, in order of their slots.
inline std::vector<SimNode*> Others(Simulation& sim, const SimNode& node) {
  std::vector<SimNode*> others;
  for (const auto& each : sim.nodes())
    if (each.get() != &node) others.push_back(each.get());
  return others;
}

// Only `node` may ask for votes.
inline bool IsVoteOfAnother(const SimNode& from, const SimNode& node, const Frame& frame) {
  return frame.kind == FrameKind::kVote && &from != &node;
}

// 0: it is no frame with records.
inline uint64_t LastIndexIn(const Frame& frame) {
  SetMessage message;
  if (frame.kind != FrameKind::kAppend) return 0;
  if (!DecodeSetMessage(frame, &message).ok() || message.records.empty()) return 0;
  return message.records.back().lsn.seq;
}

// Figure 8 of the Raft paper: a record of an old term is on a majority, and is replaced all the
// same.
inline void FigureEight(const SimFaults& faults, uint64_t seed) {
  Simulation sim(ByHand(faults, 5, false));
  sim.Begin(seed);
  SimNode& one = *WaitForLeader(sim);
  const std::vector<SimNode*> others = Others(sim, one);
  SimNode &two = *others[0], &three = *others[1], &four = *others[2], &five = *others[3];
  Settle(sim);
  const auto is_early = [&](const SimNode& node) { return &node == &one || &node == &two; };
  // X is on One and Two; then both are gone.
  sim.passes = [&](const SimNode& from, const SimNode& to, const Frame&) {
    return is_early(from) && is_early(to);
  };
  one.Write(1, 4'000);
  const uint64_t x = one.log->last().seq;
  Settle(sim, 250'000);
  one.Crash(false);
  two.Crash(false);
  // Five leads by the votes of Three and Four, and is gone before it has sent what it wrote.
  sim.passes = [&](const SimNode& from, const SimNode& to, const Frame& frame) {
    return !is_early(from) && !is_early(to) && !IsVoteOfAnother(from, five, frame) &&
           frame.kind != FrameKind::kAppend;
  };
  WaitUntilLeads(sim, five);
  Settle(sim, 250'000);
  five.Crash(false);
  Settle(sim, 2'000);  // what is on the way arrives
  // One leads again: X comes to Three, what One writes itself only to Two.
  one.Start();
  two.Start();
  sim.passes = [&](const SimNode& from, const SimNode& to, const Frame& frame) {
    if (&from == &four || &to == &four || IsVoteOfAnother(from, one, frame)) return false;
    return &to != &three || LastIndexIn(frame) <= x || three.log->last().seq < x;
  };
  WaitUntilLeads(sim, one);
  Settle(sim, 400'000);
  one.Crash(false);
  two.Crash(false);
  // Five comes back, is elected, and has something else in the place of X.
  five.Start();
  sim.passes = [&](const SimNode& from, const SimNode&, const Frame& frame) {
    return !IsVoteOfAnother(from, five, frame);
  };
  WaitUntilLeads(sim, five);
  Settle(sim, 500'000);
  End(sim);
}

inline void SetKind(SimNode& leader, uint64_t id, MemberKind kind) {
  SetMembers members = leader.set->members();
  std::erase_if(members.list, [&](const SetMember& member) { return member.id == id; });
  members.list.push_back({.id = id, .kind = kind, .host = "h", .port = 1});
  if (const Status status = leader.set->ChangeMembers(std::move(members)); !status.ok())
    leader.sim.Fail("members: " + std::string(status.text()));
  leader.Touch();
}

inline void RemoveMember(SimNode& leader, uint64_t id) {
  SetMembers members = leader.set->members();
  std::erase_if(members.list, [&](const SetMember& member) { return member.id == id; });
  if (const Status status = leader.set->ChangeMembers(std::move(members)); !status.ok())
    leader.sim.Fail("members: " + std::string(status.text()));
  leader.Touch();
}

// A leader that changes members before it has committed anything (Ongaro, 2015): of four voters One
// adds a fifth and reaches nobody else; Two, which knows nothing of it, takes One out; then One and
// those of its majority do not meet those of Two's.
inline void ChangeBeforeBarrier(const SimFaults& faults, uint64_t seed) {
  Simulation sim(ByHand(faults, 5, true));
  sim.Begin(seed);
  SimNode& one = *WaitForLeader(sim);
  SimNode &four = sim.node(3), &five = sim.node(4);
  for (SimNode* const node : {&four, &five}) {
    SetKind(one, node->id, MemberKind::kJoining);
    Settle(sim, 500'000);
  }
  SetKind(one, four.id, MemberKind::kVoter);
  Settle(sim, 500'000);
  std::vector<SimNode*> firsts;
  for (SimNode* const node : Others(sim, one))
    if (node != &four && node != &five) firsts.push_back(node);
  SimNode &two = *firsts[0], &three = *firsts[1];
  sim.passes = [&](const SimNode&, const SimNode& to, const Frame& frame) {
    return frame.kind != FrameKind::kAppend || LastIndexIn(frame) == 0 || &to == &five;
  };
  SetKind(one, five.id, MemberKind::kVoter);
  Settle(sim, 30'000);
  one.Crash(false);
  Settle(sim, 2'000);
  // What Two writes comes to Three alone.
  sim.passes = [&](const SimNode& from, const SimNode& to, const Frame& frame) {
    if (&from == &five || &to == &five || IsVoteOfAnother(from, two, frame)) return false;
    return frame.kind != FrameKind::kAppend || LastIndexIn(frame) == 0 || &to == &three;
  };
  WaitUntilLeads(sim, two);
  (void)sim.WaitFor(300'000, [&] { return two.set->may_append(); });
  Settle(sim, 40'000);
  // With the barrier it cannot, since Four does not have it.
  if (two.set->may_append()) {
    RemoveMember(two, one.id);
    Settle(sim, 200'000);
  }
  two.Crash(false);
  three.Crash(false);
  one.Start();
  sim.passes = [&](const SimNode& from, const SimNode&, const Frame& frame) {
    return !IsVoteOfAnother(from, one, frame);
  };
  (void)sim.WaitFor(10'000'000, [&] { return one.leads(); });
  Settle(sim, 500'000);
  if (one.leads()) one.Write(3);
  Settle(sim, 500'000);
  End(sim);
}

// The leader's lease rests on what Three has promised; Three forgets it in a restart and elects
// Two.
inline void VoteAfterStart(const SimFaults& faults, uint64_t seed) {
  // One in five has no lease; this one's story is about it.
  Simulation sim(ByHand(faults, 3, false));
  sim.Begin(seed);
  SimNode& one = *WaitForLeader(sim);
  SimNode &two = *Others(sim, one)[0], &three = *Others(sim, one)[1];
  Settle(sim);
  bool three_is_cut = false;
  sim.passes = [&](const SimNode& from, const SimNode& to, const Frame&) {
    if (&from == &two && &to == &one) return false;
    if (&from == &one && &to == &two) return false;
    const bool between = (&from == &one && &to == &three) || (&from == &three && &to == &one);
    return !between || !three_is_cut;
  };
  // Two has asked in vain, and is about to ask again.
  sim.WaitFor(5'000'000, [&] { return two.set->role() == SetRole::kCandidate; });
  const int64_t due = two.clock.ToGlobal(two.set->timer_micros());
  sim.RunUntil(due - 20'000);
  three.Crash(false);
  three.Start();
  three_is_cut = true;
  sim.RunUntil(due + 5'000);
  sim.WaitFor(60'000, [&] { return two.set->may_append(); });
  two.Write(3);
  Settle(sim, 30'000);
  one.Read();  // what it knows by itself
  Settle(sim, 30'000);
  End(sim);
}

// One has a long log of a low term, Two a short one of a high term. Each refuses the other.
inline void BlockedByTerms(const SimFaults& faults, uint64_t seed) {
  Simulation sim(ByHand(faults, 3, false));
  sim.Begin(seed);
  SimNode& one = *WaitForLeader(sim);
  SimNode& three = *Others(sim, one)[1];
  Settle(sim);
  sim.CutOff(one.slot, true);
  one.Write(5);
  for (int i = 0; i < 3; ++i) {
    // Two votes for Three again and again, and gets nothing of what it writes.
    sim.passes = [&](const SimNode& from, const SimNode&, const Frame& frame) {
      return !IsVoteOfAnother(from, three, frame) && frame.kind != FrameKind::kAppend;
    };
    WaitUntilLeads(sim, three);
    three.Crash(false);
    if (i < 2) three.Start();
  }
  sim.passes = nullptr;
  sim.CutOff(one.slot, false);
  if (!sim.WaitFor(10'000'000, [&] { return sim.Leader() != nullptr; }))
    sim.Fail("two of three elect nobody");
  End(sim);
}

// The leader dies when Four, a voter by its last record, does not have that record yet.
inline void VoteOfStranger(const SimFaults& faults, uint64_t seed) {
  Simulation sim(ByHand(faults, 4, true));
  sim.Begin(seed);
  SimNode& one = *WaitForLeader(sim);
  SimNode& four = sim.node(3);
  SetKind(one, four.id, MemberKind::kJoining);
  Settle(sim, 500'000);
  sim.passes = [&](const SimNode& from, const SimNode& to, const Frame& frame) {
    return &from != &one || &to != &four || frame.kind != FrameKind::kAppend ||
           LastIndexIn(frame) == 0;
  };
  SetKind(one, four.id, MemberKind::kVoter);
  Settle(sim, 100'000);
  one.Crash(false);
  sim.passes = nullptr;
  if (!sim.WaitFor(10'000'000, [&] { return sim.Leader() != nullptr; }))
    sim.Fail("three of four voters elect nobody");
  End(sim);
}

// Two has a snapshot of more than the leader, which has not heard of it, remembers it to have.
inline void CompactedPastTheLeader(const SimFaults& faults, uint64_t seed) {
  Simulation sim(ByHand(faults, 3, false));
  sim.Begin(seed);
  SimNode& one = *WaitForLeader(sim);
  SimNode& two = *Others(sim, one)[0];
  one.Write(5);
  Settle(sim);
  sim.passes = [&](const SimNode& from, const SimNode& to, const Frame& frame) {
    return &from != &two || &to != &one || frame.kind != FrameKind::kAppendResult;
  };
  for (int i = 0; i < 30; ++i) {
    one.Write(3);
    Settle(sim, 5'000);
  }
  Settle(sim);
  two.TakeSnapshot();
  Settle(sim, 900'000);
  sim.passes = nullptr;
  one.Write(3);
  Settle(sim, 3'000'000);
  if (two.up() && two.set->commit() != one.set->commit()) sim.Fail("a follower does not catch up");
  End(sim);
}

// A sole voter loses what it has sent to a standby and not synced, and writes something else there.
inline void SoleVoter(const SimFaults& faults, uint64_t seed) {
  Simulation sim(ByHand(faults, 4, true));
  sim.Begin(seed);
  SimNode& one = *WaitForLeader(sim);
  SetKind(one, sim.node(3).id, MemberKind::kJoining);
  Settle(sim, 500'000);
  for (SimNode* const node : Others(sim, one)) {
    if (node == &sim.node(3)) continue;
    RemoveMember(one, node->id);
    Settle(sim, 500'000);
    node->Crash(false);
  }
  for (int i = 0; i < 30; ++i) {
    one.Write(1);
    Settle(sim, 100 + 20 * i);
    one.Crash(true);
    Settle(sim, 5'000);
    one.Start();
    if (!sim.WaitFor(2'000'000, [&] { return one.set->may_append(); })) sim.Fail("nobody leads");
    one.Write(1);
    Settle(sim, 200'000);
  }
  End(sim);
}

// What was acknowledged is on One and Two; Two loses its disk, and Three asks it for its vote.
inline void WipedNode(const SimFaults& faults, uint64_t seed) {
  Simulation sim(ByHand(faults, 3, false));
  sim.Begin(seed);
  SimNode& one = *WaitForLeader(sim);
  SimNode &two = *Others(sim, one)[0], &three = *Others(sim, one)[1];
  Settle(sim);
  sim.CutOff(three.slot, true);
  one.Write(5);
  Settle(sim);
  one.Crash(false);
  two.Wipe();
  two.Start();
  sim.CutOff(three.slot, false);
  Settle(sim, 5'000'000);
  End(sim);
}

// A change that a step is given behind another record, and that is voided while the other one
// stays.
inline void ChangeBehindRecord(const SimFaults& faults, uint64_t seed) {
  Simulation sim(ByHand(faults, 5, false));
  sim.Begin(seed);
  SimNode& one = *WaitForLeader(sim);
  SimNode& two = *Others(sim, one)[0];
  Settle(sim);
  // The record comes to all but Two, record and change to Two alone, in one frame.
  const uint64_t record = one.log->last().seq + 1;
  bool open = false;
  sim.passes = [&](const SimNode&, const SimNode& to, const Frame& frame) {
    return &to == &two ? open : LastIndexIn(frame) <= record;
  };
  one.Write(1);
  Settle(sim, 20'000);
  SetKind(one, two.id, MemberKind::kStandby);
  Settle(sim, 20'000);
  open = true;
  sim.WaitFor(200'000, [&] { return two.log->last().seq > record; });
  one.Crash(false);
  sim.passes = [&](const SimNode& from, const SimNode&, const Frame& frame) {
    return &from != &two || frame.kind != FrameKind::kVote;
  };
  Settle(sim, 3'000'000);
  End(sim);
}

// One takes both others out at once, while it reaches neither: what it then commits alone they do
// not know, and they elect another one.
inline void ChangesTogether(const SimFaults& faults, uint64_t seed) {
  Simulation sim(ByHand(faults, 3, true));
  sim.Begin(seed);
  SimNode& one = *WaitForLeader(sim);
  Settle(sim);
  sim.CutOff(one.slot, true);
  SetMembers alone = one.set->members();
  std::erase_if(alone.list, [&](const SetMember& member) { return member.id != one.id; });
  (void)one.set->ChangeMembers(std::move(alone));
  one.Touch();
  one.Write(3);
  Settle(sim, 50'000);
  const std::vector<SimNode*> others = Others(sim, one);
  sim.WaitFor(5'000'000, [&] { return others[0]->leads() || others[1]->leads(); });
  Settle(sim, 500'000);
  for (SimNode* const node : others) node->Write(3);
  Settle(sim, 500'000);
  End(sim);
}

// Three's disk is lost for good, and One is told to take Two out, which is there.
inline void ChangeWithoutQuorum(const SimFaults& faults, uint64_t seed) {
  Simulation sim(ByHand(faults, 3, true));
  sim.Begin(seed);
  SimNode& one = *WaitForLeader(sim);
  SimNode &two = *Others(sim, one)[0], &three = *Others(sim, one)[1];
  one.Write(3);
  Settle(sim);
  three.Wipe();
  Settle(sim, 1'000'000);
  SetMembers left = one.set->members();
  std::erase_if(left.list, [&](const SetMember& member) { return member.id == two.id; });
  if (one.set->may_append()) (void)one.set->ChangeMembers(std::move(left));
  one.Touch();
  Settle(sim, 500'000);
  End(sim);
}

// What was acknowledged is on the leader and the witness, and the leader's disk is lost: the
// witness brings the other node up to date and hands over to it.
inline void OnlyTheWitness(const SimFaults& faults, uint64_t seed) {
  SimOptions options = ByHand(faults, 3, false);
  options.witnesses = 1;
  Simulation sim(options);
  sim.Begin(seed);
  SimNode& first = *WaitForLeader(sim);
  SimNode& witness = sim.node(2);
  SimNode& second = &first == &sim.node(0) ? sim.node(1) : sim.node(0);
  Settle(sim);
  sim.CutOff(second.slot, true);
  first.Write(50);
  const uint64_t last = first.log->last().seq;
  if (!sim.WaitFor(5'000'000, [&] { return sim.max_acknowledged == last; }))
    sim.Fail("two of three acknowledge nothing");
  if (second.log->last().seq >= last) sim.Fail("it was not cut off");
  first.Crash(true);
  sim.lost_ids.insert(first.id);
  sim.CutOff(second.slot, false);
  const auto leads = [&] { return sim.Leader() == &second; };
  if (!sim.WaitFor(5'000'000, leads)) sim.Fail("nobody with data leads");
  if (second.committed_index < last) sim.Fail("an acknowledged write is lost");
  second.Write(3);
  Settle(sim, 1'000'000);
  if (witness.log->last() != second.log->last()) sim.Fail("the witness lags behind");
}

// The other node with data is further back than the log of the witness goes: nobody can lead until
// the first one is there again, and the witness must not offer a state that it does not have.
inline void WitnessWithoutState(const SimFaults& faults, uint64_t seed) {
  SimOptions options = ByHand(faults, 3, false);
  options.witnesses = 1;
  options.witness_trailing = 0;
  Simulation sim(options);
  sim.Begin(seed);
  SimNode& first = *WaitForLeader(sim);
  SimNode& witness = sim.node(2);
  SimNode& second = &first == &sim.node(0) ? sim.node(1) : sim.node(0);
  Settle(sim);
  sim.CutOff(second.slot, true);
  first.Write(50);
  const uint64_t last = first.log->last().seq;
  if (!sim.WaitFor(5'000'000, [&] { return sim.max_acknowledged == last; }))
    sim.Fail("two of three acknowledge nothing");
  Settle(sim, 200'000);
  witness.TakeSnapshot();
  if (witness.set->log().first() <= last) sim.Fail("it has kept its log");
  first.Crash(false);
  sim.CutOff(second.slot, false);
  Settle(sim, 8'000'000);
  if (sim.Leader() != nullptr) sim.Fail("who leads has not got all");
  End(sim);
  if (sim.max_acknowledged < last + 3) sim.Fail("nobody takes writes");
}

// A leader whose clock is an hour ahead judges by it, and leads no more before its next heartbeat.
inline void TimeBeforeATransfer(const SimFaults& faults, uint64_t seed) {
  Simulation sim(ByHand(faults, 3, false));
  sim.Begin(seed);
  SimNode& one = *WaitForLeader(sim);
  SimNode& two = *Others(sim, one)[0];
  Settle(sim);
  const int64_t judged = one.set->retention_micros() + 3'600'000'000;
  one.set->NoteRetention(judged);
  if (!one.set->Transfer(two.id).ok()) sim.Fail("it cannot be handed over");
  WaitUntilLeads(sim, two);
  if (two.set->retention_micros() < judged) sim.Fail("what was due is shown again");
  End(sim);
}

// Three nodes; a record of kLongFrameBytes is on its way for two seconds.
inline SimOptions SlowLinks(const SimFaults& faults) {
  SimOptions options = ByHand(faults, 3, false);
  options.link_bytes = kLongFrameBytes / 2000;
  return options;
}

// A record is on its way for seven election timeouts, in which the leader can say nothing else: it
// goes on leading, and the record is acknowledged.
inline void LongRecord(const SimFaults& faults, uint64_t seed) {
  Simulation sim(SlowLinks(faults));
  sim.Begin(seed);
  SimNode& leader = *WaitForLeader(sim);
  Settle(sim, 500'000);
  const uint64_t elections = sim.stats.elections;
  leader.Write(1, kLongFrameBytes);
  leader.Write(3);
  const uint64_t last = leader.log->last().seq;
  if (!sim.WaitFor(5'000'000, [&] { return sim.max_acknowledged >= last; }))
    sim.Fail("the record is not acknowledged");
  if (sim.stats.elections != elections || !leader.leads()) sim.Fail("another one was elected");
  End(sim);
}

// Whoever is cut off in the middle of a record is a leader no more, however much of it has come.
inline void CutInALongRecord(const SimFaults& faults, uint64_t seed) {
  Simulation sim(SlowLinks(faults));
  sim.Begin(seed);
  SimNode& leader = *WaitForLeader(sim);
  Settle(sim, 500'000);
  leader.Write(1, kLongFrameBytes);
  Settle(sim, 1'000'000);
  if (!leader.leads()) sim.Fail("another one was elected");
  sim.CutOff(leader.slot, true);
  const auto another = [&] { return sim.Leader() != nullptr && sim.Leader() != &leader; };
  if (!sim.WaitFor(3'000'000, another)) sim.Fail("nobody else leads");
  End(sim);
}

// The leader hears nothing of a follower to which a long record is on its way, and would send it
// again with every heartbeat: what is written later would wait behind all of these.
inline void LongRecordIsNotRepeated(const SimFaults& faults, uint64_t seed) {
  Simulation sim(SlowLinks(faults));
  sim.Begin(seed);
  SimNode& leader = *WaitForLeader(sim);
  SimNode& follower = *Others(sim, leader)[0];
  Settle(sim, 500'000);
  leader.Write(1, kLongFrameBytes);
  Settle(sim, 200'000);
  sim.Cut(follower.slot, leader.slot, true);
  Settle(sim, 1'000'000);
  sim.Cut(follower.slot, leader.slot, false);
  Settle(sim, 1'500'000);
  leader.Write(1);
  const uint64_t last = leader.log->last().seq;
  if (!sim.WaitFor(500'000, [&] { return follower.log->last().seq >= last; }))
    sim.Fail("what was written later waits behind the record");
  End(sim);
}

}  // namespace cellar
