// KeyDistribution: which of the numbers 0..n-1 is asked for next.
//
//   uniform   each as likely as any other
//   zipf      few are asked for often: Gray et al., "Quickly generating billion-record synthetic
//             databases" (SIGMOD 1994), theta 0.99 as in YCSB, then scattered over the key space
//   latest    zipf counted back from the newest: what was inserted last is asked for most
//   sequence  0, 1, 2, ... and round again
//
// n may grow while a run inserts; zipf then keeps the n it began with and `latest` follows.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/random.h"

namespace cellar::benchmark {

enum class KeyDistributionKind : uint8_t { kUniform, kZipf, kLatest, kSequence };

inline std::optional<KeyDistributionKind> ParseKeyDistribution(std::string_view name) {
  if (name == "uniform") return KeyDistributionKind::kUniform;
  if (name == "zipf") return KeyDistributionKind::kZipf;
  if (name == "latest") return KeyDistributionKind::kLatest;
  if (name == "sequence") return KeyDistributionKind::kSequence;
  return std::nullopt;
}

class KeyDistribution {
 public:
  // `first` is where a sequence begins. O(n) for zipf and latest.
  KeyDistribution(KeyDistributionKind kind, uint64_t n, uint64_t first)
      : kind_(kind), n_(n), sequence_(first) {
    CELLAR_ASSERT(n > 0);
    if (kind != KeyDistributionKind::kZipf && kind != KeyDistributionKind::kLatest) return;
    for (uint64_t i = 1; i <= n; ++i) zeta_n_ += 1.0 / std::pow(static_cast<double>(i), kTheta);
    const double zeta_2 = 1.0 + std::pow(0.5, kTheta);
    eta_ = (1.0 - std::pow(2.0 / static_cast<double>(n), 1.0 - kTheta)) / (1.0 - zeta_2 / zeta_n_);
    threshold_2_ = 1.0 + std::pow(0.5, kTheta);
  }

  // `now` is how many keys there are by now; >= the n of the beginning.
  uint64_t Next(Random& random, uint64_t now) {
    switch (kind_) {
      case KeyDistributionKind::kUniform:
        return random.Below(n_);
      case KeyDistributionKind::kSequence:
        return sequence_++ % n_;
      case KeyDistributionKind::kZipf:
        return Random(Rank(random)).Next() % n_;
      case KeyDistributionKind::kLatest:
        return now - 1 - Rank(random);
    }
    return 0;
  }

 private:
  static constexpr double kTheta{0.99};

  uint64_t Rank(Random& random) const {
    const double u = random.Fraction();
    const double uz = u * zeta_n_;
    if (uz < 1.0) return 0;
    if (uz < threshold_2_ && n_ > 1) return 1;
    const double rank =
        static_cast<double>(n_) * std::pow(eta_ * u - eta_ + 1.0, 1.0 / (1.0 - kTheta));
    return std::min(static_cast<uint64_t>(rank), n_ - 1);
  }

  KeyDistributionKind kind_;
  uint64_t n_;
  uint64_t sequence_;
  double zeta_n_{0.0};
  double eta_{0.0};
  double threshold_2_{0.0};
};

}  // namespace cellar::benchmark
