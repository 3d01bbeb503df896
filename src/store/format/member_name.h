// The file beside a store that says what the members of its replica set have acknowledged
// (replica/set/member_file.h); nothing to recovery.
#pragma once

#include <string_view>

namespace cellar {

inline constexpr std::string_view kMemberFileName = "cellar.member";

}  // namespace cellar
