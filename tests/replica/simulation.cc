// See simulation.h.
#include "tests/replica/simulation.h"

#include <cstdio>

namespace cellar {

// --- SimLog

void SimLog::WriteFile(const std::string& path, std::string_view bytes) {
  auto file = disk_->Create(path);
  CheckOk(file.status());
  CheckOk((*file)->WriteAt(0, bytes));
  CheckOk((*file)->Sync());
}

void SimLog::AppendBytes(const RecordHead& head, std::string_view payload) {
  std::string bytes(kRecordHeaderBytes + payload.size(), '\0');
  RecordHead claiming = head;
  claiming.claim = std::min(durable_claim, head.lsn);
  LayOutRecord(bytes.data(), chain_, claiming, payload);
  chain_ = SealRecord(bytes.data());
  CheckOk(file_->WriteAt(end_, bytes));
  end_ += bytes.size();
  last_ = head.lsn;
}

void SimLog::NewLogFile(uint64_t number, Lsn after, int64_t after_micros) {
  auto file = disk_->Create("n/log-" + std::to_string(number));
  CheckOk(file.status());
  file_ = *std::move(file);
  CheckOk(file_->WriteAt(
      0, EncodeSegmentHeader({.number = number, .after = after, .after_micros = after_micros})));
  end_ = kSegmentHeaderBytes;
  chain_ = kChainStart;
  last_ = after;
}

void SimLog::Append(const RecordHead& head, std::string_view payload) {
  AppendBytes(head, payload);
  entries_.erase(entries_.lower_bound(head.lsn.seq), entries_.end());
  entries_[head.lsn.seq] = {head, std::string(payload)};
}

void SimLog::MarkCommit(Lsn lsn) {
  if (last_ == Lsn{}) return;
  AppendBytes({.lsn = last_, .commit_micros = last_commit_micros(), .kind = RecordKind::kCommit},
              EncodeCommitMark({.lsn = lsn, .retention_micros = 0}));
}

void SimLog::Replace(const SimSnapshot& snapshot, uint64_t first) {
  const uint64_t old = number_;
  number_ += 1;
  std::string bytes;
  PutLsn(&bytes, snapshot.lsn);
  PutFixed64(&bytes, snapshot.hash);
  PutFixed64(&bytes, static_cast<uint64_t>(snapshot.commit_micros));
  PutLengthPrefixed(&bytes, snapshot.members);
  WriteFile("n/snap-" + std::to_string(number_), bytes);
  entries_.erase(entries_.begin(), entries_.lower_bound(first));
  // The record before the first that stays; its time is not looked at.
  const Entry* const front = entries_.empty() ? nullptr : &entries_.begin()->second;
  Lsn after = snapshot.lsn;
  if (front != nullptr && front->head.lsn.seq <= snapshot.lsn.seq)
    after = {front->head.lsn.epoch, front->head.lsn.seq - 1};
  if (after.seq == 0) after = {};
  NewLogFile(number_, after, front == nullptr ? snapshot.commit_micros : 0);
  for (const auto& [index, entry] : entries_) AppendBytes(entry.head, entry.payload);
  CheckOk(file_->Sync());
  WriteFile("n/current.new", std::to_string(number_));
  CheckOk(disk_->SyncDirectory("n"));
  CheckOk(disk_->Rename("n/current.new", "n/current"));
  CheckOk(disk_->SyncDirectory("n"));
  snapshot_ = snapshot;
  if (old != 0) {
    (void)disk_->Remove("n/log-" + std::to_string(old));
    (void)disk_->Remove("n/snap-" + std::to_string(old));
  }
}

void SimLog::Recover(SimMachine* machine, EntryLog* known, Lsn* committed, SimStats* stats) {
  (void)disk_->CreateDirectory("n");
  auto named = ReadWholeFile(*disk_, "n/current");
  if (!named.ok()) {
    for (const std::string& path : disk_->Paths()) {
      if (path != "n/cellar.replica") (void)disk_->Remove(path);
    }
    Replace({}, 1);
    return;
  }
  number_ = std::stoull(*named);
  const std::string suffix = std::to_string(number_);
  for (const std::string& path : disk_->Paths()) {
    if (path != "n/cellar.replica" && path != "n/current" && path != "n/log-" + suffix &&
        path != "n/snap-" + suffix)
      (void)disk_->Remove(path);
  }
  const auto image = ReadWholeFile(*disk_, "n/snap-" + suffix);
  CheckOk(image.status());
  BodyReader body(*image);
  snapshot_.lsn = body.ReadLsn();
  snapshot_.hash = body.U64();
  snapshot_.commit_micros = static_cast<int64_t>(body.U64());
  snapshot_.members = body.Prefixed();
  machine->hash = snapshot_.hash;

  const auto bytes = ReadWholeFile(*disk_, "n/log-" + suffix);
  CheckOk(bytes.status());
  const auto header = DecodeSegmentHeader(*bytes);
  CheckOk(header.status());
  SetMembers members;
  if (!snapshot_.members.empty() && !DecodeMembers(snapshot_.members, &members))
    throw Violation{"the members of a snapshot cannot be read"};
  LogReplay replay(*machine, ApplyUpTo::kCommitMark);
  replay.BeginBehind(snapshot_.lsn, snapshot_.members);
  known->Restart(header->after, members);
  LogPosition position = LogPosition::BehindHeader(*header);
  LogRecord record;
  std::string fault;
  LogStep step;
  // Up to where the snapshot reaches the records are those that it holds, all in force.
  while ((step = ReadRecord(*bytes, &position, &record, &fault)) == LogStep::kRecord) {
    if (record.is_entry()) {
      if (!known->Append(record.lsn, record.kind, record.payload))
        throw Violation{"a record of members cannot be read"};
      entries_.erase(entries_.lower_bound(record.lsn.seq), entries_.end());
      entries_[record.lsn.seq] = {record, std::string(record.payload)};
    }
    const bool in_snapshot = record.is_entry() && record.lsn.seq <= snapshot_.lsn.seq;
    if (!in_snapshot && record.kind != RecordKind::kClaim) CheckOk(replay.Take(record));
  }
  if (step == LogStep::kBad) {
    if (JudgeTail(*bytes, position).is_damage) throw Violation{"a torn tail is taken for damage"};
    ++stats->torn_tails;
  }
  if (snapshot_.lsn != Lsn{} && snapshot_.lsn != known->snapshot()) {
    known->TakeSnapshot(snapshot_.lsn, known->first());
  }
  *committed = std::max(snapshot_.lsn, replay.mark().lsn);
  auto file = disk_->OpenForWriting("n/log-" + suffix);
  CheckOk(file.status());
  file_ = *std::move(file);
  CheckOk(file_->Truncate(position.offset));
  CheckOk(file_->Sync());
  end_ = position.offset;
  chain_ = position.chain;
  last_ = position.last;
  durable_claim = last_;
}

// --- SimNode: what the core wants done

SimNode::SimNode(Simulation& simulation, uint32_t slot_of, double rate, int64_t offset)
    : sim(simulation), slot(slot_of), id(simulation.NewId(slot_of)), clock(nullptr, rate, offset) {}

bool SimNode::paused() const { return sim.now() < paused_until; }

bool SimNode::is_witness() const { return sim.IsWitness(slot); }

Status SimNode::SaveVote(uint32_t term, uint64_t vote) {
  Identity next = identity;
  next.term = term;
  next.vote = vote;
  if (sim.options().faults.vote_not_synced) {
    identity = next;
    return Status::Ok();
  }
  if (sim.options().chaos && sim.random().OneIn(100)) {
    disk.FailCall(1 + sim.random().Below(2));
    ++sim.stats.votes_unsaved;
  }
  const Status saved = identity_file->Write(next);
  disk.Heal();
  if (saved.ok()) identity = next;
  return saved;
}

void SimNode::AppendEntry(const LogRecord& record) {
  const uint64_t index = record.lsn.seq;
  if (index <= log->last().seq) {
    ++sim.stats.voids;
    if (index <= committed_index) sim.Fail("a committed record is voided");
    if (applied_index >= index) {
      ++sim.stats.reloads;
      if (!sim.options().faults.no_rollback) {
        machine->hash = committed_hash;
        applied_index = committed_index;
        hash_at.clear();
      } else {
        applied_index = index - 1;
      }
    }
    if (taken && taken->lsn.seq >= index) taken.reset();
  }
  log->Append(record, record.payload);
}

void SimNode::AppendOwn(RecordKind kind, uint32_t term, std::string_view payload) {
  const int64_t commit_micros = std::max(clock.WallMicros(), log->last_commit_micros() + 1);
  const Lsn lsn{term, log->last().seq + 1};
  log->Append({.lsn = lsn, .commit_micros = commit_micros, .kind = kind}, payload);
  // Where all before it is applied, so is it.
  if (applied_index + 1 == lsn.seq && !is_witness()) {
    applied_index = lsn.seq;
    hash_at[lsn.seq] = machine->hash;
  }
}

void SimNode::OnCommitted(Lsn lsn) {
  for (uint64_t i = committed_index + 1; i <= lsn.seq; ++i) {
    const SimLog::Entry* const entry = log->Find(i);
    if (entry == nullptr) sim.Fail("a committed record is not in the log");
    sim.OnCommit(*this, i, *entry);
    if (is_witness()) {
      applied_index = committed_index = i;
      continue;
    }
    if (applied_index < i) {
      if (applied_index + 1 != i) sim.Fail("records are not applied in order");
      if (entry->head.kind == RecordKind::kCommand) (void)machine->Apply(entry->payload);
      applied_index = i;
      hash_at[i] = machine->hash;
    }
    const auto hash = hash_at.find(i);
    if (hash == hash_at.end()) sim.Fail("a record was applied that is not there");
    committed_hash = hash->second;
    committed_index = i;
    sim.OnState(*this, i, committed_hash);
  }
  hash_at.erase(hash_at.begin(), hash_at.upper_bound(committed_index));
  mark = lsn;
  if (clock.MonotonicMicros() - mark_micros > 300'000) {
    mark_micros = clock.MonotonicMicros();
    log->MarkCommit(mark);
  }
}

std::optional<ReplicaSetHost::Piece> SimNode::Records(Lsn after, Lsn last, size_t bytes_max) {
  // A worker reads what is further back: now and then it is not there yet.
  if (last.seq + 50 < log->last().seq && sim.random().OneIn(3)) return std::nullopt;
  wire.clear();
  Lsn end = after;
  for (uint64_t i = after.seq + 1; i <= last.seq; ++i) {
    const SimLog::Entry* const entry = log->Find(i);
    if (entry == nullptr) {
      if (wire.empty()) return std::nullopt;
      break;
    }
    const size_t at = wire.size();
    if (at > 0 && at + kRecordHeaderBytes + entry->payload.size() > bytes_max) break;
    wire.resize(at + kRecordHeaderBytes + entry->payload.size());
    LayOutRecord(&wire[at], 0, entry->head, entry->payload);
    (void)SealRecord(&wire[at]);
    end = entry->head.lsn;
  }
  return Piece{wire, end};
}

void SimNode::Send(uint64_t node, std::string frame) { sim.Post(*this, node, std::move(frame)); }

bool SimNode::IsSendingLong(uint64_t node) { return sim.IsBusy(slot, Simulation::SlotOf(node)); }

std::optional<SnapshotOffer> SimNode::OfferSnapshot(Lsn lsn) {
  if (is_witness() && !sim.options().faults.witness_offers) return std::nullopt;
  const SimSnapshot& snapshot = log->snapshot();
  if (snapshot.lsn != lsn) return std::nullopt;
  SnapshotOffer offer;
  offer.lsn = lsn;
  offer.number = sim.images.size() + 1;
  sim.images[offer.number] = snapshot;
  return offer;
}

void SimNode::FetchSnapshot(uint64_t, const SnapshotOffer& offer) {
  ++sim.stats.installs;
  const uint64_t process = incarnation;
  taken.reset();
  sim.After(100'000 + sim.Below(3'000'000), [this, process, offer] {
    if (process != incarnation || !up()) return;
    if (sim.options().chaos && sim.Chance(0.3)) {
      ++sim.stats.installs_failed;
      set->OnInstallFailed();
      return Touch();
    }
    SimSnapshot image = sim.images.at(offer.number);
    if (is_witness()) image.hash = 1;
    log->entries().clear();
    log->Replace(image, image.lsn.seq + 1);
    log->durable_claim = image.lsn;
    machine->hash = committed_hash = image.hash;
    applied_index = committed_index = image.lsn.seq;
    hash_at.clear();
    if (!is_witness()) sim.OnState(*this, committed_index, committed_hash);
    set->OnInstalled();
    durable = set->log().appended();
    Touch();
  });
}

