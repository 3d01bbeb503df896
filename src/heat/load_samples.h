// LoadSamples: which rows the commands of the last seconds were about, and what they cost. From it
// the director of a cluster learns what each tablet takes of its node's time, and where half of
// that is before (cluster/balance_plan.h).
//
// By lot, as HEAT, of which it is independent: of so many commands one is kept, for all of them.
// How many those are goes by what comes, so that there are some hundred to two thousand in the
// window. A command counts with the time that it was carried out in and kCommandNanos for what the
// loop has with it besides. One that is slow counts whole, and for others no more than
// kOthersNanosMax: alone it says nothing of them. One that goes over rows counts where it has come
// to, and what it does in slices by its time: one slice is kept for about kSliceNanos of them.
// Commands that name no row and go over none are not seen, nor is what other threads do.
//
// It belongs to the loop's thread, is in no log and in no file, and begins empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cellar {

struct RangeLoad {
  uint64_t permille{0};  // of a core
  // If one row has more than half of that: the row. Else a row where about half is before, which is
  // not the first one; empty: too little is known, or there is no such row, or its key is long.
  std::string middle{};
  uint64_t top_percent{0};  // of that, what the row has that has most, without walks
};

class LoadView;

class LoadSamples {
 public:
  static constexpr int64_t kWindowMicros{10'000'000};
  static constexpr size_t kSamplesMax{2'048};
  static constexpr uint64_t kCommandNanos{500};
  static constexpr uint64_t kOthersNanosMax{100'000'000};
  static constexpr uint64_t kSliceNanos{10'000'000};
  // Of longer keys so much is kept; they are no middle.
  static constexpr size_t kKeyBytesMax{256};

  // Forgets everything. Times are monotonic.
  void Restart(int64_t now_micros);
  // The next one to be looked at is one of so many, by lot.
  uint64_t distance() const { return distance_; }
  // One of `commands` has taken so long, at that row.
  struct Row {
    uint64_t table_id{0};
    std::string_view key{};
    bool is_whole{true};  // else what keys begin with, which is no middle
    bool is_walk{false};  // it went over rows up to there: that one is not hot
  };
  void Add(const Row& row, uint64_t nanos, uint64_t commands, int64_t now_micros);
  // Where the command that goes over rows has come to, when the node had finished so many commands:
  // one of them, an entry or a row.
  struct Place {
    uint64_t table_id{0};
    std::string entry_key{};
    uint64_t commands{UINT64_MAX};
  };
  // Remembered until the next one comes.
  void NotePlace(uint64_t table_id, std::string_view entry_key, uint64_t commands) {
    place_.table_id = table_id;
    place_.entry_key.assign(entry_key);
    place_.commands = commands;
  }
  void ForgetPlace() { place_.commands = UINT64_MAX; }
  const Place& place() const { return place_; }
  // What there is now. O(samples log samples)
  LoadView View(int64_t now_micros);
  size_t size() const { return samples_.size(); }

 private:
  friend class LoadView;
  static constexpr size_t kFewSamples{512};
  static constexpr int64_t kTightenMicros{1'000'000};
  struct Sample {
    uint64_t table_id;
    std::string key;
    uint64_t nanos;  // of all that it stands for
    int64_t micros;
    bool is_whole;  // the key
    bool is_walk;
  };
  void Expire(int64_t now_micros);
  void Thin();

  std::deque<Sample> samples_;
  uint64_t distance_{1};
  int64_t begin_micros_{0};
  int64_t tighten_micros_{0};  // the distance becomes no smaller before
  Place place_;
};

// Ranges of tables, as of one moment.
class LoadView {
 public:
  // Of row keys in [begin, end); an empty end is none. O(log samples + those in it)
  RangeLoad Of(uint64_t table_id, std::string_view begin, std::string_view end) const;

 private:
  friend class LoadSamples;
  // Fewer say nothing about where half of them are.
  static constexpr size_t kMiddleSamplesMin{40};

  std::vector<LoadSamples::Sample> samples_;  // by table and key
  int64_t window_micros_{1};
};

}  // namespace cellar
