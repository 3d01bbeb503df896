// HeatMap: which ranges of each table are read and written, minute by minute (HEAT).
//
//   table 7:  cut    up to 256 ranges of about equal bytes, made anew as the table changes
//             live   what was counted in this minute, by range
//             frames [12:01 1m ...] [12:02 1m ...] ... of a day, before it [.. 15m ..] of 14 days
//
// Nobody counts every access: of those of one row each `sample`-th on average is looked at and
// counts for all of them; of scans, each so-many-th row that they examine. The distances are drawn
// by lot, so that no rhythm of the clients falls in with ours. What is told is what is expected;
// a range that has had n operations is off by about sqrt(sample / n) of that.
//
// All tables together take at most `memory` bytes. Where that is short, the table that takes most
// becomes coarser: minutes older than an hour become quarters of an hour, then ranges are joined,
// then what is oldest goes, and then the ranges that are being counted in are joined. A table for
// which there is no room at all is not counted; nor is one any more that was the last to come, if
// the others have grown until even that is not enough.
//
// HEAT reads it through a HeatReading (heat_reading.h).
//
// It belongs to the loop's thread, is in no log and in no file, and begins empty. Tables are known
// by their ids, so a name may change; what was counted of one that is gone goes within a minute.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/inline.h"
#include "base/random.h"
#include "cellar/status.h"
#include "heat/heat_counts.h"

namespace cellar {

inline constexpr int64_t kMinuteMicros{60'000'000};

class Store;
class Table;

struct LargeRow {
  std::string row;  // text
  uint64_t bytes;
};

class HeatMap {
  friend class HeatReading;

 public:
  static constexpr size_t kRangesMax{256};
  static constexpr uint64_t kLargeRowBytes{100'000'000};

  HeatMap();
  ~HeatMap();
  HeatMap(const HeatMap&) = delete;
  HeatMap& operator=(const HeatMap&) = delete;

  // 0 bytes: nothing is counted, and what was is forgotten.
  void Configure(uint64_t memory_bytes_max, uint64_t sample, uint64_t seed);
  bool enabled() const { return memory_bytes_max_ > 0; }
  uint64_t sample() const { return sample_; }
  // How many accesses to the next one that is to be looked at: `sample` on average, never 0.
  uint64_t NextDistance() { return 1 + NextBelow(2 * sample_ - 1); }
  uint64_t NextBelow(uint64_t bound) { return random_.Below(bound); }
  // So many rows were examined. How many of them, or of those before, are to be counted now: mostly
  // none, and on average as many as there are.
  CELLAR_INLINE uint64_t TakeExamined(uint64_t rows) {
    examined_left_ -= static_cast<int64_t>(rows);
    if (examined_left_ > 0) [[likely]]
      return 0;
    return TakeExaminedNow();
  }

  // `row_key` is encoded.
  void Add(const Table& table, std::string_view row_key, const HeatAmounts& amounts,
           int64_t now_micros);
  // Of rows in [first, last], or from `first` to the table's end, nobody knows which.
  void AddSpan(const Table& table, std::string_view first, std::optional<std::string_view> last,
               const HeatAmounts& amounts, int64_t now_micros);
  // A row was seen that is larger than kLargeRowBytes.
  void NoteLarge(const Table& table, std::string_view row_key, uint64_t bytes);

  // Ten times a second or so: minutes end also where nothing happens.
  void Tick(const Store& store, int64_t now_micros);
  // Since the server started, about.
  HeatAmounts TotalOf(const Table& table) const;
  size_t memory_bytes() const { return cut_bytes_ + table_bytes_; }
  size_t tables() const { return tables_.size(); }

