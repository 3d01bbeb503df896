// See index_scan.h.
#include "engine/scans/index_scan.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/text/number.h"
#include "base/text/quote.h"
#include "engine/scans/index_coverage.h"
#include "engine/scans/scan_ranges.h"
#include "engine/scans/table_scan.h"
#include "engine/schema/column_set.h"

namespace cellar {
namespace {

Status TooManyValues(std::string_view index, size_t columns) {
  return Status::Error(ErrorCode::kErr, "index " + Quote(index) + " has only " +
                                            FormatUint64(columns) +
                                            (columns == 1 ? " ON column" : " ON columns"));
}

// `status` is of a value or bound that does not fit.
Status RefusedByIndex(std::string_view index, const Status& status) {
  return Status::Error(status.code(), "index " + Quote(index) + ": " + status.text());
}

}  // namespace

// Values of the first ON columns, one behind the other, as an entry's key begins.
Status EncodeIndexValues(std::string_view index, const IndexOrder& order,
                         const std::vector<std::string_view>& values, std::string* out) {
  if (values.size() > order.columns()) return TooManyValues(index, order.columns());
  for (size_t i = 0; i < values.size(); ++i) {
    const Status status = order.EncodeValue(i, values[i], out);
    if (!status.ok()) return RefusedByIndex(index, status);
  }
  return Status::Ok();
}

// The view's schema lacks the families that its reader may not see: an index over one of them is
// not told of either.
Result<const IndexSchema*> FindIndex(const ReadView& view, std::string_view name) {
  const IndexSchema* index = view.schema().FindIndex(name);
  if (index == nullptr) return Status::Error(ErrorCode::kNoIndex, "no index " + Quote(name));
  for (const IndexColumn& column : index->on) {
    if (view.schema().FindFamilyById(column.family_id) != nullptr) continue;
    return NoPermission();
  }
  return index;
}

Status CheckIndexReady(const ReadView& view, const IndexSchema& index) {
  if (index.state == IndexState::kFailed) {
    return Status::Error(index.failure.code(),
                         "index '" + index.name + "' could not be built: " + index.failure.text());
  }
  if (index.state == IndexState::kBuilding || !view.IndexIsBuilt(index.id)) {
    return Status::Error(ErrorCode::kTryAgain, "index '" + index.name + "' is being built");
  }
  return Status::Ok();
}

Result<std::unique_ptr<Scan>> OpenScan(ReadView* view, const RowOptions& rows,
                                       const CellOptions& cells, const ScanPosition* from,
                                       uint64_t seed) {
  IndexChoice choice;
  if (!view->schema().indexes.empty()) choice = ChooseIndex(*view, rows, cells, nullptr);
  if (choice.index == nullptr && !rows.index) {
    auto table_scan = std::make_unique<TableScan>();
    RETURN_IF_ERROR(table_scan->Open(view, rows, cells, from, seed));
    return std::unique_ptr<Scan>(std::move(table_scan));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<IndexScan> scan,
                   IndexScan::Create(view, choice, rows, cells, from, seed));
  return std::unique_ptr<Scan>(std::move(scan));
}

Result<std::unique_ptr<Scan>> OpenScan(std::unique_ptr<ReadView> view, const RowOptions& rows,
                                       const CellOptions& cells, const ScanPosition* from,
                                       uint64_t seed, std::unique_ptr<TableScan> spare) {
  IndexChoice choice;
  if (!view->schema().indexes.empty()) choice = ChooseIndex(*view, rows, cells, nullptr);
  if (choice.index == nullptr && !rows.index) {
    if (spare == nullptr) spare = std::make_unique<TableScan>();
    RETURN_IF_ERROR(spare->Open(std::move(view), rows, cells, from, seed));
    return std::unique_ptr<Scan>(std::move(spare));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<IndexScan> scan,
                   IndexScan::Create(view.get(), choice, rows, cells, from, seed));
  scan->Own(std::move(view));
  return std::unique_ptr<Scan>(std::move(scan));
}

// --- compiling

Result<std::unique_ptr<IndexScan>> IndexScan::Create(ReadView* view, const IndexChoice& choice,
                                                     const RowOptions& rows,
                                                     const CellOptions& cells,
                                                     const ScanPosition* from, uint64_t seed) {
  std::unique_ptr<IndexScan> scan(new IndexScan(view, seed));
  RETURN_IF_ERROR(scan->Compile(choice, rows, cells, from));
  return scan;
}

// A position is the key of an entry, and means nothing in an index made anew. Index and table have
// numbers that are never used again.
Result<const IndexSchema*> IndexScan::FindNamed(const RowOptions& rows,
                                                const ScanPosition* from) const {
  Result<const IndexSchema*> index = FindIndex(*view_, rows.index->name);
  if (from == nullptr) return index;
  if (!index.ok() && index.status().code() != ErrorCode::kNoIndex) return index;
  if (index.ok() && from->index_id == (*index)->id && from->index_table_id == view_->table_id()) {
    return index;
  }
  return Status::Error(ErrorCode::kStaleCursor, "index " + Quote(rows.index->name) +
                                                    " is not the one of this cursor: it has been "
                                                    "dropped, or made anew");
}

// Whatever can be refused is refused here: Next() has no errors. A condition goes to entry_where_
// if the entry answers it, to where_ if the row has to be read, and nowhere if the choice of the
// index has answered it. The place to go on from comes behind the ranges, which it cuts.
Status IndexScan::Compile(const IndexChoice& choice, const RowOptions& rows,
                          const CellOptions& cells, const ScanPosition* from) {
  const TableSchema& schema = view_->schema();
  const IndexSchema* index = choice.index;
  if (index == nullptr) {
    CELLAR_ASSERT(rows.index.has_value());
    ASSIGN_OR_RETURN(index, FindNamed(rows, from));
    named_ = true;
  }
  index_id_ = index->id;
  order_ = IndexOrder(schema, *index);
  values_ = choice.values;
  by_where_ = !named_ && !choice.of_rows;
  reverse_ = rows.reverse;
  sample_ = rows.sample;
  if (rows.index) {
    RETURN_IF_ERROR(CompileRange(*rows.index));
    if (!rows.rows.empty()) RETURN_IF_ERROR(NarrowToRows(rows));
    RETURN_IF_ERROR(CheckEach(rows));
  } else {
    RETURN_IF_ERROR(CompileRows(schema, nullptr, rows.rows, &ranges_));
    RETURN_IF_ERROR(::cellar::CheckEach(schema, rows));
  }
  each_.Begin(rows.each);
  const std::vector<IndexColumn> held = EntryColumns(schema, *index);
  for (size_t i = 0; i < rows.where.size(); ++i) {
    ASSIGN_OR_RETURN(Condition condition, Condition::Compile(schema, rows.where[i]));
    if (rows.where_elsewhere || (by_where_ && choice.answered[i])) continue;
    const bool answers = AnswersCondition(schema, *index, held, condition);
    (answers ? entry_where_ : where_).push_back(std::move(condition));
  }
  RETURN_IF_ERROR(plan_.Compile(schema, cells));
  for (Condition& condition : where_) RETURN_IF_ERROR(condition.CompileFilter(schema));
  // Behind what is wrong with the request itself: a repetition may succeed.
  RETURN_IF_ERROR(CheckIndexReady(*view_, *index));
  if (from != nullptr) StartFrom(*from);
  if (by_where_) MoveBehindValues(choice);
  std::erase_if(ranges_, [](const KeyRange& range) { return range.empty(); });
  reader_.Bind(*view_, plan_, &budget_, &stats_, seed_);
  at_ = view_->MakeIndexCursor(index_id_);
  range_at_ = reverse_ && !ranges_.empty() ? ranges_.size() - 1 : 0;
  ended_ = ranges_.empty();
  source_ = FindSource(*index, held, rows, cells);
  cells_of_key_ = index->include.empty();
  if (cells_of_key_) PlaceOnColumns(*index, held);
  wants_cells_ = source_ == Source::kEntry || source_ == Source::kKey ||
                 std::any_of(entry_where_.begin(), entry_where_.end(),
                             [](const Condition& condition) { return condition.column(); });
  CountGroups();
  stats_.index = index->name;
  return Status::Ok();
}

void IndexScan::StartFrom(const ScanPosition& from) {
  if (from.seed != 0) seed_ = from.seed;
  ClipRanges(from, reverse_, &ranges_);
  if (from.inside_row) resume_ = from;
  if (each_.active()) each_.Resume(from, GroupFrontOfPosition(from.row_key));
}

// The ranges so far are of row keys. If all ON values are fixed, entries stand in the order of row
// keys behind them, and the ranges can be moved there. Else entries come in the order of their
// values: all of them are read, and rows_within_ says which rows are wanted.
void IndexScan::MoveBehindValues(const IndexChoice& choice) {
  if (!choice.in_row_order) {
    reordered_ = true;
    KeyRangeSet rows;
    for (const KeyRange& range : ranges_) rows.Add(range);
    if (!rows.all()) rows_within_ = std::move(rows);
    ranges_.assign(1, choice.entries);
    return;
  }
  for (KeyRange& range : ranges_) {
    range = RangeBehind(values_, range);
    range = {std::max(range.begin, choice.entries.begin), std::min(range.end, choice.entries.end)};
  }
}

// Where the cells of a row come from, the cheapest way that gives all of them: nowhere, if no cells
// are wanted and an entry proves that the row is there; the entry's key; the cells included in the
// entry; the row itself.
IndexScan::Source IndexScan::FindSource(const IndexSchema& index,
                                        const std::vector<IndexColumn>& held,
                                        const RowOptions& rows, const CellOptions& cells) const {
  const ColumnSet& columns = plan_.choice.columns;
  if (plan_.filter != nullptr || !cells.time.all() || cells.expiries) return Source::kTable;
  if (!rows.cells_wanted && cells.columns_skip == 0 && TellsOfRow(*view_, index, columns)) {
    return Source::kNothing;
  }
  if (plan_.choice.versions_max != 1 || !HoldsAll(view_->schema(), held, columns)) {
    return Source::kTable;
  }
  if (!index.include.empty()) return Source::kEntry;
  return cells.timestamps ? Source::kTable : Source::kKey;
}

void IndexScan::PlaceOnColumns(const IndexSchema& index, const std::vector<IndexColumn>& held) {
  for (const IndexColumn& column : held) {
    const auto on = std::find_if(index.on.begin(), index.on.end(), [&](const IndexColumn& c) {
      return c.family_id == column.family_id && c.qualifier == column.qualifier;
    });
    on_places_.push_back(
        {static_cast<size_t>(on - index.on.begin()), column.family_id, column.qualifier});
  }
}

// Which groups are opened for every row, and how many for one whose entry does not tell enough.
void IndexScan::CountGroups() {
  const TableSchema& schema = view_->schema();
  groups_.assign(schema.groups.size(), false);
  for (const Condition& condition : where_) condition.MarkGroups(schema, &groups_);
  if (source_ == Source::kTable) MarkGroupsOf(plan_.choice.columns, schema, &groups_);
  stats_.groups = static_cast<uint64_t>(std::count(groups_.begin(), groups_.end(), true));
  std::vector<bool> all = groups_;
  for (const Condition& condition : entry_where_) condition.MarkGroups(schema, &all);
  if (source_ != Source::kNothing) MarkGroupsOf(plan_.choice.columns, schema, &all);
  groups_max_ = static_cast<uint64_t>(std::count(all.begin(), all.end(), true));
}

// --- rows

// False if the key does not tell the values exactly.
bool IndexScan::TakeKeyCells() {
  key_values_ = order_.DecodeValues(entry_key_);
  cells_.clear();
  for (const OnPlace& place : on_places_) {
    const IndexOrder::Value& value = key_values_[place.column];
    // Keys do not tell 0.0 from -0.0.
    if (IsFloatType(value.type) && value.stored.find_first_not_of('\0') == std::string::npos) {
      return false;
    }
    cells_.push_back({place.family_id, place.qualifier, 0, value.type, value.stored});
  }
  return true;
}

bool IndexScan::TakeCells() {
  if (cells_of_key_) return TakeKeyCells();
  if (!entry_.holds_cells()) return false;
  cells_.clear();
  for (IncludedCell cell; entry_.Next(&cell);) cells_.push_back(cell);
  return true;
}

void IndexScan::DecodeRowKey() {
  const bool decoded = view_->schema().key.Decode(row_key_, &row_text_);
  CELLAR_ASSERT(decoded);
}

// The row may be gone: an entry outlives it where retention drops cells by time.
bool IndexScan::BeginRowOfTable() {
  KeyBuffer found;
  if (!reader_.stream().SeekRowForward(row_key_, &found)) return false;
  reader_.BeginRow(row_key_);
  if (source_ != Source::kTable) stats_.groups = groups_max_;
  return true;
}

bool IndexScan::BeginRow() {
  row_from_entry_ = has_cells_ && source_ != Source::kTable;
  if (row_from_entry_) {
    reader_.BeginIncluded(row_key_, cells_);
    return true;
  }
  return BeginRowOfTable();
}

Status IndexScan::CheckEach(const RowOptions& rows) const {
  if (!rows.each || rows.each->components <= order_.columns()) return Status::Ok();
  return Status::Error(ErrorCode::kErr, "EACH " + FormatUint64(rows.each->components) +
                                            " is out of range: index " + Quote(rows.index->name) +
                                            " has " + FormatUint64(order_.columns()) +
                                            (order_.columns() == 1 ? " ON column" : " ON columns"));
}

// EQ fixes the first values, BETWEEN bounds the next one (the row key if all are fixed), and FROM
// says where reading begins: at the range's end in reverse.
Status IndexScan::CompileRange(const IndexOptions& options) {
  if (std::max(options.equal.size(), options.from.size()) > order_.columns()) {
    return TooManyValues(options.name, order_.columns());
  }
  std::string prefix;
  RETURN_IF_ERROR(EncodeIndexValues(options.name, order_, options.equal, &prefix));
  KeyRange& range = ranges_.emplace_back(PrefixRange(prefix));
  if (options.between) {
    const auto& [min, max] = *options.between;
    const Result<KeyRange> inner = options.equal.size() < order_.columns()
                                       ? order_.EncodeRange(options.equal.size(), min, max)
                                       : EncodeRange(view_->schema().key, min, max);
    if (!inner.ok()) return RefusedByIndex(options.name, inner.status());
    if (inner->begin.at_end) {
      range.begin = range.end;
    } else {
      range.begin.bytes = prefix + inner->begin.bytes;
    }
    if (!inner->end.at_end) range.end = KeyBound{prefix + inner->end.bytes, false};
  }
  if (options.from.empty()) return Status::Ok();
  std::string values;
  RETURN_IF_ERROR(EncodeIndexValues(options.name, order_, options.from, &values));
  if (reverse_) {
    range.end = std::min(range.end, Successor(values));
  } else if (range.begin < KeyBound{values, false}) {
    range.begin = KeyBound{values, false};
  }
  return Status::Ok();
}

// PREFIX and RANGE beside EQ, which fixes all ON columns: entries are in the order of row keys
// then.
Status IndexScan::NarrowToRows(const RowOptions& rows) {
  const IndexOptions& options = *rows.index;
  if (options.equal.size() < order_.columns()) {
    return Status::Error(
        ErrorCode::kErr,
        "INDEX takes PREFIX and RANGE only with EQ and all its ON columns: index " +
            Quote(options.name) + " has " + FormatUint64(order_.columns()));
  }
  std::string values;
  RETURN_IF_ERROR(EncodeIndexValues(options.name, order_, options.equal, &values));
  std::vector<KeyRange> wanted;
  RETURN_IF_ERROR(CompileRows(view_->schema(), nullptr, rows.rows, &wanted));
  CELLAR_ASSERT(ranges_.size() == 1);
  const KeyRange whole = std::move(ranges_.front());
  ranges_.clear();
  for (const KeyRange& range : wanted) {
    const KeyRange part = RangeBehind(values, range);
    ranges_.push_back({std::max(part.begin, whole.begin), std::min(part.end, whole.end)});
  }
  std::erase_if(ranges_, [](const KeyRange& range) { return range.empty(); });
  return Status::Ok();
}

// Is the cursor in a range, after going on to the next one as often as it must? It need not be
// where an entry is there at the view's moment.
bool IndexScan::EnterRange() {
  BTreeCursor& at = *at_;
  while (at.valid()) {
    while (!ranges_[range_at_].end.at_end && at.key() >= ranges_[range_at_].end.bytes) {
      if (++range_at_ == ranges_.size()) return false;
    }
    const KeyBound& begin = ranges_[range_at_].begin;
    if (at.key() >= begin.bytes) return true;
    at.Seek(begin.bytes);
  }
  return false;
}

bool IndexScan::EnterRangeReverse() {
  BTreeCursor& at = *at_;
  while (at.valid()) {
    while (at.key() < ranges_[range_at_].begin.bytes) {
      if (range_at_ == 0) return false;
      --range_at_;
    }
    const KeyBound& end = ranges_[range_at_].end;
    if (end.at_end || at.key() < end.bytes) return true;
    at.SeekBefore(end.bytes);
  }
  return false;
}

// What all entries of one EACH group begin with.
std::string_view IndexScan::GroupFrontOf(std::string_view entry_key) const {
  if (named_) return entry_key.substr(0, order_.ValuesSize(entry_key, each_.components()));
  const size_t values_bytes = order_.ValuesSize(entry_key);
  const std::string_view row_key = entry_key.substr(values_bytes);
  return entry_key.substr(
      0, values_bytes + view_->schema().key.ComponentsSize(row_key, each_.components()));
}

std::string IndexScan::GroupFrontOfPosition(const std::string& key) const {
  return std::string(GroupFrontOf(named_ ? key : values_ + key));
}

void IndexScan::CountInGroup() {
  if (each_.active() && !resumed_) each_.Count(GroupFrontOf(entry_key_));
}

// Moves the cursor to the next entry, whatever it is. A group of EACH that has given enough rows is
// left by one seek behind it; the first step goes to the end of the ranges where reading begins.
void IndexScan::Step() {
  BTreeCursor& at = *at_;
  if (each_.full() && !resume_) {
    const std::string front = each_.Leave();
    if (reverse_) return at.SeekBefore(std::min(KeyBound{front, false}, ranges_.back().end).bytes);
    const KeyBound behind = std::max(Successor(front), ranges_[0].begin);
    if (!behind.at_end) return at.Seek(behind.bytes);
    // Nothing can stand behind it: off the end, so that no range is entered.
    at.SeekLast();
    if (at.valid()) at.Next();
    return;
  }
  if (started_) {
    if (reverse_) {
      at.Prev();
    } else {
      at.Next();
    }
  } else if (!reverse_) {
    at.Seek(ranges_[0].begin.bytes);
  } else if (ranges_.back().end.at_end) {
    at.SeekLast();
  } else {
    at.SeekBefore(ranges_.back().end.bytes);
  }
}

bool IndexScan::FindEntry() {
  BTreeCursor& at = *at_;
  Step();
  started_ = true;
  // The number of rows left out is none of them.
  if (at.valid() && at.key().empty()) Step();
  if (!(reverse_ ? EnterRangeReverse() : EnterRange())) {
    ended_ = true;
    return false;
  }
  entry_key_.assign(at.key());
  row_key_.assign(entry_key_, order_.ValuesSize(entry_key_));
  ++stats_.rows;
  stats_.bytes += entry_key_.size();
  if (budget_ > 0) --budget_;
  return true;
}

// Answers a condition by the entry alone, or by the row if the entry holds no cells.
bool IndexScan::EntryHolds(const Condition& condition) {
  const std::optional<Condition::Column> column = condition.column();
  if (!column) return condition.HoldsOfRow(true);
  if (!has_cells_) {
    stats_.groups = groups_max_;
    return condition.Holds(*view_, row_key_);
  }
  const uint32_t family_id = view_->schema().families[column->family].id;
  const auto cell = std::find_if(cells_.begin(), cells_.end(), [&](const IncludedCell& held) {
    return held.family_id == family_id && held.qualifier == column->qualifier;
  });
  if (cell == cells_.end()) return condition.HoldsOf(nullptr);
  CellValue value;
  value.type = cell->type;
  value.stored = cell->stored;
  return condition.HoldsOf(&value);
}

// From cheap to dear: the lot, the key, the entry, and last what the row has to be read for.
bool IndexScan::Wanted() {
  return view_->Owns(row_key_) && RowIsDrawn(row_key_, seed_, sample_) &&
         (!plan_.rows || plan_.rows->Contains(row_key_)) &&
         (!rows_within_ || rows_within_->Contains(row_key_)) &&
         std::all_of(entry_where_.begin(), entry_where_.end(),
                     [this](const Condition& condition) { return EntryHolds(condition); }) &&
         AllHold(where_, *view_, row_key_);
}

// A row is given out when its first cell has been found, which waits in cell_pending_: one without
// a cell that passes is none. Where no cells are wanted (kNothing) the entry is enough.
ScanStep IndexScan::Next() {
  if (std::exchange(cell_pending_, false)) return ScanStep::kCell;
  for (;;) {
    if (in_row_) {
      const StreamStep step = reader_.Next(&cell_);
      if (step == StreamStep::kPause) return ScanStep::kPause;
      if (step == StreamStep::kCell) {
        if (row_from_entry_) ++stats_.cells;
        if (row_reported_) return ScanStep::kCell;
        row_reported_ = true;
        cell_pending_ = true;
        CountInGroup();
        row_text_.clear();
        DecodeRowKey();
        return ScanStep::kRow;
      }
      in_row_ = false;
    }
    if (ended_) return ScanStep::kEnd;
    if (budget_ == 0) return ScanStep::kPause;
    if (!FindEntry()) return ScanStep::kEnd;
    const std::optional<ScanPosition> resume = std::exchange(resume_, std::nullopt);
    resumed_ = resume && resume->row_key == PositionKey();
    if (resume && !resumed_ && each_.full()) continue;  // it has gone, and no other one is wanted
    // A copy: cells of the entry borrow from it, and Detach makes the cursor anew.
    entry_value_.assign(at_->value());
    if (!entry_.Open(entry_value_, view_->now_micros())) continue;
    has_cells_ = wants_cells_ && TakeCells();
    if (!Wanted()) continue;
    if (source_ == Source::kNothing) {
      CountInGroup();
      row_text_.clear();
      DecodeRowKey();
      return ScanStep::kRow;
    }
    if (!BeginRow()) continue;
    if (resumed_) reader_.Resume(*resume);
    in_row_ = true;
    row_reported_ = false;
  }
}

void IndexScan::SkipRow() {
  cell_pending_ = false;
  in_row_ = false;
}

ScanPosition IndexScan::PositionAtEntry() const {
  ScanPosition position;
  position.row_key = PositionKey();
  position.seed = seed_;
  position.group_rows = each_.rows();
  if (!named_) return position;
  position.index_table_id = view_->table_id();
  position.index_id = index_id_;
  return position;
}

ScanPosition IndexScan::PositionAtRow() const {
  ScanPosition position = PositionAtEntry();
  position.group_rows = each_.rows_before();
  return position;
}

ScanPosition IndexScan::PositionAfterRow() const {
  if (ended_ && !in_row_) return {};
  ScanPosition position = PositionAtEntry();
  position.row_done = true;
  return position;
}

ScanPosition IndexScan::PositionAfterCell() const {
  ScanPosition position = PositionAtEntry();
  reader_.SavePosition(&position);
  return position;
}

ScanPosition IndexScan::PositionInGroup() const {
  ScanPosition position = PositionAtEntry();
  position.row_key = each_.last().substr(named_ || each_.last().empty() ? 0 : values_.size());
  position.group_rows = each_.last_rows();
  return position;
}

ScanShape IndexScan::shape() const {
  static constexpr std::string_view kSources[]{"rows", "entries", "keys", "nothing"};
  return {.index_order = &order_,
          .cells_from = kSources[static_cast<size_t>(source_)],
          .ranges = &ranges_,
          .plan = &plan_,
          .groups = groups_,
          .conditions_of_entries = entry_where_.size(),
          .conditions_checked = entry_where_.size() + where_.size(),
          .by_where = by_where_,
          .reordered = reordered_};
}

// From the live tree to a snapshot of it: cursors are made anew, on the same entry.
void IndexScan::Detach() {
  if (view_->detached()) return;
  at_.reset();
  view_->Detach();
  reader_.Reattach(cell_pending_ ? &cell_ : nullptr);
  at_ = view_->MakeIndexCursor(index_id_);
  if (started_ && !ended_) at_->Seek(entry_key_);
}

void IndexScan::AddNotes(std::vector<std::string>* notes) const {
  for (const Condition& condition : entry_where_) condition.AddNote(view_->schema(), notes);
  for (const Condition& condition : where_) condition.AddNote(view_->schema(), notes);
  if (reader_.filter_text_met() > 0) notes->push_back(FilterTextNote(reader_.filter_text_met()));
}

}  // namespace cellar
