// Evaluation of rows, and what follows from it.
#include "engine/table/index.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "base/text/number.h"
#include "base/text/quote.h"
#include "engine/keys/key_component.h"
#include "engine/keys/timestamp.h"
#include "engine/request/read_options.h"
#include "engine/table/table.h"
#include "engine/table/version_walk.h"

namespace cellar {
namespace {

constexpr TimeSpan kAlways{};

// Texts are longer than their encodings where they are of numbers, but not so much longer.
constexpr size_t kSurelySmallBytes{8 * 1024};
constexpr size_t kTextPerEncodedByteMax{8};
static_assert(kSurelySmallBytes * kTextPerEncodedByteMax <= kIndexEntryBytesMax);
constexpr size_t kNotOn{std::numeric_limits<size_t>::max()};

bool HasFamily(const std::vector<IndexColumn>& columns, uint32_t family_id) {
  return std::any_of(columns.begin(), columns.end(), [family_id](const IndexColumn& column) {
    return column.family_id == family_id;
  });
}

bool Touches(const ChangedColumns& changed, const std::vector<IndexColumn>& columns) {
  return std::any_of(columns.begin(), columns.end(), [&changed](const IndexColumn& column) {
    return column.family_id == changed.family_id &&
           (column.whole_family || changed.Has(column.qualifier));
  });
}

}  // namespace

Index::Index(const Table& table, const IndexSchema& schema)
    : table_(table),
      id_(schema.id),
      schema_(schema),
      order_(table.schema(), schema),
      included_(IncludedColumns(table.schema(), schema)),
      entries_(std::make_unique<BTree>()),
      entries_at_(std::make_unique<BTreeCursor>(*entries_)),
      on_turns_(schema.on.size()),
      at_once_(schema.on.size()) {
  for (const IndexColumn& included : included_) {
    const auto on = std::find_if(schema_.on.begin(), schema_.on.end(), [&](const IndexColumn& c) {
      return !included.whole_family && c.family_id == included.family_id &&
             c.qualifier == included.qualifier;
    });
    included_on_.push_back(on == schema_.on.end() ? kNotOn
                                                  : static_cast<size_t>(on - schema_.on.begin()));
  }
}

Index::~Index() = default;

bool Index::WatchesFamily(uint32_t family_id) const {
  return schema_.of_rows() || HasFamily(schema_.on, family_id) || HasFamily(included_, family_id);
}

bool Index::WatchesValues(const ChangedColumns& columns) const {
  return Touches(columns, schema_.on);
}

bool Index::WatchesContent(const ChangedColumns& columns) const {
  return WatchesValues(columns) || Touches(columns, included_);
}

bool Index::Watches(const ChangedColumns& columns) const {
  return schema_.of_rows() || WatchesContent(columns);
}

// Called before a write that may be refused for the size of an entry: if even the largest values
// that the families hold fit, no evaluation has to tell.
bool Index::MayOutgrow(size_t row_text_bytes, size_t change_bytes) const {
  if (schema_.of_rows()) return false;
  size_t bytes = row_text_bytes * kTextPerEncodedByteMax;  // it may be longer in canonical form
  if (by_column()) return bytes + kQualifierBytesMax > kIndexEntryBytesMax;
  bytes += change_bytes;
  for (const IndexColumn& on : schema_.on) {
    const FamilySchema* family = table_.schema().FindFamilyById(on.family_id);
    CELLAR_ASSERT(family != nullptr);
    // What is stored, and what is about to be, does not tell how long packed values are.
    if (IsTextType(on.type) && family->compression != Compression::kNever) return true;
    bytes += table_.tree(family->group).value_bytes_bound();
  }
  return bytes > kIndexEntryBytesMax;
}

bool Index::entries_are_live() const {
  if (table_.clamp() != nullptr) return false;
  return schema_.of_rows() ? table_.counts_are_live() : timed_entries_ == 0;
}

void Index::ReleaseTrees(std::vector<std::unique_ptr<BTree>>* trees) {
  cursors_.clear();
  entries_at_.reset();
  trees->push_back(std::move(entries_));
}

void Index::DropCursors() { cursors_.clear(); }

BTreeCursor& Index::CursorOf(size_t group) {
  if (cursors_.size() <= group) cursors_.resize(group + 1);
  if (!cursors_[group]) cursors_[group] = std::make_unique<BTreeCursor>(table_.tree(group));
  return *cursors_[group];
}

// --- evaluation

// The entries that the row should have now, as far as `columns` can change them. There are three
// kinds of indexes: over the qualifiers of one family, over rows that exist, and over the values of
// some columns.
void Index::Evaluate(std::string_view row_key, const ChangedColumns& columns,
                     Evaluation* evaluation) {
  ++evaluations_;
  evaluation->count = 0;
  evaluation->too_large_bytes = 0;
  evaluation->left_out = false;
  evaluation->absent = false;
  if (by_column()) {
    (void)EvaluateQualifiers(row_key, columns, Part::kBuilt, kUnlimited, evaluation);
    return;
  }
  if (schema_.of_rows()) return EvaluateRow(row_key, evaluation);
  EvaluateColumns(row_key, evaluation);
}

void Index::EvaluateHeld(std::string_view row_key, const ChangedColumns& columns,
                         Evaluation* evaluation) {
  cells_held_ = !included_.empty();
  Evaluate(row_key, columns, evaluation);
  cells_held_ = false;
}

bool Index::KeepsRow(std::string_view row_key, const Evaluation& before) {
  CELLAR_ASSERT(schema_.of_rows());
  if (schema_.unique) return false;  // the row may have come to life
  return before.count > 0 && HasRow(row_key);
}

void Index::CheckUnbuiltRow(std::string_view row_key, Evaluation* scratch) {
  CELLAR_ASSERT(!by_column());
  CELLAR_ASSERT(!Covers(row_key));
  Evaluate(row_key, whole_row(), scratch);
  if (scratch->too_large_bytes > 0) NoteTooLarge(row_key, whole_row());
}

// The row is remembered until the change is judged at its end (FindTooLarge): a later op of the
// same command may make it small again.
void Index::NoteTooLarge(std::string_view row_key, const ChangedColumns& columns) {
  left_out_.push_back(
      {std::string(row_key), std::string(columns.begin), std::string(columns.end), columns.one});
}

size_t Index::FindTooLarge(Evaluation* scratch) {
  for (const LeftOut& left_out : left_out_) {
    ChangedColumns columns = whole_row();
    if (by_column()) columns = {columns.family_id, left_out.begin, left_out.end, left_out.one};
    Evaluate(left_out.row_key, columns, scratch);
    if (scratch->too_large_bytes > 0) return scratch->too_large_bytes;
  }
  return 0;
}

// With cells_held_ the row's other cells are known not to have changed, so the entry's value is
// copied from the one that is there instead of being made anew.
void Index::AddEntry(std::string_view key, std::span<const TimeSpan> spans,
                     Evaluation* evaluation) {
  if (evaluation->count == evaluation->entries.size()) evaluation->entries.emplace_back();
  Entry& entry = evaluation->entries[evaluation->count++];
  entry.key.assign(key);
  entry.value.clear();
  if (cells_held_) {
    const std::optional<std::string_view> held = entries_->Get(key);
    CELLAR_ASSERT(held.has_value());
    entry.value.assign(*held);
  } else {
    const bool holds_cells = !included_.empty() && cells_fit_;
    PutEntryHead(spans, holds_cells, &entry.value);
    if (holds_cells) entry.value.append(cells_);
  }
  entry.timed = spans.size() > 1 || !spans[0].always();
  entry.now = std::any_of(spans.begin(), spans.end(),
                          [this](const TimeSpan& span) { return span.contains(now_micros_); });
  // The entry of an index of rows is there while any cell is stored, so UNIQUE asks the row itself.
  if (schema_.of_rows() && schema_.unique) entry.now = IsThere(key, entry.value);
}

bool Index::IsThere(std::string_view entry_key, std::string_view value) {
  EntryReader entry;
  if (!entry.Open(value, now_micros_)) return false;
  return !schema_.of_rows() || RowIsLive(std::string(entry_key));
}

// O(cells that are stored of the row, until one is found that is live).
bool Index::RowIsLive(const std::string& row_key) {
  for (const FamilySchema& family : table_.schema().families) {
    std::string prefix(row_key);
    PutFamilyId(&prefix, family.id);
    BTreeCursor& at = CursorOf(family.group);
    at.Seek(prefix);
    while (at.valid() && at.key().starts_with(prefix)) {
      const size_t qualifier_bytes = family.order.EncodedSize(at.key().substr(prefix.size()));
      CELLAR_ASSERT(qualifier_bytes > 0);
      column_.assign(at.key().substr(0, prefix.size() + qualifier_bytes));
      ReadTurns(family, at, &turns_);
      for (size_t i = 0; i < turns_.count; ++i) {
        if (turns_.turns[i].span.contains(now_micros_)) return true;
      }
      SeekBehindColumn(at);
    }
  }
  return false;
}

void Index::Turns::Add(const TimeSpan& span, int64_t timestamp_micros, ValueType type,
                       std::string_view stored) {
  if (count == turns.size()) turns.emplace_back();
  Turn& turn = turns[count++];
  turn.span = span;
  turn.timestamp_micros = timestamp_micros;
  turn.type = type;
  turn.stored.assign(stored);
}

// Walks the versions, as far as one of them can outlive those before it. Where no cell expires by
// itself and the policy asks for the age alone, that is the newest one, and one of timestamp 0.
void Index::ReadTurns(const FamilySchema& family, BTreeCursor& at, Turns* turns) {
  turns->count = 0;
  const bool ages_alone =
      table_.family_counters(family).expiring_cells == 0 && !family.policy.depends_on_rank();
  int64_t from = 0;
  VersionWalk walk(family.policy, false, 0);  // an entry says when it is due: no time is asked
  while (at.valid() && at.key().starts_with(column_)) {
    walk.Count();
    if (walk.is_behind_last()) return;
    ++cells_evaluated_;
    CellValue value;
    const int64_t timestamp = StoredTimestamp(at.key().substr(column_.size()));
    ReadStoredCell(at.value(), &plain_, &value);
    const int64_t due = walk.DueOf(timestamp, value.expiry_micros);
    // A version that is due no later than a newer one never has a turn.
    if (due > from) {
      turns->Add({from, due}, timestamp, value.type, value.stored);
      plain_.Trim();
      if (due == kNeverMicros) return;
      from = due;
    }
    if (ages_alone && timestamp > 0) {
      const size_t column_bytes = column_.size();
      PutTimestamp(&column_, 0);
      at.Seek(column_);
      column_.resize(column_bytes);
    } else {
      at.Next();
    }
  }
}

// The usual row has one turn of each ON column, and so one entry. A value of another type than the
// index has leaves the row out.
void Index::EvaluateColumns(std::string_view row_key, Evaluation* evaluation) {
  bool one_turn = true;
  for (size_t i = 0; i < schema_.on.size(); ++i) {
    const IndexColumn& on = schema_.on[i];
    const FamilySchema* family = table_.schema().FindFamilyById(on.family_id);
    CELLAR_ASSERT(family != nullptr);
    column_.assign(row_key);
    PutFamilyId(&column_, family->id);
    column_.append(on.qualifier);
    BTreeCursor& at = CursorOf(family->group);
    at.Seek(column_);
    ReadTurns(*family, at, &on_turns_[i]);
    // Without a live value of each ON column there is no entry, and the row is not one that is left
    // out.
    if (on_turns_[i].count == 0) return;
    one_turn = one_turn && on_turns_[i].count == 1;
  }
  if (!one_turn) return EvaluateTurns(row_key, evaluation);
  TimeSpan span;
  for (size_t i = 0; i < schema_.on.size(); ++i) {
    const Turn& turn = on_turns_[i].turns[0];
    evaluation->left_out = evaluation->left_out || turn.type != schema_.on[i].type;
    span.due_micros = std::min(span.due_micros, turn.span.due_micros);
    at_once_[i] = &turn;
  }
  if (evaluation->left_out) return;
  if (!EncodeValues(row_key, at_once_, span, evaluation)) return;
  key_.append(row_key);
  EvaluateIncluded(row_key, evaluation);
  AddEntry(key_, {&span, 1}, evaluation);
}

// Sizes are judged by what a client sees: texts as they are, numbers as they are encoded, the row
// key in its canonical text. An entry that surely fits is not measured.
bool Index::EncodeValues(std::string_view row_key, std::span<const Turn* const> turns,
                         const TimeSpan& span, Evaluation* evaluation) {
  key_.clear();
  size_t bytes = 0;
  size_t largest = 0;
  size_t largest_column = 0;
  for (size_t i = 0; i < turns.size(); ++i) {
    const IndexColumn& on = schema_.on[i];
    const size_t before = key_.size();
    EncodeComponentValue({ComponentOfValueType(on.type), on.descending}, on.type, turns[i]->stored,
                         &key_);
    const size_t own = IsTextType(on.type) ? turns[i]->stored.size() : key_.size() - before;
    bytes += own;
    if (own <= largest) continue;
    largest = own;
    largest_column = i;
  }
  if (key_.size() + row_key.size() <= kSurelySmallBytes) [[likely]]
    return true;
  row_text_.clear();
  const bool decoded = table_.schema().key.Decode(row_key, &row_text_);
  CELLAR_ASSERT(decoded);
  bytes += row_text_.size();
  if (bytes <= kIndexEntryBytesMax) return true;
  evaluation->left_out = true;
  if (span.due_micros > now_micros_) {
    evaluation->too_large_bytes = bytes;
    evaluation->too_large_column = largest_column;
  }
  return false;
}

// Between two moments at which some column's turn ends, every column has one value.
void Index::EvaluateTurns(std::string_view row_key, Evaluation* evaluation) {
  // The map brings the entries into the order of their keys, which Replace relies on.
  std::map<std::string, std::vector<TimeSpan>> spans_of;
  std::vector<size_t> turn_at(schema_.on.size(), 0);
  for (int64_t from = 0; from != kNeverMicros;) {
    int64_t due = kNeverMicros;
    bool types_fit = true;
    for (size_t i = 0; i < schema_.on.size(); ++i) {
      const IndexColumn& on = schema_.on[i];
      while (turn_at[i] < on_turns_[i].count &&
             on_turns_[i].turns[turn_at[i]].span.due_micros <= from) {
        ++turn_at[i];
      }
      if (turn_at[i] == on_turns_[i].count) {
        from = kNeverMicros;  // the column has no live version any more
        break;
      }
      const Turn& turn = on_turns_[i].turns[turn_at[i]];
      due = std::min(due, turn.span.due_micros);
      types_fit = types_fit && turn.type == on.type;
      at_once_[i] = &turn;
    }
    if (from == kNeverMicros) break;
    const TimeSpan span{from, due};
    from = due;
    evaluation->left_out = evaluation->left_out || !types_fit;
    if (!types_fit || !EncodeValues(row_key, at_once_, span, evaluation)) continue;
    std::vector<TimeSpan>& spans = spans_of[key_];
    if (!spans.empty() && spans.back().due_micros == span.from_micros) {
      spans.back().due_micros = span.due_micros;
    } else {
      spans.push_back(span);
    }
  }
  if (spans_of.empty()) return;
  EvaluateIncluded(row_key, evaluation);
  for (const auto& [values, spans] : spans_of) {
    key_.assign(values);
    key_.append(row_key);
    AddEntry(key_, spans, evaluation);
  }
}

// ON 1 family: one entry for each column of it. Its turns follow each other without a gap.
bool Index::EvaluateQualifiers(std::string_view row_key, const ChangedColumns& columns, Part part,
                               uint64_t columns_max, Evaluation* evaluation) {
  const IndexColumn& on = schema_.on[0];
  CELLAR_ASSERT(columns.family_id == on.family_id);
  const FamilySchema* family = table_.schema().FindFamilyById(on.family_id);
  CELLAR_ASSERT(family != nullptr);
  std::string prefix(row_key);
  PutFamilyId(&prefix, family->id);
  BTreeCursor& at = CursorOf(family->group);
  column_ = prefix;
  column_.append(columns.begin);
  at.Seek(column_);
  bool complete = true;
  evaluation->absent = columns.one;
  evaluation->absent_until.clear();
  while (at.valid() && at.key().starts_with(prefix)) {
    const size_t qualifier_bytes = family->order.EncodedSize(at.key().substr(prefix.size()));
    CELLAR_ASSERT(qualifier_bytes > 0);
    const std::string_view qualifier = at.key().substr(prefix.size(), qualifier_bytes);
    if (!columns.Has(qualifier)) {
      if (evaluation->absent) evaluation->absent_until.assign(qualifier);
      break;
    }
    evaluation->absent = false;
    column_.assign(at.key().substr(0, prefix.size() + qualifier_bytes));
    CELLAR_ASSERT(part == Part::kBuilt || !Covers(column_));
    if (part == Part::kBuilt && !Covers(column_)) break;
    complete = columns_max-- > 0;
    if (!complete) break;
    ReadTurns(*family, at, &turns_);
    if (turns_.count > 0) {
      const TimeSpan span{0, turns_.turns[turns_.count - 1].span.due_micros};
      key_.assign(std::string_view(column_).substr(prefix.size()));
      if (FitsQualifier(*family, row_key, key_, span, evaluation)) {
        if (on.descending) Complement(&key_, 0);
        key_.append(row_key);
        AddEntry(key_, {&span, 1}, evaluation);
      }
    }
    if (columns.one) break;
    SeekBehindColumn(at);
  }
  // A descending index turns the order of the qualifiers round.
  if (evaluation->count > 1) {
    std::sort(evaluation->entries.begin(),
              evaluation->entries.begin() + static_cast<ptrdiff_t>(evaluation->count),
              [](const Entry& a, const Entry& b) { return a.key < b.key; });
  }
  return complete;
}

// Is the row's entry for a qualifier small enough? (EncodeValues asks that of other indexes.)
bool Index::FitsQualifier(const FamilySchema& family, std::string_view row_key,
                          std::string_view qualifier, const TimeSpan& span,
                          Evaluation* evaluation) {
  if (row_key.size() + qualifier.size() <= kSurelySmallBytes) [[likely]]
    return true;
  row_text_.clear();
  const bool decoded =
      table_.schema().key.Decode(row_key, &row_text_) && family.order.Decode(qualifier, &row_text_);
  CELLAR_ASSERT(decoded);
  if (row_text_.size() <= kIndexEntryBytesMax) return true;
  if (span.due_micros > now_micros_) evaluation->too_large_bytes = row_text_.size();
  return false;
}

// Most columns have one version, so a step is tried before the seek.
void Index::SeekBehindColumn(BTreeCursor& at) {
  if (at.valid() && at.key().starts_with(column_)) at.Next();
  if (!at.valid() || !at.key().starts_with(column_)) return;
  const KeyBound behind = Successor(column_);
  CELLAR_ASSERT(!behind.at_end);  // a terminator or a timestamp is never all ff
  at.Seek(behind.bytes);
}

// Also true of a row that holds nothing but what retention has dropped.
bool Index::HasRow(std::string_view row_key) {
  const std::vector<FamilySchema>& families = table_.schema().families;
  return std::any_of(families.begin(), families.end(), [&](const FamilySchema& family) {
    column_.assign(row_key);
    PutFamilyId(&column_, family.id);
    BTreeCursor& at = CursorOf(family.group);
    at.Seek(column_);
    return at.valid() && at.key().starts_with(column_);
  });
}

void Index::EvaluateRow(std::string_view row_key, Evaluation* evaluation) {
  if (!HasRow(row_key)) return;
  EvaluateIncluded(row_key, evaluation);
  AddEntry(row_key, {&kAlways, 1}, evaluation);
}

// --- included cells

// Once the cells do not fit, the entry is written without any: reads then take the row itself.
void Index::IncludeTurns(const FamilySchema& family, std::string_view qualifier,
                         const Turns& turns) {
  for (size_t i = 0; i < turns.count && cells_fit_; ++i) {
    const Turn& turn = turns.turns[i];
    PutIncludedCell({family.id, qualifier, turn.timestamp_micros, turn.type, turn.stored},
                    turn.span, &cells_);
    cells_fit_ = cells_.size() <= kIndexIncludedBytesMax;
  }
}

// Into cells_.
void Index::EvaluateIncluded(std::string_view row_key, Evaluation* evaluation) {
  CELLAR_ASSERT(evaluation->count == 0);
  if (cells_held_) return;
  cells_.clear();
  cells_fit_ = true;
  std::string prefix;
  for (size_t i = 0; i < included_.size() && cells_fit_; ++i) {
    const IndexColumn& included = included_[i];
    const FamilySchema* family = table_.schema().FindFamilyById(included.family_id);
    CELLAR_ASSERT(family != nullptr);
    // Its turns have been read for the ON values already.
    if (included_on_[i] != kNotOn) {
      IncludeTurns(*family, included.qualifier, on_turns_[included_on_[i]]);
      continue;
    }
    prefix.assign(row_key);
    PutFamilyId(&prefix, family->id);
    BTreeCursor& at = CursorOf(family->group);
    if (!included.whole_family) {
      column_ = prefix + included.qualifier;
      at.Seek(column_);
      ReadTurns(*family, at, &turns_);
      IncludeTurns(*family, included.qualifier, turns_);
      continue;
    }
    at.Seek(prefix);
    while (cells_fit_ && at.valid() && at.key().starts_with(prefix)) {
      const size_t qualifier_bytes = family->order.EncodedSize(at.key().substr(prefix.size()));
      CELLAR_ASSERT(qualifier_bytes > 0);
      column_.assign(at.key().substr(0, prefix.size() + qualifier_bytes));
      ReadTurns(*family, at, &turns_);
      IncludeTurns(*family, std::string_view(column_).substr(prefix.size()), turns_);
      SeekBehindColumn(at);
    }
  }
}

// --- maintenance

// Looks for another row with the same values. Entries of rows that are no longer there are stepped
// over, which may be many: after `steps` of them the search stops at *from, and nobody knows.
Index::Conflict Index::FindOther(std::string_view entry_key, uint64_t* steps, std::string* from) {
  const std::string_view values = entry_key.substr(0, order_.ValuesSize(entry_key));
  // Rows that may collide are all of one set: others that stand here are compared with none.
  const Tablets* const clamp = table_.clamp();
  if (clamp != nullptr && !clamp->Owns(entry_key.substr(values.size()))) return Conflict::kNone;
  BTreeCursor& at = *entries_at_;
  for (at.Seek(from->empty() ? values : *from); at.valid() && at.key().starts_with(values);
       at.Next()) {
    if (at.key() == entry_key) continue;
    const bool is_owned = clamp == nullptr || clamp->Owns(at.key().substr(values.size()));
    if (is_owned && IsThere(at.key(), at.value())) {
      from->assign(at.key());
      return Conflict::kFound;
    }
    if (*steps == 0) {
      from->assign(at.key());
      return Conflict::kUnknown;
    }
    --*steps;
  }
  return Conflict::kNone;
}

// At the end of a change: a collision that an op made, a later one may have taken away, so each is
// looked up again. An entry that is left may be one of dead cells alone: it collides with nobody.
Index::Conflict Index::FindConflict(Collision* collision) {
  Conflict worst = Conflict::kNone;
  for (const std::string& key : conflicts_) {
    const std::optional<std::string_view> value = entries_->Get(key);
    if (!value || !IsThere(key, *value)) continue;
    uint64_t steps = kUniqueStepsMax;
    std::string from;
    worst = std::max(worst, FindOther(key, &steps, &from));
    if (worst != Conflict::kFound) continue;
    collision->entry_key = key;
    collision->row_key = from.substr(order_.ValuesSize(from));
    break;
  }
  return worst;
}

std::string Index::CollisionText(const Collision& collision) const {
  std::string row;
  const bool decoded = table_.schema().key.Decode(collision.row_key, &row);
  CELLAR_ASSERT(decoded);
  std::string text = "row " + Quote(row);
  if (schema_.of_rows()) return text + " is there already";
  const char* separator = " has ";
  for (const IndexOrder::Value& value : order_.DecodeValues(collision.entry_key)) {
    text += separator + Quote(ValueText(value.type, value.stored));
    separator = ", ";
  }
  return text + " already";
}

void Index::ForgetConflicts() {
  conflicts_.clear();
  left_out_.clear();
}

// The number stands in the tree itself, as the entry with the empty key, so that it is part of
// every snapshot and rollback of the index.
void Index::SetRowsLeftOut(uint64_t rows) {
  if (rows == rows_left_out_) [[likely]]
    return;
  CELLAR_ASSERT(!by_column());
  CELLAR_ASSERT(!schema_.of_rows());
  rows_left_out_ = rows;
  if (rows > 0) {
    (void)entries_->Put({}, LeftOutMark(rows));
  } else {
    (void)entries_->Delete({});
  }
}

// Both lists are sorted, so this is a merge, and an entry that stays as it is costs no write. With
// UNIQUE only entries that were not there before are looked up; whether a conflict lasts is judged
// at the end of the change (FindConflict).
void Index::Replace(const Evaluation& before, const Evaluation& now) {
  CELLAR_ASSERT(!before.left_out || rows_left_out_ > 0);
  SetRowsLeftOut(rows_left_out_ - (before.left_out ? 1 : 0) + (now.left_out ? 1 : 0));
  size_t old_at = 0;
  size_t new_at = 0;
  while (old_at < before.count || new_at < now.count) {
    const Entry* old_entry = old_at < before.count ? &before.entries[old_at] : nullptr;
    const Entry* new_entry = new_at < now.count ? &now.entries[new_at] : nullptr;
    if (old_entry != nullptr && new_entry != nullptr) {
      const int order = old_entry->key.compare(new_entry->key);
      if (order < 0) new_entry = nullptr;
      if (order > 0) old_entry = nullptr;
    }
    if (old_entry != nullptr) {
      ++old_at;
      timed_entries_ -= old_entry->timed ? 1 : 0;
    }
    if (new_entry == nullptr) {
      const BTreeWriteResult result = entries_->Delete(old_entry->key);
      CELLAR_ASSERT(result.existed);
      continue;
    }
    ++new_at;
    timed_entries_ += new_entry->timed ? 1 : 0;
    const bool was_there = old_entry != nullptr && old_entry->now;
    if (schema_.unique && new_entry->now && !was_there) {
      uint64_t steps = kUniqueStepsMax;
      std::string from;
      if (FindOther(new_entry->key, &steps, &from) != Conflict::kNone) {
        conflicts_.push_back(new_entry->key);
      }
    }
    if (old_entry != nullptr && old_entry->value == new_entry->value) continue;
    const BTreeWriteResult result = entries_->Put(new_entry->key, new_entry->value);
    CELLAR_ASSERT(result.existed == (old_entry != nullptr));
  }
}

// --- building

// The first row at or behind `from` that has a cell in a family the index watches.
bool Index::FindRow(std::string_view from, std::string* row_key) {
  // A tree holds other families of its group, too. A row that has only those gives no entry, which
  // does no harm.
  const TableSchema& schema = table_.schema();
  const BTreeCursor* first = nullptr;
  for (size_t group = 0; group < table_.groups(); ++group) {
    const bool wanted =
        std::any_of(schema.families.begin(), schema.families.end(),
                    [&](const FamilySchema& f) { return f.group == group && WatchesFamily(f.id); });
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

// A row with very many columns is taken in parts, each of `columns_max`: position_ then stands
// inside the row. Returns the work that was done, in rows.
uint64_t Index::EvaluateNext(std::string_view row_key, uint64_t columns_max,
                             Evaluation* evaluation) {
  CELLAR_ASSERT(columns_max > 0);
  const uint64_t cells_before = cells_evaluated_;
  bool complete = true;
  if (by_column()) {
    ++evaluations_;
    evaluation->count = 0;
    evaluation->too_large_bytes = 0;
    evaluation->left_out = false;
    ChangedColumns columns = whole_row();
    std::string prefix(row_key);
    PutFamilyId(&prefix, columns.family_id);
    if (position_.bytes.starts_with(prefix)) {
      columns.begin = std::string_view(position_.bytes).substr(prefix.size());
    }
    complete = EvaluateQualifiers(row_key, columns, Part::kNext, columns_max, evaluation);
  } else {
    Evaluate(row_key, whole_row(), evaluation);
  }
  position_ = complete ? Successor(row_key) : KeyBound{column_, false};
  rows_built_ += complete ? 1 : 0;
  if (!by_column()) return 1;
  // Never more than the caller allowed, since Build takes it off the steps that are left.
  return std::clamp<uint64_t>(cells_evaluated_ - cells_before, 1, columns_max);
}

Status Index::TooLargeRow(std::string_view row_key, const Evaluation& evaluation) const {
  std::string row;
  const bool decoded = table_.schema().key.Decode(row_key, &row);
  CELLAR_ASSERT(decoded);
  std::string text = "row " + Quote(row) + ": ";
  if (by_column()) {
    text += "with a qualifier of family '" + IndexColumnText(table_.schema(), schema_.on[0]) + "'";
  } else {
    const IndexColumn& column = schema_.on[evaluation.too_large_column];
    text += "with the ON values, the largest in column " +
            Quote(IndexColumnText(table_.schema(), column));
  }
  return Status::Error(ErrorCode::kTooLarge,
                       text + ", it takes " + FormatUint64(evaluation.too_large_bytes) +
                           " bytes in an entry, the limit is " + FormatUint64(kIndexEntryBytesMax));
}

void Index::Add(std::string_view row_key, const Evaluation& evaluation) {
  if (evaluation.too_large_bytes > 0 && too_large_row_.ok()) {
    too_large_row_ = TooLargeRow(row_key, evaluation);
  }
  SetRowsLeftOut(rows_left_out_ + (evaluation.left_out ? 1 : 0));
  for (size_t i = 0; i < evaluation.count; ++i) {
    const Entry& entry = evaluation.entries[i];
    timed_entries_ += entry.timed ? 1 : 0;
    const BTreeWriteResult result = entries_->Put(entry.key, entry.value);
    CELLAR_ASSERT(!result.existed);
    if (schema_.unique && entry.now) unchecked_.push_back(entry.key);
  }
}

// UNIQUE is judged behind the adding: two rows with the same values may both be there while the
// index is being built, and one of them may be written before its turn comes.
void Index::CheckAdded(uint64_t* steps) {
  while (!unchecked_.empty() && *steps > 0) {
    --*steps;
    // The row may have been written since.
    const std::string& key = unchecked_.back();
    const std::optional<std::string_view> value = entries_->Get(key);
    if (value && IsThere(key, *value)) {
      const Conflict conflict = FindOther(key, steps, &check_from_);
      if (conflict == Conflict::kUnknown) return;
      if (conflict == Conflict::kFound && not_unique_rows_.ok()) {
        const Collision collision{key, check_from_.substr(order_.ValuesSize(check_from_))};
        std::string row;
        const bool decoded =
            table_.schema().key.Decode(std::string_view(key).substr(order_.ValuesSize(key)), &row);
        CELLAR_ASSERT(decoded);
        not_unique_rows_ = Status::Error(
            ErrorCode::kNotUnique,
            "row " + Quote(row) + " is not the only one: " + CollisionText(collision));
      }
    }
    check_from_.clear();
    unchecked_.pop_back();
  }
}

// Goes on with building for about `rows_max` rows. True when the index is built. Each row costs one
// step for itself and some for looking whether it is unique; what is left over is done by the next
// call.
bool Index::Build(uint64_t rows_max) {
  CELLAR_ASSERT(rows_max > 0);
  uint64_t steps =
      rows_max < kUnlimited / kUniqueStepsOfRow ? rows_max * kUniqueStepsOfRow : kUnlimited;
  std::string row_key;
  Evaluation row;
  while (!built_) {
    CheckAdded(&steps);
    // What was added last is judged before anything else is added, so unchecked_ stays short.
    if (!unchecked_.empty() || steps < kUniqueStepsOfRow) break;
    if (position_.at_end || !FindRow(position_.bytes, &row_key)) {
      built_ = true;
      break;
    }
    const uint64_t taken = EvaluateNext(row_key, steps / kUniqueStepsOfRow, &row);
    steps -= taken * kUniqueStepsOfRow;
    Add(row_key, row);
  }
  return built_;
}

void Index::FinishLoad() {
  CELLAR_ASSERT(!built_);
  built_ = true;
  BTreeCursor at(*entries_);
  at.SeekFirst();
  if (at.valid() && at.key().empty()) {
    rows_left_out_ = RowsOfMark(at.value());
    at.Next();
  }
  for (; at.valid(); at.Next()) timed_entries_ += HasSpans(at.value()) ? 1 : 0;
}

void Index::SetTree(std::unique_ptr<BTree> entries) {
  CELLAR_ASSERT(entries_->entries() == 0);
  CELLAR_ASSERT(!built_);
  entries_at_.reset();
  entries_ = std::move(entries);
  entries_at_ = std::make_unique<BTreeCursor>(*entries_);
}

void Index::FreezeFrom(const Index& live) { SetCopy(live, live.entries_->Freeze()); }

void Index::SetCopy(const Index& from, std::unique_ptr<BTree> entries) {
  CELLAR_ASSERT(from.built_);
  SetTree(std::move(entries));
  timed_entries_ = from.timed_entries_;
  rows_left_out_ = from.rows_left_out_;
  built_ = true;
}

// Evaluates every row anew and compares with what is held. O(table).
bool Index::AgreesWithTable() {
  CELLAR_ASSERT(built_);
  std::string row_key;
  Evaluation now;
  uint64_t entries = 0;
  uint64_t timed_entries = 0;
  uint64_t rows_left_out = 0;
  for (KeyBound from; !from.at_end && FindRow(from.bytes, &row_key); from = Successor(row_key)) {
    Evaluate(row_key, whole_row(), &now);
    entries += now.count;
    rows_left_out += now.left_out ? 1 : 0;
    for (size_t i = 0; i < now.count; ++i) {
      const std::optional<std::string_view> held = entries_->Get(now.entries[i].key);
      if (!held || *held != now.entries[i].value) return false;
      timed_entries += now.entries[i].timed ? 1 : 0;
    }
  }
  return entries == entry_count() && timed_entries == timed_entries_ &&
         rows_left_out == rows_left_out_;
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
  checkpoint.timed_entries = timed_entries_;
  checkpoint.rows_left_out = rows_left_out_;
  checkpoint.position = position_;
  checkpoint.unchecked = unchecked_;
  checkpoint.check_from = check_from_;
  checkpoint.built = built_;
  checkpoint.too_large_row = too_large_row_;
  checkpoint.not_unique_rows = not_unique_rows_;
  checkpoint.tree = entries_.get();
  return checkpoint;
}

void Index::RollBackTo(const Checkpoint& checkpoint) {
  CELLAR_ASSERT(Took(checkpoint));
  entries_->RollBackTo(checkpoint.entries);
  timed_entries_ = checkpoint.timed_entries;
  rows_left_out_ = checkpoint.rows_left_out;
  position_ = checkpoint.position;
  unchecked_ = checkpoint.unchecked;
  check_from_ = checkpoint.check_from;
  built_ = checkpoint.built;
  too_large_row_ = checkpoint.too_large_row;
  not_unique_rows_ = checkpoint.not_unique_rows;
  ForgetConflicts();
}

}  // namespace cellar
