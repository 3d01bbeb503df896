// See export_marks.h.
#include "cellar-import/export_marks.h"

#include <string>
#include <utility>

#include "cellar-import/json_tree.h"
#include "resp/decimal.h"

namespace cellar::importer {
namespace {

constexpr std::string_view kBegin{R"({"begin":)"};
constexpr std::string_view kSchema{R"({"schema":)"};
constexpr std::string_view kEnd{R"({"end":)"};

}  // namespace

void ExportMarks::LookAtBeginning(std::string_view input) { is_open_ = input.starts_with(kBegin); }

Result<bool> ExportMarks::Take(std::string_view line) {
  const bool is_first = std::exchange(is_first_, false);
  if (line.starts_with(kBegin)) {
    if (is_open_ && is_counting_ && !is_first) {
      return Status::Error(ErrorCode::kErr,
                           "an export begins before the one in front of it has ended: that one was "
                           "cut");
    }
    is_open_ = true;
    is_counting_ = true;
    has_ended_ = false;
    lines_ = 0;
    return true;
  }
  if (line.starts_with(kEnd)) {
    RETURN_IF_ERROR(End(line));
    return true;
  }
  has_ended_ = false;
  if (!line.starts_with(kSchema)) ++lines_;
  return false;
}

Status ExportMarks::End(std::string_view line) {
  int64_t lines{-1};
  const Result<JsonTree> tree = JsonTree::Parse(line);
  const JsonTree* end = tree.ok() ? tree->Find("end") : nullptr;
  const JsonTree* count = end != nullptr ? end->Find("lines") : nullptr;
  if (count == nullptr || !ParseStrictInt64(count->text, &lines)) {
    return Status::Error(ErrorCode::kErr, "the export's end mark cannot be read: it was cut");
  }
  if (is_open_ && is_counting_ && std::cmp_not_equal(lines, lines_)) {
    return Status::Error(ErrorCode::kErr, "the export has " + std::to_string(lines_) +
                                              " lines of rows, and its end mark says " +
                                              std::to_string(lines) + ": some are missing");
  }
  is_open_ = false;
  has_ended_ = true;
  is_counting_ = true;
  lines_ = 0;
  return Status::Ok();
}

ExportMarks::Verdict ExportMarks::verdict() const {
  if (has_ended_) return Verdict::kWhole;
  return is_open_ ? Verdict::kCut : Verdict::kUnmarked;
}

}  // namespace cellar::importer
