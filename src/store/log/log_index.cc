// See log_index.h.
#include "store/log/log_index.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace cellar {

Result<std::optional<LogIndex::Segment>> LogIndex::OpenSegment(const SegmentEntry& entry) {
  RETURN_IF_ERROR(window_.Open(entry.number));
  ASSIGN_OR_RETURN(const SegmentHeader header, window_.ReadHeader());
  if (header.version != kLogVersion) return std::optional<Segment>();
  Segment segment{.number = entry.number,
                  .after = entry.after,
                  .after_micros = header.after_micros,
                  .end = entry.end,
                  .pieces = {}};
  return std::optional<Segment>(std::move(segment));
}

// Keeps what is known of segments that are still there, with the pieces that reading has found. A
// segment that cannot be opened cuts off all before it.
Status LogIndex::Update(const Manifest& manifest, Lsn shown, bool whole) {
  shown_ = shown;
  whole_ = whole;
  const auto& entries = manifest.segments;
  // What does not lead up to the end without a gap is as good as gone.
  size_t first = entries.size();
  while (first > 0) {
    if (first < entries.size() &&
        (!entries[first - 1].end || entries[first - 1].end->last != entries[first].after)) {
      break;
    }
    --first;
  }
  // All that can fail comes first, so that what is known stays whole if it does.
  struct Found {
    const SegmentEntry* entry;
    Segment* known;
    std::optional<Segment> opened;
  };
  std::vector<Found> found;  // the newest first
  for (size_t i = entries.size(); i > first; --i) {
    const SegmentEntry& entry = entries[i - 1];
    Segment* const known = FindSegment(entry.number);
    if (known != nullptr && known->after == entry.after) {
      found.push_back({&entry, known, std::nullopt});
      continue;
    }
    ASSIGN_OR_RETURN(std::optional<Segment> opened, OpenSegment(entry));
    if (!opened) break;
    found.push_back({&entry, nullptr, std::move(opened)});
  }
  std::vector<Segment> segments;
  for (auto each = found.rbegin(); each != found.rend(); ++each) {
    if (each->known != nullptr) each->known->end = each->entry->end;
    segments.push_back(each->known != nullptr ? std::move(*each->known) : *std::move(each->opened));
  }
  CELLAR_DEBUG_ASSERT(std::is_sorted(
      segments.begin(), segments.end(),
      [](const Segment& one, const Segment& other) { return one.number < other.number; }));
  segments_ = std::move(segments);
  marks_are_old_ = true;
  // If the record before it is void, some that are in force may be older: they are as good as gone.
  if (!segments_.empty() && segments_.front().pieces.empty())
    segments_.front().pieces.push_back(BeginningOf(segments_.front()));
  return Status::Ok();
}

// --- what is void

bool LogIndex::IsInForce(Lsn lsn) const {
  const auto behind = std::upper_bound(epochs_.begin(), epochs_.end(), lsn.seq,
                                       [](uint64_t seq, Lsn first) { return seq < first.seq; });
  return behind != epochs_.begin() && (behind - 1)->epoch == lsn.epoch;
}

// A record whose number was there before, in another epoch, voids all from that number on.
void LogIndex::NoteEpoch(Lsn lsn) {
  if (lsn.epoch == scan_.last.epoch && lsn.seq > scan_.last.seq) return;
  while (!epochs_.empty() && epochs_.back().seq >= lsn.seq) epochs_.pop_back();
  if (epochs_.empty() || epochs_.back().epoch != lsn.epoch) epochs_.push_back(lsn);
}

void LogIndex::BeginScan() {
  CELLAR_ASSERT(!segments_.empty());
  if (FindSegment(scan_.segment) == nullptr) {
    scan_ = BeginningOf(segments_.front());
    epochs_ = {scan_.last};
  }
  // No epoch has begun for good between this one and where it still was the last one.
  for (const Segment& segment : segments_) {
    if (segment.number > scan_.segment && segment.after.epoch == scan_.last.epoch)
      scan_ = BeginningOf(segment);
  }
}

// Reads on from where the last look ended until it is in the epoch of what is shown. A call reads a
// piece at most.
Result<bool> LogIndex::FindSuperseded() {
  if (segments_.empty()) return true;
  if (epochs_.empty() || scan_.last.epoch != shown_.epoch) BeginScan();
  const uint64_t end = scan_.offset + kPieceBytes;
  while (scan_.last.epoch != shown_.epoch) {
    if (scan_.offset >= end) return false;
    const Segment* segment = FindSegment(scan_.segment);
    CELLAR_ASSERT(segment != nullptr);  // BeginScan has seen to it
    LogRecord record;
    uint64_t end_offset = 0;
    ASSIGN_OR_RETURN(const LargeRecords::Found found,
                     Next(*segment, scan_.offset, &record, &end_offset));
    if (found == LargeRecords::Found::kLater) return false;
    if (found == LargeRecords::Found::kRecord) {
      scan_.offset = end_offset;
      if (!record.is_entry()) continue;
      NoteEpoch(record.lsn);
      scan_.last = record.lsn;
    } else if (segment != &segments_.back() && segment->end) {
      RETURN_IF_ERROR(CheckWhole(*segment, scan_.offset));
      scan_ = BeginningOf(*(segment + 1));
      return false;
    } else {
      break;  // whoever reads up to there gets the error
    }
  }
  if (std::exchange(marks_are_old_, false)) MarkBeginnings();
  return true;
}

