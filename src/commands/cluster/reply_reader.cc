// See reply_reader.h.
#include "commands/cluster/reply_reader.h"

#include "base/text/number.h"
#include "commands/arguments/feed_arguments.h"
#include "engine/feeds/merged_id.h"
#include "resp/reply_scanner.h"

namespace cellar {

bool ReplyReader::Line(char* type, std::string_view* rest) {
  const size_t end = bytes_.find("\r\n", at_);
  if (end == std::string_view::npos || end == at_) return false;
  *type = bytes_[at_];
  *rest = bytes_.substr(at_ + 1, end - at_ - 1);
  at_ = end + 2;
  return true;
}

bool ReplyReader::Header(char type, uint64_t* count) {
  char found = 0;
  std::string_view digits;
  return Line(&found, &digits) && found == type && ParseUint64(digits, count) == NumberError::kNone;
}

bool ReplyReader::Map(uint64_t* pairs) {
  if (at_ < bytes_.size() && bytes_[at_] == '%') return Header('%', pairs);
  if (!Header('*', pairs) || *pairs % 2 != 0) return false;
  *pairs /= 2;
  return true;
}

bool ReplyReader::Bulk(std::string_view* text) {
  uint64_t size = 0;
  if (!Header('$', &size) || bytes_.size() - at_ < 2 || size > bytes_.size() - at_ - 2)
    return false;
  *text = bytes_.substr(at_, size);
  at_ += size + 2;
  return true;
}

bool ReplyReader::Unsigned(uint64_t* number) {
  if (at_ >= bytes_.size()) return false;
  std::string_view digits;
  if (bytes_[at_] == '$') {
    if (!Bulk(&digits)) return false;
  } else {
    char type = 0;
    if (!Line(&type, &digits) || (type != ':' && type != '(')) return false;
  }
  return ParseUint64(digits, number) == NumberError::kNone;
}

bool ReplyReader::Skip() {
  ReplyScanner scanner;
  at_ += scanner.Take(bytes_.substr(at_));
  return scanner.done() && !scanner.failed();
}

std::string_view ValueOf(const ReplyFields& fields, std::string_view name) {
  for (const auto& [field, value] : fields)
    if (field == name) return value;
  return {};
}

bool ReadReplyFields(std::string_view reply, ReplyFields* fields) {
  ReplyReader reader(reply);
  uint64_t pairs = 0;
  if (!reader.Map(&pairs)) return false;
  for (; pairs > 0; --pairs) {
    std::string_view name;
    if (!reader.Bulk(&name)) return false;
    const size_t begin = reader.position();
    if (!reader.Skip()) return false;
    fields->emplace_back(name, reply.substr(begin, reader.position() - begin));
  }
  return reader.done();
}

std::string_view ErrorLineOf(std::string_view reply) {
  if (!reply.starts_with('-')) return {};
  reply.remove_prefix(1);
  return reply.substr(0, reply.find('\r'));
}

bool ReadOwnId(std::string_view text, FeedId* id) {
  const Result<FeedId> read = ParseFeedId(text, 0);
  if (!read.ok() || !IsOwnId(*read)) return false;
  *id = *read;
  return true;
}

Status SomethingElse() { return StatusOfLine(kSomethingElse); }

std::string FailureOf(const RemoteCalls::Answer& answer) {
  const std::string_view line =
      answer.bytes.starts_with('-') ? ErrorLineOf(answer.bytes) : std::string_view(answer.bytes);
  return line.empty() ? "TRYAGAIN another node has not answered" : std::string(line);
}

Status StatusOfLine(std::string_view line) {
  const size_t space = line.find(' ');
  const std::string_view word = line.substr(0, space);
  for (int i = 0; i <= static_cast<int>(ErrorCode::kCorruption); ++i) {
    const auto code = static_cast<ErrorCode>(i);
    if (space != line.npos && word == ErrorCodeWord(code))
      return Status::Error(code, std::string(line.substr(space + 1)));
  }
  return Status::Error(ErrorCode::kErr, std::string(line));
}

}  // namespace cellar
