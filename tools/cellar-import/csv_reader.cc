// Reads CSV as RFC 4180 has it. A record is parsed in the input's window as it stands; if the
// window ends before the record does, more is read and the record is parsed again from its
// beginning (the window doubles, so even a record of many megabytes costs O(n)).
//
// A quote inside an unquoted field is taken as it stands, as most programs write it. Text behind a
// closing quote makes the record malformed; the next one begins after the next line break.
#include <cstring>
#include <string_view>

#include "cellar-import/record_reader.h"

namespace cellar::importer {
namespace {

constexpr std::string_view kByteOrderMark{"\xef\xbb\xbf"};

class CsvReader final : public RecordReader {
 public:
  CsvReader(Input* input, char delimiter) : RecordReader(input), delimiter_(delimiter) {}

  Result<bool> Next(Record* record) override {
    bool at_end{false};
    while (true) {
      const std::string_view text{input_->View()};
      size_t begin{0};
      if (input_->offset() == 0) {
        if (text.size() < kByteOrderMark.size() && !at_end) {
          ASSIGN_OR_RETURN(const bool more, input_->Fill());
          at_end = !more;
          continue;
        }
        if (text.starts_with(kByteOrderMark)) begin = kByteOrderMark.size();
      }
      begin = SkipBlankLines(text, begin);
      if (begin > 0 && begin == text.size() && !at_end) {
        input_->Consume(begin);
        continue;
      }
      if (begin < text.size() && Parse(text, begin, at_end, record)) return true;
      if (at_end) {
        input_->Consume(text.size());
        return false;
      }
      // Lines skipped so far are counted again with the record, from its first byte on.
      line_ -= lines_skipped_;
      lines_skipped_ = 0;
      ASSIGN_OR_RETURN(const bool more, input_->Fill());
      at_end = !more;
    }
  }

 private:
  // The position after the line breaks at `at`.
  size_t SkipBlankLines(std::string_view text, size_t at) {
    lines_skipped_ = 0;
    while (at < text.size()) {
      if (text[at] == '\n') {
        ++at;
      } else if (text[at] == '\r' && at + 1 < text.size() && text[at + 1] == '\n') {
        at += 2;
      } else {
        break;
      }
      ++lines_skipped_;
    }
    line_ += lines_skipped_;
    return at;
  }

  // Parses the record at `begin`; false if the window may end before it does.
  bool Parse(std::string_view text, size_t begin, bool at_end, Record* record) {
    record->error.clear();
    size_t field_count{0};
    uint64_t lines{0};
    size_t at{begin};
    bool more_fields{true};
    while (more_fields) {
      if (record->fields.size() <= field_count) record->fields.emplace_back();
      std::string& field = record->fields[field_count++];
      field.clear();
      if (at < text.size() && text[at] == '"') {
        if (!ParseQuoted(text, &at, &field, &lines)) {
          if (!at_end) return false;
          record->error = "a quote that is never closed";
        }
      } else {
        ParsePlain(text, &at, &field);
      }
      if (at == text.size() && !at_end) return false;
      more_fields = false;
      if (at == text.size()) break;
      if (text[at] == delimiter_) {
        ++at;
        more_fields = true;
      } else if (!SkipLineBreak(text, &at)) {
        if (text[at] == '\r' && at + 1 == text.size() && !at_end) return false;
        record->error = "text after a closing quote";
        const size_t line_end{text.find('\n', at)};
        if (line_end == std::string_view::npos && !at_end) return false;
        at = line_end == std::string_view::npos ? text.size() : line_end + 1;
      }
    }
    if (text[at - 1] == '\n') ++lines;
    record->fields.resize(field_count);
    record->line = line_;
    line_ += lines;
    input_->Consume(at);
    record->end_offset = input_->offset();
    return true;
  }

  // From the opening quote past the closing one; false if there is none in the window.
  static bool ParseQuoted(std::string_view text, size_t* at, std::string* field, uint64_t* lines) {
    size_t from{*at + 1};
    while (true) {
      const size_t quote{text.find('"', from)};
      const std::string_view part{text.substr(from, quote - from)};
      field->append(part);
      for (const char c : part) *lines += c == '\n' ? 1 : 0;
      if (quote == std::string_view::npos || quote + 1 == text.size()) {
        *at = text.size();
        return quote != std::string_view::npos;
      }
      if (text[quote + 1] != '"') {
        *at = quote + 1;
        return true;
      }
      field->push_back('"');
      from = quote + 2;
    }
  }

  // Up to the next delimiter or line break.
  void ParsePlain(std::string_view text, size_t* at, std::string* field) const {
    size_t end{*at};
    while (end < text.size() && text[end] != delimiter_ && text[end] != '\n') ++end;
    size_t field_end{end};
    if (end < text.size() && text[end] == '\n' && end > *at && text[end - 1] == '\r') --field_end;
    field->assign(text.substr(*at, field_end - *at));
    *at = field_end;
  }

  static bool SkipLineBreak(std::string_view text, size_t* at) {
    if (text[*at] == '\n') {
      *at += 1;
      return true;
    }
    if (text[*at] == '\r' && *at + 1 < text.size() && text[*at + 1] == '\n') {
      *at += 2;
      return true;
    }
    return false;
  }

  char delimiter_;
  uint64_t lines_skipped_{0};
};

}  // namespace

std::unique_ptr<RecordReader> NewCsvReader(Input* input, char delimiter) {
  return std::make_unique<CsvReader>(input, delimiter);
}

}  // namespace cellar::importer
