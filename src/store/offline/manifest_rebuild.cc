// See manifest_rebuild.h.
#include "store/offline/manifest_rebuild.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "store/format/log_format.h"
#include "store/snapshot/snapshot_reader.h"

namespace cellar {
namespace {

struct FoundSnapshot {
  SnapshotEntry entry;
  bool is_whole{false};
};

struct FoundSegment {
  uint64_t number{0};
  Lsn after;
  uint64_t chain{0};
  Lsn last;                                       // of what is sound
  uint64_t end_chain{0};                          // hash of that record
  std::map<uint64_t, SegmentEntry::End> records;  // by hash: those that another segment continues
  std::set<Lsn> snapshots;                        // LSNs of snapshots that it holds, or continues
  Lsn reaches;                                    // by it and what follows it
  const FoundSegment* next{nullptr};
};

// Where a way begins, and how far it goes.
struct Start {
  const FoundSnapshot* snapshot{nullptr};
  const FoundSegment* segment{nullptr};
  Lsn reaches;

  // What reaches furthest loses least. Of starts that reach as far a sound snapshot is better, and
  // a newer one leaves less log to be read.
  auto rank() const {
    const bool is_whole = snapshot == nullptr || snapshot->is_whole;
    return std::tuple(reaches, is_whole, snapshot == nullptr ? Lsn{} : snapshot->entry.lsn,
                      snapshot == nullptr ? 0 : snapshot->entry.number,
                      segment == nullptr ? 0 : segment->number);
  }
};

class Rebuild {
 public:
  Rebuild(FileSystem& files, const std::string& directory) : files_(files), directory_(directory) {}

  Result<std::optional<RebuiltManifest>> Run(std::optional<uint64_t> without);

 private:
  Status ReadSnapshot(uint64_t number, const std::vector<std::string>& names);
  Status ReadHeaders(const std::vector<uint64_t>& numbers);
  Status ReadSegment(FoundSegment* segment);
  void JoinSegments();
  std::optional<Start> ChooseStart() const;
  const FoundSegment* Before(const FoundSegment* segment) const;
  std::vector<const FoundSnapshot*> Earlier(const Start& start, const FoundSegment* begin) const;
  RebuiltManifest Make(const Start& start) const;
  std::string PathOf(StoreFileKind kind, uint64_t number) const {
    return JoinPath(directory_, FormatFileName(kind, number));
  }
  void Leave(StoreFileKind kind, uint64_t number, std::string why) {
    left_.push_back({FormatFileName(kind, number), std::move(why)});
  }

