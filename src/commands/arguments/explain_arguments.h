// The words of CEXPLAIN: those of the read that it is about, and ANALYZE. The words of CGET, CMGET
// and CEXISTS are parsed here a second time: a new one goes to both places.
//
// ANALYZE stands last, so that the table keeps its place; where the read itself could mean that
// word (CROW table ANALYZE) it does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/status.h"
#include "commands/arguments/arguments.h"
#include "commands/arguments/read_arguments.h"
#include "engine/request/aggregate_request.h"
#include "engine/request/read_options.h"
#include "engine/request/row_write.h"

namespace cellar {

// A read command as the scan that it comes to. Views borrow from the client's words.
struct Explained {
  std::string_view name;  // lower case
  std::string_view table;
  ReadRequest request;
  std::optional<AggregateRequest> aggregate;  // CAGG
  std::optional<RowWrite> update;             // CUPDATE
  std::string_view cursor{"0"};
  uint64_t rows_max{kUnlimited};
  uint64_t cells_max{kUnlimited};
  std::vector<std::string> notes;  // of what a CUPDATE would write
};

// The read, and whether ANALYZE stands behind it. `words`: from the name of the read on.
Result<bool> ReadExplained(Arguments words, Explained* read);

}  // namespace cellar
