// ReclaimWalk: finds, a bounded slice at a time, the columns of a table of which retention has
// dropped versions. FAMILY ALTER and the sweeper turn what it finds into mutations.
//
// It keeps a key, not a cursor, between slices: the table may change meanwhile, even its schema.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/table/mutation.h"
#include "engine/table/table.h"

namespace cellar {

class ReclaimWalk {
 public:
  // Of one family, or of all.
  explicit ReclaimWalk(std::optional<uint32_t> family_id) : family_id_(family_id) {}
  // Likewise, in the row with that key alone.
  ReclaimWalk(std::optional<uint32_t> family_id, std::string row)
      : family_id_(family_id), row_(std::move(row)), from_(row_) {}

  // Examines about `cells_max` cells and adds a reclaim op for each column that has dropped
  // versions. True when it has come to the end of the table.
  bool Step(const Table& table, int64_t now_micros, uint64_t cells_max, MutationBuilder* mutation);
  uint64_t columns_found() const { return columns_found_; }

 private:
  bool Wanted(const Table& table, const FamilySchema* family) const;

  std::optional<uint32_t> family_id_;
  std::string row_;  // empty: all
  size_t group_{0};
  std::string from_;
  uint64_t columns_found_{0};
};

}  // namespace cellar
