// See info_fields.h.
#include "client/info_fields.h"

#include <algorithm>

namespace cellar::client {

std::map<std::string, std::string> Parts(const std::string& value) {
  std::map<std::string, std::string> parts;
  size_t at = 0;
  while (at < value.size()) {
    const size_t end = std::min(value.find(',', at), value.size());
    const std::string part = value.substr(at, end - at);
    const size_t equals = part.find('=');
    if (equals != std::string::npos) parts[part.substr(0, equals)] = part.substr(equals + 1);
    at = end + 1;
  }
  return parts;
}

std::map<std::string, std::string> InfoFields(std::string_view text) {
  std::map<std::string, std::string> fields;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const size_t colon = line.find(':');
    if (line.empty() || line[0] == '#' || colon == std::string_view::npos) continue;
    fields[std::string(line.substr(0, colon))] = line.substr(colon + 1);
  }
  return fields;
}

}  // namespace cellar::client
