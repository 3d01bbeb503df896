// ReplySkipper: finds where replies end, without building them.
//
// A load generator wants to know how many replies have come, and whether one is an error; what is
// in them costs time and is thrown away. Nesting needs no stack: an array of n elements owes n more
// values, and a reply is complete when nothing is owed. RESP2, and RESP3's types besides.
//
// Bytes may be cut anywhere: a header line cut in two is kept in a small buffer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace cellar::benchmark {

class ReplySkipper {
 public:
  // Takes `size` more bytes of the stream; returns how many replies end in them.
  uint64_t Skip(const char* data, size_t size) {
    const char* at = data;
    const char* const end = data + size;
    uint64_t complete = 0;
    while (at < end) {
      if (body_bytes_ > 0) {  // of a bulk string, with its CR LF
        const uint64_t step = std::min<uint64_t>(body_bytes_, static_cast<uint64_t>(end - at));
        at += step;
        body_bytes_ -= step;
        if (body_bytes_ == 0) complete += FinishValue();
        continue;
      }
      if (*at == '$' && line_.empty()) {
        if (const char* const behind = BehindBulk(at, end); behind != nullptr) {
          at = behind;
          complete += FinishValue();
          continue;
        }
      }
      const auto* newline =
          static_cast<const char*>(std::memchr(at, '\n', static_cast<size_t>(end - at)));
      if (newline == nullptr) {
        KeepLine(at, end);
        break;
      }
      if (line_.empty()) {
        complete += TakeLine(at, newline);
      } else {
        KeepLine(at, newline);
        const std::string line = std::move(line_);
        line_.clear();
        complete += TakeLine(line.data(), line.data() + line.size());
      }
      at = newline + 1;
    }
    return complete;
  }

  uint64_t errors() const { return errors_; }
  uint64_t nulls() const { return nulls_; }    // `$-1`, `*-1` and `_`, at any depth
  uint64_t values() const { return values_; }  // scalars at any depth
  const std::string& first_error() const { return first_error_; }

 private:
  static constexpr size_t kLineBytesMax{512};  // what is kept of a long error

  void KeepLine(const char* from, const char* to) {
    const size_t room = kLineBytesMax - std::min(kLineBytesMax, line_.size());
    line_.append(from, std::min(room, static_cast<size_t>(to - from)));
  }

  uint64_t FinishValue() {
    ++values_;
    return --owed_ == 0 ? Reset() : 0;
  }
  uint64_t Reset() {
    owed_ = 1;
    return 1;
  }

  // What is behind the bulk string at `at`; null if not all of it is there, or if it is a null.
  // Most of a reply is such strings, and most of them are short: one step for each.
  static const char* BehindBulk(const char* at, const char* end) {
    constexpr uint64_t kBytesMax{uint64_t{1} << 40};
    const char* p = at + 1;
    uint64_t bytes = 0;
    for (; p < end && *p >= '0' && *p <= '9' && bytes < kBytesMax; ++p)
      bytes = bytes * 10 + static_cast<uint64_t>(*p - '0');
    if (p == at + 1 || p == end || *p != '\r') return nullptr;
    const auto left = static_cast<uint64_t>(end - p);
    return left >= bytes + 4 ? p + bytes + 4 : nullptr;  // CR LF, twice
  }

  static int64_t Number(const char* at, const char* end) {
    const bool negative = at < end && *at == '-';
    if (negative) ++at;
    int64_t number = 0;
    for (; at < end && *at >= '0' && *at <= '9'; ++at) number = number * 10 + (*at - '0');
    return negative ? -number : number;
  }

  // [from, to) is a header line without its LF.
  uint64_t TakeLine(const char* from, const char* to) {
    if (from == to) return 0;
    int64_t elements = 0;
    switch (*from) {
      case '$':
      case '=':
      case '!': {
        const int64_t bytes = Number(from + 1, to);
        if (bytes < 0) ++nulls_;
        if (bytes < 0) return FinishValue();
        body_bytes_ = static_cast<uint64_t>(bytes) + 2;
        return 0;
      }
      case '*':
      case '~':
      case '>':
        elements = Number(from + 1, to);
        break;
      case '%':
        elements = 2 * Number(from + 1, to);
        break;
      case '-':
        ++errors_;
        if (first_error_.empty()) first_error_.assign(from + 1, to - (to[-1] == '\r' ? 1 : 0));
        return FinishValue();
      case '_':
        ++nulls_;
        return FinishValue();
      default:
        return FinishValue();
    }
    if (elements < 0) ++nulls_;
    if (elements > 0) owed_ += static_cast<uint64_t>(elements);
    return --owed_ == 0 ? Reset() : 0;
  }

  uint64_t owed_{1};
  uint64_t body_bytes_{0};
  uint64_t errors_{0};
  uint64_t nulls_{0};
  uint64_t values_{0};
  std::string line_;
  std::string first_error_;
};

}  // namespace cellar::benchmark
