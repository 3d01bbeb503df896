// The schema of a cluster at a set that has joined it: taken over whole, then change by change;
// what does not fit changes nothing.
#include "store/catalog_changes.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/table/mutation.h"
#include "tests/store/index_fixture.h"

namespace catalog_changes_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)
using index_fixture::Fixture;

// Set 0, as far as its schema is concerned.
class Sets : public Fixture {
 public:
  CatalogChanges changes() { return CatalogChanges(*store); }
  // Made before the set joins: from then on it makes none itself.
  std::string MadeSchema(const std::vector<NewFamily>& families) {
    Make("made", families);
    std::string bytes;
    EncodeTableSchema(Find("made").schema(), &bytes);
    REQUIRE(store->DropTable(Find("made")).ok());
    return bytes;
  }
  Sets() { Begin(); }
  // An empty directory.
  void Begin() {
    store.reset();
    std::filesystem::remove_all(directory);
    REQUIRE(std::filesystem::create_directory(directory));
    Open();
  }
  const std::string one_family{MadeSchema({{"f", {}}})};
  const std::string two_families{MadeSchema({{"f", {}}, {"g", {}}})};
  static CatalogChange Change(uint64_t number, const MutationBuilder& ops) {
    return {.number = number, .ops = std::string(ops.Since(kMutationBeginBytes)), .parts = {}};
  }
  static std::string PartOf(std::vector<Tablet> tablets) {
    std::string bytes;
    Tablets::Make(std::move(tablets))->Encode(&bytes);
    return bytes;
  }
  Status Join() {
    MutationBuilder ops;
    ops.CreateKeyspace("more");
    ops.CreateTable("0", "old", 7, two_families);  // the ids of their trees do not ascend
    ops.CreateTable("0", "older", 8, one_family);
    return changes().Join({.cluster_id = 42, .set = 1}, Change(5, ops));
  }
};

TEST_CASE_METHOD(Sets, "A set that joins has the schema, and owns nothing", "[tablets]") {
  Make("mine", {{"f", {}}});
  REQUIRE(CatalogChanges::WhatIsHere(store->engine()) == "table 0/mine");
  REQUIRE(Join().ToString() == "ERR this set is not empty: table 0/mine");
  REQUIRE(store->DropTable(Find("mine")).ok());
  REQUIRE(
      Join().ToString() ==
      "ERR this set is not empty: tables that were dropped (it must begin in an empty directory)");
  Begin();
  REQUIRE(Join().ToString() == "OK");
  const auto check = [this] {
    REQUIRE(store->engine().cluster().set == 1);
    REQUIRE(store->engine().cluster().catalog == 5);
    REQUIRE(store->KeyspaceExists("more"));
    REQUIRE(Find("old").id() == 7);
    REQUIRE(Find("old").tablets()->list().empty());
  };
  check();
  Open();
  check();
  REQUIRE(store->CreateKeyspace("x").ToString() ==
          "TRYAGAIN the schema of a cluster is changed at set 0, and this is set 1");
  REQUIRE(Join().ToString() == "ERR this set is set 1 of a cluster");
}

TEST_CASE_METHOD(Sets, "Changes of a cluster's schema are taken over one by one", "[tablets]") {
  REQUIRE(Join().ToString() == "OK");
  MutationBuilder ops;
  ops.CreateTable("more", "t", 9, two_families);
  ops.TruncateTable(8, 3);
  ops.DropTable(7);
  CatalogChange change = Change(6, ops);
  change.parts.push_back({9, 1, PartOf({{"a", "c", 1}, {"x", "", 1}})});
  change.parts.push_back({9, 2, PartOf({{"c", "x", 1}})});
  REQUIRE(changes().Apply(change).ok());
  const auto check = [this] {
    REQUIRE(store->engine().cluster().catalog == 6);
    REQUIRE(store->TableById(7) == nullptr);
    const Table* const made = store->TableById(9);
    REQUIRE(made != nullptr);
    REQUIRE(made->tablets()->list().size() == 2);
    REQUIRE(made->tablets()->Owns("b"));
    REQUIRE_FALSE(made->tablets()->Owns("d"));
  };
  check();
  Open();
  check();
  CatalogChange read;
  std::string bytes;
  EncodeCatalogChange(change, &bytes);
  REQUIRE(DecodeCatalogChange(bytes, &read));
  REQUIRE(read == change);
}

TEST_CASE_METHOD(Sets, "A change that does not fit changes nothing", "[tablets]") {
  REQUIRE(Join().ToString() == "OK");
  MutationBuilder twice;
  twice.CreateKeyspace("fine");
  twice.CreateTable("0", "old", 11, one_family);
  MutationBuilder nowhere;
  nowhere.CreateTable("nowhere", "t", 11, one_family);
  MutationBuilder gone;
  gone.CreateKeyspace("fine");
  gone.DropTable(1000);
  MutationBuilder schema;
  schema.SetSchema(7, "no schema");
  MutationBuilder owner;
  owner.AssignTablets(7, PartOf({{"", "", 1}}));
  // What would be refused when the log is read again.
  MutationBuilder name;
  name.CreateTable("0", "a name\n", 11, one_family);
  MutationBuilder number;
  number.CreateTable("0", "t", UINT64_MAX, one_family);
  MutationBuilder used;
  used.CreateTable("0", "t", 3, one_family);
  const Lsn before = store->last_lsn();
  for (const MutationBuilder* ops :
       {&twice, &nowhere, &gone, &schema, &owner, &name, &number, &used}) {
    REQUIRE(changes().Apply(Change(6, *ops)).code() == ErrorCode::kCorruption);
    REQUIRE(store->last_lsn() == before);
    REQUIRE_FALSE(store->KeyspaceExists("fine"));
    REQUIRE(store->engine().cluster().catalog == 5);
  }
  CatalogChange part = Change(6, MutationBuilder());
  part.parts.push_back({7, 1, "nonsense"});
  REQUIRE(changes().Apply(part).code() == ErrorCode::kCorruption);
  REQUIRE(store->last_lsn() == before);
  // What nobody has meant.
  MutationBuilder fine;
  fine.CreateTable("more", "t", 9, two_families);
  fine.RenameTable(7, "more", "u");
  CatalogChange change = Change(6, fine);
  change.parts.push_back({9, 1, PartOf({{"a", "", 1}})});
  std::string whole;
  EncodeCatalogChange(change, &whole);
  Random random(20261128);
  int taken = 0;
  for (int i = 0; i < 3000 && taken == 0; ++i) {
    std::string bytes = whole;
    for (uint64_t bits = 1 + random.Below(3); bits > 0; --bits)
      bytes[random.Below(bytes.size())] = static_cast<char>(random.Below(256));
    CatalogChange forged;
    if (!DecodeCatalogChange(bytes, &forged) || forged.number != 6) continue;
    if (changes().Apply(forged).ok())
      ++taken;  // another name, perhaps
    else
      REQUIRE(store->last_lsn() == before);
  }
}

}  // namespace catalog_changes_test
