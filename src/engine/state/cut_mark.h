// CutMark: what makes a change of a cluster's schema one moment over all its sets
// (cluster/catalog_agreement.h): what for, and of which time.
//
//   mark  | v purpose | v time | b argument |
//
// It stands in the record of the change in the log of each set (kCut). Records before it there have
// earlier times, and records behind it later ones, if the cut is good: whether it is, set 0 knows
// (cluster/map_tables.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cellar {

// Numbers are of logs: none is ever used for something else.
enum class CutPurpose : uint8_t {
  kNone = 0,
  kRestorePoint = 1,
  kSnapshot = 2,
  kCursor = 3,
  kDigest = 4,
  kBackup = 5,
  kCopy = 6,
};
inline constexpr CutPurpose kCutPurposeLast{CutPurpose::kCopy};

struct CutMark {
  CutPurpose purpose{CutPurpose::kNone};  // kNone: it is no cut
  int64_t time_micros{0};                 // commit time, Unix
  std::string argument{};                 // what the purpose needs to know at each set
  bool is_cut() const { return purpose != CutPurpose::kNone; }
  friend bool operator==(const CutMark&, const CutMark&) = default;
};

// As CLUSTER CUTS has it.
std::string_view CutPurposeName(CutPurpose purpose);
void EncodeCutMark(const CutMark& mark, std::string* to);
// Takes it off the front. False if it is none of a cut.
[[nodiscard]] bool DecodeCutMark(std::string_view* from, CutMark* mark);

}  // namespace cellar
