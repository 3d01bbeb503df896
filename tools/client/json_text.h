// Texts as JSON, whatever bytes they are.
#pragma once

#include <string>
#include <string_view>

namespace cellar::client {

// Appends a JSON string. REQUIRES: valid UTF-8.
void AppendJsonString(std::string_view text, std::string* out);
// Appends a JSON string, or {"b64": ...} of what is not UTF-8.
void AppendJsonText(std::string_view text, std::string* out);

}  // namespace cellar::client
