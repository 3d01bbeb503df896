// See filter_bounds.h for what may be taken from where.
#include "engine/filter/filter_bounds.h"

#include <re2/re2.h>

#include <algorithm>
#include <limits>

#include "base/assert.h"

namespace cellar {
namespace {

constexpr size_t kRangesMax{64};
constexpr int kRegexPrefixBytesMax{64};
constexpr int64_t kLastTimestamp{std::numeric_limits<int64_t>::max()};

class FilterAnalyzer {
 public:
  FilterAnalyzer(const Filter& filter, const Order& key_order,
                 std::span<const FilterFamily> families)
      : nodes_(filter.nodes()), key_order_(key_order), families_(families) {}

  FilterBounds Analyze(uint32_t index) const {
    const FilterNode& node = nodes_[index];
    switch (node.kind) {
      case FilterNodeKind::kChain:
        return AnalyzeChain(node);
      case FilterNodeKind::kInterleave:
      case FilterNodeKind::kIf:
        return AnalyzeBranches(node);
      case FilterNodeKind::kMatch:
      case FilterNodeKind::kCompare:
      case FilterNodeKind::kIn:
        return AnalyzeSubject(node);
      case FilterNodeKind::kBlock:
        return Nothing();
      default:
        break;
    }
    FilterBounds bounds = Everything();
    if (node.kind == FilterNodeKind::kLatest) bounds.latest_max = node.count;
    return bounds;
  }

 private:
  FilterBounds Everything() const {
    FilterBounds bounds;
    bounds.rows = KeyRangeSet::All();
    bounds.qualifiers.assign(families_.size(), KeyRangeSet::All());
    return bounds;
  }
  FilterBounds Nothing() const {
    FilterBounds bounds;
    bounds.qualifiers.resize(families_.size());
    bounds.timestamp_max = -1;
    return bounds;
  }

  static void IntersectTimes(FilterBounds* bounds, const FilterBounds& step) {
    bounds->timestamp_min = std::max(bounds->timestamp_min, step.timestamp_min);
    bounds->timestamp_max = std::min(bounds->timestamp_max, step.timestamp_max);
  }

  FilterBounds AnalyzeChain(const FilterNode& chain) const {
    FilterBounds bounds = Everything();
    bool columns_reach_down = true;
    bool times_reach_down = true;
    bool versions_reach_down = true;
    for (const uint32_t child : chain.children) {
      const FilterNode& node = nodes_[child];
      const FilterBounds step = Analyze(child);
      bounds.rows.IntersectWith(step.rows);
      if (columns_reach_down) {
        for (size_t i = 0; i < families_.size(); ++i) {
          bounds.qualifiers[i].IntersectWith(step.qualifiers[i]);
        }
      }
      if (times_reach_down) IntersectTimes(&bounds, step);
      if (versions_reach_down) bounds.latest_max = step.latest_max;
      if (node.has_sink) break;
      if (node.has_if || node.has_count) columns_reach_down = false;
      if (!columns_reach_down || node.has_latest) times_reach_down = false;
      versions_reach_down = versions_reach_down && KeepsVersionsTogether(node);
    }
    return bounds;
  }

  // Does a step let through all versions of a column that lie in its timestamp bounds, or none?
  static bool KeepsVersionsTogether(const FilterNode& node) {
    switch (node.kind) {
      case FilterNodeKind::kPass:
      case FilterNodeKind::kStrip:
      case FilterNodeKind::kLabel:
      case FilterNodeKind::kSample:
        return true;
      case FilterNodeKind::kMatch:
        return node.subject != FilterSubject::kValue && node.subject != FilterSubject::kTimestamp;
      case FilterNodeKind::kCompare:
        if (node.subject == FilterSubject::kTimestamp) return node.op != CompareOp::kNe;
        return node.subject != FilterSubject::kValue;
      case FilterNodeKind::kIn:
        return node.subject != FilterSubject::kValue;
      default:
        return false;
    }
  }

