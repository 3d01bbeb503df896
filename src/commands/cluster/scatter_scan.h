// ScatterScan: a CSCAN of a table whose rows lie on several sets.
//
//   tablets      |--- set 0 ---|--- set 2 ---|--- set 0 ---|
//   asked             1 -------->    2 ------->  3 ...         each for what is left of the page
//
// The pieces are asked one behind the other, from where the cursor stands, in the direction of the
// scan. A page ends where its set says that it is full, with that set's cursor: cursors are text
// that holds all there is to know, and good at any node. So that a page which is full at the edge
// of a piece says whether that was all, and where the next one begins, the next piece is asked for
// no rows more. EACH goes on in a group over an edge: a piece begins with a cursor that says how
// many rows of it have been given.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "commands/arguments/scan_cursor.h"
#include "commands/cluster/scatter_page.h"
#include "commands/cluster/scatter_task.h"

namespace cellar {

class ScatterScan final : public ScatterTask {
 public:
  struct Plan {
    std::vector<KeyRange> ranges;  // that are left, ascending
    bool reverse{false};
    bool each{false};
    uint64_t rows_max{kUnlimited};
    uint64_t cells_max{kUnlimited};
    size_t bytes_max{SIZE_MAX};
    uint64_t binding{0};            // of cursors
    std::optional<uint64_t> pin{};  // of cursors of a frozen table
    uint64_t seed{0};
    ScatterPage::Shape shape;
  };
  ScatterScan(const CommandContext& ctx, const Table& table, Plan plan);

  bool Streams() const override { return page_.ended(); }
  char FirstByte() const override { return '*'; }
  size_t reply_bytes() const override { return page_.bytes(); }
  bool at_end() const override { return page_.is_last(); }
  size_t memory_bytes() const override { return page_.memory_bytes(); }

 private:
  TaskProgress Advance(TaskContext& context) override;
  void SetPin(uint64_t pin) override { plan_.pin = pin; }
  // False: it has to wait, for the map.
  bool AskNext();
  // False: the page is complete.
  bool TakePart(TaskContext& context, std::string reply);

  Plan plan_;
  ScatterPage page_;
  std::optional<uint64_t> ticket_;
  KeyRange run_;  // who is asked has these
};

// Bytes of the head of a page's rows, as one server writes it before it knows their number.
size_t RowsHeadBytes(uint64_t rows_max);

}  // namespace cellar
