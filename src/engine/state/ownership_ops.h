// Which records say who owns what (kTablets to kTabletAssign in table/mutation.h): they are on the
// disks of a majority before anybody is told of them, whatever appendfsync says.
#pragma once

#include <string_view>

namespace cellar {

// Whether some op of the payload is one of ownership. O(ops) of a record of rows, O(1) of those
// that are of ownership alone.
bool ChangesOwnership(std::string_view payload);

// The same of a payload whose first op is none of rows; false for the others. O(1) for those.
bool BeginsWithOwnership(std::string_view payload);

}  // namespace cellar
