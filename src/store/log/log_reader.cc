// Segments in, records out: see log_reader.h.
#include "store/log/log_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.h"

namespace cellar {
std::string LogReader::CheckHeader(const SegmentEntry& entry, const SegmentHeader& header) const {
  if (header.number != entry.number || header.after != entry.after)
    return "this is not the segment that the manifest names";
  // Before the first record that the snapshot lacks, segments may begin anywhere in its past.
  const bool in_snapshot = last_ <= snapshot_ && header.after <= snapshot_;
  if (!in_snapshot && header.after != last_)
    return fmt::format("the segment continues record {}, but {} is the last one",
                       FormatLsn(header.after), FormatLsn(last_));
  if (chain_ && header.after == last_ && header.chain != *chain_)
    return fmt::format("the segment continues another record {} than this log's", FormatLsn(last_));
  return {};
}

// Checks the header, its place in the chain, the records, and that they end where the manifest
// says. Damage is an outcome in the report, so that a caller can go on behind it.
Result<SegmentReport> LogReader::Read(const SegmentEntry& entry, bool is_last,
                                      const Visitor& visit) {
  const std::string path =
      JoinPath(directory_, FormatFileName(StoreFileKind::kSegment, entry.number));
  const auto damaged = [](std::string fault) {
    SegmentReport report;
    report.outcome = SegmentOutcome::kDamaged;
    report.has_header = false;
    report.fault = std::move(fault);
    return report;
  };
  ASSIGN_OR_RETURN(const bool exists, files_.Exists(path));
  if (!exists) return damaged("the manifest names it, but it is missing");
  RETURN_IF_ERROR(ReadWholeFile(files_, path, &bytes_));

  const bool may_be_torn = is_last && !entry.end;
  if (bytes_.size() < kSegmentHeaderBytes && may_be_torn) {
    SegmentReport report = damaged("offset 0: the file ends inside its header");
    report.outcome = SegmentOutcome::kTorn;
    report.tail_bytes = bytes_.size();
    return report;
  }
  Result<SegmentHeader> header = DecodeSegmentHeader(bytes_);
  if (!header.ok()) return damaged("offset 0: " + header.status().text());
  if (std::string fault = CheckHeader(entry, *header); !fault.empty())
    return damaged("offset 0: " + fault);

  std::string_view segment = bytes_;
  if (entry.end) segment = segment.substr(0, entry.end->offset);
  SegmentReport report = ReadRecords(segment, *header, may_be_torn, visit);
  if (report.outcome != SegmentOutcome::kDamaged && entry.end &&
      (report.end.offset != entry.end->offset || report.end.last != entry.end->last)) {
    report.outcome = SegmentOutcome::kDamaged;
    report.fault = fmt::format(
        "offset {}: the records end with {}; by the manifest they end with {} at offset {}",
        report.end.offset, FormatLsn(report.end.last), FormatLsn(entry.end->last),
        entry.end->offset);
  }
  highest_ = std::max(highest_, report.end.highest);
  // One that voids may end with a lower number than it began behind.
  if (report.end.last >= last_ || header->after == last_) {
    last_ = report.end.last;
    chain_ = report.end.chain;
    // Version 1 has none. It goes back where a record voids others.
    if (report.end.commit_micros != 0) commit_micros_ = report.end.commit_micros;
  }
  return report;
}

// A record that the visitor refuses counts as damage, and the one before it is the end. Where
// reading stops by itself the bytes behind are judged; only an open last segment may be torn.
SegmentReport LogReader::ReadRecords(std::string_view segment, const SegmentHeader& header,
                                     bool may_be_torn, const Visitor& visit) const {
  SegmentReport report;
  report.end = LogPosition::BehindHeader(header);
  report.end.highest = highest_;
  LogRecord record;
  std::string fault;
  LogStep step = LogStep::kRecord;
  for (;;) {
    const LogPosition before = report.end;
    step = ReadRecord(segment, &report.end, &record, &fault);
    if (step != LogStep::kRecord) break;
    if (record.kind == RecordKind::kClaim) continue;
    Status status = visit(record);
    if (!status.ok()) {
      const LogTail behind = JudgeTail(segment, report.end);
      report.tail_bytes = report.end.offset - before.offset + behind.bytes;
      report.tail_records = behind.records;
      report.end = before;
      report.outcome = SegmentOutcome::kDamaged;
      report.fault = fmt::format("offset {}: record {}: {}", record.offset, FormatLsn(record.lsn),
                                 status.text());
      return report;
    }
    if (record.is_entry()) ++report.records;
  }
  const LogTail tail = JudgeTail(segment, report.end);
  report.tail_bytes = tail.bytes;
  report.tail_records = tail.records;
  if (tail.bytes == 0) return report;

  if (step == LogStep::kEnd) fault = "no record, but the file is not empty after it";
  report.fault = fmt::format("offset {}: after record {}: {}", report.end.offset,
                             FormatLsn(report.end.last), fault);
  report.outcome =
      may_be_torn && !tail.is_damage ? SegmentOutcome::kTorn : SegmentOutcome::kDamaged;
  if (may_be_torn && tail.is_damage) {
    report.fault += fmt::format(
        " (not a torn tail: the record at offset {} was written when {} was already on disk)",
        tail.claim_offset, FormatLsn(tail.claim));
  }
  return report;
}

}  // namespace cellar
