// INFO: the server about itself, in Redis' sections and field names, so that Redis' dashboards and
// exporters read it. Fields of features that Cellar does not have are there with the value
// "nothing" where tools look for them.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace cellar {

class Host;

// `sections` as INFO's arguments: names in any case, `default`, `all`, `everything`; none is
// default. Who may not read everything is not told how much data there is.
enum class InfoScope : unsigned char { kAll, kWithoutData };
std::string InfoText(Host& host, std::span<const std::string_view> sections, InfoScope scope);

// "894.93K", as Redis shows bytes to people.
std::string HumanBytes(uint64_t bytes);

}  // namespace cellar
