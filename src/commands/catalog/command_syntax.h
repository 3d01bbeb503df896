// The syntax line of a command row as a tree, for COMMAND DOCS.
//
//   "table row [NX|XX] (column value [AS type])..."
//   -> table, row, one-of{NX, XX} optional, block{column, value, type token AS optional} multiple
//
// Notation: lower-case words are arguments, words without a lower-case letter are tokens, `[x]` is
// optional, `( )` groups, `a|b` without blanks is one of the two words, ` | ` between blanks
// separates whole alternatives of the bracket around it, `...` repeats what stands before it. A
// token before one argument inside brackets belongs to it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cellar {

struct SyntaxNode {
  enum class Kind : uint8_t { kArgument, kToken, kOneOf, kBlock };
  Kind kind{Kind::kArgument};
  std::string name;   // of the argument; of a token, one-of or block a name made from its parts
  std::string token;  // the word the client writes, empty if there is none
  bool optional{false};
  bool multiple{false};
  bool multiple_token{false};  // the token is repeated with it
  std::vector<SyntaxNode> children;
};

// REQUIRES: the text is well formed (brackets closed). O(length).
std::vector<SyntaxNode> ParseSyntax(std::string_view text);

// The type word of COMMAND DOCS for an argument: "key", "integer", "pattern" ... by its name, and
// where a name means several things by the command ("client|kill") that has it.
std::string_view SyntaxTypeWord(std::string_view command, const SyntaxNode& node);

}  // namespace cellar