  // A branch that is not taken still has its condition read, but gives no row.
  FilterBounds AnalyzeBranches(const FilterNode& node) const {
    FilterBounds bounds = Nothing();
    bounds.timestamp_min = kLastTimestamp;
    bounds.latest_max = 0;
    bool times_are_open = true;
    for (size_t i = 0; i < node.children.size(); ++i) {
      const FilterBounds branch = Analyze(node.children[i]);
      const bool is_condition = node.kind == FilterNodeKind::kIf && i == 0;
      if (!is_condition) bounds.rows.AddAll(branch.rows);
      for (size_t family = 0; family < families_.size(); ++family) {
        bounds.qualifiers[family].AddAll(branch.qualifiers[family]);
        bounds.qualifiers[family].Coarsen(kRangesMax);
      }
      bounds.timestamp_min = std::min(bounds.timestamp_min, branch.timestamp_min);
      bounds.timestamp_max = std::max(bounds.timestamp_max, branch.timestamp_max);
      bounds.latest_max = std::max(bounds.latest_max, branch.latest_max);
      times_are_open =
          times_are_open && branch.timestamp_min == 0 && branch.timestamp_max == kLastTimestamp;
    }
    bounds.rows.Coarsen(kRangesMax);
    // The newest of one branch's timestamps need not be the newest of another's.
    if (!times_are_open) bounds.latest_max = UINT64_MAX;
    return bounds;
  }

  FilterBounds AnalyzeSubject(const FilterNode& node) const {
    FilterBounds bounds = Everything();
    switch (node.subject) {
      case FilterSubject::kRow:
        bounds.rows = KeysOf(node, key_order_);
        break;
      case FilterSubject::kFamily:
      case FilterSubject::kQualifier:
        for (size_t i = 0; i < families_.size(); ++i) {
          if (node.subject == FilterSubject::kQualifier) {
            bounds.qualifiers[i] = KeysOf(node, *families_[i].order);
          } else if (!FilterFamilyPasses(node, families_[i].name)) {
            bounds.qualifiers[i] = KeyRangeSet();
          }
        }
        break;
      case FilterSubject::kTimestamp: {
        const FilterTimestampTest test = MakeFilterTimestampTest(node);
        if (!test.inside) break;
        bounds.timestamp_min = std::max<int64_t>(test.min, 0);
        bounds.timestamp_max = test.max;
        break;
      }
      case FilterSubject::kValue:
        break;
    }
    return bounds;
  }

  static KeyRangeSet KeysOf(const FilterNode& node, const Order& order) {
    if (node.kind == FilterNodeKind::kMatch) return KeysMatching(*node.regex, order);
    const FilterKeyTest test = MakeFilterKeyTest(node, order);
    KeyRangeSet keys;
    if (test.never) return keys;
    if (test.inside) {
      keys.Add(test.range);
      return keys;
    }
    keys.Add({{}, test.range.begin});
    keys.Add({test.range.end, {{}, true}});
    return keys;
  }

  // RE2 looks at what stands behind a literal beginning as if the text began there, and so takes
  // the wrong side of a word boundary. What only looks like one costs bounds, and nothing else.
  static bool MayAskForWords(const re2::RE2& regex) {
    return regex.pattern().find("\\b") != std::string::npos ||
           regex.pattern().find("\\B") != std::string::npos;
  }

  // The literal beginning of a regular expression bounds the keys of a plain order.
  static KeyRangeSet KeysMatching(const re2::RE2& regex, const Order& order) {
    std::string least;
    std::string greatest;
    KeyRangeSet keys;
    if (!order.is_plain_bytes() || MayAskForWords(regex) ||
        !regex.PossibleMatchRange(&least, &greatest, kRegexPrefixBytesMax)) {
      return KeyRangeSet::All();
    }
    // Any bytes are a key of such an order, so these bounds cannot fail.
    Result<KeyBound> begin = order.EncodeBound(least, BoundEdge::kInclusive, BoundSide::kMin);
    Result<KeyBound> end = order.EncodeBound(greatest, BoundEdge::kInclusive, BoundSide::kMax);
    CELLAR_ASSERT(begin.ok());
    CELLAR_ASSERT(end.ok());
    keys.Add({*std::move(begin), *std::move(end)});
    return keys;
  }

  const std::vector<FilterNode>& nodes_;
  const Order& key_order_;
  std::span<const FilterFamily> families_;
};

}  // namespace

FilterBounds AnalyzeFilter(const Filter& filter, const Order& key_order,
                           std::span<const FilterFamily> families) {
  return FilterAnalyzer(filter, key_order, families).Analyze(filter.root());
}

}  // namespace cellar
