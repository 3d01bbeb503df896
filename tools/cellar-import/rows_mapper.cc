// Lines of cellar-export --format rows to rows: every cell says its column, timestamp, type, value
// and expiry.
//
//   {"schema":["TABLE CREATE t FAMILY f", ...]}
//   {"row":"k","cells":[["f:q",1795402800000000,"i64",5,null], ...]}
//
// A text is a JSON string, or {"b64":"..."} if it is not UTF-8.
#include <string>
#include <utility>

#include "cellar-import/json_tree.h"
#include "cellar-import/row_mapper.h"
#include "resp/decimal.h"

namespace cellar::importer {
namespace {

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

// A string, or the bytes of {"b64": ...}. *value is used up.
Result<std::string> TextOf(JsonTree* value, const char* what) {
  if (value->is_text()) return std::move(value->text);
  const JsonTree* packed = value->items.size() == 1 ? value->Find("b64") : nullptr;
  if (packed != nullptr && packed->is_text()) {
    std::string bytes;
    if (DecodeBase64(packed->text, &bytes)) return bytes;
  }
  return BadRecord(std::string(what) + " is neither a string nor {\"b64\": ...}");
}

Result<std::string> ValueOf(JsonTree* value) {
  using Kind = JsonTree::Kind;
  if (value->kind == Kind::kBool || value->kind == Kind::kInteger || value->kind == Kind::kFloat) {
    return std::move(value->text);
  }
  return TextOf(value, "the value");
}

bool ReadMicros(const JsonTree& value, int64_t* micros) {
  return value.kind == JsonTree::Kind::kInteger && ParseStrictInt64(value.text, micros);
}

Result<Cell> CellOf(JsonTree* entry) {
  std::vector<JsonTree>& parts = entry->items;
  if (!entry->is_array() || parts.size() != 5) {
    return BadRecord("a cell is not [column, timestamp, type, value, expiry]");
  }
  Cell cell;
  ASSIGN_OR_RETURN(const std::string column, TextOf(&parts[0], "the column"));
  const size_t colon{column.find(':')};
  if (colon == std::string::npos) return BadRecord("the column has no ':'");
  cell.family = column.substr(0, colon);
  cell.qualifier = column.substr(colon + 1);
  int64_t micros{0};
  if (!ReadMicros(parts[1], &micros)) return BadRecord("the timestamp is not an integer");
  cell.timestamp_micros = micros;
  if (!parts[2].is_text()) return BadRecord("the type is not a string");
  cell.type = std::move(parts[2].text);
  ASSIGN_OR_RETURN(cell.value, ValueOf(&parts[3]));
  if (parts[4].kind == JsonTree::Kind::kNull) return cell;
  if (!ReadMicros(parts[4], &micros)) {
    return BadRecord("the expiry is neither an integer nor null");
  }
  cell.expires_micros = micros;
  return cell;
}

JsonTree* FindMutable(JsonTree* object, std::string_view name) {
  return const_cast<JsonTree*>(object->Find(name));
}

}  // namespace

Status MapRows(std::string_view text, Row* row, std::vector<std::string>* schema) {
  ASSIGN_OR_RETURN(JsonTree line, JsonTree::Parse(text));
  if (!line.is_object()) return BadRecord("not a JSON object");
  if (JsonTree* commands = FindMutable(&line, "schema")) {
    if (!commands->is_array()) return BadRecord("the schema is not an array of commands");
    for (JsonTree& command : commands->items) {
      ASSIGN_OR_RETURN(schema->emplace_back(), TextOf(&command, "a command of the schema"));
    }
    return Status::Ok();
  }
  JsonTree* key = FindMutable(&line, "row");
  JsonTree* cells = FindMutable(&line, "cells");
  if (key == nullptr || cells == nullptr || !cells->is_array()) {
    return BadRecord("neither \"row\" and \"cells\" nor \"schema\" in the line");
  }
  ASSIGN_OR_RETURN(row->key, TextOf(key, "the row key"));
  row->timestamp_micros.reset();
  row->cells.clear();
  for (JsonTree& entry : cells->items) {
    ASSIGN_OR_RETURN(row->cells.emplace_back(), CellOf(&entry));
  }
  return row->cells.empty() ? BadRecord("the row has no cells") : Status::Ok();
}

}  // namespace cellar::importer
