// TABLE SAMPLE over several sets: what each set tells of its rows, and the keys that split all of
// them.
//
//   a set's reply    [bytes of a part, first row's key, row, key of a part's first row, row ...]
//
// Keys are encoded, rows are text; all parts of a set have about the same bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "commands/session/command_context.h"

namespace cellar {

class Table;

// Where a part of a set's rows begins.
struct SamplePoint {
  std::string key;
  std::string row;
  uint64_t bytes;  // of the part
};

// Of the rows that the table shows, for `parts` parts of all sets together. O(parts log n)
void ReplySamplePoints(CommandContext& ctx, const Table& table, uint64_t parts);
// At most parts - 1 rows that split all of them into parts of about equal bytes. REQUIRES: parts
// >= 1.
std::vector<std::string> SplitPoints(std::vector<SamplePoint> points, uint64_t parts);

}  // namespace cellar
