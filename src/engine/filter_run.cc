// Evaluation: a cell is pushed through the steps as a copy of a few bytes (is it stripped, which
// labels does it carry); what comes out at the end, or at a sink, is an output.
//
// Every step answers with what it can still make of later cells, given what lies behind it. A step
// that lets a copy through passes on the answer from behind; a step that refuses says itself for
// how long it will (a limit for the rest of the row, a qualifier for the rest of the column, a
// value for this cell alone); an interleave is as hopeful as its most hopeful branch. So the answer
// of the root is the early end of the scan, sinks and branches included, without any analysis
// beforehand.
//
// In a reading that only decides, the outputs themselves are not wanted: they count as "nothing
// more needed", and only the conditions of the current stage keep the reading going.
#include "engine/filter_run.h"

#include <re2/re2.h>

#include <algorithm>
#include <limits>

#include "base/assert.h"
#include "base/hash.h"

namespace cellar {
namespace {

FilterNext Furthest(FilterNext a, FilterNext b) { return std::max(a, b); }
FilterNext Nearest(FilterNext a, FilterNext b) { return std::min(a, b); }

bool FullMatch(const re2::RE2& regex, std::string_view text) {
  const re2::StringPiece piece(text.data(), text.size());
  return regex.Match(piece, 0, text.size(), re2::RE2::ANCHOR_BOTH, nullptr, 0);
}

int64_t ClampToInt64(int128_t value) {
  constexpr int128_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int128_t kMax = std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(std::clamp(value, kMin, kMax));
}
// The smallest integer not below the number, the smallest above it, and so on.
int64_t AtLeast(const DecimalFloor& n) { return ClampToInt64(n.floor + (n.exact ? 0 : 1)); }
int64_t Above(const DecimalFloor& n) { return ClampToInt64(n.floor + 1); }
int64_t AtMost(const DecimalFloor& n) { return ClampToInt64(n.floor); }
int64_t Below(const DecimalFloor& n) { return ClampToInt64(n.floor - (n.exact ? 1 : 0)); }

bool ValueRangeHolds(const FilterRange& range, ValueType type, std::string_view stored) {
  if (range.low) {
    const CompareOp op = range.low_inclusive ? CompareOp::kGe : CompareOp::kGt;
    if (!FilterLiteralHolds(op, *range.low, type, stored)) return false;
  }
  if (range.high) {
    const CompareOp op = range.high_inclusive ? CompareOp::kLe : CompareOp::kLt;
    if (!FilterLiteralHolds(op, *range.high, type, stored)) return false;
  }
  return true;
}

bool IsString(const FilterLiteral& literal) { return literal.kind == FilterLiteralKind::kString; }
bool BoundsAreStrings(const FilterRange& range) {
  return (!range.low || IsString(*range.low)) && (!range.high || IsString(*range.high));
}

bool TextRangeHolds(const FilterRange& range, std::string_view text) {
  if (!BoundsAreStrings(range)) return false;
  if (range.low) {
    const int order = text.compare(range.low->text);
    if (order < 0 || (order == 0 && !range.low_inclusive)) return false;
  }
  if (range.high) {
    const int order = text.compare(range.high->text);
    if (order > 0 || (order == 0 && !range.high_inclusive)) return false;
  }
  return true;
}

bool IsKeySubject(FilterSubject subject) {
  return subject == FilterSubject::kRow || subject == FilterSubject::kQualifier;
}

}  // namespace

FilterKeyTest MakeFilterKeyTest(const FilterNode& node, const Order& order) {
  CELLAR_ASSERT(IsKeySubject(node.subject));
  FilterKeyTest test;
  if (node.kind == FilterNodeKind::kIn) {
    const FilterRange& range = node.range;
    test.never = !BoundsAreStrings(range);
    if (range.low) {
      const BoundEdge edge = range.low_inclusive ? BoundEdge::kInclusive : BoundEdge::kExclusive;
      Result<KeyBound> begin = order.EncodeBound(range.low->text, edge, BoundSide::kMin);
      test.never = test.never || !begin.ok();
      if (begin.ok()) test.range.begin = *std::move(begin);
    }
    if (range.high) {
      const BoundEdge edge = range.high_inclusive ? BoundEdge::kInclusive : BoundEdge::kExclusive;
      Result<KeyBound> end = order.EncodeBound(range.high->text, edge, BoundSide::kMax);
      test.never = test.never || !end.ok();
      if (end.ok()) test.range.end = *std::move(end);
    }
    return test;
  }
  CELLAR_ASSERT(node.kind == FilterNodeKind::kCompare);
  std::string encoded;
  if (!IsString(node.literal) || !order.Encode(node.literal.text, &encoded).ok()) {
    test.never = true;
    return test;
  }
  const KeyRange equal = PrefixRange(encoded);
  switch (node.op) {
    case CompareOp::kEq:
      test.range = equal;
      break;
    case CompareOp::kNe:
      test.range = equal;
      test.inside = false;
      break;
    case CompareOp::kLt:
      test.range.end = equal.begin;
      break;
    case CompareOp::kLe:
      test.range.end = equal.end;
      break;
    case CompareOp::kGt:
      test.range.begin = equal.end;
      break;
    case CompareOp::kGe:
      test.range.begin = equal.begin;
      break;
  }
  return test;
}

FilterTimestampTest MakeFilterTimestampTest(const FilterNode& node) {
  CELLAR_ASSERT(node.subject == FilterSubject::kTimestamp);
  FilterTimestampTest test;
  if (node.kind == FilterNodeKind::kIn) {
    const FilterRange& range = node.range;
    if (range.low) {
      test.min = range.low_inclusive ? AtLeast(range.low->floor) : Above(range.low->floor);
    }
    if (range.high) {
      test.max = range.high_inclusive ? AtMost(range.high->floor) : Below(range.high->floor);
    }
    // What lies beyond the largest timestamp must not be clamped into the range.
    if (range.low && range.low->floor.floor > INT64_MAX) test.max = -1;
    return test;
  }
  const DecimalFloor& number = node.literal.floor;
  const bool beyond = number.floor > INT64_MAX;
  switch (node.op) {
    case CompareOp::kEq:
    case CompareOp::kNe:
      test.min = AtLeast(number);
      test.max = beyond ? -1 : AtMost(number);
      test.inside = node.op == CompareOp::kEq;
      break;
    case CompareOp::kLt:
      test.max = Below(number);
      break;
    case CompareOp::kLe:
      test.max = AtMost(number);
      break;
    case CompareOp::kGt:
    case CompareOp::kGe:
      test.min = node.op == CompareOp::kGt ? Above(number) : AtLeast(number);
      if (beyond || (node.op == CompareOp::kGt && number.floor == INT64_MAX)) test.max = -1;
      break;
  }
  return test;
}

bool FilterFamilyPasses(const FilterNode& node, std::string_view name) {
  CELLAR_ASSERT(node.subject == FilterSubject::kFamily);
  if (node.kind == FilterNodeKind::kMatch) return FullMatch(*node.regex, name);
  if (node.kind == FilterNodeKind::kIn) return TextRangeHolds(node.range, name);
  return IsString(node.literal) && CompareHolds(node.op, name.compare(node.literal.text));
}

struct FilterRun::Impl {
  // What a step needs besides its node: computed once for the run, then for the row, then counted.
  struct StepState {
    FilterKeyTest row_test;
    std::vector<FilterKeyTest> qualifier_tests;  // by family
    std::vector<bool> family_passes;             // by family
    FilterTimestampTest timestamp_test;

