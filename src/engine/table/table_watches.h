// TableWatches: how often a table has changed, and how often each of its rows that somebody
// watches: the numbers that WATCH and CWATCH compare.
//
// They are driven by what is applied, in the primitives of Table, and by nothing else: whoever
// brings a mutation (a command, EXEC, the log), it counts in the same way. What nobody can see does
// not count: reclaiming what retention has dropped, the state of an index that is being built.
//
// Whoever works through a table in slices, and must not miss what others change behind him, has the
// rows that change recorded (Record) and takes them before each slice.
//
// The numbers are in no file. They go along when a table is truncated, when a change is taken back
// (Table::Checkpoint), and when the state is loaded again under running clients (CarriedState in
// engine.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cellar {

class TableWatches {
 public:
  // Changes of the table so far.
  uint64_t changes() const { return changes_; }
  // Something in the table has changed; which row, if any, NoteRow tells.
  void Note() { ++changes_; }
  void NoteRow(std::string_view row_key) {
    if (notes_rows_) [[unlikely]]
      NoteWatchedRow(row_key);
  }
  // The table as such: its name, its schema, all of its content.
  void NoteAll();

  // Begins to count the changes of a row, unless somebody watches it already. Returns their number.
  uint64_t Watch(std::string_view row_key);
  // Nothing happens if nobody watches it.
  void Unwatch(std::string_view row_key);
  // Nullopt if nobody watches it.
  std::optional<uint64_t> RowChanges(std::string_view row_key) const;
  bool watches_rows() const { return !rows_.empty(); }

  // Begins to record the rows that change, under the number that it returns.
  uint64_t Record();
  // The rows recorded since the last time, each at least once; nullopt if there were too many, or
  // nobody records under that number: then any row may have changed.
  std::optional<std::vector<std::string>> TakeRecord(uint64_t number);
  void EndRecord(uint64_t number);
  // Of all. The state is about to be loaded again, which whoever records cannot follow.
  void ForgetRecords();

  // The watched rows in [begin, end), no end if that is empty, ascending.
  std::vector<std::string> RowsIn(std::string_view begin, std::string_view end) const;

  // What was counted, so that a change that turns out to be one that nobody can see is not.
  struct Mark {
    uint64_t changes{0};
    std::vector<std::pair<std::string, uint64_t>> rows{};
  };
  // Of the table.
  Mark TakeMark() const { return {.changes = changes_, .rows = {}}; }
  // Of the table, and of those of `rows` that are watched.
  Mark TakeMark(const std::vector<std::string>& rows) const;
  void ReturnTo(const Mark& mark);

 private:
  struct Row {
    uint64_t changes{0};
    uint64_t watchers{0};
  };
  struct RowRecord {
    std::vector<std::string> rows;
    bool overflows{false};
  };
  static constexpr size_t kRecordedMax{100'000};
  void NoteWatchedRow(std::string_view row_key);

  uint64_t changes_{0};
  bool notes_rows_{false};  // rows_ or records_ is not empty
  uint64_t record_last_{0};
  std::map<std::string, Row, std::less<>> rows_;
  std::map<uint64_t, RowRecord> records_;
};

}  // namespace cellar
