// PlanBalance: which tablets are to move, to be split or merged, so that the sets of a cluster have
// equal shares (SCALE-DESIGN 6.7). In this order:
//
//   drain   what a set that is to be emptied has goes to the emptiest one
//   full    beyond kFullPercent of its memory a set gives its largest tablets away
//   split   a tablet of more than split_bytes; of a table that has fewer than two for each set, of
//           a sixteenth of that
//   load    from a set that is busy, and takes more than kLoadSpreadPercent above the mean for rows
//           of its tablets, for long or by twice as much, to the one that takes least, if the move
//           makes it less and that one's loop is not as busy with other things; where no tablet is
//           small enough for that, its hottest is split where half of that is before; of one in
//           which a row has more than half that is told, and nothing is done
//   spread  from the set that has most to the one that has least, while that has more than
//           kSpreadPercent above the mean, and the move makes it less; where no tablet is small
//           enough for that, its largest is split, down to a sixteenth of split_bytes. None that
//           has moved for its load a while ago, nor one that would make loads uneven
//   merge   neighbours of one set in which there was next to nothing to do for long, and which have
//           less than merge_bytes together, of a table that has more than kTabletsKept for each set
//   gather  such neighbours of two sets, a few pairs at a time and where there is nothing else to do:
//           the smaller one moves to the other's set, unless that would leave bytes uneven
//
// A pure function of what the sets have reported: the same reports give the same plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
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
    uint64_t moving{0};     // jobs that it takes part in
    bool busy{false};       // its leader's loop has been for some seconds
    uint64_t loop{0};       // percent of a core that this takes
    bool has_loads{false};  // it answers, and what its tablets take is known
    bool refuses{false};    // it had no room for a tablet not long ago: it gets none
  };
  struct Tablet {
    uint64_t table_id{0};
    cellar::Tablet tablet{};
    uint64_t set{0};
    uint64_t to{0};  // of one that moves, where to; else `set`
    uint64_t bytes{0};
    uint64_t rows{0};
    std::string middle{};
    uint64_t load{0};  // permille of a core, about, as all of these
    std::string load_middle{};
    uint64_t top_percent{0};
    bool rests{false};  // it has moved for its load not long ago, and does not again but to a set
                        // that has nothing
    bool quiet{false};  // what it has is known, and it had no load to speak of for long
    bool moves{false};
    bool fixed{false};  // it stays where it is
    bool whole{false};  // its table is not split
  };
  std::vector<Set> sets{};        // ascending
  std::vector<Tablet> tablets{};  // by table and begin
  uint64_t split_bytes{256 << 20};
  uint64_t merge_bytes{64 << 20};  // and half of split_bytes at most; 0: never
  uint64_t moves_max{2};           // of a set
  bool spreads{true};              // else tablets move for draining alone
  bool by_load{true};
  std::set<uint64_t> hot_for_long{};  // sets that have been among HotSets for a while
};

struct BalanceStep {
  enum class Kind : uint8_t { kMove, kSplit, kHotRow, kMerge };
  Kind kind{Kind::kMove};
  size_t tablet{0};  // of the input's; kMerge: with that behind it
  uint64_t to{0};    // kMove
  bool for_load{false};
  std::string reason{};
};

inline constexpr uint64_t kFullPercent{85};
inline constexpr uint64_t kSpreadPercent{10};
inline constexpr uint64_t kLoadSpreadPercent{20};
inline constexpr uint64_t kLoadAtOncePercent{40};
inline constexpr uint64_t kBusyPercent{60};  // of a core
inline constexpr size_t kTabletsKept{8};
inline constexpr size_t kMergesMax{16};  // of one plan

// Sets that are busy and take more than kLoadSpreadPercent above the mean; load comes and goes, so
// that this alone may mean little. O(sets + tablets)
std::set<uint64_t> HotSets(const BalanceInput& input);

// Steps that can be taken beside each other. O(sets * tablets).
std::vector<BalanceStep> PlanBalance(const BalanceInput& input);

}  // namespace cellar
