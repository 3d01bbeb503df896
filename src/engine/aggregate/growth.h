// Growth: how much counters have grown, for DELTA and RATE. Each column of a row is a counter of
// its own, told from one version to the next in time; where it has fallen it had begun again from
// 0, and what it has come to since is added. The sum is exact.
//
// The versions of a column come one after the other, up or down in time, and rows are never cut,
// so parts of a table add up.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/aggregate/aggregate_value.h"
#include "engine/aggregate/cell_place.h"
#include "engine/aggregate/exact_sum.h"

namespace cellar {

class Growth {
 public:
  Growth() = default;
  ~Growth() { sum_.Free(); }
  Growth(const Growth&) = delete;
  Growth& operator=(const Growth&) = delete;

  void Add(const CellPlace& place, const Number& number);
  void Add(const Growth& other);

  bool empty() const { return last_micros_ < first_micros_; }
  const ExactSum& sum() const { return sum_; }
  // From the first to the last cell. REQUIRES: not empty().
  uint64_t micros() const { return static_cast<uint64_t>(last_micros_ - first_micros_); }
  size_t heap_bytes() const { return sum_.heap_bytes(); }
  // For another node, which takes it for the same.
  void Encode(std::string* to) const;
  // REQUIRES: nothing has been added. False: these are not the bytes of one.
  [[nodiscard]] bool Decode(std::string_view* from);

 private:
  void AddStep(const Number& earlier, const Number& later);

  ExactSum sum_;
  uint64_t column_{0};  // of the cell added last
  Number number_;       // of it
  int64_t micros_{0};   // of it
  int64_t first_micros_{INT64_MAX};
  int64_t last_micros_{0};
};

}  // namespace cellar
