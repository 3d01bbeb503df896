// See reply_scanner.h.
#include "resp/reply_scanner.h"

#include <algorithm>

#include "base/text/number.h"

namespace cellar {

size_t ReplyScanner::Take(std::string_view bytes) {
  size_t taken = 0;
  while (values_left_ > 0 && !failed_ && taken < bytes.size()) {
    const std::string_view rest = bytes.substr(taken);
    if (payload_left_ > 0) {
      const auto part = static_cast<size_t>(std::min<uint64_t>(payload_left_, rest.size()));
      payload_left_ -= part;
      taken += part;
      if (payload_left_ == 0) --values_left_;
      continue;
    }
    const size_t end = rest.find('\n');
    const size_t part = end == std::string_view::npos ? rest.size() : end + 1;
    taken += part;
    if (end == std::string_view::npos) {
      // Of a line without a count no more than its first byte is of interest.
      line_.append(rest.substr(0, kHeaderBytesMax - std::min(line_.size(), kHeaderBytesMax)));
    } else if (line_.empty()) [[likely]] {
      TakeLine(rest.substr(0, end));
    } else {
      line_.append(rest.substr(0, std::min(end, kHeaderBytesMax)));
      TakeLine(line_);
      line_.clear();
    }
  }
  return taken;
}

// Each aggregate has more values to be passed by. The line is without its last byte.
void ReplyScanner::TakeLine(std::string_view line) {
  if (line.size() < 2) {
    failed_ = true;
    return;
  }
  const char type = line.front();
  std::string_view digits = line.substr(1);
  if (digits.ends_with('\r')) digits.remove_suffix(1);
  const bool is_bulk = type == '$' || type == '=' || type == '!';
  const bool is_aggregate = type == '*' || type == '~' || type == '>' || type == '%';
  if ((!is_bulk && !is_aggregate) || digits == "-1") {
    --values_left_;
    return;
  }
  uint64_t count = 0;
  failed_ = ParseUint64(digits, &count) != NumberError::kNone || count > UINT32_MAX;
  if (failed_) return;
  if (is_bulk) {
    payload_left_ = count + 2;
  } else {
    values_left_ = values_left_ - 1 + (type == '%' ? 2 * count : count);
  }
}

}  // namespace cellar
