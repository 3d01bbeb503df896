// See reply_stream.h.
#include "client/reply_stream.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace cellar::client {
namespace {

constexpr size_t kReadBytes{256 << 10};
constexpr int64_t kElementsMax{INT32_MAX};  // whoever reads them takes one after the other

}  // namespace

bool ReplyStream::Unexpected() {
  failure_ = Status::Error(ErrorCode::kErr, "the server's reply is not of the Redis protocol");
  return false;
}

ReplyStream::ReplyStream(const Connection& connection) : descriptor_(connection.descriptor()) {}

void ReplyStream::Release() {
  if (at_ == filled_) {
    at_ = 0;
    filled_ = 0;
    return;
  }
  // Not for every small item: each move costs what is behind it.
  if (at_ < kReadBytes) return;
  std::memmove(buffer_.data(), buffer_.data() + at_, filled_ - at_);
  filled_ -= at_;
  at_ = 0;
}

bool ReplyStream::Fill(size_t end) {
  if (end > kHeldBytesMax) {
    failure_ = Status::Error(ErrorCode::kIo, "connection lost: a reply of more than 1 GiB");
    return false;
  }
  while (filled_ < end) {
    // As it comes: a length may be claimed and never follow.
    const size_t wanted{std::max(std::min(end, 2 * filled_), filled_ + kReadBytes)};
    if (buffer_.size() < wanted) buffer_.resize(std::max(wanted, buffer_.size() * 3 / 2));
    const ssize_t got{read(descriptor_, buffer_.data() + filled_, buffer_.size() - filled_)};
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      failure_ = Status::Error(
          ErrorCode::kIo, std::string("connection lost: ") +
                              (got == 0 ? "Server closed the connection" : std::strerror(errno)));
      return false;
    }
    filled_ += static_cast<size_t>(got);
  }
  return true;
}

// Of a line: an optional sign and digits, up to CR LF.
bool ReplyStream::ReadNumber(int64_t* number) {
  uint64_t value{0};
  bool is_negative{false};
  for (size_t i{0}; i < kLineBytesMax; ++i) {
    if (!Need(at_ + 2)) return false;
    const char c{buffer_[at_++]};
    if (c >= '0' && c <= '9') {
      value = value * 10 + static_cast<uint64_t>(c - '0');
    } else if (c == '-' && i == 0) {
      is_negative = true;
    } else if (c == '\r' && buffer_[at_] == '\n') {
      ++at_;
      *number = static_cast<int64_t>(is_negative ? uint64_t{0} - value : value);
      return true;
    } else {
      break;
    }
  }
  return Unexpected();
}

bool ReplyStream::NextSlowly(Item* item) {
  if (!Need(at_ + 1)) return false;
  *item = Item{};
  const char type{buffer_[at_++]};
  if (type == '+' || type == '-') {
    item->kind = type == '+' ? Kind::kText : Kind::kError;
    item->offset = at_;
    for (;; ++at_) {
      if (!Need(at_ + 2)) return false;
      if (buffer_[at_] == '\r' && buffer_[at_ + 1] == '\n') break;
      if (at_ - item->offset > kStatusBytesMax) return Unexpected();
    }
    item->bytes = at_ - item->offset;
    at_ += 2;
    return true;
  }
  if (type != '*' && type != '$' && type != ':') return Unexpected();
  const size_t digits = at_;
  if (!ReadNumber(&item->number)) return false;
  if (type == ':') {
    item->kind = Kind::kInteger;
    item->offset = digits;
    item->bytes = at_ - 2 - digits;
    return true;
  }
  if (item->number == -1) return true;
  if (item->number < 0 || item->number > (type == '*' ? kElementsMax : kTextBytesMax)) {
    return Unexpected();
  }
  item->kind = type == '*' ? Kind::kArray : Kind::kText;
  if (type == '*') return true;
  item->offset = at_;
  item->bytes = static_cast<size_t>(item->number);
  if (!Need(at_ + item->bytes + 2)) return false;
  at_ += item->bytes + 2;
  return true;
}

}  // namespace cellar::client
