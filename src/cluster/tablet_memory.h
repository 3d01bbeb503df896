// TabletMemory: what a director remembers of tablets from one round of balancing to the next
// (balance_plan.h): which of them have moved, which row was told, where a split or a merge was
// refused, and how long there was next to no load. It is in no log: a new director begins anew,
// and is the more careful for it.
//
// A tablet is known by its table and where it begins; what a split parts off is another one. Each
// moment is of the monotonic clock. All of it is O(tablets) of memory at most.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "cluster/balance_plan.h"
#include "store/tablet_sizes.h"

namespace cellar {

class TabletMemory {
 public:
  using Name = std::pair<uint64_t, std::string>;  // table id and begin

  // What has moved takes there what it took before, until that is known; and if it has moved for
  // its load it does not again, nor is a hot row told again, for longer. Where a split or a merge
  // is refused there is none for a while.
  static constexpr int64_t kRampMicros{15'000'000};
  static constexpr int64_t kRestMicros{600'000'000};
  static constexpr int64_t kRefusedMicros{60'000'000};
  // What is merged has had no load to speak of for so long (SCALE-DESIGN 6.7): permille of a core.
  // For so long nothing may be told of it meanwhile, as where it moves.
  static constexpr int64_t kQuietMicros{3'600'000'000};
  static constexpr uint64_t kQuietLoad{5};
  static constexpr int64_t kUnknownMicros{60'000'000};

  static Name NameOf(const BalanceInput::Tablet& tablet) {
    return {tablet.table_id, tablet.tablet.begin};
  }

  void Clear();
  // A round begins: what is too old to matter is forgotten.
  void BeginRound(int64_t now);
  // What is known of it goes into it. `size`: as its owner has told in this round; null: it has
  // not. `loads`: that it tells loads at all. `quiet_micros`: in place of kQuietMicros.
  void Fill(const TabletSize* size, bool loads, int64_t now, int64_t quiet_micros,
            BalanceInput::Tablet* tablet);
  // The round is over: of what was in none of its Fills nothing is kept.
  void EndRound(int64_t now);

  void NoteMove(const BalanceInput::Tablet& tablet, const BalanceStep& step, int64_t now);
  // What is left of it takes half of what it took.
  void NoteSplit(const BalanceInput::Tablet& tablet);
  void NoteRefused(const Name& name, int64_t now) { refused_[name] = now; }
  // Whether its hot row was not told yet; it is now.
  bool TakeHotRow(const BalanceInput::Tablet& tablet, int64_t now) {
    return told_.try_emplace(NameOf(tablet), now).second;
  }

 private:
  struct Moved {
    uint64_t to;
    uint64_t load;          // when it was ordered
    int64_t on_way_micros;  // it was on its way still then
    bool for_load;
  };
  struct Quiet {
    int64_t since_micros;
    int64_t known_micros;  // what it takes was told last
    int64_t seen_micros;   // it was there last
  };
  // `size`: null: what it takes is not known.
  bool IsQuiet(const TabletSize* size, int64_t now, int64_t quiet_micros, const Name& name);

  std::map<Name, Moved> moved_;
  std::map<Name, int64_t> told_;     // of a hot row, then
  std::map<Name, int64_t> refused_;  // a split or a merge, then
  std::map<Name, Quiet> quiet_;
};

}  // namespace cellar
