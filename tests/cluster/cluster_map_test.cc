// A node's map in a store: INIT and END as one record each, what the director writes, what others
// read, and that nobody else changes it.
#include "cluster/cluster_map.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "cluster/returning_sets.h"
#include "store/catalog_changes.h"
#include "store/requests.h"
#include "store/sliced_change.h"
#include "store/tablet_changes.h"
#include "tests/store/index_fixture.h"

namespace cluster_map_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)
using index_fixture::Fixture;

class Director : public Fixture {
 public:
  Status Begin() {
    return map.Begin(*store, 1, {.cluster_id = 42, .set_id = "00000000000000ab", .who = "a test"});
  }
  Status Split(const std::string& table, std::vector<std::string_view> rows) {
    return map.Change(*store, term, "split", "a test",
                      [&] { return TabletChanges(*store).Split(Find(table), rows); });
  }
  std::vector<std::string> Check() { return map.Check(*store, term); }
  // Of the table: starts in the order of the map.
  std::string Starts(ClusterMap& of, const std::string& table) {
    const MapTable* const found = of.Current(*store).Find(Find(table).id());
    if (found == nullptr) return "none";
    std::string text;
    for (const MapEntry& entry : found->tablets)
      text += "[" + TabletBoundText(Find(table), entry.begin) + "]";
    return text;
  }
  uint64_t Version() { return map.Current(*store).version(); }

  ClusterMap map;
  uint32_t term{1};
};

TEST_CASE_METHOD(Director, "INIT is one record, and so is END", "[cluster]") {
  Make("t", {{"f", {}}});
  const uint64_t before = store->last_lsn().seq;
  REQUIRE(Begin().ok());
  REQUIRE(store->last_lsn().seq == before + 1);
  REQUIRE(Begin().ToString() == "ERR this set is set 0 of a cluster");
  REQUIRE(store->last_lsn().seq == before + 1);
  REQUIRE(Check().empty());
  REQUIRE(Starts(map, "t") == "[]");
  REQUIRE(map.Current(*store).tables().size() == 8);  // with its own
  Open();
  REQUIRE(Check().empty());
  REQUIRE(Version() == 1);
  REQUIRE(map.End(*store).ok());
  REQUIRE(store->last_lsn().seq == before + 2);
  REQUIRE_FALSE(store->KeyspaceExists("_cluster"));
  REQUIRE(Version() == 0);
  REQUIRE(Begin().ok());
}

TEST_CASE_METHOD(Director, "A cluster does not begin where its keyspace is another's",
                 "[cluster]") {
  Make("t", {{"f", {}}});
  REQUIRE(store->CreateKeyspace("_cluster").ok());
  REQUIRE(store->CreateTable("_cluster", "tablets", Order(), {{"f", {}}}).ok());
  REQUIRE(Begin().code() == ErrorCode::kBusyKey);
  REQUIRE_FALSE(store->engine().cluster().active());
  REQUIRE(Find("t").tablets() == nullptr);
  REQUIRE(store->DropKeyspace("_cluster").ok());
  REQUIRE(Begin().ok());
}

TEST_CASE_METHOD(Director, "A change of tablets and the map of it are one record", "[cluster]") {
  Make("t", {{"f", {}}});
  REQUIRE(Begin().ok());
  const uint64_t before = store->last_lsn().seq;
  REQUIRE(Split("t", {"m", "c"}).ok());
  REQUIRE(store->last_lsn().seq == before + 1);
  REQUIRE(Starts(map, "t") == "[][c][m]");
  REQUIRE(Version() == 2);
  // Refused, it leaves nothing behind.
  REQUIRE(Split("t", {"x", "m"}).ToString() == "ERR the tablet ends there already");
  REQUIRE(store->last_lsn().seq == before + 1);
  REQUIRE(Starts(map, "t") == "[][c][m]");
  REQUIRE(Find("t").tablets()->list().size() == 3);
  // Another node, and one that starts, read the same.
  ClusterMap other;
  REQUIRE(Starts(other, "t") == "[][c][m]");
  REQUIRE(store->journal().SaveNow().ok());
  Open();
  REQUIRE(Starts(other, "t") == "[][c][m]");
  REQUIRE(MapTables(*store).Events(10).size() == 2);
  REQUIRE(MapTables(*store).Events(1)[0].what == "split");
}

