// Phase: one run of a workload from several threads, with what was measured.
//
// Each thread owns its connections and an epoll instance; threads share nothing but a few counters.
// A connection works in batches of at most `pipeline` operations: it renders them into one buffer,
// sends it with one call, and begins the next batch when the last reply has come.
//
//   closed loop   a free connection begins the next batch at once; latency from sending
//   open loop     operations are due at a fixed rate, whatever the server does; a free connection
//                 takes those that are due by now. Latency counts from the moment when an operation
//                 was due, so that waiting for a free connection is in it (no coordinated omission)
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cellar/status.h"
#include "histogram.h"
#include "workload.h"

namespace cellar::benchmark {

struct PhaseOptions {
  std::string host{"127.0.0.1"};
  uint16_t port{6479};
  uint32_t threads{1};
  uint32_t connections{50};
  uint32_t pipeline{1};
  double rate_per_second{0.0};       // 0: closed loop
  uint64_t expected_interval_ns{0};  // closed loop: Histogram::RecordCorrected; 0: none
  double seconds{0.0};               // 0: no limit of time
  uint64_t operations{0};            // 0: no limit of number
  KeyDistributionKind keys{KeyDistributionKind::kUniform};
  uint64_t key_count{1};     // keys that are there when the phase begins
  uint64_t first_insert{1};  // the number that the first insert takes
  uint64_t seed{1};
  bool progress{true};                  // a line on standard error each second
  std::vector<std::string> on_connect;  // sent by every connection before anything else
  int32_t server_pid{0};                // whose CPU time is taken; 0: nobody's
};

struct PhaseSecond {
  double seconds{0.0};  // since the beginning
  uint64_t operations{0};
  uint64_t p99_ns{0};
};

struct PhaseResult {
  double seconds{0.0};
  uint64_t operations{0};
  uint64_t commands{0};
  uint64_t errors{0};
  uint64_t nulls{0};
  std::string first_error;
  uint64_t bytes_sent{0};
  uint64_t bytes_received{0};
  double server_cpu_seconds{-1.0};  // -1: not known
  double client_cpu_seconds{0.0};
  Histogram all;
  std::map<std::string, Histogram> by_operation;
  std::vector<PhaseSecond> per_second;
};

// Runs `workload`. kIo if a connection cannot be made or breaks; errors in replies are counted.
// REQUIRES: a limit of time or of number.
Result<PhaseResult> RunPhase(const Workload& workload, const PhaseOptions& options);

}  // namespace cellar::benchmark
