// What S3-compatible servers answer with: small XML without attributes that matter.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cellar {

// What stands between the first <name ...> and the next </name>; empty if there is none.
std::string_view XmlElement(std::string_view text, std::string_view name);
// What stands in each <name ...>, in order.
std::vector<std::string_view> XmlElements(std::string_view text, std::string_view name);
// Text without entities ("&amp;" to "&"); others than XML's five and numbers stay as they are.
std::string XmlText(std::string_view text);

}  // namespace cellar
