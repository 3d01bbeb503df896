// Replies item by item as they come, without a tree of objects for each: for those that are large
// and of a known shape.
//
//   *2 $3 abc :5    ->    kArray 2, kText "abc", kInteger 5
//
// Texts lie in the stream's own memory, which holds what was read since Release() and grows with
// that, never with what a length only claims.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "cellar/status.h"
#include "client/connection.h"

namespace cellar::client {

class ReplyStream {
 public:
  enum class Kind : uint8_t { kArray, kText, kInteger, kNull, kError };
  struct Item {
    Kind kind{Kind::kNull};
    int64_t number{0};  // an integer, or the elements of an array
    size_t offset{0};   // of a text or error, or the digits of an integer
    size_t bytes{0};
  };

  // `connection` must outlive the stream. REQUIRES: its replies are all read, and nobody but the
  // stream reads more until what was asked meanwhile is answered.
  explicit ReplyStream(const Connection& connection);

  // False: failure() says why, kIo if the connection is lost, ERR if what comes is no reply. A
  // Result an item took half of an export's time.
  bool Next(Item* item) { return NextFromBuffer(item) || NextSlowly(item); }
  const Status& failure() const { return failure_; }
  // Until the next Next().
  std::string_view Text(const Item& item) const {
    return {buffer_.data() + item.offset, item.bytes};
  }
  // Items of before are invalid.
  void Release();

 private:
  static constexpr size_t kLineBytesMax{24};
  static constexpr int64_t kTextBytesMax{512 << 20};       // Redis' proto-max-bulk-len
  static constexpr size_t kStatusBytesMax{1 << 20};        // of a line
  static constexpr size_t kHeldBytesMax{size_t{1} << 30};  // since Release()

  // The same if all of it is in the buffer, and it is no error and no number below zero. Else
  // false, and nothing has been taken.
  bool NextFromBuffer(Item* item);
  bool NextSlowly(Item* item);
  // Makes the bytes up to `end` be there.
  bool Need(size_t end) { return filled_ >= end || Fill(end); }
  bool Fill(size_t end);
  // Of eight characters in the order of memory, the lowest byte first.
  static bool AreDigits(uint64_t eight) {
    constexpr uint64_t kHalves{0xf0f0f0f0f0f0f0f0};
    return ((eight & kHalves) | (((eight + 0x0606060606060606) & kHalves) >> 4)) ==
           0x3333333333333333;
  }
  // REQUIRES: AreDigits(eight). Neighbours are joined to pairs, these to fours, these to the whole.
  static uint64_t NumberOf(uint64_t eight) {
    eight = (eight & 0x0f0f0f0f0f0f0f0f) * (10 * 256 + 1) >> 8;
    eight = (eight & 0x00ff00ff00ff00ff) * (100 * 65'536 + 1) >> 16;
    return (eight & 0x0000ffff0000ffff) * ((uint64_t{10'000} << 32) + 1) >> 32;
  }
  bool ReadNumber(int64_t* number);
  bool Unexpected();

  int descriptor_;
  std::vector<char> buffer_;
  size_t at_{0};      // the next byte to take
  size_t filled_{0};  // bytes that are there
  Status failure_;
};

inline bool ReplyStream::NextFromBuffer(Item* item) {
  constexpr size_t kDigitsMax{18};
  if (at_ + kLineBytesMax > filled_) return false;
  const char* const begin = buffer_.data() + at_;
  const char type = *begin;
  const char* digit = begin + 1;
  uint64_t number = 0;
  if (type == ':') {
    for (uint64_t eight = 0; digit < begin + 16; digit += sizeof(eight)) {
      std::memcpy(&eight, digit, sizeof(eight));
      if (!AreDigits(eight)) break;
      number = number * 100'000'000 + NumberOf(eight);
    }
  } else if (type != '$' && type != '*') {
    return false;
  } else if (std::memcmp(digit, "-1\r\n", 4) == 0) {
    item->kind = Kind::kNull;
    at_ += 5;
    return true;
  }
  for (; static_cast<uint8_t>(*digit - '0') < 10; ++digit) {
    if (digit == begin + kDigitsMax) return false;
    number = number * 10 + static_cast<uint64_t>(*digit - '0');
  }
  if (digit == begin + 1 || digit[0] != '\r' || digit[1] != '\n') return false;
  const size_t behind = static_cast<size_t>(digit - buffer_.data()) + 2;
  item->number = static_cast<int64_t>(number);
  if (type == '$') {
    if (number > filled_ || behind + number + 2 > filled_) return false;
    item->kind = Kind::kText;
    item->offset = behind;
    item->bytes = number;
    at_ = behind + number + 2;
    return true;
  }
  item->kind = type == ':' ? Kind::kInteger : Kind::kArray;
  item->offset = at_ + 1;
  item->bytes = behind - 2 - item->offset;
  at_ = behind;
  return true;
}

}  // namespace cellar::client
