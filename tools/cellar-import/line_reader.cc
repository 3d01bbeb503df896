// Reads formats in which a line is a record: TSV and JSON lines. The search for the line's end goes
// on where it stopped when more of the input was read.
#include <string_view>
#include <utility>

#include "cellar-import/record_reader.h"

namespace cellar::importer {
namespace {

constexpr std::string_view kByteOrderMark{"\xef\xbb\xbf"};

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
        if (end == std::string_view::npos) {
          ASSIGN_OR_RETURN(const bool more, input_->Fill());
          at_end = !more;
        }
      }
      std::string_view text{input_->View().substr(0, end)};
      const size_t bytes{text.size() + (end == std::string_view::npos ? 0 : 1)};
      if (bytes == 0) return false;
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
