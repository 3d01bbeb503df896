// See index_choice.h.
#include "engine/scans/index_choice.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/text/number.h"
#include "base/text/quote.h"
#include "engine/keys/float_literal.h"
#include "engine/scans/index_coverage.h"
#include "engine/scans/table_scan.h"
#include "engine/schema/column_set.h"

namespace cellar {
namespace {

// Entries that are walked to count them, before it is left to an estimate.
constexpr uint64_t kEntriesWalked{48};
// An index is taken if its range holds at most one of so many rows.
constexpr uint64_t kRowsPerEntryMin{10};
// What it costs to find and read a row, in entries.
constexpr uint64_t kEntriesPerRow{4};

// A condition on a column that holds for no row without it.
struct Bound {
  size_t where{0};  // its number
  uint32_t family_id{0};
  std::string qualifier;  // encoded
  const Predicate* predicate{nullptr};

  bool compares() const { return predicate->kind == Predicate::Kind::kCompare; }
  bool is_equal() const { return compares() && predicate->op == CompareOp::kEq; }
  bool is_of(const IndexColumn& column) const {
    return !column.whole_family && family_id == column.family_id && qualifier == column.qualifier;
  }
};

// False if one cannot be read: the scan of the table says what is wrong.
bool CollectBounds(const TableSchema& schema, const RowOptions& rows, std::vector<Bound>* bounds) {
  for (size_t i = 0; i < rows.where.size(); ++i) {
    const Predicate& predicate = rows.where[i];
    // An index has no entry for a row without the column.
    if (!predicate.needs_cell()) continue;
    const Result<const FamilySchema*> family = RequireFamily(schema, predicate.family);
    if (!family.ok()) return false;
    Bound& bound = bounds->emplace_back();
    bound.where = i;
    bound.family_id = (*family)->id;
    bound.predicate = &predicate;
    if (!EncodeQualifier(**family, predicate.qualifier, &bound.qualifier).ok()) return false;
  }
  return true;
}

const Bound* FindEqual(const std::vector<Bound>& bounds, const IndexColumn& column) {
  const auto found = std::find_if(bounds.begin(), bounds.end(), [&](const Bound& bound) {
    return bound.is_equal() && bound.is_of(column);
  });
  return found == bounds.end() ? nullptr : &*found;
}

// --- literals as values of an ON column

// The literal as an integer column sees it: the bound to compare with, and which side of it a
// number lies that is between two integers. False if it is no number.
struct IntegerLiteral {
  bool below{false};  // all integers of the type
  bool above{false};  // likewise
  bool exact{false};  // it is `text`; else it lies above that, and below the next one
  std::string text;   // the greatest integer not above it
};

bool ReadInteger(ValueType type, std::string_view literal, IntegerLiteral* integer) {
  DecimalFloor number{};
  if (ParseDecimalFloor(literal, &number) != NumberError::kNone) return false;
  integer->exact = number.exact;
  integer->below = number.floor < IntegerTypeMin(type);
  integer->above = number.floor > IntegerTypeMax(type);
  if (integer->below || integer->above) return true;
  if (number.floor < 0) {
    AppendInt64(static_cast<int64_t>(number.floor), &integer->text);
  } else {
    AppendUint64(static_cast<uint64_t>(number.floor), &integer->text);
  }
  return true;
}

// Appends the encoding of the one value of the column that equals the literal. False if none does.
bool EncodeEqual(const IndexOrder& order, size_t column, ValueType type, std::string_view literal,
                 std::string* values) {
  if (!IsIntegerType(type)) return order.EncodeValue(column, literal, values).ok();
  IntegerLiteral integer;
  if (!ReadInteger(type, literal, &integer)) return false;
  if (integer.below || integer.above || !integer.exact) return false;
  return order.EncodeValue(column, integer.text, values).ok();
}

KeyRange Nothing() { return {{}, KeyBound{}}; }

// Encodings of the values of the column for which a comparison can hold: all of them, and perhaps
// more.
KeyRange EncodeComparison(const IndexOrder& order, size_t column, ValueType type,
                          const Predicate& predicate) {
  CompareOp op = predicate.op;
  std::string text(predicate.literal);
  if (IsIntegerType(type)) {
    IntegerLiteral integer;
    if (!ReadInteger(type, predicate.literal, &integer)) return Nothing();
    const bool wants_less = op == CompareOp::kLt || op == CompareOp::kLe;
    if (integer.below) return wants_less ? Nothing() : KeyRange{};
    if (integer.above) return wants_less ? KeyRange{} : Nothing();
    // `< 2.5` and `<= 2.5` are `<= 2`; `> 2.5` and `>= 2.5` are `> 2`.
    if (!integer.exact) op = wants_less ? CompareOp::kLe : CompareOp::kGt;
    text = integer.text;
  }
  if (const int side = IsFloatType(type) ? SideBeyondFloat(type, predicate.literal) : 0;
      side != 0) {
    // Between the infinity on that side and all other values.
    const bool to_infinity = (side > 0) == (op == CompareOp::kGt || op == CompareOp::kGe);
    text = side > 0 ? "inf" : "-inf";
    op = side > 0 ? (to_infinity ? CompareOp::kGe : CompareOp::kLt)
                  : (to_infinity ? CompareOp::kLe : CompareOp::kGt);
  }
  std::string min{"-"};
  std::string max{"+"};
  if (op == CompareOp::kGt || op == CompareOp::kGe) {
    min = (op == CompareOp::kGt ? "(" : "[") + text;
  } else {
    max = (op == CompareOp::kLt ? "(" : "[") + text;
  }
  Result<KeyRange> range = order.EncodeRange(column, min, max);
  return range.ok() ? *std::move(range) : Nothing();
}

// --- counting

// Where a bound stands in the tree of the cursor, from 0 to 1.
double ShareBefore(BTreeCursor& at, const KeyBound& bound) {
  if (bound.at_end) return 1;
  at.Seek(bound.bytes);
  return at.valid() ? at.share_before() : 1;
}

double ShareOf(BTreeCursor& at, const KeyRange& range) {
  if (range.empty()) return 0;
  return std::max(0.0, ShareBefore(at, range.end) - ShareBefore(at, range.begin));
}

// Exact for short ranges, which matter most; behind kEntriesWalked the tree's shape gives an
// estimate.
uint64_t CountEntries(const ReadView& view, uint64_t index_id, const KeyRange& range) {
  if (range.empty()) return 0;
  const std::unique_ptr<BTreeCursor> at = view.MakeIndexCursor(index_id);
  uint64_t walked = 0;
  for (at->Seek(range.begin.bytes); at->valid() && range.contains(at->key()); at->Next()) {
    if (++walked == kEntriesWalked) break;
  }
  if (walked < kEntriesWalked) return walked;
  const auto all = static_cast<double>(view.IndexEntries(index_id));
  return std::max(walked, static_cast<uint64_t>(ShareOf(*at, range) * all));
}

// Rows in ranges of the table, by the largest of its trees.
uint64_t CountRows(const ReadView& view, const std::vector<KeyRange>& ranges) {
  if (ranges.size() == 1 && ranges[0].begin.bytes.empty() && ranges[0].end.at_end) {
    return view.rows();
  }
  size_t largest = 0;
  for (size_t group = 1; group < view.schema().groups.size(); ++group) {
    if (view.entries(group) > view.entries(largest)) largest = group;
  }
  BTreeCursor at = view.MakeCursor(largest);
  double share = 0;
  for (const KeyRange& range : ranges) share += ShareOf(at, range);
  return static_cast<uint64_t>(std::llround(share * static_cast<double>(view.rows())));
}

class Chooser {
 public:
  Chooser(const ReadView& view, const RowOptions& rows, const CellOptions& cells,
          std::vector<std::string>* considered)
      : view_(view), schema_(view.schema()), rows_(rows), cells_(cells), considered_(considered) {}

