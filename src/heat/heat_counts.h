// HeatCut and HeatCounts: the ranges into which a table's rows are cut, and what was counted in
// each of them.
//
//   HeatCut      "" | LH400#9 | QF1#2 | UA9#1        the first key (encoded) of each range
//   HeatCounts   reads [0 64 0 81920]  writes [128 0 0 64]  bytes [...]
//
// Counts of one cut can be added to those of another: where a range of the old one lies in several
// of the new one, which hold about the same number of bytes each, they share what it has.
//
// Packed, counts are a string of Varint64, for each metric until all its ranges are said: a number
// that is not zero, or a zero and how many zeros there are in a row.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
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
  // counts its memory; null: nobody does.
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

// Where the ranges of one cut, `from`, lie in another one, `to`.
class HeatPlaces {
 public:
  // O(n log n).
  HeatPlaces(const HeatCut& from, const HeatCut& to);

  size_t ranges() const { return wholes_.size(); }
  // The place in `to` at which a range begins and ends.
  double begin(size_t range) const { return begins_[range]; }
  double end(size_t range) const { return begins_[range + 1]; }
  // The one range of `to` in which this one lies; kSplit if it lies in several.
  size_t whole(size_t range) const { return wholes_[range]; }
  static constexpr size_t kSplit{SIZE_MAX};

  // What was counted in the last range lies between these keys only (`high` null: behind `low`).
  // Replaces what was said before. O(log n).
  void ClipLast(const HeatCut& to, std::string_view low, const std::string* high);
  void UnclipLast() { SetLast(last_begin_, static_cast<double>(to_ranges_)); }

 private:
  void SetLast(double begin, double end);
  void FindWhole(size_t range);

  size_t to_ranges_;
  std::vector<double> begins_;  // and the end of the last one
  std::vector<size_t> wholes_;
  double last_begin_;  // without a clip
};

class HeatCounts {
 public:
  explicit HeatCounts(size_t ranges) : ranges_(ranges), values_(ranges * kHeatMetrics) {}

  size_t ranges() const { return ranges_; }
  bool empty() const;
  double at(HeatMetric metric, size_t range) const {
    return values_[static_cast<size_t>(metric) * ranges_ + range];
  }
  // Of all ranges.
  std::span<const double> of(HeatMetric metric) const {
    return {values_.data() + static_cast<size_t>(metric) * ranges_, ranges_};
  }
  void Add(size_t range, const HeatAmounts& amounts);
  // Evenly between two places of the cut.
  void AddSpan(double begin, double end, const HeatAmounts& amounts);
  // What `other` has, of the cut whose ranges lie at `places` of this one's.
  void AddMapped(const HeatCounts& other, const HeatPlaces& places);
  // The same with Packed() counts.
  void AddPacked(std::string_view packed, const HeatPlaces& places);
  std::string Packed() const;
  size_t memory_bytes() const { return values_.capacity() * sizeof(double); }

 private:
  void Spread(size_t metric, double begin, double end, double value);

  size_t ranges_;
  std::vector<double> values_;  // by metric, then range
};

}  // namespace cellar