    enum class Answer : uint8_t { kUnknown, kYes, kNo };
    Answer row_answer{Answer::kUnknown};  // row and sample steps, conditions
    uint64_t seen{0};                     // latest, limit, offset
    uint64_t column{0};                   // latest: the column that `seen` counts in
  };
  // What is left to do with a copy that leaves a part of the tree.
  struct Continuation {
    const FilterNode* chain{nullptr};  // go on with its steps from `step` on, then with `next`
    size_t step{0};
    const Continuation* next{nullptr};
    StepState* decided{nullptr};  // instead: this condition holds
  };
  static constexpr uint32_t kNoLabel{UINT32_MAX};
  struct Copy {
    bool stripped{false};
    uint32_t label{kNoLabel};  // index into label_links
  };
  struct LabelLink {
    uint32_t node;
    uint32_t before;
  };

  Impl(const Filter& the_filter, const Order& the_key_order,
       std::span<const FilterFamily> the_families, uint64_t the_seed)
      : filter(the_filter),
        nodes(the_filter.nodes()),
        key_order(the_key_order),
        families(the_families.begin(), the_families.end()),
        seed(the_seed),
        states(nodes.size()) {
    for (size_t i = 0; i < nodes.size(); ++i) Bind(nodes[i], &states[i]);
  }

