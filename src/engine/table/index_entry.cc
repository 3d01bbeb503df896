// See index_entry.h.
#include "engine/table/index_entry.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/coding.h"
#include "engine/keys/key_component.h"
#include "engine/keys/value.h"
#include "engine/schema/schema.h"

namespace cellar {
namespace {

constexpr uint8_t kHoldsCells{1};
constexpr uint8_t kHasSpans{2};
constexpr uint8_t kCellHasSpan{0x80};

void PutSpan(const TimeSpan& span, std::string* to) {
  CELLAR_ASSERT(span.from_micros < span.due_micros);
  PutVarint64(to, static_cast<uint64_t>(span.from_micros));
  // 0 stands for never: no span ends there, since each ends after it begins.
  const bool never = span.due_micros == kNeverMicros;
  PutVarint64(to, never ? 0 : static_cast<uint64_t>(span.due_micros));
}

bool GetSpan(std::string_view* from, TimeSpan* span) {
  uint64_t begin = 0;
  uint64_t due = 0;
  if (!GetVarint64(from, &begin) || !GetVarint64(from, &due)) return false;
  span->from_micros = static_cast<int64_t>(begin);
  span->due_micros = due == 0 ? kNeverMicros : static_cast<int64_t>(due);
  return true;
}

}  // namespace

// --- values

IndexOrder::IndexOrder(const TableSchema& table, const IndexSchema& index)
    : of_qualifiers_(index.of_qualifiers()) {
  for (const IndexColumn& column : index.on) {
    columns_.push_back({{ComponentOfValueType(column.type), column.descending}, column.type});
  }
  if (!of_qualifiers_) return;
  const FamilySchema* family = table.FindFamilyById(index.on[0].family_id);
  CELLAR_ASSERT(family != nullptr);
  std::vector<OrderComponent> components = family->order.components();
  descending_ = index.on[0].descending;
  for (OrderComponent& component : components) {
    if (descending_) component.descending = !component.descending;
  }
  qualifiers_ = Order::FromComponents(std::move(components), family->order.delimiter());
}

Status IndexOrder::EncodeValue(size_t column, std::string_view text, std::string* out) const {
  CELLAR_ASSERT(column < columns_.size());
  if (of_qualifiers_) {
    const Status status = qualifiers_.Encode(text, out);
    return status.ok() ? status : Status::Error(ErrorCode::kBadValue, status.text());
  }
  ValueBuffer buffer;
  std::string_view stored;
  RETURN_IF_ERROR(ParseValue(columns_[column].type, text, &buffer, &stored));
  EncodeComponentValue(columns_[column].component, columns_[column].type, stored, out);
  return Status::Ok();
}

// The bound in the ascending sense of values; `side` says which end of the encodings it is.
Result<KeyBound> IndexOrder::EncodeBound(size_t column, std::string_view text,
                                         BoundSide side) const {
  CELLAR_ASSERT(!text.empty());
  const BoundEdge edge = text[0] == '[' ? BoundEdge::kInclusive : BoundEdge::kExclusive;
  const std::string_view value = text.substr(1);
  if (of_qualifiers_) {
    Result<KeyBound> bound = qualifiers_.EncodeBound(value, edge, side);
    if (bound.ok()) return bound;
    return Status::Error(ErrorCode::kBadValue, bound.status().text());
  }
  KeyBound bound;
  RETURN_IF_ERROR(EncodeValue(column, value, &bound.bytes));
  const bool begins_before = (edge == BoundEdge::kInclusive) == (side == BoundSide::kMin);
  if (begins_before) return bound;
  return Successor(bound.bytes);
}

Result<KeyRange> IndexOrder::EncodeRange(size_t column, std::string_view min,
                                         std::string_view max) const {
  CELLAR_ASSERT(column < columns_.size());
  const bool descending = of_qualifiers_ ? descending_ : columns_[column].component.descending;
  const auto is_bound = [](std::string_view text) {
    return text == "-" || text == "+" || (!text.empty() && (text[0] == '[' || text[0] == '('));
  };
  if (!is_bound(min) || !is_bound(max)) {
    return Status::Error(ErrorCode::kErr, "min or max not valid string range item");
  }
  // Of a descending column the largest value has the smallest encoding, so min bounds the end of
  // the range. Each bound can only narrow the range: one that is empty stays so.
  KeyRange range;
  if (min == "+" || max == "-") range.end = KeyBound{};  // empty
  if (min != "-" && min != "+") {
    const BoundSide side = descending ? BoundSide::kMax : BoundSide::kMin;
    ASSIGN_OR_RETURN(KeyBound bound, EncodeBound(column, min, side));
    KeyBound& end = descending ? range.end : range.begin;
    if (descending ? bound < end : end < bound) end = std::move(bound);
  }
  if (max != "-" && max != "+") {
    const BoundSide side = descending ? BoundSide::kMin : BoundSide::kMax;
    ASSIGN_OR_RETURN(KeyBound bound, EncodeBound(column, max, side));
    KeyBound& end = descending ? range.begin : range.end;
    if (descending ? end < bound : bound < end) end = std::move(bound);
  }
  return range;
}

size_t IndexOrder::ValuesSize(std::string_view entry_key, size_t count) const {
  CELLAR_ASSERT(count <= columns());
  if (of_qualifiers_) return count == 0 ? 0 : qualifiers_.EncodedSize(entry_key);
  size_t total = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t size = ComponentSize(columns_[i].component, entry_key.substr(total));
    if (size == 0) return 0;
    total += size;
  }
  return total;
}