 private:
  // Of scans, rows by one that is looked at are so many times those of other commands: they come in
  // large numbers, and each costs less.
  static constexpr uint64_t kExaminedSampleFactor{4};
  static constexpr int64_t kHour{60};
  static constexpr int64_t kDay{24 * kHour};
  static constexpr int64_t kKept{14 * kDay};
  static constexpr int64_t kCoarseMinutes{15};
  // To find 256 keys takes a millisecond: not more often than that, unless the table has doubled.
  static constexpr int64_t kCutMicrosMin{10'000'000};
  static constexpr int64_t kSpanCutMicrosMin{100'000};
  static constexpr size_t kCoarseRanges{64};
  static constexpr size_t kCoarsestRanges{16};
  static constexpr size_t kKeyBytesMax{256};
  static constexpr size_t kLargeRowsMax{16};
  static constexpr size_t kTablesPerTick{16};

  // The last range of a cut has no end, but what was counted in it has: rows that are appended
  // would otherwise seem to lie among all that came later. Encoded keys.
  struct TailKeys {
    std::string low;      // nothing that was counted lies before it
    std::string high;     // nor behind it
    bool is_open{false};  // how far it goes is not known
    bool is_known{false};
    // True if it takes more memory now.
    bool Note(std::string_view key);
    size_t memory_bytes() const;
    // `places` are those of a cut's ranges in `in`.
    void Clip(const HeatCut& in, HeatPlaces* places) const;
  };
  struct Frame {
    int64_t minute;  // since the epoch
    int64_t minutes;
    HeatCutPointer cut;
    std::string packed;
    TailKeys tail;
    size_t memory_bytes() const;  // beside the struct
  };
  struct TableHeat {
    explicit TableHeat(HeatCutPointer first) : cut(std::move(first)), live(cut->size()) {}
    HeatCutPointer cut;
    HeatCounts live;
    int64_t live_minute{0};
    bool live_counts{false};  // anything
    TailKeys tail;
    std::vector<Frame> frames;  // by time, but where the clock was set back
    size_t frame_bytes{0};      // of what they have packed
    size_t counted_bytes{0};    // of table_bytes_
    size_t ranges_max{kRangesMax};
    uint64_t generation{0};       // another one as soon as a frame has gone or changed
    uint64_t cut_table_bytes{0};  // the table's size then
    int64_t cut_micros{0};
    HeatAmounts total;
    std::vector<LargeRow> large;
  };

  // Where the ranges of `from`, with this tail, lie in `to`.
  static HeatPlaces PlacesOf(const HeatCut& from, const TailKeys& tail, const HeatCut& to);
  uint64_t TakeExaminedNow();
  // The table's, made if it is not there; null if there is no room. Its minute is this one.
  TableHeat* Find(const Table& table, int64_t now_micros);
  // The table has grown or shrunk by an eighth since, and so much time has passed.
  static bool CutIsOld(const TableHeat& heat, uint64_t table_bytes, int64_t now_micros,
                       int64_t age_micros);
  void Cut(const Table& table, TableHeat* heat, int64_t now_micros);
  // If the table's size has changed at all since.
  void CutIfChanged(const Table& table, TableHeat* heat, int64_t now_micros);
  std::vector<std::string> CutKeys(const Table& table, TableHeat* heat) const;
  void UseCut(HeatCutPointer cut, TableHeat* heat);
  void EndMinute(TableHeat* heat, int64_t minute);
  void Age(TableHeat* heat, int64_t minute);
  void PushFrame(TableHeat* heat, Frame frame);
  void JoinMinutes(TableHeat* heat, int64_t before_minute);
  bool JoinRanges(TableHeat* heat, size_t ranges_max);
  void DropOldest(TableHeat* heat, size_t frames);
  void Recount(TableHeat* heat);
  // Until all fits; false if it cannot.
  bool MakeRoom();
  // The same, for a table that has grown (null: for none): others are forgotten before it is. False
  // if it has no room even alone.
  bool MakeRoomFor(TableHeat* heat);
  // What is noted of the table takes more memory. `heat` may be gone.
  void HasGrown(const Table& table, TableHeat* heat);
  bool CoarsenLargest();
  void Coarsen(TableHeat* heat);
  void Forget(uint64_t table_id);

  uint64_t memory_bytes_max_{0};
  uint64_t sample_{64};
  int64_t examined_left_{1};
  Random random_{0};
  size_t cut_bytes_{0};
  size_t table_bytes_{0};
  std::map<uint64_t, TableHeat> tables_;
  uint64_t last_id_{0};  // Find's last answer; 0: none
  TableHeat* last_{nullptr};
  uint64_t tick_id_{0};
  uint64_t generation_{0};  // the last one
  uint64_t lineage_{0};
  int64_t minute_{0};  // as of the last look at any clock
};

}  // namespace cellar
