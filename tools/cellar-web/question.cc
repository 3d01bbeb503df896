// See question.h.
#include "cellar-web/question.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace cellar::web {
namespace {

constexpr char kRowsUsual[]{"50"};
constexpr char kColumnsOfRows[]{"20"};
constexpr char kColumnsUsual[]{"200"};
constexpr char kVersionsUsual[]{"5"};
constexpr char kRangesUsual[]{"64"};
constexpr uint64_t kNumberMax{1000};

// Reads parameters; the first that is wrong is remembered.
class Reader {
 public:
  explicit Reader(const Parameters& parameters) : parameters_(parameters) {}

  std::optional<std::string> Optional(const std::string& name) {
    if (auto plain = parameters_(name)) return plain;
    const auto encoded = parameters_(name + "64");
    if (!encoded) return std::nullopt;
    auto bytes = DecodeBase64(*encoded);
    if (!bytes) Complain(name + "64 is not base64");
    return bytes;
  }
  std::string Text(const std::string& name) {
    auto value = Optional(name);
    if (!value) Complain("the parameter " + name + " is missing");
    return value.value_or(std::string());
  }
  std::string Number(const std::string& name, const char* usual) {
    const auto value = parameters_(name);
    if (!value) return usual;
    const bool digits =
        !value->empty() && value->size() <= 4 &&
        std::all_of(value->begin(), value->end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!digits || std::stoul(*value) < 1 || std::stoul(*value) > kNumberMax) {
      Complain("the parameter " + name + " is not a number from 1 to 1000");
    }
    return *value;
  }
  Result<Question> End(std::vector<std::string> words, std::string keyspace = "0") {
    if (!mistake_.empty()) return Status::Error(ErrorCode::kErr, mistake_);
    return Question{std::move(words), std::move(keyspace)};
  }

 private:
  void Complain(std::string mistake) {
    if (mistake_.empty()) mistake_ = std::move(mistake);
  }

  const Parameters& parameters_;
  std::string mistake_;
};

std::vector<std::string> Rows(Reader* reader) {
  std::vector<std::string> words{"CSCAN", reader->Text("table"),
                                 reader->Optional("cursor").value_or("0")};
  if (const auto prefix = reader->Optional("prefix"); prefix && !prefix->empty()) {
    words.insert(words.end(), {"PREFIX", *prefix});
  }
  words.insert(words.end(),
               {"COUNT", reader->Number("count", kRowsUsual), "PERROW", kColumnsOfRows, "WITHTS"});
  return words;
}

std::vector<std::string> Row(Reader* reader) {
  return {"CROW",
          reader->Text("table"),
          reader->Text("row"),
          "VERSIONS",
          reader->Number("versions", kVersionsUsual),
          "PERROW",
          reader->Number("columns", kColumnsUsual),
          "WITHTS"};
}

}  // namespace

Result<Question> QuestionOf(std::string_view path, const Parameters& parameters) {
  Reader reader(parameters);
  if (path == "tables") return reader.End({"TABLE", "LIST"}, reader.Text("keyspace"));
  if (path == "keyspaces") return reader.End({"KEYSPACE", "LIST"});
  if (path == "table") return reader.End({"TABLE", "INFO", reader.Text("table")});
  if (path == "definition") return reader.End({"TABLE", "SHOW", reader.Text("table")});
  if (path == "family")
    return reader.End({"FAMILY", "INFO", reader.Text("table"), reader.Text("family")});
  if (path == "indexes") return reader.End({"INDEX", "LIST", reader.Text("table")});
  if (path == "rows") return reader.End(Rows(&reader));
  if (path == "row") return reader.End(Row(&reader));
  if (path == "info") return reader.End({"INFO", "everything"});
  if (path == "slowlog") return reader.End({"SLOWLOG", "GET", "50"});
  if (path == "heat")
    return reader.End(
        {"HEAT", reader.Text("table"), "RANGES", reader.Number("ranges", kRangesUsual)});
  if (path == "role") return reader.End({"ROLE"});
  return Status::Error(ErrorCode::kErr, "there is no such question");
}

std::optional<std::string> DecodeBase64(std::string_view text) {
  while (text.ends_with('=')) text.remove_suffix(1);
  if (text.size() % 4 == 1) return std::nullopt;
  std::string bytes;
  uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    uint32_t digit = 0;
    if (c >= 'A' && c <= 'Z') {
      digit = static_cast<uint32_t>(c - 'A');
    } else if (c >= 'a' && c <= 'z') {
      digit = static_cast<uint32_t>(c - 'a') + 26;
    } else if (c >= '0' && c <= '9') {
      digit = static_cast<uint32_t>(c - '0') + 52;
    } else if (c == '+' || c == '-') {
      digit = 62;
    } else if (c == '/' || c == '_') {
      digit = 63;
    } else {
      return std::nullopt;
    }
    bits = bits << 6 | digit;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes.push_back(static_cast<char>(bits >> held & 0xff));
  }
  return bytes;
}

}  // namespace cellar::web
