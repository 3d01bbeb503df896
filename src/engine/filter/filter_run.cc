// Evaluation: a cell enters the tree as a list of one copy of a few bytes (is it stripped, which
// labels does it carry). Every step changes the list in place; an interleave joins the lists of its
// branches, so that copies of one cell stay in the order of the branches. What is left at the end
// is the output, and behind it what went into sinks.
//
// Every step answers with what it can still make of later cells: a limit that is full ends the row,
// a qualifier that does not fit ends the column, a value says nothing. An interleave is as hopeful
// as its most hopeful branch, a chain as hopeless as its most hopeless step, as far as that
// follows: behind a limit or offset, which must count every cell, only the end of the row helps,
// and behind a sink nothing does. So the answer of the root is the early end of the scan.
//
// A reading that only decides ends, besides, when no condition of its stage is open any more.
#include "engine/filter/filter_run.h"

#include <re2/re2.h>

#include <algorithm>

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

// The smallest integer not below the number, the smallest above it, and so on.
int128_t AtLeast(const DecimalFloor& n) { return n.floor + (n.exact ? 0 : 1); }
int128_t Above(const DecimalFloor& n) { return n.floor + 1; }
int128_t AtMost(const DecimalFloor& n) { return n.floor; }
int128_t Below(const DecimalFloor& n) { return n.floor - (n.exact ? 1 : 0); }

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

// Made once for each family, so that a cell costs two comparisons of bytes. A literal may name the
// first components of a key alone: then all keys that begin with them are equal to it. One that the
// order cannot encode lets nothing pass, not even by `!=`.
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
  test.never = true;
  if (!IsString(node.literal)) return test;
  Result<KeyBound> begin =
      order.EncodeBound(node.literal.text, BoundEdge::kInclusive, BoundSide::kMin);
  Result<KeyBound> end =
      order.EncodeBound(node.literal.text, BoundEdge::kInclusive, BoundSide::kMax);
  if (!begin.ok() || !end.ok()) return test;
  test.never = false;
  const KeyRange equal{*std::move(begin), *std::move(end)};
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

