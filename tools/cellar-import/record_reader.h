// One record of the input after the other, whatever its format: the fields of a CSV or TSV line, or
// the text of a JSON line.
//
// A malformed record is no reason to stop: it is handed out with `error` set, and reading goes on
// behind it. Every record says at which line it begins and at which byte it ends, which is what
// error reports and a resumed import need.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cellar-import/input.h"
#include "cellar/status.h"

namespace cellar::importer {

struct Record {
  uint64_t line{0};                 // of its first byte, counted from 1
  uint64_t end_offset{0};           // of the byte after it
  std::string error;                // what is wrong with it, or empty
  std::vector<std::string> fields;  // a JSON line is one field
};

class RecordReader {
 public:
  // `input` must outlive the reader.
  explicit RecordReader(Input* input) : input_(input) {}
  virtual ~RecordReader() = default;

  // Fills *record, whose memory is used again. False at the end. Only the input's own failure is an
  // error.
  virtual Result<bool> Next(Record* record) = 0;

  // Where reading goes on when an import is resumed.
  void SetLine(uint64_t line) { line_ = line; }
  uint64_t line() const { return line_; }
  // The last record ended with the input, not with a line end: of formats of lines.
  bool ends_in_a_line() const { return ends_in_a_line_; }

 protected:
  Input* input_;
  bool ends_in_a_line_{false};
  uint64_t line_{1};  // of the next unread byte
};

enum class Format : uint8_t { kCsv, kTsv, kJsonLines, kRows, kAvro, kDump };

// RFC 4180: fields between `delimiter`s; a field between quotes may hold delimiters, line breaks
// and doubled quotes. CR LF and LF end a record; a record may be the last one without either. Blank
// lines and a byte order mark at the beginning are skipped. A CR alone outside quotes makes the
// record malformed: a file whose lines end so would be one record.
std::unique_ptr<RecordReader> NewCsvReader(Input* input, char delimiter);
// Fields between tabs, no quotes; \t \n \r \\ stand for the characters that cannot stand there, a
// CR alone too.
std::unique_ptr<RecordReader> NewTsvReader(Input* input);
// A line is a record of one field. Blank lines are skipped; one that is too long is malformed.
std::unique_ptr<RecordReader> NewLineReader(Input* input);

}  // namespace cellar::importer
