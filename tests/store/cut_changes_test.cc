// One moment over sets, at one of them: what its log has, which times, and snapshots that belong to
// all sets.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "engine/state/snapshot_set.h"
#include "engine/state/table_copy.h"
#include "engine/table/mutation.h"
#include "store/catalog_changes.h"
#include "store/sliced_change.h"
#include "tests/store/index_fixture.h"

namespace cut_changes_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)
using index_fixture::Fixture;

// A set that is not set 0, with table `t` of id 9 from row a to row m.
class Member : public Fixture {
 public:
  Member() {
    store.reset();
    std::filesystem::remove_all(directory);
    REQUIRE(std::filesystem::create_directory(directory));
    Open();
    MutationBuilder ops;
    REQUIRE(CatalogChanges(*store).Join({.cluster_id = 42, .set = 1}, Change(5, ops)).ToString() ==
            "OK");
    ops.CreateTable("0", "t", 9, SchemaOf());
    CatalogChange change = Change(6, ops);
    std::string tablets;
    Tablets::Make({{"a", "m", 1}})->Encode(&tablets);
    change.parts.push_back({9, 1, tablets});
    Apply(change);
    for (const char* row : {"b", "c"}) REQUIRE(Do(Find("t"), row, {Put("f", "x", "1")}).ok());
  }
  static CatalogChange Change(uint64_t number, const MutationBuilder& ops, CutMark cut = {}) {
    return {.number = number,
            .ops = std::string(ops.Since(kMutationBeginBytes)),
            .parts = {},
            .cut = std::move(cut)};
  }
  static std::string SchemaOf() {
    TableSchema schema;
    schema.groups.push_back({std::string(kDefaultGroup), 1});
    FamilySchema family;
    family.name = "f";
    family.id = schema.family_id_next++;
    schema.families.push_back(family);
    std::string bytes;
    EncodeTableSchema(schema, &bytes);
    return bytes;
  }
  void Apply(const CatalogChange& change) {
    fits = false;
    const Status applied = CatalogChanges(*store).Apply(change, &fits);
    REQUIRE(applied.ToString() == "OK");
  }
  int64_t last() const { return store->journal().last_commit_micros(); }
  CutMark At(int64_t micros) const { return {CutPurpose::kSnapshot, micros, "0/s"}; }
  // A change that freezes table 9 under no name, and the one that names it.
  CatalogChange Frozen(uint64_t number, const CutMark& mark) const {
    MutationBuilder ops;
    ops.CreateSnapshot("0", "", 20,
                       EncodeSnapshotDefinition({.created_micros = mark.time_micros,
                                                 .ttl_micros = 0,
                                                 .tree_id_first = 1'000,
                                                 .table_ids = {9}}));
    return Change(number, ops, mark);
  }
  static CatalogChange Named(uint64_t number, const char* name) {
    MutationBuilder ops;
    ops.NameSnapshot(20, name);
    return Change(number, ops);
  }
  std::string RowsOf(const std::string& table) {
    Result<Table*> found = store->FindTable("0", table);
    return found.ok() ? Rows(**found) : std::string(ErrorCodeWord(found.status().code()));
  }
  std::string Rows(Table& table) {
    std::string text;
    Result<std::unique_ptr<Scan>> scan = store->ScanRows(table, {}, {}, nullptr);
    REQUIRE(scan.ok());
    for (ScanStep step = (*scan)->Next(); step != ScanStep::kEnd; step = (*scan)->Next())
      if (step == ScanStep::kRow) text += std::string((*scan)->row_text()) + " ";
    store->EndScan(*std::move(scan));
    return text;
  }
  bool fits{false};
};

TEST_CASE_METHOD(Member, "A cut has its time, and what comes later has a later one", "[tablets]") {
  const int64_t time = last() + 1'000'000;
  const CatalogChange change = Change(7, MutationBuilder(), At(time));
  Apply(change);
  CHECK(fits);
  CHECK(last() == time);
  REQUIRE(Do(Find("t"), "d", {Put("f", "x", "1")}).ok());
  CHECK(last() == time + 1);
  // The clock of this set is past there already.
  Apply(Change(8, MutationBuilder(), At(time)));
  CHECK_FALSE(fits);
  CHECK(last() == time + 2);
  CatalogChange read;
  std::string bytes;
  EncodeCatalogChange(change, &bytes);
  REQUIRE(DecodeCatalogChange(bytes, &read));
  CHECK(read == change);
  bytes.pop_back();
  CHECK_FALSE(DecodeCatalogChange(bytes, &read));
  const Lsn end = store->last_lsn();
  Open();
  CHECK(store->last_lsn() == end);
  CHECK(store->engine().cluster().catalog == 8);
  CHECK(last() == time + 2);
}

