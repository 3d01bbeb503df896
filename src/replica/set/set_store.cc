// See set_store.h.
#include "replica/set/set_store.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/assert.h"

namespace cellar {

struct SetStore::Job {
  std::unique_ptr<LogEntryReader> reader;
  Manifest manifest;
  Lsn before;
  std::vector<uint32_t> epochs;
  std::string wire;
  size_t count{0};
  Status status;
};

SetStore::SetStore(SetStoreHost& host, Store& store, FileSystem& files, Clock& clock,
                   const ReplicaSetOptions& options, size_t tail_bytes)
    : host_(host),
      store_(store),
      files_(files),
      clock_(clock),
      options_(options),
      self_(std::make_shared<SetStore*>(this)),
      tail_(tail_bytes),
      set_(*this, clock, options) {
  SetTailBytes(tail_bytes);
  tail_.SetVoids(true);
  store_.SetFollowing(true);
  shape_ = store_.TakeShape();
}

SetStore::~SetStore() {
  *self_ = nullptr;
  store_.journal().SetSink(nullptr);
}

std::string SetStore::members_payload() const {
  if (!founding_.empty()) return founding_;
  return set_.members().list.empty() ? std::string() : EncodeMembers(set_.members());
}

bool SetStore::is_member() const {
  return started_ || !shape_.snapshot_members.empty() || !shape_.named.empty();
}

// Of an empty store the first record names them; else a snapshot of all there is. Either way the
// set is there once that is durable, and not before.
Status SetStore::Found(SetMembers members) {
  CELLAR_ASSERT(!is_member());
  SetMembers read;
  if (!DecodeMembers(EncodeMembers(members), &read))
    return Status::Error(ErrorCode::kErr, "its list of members is none");
  const Lsn last = store_.last_lsn();
  Lsn commit = last;
  if (last == Lsn{}) {
    members.index = 1;
    RETURN_IF_ERROR(store_.journal().Reserve(kMarkBytesMax));
    store_.AppendOwn(RecordKind::kMembers, 1, EncodeMembers(members));
    commit = store_.last_lsn();
  } else {
    RETURN_IF_ERROR(store_.journal().Reserve(kMarkBytesMax));
    store_.AppendOwn(RecordKind::kBarrier, std::max(last.epoch, store_.journal().epoch()), {});
    commit = store_.last_lsn();
    members.index = commit.seq;
    RETURN_IF_ERROR(store_.ApplyCommitted(commit, INT64_MAX).status());
    store_.journal().SetCommitted(commit);
    founding_ = EncodeMembers(members);
    const Status saved = store_.journal().SaveNow();
    founding_.clear();
    if (!saved.ok()) return Status::Error(ErrorCode::kMisconf, saved.text());
  }
  RETURN_IF_ERROR(host_.ReloadStore([&] { return store_.ReloadCommitted(commit); }));
  shape_ = store_.TakeShape();
  return Status::Ok();
}

Status SetStore::ApplyOwn() {
  CELLAR_ASSERT(!is_member());
  return store_.ApplyCommitted(store_.last_lsn(), INT64_MAX).status();
}

Status SetStore::Start(uint32_t term, uint64_t vote, ReplicaSet::Begins begins) {
  CELLAR_ASSERT(!started_);
  const LogShape shape = std::move(shape_);
  std::optional<EntryLog> log = EntryLog::Of(shape);
  if (!log)
    return Status::Error(ErrorCode::kCorruption, "the log names members that cannot be read");
  tail_.Restart(store_.journal().flushed_lsn());
  Adopt(shape.committed);
  ahead_ = store_.journal().appended() - log->appended();
  marked_ = shape.committed;
  begun_ = store_.last_lsn();
  set_.NoteRetention(shape.retention_micros);
  started_ = true;
  set_.Start(term, vote, *std::move(log), shape.committed, begins);
  return Status::Ok();
}

void SetStore::Adopt(Lsn committed) {
  Journal& journal = store_.journal();
  journal.SetSink(&tail_);
  journal.SetBacklog(backlog_bytes_);
  if (committed != Lsn{}) journal.SetCommitted(committed);
  ahead_ = journal.appended() - set_.log().appended();
}

void SetStore::SetBacklog(uint64_t bytes) {
  backlog_bytes_ = bytes;
  store_.journal().SetBacklog(bytes);
}

void SetStore::Close() {
  if (!started_) return;
  Submit();
  Mark();
}

// --- steps

void SetStore::Submit() {
  Journal& journal = store_.journal();
  if (!started_ || journal.last_lsn() == set_.log().last()) return;
  store_.Flush();  // from here on nothing joins the last record
  set_.OnAppended(journal.last_lsn());
}

Status SetStore::OnFrame(const Frame& frame) {
  Submit();
  return set_.OnFrame(frame);
}

void SetStore::OnArriving(const FrameHead& head) {
  Submit();
  set_.OnArriving(head);
}

void SetStore::OnTimer() {
  Submit();
  set_.OnTimer();
}

// From then on no reply waits for the lease: those made so far must not need it any more.
Status SetStore::Transfer(uint64_t to) {
  Submit();
  if (has_lease_mode() && clock_.MonotonicMicros() >= set_.lease_micros())
    return Status::Error(ErrorCode::kTryAgain, "the leader hears from no majority");
  Status begun = set_.Transfer(to);
  UpdateFollowing();
  return begun;
}

Status SetStore::ChangeMembers(SetMembers members) {
  Submit();
  return set_.ChangeMembers(std::move(members));
}

Result<bool> SetStore::Advance(int64_t deadline_micros) {
  if (!started_) return false;
  Submit();
  if (set_.open()) set_.NoteRetention(store_.now_micros());
  store_.SetTimeFloor(set_.retention_micros());
  ConfirmIfDue();
  NoteDurable();
  if (store_.state_is_void()) RETURN_IF_ERROR(Reload());
  const Lsn before = store_.applied_lsn();
  ASSIGN_OR_RETURN(const bool done, store_.ApplyCommitted(set_.commit(), deadline_micros));
  if (store_.applied_lsn() != before) set_.OnApplied();
  if (!is_before_its_end()) begun_ = {};
  // After a start these are to be known to be so at once: by them nodes and clients are let in.
  if (set_.log().MembersAt(set_.commit().seq).index > marked_.seq) Mark();
  return !done;
}

void SetStore::NoteDurable() {
  const uint64_t durable = store_.journal().released_appended() - ahead_;
  if (durable > set_.durable()) set_.OnDurable(std::min(durable, set_.log().appended()));
}

// What is void must not be shown, and nothing can be added to it.
Status SetStore::Reload() {
  const Lsn commit = set_.commit();
  const Status done = host_.ReloadStore([this, commit] { return store_.ReloadCommitted(commit); });
  if (!done.ok() && done.code() == ErrorCode::kMisconf) return Status::Ok();  // later
  RETURN_IF_ERROR(done);
  ++reloads_;
  Adopt(commit);
  NoteDurable();
  return Status::Ok();
}

void SetStore::Install(const std::function<Status()>& replace) {
  const Lsn incoming = set_.incoming().lsn;
  const Status done = replace();
  Adopt(done.ok() ? incoming : set_.commit());
  tail_.Restart(store_.journal().flushed_lsn());
  behind_.clear();
  if (!done.ok()) return InstallFailed();
  marked_ = incoming;
  set_.OnInstalled();
}

void SetStore::InstallFailed() {
  set_.OnInstallFailed();
  NoteDurable();
}

// --- now and then

void SetStore::OnTick() {
  if (!started_) return;
  Submit();
  NoteSnapshot();
  ShortenWitness();
  const int64_t now = clock_.MonotonicMicros();
  if (store_.journal().snapshot_running()) hold_until_micros_ = 0;
  if (store_.TakeSnapshotWaits() && now > hold_until_micros_ + kHoldMicros)
    hold_until_micros_ = now + kHoldMicros;
  if (now - mark_micros_ >= kMarkMicros) Mark();
}

void SetStore::Mark() {
  Journal& journal = store_.journal();
  mark_micros_ = clock_.MonotonicMicros();
  if (set_.commit() == marked_ || !journal.healthy() || store_.state_is_void()) return;
  if (!journal.Reserve(kMarkBytesMax).ok()) return;
  marked_ = set_.commit();
  journal.AppendMark({.lsn = marked_, .retention_micros = set_.retention_micros()});
}

// Of the log behind it, what is certain to be in the files stays known.
void SetStore::NoteSnapshot() {
  if (set_.installing()) return;
  const Manifest manifest = store_.journal().CopyManifest();
  if (!manifest.snapshot || manifest.snapshot->lsn.seq <= set_.log().snapshot().seq) return;
  const Lsn lsn = manifest.snapshot->lsn;
  if (lsn.seq > set_.commit().seq) return;
  const uint64_t end = lsn.seq + 1;
  uint64_t first = manifest.segments.empty() ? end : manifest.segments.front().after.seq + 1;
  first = std::max(first, end - std::min(end, is_witness() ? kWitnessTrailingMax : kTrailingMax));
  set_.OnSnapshotTaken(lsn, std::clamp(first, set_.log().first(), end));
}

// Its snapshots hold nothing but a place in the log. One that fails is tried again.
void SetStore::ShortenWitness() {
  if (!is_witness() || set_.installing() || store_.journal().snapshot_running()) return;
  if (set_.commit().seq < set_.log().snapshot().seq + kWitnessStep) return;
  (void)store_.journal().StartSnapshot();
}

// --- what replies may leave

Lsn SetStore::released() const {
  if (!started_ || store_.state_is_void()) return {};
  const bool needs_lease = set_.open() && has_lease_mode();
  if (needs_lease && clock_.MonotonicMicros() >= set_.lease_micros()) return {};
  return set_.commit();
}

Lsn SetStore::floor() const {
  constexpr Lsn kAny{0, 1};  // something that is not released while nothing is
  if (!set_.open() || has_lease_mode()) return kAny;
  return {set_.term(), store_.last_lsn().seq + 1};
}

void SetStore::Confirm(Lsn floor) {
  wanted_ = std::max(wanted_, floor);
  ConfirmIfDue();
}

// Not while it hands over: then, if it goes on leading.
void SetStore::ConfirmIfDue() {
  const bool is_due = set_.may_append() && !has_lease_mode() && wanted_.epoch == set_.term() &&
                      wanted_.seq > store_.last_lsn().seq;
  if (!is_due) return;
  Submit();
  set_.Confirm();
}

// --- what the core wants done

bool SetStore::has_room() const { return store_.journal().Reserve(kRoomBytes).ok(); }

bool SetStore::HasRoom(size_t bytes) {
  if (bytes == 0) return has_room();
  const bool takes =
      clock_.MonotonicMicros() >= hold_until_micros_ && store_.pending_bytes() < kPendingBytesMax;
  return takes && store_.journal().Reserve(bytes).ok();
}

void SetStore::AppendEntry(const LogRecord& record) {
  store_.SetFollowing(true);
  store_.AppendEntry(record);
}

void SetStore::AppendOwn(RecordKind kind, uint32_t term, std::string_view payload) {
  store_.AppendOwn(kind, term, payload);
  store_.Flush();  // it is about to be sent
}

void SetStore::OnCommitted(Lsn lsn) { store_.journal().SetCommitted(lsn); }

Lsn SetStore::applied() const { return store_.state_is_void() ? Lsn{} : store_.applied_lsn(); }

void SetStore::OnRoleChanged() {
  UpdateFollowing();
  host_.OnRoleChanged();
}

void SetStore::UpdateFollowing() { store_.SetFollowing(is_witness() || !set_.may_append()); }

void SetStore::OnBroken(std::string_view why) {
  store_.SetFollowing(true);
  host_.OnBroken(why);
}

void SetStore::OnContradicted(std::string_view why) {
  store_.SetFollowing(true);
  host_.OnContradicted(why);
}

std::optional<SnapshotOffer> SetStore::OfferSnapshot(Lsn lsn) {
  if (is_witness()) return std::nullopt;
  const Manifest manifest = store_.journal().CopyManifest();
  if (!manifest.snapshot || manifest.snapshot->lsn != lsn) return std::nullopt;
  return host_.OfferSnapshot(*manifest.snapshot);
}

void SetStore::FetchSnapshot(uint64_t node, const SnapshotOffer& offer) {
  host_.FetchSnapshot(node, offer);
}

// --- records for others

std::optional<ReplicaSetHost::Piece> SetStore::Cut(std::string_view wire, Lsn after, Lsn last,
                                                   size_t bytes_max) {
  size_t begin = 0;
  size_t end = 0;
  Lsn end_lsn = after;
  while (end < wire.size()) {
    const RecordPlace place = PlaceOfRecord(wire.substr(end));
    if (place.lsn > last) break;
    if (end_lsn != after && end + place.bytes - begin > bytes_max) break;
    end += place.bytes;
    if (place.lsn <= after) {
      begin = end;
    } else {
      end_lsn = place.lsn;
    }
  }
  if (end_lsn == after) return std::nullopt;
  return Piece{wire.substr(begin, end - begin), end_lsn};
}

std::optional<ReplicaSetHost::Piece> SetStore::Records(Lsn after, Lsn last, size_t bytes_max) {
  if (store_.journal().flushed_lsn() != store_.last_lsn()) store_.Flush();
  const auto piece = tail_.Behind(after, bytes_max);
  if (!piece) return RecordsOfFiles(after, last, bytes_max);
  if (piece->records.empty()) return std::nullopt;
  if (piece->last <= last) return Piece{piece->records, piece->last};
  return Cut(piece->records, after, last, bytes_max);
}

std::optional<ReplicaSetHost::Piece> SetStore::RecordsOfFiles(Lsn after, Lsn last,
                                                              size_t bytes_max) {
  const int64_t now = clock_.MonotonicMicros();
  uint64_t slot = 0;
  for (auto& [id, behind] : behind_) {
    const bool covers = behind.before.seq <= after.seq && after.seq < behind.last.seq;
    // What has been voided since is of no use; nor then is anything behind it.
    if (covers && !behind.wire.empty() && set_.log().At(behind.last.seq) == behind.last) {
      behind.used_micros = now;
      return Cut(behind.wire, after, last, bytes_max);
    }
    if (behind.reader == nullptr && behind.before == after) return std::nullopt;  // being read
    if (behind.reader != nullptr && behind.last == after) slot = id;
  }
  if (slot == 0 && behind_.size() >= kBehindMax) {
    const auto oldest = std::min_element(
        behind_.begin(), behind_.end(),
        [](const auto& a, const auto& b) { return a.second.used_micros < b.second.used_micros; });
    behind_.erase(oldest);
  }
  if (slot == 0) {
    slot = slot_next_++;
    behind_[slot].reader =
        std::make_unique<LogEntryReader>(files_, store_.options().journal.directory);
  }
  behind_[slot].used_micros = now;
  ReadFiles(slot, after, last);
  return std::nullopt;
}

void SetStore::ReadFiles(uint64_t slot, Lsn after, Lsn last) {
  constexpr uint64_t kCountMax{100'000};
  Behind& behind = behind_[slot];
  auto job = std::make_unique<Job>();
  job->reader = std::move(behind.reader);
  job->manifest = store_.journal().CopyManifest();
  job->before = behind.before = behind.last = after;
  behind.wire.clear();
  const uint64_t end = std::min(last.seq, after.seq + kCountMax);
  for (uint64_t seq = after.seq + 1; seq <= end; ++seq)
    job->epochs.push_back(set_.log().TermOf(seq));
  Job* const raw = job.release();  // adopted by the second function, which always runs
  host_.RunInBackground(
      [raw] {
        auto read = raw->reader->Read(raw->manifest, raw->before.seq + 1, raw->epochs, kReadBytes,
                                      &raw->wire);
        raw->status = read.status();
        if (read.ok()) raw->count = *read;
      },
      [raw, slot, self = self_] {
        const std::unique_ptr<Job> own(raw);
        if (*self != nullptr) (*self)->EndReadFiles(slot, raw);
      });
}

void SetStore::EndReadFiles(uint64_t slot, Job* job) {
  const auto found = behind_.find(slot);
  if (found == behind_.end()) return;
  Behind& behind = found->second;
  behind.reader = std::move(job->reader);
  // A file that has gone, or records that its writer still holds: the next one who asks looks anew.
  if (!job->status.ok() || job->count == 0) {
    behind_.erase(found);
    return;
  }
  behind.wire = std::move(job->wire);
  behind.last = {job->epochs[job->count - 1], behind.before.seq + job->count};
}

}  // namespace cellar
