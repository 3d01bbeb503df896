// Heat: what HEAT answers, as one picture needs it: a grid of one metric, ranges by steps of time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cellar/status.h"
#include "client/connection.h"

namespace cellar::heatmap {

struct Question {
  std::string table;
  std::string metric{"reads"};  // reads, writes, bytes
  std::string from;             // micros, or empty
  std::string to;
  std::string step{"1m"};
  uint32_t ranges{64};
};

struct Grid {
  std::string table;
  std::string metric;
  int64_t from_s{0};
  int64_t step_s{60};
  std::vector<std::string> keys;             // of each range the first, "-" of the first one
  std::vector<std::vector<uint64_t>> cells;  // by step, then range

  size_t steps() const { return cells.size(); }
  size_t ranges() const { return keys.size(); }
  uint64_t max() const;
  uint64_t min() const;  // of those that are not 0; 1 without one
  uint64_t total() const;
};

// A range and what it had over all steps.
struct HotRange {
  std::string first;
  std::string end;  // empty: the table's end
  uint64_t amount;
  double share;
};
// The largest, descending; none without anything.
std::vector<HotRange> Hottest(const Grid& grid, size_t count);

// Asks the server. An error reply has the server's words.
Result<Grid> Ask(client::Connection* connection, const Question& question);
// The same from a reply. kErr if that is no answer of HEAT.
Result<Grid> Read(const redisReply& reply, const std::string& metric);

// "14:05", in UTC, or "23 Nov 14:05" with the day.
std::string TimeText(int64_t unix_s, bool with_day);
// "1.5M", "90", "1.2G".
std::string NumberText(uint64_t number);
// For people: bytes that are no printable ASCII as \xHH, and at most `width` characters.
std::string KeyText(const std::string& key, size_t width);

}  // namespace cellar::heatmap
