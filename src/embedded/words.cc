// See words.h.
#include "embedded/words.h"

#include <utility>

#include "base/text/quote.h"
#include "engine/keys/value.h"
#include "engine/schema/retention.h"
#include "store/requests.h"

namespace cellar::embedded {
namespace {

Status CheckBound(std::string_view bound) {
  const bool is_end = bound == "-" || bound == "+";
  if (is_end || bound.starts_with('[') || bound.starts_with('(')) return Status::Ok();
  return Wrong("min or max is not a bound ([key, (key, - or +): " + Quote(bound));
}

CompareOp ToCompareOp(Condition::Test test) {
  switch (test) {
    case Condition::Test::kNotEqual:
      return CompareOp::kNe;
    case Condition::Test::kLess:
      return CompareOp::kLt;
    case Condition::Test::kLessOrEqual:
      return CompareOp::kLe;
    case Condition::Test::kGreater:
      return CompareOp::kGt;
    case Condition::Test::kGreaterOrEqual:
      return CompareOp::kGe;
    default:
      return CompareOp::kEq;
  }
}

}  // namespace

Status Wrong(std::string text) { return Status::Error(ErrorCode::kErr, std::move(text)); }

Status SplitColumn(std::string_view column, std::string_view* family, std::string_view* qualifier) {
  const size_t colon = column.find(':');
  if (colon == std::string_view::npos) {
    return Wrong(Quote(column) + " is not a column (family:qualifier)");
  }
  *family = column.substr(0, colon);
  *qualifier = column.substr(colon + 1);
  return Status::Ok();
}

ColumnSelector ToSelector(std::string_view column) {
  const size_t colon = column.find(':');
  if (colon == std::string_view::npos) return {ColumnSelector::Kind::kFamily, column, {}, {}};
  return {ColumnSelector::Kind::kColumn, column.substr(0, colon), column.substr(colon + 1), {}};
}

Result<NewFamily> ToNewFamily(const Family& family) {
  NewFamily result{family.name, {}};
  FamilyOptions& options = result.options;
  if (!family.type.empty()) {
    ASSIGN_OR_RETURN(const ValueType type, ParseValueType(family.type));
    options.type.emplace(type);
  }
  if (!family.order.empty()) {
    ASSIGN_OR_RETURN(options.order, Order::Parse(family.order));
    if (options.order->is_recno()) {
      return Wrong("invalid order 'recno': record numbers are for row keys");
    }
  }
  if (!family.gc.empty()) {
    if (family.versions != 0 || family.ttl_ms != 0) {
      return Wrong("family " + Quote(family.name) + ": gc excludes versions and ttl_ms");
    }
    ASSIGN_OR_RETURN(options.gc, RetentionPolicy::Parse(family.gc));
  }
  if (family.ttl_ms < 0) return Wrong("family " + Quote(family.name) + ": ttl_ms is negative");
  if (family.versions != 0) options.versions_max = family.versions;
  if (family.ttl_ms != 0) options.ttl_ms = static_cast<uint64_t>(family.ttl_ms);
  if (!family.locality_group.empty()) options.group = family.locality_group;
  if (!family.compress.empty()) {
    ASSIGN_OR_RETURN(options.compression, ParseCompression(family.compress));
  }
  for (const Family::Column& column : family.columns) {
    ASSIGN_OR_RETURN(const ValueType type, ParseValueType(column.type));
    options.columns.push_back({column.qualifier, type});
  }
  return result;
}

Result<::cellar::PutOptions> ToPutOptions(const PutOptions& options) {
  ::cellar::PutOptions result;
  if (!options.type.empty()) {
    ASSIGN_OR_RETURN(result.type, ParseValueType(options.type));
  }
  if (options.timestamp_micros && *options.timestamp_micros < 0) {
    return Wrong("a timestamp is not negative");
  }
  if (options.ttl_micros && *options.ttl_micros == 0) return Wrong("a TTL is longer than nothing");
  result.timestamp_micros = options.timestamp_micros;
  result.ttl_micros = options.ttl_micros;
  return result;
}

void SetColumn(std::string_view family, std::string_view qualifier, std::string* column) {
  column->assign(family);
  column->push_back(':');
  column->append(qualifier);
}

void SetValue(ValueType type, std::string_view stored, Cell* cell) {
  cell->type = ValueTypeName(type);
  cell->value.clear();
  AppendValueText(type, stored, &cell->value);
}

Result<Predicate> ToPredicate(const Condition& condition) {
  using Test = Condition::Test;
  Predicate predicate;
  const bool is_missing = condition.test == Test::kMissing;
  if (condition.test == Test::kFilter) {
    if (!condition.column.empty()) return Wrong("a filter is of the row: it has no column");
    predicate.kind = Predicate::Kind::kFilter;
    predicate.literal = condition.value;
    return predicate;
  }
  if (condition.column.empty()) {
    if (!is_missing && condition.test != Test::kExists) return Wrong("a row has no value");
    predicate.kind = is_missing ? Predicate::Kind::kRowMissing : Predicate::Kind::kRowExists;
    return predicate;
  }
  RETURN_IF_ERROR(SplitColumn(condition.column, &predicate.family, &predicate.qualifier));
  predicate.literal = condition.value;
  switch (condition.test) {
    case Test::kExists:
      predicate.kind = Predicate::Kind::kColumnExists;
      break;
    case Test::kMissing:
      predicate.kind = Predicate::Kind::kColumnMissing;
      break;
    case Test::kMatch:
      predicate.kind = Predicate::Kind::kMatch;
      break;
    default:
      predicate.kind = Predicate::Kind::kCompare;
      predicate.op = ToCompareOp(condition.test);
  }
  return predicate;
}

Status AddRange(std::string_view min, std::string_view max, ::cellar::RowOptions* rows) {
  if (min.empty()) min = "-";
  if (max.empty()) max = "+";
  RETURN_IF_ERROR(CheckBound(min));
  RETURN_IF_ERROR(CheckBound(max));
  rows->rows.push_back({RowSelector::Kind::kRange, min, max});
  return Status::Ok();
}

Status ToRequest(const ScanOptions& options, ::cellar::RowOptions* rows, CellOptions* cells) {
  const bool has_range = !options.min.empty() || !options.max.empty();
  if (has_range && !options.prefix.empty()) return Wrong("a scan has a prefix or a range");
  if (has_range) {
    RETURN_IF_ERROR(AddRange(options.min, options.max, rows));
  } else if (!options.prefix.empty()) {
    rows->rows.push_back({RowSelector::Kind::kPrefix, options.prefix, {}});
  }
  rows->reverse = options.reverse;
  for (const std::string_view column : options.columns) {
    cells->columns.push_back(ToSelector(column));
  }
  cells->versions_max = options.versions == 0 ? kUnlimited : options.versions;
  if (!options.filter.empty()) cells->filter = options.filter;
  return Status::Ok();
}

}  // namespace cellar::embedded