TEST_CASE_METHOD(Director, "The map follows tables that come, go and get other names",
                 "[cluster]") {
  REQUIRE(Begin().ok());
  Make("t", {{"f", {}}});
  REQUIRE(Starts(map, "t") == "none");
  REQUIRE(map.Tend(*store, term).ok());
  REQUIRE(Starts(map, "t") == "[]");
  const uint64_t version = Version();
  const uint64_t seq = store->last_lsn().seq;
  REQUIRE(map.Tend(*store, term).ok());
  REQUIRE(store->last_lsn().seq == seq);
  REQUIRE(store->RenameTable(Find("t"), "0", "u", Store::Overwrite::kNo).ok());
  REQUIRE(map.Tend(*store, term).ok());
  REQUIRE(map.Current(*store).Find(Find("u").id())->name == "0/u");
  REQUIRE(Version() == version + 1);
  REQUIRE(map.Current(*store).floor() == 0);
  REQUIRE(store->DropTable(Find("u")).ok());
  REQUIRE(map.Tend(*store, term).ok());
  REQUIRE(map.Current(*store).tables().size() == 7);
  REQUIRE(map.Current(*store).floor() == version + 2);
  REQUIRE(Check().empty());
  // Not in the middle of a transaction.
  store->BeginTransaction(Store::Atomicity::kAll);
  Make("v", {{"f", {}}});
  REQUIRE(map.Tend(*store, term).ok());
  store->RollBackTransaction();
  REQUIRE(Check().empty());
}

TEST_CASE_METHOD(Director, "A new director compares everything once", "[cluster]") {
  Make("t", {{"f", {}}});
  REQUIRE(Begin().ok());
  REQUIRE(Split("t", {"m"}).ok());
  // A leader that ended before its map was written.
  REQUIRE(TabletChanges(*store).Merge(Find("t"), "a").ok());
  Make("u", {{"f", {}}});
  ClusterMap next;
  REQUIRE(Starts(next, "t") == "[][m]");
  REQUIRE(next.Tend(*store, 2).ok());
  REQUIRE(Starts(next, "t") == "[]");
  REQUIRE(Starts(next, "u") == "[]");
  REQUIRE(next.Check(*store, 2).empty());
  REQUIRE(Starts(map, "t") == "[]");
}

TEST_CASE_METHOD(Director, "What a set tells a new director first is kept", "[cluster]") {
  Make("t", {{"f", {}}});
  REQUIRE(Begin().ok());
  REQUIRE(map.Admit(*store, term, 7, "a set", "a test").ok());
  // Before this director has looked at anything.
  const uint64_t id = Find("t").id();
  const TabletsByTable claims{{id, Tablets::Make({{.begin = "", .end = "", .epoch = 5}})}};
  map.TakeClaims(*store, 2, 1, claims);
  REQUIRE(map.Tend(*store, 2).ok());
  REQUIRE(map.Current(*store).FindTablet(id, "x")->set == 1);
  REQUIRE(map.Current(*store).FindTablet(id, "x")->epoch == 5);
}

// Of the table: the sets of its tablets, in their order.
std::string SetsOf(ClusterMap& map, Store& store, const Table& table) {
  std::string text;
  for (const MapEntry& entry : map.Current(store).Find(table.id())->tablets)
    text += std::to_string(entry.set);
  return text;
}

TEST_CASE_METHOD(Director, "A set owns what changes that it has not taken yet give it",
                 "[cluster]") {
  REQUIRE(Begin().ok());
  CatalogChanges::SetKeeper(*store, &map);
  REQUIRE(map.Admit(*store, term, 7, "a set", "a test").ok());
  const auto create = [&](const std::string& name) {
    const std::vector<std::string_view> rows{"c", "f", "m"};
    REQUIRE(store
                ->CreateTable(
                    "0", name,
                    {.key = Order(), .families = {{"f", {}}}, .placement = {}, .split_at = rows})
                .ok());
    REQUIRE(map.Tend(*store, term).ok());
    return SetsOf(map, *store, Find(name));
  };
  // It is told of it with the whole schema, when it joins.
  REQUIRE(create("early") == "0101");
  REQUIRE(map.PartsBehind(*store, 0, 1).size() == 1);
  REQUIRE(map.PartsBehind(*store, 0, 2).empty());
  uint64_t joined = store->engine().cluster().catalog;
  const CatalogChange::Part part = map.PartsBehind(*store, 0, 1)[0];
  std::string_view bytes = part.tablets;
  const TabletsByTable early{{Find("early").id(), Tablets::Decode(&bytes)}};
  map.TakeClaims(*store, term, 1, early, joined);
  REQUIRE(Check().empty());
  REQUIRE(create("t") == "0101");
  // It cannot take the change, and says again and again what it has.
  for (int i = 0; i < 3; ++i) {
    map.TakeClaims(*store, term, 1, early, joined);
    REQUIRE(map.Tend(*store, term).ok());
    REQUIRE(Check().empty());
    REQUIRE(SetsOf(map, *store, Find("t")) == "0101");
  }
  REQUIRE(store->DropTable(Find("t")).ok());
  REQUIRE(create("u").find('1') != std::string::npos);
  map.TakeClaims(*store, term, 1, early, joined);
  REQUIRE(Check().empty());
  // Of changes that it has, what it says counts.
  joined = store->engine().cluster().catalog;
  map.TakeClaims(*store, term, 1, early, joined);
  REQUIRE_FALSE(Check().empty());
  CatalogChanges::SetKeeper(*store, nullptr);
}