  // The cheapest index that fits. An entry costs one; where it does not hold what the reply needs,
  // the row has to be found and read on top.
  IndexChoice Choose() {
    IndexChoice best;
    if (!MayChoose()) return best;
    for (const IndexSchema& index : schema_.indexes) {
      if (index.of_rows()) continue;
      IndexChoice choice;
      if (!Fit(index, &choice)) continue;
      const uint64_t entries = EntriesOf(choice);
      if (TooMany(choice, entries)) continue;
      if (!KnowsColumns()) return {};
      const bool covers = CoversCells(view_, index, *columns_, rows_, cells_);
      const uint64_t cost = entries * (covers ? 1 : 1 + kEntriesPerRow);
      if (best.index != nullptr && cost >= best_cost_) {
        SayOther(index, *best.index, "costs no more");
        continue;
      }
      if (best.index != nullptr) SayOther(*best.index, index, "costs less");
      best = std::move(choice);
      best_cost_ = cost;
      best_text_ = TakenText(best, entries, covers);
    }
    if (best.index != nullptr) Say(*best.index, best_text_);
    return best;
  }

  // Says what is left to be said, once it is known what is taken.
  void SayOfRows(const IndexSchema* taken) {
    if (considered_ == nullptr) return;
    for (const IndexSchema& index : schema_.indexes) {
      if (!index.of_rows()) continue;
      Say(index, &index == taken
                     ? "taken: it holds all that is asked for, and is smaller than the table"
                     : "not taken: it does not hold all that is asked for, or is no smaller than "
                       "what it would stand for");
    }
  }

