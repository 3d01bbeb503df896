// JSON lines to rows (RowMapper::MapJson). The path of a member is the names that lead to it,
// joined with dots. A mapped path is taken as it is; an object below the top gives qualifiers
// joined with dots:
//
//   {"name": "vim", "meta": {"version": "9.0", "size": {"kb": 3}}, "tag": ["a", "b"]}
//     path name             the key, say
//     path meta.version     meta:version
//     path meta.size.kb     meta:size.kb
//     path tag              --arrays text: <default family>:tag = ["a","b"];  set: tag:a, tag:b;
//                           index: tag:0, tag:1
//
// null gives no cell. Repeated member names: the last counts, as the JSON library has it.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "cellar-import/row_mapper.h"

namespace cellar::importer {
namespace {

using nlohmann::json;

constexpr int kDepthMax{32};

Status BadRecord(std::string text) { return Status::Error(ErrorCode::kBadValue, std::move(text)); }

// Hears nothing but the parser's complaint.
class ErrorListener final : public nlohmann::json_sax<json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::detail::exception& error) override {
    text = error.what();
    return false;
  }

  std::string text{"not JSON"};
};

// What the library says of `text`, without its own name for it in front.
std::string Complaint(std::string_view text) {
  ErrorListener listener;
  json::sax_parse(text, &listener);
  // "[json.exception.parse_error.101] parse error at line 1, column 15: syntax error ...": the line
  // is always 1 here.
  constexpr std::string_view kLineMark{"line 1, "};
  std::string complaint{listener.text};
  if (const size_t bracket = complaint.find("] "); bracket != std::string::npos) {
    complaint.erase(0, bracket + 2);
  }
  if (const size_t mark = complaint.find(kLineMark); mark != std::string::npos) {
    complaint.erase(mark, kLineMark.size());
  }
  return complaint;
}

// A scalar as the text that a command takes.
std::string Text(const json& value) {
  return value.is_string() ? value.get_ref<const std::string&>() : value.dump();
}

std::string_view NaturalType(const json& value) {
  if (value.is_boolean()) return "bool";
  if (value.is_number_float()) return "f64";
  if (value.is_number_unsigned()) {
    return value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX) ? "u64" : "i64";
  }
  if (value.is_number_integer()) return "i64";
  return value.is_string() ? "string" : "";
}

// The value at a dotted path, or null. A member whose own name is the whole rest of the path wins.
const json* Find(const json& object, std::string_view path) {
  if (!object.is_object()) return nullptr;
  if (const auto found = object.find(std::string(path)); found != object.end()) return &*found;
  for (size_t dot{path.find('.')}; dot != std::string_view::npos; dot = path.find('.', dot + 1)) {
    const auto found = object.find(std::string(path.substr(0, dot)));
    if (found == object.end()) continue;
    if (const json* deeper = Find(*found, path.substr(dot + 1))) return deeper;
  }
  return nullptr;
}

}  // namespace

// Walks the members of one line and collects cells.
struct RowMapper::Leaf {
  const RowMapper& mapper;
  Row* row;

  void Add(const Column& column, std::string_view qualifier, const json& value) const {
    if (column.family.empty() || value.is_null()) return;
    Cell cell;
    cell.family = column.family;
    cell.qualifier = qualifier;
    cell.value = Text(value);
    cell.type = column.type;
    if (cell.type.empty()) cell.type = mapper.options_.default_type;
    if (cell.type.empty() && mapper.options_.json_types) cell.type = NaturalType(value);
    if (mapper.options_.null_text && cell.value == *mapper.options_.null_text) return;
    row->cells.push_back(std::move(cell));
  }

  // An array as columns of its own, below `prefix` in the family.
  Status AddArray(const std::string& family, const std::string& prefix, const json& array) const {
    for (size_t index{0}; index < array.size(); ++index) {
      const json& element = array[index];
      if (mapper.options_.arrays == ArrayStyle::kIndex) {
        Add(Column{family, {}, {}}, prefix + std::to_string(index), element);
      } else if (element.is_structured()) {
        return BadRecord("an object or array inside an array that is a set");
      } else if (!element.is_null()) {
        row->cells.push_back(Cell{family, prefix + Text(element), "", ""});
      }
    }
    return Status::Ok();
  }

  // The member at `path`; `family` is the top member's name when it is below one, and `rest` the
  // path inside it.
  Status Walk(const std::string& path, const std::string& family, const std::string& rest,
              const json& value, int depth) const {
    if (depth > kDepthMax) return BadRecord("objects are nested too deep");
    if (value.is_null()) return Status::Ok();
    const bool is_mapped{mapper.options_.columns.contains(path)};
    if (value.is_object() && !is_mapped) {
      for (const auto& [name, member] : value.items()) {
        const std::string family_below{family.empty() ? path : family};
        const std::string rest_below{family.empty() || rest.empty() ? name : rest + "." + name};
        RETURN_IF_ERROR(Walk(path + "." + name, family_below, rest_below, member, depth + 1));
      }
      return Status::Ok();
    }
    if (value.is_array() && !is_mapped && mapper.options_.arrays != ArrayStyle::kText) {
      return AddArray(family.empty() ? path : family, rest.empty() ? "" : rest + ".", value);
    }
    if (!family.empty() && !is_mapped) {
      const auto& ignored = mapper.options_.ignored_fields;
      if (std::find(ignored.begin(), ignored.end(), path) != ignored.end()) return Status::Ok();
      if (mapper.IsSpecial(path) && !mapper.options_.keep_key_fields) return Status::Ok();
      Add(Column{family, {}, {}}, rest, value);
      return Status::Ok();
    }
    ASSIGN_OR_RETURN(const Column column, mapper.ColumnOf(path));
    Add(column, column.qualifier, value);
    return Status::Ok();
  }
};

Status RowMapper::MapJson(std::string_view text, Row* row) const {
  const json line = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (line.is_discarded()) return BadRecord(Complaint(text));
  if (!line.is_object()) return BadRecord("the line is not a JSON object");
  row->key.clear();
  row->cells.clear();
  row->timestamp_micros.reset();
  for (const std::string& field : options_.key_fields) {
    if (field == "*" && options_.key_fields.size() == 1) {
      row->key = "*";
      break;
    }
    const json* value = Find(line, field);
    if (value == nullptr || value->is_null()) return BadRecord("there is no field '" + field + "'");
    if (value->is_structured())
      return BadRecord("key field '" + field + "' is neither text nor a number");
    if (&field != &options_.key_fields.front()) row->key += options_.key_delimiter;
    row->key += Text(*value);
  }
  if (row->key.empty()) return BadRecord("the row key is empty");
  if (!options_.timestamp_field.empty()) {
    const json* value = Find(line, options_.timestamp_field);
    if (value == nullptr) return BadRecord("there is no field '" + options_.timestamp_field + "'");
    ASSIGN_OR_RETURN(row->timestamp_micros, ParseTimestamp(Text(*value), options_.timestamp_unit));
  }
  const Leaf leaf{*this, row};
  for (const auto& [name, value] : line.items()) {
    RETURN_IF_ERROR(leaf.Walk(name, "", "", value, 0));
  }
  return row->cells.empty() ? BadRecord("no field gives a cell") : Status::Ok();
}

}  // namespace cellar::importer
