// See heat_counts.h.
#include "heat/heat_counts.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "base/assert.h"
#include "base/coding.h"
#include "base/inline.h"

namespace cellar {
namespace {

// What a string takes besides long keys.
size_t KeyBytes(const std::string& key) {
  return sizeof(std::string) + (key.capacity() > 15 ? key.capacity() + 1 : 0);
}

// The next number of what Packed() has written, where most have one or two bytes.
CELLAR_INLINE uint64_t TakePacked(std::string_view* packed) {
  if (packed->size() >= 2) [[likely]] {
    const auto low = static_cast<uint8_t>((*packed)[0]);
    const auto high = static_cast<uint8_t>((*packed)[1]);
    if (low < 0x80) {
      packed->remove_prefix(1);
      return low;
    }
    if (high < 0x80) {
      packed->remove_prefix(2);
      return (low & 0x7fU) | uint64_t{high} << 7;
    }
  }
  uint64_t value = 0;
  const bool read = GetVarint64(packed, &value);
  CELLAR_ASSERT(read);
  return value;
}

}  // namespace

HeatCut::HeatCut(std::vector<std::string> keys, size_t* counter)
    : keys_(std::move(keys)), counter_(counter) {
  CELLAR_ASSERT(!keys_.empty());
  CELLAR_ASSERT(keys_[0].empty());
  CELLAR_DEBUG_ASSERT(std::adjacent_find(keys_.begin(), keys_.end(), std::greater_equal<>()) ==
                      keys_.end());
  keys_.shrink_to_fit();
  bytes_ = sizeof(*this) + 16;  // shared_ptr's counts
  for (std::string& key : keys_) {
    key.shrink_to_fit();
    bytes_ += KeyBytes(key);
  }
  // Keys of a table mostly begin alike. Behind what they share, eight bytes tell most of them
  // apart, and these compare as one number.
  if (keys_.size() > 1) {
    const std::string& low = keys_[1];  // ascending: what these two share, all do
    const std::string& high = keys_.back();
    const auto differ = std::mismatch(low.begin(), low.end(), high.begin(), high.end());
    prefix_ = std::string_view(low).substr(0, static_cast<size_t>(differ.first - low.begin()));
  }
  heads_.reserve(keys_.size());
  for (const std::string& key : keys_) heads_.push_back(key.empty() ? 0 : HeadOf(key));
  bytes_ += heads_.capacity() * sizeof(uint64_t);
  if (counter_ != nullptr) *counter_ += bytes_;
}

HeatCut::~HeatCut() {
  if (counter_ == nullptr) return;
  CELLAR_ASSERT(*counter_ >= bytes_);
  *counter_ -= bytes_;
}

// REQUIRES: the key begins with the prefix.
uint64_t HeatCut::HeadOf(std::string_view key) const {
  CELLAR_DEBUG_ASSERT(key.starts_with(prefix_));
  char head[sizeof(uint64_t)]{};
  const std::string_view rest = key.substr(prefix_.size());
  std::copy_n(rest.data(), std::min(rest.size(), sizeof(head)), head);
  return DecodeBigEndian64(head);
}

size_t HeatCut::RangeOf(std::string_view key) const {
  if (keys_.size() == 1) return 0;
  const int order = key.substr(0, prefix_.size()).compare(prefix_);
  // Without the common prefix a key lies before all ranges but the first, or in the last one.
  if (order != 0) return order < 0 ? 0 : keys_.size() - 1;
  const uint64_t head = HeadOf(key);
  const auto behind = std::upper_bound(heads_.begin() + 1, heads_.end(), head);
  auto range = static_cast<size_t>(behind - heads_.begin()) - 1;
  // Where heads are the same the whole keys decide.
  while (range > 0 && heads_[range] == head && keys_[range] > key) --range;
  CELLAR_DEBUG_ASSERT(keys_[range] <= key);
  CELLAR_DEBUG_ASSERT(range + 1 == keys_.size() || key < keys_[range + 1]);
  return range;
}

double HeatCut::PlaceOf(std::string_view key) const {
  const size_t range = RangeOf(key);
  // Where in a range a key lies nobody knows: in the middle.
  return static_cast<double>(range) + (keys_[range] == key ? 0 : 0.5);
}

std::vector<std::string> HeatCut::Fewer(size_t ranges) const {
  CELLAR_ASSERT(ranges > 0);
  const size_t count = std::min(ranges, keys_.size());
  std::vector<std::string> fewer;
  fewer.reserve(count);
  for (size_t i = 0; i < count; ++i) fewer.push_back(keys_[i * keys_.size() / count]);
  return fewer;
}

HeatPlaces::HeatPlaces(const HeatCut& from, const HeatCut& to)
    : to_ranges_(to.size()), wholes_(from.size()) {
  begins_.reserve(from.size() + 1);
  for (const std::string& key : from.keys()) begins_.push_back(to.PlaceOf(key));
  begins_.push_back(static_cast<double>(to.size()));
  CELLAR_DEBUG_ASSERT(std::is_sorted(begins_.begin(), begins_.end()));
  last_begin_ = begins_[from.size() - 1];
  for (size_t i = 0; i < wholes_.size(); ++i) FindWhole(i);
}

void HeatPlaces::FindWhole(size_t range) {
  const auto first = static_cast<size_t>(begins_[range]);
  const bool is_whole = begins_[range + 1] <= static_cast<double>(first + 1);
  wholes_[range] = is_whole ? std::min(first, to_ranges_ - 1) : kSplit;
}

void HeatPlaces::SetLast(double begin, double end) {
  CELLAR_ASSERT(begin <= end);
  const size_t last = wholes_.size() - 1;
  begins_[last] = begin;
  begins_[last + 1] = end;
  FindWhole(last);
  if (last > 0) FindWhole(last - 1);
}

void HeatPlaces::ClipLast(const HeatCut& to, std::string_view low, const std::string* high) {
  const double begin = std::max(last_begin_, to.PlaceOf(low));
  SetLast(begin,
          high != nullptr ? std::max(begin, to.PlaceOf(*high)) : static_cast<double>(to_ranges_));
}

bool HeatCounts::empty() const {
  return std::all_of(values_.begin(), values_.end(), [](double value) { return value == 0; });
}

void HeatCounts::Add(size_t range, const HeatAmounts& amounts) {
  CELLAR_ASSERT(range < ranges_);
  values_[range] += amounts.reads;
  values_[ranges_ + range] += amounts.writes;
  values_[2 * ranges_ + range] += amounts.bytes;
}

void HeatCounts::Spread(size_t metric, double begin, double end, double value) {
  CELLAR_DEBUG_ASSERT(metric < kHeatMetrics);
  CELLAR_DEBUG_ASSERT(begin >= 0);
  double* const values = values_.data() + metric * ranges_;
  const size_t first = std::min(static_cast<size_t>(begin), ranges_ - 1);
  const size_t last = std::min(static_cast<size_t>(end), ranges_ - 1);
  if (first == last || end <= begin) {
    values[first] += value;
    return;
  }
  for (size_t i = first; i <= last; ++i) {
    const auto at = static_cast<double>(i);
    const double overlap = std::min(at + 1, end) - std::max(at, begin);
    if (overlap > 0) values[i] += value * overlap / (end - begin);
  }
}

void HeatCounts::AddSpan(double begin, double end, const HeatAmounts& amounts) {
  if (amounts.reads > 0) Spread(0, begin, end, amounts.reads);
  if (amounts.writes > 0) Spread(1, begin, end, amounts.writes);
  if (amounts.bytes > 0) Spread(2, begin, end, amounts.bytes);
}

void HeatCounts::AddMapped(const HeatCounts& other, const HeatPlaces& places) {
  CELLAR_ASSERT(places.ranges() == other.ranges_);
  for (size_t metric = 0; metric < kHeatMetrics; ++metric) {
    for (size_t i = 0; i < other.ranges_; ++i) {
      const double value = other.values_[metric * other.ranges_ + i];
      if (value > 0) Spread(metric, places.begin(i), places.end(i), value);
    }
  }
}

void HeatCounts::AddPacked(std::string_view packed, const HeatPlaces& places) {
  const size_t ranges = places.ranges();
  for (size_t metric = 0; metric < kHeatMetrics; ++metric) {
    double* const values = values_.data() + metric * ranges_;
    for (size_t i = 0; i < ranges; ++i) {
      const uint64_t value = TakePacked(&packed);
      if (value == 0) {
        const uint64_t zeros = TakePacked(&packed);
        CELLAR_DEBUG_ASSERT(zeros > 0);
        CELLAR_DEBUG_ASSERT(zeros <= ranges - i);
        i += zeros - 1;
        continue;
      }
      const size_t whole = places.whole(i);
      if (whole != HeatPlaces::kSplit) [[likely]] {
        CELLAR_DEBUG_ASSERT(whole < ranges_);
        values[whole] += static_cast<double>(value);
      } else {
        Spread(metric, places.begin(i), places.end(i), static_cast<double>(value));
      }
    }
  }
  CELLAR_ASSERT(packed.empty());
}

std::string HeatCounts::Packed() const {
  std::string packed;
  for (size_t metric = 0; metric < kHeatMetrics; ++metric) {
    uint64_t zeros = 0;
    const auto end_zeros = [&packed, &zeros] {
      if (zeros == 0) return;
      PutVarint64(&packed, 0);
      PutVarint64(&packed, std::exchange(zeros, 0));
    };
    for (size_t i = 0; i < ranges_; ++i) {
      const auto value = static_cast<uint64_t>(std::llround(values_[metric * ranges_ + i]));
      if (value == 0) {
        ++zeros;
        continue;
      }
      end_zeros();
      PutVarint64(&packed, value);
    }
    end_zeros();
  }
  packed.shrink_to_fit();
  return packed;
}

}  // namespace cellar
