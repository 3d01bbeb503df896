// See later_steps.h.
#include "store/offline/later_steps.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "base/os/object_store.h"
#include "engine/table/mutation.h"
#include "store/format/log_format.h"

namespace cellar {
namespace {

// Clocks are moved by fractions of a second all the time.
constexpr int64_t kWentBackMicros{1'000'000};

class Count {
 public:
  Count(FileSystem& files, Lsn last, int64_t last_micros)
      : files_(files), last_(last), last_micros_(last_micros) {}

  // false: there is no way on.
  bool ReadSegment(const FoundSegment& copy) {
    if (!ReadWholeFile(files_, copy.path, &bytes_).ok()) return false;
    std::string_view segment = bytes_;
    if (copy.end) segment = segment.substr(0, copy.end->offset);
    LogPosition position = LogPosition::BehindHeader(copy.header);
    position.highest = highest_;
    LogRecord record;
    std::string fault;
    LogStep step = LogStep::kRecord;
    while ((step = ReadRecord(segment, &position, &record, &fault)) == LogStep::kRecord)
      Take(record);
    end_ = position.last;
    highest_ = position.highest;
    return step == LogStep::kEnd;
  }
  // Where the last segment has ended.
  Lsn end() const { return end_; }

  LaterSteps later{};

 private:
  // Of the last record some steps may have been left out.
  void Take(const LogRecord& record) {
    if (record.kind != RecordKind::kCommand || record.lsn < last_) return;
    if (record.commit_micros <= last_micros_) return;
    uint64_t steps = std::max<uint64_t>(StepsOf(record.payload).count, 1);
    if (record.lsn == last_)
      steps = std::min(steps, static_cast<uint64_t>(record.commit_micros - last_micros_));
    later.count += steps;
    later.last_micros = record.commit_micros;
  }

  FileSystem& files_;
  const Lsn last_;
  const int64_t last_micros_;
  Lsn end_;
  Lsn highest_;
  std::string bytes_;
};

// One that can be read at once, if there is one.
const FoundSegment* NearCopy(const std::vector<FoundSegment>& copies) {
  const auto near = std::find_if(copies.begin(), copies.end(),
                                 [](const FoundSegment& copy) { return !IsObjectPath(copy.path); });
  return near == copies.end() ? nullptr : &*near;
}

}  // namespace

Steps StepsOf(std::string_view payload) {
  Steps steps;
  MutationReader reader(payload);
  int64_t stamp = 0;
  DecodedOp op;
  if (!reader.ReadStamp(&stamp)) return steps;
  while (reader.Next(&op)) {
    if (op.op == MutationOp::kStep) {
      ++steps.count;
    } else if (op.op == MutationOp::kPreImages) {
      steps.changes += op.number;
    } else if (op.op != MutationOp::kTable && op.op != MutationOp::kRow) {
      ++steps.changes;
    }
  }
  return steps;
}

LaterSteps CountLaterSteps(FileSystem& files, const StoreFiles& found, Lsn last,
                           int64_t last_micros) {
  Count count(files, last, last_micros);
  bool is_first = true;
  for (auto at = found.segments.begin(); at != found.segments.end(); ++at) {
    const SegmentHeader& header = at->second.front().header;
    const auto next = std::next(at);
    if (next != found.segments.end() && next->second.front().header.after < last) continue;
    const auto created = static_cast<int64_t>(header.created_micros);
    if (header.after_micros - created > kWentBackMicros) count.later.clock_went_back = true;
    const FoundSegment* const copy = NearCopy(at->second);
    const bool follows = is_first || header.after == count.end();
    if (copy == nullptr || !follows || !count.ReadSegment(*copy)) {
      count.later.is_all = false;
      break;
    }
    is_first = false;
  }
  return count.later;
}

}  // namespace cellar
