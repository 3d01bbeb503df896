// Replies item by item as they come, without a tree of objects for each: for those that are large
// and of a known shape.
//
//   *2 $3 abc :5    ->    kArray 2, kText "abc", kInteger 5
//
// Texts lie in the stream's own memory, which holds what was read since Release() and grows with
// that.
#pragma once

#include <cstdint>
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
    size_t offset{0};   // of a text or error
    size_t bytes{0};
  };

  // `connection` must outlive the stream. REQUIRES: its replies are all read, and nobody but the
  // stream reads more until what was asked meanwhile is answered.
  explicit ReplyStream(const Connection& connection);

  // False: failure() says why, kIo if the connection is lost, ERR if what comes is no reply. A
  // Result an item took half of an export's time.
  bool Next(Item* item);
  const Status& failure() const { return failure_; }
  // Until the next Next().
  std::string_view Text(const Item& item) const {
    return {buffer_.data() + item.offset, item.bytes};
  }
  // Items of before are invalid.
  void Release();

 private:
  // Makes the bytes up to `end` be there.
  bool Need(size_t end) { return filled_ >= end || Fill(end); }
  bool Fill(size_t end);
  bool ReadNumber(int64_t* number);
  bool Unexpected();

  int descriptor_;
  std::vector<char> buffer_;
  size_t at_{0};      // the next byte to take
  size_t filled_{0};  // bytes that are there
  Status failure_;
};

}  // namespace cellar::client