  // The index that would serve the conditions, if none does for what it is ON.
  std::string Missing() const {
    std::vector<const Bound*> on;
    for (const Bound& bound : bounds_) {
      const auto same = [&](const Bound* other) {
        return other->family_id == bound.family_id && other->qualifier == bound.qualifier;
      };
      if (bound.is_equal() && std::none_of(on.begin(), on.end(), same)) on.push_back(&bound);
    }
    if (on.empty() && MayReorder()) {
      const auto range = std::find_if(bounds_.begin(), bounds_.end(),
                                      [](const Bound& bound) { return bound.compares(); });
      if (range != bounds_.end()) on.push_back(&*range);
    }
    if (on.empty() || some_fit_ || on.size() > kIndexColumnsMax) return {};
    const bool hll = std::any_of(on.begin(), on.end(), [&](const Bound* bound) {
      return schema_.FindFamilyById(bound->family_id)->is_hll();
    });
    if (hll) return {};
    std::string text = "INDEX CREATE <table> <name> ON " + FormatUint64(on.size());
    for (const Bound* bound : on) {
      text += " " + QuoteWord(std::string(bound->predicate->family) + ":" +
                              std::string(bound->predicate->qualifier));
    }
    return text + " would serve this WHERE";
  }

 private:
  bool MayChoose() {
    if (rows_.where.empty() && considered_ == nullptr) return false;
    if (rows_.index || rows_.no_index) {
      SayForAll(rows_.index ? "not taken: INDEX names another one" : "not taken: NOINDEX");
      return false;
    }
    if (!CollectBounds(schema_, rows_, &bounds_)) return false;
    // Single rows are read where they are.
    const auto is_row = [](const RowSelector& row) { return row.kind == RowSelector::Kind::kRow; };
    if (!rows_.rows.empty() && std::all_of(rows_.rows.begin(), rows_.rows.end(), is_row)) {
      some_fit_ = true;  // no other one would either
      SayForAll("not taken: single rows are read where they are");
      return false;
    }
    if (bounds_.empty() && considered_ == nullptr) return false;
    return true;
  }

  // False if those that are asked for cannot be read: the scan of the table says what is wrong.
  bool KnowsColumns() {
    if (columns_) return true;
    Result<ColumnSet> columns = ColumnSet::Compile(schema_, cells_.columns);
    if (columns.ok()) columns_ = *std::move(columns);
    return columns_.has_value();
  }

