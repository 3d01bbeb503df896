// MoveTrials: what tests have a node do to moves of tablets: to stop itself at a step, and to have
// less patience. DEBUG CLUSTER says it; nothing else does.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "base/text/ascii.h"

namespace cellar {

class MoveTrials {
 public:
  // Right behind what is logged there: the record is not with the log's file yet.
  enum class Step : uint8_t {
    kBegin,  // donor
    kStage,  // recipient
    kRun,    // recipient: a part of the copy
    kTail,   // recipient: a part of what has changed since
    kGive,   // donor
    kOwn,    // recipient
    kDone,   // donor
    kMap,    // director: the job is over
  };
  static constexpr std::string_view kWords{"begin, stage, run, tail, give, own, done or map"};
  static std::optional<Step> Parse(std::string_view word) {
    constexpr std::array<std::pair<std::string_view, Step>, 8> kSteps{{{"begin", Step::kBegin},
                                                                       {"stage", Step::kStage},
                                                                       {"run", Step::kRun},
                                                                       {"tail", Step::kTail},
                                                                       {"give", Step::kGive},
                                                                       {"own", Step::kOwn},
                                                                       {"done", Step::kDone},
                                                                       {"map", Step::kMap}}};
    for (const auto& [name, step] : kSteps)
      if (EqualsIgnoreCase(word, name)) return step;
    return std::nullopt;
  }

  void StopAt(std::optional<Step> step) { stop_at_ = step; }
  // Whether the node is to stop itself now: once.
  bool TakeStop(Step step) {
    if (stop_at_ != step) return false;
    stop_at_.reset();
    return true;
  }
  // In place of the time after which a job that comes no further is cancelled.
  std::optional<int64_t> patience_micros{};
  // In place of kBusyPercent (balance_plan.h).
  std::optional<uint64_t> busy_percent{};
  // In place of kQuietMicros (tablet_memory.h).
  std::optional<int64_t> quiet_micros{};
  // In place of kLeadsEveryMicros (server/lead_balancer.h).
  std::optional<int64_t> leads_micros{};

 private:
  std::optional<Step> stop_at_;
};

}  // namespace cellar
