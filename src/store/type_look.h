// TypeLook: are there live cells of another type than FAMILY ALTER wants them to have, and which of
// them could CONVERT not rewrite? It takes a slice at a time, while others write.
//
//   walk     over the table, once
//   changed  rows that it has passed and that have changed since (TableWatches::Record). They are
//            looked at again when the walk has come to its end, in rounds: a round takes those that
//            are there when it begins. So a row that changes all the time is looked at once a
//            round, not once a slice. If there are too many to keep, a round comes before the end
//   found    is kept by row, so that of one that changes all is forgotten and counted again: what
//            is told in the end was there in the end
//
// A round before the end is followed by as many cells of the walk, so that the walk comes to its
// end whatever others do.
//
// Behind the end rounds grow shorter, unless others change more than a slice looks at. So from the
// kRoundsMax-th on one is done in one go, if that before it was short enough for a turn. If none
// is, kRoundsEnd of them are the last, and it gives up with TRYAGAIN. So it does when too many rows
// wait for a round. Nothing has been changed by then.
//
// A slice ends with its cells, or when a walk has gone over its bytes (type_walk.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "engine/keys/key_range_set.h"
#include "engine/schema/type_change.h"
#include "engine/table/table.h"
#include "engine/table/type_walk.h"

namespace cellar {

// "row 'a': column 'm:miles' holds 'n/a', no i64"
std::string StuckText(const Table& table, const FamilySchema& family, const TypeWalk::Cell& cell);

// Cells that were looked for: how many, and of the first of them its row, encoded, and what it is.
struct FoundCells {
  uint64_t cells{0};
  std::string row_key{};
  std::string text{};
};

class TypeLook {
 public:
  enum class Asks : uint8_t {
    kAny,    // the first cell of another type ends it
    kStuck,  // all that cannot be converted are counted
  };
  // Inside a transaction nobody comes between the slices.
  enum class Others : uint8_t { kWrite, kWait };

  TypeLook(uint32_t family_id, Asks asks, Others others);
  TypeLook(const TypeLook&) = delete;
  TypeLook& operator=(const TypeLook&) = delete;

  // It looks at no other rows. REQUIRES: before the first Step.
  void Restrict(KeyRangeSet rows) { rows_ = std::move(rows); }
  // Begins anew, since the change is another one.
  void Restart();
  // A further slice. True when it has come to its end, or gives up: that holds now, and if others
  // write, Step is called again before anything is done about it. `after` is the family as it would
  // be.
  bool Step(Table& table, const FamilySchema& after, const TypeChange& change, int64_t now_micros,
            uint64_t cells_max);
  // What is refused; TRYAGAIN if it has given up. REQUIRES: Step has returned true.
  Status Refusal(const FamilySchema& after) const;
  // The same for what several looks have found.
  static Status RefusalOf(Asks asks, std::string_view family, const FoundCells& found);
  // What is refused is about these; of kAny it is one. REQUIRES: Step has returned true.
  FoundCells found() const;
  // Has there been any cell of another type?
  bool has_found() const { return has_found_; }
  // The table tells it of no more changes. Behind it, Step begins anew.
  void EndRecord(Table& table);
  size_t memory_bytes() const { return changed_bytes_ + round_bytes_ + stuck_bytes_; }

 private:
  struct StuckInRow {
    uint64_t cells{0};
    std::string text;  // of the first one
  };
  static constexpr size_t kChangedRowsMax{16'384};
  static constexpr size_t kChangedBytesMax{4 << 20};
  // It gives up when so many times these wait.
  static constexpr size_t kChangedTimesMax{8};
  // Rows whose cells are counted by row; what is found in more of them is not forgotten.
  static constexpr size_t kStuckBytesMax{2 << 20};
  static constexpr size_t kBytesOfRow{96};
  static constexpr int kRoundsMax{4};
  static constexpr int kRoundsEnd{16};
  static constexpr uint64_t kCellsAtOnce{50'000};

  bool TakeChanges(Table& table, const FamilySchema& family);
  void BeginRound();
  void EndRound();
  bool LooksAgain();
  bool has_refused() const { return asks_ == Asks::kAny && has_found_; }
  bool is_full() const {
    return changed_.size() >= kChangedRowsMax || changed_bytes_ >= kChangedBytesMax;
  }
  bool is_overfull() const {
    return changed_.size() > kChangedTimesMax * kChangedRowsMax ||
           changed_bytes_ > kChangedTimesMax * kChangedBytesMax;
  }
  // The round under way is done in one turn.
  bool is_at_once() const { return rounds_ >= kRoundsMax && last_round_cells_ <= kCellsAtOnce; }
  void Note(const Table& table, const FamilySchema& after, const TypeWalk::Cell& cell);
  void Forget(std::string_view row_key);

  const uint32_t family_id_;
  const Asks asks_;
  const Others others_;
  std::optional<KeyRangeSet> rows_{};  // nothing: all
  std::unique_ptr<TypeWalk> walk_;
  uint64_t tree_id_{0};  // where it has looked last
  uint64_t record_{0};   // of the rows that change; 0: none

  std::set<std::string, std::less<>> changed_;
  size_t changed_bytes_{0};
  std::set<std::string, std::less<>> round_;  // still to be looked at in this one
  size_t round_bytes_{0};
  std::unique_ptr<TypeWalk> row_walk_;  // of the row of it that is looked at
  uint64_t round_cells_{0};             // looked at in the round under way; 0: none is
  uint64_t last_round_cells_{0};
  uint64_t walk_owed_{0};  // cells that the walk makes before another round before its end
  int rounds_{0};          // behind the end of the walk
  bool gives_up_{false};

  bool has_found_{false};
  FoundCells first_;  // kAny: what it is, and where
  std::map<std::string, StuckInRow, std::less<>> stuck_;
  size_t stuck_bytes_{0};
  StuckInRow more_stuck_;  // in rows that stuck_ has no room for
  std::string converted_;  // scratch
};

}  // namespace cellar