std::vector<IndexOrder::Value> IndexOrder::DecodeValues(std::string_view entry_key) const {
  std::vector<Value> values;
  if (of_qualifiers_) {
    Value& value = values.emplace_back();
    const size_t size = qualifiers_.EncodedSize(entry_key);
    const bool decoded = qualifiers_.Decode(entry_key.substr(0, size), &value.stored);
    CELLAR_ASSERT(decoded);
    return values;
  }
  for (const Column& column : columns_) {
    Value& value = values.emplace_back();
    value.type = column.type;
    const size_t size = ComponentSize(column.component, entry_key);
    const bool decoded = DecodeComponentValue(column.component, column.type,
                                              entry_key.substr(0, size), &value.stored);
    CELLAR_ASSERT(decoded);
    entry_key.remove_prefix(size);
  }
  return values;
}

std::vector<IndexOrder::Value> IndexOrder::DecodeFirst(std::string_view key, size_t* bytes) const {
  *bytes = 0;
  if (of_qualifiers_) {
    *bytes = qualifiers_.EncodedSize(key);
    return *bytes == 0 ? std::vector<Value>() : DecodeValues(key);
  }
  std::vector<Value> values;
  for (const Column& column : columns_) {
    const size_t size = ComponentSize(column.component, key);
    Value value{column.type, {}};
    if (size == 0 ||
        !DecodeComponentValue(column.component, column.type, key.substr(0, size), &value.stored)) {
      break;
    }
    values.push_back(std::move(value));
    key.remove_prefix(size);
    *bytes += size;
  }
  return values;
}

// --- what an entry holds

void PutEntryHead(std::span<const TimeSpan> spans, bool holds_cells, std::string* to) {
  CELLAR_ASSERT(!spans.empty());
  // The usual entry, true for ever and without cells, has no value at all.
  const bool always = spans.size() == 1 && spans[0].always();
  if (always && !holds_cells) return;
  to->push_back(static_cast<char>((holds_cells ? kHoldsCells : 0) | (always ? 0 : kHasSpans)));
  if (always) return;
  PutVarint64(to, spans.size());
  for (const TimeSpan& span : spans) PutSpan(span, to);
}

bool HasSpans(std::string_view value) {
  return !value.empty() && (static_cast<uint8_t>(value[0]) & kHasSpans) != 0;
}

std::string LeftOutMark(uint64_t rows) {
  CELLAR_ASSERT(rows > 0);
  // Spans, but none of them: whoever reads it as an entry finds it true at no moment.
  std::string mark{static_cast<char>(kHasSpans), '\0'};
  PutVarint64(&mark, rows);
  return mark;
}

