// The replies that are not worth inlining.
#include "resp/reply_writer.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace cellar {

void ReplyWriter::Line(char type, std::string_view text) {
  char* to = buffer_->Reserve(text.size() + 3);
  *to++ = type;
  // A line break in the text would end the reply, and the rest would be read as the next one.
  for (const char c : text) *to++ = (c == '\r' || c == '\n') ? ' ' : c;
  FinishHeader(to);
}

void ReplyWriter::Unsigned(uint64_t value) {
  if (value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    Integer(static_cast<int64_t>(value));
    return;
  }
  char digits[kDecimalBytesMax];
  const char* end = EncodeDecimal(digits, value);
  BigNumber({digits, static_cast<size_t>(end - digits)});
}

void ReplyWriter::BigNumber(std::string_view digits) {
  if (resp3()) {
    Line('(', digits);
  } else {
    Bulk(digits);
  }
}

void ReplyWriter::BulkInteger(int64_t value) {
  char digits[kDecimalBytesMax];
  const char* end = EncodeDecimal(digits, value);
  Bulk({digits, static_cast<size_t>(end - digits)});
}

void ReplyWriter::Double(double value) {
  CELLAR_ASSERT(!std::isnan(value));
  char text[64];
  if (std::isinf(value)) return DoubleText(value > 0 ? "inf" : "-inf");
  // As few digits as read back to the same number; an exponent only outside of 1e-4 to 1e16, as in
  // cells.
  const double magnitude = std::fabs(value);
  const bool plain = magnitude == 0 || (magnitude >= 1e-4 && magnitude < 1e16);
  const auto done = std::to_chars(text, text + sizeof(text), value,
                                  plain ? std::chars_format::fixed : std::chars_format::scientific);
  CELLAR_ASSERT(done.ec == std::errc{});
  DoubleText({text, static_cast<size_t>(done.ptr - text)});
}

void ReplyWriter::DoubleText(std::string_view text) {
  if (resp3()) {
    Line(',', text);
  } else {
    Bulk(text);
  }
}

void ReplyWriter::Verbatim(std::string_view text, std::string_view format) {
  CELLAR_ASSERT(format.size() == 3);
  if (!resp3()) {
    Bulk(text);
    return;
  }
  Header('=', text.size() + 4);
  buffer_->Append(format);
  buffer_->Append(":");
  buffer_->Append(text);
  buffer_->Append("\r\n");
}

ReplyWriter::Mark ReplyWriter::Begin(char type, uint64_t guess) {
  const Mark mark{.position = buffer_->size(), .header_bytes = 0, .type = type};
  Header(type, guess);
  return {.position = mark.position,
          .header_bytes = static_cast<uint32_t>(buffer_->size() - mark.position),
          .type = type};
}

void ReplyWriter::End(const Mark& mark, uint64_t count) {
  char header[kHeaderBytesMax];
  header[0] = mark.type;
  char* end = EncodeDecimal(header + 1, count);
  *end++ = '\r';
  *end++ = '\n';
  buffer_->Replace(mark.position, mark.header_bytes, {header, static_cast<size_t>(end - header)});
}

}  // namespace cellar
