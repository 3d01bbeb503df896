// See row_writer.h.
#include "cellar-export/row_writer.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/text/quote.h"
#include "base/text/utf8.h"
#include "client/json_text.h"

namespace cellar::exporter {
namespace {

using client::AppendJsonString;
using client::AppendJsonText;

constexpr size_t kComplaintsNamed{10};

bool IsTextType(std::string_view type) {
  return type == "bytes" || type == "string" || type == "uuid" || type == "hll";
}
bool IsInfinite(std::string_view value) { return value.ends_with("inf"); }
bool IsFloatType(std::string_view type) { return type == "f32" || type == "f64"; }

// The value of a cell that is no text, as JSON.
void AppendJsonNumber(const Cell& cell, std::string* out) {
  if (cell.type == "bool") {
    out->append(cell.value == "1" ? "true" : "false");
  } else if (IsFloatType(cell.type) && IsInfinite(cell.value)) {
    AppendJsonString(cell.value, out);
  } else {
    out->append(cell.value);
    // So that it is read back as a float: JSON has no integer -0.
    if (IsFloatType(cell.type) && cell.value.find_first_of(".e") == std::string_view::npos) {
      out->append(".0");
    }
  }
}

// --- rows

class RowsWriter final : public RowWriter {
 public:
  explicit RowsWriter(std::vector<std::string> schema) : schema_(std::move(schema)) {}

  void WriteHeader(std::string* out) override {
    out->append("{\"begin\":\"rows\"}\n");
    if (schema_.empty()) return;
    out->append("{\"schema\":[");
    for (size_t i = 0; i < schema_.size(); ++i) {
      if (i > 0) out->push_back(',');
      AppendJsonText(schema_[i], out);
    }
    out->append("]}\n");
  }

  void BeginRow(std::string_view row, std::string* out) override {
    row_ = row;
    BeginLine(out);
  }

  void AddCell(const Cell& cell, std::string* out) override {
    if (cell.type != type_) {
      type_ = cell.type;
      is_text_ = IsTextType(type_);
      is_verbatim_ = !is_text_ && !IsFloatType(type_) && type_ != "bool";
    }
    if (line_bytes_ >= kLineBytes) {
      EndRow(out);
      BeginLine(out);
    }
    const size_t bytes_before = out->size();
    const bool is_plain = (is_text_ ? client::IsPlainJson(cell.value) : is_verbatim_) &&
                          client::IsPlainJson(cell.column);
    if (is_plain) [[likely]] {
      AddPlainCell(cell, out);
    } else {
      AddAnyCell(cell, out);
    }
    is_first_ = false;
    line_bytes_ += out->size() - bytes_before;
  }

  void EndRow(std::string* out) override {
    out->append("]}\n");
    ++lines_;
  }

  void WriteEnd(std::string* out) override {
    out->append("{\"end\":{\"lines\":").append(std::to_string(lines_)).append("}}\n");
  }

  std::string marker() const override { return std::to_string(lines_); }
  // Of an export that was begun before lines were counted it is empty: nobody will compare.
  Status GoOn(const std::string& marker) override {
    lines_ = std::strtoull(marker.c_str(), nullptr, 10);
    return Status::Ok();
  }

 private:
  void BeginLine(std::string* out) {
    const size_t bytes_before = out->size();
    out->append("{\"row\":");
    AppendJsonText(row_, out);
    out->append(",\"cells\":[");
    line_bytes_ = out->size() - bytes_before;
    is_first_ = true;
  }

  void AddAnyCell(const Cell& cell, std::string* out) const {
    out->append(is_first_ ? "[" : ",[");
    AppendJsonText(cell.column, out);
    out->append(",").append(cell.timestamp).append(",\"").append(type_).append("\",");
    if (is_text_) {
      AppendJsonText(cell.value, out);
    } else {
      AppendJsonNumber(cell, out);
    }
    out->append(",").append(cell.expires_micros ? cell.expires : kNull).append("]");
  }

