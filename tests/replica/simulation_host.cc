// The log of a simulated node, and what the core wants done with it. See simulation.h.
#include "tests/replica/simulation.h"

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
      if (path != "n/cellar.replica" && path != "n/cellar.member") (void)disk_->Remove(path);
    }
    Replace({}, 1);
    return;
  }
  number_ = std::stoull(*named);
  const std::string suffix = std::to_string(number_);
  for (const std::string& path : disk_->Paths()) {
    if (path != "n/cellar.replica" && path != "n/cellar.member" && path != "n/current" &&
        path != "n/log-" + suffix && path != "n/snap-" + suffix)
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
    const auto found = sim.images.find(offer.number);
    if (found == sim.images.end() || found->second.lsn != offer.lsn ||
        found->second.members != EncodeMembers(offer.members)) {
      ++sim.stats.installs_failed;
      set->OnInstallFailed();
      return Touch();
    }
    SimSnapshot image = found->second;
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
  if (sim.options().damage > 0) return Refuse(std::string(why));
  sim.Fail("node " + std::to_string(id) + " is broken: " + std::string(why));
}

void SimNode::OnContradicted(std::string_view why) {
  if (sim.options().damage > 0) {
    ++sim.stats.contradicted;
    return Refuse(std::string(why));
  }
  sim.Fail("node " + std::to_string(id) + " contradicts the others: " + std::string(why));
}

}  // namespace cellar
