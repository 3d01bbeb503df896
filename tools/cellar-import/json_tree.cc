// See json_tree.h.
#include "cellar-import/json_tree.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

#include "base/text/utf8.h"
#include "client/hex_text.h"
#include "client/json_text.h"
#include "resp/decimal.h"

namespace cellar::importer {
namespace {

constexpr std::string_view kUint64Max{"18446744073709551615"};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Of members of one name the last one stays.
void DropRepeated(JsonTree* object) {
  const std::vector<std::string>& names = object->names;
  std::vector<size_t> order(names.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&names](size_t a, size_t b) { return names[a] < names[b]; });
  std::vector<size_t> repeated;
  for (size_t i{0}; i + 1 < order.size(); ++i) {
    if (names[order[i]] == names[order[i + 1]]) repeated.push_back(order[i]);
  }
  if (repeated.empty()) return;
  std::sort(repeated.begin(), repeated.end());
  size_t kept{0};
  for (size_t i{0}; i < names.size(); ++i) {
    if (std::binary_search(repeated.begin(), repeated.end(), i)) continue;
    if (kept != i) {
      object->names[kept] = std::move(object->names[i]);
      object->items[kept] = std::move(object->items[i]);
    }
    ++kept;
  }
  object->names.resize(kept);
  object->items.resize(kept);
}

// RFC 8259, without recursion: what is open stands in a list. A library's parser gives numbers as
// doubles, or not at all where no double holds them.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  bool Parse(JsonTree* root) {
    if (const size_t valid = ValidUtf8Prefix(text_); valid < text_.size()) {
      at_ = valid;
      return Fail("it is not UTF-8");
    }
    if (!ReadValue(root)) return false;
    while (!open_.empty()) {
      if (!Continue()) return false;
    }
    SkipBlanks();
    return at_ == text_.size() || Fail("something stands behind the value");
  }

  const std::string& complaint() const { return complaint_; }

 private:
  bool Fail(const std::string& why) {
    complaint_ = "not JSON at its byte " + std::to_string(at_ + 1) + ": " + why;
    return false;
  }
  bool Limit(const std::string& what) {
    complaint_ = what;
    return false;
  }
  // NUL at the end.
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool Take(char c) {
    if (Peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  void SkipBlanks() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

  // The next item or member of what was opened last, or its end. A parent's items do not move while
  // one of its children is open.
  bool Continue() {
    JsonTree* inside = open_.back();
    const bool is_array{inside->is_array()};
    SkipBlanks();
    if (Take(is_array ? ']' : '}')) {
      if (!is_array) DropRepeated(inside);
      open_.pop_back();
      return true;
    }
    if (!inside->items.empty() && !Take(',')) {
      return Fail(is_array ? "',' or ']' must stand here" : "',' or '}' must stand here");
    }
    if (!is_array) {
      SkipBlanks();
      if (Peek() != '"') return Fail("a name between quotes must stand here");
      if (!ReadText(&inside->names.emplace_back())) return false;
      SkipBlanks();
      if (!Take(':')) return Fail("':' must stand here");
    }
    return ReadValue(&inside->items.emplace_back());
  }

  bool ReadValue(JsonTree* place) {
    if (++values_ > JsonTree::kValuesMax) {
      return Limit("more than " + std::to_string(JsonTree::kValuesMax) + " values");
    }
    SkipBlanks();
    switch (Peek()) {
      case '"':
        place->kind = JsonTree::Kind::kText;
        return ReadText(&place->text);
      case '[':
      case '{':
        if (open_.size() >= JsonTree::kDepthMax) return Limit("nested too deep");
        place->kind = Take('[') ? JsonTree::Kind::kArray : JsonTree::Kind::kObject;
        if (place->is_object()) ++at_;
        open_.push_back(place);
        return true;
      case 't':
        return ReadWord("true", JsonTree::Kind::kBool, place);
      case 'f':
        return ReadWord("false", JsonTree::Kind::kBool, place);
      case 'n':
        return ReadWord("null", JsonTree::Kind::kNull, place);
      default:
        return ReadNumber(place);
    }
  }

  bool ReadWord(std::string_view word, JsonTree::Kind kind, JsonTree* place) {
    if (text_.substr(at_, word.size()) != word) return Fail("a value must stand here");
    at_ += word.size();
    place->kind = kind;
    place->text = word;
    return true;
  }

  bool SkipDigits() {
    const size_t begin{at_};
    while (IsDigit(Peek())) ++at_;
    return at_ > begin;
  }

  bool ReadNumber(JsonTree* place) {
    const size_t begin{at_};
    (void)Take('-');
    const bool is_zero{Take('0')};
    if (!is_zero && !SkipDigits()) return Fail("a value must stand here");
    if (is_zero && IsDigit(Peek())) return Fail("a number begins with 0");
    place->kind = JsonTree::Kind::kInteger;
    if (Take('.')) {
      place->kind = JsonTree::Kind::kFloat;
      if (!SkipDigits()) return Fail("digits must follow the point");
    }
    if (Take('e') || Take('E')) {
      place->kind = JsonTree::Kind::kFloat;
      if (!Take('+')) (void)Take('-');
      if (!SkipDigits()) return Fail("digits must follow the exponent");
    }
    place->text = text_.substr(begin, at_ - begin);
    return true;
  }

  // REQUIRES: a quote is next.
  bool ReadText(std::string* out) {
    ++at_;
    while (true) {
      const size_t begin{at_};
      while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
             static_cast<uint8_t>(text_[at_]) >= ' ') {
        ++at_;
      }
      out->append(text_.substr(begin, at_ - begin));
      if (at_ == text_.size()) return Fail("the text ends inside a string");
      if (Take('"')) return true;
      if (!Take('\\')) return Fail("a control character stands inside a string");
      if (!ReadEscape(out)) return false;
    }
  }

  bool ReadEscape(std::string* out) {
    constexpr std::string_view kLetters{"\"\\/bfnrt"};
    constexpr std::string_view kMeanings{"\"\\/\b\f\n\r\t"};
    const size_t which{kLetters.find(Peek())};
    if (at_ < text_.size() && which != std::string_view::npos) {
      ++at_;
      out->push_back(kMeanings[which]);
      return true;
    }
    uint32_t unit{0};
    if (!ReadUnit(&unit)) return false;
    if (unit >= 0xdc00 && unit < 0xe000) return Fail("half a surrogate pair");
    if (unit >= 0xd800 && unit < 0xdc00) {
      uint32_t low{0};
      if (!Take('\\')) return Fail("half a surrogate pair");
      if (!ReadUnit(&low)) return false;
      if (low < 0xdc00 || low >= 0xe000) return Fail("half a surrogate pair");
      unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
    }
    AppendUtf8(unit, out);
    return true;
  }

  // uXXXX
  bool ReadUnit(uint32_t* unit) {
    if (!Take('u')) return Fail("an escape that JSON does not know");
    const std::optional<std::string> bytes = client::DecodeHex(text_.substr(at_, 4));
    if (!bytes || bytes->size() != 2) return Fail("\\u must be followed by four digits");
    at_ += 4;
    *unit = static_cast<uint32_t>(static_cast<uint8_t>((*bytes)[0]) << 8 |
                                  static_cast<uint8_t>((*bytes)[1]));
    return true;
  }

  static void AppendUtf8(uint32_t point, std::string* out) {
    const auto put = [out](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
    if (point < 0x80) return put(point);
    if (point < 0x800) {
      put(0xc0 | point >> 6);
    } else {
      if (point < 0x10000) {
        put(0xe0 | point >> 12);
      } else {
        put(0xf0 | point >> 18);
        put(0x80 | (point >> 12 & 0x3f));
      }
      put(0x80 | (point >> 6 & 0x3f));
    }
    put(0x80 | (point & 0x3f));
  }

  std::string_view text_;
  size_t at_{0};
  std::vector<JsonTree*> open_;
  size_t values_{0};
  std::string complaint_;
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
  Parser parser(text);
  if (parser.Parse(&tree)) return tree;
  return Status::Error(ErrorCode::kBadValue, parser.complaint());
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
      if (text == "-0") return "f64";  // no integer has a sign without a value
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
