// Building an index beside everything else: how long a slice may be.
#include <catch2/catch.hpp>
#include <string>

#include "store/store.h"
#include "tests/store/index_fixture.h"

namespace index_build_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)
using index_fixture::Fixture;

TEST_CASE_METHOD(Fixture, "A slice of building an index ends when its time is over", "[index]") {
  Table& table = Make("t", {{"f", {}}});
  for (int i = 0; i < 1000; ++i) {
    REQUIRE(Do(table, "r" + std::to_string(i), {Put("f", "x", std::to_string(i))}).ok());
  }
  clock.tick_micros = 1000;  // each piece takes as long
  REQUIRE(store->CreateIndex(table, {.name = "i", .on = {On("f", "x")}, .include = {}}).ok());
  const Index& index = *table.indexes()->Find(table.schema().FindIndex("i")->id);
  const auto entries = [&] { return index.entries().entries(); };
  const uint64_t at_once = entries();
  CHECK(at_once > 0);
  CHECK(at_once < 500);
  // The time of this turn is spent, however many ask.
  for (int i = 0; i < 10; ++i) (void)store->DescribeIndex(table, "i");
  CHECK(entries() == at_once);
  (void)store->Sweep(2000);
  CHECK(entries() == at_once);
  CHECK(store->building_indexes());
  while (entries() < 1000) {
    const uint64_t before = entries();
    store->SetTurnTime();
    (void)store->Sweep(2000);
    CHECK(entries() > before);
    CHECK(entries() <= before + 100);
  }
  clock.tick_micros = 0;
  while (store->Sweep(2000)) {
  }
  CHECK(!store->building_indexes());
  CHECK(store->DescribeIndex(table, "i")->state == "ready");
}

}  // namespace index_build_test
