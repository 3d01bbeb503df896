// The store of a replica set's member. A follower's log is ahead of its state: records are applied
// when they are committed. A leader applies what it writes at once; if it is deposed before that is
// committed, and the next leader voids it, the state is made anew from the files.
#include <utility>

#include "base/assert.h"
#include "engine/state/ownership_ops.h"
#include "store/snapshot/snapshot_writer.h"
#include "store/store.h"

namespace cellar {

void Store::AppendEntry(const LogRecord& record) {
  CELLAR_ASSERT(options_.journal.set_member);
  CELLAR_ASSERT(following_);
  CELLAR_ASSERT(!in_transaction_);
  (void)journal_->Reserve(record.payload.size());
  if (pending_.empty() && !state_is_void_) applied_ = journal_->last_lsn();
  if (record.lsn.seq <= applied_.seq) state_is_void_ = true;
  while (!pending_.empty() && pending_.back().head.lsn.seq >= record.lsn.seq) {
    pending_bytes_ -= pending_.back().payload.size();
    pending_.pop_back();
  }
  journal_->AppendAt(record, record.payload, record.kind == RecordKind::kCommand ? 1 : 0);
  if (record.kind == RecordKind::kCommand) SyncOwnership(record.payload);
  pending_.push_back({record, std::string(record.payload)});
  pending_bytes_ += record.payload.size();
}

// Outside of a cluster records of rows are not looked through: what makes a set part of one begins
// with something else. A witness has no state to tell.
void Store::SyncOwnership(std::string_view payload) {
  if (!options_.journal.set_member || !journal_->releases_undurable()) return;
  const bool looks = holds_log_only() || engine_->cluster().active();
  if (looks ? ChangesOwnership(payload) : BeginsWithOwnership(payload))
    journal_->ReleaseWhenDurable();
}

// A record of the set itself. The room for it has been looked at before; a refusal could not be
// answered here.
void Store::AppendOwn(RecordKind kind, uint32_t epoch, std::string_view payload) {
  CELLAR_ASSERT(options_.journal.set_member);
  CELLAR_ASSERT(kind == RecordKind::kBarrier || kind == RecordKind::kMembers);
  CELLAR_ASSERT(!in_transaction_);
  (void)journal_->Reserve(payload.size());
  // What a leader writes before it is open may fall without taking a state with it. Once it is open
  // its commands are applied, and what stands among them counts as they do.
  const bool waits = following_;
  CELLAR_ASSERT(waits || (pending_.empty() && !state_is_void_));
  if (waits && pending_.empty() && !state_is_void_) applied_ = journal_->last_lsn();
  journal_->SetEpoch(epoch);
  if (kind == RecordKind::kBarrier) {
    journal_->AppendBarrier();
  } else {
    journal_->AppendMembers(payload);
  }
  if (!waits) return;
  pending_.push_back(
      {{.lsn = journal_->last_lsn(), .commit_micros = journal_->last_commit_micros(), .kind = kind},
       std::string(payload)});
  pending_bytes_ += payload.size();
}

Lsn Store::applied_lsn() const {
  return pending_.empty() && !state_is_void_ ? journal_->last_lsn() : applied_;
}

// In the order of the log, as far as is committed and the turn has time. A record that cannot be
// applied means that the state is another one than the log says.
Result<bool> Store::ApplyCommitted(Lsn commit, int64_t deadline_micros) {
  CELLAR_ASSERT(!in_transaction_);
  if (state_is_void_) return true;  // ReloadCommitted applies it
  const auto is_due = [&] { return !pending_.empty() && pending_.front().head.lsn <= commit; };
  while (is_due()) {
    const PendingRecord record = std::move(pending_.front());
    pending_.pop_front();
    pending_bytes_ -= record.payload.size();
    if (record.head.kind == RecordKind::kCommand && !holds_log_only()) {
      LogRecord applied;
      static_cast<RecordHead&>(applied) = record.head;
      applied.payload = record.payload;
      if (apply_listener_ != nullptr)
        apply_listener_->BeforeApply(applied.payload, applied.commit_micros);
      engine_->SetCommitTime(applied.commit_micros);
      if (const Status status = engine_->Apply(applied.payload); !status.ok()) {
        return Status::Error(ErrorCode::kCorruption,
                             "record " + FormatLsn(applied.lsn) + ": " + status.text());
      }
      (void)NoteApplied(applied);
      if (apply_listener_ != nullptr) apply_listener_->AfterApply();
    }
    applied_ = record.head.lsn;
    if (clock_.MonotonicMicros() >= deadline_micros) break;
  }
  return !is_due();
}

Status Store::ReloadCommitted(Lsn commit) {
  CELLAR_ASSERT(options_.journal.set_member);
  if (!journal_->healthy())
    return Status::Error(ErrorCode::kMisconf, "the log cannot be written now: nothing is reloaded");
  if (commit != Lsn{}) {
    RETURN_IF_ERROR(journal_->Reserve(kMarkBytesMax));
    journal_->AppendMark({.lsn = commit, .retention_micros = time_floor_micros_});
  }
  RETURN_IF_ERROR(journal_->Close());
  CarriedState carried = CloseAll(Trees::kAll);
  RETURN_IF_ERROR(OpenJournal({}, StateContent::kEmpty));
  engine_->Inherit(std::move(carried), Continuity::kOtherState);
  return Status::Ok();
}

// A witness keeps no data: in place of a snapshot's content it installs an empty one that says
// where the log goes on and who the members are.
Status Store::RestartLog(Lsn lsn, int64_t commit_micros, std::string members, Status* status) {
  CELLAR_ASSERT(holds_log_only());
  const std::string& directory = options_.journal.directory;
  Manifest fresh;
  fresh.next = journal_->CopyManifest().next;
  fresh.holds_log_only = true;
  (void)journal_->Close();  // what it holds is about to go
  CarriedState carried = CloseAll(Trees::kAll);
  const SnapshotTask task{.directory = directory,
                          .number = fresh.next++,
                          .lsn = lsn,
                          .created_micros = static_cast<uint64_t>(clock_.WallMicros()),
                          .commit_micros = commit_micros,
                          .members = std::move(members)};
  SnapshotProgress progress;
  const auto written = WriteSnapshot(files_, task, engine_->TakeSnapshot(), &progress);
  *status = written.status();
  if (status->ok()) {
    fresh.snapshot = *written;
    *status = InstallManifest(files_, directory, fresh).status;
  }
  RETURN_IF_ERROR(OpenJournal({}, StateContent::kEmpty));
  engine_->Inherit(std::move(carried), Continuity::kOtherState);
  return Status::Ok();
}

// What the files hold and the state does not.
void Store::TakePending() {
  shape_ = journal_->TakeShape();
  state_is_void_ = false;
  pending_bytes_ = 0;
  pending_.clear();
  for (PendingRecord& record : journal_->TakePending()) {
    pending_bytes_ += record.payload.size();
    pending_.push_back(std::move(record));
  }
  if (pending_.empty()) return;
  const uint64_t before = pending_.front().head.lsn.seq - 1;
  applied_ = before == 0 ? Lsn{} : Lsn{journal_->EpochOf(before), before};
}

}  // namespace cellar
