// HotKeys: which rows cost most, between HOTKEYS START and STOP: Redis 8.6's command.
//
//   by-cpu-time-us   "planes:LH400" 812  "planes:UA9" 77 ...
//   by-net-bytes     "planes:LH400" 90412 ...
//
// Of each metric the largest are found with a bounded number of counters (Metwally, Agrawal and
// El Abbadi: "Efficient computation of frequent and top-k elements in data streams"): a key that
// has no counter takes over the one with the least, and goes on counting from there. What that one
// had is the most by which the key can be overcounted; it is taken off what is told, so that no key
// is told to have had more than it had. A key with more than 1/counters of all is never missed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cellar {

// The largest sums by key.
class HeavyHitters {
 public:
  // At most this many counters, and about so many bytes of keys, but one key.
  HeavyHitters(size_t counters_max, size_t key_bytes_max);
  // O(log counters).
  void Add(std::string_view key, uint64_t amount);
  struct Hit {
    std::string_view key;
    uint64_t amount;  // at least, and not more than it had
  };
  // The `count` largest, descending; none that is 0.
  std::vector<Hit> Largest(size_t count) const;
  size_t memory_bytes() const;

 private:
  struct Counter {
    std::string key;
    uint64_t amount;
    uint64_t excess;  // which may be another key's
    size_t heap_at;
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view key) const { return std::hash<std::string_view>{}(key); }
  };

  void Swap(size_t a, size_t b);
  void Rise(size_t at);
  void Sink(size_t at);
  // The least of all goes; what it had.
  uint64_t RemoveLeast();

  size_t counters_max_;
  size_t key_bytes_max_;
  size_t key_bytes_{0};
  std::vector<Counter*> heap_;  // the least first; into counters_
  std::unordered_map<std::string, Counter, Hash, std::equal_to<>> counters_;
};

class HotKeys {
 public:
  struct Options {
    bool cpu{false};
    bool net{false};
    size_t count{10};
    int64_t duration_s{0};  // 0: until STOP
    uint64_t sample{1};
  };
  // Of the server since it started, for what it had meanwhile.
  struct Totals {
    uint64_t command_nanos{0};
    uint64_t net_bytes{0};
    int64_t user_micros{0};
    int64_t system_micros{0};
  };

  void Start(const Options& options, int64_t now_micros, const Totals& totals);
  // Nothing happens if it is not active.
  void Stop(int64_t now_micros, const Totals& totals);
  void Reset();
  // There is something to tell.
  bool there() const { return there_; }
  bool active() const { return active_; }
  // It is active, and its time is over.
  bool due(int64_t now_micros) const {
    return active_ && options_.duration_s > 0 && now_micros >= EndMicros();
  }
  int64_t EndMicros() const { return start_micros_ + options_.duration_s * 1'000'000; }
  const Options& options() const { return options_; }
  int64_t start_micros() const { return start_micros_; }
  int64_t duration_micros(int64_t now_micros) const;
  // Meanwhile. `now`: the totals as they are now.
  Totals Spent(const Totals& now) const;

  void Add(std::string_view key, uint64_t nanos, uint64_t bytes);
  uint64_t net_bytes() const { return net_bytes_; }
  const HeavyHitters& by_cpu() const { return by_cpu_; }
  const HeavyHitters& by_net() const { return by_net_; }
  size_t memory_bytes() const { return by_cpu_.memory_bytes() + by_net_.memory_bytes(); }

 private:
  static constexpr size_t kCountersPerKey{16};
  static constexpr size_t kCountersMin{256};
  static constexpr size_t kKeyBytesMax{1 << 20};

  bool there_{false};
  bool active_{false};
  Options options_;
  int64_t start_micros_{0};
  int64_t end_micros_{0};  // unless active
  Totals begin_;
  Totals end_;
  uint64_t net_bytes_{0};  // of what was looked at
  HeavyHitters by_cpu_{0, 0};
  HeavyHitters by_net_{0, 0};
};

}  // namespace cellar
