// A JSON text of any size, a piece at a time: where a value begins and ends is found without
// holding what is around it. Whether a value is well formed inside is for its parser to say.
//
// A failure of a cursor is one of the input's structure, behind which nothing can be told; its text
// names the input, the line and the byte.
#pragma once

#include <cstdint>
#include <string>

#include "cellar-import/input.h"
#include "cellar/status.h"

namespace cellar::importer {

class JsonCursor {
 public:
  // `input` must outlive the cursor. `path` is what errors call it.
  JsonCursor(Input* input, std::string path) : input_(input), path_(std::move(path)) {}

  // The next byte that is not blank, which stays; NUL at the end.
  Result<char> Peek();
  // Takes the byte that Peek() gave, which must be `expected`.
  Status Take(char expected);
  // Takes the text of the value that comes next. TOOLARGE if it is longer than 256 MiB.
  Status ReadValue(std::string* text);
  Status SkipValue();
  // Takes a name and its colon: "name" :
  Status ReadName(std::string* name);
  // Inside an array or object: takes a comma unless `*is_first`, which becomes false. False at
  // `close`, which is taken.
  Result<bool> Next(char close, bool* is_first);

  uint64_t line() const { return line_; }
  uint64_t offset() const { return input_->offset(); }
  Status Error(const std::string& text) const;

 private:
  Status Scan(std::string* text);
  void Consume(size_t bytes);

  Input* input_;
  std::string path_;
  uint64_t line_{1};
};

}  // namespace cellar::importer
