// What an unknown command is told: the command that does it here, or the one it is a slip of.
#include "commands/catalog/command_hints.h"

#include <catch2/catch.hpp>
#include <string>

#include "commands/all_commands.h"
#include "commands/catalog/command_table.h"

namespace command_hints_test {

using namespace cellar;

TEST_CASE("The words of other stores are told what does it here", "[command_hints]") {
  CommandTable commands;
  AddAllCommands(&commands);
  CHECK(CommandHint(commands, "HSET") == "-- try CPUT table row column value");
  CHECK(CommandHint(commands, "insert") == "-- try CPUT table row column value");
  CHECK(CommandHint(commands, "createtable") == "-- try TABLE CREATE table FAMILY family");
  CHECK(CommandHint(commands, "lookup") == "-- try CROW table row");
  CHECK(CommandHint(commands, "begin") == "-- try MULTI [ATOMIC]");
  // With the C that the commands of cells begin with.
  CHECK(CommandHint(commands, "CSET") == "-- try CPUT table row column value");
  CHECK(CommandHint(commands, "cgetall") == "-- try CROW table row");
}

TEST_CASE("Each word that a hint begins with is a command, and no command has a hint",
          "[command_hints]") {
  CommandTable commands;
  AddAllCommands(&commands);
  for (const std::string word :
       {"set",     "get",      "mget",          "incr",        "append", "expire", "hexists",
        "hlen",    "zrange",   "lpush",         "lrange",      "llen",   "create", "drop",
        "alter",   "describe", "show",          "use",         "begin",  "commit", "rollback",
        "explain", "grant",    "deleteallrows", "search_near", "help"}) {
    INFO(word);
    CHECK(commands.Find(word) == nullptr);
    const std::string hint = CommandHint(commands, word);
    REQUIRE(hint.starts_with("-- try "));
    CHECK(commands.Find(hint.substr(7, hint.find(' ', 7) - 7)) != nullptr);
  }
}

TEST_CASE("A slip of the finger is told the command that is near", "[command_hints]") {
  CommandTable commands;
  AddAllCommands(&commands);
  CHECK(CommandHint(commands, "CPUTT") == "-- did you mean CPUT?");
  CHECK(CommandHint(commands, "cptu") == "-- did you mean CPUT?");
  CHECK(CommandHint(commands, "CINCBRY") == "-- did you mean CINCRBY?");
  CHECK(CommandHint(commands, "TABEL") == "-- did you mean TABLE?");
  for (const std::string& word : {std::string("FOO"), std::string("nonsense"), std::string("x"),
                                  std::string("PING "), std::string(), std::string(100'000, 'c')}) {
    CHECK(CommandHint(commands, word).empty());
  }
}

TEST_CASE("An unknown subcommand is told the near one, or what there is", "[command_hints]") {
  CommandTable commands;
  AddAllCommands(&commands);
  const auto hint = [&](std::string_view container, std::string_view word) {
    return SubcommandHint(*commands.Find(container), word);
  };
  CHECK(hint("FAMILY", "CREATE") == " Did you mean FAMILY ADD?");
  CHECK(hint("table", "describe") == " Did you mean TABLE SHOW?");
  CHECK(hint("KEYSPACE", "use") == " Did you mean SELECT keyspace?");
  CHECK(hint("TABLE", "CRAETE") == " Did you mean TABLE CREATE?");
  CHECK(hint("KEYSPACE", "EAT") == " There are CREATE, DROP, LIST.");
  CHECK(hint("INDEX", "") == " There are CREATE, DROP, LIST, INFO.");
  // Redis' containers keep its words, but for slips.
  CHECK(hint("CONFIG", "FOO").empty());
  CHECK(hint("CONFIG", "REWIRTE") == " Did you mean CONFIG REWRITE?");
}

}  // namespace command_hints_test