  void Bind(const FilterNode& node, StepState* state) {
    const bool is_comparison =
        node.kind == FilterNodeKind::kCompare || node.kind == FilterNodeKind::kIn;
    if (node.subject == FilterSubject::kFamily) {
      for (const FilterFamily& family : families) {
        state->family_passes.push_back(FilterFamilyPasses(node, family.name));
      }
    }
    if (!is_comparison) return;
    if (node.subject == FilterSubject::kRow) state->row_test = MakeFilterKeyTest(node, key_order);
    if (node.subject == FilterSubject::kTimestamp)
      state->timestamp_test = MakeFilterTimestampTest(node);
    if (node.subject == FilterSubject::kQualifier) {
      for (const FilterFamily& family : families) {
        state->qualifier_tests.push_back(MakeFilterKeyTest(node, *family.order));
      }
    }
  }

  void BeginRow(std::string_view row_encoded) {
    row.assign(row_encoded);
    row_text.clear();
    row_text_known = false;
    for (StepState& state : states) state.row_answer = StepState::Answer::kUnknown;
    stage = 1;
    BeginReading();
  }

  void BeginReading() {
    for (StepState& state : states) state.seen = state.column = 0;
    column = 0;
  }

  bool deciding() const { return stage <= filter.stages(); }

  FilterNext Push(const FilterCell& cell) {
    CELLAR_ASSERT(cell.family < families.size());
    if (column == 0 || cell.family != column_family || cell.qualifier != column_qualifier) {
      ++column;
      column_family = cell.family;
      column_qualifier.assign(cell.qualifier);
      qualifier_text_known = false;
    }
    now = &cell;
    outputs.clear();
    label_links.clear();
    return Enter(filter.root(), Copy{}, nullptr);
  }

  // Sends a copy into a node; what leaves the node goes to `next`.
  FilterNext Enter(uint32_t index, Copy copy, const Continuation* next) {
    const FilterNode& node = nodes[index];
    switch (node.kind) {
      case FilterNodeKind::kChain:
        return RunSteps(node, 0, copy, next);
      case FilterNodeKind::kInterleave: {
        FilterNext answer = FilterNext::kRowDone;
        for (const uint32_t child : node.children) {
          answer = Nearest(answer, Enter(child, copy, next));
        }
        return answer;
      }
      case FilterNodeKind::kIf:
        return EnterIf(index, copy, next);
      default:
        break;
    }
    FilterNext answer = FilterNext::kMore;
    if (!Step(index, &copy, &answer)) return answer;
    return Furthest(answer, Behind(node, Leave(copy, next)));
  }

  // What the answer from behind `node` means before it: a limit must count every cell that reaches
  // it, so the rest of a column may not be left out only because what lies behind has no use for it.
  static FilterNext Behind(const FilterNode& node, FilterNext answer) {
    const bool counts_all = node.kind == FilterNodeKind::kLimit;
    return counts_all && answer == FilterNext::kColumnDone ? FilterNext::kMore : answer;
  }

  FilterNext RunSteps(const FilterNode& chain, size_t step, Copy copy, const Continuation* next) {
    FilterNext answer = FilterNext::kMore;
    for (; step < chain.children.size(); ++step) {
      const uint32_t child = chain.children[step];
      if (nodes[child].kind <= FilterNodeKind::kIf) {
        const Continuation rest{&chain, step + 1, next, nullptr};
        return Furthest(answer, Enter(child, copy, &rest));
      }
      FilterNext own = FilterNext::kMore;
      if (!Step(child, &copy, &own)) return Furthest(answer, own);
      answer = Furthest(answer, own);
      if (nodes[child].kind == FilterNodeKind::kLimit) {
        return Furthest(answer, Behind(nodes[child], RunSteps(chain, step + 1, copy, next)));
      }
    }
    return Furthest(answer, Leave(copy, next));
  }

