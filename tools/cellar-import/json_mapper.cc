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
// null gives no cell. A number is the text that stands there, whatever a double could hold of it.
#include <algorithm>
#include <string>
#include <utility>

#include "cellar-import/json_tree.h"
#include "cellar-import/row_mapper.h"

namespace cellar::importer {
namespace {

Status BadRecord(std::string text) { return Status::Error(ErrorCode::kBadValue, std::move(text)); }

bool IsNull(const JsonTree& value) { return value.kind == JsonTree::Kind::kNull; }

// The value at a dotted path, or null. A member whose own name is the whole rest of the path wins.
// NOLINTNEXTLINE(misc-no-recursion): JsonTree's depth bounds it
const JsonTree* Find(const JsonTree& object, std::string_view path) {
  if (const JsonTree* found = object.Find(path)) return found;
  for (size_t dot{path.find('.')}; dot != std::string_view::npos; dot = path.find('.', dot + 1)) {
    const JsonTree* found = object.Find(path.substr(0, dot));
    if (found == nullptr) continue;
    if (const JsonTree* deeper = Find(*found, path.substr(dot + 1))) return deeper;
  }
  return nullptr;
}

}  // namespace

// Walks the members of one line and collects cells.
struct RowMapper::Leaf {
  const RowMapper& mapper;
  Row* row;

  void Add(const Column& column, std::string_view qualifier, const JsonTree& value) const {
    if (column.family.empty() || IsNull(value)) return;
    Cell cell;
    cell.family = column.family;
    cell.qualifier = qualifier;
    cell.value = value.ToText();
    cell.type = column.type;
    if (cell.type.empty()) cell.type = mapper.options_.default_type;
    if (cell.type.empty() && mapper.options_.json_types) cell.type = value.NaturalType();
    if (mapper.options_.null_text && cell.value == *mapper.options_.null_text) return;
    row->cells.push_back(std::move(cell));
  }

  // An array as columns of its own, below `prefix` in the family.
  Status AddArray(const std::string& family, const std::string& prefix,
                  const JsonTree& array) const {
    for (size_t index{0}; index < array.items.size(); ++index) {
      const JsonTree& element = array.items[index];
      if (mapper.options_.arrays == ArrayStyle::kIndex) {
        Add(Column{family, {}, {}}, prefix + std::to_string(index), element);
      } else if (element.is_structured()) {
        return BadRecord("an object or array inside an array that is a set");
      } else if (!IsNull(element)) {
        row->cells.push_back(Cell{family, prefix + element.ToText(), "", ""});
      }
    }
    return Status::Ok();
  }

  // The member at `path`; `family` is the top member's name when it is below one, and `rest` the
  // path inside it.
  // NOLINTNEXTLINE(misc-no-recursion): JsonTree's depth bounds it
  Status Walk(const std::string& path, const std::string& family, const std::string& rest,
              const JsonTree& value) const {
    if (IsNull(value)) return Status::Ok();
    const bool is_mapped{mapper.options_.columns.contains(path)};
    if (value.is_object() && !is_mapped) {
      for (size_t i{0}; i < value.items.size(); ++i) {
        const std::string& name = value.names[i];
        const std::string family_below{family.empty() ? path : family};
        const std::string rest_below{family.empty() || rest.empty() ? name : rest + "." + name};
        RETURN_IF_ERROR(Walk(path + "." + name, family_below, rest_below, value.items[i]));
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
  ASSIGN_OR_RETURN(const JsonTree line, JsonTree::Parse(text));
  if (!line.is_object()) return BadRecord("the line is not a JSON object");
  row->key.clear();
  row->cells.clear();
  row->timestamp_micros.reset();
  for (const std::string& field : options_.key_fields) {
    if (field == "*" && options_.key_fields.size() == 1) {
      row->key = "*";
      break;
    }
    const JsonTree* value = Find(line, field);
    if (value == nullptr || IsNull(*value)) return BadRecord("there is no field '" + field + "'");
    if (value->is_structured())
      return BadRecord("key field '" + field + "' is neither text nor a number");
    if (&field != &options_.key_fields.front()) row->key += options_.key_delimiter;
    row->key += value->ToText();
  }
  if (row->key.empty()) return BadRecord("the row key is empty");
  if (!options_.timestamp_field.empty()) {
    const JsonTree* value = Find(line, options_.timestamp_field);
    if (value == nullptr) return BadRecord("there is no field '" + options_.timestamp_field + "'");
    ASSIGN_OR_RETURN(row->timestamp_micros,
                     ParseTimestamp(value->ToText(), options_.timestamp_unit));
  }
  const Leaf leaf{*this, row};
  for (size_t i{0}; i < line.items.size(); ++i) {
    RETURN_IF_ERROR(leaf.Walk(line.names[i], "", "", line.items[i]));
  }
  return row->cells.empty() ? BadRecord("no field gives a cell") : Status::Ok();
}

}  // namespace cellar::importer
