// See avro_schema.h.
#include "cellar-import/avro_schema.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

namespace cellar::importer {

using nlohmann::json;

namespace {

constexpr int kDepthMax{32};
constexpr size_t kNodesMax{10'000};
constexpr uint64_t kFixedBytesMax{1 << 30};
constexpr uint64_t kUuidBytes{16};
constexpr uint64_t kScaleMax{1000};

Status BadSchema(const std::string& text) {
  return Status::Error(ErrorCode::kErr, "the schema " + text);
}

constexpr std::array<std::pair<std::string_view, AvroType>, 8> kPrimitives{
    {{"null", AvroType::kNull},
     {"boolean", AvroType::kBoolean},
     {"int", AvroType::kInt},
     {"long", AvroType::kLong},
     {"float", AvroType::kFloat},
     {"double", AvroType::kDouble},
     {"bytes", AvroType::kBytes},
     {"string", AvroType::kString}}};

}  // namespace

// A friend of AvroSchema, so not in the unnamed namespace.
class AvroSchemaParser {
 public:
  explicit AvroSchemaParser(AvroSchema* schema) : schema_(schema) {}

  // The index of the node.
  // NOLINTNEXTLINE(misc-no-recursion): kDepthMax bounds it
  Result<size_t> Parse(const json& text, const std::string& space, int depth) {
    if (depth > kDepthMax) return BadSchema("is nested too deep");
    if (text.is_string()) return Named(text.get<std::string>(), space);
    if (text.is_array()) return Union(text, space, depth);
    if (!text.is_object() || !text.contains("type")) return BadSchema("holds what is no type");
    const json& type = text["type"];
    if (!type.is_string()) return Parse(type, space, depth + 1);
    const std::string word = type.get<std::string>();
    if (word == "array") return Of(text, "items", AvroType::kArray, space, depth);
    if (word == "map") return Of(text, "values", AvroType::kMap, space, depth);
    if (word == "record" || word == "error") return Record(text, space, depth);
    if (word == "fixed") {
      ASSIGN_OR_RETURN(const size_t index, Fixed(text, space));
      RETURN_IF_ERROR(SetMeaning(text, index));
      return index;
    }
    if (word == "enum") {
      ASSIGN_OR_RETURN(const size_t index, Add(AvroType::kEnum));
      RETURN_IF_ERROR(Name(text, space, index).status());
      return index;
    }
    ASSIGN_OR_RETURN(const size_t index, Named(word, space));
    // Not of a type that was defined elsewhere.
    if (index + 1 == schema_->nodes_.size()) RETURN_IF_ERROR(SetMeaning(text, index));
    return index;
  }

  // What takes no bytes: found by what is not known to take any, until nothing changes. A record
  // that holds itself for sure has no values at all, and counts as empty.
  void FindEmpty() {
    std::vector<AvroNode>& nodes = schema_->nodes_;
    for (AvroNode& node : nodes) {
      node.is_empty = node.type == AvroType::kNull || node.type == AvroType::kRecord ||
                      (node.type == AvroType::kFixed && node.fixed_bytes == 0);
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (AvroNode& node : nodes) {
        if (!node.is_empty || node.type != AvroType::kRecord) continue;
        for (const AvroNode::Part& part : node.parts) {
          if (nodes[part.node].is_empty) continue;
          node.is_empty = false;
          changed = true;
        }
      }
    }
  }

 private:
  Result<size_t> Add(AvroType type) {
    if (schema_->nodes_.size() >= kNodesMax) return BadSchema("has too many types");
    schema_->nodes_.emplace_back().type = type;
    return schema_->nodes_.size() - 1;
  }

  Status SetMeaning(const json& text, size_t index) {
    if (!text.contains("logicalType") || !text["logicalType"].is_string()) return Status::Ok();
    AvroNode& node = schema_->nodes_[index];
    const auto is = [&node](std::string_view word, std::initializer_list<AvroType> types) {
      return node.logical_type == word &&
             std::find(types.begin(), types.end(), node.type) != types.end();
    };
    node.logical_type = text["logicalType"].get<std::string>().substr(0, 100);
    node.meaning = AvroMeaning::kOther;
    if (is("timestamp-millis", {AvroType::kLong})) node.meaning = AvroMeaning::kMillis;
    if (is("timestamp-micros", {AvroType::kLong})) node.meaning = AvroMeaning::kMicros;
    if (is("date", {AvroType::kInt})) node.meaning = AvroMeaning::kDays;
    if (is("uuid", {AvroType::kString})) node.meaning = AvroMeaning::kPlain;
    const bool is_uuid = is("uuid", {AvroType::kFixed}) && node.fixed_bytes == kUuidBytes;
    if (is_uuid) node.meaning = AvroMeaning::kUuid;
    if (!is("decimal", {AvroType::kBytes, AvroType::kFixed})) return Status::Ok();
    node.meaning = AvroMeaning::kDecimal;
    if (!text.contains("scale")) return Status::Ok();
    if (!text["scale"].is_number_unsigned() || text["scale"].get<uint64_t>() > kScaleMax) {
      return BadSchema("has a decimal whose scale is no number, or too large a one");
    }
    node.scale = text["scale"].get<uint32_t>();
    return Status::Ok();
  }

