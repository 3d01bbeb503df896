// Bytes of a client inside an error text: between single quotes, what is not printable ASCII as
// \xHH, and cut short with "..." so that an error never carries a megabyte back.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cellar {

inline constexpr size_t kQuotedBytesMax{64};

std::string Quote(std::string_view bytes);

}  // namespace cellar
