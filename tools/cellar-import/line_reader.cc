// Reads formats in which a line is a record: TSV and JSON lines. The search for the line's end goes
// on where it stopped when more of the input was read.
#include <string>
#include <string_view>
#include <utility>

#include "cellar-import/record_reader.h"

namespace cellar::importer {
namespace {

constexpr std::string_view kByteOrderMark{"\xef\xbb\xbf"};
constexpr const char* kLoneReturn{
    "a carriage return without a line feed: lines end in LF or CR LF, and in a field it is \\r"};

class LineReader : public RecordReader {
 public:
  using RecordReader::RecordReader;

  Result<bool> Next(Record* record) override {
    while (true) {
      size_t searched{0};
      size_t end{std::string_view::npos};
      bool at_end{false};
      while (end == std::string_view::npos && !at_end) {
        end = input_->View().find('\n', searched);
        searched = input_->View().size();
        if (end == std::string_view::npos && searched > Input::kRecordBytesMax) {
          RETURN_IF_ERROR(SkipLine(record));
          return true;
        }
        if (end == std::string_view::npos) {
          ASSIGN_OR_RETURN(const bool more, input_->Fill());
          at_end = !more;
        }
      }
      std::string_view text{input_->View().substr(0, end)};
      const size_t bytes{text.size() + (end == std::string_view::npos ? 0 : 1)};
      if (bytes == 0) return false;
      ends_in_a_line_ = end == std::string_view::npos;
      if (input_->offset() == 0 && text.starts_with(kByteOrderMark)) {
        text.remove_prefix(kByteOrderMark.size());
      }
      if (text.ends_with('\r')) text.remove_suffix(1);
      const bool blank{text.find_first_not_of(" \t") == std::string_view::npos};
      record->line = line_++;
      if (!blank) {
        record->error.clear();
        Split(text, record);
      }
      input_->Consume(bytes);
      record->end_offset = input_->offset();
      if (!blank) return true;
    }
  }

 private:
  // Leaves out a line that is too long, without holding it.
  Status SkipLine(Record* record) {
    record->line = line_++;
    record->error = "a line of more than " + std::to_string(Input::kRecordBytesMax >> 20) + " MiB";
    record->fields.assign(1, std::string());
    while (true) {
      const std::string_view view{input_->View()};
      const size_t end{view.find('\n')};
      input_->Consume(end == std::string_view::npos ? view.size() : end + 1);
      if (end != std::string_view::npos) break;
      ASSIGN_OR_RETURN(const bool more, input_->Fill());
      if (!more) break;
    }
    record->end_offset = input_->offset();
    return Status::Ok();
  }

  virtual void Split(std::string_view text, Record* record) {
    record->fields.resize(1);
    record->fields[0].assign(text);
  }
};

class TsvReader final : public LineReader {
 public:
  using LineReader::LineReader;

 private:
  void Split(std::string_view text, Record* record) override {
    if (text.find('\r') != std::string_view::npos) record->error = kLoneReturn;
    size_t field_count{0};
    while (true) {
      const size_t end{text.find('\t')};
      if (record->fields.size() <= field_count) record->fields.emplace_back();
      Unescape(text.substr(0, end), &record->fields[field_count++]);
      if (end == std::string_view::npos) break;
      text.remove_prefix(end + 1);
    }
    record->fields.resize(field_count);
  }

  // An unknown escape stands for itself.
  static void Unescape(std::string_view text, std::string* field) {
    field->clear();
    while (true) {
      const size_t backslash{text.find('\\')};
      field->append(text.substr(0, backslash));
      if (backslash == std::string_view::npos) return;
      const char next{backslash + 1 < text.size() ? text[backslash + 1] : '\0'};
      constexpr std::string_view kEscapes{"tnr\\"};
      constexpr std::string_view kMeanings{"\t\n\r\\"};
      const size_t which{next == '\0' ? std::string_view::npos : kEscapes.find(next)};
      if (which == std::string_view::npos) {
        field->push_back('\\');
        text.remove_prefix(backslash + 1);
      } else {
        field->push_back(kMeanings[which]);
        text.remove_prefix(backslash + 2);
      }
    }
  }
};

}  // namespace

std::unique_ptr<RecordReader> NewTsvReader(Input* input) {
  return std::make_unique<TsvReader>(input);
}

std::unique_ptr<RecordReader> NewLineReader(Input* input) {
  return std::make_unique<LineReader>(input);
}

}  // namespace cellar::importer
