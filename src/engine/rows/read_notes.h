// What in a read is most likely a mistake although the contract gives it a meaning: a range with
// min behind max is empty, a prefix that ends in a number means that number alone. The reply is
// what the contract says; these sentences stand where somebody looks who wonders about it
// (CEXPLAIN, and STATS).
#pragma once

#include <string>
#include <vector>

#include "engine/request/read_options.h"
#include "engine/schema/schema.h"

namespace cellar {

// One sentence for each; mostly none. `rows` and `cells` have passed the checks of a scan with the
// families that `schema` shows. O(options).
std::vector<std::string> ReadNotes(const TableSchema& schema, const RowOptions& rows,
                                   const CellOptions& cells);

}  // namespace cellar
