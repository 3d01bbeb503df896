// What scans of a table and scans of an index share: which keys they walk over.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/keys/order.h"
#include "engine/rows/scan.h"

namespace cellar {

// Leaves of ascending `ranges` what lies at or behind `from` in the direction of the scan.
void ClipRanges(const ScanPosition& from, bool reverse, std::vector<KeyRange>* ranges);

// SAMPLE: the same rows for the same seed.
bool RowIsDrawn(std::string_view row_key, uint64_t seed, std::optional<double> probability);

}  // namespace cellar