  FilterNext Leave(Copy copy, const Continuation* next) {
    if (next == nullptr) return Output(copy);
    if (next->decided == nullptr) return RunSteps(*next->chain, next->step, copy, next->next);
    next->decided->row_answer = StepState::Answer::kYes;
    return FilterNext::kRowDone;
  }

  FilterNext EnterIf(uint32_t index, Copy copy, const Continuation* next) {
    const FilterNode& node = nodes[index];
    StepState& state = states[index];
    if (node.stage > stage) {
      // Not its turn yet, but a condition inside its own may be due.
      const Continuation nowhere{nullptr, 0, nullptr, &discarded};
      if (nodes[node.children[0]].has_if) return Enter(node.children[0], copy, &nowhere);
      return FilterNext::kRowDone;
    }
    if (node.stage == stage) {
      if (state.row_answer == StepState::Answer::kYes) return FilterNext::kRowDone;
      const Continuation decide{nullptr, 0, nullptr, &state};
      return Enter(node.children[0], copy, &decide);
    }
    if (state.row_answer == StepState::Answer::kYes) return Enter(node.children[1], copy, next);
    if (node.children.size() == 3) return Enter(node.children[2], copy, next);
    return FilterNext::kRowDone;
  }

  FilterNext Output(Copy copy) {
    if (deciding()) return FilterNext::kRowDone;
    FilterOutput& output = outputs.emplace_back();
    output.stripped = copy.stripped;
    for (uint32_t link = copy.label; link != kNoLabel; link = label_links[link].before) {
      output.labels.push_back(nodes[label_links[link].node].literal.text);
    }
    std::reverse(output.labels.begin(), output.labels.end());
    return FilterNext::kMore;
  }

  // A step that is no container. True if the copy (changed perhaps) goes on; *answer says what
  // later cells can expect of this step: when it refuses, and also when it has just let its last
  // one through.
  bool Step(uint32_t index, Copy* copy, FilterNext* answer) {
    const FilterNode& node = nodes[index];
    StepState& state = states[index];
    switch (node.kind) {
      case FilterNodeKind::kPass:
        return true;
      case FilterNodeKind::kBlock:
        *answer = FilterNext::kRowDone;
        return false;
      case FilterNodeKind::kStrip:
        copy->stripped = true;
        return true;
      case FilterNodeKind::kSink:
        *answer = Output(*copy);
        return false;
      case FilterNodeKind::kLabel:
        label_links.push_back({index, copy->label});
        copy->label = static_cast<uint32_t>(label_links.size() - 1);
        return true;
      case FilterNodeKind::kSample:
        return StepSample(index, answer);
      case FilterNodeKind::kOffset:
        if (state.seen == node.count) return true;
        ++state.seen;
        return false;
      case FilterNodeKind::kLimit:
        return StepCount(node, &state, FilterNext::kRowDone, answer);
      case FilterNodeKind::kLatest:
        if (state.column != column) {
          state.column = column;
          state.seen = 0;
        }
        return StepCount(node, &state, FilterNext::kColumnDone, answer);
      default:
        return StepSubject(node, &state, *copy, answer);
    }
  }

  static bool StepCount(const FilterNode& node, StepState* state, FilterNext full,
                        FilterNext* answer) {
    const bool passes = state->seen < node.count;
    if (passes) ++state->seen;
    if (state->seen == node.count) *answer = full;
    return passes;
  }

  bool StepSample(uint32_t index, FilterNext* answer) {
    StepState& state = states[index];
    if (state.row_answer == StepState::Answer::kUnknown) {
      const uint64_t hash = Hash64(row, seed ^ (uint64_t{index} << 32));
      const double fraction = static_cast<double>(hash >> 11) * 0x1.0p-53;
      state.row_answer =
          fraction < nodes[index].probability ? StepState::Answer::kYes : StepState::Answer::kNo;
    }
    if (state.row_answer == StepState::Answer::kYes) return true;
    *answer = FilterNext::kRowDone;
    return false;
  }

