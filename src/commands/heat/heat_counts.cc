// See heat_counts.h.
#include "commands/heat/heat_counts.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/assert.h"
#include "base/coding.h"

namespace cellar {
namespace {

// What a string takes besides long keys.
size_t KeyBytes(const std::string& key) {
  return sizeof(std::string) + (key.capacity() > 15 ? key.capacity() + 1 : 0);
}

}  // namespace

HeatCut::HeatCut(std::vector<std::string> keys, size_t* counter)
    : keys_(std::move(keys)), counter_(counter) {
  CELLAR_ASSERT(!keys_.empty());
  CELLAR_ASSERT(keys_[0].empty());
  keys_.shrink_to_fit();
  bytes_ = sizeof(*this) + 16;  // shared_ptr's counts
  for (std::string& key : keys_) {
    key.shrink_to_fit();
    bytes_ += KeyBytes(key);
  }
  if (keys_.size() > 1) {
    const std::string& low = keys_[1];  // ascending: what these two share, all do
    const std::string& high = keys_.back();
    const auto differ = std::mismatch(low.begin(), low.end(), high.begin(), high.end());
    prefix_ = std::string_view(low).substr(0, static_cast<size_t>(differ.first - low.begin()));
  }
  heads_.reserve(keys_.size());
  for (const std::string& key : keys_) heads_.push_back(key.empty() ? 0 : HeadOf(key));
  bytes_ += heads_.capacity() * sizeof(uint64_t);
  *counter_ += bytes_;
}

HeatCut::~HeatCut() {
  CELLAR_ASSERT(*counter_ >= bytes_);
  *counter_ -= bytes_;
}

// REQUIRES: the key begins with the prefix.
uint64_t HeatCut::HeadOf(std::string_view key) const {
  char head[sizeof(uint64_t)]{};
  const std::string_view rest = key.substr(prefix_.size());
  std::copy_n(rest.data(), std::min(rest.size(), sizeof(head)), head);
  return DecodeBigEndian64(head);
}

size_t HeatCut::RangeOf(std::string_view key) const {
  if (keys_.size() == 1) return 0;
  const int order = key.substr(0, prefix_.size()).compare(prefix_);
  if (order != 0) return order < 0 ? 0 : keys_.size() - 1;
  const uint64_t head = HeadOf(key);
  const auto behind = std::upper_bound(heads_.begin() + 1, heads_.end(), head);
  auto range = static_cast<size_t>(behind - heads_.begin()) - 1;
  while (range > 0 && heads_[range] == head && keys_[range] > key) --range;
  return range;
}

double HeatCut::PlaceOf(std::string_view key) const {
  const size_t range = RangeOf(key);
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

std::vector<double> PlacesIn(const HeatCut& from, const HeatCut& to) {
  std::vector<double> places;
  places.reserve(from.size() + 1);
  for (const std::string& key : from.keys()) places.push_back(to.PlaceOf(key));
  places.push_back(static_cast<double>(to.size()));
  return places;
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

void HeatCounts::AddMapped(const HeatCounts& other, const std::vector<double>& places) {
  CELLAR_ASSERT(places.size() == other.ranges_ + 1);
  for (size_t metric = 0; metric < kHeatMetrics; ++metric) {
    for (size_t i = 0; i < other.ranges_; ++i) {
      const double value = other.values_[metric * other.ranges_ + i];
      if (value > 0) Spread(metric, places[i], places[i + 1], value);
    }
  }
}

void HeatCounts::AddPacked(std::string_view packed, const std::vector<double>& places) {
  const size_t ranges = places.size() - 1;
  // Most ranges lie whole in one: so often that it is looked up here.
  constexpr size_t kSplit{SIZE_MAX};
  static thread_local std::vector<size_t> whole;  // keeps its memory
  whole.resize(ranges);
  for (size_t i = 0; i < ranges; ++i) {
    const auto first = static_cast<size_t>(places[i]);
    const bool is_whole = places[i + 1] <= static_cast<double>(first + 1);
    whole[i] = is_whole ? std::min(first, ranges_ - 1) : kSplit;
  }
  for (size_t metric = 0; metric < kHeatMetrics; ++metric) {
    double* const values = values_.data() + metric * ranges_;
    for (size_t i = 0; i < ranges; ++i) {
      uint64_t zeros = 0;
      bool read = GetVarint64(&packed, &zeros);
      CELLAR_ASSERT(read);
      i += zeros;
      if (i >= ranges) break;
      uint64_t value = 0;
      read = GetVarint64(&packed, &value);
      CELLAR_ASSERT(read);
      if (whole[i] != kSplit) [[likely]] {
        values[whole[i]] += static_cast<double>(value);
      } else {
        Spread(metric, places[i], places[i + 1], static_cast<double>(value));
      }
    }
  }
  CELLAR_ASSERT(packed.empty());
}

std::string HeatCounts::Packed() const {
  std::string packed;
  for (size_t metric = 0; metric < kHeatMetrics; ++metric) {
    uint64_t zeros = 0;
    for (size_t i = 0; i < ranges_; ++i) {
      const auto value = static_cast<uint64_t>(std::llround(values_[metric * ranges_ + i]));
      if (value == 0) {
        ++zeros;
        continue;
      }
      PutVarint64(&packed, zeros);
      PutVarint64(&packed, value);
      zeros = 0;
    }
    if (zeros > 0) PutVarint64(&packed, zeros);
  }
  packed.shrink_to_fit();
  return packed;
}

}  // namespace cellar
