// Scan: reads a whole table in order through one connection, again and again, for throughput.
//
//   cellar   CSCAN table cursor COUNT n ..., the cursor of each reply going into the next command
//   redis    what takes its place there: ZRANGEBYLEX pages of n members of a sorted set of all
//            keys, then HGETALL of each, in one pipeline
//
// The values that came back are counted, so that a scan which returned too little shows.
#pragma once

#include <cstdint>
#include <string>

#include "cellar/status.h"
#include "phase.h"
#include "workload.h"

namespace cellar::benchmark {

struct ScanOptions {
  Dialect dialect{Dialect::kCellar};
  std::string table;         // cellar: the table; redis: the sorted set
  std::string key_prefix;    // redis: key = prefix and digits
  std::string cell_options;  // cellar: words added to each CSCAN
  uint32_t key_digits{12};
  uint64_t rows{0};  // redis: how many there are
  uint64_t page_rows{1000};
};

struct ScanResult {
  double seconds{0.0};
  uint64_t scans{0};
  uint64_t pages{0};
  uint64_t values{0};  // scalars of all replies: a cell is two, a row's key one, a cursor one
  std::string first_error;
  double server_cpu_seconds{-1.0};
  Histogram page_latency;
};

// Scans from end to end until options.seconds have passed, at least once.
Result<ScanResult> RunScan(const ScanOptions& scan, const PhaseOptions& options);

}  // namespace cellar::benchmark
