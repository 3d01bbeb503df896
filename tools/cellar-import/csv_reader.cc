// Reads CSV as RFC 4180 has it. A record is parsed in the input's window as it stands; if the
// window ends before the record does, more is read and the record is parsed again from its
// beginning (the window doubles, so even a record of many megabytes costs O(n)).
//
// A quote inside an unquoted field is taken as it stands, as most programs write it. Text behind a
// closing quote makes the record malformed; the next one begins after the next line break.
#include <bit>
#include <cstdint>
#include <string_view>

#include "base/coding.h"
#include "base/copy_bytes.h"
#include "cellar-import/record_reader.h"

namespace cellar::importer {
namespace {

constexpr std::string_view kByteOrderMark{"\xef\xbb\xbf"};
constexpr const char* kLoneReturn{
    "a carriage return without a line feed: lines end in LF or CR LF, and in a field it stands "
    "between quotes"};

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
      if (at < text.size() && text[at] == '"') {
        field.clear();
        if (!ParseQuoted(text, &at, &field, &lines)) {
          if (!at_end) return false;
          record->error = "a quote that is never closed";
        }
      } else {
        ParsePlain(text, &at, &field);
        if (field.find('\r') != std::string::npos) record->error = kLoneReturn;
      }
      if (at == text.size() && !at_end) return false;
      more_fields = false;
      if (at == text.size()) break;
      if (text[at] == delimiter_) {
        ++at;
        more_fields = true;
      } else if (!SkipLineBreak(text, &at)) {
        if (text[at] == '\r' && at + 1 == text.size() && !at_end) return false;
        record->error = text[at] == '\r' ? kLoneReturn : "text after a closing quote";
        const size_t line_end{text.find('\n', at)};
        if (line_end == std::string_view::npos && !at_end) return false;
        at = line_end == std::string_view::npos ? text.size() : line_end + 1;
      }
    }
    ends_in_a_line_ = text[at - 1] != '\n';
    if (!ends_in_a_line_) ++lines;
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
    const size_t end{FindEnd(text, *at)};
    size_t field_end{end};
    if (end < text.size() && text[end] == '\n' && end > *at && text[end - 1] == '\r') --field_end;
    // What assign() does, without a call for each of the few bytes that most fields have.
    field->resize(field_end - *at);
    CopyBytes(field->data(), text.data() + *at, field->size());
    *at = field_end;
  }

  // The next delimiter or line feed at or behind `at`; text.size() if there is none.
  size_t FindEnd(std::string_view text, size_t at) const {
    constexpr uint64_t kOnes{0x0101010101010101};
    // Where a byte is zero its highest bit is set: exact up to the first one.
    const auto zeros = [](uint64_t eight) { return (eight - kOnes) & ~eight & kOnes << 7; };
    const uint64_t delimiters{kOnes * static_cast<uint8_t>(delimiter_)};
    for (; at + sizeof(uint64_t) <= text.size(); at += sizeof(uint64_t)) {
      const auto eight = LoadLittleEndian<uint64_t>(text.data() + at);
      const uint64_t found{zeros(eight ^ delimiters) | zeros(eight ^ kOnes * '\n')};
      if (found != 0) return at + static_cast<size_t>(std::countr_zero(found)) / 8;
    }
    while (at < text.size() && text[at] != delimiter_ && text[at] != '\n') ++at;
    return at;
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