// The literal may have a fraction or any size: `ts > 1.5` begins at 2. An empty range has max -1;
// where `inside` is false that lets every timestamp pass.
FilterTimestampTest MakeFilterTimestampTest(const FilterNode& node) {
  CELLAR_ASSERT(node.subject == FilterSubject::kTimestamp);
  int128_t min = 0;
  int128_t max = INT64_MAX;
  if (node.kind == FilterNodeKind::kIn) {
    const FilterRange& range = node.range;
    if (range.low) min = range.low_inclusive ? AtLeast(range.low->floor) : Above(range.low->floor);
    if (range.high)
      max = range.high_inclusive ? AtMost(range.high->floor) : Below(range.high->floor);
  } else {
    const DecimalFloor& number = node.literal.floor;
    switch (node.op) {
      case CompareOp::kEq:
      case CompareOp::kNe:
        min = AtLeast(number);
        max = AtMost(number);
        break;
      case CompareOp::kLt:
        max = Below(number);
        break;
      case CompareOp::kLe:
        max = AtMost(number);
        break;
      case CompareOp::kGt:
        min = Above(number);
        break;
      case CompareOp::kGe:
        min = AtLeast(number);
        break;
    }
  }
  FilterTimestampTest test;
  test.inside = node.kind == FilterNodeKind::kIn || node.op != CompareOp::kNe;
  // Judged before they are cut to what a timestamp can be: beyond the largest one there is none.
  if (min > max || min > INT64_MAX || max < 0) {
    test.max = -1;
    return test;
  }
  test.min = static_cast<int64_t>(std::max<int128_t>(min, 0));
  test.max = static_cast<int64_t>(std::min<int128_t>(max, INT64_MAX));
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
  static constexpr uint32_t kNoLabel{UINT32_MAX};
  struct Copy {
    bool stripped{false};
    uint32_t label{kNoLabel};  // index into label_links
  };
  using Copies = std::vector<Copy>;
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
    conditions_open = 0;
    for (const FilterNode& node : nodes) {
      if (node.stage == stage) ++conditions_open;  // stage 0: no condition
    }
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
    now_counted = deciding();
    outputs.clear();
    label_links.clear();
    sunk.clear();
    Copies copies = TakeList();
    copies.emplace_back();
    FilterNext answer = Apply(filter.root(), &copies);
    if (deciding()) {
      if (conditions_open == 0) answer = FilterNext::kRowDone;
    } else {
      for (const Copy& copy : copies) Output(copy);
      for (const Copy& copy : sunk) Output(copy);
    }
    GiveBack(std::move(copies));
    return answer;
  }

  // Lists are used again, so that a cell costs no allocation.
  Copies TakeList() {
    if (spare_lists.empty()) return {};
    Copies list = std::move(spare_lists.back());
    spare_lists.pop_back();
    list.clear();
    return list;
  }
  void GiveBack(Copies list) { spare_lists.push_back(std::move(list)); }

  // Sends the copies through a node. REQUIRES: there is at least one.
  FilterNext Apply(uint32_t index, Copies* copies) {
    switch (nodes[index].kind) {
      case FilterNodeKind::kChain:
        return ApplyChain(nodes[index], copies);
      case FilterNodeKind::kInterleave:
        return ApplyInterleave(nodes[index], copies);
      case FilterNodeKind::kIf:
        return ApplyIf(index, copies);
      default:
        return ApplyStep(index, copies);
    }
  }

  FilterNext ApplyChain(const FilterNode& chain, Copies* copies) {
    FilterNext answer = FilterNext::kMore;
    bool counted = false;
    bool sinks = false;  // or decides: what lies behind says nothing about it
    for (const uint32_t child : chain.children) {
      FilterNext own = Apply(child, copies);
      if (counted && own == FilterNext::kColumnDone) own = FilterNext::kMore;
      if (!sinks) answer = Furthest(answer, own);
      if (copies->empty()) break;
      counted = counted || nodes[child].has_count;
      sinks = sinks || nodes[child].has_sink || (nodes[child].has_if && deciding());
    }
    return answer;
  }

  FilterNext ApplyInterleave(const FilterNode& node, Copies* copies) {
    FilterNext answer = FilterNext::kRowDone;
    Copies joined = TakeList();
    Copies branch = TakeList();
    for (const uint32_t child : node.children) {
      branch = *copies;
      answer = Nearest(answer, Apply(child, &branch));
      joined.insert(joined.end(), branch.begin(), branch.end());
    }
    copies->swap(joined);
    GiveBack(std::move(joined));
    GiveBack(std::move(branch));
    return answer;
  }

  FilterNext ApplyIf(uint32_t index, Copies* copies) {
    const FilterNode& node = nodes[index];
    StepState& state = states[index];
    if (node.stage >= stage) {
      // Its outcome is open: nothing comes out of it in this reading.
      FilterNext answer = FilterNext::kRowDone;
      if (node.stage == stage || nodes[node.children[0]].has_if) {
        answer = ApplyCondition(node, &state, copies);
      }
      copies->clear();
      return answer;
    }
    if (state.row_answer == StepState::Answer::kYes) return Apply(node.children[1], copies);
    if (node.children.size() == 3) return Apply(node.children[2], copies);
    copies->clear();
    return FilterNext::kRowDone;
  }

  // Before its own stage a condition is entered for the sake of the conditions inside it alone.
  FilterNext ApplyCondition(const FilterNode& node, StepState* state, Copies* copies) {
    if (state->row_answer != StepState::Answer::kUnknown) return FilterNext::kRowDone;
    const FilterNext answer = Apply(node.children[0], copies);
    if (node.stage > stage) return answer;
    if (!copies->empty()) {
      state->row_answer = StepState::Answer::kYes;
    } else if (answer == FilterNext::kRowDone) {
      state->row_answer = StepState::Answer::kNo;
    } else {
      return answer;
    }
    --conditions_open;
    return FilterNext::kRowDone;
  }

  void Output(Copy copy) {
    FilterOutput& output = outputs.emplace_back();
    output.stripped = copy.stripped;
    for (uint32_t link = copy.label; link != kNoLabel; link = label_links[link].before) {
      output.labels.push_back(nodes[label_links[link].node].literal.text);
    }
    // Links lead from the last label to the first.
    std::reverse(output.labels.begin(), output.labels.end());
  }

  FilterNext ApplyStep(uint32_t index, Copies* copies) {
    const FilterNode& node = nodes[index];
    StepState& state = states[index];
    switch (node.kind) {
      case FilterNodeKind::kPass:
        return FilterNext::kMore;
      case FilterNodeKind::kBlock:
        copies->clear();
        return FilterNext::kRowDone;
      case FilterNodeKind::kStrip:
        for (Copy& copy : *copies) copy.stripped = true;
        return FilterNext::kMore;
      case FilterNodeKind::kSink:
        sunk.insert(sunk.end(), copies->begin(), copies->end());
        copies->clear();
        return FilterNext::kMore;
      case FilterNodeKind::kLabel:
        for (Copy& copy : *copies) {
          label_links.push_back({index, copy.label});
          copy.label = static_cast<uint32_t>(label_links.size() - 1);
        }
        return FilterNext::kMore;
      case FilterNodeKind::kLatest:
        if (state.column != column) {
          state.column = column;
          state.seen = 0;
        }
        return ApplyCount(node, &state, FilterNext::kColumnDone, copies);
      case FilterNodeKind::kLimit:
        return ApplyCount(node, &state, FilterNext::kRowDone, copies);
      case FilterNodeKind::kOffset: {
        const uint64_t skipped = std::min<uint64_t>(node.count - state.seen, copies->size());
        state.seen += skipped;
        copies->erase(copies->begin(), copies->begin() + static_cast<ptrdiff_t>(skipped));
        return FilterNext::kMore;
      }
      case FilterNodeKind::kSample:
        return KeepIf(SamplePasses(index), FilterNext::kRowDone, copies);
      default:
        return ApplySubject(node, &state, copies);
    }
  }

  static FilterNext ApplyCount(const FilterNode& node, StepState* state, FilterNext full,
                               Copies* copies) {
    const uint64_t passing = std::min<uint64_t>(node.count - state->seen, copies->size());
    state->seen += passing;
    copies->resize(passing);
    return state->seen == node.count ? full : FilterNext::kMore;
  }

  static FilterNext KeepIf(bool passes, FilterNext otherwise, Copies* copies) {
    if (passes) return FilterNext::kMore;
    copies->clear();
    return otherwise;
  }

  bool SamplePasses(uint32_t index) {
    StepState& state = states[index];
    if (state.row_answer == StepState::Answer::kUnknown) {
      // Every sample step of a filter draws for itself, and every reading of the row draws the
      // same. 53 bits of the hash make a number from 0 up to, and without, 1.
      const uint64_t hash = Hash64(row, seed ^ (uint64_t{index} << 32));
      const double fraction = static_cast<double>(hash >> 11) * 0x1.0p-53;
      const bool passes = fraction < nodes[index].probability;
      state.row_answer = passes ? StepState::Answer::kYes : StepState::Answer::kNo;
    }
    return state.row_answer == StepState::Answer::kYes;
  }

  // All subjects but the value are the same for all copies of a cell.
  FilterNext ApplySubject(const FilterNode& node, StepState* state, Copies* copies) {
    switch (node.subject) {
      case FilterSubject::kRow:
        if (state->row_answer == StepState::Answer::kUnknown) {
          const bool passes = RowPasses(node, *state);
          state->row_answer = passes ? StepState::Answer::kYes : StepState::Answer::kNo;
        }
        return KeepIf(state->row_answer == StepState::Answer::kYes, FilterNext::kRowDone, copies);
      case FilterSubject::kFamily:
        return KeepIf(state->family_passes[now->family], FilterNext::kColumnDone, copies);
      case FilterSubject::kQualifier:
        return KeepIf(QualifierPasses(node, *state), FilterNext::kColumnDone, copies);
      case FilterSubject::kTimestamp: {
        // Versions come newest first: below the minimum there are only older ones.
        const FilterTimestampTest& test = state->timestamp_test;
        const bool ends = test.inside && now->timestamp_micros < test.min;
        return KeepIf(test.Passes(now->timestamp_micros),
                      ends ? FilterNext::kColumnDone : FilterNext::kMore, copies);
      }
      case FilterSubject::kValue:
        break;
    }
    bool known[2] = {false, false};  // by Copy::stripped
    bool passes[2] = {false, false};
    std::erase_if(*copies, [&](const Copy& copy) {
      const size_t which = copy.stripped ? 1 : 0;
      if (!known[which]) passes[which] = ValuePasses(node, copy);
      known[which] = true;
      return !passes[which];
    });
    return FilterNext::kMore;
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

  bool ValuePasses(const FilterNode& node, Copy copy) {
    // What a stripped cell shows is empty: a string if it was one, else bytes.
    const bool keeps_type = !copy.stripped || now->type == ValueType::kString;
    ValueBuffer buffer;
    const auto [type, stored] = copy.stripped
                                    ? SeenValue{keeps_type ? now->type : ValueType::kBytes, {}}
                                    : SeenOf(now->type, now->stored, &buffer);
    if (IsTextType(type) && node.kind != FilterNodeKind::kMatch) [[unlikely]]
      NoteText(node);
    if (node.kind == FilterNodeKind::kCompare) {
      return FilterLiteralHolds(node.op, node.literal, type, stored);
    }
    if (node.kind == FilterNodeKind::kIn) return ValueRangeHolds(node.range, type, stored);
    if (IsTextType(type)) return FullMatch(*node.regex, stored);
    return FullMatch(*node.regex, ValueText(type, stored));
  }

  // The cell at hand is text. Each counts once, however many steps compare it.
  void NoteText(const FilterNode& node) {
    const auto is_number = [](const FilterLiteral& literal) {
      return literal.kind == FilterLiteralKind::kNumber;
    };
    const bool compares_number = node.kind == FilterNodeKind::kCompare
                                     ? is_number(node.literal)
                                     : (node.range.low && is_number(*node.range.low)) ||
                                           (node.range.high && is_number(*node.range.high));
    if (!compares_number || now_counted) return;
    now_counted = true;
    ++text_met;
  }

  const Filter& filter;
  const std::vector<FilterNode>& nodes;
  const Order& key_order;
  const std::vector<FilterFamily> families;
  const uint64_t seed;
  std::vector<StepState> states;
  uint32_t conditions_open{0};  // of this stage, in a reading that decides

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
  bool now_counted{false};  // in text_met, or it need not be
  uint64_t text_met{0};
  std::vector<LabelLink> label_links;
  Copies sunk;
  std::vector<Copies> spare_lists;
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
  // A condition of this stage that no cell has satisfied stays unknown, which counts as no from now
  // on.
  ++impl_->stage;
  impl_->BeginReading();
}

FilterNext FilterRun::Feed(const FilterCell& cell) {
  CELLAR_ASSERT(!impl_->deciding());
  return impl_->Push(cell);
}

uint64_t FilterRun::text_met() const { return impl_->text_met; }
std::span<const FilterOutput> FilterRun::outputs() const { return impl_->outputs; }

}  // namespace cellar