void LogIndex::MarkBeginnings() {
  for (Segment& segment : segments_) {
    if (segment.pieces.empty() && segment.after.seq <= shown_.seq && IsInForce(segment.after))
      segment.pieces.push_back(BeginningOf(segment));
  }
}

// Behind what is shown the epochs are not known, but none below the last one can come back.
LogIndex::Fate LogIndex::FateOf(const LogRecord& record, const LogPlace& place) const {
  if (record.lsn.seq > shown_.seq)
    return record.lsn.epoch < shown_.epoch ? Fate::kVoid : Fate::kNotYet;
  if (!IsInForce(record.lsn)) return Fate::kVoid;
  // Once more, in place of what had voided it. What is before the first segment is not told.
  return record.lsn.seq <= place.last.seq && IsInForce(place.last) ? Fate::kVoid : Fate::kShown;
}

// --- places

const LogIndex::Segment* LogIndex::FindSegment(uint64_t number) const {
  const auto found =
      std::lower_bound(segments_.begin(), segments_.end(), number,
                       [](const Segment& segment, uint64_t at) { return segment.number < at; });
  return found == segments_.end() || found->number != number ? nullptr : &*found;
}

std::optional<uint64_t> LogIndex::NextOf(uint64_t segment) const {
  const Segment* found = FindSegment(segment);
  if (found == nullptr || found == &segments_.back()) return std::nullopt;
  return (found + 1)->number;
}

std::optional<int64_t> LogIndex::EndOf(uint64_t segment) const {
  const std::optional<uint64_t> next = NextOf(segment);
  if (!next) return std::nullopt;
  return BeginOf(*next);
}

int64_t LogIndex::BeginOf(uint64_t segment) const {
  const Segment* found = FindSegment(segment);
  if (found == nullptr) return INT64_MAX;
  return found->pieces.empty() ? found->after_micros : found->pieces.front().micros;
}

uint64_t LogIndex::BytesFrom(const LogPlace& place) const {
  uint64_t bytes = 0;
  for (const Segment& segment : segments_) {
    if (segment.number < place.segment) continue;
    const uint64_t end = segment.end ? segment.end->offset : segment.read_to;
    const uint64_t begin = segment.number == place.segment ? place.offset : kSegmentHeaderBytes;
    bytes += end - std::min(begin, end);
  }
  return bytes;
}

// Segments without pieces are those that nobody has read up to: pieces before them are taken, which
// only means to read more.
LogPlace LogIndex::Find(int64_t micros) const {
  CELLAR_ASSERT(begin_micros() < micros);
  const Segment* segment = &segments_.back();
  while (segment->pieces.empty() || segment->pieces.front().micros >= micros) {
    CELLAR_ASSERT(segment != segments_.data());
    --segment;
  }
  const auto piece =
      std::partition_point(segment->pieces.begin(), segment->pieces.end(),
                           [micros](const LogPlace& p) { return p.micros < micros; });
  return *(piece - 1);
}

bool LogIndex::IsThere(const LogPlace& place) const {
  const Segment* segment = FindSegment(place.segment);
  return segment != nullptr && (!segment->end || place.offset <= segment->end->offset);
}

std::optional<LogPlace> LogIndex::Before(const LogPlace& place) const {
  const Segment* segment = FindSegment(place.segment);
  CELLAR_ASSERT(segment != nullptr);
  const auto piece =
      std::partition_point(segment->pieces.begin(), segment->pieces.end(),
                           [&place](const LogPlace& p) { return p.offset < place.offset; });
  if (piece != segment->pieces.begin()) return *(piece - 1);
  const Segment* before = MarkedBefore(segment);
  if (before == nullptr) return std::nullopt;
  return before->pieces.back();
}

const LogIndex::Segment* LogIndex::MarkedBefore(const Segment* segment) const {
  while (segment != segments_.data()) {
    --segment;
    if (!segment->pieces.empty()) return segment;
  }
  return nullptr;
}

Result<bool> LogIndex::LookBefore(const LogPlace& place) {
  const Segment* segment = FindSegment(place.segment);
  CELLAR_ASSERT(segment != nullptr);
  const bool is_first = place.offset == segment->pieces.front().offset;
  const Segment* before = MarkedBefore(segment);
  if (!is_first || before == nullptr || before->read_through) return true;
  LogPlace at = before->pieces.back();
  const auto pass = [](const LogRecord&, int64_t) -> Result<bool> { return true; };
  ASSIGN_OR_RETURN(const Ended ended, ReadPiece(&at, pass));
  return ended == Ended::kShown;  // nothing is shown of the segment of `place` then
}

