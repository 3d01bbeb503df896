// HeatMap and HotKeys: shares of known loads, memory, time.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/schema/column_set.h"
#include "engine/table/table.h"
#include "heat/heat_map.h"
#include "heat/heat_reading.h"
#include "heat/hot_keys.h"

namespace heat_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)

constexpr int64_t kMinute{60'000'000};
constexpr int64_t kNow{1'795'403'460'000'000};

std::unique_ptr<Table> MakeTable(uint64_t id) {
  TableSchema schema;
  schema.groups.push_back({});
  FamilySchema family;
  family.id = 1;
  family.name = "f";
  schema.families.push_back(std::move(family));
  return std::make_unique<Table>(id, "0", "t" + std::to_string(id), std::move(schema));
}

std::string RowName(uint64_t number) {
  char text[16];
  (void)snprintf(text, sizeof(text), "row%08u", static_cast<unsigned>(number));
  return text;
}

std::string Key(const Table& table, const std::string& row) {
  std::string key;
  REQUIRE(EncodeRowKey(table.schema(), row, &key).ok());
  return key;
}

void PutRow(Table* table, const std::string& row, const std::string& value = "value") {
  table->BeginRow(Key(*table, row));
  std::string cell;
  PutCellValue(&cell, {.stored = value});
  table->PutCell(table->schema().families[0], "q", 1, cell);
  table->EndRow();
}

// What sampling leaves of accesses, as AccessSampler does it.
class Sampled {
 public:
  explicit Sampled(HeatMap* heat) : heat_(heat), left_(heat->NextDistance()) {}
  void Read(const Table& table, const std::string& row, int64_t now) {
    if (--left_ > 0) return;
    left_ = heat_->NextDistance();
    heat_->Add(table, Key(table, row), {.reads = static_cast<double>(heat_->sample())}, now);
  }

 private:
  HeatMap* heat_;
  uint64_t left_;
};

std::vector<double> SumOf(const HeatReport& report, HeatMetric metric) {
  std::vector<double> sums(report.keys.size());
  for (size_t step = 0; step < report.steps.size(); ++step) {
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += report.at(step, metric, i);
  }
  return sums;
}

Result<HeatReport> TryReport(HeatMap* heat, const Table& table, const HeatQuery& query,
                             int64_t now) {
  ASSIGN_OR_RETURN(HeatReading reading, HeatReading::Begin(heat, table, query, now));
  RETURN_IF_ERROR(reading.Pull(HeatReading::kAllFrames).status());
  return reading.report();
}

HeatReport Report(HeatMap* heat, const Table& table, const HeatQuery& query, int64_t now) {
  Result<HeatReport> report = TryReport(heat, table, query, now);
  INFO(report.status().ToString());
  REQUIRE(report.ok());
  return *std::move(report);
}

size_t RangeOf(const HeatReport& report, const std::string& row) {
  size_t at = 0;
  while (at + 1 < report.keys.size() && report.keys[at + 1] <= row) ++at;
  return at;
}

TEST_CASE("a key's range is that of the last key that is not behind it", "[heat]") {
  Random random(21);
  for (int round = 0; round < 300; ++round) {
    const std::string prefix(random.Below(3) * 5, 'p');
    std::vector<std::string> keys(1);
    const auto text = [&random, &prefix] {
      std::string key = prefix;
      const size_t bytes = random.Below(14);
      for (size_t i = 0; i < bytes; ++i) key.push_back(static_cast<char>(random.Below(3) * 127));
      return key;
    };
    for (uint64_t i = random.Below(40); i > 0; --i) keys.push_back(text());
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    size_t counter = 0;
    {
      const HeatCut cut(keys, &counter);
      CHECK(counter > 0);
      for (int i = 0; i < 100; ++i) {
        std::string key = text();
        if (random.OneIn(4)) key = keys[random.Below(keys.size())];
        if (random.OneIn(8))
          key = std::string(random.Below(8), static_cast<char>(random.Below(256)));
        const auto behind = std::upper_bound(keys.begin(), keys.end(), key);
        const auto expected = static_cast<size_t>(behind - keys.begin()) - 1;
        REQUIRE(cut.RangeOf(key) == expected);
      }
    }
    CHECK(counter == 0);
  }
}

TEST_CASE("each range's share of a zipf load is within ten percent", "[heat]") {
  HeatMap heat;
  heat.Configure(16 << 20, 64, 29);
  auto table = MakeTable(1);
  constexpr uint64_t kRows{20'000};
  for (uint64_t i = 0; i < kRows; ++i) PutRow(table.get(), RowName(i));
  std::vector<double> sums(kRows + 1);
  for (uint64_t i = 0; i < kRows; ++i) {
    sums[i + 1] = sums[i] + 1 / std::pow(static_cast<double>(i + 1), 0.7);
  }
  Random random(7);
  std::vector<uint64_t> hits(kRows);
  Sampled sampled(&heat);
  constexpr uint64_t kOperations{8'000'000};
  std::vector<std::string> names;
  for (uint64_t i = 0; i < kRows; ++i) names.push_back(RowName(i));
  for (uint64_t i = 0; i < kOperations; ++i) {
    const auto at = std::upper_bound(sums.begin(), sums.end(), random.Fraction() * sums.back());
    const auto rank = static_cast<uint64_t>(at - sums.begin()) - 1;
    const uint64_t row = rank * 7919 % kRows;  // the hot ones lie anywhere
    ++hits[row];
    sampled.Read(*table, names[row], kNow);
  }
  const HeatReport report = Report(&heat, *table, {.ranges = 64}, kNow);
  CHECK(report.keys.size() == 64);
  CHECK(report.keys[0] == "-");
  const std::vector<double> told = SumOf(report, HeatMetric::kReads);
  std::vector<double> expected(told.size());
  for (uint64_t i = 0; i < kRows; ++i) {
    expected[RangeOf(report, names[i])] += static_cast<double>(hits[i]);
  }
  for (size_t i = 0; i < told.size(); ++i) {
    INFO(i << " " << report.keys[i] << ": " << told[i] << " of " << expected[i]);
    if (expected[i] >= 1e5) CHECK(std::abs(told[i] / expected[i] - 1) < 0.1);
  }
}

TEST_CASE("rows that are appended are where they went, though the ranges move", "[heat]") {
  HeatMap heat;
  heat.Configure(16 << 20, 64, 3);
  auto table = MakeTable(1);
  uint64_t left = heat.NextDistance();
  constexpr uint64_t kRows{1'000'000};
  int64_t now = kNow;
  for (uint64_t i = 0; i < kRows; ++i) {
    const std::string row = RowName(i);
    PutRow(table.get(), row);
    now += 20;
    if (--left > 0) continue;
    left = heat.NextDistance();
    heat.Add(*table, Key(*table, row), {.writes = 64}, now);
  }
  const HeatReport report = Report(&heat, *table, {.ranges = 8}, now);
  REQUIRE(report.keys.size() == 8);
  const std::vector<double> told = SumOf(report, HeatMetric::kWrites);
  for (const double share : told) {
    INFO(share);
    CHECK(std::abs(share / (kRows / 8.0) - 1) < 0.1);
  }
}

TEST_CASE("what was appended later has no part in what was appended before", "[heat]") {
  HeatMap heat;
  heat.Configure(16 << 20, 64, 3);
  auto table = MakeTable(1);
  constexpr uint64_t kRowsAMinute{2000};
  constexpr uint64_t kMinutes{30};
  int64_t now = kNow;
  for (uint64_t minute = 0; minute < kMinutes; ++minute, now += kMinute) {
    for (uint64_t i = 0; i < kRowsAMinute; ++i) {
      const std::string row = RowName(minute * kRowsAMinute + i);
      PutRow(table.get(), row);
      if (i % 20 == 0) heat.Add(*table, Key(*table, row), {.writes = 20}, now);
    }
  }
  now -= kMinute;
  const HeatReport report = Report(&heat, *table, {.ranges = kMinutes}, now);
  REQUIRE(report.steps.size() == kMinutes);
  REQUIRE(report.keys.size() == kMinutes);
  double diagonal = 0;
  for (size_t minute = 1; minute < kMinutes; ++minute) {
    for (size_t range = 0; range < kMinutes; ++range) {
      const double writes = report.at(minute, HeatMetric::kWrites, range);
      const size_t apart = range > minute ? range - minute : minute - range;
      if (apart <= 1) {
        diagonal += writes;
      } else {
        INFO(minute << " " << range);
        CHECK(writes < 200);
      }
    }
  }
  CHECK(diagonal > 0.9 * kRowsAMinute * (kMinutes - 1));
}

TEST_CASE("what scans examine is counted as often as it was", "[heat]") {
  HeatMap heat;
  heat.Configure(16 << 20, 64, 5);
  uint64_t told = 0;
  Random random(1);
  uint64_t rows = 0;
  for (int i = 0; i < 200'000; ++i) {
    const uint64_t examined = random.Below(40);
    rows += examined;
    told += heat.TakeExamined(examined);
  }
  CHECK(std::abs(static_cast<double>(told) / static_cast<double>(rows) - 1) < 0.05);
}

TEST_CASE("a span of rows is shared by the ranges that it covers", "[heat]") {
  HeatMap heat;
  heat.Configure(16 << 20, 64, 5);
  auto table = MakeTable(1);
  for (uint64_t i = 0; i < 40'000; ++i) PutRow(table.get(), RowName(i));
  heat.AddSpan(*table, "", std::nullopt, {.reads = 40'000, .bytes = 80'000}, kNow);
  const HeatReport report = Report(&heat, *table, {.ranges = 16}, kNow);
  for (const double reads : SumOf(report, HeatMetric::kReads)) CHECK(std::abs(reads - 2500) < 30);
  for (const double bytes : SumOf(report, HeatMetric::kBytes)) CHECK(std::abs(bytes - 5000) < 60);
  heat.AddSpan(*table, Key(*table, RowName(10'000)), Key(*table, RowName(20'000)), {.writes = 1000},
               kNow);
  const std::vector<double> writes =
      SumOf(Report(&heat, *table, {.ranges = 4}, kNow), HeatMetric::kWrites);
  CHECK(writes[0] < 20);
  CHECK(writes[1] > 960);
  CHECK(std::accumulate(writes.begin(), writes.end(), 0.0) == Approx(1000));
}

TEST_CASE("minutes become quarters of an hour after a day, and go after fourteen", "[heat]") {
  HeatMap heat;
  heat.Configure(16 << 20, 64, 5);
  auto table = MakeTable(1);
  for (uint64_t i = 0; i < 1000; ++i) PutRow(table.get(), RowName(i));
  constexpr int64_t kMinutes{20 * 24 * 60};
  int64_t now = kNow;
  for (int64_t i = 0; i < kMinutes; ++i, now += kMinute) {
    heat.Add(*table, Key(*table, RowName(static_cast<uint64_t>(i) % 1000)), {.reads = 64}, now);
  }
  now -= kMinute;
  const HeatReport finest = Report(&heat, *table, {.ranges = 1}, now);
  CHECK(finest.steps.size() >= 24 * 60);
  CHECK(finest.steps.size() <= 24 * 60 + 30);
  for (size_t i = 0; i < finest.steps.size(); ++i) {
    CHECK(finest.at(i, HeatMetric::kReads, 0) == 64);
  }

  HeatQuery all{.from_micros = 0, .step_minutes = 1, .ranges = 1};
  CHECK(TryReport(&heat, *table, all, now).status().text() ==
        "STEP must be a multiple of 15m where only that is kept");
  all.step_minutes = 60;
  const HeatReport hours = Report(&heat, *table, all, now);
  CHECK(hours.steps.size() >= 14 * 24);
  CHECK(hours.steps.size() <= 14 * 24 + 2);
  for (size_t i = 1; i + 1 < hours.steps.size(); ++i) {
    CHECK(hours.at(i, HeatMetric::kReads, 0) == 60 * 64);
  }
  CHECK(heat.memory_bytes() < 16 << 20);

  HeatQuery part{.from_micros = now - 10 * kMinute, .to_micros = now - 5 * kMinute, .ranges = 1};
  CHECK(Report(&heat, *table, part, now).steps.size() == 6);
  part.to_micros = now - 20 * kMinute;
  CHECK_FALSE(TryReport(&heat, *table, part, now).ok());
  part = {.from_micros = now + kMinute};
  CHECK_FALSE(TryReport(&heat, *table, part, now).ok());
}

TEST_CASE("a thousand busy tables stay within heat-memory", "[heat]") {
  constexpr size_t kMemory{4 << 20};
  HeatMap heat;
  heat.Configure(kMemory, 64, 5);
  std::vector<std::unique_ptr<Table>> tables;
  for (uint64_t id = 1; id <= 1000; ++id) {
    tables.push_back(MakeTable(id));
    for (uint64_t i = 0; i < 300; ++i) PutRow(tables.back().get(), RowName(i));
  }
  Random random(9);
  int64_t now = kNow;
  for (int minute = 0; minute < 100; ++minute, now += kMinute) {
    for (const auto& table : tables) {
      for (int i = 0; i < 5; ++i) {
        heat.Add(*table, Key(*table, RowName(random.Below(300))),
                 {.reads = 64, .writes = 128, .bytes = 100'000}, now);
      }
      REQUIRE(heat.memory_bytes() <= kMemory);
    }
  }
  CHECK(heat.tables() == 1000);
  const HeatReport report = Report(&heat, *tables[0], {}, now - kMinute);
  const std::vector<double> reads = SumOf(report, HeatMetric::kReads);
  CHECK(std::accumulate(reads.begin(), reads.end(), 0.0) >= 5 * 64);
  CHECK(heat.TotalOf(*tables[0]).reads == 100 * 5 * 64);

  heat.Configure(64 << 10, 64, 5);
  CHECK(heat.memory_bytes() <= 64 << 10);
  heat.Configure(0, 64, 5);
  CHECK(heat.memory_bytes() == 0);
  heat.Add(*tables[0], "x", {.reads = 1}, now);
  CHECK(heat.memory_bytes() == 0);
  CHECK(Report(&heat, *tables[0], {}, now).keys == std::vector<std::string>{"-"});
}

// Tables that only just fit grow by frames, tails and large rows; each bound, each access.
TEST_CASE("heat-memory bounds what a thousand growing tables take", "[heat]") {
  std::vector<std::unique_ptr<Table>> tables;
  for (uint64_t id = 1; id <= 1000; ++id) {
    tables.push_back(MakeTable(id));
    for (uint64_t i = 0; i < 20; ++i) PutRow(tables.back().get(), RowName(i));
  }
  for (const size_t memory :
       {size_t{100}, size_t{1} << 10, size_t{64} << 10, size_t{100'001}, size_t{1} << 20}) {
    INFO(memory);
    HeatMap heat;
    heat.Configure(memory, 64, 5);
    Random random(memory);
    int64_t now = kNow;
    for (int minute = 0; minute < 20; ++minute, now += kMinute) {
      for (const auto& table : tables) {
        const std::string row = std::string(random.Below(300) + 1, 'z');
        const std::string key = Key(*table, row);
        const HeatAmounts amounts{.reads = 64, .writes = 128, .bytes = 100'000};
        if (random.Below(4) == 0)
          heat.AddSpan(*table, "a", key, amounts, now);
        else
          heat.Add(*table, key, amounts, now);
        if (random.Below(8) == 0) heat.NoteLarge(*table, key, 200'000'000);
        REQUIRE(heat.memory_bytes() <= memory);
      }
    }
    if (memory > 64 << 10) CHECK(heat.tables() > 50);
    heat.Configure(memory / 2, 64, 5);
    CHECK(heat.memory_bytes() <= memory / 2);
  }
}

TEST_CASE("one busy table becomes coarser before it forgets", "[heat]") {
  constexpr size_t kMemory{1 << 20};
  HeatMap heat;
  heat.Configure(kMemory, 64, 5);
  auto table = MakeTable(1);
  for (uint64_t i = 0; i < 5000; ++i) PutRow(table.get(), RowName(i));
  int64_t now = kNow;
  Random random(9);
  for (int minute = 0; minute < 23 * 60; ++minute, now += kMinute) {
    for (int i = 0; i < 500; ++i) {
      heat.Add(*table, Key(*table, RowName(random.Below(5000))),
               {.reads = 6400, .writes = 64, .bytes = 1e6}, now);
    }
    REQUIRE(heat.memory_bytes() <= kMemory);
  }
  now -= kMinute;
  const HeatReport report =
      Report(&heat, *table, {.from_micros = 0, .step_minutes = 15, .ranges = 4}, now);
  CHECK(report.steps.size() >= 22 * 4);  // nothing was forgotten
  const std::vector<double> reads = SumOf(report, HeatMetric::kReads);
  CHECK(std::accumulate(reads.begin(), reads.end(), 0.0) ==
        Approx(23.0 * 60 * 500 * 6400).epsilon(0.01));
}

TEST_CASE("frames with long keys and with short ones take back what they brought", "[heat]") {
  constexpr int kFrames{100};
  constexpr int64_t kFortnight{14 * 24 * 60};
  HeatMap heat;
  heat.Configure(4 << 20, 64, 5);
  auto table = MakeTable(1);
  const auto count_at = [&](const std::string& row, int64_t now) {
    heat.Add(*table, Key(*table, row), {.reads = 64}, now);
    REQUIRE(heat.tables() == 1);
  };
  // No quarter of an hour ends where frames go: joining minutes would count all bytes anew.
  const int64_t begin = (kNow / kMinute / 15 * 15 + 1) * kMinute;
  count_at("a", begin - kMinute);
  const size_t before = heat.memory_bytes();
  for (int i = 0; i < kFrames; ++i) count_at(std::string(250, 'k'), begin + i * kMinute);
  for (int i = 0; i < kFrames; ++i) count_at("a", begin + (kFrames + i) * kMinute);
  count_at("a", begin + (kFortnight + kFrames + 1) * kMinute);
  CHECK(heat.memory_bytes() > before);
  count_at("a", begin + (kFortnight + 2 * kFrames + 2) * kMinute);
  CHECK(heat.memory_bytes() < before + 1024);
}

TEST_CASE("a clock that is set back loses nothing", "[heat]") {
  HeatMap heat;
  heat.Configure(1 << 20, 64, 5);
  auto table = MakeTable(1);
  PutRow(table.get(), "a");
  heat.Add(*table, Key(*table, "a"), {.reads = 64}, kNow);
  heat.Add(*table, Key(*table, "a"), {.reads = 64}, kNow - 10 * kMinute);
  heat.Add(*table, Key(*table, "a"), {.reads = 64}, kNow);
  const HeatReport report = Report(&heat, *table, {}, kNow);
  CHECK(report.steps.size() == 11);
  const std::vector<double> reads = SumOf(report, HeatMetric::kReads);
  CHECK(std::accumulate(reads.begin(), reads.end(), 0.0) == 192);
}

TEST_CASE("what HEAT tells in slices is what it tells at once", "[heat]") {
  HeatMap heat;
  heat.Configure(4 << 20, 64, 5);
  auto table = MakeTable(1);
  uint64_t rows = 0;
  int64_t now = kNow;
  Random random(3);
  const auto pass_minutes = [&](int minutes) {
    for (; minutes > 0; --minutes, now += kMinute) {
      for (uint64_t i = random.Below(40); i > 0; --i) PutRow(table.get(), RowName(rows++));
      for (uint64_t i = random.Below(20); i > 0; --i) {
        const uint64_t sparse = random.OneIn(3) ? random.Below(rows + 1) : rows;
        heat.Add(*table, Key(*table, RowName(sparse)),
                 {.reads = static_cast<double>(random.Below(300)), .bytes = 1e6}, now);
      }
    }
  };
  const auto same = [](const HeatReport& one, const HeatReport& other) {
    REQUIRE(one.keys == other.keys);
    REQUIRE(one.steps.size() == other.steps.size());
    for (const HeatMetric metric : {HeatMetric::kReads, HeatMetric::kWrites, HeatMetric::kBytes}) {
      for (size_t step = 0; step < one.steps.size(); ++step) {
        for (size_t i = 0; i < one.keys.size(); ++i) {
          REQUIRE(one.at(step, metric, i) == other.at(step, metric, i));
        }
      }
    }
  };
  pass_minutes(20 * 60);
  for (const size_t frames : {1, 7, 500}) {
    const HeatQuery query{.step_minutes = 1 + static_cast<int64_t>(random.Below(9)), .ranges = 64};
    Result<HeatReading> sliced = HeatReading::Begin(&heat, *table, query, now);
    REQUIRE(sliced.ok());
    const HeatReport whole = Report(&heat, *table, query, now);
    Result<bool> done = false;
    while (done.ok() && !*done) done = sliced->Pull(frames);
    REQUIRE(done.ok());
    same(sliced->report(), whole);
  }

  SECTION("frames that are pushed meanwhile are not told") {
    Result<HeatReading> sliced = HeatReading::Begin(&heat, *table, {}, now);
    const HeatReport whole = Report(&heat, *table, {}, now);
    REQUIRE_FALSE(*sliced->Pull(5));
    pass_minutes(3);
    REQUIRE(*sliced->Pull(HeatReading::kAllFrames));
    same(sliced->report(), whole);
  }
  SECTION("frames that are joined meanwhile are told once") {
    const HeatQuery query{.from_micros = kNow, .step_minutes = 15, .ranges = 64};
    Result<HeatReading> sliced = HeatReading::Begin(&heat, *table, query, now);
    REQUIRE_FALSE(*sliced->Pull(900));
    heat.Configure(heat.memory_bytes() / 2, 64, 5);
    REQUIRE(*sliced->Pull(HeatReading::kAllFrames));
    same(sliced->report(), Report(&heat, *table, query, now));
  }
  SECTION("or refused, where the step is too fine now") {
    Result<HeatReading> sliced = HeatReading::Begin(&heat, *table, {}, now);
    REQUIRE_FALSE(*sliced->Pull(5));
    heat.Configure(heat.memory_bytes() / 2, 64, 5);
    CHECK(sliced->Pull(5).status().text() ==
          "STEP must be a multiple of 15m where only that is kept");
  }
  SECTION("a table that is forgotten meanwhile ends it") {
    Result<HeatReading> sliced = HeatReading::Begin(&heat, *table, {}, now);
    REQUIRE_FALSE(*sliced->Pull(5));
    heat.Configure(0, 64, 5);
    REQUIRE(*sliced->Pull(5));
  }
}

TEST_CASE("large rows and long keys", "[heat]") {
  HeatMap heat;
  heat.Configure(16 << 20, 64, 5);
  auto table = MakeTable(1);
  for (uint64_t i = 0; i < 100; ++i) PutRow(table.get(), RowName(i));
  table->BeginRow(Key(*table, "whale"));
  const std::string value(1'000'000, 'x');
  for (uint64_t i = 0; i < 150; ++i) {
    table->PutCell(table->schema().families[0], RowName(i), 1, value);
  }
  table->EndRow();
  const HeatReport report = Report(&heat, *table, {}, kNow);
  REQUIRE(report.large.size() == 1);
  CHECK(report.large[0].row == "whale");
  CHECK(report.large[0].bytes > 120'000'000);
  CHECK(report.large[0].bytes < 160'000'000);

  auto other = MakeTable(2);
  for (uint64_t i = 0; i < 1000; ++i) PutRow(other.get(), RowName(i) + std::string(5000, 'k'));
  heat.Add(*other, Key(*other, RowName(5)), {.reads = 64}, kNow);
  const HeatReport long_keys = Report(&heat, *other, {.ranges = 256}, kNow);
  CHECK(long_keys.keys.size() > 200);
  for (const std::string& key : long_keys.keys) CHECK(key.size() <= 256);
}

TEST_CASE("the heaviest keys are found with few counters, and none is told too much", "[heat]") {
  HeavyHitters hitters(256, 1 << 20);
  Random random(11);
  std::map<std::string, uint64_t> sums;
  for (int i = 0; i < 300'000; ++i) {
    const bool hot = random.Below(10) < 5;
    const std::string key = "k" + std::to_string(hot ? random.Below(10) : random.Below(100'000));
    const uint64_t amount = 1 + random.Below(100);
    sums[key] += amount;
    hitters.Add(key, amount);
  }
  const auto hits = hitters.Largest(10);
  REQUIRE(hits.size() == 10);
  for (const auto& hit : hits) {
    INFO(hit.key << " " << hit.amount);
    CHECK(hit.key.size() == 2);
    CHECK(hit.amount <= sums[std::string(hit.key)]);
    CHECK(static_cast<double>(hit.amount) > 0.8 * static_cast<double>(sums[std::string(hit.key)]));
  }
  CHECK(hitters.memory_bytes() < 256 * 200);

  HeavyHitters bounded(256, 10'000);
  for (int i = 0; i < 1000; ++i) bounded.Add(std::string(1000, 'a') + std::to_string(i), 1);
  bounded.Add(std::string(50'000, 'z'), 7);
  CHECK(bounded.Largest(5)[0].amount == 7);
  CHECK(bounded.memory_bytes() < 2 * 60'000);
}

}  // namespace heat_test
