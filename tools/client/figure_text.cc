// See figure_text.h.
#include "client/figure_text.h"

#include <fmt/format.h>

namespace cellar::client {

std::string ShortText(double number) {
  if (number < 10) return fmt::format("{:.1f}", number);
  if (number < 1000) return fmt::format("{:.0f}", number);
  for (const char unit : {'k', 'M', 'G', 'T', 'P'}) {
    number /= 1000;
    if (number < 99.95) return fmt::format("{:.1f}{}", number, unit);
    if (number < 999.5) return fmt::format("{:.0f}{}", number, unit);
  }
  return fmt::format("{:.0f}E", number / 1000);
}

std::string CountText(uint64_t number) {
  return number < 1000 ? std::to_string(number) : ShortText(static_cast<double>(number));
}

std::string BytesText(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{}B", bytes);
  auto value = static_cast<double>(bytes);
  for (const char unit : {'K', 'M', 'G', 'T', 'P'}) {
    value /= 1024;
    if (value < 99.95) return fmt::format("{:.1f}{}", value, unit);
    if (value < 1023.5) return fmt::format("{:.0f}{}", value, unit);
  }
  return fmt::format("{:.0f}E", value / 1024);
}

std::string SpanText(uint64_t seconds) {
  if (seconds >= 86'400) return fmt::format("{}d {:02}h", seconds / 86'400, seconds / 3600 % 24);
  if (seconds >= 3600) return fmt::format("{}h {:02}m", seconds / 3600, seconds / 60 % 60);
  return fmt::format("{}m {:02}s", seconds / 60, seconds % 60);
}

std::string PrintableText(std::string_view text, size_t width) {
  std::string out;
  for (const char c : text) {
    if (c >= ' ' && c <= '~') {
      out.push_back(c);
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    if (out.size() > width) break;
  }
  if (out.size() > width) {
    out.resize(width > 2 ? width - 2 : 0);
    out += "..";
  }
  return out;
}

}  // namespace cellar::client
