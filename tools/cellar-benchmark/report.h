// What a run prints at its end: a table for people, JSON for programs (tools/bench reads it).
#pragma once

#include <string>

#include "phase.h"
#include "scan.h"

namespace cellar::benchmark {

std::string PhaseTable(const std::string& title, const PhaseResult& result);
std::string PhaseJson(const std::string& title, const PhaseOptions& options,
                      const PhaseResult& result);
std::string ScanTable(const ScanResult& result);
std::string ScanJson(const ScanResult& result);

}  // namespace cellar::benchmark