  // Could it serve, whatever its range holds? Then *choice says how.
  bool Fit(const IndexSchema& index, IndexChoice* choice) {
    if (HidesColumns(index)) return false;
    if (index.of_qualifiers()) return Refuse(index, "it lists qualifiers, no values");
    const std::vector<IndexColumn>& on = index.on;
    for (const IndexColumn& column : on) {
      const bool bound = std::any_of(bounds_.begin(), bounds_.end(),
                                     [&](const Bound& b) { return b.is_of(column); });
      if (!bound) return Refuse(index, "no WHERE asks for its column ", &column);
    }
    size_t equal = 0;
    while (equal < on.size() && FindEqual(bounds_, on[equal]) != nullptr) ++equal;
    if (equal < on.size() && !MayReorder()) {
      return Refuse(index,
                    "its entries would come in another order than the rows, as no EQ binds its "
                    "column ",
                    &on[equal]);
    }
    some_fit_ = true;
    if (index.state == IndexState::kFailed) return Refuse(index, "it could not be built");
    if (index.state == IndexState::kBuilding || !view_.IndexIsBuilt(index.id)) {
      return Refuse(index, "it is being built");
    }
    const uint64_t left_out = view_.IndexRowsLeftOut(index.id);
    // A row that has no entry may still hold for a condition, so the index would lose rows.
    if (left_out > 0) {
      if (considered_ == nullptr) return false;
      return Refuse(index, "it leaves out " + FormatUint64(left_out) +
                               (left_out == 1 ? " row" : " rows") +
                               " because of a cell's type or size");
    }
    Bind(index, equal, choice);
    if (!choice->in_row_order && choice->entries == KeyRange{}) {
      return Refuse(index, "no WHERE bounds its column ", &on[0]);
    }
    return true;
  }

  // Entries in another order do no harm.
  bool MayReorder() const { return rows_.reordered_max > 0 && !rows_.each; }

  void Bind(const IndexSchema& index, size_t equal, IndexChoice* choice) {
    const IndexOrder order(schema_, index);
    choice->index = &index;
    choice->in_row_order = equal == index.on.size();
    choice->answered.assign(rows_.where.size(), false);
    bool possible = true;
    for (size_t i = 0; possible && i < equal; ++i) {
      // What the encoded value answers exactly is not asked of the row again.
      const Bound& bound = *FindEqual(bounds_, index.on[i]);
      possible = EncodeEqual(order, i, index.on[i].type, bound.predicate->literal, &choice->values);
      choice->answered[bound.where] = true;
    }
    if (!possible) {
      choice->entries = Nothing();
      return;
    }
    choice->entries = PrefixRange(choice->values);
    if (equal == index.on.size()) return;
    KeyRange inner;
    for (const Bound& bound : bounds_) {
      if (!bound.compares() || bound.is_equal() || !bound.is_of(index.on[equal])) continue;
      const KeyRange range = EncodeComparison(order, equal, index.on[equal].type, *bound.predicate);
      inner.begin = std::max(inner.begin, range.begin);
      inner.end = std::min(inner.end, range.end);
    }
    if (!(inner == KeyRange{})) choice->entries = RangeBehind(choice->values, inner);
  }

  uint64_t EntriesOf(const IndexChoice& choice) {
    if (!ranges_known_) {
      ranges_known_ = true;
      if (!CompileRows(schema_, view_.clamp(), rows_.rows, &ranges_).ok()) ranges_.clear();
      rows_in_ranges_ = CountRows(view_, ranges_);
    }
    if (!choice.in_row_order) return CountEntries(view_, choice.index->id, choice.entries);
    uint64_t entries = 0;
    for (const KeyRange& range : ranges_) {
      KeyRange part = RangeBehind(choice.values, range);
      part = {std::max(part.begin, choice.entries.begin), std::min(part.end, choice.entries.end)};
      entries += CountEntries(view_, choice.index->id, part);
    }
    return entries;
  }

  bool HidesColumns(const IndexSchema& index) const {
    return std::any_of(index.on.begin(), index.on.end(), [&](const IndexColumn& column) {
      return schema_.FindFamilyById(column.family_id) == nullptr;
    });
  }

  // --- words

