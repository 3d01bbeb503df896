// Whether a file of `cellar-export --format rows` is whole. Such a file begins and ends in a line
// that is no row:
//
//   {"begin":"rows"}
//   {"schema":[...]}                   perhaps
//   {"row":"k","cells":[...]}          lines of rows
//   {"end":{"lines":1}}                how many those were
//
// Files behind each other are one, as `cat` makes one of the parts of --split. Exports of before
// the marks have none, so what is missing in them cannot be told.
#pragma once

#include <cstdint>
#include <string_view>

#include "cellar/status.h"

namespace cellar::importer {

class ExportMarks {
 public:
  enum class Verdict : uint8_t {
    kWhole,
    kUnmarked,  // without marks
    kCut,       // the last part has begun, and not ended
  };

  // What the input begins with.
  void LookAtBeginning(std::string_view input);
  // The lines behind do not begin where a part does, so they cannot be counted.
  void BeginInside() { is_counting_ = false; }
  // Of each line in turn: true if it is a mark, and no row. ERR if it says that there were other
  // lines than there are.
  Result<bool> Take(std::string_view line);
  // At the end of the input.
  Verdict verdict() const;

 private:
  Status End(std::string_view line);

  bool is_open_{false};    // a mark has begun what was not ended
  bool has_ended_{false};  // the last line was the mark of an end
  bool is_counting_{true};
  bool is_first_{true};  // no line was taken yet
  uint64_t lines_{0};    // of rows in this part
};

}  // namespace cellar::importer
