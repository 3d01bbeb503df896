// Typed values: the types of cells, how their text is read, stored, compared, counted up and
// printed.
//
// Stored form (little-endian, as short as it can be; the type stands beside it in the cell):
//
//   bytes string   the bytes themselves; string is valid UTF-8
//   bool           1 byte, 0 or 1
//   u8..u64        the fewest bytes that hold it: 0 takes none, 255 one, 256 two
//   i8..i64        the same in two's complement: 0 takes none, -128..127 one
//   f32 f64        4 or 8 bytes, IEEE 754; never a NaN, -0 is kept
//   uuid           16 bytes in the order of the text
//   hll            the state of a HyperLogLog (hyperloglog.h), canonical; what is seen of it is the
//                  estimate, an integer
//
// One value has one stored form, so equality of values of one type is equality of bytes.
// Nothing here knows of cells' timestamps, families or replies.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "base/coding.h"
#include "base/inline.h"
#include "base/text/number.h"
#include "cellar/status.h"

namespace cellar {

// The numbers are part of the formats on disk: never change one.
enum class ValueType : uint8_t {
  kBytes = 0,
  kString = 1,
  kBool = 2,
  kU8 = 3,
  kI8 = 4,
  kI16 = 5,
  kI32 = 6,
  kI64 = 7,
  kU16 = 8,
  kU32 = 9,
  kU64 = 10,
  kF32 = 11,
  kF64 = 12,
  kUuid = 13,
  kHll = 14,
};
inline constexpr uint8_t kValueTypeCount{15};
// Types that a client may name (TYPE, AS) are those before it: an hll is made by its family alone.
inline constexpr uint8_t kNamedTypeCount{14};
inline constexpr size_t kUuidBytes{16};
inline constexpr size_t kUuidTextBytes{36};

// "bytes", "u8", ...
std::string_view ValueTypeName(ValueType type);
// In any case; "byte" is u8. An error that names all types if there is no such one.
Result<ValueType> ParseValueType(std::string_view name);

// bytes and string: the stored form is the text.
constexpr bool IsTextType(ValueType type) { return type <= ValueType::kString; }
constexpr bool IsSignedType(ValueType type) {
  return type >= ValueType::kI8 && type <= ValueType::kI64;
}
constexpr bool IsUnsignedType(ValueType type) {
  return type == ValueType::kU8 || (type >= ValueType::kU16 && type <= ValueType::kU64);
}
constexpr bool IsIntegerType(ValueType type) { return IsSignedType(type) || IsUnsignedType(type); }
constexpr bool IsFloatType(ValueType type) {
  return type == ValueType::kF32 || type == ValueType::kF64;
}
constexpr bool IsNumericType(ValueType type) { return IsIntegerType(type) || IsFloatType(type); }
// Bytes that a number of the type takes at most: 1, 2, 4, 8. REQUIRES: IsNumericType(type).
size_t NumericTypeBytes(ValueType type);

// Room for the stored form of anything that is not text.
struct ValueBuffer {
  std::array<char, kUuidBytes> bytes;
};

// Reads the text of a value. *stored is a view of `text` itself for text types (nothing is copied),
// of *buffer for all others. BADVALUE naming type and value if it cannot be read as `type`.
Status ParseValue(ValueType type, std::string_view text, ValueBuffer* buffer,
                  std::string_view* stored);
// *stored := the value that `text` means. BADVALUE as above; then it is not touched.
Status ParseValue(ValueType type, std::string_view text, std::string* stored);

// Could `stored` have come from ParseValue? For bytes that come from a disk or a peer. O(1), but
// O(stored.size()) for string.
[[nodiscard]] bool StoredValueIsValid(ValueType type, std::string_view stored);

// A value in the machine's own types, for replies.
struct TypedValue {
  ValueType type{ValueType::kBytes};
  union {
    int64_t signed_integer;     // i8..i64
    uint64_t unsigned_integer;  // u8..u64
    double floating;            // f32, f64
    bool boolean;               // bool
    std::string_view bytes;     // bytes, string, and uuid (16 bytes): points into the stored form
  };
  TypedValue() : bytes() {}
};
// REQUIRES: StoredValueIsValid(type, stored), not of an hll (SeenOf).
TypedValue DecodeValue(ValueType type, std::string_view stored);

// The stored form of an integer that fits `type`, in *buffer. REQUIRES: IsIntegerType(type).
std::string_view StoreInteger(ValueType type, int128_t value, ValueBuffer* buffer);
// The bytes of a stored integer, the lowest first. REQUIRES: at most 8 of them.
CELLAR_INLINE uint64_t LoadShort(std::string_view stored) {
  CELLAR_ASSERT(stored.size() <= 8);
  if (stored.size() >= 4) [[likely]] {  // two loads that overlap
    const uint64_t low = LoadLittleEndian<uint32_t>(stored.data());
    const uint64_t high = LoadLittleEndian<uint32_t>(stored.data() + stored.size() - 4);
    return low | high << (8 * (stored.size() - 4));
  }
  if (stored.empty()) return 0;
  // The first, the last and the one in between, of which two may be the same.
  const auto byte_at = [&](size_t i) {
    return uint64_t{static_cast<uint8_t>(stored[i])} << (8 * i);
  };
  return byte_at(0) | byte_at(stored.size() / 2) | byte_at(stored.size() - 1);
}
// The same in two's complement.
CELLAR_INLINE int64_t LoadShortSigned(std::string_view stored) {
  if (stored.empty()) return 0;
  const size_t spare = 64 - 8 * stored.size();
  return static_cast<int64_t>(LoadShort(stored) << spare) >> spare;  // extends the sign
}
// The integer behind a stored form. REQUIRES: IsIntegerType(type).
CELLAR_INLINE int128_t LoadInteger(ValueType type, std::string_view stored) {
  if (IsUnsignedType(type)) return static_cast<int128_t>(LoadShort(stored));
  return LoadShortSigned(stored);
}
// The smallest and largest number of an integer type.
int128_t IntegerTypeMin(ValueType type);
int128_t IntegerTypeMax(ValueType type);

// What clients see of a value: type and stored form, but of an hll its estimate, as u64. The view
// is of `stored` or of *buffer.
struct SeenValue {
  ValueType type;
  std::string_view stored;
};
SeenValue SeenHll(std::string_view state, ValueBuffer* buffer);
inline SeenValue SeenOf(ValueType type, std::string_view stored, ValueBuffer* buffer) {
  if (type == ValueType::kHll) [[unlikely]]
    return SeenHll(stored, buffer);
  return {type, stored};
}

// Canonical text: integers in decimal, shortest floats, true and false, UUIDs in 36 lower-case
// characters, text as it is, the estimate of an hll. Appends.
void AppendValueText(ValueType type, std::string_view stored, std::string* out);
std::string ValueText(ValueType type, std::string_view stored);

// 36 characters, hexadecimal digits in either case, to 16 bytes; false if it is none.
[[nodiscard]] bool ParseUuid(std::string_view text, char* bytes);
// Appends the 36 lower-case characters of 16 bytes.
void AppendUuidText(std::string_view bytes, std::string* out);

// "true", "1", "false", "0".
[[nodiscard]] bool ParseBool(std::string_view text, bool* value);

enum class CompareOp : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe };
// Does a comparison hold whose sides compare as `order` (negative, zero, positive)?
constexpr bool CompareHolds(CompareOp op, int order) {
  switch (op) {
    case CompareOp::kEq:
      return order == 0;
    case CompareOp::kNe:
      return order != 0;
    case CompareOp::kLt:
      return order < 0;
    case CompareOp::kLe:
      return order <= 0;
    case CompareOp::kGt:
      return order > 0;
    case CompareOp::kGe:
      return order >= 0;
  }
  return false;
}

