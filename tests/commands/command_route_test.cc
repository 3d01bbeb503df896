// Routes: which set each kind of command goes to, by the own tablets and a map made by hand.
#include "commands/cluster/command_route.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "cluster/cluster_map.h"
#include "cluster/set_directory.h"
#include "commands/all_commands.h"
#include "commands/session/session.h"
#include "commands/session/transaction.h"
#include "store/move_changes.h"
#include "store/tablet_changes.h"
#include "tests/store/index_fixture.h"

namespace command_route_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)
using index_fixture::Fixture;
using Words = std::vector<std::string_view>;

// This node is one of set 1, which has web's rows from `g` to before `p`, and all of `mine`.
class Routes : public Fixture {
 public:
  Routes() {
    AddAllCommands(&commands);
    for (const char* name : {"web", "mine", "theirs", "hole"}) Make(name, {{"f", {}}});
    REQUIRE(store->CreateTable("0", "log", *Order::ParseKey("recno"), {{"f", {}}}).ok());
    REQUIRE(TabletChanges(*store).Init(42).ok());
    Own("web", {{"g", "p"}});
    Own("theirs", {});
    Own("hole", {});
    Own("log", {{"", "100"}});
    Map("web", "", "g", 0, 5);
    Map("web", "g", "p", 1, 6);
    Map("web", "p", "t", 1, 7);  // it has become so, and has not come here
    Map("web", "t", "", 2, 8);
    Map("mine", "", "", 1, 1);
    Map("theirs", "", "k", 2, 1);
    Map("theirs", "k", "", 2, 2);
    Map("hole", "", "k", 2, 1);
    Map("log", "", "100", 1, 1);
    Map("log", "100", "", 2, 1);
    map.Sort();
  }
  std::string Bound(const std::string& table, const std::string& row) {
    return *EncodeTabletBound(Find(table).schema(), row);
  }
  void Own(const std::string& table, const std::vector<std::pair<std::string, std::string>>& ends) {
    std::vector<Tablet> tablets;
    for (const auto& [begin, end] : ends)
      tablets.push_back({.begin = Bound(table, begin), .end = Bound(table, end)});
    REQUIRE(TabletChanges(*store).Assign(Find(table), std::move(tablets)).ok());
  }
  void Map(const std::string& table, const std::string& begin, const std::string& end, uint64_t set,
           uint64_t epoch) {
    map.Add(Find(table).id(), "0/" + table,
            {.begin = Bound(table, begin), .end = Bound(table, end), .set = set, .epoch = epoch});
  }

  CommandEntry& Entry(const Words& words) {
    CommandEntry* entry = commands.Find(words[0]);
    if (!entry->subcommands.empty()) entry = CommandTable::FindSubcommand(*entry, words[1]);
    REQUIRE(entry != nullptr);
    return *entry;
  }
  CommandRoute RouteTo(const Words& words) {
    return FindRoute({.store = *store,
                      .map = by_truth ? nullptr : &map,
                      .own_set = 1,
                      .leads = leads,
                      .keyspace = "0",
                      .transaction = session.transaction.get(),
                      .sets = sets,
                      .cluster_map = cluster_map},
                     Entry(words), words);
  }
  Table& Find(const std::string& table) { return Fixture::Find(table); }
  // "here", "set 2", "unknown: ...", "CROSSSET ..."
  std::string Say(const Words& words) {
    const CommandRoute route = RouteTo(words);
    switch (route.kind) {
      case CommandRoute::Kind::kHere:
        return "here";
      case CommandRoute::Kind::kSet:
        return "set " + std::to_string(route.set);
      case CommandRoute::Kind::kUnknown:
        return "unknown: " + route.error;
      case CommandRoute::Kind::kLost:
      case CommandRoute::Kind::kSeveral:
        return route.error;
    }
    return {};
  }
  std::string Exec(const std::vector<Words>& queue) {
    session.transaction = std::make_unique<TransactionState>();
    session.transaction->queueing = true;
    for (const Words& words : queue) QueueCommand(session, Entry(words), words);
    const std::string said = Say({"EXEC"});
    session.transaction.reset();
    return said;
  }

