// See type_change.h.
#include "engine/schema/type_change.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/assert.h"
#include "base/coding.h"
#include "base/hash.h"
#include "base/text/number.h"
#include "base/text/quote.h"
#include "engine/schema/column_set.h"

namespace cellar {
namespace {

std::string ColumnName(const FamilySchema& family, std::string_view qualifier) {
  return Quote(family.name + ":" + std::string(qualifier));
}

Status Refuse(std::string text) { return Status::Error(ErrorCode::kErr, std::move(text)); }

Status TooManyColumns(const FamilySchema& family, size_t count) {
  return Status::Error(ErrorCode::kTooLarge, "family " + Quote(family.name) + " would have " +
                                                 FormatUint64(count) +
                                                 " columns with types of their own, the limit is " +
                                                 FormatUint64(kTypedColumnsMax));
}

// What one option does to a column: encoded qualifier, which option.
struct NamedColumn {
  std::string qualifier;
  size_t option{0};
};

// The columns that the options name, ascending.
Status NameColumns(const std::vector<ColumnTypeOption>& options, const FamilySchema& family,
                   std::vector<NamedColumn>* named) {
  named->reserve(options.size());
  for (size_t i = 0; i < options.size(); ++i) {
    std::string qualifier;
    RETURN_IF_ERROR(EncodeQualifier(family, options[i].qualifier, &qualifier));
    named->push_back({std::move(qualifier), i});
  }
  std::sort(named->begin(), named->end(), [](const NamedColumn& one, const NamedColumn& other) {
    const int order = one.qualifier.compare(other.qualifier);
    return order != 0 ? order < 0 : one.option < other.option;
  });
  const auto twice = std::adjacent_find(named->begin(), named->end(),
                                        [](const NamedColumn& one, const NamedColumn& other) {
                                          return one.qualifier == other.qualifier;
                                        });
  if (twice == named->end()) return Status::Ok();
  return Refuse("column " + ColumnName(family, options[std::next(twice)->option].qualifier) +
                " is named twice");
}

}  // namespace

Status AlterColumns(const std::vector<ColumnTypeOption>& options, FamilySchema* family) {
  if (options.empty()) return Status::Ok();
  if (family->fold != FoldKind::kNone) {
    return Refuse("family " + Quote(family->name) + ": AGGREGATE " +
                  std::string(FoldKindName(family->fold)) + " excludes COLUMN");
  }
  // More can only be too many, twice the same, or what is not there to be taken off.
  if (options.size() > 2 * kTypedColumnsMax) {
    return Status::Error(ErrorCode::kTooLarge, "family " + Quote(family->name) + ": COLUMN and " +
                                                   "NOCOLUMN name " + FormatUint64(options.size()) +
                                                   " columns, the limit is " +
                                                   FormatUint64(2 * kTypedColumnsMax));
  }
  std::vector<NamedColumn> named;
  RETURN_IF_ERROR(NameColumns(options, *family, &named));
  std::vector<TypedColumn> columns;
  columns.reserve(family->columns.size() + named.size());
  auto had = family->columns.begin();
  for (NamedColumn& column : named) {
    const ColumnTypeOption& option = options[column.option];
    while (had != family->columns.end() && had->qualifier < column.qualifier)
      columns.push_back(std::move(*had++));
    const bool found = had != family->columns.end() && had->qualifier == column.qualifier;
    if (found) ++had;
    if (!option.type && !found) {
      return Refuse("column " + ColumnName(*family, option.qualifier) +
                    " has no type of its own, which NOCOLUMN could take off");
    }
    if (option.type) columns.push_back({std::move(column.qualifier), *option.type});
  }
  std::move(had, family->columns.end(), std::back_inserter(columns));
  family->columns = std::move(columns);
  const size_t count = family->columns.size();
  return count <= kTypedColumnsMax ? Status::Ok() : TooManyColumns(*family, count);
}

Status CheckTypedColumnBytes(const TableSchema& before, const FamilySchema& after) {
  const auto bytes_of = [](const FamilySchema& family) {
    size_t bytes = 0;
    for (const TypedColumn& column : family.columns) bytes += column.qualifier.size();
    return bytes;
  };
  size_t others = 0;
  size_t had = 0;
  for (const FamilySchema& family : before.families)
    (family.id == after.id ? had : others) += bytes_of(family);
  const size_t has = bytes_of(after);
  if (has <= had || others + has <= kTypedColumnBytesMax) return Status::Ok();
  return Status::Error(ErrorCode::kTooLarge,
                       "the qualifiers of columns with types of their own would take " +
                           FormatUint64(others + has) + " bytes in the table, the limit is " +
                           FormatUint64(kTypedColumnBytesMax));
}

TypeChange::TypeChange(const FamilySchema& after, const FamilyOptions& options)
    : type_(after.type), columns_(after.columns) {
  const OtherCells others = options.other_cells.value_or(OtherCells::kRefuse);
  to_text_ = others == OtherCells::kConvert || others == OtherCells::kSkip;
  asks_of_family_ = options.type.has_value() && (after.type || to_text_);
  for (const ColumnTypeOption& option : options.columns) {
    std::string qualifier;
    const bool encoded = EncodeQualifier(after, option.qualifier, &qualifier).ok();
    CELLAR_ASSERT(encoded);  // AlterColumns has
    if (option.type || after.type || to_text_) named_.push_back(std::move(qualifier));
  }
  std::sort(named_.begin(), named_.end());
}

bool TypeChange::NamesAlike(const TypeChange& other) const {
  return named_ == other.named_ &&
         std::all_of(named_.begin(), named_.end(), [&](const std::string& qualifier) {
           return WantedOf(qualifier) == other.WantedOf(qualifier);
         });
}

bool TypeChange::SameAs(const TypeChange& other) const {
  if (asks_of_family_ != other.asks_of_family_ || !NamesAlike(other)) return false;
  return !asks_of_family_ || (type_ == other.type_ && columns_ == other.columns_);
}

bool TypeChange::GoesOnAs(const TypeChange& other) const {
  if (asks_of_family_ != other.asks_of_family_ || !NamesAlike(other)) return false;
  return !asks_of_family_ || type_ == other.type_;
}

uint64_t TypeChange::Hash() const {
  std::string bytes;
  const auto add = [&bytes](const Wanted& wanted) {
    bytes.push_back(static_cast<char>(wanted.type));
    bytes.push_back(wanted.any_text ? '\1' : '\0');
  };
  bytes.push_back(asks_of_family_ ? '\1' : '\0');
  if (asks_of_family_) add({type_.value_or(ValueType::kBytes), !type_});
  for (const std::string& qualifier : named_) {
    const std::optional<Wanted> wanted = WantedOf(qualifier);
    CELLAR_ASSERT(wanted.has_value());
    PutLengthPrefixed(&bytes, qualifier);
    add(*wanted);
  }
  return Hash64(bytes);
}

std::optional<TypeChange::Wanted> TypeChange::WantedOf(std::string_view qualifier) const {
  const auto column = std::lower_bound(
      columns_.begin(), columns_.end(), qualifier,
      [](const TypedColumn& typed, std::string_view wanted) { return typed.qualifier < wanted; });
  const bool has_own = column != columns_.end() && column->qualifier == qualifier;
  const bool is_named = std::binary_search(named_.begin(), named_.end(), qualifier);
  if (!is_named && (has_own || !asks_of_family_)) return std::nullopt;
  if (has_own) return Wanted{column->type, false};
  if (type_) return Wanted{*type_, false};
  return Wanted{ValueType::kBytes, true};
}

}  // namespace cellar