Result<LargeRecords::Found> LogIndex::Next(const Segment& segment, uint64_t offset,
                                           LogRecord* record, uint64_t* end_offset) {
  RETURN_IF_ERROR(window_.Open(segment.number));
  const uint64_t end = segment.end ? segment.end->offset : UINT64_MAX;
  if (offset >= end) return LargeRecords::Found::kNone;
  ASSIGN_OR_RETURN(const size_t size, window_.BytesAt(offset));
  if (size >= LargeRecords::kBytesMin && size <= end - offset) {
    *end_offset = offset + size;
    return large_.Get(segment.number, offset, size, record);
  }
  ASSIGN_OR_RETURN(const bool there, window_.Read(offset, [&](std::string_view bytes) {
    if (bytes.size() > end - offset || !ReadRecordAlone(bytes, 0, LogPosition{}, record))
      return false;
    *end_offset = offset + record->end_offset;
    return true;
  }));
  return there ? LargeRecords::Found::kRecord : LargeRecords::Found::kNone;
}

// Pieces end where the first reader came to their size; for later ones they are where they are.
bool LogIndex::EndsPiece(Segment* segment, const LogPlace& place) {
  CELLAR_ASSERT(!segment->pieces.empty());
  const LogPlace& last = segment->pieces.back();
  if (place.offset > last.offset) {
    if (place.offset - last.offset < kPieceBytes) return false;
    segment->pieces.push_back(place);
    return true;
  }
  return std::binary_search(
      segment->pieces.begin(), segment->pieces.end(), place,
      [](const LogPlace& a, const LogPlace& b) { return a.offset < b.offset; });
}

// Void records move the place along without being shown, so that nothing is read twice.
Result<LogIndex::Ended> LogIndex::ReadPiece(LogPlace* place, const Visit& visit) {
  ASSIGN_OR_RETURN(const bool known, FindSuperseded());
  if (!known) return Ended::kPiece;
  for (;;) {
    if (place->last.seq >= shown_.seq && IsInForce(place->last)) return Ended::kShown;
    Segment* segment = FindSegment(place->segment);
    if (segment == nullptr) return Status::Error(ErrorCode::kIo, "the log is not there any more");
    LogRecord record;
    uint64_t end_offset = 0;
    ASSIGN_OR_RETURN(const LargeRecords::Found found,
                     Next(*segment, place->offset, &record, &end_offset));
    if (found == LargeRecords::Found::kLater) return Ended::kPiece;
    if (found == LargeRecords::Found::kNone) {
      RETURN_IF_ERROR(CheckWhole(*segment, place->offset));
      return EndSegment(segment, place);
    }
    LogPlace behind{place->segment, end_offset, place->micros, place->last};
    const Fate fate = record.is_entry() ? FateOf(record, *place) : Fate::kVoid;
    if (fate == Fate::kNotYet) return Ended::kShown;
    if (fate == Fate::kShown) {
      ASSIGN_OR_RETURN(const bool goes_on, visit(record, place->micros));
      if (!goes_on) return Ended::kVisit;
      behind.micros = record.commit_micros;
      behind.last = record.lsn;
    }
    *place = behind;
    segment->read_to = std::max(segment->read_to, end_offset);
    if (EndsPiece(segment, behind)) return Ended::kPiece;
  }
}

Status LogIndex::CheckWhole(const Segment& segment, uint64_t offset) const {
  if (!segment.end || offset >= segment.end->offset) return Status::Ok();
  return Status::Error(ErrorCode::kCorruption,
                       FormatFileName(StoreFileKind::kSegment, segment.number) +
                           " is damaged at offset " + std::to_string(offset));
}

// There are no more records behind *place in its segment.
Result<LogIndex::Ended> LogIndex::EndSegment(Segment* segment, LogPlace* place) {
  if (segment == &segments_.back() || !segment->end) {
    if (!whole_ || shown_.seq <= segments_.front().after.seq) return Ended::kShown;
    return Status::Error(ErrorCode::kCorruption,
                         "record " + FormatLsn(shown_) + " cannot be found in the log");
  }
  segment->read_through = true;
  Segment* const next = segment + 1;
  *place = {next->number, kSegmentHeaderBytes, place->micros, place->last};
  if (next->pieces.empty()) next->pieces.push_back(*place);
  return Ended::kPiece;
}

size_t LogIndex::memory_bytes() const {
  size_t bytes =
      window_.memory_bytes() + large_.memory_bytes() + segments_.capacity() * sizeof(Segment);
  for (const Segment& segment : segments_) bytes += segment.pieces.capacity() * sizeof(LogPlace);
  return bytes;
}

}  // namespace cellar
