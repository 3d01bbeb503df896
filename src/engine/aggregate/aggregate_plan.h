// AggregatePlan: BY and REDUCE of a CAGG, checked against a schema and compiled.
//
// A group is known by its key: the encodings of its terms, one behind the other, each of which ends
// by itself, so that memcmp order is the order of the groups:
//
//   KEY k, PART            the components as the row key has them
//   PART with STEP         a number (aggregate_value.h); its complement where the component descends
//   BYTES k                escaped text; likewise
//   FAMILY                 index of the family u16, which is the order of the names
//   COLUMN                 the same, and the qualifier as the cell's key has it
//   QUALIFIER k            the components as the cell's key has them, where all families have one
//                          order; else their text, escaped
//   TIME                   i64, sign bit flipped: a step of 1970 may begin before it
//   VALUE                  aggregate_value.h
//
// Multi-byte numbers are big-endian. Everything here is copied from schema and request, so that a
// plan may be used by other threads and outlive both.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/status.h"
#include "engine/aggregate/aggregate_value.h"
#include "engine/aggregate/number_bounds.h"
#include "engine/aggregate/number_step.h"
#include "engine/aggregate/time_step.h"
#include "engine/request/aggregate_request.h"
#include "engine/schema/column_set.h"
#include "engine/schema/schema.h"

namespace cellar {

struct PlannedTerm {
  GroupTerm::Kind kind{GroupTerm::Kind::kKey};
  size_t count{0};         // kKey: components; kPart: index of the component; kBytes, kQualifier
  bool descending{false};  // kPart, kBytes
  ComponentType component{ComponentType::kBytes};  // kPart
  std::optional<NumberStep> step;
  uint64_t duration_micros{0};        // kTime, or
  std::optional<TimeStep> time_step;  // kTime
  size_t family{0};                   // kValue: index in TableSchema::families
  std::string qualifier;              // kValue, encoded
  bool as_text{false};                // kQualifier: orders differ
  Order order;                        // kQualifier: else the one that they have

  // Has its values a distance, so that some may be missing?
  bool has_steps() const { return kind == GroupTerm::Kind::kTime || step.has_value(); }
  bool of_cell() const {
    return kind >= GroupTerm::Kind::kFamily && kind <= GroupTerm::Kind::kTime;
  }
};

struct PlannedReduce {
  Reduce::Function function{Reduce::Function::kCount};
  Reduce::Target target{Reduce::Target::kAll};
  size_t family{0};
  std::string qualifier;  // encoded
  std::string name;
  std::vector<Decimal> quantiles;
  NumberBounds bounds;
  size_t offset{0};  // of its accumulator in a group's

  bool Takes(size_t of_family, std::string_view of_qualifier) const {
    if (target == Reduce::Target::kAll) return true;
    if (of_family != family) return false;
    return target == Reduce::Target::kFamily || of_qualifier == qualifier;
  }
};

struct PlannedHaving {
  size_t reduce{0};
  CompareOp op{CompareOp::kEq};
  std::string value;
};

struct PlannedFamily {
  std::string name;
  Order order;
  bool text_counts{false};  // has no TYPE: text that is a number counts as one
  std::vector<TypedColumn> columns{};

  bool TextCounts(std::string_view qualifier) const {
    if (columns.empty() || !text_counts) [[likely]]
      return text_counts;
    const auto found = std::lower_bound(columns.begin(), columns.end(), qualifier,
                                        [](const TypedColumn& column, std::string_view sought) {
                                          return column.qualifier < sought;
                                        });
    return found == columns.end() || found->qualifier != qualifier;
  }
};

struct AggregatePlan {
  Order key;
  std::vector<PlannedFamily> families;  // as in the schema
  std::vector<PlannedTerm> terms;
  std::vector<PlannedReduce> reduces;
  std::vector<PlannedHaving> having;
  Fill fill{Fill::kNone};
  size_t fill_term{0};  // the one with steps
  ValueType fill_type{ValueType::kBytes};
  std::string fill_stored;     // kValue: of fill_type
  std::optional<size_t> sort;  // index in `reduces`
  bool sort_descending{false};
  bool reverse{false};
  uint64_t skip{0};
  uint64_t limit{kUnlimited};
  bool groups_by_cell{false};  // a term is of the cell
  // A group's key is what its rows' keys begin with: there is one group, or BY KEY is all. No such
  // beginning is that of another one.
  bool groups_by_front{false};
  bool wants_timestamps{false};
  bool wants_places{false};   // a function asks where and when cells stand
  bool wants_columns{false};  // and of which column
  size_t accumulator_bytes{0};

  // NOFAMILY, NOPERM, ERR, BADVALUE, TOOLARGE. `columns` are those of the cell
  // options.
  static Result<AggregatePlan> Compile(const TableSchema& schema, const AggregateRequest& request,
                                       const std::vector<ColumnSelector>& columns, bool reverse);
};

// Flipped in the key of TIME.
inline constexpr uint64_t kTimeSignBit{uint64_t{1} << 63};

// The text of the first `count` components of a key, which are what `encoded` holds.
std::string FirstComponentsText(const Order& order, std::string_view encoded, size_t count);

// Makes `cells` read no more than the targets of the request, where that changes nothing: other
// cells make no group, but they count for filters and limits, and make a row one that EACH counts.
// *targets must live as long as `cells` is used.
void NarrowToTargets(const AggregateRequest& request, const RowOptions& rows, CellOptions* cells,
                     std::vector<ColumnSelector>* targets);

}  // namespace cellar
