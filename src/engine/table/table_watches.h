// TableWatches: how often a table has changed, and how often each of its rows that somebody
// watches: the numbers that WATCH and CWATCH compare.
//
// They are driven by what is applied, in the primitives of Table, and by nothing else: whoever
// brings a mutation (a command, EXEC, the log), it counts in the same way. What nobody can see does
// not count: reclaiming what retention has dropped, the state of an index that is being built.
//
// The numbers are in no file. They go along when a table is truncated, when a change is taken back
// (Table::Checkpoint), and when the state is loaded again under running clients (Inheritance in
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
    if (!rows_.empty()) [[unlikely]]
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
  void NoteWatchedRow(std::string_view row_key);

  uint64_t changes_{0};
  std::map<std::string, Row, std::less<>> rows_;
};

}  // namespace cellar
