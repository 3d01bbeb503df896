// Integers to bytes and back: the only place where the order of bytes is decided.
//
//   Fixed16/32/64   little-endian: file formats and values (the machines we run on load them as is)
//   BigEndian64     most significant byte first, so that memcmp order is numeric order: keys
//   Varint64        7 bits a byte, low bits first, top bit = "more follows": at most 10 bytes
//
// Put* append to a string, Encode* write to memory that is large enough, Get* take from the front
// of a view and say false, changing nothing, when it is too short or malformed.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/inline.h"

namespace cellar {

static_assert(std::endian::native == std::endian::little, "Cellar's formats assume little-endian");

template <typename T>
inline T LoadLittleEndian(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}
template <typename T>
inline void StoreLittleEndian(void* to, T value) {
  std::memcpy(to, &value, sizeof(T));
}

inline uint32_t DecodeFixed32(const char* from) { return LoadLittleEndian<uint32_t>(from); }
inline uint64_t DecodeFixed64(const char* from) { return LoadLittleEndian<uint64_t>(from); }
inline void EncodeFixed32(char* to, uint32_t value) { StoreLittleEndian(to, value); }
inline void EncodeFixed64(char* to, uint64_t value) { StoreLittleEndian(to, value); }

template <typename T>
inline void PutFixed(std::string* to, T value) {
  char bytes[sizeof(T)];
  StoreLittleEndian(bytes, value);
  to->append(bytes, sizeof(T));
}
inline void PutFixed32(std::string* to, uint32_t value) { PutFixed(to, value); }
inline void PutFixed64(std::string* to, uint64_t value) { PutFixed(to, value); }

template <typename T>
[[nodiscard]] inline bool GetFixed(std::string_view* from, T* value) {
  if (from->size() < sizeof(T)) return false;
  *value = LoadLittleEndian<T>(from->data());
  from->remove_prefix(sizeof(T));
  return true;
}
[[nodiscard]] inline bool GetFixed32(std::string_view* from, uint32_t* value) {
  return GetFixed(from, value);
}
[[nodiscard]] inline bool GetFixed64(std::string_view* from, uint64_t* value) {
  return GetFixed(from, value);
}

inline uint64_t DecodeBigEndian64(const char* from) {
  return __builtin_bswap64(LoadLittleEndian<uint64_t>(from));
}
inline void EncodeBigEndian64(char* to, uint64_t value) {
  StoreLittleEndian(to, __builtin_bswap64(value));
}

// Where the first byte of the value `wanted` stands, `size` if there is none. For keys and names:
// quicker than a call of memchr while they are short.
CELLAR_INLINE size_t FindByte(const char* bytes, size_t size, char wanted) {
  const uint64_t pattern = 0x0101010101010101ULL * static_cast<uint8_t>(wanted);
  // 8 times the place of the first zero byte, 64 if there is none. The lowest of the bits that come
  // out is that of a zero byte; higher ones may be wrong.
  const auto zero_in = [](uint64_t word) {
    return std::countr_zero((word - 0x0101010101010101ULL) & ~word & 0x8080808080808080ULL);
  };
  if (size < 8) {
    if (size < 4) {
      size_t at = 0;
      while (at < size && bytes[at] != wanted) ++at;
      return at;
    }
    const uint64_t low = LoadLittleEndian<uint32_t>(bytes);
    const uint64_t high = LoadLittleEndian<uint32_t>(bytes + size - 4);
    const uint64_t word = low | high << (8 * (size - 4));
    const auto found = static_cast<size_t>(zero_in(word ^ pattern)) / 8;
    return found < size ? found : size;
  }
  size_t at = 0;
  for (; at + 8 <= size; at += 8) {
    const int found = zero_in(LoadLittleEndian<uint64_t>(bytes + at) ^ pattern);
    if (found != 64) return at + static_cast<size_t>(found) / 8;
  }
  if (at == size) return size;
  // What is left, with some that has been looked at before it.
  const int found = zero_in(LoadLittleEndian<uint64_t>(bytes + size - 8) ^ pattern);
  return size - 8 + static_cast<size_t>(found) / 8;
}
inline size_t FindZeroByte(const char* bytes, size_t size) { return FindByte(bytes, size, '\0'); }

inline constexpr int kVarint64BytesMax{10};

// Writes at most kVarint64BytesMax bytes; returns the end of what it wrote.
inline char* EncodeVarint64(char* to, uint64_t value) {
  while (value >= 0x80) {
    *to++ = static_cast<char>(value | 0x80);
    value >>= 7;
  }
  *to++ = static_cast<char>(value);
  return to;
}
inline void PutVarint64(std::string* to, uint64_t value) {
  char bytes[kVarint64BytesMax];
  to->append(bytes, static_cast<size_t>(EncodeVarint64(bytes, value) - bytes));
}
[[nodiscard]] inline bool GetVarint64(std::string_view* from, uint64_t* value) {
  // Lengths and ids are nearly always below 128.
  if (!from->empty() && static_cast<uint8_t>((*from)[0]) < 0x80) [[likely]] {
    *value = static_cast<uint8_t>((*from)[0]);
    from->remove_prefix(1);
    return true;
  }
  uint64_t result = 0;
  for (size_t i = 0; i < from->size() && i < kVarint64BytesMax; ++i) {
    const auto byte = static_cast<uint8_t>((*from)[i]);
    if (i == 9 && byte > 1) return false;  // would not fit into 64 bits
    result |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      from->remove_prefix(i + 1);
      *value = result;
      return true;
    }
  }
  return false;
}

// Writes at most kVarint64BytesMax + bytes.size() bytes; returns the end of what it wrote.
inline char* EncodeLengthPrefixed(char* to, std::string_view bytes) {
  to = EncodeVarint64(to, bytes.size());
  if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
  return to + bytes.size();
}
inline void PutLengthPrefixed(std::string* to, std::string_view bytes) {
  PutVarint64(to, bytes.size());
  to->append(bytes);
}
// The view points into *from's bytes.
[[nodiscard]] inline bool GetLengthPrefixed(std::string_view* from, std::string_view* bytes) {
  std::string_view rest = *from;
  uint64_t size = 0;
  if (!GetVarint64(&rest, &size) || size > rest.size()) return false;
  *bytes = rest.substr(0, size);
  rest.remove_prefix(size);
  *from = rest;
  return true;
}

}  // namespace cellar
