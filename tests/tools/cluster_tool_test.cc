// cellar-cluster: which node goes where, what is unwise about it, and what is said to be wrong.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "cellar-cluster/json_writer.h"
#include "cellar-cluster/plan.h"
#include "cellar-cluster/report.h"
#include "cellar-cluster/status.h"
#include "client/cluster_state.h"

namespace cluster_tool_test {

using namespace cellar;                // NOLINT(google-build-using-namespace)
using namespace cellar::cluster_tool;  // NOLINT(google-build-using-namespace)

Plan Planned(const std::vector<std::string>& words, uint64_t sets, uint64_t voters) {
  PlanRequest request{.machines = {}, .sets = sets, .voters = voters, .port = 6479};
  for (const std::string& word : words) {
    Result<Machine> machine = ParseMachine(word);
    REQUIRE(machine.ok());
    request.machines.push_back(*std::move(machine));
  }
  Result<Plan> plan = MakePlan(request);
  REQUIRE(plan.ok());
  return *std::move(plan);
}

bool IsSaid(const std::vector<std::string>& texts, const std::string& part) {
  return std::any_of(texts.begin(), texts.end(),
                     [&](const std::string& text) { return text.find(part) != std::string::npos; });
}

TEST_CASE("three sets of three nodes on three machines share none", "[cluster-tool]") {
  const Plan plan = Planned({"a", "b", "c"}, 3, 3);
  std::set<std::string> addresses;
  for (size_t set = 0; set < 3; ++set) {
    std::set<std::string> hosts;
    for (const PlannedNode& node : plan.sets[set]) {
      hosts.insert(node.machine.host);
      CHECK(addresses.insert(node.Address()).second);
      CHECK(node.port == 6479 + static_cast<int>(set));
    }
    CHECK(hosts.size() == 3);
  }
  // Each begins at another machine, or one would have all first nodes.
  CHECK(plan.AddressesOf(0) == "a:6479 b:6479 c:6479");
  CHECK(plan.AddressesOf(1) == "b:6480 c:6480 a:6480");
  CHECK(WarningsOf(plan, true).empty());
  CHECK(IsSaid(WarningsOf(plan, false), "no password"));
}

TEST_CASE("nodes of a set lie in different zones where there are enough", "[cluster-tool]") {
  const Plan plan = Planned({"a1@a", "a2@a", "b1@b", "b2@b", "c1@c", "c2@c"}, 6, 3);
  std::set<std::string> used;
  for (const auto& set : plan.sets) {
    std::set<std::string> zones;
    for (const PlannedNode& node : set) {
      zones.insert(node.machine.zone);
      used.insert(node.machine.host);
    }
    CHECK(zones.size() == 3);
  }
  CHECK(used.size() == 6);
  CHECK(WarningsOf(plan, true).empty());
}

TEST_CASE("a plan that is unwise says so", "[cluster-tool]") {
  const auto notes = [](const std::vector<std::string>& words, uint64_t sets, uint64_t voters) {
    return WarningsOf(Planned(words, sets, voters), true);
  };
  CHECK(IsSaid(notes({"a", "b"}, 2, 3), "set 0 has 2 of its 3 nodes on machine a: without it no"));
  CHECK(IsSaid(notes({"a"}, 6, 3),
               "sets 0, 1, 2 and 3 more each have all their nodes on machine a: without it no"));
  CHECK(IsSaid(notes({"a", "b", "c"}, 1, 5), "on machine a: they are lost together"));
  CHECK(IsSaid(notes({"a@x", "b@x", "c@y"}, 1, 3), "set 0 has 2 of its 3 nodes in zone x"));
  CHECK(IsSaid(notes({"a@x", "b"}, 1, 2), "some have none"));
  CHECK(IsSaid(notes({"a", "b"}, 1, 1), "with its disk its rows are lost"));
  CHECK(IsSaid(notes({"a", "b"}, 1, 2), "no write while either is down"));
  CHECK(IsSaid(notes({"a", "b", "c", "d"}, 1, 4), "no more losses than one of 3"));
  CHECK(IsSaid(notes({"a", "b", "c"}, 2, 2), "the load is not even"));
  CHECK(IsSaid(notes({"127.0.0.1", "b"}, 2, 1), "no other machine reaches 127.0.0.1"));
  // On one's own machine a password is not missed.
  CHECK(!IsSaid(WarningsOf(Planned({"127.0.0.1"}, 3, 1), false), "password"));
}

TEST_CASE("wrong machines are refused by what is wrong", "[cluster-tool]") {
  for (const char* word :
       {"", "@zone", "a@", "0.0.0.0", "::", "10.0.0.1:6479", "host:6479", "a b", "a\n", "a/b"}) {
    INFO(word);
    CHECK(!ParseMachine(word).ok());
  }
  CHECK(ParseMachine("2001:db8::1@z")->host == "2001:db8::1");
  const Machine a{"a", ""};
  CHECK(!MakePlan({.machines = {a, a}, .sets = 1, .voters = 1, .port = 1}).ok());
  CHECK(!MakePlan({.machines = {a}, .sets = 2, .voters = 1, .port = 65535}).ok());
  CHECK(!MakePlan({.machines = {}, .sets = 1, .voters = 1, .port = 1}).ok());
}

TEST_CASE("a node's configuration names its set and whom to join", "[cluster-tool]") {
  const Plan plan = Planned({"10.0.0.1", "db2"}, 2, 2);
  const std::string first = ConfigOf(plan, plan.sets[0][0], {"/d", "", ""}, "", {"save ''"});
  CHECK(first.find("cluster-join") == std::string::npos);
  CHECK(first.find("bind 10.0.0.1 127.0.0.1\nport 6479\n") != std::string::npos);
  CHECK(first.find("cluster-nodes 10.0.0.1:6479 db2:6479\n") != std::string::npos);
  CHECK(first.ends_with("save ''\n"));
  const std::string second = ConfigOf(plan, plan.sets[1][0], {"/d d", "/l", "/p"}, "pa ss\"", {});
  CHECK(second.find("bind *\n") != std::string::npos);
  CHECK(second.find("cluster-join 10.0.0.1:6479 db2:6479\n") != std::string::npos);
  CHECK(second.find("dir \"/d d\"\n") != std::string::npos);
  CHECK(second.find("requirepass \"pa ss\\\"\"\nmasterauth \"pa ss\\\"\"\n") != std::string::npos);
}

client::SetState MakeSet(uint64_t number, int port) {
  client::SetState set;
  set.number = number;
  set.state = "ok";
  set.leader = "h:" + std::to_string(port);
  set.members = {
      {.id = "1", .host = "h", .port = port, .kind = "voter", .state = "leader", .version = "1"}};
  set.catalog = 5;
  return set;
}

TEST_CASE("what is wrong with a cluster is said in words", "[cluster-tool]") {
  ClusterStatus status;
  status.sets = {MakeSet(0, 1), MakeSet(1, 2)};
  CHECK(FaultsOf(status).empty());
  CHECK(StatusText(status, {}).find("2 sets with 2 nodes: all is well\n") == 0);
  status.map_refusal = "NOPERM this user";
  CHECK(FaultsOf(status).empty());
  CHECK(StatusText(status, {}).find("The map was not checked") != std::string::npos);
  status.map_refusal = "CLUSTERDOWN no leader";
  CHECK(IsSaid(FaultsOf(status), "the map could not be checked: CLUSTERDOWN"));
  status.map_refusal.clear();
  status.sets[1].state = "no-leader";
  status.sets[1].leader.clear();
  status.sets[1].tablets = 7;
  status.sets[1].catalog = 4;
  status.sets[0].maxmemory = 1000;
  status.sets[0].bytes = 950;
  status.sets[0].members[0].state = "loading";
  status.sets[0].members[0].version = "2";
  client::SetState waiting = MakeSet(0, 3);
  waiting.number.reset();
  waiting.state = "waiting";
  status.sets.push_back(waiting);
  status.nodes["h:2"].refusal = "Connection refused";
  status.nodes["h:3"].info["aof_last_write_status"] = "err";
  status.nodes["h:3"].info["aof_last_error"] = "No space left";
  // Late is who is so for long.
  client::SetState late = MakeSet(2, 4);
  late.members.push_back(late.members[0]);
  late.members.push_back(late.members[0]);
  late.members[1].port = 5;
  late.members[2].port = 6;
  late.members[1].state = late.members[2].state = "behind";
  status.sets.push_back(late);
  status.nodes["h:4"].lags_ms = {{"h:5", 100}, {"h:6", 12'345}};
  status.map_faults = {"table t: hole from 'm'"};
  const std::vector<std::string> faults = FaultsOf(status);
  for (const char* part :
       {"set 1 has no leader: nobody reads or writes its 7 tablets",
        "set 1 has schema 4 and not yet 5", "set 0 is nearly full: 950B of 1000B",
        "h:1 of set 0 is loading", "the set at h:3 waits to be taken in: CLUSTER ADMIT h:3",
        "h:6 of set 2 is 12 s behind its leader",
        "h:2 of set 1 does not answer: Connection refused", "takes no writes: No space left",
        "the map: table t: hole from 'm'", "nodes have several versions: 1, 2"}) {
    INFO(part);
    CHECK(IsSaid(faults, part));
  }
  CHECK(!IsSaid(faults, "h:5"));
  const std::string text = StatusText(status, faults);
  CHECK(text.find("What is wrong:\n") != std::string::npos);
  CHECK(text.find("set 1  no-leader  7 tablets, 0B, nobody leads") != std::string::npos);
}

TEST_CASE("what a hostile node says stays text, and JSON", "[cluster-tool]") {
  ClusterStatus status;
  client::SetState set = MakeSet(0, 1);
  set.leader = "\x1b[2J";
  set.members[0].host = "\xff\"\n";
  set.members[0].kind = "\x07";
  status.sets = {set};
  for (const char c : StatusText(status, FaultsOf(status)))
    CHECK((c == '\n' || (c >= ' ' && c <= '~')));
  CHECK(StatusJson(status, {}).find(R"("leader":"\u001b[2J")") != std::string::npos);
  client::TabletMap map;
  map.tablets.resize(1);
  map.tablets[0].table = "a\n";
  map.tablets[0].start = std::string("\xff\x00", 2);
  for (const char c : MapText(map, 10)) CHECK((c == '\n' || (c >= ' ' && c <= '~')));
  CHECK(MapJson(map, 10).find(R"("start":{"b64":"/wA="})") != std::string::npos);
  CHECK(EventsText({{INT64_MAX, "a\x1b", "b"}}).find('\x1b') == std::string::npos);
}

TEST_CASE("members and lists of JSON are separated", "[cluster-tool]") {
  JsonWriter json;
  json.BeginObject();
  json.Name("a").BeginList();
  json.Number(1);
  json.Number(std::nullopt);
  json.BeginObject();
  json.EndObject();
  json.EndList();
  json.Name("b").Flag(true);
  json.Name("c").Text("x");
  json.EndObject();
  CHECK(json.Take() == "{\"a\":[1,null,{}],\"b\":true,\"c\":\"x\"}\n");
}

TEST_CASE("an address is a host and a port", "[cluster-tool]") {
  CHECK(client::ParseHostPort("::1:80")->host == "::1");
  CHECK(client::ParseHostPort("a:80")->port == 80);
  for (const char* text : {"", "a", "a:", ":80", "a:0", "a:65536", "a:x"}) {
    CHECK(!client::ParseHostPort(text));
  }
}

}  // namespace cluster_tool_test
