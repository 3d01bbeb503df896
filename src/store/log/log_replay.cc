// See log_replay.h.
#include "store/log/log_replay.h"

#include <fmt/format.h>

#include <cstddef>

#include "store/format/manifest.h"

namespace cellar {

// The gate, if there is one, decides how much of the record is wanted (up to a moment). What is
// skipped still counts as read: epochs and members are those of the log.
Status LogReplay::ApplyEntry(RecordHead head, std::string_view payload) {
  if (ended_) return Status::Ok();
  bool is_skipped = false;
  if (gate_ != nullptr) {
    const RecordGate::Admission admitted = gate_->Admit(head, payload);
    ended_ = admitted.is_last;
    is_skipped = admitted.payload_bytes == 0;
    if (ended_ && is_skipped) return Status::Ok();
    if (head.kind == RecordKind::kCommand) payload = payload.substr(0, admitted.payload_bytes);
    head.commit_micros = admitted.commit_micros;
  }
  if (applied_.epoch == 0) {
    first_epoch_ = head.lsn.epoch;
  } else if (head.lsn.epoch != applied_.epoch) {
    epoch_begins_.push_back(head.lsn);
  }
  applied_ = head.lsn;
  if (head.kind == RecordKind::kMembers) {
    members_ = payload;
    named_.push_back({head.lsn, members_});
  }
  if (is_skipped) return Status::Ok();
  state_.SetCommitTime(head.commit_micros);
  const bool changes = head.kind == RecordKind::kCommand && content_ == StoreContent::kState;
  return changes ? state_.Apply(payload) : Status::Ok();
}

Status LogReplay::ApplyFirst(size_t count) {
  for (size_t i = 0; i < count; ++i) {
    RETURN_IF_ERROR(ApplyEntry(pending_[i].head, pending_[i].payload));
  }
  pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(count));
  return Status::Ok();
}

Status LogReplay::ApplyPending() { return ApplyFirst(pending_.size()); }

// A record is applied at once where all are final, and otherwise kept until a mark says that it is.
Status LogReplay::Take(const LogRecord& record) {
  if (record.kind == RecordKind::kCommit) return TakeMark(record);
  while (!pending_.empty() && pending_.back().head.lsn.seq >= record.lsn.seq) pending_.pop_back();
  if (record.lsn.seq <= applied_.seq) {
    return Status::Error(ErrorCode::kCorruption,
                         fmt::format("it voids the records from {} on, but {} is committed",
                                     record.lsn.seq, FormatLsn(applied_)));
  }
  if (up_to_ == ApplyUpTo::kEnd) return ApplyEntry(record, record.payload);
  pending_.push_back({record, std::string(record.payload)});
  return Status::Ok();
}

Status LogReplay::TakeMark(const LogRecord& record) {
  CommitMark mark;
  if (!DecodeCommitMark(record.payload, &mark))
    return Status::Error(ErrorCode::kCorruption, "the commit mark cannot be read");
  mark.retention_micros = std::max(mark.retention_micros, mark_.retention_micros);
  mark_ = mark;
  size_t committed = 0;
  while (committed < pending_.size() && pending_[committed].head.lsn <= mark.lsn) ++committed;
  return ApplyFirst(committed);
}

}  // namespace cellar
