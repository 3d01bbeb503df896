// What CAGG asks for besides rows and cells, as text: BY, REDUCE, HAVING, FILL, SORT, LIMIT. Plain
// data; views borrow from the caller's arguments. engine/aggregate checks it against a schema.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/keys/value.h"
#include "engine/request/read_options.h"
#include "engine/request/row_write.h"

namespace cellar {

inline constexpr size_t kGroupTermsMax{32};          // cellar-model(7), "LIMITS"
inline constexpr size_t kReducesMax{64};             // likewise
inline constexpr size_t kHavingMax{64};              // likewise
inline constexpr size_t kQuantilesMax{32};           // likewise
inline constexpr size_t kHistogramBoundsMax{1'000};  // likewise

struct GroupTerm {
  enum class Kind : uint8_t {
    kKey,    // first `count` components of the row key; 0: all
    kPart,   // component `count` (from 1), or `name`, of the row key
    kBytes,  // first `count` bytes of a row key that is one text
    kFamily,
    kColumn,
    kQualifier,  // first `count` components of the qualifier
    kTime,       // timestamp, floored to `duration_micros` or, if that is 0, to `duration`
    kValue,      // newest live value of family:qualifier in the row
  };
  Kind kind{Kind::kKey};
  uint64_t count{0};
  std::string_view name;
  std::string_view family;
  std::string_view qualifier;
  std::optional<std::string_view> step;  // kPart, kValue
  int64_t duration_micros{0};            // kTime: a fixed length, counted from 1970
  std::string_view duration;             // kTime: else what TimeStep reads
  std::optional<std::string_view> zone;  // kTime: TZ
};

struct Reduce {
  enum class Function : uint8_t {
    kRows,
    kCount,
    kSum,
    kAvg,
    kMin,
    kMax,
    kFirst,
    kLast,
    kStddev,
    kVariance,
    kDelta,
    kRate,
    kDistinct,
    kQuantile,
    kHistogram,
  };
  enum class Target : uint8_t { kAll, kFamily, kColumn };
  Function function{Function::kCount};
  Target target{Target::kAll};
  std::string_view family;
  std::string_view qualifier;
  std::vector<std::string_view> numbers;  // kQuantile: q ..., kHistogram: bound ...
  std::optional<std::string_view> name;   // AS
};

struct Having {
  std::string_view name;  // of a REDUCE
  CompareOp op{CompareOp::kEq};
  std::string_view value;
};

// What stands for groups of steps that no cell is in.
enum class Fill : uint8_t { kNone, kNull, kPrevious, kValue };

struct AggregateRequest {
  std::vector<GroupTerm> terms;
  std::vector<Reduce> reduces;
  std::vector<Having> having;
  Fill fill{Fill::kNone};
  std::string_view fill_value;  // kValue
  std::optional<std::string_view> sort;
  bool sort_descending{false};
  uint64_t skip{0};
  uint64_t limit{kUnlimited};

  // Empties it and keeps the memory.
  void Clear() {
    terms.clear();
    reduces.clear();
    having.clear();
    fill = Fill::kNone;
    fill_value = {};
    sort.reset();
    sort_descending = false;
    skip = 0;
    limit = kUnlimited;
  }
};

}  // namespace cellar