uint64_t RowsOfMark(std::string_view mark) {
  CELLAR_ASSERT(mark.size() > 2);
  mark.remove_prefix(2);
  uint64_t rows = 0;
  const bool good = GetVarint64(&mark, &rows);
  CELLAR_ASSERT(good);
  return rows;
}

void PutIncludedCell(const IncludedCell& cell, const TimeSpan& span, std::string* to) {
  PutVarint64(to, cell.family_id);
  PutLengthPrefixed(to, cell.qualifier);
  PutVarint64(to, static_cast<uint64_t>(cell.timestamp_micros));
  to->push_back(
      static_cast<char>(static_cast<uint8_t>(cell.type) | (span.always() ? 0 : kCellHasSpan)));
  if (!span.always()) PutSpan(span, to);
  PutLengthPrefixed(to, cell.stored);
}

bool EntryReader::Open(std::string_view value, int64_t now_micros) {
  holds_cells_ = false;
  if (value.empty()) return true;
  const auto flags = static_cast<uint8_t>(value[0]);
  rest_ = value.substr(1);
  now_micros_ = now_micros;
  holds_cells_ = (flags & kHoldsCells) != 0;
  if ((flags & kHasSpans) == 0) return true;
  uint64_t count = 0;
  bool found = false;
  bool good = GetVarint64(&rest_, &count);
  for (uint64_t i = 0; good && i < count; ++i) {
    TimeSpan span;
    good = GetSpan(&rest_, &span);
    found = found || (good && span.contains(now_micros));
  }
  CELLAR_ASSERT(good);
  return found;
}

bool EntryReader::Next(IncludedCell* cell) {
  CELLAR_ASSERT(holds_cells_);
  while (!rest_.empty()) {
    uint64_t family_id = 0;
    uint64_t timestamp = 0;
    bool good = GetVarint64(&rest_, &family_id) && GetLengthPrefixed(&rest_, &cell->qualifier) &&
                GetVarint64(&rest_, &timestamp) && !rest_.empty();
    CELLAR_ASSERT(good);
    const auto type = static_cast<uint8_t>(rest_[0]);
    rest_.remove_prefix(1);
    TimeSpan span;
    good = (type & kCellHasSpan) == 0 || GetSpan(&rest_, &span);
    good = good && GetLengthPrefixed(&rest_, &cell->stored);
    CELLAR_ASSERT(good);
    if (!span.contains(now_micros_)) continue;
    cell->family_id = static_cast<uint32_t>(family_id);
    cell->timestamp_micros = static_cast<int64_t>(timestamp);
    cell->type = static_cast<ValueType>(type & ~kCellHasSpan);
    return true;
  }
  return false;
}

std::vector<IndexColumn> IncludedColumns(const TableSchema& table, const IndexSchema& index) {
  std::vector<IndexColumn> columns;
  if (index.include.empty() || index.of_qualifiers()) return columns;
  const auto covered = [&](uint32_t family_id) {
    return std::any_of(index.include.begin(), index.include.end(), [&](const IndexColumn& c) {
      return c.whole_family && c.family_id == family_id;
    });
  };
  // In the order of the schema, then of the qualifiers, and each once. A single column is left out
  // where its whole family is included.
  for (const FamilySchema& family : table.families) {
    const size_t first = columns.size();
    for (const auto* list : {&index.on, &index.include}) {
      for (const IndexColumn& column : *list) {
        if (column.family_id != family.id) continue;
        if (column.whole_family || !covered(family.id)) columns.push_back(column);
      }
    }
    const auto begin = columns.begin() + static_cast<ptrdiff_t>(first);
    std::sort(begin, columns.end(),
              [](const IndexColumn& a, const IndexColumn& b) { return a.qualifier < b.qualifier; });
    columns.erase(std::unique(begin, columns.end(),
                              [](const IndexColumn& a, const IndexColumn& b) {
                                return a.qualifier == b.qualifier;
                              }),
                  columns.end());
  }
  return columns;
}

}  // namespace cellar
