// From a record to a row: which fields make the row key, which column each other field goes to,
// with what type and timestamp.
//
// A CSV or TSV file has a header of field names; a JSON line has paths ("version", "meta.size").
// Where a field goes is decided in this order:
//
//   --column name=family:qualifier[:type]        that column (with "-" for the column: nowhere)
//   --ignore name                                nowhere
//   a key or timestamp field                     nowhere, unless --keep-key-fields or mapped above
//   the name is itself family:qualifier[:type]   that column
//   JSON: an object at the top                   its members are columns of the family it names
//   --default-family f                           f:name
//   otherwise                                    an error; or nowhere with --ignore-unmapped
//
// A mapper holds the decisions and no connection; it is what --dry-run runs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cellar-import/record_reader.h"
#include "cellar/status.h"

namespace cellar::importer {

// Where a field goes. An empty family: nowhere.
struct Column {
  std::string family;
  std::string qualifier;
  std::string type;  // of cellar-model(7), "TYPES", or empty: the family's
};

// Where a field of each record goes, and the words that say so in a command, as RESP.
struct HeaderField {
  explicit HeaderField(Column to);

  Column column;
  std::string name_words;  // family:qualifier
  std::string type_words;  // AS type; or nothing
};

// The names and the value are the cell's own, or those of a header and of a record.
struct Cell {
  std::string family;
  std::string qualifier;
  std::string value;
  std::string type;
  std::optional<int64_t> timestamp_micros{};  // else that of the row, if any
  std::optional<int64_t> expires_micros{};
  // In place of the four above. Borrowed from the mapper, and from the record until the next one.
  const HeaderField* header{nullptr};
  const std::string* field{nullptr};

  const std::string& FamilyName() const {
    return header != nullptr ? header->column.family : family;
  }
  const std::string& Qualifier() const {
    return header != nullptr ? header->column.qualifier : qualifier;
  }
  const std::string& Type() const { return header != nullptr ? header->column.type : type; }
  const std::string& Value() const { return header != nullptr ? *field : value; }
};

struct Row {
  std::string key;
  std::vector<Cell> cells;
  std::optional<int64_t> timestamp_micros;
};

// A JSON array that no option maps: its text as the value; one column for each index; or, an array
// of strings and numbers, one column for each element with an empty value.
enum class ArrayStyle : uint8_t { kText, kIndex, kSet };
enum class TimeUnit : uint8_t { kSeconds, kMillis, kMicros };

struct MapperOptions {
  std::vector<std::string> key_fields;  // or one "*": the server gives record numbers
  std::string key_delimiter{"#"};
  std::map<std::string, Column, std::less<>> columns;  // by field name or JSON path
  std::vector<std::string> ignored_fields;
  bool ignore_unmapped{false};
  bool keep_key_fields{false};
  std::string default_family;
  std::string default_type;
  std::optional<std::string> null_text;  // a field that says so gives no cell
  bool keep_empty{false};                // an empty CSV field gives an empty value, not no cell
  std::string timestamp_field;
  TimeUnit timestamp_unit{TimeUnit::kMicros};
  bool json_types{false};  // JSON numbers and booleans become i64, u64, f64, bool; strings `string`
  ArrayStyle arrays{ArrayStyle::kText};
};

// "family:qualifier" or "family:qualifier:type"; the last word counts as a type only if it is one.
Result<Column> ParseColumn(std::string_view text);
bool IsValueType(std::string_view word);
// Microseconds since the epoch: a number of `unit`s, perhaps with a fraction, or ISO 8601
// ("2024-05-01", "2024-05-01T12:00:00.25Z", with Z, an offset, or neither, which means UTC).
Result<int64_t> ParseTimestamp(std::string_view text, TimeUnit unit);

// A line of cellar-export's `rows`: a row, or the commands that make its table. Errors are the
// record's.
Status MapRows(std::string_view text, Row* row, std::vector<std::string>* schema);

class RowMapper {
 public:
  explicit RowMapper(MapperOptions options);

  // Field names of the CSV or TSV records to come. Errors: an unmapped field, a key field that is
  // missing, a name twice.
  Status SetHeader(const std::vector<std::string>& names);
  // The columns of the header that say a type: the words COLUMN QUALIFIER TYPE ... by their family.
  std::map<std::string, std::vector<std::string>, std::less<>> TypedColumns() const;
  // REQUIRES: SetHeader() for records with fields. *row is used again, borrows from
  // `record` and the mapper, and is filled by nothing else. Errors are the record's.
  Status MapFields(const Record& record, Row* row) const;
  Status MapJson(std::string_view text, Row* row) const;

 private:
  struct Leaf;
  Result<Column> ColumnOf(std::string_view field) const;
  bool IsSpecial(std::string_view field) const;

  MapperOptions options_;
  std::vector<HeaderField> header_fields_;
  std::vector<Column> typed_columns_;  // those of them that say a type themselves
  std::vector<size_t> header_keys_;
  std::optional<size_t> header_timestamp_;
};

}  // namespace cellar::importer
