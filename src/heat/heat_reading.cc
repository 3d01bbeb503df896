// See heat_reading.h.
#include "heat/heat_reading.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "engine/table/table.h"

namespace cellar {
namespace {

Status RangeError(std::string text) { return Status::Error(ErrorCode::kErr, std::move(text)); }

}  // namespace

// Settles what is to be shown before anything is read: from when to when in whole steps, and the
// ranges, which are those of now. FROM before all that is kept begins with the oldest frame;
// without FROM, with the oldest minute.
Result<HeatReading> HeatReading::Begin(HeatMap* heat, const Table& table, const HeatQuery& query,
                                       int64_t now_micros) {
  CELLAR_ASSERT(query.step_minutes > 0);
  CELLAR_ASSERT(query.ranges > 0);
  const int64_t now = now_micros / kMinuteMicros;
  HeatMap::TableHeat* const of = heat->Find(table, now_micros);
  if (of != nullptr) heat->CutIfChanged(table, of, now_micros);

  int64_t oldest = now;
  int64_t finest = now;
  int64_t fine = 0;
  if (of != nullptr) {
    for (const HeatMap::Frame& frame : of->frames) {
      oldest = std::min(oldest, frame.minute);
      if (frame.minutes == 1) finest = std::min(finest, frame.minute);
      if (frame.minutes > 1) fine = std::max(fine, frame.minute + frame.minutes);
    }
  }
  const int64_t to = query.to_micros.value_or(now_micros) / kMinuteMicros;
  int64_t from = finest;
  if (query.from_micros) {
    if (*query.from_micros > query.to_micros.value_or(now_micros)) {
      return RangeError("FROM is behind TO");
    }
    from = std::max(*query.from_micros / kMinuteMicros, std::min(oldest, to));
  }
  from = std::min(from, to) / query.step_minutes * query.step_minutes;

  // Where nothing is counted: one range, and nothing in it.
  std::vector<std::string> keys =
      of != nullptr && !query.keys ? of->cut->Fewer(query.ranges) : std::vector<std::string>(1);
  if (query.keys) keys.insert(keys.end(), query.keys->begin(), query.keys->end());
  HeatReading reading(heat, table.id(), std::move(keys));
  reading.end_minute_ = std::min(to, std::max(now, from));
  HeatReport& report = reading.report_;
  report.from_minute = from;
  report.step_minutes = query.step_minutes;
  report.fine_minute = fine;
  report.steps.resize(static_cast<size_t>((reading.end_minute_ - from) / query.step_minutes + 1));
  for (const std::string& key : reading.shown_->keys()) {
    std::string scratch;
    report.keys.emplace_back(key.empty() ? "-" : table.schema().key.TextOf(key, &scratch));
  }
  if (of == nullptr || query.head_only) return reading;
  report.large = of->large;
  RETURN_IF_ERROR(reading.Restart(*of));
  return reading;
}

const HeatMap::TableHeat* HeatReading::Find() const {
  const auto found = heat_->tables_.find(table_id_);
  return found == heat_->tables_.end() ? nullptr : &found->second;
}

HeatCounts* HeatReading::StepOf(int64_t minute) {
  if (minute < report_.from_minute || minute > end_minute_) return nullptr;
  const auto index = static_cast<size_t>((minute - report_.from_minute) / report_.step_minutes);
  CELLAR_ASSERT(index < report_.steps.size());
  std::optional<HeatCounts>& step = report_.steps[index];
  if (!step) step.emplace(shown_->size());
  return &*step;
}

// From the first frame on: at the beginning, and whenever frames have gone or have been joined
// since.
Status HeatReading::Restart(const HeatMap::TableHeat& of) {
  for (const HeatMap::Frame& frame : of.frames) {
    if (IsShown(frame) && report_.step_minutes % frame.minutes != 0) {
      return RangeError("STEP must be a multiple of 15m where only that is kept");
    }
  }
  for (std::optional<HeatCounts>& step : report_.steps) step.reset();
  generation_ = of.generation;
  next_ = 0;
  end_ = of.frames.size();
  mapped_ = nullptr;
  HeatCounts* const live = of.live_counts ? StepOf(of.live_minute) : nullptr;
  if (live != nullptr) live->AddMapped(of.live, HeatMap::PlacesOf(*of.cut, of.tail, *shown_));
  return Status::Ok();
}

Result<bool> HeatReading::Pull(size_t frames) {
  if (next_ == end_) return true;
  const HeatMap::TableHeat* const of = Find();
  if (of == nullptr) {  // it is counted no more: what was read of it is told
    next_ = end_;
    return true;
  }
  if (of->generation != generation_) {
    RETURN_IF_ERROR(Restart(*of));
    ++restarts_;
  }
  // Overtaken too often: it reads the rest at once, or it might never end.
  if (restarts_ > kRestartsMax) frames = kAllFrames;
  CELLAR_ASSERT(end_ <= of->frames.size());
  for (; next_ < end_ && frames > 0; ++next_) {
    const HeatMap::Frame& frame = of->frames[next_];
    HeatCounts* const step = IsShown(frame) ? StepOf(frame.minute) : nullptr;
    if (step == nullptr) continue;
    // Frames with the same cut mostly follow each other: where its ranges lie is found once for all
    // of them.
    if (mapped_ != frame.cut.get()) {
      mapped_ = frame.cut.get();
      places_.emplace(*mapped_, *shown_);
    }
    frame.tail.Clip(*shown_, &*places_);
    step->AddPacked(frame.packed, *places_);
    --frames;
  }
  return next_ == end_;
}

size_t HeatReading::numbers() const {
  CELLAR_ASSERT(next_ <= end_);
  return ((end_ - next_) * HeatMap::kRangesMax + report_.steps.size() * shown_->size()) *
         kHeatMetrics;
}

size_t HeatReading::memory_bytes() const {
  return report_.steps.size() *
         (sizeof(report_.steps[0]) + shown_->size() * kHeatMetrics * sizeof(double));
}

}  // namespace cellar
