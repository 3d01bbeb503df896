// See simulation.h.
#include "tests/replica/simulation.h"

#include <cstdio>

namespace cellar {

// --- SimNode: the process

// --- SimNode: what was acknowledged

void SimNode::BeginPast(bool fresh, const Lsn& last) {
  auto opened = MemberFile::Open(disk, "n", boot);
  if (!opened.ok()) sim.Fail("member file: " + std::string(opened.status().text()));
  member_file = *std::move(opened);
  auto tied = TieFile::Open(disk, "n", boot);
  if (!tied.ok()) sim.Fail("tie: " + std::string(tied.status().text()));
  tie_file = *std::move(tied);
  SetPast::Begin begin;
  begin.node = id;
  begin.cluster = 1;
  begin.start = sim.random().Next() | 1;
  begin.boot = boot;
  begin.tie = tie_file->tie();
  begin.memory = member_file->memory();
  begin.mark = {.inode = disk.NumberOf("n/cellar.replica")};
  begin.term = std::max(identity.term, last.epoch);
  begin.last = last;
  begin.epoch_of = [this](uint64_t seq) { return set->log().TermOf(seq); };
  if (sim.options().faults.trusts_copies) return;
  if (fresh) {
    set->past().StartAfresh(std::move(begin));
  } else if (set->past().Start(std::move(begin)) == SetPast::Verdict::kRefuse) {
    return Refuse(set->past().why());
  }
  MemberTie tie = tie_file->tie();
  tie.start = member_file->memory().start;
  tie.next_start = set->past().Tie(false).start;
  tie.closed = false;
  // Two files, in the middle of which the process may die.
  const bool dies = sim.options().copies && !fresh && sim.random().OneIn(50);
  const bool ok = tie_file->Write(tie, Durable::kYes).ok() &&
                  member_file->Write(set->past().Memory(false), Durable::kYes).ok();
  if (!ok) sim.Fail("what was acknowledged cannot be written");
  if (dies) {
    Crash(sim.random().OneIn(2));
    return sim.After(sim.Below(300'000), [this] {
      if (!up()) Start();
    });
  }
  (void)tie_file->Write(set->past().Tie(false), Durable::kYes);
}

void SimNode::Greet(uint32_t to) {
  if (!up() || to == slot) return;
  FrameHead head;
  head.kind = FrameKind::kHello;
  head.term = set->term();
  head.from = id;
  const uint64_t peer = sim.node(to).id;
  sim.Post(*this, peer, EncodeFrame(head, set->past().Hello(peer, set->term(), set->log().last())));
}

void SimNode::OnHello(const Frame& frame, uint32_t source, uint64_t sender) {
  greeted[source] = sender;
  if (set->past().OnHello(frame.from, frame.body)) Greet(source);
  JudgePast();
}

void SimNode::JudgePast() {
  if (!up()) return;
  switch (set->past().Judge(set->members(), clock.MonotonicMicros() < patient_until)) {
    case SetPast::Verdict::kRefuse:
      return Refuse(set->past().why());
    case SetPast::Verdict::kWait:
      return;
    case SetPast::Verdict::kGo:
      if (!set->held()) return;
      if (older) ++sim.stats.copies_accepted;
      older = false;
      if (set->past().is_copy() && !tie_file->Write(set->past().Tie(false), Durable::kYes).ok())
        return;
      set->Release(set->past().is_copy() ? set->past().newest_term() : 0);
  }
}

void SimNode::Refuse(const std::string& why) {
  if (!older && sim.options().damage == 0)
    sim.Fail("node " + std::to_string(id) + " is refused: " + why);
  if (refused) return;
  if (sim.options().trace)
    std::printf("%.6f %llu refused: %s\n", static_cast<double>(sim.now()) / 1e6,
                static_cast<unsigned long long>(id), why.c_str());
  refused = true;
  older = false;
  ++sim.stats.refused;
  // Not inside of its own step.
  const uint64_t process = incarnation;
  sim.lost_ids.insert(id);
  sim.After(1, [this, process] {
    if (process == incarnation) Crash(false);
    // Emptied by its operator.
    if (sim.options().members)
      sim.After(sim.Below(3'000'000), [this] {
        if (!refused) return;
        Wipe();
        Start();
      });
  });
}

void SimNode::Tick(uint64_t process) {
  if (process != incarnation || !up()) return;
  sim.After(100'000, [this, process] { Tick(process); });
  if (paused() || refused) return;
  JudgePast();
  if (!up() || refused) return;
  (void)tie_file->Write(set->past().Tie(false), Durable::kNo);
  (void)member_file->Write(set->past().Memory(false), Durable::kNo);
  for (uint32_t i = 0; i < sim.nodes().size(); ++i) Greet(i);
  Touch();
}

void SimNode::TakeCopy() {
  copy.clear();
  copy_runs = up();
  copy_id = id;
  for (const std::string& path : disk.Paths()) copy[path] = disk.Content(path);
}

// 0: all but the identity, 1: that alone, 2: all. Of what a process was writing, all.
void SimNode::ReturnAs(uint64_t kind) {
  if (copy_runs && kind == 0) kind = 2;
  constexpr std::string_view kIdentity = "n/cellar.replica";
  disk.Reboot();
  const auto is_meant = [kind, kIdentity](const std::string& path) {
    return kind == 2 || (path == kIdentity) == (kind == 1);
  };
  for (const std::string& path : disk.Paths())
    if (is_meant(path)) (void)disk.Remove(path);
  (void)disk.SyncDirectory("n");
  for (const auto& [path, bytes] : copy)
    if (is_meant(path)) disk.SetContent(path, bytes);
  if (sim.options().trace)
    std::printf("%.6f %llu comes back as %llu\n", static_cast<double>(sim.now()) / 1e6,
                static_cast<unsigned long long>(id), static_cast<unsigned long long>(kind));
  older = true;
  ++sim.stats.older;
}

void SimNode::Start() {
  if (refused) return;
  ++incarnation;
  greeted.clear();
  disk.Reboot();
  machine = std::make_unique<SimMachine>();
  log = std::make_unique<SimLog>(&disk);
  EntryLog known;
  Lsn committed;
  log->Recover(machine.get(), &known, &committed, &sim.stats);
  auto file = IdentityFile::Open(disk, "n", {.term = 0, .cluster = 1, .node = id});
  if (!file.ok()) sim.Fail("identity: " + std::string(file.status().text()));
  identity_file = *std::move(file);
  identity = identity_file->identity();
  // The first of all records, as founding writes it; a file of bare state for who joins.
  const bool is_first = !was_started;
  if (!was_started && known.last() == Lsn{} && (!sim.options().members || slot < 3)) {
    SetMembers members;
    members.index = 1;
    const uint32_t voters = sim.options().members ? 3 : sim.options().nodes;
    for (uint32_t i = 0; i < voters; ++i)
      members.list.push_back({.id = (i + 1) * 100 + i + 1,
                              .kind = sim.IsWitness(i) ? MemberKind::kWitness : MemberKind::kVoter,
                              .host = "h",
                              .port = 1});
    const std::string payload = EncodeMembers(members);
    log->Append({.lsn = {1, 1}, .commit_micros = 1, .kind = RecordKind::kMembers}, payload);
    log->Sync();
    log->durable_claim = {1, 1};
    (void)known.Append({1, 1}, RecordKind::kMembers, payload);
    identity.term = 1;
    if (!identity_file->Write(identity).ok()) sim.Fail("identity");
  }
  was_started = true;
  applied_index = committed_index = committed.seq;
  committed_hash = machine->hash;
  hash_at.clear();
  mark = committed;
  mark_micros = clock.MonotonicMicros();
  if (!is_witness()) sim.OnState(*this, committed_index, committed_hash);
  durable = known.appended();
  syncing = false;
  taken.reset();
  unacknowledged.clear();
  reads.clear();
  ReplicaSetOptions options;
  options.node = id;
  options.inflight_entries_max = 64;
  options.install_micros = 4'000'000;
  options.frame_bytes_max = 2'000;
  options.seed = sim.random().Next();
  options.lease = sim.random().Below(5) != 0;
  set = std::make_unique<ReplicaSet>(*this, clock, options);
  set->SetFaults(sim.options().faults.set);
  set->AwaitCommits(sim.options().awaits);
  if (sim.options().faults.one_greeting) set->past().BelieveAtOnce();
  const bool fresh = known.members().list.empty() || is_first;
  const Lsn last = known.last();
  set->Start(identity.term, identity.vote, std::move(known), committed,
             fresh || sim.options().faults.trusts_copies ? ReplicaSet::Begins::kAtOnce
                                                         : ReplicaSet::Begins::kHeld);
  patient_until = clock.MonotonicMicros() + 900'000;
  BeginPast(fresh, last);
  if (!up()) return;
  const uint64_t process = incarnation;
  if (!refused) Tick(process);
  Touch();
}

void SimNode::Crash(bool power_loss) {
  if (!up()) return;
  ++(power_loss ? sim.stats.power_losses : sim.stats.crashes);
  ++incarnation;
  ++timer_generation;
  armed_micros = INT64_MAX;
  set.reset();
  log.reset();
  identity_file.reset();
  member_file.reset();
  tie_file.reset();
  if (power_loss) ++boot;
  if (power_loss)
    disk.PowerLoss(sim.random().Next());
  else
    disk.Kill();
}

void SimNode::Wipe() {
  if (up()) Crash(false);
  refused = older = false;
  copy.clear();
  disk.Reboot();
  for (const std::string& path : disk.Paths()) (void)disk.Remove(path);
  (void)disk.CreateDirectory("n");
  (void)disk.SyncDirectory("n");
  ++sim.stats.wipes;
  if (!sim.options().faults.wiped_node_votes) {
    sim.lost_ids.insert(id);
    id = sim.NewId(slot);
  }
}

void SimNode::Touch() {
  if (!up() || refused) return;
  const uint64_t process = incarnation;
  const uint64_t appended = set->log().appended();
  if (!syncing && appended > durable) {
    syncing = true;
    const int64_t takes = 50 + sim.Below(sim.Chance(0.02) ? 200'000 : 2'000);
    const Lsn claim = log->last();
    sim.After(takes, [this, process, appended, claim] {
      if (process != incarnation || !up()) return;
      const auto done = [this, process, appended, claim] {
        if (process != incarnation || !up()) return;
        syncing = false;
        if (appended > durable) {
          durable = appended;
          log->durable_claim = claim;
          set->OnDurable(durable);
        }
        Touch();
      };
      // The kernel goes on where the process is stopped.
      log->Sync();
      if (paused())
        sim.At(paused_until, done);
      else
        done();
    });
  }
  if (!up()) return;
  if (!set->MembersAgree()) sim.Fail("the core has other members than the log");
  const bool waits = sim.options().faults.witness_stays || clock.MonotonicMicros() < aside_micros;
  if (is_witness() && set->may_append() && !waits) {
    aside_micros = clock.MonotonicMicros() + 20'000;
    ++sim.stats.asides;
    TransferToData();
  }
  MaybeInstallSnapshot();
  while (!unacknowledged.empty() && unacknowledged.front() <= set->commit().seq && set->leads()) {
    ++sim.stats.acknowledged;
    sim.OnAcknowledged(unacknowledged.front());
    unacknowledged.pop_front();
  }
  while (!reads.empty() && reads.front().index <= set->commit().seq &&
         set->MayRelease(reads.front().since)) {
    if (reads.front().index < reads.front().floor && sim.options().damage == 0)
      sim.Fail("a read is stale");
    ++sim.stats.reads;
    reads.pop_front();
  }
  const int64_t due = set->timer_micros();
  if (due != armed_micros && due != INT64_MAX) {
    armed_micros = due;
    const uint64_t generation = ++timer_generation;
    sim.At(clock.ToGlobal(due), [this, generation] { OnTimer(generation); });
  }
}

void SimNode::OnTimer(uint64_t generation) {
  if (!up() || refused || generation != timer_generation) return;
  if (paused()) {
    sim.At(paused_until + 1, [this, generation] { OnTimer(generation); });
    return;
  }
  armed_micros = INT64_MAX;
  set->OnTimer();
  Touch();
}

void SimNode::Receive(const std::string& bytes, uint32_t source, uint64_t sender) {
  if (refused) return;
  FrameReader reader = MakeSetFrameReader();
  reader.Add(bytes);
  Frame frame;
  const auto there = reader.Next(&frame);
  const bool may_fail = sim.options().damage > 0 || sim.options().forged;
  if (may_fail && (!there.ok() || !*there || frame.from % 100 != source + 1)) return;
  if (!there.ok() || !*there) sim.Fail("a frame cannot be read");
  if (frame.kind == FrameKind::kHello) {
    OnHello(frame, source, sender);
    return Touch();
  }
  // A link begins with a greeting.
  const auto known = greeted.find(source);
  if (known == greeted.end() || known->second != sender) return;
  if (const Status status = set->OnFrame(frame); !status.ok()) {
    if (!may_fail) sim.Fail("a frame is refused: " + std::string(status.text()));
    if (sim.options().trace)
      std::printf("%.6f %llu closes the link of slot %u: %s\n",
                  static_cast<double>(sim.now()) / 1e6, static_cast<unsigned long long>(id), source,
                  std::string(status.text()).c_str());
    // The link is closed, and what else is on it lost.
    greeted.erase(source);
    ++sim.stats.links_closed;
  }
  Touch();
}

void SimNode::ReceiveSome(const std::string& bytes) {
  FrameReader reader = MakeSetFrameReader();
  reader.Add(std::string_view(bytes).substr(0, kFrameHeadBytes));
  Frame frame;
  const auto there = reader.Next(&frame);
  const std::optional<FrameHead> head = reader.Arriving();
  if (!there.ok() || *there || !head) sim.Fail("a part of a frame is not taken for one");
  set->OnArriving(*head);
  Touch();
}

// --- SimNode: load and orders

void SimNode::Write(uint64_t count, size_t more_bytes) {
  if (!up() || !set->may_append() || is_witness()) return;
  for (uint64_t i = 0; i < count; ++i) {
    const Lsn lsn{set->term(), log->last().seq + 1};
    const std::string payload = std::to_string(id) + "-" + std::to_string(sim.random().Next()) +
                                std::string(more_bytes, '.');
    const int64_t commit_micros = std::max(clock.WallMicros(), log->last_commit_micros() + 1);
    log->Append({.lsn = lsn, .commit_micros = commit_micros}, payload);
    if (applied_index + 1 != lsn.seq) sim.Fail("a leader writes before it has applied all");
    (void)machine->Apply(payload);
    applied_index = lsn.seq;
    hash_at[lsn.seq] = machine->hash;
    if (sim.options().faults.replies_before_commit)
      sim.OnAcknowledged(lsn.seq);
    else
      unacknowledged.push_back(lsn.seq);
  }
  set->OnAppended(log->last());
  Touch();
}

void SimNode::Read() {
  if (!up() || !set->open() || is_witness()) return;
  reads.push_back({applied_index, sim.max_acknowledged, clock.MonotonicMicros()});
  Touch();
}

void SimNode::TakeSnapshot() {
  if (!up() || set->installing() || taken || applied_index <= log->snapshot().lsn.seq + 20) return;
  const SimLog::Entry* const entry = log->Find(applied_index);
  if (entry == nullptr) return;
  taken = SimSnapshot{.lsn = entry->head.lsn,
                      .hash = machine->hash,
                      .commit_micros = entry->head.commit_micros,
                      .members = EncodeMembers(set->log().MembersAt(applied_index))};
  MaybeInstallSnapshot();
}

// A snapshot counts once what it holds is committed and durable.
void SimNode::MaybeInstallSnapshot() {
  if (!taken || set->installing()) return;
  const bool early = sim.options().faults.early_snapshot;
  if (!early && taken->lsn.seq > committed_index) return;
  const uint64_t lowest = set->log().first();
  // A witness keeps its log: nobody else may have what is in it.
  const uint64_t trailing = is_witness() ? sim.options().witness_trailing : sim.random().Below(30);
  const uint64_t index = taken->lsn.seq;
  uint64_t first = index > trailing ? index - trailing + 1 : 1;
  first = std::clamp(first, lowest, index + 1);
  ++sim.stats.snapshots;
  log->Replace(*taken, first);
  log->durable_claim = log->last();
  const Lsn lsn = taken->lsn;
  taken.reset();
  if (lsn.seq > committed_index) return;  // early_snapshot: found by who starts from it
  durable = set->log().appended();
  set->OnSnapshotTaken(lsn, first);
  if (up()) set->OnDurable(durable);
}

void SimNode::Transfer() {
  if (!up() || !set->may_append()) return;
  ++sim.stats.transfers;
  if (sim.options().witnesses > 0) {
    TransferToData();
  } else {
    (void)set->Transfer(0);
  }
  Touch();
}

void SimNode::TransferToData() {
  uint64_t best = 0;
  for (const SetMember& member : set->members().list) {
    const bool fits = member.id != id && member.kind == MemberKind::kVoter &&
                      clock.MonotonicMicros() - set->heard_micros(member.id) < 300'000;
    if (fits && (best == 0 || set->MatchOf(member.id) > set->MatchOf(best))) best = member.id;
  }
  if (best != 0) (void)set->Transfer(best);
}

bool SimNode::ChangeKind(SetMembers* members, size_t voters) {
  SetMember& member = members->list[sim.random().Below(members->list.size())];
  if (member.id == id || sim.lost_ids.contains(member.id)) return false;
  if (member.kind == MemberKind::kWitness) {
    ++member.port;
    return true;
  }
  if (member.kind == MemberKind::kStandby) {
    const bool is_near = set->MatchOf(member.id).seq + 30 >= set->commit().seq;
    member.kind = is_near ? MemberKind::kVoter : MemberKind::kJoining;
  } else if (member.votes() && voters > 3) {
    member.kind = MemberKind::kStandby;
    members->feature_level = kStandbyLevel;
  } else {
    ++member.port;
  }
  return true;
}

void SimNode::ChangeMembers() {
  if (!up() || !set->may_append() || !set->members_committed()) return;
  SetMembers members = set->members();
  const auto voters =
      static_cast<size_t>(std::count_if(members.list.begin(), members.list.end(),
                                        [](const SetMember& member) { return member.votes(); }));
  std::vector<uint64_t> absent;
  for (const auto& node : sim.nodes())
    if (members.Find(node->id) == nullptr) absent.push_back(node->id);
  const auto standby =
      std::find_if(members.list.begin(), members.list.end(),
                   [](const SetMember& member) { return member.kind == MemberKind::kJoining; });
  const auto drop = [&](uint64_t gone) {
    std::erase_if(members.list, [&](const SetMember& member) { return member.id == gone; });
  };
  const auto lost = std::find_if(members.list.begin(), members.list.end(),
                                 [&](const SetMember& m) { return sim.lost_ids.contains(m.id); });
  if (sim.Chance(0.25) && ChangeKind(&members, voters)) {
    // Done.
  } else if (standby != members.list.end()) {
    const bool is_near = set->MatchOf(standby->id).seq + 30 >= set->commit().seq;
    if (is_near && !sim.lost_ids.contains(standby->id))
      standby->kind = sim.IsWitness(Simulation::SlotOf(standby->id)) ? MemberKind::kWitness
                                                                     : MemberKind::kVoter;
    else if (sim.lost_ids.contains(standby->id) || sim.Chance(0.05))
      drop(standby->id);
    else
      return;
  } else if (lost != members.list.end() && (!lost->votes() || voters > 3 || absent.empty())) {
    drop(lost->id);
  } else if (!absent.empty() && (lost != members.list.end() || sim.Chance(0.6))) {
    members.list.push_back({.id = absent[sim.random().Below(absent.size())],
                            .kind = MemberKind::kJoining,
                            .host = "h",
                            .port = 1});
  } else if (voters > 3) {
    const uint64_t gone = members.list[sim.random().Below(members.list.size())].id;
    if (gone == id) return;
    drop(gone);
  } else {
    return;
  }
  if (!members.CountVoters().fit()) return;
  for (size_t i = members.list.size(); i > 1; --i)  // in any order
    std::swap(members.list[i - 1], members.list[sim.random().Below(i)]);
  if (set->ChangeMembers(std::move(members)).ok()) ++sim.stats.changes;
  Touch();
}

// --- Simulation

void Simulation::Fail(const std::string& what) {
  char head[96];
  std::snprintf(head, sizeof(head), "seed %llu, %.6f s: ", static_cast<unsigned long long>(seed_),
                static_cast<double>(now_) / 1e6);
  throw Violation{head + what + "\n" + Describe()};
}

void Simulation::OnLeader(SimNode& node) {
  if (options_.damage > 0) return;
  const auto [it, fresh] = leader_of_term_.emplace(node.set->term(), node.id);
  if (fresh) ++stats.elections;
  if (it->second != node.id) Fail("two leaders in one term");
}

void Simulation::OnCommit(SimNode& node, uint64_t index, const SimLog::Entry& entry) {
  max_committed_ = std::max(max_committed_, index);
  if (options_.damage > 0) return;
  const Committed committed{entry.head.lsn.epoch,
                            Hash64(entry.payload, static_cast<uint64_t>(entry.head.kind))};
  const auto [it, fresh] = committed_.emplace(index, committed);
  if (fresh) ++stats.committed;
  if (it->second.term != committed.term || it->second.hash != committed.hash)
    Fail("node " + std::to_string(node.id) + " has committed another record " +
         std::to_string(index));
}

void Simulation::OnState(SimNode& node, uint64_t index, uint64_t hash) {
  if (options_.damage > 0) return;
  const auto [it, fresh] = hash_at_.emplace(index, hash);
  if (it->second != hash)
    Fail("node " + std::to_string(node.id) + " has another state at " + std::to_string(index));
}

void Simulation::Post(SimNode& from, uint64_t to, std::string frame) {
  ++stats.frames;
  const uint32_t source = from.slot;
  const uint32_t slot = SlotOf(to);
  if (slot >= nodes_.size() || nodes_[slot]->id != to) return;  // that disk is gone
  const auto kind = static_cast<FrameKind>(frame[kFrameHashEnd]);
  if (!calm_ && kind != FrameKind::kHello && Chance(options_.loss)) return;
  if (!healed_ && options_.damage > 0 && Chance(options_.damage)) Damage(&frame);
  constexpr int64_t kWindowMicros{5'000'000};
  if (busy_until_[source][slot] - now_ > kWindowMicros) return;
  int64_t arrival = now_ + 30 + Below(!calm_ && Chance(0.01) ? 400'000 : 500);
  arrival = std::max(arrival, last_arrival_[source][slot] + 1);
  last_arrival_[source][slot] = arrival;
  const uint64_t process = nodes_[slot]->incarnation;
  auto bytes = std::make_shared<std::string>(std::move(frame));
  const bool is_long = !healed_ && options_.link_bytes > 0 && bytes->size() >= kLongFrameBytes;
  if (is_long) last_arrival_[source][slot] = arrival = Carry(source, slot, bytes);
  const uint64_t sender = from.incarnation;
  const auto deliver = std::make_shared<std::function<void()>>();
  *deliver = [this, source, slot, process, is_long, sender, bytes, weak = std::weak_ptr(deliver)] {
    SimNode& node = *nodes_[slot];
    if (!node.up() || node.incarnation != process || cut_[source][slot]) return;
    if (is_long && nodes_[source]->incarnation != sender) return;
    if (passes) {
      FrameReader reader = MakeSetFrameReader();
      reader.Add(*bytes);
      Frame opened;
      if (!reader.Next(&opened).ok() || !passes(*nodes_[source], node, opened)) return;
    }
    if (node.paused()) {
      // It waits in the socket, behind what came before.
      int64_t& last = last_arrival_[source][slot];
      const int64_t at = std::max(node.paused_until + 1, now_);
      last = std::max(last, at);
      const auto again = weak.lock();
      At(at, [again] { (*again)(); });
      return;
    }
    node.Receive(*bytes, source, sender);
  };
  At(arrival, [deliver] { (*deliver)(); });
}

int64_t Simulation::Carry(uint32_t source, uint32_t slot,
                          const std::shared_ptr<std::string>& bytes) {
  constexpr int64_t kSignMicros{30'000};
  ++stats.long_frames;
  const int64_t begin = std::max(now_, last_arrival_[source][slot]);
  const int64_t arrival = begin + static_cast<int64_t>(bytes->size() * 1000 / options_.link_bytes);
  const uint64_t process = nodes_[slot]->incarnation;
  const uint64_t sender = nodes_[source]->incarnation;
  for (int64_t at = begin + kSignMicros; at < arrival; at += kSignMicros) {
    At(at, [this, source, slot, process, sender, bytes] {
      SimNode& node = *nodes_[slot];
      const bool stands = node.up() && node.incarnation == process && !cut_[source][slot];
      const SimNode& from = *nodes_[source];
      // Of a paused sender what is in the socket still comes.
      if (stands && !node.paused() && from.up() && from.incarnation == sender)
        node.ReceiveSome(*bytes);
    });
  }
  busy_until_[source][slot] = arrival;
  return arrival;
}

SimNode* Simulation::Leader() {
  for (const auto& node : nodes_)
    if (node->up() && node->set->open() && !node->is_witness()) return node.get();
  return nullptr;
}

void Simulation::Load() {
  for (const auto& node : nodes_) {
    if (!node->leads() || node->paused()) continue;
    if (options_.link_bytes > 0 && random_.OneIn(100))
      node->Write(1, kLongFrameBytes + random_.Below(options_.link_bytes * 1500));
    else
      node->Write(1 + random_.Below(5));
    if (random_.OneIn(2)) node->Read();
  }
  if (now_ < end_ + 1'000'000) After(500 + Below(16'000), [this] { Load(); });
}

void Simulation::CrashOne() {
  SimNode& node = *nodes_[random_.Below(nodes_.size())];
  if (!node.up()) return;
  if (options_.copies && Chance(0.2)) node.TakeCopy();  // of one that runs
  const bool may_return = options_.copies && !AnyOdd();
  node.Crash(random_.OneIn(2));
  if (options_.copies && may_return) MaybeReturn(node);
  After(Below(Chance(0.3) ? 3'000'000 : 400'000), [&node] {
    if (!node.up()) node.Start();
  });
}

// Somebody is emptied, or has come back as a copy: one at a time, and where members change another
// one only when the leader knows of none that is lost.
bool Simulation::AnyOdd() const {
  if (options_.members) {
    const auto leads = std::find_if(nodes_.begin(), nodes_.end(), [](const auto& node) {
      return node->up() && node->set->open() && node->set->members_committed();
    });
    if (leads == nodes_.end()) return true;
    const SetMembers::Voters voters = (*leads)->set->members().CountVoters();
    if (voters.with_data + voters.witnesses < 3) return true;
  }
  return std::any_of(nodes_.begin(), nodes_.end(), [this](const auto& node) {
    if (node->refused || node->older || lost_ids.contains(node->id)) return true;
    if (!node->up()) return false;
    const auto& list = node->set->members().list;
    return std::any_of(list.begin(), list.end(),
                       [this](const SetMember& member) { return lost_ids.contains(member.id); });
  });
}

void Simulation::MaybeReturn(SimNode& node) {
  if (!node.copy.empty() && node.copy_id == node.id && Chance(0.5)) {
    node.ReturnAs(random_.Below(3));
  } else if (node.copy.empty() || Chance(0.3)) {
    node.TakeCopy();
  }
}

// A byte or a number of it is another one, and the checksum is made anew.
void Simulation::Damage(std::string* frame) {
  ++stats.damaged;
  const size_t at = kFrameHashEnd + random_.Below(frame->size() - kFrameHashEnd);
  if (random_.OneIn(2)) {
    (*frame)[at] = static_cast<char>(random_.Below(256));
  } else if (at + 8 <= frame->size()) {
    const uint64_t value = random_.OneIn(2) ? random_.Next() : random_.Below(10'000);
    EncodeFixed64(frame->data() + at, value >> random_.Below(60));
  }
  SealFrame(frame);
}

void Simulation::CutSome() {
  ++stats.cuts;
  const auto n = static_cast<uint32_t>(nodes_.size());
  auto a = static_cast<uint32_t>(random_.Below(n));
  const bool both = Chance(0.6);
  if (Chance(0.5)) {
    for (const auto& node : nodes_)
      if (node->leads()) a = node->slot;
  }
  if (Chance(0.25)) {  // one link, one way
    const auto b = static_cast<uint32_t>(random_.Below(n));
    if (a == b) return;
    cut_[a][b] = true;
    After(Below(3'000'000), [this, a, b] { cut_[a][b] = false; });
    return;
  }
  const bool out = Chance(0.5);  // of one way: it is heard by nobody, or hears nobody
  for (uint32_t b = 0; b < n; ++b) {
    if (b == a) continue;
    if (both || out) cut_[a][b] = true;
    if (both || !out) cut_[b][a] = true;
  }
  After(Below(2'000'000), [this, a, n] {
    for (uint32_t b = 0; b < n; ++b) cut_[a][b] = cut_[b][a] = false;
  });
}

void Simulation::PauseSome() {
  for (const auto& each : nodes_) {
    if (!each->up() || !(each->leads() || Chance(0.1))) continue;
    ++stats.pauses;
    SimNode& node = *each;
    node.paused_until = now_ + 100'000 + Below(1'500'000);
    const uint64_t process = node.incarnation;
    At(node.paused_until, [&node, process] {
      for (int i = 0; i < 3 && node.up() && node.incarnation == process; ++i) node.Read();
    });
  }
}

// A disk is lost only while all others hold: who loses two of three has lost data.
void Simulation::MaybeWipe() {
  const SimNode* const leader = Leader();
  if (leader == nullptr || !leader->set->members_committed()) return;
  size_t voters = 0;
  for (const SetMember& member : leader->set->members().list) {
    if (lost_ids.contains(member.id)) return;
    voters += member.votes() ? 1 : 0;
  }
  if (options_.copies && AnyOdd()) return;
  for (const auto& node : nodes_) {
    if (!node->up()) return;
    for (const SetMember& member : node->set->members().list)
      if (lost_ids.contains(member.id)) return;
  }
  if (voters < 3) return;
  // Nor while one with data is so far back that the log of a witness does not reach it.
  for (const auto& witness : nodes_) {
    if (!witness->is_witness()) continue;
    for (const auto& node : nodes_) {
      if (!node->is_witness() && node->committed_index + 1 < witness->set->log().first()) return;
    }
  }
  SimNode& node = *nodes_[random_.Below(nodes_.size())];
  node.Wipe();
  After(Below(400'000), [&node] {
    if (!node.up()) node.Start();
  });
}

void Simulation::ChaosMembers() {
  const bool any_older =
      std::any_of(nodes_.begin(), nodes_.end(), [](const auto& node) { return node->older; });
  for (const auto& node : nodes_)
    if (node->leads() && !node->paused() && !any_older) node->ChangeMembers();
  if (now_ < end_ + 20'000'000) After(100'000 + Below(600'000), [this] { ChaosMembers(); });
}

void Simulation::Chaos() {
  const uint64_t kind = random_.Below(10);
  if (kind < 3) {
    CrashOne();
  } else if (kind < 7) {
    CutSome();
  } else if (kind < 8) {
    for (const auto& node : nodes_) {
      if (node->leads() && !node->paused()) node->Transfer();
    }
  } else if (kind < 9 && Chance(0.2)) {
    const bool power_loss = random_.OneIn(2);
    for (const auto& node : nodes_) node->Crash(power_loss);
    for (const auto& node : nodes_) {
      SimNode* const down = node.get();
      After(Below(500'000), [down] {
        if (!down->up()) down->Start();
      });
    }
  } else if (kind == 9 && Chance(0.6)) {
    PauseSome();
  } else {
    for (const auto& node : nodes_)
      if (!node->paused() && Chance(0.6)) node->TakeSnapshot();
  }
  if (options_.members && Chance(0.03)) MaybeWipe();
  if (now_ < end_) After(50'000 + Below(700'000), [this] { Chaos(); });
}

void Simulation::Begin(uint64_t seed) {
  seed_ = seed;
  random_ = Random(seed);
  now_ = 1'000'000;
  sequence_ = 0;
  id_next_ = 0;
  calm_ = !options_.chaos;
  healed_ = false;
  events_ = {};
  nodes_.clear();
  committed_.clear();
  hash_at_.clear();
  leader_of_term_.clear();
  max_acknowledged = max_committed_ = 0;
  images.clear();
  lost_ids.clear();
  passes = nullptr;
  const uint32_t n = options_.nodes;
  cut_.assign(n, std::vector<bool>(n, false));
  last_arrival_.assign(n, std::vector<int64_t>(n, 0));
  busy_until_ = last_arrival_;
  for (uint32_t i = 0; i < n; ++i) {
    const double rate = 0.99 + 0.02 * random_.Fraction();
    auto node = std::make_unique<SimNode>(*this, i, rate, Below(2'000'000'000'000'000));
    node->clock = SimClock(&now_, rate, Below(2'000'000'000'000'000));
    nodes_.push_back(std::move(node));
  }
  for (const auto& node : nodes_) node->Start();
}

void Simulation::RunUntil(int64_t micros) {
  while (!events_.empty() && events_.top().at <= micros) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.at;
    event.run();
  }
  now_ = std::max(now_, micros);
}

bool Simulation::WaitFor(int64_t micros, const std::function<bool()>& holds) {
  const int64_t end = now_ + micros;
  while (!holds()) {
    if (now_ >= end) return false;
    RunUntil(now_ + 200);
  }
  return true;
}

void Simulation::Heal() {
  passes = nullptr;
  healed_ = calm_ = true;
  for (auto& row : cut_) std::fill(row.begin(), row.end(), false);
  for (const auto& node : nodes_) {
    if (node->refused && options_.members) node->Wipe();
    if (!node->up()) node->Start();
  }
}

// What a violation leaves to look at.
std::string Simulation::Describe() const {
  std::string text;
  for (const auto& node : nodes_) {
    text += "  node " + std::to_string(node->id);
    if (!node->up()) {
      text += " is down\n";
      continue;
    }
    const ReplicaSet& set = *node->set;
    text += set.leads() ? (set.open() ? " leads" : " opens") : " follows";
    text += ", term " + std::to_string(set.term()) + ", leader " + std::to_string(set.leader()) +
            ", commit " + std::to_string(set.commit().seq) + ", last " +
            FormatLsn(set.log().last()) + ", snapshot " + FormatLsn(set.log().snapshot()) +
            (set.installing() ? ", installing" : "") + (set.stopped() ? ", stopped" : "") +
            ", members";
    for (const SetMember& member : set.members().list)
      text += " " + std::to_string(member.id) +
              (member.kind == MemberKind::kWitness   ? "w"
               : member.votes()                      ? "v"
               : member.kind == MemberKind::kStandby ? "s"
                                                     : "j");
    text += set.members_committed() ? "\n" : " (not committed)\n";
  }
  return text;
}

void Simulation::CheckEnd() {
  uint64_t commit = 0;
  for (const auto& node : nodes_)
    if (node->up()) commit = std::max(commit, node->set->commit().seq);
  if (max_acknowledged > commit && options_.damage == 0) Fail("an acknowledged write is lost");
  const SimNode* leader = nullptr;
  for (const auto& node : nodes_)
    if (node->up() && node->set->open() && !node->is_witness() && node->set->commit().seq == commit)
      leader = node.get();
  if (leader == nullptr) Fail("nobody leads at the end");
  for (const SetMember& member : leader->set->members().list) {
    for (const auto& node : nodes_) {
      if (node->id == member.id && node->up() && node->set->commit().seq != commit)
        Fail("node " + std::to_string(node->id) + " does not catch up");
    }
  }
}

// While frames are damaged: all that is promised is that the set goes on.
void Simulation::CheckProgress(uint64_t before) {
  constexpr int64_t kProgressMicros{20'000'000};
  const uint64_t commit = max_committed_;
  // With one node less any cut is one too many.
  const bool all =
      std::none_of(nodes_.begin(), nodes_.end(), [](const auto& node) { return node->refused; });
  if (commit <= before && all) Fail("nothing has been committed for a while");
  if (now_ + kProgressMicros < end_)
    After(kProgressMicros, [this, commit] { CheckProgress(commit); });
}

void Simulation::Run(uint64_t seed) {
  Begin(seed);
  end_ = now_ + options_.micros;
  // Where members come and go, all of the voters that are left may be needed: see CheckProgress.
  if (options_.damage > 0 && !options_.members) After(5'000'000, [this] { CheckProgress(0); });
  After(500'000, [this] { Load(); });
  if (options_.chaos) After(900'000, [this] { Chaos(); });
  if (options_.members) After(700'000, [this] { ChaosMembers(); });
  RunUntil(end_ + 4'000'000);
  Heal();
  RunUntil(end_ + 34'000'000);
  CheckEnd();
  // Nobody outlives the schedule.
  events_ = {};
  nodes_.clear();
}

}  // namespace cellar
