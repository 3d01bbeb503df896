// Bytes of a client as text that people read: what is not printable ASCII becomes \xHH.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cellar {

inline constexpr size_t kQuotedBytesMax{64};

// For an error text: between single quotes, and cut short with "..." so that an error never carries
// a megabyte back.
std::string Quote(std::string_view bytes);

// The whole, between double quotes, with a backslash before a backslash or a double quote:
// redis-cli, the configuration file and FILTER read it back.
void AppendDoubleQuoted(std::string_view bytes, std::string* out);

// A word of a command line: as it is if nothing in it needs quotes, else between double quotes.
std::string QuoteWord(std::string_view word);

}  // namespace cellar