  CommandTable commands;
  MapCache map;
  SetDirectory sets;
  ClusterMap cluster_map;
  Session session;
  bool leads{true};
  bool by_truth{false};
};

TEST_CASE_METHOD(Routes, "A row's command goes to who has the row", "[route]") {
  REQUIRE(Say({"CGET", "web", "a", "f:x"}) == "set 0");
  REQUIRE(RouteTo({"CGET", "web", "a", "f:x"}).epoch == 5);
  REQUIRE(Say({"CGET", "web", "h", "f:x"}) == "set 1");
  REQUIRE(Say({"CPUT", "web", "z", "f:x", "1"}) == "set 2");
  REQUIRE(Say({"CWATCH", "web", "z"}) == "set 2");
  REQUIRE(Say({"CDEL", "theirs", "z"}) == "set 2");
  REQUIRE(Say({"TABLET", "ROUTE", "web", "z", "SURE"}) == "set 2");
  REQUIRE(Say({"TABLET", "ROUTE", "web", "z"}) == "here");
  REQUIRE(Say({"TABLET", "SPLIT", "web", "u", "v"}) == "set 2");
  REQUIRE(Say({"TABLET", "SPLIT", "web", "a", "v"}) ==
          "CROSSSET TABLET SPLIT touches set 0 (web 'a') and set 2 (web 'v')");
}

TEST_CASE_METHOD(Routes, "Each set has its part of a feed", "[route]") {
  for (const uint64_t number : {0, 1, 2}) (void)sets.Put({.number = number});
  Feed feed;
  feed.keep_micros = 1;
  for (const char* const name : {"f", "g"}) REQUIRE(store->CreateFeed("0", name, feed).ok());
  const std::string all = "CROSSSET feed 'f' lies on several sets: read f@0, f@1, f@2";
  REQUIRE(Say({"XRANGE", "f@2", "-", "+"}) == "set 2");
  REQUIRE(Say({"XLEN", "f@1"}) == "set 1");
  REQUIRE(Say({"XREADGROUP", "GROUP", "g", "c", "STREAMS", "f@0", "g@0", ">", ">"}) == "set 0");
  REQUIRE(Say({"XREAD", "STREAMS", "f@0", "g@2", "0", "0"}) ==
          "CROSSSET XREAD touches set 0 (f@0) and set 2 (g@2)");
  REQUIRE(Say({"XREAD", "STREAMS", "g@1", "f", "0", "0"}) == all);
  // Its groups are at home.
  REQUIRE(Say({"XINFO", "GROUPS", "f"}) == "set 0");
  REQUIRE(Say({"XINFO", "STREAM", "f"}) == all);
  REQUIRE(Say({"XINFO", "STREAM", "f", "FULL"}) == "set 0");
  REQUIRE(Say({"XREADGROUP", "GROUP", "g", "c", "STREAMS", "f", "g@2", ">", ">"}) ==
          "CROSSSET XREADGROUP touches set 0 (f) and set 2 (g@2)");
  REQUIRE(Say({"FEED", "MOVE", "f", "TO", "2"}) == "set 0");
  REQUIRE(Say({"FEED", "INFO", "f"}) == all);
  // What there is not is refused where it is asked.
  for (const char* const word : {"f@3", "f@", "f@x", "f@1@1", "h", "h@1", "f@18446744073709551615"})
    REQUIRE(Say({"XLEN", word}) == "here");
  REQUIRE(Say({"XREAD", "STREAMS", "f@1", "f@9", "0", "0"}) == "set 1");
  REQUIRE(Say({"FEED", "CREATE", "x", "ON", "0"}) == "set 0");
  REQUIRE(Say({"FEED", "DROP", "f"}) == "set 0");
  REQUIRE(Say({"FEED", "LIST"}) == "here");
}