void SimNode::OnRoleChanged() {
  if (set == nullptr) return;
  if (set->leads()) return sim.OnLeader(*this);
  unacknowledged.clear();  // clients are cut off: they do not know
  reads.clear();
}

void SimNode::OnBroken(std::string_view why) {
  sim.Fail("node " + std::to_string(id) + " is broken: " + std::string(why));
}

// --- SimNode: the process

void SimNode::Start() {
  ++incarnation;
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
  set->Start(identity.term, identity.vote, std::move(known), committed);
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
  if (power_loss)
    disk.PowerLoss(sim.random().Next());
  else
    disk.Kill();
}

void SimNode::Wipe() {
  if (up()) Crash(false);
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
  if (!up()) return;
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
    if (reads.front().index < reads.front().floor) sim.Fail("a read is stale");
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
  if (!up() || generation != timer_generation) return;
  if (paused()) {
    sim.At(paused_until + 1, [this, generation] { OnTimer(generation); });
    return;
  }
  armed_micros = INT64_MAX;
  set->OnTimer();
  Touch();
}

void SimNode::Receive(const std::string& bytes) {
  FrameReader reader = MakeSetFrameReader();
  reader.Add(bytes);
  Frame frame;
  const auto there = reader.Next(&frame);
  if (!there.ok() || !*there) sim.Fail("a frame cannot be read");
  if (const Status status = set->OnFrame(frame); !status.ok())
    sim.Fail("a frame is refused: " + std::string(status.text()));
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
  const auto [it, fresh] = leader_of_term_.emplace(node.set->term(), node.id);
  if (fresh) ++stats.elections;
  if (it->second != node.id) Fail("two leaders in one term");
}

