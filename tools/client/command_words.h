// Commands in the bytes of the wire (RESP arrays of bulk strings), and as one types them.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cellar::client {

// Appends a word of a command, as RESP.
void AppendBulk(std::string_view word, std::string* out);
// Appends one command.
void AppendCommand(std::span<const std::string_view> words, std::string* out);
void AppendCommand(std::initializer_list<std::string_view> words, std::string* out);

// The words of a line in redis-cli's quoting, which TABLE SHOW has too. A quote that is not closed
// ends with the line.
std::vector<std::string> SplitCliWords(std::string_view line);

}  // namespace cellar::client
