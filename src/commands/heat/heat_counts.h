// HeatCut and HeatCounts: the ranges into which a table's rows are cut, and what was counted in
// each of them.
//
//   HeatCut      "" | LH400#9 | QF1#2 | UA9#1        the first key (encoded) of each range
//   HeatCounts   reads [0 64 0 81920]  writes [128 0 0 64]  bytes [...]
//
// Counts of one cut can be added to those of another: where a range of the old one lies in several
// of the new one, which hold about the same number of bytes each, they share what it has.
//
// Packed, counts are a string: for each metric, until all ranges are said, how many zeros there
// are, and the number behind them, as Varint64.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cellar {

enum class HeatMetric : uint8_t { kReads, kWrites, kBytes };
inline constexpr size_t kHeatMetrics{3};

// What something cost, by metric.
struct HeatAmounts {
  double reads{0};  // rows
  double writes{0};
  double bytes{0};  // both ways
};

class HeatCut {
 public:
  // `keys` are ascending and distinct, the first one is empty. `counter`, which outlives the cut,
  // counts its memory.
  HeatCut(std::vector<std::string> keys, size_t* counter);
  ~HeatCut();
  HeatCut(const HeatCut&) = delete;
  HeatCut& operator=(const HeatCut&) = delete;

  const std::vector<std::string>& keys() const { return keys_; }
  size_t size() const { return keys_.size(); }
  // Which range holds the key. O(log n).
  size_t RangeOf(std::string_view key) const;
  // Where the key stands, in ranges: 3 if it begins range 3, 3.5 somewhere inside.
  double PlaceOf(std::string_view key) const;
  // Every n-th key of `ranges` ones, evenly.
  std::vector<std::string> Fewer(size_t ranges) const;

 private:
  uint64_t HeadOf(std::string_view key) const;

  std::vector<std::string> keys_;
  // What all keys but the first begin with, and of each the eight bytes behind that, as a number:
  // mostly these are all that has to be compared.
  std::string_view prefix_;
  std::vector<uint64_t> heads_;
  size_t bytes_{0};
  size_t* counter_;
};

using HeatCutPointer = std::shared_ptr<const HeatCut>;

// Where the ranges of one cut lie in another one: the place at which each of them begins.
std::vector<double> PlacesIn(const HeatCut& from, const HeatCut& to);

class HeatCounts {
 public:
  explicit HeatCounts(size_t ranges) : ranges_(ranges), values_(ranges * kHeatMetrics) {}

  size_t ranges() const { return ranges_; }
  bool empty() const;
  double at(HeatMetric metric, size_t range) const {
    return values_[static_cast<size_t>(metric) * ranges_ + range];
  }
  void Add(size_t range, const HeatAmounts& amounts);
  // Evenly between two places of the cut.
  void AddSpan(double begin, double end, const HeatAmounts& amounts);
  // What `other` has, of the cut whose ranges begin at `places` of this one's.
  void AddMapped(const HeatCounts& other, const std::vector<double>& places);
  // The same with Packed() counts.
  void AddPacked(std::string_view packed, const std::vector<double>& places);
  std::string Packed() const;
  size_t memory_bytes() const { return values_.capacity() * sizeof(double); }

 private:
  void Spread(size_t metric, double begin, double end, double value);

  size_t ranges_;
  std::vector<double> values_;  // by metric, then range
};

}  // namespace cellar
