// Encoders and decoders of single components. Fixed-size ones are built ascending in a small array;
// a descending component is complemented in place when it is complete.
#include "engine/keys/key_component.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/assert.h"
#include "base/coding.h"
#include "base/text/ascii.h"
#include "base/text/utf8.h"

namespace cellar {
namespace {

constexpr char kEscape{'\xff'};      // behind a 00 that is content
constexpr char kTerminator{'\x01'};  // behind a 00 that ends the content

struct ComponentTypeInfo {
  std::string_view name;
  ValueType value_type;  // whose numbers it holds; kBytes for text
  uint8_t bytes;         // encoded; 0 for text
};

// In the order of ComponentType.
constexpr std::array<ComponentTypeInfo, 18> kComponentTypes{{
    {"bytes", ValueType::kBytes, 0},
    {"ascii", ValueType::kBytes, 0},
    {"utf8", ValueType::kString, 0},
    {"u8", ValueType::kU8, 1},
    {"u16", ValueType::kU16, 2},
    {"u32", ValueType::kU32, 4},
    {"u64", ValueType::kU64, 8},
    {"i8", ValueType::kI8, 1},
    {"i16", ValueType::kI16, 2},
    {"i32", ValueType::kI32, 4},
    {"i64", ValueType::kI64, 8},
    {"f32", ValueType::kF32, 4},
    {"f64", ValueType::kF64, 8},
    {"bool", ValueType::kBool, 1},
    {"uuid", ValueType::kUuid, 16},
    {"luuid", ValueType::kUuid, 16},
    {"timeuuid", ValueType::kUuid, 16},
    {"recno", ValueType::kI64, 8},
}};
static_assert(kComponentTypes.size() == static_cast<size_t>(ComponentType::kRecno) + 1);

// encoded[i] = bytes of the UUID[kTimeUuidOrder[i]]: the most significant part of the time first.
constexpr std::array<uint8_t, kUuidBytes> kTimeUuidOrder{6, 7, 4,  5,  0,  1,  2,  3,
                                                         8, 9, 10, 11, 12, 13, 14, 15};

const ComponentTypeInfo& InfoOf(ComponentType type) {
  return kComponentTypes[static_cast<size_t>(type)];
}

// Escaped content, ascending.
void AppendEscaped(std::string_view text, std::string* out) {
  size_t begin = 0;
  while (begin < text.size()) {
    const void* nul = std::memchr(text.data() + begin, 0, text.size() - begin);
    if (nul == nullptr) break;
    const auto behind = static_cast<size_t>(static_cast<const char*>(nul) - text.data()) + 1;
    out->append(text.substr(begin, behind - begin)).push_back(kEscape);
    begin = behind;
  }
  out->append(text.substr(begin));
}

void AppendBigEndian(uint64_t value, size_t bytes, std::string* out) {
  char all[8];
  EncodeBigEndian64(all, value);
  out->append(all + (8 - bytes), bytes);
}

uint64_t LoadBigEndian(std::string_view bytes) {
  char all[8] = {};
  std::memcpy(all + (8 - bytes.size()), bytes.data(), bytes.size());
  return DecodeBigEndian64(all);
}

uint64_t SignBit(size_t bytes) { return uint64_t{1} << (8 * bytes - 1); }

void AppendInteger(ValueType type, int128_t value, std::string* out) {
  const size_t bytes = NumericTypeBytes(type);
  auto bits = static_cast<uint64_t>(value);
  if (IsSignedType(type)) bits ^= SignBit(bytes);
  AppendBigEndian(bits, bytes, out);
}

int128_t LoadIntegerComponent(ValueType type, std::string_view encoded) {
  const uint64_t bits = LoadBigEndian(encoded);
  if (IsUnsignedType(type)) return static_cast<int128_t>(bits);
  const uint64_t sign = SignBit(encoded.size());
  return static_cast<int128_t>(bits) - static_cast<int128_t>(sign);
}

template <typename Float, typename Bits>
void AppendFloatBits(Float value, std::string* out) {
  if (value == 0) value = 0;  // -0 is 0
  auto bits = std::bit_cast<Bits>(value);
  constexpr Bits kSign = Bits{1} << (8 * sizeof(Bits) - 1);
  bits = (bits & kSign) != 0 ? static_cast<Bits>(~bits) : static_cast<Bits>(bits | kSign);
  AppendBigEndian(bits, sizeof(Bits), out);
}

// Returns a NaN for bytes that no encoder writes.
template <typename Float, typename Bits>
Float LoadFloatBits(std::string_view encoded) {
  const auto bits = static_cast<Bits>(LoadBigEndian(encoded));
  constexpr Bits kSign = Bits{1} << (8 * sizeof(Bits) - 1);
  const Bits restored =
      (bits & kSign) != 0 ? static_cast<Bits>(bits ^ kSign) : static_cast<Bits>(~bits);
  return std::bit_cast<Float>(restored);
}

void AppendUuid(ComponentType type, std::string_view uuid, std::string* out) {
  CELLAR_ASSERT(uuid.size() == kUuidBytes);
  std::array<char, kUuidBytes> bytes;
  for (size_t i = 0; i < kUuidBytes; ++i) {
    bytes[i] = uuid[type == ComponentType::kTimeuuid ? kTimeUuidOrder[i] : i];
  }
  if (type == ComponentType::kLuuid) {
    bytes[0] = static_cast<char>(bytes[0] ^ 0x80);
    bytes[8] = static_cast<char>(bytes[8] ^ 0x80);
  }
  out->append(bytes.data(), bytes.size());
}

// 16 bytes of the UUID behind an ascending encoding; false if it is none of this type.
bool RestoreUuid(ComponentType type, std::string_view encoded, char* uuid) {
  for (size_t i = 0; i < kUuidBytes; ++i) {
    uuid[type == ComponentType::kTimeuuid ? kTimeUuidOrder[i] : i] = encoded[i];
  }
  if (type == ComponentType::kLuuid) {
    uuid[0] = static_cast<char>(uuid[0] ^ 0x80);
    uuid[8] = static_cast<char>(uuid[8] ^ 0x80);
  }
  return type != ComponentType::kTimeuuid || (static_cast<uint8_t>(uuid[6]) >> 4) == 1;
}

bool CheckText(ComponentType type, std::string_view text, std::string_view* why) {
  if (type == ComponentType::kAscii && !IsAscii(text)) {
    *why = "is not ASCII";
    return false;
  }
  if (type == ComponentType::kUtf8 && !IsValidUtf8(text)) {
    *why = "is not valid UTF-8";
    return false;
  }
  return true;
}

// Appends the ascending encoding of a component that is not text.
bool AppendFixed(ComponentType type, std::string_view text, std::string* out,
                 std::string_view* why) {
  const ValueType value_type = InfoOf(type).value_type;
  if (IsIntegerType(value_type)) {
    int128_t value = 0;
    const NumberError error = ParseInt128(text, &value);
    if (error == NumberError::kMalformed) {
      *why = "is not an integer";
      return false;
    }
    const int128_t least = type == ComponentType::kRecno ? 1 : IntegerTypeMin(value_type);
    if (error != NumberError::kNone || value < least || value > IntegerTypeMax(value_type)) {
      *why = "is out of range";
      return false;
    }
    AppendInteger(value_type, value, out);
    return true;
  }
  ValueBuffer buffer;
  std::string_view stored;
  if (!ParseValue(value_type, text, &buffer, &stored).ok()) {
    *why = IsFloatType(value_type)          ? "is not a number in range"
           : value_type == ValueType::kBool ? "is not true or false"
                                            : "is not a UUID";
    return false;
  }
  if (type == ComponentType::kTimeuuid && (static_cast<uint8_t>(stored[6]) >> 4) != 1) {
    *why = "is not a UUID of version 1";
    return false;
  }
  EncodeComponentValue({type, false}, value_type, stored, out);
  return true;
}

// Where the terminator of a text component begins; npos if there is none or an escape is malformed.
// `nul` is 00, or ff in a descending component.
size_t FindTerminator(std::string_view bytes, bool descending) {
  const char nul = descending ? '\xff' : '\0';
  const char escape = descending ? '\0' : kEscape;
  const char terminator = descending ? static_cast<char>(~kTerminator) : kTerminator;
  size_t at = 0;
  while (at + 1 < bytes.size()) {
    const void* found =
        std::memchr(bytes.data() + at, static_cast<uint8_t>(nul), bytes.size() - at);
    if (found == nullptr) return std::string_view::npos;
    at = static_cast<size_t>(static_cast<const char*>(found) - bytes.data());
    if (at + 1 >= bytes.size()) return std::string_view::npos;
    if (bytes[at + 1] == terminator) return at;
    if (bytes[at + 1] != escape) return std::string_view::npos;
    at += 2;
  }
  return std::string_view::npos;
}

// Appends the content of escaped bytes without their terminator.
void AppendUnescaped(std::string_view bytes, bool descending, std::string* text) {
  const char nul = descending ? '\xff' : '\0';
  const size_t begin = text->size();
  size_t at = 0;
  while (at < bytes.size()) {
    const void* found =
        std::memchr(bytes.data() + at, static_cast<uint8_t>(nul), bytes.size() - at);
    if (found == nullptr) break;
    const auto behind = static_cast<size_t>(static_cast<const char*>(found) - bytes.data()) + 1;
    text->append(bytes.substr(at, behind - at));
    at = behind + 1;  // over the escape
  }
  text->append(bytes.substr(at));
  if (descending) Complement(text, begin);
}

// The stored value behind the ascending bytes of a component that is not text.
bool RestoreFixed(ComponentType type, std::string_view encoded, ValueBuffer* buffer,
                  std::string_view* stored) {
  const ComponentTypeInfo& info = InfoOf(type);
  if (encoded.size() != info.bytes) return false;
  if (IsIntegerType(info.value_type)) {
    const int128_t value = LoadIntegerComponent(info.value_type, encoded);
    if (type == ComponentType::kRecno && value < 1) return false;
    *stored = StoreInteger(info.value_type, value, buffer);
    return true;
  }
  if (info.value_type == ValueType::kUuid) {
    if (!RestoreUuid(type, encoded, buffer->bytes.data())) return false;
    *stored = std::string_view(buffer->bytes.data(), kUuidBytes);
    return true;
  }
  if (info.value_type == ValueType::kBool) {
    buffer->bytes[0] = encoded[0];
  } else if (info.value_type == ValueType::kF32) {
    StoreLittleEndian(buffer->bytes.data(), LoadFloatBits<float, uint32_t>(encoded));
  } else {
    StoreLittleEndian(buffer->bytes.data(), LoadFloatBits<double, uint64_t>(encoded));
  }
  *stored = std::string_view(buffer->bytes.data(), info.bytes);
  return StoredValueIsValid(info.value_type, *stored);
}

// Splits exactly one component of fixed size off its complement; false if the size is another.
bool LoadFixed(OrderComponent component, std::string_view encoded, ValueBuffer* buffer,
               std::string_view* stored) {
  std::array<char, kUuidBytes> ascending;
  if (encoded.size() > ascending.size()) return false;
  for (size_t i = 0; i < encoded.size(); ++i) {
    ascending[i] = component.descending ? static_cast<char>(~encoded[i]) : encoded[i];
  }
  return RestoreFixed(component.type, std::string_view(ascending.data(), encoded.size()), buffer,
                      stored);
}

}  // namespace

void Complement(std::string* bytes, size_t from) {
  for (size_t i = from; i < bytes->size(); ++i) (*bytes)[i] = static_cast<char>(~(*bytes)[i]);
}

std::string_view ComponentTypeName(ComponentType type) { return InfoOf(type).name; }

std::string ComponentTypeNames() {
  std::string names;
  for (const auto& info : kComponentTypes) names.append(names.empty() ? "" : " ").append(info.name);
  return names;
}

bool ParseComponentType(std::string_view name, ComponentType* type) {
  std::string lower(name.substr(0, 16));
  if (lower.size() != name.size()) return false;
  for (char& c : lower) c = LowerChar(c);
  if (lower == "byte") lower = "u8";
  for (size_t i = 0; i < kComponentTypes.size(); ++i) {
    if (kComponentTypes[i].name == lower) {
      *type = static_cast<ComponentType>(i);
      return true;
    }
  }
  return false;
}

ComponentType ComponentOfValueType(ValueType type) {
  if (type == ValueType::kString) return ComponentType::kUtf8;
  for (size_t i = 0; i < kComponentTypes.size(); ++i) {
    if (kComponentTypes[i].value_type == type) return static_cast<ComponentType>(i);
  }
  CELLAR_ASSERT(false);
  return ComponentType::kBytes;
}

bool EncodeComponent(OrderComponent component, std::string_view text, std::string* out,
                     std::string_view* why) {
  const size_t begin = out->size();
  if (IsTextComponent(component.type)) {
    if (!CheckText(component.type, text, why)) return false;
    AppendEscaped(text, out);
    out->append("\0\x01", 2);
  } else if (!AppendFixed(component.type, text, out, why)) {
    return false;
  }
  if (component.descending) Complement(out, begin);
  return true;
}

bool EncodeComponentPrefix(OrderComponent component, std::string_view text, std::string* out,
                           std::string_view* why) {
  CELLAR_ASSERT(IsTextComponent(component.type));
  if (!CheckText(component.type, text, why)) return false;
  const size_t begin = out->size();
  AppendEscaped(text, out);
  if (component.descending) Complement(out, begin);
  return true;
}

void EncodeComponentValue(OrderComponent component, ValueType type, std::string_view stored,
                          std::string* out) {
  const size_t begin = out->size();
  if (IsTextComponent(component.type)) {
    AppendEscaped(stored, out);
    out->append("\0\x01", 2);
  } else if (IsIntegerType(type)) {
    AppendInteger(type, LoadInteger(type, stored), out);
  } else if (type == ValueType::kF32) {
    AppendFloatBits<float, uint32_t>(LoadLittleEndian<float>(stored.data()), out);
  } else if (type == ValueType::kF64) {
    AppendFloatBits<double, uint64_t>(LoadLittleEndian<double>(stored.data()), out);
  } else if (type == ValueType::kUuid) {
    AppendUuid(component.type, stored, out);
  } else {
    out->append(stored);
  }
  if (component.descending) Complement(out, begin);
}

size_t ComponentSize(OrderComponent component, std::string_view at_front) {
  if (IsTextComponent(component.type)) {
    const size_t terminator = FindTerminator(at_front, component.descending);
    return terminator == std::string_view::npos ? 0 : terminator + 2;
  }
  const size_t bytes = InfoOf(component.type).bytes;
  return at_front.size() < bytes ? 0 : bytes;
}

bool DecodeComponent(OrderComponent component, std::string_view encoded, std::string* text) {
  if (IsTextComponent(component.type)) {
    if (encoded.size() < 2 || ComponentSize(component, encoded) != encoded.size()) return false;
    AppendUnescaped(encoded.substr(0, encoded.size() - 2), component.descending, text);
    return true;
  }
  ValueBuffer buffer;
  std::string_view stored;
  if (!LoadFixed(component, encoded, &buffer, &stored)) return false;
  AppendValueText(InfoOf(component.type).value_type, stored, text);
  return true;
}

bool DecodeComponentValue(OrderComponent component, ValueType type, std::string_view encoded,
                          std::string* stored) {
  stored->clear();
  if (IsTextComponent(component.type)) return DecodeComponent(component, encoded, stored);
  CELLAR_ASSERT(InfoOf(component.type).value_type == type);
  ValueBuffer buffer;
  std::string_view view;
  if (!LoadFixed(component, encoded, &buffer, &view)) return false;
  stored->assign(view);
  return true;
}

}  // namespace cellar