TEST_CASE_METHOD(Director, "Set 0 that comes back older ends jobs that others have forgotten",
                 "[cluster]") {
  Make("t", {{"f", {}}});
  Make("u", {{"f", {}}});
  REQUIRE(Begin().ok());
  REQUIRE(map.Admit(*store, term, 7, "a set", "a test").ok());
  REQUIRE(map.Admit(*store, term, 8, "a set", "a test").ok());
  const uint64_t moved = Find("t").id();
  const uint64_t stayed = Find("u").id();
  const auto job = [&](uint64_t number, uint64_t table_id) {
    MoveJob made;
    made.number = number;
    made.table_id = table_id;
    made.table = "0/t";
    made.tablet = {.begin = "", .end = "", .epoch = 3};
    made.from = 1;
    made.to = 2;
    return made;
  };
  const Status written = MapTables::AsOne(*store, [&]() -> Status {
    MapTables tables(*store);
    RETURN_IF_ERROR(tables.CreateJobs());
    RETURN_IF_ERROR(tables.WriteJob(job(2, moved)));
    RETURN_IF_ERROR(tables.WriteJob(job(3, stayed)));
    return tables.WriteJob(job(9, stayed));
  });
  REQUIRE(written.ok());
  map.TakeClaims(*store, term, 1,
                 {{stayed, Tablets::Make({{.begin = "", .end = "", .epoch = 3}})}});
  map.TakeClaims(*store, term, 2, {{moved, Tablets::Make({{.begin = "", .end = "", .epoch = 6}})}});
  ReturnVerdict verdict;
  verdict.open = {{0, 5}, {1, 7}, {2, 8}};
  verdict.last_job = 11;
  verdict.floor = 8;
  REQUIRE(map.Reopen(*store, verdict, 0, {}).ok());
  const auto rows = MapTables(*store).Jobs();
  REQUIRE(rows.ok());
  REQUIRE(rows->jobs.at(2).state == MoveJob::State::kDone);
  REQUIRE(rows->jobs.at(3).state == MoveJob::State::kCancelled);
  REQUIRE_FALSE(rows->jobs.at(3).error.empty());
  REQUIRE(rows->jobs.at(9).state == MoveJob::State::kOrdered);
  REQUIRE(rows->next == 12);
}

TEST_CASE_METHOD(Director, "What is wrong is named, and made anew", "[cluster]") {
  Make("t", {{"f", {}}});
  REQUIRE(Begin().ok());
  REQUIRE(TabletChanges(*store).Assign(Find("t"), {{"", "c", 3}, {"x", "", 2}}).ok());
  REQUIRE(Check() == std::vector<std::string>{"hole: 0/t from 'c' to 'x'"});
  REQUIRE(TabletChanges(*store).Assign(Find("t"), {{}}).ok());
  REQUIRE(Check().empty());
  // Rows of the map that nobody has written so.
  Table& tablets = **store->FindTable("_cluster", "tablets");
  const uint64_t id = Find("t").id();
  std::string row;
  for (const MapEntry& entry : map.Current(*store).Find(id)->tablets)
    row = std::to_string(id) + "/" + std::to_string(entry.number);
  tablets.SetKept(false);
  REQUIRE(Do(tablets, row, {Put("f", "epoch", "9")}).ok());
  REQUIRE(Do(tablets, "77/1",
             {Put("f", "table", "0/x"), Put("f", "set", "1"), Put("f", "epoch", "1"),
              Put("f", "version", "1")})
              .ok());
  tablets.SetKept(true);
  const std::vector<std::string> faults = Check();
  REQUIRE(faults == std::vector<std::string>{
                        "difference: 0/t from the front to the end: owned by set 0 with epoch 1, "
                        "the map says set 0 with epoch 9",
                        "difference: 0/x from the front to the end: the map says set 1 with epoch "
                        "1, and no set owns it so"});
  const uint64_t version = Version();
  REQUIRE(map.Rebuild(*store, term).ok());
  REQUIRE(Check().empty());
  REQUIRE(Version() == version + 1);
  // One that cannot be read at all.
  tablets.SetKept(false);
  REQUIRE(Do(tablets, row, {Put("f", "epoch", "nine")}).ok());
  tablets.SetKept(true);
  REQUIRE(Version() == 0);
  REQUIRE_FALSE(Check().empty());
  REQUIRE(map.Rebuild(*store, term).ok());
  REQUIRE(Check().empty());
}

