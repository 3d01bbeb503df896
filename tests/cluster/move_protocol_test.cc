// Moves of tablets: the state of a set, what sets say, and both of them in a simulation.
#include "cluster/move_protocol.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

#include "tests/cluster/move_simulation.h"

namespace cellar {
namespace {

using move_simulation::Fault;
using move_simulation::kFaults;
using move_simulation::Simulation;

constexpr int kSteps{1'500};
constexpr int kFaultSteps{3'500};

int FromEnvironment(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

TEST_CASE("a tablet that moves is never lost, and never two sets'", "[moves]") {
  const int schedules = FromEnvironment("CELLAR_MOVE_SCHEDULES", 300);
  const int first = FromEnvironment("CELLAR_MOVE_SEED", 1);
  uint64_t moved = 0;
  for (int seed = first; seed < first + schedules; ++seed) {
    Simulation simulation(static_cast<uint64_t>(seed), Fault::kNone);
    const std::string wrong = simulation.Run(kSteps);
    INFO("seed " << seed << ": " << wrong);
    REQUIRE(wrong.empty());
    moved += simulation.moves_done();
  }
  // It is no proof of anything if nothing moves.
  CHECK(moved > static_cast<uint64_t>(schedules));
}

TEST_CASE("who breaks a rule of moves is found", "[moves]") {
  for (const Fault fault : kFaults) {
    int found = 0;
    const int first = FromEnvironment("CELLAR_MOVE_SEED", 1);
    // These two need a leader to go at one moment of a few.
    const bool is_rare = fault == Fault::kCopyUncommitted || fault == Fault::kOneTerm;
    const int schedules = is_rare ? 4'000 : 200;
    for (int seed = first; seed < first + schedules && found == 0; ++seed) {
      Simulation simulation(static_cast<uint64_t>(seed), fault);
      if (!simulation.Run(kFaultSteps).empty()) found = seed;
    }
    UNSCOPED_INFO("fault " << static_cast<int>(fault) << " by seed " << found);
    CHECK(found > 0);
  }
}

}  // namespace
}  // namespace cellar
