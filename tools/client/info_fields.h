// The text of INFO, taken apart.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace cellar::client {

// The fields of INFO's text: "name:value" lines.
std::map<std::string, std::string> InfoFields(std::string_view text);
// "calls=1,usec=2" by its words.
std::map<std::string, std::string> Parts(const std::string& value);

}  // namespace cellar::client
