// RecoverPoint: where in its history a store is wanted (`cellar --recover ... --until`).
//
//   TIME      2026-11-23T02:59:59Z, 2026-11-23 or now-1h (base/text/time_text.h); or microseconds
//             since the Unix epoch, 16 digits and more: all steps committed by then
//   ID        1795403485350-197000000, of a feed's entry or a snapshot: all steps up to the one
//             that holds it
//   CUT:n     of a set of a cluster: up to and with the n-th change of the cluster's schema, which
//             is one moment over all sets if it was a cut
//   SNAPSHOT  monday, or shop/monday of another keyspace than 0: up to and with the last step that
//             made a snapshot of that name
//
// Where a word could be read in two ways, the first of them counts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cellar/status.h"

namespace cellar {

struct RecoverPoint {
  enum class Kind : uint8_t { kTime, kId, kSnapshot, kCut };
  Kind kind{Kind::kTime};
  std::string text;        // as it was given
  int64_t micros{0};       // kTime, kId: of the last step, that the id has
  uint64_t cut{0};         // kCut
  std::string keyspace{};  // kSnapshot
  std::string name{};
};

// ERR if it is none of these.
Result<RecoverPoint> ParseRecoverPoint(std::string_view text);

// "2026-11-23T02:59:59.000000Z".
std::string FormatTime(int64_t unix_micros);

}  // namespace cellar
