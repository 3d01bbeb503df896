// Which tablets are to move, by what the sets have.
#include "cluster/balance_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "cluster/tablet_memory.h"
#include "heat/load_samples.h"
#include "store/tablet_sizes.h"

namespace cellar {
namespace {

constexpr uint64_t kMega{1 << 20};

BalanceInput::Set SetOf(uint64_t number, bool draining = false) {
  return {.number = number, .draining = draining, .answers = true, .has_loads = true};
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

// The other half of a tablet that was split, of its bytes.
BalanceInput::Tablet HalfOf(BalanceInput::Tablet* tablet) {
  BalanceInput::Tablet half = *tablet;
  half.tablet.begin = tablet->middle;
  half.middle = half.tablet.begin + "m";
  half.bytes = tablet->bytes / 2;
  tablet->bytes -= half.bytes;
  tablet->middle = tablet->tablet.begin + "a";
  return half;
}

// All that a plan says is done at once, and so on until there is nothing more to do.
// NOLINTNEXTLINE(readability-function-size): what CHECK and REQUIRE are made of.
size_t Settle(BalanceInput* input, size_t rounds_max) {
  size_t done = 0;
  for (size_t round = 0; round < rounds_max; ++round) {
    const std::vector<BalanceStep> steps = PlanBalance(*input);
    CHECK(steps.size() == PlanBalance(*input).size());
    if (steps.empty()) return done;
    for (const BalanceStep& step : steps) {
      BalanceInput::Tablet& tablet = input->tablets[step.tablet];
      const bool is_told = !step.reason.empty() && step.to != tablet.set;
      ++done;
      if (step.kind == BalanceStep::Kind::kSplit) {
        input->tablets.push_back(HalfOf(&tablet));
        continue;
      }
      REQUIRE(is_told);
      tablet.set = tablet.to = step.to;
    }
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

TEST_CASE("a set that had no room gets nothing, and all else goes on", "[balance]") {
  for (int seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 rng(static_cast<uint64_t>(seed));
    BalanceInput input;
    const uint64_t sets = 3 + rng() % 4;
    for (uint64_t set = 0; set < sets; ++set) {
      input.sets.push_back(SetOf(set, set > 1 && rng() % 8 == 0));
      input.sets.back().busy = true;
      input.sets.back().loop = rng() % 100;
      input.hot_for_long.insert(set);
    }
    const uint64_t full = rng() % sets;
    input.sets[full].refuses = true;
    for (uint64_t i = 0, tablets = 1 + rng() % 60; i < tablets; ++i) {
      input.tablets.push_back(
          TabletAt(1 + rng() % 4, std::to_string(1000 + i), rng() % sets, rng() % (200 * kMega)));
      input.tablets.back().load = rng() % 100;
      input.tablets.back().quiet = rng() % 2 == 0;
      if (rng() % 8 == 0) input.tablets.back().bytes = 0;
    }
    input.moves_max = 1 + rng() % 3;
    INFO("seed " << seed << ", set " << full << " of " << sets);
    for (int round = 0; round < 40; ++round) {
      for (const BalanceStep& step : PlanBalance(input)) {
        if (step.kind != BalanceStep::Kind::kMove) continue;
        CHECK(step.to != full);
        input.tablets[step.tablet].set = input.tablets[step.tablet].to = step.to;
      }
    }
  }
  // It is empty, and the others are as even as they can be: nothing moves and nothing is split.
  BalanceInput input;
  input.sets = {SetOf(0), SetOf(1), SetOf(2)};
  input.tablets = {TabletAt(1, "a", 0, 100 * kMega), TabletAt(1, "b", 0, 100 * kMega),
                   TabletAt(1, "c", 2, 100 * kMega), TabletAt(1, "d", 2, 100 * kMega),
                   TabletAt(1, "e", 0, 100 * kMega), TabletAt(1, "f", 2, 100 * kMega)};
  CHECK_FALSE(PlanBalance(input).empty());
  input.sets[1].refuses = true;
  CHECK(PlanBalance(input).empty());
  // It has too much: that goes to the others.
  for (auto& tablet : input.tablets) tablet.set = tablet.to = 1;
  const std::vector<BalanceStep> steps = PlanBalance(input);
  REQUIRE_FALSE(steps.empty());
  CHECK(steps[0].kind == BalanceStep::Kind::kMove);
  (void)Settle(&input, 50);
  CHECK(BytesOf(input)[1] <= 200 * kMega);
  // All refuse.
  for (auto& set : input.sets) set.refuses = true;
  CHECK(PlanBalance(input).empty());
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
  EncodeTabletSizes(sizes, false, &bytes);
  std::vector<TabletSize> read;
  bool loads = false;
  REQUIRE(DecodeTabletSizes(bytes, &read, &loads));
  CHECK(read == sizes);
  // Who is of a version before says nothing of rows: those are the last three bytes.
  const size_t without_rows = bytes.size() - 3;
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    CHECK(DecodeTabletSizes(std::string_view(bytes).substr(0, cut), &read, &loads) ==
          (cut == without_rows));
  }
  REQUIRE(DecodeTabletSizes(std::string_view(bytes).substr(0, without_rows), &read, &loads));
  CHECK(read[0].bytes == 7);
  CHECK(read[0].rows == 0);
}

TEST_CASE("loads survive their bytes, where they are asked for", "[balance]") {
  std::vector<TabletSize> sizes{{1, "", 7, 300, "m"}, {2, "k", 1, 4, ""}};
  sizes[0].load = 990;
  sizes[0].load_middle = "hot";
  sizes[0].top_percent = 51;
  sizes[1].load = UINT64_MAX;
  std::string bytes;
  EncodeTabletSizes(sizes, true, &bytes);
  std::string without;
  EncodeTabletSizes(sizes, false, &without);
  REQUIRE(bytes.starts_with(without));
  std::vector<TabletSize> read;
  bool loads = false;
  REQUIRE(DecodeTabletSizes(bytes, &read, &loads));
  CHECK(read == sizes);
  REQUIRE(DecodeTabletSizes(without, &read, &loads));
  CHECK(read[0].load == 0);
  for (size_t cut = without.size() + 1; cut < bytes.size(); ++cut)
    CHECK_FALSE(DecodeTabletSizes(std::string_view(bytes).substr(0, cut), &read, &loads));
}

// Rows and what they take, of one table; tablets are ranges of them.
class LoadedTable {
 public:
  LoadedTable(size_t sets, std::map<std::string, uint64_t> rows) : rows_(std::move(rows)) {
    for (size_t set = 0; set < sets; ++set) input.sets.push_back(SetOf(set));
    input.tablets = {TabletAt(1, "", 0, kMega)};
    Fill();
  }

  // The tablet that has it becomes two, of which that set has the second one.
  void Cut(const std::string& at, uint64_t set) {
    for (auto& tablet : input.tablets) {
      if (!tablet.tablet.Contains(at)) continue;
      BalanceInput::Tablet half = tablet;
      tablet.tablet.end = half.tablet.begin = at;
      half.set = half.to = set;
      input.tablets.push_back(std::move(half));
      break;
    }
    Fill();
  }
  // What a plan says is done, as a director does it, until there is nothing more to do.
  // NOLINTNEXTLINE(readability-function-size): likewise.
  size_t Settle(size_t rounds_max) {
    for (size_t round = 0; round < rounds_max; ++round) {
      input.hot_for_long = lasts ? HotSets(input) : std::set<uint64_t>();
      const std::vector<BalanceStep> steps = PlanBalance(input);
      bool does = false;
      has_some_.clear();
      for (const auto& tablet : input.tablets) has_some_.insert(tablet.set);
      for (const BalanceStep& step : steps) {
        const bool is_told = step.for_load && !step.reason.empty();
        REQUIRE(is_told);
        does = Do(step) || does;
      }
      Fill();
      if (!does) return round;
    }
    FAIL("it does not come to rest");
    return rounds_max;
  }
  std::map<uint64_t, uint64_t> Loads() const {
    std::map<uint64_t, uint64_t> loads;
    for (const auto& set : input.sets) loads[set.number] = 0;
    for (const auto& tablet : input.tablets) loads[tablet.set] += tablet.load;
    return loads;
  }

  BalanceInput input;
  bool lasts{true};  // rounds are far apart
  size_t moves{0};
  std::string hot_row;

 private:
  // False: there is only something to be told.
  bool Do(const BalanceStep& step) {
    BalanceInput::Tablet& tablet = input.tablets[step.tablet];
    if (step.kind == BalanceStep::Kind::kHotRow) {
      hot_row = tablet.load_middle;
      return false;
    }
    if (step.kind == BalanceStep::Kind::kMove) {
      const bool may_move = !tablet.rests || !has_some_.contains(step.to);
      REQUIRE(may_move);
      tablet.set = tablet.to = step.to;
      tablet.rests = true;
      ++moves;
      return true;
    }
    const bool is_within = tablet.load_middle > tablet.tablet.begin &&
                           (tablet.tablet.end.empty() || tablet.load_middle < tablet.tablet.end);
    REQUIRE(is_within);
    BalanceInput::Tablet half = tablet;
    half.tablet.begin = tablet.load_middle;
    half.rests = false;
    tablet.tablet.end = tablet.load_middle;
    input.tablets.push_back(std::move(half));
    return true;
  }
  void Fill() {
    for (auto& tablet : input.tablets) {
      LoadSamples samples;
      samples.Restart(0);
      uint64_t commands = 0;
      for (const auto& [row, load] : rows_) {
        if (!tablet.tablet.Contains(row)) continue;
        commands += load;
        for (uint64_t i = 0; i < std::min<uint64_t>(load, 60); ++i)
          samples.Add({1, row},
                      load * 10'000'000 / std::min<uint64_t>(load, 60) - LoadSamples::kCommandNanos,
                      1, LoadSamples::kWindowMicros);
      }
      const RangeLoad load =
          samples.View(LoadSamples::kWindowMicros).Of(1, tablet.tablet.begin, tablet.tablet.end);
      tablet.load = load.permille;
      tablet.load_middle = load.middle;
      tablet.top_percent = load.top_percent;
      CHECK(load.permille <= commands);
      CHECK(load.permille + 30 >= commands);
    }
    for (auto& set : input.sets) {
      set.loop = Loads()[set.number] / 10;
      set.busy = set.loop >= kBusyPercent;
    }
  }

  const std::map<std::string, uint64_t> rows_;
  std::set<uint64_t> has_some_;  // sets, as the round begins
};

std::map<std::string, uint64_t> EvenRows(size_t rows, uint64_t each) {
  std::map<std::string, uint64_t> all;
  for (size_t i = 0; i < rows; ++i) all[fmt::format("row{:03}", i)] = each;
  return all;
}

TEST_CASE("a hot tablet is split and spread over the sets", "[balance]") {
  LoadedTable table(3, EvenRows(30, 33));
  const size_t rounds = table.Settle(20);
  CHECK(rounds <= 10);
  CHECK(table.hot_row.empty());
  for (const auto& [set, load] : table.Loads()) CHECK(load < 500);
  CHECK(table.input.tablets.size() <= 12);
}

TEST_CASE("what has moved for its load rests, but for a set that comes to help", "[balance]") {
  LoadedTable table(2, EvenRows(30, 66));
  table.Settle(20);
  const size_t moves = table.moves;
  REQUIRE(moves > 0);
  // A little of what rests does not move again, whatever its rows take by now.
  for (auto& tablet : table.input.tablets) tablet.rests = true;
  table.input.tablets.front().load += 300;
  for (const BalanceStep& step : PlanBalance(table.input))
    CHECK(step.kind != BalanceStep::Kind::kMove);
  table.input.sets.push_back(SetOf(2));
  table.Settle(20);
  CHECK(table.moves > moves);
  for (const auto& [set, load] : table.Loads()) CHECK(load < 900);
}

TEST_CASE("what makes bytes even does not make loads uneven", "[balance]") {
  BalanceInput input;
  input.sets = {SetOf(0), SetOf(1)};
  // Set 0 has the bytes, set 1 the load.
  for (const char* const begin : {"", "b", "c", "d"})
    input.tablets.push_back(TabletAt(1, begin, 0, 100 * kMega));
  input.tablets.push_back(TabletAt(1, "e", 1, kMega));
  input.tablets[0].load = 300;
  input.tablets[4].load = 400;
  const std::vector<BalanceStep> steps = PlanBalance(input);
  REQUIRE(!steps.empty());
  for (const BalanceStep& step : steps) CHECK(step.tablet != 0);
  input.by_load = false;
  CHECK(PlanBalance(input).front().tablet == 0);
}

TEST_CASE("a hot row is told, and moves nothing", "[balance]") {
  std::map<std::string, uint64_t> rows = EvenRows(10, 10);
  rows["row005"] = 800;
  LoadedTable table(2, rows);
  table.Settle(20);
  CHECK(table.hot_row == "row005");
  CHECK(table.moves == 0);
  // Also the first one, before which there is nothing.
  LoadedTable first(2, {{"", 900}, {"b", 20}});
  first.Settle(20);
  CHECK(first.moves == 0);
  // What is hot beside it is helped all the same.
  std::map<std::string, uint64_t> both = EvenRows(20, 25);
  both["a"] = both["z"] = 600;
  LoadedTable helped(2, both);
  helped.Cut("row", 0);
  helped.Cut("z", 1);
  helped.Settle(20);
  CHECK(helped.hot_row == "a");
  CHECK(helped.moves > 0);
  CHECK(helped.Loads()[0] < 1000);
}

TEST_CASE("no load goes to who cannot be told, or is busy with other things", "[balance]") {
  LoadedTable unknown(2, EvenRows(30, 33));
  unknown.input.sets[1].has_loads = false;
  unknown.Settle(20);
  CHECK(unknown.moves == 0);
  LoadedTable table(3, EvenRows(30, 33));
  table.input.sets[1].loop = 99;
  for (const BalanceStep& step : PlanBalance(table.input))
    CHECK(step.kind == BalanceStep::Kind::kSplit);
}

TEST_CASE("loads that differ little, or are no burden, move nothing", "[balance]") {
  LoadedTable idle(3, EvenRows(30, 15));
  CHECK(idle.Settle(5) == 0);
  CHECK(idle.moves == 0);
  LoadedTable table(3, EvenRows(30, 33));
  table.Settle(20);
  const size_t moves = table.moves;
  // A while later it may begin anew, and does not.
  for (auto& tablet : table.input.tablets) tablet.rests = false;
  table.Settle(20);
  CHECK(table.moves == moves);
  // Nor does what goes by bytes alone.
  LoadedTable by_size(3, EvenRows(30, 33));
  by_size.input.by_load = false;
  by_size.Settle(5);
  CHECK(by_size.moves == 0);
}

TEST_CASE("a load that is a little uneven has to be for long", "[balance]") {
  LoadedTable table(2, EvenRows(20, 60));
  table.Cut("row013", 1);  // 780 and 420: 30 % above the mean
  REQUIRE(HotSets(table.input) == std::set<uint64_t>{0});
  table.lasts = false;
  table.Settle(5);
  CHECK(table.input.tablets.size() == 2);
  table.input.hot_for_long = {1};  // another one was
  CHECK(PlanBalance(table.input).empty());
  table.lasts = true;
  CHECK(table.Settle(20) > 0);
  CHECK(HotSets(table.input).empty());
  // What is far from even is not waited for.
  LoadedTable far(3, EvenRows(30, 60));
  far.lasts = false;
  far.Settle(20);
  for (const auto& [set, load] : far.Loads()) CHECK(load <= 600 * 14 / 10);
  // Noise of a tenth makes nothing of what is even, however often it is looked at.
  std::mt19937 rng(5);
  const std::vector<BalanceInput::Tablet> even = far.input.tablets;
  std::map<uint64_t, size_t> rounds_hot;
  for (int round = 0; round < 5'000; ++round) {
    far.input.tablets = even;
    for (auto& tablet : far.input.tablets) tablet.load = tablet.load * (90 + rng() % 21) / 100;
    const std::set<uint64_t> hot = HotSets(far.input);
    far.input.hot_for_long.clear();
    for (const auto& set : far.input.sets) {
      size_t& rounds = rounds_hot[set.number];
      rounds = hot.contains(set.number) ? rounds + 1 : 0;
      if (rounds > 12) far.input.hot_for_long.insert(set.number);
    }
    CHECK(PlanBalance(far.input).empty());
  }
  // Two that are hot together are relieved, whichever of them is the hottest just now.
  BalanceInput two;
  for (uint64_t set = 0; set < 4; ++set) two.sets.push_back(SetOf(set));
  for (auto& set : two.sets) {
    set.busy = set.number < 2;
    set.loop = set.busy ? 90 : 50;
  }
  for (uint64_t i = 0; i < 28; ++i) {
    two.tablets.push_back(TabletAt(1, std::to_string(100 + i), i < 18 ? i % 2 : 2 + i % 2, kMega));
    two.tablets.back().load = 100;
  }
  CHECK(HotSets(two) == std::set<uint64_t>{0, 1});
  CHECK(PlanBalance(two).empty());
  two.hot_for_long = HotSets(two);
  CHECK_FALSE(PlanBalance(two).empty());
}

TEST_CASE("loads of all kinds come to rest within a core of each other", "[balance]") {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    std::map<std::string, uint64_t> rows;
    uint64_t total = 0;
    uint64_t top = 0;
    for (size_t i = 0; i < 60; ++i) {
      const uint64_t load = random() % 4 == 0 ? random() % 200 : random() % 20;
      rows[fmt::format("row{:03}", i)] = load;
      total += load;
      top = std::max(top, load);
    }
    const size_t sets = 2 + random() % 5;
    LoadedTable table(sets, rows);
    INFO("seed " << seed << ", " << sets << " sets, " << total);
    table.Settle(60);
    CHECK(table.moves < 60);
    uint64_t most = 0;
    for (const auto& [set, load] : table.Loads()) most = std::max(most, load);
    // What is busy still has no more than is fair, but for what cannot be cut.
    CHECK((most < 600 || most <= total / sets * 12 / 10 + 2 * top + 100));
  }
}

TEST_CASE("samples stand for all commands, however many come", "[balance]") {
  LoadSamples samples;
  int64_t now = 1'000'000;
  samples.Restart(now);
  uint64_t left = 1;
  const auto run = [&](uint64_t a_second, int64_t seconds) {
    for (int64_t second = 0; second < seconds; ++second) {
      for (uint64_t i = 0; i < a_second; ++i) {
        now += 1'000'000 / static_cast<int64_t>(a_second);
        if (--left > 0) continue;
        left = samples.distance();
        samples.Add({7, i % 2 == 0 ? "a" : "b"}, 1'500, left, now);
        CHECK(samples.size() <= LoadSamples::kSamplesMax);
      }
    }
  };
  // A command takes 2 us, with what the loop has with it.
  run(100'000, 20);
  CHECK(samples.distance() > 100);
  uint64_t load = samples.View(now).Of(7, "", "").permille;
  CHECK(load > 160);
  CHECK(load < 240);
  run(1'000, 40);
  CHECK(samples.distance() <= 32);
  load = samples.View(now).Of(7, "", "").permille;
  CHECK(load >= 1);
  CHECK(load <= 3);
  CHECK(samples.View(now).Of(8, "", "").permille == 0);
  CHECK(samples.View(now).Of(6, "", "").permille == 0);
  CHECK(samples.View(now + 2 * LoadSamples::kWindowMicros).Of(7, "", "").permille == 0);
}

TEST_CASE("a slow command says nothing of those between it and the one before", "[balance]") {
  LoadSamples samples;
  samples.Restart(0);
  const int64_t now = LoadSamples::kWindowMicros;
  samples.Add({1, "slow"}, 2'000'000'000, 4'096, now);
  const uint64_t load = samples.View(now).Of(1, "", "").permille;
  CHECK(load >= 200);
  CHECK(load <= 211);
  // Nor does one that is as long as can be.
  samples.Add({2, "slow"}, UINT64_MAX / 2, UINT64_MAX / 2, now);
  CHECK(samples.View(now).Of(2, "", "").permille <= UINT64_MAX / 2 / 10'000'000 + 11);
}

TEST_CASE("the middle of a load is a row before which about half of it is", "[balance]") {
  LoadSamples samples;
  samples.Restart(0);
  const int64_t now = LoadSamples::kWindowMicros;
  const auto add = [&](std::string_view row, size_t times) {
    for (size_t i = 0; i < times; ++i) samples.Add({1, row}, 9'000, 1, now);
  };
  add("a", 10);
  CHECK(samples.View(now).Of(1, "", "").middle.empty());  // too few to tell
  add("b", 30);
  add("c", 30);
  add("d", 10);
  CHECK(samples.View(now).Of(1, "", "").middle == "c");
  CHECK(samples.View(now).Of(1, "b", "").middle == "c");
  CHECK(samples.View(now).Of(1, "", "c").middle == "b");
  CHECK(samples.View(now).Of(1, "", "c").top_percent == 75);
  CHECK(samples.View(now).Of(1, "c", "d").middle.empty());
  // No bound is made of half a key.
  const std::string longer(LoadSamples::kKeyBytesMax + 1, 'b');
  add(longer, 35);
  add("e", 40);
  CHECK(samples.View(now).Of(1, "", "").middle.size() == 1);
}

TEST_CASE("what goes over rows makes none of them hot", "[balance]") {
  LoadSamples samples;
  samples.Restart(0);
  const int64_t now = LoadSamples::kWindowMicros;
  const auto walk = [&](std::string_view row, size_t times, bool is_whole) {
    for (size_t i = 0; i < times; ++i)
      samples.Add({.table_id = 1, .key = row, .is_whole = is_whole, .is_walk = true}, 99'500, 1,
                  now);
  };
  // The first page, again and again.
  walk("m", 1'000, true);
  RangeLoad load = samples.View(now).Of(1, "", "");
  CHECK(load.permille == 10);
  CHECK(load.top_percent == 0);
  CHECK(load.middle.empty());
  for (int i = 0; i < 200; ++i) samples.Add({1, "z"}, 99'500, 1, now);
  load = samples.View(now).Of(1, "", "");
  CHECK(load.top_percent == 17);
  CHECK(load.middle == "z");
  // What keys begin with is nobody's bound.
  samples.Restart(0);
  walk("a", 50, false);
  walk("b", 50, false);
  walk("c", 50, true);
  CHECK(samples.View(now).Of(1, "", "").middle == "c");
  CHECK(samples.View(now).Of(1, "", "c").middle.empty());
}

// Neighbours, with rows in them and without load.
std::vector<BalanceInput::Tablet> QuietTablets(uint64_t table, size_t count, uint64_t bytes,
                                               uint64_t sets) {
  std::vector<BalanceInput::Tablet> tablets;
  for (size_t i = 0; i < count; ++i) {
    tablets.push_back(
        TabletAt(table, i == 0 ? "" : std::to_string(1000 + i), i * sets / count, bytes));
    if (i > 0) tablets[i - 1].tablet.end = tablets[i].tablet.begin;
    tablets[i].rows = 10;
    tablets[i].quiet = true;
  }
  return tablets;
}

// How far a set is from the mean, and what is not worth a move, in percent of that.
uint64_t SpreadOf(const BalanceInput& input) {
  uint64_t total = 0;
  for (const auto& [set, bytes] : BytesOf(input)) total += bytes;
  const uint64_t mean = total / input.sets.size();
  uint64_t spread = 0;
  for (const auto& [set, bytes] : BytesOf(input))
    spread = std::max(spread, (std::max(bytes, mean) - std::min(bytes, mean)) * 100 / (mean + 1));
  return spread;
}
uint64_t TinyOf(const BalanceInput& input) {
  uint64_t total = 0;
  for (const auto& [set, bytes] : BytesOf(input)) total += bytes;
  return input.split_bytes / 64 * 100 / (total / input.sets.size() + 1);
}

// Until there is nothing to merge, and nothing that moves for it.
// NOLINTNEXTLINE(readability-function-size): what CHECK and REQUIRE are made of.
size_t MergeAll(BalanceInput* input, size_t* moves) {
  size_t merges = 0;
  for (;;) {
    const std::vector<BalanceStep> steps = PlanBalance(*input);
    CHECK(steps.size() <= kMergesMax);
    if (steps.empty()) return merges;
    for (size_t i = steps.size(); i-- > 0;) {
      const size_t at = steps[i].tablet;
      if (steps[i].kind == BalanceStep::Kind::kMove) {
        CHECK(steps.size() <= 4);
        input->tablets[at].set = input->tablets[at].to = steps[i].to;
        REQUIRE(++*moves < 10'000);
        continue;
      }
      REQUIRE(steps[i].kind == BalanceStep::Kind::kMerge);
      BalanceInput::Tablet& left = input->tablets[at];
      const BalanceInput::Tablet& right = input->tablets.at(at + 1);
      REQUIRE(left.table_id == right.table_id);
      REQUIRE(left.set == right.set);
      REQUIRE(left.tablet.end == right.tablet.begin);
      left.bytes += right.bytes;
      left.rows += right.rows;
      left.tablet.end = right.tablet.end;
      input->tablets.erase(input->tablets.begin() + static_cast<ptrdiff_t>(at) + 1);
      ++merges;
    }
  }
}

TEST_CASE("small neighbours without load become one, down to eight for each set", "[balance]") {
  BalanceInput input;
  size_t moves = 0;
  input.sets = {SetOf(0), SetOf(1), SetOf(2)};
  input.tablets = QuietTablets(1, 300, kMega, 3);
  CHECK(MergeAll(&input, &moves) == 300 - 24);
  CHECK(moves == 0);
  CHECK(PlanBalance(input).empty());
  for (const auto& tablet : input.tablets) CHECK(tablet.bytes < 64 * kMega);
  // And no further than that they have as much as they may.
  input.tablets = QuietTablets(1, 300, 20 * kMega, 3);
  (void)MergeAll(&input, &moves);
  CHECK(input.tablets.size() > 75);
  for (const auto& tablet : input.tablets) CHECK(tablet.bytes < 64 * kMega);
  // What is merged is not split again for what it has then.
  input.split_bytes = 8 * kMega;
  input.tablets = QuietTablets(1, 300, 3 * kMega, 3);
  (void)MergeAll(&input, &moves);
  CHECK(input.tablets.size() == 300);
  input.tablets = QuietTablets(1, 300, kMega, 3);
  (void)MergeAll(&input, &moves);
  CHECK(input.tablets.size() <= 150);
  for (const auto& tablet : input.tablets) CHECK(tablet.bytes < 4 * kMega);
  input.merge_bytes = 0;
  input.tablets = QuietTablets(1, 300, 0, 3);
  CHECK(PlanBalance(input).empty());
}

TEST_CASE("small neighbours of several sets are gathered, and sets stay even", "[balance]") {
  std::mt19937 rng(11);
  for (int round = 0; round < 60; ++round) {
    BalanceInput input;
    const uint64_t sets = 2 + rng() % 5;
    for (uint64_t set = 0; set < sets; ++set) input.sets.push_back(SetOf(set));
    input.tablets = QuietTablets(1, 40 + rng() % 200, 0, 1);
    const uint64_t bytes_max = (1 + rng() % 30) * kMega;
    for (size_t i = 0; i < input.tablets.size(); ++i) {
      input.tablets[i].set = input.tablets[i].to = rng() % 3 == 0 ? rng() % sets : i % sets;
      input.tablets[i].bytes = rng() % bytes_max;
    }
    // First the bytes are made even, then they are gathered.
    std::vector<BalanceInput::Tablet> all = input.tablets;
    for (auto& tablet : input.tablets) tablet.quiet = false;
    (void)Settle(&input, 2'000);
    if (input.tablets.size() != all.size()) continue;  // it was split for that
    for (auto& tablet : input.tablets) tablet.quiet = true;
    const uint64_t spread = SpreadOf(input);
    size_t moves = 0;
    const size_t merges = MergeAll(&input, &moves);
    CHECK(moves <= merges);
    CHECK(PlanBalance(input).empty());
    CHECK(SpreadOf(input) <= std::max(spread, kSpreadPercent) + TinyOf(input));
    if (bytes_max == kMega) CHECK(input.tablets.size() == kTabletsKept * sets);
  }
}

TEST_CASE("what is not alike, at rest and known is not merged", "[balance]") {
  BalanceInput input;
  input.sets = {SetOf(0), SetOf(1), SetOf(2)};
  const std::vector<BalanceInput::Tablet> all = QuietTablets(1, 100, kMega, 3);
  const auto plan = [&input, &all](const auto& change) {
    input.tablets = all;
    for (size_t i = 0; i < all.size(); ++i) change(i, &input.tablets[i]);
    std::vector<BalanceStep> steps = PlanBalance(input);
    std::erase_if(steps, [](const auto& step) { return step.kind != BalanceStep::Kind::kMerge; });
    return steps.size();
  };
  using Tablet = BalanceInput::Tablet;
  CHECK(plan([](size_t, Tablet*) {}) == kMergesMax);
  CHECK(plan([](size_t i, Tablet* tablet) { tablet->quiet = i % 2 == 0; }) == 0);
  CHECK(plan([](size_t i, Tablet* tablet) { tablet->moves = i % 2 == 0; }) == 0);
  CHECK(plan([](size_t i, Tablet* tablet) { tablet->fixed = i % 2 == 0; }) == 0);
  CHECK(plan([](size_t i, Tablet* tablet) { tablet->set = tablet->to = i % 3; }) == 0);  // later
  CHECK(plan([](size_t i, Tablet* tablet) { tablet->table_id = i; }) == 0);
  CHECK(plan([](size_t, Tablet* tablet) { tablet->tablet.end += "a"; }) == 0);  // one is lost
  CHECK(plan([](size_t, Tablet* tablet) { tablet->rows = 0; }) == 0);
  for (auto& set : input.sets) set.answers = false;
  CHECK(plan([](size_t, Tablet*) {}) == 0);
  input.sets = {SetOf(0), SetOf(1), SetOf(2)};
  input.spreads = false;
  CHECK(plan([](size_t, Tablet*) {}) == 0);
}

TEST_CASE("a tablet is quiet once it has been for long", "[balance]") {
  TabletMemory memory;
  int64_t now = 5'000'000;
  BalanceInput::Tablet tablet = TabletAt(1, "a", 0, 0);
  TabletSize size{.table_id = 1, .begin = "a", .bytes = 100, .rows = 7, .middle = "m"};
  const auto quiet = [&](bool tells, bool loads) {
    ++now;
    memory.BeginRound(now);
    tablet = TabletAt(1, "a", 0, 0);
    memory.Fill(tells ? &size : nullptr, loads, now, TabletMemory::kQuietMicros, &tablet);
    memory.EndRound(now);
    return tablet.quiet;
  };
  CHECK_FALSE(quiet(true, true));
  CHECK(tablet.bytes == 100);
  CHECK(tablet.rows == 7);
  for (int64_t left = TabletMemory::kQuietMicros; left > 0; left -= TabletMemory::kUnknownMicros) {
    CHECK_FALSE(quiet(true, true));
    now += TabletMemory::kUnknownMicros - 1;
  }
  CHECK(quiet(true, true));
  // With load, the time begins anew.
  size.load = TabletMemory::kQuietLoad;
  CHECK_FALSE(quiet(true, true));
  size.load = 0;
  CHECK_FALSE(quiet(true, true));
  const auto pass = [&](int64_t micros) {
    for (const int64_t end = now + micros; now < end; now += TabletMemory::kUnknownMicros / 2)
      (void)quiet(true, true);
  };
  pass(TabletMemory::kQuietMicros);
  CHECK(quiet(true, true));
  // While it moves nothing is known of it; for longer, it may have been anything.
  CHECK_FALSE(quiet(false, true));
  CHECK(quiet(true, true));
  now += TabletMemory::kUnknownMicros;
  CHECK_FALSE(quiet(true, false));
  CHECK_FALSE(quiet(true, true));
  pass(TabletMemory::kQuietMicros);
  CHECK(quiet(true, true));
  memory.NoteRefused({1, "a"}, now);
  CHECK_FALSE(quiet(true, true));
  now += TabletMemory::kRefusedMicros / 2;
  CHECK_FALSE(quiet(true, true));
  now += TabletMemory::kRefusedMicros / 2;
  CHECK(quiet(true, true));
  memory.Clear();
  CHECK_FALSE(quiet(true, true));
}

}  // namespace
}  // namespace cellar