// The predicates of IF and WHERE: the literal is read as the cell's own type; integers compare with
// any number exactly ("GT 4.5", "LT 300" on a u8), floats after rounding the literal to the type,
// UUIDs as such, text bytewise. A literal that cannot be read so satisfies only kNe. It is read
// when the first cell of a type is met, and not again until one of another type is.
class ComparedLiteral {
 public:
  explicit ComparedLiteral(std::string_view text = {}) : text_(text) {}
  const std::string& text() const { return text_; }
  // Does a cell, which stands on the left, hold against it?
  bool Holds(CompareOp op, ValueType type, std::string_view stored) const;

 private:
  enum class Form : uint8_t { kNone, kFloor, kStored, kBeyondFloat, kUnreadable };
  void Read(ValueType type) const;

  std::string text_;
  mutable ValueType read_as_{ValueType::kBytes};
  mutable Form form_{Form::kNone};
  mutable DecimalFloor floor_{};
  mutable ValueBuffer buffer_{};
  mutable size_t stored_bytes_{0};  // kStored: so many of buffer_
  mutable int side_{0};             // kBeyondFloat
};
// Two values of one type: negative, zero, positive. Numbers by value (-0 equals 0), false before
// true, everything else bytewise.
int CompareStored(ValueType type, std::string_view a, std::string_view b);

// Whether a bytes or string cell that holds a number in text may be counted up. It may not where
// its family declares a TYPE.
enum class TextCells : uint8_t { kRefuse, kCount };

struct StoredValue {
  ValueType type{ValueType::kBytes};
  ValueBuffer buffer;
  std::string_view stored;  // into `buffer`
  StoredValue() = default;
  StoredValue(const StoredValue&) = delete;  // the view would point into the other one
  StoredValue& operator=(const StoredValue&) = delete;
};

// Integer cell plus `delta` (-2^63..2^64-1). A text cell counts as its integer, and the sum is then
// i64. WRONGTYPE for any other cell, ERR when the sum is not in the type.
Status AddInteger(ValueType type, std::string_view stored, int128_t delta, TextCells text_cells,
                  StoredValue* sum);
// Float cell plus `delta`; text likewise, f64 then. ERR when the sum is not finite.
Status AddFloat(ValueType type, std::string_view stored, double delta, TextCells text_cells,
                StoredValue* sum);
// Delta of CINCRBY, -2^63..2^64-1; else ERR in Redis' words.
Status ParseIntegerDelta(std::string_view text, int128_t* delta);
// Delta of CINCRBYFLOAT, finite; else ERR in Redis' words.
Status ParseFloatDelta(std::string_view text, double* delta);

// Which of the two increments fits a text: what CMUTATE's INCR asks.
enum class TextNumber : uint8_t { kNone, kInteger, kFloat };
TextNumber ClassifyNumber(std::string_view text);

}  // namespace cellar
