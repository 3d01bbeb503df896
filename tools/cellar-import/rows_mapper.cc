// Lines of cellar-export --format rows to rows: every cell says its column, timestamp, type, value
// and expiry.
//
//   {"schema":["TABLE CREATE t FAMILY f", ...]}
//   {"row":"k","cells":[["f:q",1795402800000000,"i64",5,null], ...]}
//
// A text is a JSON string, or {"b64":"..."} if it is not UTF-8.
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "cellar-import/row_mapper.h"

namespace cellar::importer {
namespace {

using nlohmann::json;

Status BadRecord(std::string text) { return Status::Error(ErrorCode::kBadValue, std::move(text)); }

int Base64Digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool DecodeBase64(std::string_view text, std::string* bytes) {
  if (text.size() % 4 != 0) return false;
  for (size_t at{0}; at < text.size(); at += 4) {
    const bool is_last{at + 4 == text.size()};
    const size_t padding{!is_last ? 0U : text.ends_with("==") ? 2U : text.ends_with("=") ? 1U : 0U};
    uint32_t bits{0};
    for (size_t i{0}; i < 4; ++i) {
      const int digit{i < 4 - padding ? Base64Digit(text[at + i]) : 0};
      if (digit < 0) return false;
      bits = bits << 6 | static_cast<uint32_t>(digit);
    }
    for (size_t i{0}; i < 3 - padding; ++i) {
      bytes->push_back(static_cast<char>(bits >> (16 - 8 * i) & 0xff));
    }
  }
  return true;
}

// A string, or the bytes of {"b64": ...}.
Result<std::string> TextOf(const json& value, const char* what) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object() && value.size() == 1 && value.contains("b64") && value["b64"].is_string()) {
    std::string bytes;
    if (DecodeBase64(value["b64"].get_ref<const std::string&>(), &bytes)) return bytes;
  }
  return BadRecord(std::string(what) + " is neither a string nor {\"b64\": ...}");
}

Result<std::string> ValueOf(const json& value) {
  if (value.is_number() || value.is_boolean()) return value.dump();
  return TextOf(value, "the value");
}

Result<Cell> CellOf(const json& entry) {
  if (!entry.is_array() || entry.size() != 5) {
    return BadRecord("a cell is not [column, timestamp, type, value, expiry]");
  }
  Cell cell;
  ASSIGN_OR_RETURN(const std::string column, TextOf(entry[0], "the column"));
  const size_t colon{column.find(':')};
  if (colon == std::string::npos) return BadRecord("the column has no ':'");
  cell.family = column.substr(0, colon);
  cell.qualifier = column.substr(colon + 1);
  if (!entry[1].is_number_integer()) return BadRecord("the timestamp is not an integer");
  cell.timestamp_micros = entry[1].get<int64_t>();
  if (!entry[2].is_string()) return BadRecord("the type is not a string");
  cell.type = entry[2].get<std::string>();
  ASSIGN_OR_RETURN(cell.value, ValueOf(entry[3]));
  if (entry[4].is_null()) return cell;
  if (!entry[4].is_number_integer()) return BadRecord("the expiry is neither an integer nor null");
  cell.expires_micros = entry[4].get<int64_t>();
  return cell;
}

}  // namespace

Status MapRows(std::string_view text, Row* row, std::vector<std::string>* schema) {
  const json line = json::parse(text, nullptr, false);
  if (!line.is_object()) return BadRecord("not a JSON object");
  if (line.contains("schema")) {
    if (!line["schema"].is_array()) return BadRecord("the schema is not an array of commands");
    for (const json& command : line["schema"]) {
      ASSIGN_OR_RETURN(schema->emplace_back(), TextOf(command, "a command of the schema"));
    }
    return Status::Ok();
  }
  if (!line.contains("row") || !line.contains("cells") || !line["cells"].is_array()) {
    return BadRecord("neither \"row\" and \"cells\" nor \"schema\" in the line");
  }
  ASSIGN_OR_RETURN(row->key, TextOf(line["row"], "the row key"));
  row->timestamp_micros.reset();
  row->cells.clear();
  for (const json& entry : line["cells"]) {
    ASSIGN_OR_RETURN(row->cells.emplace_back(), CellOf(entry));
  }
  return row->cells.empty() ? BadRecord("the row has no cells") : Status::Ok();
}

}  // namespace cellar::importer
