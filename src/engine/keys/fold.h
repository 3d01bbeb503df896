// Folds: what becomes of a cell of an aggregate family and one input more.
//
//   kind  cells hold              an input of ADD               of MERGE      a missing cell is
//   sum   a number of the TYPE    a delta, also a negative one  a value       0
//   min   the smallest value      a value                       a value       the input
//   max   the largest value       a value                       a value       the input
//   hll   a HyperLogLog's state   any bytes                     a state       no input
//
// Integer sums are exact or refused; min, max, hll and integer sums depend on no order. Numbers
// compare by value, -0 below 0; everything else bytewise.
//
// Buckets: a family with BUCKET rounds the timestamps that are written down to a multiple of it, so
// that a column has one cell for each.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/assert.h"
#include "base/text/duration.h"
#include "engine/keys/value.h"

namespace cellar {

// The numbers are part of the formats on disk: never change one.
enum class FoldKind : uint8_t {
  kNone = 0,  // a plain family: a put replaces
  kSum = 1,
  kMin = 2,
  kMax = 3,
  kHll = 4,
};
inline constexpr uint8_t kFoldKindCount{5};

// "none", "sum", ...
std::string_view FoldKindName(FoldKind kind);
// AGGREGATE's word, in any case; an error that names all if there is no such one.
Result<FoldKind> ParseFoldKind(std::string_view word);
// Can cells of a `kind` have this type (nullopt: none was said)?
bool FoldTakesType(FoldKind kind, const std::optional<ValueType>& type);

// Does `input` take the place of `stored` under min (max)? Both are of `type`.
bool FoldReplaces(FoldKind kind, ValueType type, std::string_view stored, std::string_view input);

// The begin of a timestamp's bucket; 0 as the bucket means that there are none.
constexpr int64_t BucketBegin(int64_t timestamp_micros, int64_t bucket_ms) {
  CELLAR_ASSERT(timestamp_micros >= 0);
  if (bucket_ms == 0) return timestamp_micros;
  return timestamp_micros - timestamp_micros % (bucket_ms * kMicrosPerMs);
}

}  // namespace cellar
