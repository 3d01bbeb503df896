// ReplyWriter: the replies of RESP2 and RESP3, behind one set of names.
//
// A handler says what it means (a map, a null, a double); the writer picks the encoding of the
// client's protocol version:
//
//   meaning      RESP2              RESP3
//   Null         $-1                _
//   NullArray    *-1                _
//   Boolean      :1 :0              #t #f
//   Double       bulk string        ,3.5
//   BigNumber    bulk string        (12345
//   Map(n)       *2n                %n
//   Set(n)       *n                 ~n
//   Push(n)      *n                 >n
//   Verbatim     bulk string        =15\r\ntxt:...
//
// Lengths not known in advance: `mark = BeginArray(guess)`, write the elements, `EndArray(mark,
// n)`. The guess (how many there usually are) decides how many bytes the header gets; a right
// number of digits costs nothing, a wrong one moves the body once.
//
// The writer is a thin, copyable view of an OutputBuffer: it owns nothing and never fails.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/inline.h"
#include "resp/decimal.h"
#include "resp/output_buffer.h"

namespace cellar {

enum class RespVersion : uint8_t { k2 = 2, k3 = 3 };

class ReplyWriter {
 public:
  // `buffer` is borrowed and outlives the writer.
  ReplyWriter(OutputBuffer* buffer, RespVersion version) : buffer_(buffer), version_(version) {}

  RespVersion version() const { return version_; }
  bool resp3() const { return version_ == RespVersion::k3; }
  OutputBuffer& buffer() { return *buffer_; }
  // Bytes in the buffer so far: a position for Truncate and Insert.
  size_t position() const { return buffer_->size(); }
  // Takes back all that was written after position() was `position`.
  void Truncate(size_t position) { buffer_->Truncate(position); }

  void Ok() { buffer_->Append("+OK\r\n"); }
  // CR and LF in `text` become blanks.
  void SimpleString(std::string_view text) { Line('+', text); }
  // `text` begins with the code: "ERR no such client". CR and LF become blanks.
  void Error(std::string_view text) { Line('-', text); }

  void Integer(int64_t value) {
    buffer_->CommitTo(EncodeInteger(buffer_->Reserve(kIntegerBytesMax), value));
  }
  // As EncodeBulk, of an integer.
  static constexpr size_t kIntegerBytesMax{kDecimalBytesMax + 3};  // its type and CRLF
  static char* EncodeInteger(char* to, int64_t value) {
    *to = ':';
    return EncodeBulkEnd(EncodeDecimal(to + 1, value));
  }
  // An unsigned number: an integer while it fits one, else BigNumber.
  void Unsigned(uint64_t value);
  // `digits` is a decimal integer of any size.
  void BigNumber(std::string_view digits);
  void Boolean(bool value) {
    if (resp3()) {
      buffer_->Append(value ? "#t\r\n" : "#f\r\n");
    } else {
      buffer_->Append(value ? ":1\r\n" : ":0\r\n");
    }
  }
  // Shortest text that reads back to the same value (base/text/number.h).
  void Double(double value);
  // `text` is the number's text as the caller wants it seen ("3.5", "inf", "-inf").
  void DoubleText(std::string_view text);

  CELLAR_INLINE void Bulk(std::string_view bytes) {
    buffer_->CommitTo(EncodeBulk(buffer_->Reserve(BulkBytesMax(bytes.size())), bytes));
  }
  // Bytes that a bulk string may take, and how it is written into a buffer by those who write
  // several at once; the end of it is returned.
  static constexpr size_t BulkBytesMax(size_t bytes) { return bytes + kHeaderBytesMax + 2; }
  static char* EncodeBulkHeader(char* to, size_t bytes) {
    // Most strings are short: their header is one word, whose last bytes are overwritten by what
    // comes behind it.
    if (bytes < 10) {
      StoreLittleEndian(to, uint32_t{0x0a0d3024} + (static_cast<uint32_t>(bytes) << 8));
      return to + 4;
    }
    if (bytes < 100) {
      const uint64_t digits = TwoDigits(static_cast<uint32_t>(bytes));
      StoreLittleEndian(to, uint64_t{0x0a0d000024} | digits << 8);
      return to + 5;
    }
    *to = '$';
    to = EncodeDecimal(to + 1, static_cast<uint64_t>(bytes));
    *to++ = '\r';
    *to++ = '\n';
    return to;
  }
  static char* EncodeBulkPart(char* to, std::string_view bytes) {
    CopyBytes(to, bytes.data(), bytes.size());
    return to + bytes.size();
  }
  static char* EncodeBulkEnd(char* to) {
    StoreLittleEndian(to, uint16_t{0x0a0d});
    return to + 2;
  }
  CELLAR_INLINE static char* EncodeBulk(char* to, std::string_view bytes) {
    return EncodeBulkEnd(EncodeBulkPart(EncodeBulkHeader(to, bytes.size()), bytes));
  }
  // A bulk string of a number's digits.
  void BulkInteger(int64_t value);
  // Text for people: INFO, CLIENT LIST. `format` is "txt" or "mkd".
  void Verbatim(std::string_view text, std::string_view format);

  void Null() { buffer_->Append(resp3() ? "_\r\n" : "$-1\r\n"); }
  void NullArray() { buffer_->Append(resp3() ? "_\r\n" : "*-1\r\n"); }

  void Array(uint64_t elements) { Header('*', elements); }
  // `pairs` keys, each followed by its value.
  void Map(uint64_t pairs) {
    if (resp3()) {
      Header('%', pairs);
    } else {
      Header('*', pairs * 2);
    }
  }
  void Set(uint64_t elements) { Header(resp3() ? '~' : '*', elements); }
  void Push(uint64_t elements) { Header(resp3() ? '>' : '*', elements); }

  // An open aggregate: where its header stands, and how many bytes were set aside for it.
  struct Mark {
    size_t position;
    uint32_t header_bytes;
    char type;
  };
  Mark BeginArray(uint64_t guess) { return Begin('*', guess); }
  void EndArray(const Mark& mark, uint64_t elements) { End(mark, elements); }
  // A map counts pairs, in the guess and at the end.
  Mark BeginMap(uint64_t guess) { return resp3() ? Begin('%', guess) : Begin('*', guess * 2); }
  void EndMap(const Mark& mark, uint64_t pairs) { End(mark, resp3() ? pairs : pairs * 2); }

  // Bytes that are RESP already, of this writer's version.
  void Raw(std::string_view bytes) { buffer_->Append(bytes); }

 private:
  static constexpr size_t kHeaderBytesMax{kIntegerBytesMax};  // of another type

  void FinishHeader(char* end) {
    *end++ = '\r';
    *end++ = '\n';
    buffer_->CommitTo(end);
  }
  void Header(char type, uint64_t count) {
    char* to = buffer_->Reserve(kHeaderBytesMax);
    *to = type;
    FinishHeader(EncodeDecimal(to + 1, count));
  }
  void Line(char type, std::string_view text);
  Mark Begin(char type, uint64_t guess);
  void End(const Mark& mark, uint64_t count);

  OutputBuffer* buffer_;
  RespVersion version_;
};

}  // namespace cellar