  // The same where texts are JSON but for the quotes. Room is made once: an append for each part
  // took half of the export's time.
  void AddPlainCell(const Cell& cell, std::string* out) const {
    const std::string_view expires = cell.expires_micros ? cell.expires : kNull;
    const size_t begin = out->size();
    out->resize(begin + cell.column.size() + cell.timestamp.size() + type_.size() +
                cell.value.size() + expires.size() + kMarksMax);
    char* to = out->data() + begin;
    const auto put = [&to](std::string_view text) {
      std::memcpy(to, text.data(), text.size());
      to += text.size();
    };
    put(is_first_ ? "[\"" : ",[\"");
    put(cell.column);
    put("\",");
    put(cell.timestamp);
    put(",\"");
    put(type_);
    put("\",");
    if (is_text_) put("\"");
    put(cell.value);
    if (is_text_) put("\"");
    put(",");
    put(expires);
    put("]");
    out->resize(static_cast<size_t>(to - out->data()));
  }

  static constexpr std::string_view kNull{"null"};
  static constexpr size_t kMarksMax{16};  // brackets, quotes, commas of a cell
  static constexpr size_t kLineBytes{4 << 20};

  std::vector<std::string> schema_;
  std::string row_;
  size_t line_bytes_{0};
  uint64_t lines_{0};
  bool is_first_{true};
  std::string type_;  // of the last cell, and what that means
  bool is_text_{false};
  bool is_verbatim_{false};  // its text is JSON: an integer
};

// --- jsonl

class JsonLinesWriter final : public RowWriter {
 public:
  JsonLinesWriter(std::string key_name, Complaints* complaints)
      : key_name_(std::move(key_name)), complaints_(complaints) {}

  void WriteHeader(std::string*) override {}

  void BeginRow(std::string_view row, std::string* out) override {
    row_ = row;
    begin_ = out->size();
    family_.clear();
    in_family_ = false;
    is_unsaid_ = !IsValidUtf8(row);
    if (is_unsaid_) {
      complaints_->Add(row, "the row key is not UTF-8: the row is left out");
      return;
    }
    out->push_back('{');
    AppendJsonString(key_name_, out);
    out->push_back(':');
    AppendJsonString(row, out);
  }

  void AddCell(const Cell& cell, std::string* out) override {
    if (is_unsaid_) return;
    const size_t colon = cell.column.find(':');
    const std::string_view family = cell.column.substr(0, colon);
    const std::string_view qualifier = cell.column.substr(colon + 1);
    if (!IsValidUtf8(qualifier) || (IsTextType(cell.type) && !IsValidUtf8(cell.value))) {
      Complain(cell.column, "is not UTF-8");
      return;
    }
    if (family == key_name_) {
      Complain(cell.column, "has the name of the row key (--key-name)");
      return;
    }
    if (!in_family_ || family != family_) {
      if (in_family_) out->push_back('}');
      out->push_back(',');
      AppendJsonString(family, out);
      out->append(":{");
      family_ = family;
      in_family_ = true;
    } else {
      out->push_back(',');
    }
    AppendJsonString(qualifier, out);
    out->push_back(':');
    if (IsTextType(cell.type)) {
      AppendJsonString(cell.value, out);
      return;
    }
    AppendJsonNumber(cell, out);
  }

  void EndRow(std::string* out) override {
    if (is_unsaid_) return;
    out->append(in_family_ ? "}}\n" : "}\n");
  }

 private:
  void Complain(std::string_view column, std::string_view why) {
    complaints_->Add(row_, Quote(column) + " " + std::string(why) + ": the cell is left out");
  }

  std::string key_name_;
  Complaints* complaints_;
  std::string row_;
  size_t begin_{0};
  std::string family_;
  bool in_family_{false};
  bool is_unsaid_{false};
};

// --- csv, tsv

class FieldsWriter final : public RowWriter {
 public:
  FieldsWriter(Format format, std::string key_name, std::vector<Field> fields, OtherColumns others,
               Complaints* complaints)
      : is_csv_(format == Format::kCsv),
        key_name_(std::move(key_name)),
        fields_(std::move(fields)),
        others_(others),
        complaints_(complaints) {
    for (size_t i = 0; i < fields_.size(); ++i) places_[fields_[i].column] = i;
    values_.resize(fields_.size());
  }

