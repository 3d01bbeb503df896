// What has expired and is not reclaimed yet costs whoever steps over it, so nobody steps over all of
// it at once: CNEAR works in slices, a UNIQUE index refuses for the moment.
#include "engine/near_search.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/number.h"
#include "engine/index.h"
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

}  // namespace near_search_test
