// ScatterPage: the reply of a CSCAN over several sets as it grows: rows as the sets have answered
// them, statistics summed, and the cursor in front at the end. It is given to the client in slices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/clock.h"
#include "commands/arguments/read_arguments.h"
#include "commands/session/task.h"

namespace cellar {

// What a set has answered.
struct PagePart {
  std::string bytes;
  std::string cursor;
  size_t rows_begin{0};  // of the rows alone
  size_t rows_end{0};
  uint64_t rows{0};
  std::string group_front;  // if it tells the place
  uint64_t group_rows{0};
  struct Place {
    std::string key;
    size_t front_bytes;
  };
  std::vector<Place> places;  // if it tells them
};

// STATS, of all sets.
struct PageStats {
  uint64_t rows{0};
  uint64_t cells{0};
  uint64_t bytes{0};
  uint64_t groups{0};
  std::string index;
  std::vector<std::string> notes;

  // Adds the map of a reply.
  [[nodiscard]] bool Add(std::string_view map);
};

class ScatterPage {
 public:
  struct Shape {
    bool keys_only{false};
    bool arrays{false};  // a column's entry is an array of versions
    bool stats{false};
    bool counts_cells{false};  // CELLS
  };
  ScatterPage(Shape shape, Clock& clock)
      : shape_(shape), clock_(&clock), begin_micros_(clock.MonotonicMicros()) {}

  // Takes an answer apart, `part->bytes`; its statistics are summed. False: it is none that a set
  // gives.
  [[nodiscard]] bool Read(PagePart* part, bool tells_place);
  // All its rows come next.
  void Add(PagePart part);
  // Of a part's rows the bytes of each, ascending: where it begins, and the end of the last one.
  std::vector<size_t> RowPositions(const PagePart& part) const;
  // Of a row, or of all: cells, as CELLS counts them.
  uint64_t CellsIn(std::string_view rows, uint64_t count) const;
  // A single row comes next.
  void AddRow(std::string_view row);

  uint64_t rows() const { return rows_; }
  uint64_t cells() const { return cells_; }
  // Of the rows alone.
  size_t bytes() const { return bytes_; }
  size_t memory_bytes() const { return memory_bytes_; }

  // Nothing is added any more; Deliver from now on.
  void End(std::string cursor);
  bool ended() const { return !cursor_.empty(); }
  bool is_last() const { return cursor_ == "0"; }
  // Writes the reply, or a part of it.
  TaskProgress Deliver(ReplyWriter& reply, const TaskBudget& budget);

 private:
  bool ReadPlaces(std::string_view bytes, PagePart* part) const;
  void ReplyStats(ReplyWriter& reply) const;

  struct Piece {
    std::string bytes;
    size_t begin;
    size_t end;
  };
  Shape shape_;
  Clock* clock_;
  int64_t begin_micros_;
  std::vector<Piece> pieces_;
  uint64_t rows_{0};
  uint64_t cells_{0};
  size_t bytes_{0};
  size_t memory_bytes_{0};
  PageStats stats_;
  std::string cursor_;
  size_t delivered_{0};  // pieces
  bool head_delivered_{false};
};

}  // namespace cellar
