// Reading, storing and printing values; comparing and counting them up is in value_compare.cc.
#include "engine/keys/value.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/assert.h"
#include "base/coding.h"
#include "base/copy_bytes.h"
#include "base/text/ascii.h"
#include "base/text/quote.h"
#include "base/text/utf8.h"
#include "engine/keys/hyperloglog.h"

namespace cellar {
namespace {

struct ValueTypeInfo {
  std::string_view name;
  uint8_t number_bytes;  // 0 unless numeric
};
// In the order of ValueType.
constexpr std::array<ValueTypeInfo, kValueTypeCount> kValueTypes{{{"bytes", 0},
                                                                  {"string", 0},
                                                                  {"bool", 0},
                                                                  {"u8", 1},
                                                                  {"i8", 1},
                                                                  {"i16", 2},
                                                                  {"i32", 4},
                                                                  {"i64", 8},
                                                                  {"u16", 2},
                                                                  {"u32", 4},
                                                                  {"u64", 8},
                                                                  {"f32", 4},
                                                                  {"f64", 8},
                                                                  {"uuid", 0},
                                                                  {"hll", 0}}};

// A number of 128 bits is shifted in a dozen steps: the bounds of the types are worked out once.
struct IntegerBounds {
  int128_t min{0};
  int128_t max{0};
};
constexpr auto kIntegerBounds = [] {
  std::array<IntegerBounds, kValueTypes.size()> bounds;
  for (size_t i = 0; i < bounds.size(); ++i) {
    const auto type = static_cast<ValueType>(i);
    if (!IsIntegerType(type)) continue;
    const size_t bits = 8 * size_t{kValueTypes[i].number_bytes} - (IsSignedType(type) ? 1 : 0);
    bounds[i].max = (static_cast<int128_t>(1) << bits) - 1;
    bounds[i].min = IsSignedType(type) ? -bounds[i].max - 1 : 0;
  }
  return bounds;
}();

// Reads a value that is not text into the buffer. False if it is malformed or out of range.
NumberError ParseFixed(ValueType type, std::string_view text, ValueBuffer* buffer,
                       std::string_view* stored) {
  char* bytes = buffer->bytes.data();
  if (IsIntegerType(type)) {
    int128_t value = 0;
    const NumberError error = ParseInt128(text, &value);
    if (error != NumberError::kNone) return error;
    if (value < IntegerTypeMin(type) || value > IntegerTypeMax(type)) {
      return NumberError::kOutOfRange;
    }
    *stored = StoreInteger(type, value, buffer);
    return NumberError::kNone;
  }
  if (type == ValueType::kF64) {
    double value = 0;
    const NumberError error = ParseDouble(text, &value);
    StoreLittleEndian(bytes, value);
    *stored = std::string_view(bytes, 8);
    return error;
  }
  if (type == ValueType::kF32) {
    float value = 0;
    const NumberError error = ParseFloat(text, &value);
    StoreLittleEndian(bytes, value);
    *stored = std::string_view(bytes, 4);
    return error;
  }
  if (type == ValueType::kBool) {
    bool value = false;
    const bool is_bool = ParseBool(text, &value);
    bytes[0] = value ? 1 : 0;
    *stored = std::string_view(bytes, 1);
    return is_bool ? NumberError::kNone : NumberError::kMalformed;
  }
  *stored = std::string_view(bytes, kUuidBytes);
  return ParseUuid(text, bytes) ? NumberError::kNone : NumberError::kMalformed;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// A dash stands before the bytes 4, 6, 8 and 10 of a UUID's text.
bool DashBeforeByte(size_t byte) { return byte == 4 || byte == 6 || byte == 8 || byte == 10; }

}  // namespace

std::string_view ValueTypeName(ValueType type) {
  return kValueTypes[static_cast<size_t>(type)].name;
}

Result<ValueType> ParseValueType(std::string_view name) {
  for (size_t i = 0; i < kNamedTypeCount; ++i)
    if (EqualsIgnoreCase(name, kValueTypes[i].name)) return static_cast<ValueType>(i);
  if (EqualsIgnoreCase(name, "byte")) return ValueType::kU8;
  std::string complaint = "unknown type " + Quote(name) + ", the types are";
  for (size_t i = 0; i < kNamedTypeCount; ++i) complaint.append(" ").append(kValueTypes[i].name);
  return Status::Error(ErrorCode::kErr, std::move(complaint));
}

size_t NumericTypeBytes(ValueType type) {
  CELLAR_ASSERT(IsNumericType(type));
  return kValueTypes[static_cast<size_t>(type)].number_bytes;
}

int128_t IntegerTypeMin(ValueType type) {
  CELLAR_ASSERT(IsIntegerType(type));
  return kIntegerBounds[static_cast<size_t>(type)].min;
}

int128_t IntegerTypeMax(ValueType type) {
  CELLAR_ASSERT(IsIntegerType(type));
  return kIntegerBounds[static_cast<size_t>(type)].max;
}

Status ParseValue(ValueType type, std::string_view text, ValueBuffer* buffer,
                  std::string_view* stored) {
  if (IsTextType(type)) {
    if (type == ValueType::kString && !IsValidUtf8(text)) {
      return Status::Error(ErrorCode::kBadValue, Quote(text) + " is not valid UTF-8 (type string)");
    }
    *stored = text;
    return Status::Ok();
  }
  const NumberError error = ParseFixed(type, text, buffer, stored);
  if (error == NumberError::kNone) return Status::Ok();
  std::string complaint = Quote(text);
  complaint.append(error == NumberError::kOutOfRange ? " is out of range for type "
                                                     : " is not a value of type ");
  complaint.append(ValueTypeName(type));
  return Status::Error(ErrorCode::kBadValue, std::move(complaint));
}

Status ParseValue(ValueType type, std::string_view text, std::string* stored) {
  ValueBuffer buffer;
  std::string_view view;
  RETURN_IF_ERROR(ParseValue(type, text, &buffer, &view));
  stored->assign(view);
  return Status::Ok();
}

bool StoredValueIsValid(ValueType type, std::string_view stored) {
  if (static_cast<uint8_t>(type) >= kValueTypeCount) return false;
  switch (type) {
    case ValueType::kBytes:
      return true;
    case ValueType::kString:
      return IsValidUtf8(stored);
    case ValueType::kBool:
      return stored.size() == 1 && static_cast<uint8_t>(stored[0]) <= 1;
    case ValueType::kUuid:
      return stored.size() == kUuidBytes;
    case ValueType::kHll:
      return HllIsCanonical(stored);
    case ValueType::kF32:
      return stored.size() == 4 && !std::isnan(LoadLittleEndian<float>(stored.data()));
    case ValueType::kF64:
      return stored.size() == 8 && !std::isnan(LoadLittleEndian<double>(stored.data()));
    default:
      break;
  }
  if (stored.size() > NumericTypeBytes(type)) return false;
  ValueBuffer buffer;
  return StoreInteger(type, LoadInteger(type, stored), &buffer).size() == stored.size();
}

SeenValue SeenHll(std::string_view state, ValueBuffer* buffer) {
  return {ValueType::kU64, StoreInteger(ValueType::kU64, HllEstimate(state), buffer)};
}

TypedValue DecodeValue(ValueType type, std::string_view stored) {
  CELLAR_ASSERT(type != ValueType::kHll);
  TypedValue value;
  value.type = type;
  if (IsSignedType(type)) {
    value.signed_integer = LoadShortSigned(stored);
  } else if (IsUnsignedType(type)) {
    value.unsigned_integer = LoadShort(stored);
  } else if (type == ValueType::kF64) {
    CELLAR_ASSERT(stored.size() == 8);
    value.floating = LoadLittleEndian<double>(stored.data());
  } else if (type == ValueType::kF32) {
    CELLAR_ASSERT(stored.size() == 4);
    value.floating = static_cast<double>(LoadLittleEndian<float>(stored.data()));
  } else if (type == ValueType::kBool) {
    CELLAR_ASSERT(stored.size() == 1);
    value.boolean = stored[0] != 0;
  } else {
    value.bytes = stored;
  }
  return value;
}

std::string_view StoreInteger(ValueType type, int128_t value, ValueBuffer* buffer) {
  CELLAR_ASSERT(value >= IntegerTypeMin(type));
  CELLAR_ASSERT(value <= IntegerTypeMax(type));
  const auto bits = static_cast<uint64_t>(value);
  StoreLittleEndian(buffer->bytes.data(), bits);
  size_t bytes = 0;
  if (value != 0) {
    // A signed number needs one bit more than its magnitude's.
    const uint64_t folded = value < 0 ? ~bits : bits;
    const auto width = static_cast<size_t>(std::bit_width(folded)) + (IsSignedType(type) ? 1 : 0);
    bytes = (width + 7) / 8;
  }
  return std::string_view(buffer->bytes.data(), bytes);
}

void AppendValueText(ValueType type, std::string_view stored, std::string* out) {
  if (IsTextType(type)) {
    out->append(stored);
    return;
  }
  ValueBuffer buffer;
  const SeenValue seen = SeenOf(type, stored, &buffer);
  type = seen.type;
  const TypedValue value = DecodeValue(type, seen.stored);
  if (IsSignedType(type)) return AppendInt64(value.signed_integer, out);
  if (IsUnsignedType(type)) return AppendUint64(value.unsigned_integer, out);
  if (type == ValueType::kF64) return AppendDouble(value.floating, out);
  if (type == ValueType::kF32) return AppendFloat(static_cast<float>(value.floating), out);
  if (type == ValueType::kUuid) return AppendUuidText(value.bytes, out);
  out->append(value.boolean ? "true" : "false");
}

std::string ValueText(ValueType type, std::string_view stored) {
  std::string text;
  AppendValueText(type, stored, &text);
  return text;
}

bool ParseUuid(std::string_view text, char* bytes) {
  if (text.size() != kUuidTextBytes) return false;
  size_t at = 0;
  for (size_t i = 0; i < kUuidBytes; ++i) {
    if (DashBeforeByte(i) && text[at++] != '-') return false;
    const int high = HexDigit(text[at]);
    const int low = HexDigit(text[at + 1]);
    if (high < 0 || low < 0) return false;
    bytes[i] = static_cast<char>(high << 4 | low);
    at += 2;
  }
  return true;
}

void AppendUuidText(std::string_view bytes, std::string* out) {
  CELLAR_ASSERT(bytes.size() == kUuidBytes);
  for (size_t i = 0; i < kUuidBytes; ++i) {
    if (DashBeforeByte(i)) out->push_back('-');
    AppendHex(bytes[i], out);
  }
}

bool ParseBool(std::string_view text, bool* value) {
  const bool is_true = text == "1" || text == "true";
  const bool is_false = text == "0" || text == "false";
  if (!is_true && !is_false) return false;
  *value = is_true;
  return true;
}

}  // namespace cellar
