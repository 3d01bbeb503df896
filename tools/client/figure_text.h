// Figures and names as short texts for a terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cellar::client {

// "7.0", "950", "12.3k", "4.0M".
std::string ShortText(double number);
// The same of what is counted: a whole number below a thousand.
std::string CountText(uint64_t number);
// "512B", "1.5K", "20.0G": powers of 1,024.
std::string BytesText(uint64_t bytes);
// "5m 03s", "3h 00m", "2d 01h".
std::string SpanText(uint64_t seconds);
// Printable ASCII, other bytes as \xHH; at most `width` characters, and cut with "..".
std::string PrintableText(std::string_view text, size_t width);

}  // namespace cellar::client
