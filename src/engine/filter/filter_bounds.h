// What must hold for a cell to matter to a filter, read off its expression: bounds for the scan
// below.
//
// A cell outside these bounds neither passes nor changes what happens to any other cell, so a scan
// that leaves it out gives the same result. Row conditions reach down from anywhere in a chain;
// family and qualifier conditions only from before the first limit, offset or if (which count or
// look at all cells), conditions on ts from before the first latest too. Behind a step with a sink
// nothing is taken, because the sink's cells do not come that way.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/filter/filter.h"
#include "engine/filter/filter_run.h"
#include "engine/keys/key_range_set.h"

namespace cellar {

struct FilterBounds {
  KeyRangeSet rows;                     // encoded row keys
  std::vector<KeyRangeSet> qualifiers;  // by family index; an empty set: the family is not needed
  int64_t timestamp_min{0};             // both inclusive
  int64_t timestamp_max{INT64_MAX};
  // Versions of a column behind its newest `latest_max` ones within the timestamps above are not
  // needed (UINT64_MAX: all may be).
  uint64_t latest_max{UINT64_MAX};
};

FilterBounds AnalyzeFilter(const Filter& filter, const Order& key_order,
                           std::span<const FilterFamily> families);

}  // namespace cellar
