// The store on a follower: it takes records as they come from the leader, and decides nothing
// itself. Reclaiming, states of indexes, timestamps: all of that arrives in the log.
#include <utility>

#include "base/assert.h"
#include "store/store.h"

namespace cellar {

Status Store::ApplyRecord(const LogRecord& record) {
  CELLAR_ASSERT(following_);
  // EXEC may make a follower the leader (Sentinel's way), which applies what is left first. The
  // EXEC has written nothing then, and cannot be undone.
  CELLAR_ASSERT(!in_transaction_ || (mutation_.empty() && !transaction_undo_));
  const Lsn last = journal_->last_lsn();
  const bool follows = record.lsn.seq == last.seq + 1 && record.lsn.epoch >= last.epoch &&
                       record.commit_micros > journal_->last_commit_micros();
  if (!follows) {
    return Status::Error(ErrorCode::kErr, "record " + FormatLsn(record.lsn) +
                                              " comes behind record " + FormatLsn(last));
  }
  RETURN_IF_ERROR(journal_->Reserve(record.payload.size()));
  uint64_t changes = 0;
  if (record.kind == RecordKind::kCommand) {
    if (apply_listener_ != nullptr)
      apply_listener_->BeforeApply(record.payload, record.commit_micros);
    engine_->SetCommitTime(record.commit_micros);
    // What cannot be applied stops the stream before it is in this log.
    if (Status applied = engine_->Apply(record.payload); !applied.ok()) {
      return Status::Error(ErrorCode::kCorruption,
                           "record " + FormatLsn(record.lsn) + ": " + applied.text());
    }
    changes = NoteApplied(record);
  }
  journal_->AppendAt(record, record.payload, changes);
  if (record.kind == RecordKind::kCommand && apply_listener_ != nullptr)
    apply_listener_->AfterApply();
  return Status::Ok();
}

// Replies that tell of these tables wait for the record. Returns how many tables and steps changed.
uint64_t Store::NoteApplied(const LogRecord& record) {
  uint64_t changes = 0;
  MutationReader reader(record.payload);
  int64_t stamp = 0;
  (void)reader.ReadStamp(&stamp);
  DecodedOp op;
  while (reader.Next(&op)) {
    ++changes;
    if (op.op == MutationOp::kTable) {
      if (Table* table = engine_->FindTableById(op.id); table != nullptr)
        table->set_last_lsn(record.lsn);
    } else if (op.op >= MutationOp::kCreateKeyspace) {
      schema_lsn_ = record.lsn;
      if (op.op == MutationOp::kCreateSnapshot) NoteSnapshot(op.id);
      if (op.op == MutationOp::kCreateFeed) feed_log_->NoteFeed();
    }
  }
  return changes;
}

Status Store::BeginEpoch(uint32_t epoch) {
  RETURN_IF_ERROR(journal_->Reserve(0));
  journal_->SetEpoch(epoch);
  journal_->AppendBarrier();
  return Status::Ok();
}

Status Store::ReplaceContent(const std::string& path, const std::optional<SnapshotEntry>& entry,
                             std::unique_ptr<Engine> loaded, Status* status) {
  const std::string& directory = options_.journal.directory;
  const Manifest manifest = journal_->CopyManifest();
  (void)journal_->Close();  // what it holds is about to go
  CarriedState carried = CloseAll(Trees::kAll);
  *status = Status::Ok();
  Manifest fresh{.next = manifest.next, .snapshot = entry, .earlier = {}, .segments = {}};
  if (entry) {
    fresh.snapshot->number = fresh.next++;
    *status = files_.Rename(path, JoinPath(directory, FormatFileName(StoreFileKind::kSnapshot,
                                                                     fresh.snapshot->number)));
    if (status->ok()) *status = files_.SyncDirectory(directory);
  }
  if (status->ok()) *status = InstallManifest(files_, directory, fresh).status;
  CELLAR_ASSERT(!manifest.holds_log_only);
  const bool takes = status->ok() && loaded != nullptr;
  if (takes) {
    engine_ = std::move(loaded);
    resolver_ = std::make_unique<RowResolver>(*engine_, arrivals_);
  }
  RETURN_IF_ERROR(OpenJournal({}, takes ? StateContent::kSnapshot : StateContent::kEmpty));
  engine_->Inherit(std::move(carried), Continuity::kOtherState);
  return Status::Ok();
}

}  // namespace cellar
