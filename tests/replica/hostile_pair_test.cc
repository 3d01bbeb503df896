// A leader and a follower that tell each other anything: see hostile_pair.h.
#include "tests/replica/hostile_pair.h"

#include <catch2/catch.hpp>
#include <cstdlib>

#include "base/os/log.h"

namespace cellar::hostile_pair_test {

uint64_t Seeds(uint64_t usual) {
  const char* text = std::getenv("CELLAR_TEST_SEEDS");
  return text == nullptr ? usual : std::strtoull(text, nullptr, 10);
}

uint64_t First() {
  const char* text = std::getenv("CELLAR_TEST_FIRST_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

TEST_CASE("Links that damage, lose and repeat frames leave both nodes with the same", "[replica]") {
  uint64_t syncs = 0;
  for (uint64_t seed = First(); seed < First() + Seeds(60); ++seed) {
    INFO("seed " << seed);
    SilenceLog(Seeds(0) == 0);  // to look at one: all are told then
    RandomChoices choices(seed, 600);
    HostilePair pair(&choices, false);
    REQUIRE_NOTHROW(pair.Run());
    syncs += pair.syncs();
  }
  CHECK(syncs > Seeds(60));
}

TEST_CASE("Forged frames with right checksums harm neither node", "[replica]") {
  for (uint64_t seed = First(); seed < First() + Seeds(60); ++seed) {
    INFO("seed " << seed);
    SilenceLog(Seeds(0) == 0);  // to look at one: all are told then
    RandomChoices choices(seed, 600);
    HostilePair pair(&choices, true);
    REQUIRE_NOTHROW(pair.Run());
  }
}

}  // namespace cellar::hostile_pair_test