TEST_CASE_METHOD(Member, "A snapshot of all sets shows nothing before it has a name", "[tablets]") {
  Apply(Frozen(7, At(last() + 100)));
  const int64_t created = last();
  REQUIRE(Do(Find("t"), "d", {Put("f", "x", "1")}).ok());
  CHECK(RowsOf("t@s") == "NOSNAPSHOT");
  // It is set 0 that drops what nobody wants.
  (void)store->Sweep(1000);
  REQUIRE(store->engine().snapshots().All().size() == 1);
  Apply(Named(8, "s"));
  const auto check = [&] {
    CHECK(RowsOf("t@s") == "b c ");
    const NamedSnapshot* const snapshot = store->engine().snapshots().Find("0", "s");
    REQUIRE(snapshot != nullptr);
    CHECK(snapshot->created_micros == created);
    const Table* const table = snapshot->Find("t");
    REQUIRE(table != nullptr);
    CHECK(table->id() == 21);
    CHECK(table->shown_name() == "t@s");
    CHECK(table->tablets()->Owns("b"));
    CHECK_FALSE(table->tablets()->Owns("x"));
  };
  check();
  Open();
  check();
  // From a snapshot file, too.
  REQUIRE(store->journal().SaveNow().ok());
  Open();
  check();
  bool fitting = false;
  CHECK_FALSE(CatalogChanges(*store).Apply(Named(9, "again"), &fitting).ok());  // it has one
  MutationBuilder drop;
  drop.DropSnapshot(20);
  Apply(Change(9, drop));
  CHECK(RowsOf("t@s") == "NOSNAPSHOT");
}

TEST_CASE_METHOD(Member, "A copy has the rows of a snapshot, and the tablets that it had",
                 "[tablets]") {
  Apply(Frozen(7, At(last() + 100)));
  REQUIRE(Do(Find("t"), "d", {Put("f", "x", "1")}).ok());
  MutationBuilder ops;
  ops.CopyTable("0", "u", 30,
                EncodeCopyDefinition({.source_id = 21,
                                      .tree_id_first = 5'000,
                                      .source_keyspace = "0",
                                      .source = "t",
                                      .as_at_micros = last(),
                                      .schema = SchemaOf()}));
  ops.DropSnapshot(20);
  Apply(Change(8, ops));
  const auto check = [&] {
    CHECK(RowsOf("u") == "b c ");
    CHECK(Find("u").id() == 30);
    CHECK(Find("u").tablets()->Owns("b"));
    CHECK_FALSE(Find("u").tablets()->Owns("x"));
    CHECK(store->engine().snapshots().empty());
  };
  check();
  Open();
  check();
}

TEST_CASE_METHOD(Member, "A set that joins knows the snapshots of others, and owns none of them",
                 "[tablets]") {
  Apply(Frozen(7, At(last() + 100)));
  Apply(Named(8, "s"));
  Result<std::string> whole = CatalogChanges::Whole(store->engine());
  REQUIRE(whole.ok());
  store.reset();
  std::filesystem::remove_all(directory);
  REQUIRE(std::filesystem::create_directory(directory));
  Open();
  CatalogChange change;
  change.number = 8;
  change.ops = *whole;
  REQUIRE(CatalogChanges(*store).Join({.cluster_id = 42, .set = 2}, change).ToString() == "OK");
  const auto check = [&] {
    CHECK(RowsOf("t@s").empty());
    Result<Table*> table = store->FindTable("0", "t@s");
    REQUIRE(table.ok());
    CHECK((*table)->id() == 21);
    CHECK((*table)->tablets() != nullptr);
    CHECK_FALSE((*table)->tablets()->Owns("b"));
  };
  check();
  Open();
  check();
  REQUIRE(store->journal().SaveNow().ok());
  Open();
  check();
}

}  // namespace cut_changes_test
