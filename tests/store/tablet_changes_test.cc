// Ownership in the store: what CLUSTER and TABLET change is logged, survives snapshots and crashes,
// is taken back with its transaction, and what no server has written is damage.
#include "store/tablet_changes.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "engine/state/cluster_state.h"
#include "store/requests.h"
#include "tests/store/index_fixture.h"

namespace tablet_changes_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)
using index_fixture::Fixture;

class Cluster : public Fixture {
 public:
  TabletChanges changes() { return TabletChanges(*store); }
  // Their ends as people write them: ..m:1 m..:3
  std::string Shown(const std::string& name) {
    const Table& table = Find(name);
    if (table.tablets() == nullptr) return "none";
    std::string text;
    for (const Tablet& tablet : table.tablets()->list()) {
      text += (text.empty() ? "" : " ") + TabletBoundText(table, tablet.begin) + ".." +
              TabletBoundText(table, tablet.end) + ":" + FormatUint64(tablet.epoch);
    }
    return text;
  }
  std::string ReadRow(const std::string& row) {
    const Result<OpenedRow*> opened = store->OpenRow(Find("t"), row, nullptr);
    if (!opened.ok()) return opened.status().ToString();
    const Result<const CellRead*> cell = (*opened)->Get("f:a");
    REQUIRE(cell.ok());
    return *cell == nullptr ? "nothing" : std::string((*cell)->value.stored);
  }
};

TEST_CASE_METHOD(Cluster, "A store becomes a cluster of one, and is none again", "[tablets]") {
  Make("t", {{"f", {}}});
  REQUIRE(Do(Find("t"), "r", {Put("f", "a", "1")}).ok());
  REQUIRE(Shown("t") == "none");
  REQUIRE(changes().Init(42).ok());
  REQUIRE(changes().Init(43).ToString() == "ERR this set is set 0 of a cluster");
  Make("u", {{"f", {}}});
  REQUIRE(store->engine().cluster().cluster_id == 42);
  const std::vector<std::string_view> rows{"m", "c"};
  REQUIRE(changes().Split(Find("t"), rows).ok());
  const auto check = [this] {
    REQUIRE(Shown("t") == "..c:1 c..m:1 m..:1");
    REQUIRE(Shown("u") == "..:1");
    REQUIRE(TabletsOwned(store->engine()) == 4);
    REQUIRE(ReadRow("r") == "1");
    REQUIRE(Find("t").clamp() == nullptr);
  };
  check();
  Open();
  check();
  REQUIRE(store->journal().SaveNow().ok());
  Open();
  check();
  REQUIRE(changes().Merge(Find("t"), "d").ok());
  REQUIRE(Shown("t") == "..c:1 c..:1");
  REQUIRE(store->TruncateTable(Find("t")).ok());
  REQUIRE(Shown("t") == "..c:1 c..:1");
  REQUIRE(store->RenameTable(Find("t"), "0", "v", Store::Overwrite::kNo).ok());
  REQUIRE(Shown("v") == "..c:1 c..:1");
  REQUIRE(store->DropTable(Find("v")).ok());
  REQUIRE(TabletsOwned(store->engine()) == 1);
  REQUIRE(changes().End().ok());
  REQUIRE(Shown("u") == "none");
  Open();
  REQUIRE_FALSE(store->engine().cluster().active());
  REQUIRE(Shown("u") == "none");
}

