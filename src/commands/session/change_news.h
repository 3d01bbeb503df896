// ChangeNews: what this node has changed, as names of rows and tables (tracking.h), for nodes of
// other sets whose clients track. Each asks for what is new again and again (CLUSTER CHANGED), says
// up to where it knows, and is answered when there is more.
//
//   | first_ ... | ... end |      names in the order of the changes, numbered
//
// Only while somebody asks, and only the newest: who asks for older ones, or for those of another
// epoch, has missed some. An epoch is a time for which somebody was asking and this node led.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>

namespace cellar {

class ChangeNews {
 public:
  // Whether what changes is to be added.
  bool wanted() const { return !epoch_.empty(); }
  // Somebody asks, of this node as the leader of `term`. `run_id`: of the process.
  void Ask(int64_t now_micros, uint64_t term, std::string_view run_id);
  // Nobody may have asked for a long time: then nothing is kept any more. Monotonic time.
  void OnTick(int64_t now_micros);
  // An empty name: everything. REQUIRES: wanted().
  void Add(std::string_view name);

  const std::string& epoch() const { return epoch_; }
  uint64_t end() const { return first_ + names_.size(); }
  // Whether nothing behind `number` of that epoch was missed.
  bool Knows(std::string_view epoch, uint64_t number) const {
    return wanted() && epoch == epoch_ && number >= first_ && number <= end();
  }
  // REQUIRES: one of those that are kept.
  const std::string& at(uint64_t number) const { return names_[number - first_]; }
  size_t memory_bytes() const { return bytes_; }

  // Somebody has been told of all before `number`.
  void NoteTold(uint64_t number) { told_ = std::max(told_, number); }
  // Somebody waits for the next one. Whether that is so is forgotten.
  void AwaitNext() { is_awaited_ = true; }
  bool TakeAwaited() { return std::exchange(is_awaited_, false); }

  static constexpr size_t kBytesMax{1 << 20};
  static constexpr int64_t kAskedMicros{10'000'000};

 private:
  void Clear();

  std::string epoch_;  // empty: nobody asks
  uint64_t epochs_{0};
  uint64_t term_{0};
  int64_t asked_micros_{0};
  std::deque<std::string> names_;
  uint64_t first_{0};
  uint64_t told_{0};  // somebody knows all before it
  size_t bytes_{0};
  bool is_awaited_{false};
};

}  // namespace cellar
