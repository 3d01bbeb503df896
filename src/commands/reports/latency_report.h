// LATENCY GRAPH and LATENCY DOCTOR: the samples of the latency monitor for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "commands/session/slow_log.h"

namespace cellar {

// Columns of #, _ and | over the ages of the samples.
std::string LatencyGraph(std::string_view name, const LatencyMonitor::Event& event, int64_t now_s);

std::string LatencyAdvice(const LatencyMonitor& monitor, int64_t threshold_millis);

}  // namespace cellar
