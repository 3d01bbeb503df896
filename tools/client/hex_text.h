// Bytes as hexadecimal digits, read back (base/text/ascii.h writes them).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cellar::client {

// Of digits in either case; nothing if a character is no digit or one is left over.
inline std::optional<std::string> DecodeHex(std::string_view digits) {
  const auto value_of = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  if (digits.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (size_t i = 0; i < digits.size(); i += 2) {
    const int high = value_of(digits[i]);
    const int low = value_of(digits[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(high * 16 + low));
  }
  return bytes;
}

}  // namespace cellar::client
