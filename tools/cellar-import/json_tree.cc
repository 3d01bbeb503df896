// See json_tree.h.
#include "cellar-import/json_tree.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "client/json_text.h"
#include "resp/decimal.h"

namespace cellar::importer {
namespace {

using nlohmann::json;

constexpr size_t kDepthMax{32};
constexpr std::string_view kUint64Max{"18446744073709551615"};

class TreeBuilder final : public nlohmann::json_sax<json> {
 public:
  explicit TreeBuilder(JsonTree* root) : root_(root) {}

  bool null() override { return Add(JsonTree::Kind::kNull, "null"); }
  bool boolean(bool value) override { return Add(JsonTree::Kind::kBool, value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override {
    return Add(JsonTree::Kind::kInteger, std::to_string(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return Add(JsonTree::Kind::kInteger, std::to_string(value));
  }
  // Also what is an integer of more than 64 bits.
  bool number_float(number_float_t, const string_t& text) override {
    const bool is_integer{text.find_first_of(".eE") == std::string::npos};
    return Add(is_integer ? JsonTree::Kind::kInteger : JsonTree::Kind::kFloat, text);
  }
  bool string(string_t& value) override { return Add(JsonTree::Kind::kText, std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return Open(JsonTree::Kind::kObject); }
  bool start_array(std::size_t) override { return Open(JsonTree::Kind::kArray); }
  bool key(string_t& name) override {
    open_.back()->names.push_back(std::move(name));
    return true;
  }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    complaint_ = "not JSON at its byte " + std::to_string(position);
    return false;
  }

  const std::string& complaint() const { return complaint_; }

 private:
  // A parent's items do not move while one of its children is open.
  JsonTree* Place() { return open_.empty() ? root_ : &open_.back()->items.emplace_back(); }

  bool Add(JsonTree::Kind kind, std::string text) {
    JsonTree* place = Place();
    place->kind = kind;
    place->text = std::move(text);
    return true;
  }
  bool Open(JsonTree::Kind kind) {
    if (open_.size() >= kDepthMax) {
      complaint_ = "nested too deep";
      return false;
    }
    JsonTree* place = Place();
    place->kind = kind;
    open_.push_back(place);
    return true;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }

  JsonTree* root_;
  std::vector<JsonTree*> open_;
  std::string complaint_{"not JSON"};
};

// NOLINTNEXTLINE(misc-no-recursion): kDepthMax bounds it
void AppendTree(const JsonTree& tree, std::string* out) {
  if (tree.kind == JsonTree::Kind::kText) {
    client::AppendJsonString(tree.text, out);
    return;
  }
  const bool is_object{tree.kind == JsonTree::Kind::kObject};
  if (!is_object && !tree.is_array()) {
    out->append(tree.text);
    return;
  }
  out->push_back(is_object ? '{' : '[');
  for (size_t i{0}; i < tree.items.size(); ++i) {
    if (i > 0) out->push_back(',');
    if (is_object) {
      client::AppendJsonString(tree.names[i], out);
      out->push_back(':');
    }
    AppendTree(tree.items[i], out);
  }
  out->push_back(is_object ? '}' : ']');
}

}  // namespace

Result<JsonTree> JsonTree::Parse(std::string_view text) {
  JsonTree tree;
  TreeBuilder builder(&tree);
  if (json::sax_parse(text, &builder)) return tree;
  return Status::Error(ErrorCode::kBadValue, builder.complaint());
}

const JsonTree* JsonTree::Find(std::string_view name) const {
  for (size_t i{0}; i < names.size(); ++i) {
    if (names[i] == name) return &items[i];
  }
  return nullptr;
}

std::string JsonTree::ToText() const {
  if (kind != Kind::kArray && kind != Kind::kObject) return text;
  std::string json_text;
  AppendTree(*this, &json_text);
  return json_text;
}

std::string_view JsonTree::NaturalType() const {
  int64_t number{0};
  switch (kind) {
    case Kind::kBool:
      return "bool";
    case Kind::kFloat:
      return "f64";
    case Kind::kText:
      return "string";
    case Kind::kInteger:
      if (ParseStrictInt64(text, &number)) return "i64";
      if (text.starts_with('-')) return "";
      // Digits without a zero in front compare as numbers if there are as many of them.
      return text.size() < kUint64Max.size() ||
                     (text.size() == kUint64Max.size() && text <= kUint64Max)
                 ? "u64"
                 : "";
    default:
      return "";
  }
}

}  // namespace cellar::importer
