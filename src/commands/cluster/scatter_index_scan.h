// ScatterIndexScan: a CSCAN by an index of a table whose rows lie on several sets. Each set has an
// index of its own rows; their pages are merged by the keys of the index.
//
//   set 0   ber|r7   ham|r2   ulm|r9 ...     cursor ->
//   set 1   bon|r1   ham|r5   ...            cursor ->      page   ber|r7 bon|r1 ham|r2 ham|r5 ...
//
// Where a page ends is found here, as a ScanRun finds it: COUNT, bytes, EACH. Its cursor is the key
// of the next entry, whoever has it. Under CELLS a row may be cut: one that does not fit whole is
// asked for anew, of a set that is told exactly what is left of the page.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "commands/arguments/scan_cursor.h"
#include "commands/cluster/scatter_page.h"
#include "commands/cluster/scatter_task.h"

namespace cellar {

class ScatterIndexScan final : public ScatterTask {
 public:
  struct Plan {
    bool reverse{false};
    std::optional<EachOptions> each;
    uint64_t rows_max{kUnlimited};
    uint64_t cells_max{kUnlimited};
    size_t bytes_max{SIZE_MAX};
    uint64_t index_id{0};
    uint64_t binding{0};            // of cursors
    std::optional<uint64_t> pin{};  // of cursors of a frozen table
    uint64_t seed{0};
    bool draws_rows{false};
    ScanPosition from;        // where it begins; no key: at the front
    std::string group_front;  // of EACH, there
    ScatterPage::Shape shape;
  };
  ScatterIndexScan(const CommandContext& ctx, const Table& table, Plan plan);

  bool Streams() const override { return page_.ended(); }
  char FirstByte() const override { return '*'; }
  size_t reply_bytes() const override { return page_.bytes(); }
  bool at_end() const override { return page_.is_last(); }
  size_t memory_bytes() const override;

 private:
  // Entries of rows of one set, in order.
  struct Stream {
    uint64_t set{0};
    KeyRangeSet rows;
    std::string cursor;  // where it goes on behind `part`; "0": at its end
    bool ended{false};
    std::optional<uint64_t> ticket;
    uint64_t asked_at_rows{0};              // of the page, and
    bool asked_exactly{false};              // for no more than what was left of it:
    std::optional<PagePart::Place> wanted;  // for this row
    PagePart part;
    std::vector<size_t> positions;  // of its rows
    size_t next{0};                 // row of it
    bool cut{false};                // its last row is not whole

    bool has_row() const { return next < part.places.size(); }
    const PagePart::Place& head() const { return part.places[next]; }
    std::string_view row() const {
      return std::string_view(part.bytes)
          .substr(positions[next], positions[next + 1] - positions[next]);
    }
  };
  enum class Taken : uint8_t { kRow, kAsksAgain, kPageEnds };

  TaskProgress Advance(TaskContext& context) override;
  void SetPin(uint64_t pin) override { plan_.pin = pin; }
  // Streams whose rows nobody was asked for yet. False: the map does not know of all.
  bool OpenStreams();
  void Ask(Stream* stream);
  void SetLimits(const Stream& stream, CallPiece* piece) const;
  // False: it has failed.
  bool TakeAnswers(TaskContext& context, bool* moved);
  bool TakePart(Stream* stream, std::string reply);
  // The one whose row comes next; null: all have ended.
  Stream* FindNext();
  // Moves the row of the stream to the page, or ends the page.
  Taken TakeRow(Stream* stream);
  Taken TakeRowByCells(Stream* stream);
  // As far as the page has not grown since, its row is cut as the page wants it.
  bool IsExact(const Stream& stream) const;
  // False: somebody is being asked.
  bool AskWhereNeeded();
  bool CountInGroup(const PagePart::Place& place);
  void EndPageAt(const PagePart::Place& place);
  std::string CursorAt(const PagePart::Place& place, bool of_page) const;
  bool by_cells() const { return plan_.shape.counts_cells && !plan_.shape.keys_only; }

  Plan plan_;
  ScatterPage page_;
  struct Rest {
    KeyRangeSet rows;
    std::string cursor;
  };
  std::vector<Rest> rests_;  // to be divided
  std::vector<Stream> streams_;
  std::string group_front_;
  uint64_t group_rows_{0};
};

}  // namespace cellar
