// Histogram: latencies in nanoseconds, kept as counts in log-linear buckets.
//
// Each power of two is cut into 128 equal buckets, so that a value is known to 0.8 % at any size,
// and recording is a shift and an increment (the layout of Gil Tene's HdrHistogram; Debian has no
// package of its C library).
//
// Coordinated omission: a closed-loop client that waits 1 s for one reply has not sent the requests
// which would have waited 0.99 s, 0.98 s, ... too. RecordCorrected() adds these when the interval
// is known at which requests ought to have come. An open-loop run needs no correction: it measures
// from the moment when a request was due.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace cellar::benchmark {

class Histogram {
 public:
  Histogram() : counts_(kBuckets, 0) {}

  void Record(uint64_t value_ns) {
    ++counts_[BucketOf(value_ns)];
    ++count_;
    sum_ns_ += value_ns;
    max_ns_ = std::max(max_ns_, value_ns);
  }
  // Record(), and the requests left out while this one was waited for. 0: no correction.
  void RecordCorrected(uint64_t value_ns, uint64_t expected_interval_ns) {
    Record(value_ns);
    if (expected_interval_ns == 0) return;
    while (value_ns > expected_interval_ns) {
      value_ns -= expected_interval_ns;
      Record(value_ns);
    }
  }
  void Merge(const Histogram& other) {
    for (size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
    count_ += other.count_;
    sum_ns_ += other.sum_ns_;
    max_ns_ = std::max(max_ns_, other.max_ns_);
  }

  uint64_t count() const { return count_; }
  uint64_t max_ns() const { return max_ns_; }
  double mean_ns() const {
    return count_ == 0 ? 0.0 : static_cast<double>(sum_ns_) / static_cast<double>(count_);
  }
  // The value that `fraction` (0..1) of the records do not exceed, to the width of a bucket; 0 if
  // nothing was recorded.
  uint64_t ValueAt(double fraction) const {
    const double wanted = fraction * static_cast<double>(count_);
    uint64_t seen = 0;
    for (size_t i = 0; i < kBuckets; ++i) {
      seen += counts_[i];
      if (seen > 0 && static_cast<double>(seen) >= wanted)
        return std::min(UpperBoundOf(i), max_ns_);
    }
    return max_ns_;
  }

 private:
  static constexpr uint32_t kSubBits{7};
  static constexpr uint64_t kSub{1ULL << kSubBits};
  static constexpr uint32_t kValueBits{44};  // 4.8 hours; longer ones count as this
  static constexpr size_t kBuckets{(kValueBits - kSubBits + 1) * kSub};

  // Values below kSub have a bucket each; above, `shift` drops what is finer than 1/128.
  static size_t BucketOf(uint64_t value) {
    value = std::min<uint64_t>(value, (1ULL << kValueBits) - 1);
    if (value < kSub) return static_cast<size_t>(value);
    const uint32_t shift = static_cast<uint32_t>(std::bit_width(value)) - kSubBits - 1;
    return static_cast<size_t>((shift + 1) * kSub + ((value >> shift) - kSub));
  }
  static uint64_t UpperBoundOf(size_t bucket) {
    if (bucket < kSub) return bucket;
    const uint64_t shift = bucket / kSub - 1;
    return ((bucket % kSub + kSub + 1) << shift) - 1;
  }

  std::vector<uint64_t> counts_;
  uint64_t count_{0};
  uint64_t sum_ns_{0};
  uint64_t max_ns_{0};
};

}  // namespace cellar::benchmark
