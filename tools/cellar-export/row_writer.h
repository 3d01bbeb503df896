// A format: rows in, bytes out.
//
//   rows    {"begin":"rows"}                                  every version, typed
//           {"row":"k","cells":[["f:q",1795402800000000,"i64",5,null],...]}
//           {"end":{"lines":1}}
//   jsonl   {"key":"k","f":{"q":5}}                           what cellar-import reads
//   csv     key,f:q:i64                                       likewise; a line a row
//   tsv     the same between tabs
//   avro    BigtableRow of Google's Bigtable templates        every version
//
// In `rows` a text is a JSON string if it is valid UTF-8, else {"b64":"..."}; integers and finite
// floats are numbers, "inf" and "-inf" strings; a cell ends in its expiry in microseconds or null.
// A row of many bytes is several lines of one key, so that whoever reads it need not hold it. The
// last line says how many lines of rows there are: without it the file was cut.
// avro has no place for types and expiries: a value is its text (of an hll its state), and a cell
// that expires is written, and complained of. In the others what the format has no way to say is
// told to the Complaints, and left out.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "cellar-export/options.h"
#include "cellar-export/source.h"

namespace cellar::exporter {

// Rows that could not be said in the format: the first ones by name, and how many. Any thread.
class Complaints {
 public:
  void Add(std::string_view row, std::string_view why);
  uint64_t count() const { return count_; }
  // A line each; empty if there are none.
  std::string Summary() const;

 private:
  std::mutex mutex_;
  std::vector<std::string> first_;
  uint64_t count_{0};
};

class RowWriter {
 public:
  virtual ~RowWriter() = default;
  // Once, before all rows of a file.
  virtual void WriteHeader(std::string* out) = 0;
  virtual void BeginRow(std::string_view row, std::string* out) = 0;
  virtual void AddCell(const Cell& cell, std::string* out) = 0;
  virtual void EndRow(std::string* out) = 0;
  // Once, behind all rows of a file.
  virtual void WriteEnd(std::string*) {}
  // After it, what is written so far can be read, and more can follow.
  virtual void EndBlock(std::string*) {}
  // What another run needs to go on with the file, in place of WriteHeader(): as the file is where
  // a row ends.
  virtual std::string marker() const { return {}; }
  virtual Status GoOn(const std::string&) { return Status::Ok(); }
};

// A column of csv and tsv, and the type that its header says.
struct Field {
  std::string column;
  std::string type;
};

// `schema`: the commands that make the table; empty: not wanted. `complaints` must outlive the
// writer.
std::unique_ptr<RowWriter> NewRowsWriter(std::vector<std::string> schema);
std::unique_ptr<RowWriter> NewJsonLinesWriter(std::string key_name, Complaints* complaints);
// Columns that are no field are complained of, or else left out silently.
enum class OtherColumns : uint8_t { kComplain, kLeaveOut };
std::unique_ptr<RowWriter> NewFieldsWriter(Format format, std::string key_name,
                                           std::vector<Field> fields, OtherColumns others,
                                           Complaints* complaints);
// Without `deflate` blocks are not compressed.
std::unique_ptr<RowWriter> NewAvroWriter(std::vector<std::string> schema, bool deflate,
                                         Complaints* complaints);

}  // namespace cellar::exporter
