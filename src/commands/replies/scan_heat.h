// ScanHeat: what a command that walks over rows tells HEAT: between two looks, so many rows were
// examined, about there. A worker, which may not speak to HEAT, keeps that for the loop, of the
// whole way at most kKeptMax places. Where rows are those of several sets it also says where it has
// come to, for what its tablet takes of the loop (heat/load_samples.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/inline.h"
#include "engine/rows/scan.h"
#include "heat/heat_map.h"

namespace cellar {

class Host;

class ScanHeat {
 public:
  enum class Way : uint8_t { kForward, kReverse, kJumps };

  ScanHeat() = default;  // tells nothing
  ScanHeat(Host& host, const Table& table, Way way);

  // `ended`: the scan has come to the end of its ranges. `reply_bytes` are those of the whole reply
  // so far.
  CELLAR_INLINE void Note(const Scan& scan, bool ended, uint64_t reply_bytes) {
    if (host_ == nullptr) return;
    NotePlace(scan.row_key());
    const uint64_t rows = scan.stats().rows - rows_;
    const uint64_t counted = heat_->TakeExamined(rows);
    if (counted > 0) [[unlikely]]
      Count(scan, {scan.stats().rows, scan.row_key()}, ended, counted, reply_bytes);
    rows_ += rows;
    bytes_ = reply_bytes;
    begun_ = true;
  }
  // In a worker, instead of Note.
  CELLAR_INLINE void Keep(const Scan& scan, uint64_t reply_bytes) {
    if (host_ != nullptr && scan.stats().rows >= keep_from_rows_) [[unlikely]]
      KeepPlace({scan.stats().rows, scan.row_key()}, reply_bytes);
  }
  // Where others read what the scan would, without a reply of their own: how far they have come.
  struct Progress {
    uint64_t rows;
    std::string_view at;  // an encoded key
  };
  void Note(const Scan& scan, const Progress& progress, bool ended);
  void Keep(const Progress& progress) {
    if (host_ != nullptr && progress.rows >= keep_from_rows_) KeepPlace(progress, 0);
  }
  // In the loop: tells what was kept. Note() tells what came behind.
  void TellKept();
  // Rows examined or changed since the last time, `rows` in all; at `place`, an encoded key.
  void NoteRows(uint64_t rows, std::string_view place, HeatMetric metric);
  // NoteRows of rows that were read; of the whole reply there are so many bytes so far.
  void NoteRead(uint64_t rows, std::string_view place, uint64_t reply_bytes);
  // It has come to that entry or row.
  void NotePlace(std::string_view entry_key) {
    if (routes_) [[unlikely]]
      TellPlace(entry_key);
  }
  // It is done with rows of its ranges, of which it cannot say more.
  void NoteBegin(const Scan& scan) {
    if (routes_) [[unlikely]]
      TellBegin(scan);
  }
  // So many were examined. How many are to be counted now, by NoteRange: mostly none.
  uint64_t Take(uint64_t rows) const { return host_ == nullptr ? 0 : heat_->TakeExamined(rows); }
  // Read somewhere in the range. REQUIRES: Take has said `counted`.
  void NoteRange(uint64_t counted, const KeyRange& range) const;

 private:
  static constexpr size_t kKeptMax{64};
  static constexpr uint64_t kKeepRows{256};  // about one of so many is counted

  // Up to here, so many in all.
  struct Kept {
    std::string place;  // an encoded key
    uint64_t rows;
    uint64_t bytes;
  };

  void TellPlace(std::string_view entry_key);
  void TellBegin(const Scan& scan);
  void KeepPlace(const Progress& progress, uint64_t reply_bytes);
  void Count(const Scan& scan, const Progress& progress, bool ended, uint64_t counted,
             uint64_t reply_bytes);
  const Table* FindTable() const;

  Host* host_{nullptr};  // null: tells nothing
  HeatMap* heat_{nullptr};
  uint64_t table_id_{0};
  Way way_{Way::kForward};
  bool routes_{false};
  bool begun_{false};
  uint64_t rows_{0};
  uint64_t bytes_{0};
  std::vector<Kept> kept_;
  uint64_t keep_rows_{kKeepRows};  // between two places
  uint64_t keep_from_rows_{0};
};

}  // namespace cellar
