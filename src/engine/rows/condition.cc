// Asking a row whether a predicate holds.
#include "engine/rows/condition.h"

#include <limits>
#include <utility>

#include "base/assert.h"
#include "base/text/glob.h"
#include "base/text/number.h"
#include "base/text/quote.h"
#include "engine/keys/timestamp.h"
#include "engine/rows/row_reader.h"
#include "engine/schema/column_set.h"

namespace cellar {

Condition::Condition() = default;
Condition::Condition(Condition&&) noexcept = default;
Condition& Condition::operator=(Condition&&) noexcept = default;
Condition::~Condition() = default;

Result<Condition> Condition::Compile(const TableSchema& schema, const Predicate& predicate) {
  Condition condition;
  condition.kind_ = predicate.kind;
  condition.op_ = predicate.op;
  condition.literal_ = ComparedLiteral(predicate.literal);
  condition.has_number_ = predicate.kind == Predicate::Kind::kCompare &&
                          ClassifyNumber(predicate.literal) != TextNumber::kNone;
  switch (predicate.kind) {
    case Predicate::Kind::kRowExists:
    case Predicate::Kind::kRowMissing:
    case Predicate::Kind::kFilter:
      return condition;
    default:
      break;
  }
  ASSIGN_OR_RETURN(const FamilySchema* family, RequireFamily(schema, predicate.family));
  condition.family_ = static_cast<size_t>(family - schema.families.data());
  RETURN_IF_ERROR(EncodeQualifier(*family, predicate.qualifier, &condition.qualifier_));
  return condition;
}

Status Condition::CompileFilter(const TableSchema& schema) {
  if (kind_ != Predicate::Kind::kFilter) return Status::Ok();
  CellOptions options;
  options.filter = literal_.text();
  CellPlan plan;
  RETURN_IF_ERROR(plan.Compile(schema, options));
  filter_ = std::make_unique<CellPlan>(std::move(plan));
  return Status::Ok();
}

std::optional<Condition::Column> Condition::column() const {
  if (asks_for_row() || kind_ == Predicate::Kind::kFilter) return std::nullopt;
  return Column{family_, qualifier_};
}

bool Condition::HoldsOf(const CellValue* newest) const {
  switch (kind_) {
    case Predicate::Kind::kColumnExists:
      return newest != nullptr;
    case Predicate::Kind::kColumnMissing:
      return newest == nullptr;
    case Predicate::Kind::kCompare:
      if (newest == nullptr) return op_ == CompareOp::kNe;
      if (has_number_ && IsTextType(newest->type)) [[unlikely]]
        ++text_met_;
      return literal_.Holds(op_, newest->type, newest->stored);
    default:
      CELLAR_ASSERT(kind_ == Predicate::Kind::kMatch);
      return newest != nullptr &&
             GlobMatch(literal_.text(), ValueText(newest->type, newest->stored));
  }
}

bool Condition::HoldsOfRow(bool is_live) const {
  CELLAR_ASSERT(asks_for_row());
  return is_live == (kind_ == Predicate::Kind::kRowExists);
}

bool Condition::Holds(const ReadView& view, std::string_view row_key) const {
  if (asks_for_row()) return HoldsOfRow(view.RowIsLive(row_key));
  if (kind_ == Predicate::Kind::kFilter) {
    if (filter_->rows && !filter_->rows->Contains(row_key)) return false;
    uint64_t budget = kUnlimited;
    ScanStats stats;
    RowReader reader;
    reader.Bind(view, *filter_, &budget, &stats, 0);
    KeyBuffer first;
    if (!reader.stream().SeekRowForward(row_key, &first) || first.view() != row_key) return false;
    reader.BeginRow(row_key);
    ScanCell cell;
    const bool passes = reader.Next(&cell) == StreamStep::kCell;
    text_met_ += reader.filter_text_met();
    return passes;
  }
  const FamilySchema& family = view.schema().families[family_];
  const std::optional<CellRead> cell = view.ReadCell(row_key, family, qualifier_, kTimestampMax);
  return HoldsOf(cell ? &cell->value : nullptr);
}

void Condition::AddNote(const TableSchema& schema, std::vector<std::string>* notes) const {
  if (text_met_ == 0) return;
  if (kind_ == Predicate::Kind::kFilter) {
    notes->push_back(FilterTextNote(text_met_));
    return;
  }
  // In the order of CompareOp.
  constexpr std::string_view kOps[]{"EQ", "NE", "LT", "LE", "GT", "GE"};
  const FamilySchema& family = schema.families[family_];
  std::string column = family.name + ":";
  const bool decoded = family.order.Decode(qualifier_, &column);
  CELLAR_ASSERT(decoded);
  notes->push_back(Quote(column) + " holds text in " + FormatUint64(text_met_) +
                   (text_met_ == 1 ? " cell: " : " cells: ") +
                   std::string(kOps[static_cast<size_t>(op_)]) + " " +
                   literal_.text().substr(0, kQuotedBytesMax) + " compared text");
}

std::string FilterTextNote(uint64_t cells) {
  return "FILTER met text in " + FormatUint64(cells) + (cells == 1 ? " cell" : " cells") +
         ", which its comparisons with numbers do not let pass";
}

void Condition::MarkGroups(const TableSchema& schema, std::vector<bool>* groups) const {
  if (kind_ == Predicate::Kind::kFilter)
    return MarkGroupsOf(filter_->choice.columns, schema, groups);
  if (!asks_for_row()) {
    (*groups)[schema.families[family_].group] = true;
    return;
  }
  for (const FamilySchema& family : schema.families) (*groups)[family.group] = true;
}

bool AllHold(std::span<const Condition> conditions, const ReadView& view,
             std::string_view row_key) {
  for (const Condition& condition : conditions) {
    if (!condition.Holds(view, row_key)) return false;
  }
  return true;
}

}  // namespace cellar