void Simulation::OnCommit(SimNode& node, uint64_t index, const SimLog::Entry& entry) {
  const Committed committed{entry.head.lsn.epoch,
                            Hash64(entry.payload, static_cast<uint64_t>(entry.head.kind))};
  const auto [it, fresh] = committed_.emplace(index, committed);
  if (fresh) ++stats.committed;
  if (it->second.term != committed.term || it->second.hash != committed.hash)
    Fail("node " + std::to_string(node.id) + " has committed another record " +
         std::to_string(index));
}

void Simulation::OnState(SimNode& node, uint64_t index, uint64_t hash) {
  const auto [it, fresh] = hash_at_.emplace(index, hash);
  if (it->second != hash)
    Fail("node " + std::to_string(node.id) + " has another state at " + std::to_string(index));
}

void Simulation::Post(SimNode& from, uint64_t to, std::string frame) {
  ++stats.frames;
  const uint32_t source = from.slot;
  const uint32_t slot = SlotOf(to);
  if (slot >= nodes_.size() || nodes_[slot]->id != to) return;  // that disk is gone
  if (!calm_ && Chance(options_.loss)) return;
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
    node.Receive(*bytes);
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
  node.Crash(random_.OneIn(2));
  After(Below(Chance(0.3) ? 3'000'000 : 400'000), [&node] {
    if (!node.up()) node.Start();
  });
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
  for (const auto& node : nodes_)
    if (node->leads() && !node->paused()) node->ChangeMembers();
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
  max_acknowledged = 0;
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
  for (const auto& node : nodes_)
    if (!node->up()) node->Start();
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
  if (max_acknowledged > commit) Fail("an acknowledged write is lost");
  const SimNode* leader = nullptr;
  for (const auto& node : nodes_)
    if (node->up() && node->set->open() && !node->is_witness() && node->set->commit().seq == commit)
      leader = node.get();
  if (leader == nullptr) Fail("nobody leads at the end");
  for (const SetMember& member : leader->set->members().list) {
    for (const auto& node : nodes_) {
      if (node->id == member.id && node->set->commit().seq != commit)
        Fail("node " + std::to_string(node->id) + " does not catch up");
    }
  }
}

void Simulation::Run(uint64_t seed) {
  Begin(seed);
  end_ = now_ + options_.micros;
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
