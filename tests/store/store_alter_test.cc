// FAMILY ALTER inside a transaction: nobody sees whether it has reclaimed what had been dropped, or
// has left that to the sweeper.
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "store/sliced_change.h"
#include "store/store.h"
#include "tests/store/index_fixture.h"

namespace store_alter_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)
using index_fixture::Fixture;

class AlterFixture : public Fixture {
 public:
  FamilyOptions Policy(std::string_view text) {
    Result<RetentionPolicy> policy = RetentionPolicy::Parse(text);
    REQUIRE(policy.ok());
    FamilyOptions options;
    options.gc = *policy;
    return options;
  }
  void Alter(const std::string& table, const FamilyOptions& options) {
    Result<std::unique_ptr<SlicedChange>> change =
        store->AlterFamily(Find(table), {"f", options}, nullptr);
    REQUIRE(change.ok());
    while (!(*change)->done()) REQUIRE((*change)->Step(kUnlimited).ok());
  }
  void AlterInTransaction(const std::string& table, const FamilyOptions& options) {
    store->BeginTransaction(Store::Atomicity::kRedis);
    Alter(table, options);
    store->CommitTransaction();
  }
  void SweepAll() {
    const uint64_t passes = store->sweeper_stats().passes;
    while (store->sweeper_stats().passes < passes + 2) (void)store->Sweep(1000);
  }
  std::map<std::string, std::string> Seen(const std::string& table) {
    CellOptions cells;
    cells.versions_max = kUnlimited;
    return Cells(Find(table), {}, cells, kUnlimited);
  }
};

TEST_CASE_METHOD(AlterFixture, "What stays dropped is left to the sweeper by an EXEC", "[store]") {
  constexpr uint64_t kCells{100};
  const auto stored_after = [&](std::string_view before, const FamilyOptions& after) {
    (void)Make("t", {{"f", Policy(before)}});
    for (uint64_t i = 0; i < kCells; ++i) {
      const std::string qualifier = "c" + std::to_string(i);
      CellOp put = Put("f", qualifier, "v");
      put.timestamp_micros = clock.now_micros;
      REQUIRE(Do(Find("t"), "r", {put}).ok());
    }
    SetTime(clock.now_micros + 5'000'000);
    AlterInTransaction("t", after);
    const uint64_t stored = Find("t").cells();
    SweepAll();
    REQUIRE(store->DropTable(Find("t")).ok());
    return stored;
  };
  FamilyOptions type;
  type.type = ValueType::kBytes;
  REQUIRE(stored_after("maxage=4s", type) == kCells);
  REQUIRE(stored_after("maxage=4s", Policy("maxage=2s")) == kCells);
  REQUIRE(stored_after("maxversions=2 || maxage=4s", type) == kCells);
  REQUIRE(stored_after("maxage=4s", Policy("maxage=10s")) == 0);
  REQUIRE(stored_after("maxage=4s", Policy("none")) == 0);
  REQUIRE(stored_after("maxage=4s", Policy("maxversions=1 || maxage=2s")) == 0);
}

TEST_CASE_METHOD(AlterFixture, "FAMILY ALTER shows the same inside and outside of a transaction",
                 "[store][model]") {
  static constexpr std::string_view kPolicies[]{
      "none",          "maxage=2s",     "maxage=4s",
      "maxversions=2", "maxversions=1", "maxversions=1 && maxage=2s",
      "maxage=3s",     "maxage=1s",     "maxversions=2 || maxage=3s"};
  for (uint64_t seed = 40; seed < 60; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    (void)Make("t", {{"f", {}}});
    (void)Make("u", {{"f", {}}});
    const bool expiring = random.OneIn(2);
    for (int step = 0; step < 1500; ++step) {
      INFO("step " << step);
      const uint64_t which = random.Below(20);
      if (which < 12) {
        const std::string qualifier = "c" + std::to_string(random.Below(3));
        const std::string row = "r" + std::to_string(random.Below(2));
        const std::string value = std::to_string(step);
        CellOp put = Put("f", qualifier, value);
        put.timestamp_micros =
            random.OneIn(6) ? 0 : clock.now_micros - static_cast<int64_t>(random.Below(3'000'000));
        if (expiring && random.OneIn(4)) put.ttl_micros = 1 + random.Below(3'000'000);
        for (const char* table : {"t", "u"}) REQUIRE(Do(Find(table), row, {put}).ok());
      } else if (which < 14) {
        FamilyOptions options = Policy(kPolicies[random.Below(std::size(kPolicies))]);
        if (random.OneIn(3)) {
          options = {};
          options.type.emplace(std::nullopt);
        }
        AlterInTransaction("t", options);
        Alter("u", options);
      } else if (which < 15) {
        SweepAll();
      } else {
        SetTime(clock.now_micros + static_cast<int64_t>(random.Below(700'000)));
      }
      REQUIRE(Seen("t") == Seen("u"));
    }
    REQUIRE(store->DropTable(Find("t")).ok());
    REQUIRE(store->DropTable(Find("u")).ok());
  }
}

}  // namespace store_alter_test