  bool StepSubject(const FilterNode& node, StepState* state, Copy copy, FilterNext* answer) {
    switch (node.subject) {
      case FilterSubject::kRow:
        if (state->row_answer == StepState::Answer::kUnknown) {
          state->row_answer =
              RowPasses(node, *state) ? StepState::Answer::kYes : StepState::Answer::kNo;
        }
        *answer = FilterNext::kRowDone;
        if (state->row_answer == StepState::Answer::kNo) return false;
        break;
      case FilterSubject::kFamily:
        *answer = FilterNext::kColumnDone;
        if (!state->family_passes[now->family]) return false;
        break;
      case FilterSubject::kQualifier:
        *answer = FilterNext::kColumnDone;
        if (!QualifierPasses(node, *state)) return false;
        break;
      case FilterSubject::kValue:
        *answer = FilterNext::kMore;
        return ValuePasses(node, copy);
      case FilterSubject::kTimestamp:
        return TimestampPasses(*state, answer);
    }
    *answer = FilterNext::kMore;
    return true;
  }

  bool RowPasses(const FilterNode& node, const StepState& state) {
    if (node.kind != FilterNodeKind::kMatch) return state.row_test.Passes(row);
    if (!row_text_known) row_text_known = key_order.Decode(row, &row_text);
    return FullMatch(*node.regex, row_text);
  }

  bool QualifierPasses(const FilterNode& node, const StepState& state) {
    if (node.kind != FilterNodeKind::kMatch) {
      return state.qualifier_tests[now->family].Passes(now->qualifier);
    }
    if (!qualifier_text_known) {
      qualifier_text.clear();
      qualifier_text_known = families[now->family].order->Decode(now->qualifier, &qualifier_text);
    }
    return FullMatch(*node.regex, qualifier_text);
  }

  bool TimestampPasses(const StepState& state, FilterNext* answer) const {
    *answer = FilterNext::kMore;
    const FilterTimestampTest& test = state.timestamp_test;
    if (test.Passes(now->timestamp_micros)) return true;
    // Versions come newest first: below the minimum there are only older ones.
    if (test.inside && now->timestamp_micros < test.min) *answer = FilterNext::kColumnDone;
    return false;
  }

  bool ValuePasses(const FilterNode& node, Copy copy) {
    const bool keeps_type = !copy.stripped || now->type == ValueType::kString;
    const ValueType type = keeps_type ? now->type : ValueType::kBytes;
    const std::string_view stored = copy.stripped ? std::string_view() : now->stored;
    if (node.kind == FilterNodeKind::kCompare) {
      return FilterLiteralHolds(node.op, node.literal, type, stored);
    }
    if (node.kind == FilterNodeKind::kIn) return ValueRangeHolds(node.range, type, stored);
    if (IsTextType(type)) return FullMatch(*node.regex, stored);
    return FullMatch(*node.regex, ValueText(type, stored));
  }

  const Filter& filter;
  const std::vector<FilterNode>& nodes;
  const Order& key_order;
  const std::vector<FilterFamily> families;
  const uint64_t seed;
  std::vector<StepState> states;
  StepState discarded;  // of copies that are wanted nowhere

  std::string row;
  std::string row_text;
  bool row_text_known{false};
  uint32_t stage{1};
  uint64_t column{0};  // counts the columns of this reading; 0: none yet
  uint32_t column_family{0};
  std::string column_qualifier;
  std::string qualifier_text;
  bool qualifier_text_known{false};
  const FilterCell* now{nullptr};
  std::vector<LabelLink> label_links;
  std::vector<FilterOutput> outputs;
};

FilterRun::FilterRun(const Filter& filter, const Order& key_order,
                     std::span<const FilterFamily> families, uint64_t seed)
    : impl_(std::make_unique<Impl>(filter, key_order, families, seed)) {}
FilterRun::~FilterRun() = default;

void FilterRun::BeginRow(std::string_view row_encoded) { impl_->BeginRow(row_encoded); }

bool FilterRun::NeedsDecision() const { return impl_->deciding(); }

FilterNext FilterRun::Decide(const FilterCell& cell) {
  CELLAR_ASSERT(impl_->deciding());
  return impl_->Push(cell);
}

void FilterRun::EndDecision() {
  CELLAR_ASSERT(impl_->deciding());
  // A condition of this stage that no cell has satisfied stays unknown, which counts as no.
  ++impl_->stage;
  impl_->BeginReading();
}

FilterNext FilterRun::Feed(const FilterCell& cell) {
  CELLAR_ASSERT(!impl_->deciding());
  return impl_->Push(cell);
}

std::span<const FilterOutput> FilterRun::outputs() const { return impl_->outputs; }

}  // namespace cellar
