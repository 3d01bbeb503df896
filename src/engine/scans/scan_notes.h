// What of a scan that has been opened is most likely a surprise: beside ReadNotes, which the words
// of the request alone tell (CEXPLAIN, and STATS).
#pragma once

#include <string>
#include <vector>

#include "engine/rows/scan.h"
#include "engine/table/table.h"

namespace cellar {

// Adds one sentence for each. `scan` is of `table`, or of a part of it that may be seen. O(ON
// columns).
void NoteScan(const Table& table, const Scan& scan, std::vector<std::string>* notes);

}  // namespace cellar
