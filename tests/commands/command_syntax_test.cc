// The syntax lines of the command table as trees.
#include "commands/catalog/command_syntax.h"

#include <catch2/catch.hpp>
#include <string>

#include "commands/all_commands.h"

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

// The types of the arguments of this name in a command, each once, in order.
void CollectTypes(const CommandEntry& entry, const std::vector<SyntaxNode>& nodes,
                  std::string_view name, std::string* types) {
  for (const SyntaxNode& node : nodes) {
    CollectTypes(entry, node.children, name, types);
    if (node.kind != SyntaxNode::Kind::kArgument || node.name != name) continue;
    const std::string_view type = SyntaxTypeWord(entry.full_name, node);
    if (types->find(type) == std::string::npos)
      types->append(types->empty() ? "" : " ").append(type);
  }
}

TEST_CASE("COMMAND DOCS says of each argument what it is read as", "[commands]") {
  CommandTable table;
  AddAllCommands(&table);
  const auto types = [&table](std::string_view command, std::string_view name) {
    const CommandEntry* entry = table.FindByFullName(command);
    REQUIRE(entry != nullptr);
    std::string found;
    CollectTypes(*entry, ParseSyntax(entry->row->syntax), name, &found);
    return found;
  };
  CHECK(types("cincrby", "delta") == "integer");
  CHECK(types("cincrbyfloat", "delta") == "double");
  CHECK(types("cmutate", "delta") == "double");  // its INCR takes either
  CHECK(types("cput", "time") == "string");
  CHECK(types("cput", "duration") == "string");
  CHECK(types("cscan", "cursor") == "string");
  CHECK(types("scan", "cursor") == "integer");
  CHECK(types("cscan", "count") == "integer");
  CHECK(types("cscan", "probability") == "double");
  CHECK(types("debug|sleep", "seconds") == "double");
  CHECK(types("client|kill", "seconds") == "integer");
  CHECK(types("rename", "table") == "key");
  CHECK(types("rename", "new-table") == "key");
  CHECK(types("table|rename", "new-table") == "key");
  CHECK(types("eval", "key") == "key");
  CHECK(types("cluster|keyslot", "key") == "string");
  CHECK(types("psync", "offset") == "integer");
}

TEST_CASE("What COMMAND DOCS calls a key is one in the key specs", "[commands]") {
  CommandTable table;
  AddAllCommands(&table);
  for (const auto& entry : table.entries()) {
    INFO(entry->full_name);
    for (const std::string_view name : {"table", "new-table", "key"}) {
      std::string found;
      CollectTypes(*entry, ParseSyntax(entry->row->syntax), name, &found);
      if (found == "key") CHECK_FALSE(entry->row->keys.none());
    }
  }
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