TEST_CASE_METHOD(Routes, "The own tablets are believed before the map", "[route]") {
  // The map says that it is this set's, and this node's truth that it is not.
  const std::string unknown =
      "unknown: TRYAGAIN the map does not say who owns row 'q' of table 'web'";
  REQUIRE(Say({"CGET", "web", "q", "f:x"}) == unknown);
  leads = false;  // its truth may be old, too
  REQUIRE(Say({"CGET", "web", "q", "f:x"}) == "set 1");
  REQUIRE(Say({"CGET", "hole", "z", "f:x"}) ==
          "unknown: TRYAGAIN the map does not say who owns row 'z' of table 'hole'");
  REQUIRE(Say({"CCOUNT", "hole"}) ==
          "unknown: TRYAGAIN the map does not say who owns all rows of table 'hole'");
  map.Begin(2, 0, 1);
  REQUIRE(Say({"CGET", "web", "h", "f:x"}) == "set 1");
  REQUIRE(Say({"CCOUNT", "mine"}) == "set 1");
  REQUIRE(Say({"CGET", "web", "a", "f:x"}).starts_with("unknown: "));
}

TEST_CASE_METHOD(Routes, "What is refused anyway is answered here", "[route]") {
  REQUIRE(Say({"CGET", "nosuch", "a", "f:x"}) == "here");
  REQUIRE(Say({"CGET", "log", "no number", "f:x"}) == "here");
  REQUIRE(Say({"CGET", "web"}) == "here");
  REQUIRE(Say({"CROWS", "web", "x", "a"}) == "here");
  REQUIRE(Say({"CROWS", "web", "3", "a", "z"}) == "here");
  REQUIRE(Say({"CCOUNT", "nosuch"}) == "here");
  for (const Words& words : std::vector<Words>{{"PING"},
                                               {"INFO"},
                                               {"KEYS", "*"},
                                               {"DBSIZE"},
                                               {"SELECT", "0"},
                                               {"EXEC"},
                                               {"TABLE", "LIST"},
                                               {"CLUSTER", "INFO"},
                                               {"XREAD", "STREAMS", "s", "0"},
                                               {"HEAT", "web"},
                                               {"EXISTS", "web"}})
    REQUIRE(Say(words) == "here");
}

TEST_CASE_METHOD(Routes, "Several rows, and rows that are not named", "[route]") {
  REQUIRE(Say({"CROWS", "web", "2", "a", "b"}) == "set 0");
  REQUIRE(Say({"CROWS", "web", "1", "a", "LIMIT"}) == "set 0");
  REQUIRE(Say({"CROWS", "web", "2", "a", "z"}) ==
          "CROSSSET CROWS touches set 0 (web 'a') and set 2 (web 'z')");
  REQUIRE(Say({"CCOUNT", "theirs"}) == "set 2");
  REQUIRE(RouteTo({"CCOUNT", "theirs"}).epoch == 0);  // of two tablets
  REQUIRE(Say({"CSCAN", "mine", "0"}) == "set 1");
  REQUIRE(Say({"CEXPLAIN", "CSCAN", "theirs", "0"}) == "set 2");
  REQUIRE(Say({"TABLE", "SAMPLE", "theirs", "3"}) == "set 2");
  for (const Words& words : std::vector<Words>{
           {"CSCAN", "web", "0"}, {"CNEAR", "web", "a"}, {"CDELRANGE", "web", "ALL"}})
    REQUIRE(Say(words).starts_with("CROSSSET table 'web' lies on 3 sets"));
  REQUIRE(Say({"WATCH", "theirs"}) == "set 2");
  REQUIRE(Say({"WATCH", "mine", "web"}) ==
          "CROSSSET table 'web' lies on 3 sets; watch its rows: CWATCH table row");
  REQUIRE(Say({"WATCH", "mine", "theirs"}) ==
          "CROSSSET WATCH touches set 1 (mine) and set 2 (theirs)");
}

TEST_CASE_METHOD(Routes, "The next record number is given by who has the last ones", "[route]") {
  REQUIRE(Say({"CPUT", "log", "7", "f:x", "1"}) == "set 1");
  REQUIRE(Say({"CPUT", "log", "*", "f:x", "1"}) == "set 2");
  REQUIRE(Say({"CPUT", "web", "*", "f:x", "1"}) == "set 0");  // a key like any other
}

