// What has expired and is not reclaimed yet costs whoever steps over it, so nobody steps over all
// of it at once: CNEAR works in slices, and so does building a UNIQUE index; a write that such an
// index checks is refused for the moment.
#include "engine/scans/near_search.h"

#include <catch2/catch.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/text/number.h"
#include "engine/table/index.h"
#include "tests/store/index_fixture.h"

namespace near_search_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)
using index_fixture::Fixture;

constexpr uint64_t kRows{20'000};
static_assert(kRows > kUniqueStepsMax);

std::string RowName(uint64_t i) {
  std::string digits = FormatUint64(i);
  return "r" + std::string(6 - digits.size(), '0') + digits;
}

class Expired : public Fixture {
 public:
  // Rows whose only cell is about to expire, all with the same value.
  Expired() {
    FamilyOptions aging;
    aging.ttl_ms = 10'000;
    table = &Make("t", {{"f", aging}});
    for (uint64_t i = 0; i < kRows; ++i) {
      REQUIRE(Do(*table, RowName(i), {Put("f", "x", "same")}).ok());
    }
  }
  void Expire() { SetTime(clock.now_micros + 11'000'000); }

  // In steps of 100, between which the table changes. Their number.
  uint64_t Run(NearSearch& search) {
    constexpr uint64_t kCells{100};
    uint64_t steps = 1;
    for (; !search.Step(kCells); ++steps) {
      REQUIRE(steps <= 4 * kRows / kCells);
      search.Detach();
      REQUIRE(Do(*table, "r9", {Put("f", "x", "late")}).ok());
    }
    return steps;
  }

  Table* table;
};

TEST_CASE_METHOD(Expired, "CNEAR steps over a million expired rows in slices", "[near]") {
  const auto near = [&](std::string_view row, uint64_t steps_min) {
    Result<std::unique_ptr<NearSearch>> search = store->Near(*table, row);
    REQUIRE(search.ok());
    REQUIRE(Run(**search) >= steps_min);
    const NearPlace* const place = (*search)->place();
    return place == nullptr ? "none" : place->row + " " + FormatInt64(place->direction);
  };
  REQUIRE(near(RowName(7), 1) == RowName(7) + " 0");
  Expire();
  REQUIRE(near("r", kRows / 200) == "none");
  REQUIRE(near("r", kRows / 200) == "r9 1");  // the row that was written meanwhile
  REQUIRE(Do(*table, "a", {Put("f", "x", "early")}).ok());
  REQUIRE(Do(*table, "r9", {}).ok());
  REQUIRE(near("s", 1) == "r9 -1");
}

TEST_CASE_METHOD(Expired, "CNEAR of an index steps over expired entries in slices", "[near]") {
  REQUIRE(store->CreateIndex(*table, {.name = "i", .on = {On("f", "x")}, .include = {}}).ok());
  while (store->Sweep(1000)) {
  }
  const auto near = [&](std::string_view value, uint64_t steps_min) {
    Result<std::unique_ptr<NearSearch>> search = store->NearIndex(*table, "i", {value}, nullptr);
    REQUIRE(search.ok());
    REQUIRE(Run(**search) >= steps_min);
    const NearPlace* const place = (*search)->place();
    return place == nullptr ? "none" : place->row + " " + FormatInt64(place->direction);
  };
  REQUIRE(near("s", 1) == RowName(0) + " 1");
  REQUIRE(near("z", 1) == RowName(kRows - 1) + " -1");
  Expire();
  REQUIRE(near("s", kRows / 200) == "none");
  REQUIRE(near("s", kRows / 200) == "r9 -1");
  REQUIRE(near("late", 1) == "r9 0");
}

TEST_CASE_METHOD(Expired, "A UNIQUE index refuses for the moment where too much has expired",
                 "[near]") {
  Expire();
  REQUIRE(
      store->CreateIndex(*table, {.name = "u", .on = {On("f", "x")}, .include = {}, .unique = true})
          .ok());
  const Index& index = *table->indexes()->Find(table->schema().indexes[0].id);
  while (!index.built()) (void)store->Sweep(1000);
  REQUIRE(index.entries().entries() > kUniqueStepsMax);
  const Status status = Do(*table, "s", {Put("f", "x", "same")});
  REQUIRE(status.code() == ErrorCode::kTryAgain);
  REQUIRE(status.text().find("'u'") != std::string::npos);
  REQUIRE(Do(*table, "s", {Put("f", "x", "another")}).ok());
  while (store->sweeper_stats().passes < 2) (void)store->Sweep(1000);
  REQUIRE(Do(*table, "s", {Put("f", "x", "same")}).ok());
  REQUIRE(Do(*table, "t", {Put("f", "x", "same")}).code() == ErrorCode::kNotUnique);
}

TEST_CASE_METHOD(Expired, "A UNIQUE index is built in slices, however much has expired", "[near]") {
  Expire();
  const auto create = [&] {
    (void)store->DropIndex(*table, "u");
    REQUIRE(store
                ->CreateIndex(*table,
                              {.name = "u", .on = {On("f", "x")}, .include = {}, .unique = true})
                .ok());
    return table->indexes()->Find(table->schema().FindIndex("u")->id);
  };
  // Up to the first pause in a check.
  const auto begin_check = [&](const Index& index) {
    for (uint64_t before = 0; index.evaluations() != before;) {
      before = index.evaluations();
      (void)store->Sweep(100);
    }
    REQUIRE_FALSE(index.built());
  };
  REQUIRE(Do(*table, "s", {Put("f", "x", "same")}).ok());
  const Index* index = create();
  begin_check(*index);
  REQUIRE(index->evaluations() == kRows + 1);
  uint64_t slices = 0;
  for (; !index->built(); ++slices) (void)store->Sweep(100);
  REQUIRE(slices >= kRows / kUniqueStepsOfRow / 100 - 2);
  REQUIRE(store->DescribeIndex(*table, "u")->state == "ready");

  // A second row of this value is found behind all of them, unless it has changed by then.
  (void)store->DropIndex(*table, "u");
  REQUIRE(Do(*table, "t", {Put("f", "x", "same")}).ok());
  index = create();
  begin_check(*index);
  while (store->DescribeIndex(*table, "u")->state == "building") (void)store->Sweep(100);
  REQUIRE(store->DescribeIndex(*table, "u")->state == "failed");

  index = create();
  begin_check(*index);
  REQUIRE(Do(*table, "s", {Put("f", "x", "changed")}).ok());
  while (!index->built()) (void)store->Sweep(100);
  REQUIRE(store->DescribeIndex(*table, "u")->state == "ready");
  REQUIRE(store->VerifyIndexes().ok());
}

// Rows of few values before and behind those that the first slice takes. A column has one version,
// so that nothing old comes to light by itself.
class RandomBuild : public Fixture {
 public:
  RandomBuild() {
    FamilyOptions one;
    one.versions_max = 1;
    table = &Make("t", {{"f", one}});
    for (uint64_t i = 0; i < 2000; ++i) {
      REQUIRE(Do(*table, RowName(i), {Put("f", "x", RowName(i))}).ok());
    }
  }
  void Change() {
    const std::string row = (random.OneIn(2) ? "a" : "s") + FormatUint64(random.Below(8));
    const std::string value = FormatUint64(random.Below(values));
    CellOp op = Put("f", "x", value);
    if (random.OneIn(2)) op.ttl_micros = static_cast<int64_t>(1 + random.Below(100));
    if (random.OneIn(6)) {
      op = CellOp{};
      op.kind = CellOp::Kind::kDeleteRow;
    }
    (void)Do(*table, row, {op});
  }
  bool HasDuplicates() {
    std::set<std::string> seen;
    for (const auto& [row, cells] : Cells(*table, {}, {}, kUnlimited)) {
      const size_t value = cells.find('=');
      if (value != std::string::npos && !seen.insert(cells.substr(value)).second) return true;
    }
    return false;
  }

  Table* table;
  Random random{0};
  uint64_t values{0};
};

TEST_CASE_METHOD(RandomBuild, "UNIQUE is built over what is unique, and fails over what is not",
                 "[near]") {
  const uint64_t seed = std::random_device{}();
  CAPTURE(seed);
  random = Random(seed);
  int ready = 0;
  int failed = 0;
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    values = random.OneIn(2) ? 10 : 200;
    for (uint64_t i = 1 + random.Below(20); i > 0; --i) Change();
    SetTime(clock.now_micros + static_cast<int64_t>(random.Below(100)));
    REQUIRE(store
                ->CreateIndex(*table,
                              {.name = "u", .on = {On("f", "x")}, .include = {}, .unique = true})
                .ok());
    const auto state = [&] { return table->schema().FindIndex("u")->state; };
    while (state() == IndexState::kBuilding) {
      if (random.OneIn(3)) Change();
      SetTime(clock.now_micros + static_cast<int64_t>(random.Below(5)));
      (void)store->Sweep(1 + random.Below(40));
    }
    REQUIRE((state() == IndexState::kFailed) == HasDuplicates());
    REQUIRE(store->VerifyIndexes().ok());
    (state() == IndexState::kFailed ? failed : ready) += 1;
    REQUIRE(store->DropIndex(*table, "u").ok());
  }
  REQUIRE(ready > 20);
  REQUIRE(failed > 20);
}

}  // namespace near_search_test
