// Filter: the expression after FILTER, parsed and printed (cellar-query(7), "FILTER EXPRESSIONS").
//
//   filter = step { "|" step }                                  chain
//   step   = "(" filter ")" | "{" filter { "," filter } "}"     interleave
//          | "if(" filter ";" filter [ ";" filter ] ")"
//          | subject "~" string | subject op literal | subject "in" range
//          | latest(n) limit(n) offset(n) sample(p) strip label("x") pass block sink
//
// The tree is a vector of nodes that refer to each other by index, children before their parents,
// the root last. It is immutable and knows no table: FilterRun (filter_run.h) binds it to a table's
// orders and families and lets cells through; FilterBounds (filter_bounds.h) says which keys can
// pass at all.
//
// Limits: 20 KiB of text, 20 deep, and kFilterCopiesMax copies that one cell can turn into (each
// interleave adds the copies of its branches, a chain multiplies them), so that no expression can
// blow up a row.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/number.h"
#include "cellar/status.h"
#include "engine/keys/value.h"

namespace re2 {
class RE2;
}

namespace cellar {

inline constexpr size_t kFilterBytesMax{20 * 1024};
inline constexpr uint32_t kFilterDepthMax{20};
inline constexpr uint64_t kFilterCopiesMax{100'000};
// Conditions that wait for each other's outcome; each costs one more reading of the row.
inline constexpr uint32_t kFilterStagesMax{64};
inline constexpr size_t kFilterLabelBytesMax{15};

enum class FilterSubject : uint8_t { kRow, kFamily, kQualifier, kValue, kTimestamp };

enum class FilterLiteralKind : uint8_t { kNumber, kBool, kString };
struct FilterLiteral {
  FilterLiteralKind kind{FilterLiteralKind::kString};
  std::string text;  // a string decoded; a number or bool as written
  // Of a number: beside an integer, and rounded to the float types (infinite beyond them).
  DecimalFloor floor{0, true};
  double as_double{0};
  float as_float{0};
  bool as_bool{false};
  std::optional<std::string> uuid;  // the 16 bytes, if a string is one
};

struct FilterRange {
  std::optional<FilterLiteral> low;
  std::optional<FilterLiteral> high;
  bool low_inclusive{true};
  bool high_inclusive{true};
};

enum class FilterNodeKind : uint8_t {
  kChain,
  kInterleave,
  kIf,       // children: condition, then, else if any
  kMatch,    // subject ~ regex
  kCompare,  // subject op literal
  kIn,       // subject in range
  kLatest,
  kLimit,
  kOffset,
  kSample,
  kStrip,
  kLabel,
  kPass,
  kBlock,
  kSink,
};

struct FilterNode {
  FilterNodeKind kind{FilterNodeKind::kPass};
  FilterSubject subject{FilterSubject::kValue};
  CompareOp op{CompareOp::kEq};
  std::vector<uint32_t> children;  // indices of nodes, all smaller than this one's
  FilterLiteral literal;           // kCompare; kLabel: text
  FilterRange range;               // kIn
  std::string pattern;             // kMatch
  std::unique_ptr<re2::RE2> regex;
  uint64_t count{0};       // kLatest, kLimit, kOffset
  double probability{0};   // kSample
  uint32_t stage{0};       // kIf: in which reading of the row its condition is decided, from 1
  bool has_sink{false};    // this node or one below it
  bool has_if{false};      // likewise
  bool has_count{false};   // likewise: limit or offset
  bool has_latest{false};  // likewise
};

class Filter {
 public:
  // BADFILTER with the position (from 1) if `text` is no filter.
  static Result<std::unique_ptr<Filter>> Parse(std::string_view text);
  ~Filter();
  Filter(const Filter&) = delete;
  Filter& operator=(const Filter&) = delete;

  const std::vector<FilterNode>& nodes() const { return nodes_; }
  uint32_t root() const { return static_cast<uint32_t>(nodes_.size() - 1); }
  // How many readings of a row it takes to decide its conditions, before the one that gives cells.
  uint32_t stages() const { return stages_; }

  // Families that `family` is compared with, each once: those that must exist, and be allowed. The
  // bounds of a range are no names.
  std::vector<std::string_view> NamedFamilies() const;

  // Canonical text, which parses to the same filter.
  std::string ToString() const;

 private:
  friend class FilterParser;
  Filter();

  std::vector<FilterNode> nodes_;
  uint32_t stages_{0};
};

// Does `literal` compare so with a typed value? False if its kind does not fit the type (a number
// with integers and floats, a bool with bool, a string with bytes, string, uuid).
bool FilterLiteralHolds(CompareOp op, const FilterLiteral& literal, ValueType type,
                        std::string_view stored);

}  // namespace cellar
