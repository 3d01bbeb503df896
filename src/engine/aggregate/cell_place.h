// CellPlace: where and when a cell stands, for functions that ask for more than its value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cellar {

struct CellPlace {
  std::string_view row_key;    // encoded
  size_t family{0};            // index in TableSchema::families
  std::string_view qualifier;  // encoded
  int64_t timestamp_micros{0};
  uint64_t column{0};  // serial of its row and column, not 0 where a function asks (WantsColumn)
};

}  // namespace cellar
