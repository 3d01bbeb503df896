// CSV and TSV records to rows, and what JSON lines share with them. See row_mapper.h.
#include "cellar-import/row_mapper.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/assert.h"
#include "client/command_words.h"

namespace cellar::importer {
namespace {

constexpr std::array<std::string_view, 15> kValueTypes{"bytes", "string", "bool", "byte", "u8",
                                                       "i8",    "i16",    "i32",  "i64",  "u16",
                                                       "u32",   "u64",    "f32",  "f64",  "uuid"};

Status BadRecord(std::string text) { return Status::Error(ErrorCode::kBadValue, std::move(text)); }

}  // namespace

bool IsValueType(std::string_view word) {
  return std::find(kValueTypes.begin(), kValueTypes.end(), word) != kValueTypes.end();
}

Result<Column> ParseColumn(std::string_view text) {
  if (text == "-") return Column{};
  const size_t colon{text.find(':')};
  if (colon == std::string_view::npos || colon == 0) {
    return Status::Error(
        ErrorCode::kErr,
        "'" + std::string(text) + "' is not family:qualifier[:type], nor - for nowhere");
  }
  Column column;
  column.family = text.substr(0, colon);
  std::string_view rest{text.substr(colon + 1)};
  const size_t last_colon{rest.rfind(':')};
  if (last_colon != std::string_view::npos && IsValueType(rest.substr(last_colon + 1))) {
    column.type = rest.substr(last_colon + 1);
    rest = rest.substr(0, last_colon);
  }
  column.qualifier = rest;
  return column;
}

RowMapper::RowMapper(MapperOptions options) : options_(std::move(options)) {
  CELLAR_ASSERT(!options_.key_fields.empty());
}

bool RowMapper::IsSpecial(std::string_view field) const {
  return field == options_.timestamp_field ||
         std::find(options_.key_fields.begin(), options_.key_fields.end(), field) !=
             options_.key_fields.end();
}

Result<Column> RowMapper::ColumnOf(std::string_view field) const {
  const auto& ignored = options_.ignored_fields;
  if (const auto found = options_.columns.find(field); found != options_.columns.end()) {
    return found->second;
  }
  if (std::find(ignored.begin(), ignored.end(), field) != ignored.end()) return Column{};
  if (IsSpecial(field) && !options_.keep_key_fields) return Column{};
  if (const size_t colon = field.find(':'); colon != std::string_view::npos && colon > 0) {
    return ParseColumn(field);
  }
  if (!options_.default_family.empty()) {
    return Column{options_.default_family, std::string(field), {}};
  }
  if (options_.ignore_unmapped) return Column{};
  return BadRecord("field '" + std::string(field) +
                   "' is mapped nowhere: use --column, --default-family, --ignore or "
                   "--ignore-unmapped");
}

HeaderField::HeaderField(Column to) : column(std::move(to)) {
  client::AppendBulk(column.family + ":" + column.qualifier, &name_words);
  if (column.type.empty()) return;
  client::AppendBulk("AS", &type_words);
  client::AppendBulk(column.type, &type_words);
}

Status RowMapper::SetHeader(const std::vector<std::string>& names) {
  std::set<std::string_view> seen;
  for (const std::string& name : names) {
    if (!seen.insert(name).second) return BadRecord("field '" + name + "' is twice in the header");
  }
  const auto index_of = [&names](const std::string& name) -> Result<size_t> {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) return BadRecord("there is no field '" + name + "'");
    return static_cast<size_t>(found - names.begin());
  };
  header_keys_.clear();
  for (const std::string& name : options_.key_fields) {
    if (name == "*" && options_.key_fields.size() == 1) break;
    ASSIGN_OR_RETURN(const size_t index, index_of(name));
    header_keys_.push_back(index);
  }
  if (!options_.timestamp_field.empty()) {
    ASSIGN_OR_RETURN(header_timestamp_, index_of(options_.timestamp_field));
  }
  for (const auto& [name, column] : options_.columns) {
    RETURN_IF_ERROR(index_of(name).status());
  }
  header_fields_.clear();
  typed_columns_.clear();
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(Column column, ColumnOf(name));
    if (!column.type.empty()) typed_columns_.push_back(column);
    if (column.type.empty()) column.type = options_.default_type;
    header_fields_.emplace_back(std::move(column));
  }
  return Status::Ok();
}

std::map<std::string, std::vector<std::string>, std::less<>> RowMapper::TypedColumns() const {
  constexpr size_t kWordsMax{3 * 256};  // the server takes no more; cells say their type anyway
  std::map<std::string, std::vector<std::string>, std::less<>> words;
  std::set<std::pair<std::string, std::string>> seen;
  for (const Column& column : typed_columns_) {
    std::vector<std::string>& of_family = words[column.family];
    const bool is_new = seen.emplace(column.family, column.qualifier).second;
    if (is_new && of_family.size() < kWordsMax)
      of_family.insert(of_family.end(), {"COLUMN", column.qualifier, column.type});
  }
  return words;
}

Status RowMapper::MapFields(const Record& record, Row* row) const {
  const std::vector<std::string>& fields = record.fields;
  if (fields.size() != header_fields_.size()) {
    return BadRecord(std::to_string(fields.size()) + " fields where the header has " +
                     std::to_string(header_fields_.size()));
  }
  row->key = header_keys_.empty() ? "*" : "";
  for (const size_t index : header_keys_) {
    if (index != header_keys_.front()) row->key += options_.key_delimiter;
    row->key += fields[index];
  }
  if (row->key.empty()) return BadRecord("the row key is empty");
  row->timestamp_micros.reset();
  if (header_timestamp_) {
    ASSIGN_OR_RETURN(row->timestamp_micros,
                     ParseTimestamp(fields[*header_timestamp_], options_.timestamp_unit));
  }
  size_t cell_count{0};
  for (size_t index{0}; index < fields.size(); ++index) {
    const HeaderField& header = header_fields_[index];
    if (header.column.family.empty()) continue;
    if (fields[index].empty() && !options_.keep_empty) continue;
    if (options_.null_text && fields[index] == *options_.null_text) continue;
    if (row->cells.size() <= cell_count) row->cells.emplace_back();
    Cell& cell = row->cells[cell_count++];
    cell.header = &header;
    cell.field = &fields[index];
  }
  row->cells.resize(cell_count);
  return row->cells.empty() ? BadRecord("no field gives a cell") : Status::Ok();
}

}  // namespace cellar::importer
