// Which set another of its members is to lead.
#include "cluster/lead_plan.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace cellar {
namespace {

using Sets = std::map<uint64_t, ClusterSet>;

ClusterMember MemberOn(uint64_t node, const std::string& machine) {
  return {.node = node, .host = "h", .kind = "voter", .state = "online", .machine = machine};
}

// A set with a member on each of these machines, led by the first.
ClusterSet SetOn(uint64_t number, const std::vector<std::string>& machines) {
  ClusterSet set;
  set.number = number;
  for (const std::string& machine : machines)
    set.members.push_back(MemberOn(number * 100 + set.members.size() + 1, machine));
  set.leader = set.members[0].node;
  set.members[0].state = "leader";
  return set;
}

Sets ThreeOnThree() {
  Sets sets;
  for (uint64_t number = 0; number < 3; ++number) sets[number] = SetOn(number, {"a", "b", "c"});
  return sets;
}

void HandOver(ClusterSet* set, uint64_t node) {
  for (ClusterMember& member : set->members)
    member.state = member.node == node ? "leader" : "online";
  set->leader = node;
}

size_t Settle(Sets* sets) {
  size_t steps = 0;
  for (;;) {
    const auto step = PlanLead(*sets, {}, {});
    if (!step) return steps;
    ClusterSet& set = sets->at(step->set);
    const ClusterMember* const to = set.Find(step->node);
    const bool is_good = to != nullptr && to->kind == "voter" && to->state != "down" &&
                         to->node != set.leader && !step->reason.empty();
    REQUIRE(is_good);
    HandOver(&set, step->node);
    REQUIRE(++steps < 10'000);
  }
}

std::map<std::string, size_t> LeadsOf(const Sets& sets) {
  std::map<std::string, size_t> leads;
  for (const auto& [number, set] : sets) {
    for (const ClusterMember& member : set.members) leads.try_emplace(member.machine, 0);
    if (const ClusterMember* leader = set.Find(set.leader)) ++leads[leader->machine];
  }
  return leads;
}

TEST_CASE("machines come to lead equally many", "[balance]") {
  Sets sets = ThreeOnThree();
  CHECK(Settle(&sets) == 2);
  for (const auto& [machine, count] : LeadsOf(sets)) CHECK(count == 1);
  // By twelve, whoever leads them.
  std::mt19937 rng(7);
  for (int round = 0; round < 50; ++round) {
    sets.clear();
    for (uint64_t number = 0; number < 12; ++number) {
      std::vector<std::string> machines{"a", "b", "c", "d"};
      std::shuffle(machines.begin(), machines.end(), rng);
      machines.resize(3);
      sets[number] = SetOn(number, machines);
    }
    CHECK(Settle(&sets) <= 12);
    size_t most = 0;
    size_t least = 12;
    for (const auto& [machine, count] : LeadsOf(sets)) {
      most = std::max(most, count);
      least = std::min(least, count);
    }
    CHECK(most - least <= 2);
    CHECK(PlanLead(sets, {}, {}) == std::nullopt);
  }
}

TEST_CASE("the same sets give the same step", "[balance]") {
  const Sets sets = ThreeOnThree();
  const auto step = PlanLead(sets, {}, {});
  REQUIRE(step.has_value());
  CHECK(step->set == 1);  // before set 0
  CHECK(step->node == 102);
  CHECK(step->reason == "machine a leads 3 sets, b 0");
  const auto other = PlanLead(sets, {1}, {});
  REQUIRE(other.has_value());
  CHECK(other->set == 2);
  const auto last = PlanLead(sets, {1, 2}, {});
  REQUIRE(last.has_value());
  CHECK(last->set == 0);
  // What was tried is not tried again.
  const auto third = PlanLead(sets, {}, {{1, 102}, {1, 103}, {2, 202}});
  REQUIRE(third.has_value());
  CHECK(third->node == 203);
  CHECK_FALSE(PlanLead(sets, {1, 2}, {{0, 2}, {0, 3}}).has_value());
  CHECK_FALSE(PlanLead(sets, {0, 1, 2}, {}).has_value());
}

TEST_CASE("who is away, copied, a standby or unknown is not handed a set", "[balance]") {
  const auto plan = [](const auto& change) {
    Sets sets = ThreeOnThree();
    for (auto& [number, set] : sets)
      for (size_t i = 1; i < 3; ++i) change(&set.members[i]);
    return PlanLead(sets, {}, {});
  };
  CHECK(plan([](ClusterMember*) {}).has_value());
  CHECK(plan([](ClusterMember* member) {
          member->state = "behind";
        }).has_value());  // of some records
  CHECK_FALSE(plan([](ClusterMember* member) { member->state = "down"; }).has_value());
  CHECK_FALSE(plan([](ClusterMember* member) { member->state = "snapshot"; }).has_value());
  CHECK_FALSE(plan([](ClusterMember* member) { member->kind = "standby"; }).has_value());
  CHECK_FALSE(plan([](ClusterMember* member) { member->kind = "witness"; }).has_value());
  CHECK_FALSE(plan([](ClusterMember* member) { member->machine.clear(); }).has_value());
  CHECK_FALSE(plan([](ClusterMember* member) { member->machine = "a"; }).has_value());
  // One member that is away is enough: the others are those that are left.
  Sets sets = ThreeOnThree();
  for (auto& [number, set] : sets) set.members[2].state = "down";
  CHECK_FALSE(PlanLead(sets, {}, {}).has_value());
  // A set that nobody leads has none to hand it over.
  sets = ThreeOnThree();
  for (auto& [number, set] : sets) set.leader = 0;
  CHECK_FALSE(PlanLead(sets, {}, {}).has_value());
}

TEST_CASE("zones tell machines of one name apart", "[balance]") {
  Sets sets = ThreeOnThree();
  for (auto& [number, set] : sets)
    for (size_t i = 0; i < 3; ++i) set.members[i].machine = "same";
  CHECK_FALSE(PlanLead(sets, {}, {}).has_value());
  for (auto& [number, set] : sets)
    for (size_t i = 0; i < 3; ++i) set.members[i].zone = std::string(1, static_cast<char>('x' + i));
  const auto step = PlanLead(sets, {}, {});
  REQUIRE(step.has_value());
  CHECK(step->reason == "machine x/same leads 3 sets, y/same 0");
}

}  // namespace
}  // namespace cellar
