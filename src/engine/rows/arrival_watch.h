// ArrivalWatch: looks at the timestamps that clients bring. The contract takes all of them, but
// some are most likely a mistake, and none of them shows in the reply: milliseconds or seconds
// where microseconds count, moments to come, and cells that retention drops at once, so
// that nobody ever reads them. They are counted, and one of each kind is remembered, so that the
// server can tell the operator.
//
// Cells that get the server's time are not looked at: their path does not come by here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cellar {

enum class OddArrival : uint8_t { kInFuture, kDeadOnArrival, kNotMicros };
inline constexpr size_t kOddArrivals{3};

class ArrivalWatch {
 public:
  // Further ahead than this a cell is in the future; 0: none ever is.
  void set_future_max_micros(int64_t micros) { future_max_micros_ = micros; }

  // A command begins; what an earlier one has noted counts if it was kept.
  void Begin() { noted_ = {}; }
  // A cell of the command. `dead`: it will be dropped at once.
  void Note(std::string_view table, std::string_view column, int64_t timestamp_micros, bool dead,
            int64_t now_micros);
  // The command is carried out.
  void Keep() {
    if (noted_ != Counts{}) [[unlikely]]
      KeepNoted();
  }

  uint64_t count(OddArrival kind) const { return kept_[static_cast<size_t>(kind)]; }
  // One of a kind that came last, kept or not: "TS 5 of column 'f:a' in table 't'".
  const std::string& last(OddArrival kind) const { return last_[static_cast<size_t>(kind)]; }

 private:
  using Counts = std::array<uint64_t, kOddArrivals>;

  void KeepNoted();

  int64_t future_max_micros_{0};
  Counts noted_{};
  Counts kept_{};
  std::array<std::string, kOddArrivals> last_;
};

}  // namespace cellar
