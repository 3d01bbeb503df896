// Which records say who owns what.
#include "engine/state/ownership_ops.h"

#include <catch2/catch.hpp>
#include <string>

#include "engine/table/mutation.h"

namespace ownership_ops_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)

TEST_CASE("records that say who owns what are told from others", "[moves]") {
  MutationBuilder rows;
  rows.Row(1, "r");
  rows.Put(1, "q", 5, "v");
  CHECK_FALSE(ChangesOwnership(rows.payload()));
  CHECK_FALSE(BeginsWithOwnership(rows.payload()));
  SECTION("also behind rows") {
    rows.SplitTablet(1, "m");
    CHECK(ChangesOwnership(rows.payload()));
    CHECK_FALSE(BeginsWithOwnership(rows.payload()));
  }
  SECTION("or behind changes of the schema") {
    MutationBuilder schema;
    schema.CreateKeyspace("k");
    CHECK_FALSE(BeginsWithOwnership(schema.payload()));
    schema.SetCatalog(7);
    CHECK(ChangesOwnership(schema.payload()));
    CHECK(BeginsWithOwnership(schema.payload()));
  }
  SECTION("what is purged nobody is told of") {
    MutationBuilder purge;
    purge.Move(MutationOp::kPurge, 1, {});
    CHECK_FALSE(ChangesOwnership(purge.payload()));
  }
  SECTION("parts that come from another set") {
    MutationBuilder part;
    part.Move(MutationOp::kStageRun, 1, "part");
    CHECK(BeginsWithOwnership(part.payload()));
  }
  CHECK_FALSE(ChangesOwnership({}));
  CHECK_FALSE(BeginsWithOwnership("short"));
}

}  // namespace ownership_ops_test
