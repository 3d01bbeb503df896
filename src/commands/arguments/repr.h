// Bytes as redis-cli shows them: between double quotes, with \" \\ \n \r \t \a \b and \xHH.
#pragma once

#include <string>
#include <string_view>

namespace cellar {

void AppendRepr(std::string_view bytes, std::string* to);

}  // namespace cellar
