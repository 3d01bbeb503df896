// What a family keeps, changed at a set that hears of it from set 0: what the old policy has
// dropped never comes back, and nothing else goes.
#include "store/policy_changes.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <string>

#include "engine/table/mutation.h"
#include "store/catalog_changes.h"
#include "store/move_changes.h"
#include "tests/store/index_fixture.h"

namespace policy_changes_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)
using index_fixture::Fixture;

constexpr uint64_t kTable{7};
constexpr uint64_t kRows{300};

class Member : public Fixture {
 public:
  Member() {
    for (const uint64_t versions : {1, 3, 2}) schemas_[versions] = Schema(versions);
    store.reset();
    std::filesystem::remove_all(directory);
    REQUIRE(std::filesystem::create_directory(directory));
    Open();
    MutationBuilder ops;
    ops.CreateTable("0", "t", kTable, schemas_[1]);
    CatalogChange whole{
        .number = 5, .ops = std::string(ops.Since(kMutationBeginBytes)), .parts = {}};
    REQUIRE(CatalogChanges(*store).Join({.cluster_id = 42, .set = 1}, whole).ok());
    MutationBuilder none;
    none.TruncateTable(kTable, 1);
    std::string all;
    Tablets::Make({{"", "", 1}})->Encode(&all);
    CatalogChange change{
        .number = 6, .ops = std::string(none.Since(kMutationBeginBytes)), .parts = {}};
    change.parts.push_back({kTable, 1, all});
    bool fits = false;
    REQUIRE(CatalogChanges(*store).Apply(change, &fits).ok());
  }
  std::string Schema(uint64_t versions) {
    FamilyOptions options;
    options.versions_max = versions;
    Make("made", {{"f", options}});
    std::string bytes;
    EncodeTableSchema(Find("made").schema(), &bytes);
    REQUIRE(store->DropTable(Find("made")).ok());
    return bytes;
  }
  // As FAMILY ALTER at set 0 has it.
  void Keep(uint64_t versions) {
    MutationBuilder ops;
    ops.SetSchema(kTable, schemas_[versions]);
    const uint64_t number = store->engine().cluster().catalog + 1;
    const CatalogChange change{
        .number = number, .ops = std::string(ops.Since(kMutationBeginBytes)), .parts = {}};
    bool fits = false;
    REQUIRE(CatalogChanges(*store).Apply(change, &fits).ok());
  }
  void PutAll(std::string_view value) {
    for (uint64_t row = 0; row < kRows; ++row)
      REQUIRE(Do(Find("t"), "row" + FormatUint64(row), {Put("f", "q", value)}).ok());
  }
  uint64_t Shown() {
    CellOptions cells;
    cells.versions_max = kUnlimited;
    uint64_t count = 0;
    for (const auto& [row, text] : Cells(Find("t"), {}, cells, kUnlimited))
      if (row.starts_with("row"))
        count += static_cast<uint64_t>(std::count(text.begin(), text.end(), '@'));
    return count;
  }
  const FamilySchema& family() { return Find("t").schema().families[0]; }
  void Settle() {
    for (int i = 0; i < 10'000 && !PolicyChanges::IsSettled(Find("t")); ++i) (void)store->Sweep(16);
    REQUIRE(PolicyChanges::IsSettled(Find("t")));
  }

 private:
  std::map<uint64_t, std::string> schemas_;
};

TEST_CASE_METHOD(Member, "What a family keeps at another set is changed when nothing can come back",
                 "[alter][tablets]") {
  for (int i = 0; i < 4; ++i) PutAll("v");
  REQUIRE(Shown() == kRows);
  Keep(3);
  REQUIRE_FALSE(PolicyChanges::IsSettled(Find("t")));
  REQUIRE(family().policy.versions() == 1);
  REQUIRE(family().policy_said().versions() == 3);
  REQUIRE(FamilyOptionsText(Find("t").schema(), family()) == " VERSIONS 3");
  REQUIRE(Shown() == kRows);
  SECTION("in slices, with writes between them") {
    for (int i = 0; i < 5; ++i) {
      (void)store->Sweep(16);
      REQUIRE(Shown() == kRows);
    }
    PutAll("w");
    REQUIRE(Shown() == kRows);
  }
  SECTION("by the process that comes next") {
    (void)store->Sweep(16);
    Open();
    REQUIRE_FALSE(PolicyChanges::IsSettled(Find("t")));
  }
  SECTION("by who leads behind another one") {
    (void)store->Sweep(16);
    PolicyChanges(*store).Forget();
  }
  Settle();
  REQUIRE(family().policy.versions() == 3);
  REQUIRE(Shown() == kRows);
  PutAll("x");
  PutAll("y");
  REQUIRE(Shown() == 3 * kRows);
  Open();
  REQUIRE(Shown() == 3 * kRows);
  REQUIRE(family().policy.versions() == 3);
}

TEST_CASE_METHOD(Member, "What is dropped behind the walk does not come back", "[alter][tablets]") {
  const auto seed = static_cast<uint32_t>(std::random_device{}());
  CAPTURE(seed);
  std::mt19937 rng(seed);
  const uint64_t before = GENERATE(as<uint64_t>{}, 1, 2);
  if (before == 2) Keep(2);
  for (uint64_t i = 0; i < before; ++i) PutAll("v");
  Settle();
  REQUIRE(Shown() == before * kRows);
  Keep(3);
  const uint64_t writes = GENERATE(as<uint64_t>{}, 1, 8, 200);
  int slices = 0;
  while (!PolicyChanges::IsSettled(Find("t"))) {
    (void)store->Sweep(16);
    REQUIRE(Shown() == before * kRows);
    REQUIRE(++slices < 100'000);
    if (PolicyChanges::IsSettled(Find("t"))) break;
    // The rows in front, which the walk has passed, more often than others.
    for (uint64_t i = 0; i < writes; ++i) {
      const uint64_t row = rng() % (rng() % 2 == 0 ? kRows : 20);
      // Older than all, so that it is dropped and stays stored; or one that pushes another out.
      CellOp put = Put("f", "q", "w");
      if (rng() % 2 == 0) put.timestamp_micros = 1 + static_cast<int64_t>(rng() % 1'000);
      REQUIRE(Do(Find("t"), "row" + FormatUint64(row), {put}).ok());
    }
  }
  REQUIRE(slices > 5);
  REQUIRE(family().policy.versions() == 3);
  REQUIRE(Shown() == before * kRows);
}

TEST_CASE_METHOD(Member, "What is said anew before it is settled counts", "[alter][tablets]") {
  PutAll("v");
  PutAll("w");
  Keep(3);
  (void)store->Sweep(16);
  Keep(2);
  REQUIRE(family().policy.versions() == 1);
  REQUIRE(family().policy_said().versions() == 2);
  (void)store->Sweep(16);
  Keep(1);
  REQUIRE(PolicyChanges::IsSettled(Find("t")));
  Settle();
  REQUIRE(family().policy.versions() == 1);
  REQUIRE(Shown() == kRows);
  Keep(3);
  Keep(2);
  Settle();
  REQUIRE(family().policy.versions() == 2);
  PutAll("x");
  PutAll("y");
  REQUIRE(Shown() == 2 * kRows);
}

TEST_CASE_METHOD(Member, "A family without cells keeps at once what is said", "[alter][tablets]") {
  Keep(3);
  REQUIRE(PolicyChanges::IsSettled(Find("t")));
  REQUIRE(family().policy.versions() == 3);
}

TEST_CASE_METHOD(Member, "No tablet goes or comes while what is kept is changed",
                 "[alter][moves]") {
  PutAll("v");
  Keep(3);
  const Tablet all = Find("t").tablets()->list()[0];
  REQUIRE(MoveChanges(*store).Begin(1, {kTable, all, 2, false}).ToString() ==
          "TRYAGAIN what family 'f' of table 't' keeps is being changed");
  MoveIn in;
  in.table_id = kTable;
  in.tablet = {"x", "", 9};
  in.from = 2;
  in.attempt = 1;
  REQUIRE(MoveChanges(*store).Stage(2, in, {}).code() == ErrorCode::kTryAgain);
  Settle();
  REQUIRE(MoveChanges(*store).Begin(1, {kTable, all, 2, false}).ok());
  // One that has begun ends with the change.
  Keep(2);
  REQUIRE(store->engine().cluster().moves.FindOut(1) == nullptr);
}

}  // namespace policy_changes_test
