// The version of Cellar, and that of the protocol's world it belongs to.
#pragma once

#include <string_view>

namespace cellar {

inline constexpr std::string_view kVersion{"1.0.0"};
// What clients and tools that look at `redis_version` may expect of the generic commands.
inline constexpr std::string_view kRedisVersion{"7.2.4"};

}  // namespace cellar
