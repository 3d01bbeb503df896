// PlanBalance: which tablets are to move or to be split, so that the sets of a cluster have equal
// shares (SCALE-DESIGN 6.7). In this order:
//
//   drain   what a set that is to be emptied has goes to the emptiest one
//   full    beyond kFullPercent of its memory a set gives its largest tablets away
//   split   a tablet of more than split_bytes; of a table that has fewer than two for each set, of
//           a sixteenth of that
//   spread  from the set that has most to the one that has least, while that has more than
//           kSpreadPercent above the mean, and the move makes it less; where no tablet is small
//           enough for that, its largest is split, down to a sixteenth of split_bytes
//
// A pure function of what the sets have reported: the same reports give the same plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/table/tablets.h"

namespace cellar {

struct BalanceInput {
  struct Set {
    uint64_t number{0};
    bool draining{false};
    bool answers{false};  // what it has is known
    uint64_t maxmemory{0};
    uint64_t moving{0};  // jobs that it takes part in
  };
  struct Tablet {
    uint64_t table_id{0};
    cellar::Tablet tablet{};
    uint64_t set{0};
    uint64_t to{0};  // of one that moves, where to; else `set`
    uint64_t bytes{0};
    std::string middle{};
    bool moves{false};
    bool fixed{false};  // it stays where it is
    bool whole{false};  // its table is not split
  };
  std::vector<Set> sets{};        // ascending
  std::vector<Tablet> tablets{};  // by table and begin
  uint64_t split_bytes{256 << 20};
  uint64_t moves_max{2};  // of a set
  bool spreads{true};     // else tablets move for draining alone
};

struct BalanceStep {
  enum class Kind : uint8_t { kMove, kSplit };
  Kind kind{Kind::kMove};
  size_t tablet{0};  // of the input's
  uint64_t to{0};    // kMove
  std::string reason{};
};

inline constexpr uint64_t kFullPercent{85};
inline constexpr uint64_t kSpreadPercent{10};

// Steps that can be taken beside each other. O(sets * tablets).
std::vector<BalanceStep> PlanBalance(const BalanceInput& input);

}  // namespace cellar
