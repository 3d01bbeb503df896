// What a read asks for, as text: the row options and cell options of cellar-query(7).
//
// Commands fill these in; Scan compiles them against a table's schema. Views borrow from the
// caller's arguments; Scan copies what it keeps.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/request/row_write.h"

namespace cellar {

inline constexpr uint64_t kUnlimited{std::numeric_limits<uint64_t>::max()};

// Which cells of a row. They apply in the order of the members (cellar-query(7)).
struct CellOptions {
  const FamilyAccess* access{nullptr};  // null: everything is allowed
  std::vector<ColumnSelector> columns;  // union; empty: all
  // If set: of these, only those that are among some others too (CAGG: what it looks at).
  const std::vector<ColumnSelector>* columns_within{nullptr};
  TimeRange time;
  std::optional<uint64_t> versions_max;  // unset: 1, or all when there is a filter; ALL: kUnlimited
  std::optional<std::string_view> filter;
  bool timestamps{true};  // false: nobody looks at those of the cells, so they may be wrong
  bool values{true};      // false: nobody looks at those of the cells, so they may be empty
  bool expiries{false};   // true: somebody looks when cells expire
  bool columns_reverse{false};
  uint64_t columns_skip{0};
  uint64_t super_columns_max{kUnlimited};  // GROUPS
  uint64_t columns_max{kUnlimited};        // PERROW
};

struct RowSelector {
  enum class Kind : uint8_t { kPrefix, kRange, kRow };
  Kind kind{Kind::kRow};
  std::string_view first;   // prefix, min bound ("[a", "(a", "-", "+"), row
  std::string_view second;  // max bound
};

// CSCAN ... INDEX name [EQ n value ...] [BETWEEN min max] [FROM n value ...]
struct IndexOptions {
  std::string_view name;
  std::vector<std::string_view> equal;
  std::optional<std::pair<std::string_view, std::string_view>> between;
  std::vector<std::string_view> from;
};

// EACH k n: at most n rows of those that have the same first k components of their keys (with
// INDEX: the same first k ON values). Those count that are given out, in the scan's direction.
struct EachOptions {
  uint64_t components{0};
  uint64_t rows{0};
};

// Which rows, in which direction.
struct RowOptions {
  std::vector<RowSelector> rows;  // union; empty: the whole table
  std::optional<IndexOptions> index;
  bool reverse{false};
  std::optional<EachOptions> each;
  std::vector<Predicate> where;  // all must hold
  // Somebody else asks them, of each row that is given: here they help to find rows at most.
  bool where_elsewhere{false};
  std::optional<double> sample;  // probability of each row
  uint64_t seed{0};              // of what is drawn; 0: another one each time
  bool no_index{false};          // NOINDEX: none that is not named
  bool cells_wanted{true};       // false: nobody looks at them, only whether a row has one
  // Nobody looks in which order they come, and none goes on later, if there are at most so many.
  uint64_t reordered_max{0};
};

}  // namespace cellar
