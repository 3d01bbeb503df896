// Sets that come back older than what others know, while tablets move, in a simulation.
#include "tests/cluster/return_simulation.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace return_simulation_test {

using cellar::return_simulation::Fault;
using cellar::return_simulation::kFaults;
using cellar::return_simulation::ReturnSimulation;

constexpr int kSteps{5'000};
constexpr int kFaultSchedules{1'000};
constexpr int kRareSchedules{1'500};

int FromEnvironment(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

TEST_CASE("a set that comes back older has what nobody else has, and nothing has two owners",
          "[moves]") {
  const int schedules = FromEnvironment("CELLAR_MOVE_SCHEDULES", 300);
  const int first = FromEnvironment("CELLAR_MOVE_SEED", 1);
  uint64_t opened = 0;
  uint64_t settled = 0;
  uint64_t kept = 0;
  uint64_t aside = 0;
  uint64_t lost = 0;
  for (int seed = first; seed < first + schedules; ++seed) {
    ReturnSimulation simulation(static_cast<uint64_t>(seed), Fault::kNone);
    const std::string wrong = simulation.Run(kSteps);
    INFO("seed " << seed << ": " << wrong);
    REQUIRE(wrong.empty());
    opened += simulation.opened();
    settled += simulation.settled();
    kept += simulation.kept();
    aside += simulation.set_aside();
    lost += simulation.lost();
  }
  // It is no proof of anything if nothing is settled.
  const auto all = static_cast<uint64_t>(schedules);
  UNSCOPED_INFO(opened << " sets opened, " << settled << " settlements; of keys " << kept
                       << " were kept, " << aside << " set aside, " << lost << " lost");
  CHECK(opened > all / 2);
  CHECK(settled > all / 4);
  CHECK(kept > all / 2);
  CHECK(aside > all / 10);
  CHECK(lost > all / 10);
}

TEST_CASE("who breaks a rule of sets that come back is found", "[moves]") {
  const int first = FromEnvironment("CELLAR_MOVE_SEED", 1);
  for (const Fault fault : kFaults) {
    int found = 0;
    // That one needs an old part to come late.
    const int from = fault == Fault::kOldAttempts ? first + kRareSchedules : first;
    for (int seed = from; seed < from + kFaultSchedules && found == 0; ++seed) {
      ReturnSimulation simulation(static_cast<uint64_t>(seed), fault);
      if (!simulation.Run(kSteps).empty()) found = seed;
    }
    UNSCOPED_INFO("fault " << static_cast<int>(fault) << " by seed " << found);
    CHECK(found > 0);
  }
}

}  // namespace return_simulation_test
