// See read_notes.h.
#include "engine/rows/read_notes.h"

#include <algorithm>
#include <string_view>

#include "base/text/quote.h"
#include "engine/keys/key_component.h"
#include "engine/schema/column_set.h"
#include "engine/table/index_entry.h"

namespace cellar {
namespace {

// `[5 (5` has nothing inside by its own words; `[9 [1` looks like the opposite of what was meant.
bool IsReversed(const Result<KeyRange>& range) {
  return range.ok() && (range->begin.at_end || range->end < range->begin);
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
  const bool of_values = options.equal.size() < order.columns();
  if (!IsReversed(of_values ? order.EncodeRange(options.equal.size(), min, max)
                            : EncodeRange(schema.key, min, max))) {
    return;
  }
  notes->push_back("BETWEEN " + Quote(min) + " " + Quote(max) +
                   " is empty: its min is larger than its max");
}

void NoteRows(const TableSchema& schema, const RowOptions& rows, std::vector<std::string>* notes) {
  if (rows.index) NoteBetween(schema, *rows.index, notes);
  for (const RowSelector& selector : rows.rows) {
    if (selector.kind == RowSelector::Kind::kPrefix) {
      NotePrefix("PREFIX", selector.first, schema.key, notes);
    } else if (selector.kind == RowSelector::Kind::kRange &&
               IsReversed(EncodeRange(schema.key, selector.first, selector.second))) {
      notes->push_back(ReversedNote("RANGE", selector.first, selector.second, schema.key));
    }
  }
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
               IsReversed(EncodeRange(family->order, selector.first, selector.second))) {
      notes.push_back(
          ReversedNote("COLRANGE " + family->name, selector.first, selector.second, family->order));
    }
  }
  if (cells.time.max_micros < cells.time.min_micros) {
    notes.emplace_back("TIME is empty: its min is above its max");
  }
  return notes;
}

}  // namespace cellar
