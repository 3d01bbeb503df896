// See log_walk.h.
#include "store/log/log_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <ostream>

#include "base/assert.h"

namespace cellar {
namespace {

Status Damage(const std::string& path, std::string_view fault) {
  return Status::Error(ErrorCode::kCorruption, fmt::format("{}: {}", path, fault));
}

}  // namespace

// That which goes on from the base, as a rule one of its own; else the last one that begins before.
LogWalk::Segments::const_iterator LogWalk::FirstSegment() const {
  auto first = found_.segments.end();
  for (auto at = found_.segments.begin(); at != found_.segments.end(); ++at) {
    if (at->second.front().header.after == base_lsn_) first = at;
  }
  if (first != found_.segments.end() || base_lsn_ == Lsn{}) return first;
  for (auto at = found_.segments.begin(); at != found_.segments.end(); ++at) {
    if (at->second.front().header.after < base_lsn_) first = at;
  }
  return first;
}

// A gap, with what might have filled it.
Status LogWalk::Gap(std::string text, uint64_t from, uint64_t to) const {
  for (const LostFile& lost : found_.lost) {
    if (lost.name.kind == StoreFileKind::kSegment && lost.name.number > from &&
        lost.name.number < to)
      return Damage(lost.path, lost.fault);
  }
  return Status::Error(ErrorCode::kCorruption, std::move(text));
}

// There is no segment behind that number; should there be one?
Status LogWalk::CheckNothingLost(uint64_t behind) const {
  for (const LostFile& lost : found_.lost) {
    if (lost.name.kind == StoreFileKind::kSegment && lost.name.number > behind)
      return Damage(lost.path, lost.fault);
  }
  return Status::Ok();
}

Status LogWalk::CheckFollows(const FoundSegment& segment) const {
  if (number_ == 0 || IsAt(segment.header)) return Status::Ok();
  return Gap(
      fmt::format("the log has a gap: {} ends with record {}, and {} goes on behind {}", last_path_,
                  FormatLsn(position_.last), segment.path, FormatLsn(segment.header.after)),
      number_, segment.header.number);
}

std::string LogWalk::CheckEnd(const FoundSegment& copy, std::string_view segment,
                              std::string fault) const {
  if (copy.ends == SegmentEnds::kByManifest &&
      (position_.offset != copy.end->offset || position_.last != copy.end->last)) {
    return fmt::format(
        "offset {}: the records end with {}; by the manifest they end with {} at offset {}{}",
        position_.offset, FormatLsn(position_.last), FormatLsn(copy.end->last), copy.end->offset,
        fault.empty() ? "" : " (" + fault + ")");
  }
  const LogTail tail = JudgeTail(segment, position_);
  if (tail.bytes == 0 || (copy.ends == SegmentEnds::kOpen && !tail.is_damage)) return {};
  if (fault.empty()) fault = "no record, but the file is not empty after it";
  return fmt::format("offset {}: after record {}: {}", position_.offset, FormatLsn(position_.last),
                     fault);
}

// One copy of a segment, from where the reading has come. It may end early: then another copy may
// have more, and damage is told only if none has.
Status LogWalk::ReadCopy(const FoundSegment& copy, const SegmentHeader* next, LogReplay* replay) {
  RETURN_IF_ERROR(ReadWholeFile(files_, copy.path, &bytes_));
  std::string_view segment = bytes_;
  if (copy.end) segment = segment.substr(0, copy.end->offset);
  if (position_.offset > segment.size()) return Status::Ok();  // another copy had more
  const Lsn before = position_.last;
  std::string fault;
  LogRecord record;
  LogStep step = LogStep::kRecord;
  while (next == nullptr || !IsAt(*next)) {
    step = ReadRecord(segment, &position_, &record, &fault);
    if (step != LogStep::kRecord) break;
    if (record.kind == RecordKind::kClaim || record.lsn <= base_lsn_) continue;
    // In a replica set a record may be voided until it is committed.
    if (!replay->members().empty()) replay->SetUpTo(ApplyUpTo::kCommitMark);
    if (const Status taken = replay->Take(record); !taken.ok())
      return Damage(copy.path, fmt::format("offset {}: record {}: {}", record.offset,
                                           FormatLsn(record.lsn), taken.text()));
    if (replay->ended()) break;
  }
  if (out_ != nullptr && position_.last != before)
    *out_ << fmt::format("{}: after record {}, up to {}\n", copy.path, FormatLsn(before),
                         FormatLsn(position_.last));
  if (step == LogStep::kRecord) return Status::Ok();
  fault = CheckEnd(copy, segment, step == LogStep::kBad ? std::move(fault) : std::string());
  return fault.empty() ? Status::Ok() : Damage(copy.path, fault);
}

// The same segment may stand in several folders (a backup, an archive); together they may be whole
// where none is by itself.
Status LogWalk::ReadSegment(const std::vector<FoundSegment>& copies, const SegmentHeader* next,
                            LogReplay* replay) {
  const Lsn highest = position_.highest;
  position_ = LogPosition::BehindHeader(copies.front().header);
  position_.highest = highest;
  Status damage;
  for (const FoundSegment& copy : copies) {
    if (replay->ended() || (next != nullptr && IsAt(*next))) return Status::Ok();
    Status status = ReadCopy(copy, next, replay);
    if (!status.ok() && status.code() != ErrorCode::kCorruption) return status;
    if (!status.ok()) damage = std::move(status);
  }
  number_ = copies.front().header.number;
  last_path_ = copies.front().path;
  if (replay->ended() || (next != nullptr && IsAt(*next))) return Status::Ok();
  return damage;
}

// From the first segment that the base needs to the end, or to where the replay ends. A gap between
// two of them is an error that names what is missing.
Status LogWalk::Run(LogReplay* replay) {
  auto at = FirstSegment();
  if (at == found_.segments.end()) {
    // What is there begins behind the base.
    if (!found_.segments.empty()) {
      const FoundSegment& first = found_.segments.begin()->second.front();
      return Gap(fmt::format("the log has a gap: {} goes on behind record {}, but there is nothing "
                             "between record {} and that",
                             first.path, FormatLsn(first.header.after), FormatLsn(base_lsn_)),
                 0, first.header.number);
    }
    return CheckNothingLost(0);
  }
  for (; at != found_.segments.end() && !replay->ended(); ++at) {
    RETURN_IF_ERROR(CheckFollows(at->second.front()));
    const auto next = std::next(at);
    RETURN_IF_ERROR(ReadSegment(
        at->second, next == found_.segments.end() ? nullptr : &next->second.front().header,
        replay));
  }
  return replay->ended() ? Status::Ok() : CheckNothingLost(number_);
}

}  // namespace cellar