  void WriteHeader(std::string* out) override {
    Append(key_name_, out);
    for (const Field& field : fields_) {
      out->push_back(Delimiter());
      Append(field.column + (field.type.empty() ? "" : ":" + field.type), out);
    }
    out->push_back('\n');
  }

  void BeginRow(std::string_view row, std::string*) override {
    row_ = row;
    for (std::string& value : values_) value.clear();
    cells_ = 0;
  }

  void AddCell(const Cell& cell, std::string*) override {
    const auto place = places_.find(cell.column);
    if (place == places_.end()) {
      if (others_ == OtherColumns::kComplain) Complain(cell.column, "is no field of the file");
      return;
    }
    const std::string& type = fields_[place->second].type;
    if (!type.empty() && cell.type != type) {
      Complain(cell.column, "is " + std::string(cell.type) + ", not " + type);
      return;
    }
    if (cell.value.empty()) {
      complaints_->Add(row_, Quote(cell.column) + " is empty, which reads as no cell");
      return;
    }
    if (cell.type == "bool") {
      values_[place->second] = cell.value == "1" ? "true" : "false";
    } else {
      values_[place->second] = cell.value;
    }
    ++cells_;
  }

  void EndRow(std::string* out) override {
    if (cells_ == 0) return;  // all of them were complained of
    Append(row_, out);
    for (const std::string& value : values_) {
      out->push_back(Delimiter());
      Append(value, out);
    }
    out->push_back('\n');
  }

 private:
  char Delimiter() const { return is_csv_ ? ',' : '\t'; }

  void Complain(std::string_view column, const std::string& why) {
    complaints_->Add(row_, Quote(column) + " " + why + ": the cell is left out");
  }

  // RFC 4180; or with \t \n \r \\ as cellar-import reads them.
  void Append(std::string_view text, std::string* out) const {
    if (is_csv_) {
      if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
        out->append(text);
        return;
      }
      out->push_back('"');
      for (const char c : text) {
        if (c == '"') out->push_back('"');
        out->push_back(c);
      }
      out->push_back('"');
      return;
    }
    for (const char c : text) {
      switch (c) {
        case '\t':
          out->append("\\t");
          break;
        case '\n':
          out->append("\\n");
          break;
        case '\r':
          out->append("\\r");
          break;
        case '\\':
          out->append("\\\\");
          break;
        default:
          out->push_back(c);
      }
    }
  }

  bool is_csv_;
  std::string key_name_;
  std::vector<Field> fields_;
  OtherColumns others_;
  Complaints* complaints_;
  std::map<std::string, size_t, std::less<>> places_;
  std::string row_;
  std::vector<std::string> values_;
  size_t cells_{0};
};

}  // namespace

std::unique_ptr<RowWriter> NewRowsWriter(std::vector<std::string> schema) {
  return std::make_unique<RowsWriter>(std::move(schema));
}

std::unique_ptr<RowWriter> NewJsonLinesWriter(std::string key_name, Complaints* complaints) {
  return std::make_unique<JsonLinesWriter>(std::move(key_name), complaints);
}

std::unique_ptr<RowWriter> NewFieldsWriter(Format format, std::string key_name,
                                           std::vector<Field> fields, OtherColumns others,
                                           Complaints* complaints) {
  return std::make_unique<FieldsWriter>(format, std::move(key_name), std::move(fields), others,
                                        complaints);
}

void Complaints::Add(std::string_view row, std::string_view why) {
  const std::lock_guard lock(mutex_);
  ++count_;
  if (first_.size() < kComplaintsNamed) {
    first_.push_back("row " + Quote(row) + ": " + std::string(why));
  }
}

std::string Complaints::Summary() const {
  std::string text;
  for (const std::string& line : first_) text += "cellar-export: " + line + "\n";
  if (count_ > first_.size()) {
    text += "cellar-export: and " + std::to_string(count_ - first_.size()) + " more\n";
  }
  return text;
}

}  // namespace cellar::exporter
