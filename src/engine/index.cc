// Evaluation of rows, and what follows from it.
#include "engine/index.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/assert.h"
#include "base/coding.h"
#include "engine/key_component.h"
#include "engine/table.h"
#include "engine/timestamp.h"

namespace cellar {
namespace {

constexpr char kIncludedMark{1};

std::string DueKey(int64_t due_micros, std::string_view row_key) {
  std::string key;
  PutBigEndian64(&key, static_cast<uint64_t>(due_micros));
  key.append(row_key);
  return key;
}

bool HasColumn(const std::vector<IndexColumn>& columns, uint32_t family_id) {
  return std::any_of(columns.begin(), columns.end(), [family_id](const IndexColumn& column) {
    return column.family_id == family_id;
  });
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

size_t IndexOrder::ValuesSize(std::string_view entry_key) const {
  if (of_qualifiers_) return qualifiers_.EncodedSize(entry_key);
  size_t total = 0;
  for (const Column& column : columns_) {
    const size_t size = ComponentSize(column.component, entry_key.substr(total));
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
    CELLAR_ASSERT(qualifiers_.Decode(entry_key.substr(0, size), &value.stored));
    return values;
  }
  for (const Column& column : columns_) {
    Value& value = values.emplace_back();
    value.type = column.type;
    const size_t size = ComponentSize(column.component, entry_key);
    CELLAR_ASSERT(DecodeComponentValue(column.component, column.type, entry_key.substr(0, size),
                                       &value.stored));
    entry_key.remove_prefix(size);
  }
  return values;
}

// --- included cells

bool DecodeIncludedCells(std::string_view value, std::vector<IncludedCell>* cells) {
  cells->clear();
  if (value.empty() || value[0] != kIncludedMark) return false;
  value.remove_prefix(1);
  while (!value.empty()) {
    IncludedCell& cell = cells->emplace_back();
    uint64_t family_id = 0;
    uint64_t timestamp = 0;
    if (!GetVarint64(&value, &family_id) || !GetLengthPrefixed(&value, &cell.qualifier) ||
        !GetVarint64(&value, &timestamp) || value.empty()) {
      return false;
    }
    cell.family_id = static_cast<uint32_t>(family_id);
    cell.timestamp_micros = static_cast<int64_t>(timestamp);
    cell.type = static_cast<ValueType>(value[0]);
    value.remove_prefix(1);
    if (!GetLengthPrefixed(&value, &cell.stored)) return false;
  }
  return true;
}

std::vector<IndexColumn> IncludedColumns(const TableSchema& table, const IndexSchema& index) {
  std::vector<IndexColumn> columns;
  if (index.include.empty() || index.of_qualifiers()) return columns;
  const auto covered = [&](uint32_t family_id) {
    return std::any_of(index.include.begin(), index.include.end(), [&](const IndexColumn& c) {
      return c.whole_family && c.family_id == family_id;
    });
  };
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

// --- the index

Index::Index(const Table& table, const IndexSchema& schema)
    : table_(table),
      id_(schema.id),
      schema_(schema),
      order_(table.schema(), schema),
      included_(IncludedColumns(table.schema(), schema)),
      entries_(std::make_unique<BTree>()),
      dues_(std::make_unique<BTree>()),
      entries_at_(std::make_unique<BTreeCursor>(*entries_)) {}

Index::~Index() = default;

bool Index::Watches(uint32_t family_id) const {
  return schema_.of_rows() || HasColumn(schema_.on, family_id) || HasColumn(included_, family_id);
}

void Index::ReleaseTrees(std::vector<std::unique_ptr<BTree>>* trees) {
  cursors_.clear();
  entries_at_.reset();
  trees->push_back(std::move(entries_));
  trees->push_back(std::move(dues_));
}

void Index::DropCursors() { cursors_.clear(); }

BTreeCursor& Index::CursorOf(size_t group) {
  if (cursors_.size() <= group) cursors_.resize(group + 1);
  if (!cursors_[group]) cursors_[group] = std::make_unique<BTreeCursor>(table_.tree(group));
  return *cursors_[group];
}

// --- evaluation

void Index::EvaluateAt(std::string_view row_key, int64_t at_micros, Evaluation* evaluation) {
  evaluation->keys.clear();
  evaluation->value.clear();
  evaluation->due_micros = kNeverMicros;
  evaluation->too_large = false;
  if (schema_.of_qualifiers()) return EvaluateQualifiers(row_key, at_micros, evaluation);
  if (schema_.of_rows()) {
    EvaluateRow(row_key, at_micros, evaluation);
  } else {
    EvaluateColumns(row_key, at_micros, evaluation);
  }
  if (!included_.empty() && !evaluation->keys.empty()) {
    EvaluateIncluded(row_key, at_micros, evaluation);
  }
}

void Index::IncludeCell(const FamilySchema& family, size_t qualifier_at, const NewestCell& cell,
                        Evaluation* evaluation) {
  if (!cell.found) return;
  evaluation->due_micros = std::min(evaluation->due_micros, cell.due_micros);
  if (evaluation->value.empty()) return;  // it has become too large already
  std::string& value = evaluation->value;
  PutVarint64(&value, family.id);
  PutLengthPrefixed(&value, std::string_view(column_).substr(qualifier_at));
  PutVarint64(&value, static_cast<uint64_t>(cell.timestamp_micros));
  value.push_back(static_cast<char>(cell.type));
  PutLengthPrefixed(&value, cell.stored);
  if (value.size() > kIndexIncludedBytesMax) value.clear();
}

void Index::EvaluateIncluded(std::string_view row_key, int64_t at_micros, Evaluation* evaluation) {
  evaluation->value.assign(1, kIncludedMark);
  std::string prefix;
  NewestCell cell;
  for (const IndexColumn& included : included_) {
    const FamilySchema* family = table_.schema().FindFamilyById(included.family_id);
    CELLAR_ASSERT(family != nullptr);
    prefix.assign(row_key);
    PutFamilyId(&prefix, family->id);
    BTreeCursor& at = CursorOf(family->group);
    if (!included.whole_family) {
      column_ = prefix + included.qualifier;
      at.Seek(column_);
      ReadNewest(*family, at, at_micros, &cell);
      IncludeCell(*family, prefix.size(), cell, evaluation);
      continue;
    }
    at.Seek(prefix);
    while (at.valid() && at.key().starts_with(prefix)) {
      const size_t qualifier_bytes = family->order.EncodedSize(at.key().substr(prefix.size()));
      CELLAR_ASSERT(qualifier_bytes > 0);
      column_.assign(at.key().substr(0, prefix.size() + qualifier_bytes));
      ReadNewest(*family, at, at_micros, &cell);
      IncludeCell(*family, prefix.size(), cell, evaluation);
      SeekBehindColumn(at);
    }
  }
}

void Index::ReadNewest(const FamilySchema& family, BTreeCursor& at, int64_t at_micros,
                       NewestCell* cell) {
  cell->found = false;
  uint64_t rank = 0;
  for (; at.valid() && at.key().starts_with(column_); at.Next()) {
    ++rank;
    if (rank > family.policy.rank_kept_max()) return;
    int64_t timestamp = 0;
    CellValue value;
    if (DecodeTimestamp(at.key().substr(column_.size()), &timestamp) == 0 ||
        !DecodeCellValue(at.value(), &value)) {
      continue;  // cannot come from this engine, and a checksum guards the files
    }
    const int64_t due = family.policy.DueMicros(rank, timestamp, value.expiry_micros);
    if (due != kNeverMicros && at_micros >= due) {
      past_due_ = std::max(past_due_, due);
      continue;
    }
    cell->found = true;
    cell->timestamp_micros = timestamp;
    cell->type = value.type;
    cell->stored = value.stored;
    cell->due_micros = due;
    return;
  }
}

void Index::EvaluateColumns(std::string_view row_key, int64_t at_micros, Evaluation* evaluation) {
  bool types_fit = true;
  int64_t due_micros = kNeverMicros;
  key_.clear();
  for (const IndexColumn& on : schema_.on) {
    const FamilySchema* family = table_.schema().FindFamilyById(on.family_id);
    CELLAR_ASSERT(family != nullptr);
    column_.assign(row_key);
    PutFamilyId(&column_, family->id);
    column_.append(on.qualifier);
    BTreeCursor& at = CursorOf(family->group);
    at.Seek(column_);
    NewestCell cell;
    ReadNewest(*family, at, at_micros, &cell);
    if (!cell.found) return;  // and time alone will not bring one
    due_micros = std::min(due_micros, cell.due_micros);
    types_fit = types_fit && cell.type == on.type;
    if (!types_fit) continue;
    EncodeComponentValue({ComponentOfValueType(on.type), on.descending}, on.type, cell.stored,
                         &key_);
  }
  evaluation->due_micros = due_micros;
  if (!types_fit) return;
  evaluation->too_large = key_.size() > kIndexValuesBytesMax;
  if (evaluation->too_large) return;
  key_.append(row_key);
  evaluation->keys.push_back(key_);
}

// ON 1 family: one entry for each column of it that has a live version.
void Index::EvaluateQualifiers(std::string_view row_key, int64_t at_micros,
                               Evaluation* evaluation) {
  const IndexColumn& on = schema_.on[0];
  const FamilySchema* family = table_.schema().FindFamilyById(on.family_id);
  CELLAR_ASSERT(family != nullptr);
  std::string prefix(row_key);
  PutFamilyId(&prefix, family->id);
  BTreeCursor& at = CursorOf(family->group);
  at.Seek(prefix);
  while (at.valid() && at.key().starts_with(prefix)) {
    const size_t qualifier_bytes = family->order.EncodedSize(at.key().substr(prefix.size()));
    CELLAR_ASSERT(qualifier_bytes > 0);
    column_.assign(at.key().substr(0, prefix.size() + qualifier_bytes));
    NewestCell cell;
    ReadNewest(*family, at, at_micros, &cell);
    if (cell.found) {
      evaluation->due_micros = std::min(evaluation->due_micros, cell.due_micros);
      key_.assign(std::string_view(column_).substr(prefix.size()));
      if (on.descending) {
        for (char& c : key_) c = static_cast<char>(~c);
      }
      key_.append(row_key);
      evaluation->keys.push_back(key_);
    }
    SeekBehindColumn(at);
  }
  std::sort(evaluation->keys.begin(), evaluation->keys.end());
}

void Index::SeekBehindColumn(BTreeCursor& at) {
  if (at.valid() && at.key().starts_with(column_)) at.Next();
  if (!at.valid() || !at.key().starts_with(column_)) return;
  const KeyBound behind = Successor(column_);
  CELLAR_ASSERT(!behind.at_end);  // a terminator or a timestamp is never all ff
  at.Seek(behind.bytes);
}

// ON 0: an entry for each row with a live cell. The first one found stands for the row, until it is
// due; then another one may.
void Index::EvaluateRow(std::string_view row_key, int64_t at_micros, Evaluation* evaluation) {
  std::string prefix;
  for (const FamilySchema& family : table_.schema().families) {
    prefix.assign(row_key);
    PutFamilyId(&prefix, family.id);
    BTreeCursor& at = CursorOf(family.group);
    at.Seek(prefix);
    while (at.valid() && at.key().starts_with(prefix)) {
      const size_t qualifier_bytes = family.order.EncodedSize(at.key().substr(prefix.size()));
      CELLAR_ASSERT(qualifier_bytes > 0);
      column_.assign(at.key().substr(0, prefix.size() + qualifier_bytes));
      NewestCell cell;
      ReadNewest(family, at, at_micros, &cell);
      if (cell.found) {
        evaluation->due_micros = cell.due_micros;
        evaluation->keys.emplace_back(row_key);
        return;
      }
      SeekBehindColumn(at);
    }
  }
}

// --- maintenance

bool Index::HasOther(std::string_view entry_key) const {
  const std::string_view values = entry_key.substr(0, order_.ValuesSize(entry_key));
  BTreeCursor& at = *entries_at_;
  at.Seek(values);
  if (at.valid() && at.key() == entry_key) at.Next();
  return at.valid() && at.key().starts_with(values);
}

bool Index::HasConflict() const {
  return std::any_of(conflicts_.begin(), conflicts_.end(), [this](const std::string& key) {
    return entries_->Get(key).has_value() && HasOther(key);
  });
}

void Index::ForgetConflicts() {
  conflicts_.clear();
  too_large_ = false;
}

void Index::Replace(std::string_view row_key, const Evaluation& before, const Evaluation& now) {
  if (now.too_large && !before.too_large) too_large_ = true;
  if (before.keys != now.keys || before.value != now.value) {
    for (const std::string& key : before.keys) {
      if (std::binary_search(now.keys.begin(), now.keys.end(), key)) continue;
      const BTreeWriteResult result = entries_->Delete(key);
      CELLAR_ASSERT(result.existed);
    }
    for (const std::string& key : now.keys) {
      const bool kept = std::binary_search(before.keys.begin(), before.keys.end(), key);
      if (kept && before.value == now.value) continue;
      if (!kept && schema_.unique && HasOther(key)) conflicts_.push_back(key);
      const BTreeWriteResult result = entries_->Put(key, now.value);
      CELLAR_ASSERT(result.existed == kept);
    }
  }
  if (before.due_micros == now.due_micros) return;
  if (before.due_micros != kNeverMicros) {
    const BTreeWriteResult result = dues_->Delete(DueKey(before.due_micros, row_key));
    CELLAR_ASSERT(result.existed);
  }
  if (now.due_micros != kNeverMicros) {
    CELLAR_ASSERT(now.due_micros > time_);
    dues_->Put(DueKey(now.due_micros, row_key), {});
    due_next_ = std::min(due_next_, now.due_micros);
  }
}

// --- time

bool Index::SetTime(int64_t now_micros) {
  CELLAR_ASSERT(now_micros >= 0);
  if (now_micros < time_ && past_due_ > now_micros) return false;
  if (now_micros >= due_next_) {
    due_next_ = kNeverMicros;
    Evaluation before;
    Evaluation now;
    BTreeCursor at(*dues_);
    std::string row_key;
    for (at.SeekFirst(); at.valid(); at.SeekFirst()) {
      const auto due = static_cast<int64_t>(DecodeBigEndian64(at.key().data()));
      if (due > now_micros) {
        due_next_ = due;
        break;
      }
      row_key.assign(at.key().substr(8));
      EvaluateAt(row_key, time_, &before);
      CELLAR_ASSERT(before.due_micros == due);
      EvaluateAt(row_key, now_micros, &now);
      const int64_t time = std::exchange(time_, now_micros);
      Replace(row_key, before, now);
      time_ = time;
    }
    ForgetConflicts();  // what time reveals is nobody's mistake
  }
  time_ = now_micros;
  return true;
}

// --- building

bool Index::FindRow(std::string_view from, std::string* row_key) {
  const TableSchema& schema = table_.schema();
  const BTreeCursor* first = nullptr;
  for (size_t group = 0; group < table_.groups(); ++group) {
    const bool wanted =
        std::any_of(schema.families.begin(), schema.families.end(),
                    [&](const FamilySchema& f) { return f.group == group && Watches(f.id); });
    if (!wanted) continue;
    BTreeCursor& at = CursorOf(group);
    at.Seek(from);
    if (!at.valid()) continue;
    if (first == nullptr || at.key() < first->key()) first = &at;
  }
  if (first == nullptr) return false;
  const size_t row_bytes = schema.key.EncodedSize(first->key());
  CELLAR_ASSERT(row_bytes > 0);
  row_key->assign(first->key().substr(0, row_bytes));
  return true;
}

bool Index::Build(uint64_t rows_max) {
  std::string row_key;
  Evaluation now;
  for (uint64_t rows = 0; !built_ && rows < rows_max; ++rows) {
    if (!FindRow(position_, &row_key)) {
      built_ = true;
      break;
    }
    EvaluateAt(row_key, time_, &now);
    Replace(row_key, Evaluation(), now);
    KeyBound behind = Successor(row_key);
    built_ = behind.at_end;
    position_ = std::move(behind.bytes);
    ++rows_built_;
  }
  build_failed_ = build_failed_ || !conflicts_.empty() || too_large_;
  ForgetConflicts();
  return built_;
}

double Index::progress() const {
  if (built_) return 1;
  const uint64_t rows = std::max<uint64_t>(table_.counters().rows, 1);
  return std::min(0.99, static_cast<double>(rows_built_) / static_cast<double>(rows));
}

// --- undo

Index::Checkpoint Index::TakeCheckpoint() {
  Checkpoint checkpoint;
  checkpoint.id = id_;
  checkpoint.entries = entries_->TakeSnapshot();
  checkpoint.dues = dues_->TakeSnapshot();
  checkpoint.time = time_;
  checkpoint.past_due = past_due_;
  checkpoint.position = position_;
  checkpoint.built = built_;
  checkpoint.build_failed = build_failed_;
  checkpoint.tree = entries_.get();
  return checkpoint;
}

void Index::RollBackTo(const Checkpoint& checkpoint) {
  CELLAR_ASSERT(Took(checkpoint));
  entries_->RollBackTo(checkpoint.entries);
  dues_->RollBackTo(checkpoint.dues);
  time_ = checkpoint.time;
  past_due_ = checkpoint.past_due;
  position_ = checkpoint.position;
  built_ = checkpoint.built;
  build_failed_ = checkpoint.build_failed;
  due_next_ = std::numeric_limits<int64_t>::min();  // look again
  ForgetConflicts();
}

}  // namespace cellar
