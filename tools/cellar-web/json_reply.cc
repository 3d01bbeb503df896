// See json_reply.h.
#include "cellar-web/json_reply.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "client/json_text.h"

namespace cellar::web {
namespace {

using client::ReplyStream;
using Kind = ReplyStream::Kind;

constexpr int64_t kExactMax{int64_t{1} << 53};
// Longer than any key; and what a page shows of a value that is longer.
constexpr size_t kTextBytesMax{128 << 10};
constexpr size_t kBeginBytes{16 << 10};
constexpr size_t kPieceBytes{(64 << 10) + 3};  // 3: the rest of a character that begins in it

// The first bytes of a text, no character cut in two.
std::string_view BeginOf(std::string_view text) {
  constexpr size_t kCharacterBytesMax{4};
  size_t end = kBeginBytes;
  while (end > kBeginBytes - kCharacterBytesMax && (text[end] & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

void AppendText(std::string_view text, std::string* out) {
  if (text.size() <= kTextBytesMax) return client::AppendJsonText(text, out);
  out->append(R"({"bytes":)" + std::to_string(text.size()) + R"(,"begin":)");
  client::AppendJsonText(BeginOf(text), out);
  out->push_back('}');
}

void AppendInteger(int64_t value, std::string* out) {
  const std::string digits = std::to_string(value);
  const bool exact = value >= -kExactMax && value <= kExactMax;
  out->append(exact ? digits : R"({"int":")" + digits + "\"}");
}

// One reply after the other, with the arrays that are open.
class Writer {
 public:
  Writer(ReplyStream* stream, std::string* out)
      : stream_(stream), out_(out), bytes_max_(out->size() + kAnswerBytesMax) {}

  JsonReply Write(ReplyStream::Item item) {
    if (item.kind == Kind::kError) {
      return {Status::Error(ErrorCode::kErr, std::string(stream_->Text(item))), true};
    }
    while (true) {
      if (!Append(item)) return TooLarge();
      stream_->Release();
      if (left_.empty()) return {Status::Ok(), true};
      if (!stream_->Next(&item)) return {stream_->failure(), false};
    }
  }

 private:
  static constexpr size_t kDepthMax{64};

  static JsonReply TooLarge() {
    return {Status::Error(ErrorCode::kTooLarge, "the answer has more than 1 MiB: ask for less"),
            false};
  }

  // False: it would be too large, or too deep.
  bool Append(const ReplyStream::Item& item) {
    switch (item.kind) {
      case Kind::kArray:
        if (left_.size() == kDepthMax) return false;
        out_->push_back('[');
        left_.push_back(item.number);
        CloseFull();
        return out_->size() <= bytes_max_;
      case Kind::kNull:
        out_->append("null");
        break;
      case Kind::kInteger:
        AppendInteger(item.number, out_);
        break;
      default:
        AppendText(stream_->Text(item), out_);
        break;
    }
    EndElement();
    return out_->size() <= bytes_max_;
  }

  void EndElement() {
    if (left_.empty()) return;
    if (--left_.back() > 0) {
      out_->push_back(',');
    } else {
      CloseFull();
    }
  }

  // Arrays of which no element is left are elements that have ended.
  void CloseFull() {
    while (!left_.empty() && left_.back() == 0) {
      out_->push_back(']');
      left_.pop_back();
      if (!left_.empty() && --left_.back() > 0) out_->push_back(',');
    }
  }

  ReplyStream* const stream_;
  std::string* const out_;
  const size_t bytes_max_;
  std::vector<int64_t> left_;  // elements of each open array that are still to come
};

}  // namespace

JsonReply AppendJson(ReplyStream* stream, std::string* out) {
  ReplyStream::Item item;
  if (!stream->Next(&item)) return {stream->failure(), false};
  return Writer(stream, out).Write(item);
}

JsonReply AppendPiece(ReplyStream* stream, uint64_t offset, std::string* out) {
  ReplyStream::Item item;
  if (!stream->Next(&item)) return {stream->failure(), false};
  if (item.kind != Kind::kArray || item.number != 2) return Writer(stream, out).Write(item);
  out->append(R"({"ts":)");
  if (const JsonReply ts = AppendJson(stream, out); !ts.status.ok()) return ts;
  if (!stream->Next(&item)) return {stream->failure(), false};
  const std::string_view bytes = stream->Text(item);  // of an integer its digits
  out->append(R"(,"bytes":)" + std::to_string(bytes.size()) + R"(,"part":)");
  client::AppendJsonText(bytes.substr(std::min<uint64_t>(offset, bytes.size()), kPieceBytes), out);
  out->push_back('}');
  return {Status::Ok(), true};
}

}  // namespace cellar::web
