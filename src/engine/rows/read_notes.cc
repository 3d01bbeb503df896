// See read_notes.h.
#include "engine/rows/read_notes.h"

#include <algorithm>
#include <string_view>

#include "base/text/quote.h"
#include "base/text/time_text.h"
#include "engine/keys/key_component.h"
#include "engine/rows/time_unit.h"
#include "engine/schema/column_set.h"
#include "engine/table/index_entry.h"

namespace cellar {
namespace {

// Does the lower bound lie above the upper one? `[9 [1` looks like the opposite of what was meant,
// while `(5 (5` and `(1 (2` of integers have nothing inside by their own words. `encode` makes a
// range of two bounds.
template <typename Encode>
bool IsReversed(const Encode& encode, std::string_view min, std::string_view max) {
  const Result<KeyRange> range = encode(min, max);
  if (!range.ok() || min == "-" || max == "+") return false;
  if (min == "+" || max == "-") return true;
  const auto closed = [](std::string_view bound) { return "[" + std::string(bound.substr(1)); };
  const std::string low = closed(min);
  const std::string high = closed(max);
  const Result<KeyRange> at_low = encode(low, low);
  const Result<KeyRange> at_high = encode(high, high);
  const Result<KeyRange> between = encode(low, high);
  if (!at_low.ok() || !at_high.ok() || !between.ok() || *at_low == *at_high) return false;
  // With a part of a key, `(p [p#2` is reversed, though `[p [p#2` is not.
  return between->empty() || range->begin.at_end || range->end < range->begin;
}

bool IsReversed(const Order& order, const std::pair<std::string_view, std::string_view>& bounds) {
  return IsReversed(
      [&](std::string_view min, std::string_view max) { return EncodeRange(order, min, max); },
      bounds.first, bounds.second);
}

std::string ReversedNote(std::string_view what, std::string_view min, std::string_view max,
                         const Order& order) {
  std::string note(what);
  note.append(" ").append(Quote(min)).append(" ").append(Quote(max));
  note.append(" is empty: its min comes after its max in the order ").append(Quote(order.spec()));
  const bool descends =
      std::any_of(order.components().begin(), order.components().end(),
                  [](const OrderComponent& component) { return component.descending; });
  if (descends) note.append(", where a descending component begins with the largest value");
  return note;
}

// The component in which a prefix ends, if it is one that has no prefixes of its own; else null.
const OrderComponent* WholeComponentAtEnd(const Order& order, std::string_view prefix) {
  if (prefix.empty()) return nullptr;
  const std::vector<OrderComponent>& components = order.components();
  size_t last = 0;
  if (components.size() > 1) {
    if (prefix.back() == order.delimiter()) return nullptr;
    last =
        std::min(static_cast<size_t>(std::count(prefix.begin(), prefix.end(), order.delimiter())),
                 components.size() - 1);
  }
  return IsTextComponent(components[last].type) ? nullptr : &components[last];
}

void NotePrefix(std::string_view what, std::string_view prefix, const Order& order,
                std::vector<std::string>* notes) {
  const OrderComponent* const component = WholeComponentAtEnd(order, prefix);
  if (component == nullptr) return;
  const std::string type(ComponentTypeName(component->type));
  notes->push_back(std::string(what) + " " + Quote(prefix) + " means this one " + type +
                   ", not those that begin with its digits: a range finds neighbours");
}

void NoteBetween(const TableSchema& schema, const IndexOptions& options,
                 std::vector<std::string>* notes) {
  const IndexSchema* const index = schema.FindIndex(options.name);
  if (index == nullptr || !options.between) return;
  const IndexOrder order(schema, *index);
  const auto& [min, max] = *options.between;
  const size_t column = options.equal.size();
  const bool reversed =
      column < order.columns()
          ? IsReversed([&](std::string_view low,
                           std::string_view high) { return order.EncodeRange(column, low, high); },
                       min, max)
          : IsReversed(schema.key, *options.between);
  if (!reversed) return;
  notes->push_back("BETWEEN " + Quote(min) + " " + Quote(max) +
                   " is empty: its min is larger than its max");
}

// Where the keys with that prefix begin. The first bytes that they share come before all of them;
// the least one, unless the order descends, is the key that the prefix is by itself.
KeyBound FirstOfPrefix(const Order& order, std::string_view prefix, const KeyRange& keys) {
  const bool ascends =
      std::none_of(order.components().begin(), order.components().end(),
                   [](const OrderComponent& component) { return component.descending; });
  const Result<KeyRange> own = EncodeRange(order, "[" + std::string(prefix), "+");
  return ascends && own.ok() ? own->begin : keys.begin;
}

// Selectors of rows are a union, which somebody who names a prefix beside a range that has all of
// it does not mean.
void NoteUnion(const TableSchema& schema, const RowOptions& rows, std::vector<std::string>* notes) {
  constexpr size_t kSelectorsMax{64};  // each is held against each
  if (rows.rows.size() > kSelectorsMax) return;
  for (const RowSelector& prefix : rows.rows) {
    if (prefix.kind != RowSelector::Kind::kPrefix) continue;
    const Result<KeyRange> narrow = schema.key.EncodePrefix(prefix.first);
    if (!narrow.ok()) continue;
    const KeyBound first = FirstOfPrefix(schema.key, prefix.first, *narrow);
    for (const RowSelector& range : rows.rows) {
      if (range.kind != RowSelector::Kind::kRange) continue;
      const Result<KeyRange> wide = EncodeRange(schema.key, range.first, range.second);
      if (!wide.ok() || first < wide->begin || wide->end < narrow->end) continue;
      notes->push_back("PREFIX " + Quote(prefix.first) + " and RANGE " + Quote(range.first) + " " +
                       Quote(range.second) +
                       " are a union: the range has all rows of the prefix, which adds none");
    }
  }
}

void NoteRows(const TableSchema& schema, const RowOptions& rows, std::vector<std::string>* notes) {
  if (rows.index) NoteBetween(schema, *rows.index, notes);
  for (const RowSelector& selector : rows.rows) {
    if (selector.kind == RowSelector::Kind::kPrefix) {
      NotePrefix("PREFIX", selector.first, schema.key, notes);
    } else if (selector.kind == RowSelector::Kind::kRange &&
               IsReversed(schema.key, {selector.first, selector.second})) {
      notes->push_back(ReversedNote("RANGE", selector.first, selector.second, schema.key));
    }
  }
  NoteUnion(schema, rows, notes);
}

}  // namespace

std::vector<std::string> ReadNotes(const TableSchema& schema, const RowOptions& rows,
                                   const CellOptions& cells) {
  std::vector<std::string> notes;
  NoteRows(schema, rows, &notes);
  for (const ColumnSelector& selector : cells.columns) {
    const FamilySchema* const family = schema.FindFamily(selector.family);
    if (family == nullptr) continue;
    if (selector.kind == ColumnSelector::Kind::kPrefix) {
      NotePrefix("COLPREFIX " + family->name, selector.first, family->order, &notes);
    } else if (selector.kind == ColumnSelector::Kind::kRange &&
               IsReversed(family->order, {selector.first, selector.second})) {
      notes.push_back(
          ReversedNote("COLRANGE " + family->name, selector.first, selector.second, family->order));
    }
  }
  if (cells.time.max_micros < cells.time.min_micros) {
    notes.emplace_back("TIME is empty: no time is within its min and its max");
  }
  for (const int64_t micros : {cells.time.min_micros, cells.time.max_micros}) {
    std::string note = LargerUnitNote("the time", micros, NowOfTexts());
    if (!note.empty()) notes.push_back(std::move(note));
  }
  return notes;
}

}  // namespace cellar
