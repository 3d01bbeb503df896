// From the raw cells of a row to those of a reply.
#include "engine/rows/row_reader.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/assert.h"
#include "base/text/quote.h"
#include "engine/filter/filter_bounds.h"
#include "engine/keys/timestamp.h"

namespace cellar {
namespace {

// So many bytes of a value cost a filter (a regular expression above all) about what a cell does.
constexpr uint64_t kFilterBytesOfCell{1024};

// What the filter cannot let through need not be read.
void NarrowByFilter(const TableSchema& schema, CellPlan* plan, bool versions_given) {
  std::vector<FilterFamily> families;
  for (const FamilySchema& family : schema.families)
    families.push_back({family.name, &family.order});
  FilterBounds bounds = AnalyzeFilter(*plan->filter, schema.key, families);
  plan->rows = std::move(bounds.rows);
  plan->choice.columns.IntersectWith(bounds.qualifiers);
  if (versions_given) return;  // VERSIONS counts before the filter does
  TimeRange& time = plan->choice.time;
  time.min_micros = std::max(time.min_micros, bounds.timestamp_min);
  time.max_micros = std::min(time.max_micros, bounds.timestamp_max);
  plan->choice.versions_max = bounds.latest_max;
}

}  // namespace

// Options of a read as the loops below want them. With a filter the stream must give all versions
// and run forwards, since the filter counts versions and columns itself; COLREVERSE then turns
// round what the filter has let through.
Status CellPlan::Compile(const TableSchema& schema, const CellOptions& options) {
  RETURN_IF_ERROR(choice.columns.Recompile(schema, options.columns));
  if (options.columns_within != nullptr) [[unlikely]] {
    ASSIGN_OR_RETURN(const ColumnSet within, ColumnSet::Compile(schema, *options.columns_within));
    choice.columns.IntersectWith(within.RangesByFamily(schema.families.size()));
  }
  choice.time = options.time;
  choice.values = options.values || options.filter;
  choice.versions_max = options.versions_max.value_or(options.filter ? kUnlimited : 1);
  choice.direction = options.columns_reverse && !options.filter ? ColumnDirection::kReverse
                                                                : ColumnDirection::kForward;
  columns_skip = options.columns_skip;
  columns_max = options.columns_max;
  super_columns_max = options.super_columns_max;
  reverse_survivors = options.columns_reverse && options.filter;
  filter.reset();
  rows.reset();
  if (options.filter) {
    ASSIGN_OR_RETURN(filter, RowFilter::Parse(schema, *options.filter));
    NarrowByFilter(schema, this, options.versions_max.has_value());
  }
  return Status::Ok();
}

Result<std::unique_ptr<Filter>> RowFilter::Parse(const TableSchema& schema, std::string_view text) {
  ASSIGN_OR_RETURN(std::unique_ptr<Filter> filter, Filter::Parse(text));
  for (const std::string_view name : filter->NamedFamilies()) {
    RETURN_IF_ERROR(RequireFamily(schema, name).status());
  }
  return filter;
}

// The schema may change or go while the read goes on as a task, so families are copied.
RowFilter::RowFilter(const TableSchema& schema, const Filter& filter, uint64_t seed)
    : key_order_(schema.key) {
  copies_.reserve(schema.families.size());  // the run borrows from them
  for (const FamilySchema& family : schema.families) {
    copies_.push_back({family.name, family.order});
    families_.push_back({copies_.back().name, &copies_.back().order});
  }
  run_ = std::make_unique<FilterRun>(filter, key_order_, families_, seed);
}

RowReader::RowReader() = default;
RowReader::~RowReader() = default;

void RowReader::Bind(const ReadView& view, const CellPlan& plan, uint64_t* budget, ScanStats* stats,
                     uint64_t seed) {
  view_ = &view;
  plan_ = &plan;
  stream_.Bind(view, plan.choice, budget, stats);
  budget_ = budget;
  filter_ = plan.filter ? std::make_unique<RowFilter>(view.schema(), *plan.filter, seed) : nullptr;
  stripped_ = false;
  labels_ = nullptr;
  unlimited_ = plan.columns_skip == 0 && plan.columns_max == kUnlimited &&
               plan.super_columns_max == kUnlimited;
}

void RowReader::Unbind() {
  stream_.Unbind();
  filter_.reset();
  DropCollected();
  labels_ = nullptr;
  view_ = nullptr;
  plan_ = nullptr;
}

// Chooses the cells that the plan asks for; they still borrow the caller's bytes. An entry's cells
// come by families, so the last family found is tried first.
void RowReader::BeginIncluded(std::string_view row_key, std::span<const IncludedCell> cells) {
  CELLAR_ASSERT(filter_ == nullptr);
  BeginRow(row_key);
  from_index_ = true;
  is_raw_ = false;
  is_whole_ = false;
  included_.clear();
  included_at_ = 0;
  const TableSchema& schema = view_->schema();
  const std::vector<ColumnSet::Family>& families = plan_->choice.columns.families();
  auto family = families.begin();
  for (const IncludedCell& cell : cells) {
    const auto is_of = [&](const ColumnSet::Family& f) {
      return schema.families[f.index].id == cell.family_id;
    };
    if (family == families.end() || !is_of(*family)) {
      family = std::find_if(families.begin(), families.end(), is_of);
      if (family == families.end()) continue;
    }
    const bool wanted = family->whole || std::any_of(family->ranges.begin(), family->ranges.end(),
                                                     [&](const KeyRange& range) {
                                                       return range.contains(cell.qualifier);
                                                     });
    if (!wanted) continue;
    RawCell& raw = included_.emplace_back();
    raw.family = family->index;
    raw.qualifier = cell.qualifier;
    raw.column_begins = true;
    raw.timestamp_micros = cell.timestamp_micros;
    raw.value.type = cell.type;
    raw.value.stored = cell.stored;
  }
  if (plan_->choice.direction == ColumnDirection::kReverse) {
    std::reverse(included_.begin(), included_.end());
  }
}

// To the first cell behind the column that `cell_key` is of.
void RowReader::SkipIncluded(std::string_view cell_key) {
  const TableSchema& schema = view_->schema();
  uint32_t family_id = 0;
  const size_t id_bytes = DecodeFamilyId(cell_key, &family_id);
  const FamilySchema* family = schema.FindFamilyById(family_id);
  if (id_bytes == 0 || family == nullptr) return;
  const std::string_view rest = cell_key.substr(id_bytes);
  const std::string_view qualifier = rest.substr(0, family->order.EncodedSize(rest));
  const auto at_family = static_cast<size_t>(family - schema.families.data());
  const bool reverse = plan_->choice.direction == ColumnDirection::kReverse;
  while (included_at_ < included_.size()) {
    const RawCell& cell = included_[included_at_];
    const auto place = std::tie(cell.family, cell.qualifier);
    const auto last = std::tie(at_family, qualifier);
    if (reverse ? place < last : last < place) return;
    ++included_at_;
  }
}

// Resets all that belongs to one row. is_whole_ marks the plain case (no filter, no limit): Next()
// then gives the stream's cells as they are.
void RowReader::BeginRow(std::string_view row_key) {
  from_index_ = false;
  is_raw_ = filter_ == nullptr;
  is_whole_ = is_raw_ && unlimited_;
  stream_.BeginRow(row_key);
  survivors_ = 0;
  survivors_to_drop_ = 0;
  if (filter_) {
    row_key_.assign(row_key);
    filter_->run().BeginRow(row_key_);
    stage_ = filter_->run().NeedsDecision() ? Stage::kDeciding : Stage::kFeeding;
    outputs_taken_ = 0;
    outputs_ = 0;
    fed_next_ = FilterNext::kMore;
    DropCollected();
    reversed_.clear();
    collected_all_ = false;
    reversed_at_ = 0;
  }
  columns_counted_ = 0;
  super_columns_counted_ = 0;
  column_kept_ = false;
  super_column_.clear();
  column_given_ = false;
}

// Goes on inside a row, behind the cell that the position names. Counts of columns and super
// columns come from the position. A filter must see the row from its beginning, so its survivors
// are counted and those that were given out are dropped.
void RowReader::Resume(const ScanPosition& position) {
  CELLAR_ASSERT(position.inside_row);
  is_whole_ = false;
  columns_counted_ = position.columns_before;
  super_columns_counted_ = position.super_columns_before;
  // The column of the last cell has been counted.
  uint32_t family_id = 0;
  const size_t id_bytes = DecodeFamilyId(position.cell_key, &family_id);
  const FamilySchema* family = view_->schema().FindFamilyById(family_id);
  if (id_bytes > 0 && family != nullptr) {
    const std::string_view rest = std::string_view(position.cell_key).substr(id_bytes);
    column_family_ = static_cast<size_t>(family - view_->schema().families.data());
    column_ = rest.substr(0, family->order.EncodedSize(rest));
    column_kept_ = true;
    super_column_ = position.cell_key.substr(0, id_bytes + family->order.FirstComponentSize(rest));
  }
  if (filter_) {
    survivors_to_drop_ = position.cells_before;
  } else if (from_index_) {
    SkipIncluded(position.cell_key);
  } else {
    stream_.ResumeBehind(position.cell_key);
  }
}

void RowReader::SavePosition(ScanPosition* position) const {
  position->inside_row = true;
  position->cell_key.clear();
  PutFamilyId(&position->cell_key, view_->schema().families[raw_.family].id);
  position->cell_key.append(raw_.qualifier);
  PutTimestamp(&position->cell_key, raw_.timestamp_micros);
  position->cells_before = survivors_;
  position->columns_before = columns_counted_;
  position->super_columns_before = super_columns_counted_;
}

// Of a cell that was fed more may come out (an interleave, a sink), and its bytes are the cursors'.
void RowReader::Reattach(ScanCell* pending) {
  if (pending != nullptr) {
    given_qualifier_.assign(raw_.qualifier.data(), raw_.qualifier.size());
    raw_.qualifier = given_qualifier_;
    if (!shown_decoded_) pending->qualifier_text = raw_.qualifier.substr(0, shown_bytes_);
    pending->family = view_->schema().families[raw_.family].name;  // the view's own by now
  }
  if (outputs_taken_ < outputs_) {
    fed_qualifier_.assign(fed_.qualifier.data(), fed_.qualifier.size());
    fed_stored_.assign(fed_.value.stored.data(), fed_.value.stored.size());
    fed_.qualifier = fed_qualifier_;
    fed_.value.stored = fed_stored_;
  }
  stream_.Reattach();
}

// The budget is in cells; a filter may spend much longer on a large value than on a cell.
void RowReader::ChargeValue(std::string_view stored) {
  if (*budget_ == kUnlimited) return;
  *budget_ -= std::min<uint64_t>(*budget_, stored.size() / kFilterBytesOfCell);
}

// Readings of the row that only decide the conditions (`if`) of the filter. Behind the last one the
// row is begun once more, to give cells.
StreamStep RowReader::DecideRow() {
  while (stage_ == Stage::kDeciding) {
    RawCell raw;
    const StreamStep step = stream_.Next(&raw);
    if (step == StreamStep::kPause) return step;
    FilterNext next = FilterNext::kRowDone;
    if (step == StreamStep::kCell) {
      ChargeValue(raw.value.stored);
      next = filter_->run().Decide({static_cast<uint32_t>(raw.family), raw.qualifier,
                                    raw.timestamp_micros, raw.value.type, raw.value.stored});
    }
    if (next == FilterNext::kColumnDone) stream_.SkipColumn();
    if (next != FilterNext::kRowDone) continue;
    filter_->run().EndDecision();
    if (!filter_->run().NeedsDecision()) stage_ = Stage::kFeeding;
    stream_.RestartRow();
  }
  return StreamStep::kCell;
}

// One cell that is fed may come out not at all, once, or once for each branch of an interleave, so
// what came out waits in outputs().
StreamStep RowReader::NextFiltered() {
  if (const StreamStep step = DecideRow(); step != StreamStep::kCell) return step;
  for (;;) {
    if (outputs_taken_ < outputs_) {
      const FilterOutput& output = filter_->run().outputs()[outputs_taken_++];
      ++survivors_;
      if (survivors_ <= survivors_to_drop_) continue;
      raw_ = fed_;
      stripped_ = output.stripped;
      labels_ = &output.labels;
      return StreamStep::kCell;
    }
    if (fed_next_ == FilterNext::kRowDone) return StreamStep::kRowEnd;
    if (fed_next_ == FilterNext::kColumnDone) stream_.SkipColumn();
    fed_next_ = FilterNext::kMore;
    outputs_ = 0;
    outputs_taken_ = 0;
    const StreamStep step = stream_.Next(&fed_);
    if (step != StreamStep::kCell) return step;
    ChargeValue(fed_.value.stored);
    fed_next_ = filter_->run().Feed({static_cast<uint32_t>(fed_.family), fed_.qualifier,
                                     fed_.timestamp_micros, fed_.value.type, fed_.value.stored});
    outputs_ = filter_->run().outputs().size();
  }
}

void RowReader::DropCollected() {
  if (!collected_.empty()) collected_ = {};
  columns_collected_ = 0;
  collected_bytes_ = 0;
}

// The survivor at hand. Columns ahead of the last ones that SKIP and PERROW let through are never
// given out, so they go.
void RowReader::Collect() {
  const auto is_of = [](const Survivor& a, const Survivor& b) {
    return a.raw.family == b.raw.family && a.qualifier == b.qualifier;
  };
  const auto bytes_of = [](const Survivor& survivor) {
    return sizeof(survivor) + survivor.qualifier.size() + survivor.stored.size();
  };
  collected_.push_back(
      {raw_, std::string(raw_.qualifier), std::string(raw_.value.stored), stripped_, *labels_});
  collected_bytes_ += bytes_of(collected_.back());
  const size_t size = collected_.size();
  if (size == 1 || !is_of(collected_[size - 2], collected_[size - 1])) ++columns_collected_;
  const uint64_t given = plan_->columns_max;
  if (given == kUnlimited || columns_collected_ <= plan_->columns_skip ||
      columns_collected_ - plan_->columns_skip <= given)
    return;
  --columns_collected_;
  for (bool more = true; more;) {
    more = collected_.size() > 1 && is_of(collected_[0], collected_[1]);
    collected_bytes_ -= bytes_of(collected_.front());
    collected_.pop_front();
  }
}

// Fills in reversed_: the places of collected_, columns from the last one to the first.
void RowReader::ReverseColumns() {
  size_t end = collected_.size();
  while (end > 0) {
    size_t begin = end - 1;
    while (begin > 0 && collected_[begin - 1].raw.family == collected_[begin].raw.family &&
           collected_[begin - 1].qualifier == collected_[begin].qualifier) {
      --begin;
    }
    for (size_t i = begin; i < end; ++i) reversed_.push_back(i);
    end = begin;
  }
}

// COLREVERSE behind a filter: the filter reads forwards, so its survivors are collected and their
// columns turned round; the versions of a column stay newest first.
StreamStep RowReader::NextReversed() {
  while (!collected_all_) {
    const StreamStep step = NextFiltered();
    if (step == StreamStep::kPause) return step;
    if (step == StreamStep::kRowEnd) {
      collected_all_ = true;
      ReverseColumns();
      survivors_ = 0;
      break;
    }
    Collect();
  }
  while (reversed_at_ < reversed_.size()) {
    const Survivor& survivor = collected_[reversed_[reversed_at_++]];
    ++survivors_;
    if (survivors_ <= survivors_to_drop_) continue;
    raw_ = survivor.raw;
    raw_.qualifier = survivor.qualifier;
    raw_.value.stored = survivor.stored;
    stripped_ = survivor.stripped;
    labels_ = &survivor.labels;
    return StreamStep::kCell;
  }
  return StreamStep::kRowEnd;
}

StreamStep RowReader::NextElsewhere() {
  if (from_index_) {
    if (included_at_ == included_.size()) return StreamStep::kRowEnd;
    raw_ = included_[included_at_++];
    return StreamStep::kCell;
  }
  if (!plan_->reverse_survivors) return NextFiltered();
  // While survivors are collected none is dropped; that comes when they are given out.
  if (!collected_all_ && survivors_to_drop_ > 0) {
    const uint64_t drop = std::exchange(survivors_to_drop_, 0);
    const StreamStep step = NextReversed();
    survivors_to_drop_ = drop;
    if (step != StreamStep::kCell) return step;
    reversed_at_ = 0;
    survivors_ = 0;
  }
  return NextReversed();
}

bool RowReader::BeginsColumn() const {
  if (!column_kept_) return raw_.column_begins || filter_ != nullptr;
  return raw_.family != column_family_ || raw_.qualifier != column_;
}

// SKIP, GROUPS and PERROW count columns, in this order; versions of a column that is given all
// pass.
RowReader::Verdict RowReader::CountIn() {
  const bool begins = BeginsColumn();
  if (begins) {
    column_kept_ = filter_ != nullptr;
    if (column_kept_) {
      column_family_ = raw_.family;
      column_.assign(raw_.qualifier);
    }
    BeginColumn();
  }
  if (columns_counted_ <= plan_->columns_skip) return Verdict::kSkipColumn;
  if (begins && plan_->super_columns_max != kUnlimited && !CountSuperColumn()) {
    return Verdict::kRowDone;
  }
  if (columns_counted_ - plan_->columns_skip > plan_->columns_max) return Verdict::kRowDone;
  return Verdict::kGive;
}

void RowReader::ShowDecoded(const Order& order) {
  const std::string_view text = order.TextOf(raw_.qualifier, &qualifier_text_);
  shown_decoded_ = text.data() == qualifier_text_.data();
  shown_bytes_ = text.size();
}

bool RowReader::CountSuperColumn() {
  const FamilySchema& family = view_->schema().families[raw_.family];
  std::string super_column;
  PutFamilyId(&super_column, family.id);
  super_column.append(raw_.qualifier.substr(0, family.order.FirstComponentSize(raw_.qualifier)));
  if (super_column == super_column_) return true;
  super_column_ = std::move(super_column);
  return ++super_columns_counted_ <= plan_->super_columns_max;
}

}  // namespace cellar
