// Sets that are lost for good while tablets move, in a simulation.
#include "tests/cluster/lost_simulation.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace lost_simulation_test {

using cellar::lost_simulation::Fault;
using cellar::lost_simulation::kFaults;
using cellar::lost_simulation::LostSimulation;

constexpr int kSteps{4'000};
constexpr int kFaultSchedules{1'000};

int FromEnvironment(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

TEST_CASE("what is lost with a set is had again, and nothing else is lost", "[moves]") {
  const int schedules = FromEnvironment("CELLAR_MOVE_SCHEDULES", 300);
  const int first = FromEnvironment("CELLAR_MOVE_SEED", 1);
  uint64_t moved = 0;
  uint64_t adopted = 0;
  uint64_t reclaimed = 0;
  uint64_t late = 0;
  for (int seed = first; seed < first + schedules; ++seed) {
    LostSimulation simulation(static_cast<uint64_t>(seed), Fault::kNone);
    const std::string wrong = simulation.Run(kSteps);
    INFO("seed " << seed << ": " << wrong);
    REQUIRE(wrong.empty());
    moved += simulation.moves_done();
    adopted += simulation.adopted();
    reclaimed += simulation.reclaimed();
    late += simulation.came_late();
  }
  // It is no proof of anything if nothing moves, or nothing is lost.
  const auto all = static_cast<uint64_t>(schedules);
  UNSCOPED_INFO(moved << " tablets moved, " << reclaimed << " were taken back; of keys " << adopted
                      << " were adopted, " << late << " came late");
  CHECK(moved > all);
  CHECK(adopted > all);
  CHECK(reclaimed > all / 20);
  CHECK(late > all / 50);
}

TEST_CASE("adoptions need not wait for ordinary jobs, as all sets are asked", "[moves]") {
  const int schedules = FromEnvironment("CELLAR_MOVE_SCHEDULES", 300) / 3;
  const int first = FromEnvironment("CELLAR_MOVE_SEED", 1);
  for (int seed = first; seed < first + schedules; ++seed) {
    LostSimulation simulation(static_cast<uint64_t>(seed), Fault::kAdoptBesideMoves);
    const std::string wrong = simulation.Run(kSteps);
    INFO("seed " << seed << ": " << wrong);
    REQUIRE(wrong.empty());
  }
}

TEST_CASE("who breaks a rule of sets that are lost is found", "[moves]") {
  const int first = FromEnvironment("CELLAR_MOVE_SEED", 1);
  for (const Fault fault : kFaults) {
    int found = 0;
    for (int seed = first; seed < first + kFaultSchedules && found == 0; ++seed) {
      LostSimulation simulation(static_cast<uint64_t>(seed), fault);
      if (!simulation.Run(kSteps).empty()) found = seed;
    }
    UNSCOPED_INFO("fault " << static_cast<int>(fault) << " by seed " << found);
    CHECK(found > 0);
  }
}

}  // namespace lost_simulation_test
