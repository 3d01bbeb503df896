// CellConversion: cells of a family that have another type than FAMILY ALTER has given it are
// rewritten in their place, timestamp and expiry kept, a slice at a time (family_alter.cc says how
// that is seen). It begins when the family has its types: nobody can put a cell of another one
// behind it.
//
// Each slice is a step by itself, and so is, where an index may refuse it, each row of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cellar/status.h"
#include "engine/keys/compression.h"
#include "engine/keys/key_range_set.h"
#include "engine/request/family_access.h"
#include "engine/schema/schema.h"
#include "engine/schema/type_change.h"
#include "engine/table/table.h"
#include "engine/table/type_walk.h"
#include "store/type_look.h"

namespace cellar {

class Store;

class CellConversion {
 public:
  // `others`: kConvert, or kSkip, which passes over rows that an index refuses. `rights` (null:
  // all): of values that errors may tell of; outlives it.
  CellConversion(Store& store, uint32_t family_id, OtherCells others, const FamilyAccess* rights);
  // It rewrites no other rows. REQUIRES: before the first Step.
  void Restrict(KeyRangeSet rows) { rows_ = std::move(rows); }

  // Whether the indexes are whole that must be to judge a row; builds on if they are not.
  bool PrepareIndexes(Table* table, uint64_t rows_max);
  // A further slice. `change`: what the family wants now. NOTUNIQUE, TOOLARGE: an index refuses a
  // row, which stays as it was, and those before it are done; MISCONF. REQUIRES: those indexes
  // are whole; not at_end().
  Status Step(Table* table, const FamilySchema& family, const TypeChange& change,
              uint64_t cells_max);
  bool at_end() const { return walk_.at_end(); }
  uint64_t rows_rewritten() const { return rows_rewritten_; }
  // Cells so far that are no value of the wanted type.
  const FoundCells& stuck() const { return stuck_; }
  size_t memory_bytes() const {
    return rewritten_.capacity() + rewrites_.capacity() * sizeof(Rewrite);
  }

  // The errors in which it ends: others have altered the family; cells do not fit that were written
  // behind the look.
  static Status ChangedAgain(const FamilySchema& family, uint64_t rows);
  static Status Left(const FoundCells& stuck);

 private:
  // A cell: its parts, one behind the other in rewritten_.
  struct Rewrite {
    size_t begin;
    size_t row_bytes;
    size_t qualifier_bytes;
    size_t value_bytes;
    int64_t timestamp;
  };
  using Rewrites = std::span<const Rewrite>;

  std::string_view RowOf(const Rewrite& cell) const {
    return std::string_view(rewritten_).substr(cell.begin, cell.row_bytes);
  }
  void Convert(const Table& table, const FamilySchema& family, const TypeWalk::Cell& cell);
  Status RewriteAll(Table* table);
  Rewrites RowFrom(size_t at) const;
  bool MayBeRefused(const Table& table) const;
  void AddRows(const Table& table, Rewrites cells);
  Status Committed(Status status);
  Status CommitUnlessRefused(Table* table, Rewrites cells, Status* refusal);

  Store& store_;
  const uint32_t family_id_;
  const OtherCells others_;
  const FamilyAccess* const rights_;
  std::optional<KeyRangeSet> rows_{};  // nothing: all
  TypeWalk walk_;
  std::vector<Rewrite> rewrites_;
  std::string rewritten_;
  std::string converted_;  // scratch
  ValuePacker packer_;
  FoundCells stuck_;
  uint64_t rows_added_{0};  // to the mutation at hand
  uint64_t rows_rewritten_{0};
};

}  // namespace cellar
