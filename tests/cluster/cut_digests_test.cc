// What a leader keeps of cuts for digests is of its own term and state, and not for ever.
#include "cluster/cut_digests.h"

#include <catch2/catch.hpp>

#include "store/rows_digest.h"
#include "tests/store/index_fixture.h"

namespace cut_digests_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)
using index_fixture::Fixture;

TEST_CASE_METHOD(Fixture, "A digest of a cut is told by who has led since then", "[digest]") {
  Make("t", {{"f", {}}});
  REQUIRE(Do(Find("t"), "r", {Put("f", "a", "1")}).ok());
  CutDigests digests;
  digests.Take(*store, {.number = 5, .term = 2}, clock.now_micros, 0);
  REQUIRE(digests.Use(*store, {.number = 4, .term = 2}, 0) == nullptr);
  REQUIRE(digests.Use(*store, {.number = 5, .term = 3}, 0) == nullptr);
  RowsDigest* const digest = digests.Use(*store, {.number = 5, .term = 2}, 0);
  REQUIRE(digest != nullptr);
  REQUIRE(Do(Find("t"), "r", {Put("f", "a", "2")}).ok());
  while (!digest->Step(1)) continue;
  const std::string text = digest->part().Text();
  // Who has not heard it asks again, and is told the same.
  digests.Sweep(30'000'000);
  REQUIRE(digests.Use(*store, {.number = 5, .term = 2}, 30'000'000)->part().Text() == text);
  digests.Sweep(80'000'000);
  REQUIRE(digests.Use(*store, {.number = 5, .term = 2}, 80'000'000) == digest);
  digests.Sweep(200'000'000);
  REQUIRE(digests.Use(*store, {.number = 5, .term = 2}, 200'000'000) == nullptr);
  // Of many the oldest go.
  for (uint64_t cut = 10; cut < 100; ++cut)
    digests.Take(*store, {.number = cut, .term = 2}, clock.now_micros, 0);
  REQUIRE(digests.Use(*store, {.number = 80, .term = 2}, 0) == nullptr);
  REQUIRE(digests.Use(*store, {.number = 99, .term = 2}, 0) != nullptr);
  REQUIRE(store->DropTable(Find("t")).ok());
  REQUIRE(digests.Use(*store, {.number = 99, .term = 2}, 0)->Step(kUnlimited));
  digests.Clear();
  REQUIRE(digests.Use(*store, {.number = 99, .term = 2}, 0) == nullptr);
}

}  // namespace cut_digests_test
