// What an import says of itself: refused lines, progress, and the state that a later run resumes
// from.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/status.h"

namespace cellar::importer {

// How far an import has come; everything before `offset` is acknowledged or refused.
struct ImportState {
  std::string table;
  std::string fingerprint;  // of the input's beginning: another file is not to be gone on with
  uint64_t offset{0};
  uint64_t line{1};
  uint64_t rows{0};
  uint64_t cells{0};
  uint64_t errors{0};
  // Of a Redis: where SCAN goes on, and the timestamp of all cells.
  std::string cursor;
  int64_t timestamp_micros{0};
};

// Reads the state; a file that does not exist gives an empty one.
Result<ImportState> LoadState(const std::string& path);
// Replaces the file in one step (written beside, synced, renamed).
Status SaveState(const std::string& path, const ImportState& state);
// Of the first bytes of the input.
std::string Fingerprint(std::string_view bytes);

// The lines that were refused: all of them into a file ("line <tab> error"), the first few kept for
// the summary. Of formats without lines the numbers are those of records.
class ErrorReport {
 public:
  // An empty path: no file. `append` when an import is resumed.
  static Result<ErrorReport> Open(const std::string& path, bool append);
  // "line" or "record".
  void SetUnit(std::string_view unit) { unit_ = unit; }
  void Add(uint64_t line, std::string_view error);
  uint64_t count() const { return count_; }
  // "line 12: ..." for the first ones and a count of the rest; empty if there were none.
  std::string Summary() const;
  // Hands what was written to the disk, and says whether all of it could be.
  Status Flush();

 private:
  struct FileDeleter {
    void operator()(FILE* file) const { fclose(file); }
  };
  std::string path_;
  std::string unit_{"line"};
  std::unique_ptr<FILE, FileDeleter> file_;
  std::vector<std::string> first_;
  uint64_t count_{0};
};

// Progress on a terminal is one line that is written over and over; elsewhere a line now and then.
class Progress {
 public:
  enum class Style : uint8_t { kBar, kLines, kNone };

  // `bytes_total` 0: unknown. `begin`: where a resumed import began, for the rates.
  Progress(Style style, FILE* out, uint64_t bytes_total, ImportState begin, int64_t now_micros);
  // Cheap when nothing is due.
  void Update(const ImportState& state, int64_t now_micros);
  // Leaves the terminal's line as it is last.
  void Finish(const ImportState& state, int64_t now_micros);

  // "[####......]  40%  1,234,567 rows  51,200 rows/s  0:12 left  3 refused", for `columns` of
  // terminal.
  std::string Bar(const ImportState& state, int64_t now_micros, size_t columns) const;
  std::string Line(const ImportState& state, int64_t now_micros) const;

 private:
  Style style_;
  FILE* out_;
  uint64_t bytes_total_;
  ImportState begin_;
  int64_t begin_micros_;
  int64_t next_micros_;
};

// 1234567 -> "1,234,567".
std::string GroupDigits(uint64_t number);

}  // namespace cellar::importer
