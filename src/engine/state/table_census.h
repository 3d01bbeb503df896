// CountTable: goes through every entry of a table's trees, checks what can be said of each alone,
// and counts anew what the table's counters should say.
//
// For what comes from damaged files: a table of which blocks are missing has other counters than
// its snapshot says. And for tests: whatever was recovered must pass, and agree with its counters.
#pragma once

#include "cellar/status.h"
#include "engine/table/table.h"

namespace cellar {

// rows, and of each family cells, bytes, and what is counted of cells with flags; what cannot be
// counted (has_ghosts, reclaimed, the next record number) is as the table has it, the record number
// above all that are stored. kCorruption, naming table and key, for an entry that no mutation can
// have put there. O(entries).
Result<TableCounters> CountTable(const Table& table);

}  // namespace cellar
