// Row keys that split a table into parts of about equal bytes (TABLE SAMPLE), from the split keys
// that the trees of its locality groups know. Nothing is walked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/table/table.h"

namespace cellar {

// At most this many parts: more would only make the reply longer than it is useful.
inline constexpr uint64_t kSplitPartsMax{65'536};

// At most `parts - 1` encoded row keys, ascending and distinct. Rows of them are stored, but
// retention may have dropped all that they hold. O(parts log n) for each group. REQUIRES: parts
// >= 1.
std::vector<std::string> SplitRowKeys(const Table& table, uint64_t parts);

}  // namespace cellar
