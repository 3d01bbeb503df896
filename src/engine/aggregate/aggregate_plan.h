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
//   TIME                   u64
//   VALUE                  aggregate_value.h
//
// Multi-byte numbers are big-endian. Everything here is copied from schema and request, so that a
// plan may be used by other threads and outlive both.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/status.h"
#include "engine/aggregate/aggregate_value.h"
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
  uint64_t duration_micros{0};
  size_t family{0};       // kValue: index in TableSchema::families
  std::string qualifier;  // kValue, encoded
  bool as_text{false};    // kQualifier: orders differ
  Order order;            // kQualifier: else the one that they have

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
  std::vector<double> quantiles;
  std::vector<Number> bounds;
  size_t offset{0};  // of its accumulator in a group's

  bool Takes(size_t of_family, std::string_view of_qualifier) const {
    if (target == Reduce::Target::kAll) return true;
    if (of_family != family) return false;
    return target == Reduce::Target::kFamily || of_qualifier == qualifier;
  }
};

struct PlannedFamily {
  std::string name;
  Order order;
  bool text_counts{false};  // has no TYPE: text that is a number counts as one
};

struct AggregatePlan {
  Order key;
  std::vector<PlannedFamily> families;  // as in the schema
  std::vector<PlannedTerm> terms;
  std::vector<PlannedReduce> reduces;
  std::optional<size_t> sort;  // index in `reduces`
  bool sort_descending{false};
  bool reverse{false};
  uint64_t skip{0};
  uint64_t limit{kUnlimited};
  bool groups_by_cell{false};  // a term is of the cell
  bool wants_timestamps{false};
  size_t accumulator_bytes{0};

  // NOFAMILY, NOPERM, ERR, BADVALUE, TOOLARGE. `columns` are those of the cell
  // options.
  static Result<AggregatePlan> Compile(const TableSchema& schema, const AggregateRequest& request,
                                       const std::vector<ColumnSelector>& columns, bool reverse);
};

// The text of the first `count` components of a key, which are what `encoded` holds.
std::string FirstComponentsText(const Order& order, std::string_view encoded, size_t count);

// Makes `cells` read no more than the targets of the request, where that changes nothing: other
// cells make no group, but they count for filters and limits, and make a row one that EACH counts.
// *targets must live as long as `cells` is used.
void NarrowToTargets(const AggregateRequest& request, const RowOptions& rows, CellOptions* cells,
                     std::vector<ColumnSelector>* targets);

}  // namespace cellar
