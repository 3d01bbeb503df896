// See index_scan.h.
#include "engine/index_scan.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/hash.h"
#include "base/quote.h"
#include "engine/column_set.h"

namespace cellar {
namespace {

Status TooManyValues(size_t columns) {
  return Status::Error(ErrorCode::kErr,
                       "the index has only " + std::to_string(columns) + " ON columns");
}

Status EncodeValues(const IndexOrder& order, const std::vector<std::string_view>& values,
                    std::string* out) {
  for (size_t i = 0; i < values.size(); ++i) {
    RETURN_IF_ERROR(order.EncodeValue(i, values[i], out));
  }
  return Status::Ok();
}

}  // namespace

Result<const IndexSchema*> FindIndex(const ReadView& view, std::string_view name) {
  const IndexSchema* index = view.schema().FindIndex(name);
  if (index == nullptr) return Status::Error(ErrorCode::kNoIndex, "no index " + Quote(name));
  for (const IndexColumn& column : index->on) {
    if (view.schema().FindFamilyById(column.family_id) != nullptr) continue;
    return Status::Error(ErrorCode::kNoPerm, "No permissions to access a family of the index");
  }
  return index;
}

Status CheckIndexReady(const ReadView& view, const IndexSchema& index) {
  if (index.state == IndexState::kFailed) {
    return Status::Error(ErrorCode::kNotUnique,
                         "index '" + index.name + "' could not be built: rows have equal values");
  }
  if (index.state == IndexState::kBuilding || !view.IndexIsBuilt(index.id)) {
    return Status::Error(ErrorCode::kTryAgain, "index '" + index.name + "' is being built");
  }
  return Status::Ok();
}

Result<std::unique_ptr<Scan>> IndexScan::Create(std::unique_ptr<ReadView> view,
                                                const RowOptions& rows, const CellOptions& cells,
                                                const ScanPosition* from, uint64_t seed) {
  ReadView* borrowed = view.get();
  std::unique_ptr<IndexScan> scan(new IndexScan(borrowed, seed));
  scan->owned_view_ = std::move(view);
  RETURN_IF_ERROR(scan->Compile(rows, cells, from));
  return std::unique_ptr<Scan>(std::move(scan));
}

Result<std::unique_ptr<Scan>> IndexScan::Create(ReadView* view, const RowOptions& rows,
                                                const CellOptions& cells, const ScanPosition* from,
                                                uint64_t seed) {
  std::unique_ptr<IndexScan> scan(new IndexScan(view, seed));
  RETURN_IF_ERROR(scan->Compile(rows, cells, from));
  return std::unique_ptr<Scan>(std::move(scan));
}

Status IndexScan::Compile(const RowOptions& rows, const CellOptions& cells,
                          const ScanPosition* from) {
  CELLAR_ASSERT(rows.index.has_value());
  const TableSchema& schema = view_->schema();
  ASSIGN_OR_RETURN(const IndexSchema* const index, FindIndex(*view_, rows.index->name));
  index_id_ = index->id;
  order_ = IndexOrder(schema, *index);
  reverse_ = rows.reverse;
  sample_ = rows.sample;
  RETURN_IF_ERROR(CompileRange(*rows.index));
  for (const Predicate& predicate : rows.where) {
    ASSIGN_OR_RETURN(Condition condition, Condition::Compile(schema, predicate));
    where_.push_back(std::move(condition));
  }
  ASSIGN_OR_RETURN(plan_, CellPlan::Compile(schema, cells));
  for (Condition& condition : where_) RETURN_IF_ERROR(condition.CompileFilter(schema));
  RETURN_IF_ERROR(CheckIndexReady(*view_, *index));
  if (from != nullptr) StartFrom(*from);
  reader_ = std::make_unique<RowReader>(*view_, plan_, &budget_, &stats_, seed_);
  at_ = view_->MakeIndexCursor(index_id_);
  ended_ = range_.empty();
  covered_ = IsCovered(*index, cells);
  if (covered_) stats_.groups = 0;
  return Status::Ok();
}

bool IndexScan::IsCovered(const IndexSchema& index, const CellOptions& cells) const {
  const TableSchema& schema = view_->schema();
  const std::vector<IndexColumn> included = IncludedColumns(schema, index);
  if (included.empty() || !where_.empty() || plan_.filter != nullptr ||
      plan_.choice.versions_max != 1 || !cells.time.all()) {
    return false;
  }
  const auto holds = [&](uint32_t family_id, const KeyRange* range) {
    return std::any_of(included.begin(), included.end(), [&](const IndexColumn& column) {
      if (column.family_id != family_id) return false;
      return column.whole_family || (range != nullptr && *range == PrefixRange(column.qualifier));
    });
  };
  for (const ColumnSet::Family& family : plan_.choice.columns.families()) {
    const uint32_t id = schema.families[family.index].id;
    if (family.whole && !holds(id, nullptr)) return false;
    for (const KeyRange& range : family.ranges) {
      if (!holds(id, &range)) return false;
    }
  }
  return true;
}

bool IndexScan::BeginRow(const std::optional<ScanPosition>& resume) {
  row_covered_ = covered_ && reader_->BeginIncluded(row_key_, at_->value());
  if (!row_covered_) {
    std::string found;
    if (!reader_->stream().SeekRowForward(row_key_, &found)) return false;
    reader_->BeginRow(row_key_);
  }
  if (resume && resume->row_key == entry_key_) reader_->Resume(*resume);
  return true;
}

Status IndexScan::CompileRange(const IndexOptions& options) {
  if (std::max(options.equal.size(), options.from.size()) > order_.columns()) {
    return TooManyValues(order_.columns());
  }
  std::string prefix;
  RETURN_IF_ERROR(EncodeValues(order_, options.equal, &prefix));
  range_ = PrefixRange(prefix);
  if (options.between) {
    const auto& [min, max] = *options.between;
    KeyRange inner;
    if (options.equal.size() < order_.columns()) {
      ASSIGN_OR_RETURN(inner, order_.EncodeRange(options.equal.size(), min, max));
    } else {
      ASSIGN_OR_RETURN(inner, EncodeRange(view_->schema().key, min, max));
    }
    if (inner.begin.at_end) {
      range_.begin = range_.end;
    } else {
      range_.begin.bytes = prefix + inner.begin.bytes;
    }
    if (!inner.end.at_end) range_.end = KeyBound{prefix + inner.end.bytes, false};
  }
  if (options.from.empty()) return Status::Ok();
  std::string values;
  RETURN_IF_ERROR(EncodeValues(order_, options.from, &values));
  if (reverse_) {
    range_.end = std::min(range_.end, Successor(values));
  } else if (range_.begin < KeyBound{values, false}) {
    range_.begin = KeyBound{values, false};
  }
  return Status::Ok();
}

void IndexScan::StartFrom(const ScanPosition& from) {
  if (from.seed != 0) seed_ = from.seed;
  if (from.row_key.empty()) {  // stood at the end
    range_.begin = range_.end = KeyBound{};
    return;
  }
  if (reverse_) {
    KeyBound end = from.row_done ? KeyBound{from.row_key, false} : Successor(from.row_key);
    range_.end = std::min(range_.end, std::move(end));
  } else {
    KeyBound begin = from.row_done ? Successor(from.row_key) : KeyBound{from.row_key, false};
    if (range_.begin < begin) range_.begin = std::move(begin);
  }
  if (from.inside_row) resume_ = from;
}

bool IndexScan::FindEntry() {
  BTreeCursor& at = *at_;
  if (started_) {
    if (reverse_) {
      at.Prev();
    } else {
      at.Next();
    }
  } else if (!reverse_) {
    at.Seek(range_.begin.bytes);
  } else if (range_.end.at_end) {
    at.SeekLast();
  } else {
    at.SeekBefore(range_.end.bytes);
  }
  started_ = true;
  if (!at.valid() || !range_.contains(at.key())) {
    ended_ = true;
    return false;
  }
  entry_key_.assign(at.key());
  row_key_.assign(entry_key_, order_.ValuesSize(entry_key_));
  ++stats_.rows;
  stats_.bytes += entry_key_.size();
  if (budget_ != kUnlimited && budget_ > 0) --budget_;
  return true;
}

bool IndexScan::Wanted() const {
  if (sample_) {
    const double fraction = static_cast<double>(Hash64(row_key_, seed_) >> 11) * 0x1.0p-53;
    if (fraction >= *sample_) return false;
  }
  return plan_.rows.Contains(row_key_) && AllHold(where_, *view_, row_key_);
}

ScanStep IndexScan::Next() {
  if (std::exchange(cell_pending_, false)) return ScanStep::kCell;
  for (;;) {
    if (in_row_) {
      const StreamStep step = reader_->Next(&cell_);
      if (step == StreamStep::kPause) return ScanStep::kPause;
      if (step == StreamStep::kCell) {
        if (row_covered_) ++stats_.cells;
        if (row_reported_) return ScanStep::kCell;
        row_reported_ = true;
        cell_pending_ = true;
        row_text_.clear();
        CELLAR_ASSERT(view_->schema().key.Decode(row_key_, &row_text_));
        return ScanStep::kRow;
      }
      in_row_ = false;
    }
    if (ended_) return ScanStep::kEnd;
    if (budget_ == 0) return ScanStep::kPause;
    if (!FindEntry()) return ScanStep::kEnd;
    const std::optional<ScanPosition> resume = std::exchange(resume_, std::nullopt);
    if (!Wanted()) continue;
    if (!BeginRow(resume)) continue;
    in_row_ = true;
    row_reported_ = false;
  }
}

void IndexScan::SkipRow() {
  cell_pending_ = false;
  in_row_ = false;
}

ScanPosition IndexScan::PositionAfterRow() const {
  ScanPosition position;
  if (ended_ && !in_row_) return position;
  position.row_key = entry_key_;
  position.row_done = true;
  position.seed = seed_;
  return position;
}

ScanPosition IndexScan::PositionAfterCell() const {
  ScanPosition position;
  position.row_key = entry_key_;
  position.seed = seed_;
  reader_->SavePosition(&position);
  return position;
}

void IndexScan::Detach() {
  if (view_->detached()) return;
  at_.reset();
  view_->Detach();
  reader_->Reattach();
  at_ = view_->MakeIndexCursor(index_id_);
  if (started_ && !ended_) at_->Seek(entry_key_);
}

Result<std::optional<NearEntry>> FindNearEntry(const ReadView& view, std::string_view name,
                                               const std::vector<std::string_view>& values) {
  ASSIGN_OR_RETURN(const IndexSchema* const index, FindIndex(view, name));
  const IndexOrder order(view.schema(), *index);
  if (values.size() > order.columns()) return TooManyValues(order.columns());
  std::string prefix;
  RETURN_IF_ERROR(EncodeValues(order, values, &prefix));
  RETURN_IF_ERROR(CheckIndexReady(view, *index));
  const std::unique_ptr<BTreeCursor> at = view.MakeIndexCursor(index->id);
  NearEntry near;
  at->Seek(prefix);
  if (at->valid()) {
    near.direction = at->key().starts_with(prefix) ? 0 : 1;
  } else {
    at->SeekLast();
    if (!at->valid()) return std::optional<NearEntry>();
    near.direction = -1;
  }
  near.values = order.DecodeValues(at->key());
  const std::string_view row_key = at->key().substr(order.ValuesSize(at->key()));
  CELLAR_ASSERT(view.schema().key.Decode(row_key, &near.row));
  return std::optional<NearEntry>(std::move(near));
}

}  // namespace cellar