  Result<size_t> Named(const std::string& word, const std::string& space) {
    for (const auto& [name, type] : kPrimitives) {
      if (word == name) return Add(type);
    }
    for (const std::string& name : {space.empty() ? word : space + "." + word, word}) {
      if (const auto found = names_.find(name); found != names_.end()) return found->second;
    }
    return BadSchema("names a type that it does not define: " + word.substr(0, 100));
  }

  // NOLINTNEXTLINE(misc-no-recursion): kDepthMax bounds it
  Result<size_t> Union(const json& text, const std::string& space, int depth) {
    ASSIGN_OR_RETURN(const size_t index, Add(AvroType::kUnion));
    for (const json& branch : text) {
      ASSIGN_OR_RETURN(const size_t node, Parse(branch, space, depth + 1));
      schema_->nodes_[index].parts.push_back({"", node});
    }
    return index;
  }

  // NOLINTNEXTLINE(misc-no-recursion): kDepthMax bounds it
  Result<size_t> Of(const json& text, const char* member, AvroType type, const std::string& space,
                    int depth) {
    if (!text.contains(member)) return BadSchema(std::string("has no \"") + member + "\"");
    ASSIGN_OR_RETURN(const size_t index, Add(type));
    ASSIGN_OR_RETURN(const size_t node, Parse(text[member], space, depth + 1));
    schema_->nodes_[index].parts.push_back({"", node});
    return index;
  }

  // NOLINTNEXTLINE(misc-no-recursion): kDepthMax bounds it
  Result<size_t> Record(const json& text, const std::string& space, int depth) {
    ASSIGN_OR_RETURN(const size_t index, Add(AvroType::kRecord));
    ASSIGN_OR_RETURN(const std::string inner, Name(text, space, index));
    if (!text.contains("fields") || !text["fields"].is_array()) {
      return BadSchema("has a record without fields");
    }
    for (const json& field : text["fields"]) {
      if (!field.is_object() || !field.contains("type") || !field.contains("name") ||
          !field["name"].is_string()) {
        return BadSchema("has a field without a name or type");
      }
      ASSIGN_OR_RETURN(const size_t node, Parse(field["type"], inner, depth + 1));
      // Not where the format has it, but where Bigtable's own schema does.
      const bool is_own = field["type"].is_string() && node + 1 == schema_->nodes_.size();
      if (is_own) RETURN_IF_ERROR(SetMeaning(field, node));
      schema_->nodes_[index].parts.push_back({field["name"].get<std::string>(), node});
    }
    return index;
  }

  Result<size_t> Fixed(const json& text, const std::string& space) {
    ASSIGN_OR_RETURN(const size_t index, Add(AvroType::kFixed));
    RETURN_IF_ERROR(Name(text, space, index).status());
    if (!text.contains("size") || !text["size"].is_number_unsigned() ||
        text["size"].get<uint64_t>() > kFixedBytesMax) {
      return BadSchema("has a fixed of no size, or of too large a one");
    }
    schema_->nodes_[index].fixed_bytes = text["size"].get<uint64_t>();
    return index;
  }

  // Enters a name; the namespace that holds inside.
  Result<std::string> Name(const json& text, const std::string& space, size_t index) {
    if (!text.contains("name") || !text["name"].is_string()) {
      return BadSchema("has a type without a name");
    }
    std::string name = text["name"].get<std::string>();
    if (name.find('.') == std::string::npos) {
      const bool is_given = text.contains("namespace") && text["namespace"].is_string();
      const std::string own = is_given ? text["namespace"].get<std::string>() : space;
      if (!own.empty()) name = own + "." + name;
    }
    const size_t dot = name.rfind('.');
    if (!names_.emplace(name, index).second) return BadSchema("defines a type twice");
    return dot == std::string::npos ? std::string() : name.substr(0, dot);
  }

  AvroSchema* schema_;
  std::map<std::string, size_t, std::less<>> names_;
};

Result<AvroSchema> AvroSchema::Parse(std::string_view text) {
  const json parsed = json::parse(text, nullptr, false);
  if (parsed.is_discarded()) return BadSchema("is not JSON");
  AvroSchema schema;
  AvroSchemaParser parser(&schema);
  ASSIGN_OR_RETURN(schema.root_, parser.Parse(parsed, "", 0));
  parser.FindEmpty();
  return schema;
}

}  // namespace cellar::importer