  FileSystem& files_;
  const std::string& directory_;
  uint64_t number_max_{0};
  std::vector<FoundSnapshot> snapshots_;
  std::vector<FoundSegment> segments_;  // ascending by number
  std::set<uint64_t> continued_;        // hashes
  std::set<uint64_t> ends_;             // hashes of last records
  std::vector<RebuiltManifest::Left> left_;
};

Status Rebuild::ReadSnapshot(uint64_t number, const std::vector<std::string>& names) {
  const std::string path = PathOf(StoreFileKind::kSnapshot, number);
  auto reader = SnapshotReader::Open(files_, path);
  Status status = reader.status();
  if (reader.ok()) status = (*reader)->VerifyBlocks();
  if (!status.ok() && status.code() != ErrorCode::kCorruption) return status;
  // Of a repair that did not come to its end: what it left out is still to be told of.
  const uint64_t from = reader.ok() ? (*reader)->header().salvaged_from : 0;
  const std::string original = FormatFileName(StoreFileKind::kSnapshot, from);
  if (from != 0 && std::find(names.begin(), names.end(), original) != names.end()) {
    Leave(StoreFileKind::kSnapshot, number, "what a repair has salvaged of " + original);
    return Status::Ok();
  }
  if (reader.ok()) {
    snapshots_.push_back({(*reader)->EntryFor(number), status.ok()});
    return Status::Ok();
  }
  ASSIGN_OR_RETURN(auto file, files_.OpenForReading(path));
  ASSIGN_OR_RETURN(const uint64_t bytes, file->Size());
  std::string start(kSnapshotHeaderBytes, '\0');
  ASSIGN_OR_RETURN(const size_t n, file->ReadAt(0, start.size(), start.data()));
  start.resize(n);
  const Result<SnapshotHeader> header = DecodeSnapshotHeader(start);
  if (!header.ok()) {
    Leave(StoreFileKind::kSnapshot, number, header.status().text());
    return Status::Ok();
  }
  snapshots_.push_back({{.number = number, .lsn = header->lsn, .bytes = bytes, .hash = 0}, false});
  return Status::Ok();
}

Status Rebuild::ReadHeaders(const std::vector<uint64_t>& numbers) {
  for (const uint64_t number : numbers) {
    ASSIGN_OR_RETURN(auto file, files_.OpenForReading(PathOf(StoreFileKind::kSegment, number)));
    std::string start(kSegmentHeaderBytes, '\0');
    ASSIGN_OR_RETURN(const size_t n, file->ReadAt(0, start.size(), start.data()));
    start.resize(n);
    const Result<SegmentHeader> header = DecodeSegmentHeader(start);
    if (!header.ok() || header->number != number) {
      Leave(StoreFileKind::kSegment, number,
            header.ok() ? fmt::format("its header has the number {}", header->number)
                        : header.status().text());
      continue;
    }
    FoundSegment& segment = segments_.emplace_back();
    segment.number = number;
    segment.after = header->after;
    segment.chain = header->chain;
    continued_.insert(header->chain);
  }
  return Status::Ok();
}

Status Rebuild::ReadSegment(FoundSegment* segment) {
  ASSIGN_OR_RETURN(const std::string bytes,
                   ReadWholeFile(files_, PathOf(StoreFileKind::kSegment, segment->number)));
  ASSIGN_OR_RETURN(const SegmentHeader header, DecodeSegmentHeader(bytes));
  const auto note = [&](Lsn lsn) {
    for (const FoundSnapshot& snapshot : snapshots_) {
      if (snapshot.entry.lsn == lsn) segment->snapshots.insert(lsn);
    }
  };
  note(segment->after);
  LogPosition position = LogPosition::BehindHeader(header);
  LogRecord record;
  std::string fault;
  while (ReadRecord(bytes, &position, &record, &fault) == LogStep::kRecord) {
    note(record.lsn);
    if (continued_.contains(record.hash) || ends_.contains(record.hash))
      segment->records[record.hash] = {record.end_offset, record.lsn};
  }
  segment->last = position.last;
  segment->end_chain = position.chain;
  // The older ones, which are read behind this one, may hold the same record.
  ends_.insert(position.chain);
  return Status::Ok();
}

// From the newest to the oldest, since a segment is continued by newer ones. What follows in a
// newer one counts, even if its numbers are lower (a member of a replica set voids records); but
// not where it only repeats some of what the older one holds: it was being made when the process
// ended.
void Rebuild::JoinSegments() {
  for (size_t i = segments_.size(); i-- > 0;) {
    FoundSegment& segment = segments_[i];
    segment.reaches = segment.last;
    for (size_t n = i + 1; n < segments_.size(); ++n) {
      const FoundSegment& next = segments_[n];
      const auto record = segment.records.find(next.chain);
      const bool continues = record != segment.records.end() && record->second.last == next.after;
      const bool repeats = next.next == nullptr && next.end_chain != segment.end_chain &&
                           segment.records.contains(next.end_chain);
      if (!continues || repeats) continue;
      segment.next = &next;
      segment.reaches = next.reaches;
    }
  }
}

std::optional<Start> Rebuild::ChooseStart() const {
  std::vector<Start> starts;
  for (const FoundSnapshot& snapshot : snapshots_) {
    starts.push_back({&snapshot, nullptr, snapshot.entry.lsn});
    for (const FoundSegment& segment : segments_) {
      if (segment.snapshots.contains(snapshot.entry.lsn) && segment.reaches >= snapshot.entry.lsn)
        starts.push_back({&snapshot, &segment, segment.reaches});
    }
  }
  for (const FoundSegment& segment : segments_) {
    if (segment.after == Lsn{} && segment.chain == kChainStart)
      starts.push_back({nullptr, &segment, segment.reaches});
  }
  if (starts.empty()) return std::nullopt;
  return *std::max_element(starts.begin(), starts.end(),
                           [](const Start& a, const Start& b) { return a.rank() < b.rank(); });
}

// The newest that `segment` continues.
const FoundSegment* Rebuild::Before(const FoundSegment* segment) const {
  const FoundSegment* before = nullptr;
  for (const FoundSegment& one : segments_) {
    if (one.next == segment) before = &one;
  }
  return before;
}

// Whole snapshots on the way from `begin` to `start`, the oldest first.
std::vector<const FoundSnapshot*> Rebuild::Earlier(const Start& start,
                                                   const FoundSegment* begin) const {
  std::vector<const FoundSnapshot*> earlier;
  for (const FoundSnapshot& snapshot : snapshots_) {
    const auto age = [](const SnapshotEntry& entry) { return std::tuple(entry.lsn, entry.number); };
    if (!snapshot.is_whole || age(snapshot.entry) >= age(start.snapshot->entry)) continue;
    for (const FoundSegment* at = begin; at != nullptr;
         at = at == start.segment ? nullptr : at->next) {
      if (!at->snapshots.contains(snapshot.entry.lsn)) continue;
      earlier.push_back(&snapshot);
      break;
    }
  }
  std::sort(earlier.begin(), earlier.end(), [](const auto* a, const auto* b) {
    return std::tuple(a->entry.lsn, a->entry.number) < std::tuple(b->entry.lsn, b->entry.number);
  });
  return earlier;
}

// The manifest names the start that was chosen, what leads up to it, and the segments that follow
// from there. Sound files beside that way are reported in `left`, and not removed.
RebuiltManifest Rebuild::Make(const Start& start) const {
  RebuiltManifest rebuilt{.manifest = {}, .left = left_};
  rebuilt.manifest.next = number_max_ + 1;
  std::set<uint64_t> used;
  if (start.snapshot != nullptr) {
    rebuilt.manifest.snapshot = start.snapshot->entry;
    used.insert(start.snapshot->entry.number);
  }
  const FoundSegment* begin = start.segment;
  std::vector<const FoundSnapshot*> earlier;
  if (start.snapshot != nullptr && begin != nullptr) {
    while (const FoundSegment* before = Before(begin)) begin = before;
    earlier = Earlier(start, begin);
  }
  for (const FoundSnapshot* snapshot : earlier) {
    rebuilt.manifest.earlier.push_back(snapshot->entry);
    used.insert(snapshot->entry.number);
  }
  for (const FoundSegment* at = begin; at != nullptr; at = at->next) {
    SegmentEntry& entry = rebuilt.manifest.segments.emplace_back();
    entry = {.number = at->number, .after = at->after};
    if (at->next != nullptr) entry.end = at->records.at(at->next->chain);
    used.insert(at->number);
  }
  for (const FoundSnapshot& snapshot : snapshots_) {
    if (used.contains(snapshot.entry.number)) continue;
    rebuilt.left.push_back(
        {FormatFileName(StoreFileKind::kSnapshot, snapshot.entry.number),
         fmt::format("a {} snapshot up to record {}", snapshot.is_whole ? "sound" : "damaged",
                     FormatLsn(snapshot.entry.lsn))});
  }
  for (const FoundSegment& segment : segments_) {
    if (used.contains(segment.number)) continue;
    rebuilt.left.push_back({FormatFileName(StoreFileKind::kSegment, segment.number),
                            fmt::format("records after {} up to {}", FormatLsn(segment.after),
                                        FormatLsn(segment.last))});
  }
  return rebuilt;
}

Result<std::optional<RebuiltManifest>> Rebuild::Run(std::optional<uint64_t> without) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.List(directory_));
  std::vector<uint64_t> logs;
  for (const std::string& name : names) {
    const auto parsed = ParseFileName(name);
    if (!parsed) continue;
    number_max_ = std::max(number_max_, parsed->number);
    if (parsed->kind == StoreFileKind::kSegment) logs.push_back(parsed->number);
    if (parsed->kind == StoreFileKind::kSnapshot && parsed->number != without)
      RETURN_IF_ERROR(ReadSnapshot(parsed->number, names));
  }
  std::sort(logs.begin(), logs.end());
  // All headers first: of a segment those records are kept that another one continues.
  RETURN_IF_ERROR(ReadHeaders(logs));
  for (auto segment = segments_.rbegin(); segment != segments_.rend(); ++segment)
    RETURN_IF_ERROR(ReadSegment(&*segment));
  JoinSegments();
  const std::optional<Start> start = ChooseStart();
  if (!start) return std::optional<RebuiltManifest>();
  return std::optional<RebuiltManifest>(Make(*start));
}

}  // namespace

Result<std::optional<RebuiltManifest>> RebuildManifest(FileSystem& files,
                                                       const std::string& directory,
                                                       std::optional<uint64_t> without) {
  return Rebuild(files, directory).Run(without);
}

}  // namespace cellar