TEST_CASE_METHOD(Routes, "Set 0 decides what holds for all sets", "[route]") {
  for (const Words& words : std::vector<Words>{{"TABLE", "CREATE", "x"},
                                               {"TABLE", "TRUNCATE", "web"},
                                               {"FAMILY", "ADD", "web", "g"},
                                               {"KEYSPACE", "CREATE", "k"},
                                               {"DEL", "web"},
                                               {"RENAME", "web", "x"},
                                               {"FLUSHALL"},
                                               {"CLUSTER", "MAP", "CHECK"},
                                               {"CLUSTER", "EVENTS"},
                                               {"ACL", "SETUSER", "u"},
                                               {"COPY", "web", "x"},
                                               {"SNAPSHOT", "CREATE", "s", "TABLE", "1", "theirs"},
                                               {"SNAPSHOT", "DROP", "s"}})
    REQUIRE(Say(words) == "set 0");
}

TEST_CASE_METHOD(Routes, "EXEC goes to the one set of its commands", "[route]") {
  REQUIRE(Exec({{"PING"}, {"INFO"}}) == "here");
  REQUIRE(Exec({{"PING"}, {"CGET", "web", "z", "f:x"}, {"CPUT", "theirs", "a", "f:x", "1"}}) ==
          "set 2");
  REQUIRE(Exec({{"CGET", "web", "a", "f:x"}, {"CGET", "web", "z", "f:x"}}) ==
          "CROSSSET EXEC touches set 0 (web 'a') and set 2 (web 'z'); nothing was done");
  REQUIRE(Exec({{"CGET", "web", "z", "f:x"}, {"CCOUNT", "web"}}) ==
          "CROSSSET table 'web' lies on 3 sets: no CCOUNT goes over them; nothing was done");
  REQUIRE(Exec({{"CGET", "web", "a", "f:x"}, {"DEL", "web"}}) ==
          "CROSSSET DEL goes over all sets, not into an EXEC; nothing was done");
  // Behind SELECT the names mean other tables, if there is such a keyspace.
  REQUIRE(Exec({{"CGET", "web", "a", "f:x"}, {"SELECT", "other"}, {"CGET", "web", "z", "f:x"}}) ==
          "CROSSSET EXEC touches set 0 (web 'a') and set 2 (web 'z'); nothing was done");
  REQUIRE(store->CreateKeyspace("other").ok());
  REQUIRE(Exec({{"CGET", "web", "a", "f:x"}, {"SELECT", "other"}, {"CGET", "web", "z", "f:x"}}) ==
          "set 0");
}

TEST_CASE_METHOD(Routes, "A change of the schema waits for a tablet between two sets", "[route]") {
  const auto waits = [this](const Words& words) {
    return WaitsForTablets(store->engine(), Entry(words));
  };
  const Table& mine = Find("mine");
  MoveChanges moves(*store);
  REQUIRE(moves.Begin(1, {mine.id(), mine.tablets()->list()[0], 2, false}).ok());
  REQUIRE_FALSE(waits({"TABLE", "DROP"}));
  REQUIRE(moves.Give(1).ok());
  for (const Words& words : {Words{"TABLE", "DROP"}, Words{"FAMILY", "ADD"}, Words{"FLUSHALL"}})
    REQUIRE(waits(words));
  // Nor does what would end it.
  for (const Words& words : {Words{"TABLET", "CANCEL"}, Words{"TABLET", "MOVE"},
                             Words{"CLUSTER", "DRAIN"}, Words{"CPUT"}, Words{"TABLE", "INFO"}})
    REQUIRE_FALSE(waits(words));
  REQUIRE(moves.Done(1).ok());
  REQUIRE_FALSE(waits({"TABLE", "DROP"}));
}

TEST_CASE_METHOD(Routes, "An owner judges by its own truth", "[route]") {
  by_truth = true;
  REQUIRE(Say({"CGET", "web", "h", "f:x"}) == "set 1");
  REQUIRE(Say({"CGET", "web", "a", "f:x"}).starts_with("unknown: "));
  REQUIRE(Say({"CCOUNT", "mine"}) == "set 1");
  REQUIRE(Say({"CCOUNT", "web"}).starts_with("unknown: "));
  REQUIRE(Say({"TABLE", "DROP", "web"}) == "set 0");
}

}  // namespace command_route_test
