// What scans of a table and scans of an index share: which keys they walk over.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/keys/key_range_set.h"
#include "engine/keys/order.h"
#include "engine/rows/scan.h"

namespace cellar {

// Leaves of ascending `ranges` what lies at or behind `from` in the direction of the scan.
void ClipRanges(const ScanPosition& from, bool reverse, std::vector<KeyRange>* ranges);

// And what lies in `wanted`.
void KeepCommon(const KeyRangeSet& wanted, std::vector<KeyRange>* ranges);

// The text of a bound that is the encoding of a key's first components, or of all of them; none of
// other bytes.
std::optional<std::string> DecodeFirstComponents(const Order& order, std::string_view bound);

// SAMPLE: the same rows for the same seed.
bool RowIsDrawn(std::string_view row_key, uint64_t seed, std::optional<double> probability);

}  // namespace cellar
