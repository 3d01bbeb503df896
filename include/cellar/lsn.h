// Lsn: the number of a log record, and so a point in the history of a store.
//
// `seq` grows by at least one from record to record and is never given out twice in one epoch; gaps
// are allowed. `epoch` grows when another server takes over the history (fencing of a failover); it
// is 1 for now. Lsn{} is "before the first record".
#pragma once

#include <compare>
#include <cstdint>

namespace cellar {

struct Lsn {
  uint32_t epoch{0};
  uint64_t seq{0};
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 of a comparison for a pointer.
  friend constexpr auto operator<=>(const Lsn&, const Lsn&) = default;
};

// No record is behind it.
inline constexpr Lsn kLsnMax{UINT32_MAX, UINT64_MAX};

}  // namespace cellar
