// SlicedChange: a change of many rows that lets other work come between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cellar/status.h"

namespace cellar {

// A change too large for one turn: CDELRANGE, CUPDATE, FAMILY ALTER. Step() does a bounded piece,
// each piece atomic and logged; the caller goes on until done(). It may outlive its table (NOTABLE
// then) but not the store.
class SlicedChange {
 public:
  virtual ~SlicedChange() = default;
  // Examines about `cells_max` cells. An error ends it.
  virtual Status Step(uint64_t cells_max) = 0;
  virtual bool done() const = 0;
  // That have been deleted or changed.
  virtual uint64_t rows() const { return 0; }
  // Has it changed the schema of its table already? Then that stays.
  virtual bool schema_changed() const { return false; }
  // About where it is: an encoded row key.
  virtual std::string_view place() const { return {}; }
  // Held for the work, beside views of the trees.
  virtual size_t memory_bytes() const { return 0; }
  // What of it may grow with the rows, at its most, about.
  virtual size_t memory_bytes_max() const { return 0; }
};

}  // namespace cellar
