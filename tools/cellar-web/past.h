// Past: what INFO has said of the server during the last day, for graphs. Kept here, not by the
// server, so it begins when this program does.
//
// A sample is taken every kStepSeconds, and one that could not be is a gap. Counters become rates
// between two neighbours; where one has fallen, the server has begun anew, and that is a gap too.
// The samples are a ring: 8 figures of 16 bytes, 17,280 times, so 2.3 MB at most.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "cellar/status.h"
#include "client/connection.h"

namespace cellar::web {

class Past {
 public:
  static constexpr size_t kFigures{8};
  static constexpr uint64_t kHoursMax{24};

  // Begins to sample, as the user in `server`.
  explicit Past(client::ConnectionOptions server);
  ~Past();
  Past(const Past&) = delete;
  Past& operator=(const Past&) = delete;

  // Appends {"from": Unix seconds, "step": seconds, "trouble": why there is no newest sample or
  // null, "figures": {name: [value or null ...]}} of the last hours.
  void Tell(uint64_t hours, std::string* json);

 private:
  static constexpr int64_t kStepSeconds{5};
  static constexpr size_t kSamplesMax{kHoursMax * 3600 / kStepSeconds};

  struct Sample {
    int64_t at_seconds;                              // Unix, by this machine's clock
    std::array<std::optional<double>, kFigures> of;  // nothing: a gap
  };

  void Run();
  void TakeSample(int64_t now_seconds);
  Result<std::string> AskInfo();

  const client::ConnectionOptions server_;
  std::optional<client::Connection> connection_;         // of the thread alone
  std::array<std::optional<double>, kFigures> counted_;  // the same: of the sample before
  int64_t counted_seconds_{0};
  std::mutex mutex_;
  std::deque<Sample> samples_;
  std::string trouble_;
  std::condition_variable wakes_;
  bool ends_{false};
  std::thread thread_;
};

}  // namespace cellar::web