TEST_CASE_METHOD(Cluster, "What is refused changes nothing", "[tablets]") {
  Make("t", {{"f", {}}});
  REQUIRE(changes().Init(42).ok());
  const auto split = [this](std::vector<std::string_view> rows) {
    return changes().Split(Find("t"), rows).ToString();
  };
  REQUIRE(split({"m"}) == "OK");
  REQUIRE(split({"c", "m"}) == "ERR the tablet ends there already");
  REQUIRE(split({"c", "c"}) == "ERR the tablet ends there already");
  REQUIRE(split({"c", ""}) == "ERR the tablet ends there already");
  const std::string long_row(kRowKeyBytesMax + 1, 'x');
  REQUIRE(split({"c", long_row}).starts_with("TOOLARGE"));
  REQUIRE(changes().Merge(Find("t"), "n").ToString() ==
          "ERR the tablet is the last one of table 't'");
  REQUIRE(Shown("t") == "..m:1 m..:1");
  REQUIRE(changes().Assign(Find("t"), {{"b", "a", 1}}).code() == ErrorCode::kErr);
  REQUIRE(changes().Assign(Find("t"), {{"", "c", 3}, {"x", "", 2}}).ok());
  REQUIRE(split({"d"}) == "TRYAGAIN row 'd' of table 't' has moved");
  REQUIRE(changes().Merge(Find("t"), "d").ToString() == "TRYAGAIN row 'd' of table 't' has moved");
  REQUIRE(changes().Merge(Find("t"), "a").ToString() ==
          "ERR the next tablet is another set's: TABLET MOVE first");
  REQUIRE(split({"b"}) == "OK");
  // As many as a set may have, over all tables.
  std::vector<Tablet> many(kTabletsMax + 1);
  for (size_t i = 0; i < many.size(); ++i) {
    many[i].begin = i == 0 ? "" : FormatUint64(100'000 + i - 1) + std::string("\0\1", 2);
    many[i].end = FormatUint64(100'000 + i) + std::string("\0\1", 2);
  }
  Make("u", {{"f", {}}});
  REQUIRE(changes().Assign(Find("u"), many).code() == ErrorCode::kTooLarge);
  many.resize(kTabletsMax - 3);
  REQUIRE(changes().Assign(Find("u"), many).ok());
  REQUIRE(split({"bb"}).starts_with("TOOLARGE"));
  REQUIRE(store->CreateTable("0", "v", Order(), {{"f", {}}}).code() == ErrorCode::kTooLarge);
  REQUIRE(store->journal().SaveNow().ok());
  Open();
  REQUIRE(TabletsOwned(store->engine()) == kTabletsMax);
  REQUIRE(changes().Assign(Find("u"), {}).ok());
  Open();
  REQUIRE(TabletsOwned(store->engine()) == 3);
}

TEST_CASE_METHOD(Cluster, "Two tablets become one only as they were seen", "[tablets]") {
  Make("t", {{"f", {}}});
  REQUIRE(changes().Init(42).ok());
  const auto merge = [this](const Tablet& tablet, std::string_view end) {
    return changes().MergeAt(Find("t"), tablet, end);
  };
  REQUIRE(changes().Assign(Find("t"), {{"", "c", 3}, {"c", "m", 5}, {"x", "", 2}}).ok());
  const std::string shown = Shown("t");
  const std::pair<Tablet, std::string_view> others[] = {
      {{"", "c", 2}, "m"},                         // of another epoch
      {{"", "b", 3}, "m"},                         // it ends elsewhere
      {{"a", "c", 3}, "m"},                        // it begins elsewhere
      {{"", "c", 3}, "l"},                         // the next one ends elsewhere
      {{"", "c", 3}, ""},   {{"c", "m", 5}, "x"},  // the next one is another set's
      {{"x", "", 2}, ""},                          // the last one
      {{"m", "x", 1}, ""}};
  for (const auto& [tablet, end] : others) {
    CHECK(merge(tablet, end).ToString() == "ERR the tablet is another one by now");
    CHECK(Shown("t") == shown);
  }
  REQUIRE(merge({"", "c", 3}, "m").ok());
  REQUIRE(Shown("t") == "..m:5 x..:2");
  Open();
  REQUIRE(Shown("t") == "..m:5 x..:2");
}

TEST_CASE_METHOD(Cluster, "A row of another set is neither read nor written", "[tablets]") {
  Make("t", {{"f", {}}});
  for (const char* row : {"a", "m", "z"}) REQUIRE(Do(Find("t"), row, {Put("f", "a", row)}).ok());
  REQUIRE(changes().Init(42).ok());
  REQUIRE(changes().Assign(Find("t"), {{"", "c", 3}, {"x", "", 2}}).ok());
  for (int i = 0; i < 2; ++i) {
    REQUIRE(ReadRow("a") == "a");
    REQUIRE(ReadRow("z") == "z");
    REQUIRE(ReadRow("m") == "TRYAGAIN row 'm' of table 't' has moved");
    REQUIRE(Do(Find("t"), "m", {Put("f", "a", "x")}).code() == ErrorCode::kTryAgain);
    REQUIRE(Cells(Find("t"), {}, {}, kUnlimited)["order"] == " a z");
    REQUIRE(store->journal().SaveNow().ok());
    Open();
  }
  // What shows a table as a whole shows what the set owned then.
  const std::vector<const Table*> tables{&Find("t")};
  REQUIRE(store->CreateSnapshot("0", "s", tables, 0, Store::Overwrite::kNo).ok());
  REQUIRE(Cells(Find("t@s"), {}, {}, kUnlimited)["order"] == " a z");
  // It is all there still.
  REQUIRE(changes().Assign(Find("t"), {{}}).ok());
  REQUIRE(ReadRow("m") == "m");
}

TEST_CASE_METHOD(Cluster, "Record numbers are given where the last tablet begins, or behind",
                 "[tablets]") {
  REQUIRE(store->CreateTable("0", "t", *Order::Parse("recno"), {{"f", {}}}).ok());
  const auto given = [this](const std::vector<Tablet>& tablets) {
    REQUIRE(changes().Assign(Find("t"), tablets).ok());
    RowWrite write;
    write.row = "*";
    write.allocates = true;
    write.ops = {Put("f", "a", "x")};
    const Result<RowWriteResult> result = store->Write(Find("t"), write);
    return result.ok() ? result->row : result.status().ToString();
  };
  const auto bound = [this](std::string_view row) {
    return *EncodeTabletBound(Find("t").schema(), row);
  };
  REQUIRE(changes().Init(42).ok());
  REQUIRE(given({{}}) == "1");
  REQUIRE(given({{bound("2"), bound("5"), 1}, {bound("7"), "", 1}}) == "7");
  REQUIRE(given({{bound("3"), "", 1}}) == "8");
  REQUIRE(given({{"", bound("5"), 1}}).starts_with("TRYAGAIN"));
  REQUIRE(given({{"", bound("2"), 1}, {bound("100"), "", 1}}) == "100");
}

TEST_CASE_METHOD(Cluster, "Ownership goes back with its transaction", "[tablets]") {
  Make("t", {{"f", {}}});
  REQUIRE(Do(Find("t"), "m", {Put("f", "a", "1")}).ok());
  store->BeginTransaction(Store::Atomicity::kAll);
  REQUIRE(changes().Init(42).ok());
  REQUIRE(changes().Assign(Find("t"), {{"n", "", 1}}).ok());
  REQUIRE(ReadRow("m").starts_with("TRYAGAIN"));
  store->RollBackTransaction();
  REQUIRE_FALSE(store->engine().cluster().active());
  REQUIRE(Shown("t") == "none");
  REQUIRE(ReadRow("m") == "1");
  REQUIRE(changes().Init(42).ok());
  store->BeginTransaction(Store::Atomicity::kAll);
  REQUIRE(changes().Assign(Find("t"), {{"n", "", 1}}).ok());
  REQUIRE(store->TruncateTable(Find("t")).ok());
  store->RollBackTransaction();
  REQUIRE(Shown("t") == "..:1");
  REQUIRE(ReadRow("m") == "1");
}

TEST_CASE_METHOD(Cluster, "Rows of one group stay in one tablet", "[tablets]") {
  const std::vector<NewFamily> families{{"f", {}}};
  const Order key = *Order::ParseKey("utf8/u32/-utf8");
  const auto create = [&](const std::string& name, const Placement& placement,
                          std::vector<std::string_view> at) {
    return store
        ->CreateTable("0", name,
                      {.key = key, .families = families, .placement = placement, .split_at = at})
        .ToString();
  };
  const auto split = [this](const std::string& name, std::vector<std::string_view> rows) {
    return changes().Split(Find(name), rows).ToString();
  };
  const std::string group = "ERR rows of one group must stay together: the first 1 key components";
  // Outside of a cluster it is kept, and SPLIT AT does nothing.
  REQUIRE(create("a", {.colocate = 1}, {"m"}) == "OK");
  REQUIRE(create("x", {.colocate = 4}, {}) ==
          "ERR COLOCATE names more key components than there are: 3");
  REQUIRE(create("x", {.colocate = 1}, {"m/7"}) == group);
  REQUIRE(create("x", {}, {"m", "m"}) == "ERR the tablet ends there already");
  REQUIRE(create("x", {}, {""}) == "ERR the tablet ends there already");
  REQUIRE(create("x", {}, {"m/x"}).starts_with("BADKEY"));
  REQUIRE(create("x", {.whole = true}, {"m"}) == "ERR a WHOLE table is not split");
  REQUIRE(Shown("a") == "none");
  Open();
  REQUIRE(Find("a").schema().placement == Placement{.colocate = 1});
  REQUIRE(changes().Init(42).ok());
  REQUIRE(Shown("a") == "..:1");
  REQUIRE(create("b", {}, {"p/5", "m", "m/3/z"}) == "OK");
  REQUIRE(Shown("b") == "..m:1 m..m/3/z:1 m/3/z..p/5:1 p/5..:1");
  REQUIRE(split("a", {"m", "m/3"}) == group);
  REQUIRE(split("a", {"m"}) == "OK");
  // What parts groups becomes one by the same record.
  store->Flush();
  const uint64_t before = store->last_lsn().seq;
  REQUIRE(changes().Place(Find("b"), {.colocate = 2}).ok());
  REQUIRE(store->last_lsn().seq == before + 1);
  REQUIRE(Shown("b") == "..m:1 m..p/5:1 p/5..:1");
  REQUIRE(changes().Place(Find("b"), {.colocate = 1}).ok());
  REQUIRE(Shown("b") == "..m:1 m..:1");
  REQUIRE(store->journal().SaveNow().ok());
  Open();
  REQUIRE(Find("b").schema().placement == Placement{.colocate = 1});
  REQUIRE(changes().Place(Find("b"), {.colocate = 1, .whole = true}).ok());
  REQUIRE(split("b", {"x"}) == "ERR table b is WHOLE: TABLE ALTER b SPREAD");
  REQUIRE(changes().Place(Find("b"), {}).ok());
  REQUIRE(split("b", {"x/4"}) == "OK");
  REQUIRE(changes().Place(Find("b"), {.colocate = 4}).code() == ErrorCode::kErr);
  // A group that another set has a part of.
  std::string bound;
  REQUIRE(Find("b").schema().key.EncodeBound("x/4", BoundEdge::kInclusive, BoundSide::kMin).ok());
  bound = Find("b").schema().key.EncodeBound("x/4", BoundEdge::kInclusive, BoundSide::kMin)->bytes;
  REQUIRE(changes().Assign(Find("b"), {{bound, "", 1}}).ok());
  REQUIRE(changes().Place(Find("b"), {.colocate = 1}).ToString() ==
          "TRYAGAIN row 'x/4' of table 'b' has moved");
}

TEST_CASE_METHOD(Cluster, "A UNIQUE index makes its table WHOLE", "[tablets]") {
  const NewIndex unique{.name = "i", .on = {On("f", "a")}, .include = {}, .unique = true};
  REQUIRE(store->CreateIndex(Make("t", {{"f", {}}}), unique).ok());
  REQUIRE_FALSE(Find("t").schema().placement.whole);
  REQUIRE(changes().Init(42).ok());
  REQUIRE(Find("t").schema().placement.whole);
  const std::vector<std::string_view> rows{"m"};
  REQUIRE(changes().Split(Find("t"), rows).ToString() ==
          "ERR table t is WHOLE: TABLE ALTER t SPREAD");
  REQUIRE(changes().Place(Find("t"), {}).ToString() ==
          "ERR table 't' has a UNIQUE index, which needs WHOLE");
  REQUIRE(store->CreateIndex(Make("u", {{"f", {}}}), unique).ok());
  REQUIRE(Find("u").schema().placement.whole);
  Make("v", {{"f", {}}});
  REQUIRE(changes().Split(Find("v"), rows).ok());
  REQUIRE(store->CreateIndex(Find("v"), unique).ToString() ==
          "ERR a UNIQUE index needs TABLE ALTER v WHOLE, or COLOCATE by its first columns");
  REQUIRE(changes().Place(Find("v"), {.whole = true}).ok());
  REQUIRE(store->CreateIndex(Find("v"), unique).ok());
  REQUIRE(store->DropIndex(Find("v"), "i").ok());
  REQUIRE(changes().Place(Find("v"), {}).ok());
}

TEST_CASE_METHOD(Cluster, "Many bounds at once are as one after the other", "[tablets]") {
  Make("t", {{"f", {}}});
  Make("u", {{"f", {}}});
  REQUIRE(changes().Init(42).ok());
  std::vector<std::string> texts;
  for (int i = 0; i < 100; ++i) texts.push_back(std::to_string(1000 + i * 7 % 100));
  const std::vector<std::string_view> rows(texts.begin(), texts.end());
  REQUIRE(changes().Split(Find("t"), std::vector<std::string_view>{"1050x"}).ok());
  REQUIRE(changes().Split(Find("t"), rows).ok());
  REQUIRE(changes().Split(Find("u"), std::vector<std::string_view>{"1050x"}).ok());
  for (const std::string_view row : rows)
    REQUIRE(changes().Split(Find("u"), std::span(&row, 1)).ok());
  REQUIRE(Shown("t") == Shown("u"));
  Open();
  REQUIRE(Shown("t") == Shown("u"));
}

TEST_CASE("COLOCATE and WHOLE stand in a schema where older versions find damage", "[tablets]") {
  TableSchema schema;
  schema.key = *Order::ParseKey("u32/bytes");
  schema.groups = {{std::string(kDefaultGroup), 1}};
  const auto encoded = [&schema](const Placement& placement) {
    schema.placement = placement;
    std::string bytes;
    EncodeTableSchema(schema, &bytes);
    return bytes;
  };
  const std::string plain = encoded({});
  REQUIRE(IsPlainSchema(schema));
  for (const Placement& placement :
       {Placement{.colocate = 2}, {.whole = true}, {.colocate = 1, .whole = true}}) {
    const std::string bytes = encoded(placement);
    REQUIRE(bytes.size() > plain.size());
    REQUIRE_FALSE(IsPlainSchema(schema));
    std::string_view from = bytes;
    TableSchema decoded;
    REQUIRE(DecodeTableSchema(&from, &decoded).ok());
    REQUIRE(decoded.placement == placement);
    REQUIRE(decoded.family_id_next == schema.family_id_next);
  }
  for (const uint32_t colocate : {3U, 33U, UINT32_MAX >> 2}) {
    const std::string bytes = encoded({.colocate = colocate});
    std::string_view from = bytes;
    TableSchema decoded;
    REQUIRE(DecodeTableSchema(&from, &decoded).code() == ErrorCode::kCorruption);
  }
}

TEST_CASE("Ownership that no set has written is damage", "[tablets]") {
  Engine engine;
  const auto apply = [&engine](auto make) {
    MutationBuilder mutation;
    make(mutation);
    return engine.Apply(mutation.payload());
  };
  TableSchema schema;
  schema.key = *Order::Parse("u32/bytes");
  schema.groups = {{std::string(kDefaultGroup), 1}};
  std::string bytes;
  EncodeTableSchema(schema, &bytes);
  REQUIRE(apply([&](auto& mutation) { mutation.CreateTable("0", "t", 1, bytes); }).ok());
  const auto is_damage = [&](auto make) {
    const Status status = apply(make);
    REQUIRE(status.code() == ErrorCode::kCorruption);
  };
  const std::string bound("\0\0\0\5", 4);
  is_damage([&](auto& mutation) { mutation.SplitTablet(1, bound); });  // in no cluster
  is_damage([](auto& mutation) { mutation.SetCatalog(1); });
  is_damage([](auto& mutation) { mutation.SetTablets(""); });
  is_damage([](auto& mutation) { mutation.SetTablets("\2"); });
  const auto state = [](const ClusterState& cluster, const TabletsByTable& tables) {
    std::string text;
    EncodeClusterState(cluster, tables, &text);
    return text;
  };
  is_damage([&](auto& mutation) {
    mutation.SetTablets(state({.cluster_id = 1}, {{2, Tablets::Whole()}}));  // no such table
  });
  is_damage([&](auto& mutation) {
    mutation.SetTablets(state({.cluster_id = 1, .set = kClusterSetsMax}, {}));
  });
  is_damage([&](auto& mutation) { mutation.SetTablets(state({.cluster_id = 1}, {}) + "x"); });
  REQUIRE(apply([&](auto& mutation) {
            mutation.SetTablets(state({.cluster_id = 1, .catalog = 7}, {{1, Tablets::Whole()}}));
          }).ok());
  is_damage([](auto& mutation) { mutation.SetCatalog(7); });
  REQUIRE(apply([](auto& mutation) { mutation.SetCatalog(8); }).ok());
  is_damage([&](auto& mutation) { mutation.SplitTablet(2, bound); });
  // Inside of a row: behind a whole key.
  is_damage([&](auto& mutation) { mutation.SplitTablet(1, bound + std::string("a\0\1x", 4)); });
  REQUIRE(apply([&](auto& mutation) { mutation.SplitTablet(1, bound); }).ok());
  is_damage([&](auto& mutation) { mutation.SplitTablet(1, bound); });   // it begins there
  is_damage([&](auto& mutation) { mutation.MergeTablets(1, bound); });  // it is the last one
  is_damage([&](auto& mutation) { mutation.AssignTablets(1, "\1"); });
  REQUIRE(apply([&](auto& mutation) { mutation.MergeTablets(1, ""); }).ok());
  REQUIRE(engine.FindTableById(1)->tablets()->list().size() == 1);
}

}  // namespace tablet_changes_test
