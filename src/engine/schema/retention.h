// Retention: which versions of a column a family's policy drops, and when.
//
//   policy = or-term { ("||" | "or") or-term }
//   or-term = and-term { ("&&" | "and") and-term }
//   and-term = "maxversions=" n | "maxage=" duration | "(" policy ")"
//
// The word "none" alone is the policy that keeps everything. A policy says what goes: maxversions=3
// drops the versions of rank 4 and more (1 is the newest; all stored versions count, expired ones
// too), maxage=7d those whose age is 7 days or more. Age is now - timestamp; timestamp 0 has none
// and never gets old. The words are cbt's (Bigtable).
//
// Every policy is monotone: a version that is dropped stays so when it gets older or its rank
// grows. So a policy comes down to one function, rank -> the age at which a version of that rank
// goes, and that function is a short table of steps that falls with the rank:
//
//   maxversions=3 && maxage=7d || maxage=30d      rank 1..3: 30d    rank 4..: 7d
//
// An "or" takes the smaller age, an "and" the larger one. Evaluation looks the rank up; nothing is
// interpreted. Pure: the time comes in.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/status.h"

namespace cellar {

inline constexpr size_t kPolicyBytesMax{4 * 1024};
inline constexpr uint32_t kPolicyDepthMax{20};
// A moment that never comes. As a cell's own expiry: it has none.
inline constexpr int64_t kNeverMicros{INT64_MAX};

class RetentionPolicy {
 public:
  RetentionPolicy() = default;  // keeps everything

  // Reads a GC policy; plain ERR with the position if it cannot.
  static Result<RetentionPolicy> Parse(std::string_view text);
  // VERSIONS and TTL, joined by "or". 0 means ALL or NONE.
  static RetentionPolicy FromVersionsAndTtl(uint64_t versions, int64_t ttl_ms);

  // Canonical text, which Parse reads back to the same policy; "" if everything is kept.
  const std::string& text() const { return text_; }
  // What VERSIONS and TTL said, 0 for ALL and NONE; both are 0 in a policy that came from Parse.
  uint64_t versions() const { return versions_; }
  int64_t ttl_ms() const { return ttl_ms_; }
  // It came from Parse and is not NONE: FAMILY shows it under GC.
  bool is_expression() const { return is_expression_; }

  bool keeps_everything() const { return steps_.empty(); }
  // Does it ask for the rank at all, for the age at all? Both are false if it keeps everything.
  bool depends_on_rank() const { return depends_on_rank_; }
  bool depends_on_age() const { return depends_on_age_; }
  // Versions of a higher rank are dropped whatever their age; UINT64_MAX if there is no such rank.
  uint64_t rank_kept_max() const { return rank_kept_max_; }

  // Does the policy ever drop a version of this rank? (A cell's own expiry is not its business.)
  bool Risks(uint64_t rank) const { return rank >= rank_at_risk_min_; }
  // The moment from which on a version is dropped if its rank stays what it is: INT64_MIN if it is
  // dropped at once, kNeverMicros if never. REQUIRES: rank >= 1, timestamp >= 0.
  int64_t DueMicros(uint64_t rank, int64_t timestamp) const {
    if (!Risks(rank)) return kNeverMicros;
    return DueOfRiskyRank(rank, timestamp);
  }
  // When a version is dropped by its rank, or by an expiry of its own (kNeverMicros: none).
  int64_t DueMicros(uint64_t rank, int64_t timestamp, int64_t expiry_micros) const {
    const int64_t due = DueMicros(rank, timestamp);
    return due < expiry_micros ? due : expiry_micros;
  }
  bool Drops(uint64_t rank, int64_t timestamp, int64_t now_micros) const {
    const int64_t due = DueMicros(rank, timestamp);
    return due != kNeverMicros && now_micros >= due;
  }
  // A cell is dropped from the earlier of its policy's due time and its own expiry on.
  bool Drops(uint64_t rank, int64_t timestamp, int64_t expiry_micros, int64_t now_micros) const {
    const int64_t due = DueMicros(rank, timestamp, expiry_micros);
    return due != kNeverMicros && now_micros >= due;
  }

  friend bool operator==(const RetentionPolicy& a, const RetentionPolicy& b) {
    return a.text_ == b.text_;
  }

 private:
  friend class RetentionParser;
  // From this rank on (up to the next step) a version goes at this age; kAgeAtOnce: whatever its
  // age.
  struct Step {
    uint64_t rank_min;
    int64_t age_micros;
  };
  static constexpr int64_t kAgeAtOnce{-1};

  int64_t DueOfRiskyRank(uint64_t rank, int64_t timestamp) const;

  std::string text_;
  std::vector<Step> steps_;  // by rank_min; ranks before the first step are kept for ever
  uint64_t rank_at_risk_min_{UINT64_MAX};  // of the first step: what is newer is never dropped
  uint64_t rank_kept_max_{UINT64_MAX};
  uint64_t versions_{0};
  int64_t ttl_ms_{0};
  bool is_expression_{false};
  bool depends_on_rank_{false};
  bool depends_on_age_{false};
};

}  // namespace cellar
