// ConvertValue: a value as one of another type (FAMILY ALTER ... CONVERT).
//
//   text     to any type in whose notation it is
//   any      to text: the canonical one
//   numbers  to numbers that are the same: integers that fit, whole floats, exact floats
//   bool     is 0 and 1
#pragma once

#include <string>
#include <string_view>

#include "engine/keys/value.h"

namespace cellar {

// *converted := the stored form, as `to`, of what `stored` is as `from`. False if there is no such
// value; then it is unspecified. REQUIRES: neither is hll.
[[nodiscard]] bool ConvertValue(ValueType from, std::string_view stored, ValueType to,
                                std::string* converted);

}  // namespace cellar
