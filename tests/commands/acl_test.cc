// Access control: rules, selectors, what they allow, what they say of themselves; files of users;
// the log of refusals.
#include "commands/acl/acl.h"

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "commands/acl/acl_check.h"
#include "commands/all_commands.h"

namespace cellar {
namespace acl_test {

struct Rig {
  Rig() { AddAllCommands(&commands); }

  // The user after `rules`, or the error.
  std::string Set(const std::vector<std::string_view>& rules) {
    const Status status = ApplyRules(&user, rules, {commands, ChannelDefault::kNone});
    return status.ok() ? "OK" : status.text();
  }
  Denied Check(const std::vector<std::string_view>& words, std::string_view keyspace = "0") {
    const CommandEntry* command = commands.Find(words[0]);
    if (!command->subcommands.empty()) {
      command = CommandTable::FindSubcommand(*command, words[1]);
    }
    REQUIRE(command != nullptr);
    return CheckCommand(user, *command, words, keyspace).denied;
  }
  // The user's rights to one table while a command runs.
  CommandRights Rights(std::string_view table, uint64_t selectors = 1,
                       std::string_view keyspace = "0") {
    CommandRights rights(user, selectors);
    rights.SetTable(keyspace, table);
    return rights;
  }

  CommandTable commands;
  User user;
};

TEST_CASE("A new user may nothing, and rules about commands are shown as they were said", "[acl]") {
  Rig rig;
  REQUIRE(rig.user.Text() == "off resetchannels -@all");
  REQUIRE(rig.Set({"on", "+cget", "+client|id", "+@transaction"}) == "OK");
  REQUIRE(rig.user.selectors[0].CommandsText() == "-@all +cget +client|id +@transaction");
  REQUIRE(rig.Set({"+client"}) == "OK");
  REQUIRE(rig.user.selectors[0].CommandsText() == "-@all +cget +@transaction +client");
  // What a category says again is dropped.
  REQUIRE(rig.Set({"+@read"}) == "OK");
  REQUIRE(rig.user.selectors[0].CommandsText() == "-@all +@transaction +client +@read");
  REQUIRE(rig.Set({"+@all", "-client|kill"}) == "OK");
  REQUIRE(rig.user.selectors[0].CommandsText() == "+@all -client|kill");
  REQUIRE(rig.Set({"+client|kill"}) == "OK");
  REQUIRE(rig.user.selectors[0].CommandsText() == "+@all");
  REQUIRE(rig.Set({"nocommands", "+select|0", "+SELECT|5"}) == "OK");
  REQUIRE(rig.user.selectors[0].CommandsText() == "-@all +select|0 +select|5");
  REQUIRE(rig.Check({"select", "0"}) == Denied::kNothing);
  REQUIRE(rig.Check({"select", "1"}) == Denied::kCommand);
}

TEST_CASE("Every category alone comes back as it was said", "[acl]") {
  for (const NamedBit& category : CategoryNames()) {
    const std::string name(category.name);
    Rig rig;
    REQUIRE(rig.Set({"-@all", "+@" + name}) == "OK");
    REQUIRE(rig.user.selectors[0].CommandsText() == "-@all +@" + name);
    for (const auto& entry : rig.commands.entries()) {
      if (entry->Has(kNoAuth)) continue;
      // PEER is given by its own name or by @replication alone.
      const bool trusts = (entry->categories & kCategoryReplication) != 0;
      if (trusts && category.bit != kCategoryReplication) {
        REQUIRE(!rig.user.selectors[0].AllowsCommand(*entry, {}));
        continue;
      }
      REQUIRE(rig.user.selectors[0].AllowsCommand(*entry, {}) ==
              ((entry->categories & category.bit) != 0));
    }
    REQUIRE(rig.Set({"+@all", "-@" + name}) == "OK");
    REQUIRE(rig.user.selectors[0].CommandsText() == "+@all -@" + name);
  }
}

TEST_CASE("Rules that cannot be read change nothing and say what is wrong", "[acl]") {
  struct Case {
    std::vector<std::string_view> rules;
    std::string error;  // behind "Error in ACL SETUSER modifier "
  };
  const std::string syntax = ": Syntax error";
  const std::string unknown = ": Unknown command or category name in ACL";
  const Case cases[] = {
      {{"nonsense"}, "'nonsense'" + syntax},
      {{"+nonsense"}, "'+nonsense'" + unknown},
      {{"-nonsense"}, "'-nonsense'" + unknown},
      {{"+@nonsense"}, "'+@nonsense'" + unknown},
      {{"+client|nonsense"}, "'+client|nonsense'" + unknown},
      {{"-select|0"}, "'-select|0'" + unknown},
      {{"+client|"}, "'+client|'" + syntax},
      {{"+config|get|port"},
       "'+config|get|port': Allowing first-arg of a subcommand is not supported"},
      {{"%~x"}, "'%~x'" + syntax},
      {{"%RX~x"}, "'%RX~x'" + syntax},
      {{"%RR~x"}, "'%RR~x'" + syntax},
      {{"%R"}, "'%R'" + syntax},
      {{"~a b"}, "'~a b'" + syntax},
      {{")"}, "')'" + syntax},
      {{"(on)"}, "'(on)'" + syntax},
      {{"(>x)"}, "'(>x)'" + syntax},
      {{"(&* &x)"},
       "'(&* &x)': Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid "
       "and does not have any effect. Try 'resetchannels' to start with an empty list of channels"},
      {{"allkeys", "~x"},
       "'~x': Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does "
       "not have any effect. Try 'resetkeys' to start with an empty list of patterns"},
      {{"<nobody"},
       "'<nobody': The password you are trying to remove from the user does not exist"},
      {{"#12"},
       "'#12': The password hash must be exactly 64 characters and contain only lowercase "
       "hexadecimal characters"},
  };
  for (const Case& c : cases) {
    Rig rig;
    REQUIRE(rig.Set({"on", "~a", "+cget"}) == "OK");
    const std::string before = rig.user.Text();
    std::vector<std::string_view> rules{"off", "+cput"};
    if (c.rules[0] != "allkeys") rules.clear();
    rules.insert(rules.end(), c.rules.begin(), c.rules.end());
    REQUIRE(rig.Set(rules) == "Error in ACL SETUSER modifier " + c.error);
    REQUIRE(rig.user.Text() == before);
  }
  Rig rig;
  REQUIRE(rig.Set({"(+cget", "~x"}) ==
          "Unmatched parenthesis in acl selector starting at '(+cget'.");
}

TEST_CASE("Passwords are kept as hashes, several at a time", "[acl]") {
  Rig rig;
  REQUIRE_FALSE(rig.user.HasPassword(""));
  REQUIRE(rig.Set({">one", ">two", ">one"}) == "OK");
  REQUIRE(rig.user.password_hashes.size() == 2);
  REQUIRE(rig.user.Text().find("one") == std::string::npos);
  REQUIRE(rig.user.password_hashes[0] ==
          "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed");
  REQUIRE(rig.user.HasPassword("one"));
  REQUIRE(rig.user.HasPassword("two"));
  REQUIRE_FALSE(rig.user.HasPassword("three"));
  REQUIRE(rig.Set({"<one", "!3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3"}) ==
          "OK");
  REQUIRE(rig.user.password_hashes.empty());
  REQUIRE_FALSE(rig.user.HasPassword("one"));
  REQUIRE(rig.Set({"nopass"}) == "OK");
  REQUIRE(rig.user.HasPassword("anything"));
  REQUIRE(rig.Set({">again"}) == "OK");
  REQUIRE_FALSE(rig.user.HasPassword("anything"));
  REQUIRE(rig.Set({"resetpass"}) == "OK");
  REQUIRE_FALSE(rig.user.HasPassword("again"));
}

TEST_CASE("Patterns are matched with table:family", "[acl]") {
  Rig rig;
  REQUIRE(rig.Set({"~web:anchor", "%R~web:contents", "%W~log*:*", "~2/team:*"}) == "OK");
  const CommandRights web = rig.Rights("web");
  REQUIRE(web.MayRead("anchor"));
  REQUIRE(web.MayWrite("anchor"));
  REQUIRE(web.MayRead("contents"));
  REQUIRE_FALSE(web.MayWrite("contents"));
  REQUIRE(web.refused() == "web:contents");
  REQUIRE_FALSE(web.MayRead("secret"));
  REQUIRE_FALSE(web.MayWriteAll());
  REQUIRE_FALSE(web.MayReadAll());
  const CommandRights log = rig.Rights("logs");
  REQUIRE(log.MayWrite("any"));
  REQUIRE_FALSE(log.MayRead("any"));
  REQUIRE(log.MayWriteAll());
  // A pattern without a slash counts in every keyspace, one with it in its own.
  REQUIRE(rig.Rights("web", 1, "7").MayRead("anchor"));
  REQUIRE(rig.Rights("7/web").MayRead("anchor"));
  REQUIRE(rig.Rights("team", 1, "2").MayReadAll());
  REQUIRE(rig.Rights("2/team").MayWriteAll());
  REQUIRE_FALSE(rig.Rights("team").MayRead("f"));
}

TEST_CASE("A right for reading and one for writing make a right for both", "[acl]") {
  Rig rig;
  REQUIRE(rig.Set({"%R~foo", "%W~foo", "%RW~bar"}) == "OK");
  REQUIRE(rig.user.selectors[0].KeysText() == "~foo ~bar");
}

TEST_CASE("A command is refused for the command, a table or a channel, in this order", "[acl]") {
  Rig rig;
  REQUIRE(rig.Set({"+@cell", "+@schema", "+@keyspace", "+publish", "+psubscribe", "+subscribe",
                   "~web:anchor", "%R~web:*", "~own:*", "&news.*"}) == "OK");
  REQUIRE(rig.Check({"ping"}) == Denied::kCommand);
  REQUIRE(rig.Check({"auth", "x"}) == Denied::kNothing);
  REQUIRE(rig.Check({"cget", "web", "r", "anchor:x"}) == Denied::kNothing);
  REQUIRE(rig.Check({"cget", "other", "r", "anchor:x"}) == Denied::kKey);
  REQUIRE(rig.Check({"cput", "web", "r", "anchor:x", "1"}) == Denied::kNothing);
  REQUIRE(rig.Check({"cdelrange", "web", "ALL"}) == Denied::kKey);
  REQUIRE(rig.Check({"cdelrange", "own", "ALL"}) == Denied::kNothing);
  REQUIRE(rig.Check({"table", "drop", "web"}) == Denied::kKey);
  REQUIRE(rig.Check({"table", "drop", "own"}) == Denied::kNothing);
  REQUIRE(rig.Check({"exists", "web", "own"}) == Denied::kNothing);
  REQUIRE(rig.Check({"exists", "web", "other"}) == Denied::kKey);
  REQUIRE(rig.Check({"rename", "own", "mine"}) == Denied::kKey);
  REQUIRE(rig.Check({"flushall"}) == Denied::kKey);
  REQUIRE(rig.Check({"publish", "news.today", "x"}) == Denied::kNothing);
  REQUIRE(rig.Check({"publish", "other", "x"}) == Denied::kChannel);
  REQUIRE(rig.Check({"subscribe", "news.a", "other"}) == Denied::kChannel);
  REQUIRE(rig.Check({"psubscribe", "news.*"}) == Denied::kNothing);
  REQUIRE(rig.Check({"psubscribe", "news.a*"}) == Denied::kChannel);
  REQUIRE(rig.Set({"~2/*"}) == "OK");
  REQUIRE(rig.Check({"cget", "any", "r", "f:q"}) == Denied::kKey);
  REQUIRE(rig.Check({"cget", "any", "r", "f:q"}, "2") == Denied::kNothing);
  REQUIRE(rig.Check({"cget", "2/any", "r", "f:q"}) == Denied::kNothing);
}

TEST_CASE("One selector must allow all of a command", "[acl]") {
  Rig rig;
  REQUIRE(rig.Set({"(+cget", "~a:*)", "(+cput ~b:*)", "(+rename %RW~a:*)", "(+rename ~b:*)"}) ==
          "OK");
  REQUIRE(rig.Check({"cget", "a", "r", "f:q"}) == Denied::kNothing);
  REQUIRE(rig.Check({"cget", "b", "r", "f:q"}) == Denied::kKey);
  REQUIRE(rig.Check({"cput", "a", "r", "f:q", "1"}) == Denied::kKey);
  REQUIRE(rig.Check({"rename", "a", "a"}) == Denied::kNothing);
  REQUIRE(rig.Check({"rename", "a", "b"}) == Denied::kKey);
  REQUIRE(rig.Check({"ping"}) == Denied::kCommand);
  // What is told is the argument that got furthest.
  const std::vector<std::string_view> words{"rename", "a", "c"};
  const AclVerdict verdict = CheckCommand(rig.user, *rig.commands.Find("rename"), words, "0");
  REQUIRE(verdict.argument == 2);
  REQUIRE(rig.Set({"clearselectors"}) == "OK");
  REQUIRE(rig.user.selectors.size() == 1);
}

TEST_CASE("The text of a user makes the same user again", "[acl]") {
  const uint64_t seed = 20'221'121;
  INFO("seed " << seed);
  Random random(seed);
  Rig rig;
  const std::vector<std::string_view> rules{"on",         "off",         "nopass",
                                            ">a",         ">b",          "~a:*",
                                            "%R~b",       "%W~b",        "~*",
                                            "resetkeys",  "&a",          "&*",
                                            "+@all",      "-@all",       "+@read",
                                            "-@write",    "+cget",       "-cget",
                                            "+client",    "-client|id",  "+select|0",
                                            "+client|id", "-@slow",      "resetchannels",
                                            "+@schema",   "-table|drop", "reset",
                                            "resetpass",  "(+cget ~x)",  "clearselectors",
                                            "+table",     "-table",      "skip-sanitize-payload"};
  for (int round = 0; round < 2000; ++round) {
    (void)rig.Set({rules[random.Below(rules.size())]});
    User copy;
    const std::string text = rig.user.Text();
    std::vector<std::string_view> words;
    for (std::string_view rest = text; !rest.empty();) {
      const size_t end = std::min(rest.find(' '), rest.size());
      words.push_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    REQUIRE(ApplyRules(&copy, words, {rig.commands, ChannelDefault::kNone}).ok());
    REQUIRE(copy.Includes(rig.user));
    REQUIRE(rig.user.Includes(copy));
    REQUIRE(copy.unrestricted() == rig.user.unrestricted());
  }
}

TEST_CASE("A user with less does not include one with more", "[acl]") {
  Rig rig;
  Rig more;
  REQUIRE(rig.Set({"+cget", "~a:f", "&c"}) == "OK");
  for (const std::string_view rule :
       {"+cput", "~a:g", "&d", "allkeys", "allchannels", "+@all", "+select|0", "(+ping)"}) {
    more.user = rig.user;
    REQUIRE(more.Set({rule}) == "OK");
    REQUIRE(more.user.Includes(rig.user));
    REQUIRE_FALSE(rig.user.Includes(more.user));
  }
}

TEST_CASE("Users come from lines of a file, all or none", "[acl]") {
  CommandTable commands;
  AddAllCommands(&commands);
  Config config;
  Acl acl(commands, config);
  REQUIRE(acl.Lines() == std::vector<std::string>{"user default on nopass ~* &* +@all"});
  REQUIRE(acl.IsPlain());
  auto users = acl.ReadFile(
      "user alice on nopass ~a:* (+cget ~b:*)\n\n  user default on nopass ~* +@all\r\n", "f");
  REQUIRE(users.ok());
  User* const before = &acl.default_user();
  (void)acl.Replace(std::move(*users));
  REQUIRE(&acl.default_user() == before);
  REQUIRE(acl.Lines() ==
          std::vector<std::string>{
              "user alice on nopass ~a:* resetchannels -@all (~b:* resetchannels -@all +cget)",
              "user default on nopass ~* resetchannels +@all"});
  std::string text;
  for (const std::string& line : acl.Lines()) text += line + "\n";
  REQUIRE(acl.ReadFile(text, "f").ok());
  const auto broken = acl.ReadFile("user a on\nuser a off\nnonsense\nuser b +nothing\n", "f");
  REQUIRE(broken.status().text().find("Duplicate user 'a' found on line 2") != std::string::npos);
  REQUIRE(broken.status().text().find("f:3: should start with user") != std::string::npos);
  REQUIRE(broken.status().text().find("f:4: Error in") != std::string::npos);
  auto none = acl.ReadFile("", "f");
  REQUIRE(none.ok());
  (void)acl.Replace(std::move(*none));
  REQUIRE(acl.IsPlain());
}

TEST_CASE("requirepass is the default user's password", "[acl]") {
  CommandTable commands;
  AddAllCommands(&commands);
  Config config;
  config.requirepass = "secret";
  Acl acl(commands, config);
  REQUIRE(acl.LoadConfig().ok());
  REQUIRE_FALSE(acl.default_user().no_password);
  REQUIRE(acl.default_user().HasPassword("secret"));
  REQUIRE(acl.IsPlain());
  acl.SetDefaultPassword("");
  REQUIRE(acl.default_user().no_password);
  config.users = {{"u", "on"}};
  config.aclfile = "file";
  REQUIRE_FALSE(acl.LoadConfig().ok());
}

TEST_CASE("The log of refusals counts equal ones and is bounded", "[acl]") {
  AclLog log;
  const auto entry = [](std::string object, int64_t seconds) {
    return AclLogEntry{.count = 1,
                       .reason = Denied::kKey,
                       .in_transaction = false,
                       .object = std::move(object),
                       .user = "u",
                       .client = {},
                       .time_micros = seconds * 1'000'000};
  };
  log.Add(entry("a", 1), 5);
  log.Add(entry("a", 2), 5);
  log.Add(entry("b", 3), 5);
  log.Add(entry("a", 4), 5);
  REQUIRE(log.entries().size() == 2);
  REQUIRE(log.entries()[0].object == "a");
  REQUIRE(log.entries()[0].count == 3);
  log.Add(entry("a", 100), 5);
  REQUIRE(log.entries().size() == 3);
  for (int i = 0; i < 20; ++i) log.Add(entry(std::to_string(i), 200), 5);
  REQUIRE(log.entries().size() == 5);
  log.Add(entry(std::string(100'000, 'x'), 300), 5);
  REQUIRE(log.entries()[0].object.size() == AclLog::kNameBytesMax);
  log.Add(entry("none", 300), 0);
  REQUIRE(log.entries().empty());
}

}  // namespace acl_test
}  // namespace cellar
