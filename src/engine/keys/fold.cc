// See fold.h.
#include "engine/keys/fold.h"

#include <array>
#include <cmath>
#include <string>

#include "base/text/ascii.h"
#include "base/text/quote.h"

namespace cellar {
namespace {

constexpr std::array<std::string_view, kFoldKindCount> kNames{"none", "sum", "min", "max", "hll"};

int CompareForFold(ValueType type, std::string_view a, std::string_view b) {
  const int order = CompareStored(type, a, b);
  if (order != 0 || !IsFloatType(type)) return order;
  const bool a_negative = std::signbit(DecodeValue(type, a).floating);
  const bool b_negative = std::signbit(DecodeValue(type, b).floating);
  return static_cast<int>(b_negative) - static_cast<int>(a_negative);
}

}  // namespace

std::string_view FoldKindName(FoldKind kind) { return kNames[static_cast<size_t>(kind)]; }

Result<FoldKind> ParseFoldKind(std::string_view word) {
  for (size_t i = 1; i < kNames.size(); ++i) {
    if (EqualsIgnoreCase(word, kNames[i])) return static_cast<FoldKind>(i);
  }
  return Status::Error(ErrorCode::kErr,
                       "unknown aggregate " + Quote(word) + ": one of sum, min, max, hll");
}

bool FoldTakesType(FoldKind kind, const std::optional<ValueType>& type) {
  switch (kind) {
    case FoldKind::kNone:
      return true;
    case FoldKind::kSum:
      return type && IsNumericType(*type);
    case FoldKind::kMin:
    case FoldKind::kMax:
      return type && *type != ValueType::kBool && *type != ValueType::kHll;
    case FoldKind::kHll:
      return !type;
  }
  return false;
}

bool FoldReplaces(FoldKind kind, ValueType type, std::string_view stored, std::string_view input) {
  const int order = CompareForFold(type, input, stored);
  return kind == FoldKind::kMin ? order < 0 : order > 0;
}

}  // namespace cellar
