// See arguments.h.
#include "commands/arguments/arguments.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include "resp/decimal.h"

namespace cellar {

Result<int64_t> IntegerArgument(std::string_view text) {
  int64_t value = 0;
  if (!ParseStrictInt64(text, &value)) {
    return Status::Error(ErrorCode::kErr, "value is not an integer or out of range");
  }
  return value;
}

Result<int64_t> IntegerArgument(std::string_view text, int64_t low, int64_t high,
                                std::string_view out_of_range) {
  ASSIGN_OR_RETURN(const int64_t value, IntegerArgument(text));
  if (value < low || value > high) {
    return Status::Error(ErrorCode::kErr, std::string(out_of_range));
  }
  return value;
}

Result<double> DoubleArgument(std::string_view text) {
  double value = 0;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto done = std::from_chars(text.data(), text.data() + text.size(), value);
  if (done.ec != std::errc{} || done.ptr != text.data() + text.size() || std::isnan(value)) {
    return Status::Error(ErrorCode::kErr, "value is not a valid float");
  }
  return value;
}

Result<int64_t> MemoryArgument(std::string_view text) {
  size_t digits = 0;
  while (digits < text.size() &&
         (text[digits] == '-' || (text[digits] >= '0' && text[digits] <= '9')))
    ++digits;
  struct Unit {
    std::string_view name;
    int64_t bytes;
  };
  static constexpr Unit kUnits[] = {{"", 1},
                                    {"b", 1},
                                    {"k", 1000},
                                    {"kb", 1024},
                                    {"m", 1000'000},
                                    {"mb", 1024 * 1024},
                                    {"g", 1000'000'000},
                                    {"gb", 1024LL * 1024 * 1024}};
  int64_t value = 0;
  if (ParseStrictInt64(text.substr(0, digits), &value) && value >= 0) {
    for (const Unit& unit : kUnits) {
      int64_t bytes = 0;
      if (EqualsIgnoreCase(text.substr(digits), unit.name) &&
          !__builtin_mul_overflow(value, unit.bytes, &bytes)) {
        return bytes;
      }
    }
  }
  return Status::Error(ErrorCode::kErr, "argument must be a memory value");
}

}  // namespace cellar