  void Say(const IndexSchema& index, const std::string& text) {
    if (considered_ == nullptr) return;
    considered_->push_back(index.name + ": " + text);
  }
  bool Refuse(const IndexSchema& index, std::string_view why, const IndexColumn* column = nullptr) {
    if (considered_ == nullptr) return false;
    Say(index, "not taken: " + std::string(why) +
                   (column == nullptr ? "" : Quote(IndexColumnText(schema_, *column))));
    return false;
  }
  void SayForAll(const std::string& text) {
    if (considered_ == nullptr) return;
    for (const IndexSchema& index : schema_.indexes) {
      if (HidesColumns(index)) continue;
      const bool named = rows_.index && rows_.index->name == index.name;
      Say(index, named ? "taken: it is named" : text);
    }
  }
  void SayOther(const IndexSchema& index, const IndexSchema& other, const char* what) {
    if (considered_ != nullptr) Say(index, "not taken: index '" + other.name + "' " + what);
  }
  bool TooMany(const IndexChoice& choice, uint64_t entries) {
    const bool reordered = !choice.in_row_order && entries > rows_.reordered_max;
    if (!reordered && entries * kRowsPerEntryMin <= rows_in_ranges_) return false;
    if (considered_ == nullptr) return true;
    const std::string text =
        "not taken: its range has about " + FormatUint64(entries) + " entries, ";
    if (reordered) {
      Say(*choice.index, text + "and no more than " + FormatUint64(rows_.reordered_max) +
                             " are put into the order of the rows");
    } else {
      Say(*choice.index, text + "more than a tenth of the " + FormatUint64(rows_in_ranges_) +
                             " rows that the scan would walk over");
    }
    return true;
  }
  std::string TakenText(const IndexChoice& choice, uint64_t entries, bool covers) const {
    if (considered_ == nullptr) return {};
    if (choice.entries.empty()) return "taken: no value of its columns can satisfy WHERE";
    std::string text = "taken: WHERE bounds its columns, and the order is of no concern";
    if (choice.in_row_order) text = "taken: WHERE binds all its columns by EQ";
    text += ", about " + FormatUint64(entries) + (entries == 1 ? " entry" : " entries");
    text += " instead of " + FormatUint64(rows_in_ranges_) + " rows";
    return text + (covers ? "; the table is not read" : "");
  }

  const ReadView& view_;
  const TableSchema& schema_;
  const RowOptions& rows_;
  const CellOptions& cells_;
  std::vector<std::string>* considered_;
  std::vector<Bound> bounds_;
  std::optional<ColumnSet> columns_;
  bool some_fit_{false};
  bool ranges_known_{false};
  std::vector<KeyRange> ranges_;
  uint64_t rows_in_ranges_{0};
  uint64_t best_cost_{0};
  std::string best_text_;
};

void ChooseRows(const ReadView& view, const RowOptions& rows, const CellOptions& cells,
                IndexChoice* choice) {
  choice->index = ChooseGroup(view, rows, cells);
  choice->of_rows = choice->index != nullptr;
}

}  // namespace

IndexChoice ChooseIndex(const ReadView& view, const RowOptions& rows, const CellOptions& cells,
                        std::vector<std::string>* considered) {
  IndexChoice choice;
  if (considered == nullptr) {
    if (view.schema().indexes.empty()) return choice;
    if (!rows.where.empty()) choice = Chooser(view, rows, cells, nullptr).Choose();
    if (choice.index == nullptr) ChooseRows(view, rows, cells, &choice);
    return choice;
  }
  Chooser chooser(view, rows, cells, considered);
  choice = chooser.Choose();
  if (choice.index == nullptr) ChooseRows(view, rows, cells, &choice);
  const bool chooses = !rows.index && !rows.no_index;
  if (chooses) chooser.SayOfRows(choice.of_rows ? choice.index : nullptr);
  std::sort(considered->begin(), considered->end());
  const std::string missing = chooses && choice.index == nullptr ? chooser.Missing() : "";
  if (!missing.empty()) considered->push_back(missing);
  return choice;
}

}  // namespace cellar
