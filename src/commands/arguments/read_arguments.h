// The options of the commands that read cells (CGET, CROW, CROWS, CSCAN, CCOUNT, CAGG), or select
// rows to be changed (CUPDATE), as plain data: which rows, which cells, and how the reply shows
// them. A command has the options that its syntax names (read_syntax.h); one of CSCAN that would
// do nothing in CCOUNT or CAGG is refused. Pure functions (see cell_arguments.h for what is checked
// here and what is not).
#pragma once

#include <cstdint>
#include <limits>

#include "cellar/status.h"
#include "commands/arguments/arguments.h"
#include "engine/request/aggregate_request.h"
#include "engine/request/read_options.h"

namespace cellar {

inline constexpr uint64_t kScanCountDefault{100};  // cellar-query(7), "ROW OPTIONS"

enum class CountBy : uint8_t { kRows, kGroups, kColumns, kCells };

// How a reply shows cells. Any of them makes a column's entry an array of versions.
struct CellFormat {
  bool versions{false};    // VERSIONS was said
  bool timestamps{false};  // WITHTS
  bool types{false};       // WITHTYPE
  bool expiries{false};    // WITHTTL
  bool labels{false};      // WITHLABELS
  bool states{false};      // STATE: an hll as its state; it makes no array

  bool arrays() const { return versions || timestamps || types || expiries || labels; }
};

struct ReadRequest {
  RowOptions rows;
  CellOptions cells;
  CellFormat format;
  uint64_t rows_max{kScanCountDefault};  // COUNT
  uint64_t cells_max{kUnlimited};        // CELLS
  bool keys_only{false};
  bool stats{false};
  bool snapshot{false};
  CountBy by{CountBy::kRows};
  uint64_t changes_max{kUnlimited};  // LIMIT, of CUPDATE

  // Back to the defaults, keeping the memory.
  void Clear();
};

inline constexpr uint64_t kRowsNamedMax{100'000};  // cellar-model(7), "LIMITS"
// TOOLARGE: so many rows are more than a CROWS may name.
Status CheckRowsNamed(uint64_t count);

// The options of CGET.
struct GetOptions {
  int64_t at_micros{std::numeric_limits<int64_t>::max()};  // AT
  bool timestamp{false};                                   // WITHTS
  bool state{false};                                       // STATE
};
Result<GetOptions> ParseGetOptions(ArgumentCursor at);

enum class ReadCommand : uint8_t { kRow, kRows, kScan, kCount, kUpdate, kAggregate };

// SAMPLE, and sample() in a filter (a word of that name inside a string does no harm).
bool DrawsRows(const ReadRequest& request);

// Takes all options up to the end. *request is cleared first. A keyword that `command` does not
// have is a syntax error, as is a second single-use one.
Status ParseReadOptions(ReadCommand command, ArgumentCursor at, ReadRequest* request);
// Takes the selection of a CUPDATE, up to the first word that begins an op (IsOpWord), which must
// be there.
Status ParseUpdateOptions(ArgumentCursor* at, ReadRequest* request);
// Takes all options of CAGG: those of a read, and its own.
Status ParseAggregate(ArgumentCursor at, ReadRequest* request, AggregateRequest* aggregate);

}  // namespace cellar
