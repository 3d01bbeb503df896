// ServerStats: the figures behind INFO that no layer below keeps. Plain counters, changed where
// things happen, read by INFO, set back by CONFIG RESETSTAT.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

namespace cellar {

// A rate over the last 16 samples, taken every 100 ms (Redis' instantaneous metrics).
class RateMeter {
 public:
  static constexpr size_t kSamples{16};
  // `total` is a counter that only grows.
  void Sample(uint64_t total, int64_t now_micros) {
    if (last_micros_ != 0 && now_micros > last_micros_) {
      const auto micros = static_cast<uint64_t>(now_micros - last_micros_);
      samples_[next_] = (total - last_total_) * 1'000'000 / micros;
      next_ = (next_ + 1) % kSamples;
    }
    last_total_ = total;
    last_micros_ = now_micros;
  }
  uint64_t PerSecond() const {
    uint64_t sum = 0;
    for (const uint64_t sample : samples_) sum += sample;
    return sum / kSamples;
  }

 private:
  std::array<uint64_t, kSamples> samples_{};
  size_t next_{0};
  uint64_t last_total_{0};
  int64_t last_micros_{0};
};

struct ServerStats {
  int64_t start_micros{0};  // wall clock
  int64_t start_monotonic_micros{0};
  int64_t attack_told_micros{0};  // wall clock; when the log last told of HTTP on the port
  uint64_t connections{0};
  uint64_t rejected_connections{0};
  uint64_t commands{0};
  uint64_t input_bytes{0};
  uint64_t output_bytes{0};
  uint64_t reads{0};
  uint64_t writes{0};
  // Of these by I/O threads.
  uint64_t threaded_reads{0};
  uint64_t threaded_writes{0};
  uint64_t unexpected_errors{0};
  uint64_t error_replies{0};
  uint64_t query_buffer_limit_disconnections{0};
  uint64_t output_buffer_limit_disconnections{0};
  uint64_t evicted_clients{0};
  // Tables, rows and cells that were asked for by name (EXISTS, CGET, CROW ...), there or not.
  uint64_t key_hits{0};
  uint64_t key_misses{0};
  uint64_t auth_failures{0};
  uint64_t acl_denied_command{0};
  uint64_t acl_denied_key{0};
  uint64_t acl_denied_channel{0};
  void CountLookup(bool found) { ++(found ? key_hits : key_misses); }
  uint64_t reads_beside{0};  // that workers have gone on with (read-threads)
  uint64_t turns{0};         // of the loop, in which there was something to do
  uint64_t turn_nanos{0};    // that they took
  uint64_t turn_nanos_max{0};
  uint64_t memory_peak_bytes{0};
  std::map<std::string, uint64_t, std::less<>> errors;  // by the first word of the reply
  RateMeter commands_rate;
  RateMeter input_rate;
  RateMeter output_rate;
  RateMeter link_input_rate;
  RateMeter link_output_rate;
  RateMeter turns_rate;
  RateMeter turn_nanos_rate;
};

}  // namespace cellar
