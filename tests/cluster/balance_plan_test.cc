// Which tablets are to move, by what the sets have.
#include "cluster/balance_plan.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "store/tablet_sizes.h"

namespace cellar {
namespace {

constexpr uint64_t kMega{1 << 20};

BalanceInput::Set SetOf(uint64_t number, bool draining = false) {
  return {.number = number, .draining = draining, .answers = true};
}

BalanceInput::Tablet TabletAt(uint64_t table, std::string begin, uint64_t set, uint64_t bytes) {
  BalanceInput::Tablet tablet;
  tablet.table_id = table;
  tablet.tablet.begin = std::move(begin);
  tablet.set = tablet.to = set;
  tablet.bytes = bytes;
  tablet.middle = tablet.tablet.begin + "m";
  return tablet;
}

// All that a plan says is done at once, and so on until there is nothing more to do.
size_t Settle(BalanceInput* input, size_t rounds_max) {
  size_t done = 0;
  for (size_t round = 0; round < rounds_max; ++round) {
    const std::vector<BalanceStep> steps = PlanBalance(*input);
    CHECK(steps.size() == PlanBalance(*input).size());
    if (steps.empty()) return done;
    std::vector<BalanceInput::Tablet> fresh;
    for (const BalanceStep& step : steps) {
      BalanceInput::Tablet& tablet = input->tablets[step.tablet];
      CHECK_FALSE(step.reason.empty());
      ++done;
      if (step.kind == BalanceStep::Kind::kMove) {
        REQUIRE(step.to != tablet.set);
        tablet.set = tablet.to = step.to;
        continue;
      }
      BalanceInput::Tablet half = tablet;
      half.tablet.begin = tablet.middle;
      half.middle = half.tablet.begin + "m";
      half.bytes = tablet.bytes / 2;
      tablet.bytes -= half.bytes;
      tablet.middle = tablet.tablet.begin + "a";
      fresh.push_back(std::move(half));
    }
    for (auto& each : fresh) input->tablets.push_back(std::move(each));
  }
  FAIL("it does not come to rest");
  return done;
}

std::map<uint64_t, uint64_t> BytesOf(const BalanceInput& input) {
  std::map<uint64_t, uint64_t> bytes;
  for (const auto& set : input.sets) bytes[set.number] = 0;
  for (const auto& tablet : input.tablets) bytes[tablet.set] += tablet.bytes;
  return bytes;
}

TEST_CASE("one tablet of a cluster that grows is split and spread", "[balance]") {
  BalanceInput input;
  input.sets = {SetOf(0), SetOf(1), SetOf(2)};
  input.tablets = {TabletAt(1, "", 0, 1000 * kMega)};
  CHECK(Settle(&input, 200) > 0);
  for (const auto& [set, bytes] : BytesOf(input)) {
    CHECK(bytes > 290 * kMega);
    CHECK(bytes < 380 * kMega);
  }
  CHECK(PlanBalance(input).empty());
}

TEST_CASE("a set that drains gives all away", "[balance]") {
  BalanceInput input;
  input.sets = {SetOf(0), SetOf(1), SetOf(2, true)};
  for (int i = 0; i < 30; ++i)
    input.tablets.push_back(TabletAt(1, std::to_string(100 + i), i % 3, i % 4 * kMega));
  input.spreads = false;
  (void)Settle(&input, 100);
  for (const auto& tablet : input.tablets) CHECK(tablet.set != 2);
  // Nobody else is there: nothing happens.
  input.sets = {SetOf(0, true), SetOf(1, true)};
  CHECK(PlanBalance(input).empty());
}

TEST_CASE("what is fixed, moves, or is of a set that is silent stays", "[balance]") {
  BalanceInput input;
  input.sets = {SetOf(0), SetOf(1), SetOf(2)};
  input.tablets = {TabletAt(1, "", 0, 100 * kMega), TabletAt(2, "", 0, 100 * kMega),
                   TabletAt(3, "", 1, 100 * kMega)};
  for (auto& tablet : input.tablets) tablet.whole = true;
  input.tablets[0].fixed = true;
  input.tablets[1].moves = true;
  input.tablets[1].to = 1;
  input.sets[1].answers = false;
  CHECK(PlanBalance(input).empty());
}

TEST_CASE("a full set is relieved, and none is filled", "[balance]") {
  BalanceInput input;
  input.sets = {SetOf(0), SetOf(1), SetOf(2)};
  input.sets[0].maxmemory = 100 * kMega;
  input.sets[1].maxmemory = 20 * kMega;
  input.split_bytes = 1000 * kMega;
  input.tablets = {TabletAt(1, "", 0, 60 * kMega), TabletAt(2, "", 0, 32 * kMega)};
  const std::vector<BalanceStep> steps = PlanBalance(input);
  REQUIRE_FALSE(steps.empty());
  CHECK(steps[0].to == 2);
  (void)Settle(&input, 20);
  CHECK(BytesOf(input)[1] <= 17 * kMega);
}

TEST_CASE("little is left alone", "[balance]") {
  BalanceInput input;
  input.sets = {SetOf(0), SetOf(1), SetOf(2)};
  for (int i = 0; i < 9; ++i) input.tablets.push_back(TabletAt(i + 1, "", 0, 100 << 10));
  CHECK(PlanBalance(input).empty());
}

TEST_CASE("any cluster comes to rest, evenly as far as its tablets let it", "[balance]") {
  for (int seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 rng(static_cast<uint64_t>(seed));
    BalanceInput input;
    const uint64_t sets = 2 + rng() % 6;
    for (uint64_t set = 0; set < sets; ++set)
      input.sets.push_back(SetOf(set, set > 1 && rng() % 8 == 0));
    const uint64_t tablets = 1 + rng() % 60;
    for (uint64_t i = 0; i < tablets; ++i) {
      input.tablets.push_back(
          TabletAt(1 + rng() % 4, std::to_string(1000 + i), rng() % sets, rng() % (200 * kMega)));
    }
    input.moves_max = 1 + rng() % 3;
    INFO("seed " << seed);
    (void)Settle(&input, 2000);
    uint64_t total = 0;
    uint64_t most = 0;
    size_t stay = 0;
    for (const auto& set : input.sets) {
      const uint64_t bytes = BytesOf(input)[set.number];
      if (set.draining) {
        CHECK(bytes == 0);
        continue;
      }
      ++stay;
      total += bytes;
      most = std::max(most, bytes);
    }
    uint64_t largest = 0;
    for (const auto& tablet : input.tablets) largest = std::max(largest, tablet.bytes);
    CHECK(most <= total / stay + std::max<uint64_t>(total / stay / 5, largest) + 8 * kMega);
  }
}

TEST_CASE("sizes survive their bytes", "[balance]") {
  const std::vector<TabletSize> sizes{{1, "", 7, 300, "m"},
                                      {2, std::string("a\0b", 3), UINT64_MAX, 4, ""}};
  std::string bytes;
  EncodeTabletSizes(sizes, &bytes);
  std::vector<TabletSize> read;
  REQUIRE(DecodeTabletSizes(bytes, &read));
  CHECK(read == sizes);
  // Who is of a version before says nothing of rows: those are the last three bytes.
  const size_t without_rows = bytes.size() - 3;
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    CHECK(DecodeTabletSizes(std::string_view(bytes).substr(0, cut), &read) ==
          (cut == without_rows));
  }
  REQUIRE(DecodeTabletSizes(std::string_view(bytes).substr(0, without_rows), &read));
  CHECK(read[0].bytes == 7);
  CHECK(read[0].rows == 0);
}

}  // namespace
}  // namespace cellar
