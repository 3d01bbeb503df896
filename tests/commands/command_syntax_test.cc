// The syntax lines of the command table as trees.
#include "commands/command_syntax.h"

#include <catch2/catch.hpp>
#include <string>

#include "commands/command_groups.h"

namespace cellar {
namespace command_syntax_test {

// The tree in one line: a? optional, a* multiple, T:a with its token, {..} block, <a|b> one of.
std::string Drawn(const std::vector<SyntaxNode>& nodes) {
  std::string out;
  for (const SyntaxNode& node : nodes) {
    if (!out.empty()) out += ' ';
    std::string body;
    if (node.kind == SyntaxNode::Kind::kArgument) body = node.name;
    if (node.kind == SyntaxNode::Kind::kBlock) body = "{" + Drawn(node.children) + "}";
    if (node.kind == SyntaxNode::Kind::kOneOf) {
      for (const SyntaxNode& child : node.children) {
        body += (body.empty() ? "<" : "|") + Drawn({child});
      }
      body += ">";
    }
    if (!node.token.empty()) body = node.token + (body.empty() ? "" : ":" + body);
    out += body + (node.optional ? "?" : "") + (node.multiple ? "*" : "");
  }
  return out;
}

TEST_CASE("A syntax line becomes the tree that COMMAND DOCS shows", "[commands]") {
  REQUIRE(Drawn(ParseSyntax("")).empty());
  REQUIRE(Drawn(ParseSyntax("table row [NX|XX]")) == "table row <NX|XX>?");
  REQUIRE(Drawn(ParseSyntax("(column value [AS type])...")) == "{column value AS:type?}*");
  REQUIRE(Drawn(ParseSyntax("[LIMIT offset count]")) == "LIMIT:{offset count}?");
  REQUIRE(Drawn(ParseSyntax("column|family ...")) == "<column|family>*");
  REQUIRE(Drawn(ParseSyntax("(PREFIX p | RANGE min max | ALL)")) ==
          "<PREFIX:p|RANGE:{min max}|ALL>");
}

TEST_CASE("Every row of the command table is complete", "[commands]") {
  CommandTable table;
  AddAllCommands(&table);
  for (const auto& entry : table.entries()) {
    INFO(entry->full_name);
    REQUIRE_FALSE(entry->row->summary.empty());
    REQUIRE_FALSE(entry->row->complexity.empty());
    REQUIRE_FALSE(entry->row->group.empty());
    REQUIRE(entry->row->arity != 0);
    (void)ParseSyntax(entry->row->syntax);
    REQUIRE(table.FindByFullName(entry->full_name) == entry.get());
  }
  REQUIRE(table.Find("CgEt") == table.Find("cget"));
  REQUIRE(table.Find("") == nullptr);
  REQUIRE(table.Find(std::string(100, 'x')) == nullptr);
}

}  // namespace command_syntax_test
}  // namespace cellar
