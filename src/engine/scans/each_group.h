// EachGroup: the group of rows (EACH) that a scan is in, and how many of it have been given out.
//
//   keys    a#1  a#2  a#3  a#4 ... a#999  b#1      EACH 1 2
//           ^    ^    full: the scan goes on behind everything that begins with a
//
// A scan tells it of each row that it gives out, and asks before it looks for the next one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/request/read_options.h"
#include "engine/rows/scan.h"

namespace cellar {

class EachGroup {
 public:
  // A scan begins with these options.
  void Begin(const std::optional<EachOptions>& each) {
    components_ = each ? each->components : 0;
    rows_max_ = each ? each->rows : kUnlimited;
    rows_ = 0;
    rows_before_ = 0;
    front_.clear();
    left_.clear();
    left_rows_ = 0;
  }
  // Goes on from a position, which stands in a group with this front.
  void Resume(const ScanPosition& from, std::string_view front) {
    if (!active()) return;
    rows_ = from.group_rows;
    rows_before_ = from.group_rows;
    front_.assign(front);
  }
  bool active() const { return components_ > 0; }
  // What a group has in common: so many of the first components.
  size_t components() const { return components_; }

  // A row has been given out, whose group has this front. REQUIRES: active().
  void Count(std::string_view front) {
    if (front != front_) {
      front_.assign(front);
      rows_ = 0;
    }
    rows_before_ = rows_;
    ++rows_;
  }
  // No other row of the group is wanted.
  bool full() const { return rows_ >= rows_max_; }
  // The scan jumps: gives the encoded components of the group that it leaves.
  std::string Leave() {
    left_rows_ = std::exchange(rows_, 0);
    left_ = std::exchange(front_, {});
    return left_;
  }
  // The group that was given out of last, and how many rows: what Resume takes.
  std::string_view last() const { return front_.empty() ? left_ : front_; }
  uint64_t last_rows() const { return front_.empty() ? left_rows_ : rows_; }
  // Given out so far, with the last one and without it.
  uint64_t rows() const { return rows_; }
  uint64_t rows_before() const { return rows_before_; }

 private:
  size_t components_{0};  // 0: there are no groups
  uint64_t rows_max_{kUnlimited};
  uint64_t rows_{0};
  uint64_t rows_before_{0};
  std::string front_;
  std::string left_;
  uint64_t left_rows_{0};
};

}  // namespace cellar
