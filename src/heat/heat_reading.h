// HeatReading: HEAT at work. Adds up what a HeatMap has kept of a table, frame by frame, in slices.
//
//   frames  [12:01 1m, cut A] [12:02 1m, cut A] [12:03 1m, cut B] ...  live
//                |                  |                  |                |   each range where it lies
//                v                  v                  v                v   among those shown
//   steps   [12:01 .......................] [12:15 ...................]
//
// A day of minutes is more than the loop may do at once: 1,440 frames of 256 ranges. Between two
// slices the map counts on. What is pushed behind the frames that were there in the beginning is
// not told; where frames have gone or have been joined, the reading begins anew.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cellar/status.h"
#include "heat/heat_counts.h"
#include "heat/heat_map.h"

namespace cellar {

struct HeatQuery {
  std::optional<int64_t> from_micros{};
  std::optional<int64_t> to_micros{};
  int64_t step_minutes{1};
  size_t ranges{64};
  // Encoded keys of the table that ranges begin with, but the first one: in place of its own.
  // Ascending and distinct.
  std::optional<std::vector<std::string>> keys{};
  bool head_only{false};  // nothing is to be read
};

struct HeatReport {
  int64_t from_minute{0};
  int64_t step_minutes{1};
  std::vector<std::string> keys;  // text of the first key of each range, "-" of the first one
  std::vector<std::optional<HeatCounts>> steps;  // nothing where nothing was counted
  std::vector<LargeRow> large;
  int64_t fine_minute{0};  // from there on single minutes are kept

  double at(size_t step, HeatMetric metric, size_t range) const {
    return steps[step] ? steps[step]->at(metric, range) : 0;
  }
};

class HeatReading {
 public:
  static constexpr size_t kAllFrames{SIZE_MAX};

  // ERR if the times are no range, or the step is finer than what is kept. `heat` outlives it.
  // O(frames), and a millisecond if the table's ranges have to be found anew.
  static Result<HeatReading> Begin(HeatMap* heat, const Table& table, const HeatQuery& query,
                                   int64_t now_micros);

  // Adds up so many frames more, each of some microseconds; true when all are in. ERR as Begin, if
  // meanwhile the map has become coarser.
  Result<bool> Pull(size_t frames);
  // REQUIRES: Pull said true.
  const HeatReport& report() const { return report_; }
  // Numbers that are still to be read, and those to be told, about.
  size_t numbers() const;
  size_t memory_bytes() const;

 private:
  // So often it begins anew; then it does the rest at once.
  static constexpr size_t kRestartsMax{16};

  HeatReading(HeatMap* heat, uint64_t table_id, std::vector<std::string> keys)
      : heat_(heat),
        table_id_(table_id),
        shown_(std::make_unique<HeatCut>(std::move(keys), nullptr)) {}

  // The table's, unless it is no longer counted.
  const HeatMap::TableHeat* Find() const;
  // ERR if a frame is longer than a step.
  Status Restart(const HeatMap::TableHeat& of);
  bool IsShown(const HeatMap::Frame& frame) const {
    return frame.minute + frame.minutes > report_.from_minute && frame.minute <= end_minute_;
  }
  // Null if the minute is not among those that are told.
  HeatCounts* StepOf(int64_t minute);

  HeatMap* heat_;
  uint64_t table_id_;
  int64_t end_minute_{0};  // the last one told
  std::unique_ptr<HeatCut> shown_;
  HeatReport report_;
  uint64_t generation_{0};  // of the frames that are being read
  size_t next_{0};          // of them
  size_t end_{0};
  size_t restarts_{0};
  const HeatCut* mapped_{nullptr};  // whose places are known
  std::optional<HeatPlaces> places_;
};

}  // namespace cellar