TEST_CASE_METHOD(Director, "Nobody else changes the cluster's keyspace", "[cluster]") {
  Make("t", {{"f", {}}});
  REQUIRE(Begin().ok());
  const std::string refusal =
      "ERR keyspace '_cluster' is the cluster's own, which alone changes it";
  const auto refused = [&] {
    Table& tablets = **store->FindTable("_cluster", "tablets");
    const std::vector<std::string_view> put{"f:set", "1"};
    REQUIRE(store->Put(tablets, "7/1", put).ToString() == refusal);
    REQUIRE(Do(tablets, "7/1", {Put("f", "set", "1")}).ToString() == refusal);
    REQUIRE(store->DropTable(tablets).ToString() == refusal);
    REQUIRE(store->TruncateTable(tablets).ToString() == refusal);
    REQUIRE(store->AddFamily(tablets, {"g", {}}).ToString() == refusal);
    REQUIRE(store->RenameTable(tablets, "0", "x", Store::Overwrite::kNo).ToString() == refusal);
    REQUIRE(store->RenameTable(Find("t"), "_cluster", "x", Store::Overwrite::kNo).ToString() ==
            refusal);
    REQUIRE(
        store->RenameTable(Find("t"), "_cluster", "tablets", Store::Overwrite::kYes).ToString() ==
        refusal);
    REQUIRE(store->CreateTable("_cluster", "x", Order(), {{"f", {}}}).ToString() == refusal);
    REQUIRE(store->DropKeyspace("_cluster").ToString() == refusal);
    REQUIRE(TabletChanges(*store).Place(tablets, {.colocate = 1}).ToString() == refusal);
    const std::vector<std::string_view> at{"5/1"};
    REQUIRE(TabletChanges(*store).Split(tablets, at).ToString() == refusal);
    const std::vector<const Table*> tables{&tablets};
    REQUIRE(store->CreateSnapshot("_cluster", "s", tables, 0, Store::Overwrite::kNo).ToString() ==
            refusal);
    REQUIRE(
        store->CopyTable(Find("t"), "_cluster", "x", Store::Overwrite::kNo).status().ToString() ==
        refusal);
  };
  refused();
  Open();
  refused();
  REQUIRE(store->journal().SaveNow().ok());
  Open();
  refused();
  // A rollback of INIT or END opens nothing, and closes nothing.
  store->BeginTransaction(Store::Atomicity::kAll);
  REQUIRE(TabletChanges(*store).End().ok());
  store->RollBackTransaction();
  refused();
  REQUIRE(Check().empty());
}

TEST_CASE_METHOD(Director, "Options and events are kept, of events the newest", "[cluster]") {
  REQUIRE(Begin().ok());
  REQUIRE(map.SetOption(*store, "tablet-moves", "3").ok());
  REQUIRE(map.SetOption(*store, "tablet-moves", "4").ok());
  Open();
  REQUIRE(MapTables(*store).Options() == std::map<std::string, std::string>{{"tablet-moves", "4"}});
  const std::vector<ClusterEvent> events = MapTables(*store).Events(10);
  REQUIRE(events.size() == 3);
  REQUIRE(events[0].what == "tablet-moves is 4");
  for (uint64_t i = 0; i < MapTables::kEventsMax + 5; ++i)
    REQUIRE(map.SetOption(*store, "tablet-moves", std::to_string(i)).ok());
  REQUIRE(MapTables(*store).Events(UINT64_MAX).size() == MapTables::kEventsMax);
}

}  // namespace cluster_map_test
