// The schema of a cluster at a set that has joined it: taken over whole, then change by change;
// what does not fit changes nothing.
#include "store/catalog_changes.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/table/mutation.h"
#include "store/requests.h"
#include "tests/store/index_fixture.h"

namespace catalog_changes_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)
using index_fixture::Fixture;

// Set 0, as far as its schema is concerned.
class Sets : public Fixture {
 public:
  CatalogChanges changes() { return CatalogChanges(*store); }
  Status Applied(const CatalogChange& change) {
    fits = false;
    return changes().Apply(change, &fits);
  }
  bool fits{false};
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
  REQUIRE(Applied(change).ok());
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
    REQUIRE(Applied(Change(6, *ops)).code() == ErrorCode::kCorruption);
    REQUIRE(store->last_lsn() == before);
    REQUIRE_FALSE(store->KeyspaceExists("fine"));
    REQUIRE(store->engine().cluster().catalog == 5);
  }
  CatalogChange part = Change(6, MutationBuilder());
  part.parts.push_back({7, 1, "nonsense"});
  REQUIRE(Applied(part).code() == ErrorCode::kCorruption);
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
    if (Applied(forged).ok())
      ++taken;  // another name, perhaps
    else
      REQUIRE(store->last_lsn() == before);
  }
}

Feed Kept(int64_t micros) {
  Feed feed;
  feed.keep_micros = micros;
  return feed;
}

TEST_CASE_METHOD(Sets, "Feeds are part of the schema, and tell of a set's own log", "[tablets]") {
  Make("a", {{"f", {}}});
  REQUIRE(store->CreateFeed("0", "all", Kept(1'000'000)).ok());
  Make("b", {{"f", {}}});
  Feed of_f = Kept(5);
  of_f.on = {{"b", "f"}};
  of_f.old = true;
  REQUIRE(store->CreateFeed("0", "of_b", of_f).ok());
  const uint64_t last_id = store->engine().feeds().Find("0", "of_b")->id;
  const Result<std::string> whole = CatalogChanges::Whole(store->engine());
  REQUIRE(whole.ok());
  const int64_t before = changes().last_commit_micros();
  Begin();
  REQUIRE(changes()
              .Join({.cluster_id = 42, .set = 3}, {.number = 5, .ops = *whole, .parts = {}})
              .ToString() == "OK");
  const auto check = [&, this] {
    const FeedSet& feeds = store->engine().feeds();
    REQUIRE(feeds.size() == 2);
    for (const Feed* feed : feeds.All()) {
      REQUIRE(feed->rows_only);
      REQUIRE(feed->after_micros < before + 3'600'000'000);
    }
    const Feed* const of_b = feeds.Find("0", "of_b");
    REQUIRE(of_b->id == last_id);
    REQUIRE((of_b->old && of_b->on.size() == 1 && of_b->keep_micros == 5));
    REQUIRE(feeds.history().Knows(Find("a").id()));
    REQUIRE(feeds.history().Knows(Find("b").id()));
  };
  check();
  Open();
  check();
  MutationBuilder ops;
  ops.DropFeed(last_id);
  ops.CreateFeed("0", "new", last_id + 1, EncodeFeedDefinition(Kept(7)) + std::string(1, '\0'));
  REQUIRE(Applied(Change(6, ops)).ok());
  REQUIRE(store->engine().feeds().Find("0", "of_b") == nullptr);
  REQUIRE(store->engine().feeds().Find("0", "new")->rows_only);
  // What cannot be taken changes nothing.
  for (const std::string& definition : {std::string("x"), EncodeFeedDefinition(Kept(0))}) {
    MutationBuilder bad;
    bad.CreateFeed("0", "bad", last_id + 2, definition);
    REQUIRE_FALSE(Applied(Change(7, bad)).ok());
  }
  MutationBuilder twice;
  twice.CreateFeed("0", "new", last_id + 2, EncodeFeedDefinition(Kept(7)));
  REQUIRE_FALSE(Applied(Change(7, twice)).ok());
  REQUIRE(store->engine().feeds().size() == 2);
}

TEST_CASE_METHOD(Sets, "Groups of a whole feed come to their home, and leave it", "[tablets]") {
  Make("a", {{"f", {}}});
  REQUIRE(store->CreateFeed("0", "all", Kept(1'000'000)).ok());
  const uint64_t id = store->engine().feeds().Find("0", "all")->id;
  const uint64_t whole = WholeFeedGroups(id);
  const Result<std::string> ops = CatalogChanges::Whole(store->engine());
  REQUIRE(ops.ok());
  Begin();
  REQUIRE(changes()
              .Join({.cluster_id = 42, .set = 3}, {.number = 5, .ops = *ops, .parts = {}})
              .ToString() == "OK");
  const auto feed = [&, this]() -> const Feed& { return *store->engine().feeds().FindById(id); };
  const auto groups = [this]() -> const FeedGroups& { return store->engine().feeds().groups(); };
  uint64_t number = 5;
  const auto move = [&, this](const FeedHome& home) {
    MutationBuilder moved;
    moved.SetFeedHome(id, EncodeFeedHome(home));
    REQUIRE(Applied(Change(++number, moved)).ToString() == "OK");
  };
  FeedGroupChanges own;
  own.Create({1, 1});
  REQUIRE(store->ChangeFeedGroup(id, "g", own).ok());
  move({.set = 3, .from = 1, .awaits = true});
  REQUIRE(feed().home.awaits);
  for (const uint64_t times : {uint64_t{1}, uint64_t{2}}) {  // it may come twice
    FeedGroupChanges group;
    group.Create({9, 9});
    group.AddConsumer("c", 5);
    group.Claim("c", {{{8, 8}, 100, times}});
    REQUIRE(changes().TakeGroup(feed(), "g", group.bytes()).ok());
    REQUIRE(changes().TakeGroup(feed(), "", group.bytes()).ok());
    Open();
    REQUIRE(feed().home == FeedHome{.set = 3, .from = 1, .awaits = true});
    REQUIRE(groups().Find(whole, "g")->pending.at({8, 8}).times == times);
  }
  // A set that lies, or whose words are not those of a group, changes nothing.
  const size_t bytes_before = store->engine().feeds().groups().Of(whole)->size();
  FeedGroupChanges crowded;
  crowded.Create({9, 9});
  for (size_t i = 0; i <= kFeedConsumersMax; ++i) crowded.AddConsumer(std::to_string(i), 5);
  FeedGroupChanges destroyed;
  destroyed.Destroy();
  std::string cut(crowded.bytes());
  cut.pop_back();
  for (const std::string_view forged :
       {std::string_view{}, std::string_view{"\xff\xff\xff"}, std::string_view{crowded.bytes()},
        std::string_view{destroyed.bytes()}, std::string_view{cut}}) {
    for (const std::string_view name : {"g", "other"}) {
      INFO(name << " " << forged.size());
      REQUIRE_FALSE(changes().TakeGroup(feed(), name, forged).ok());
      REQUIRE(groups().Find(whole, "other") == nullptr);
      REQUIRE(groups().Find(whole, "g")->pending.at({8, 8}).times == 2);
      REQUIRE(groups().Of(whole)->size() == bytes_before);
    }
  }
  Open();
  REQUIRE(groups().Of(whole)->size() == bytes_before);
  REQUIRE(changes().NoteArrived(feed()).ok());
  const auto arrived = [&] {
    REQUIRE(feed().home == FeedHome{.set = 3, .from = 1, .awaits = false});
    REQUIRE(groups().Of(whole)->size() == 2);
    REQUIRE(groups().Find(id, "g")->last == FeedId{1, 1});
  };
  arrived();
  Open();
  arrived();
  move({.set = 3});
  // On to another set: they stay until they are there.
  move({.set = 2, .from = 3, .awaits = true});
  REQUIRE_FALSE(feed().home.awaits);
  REQUIRE(groups().Of(whole)->size() == 2);
  Open();
  REQUIRE(groups().Of(whole)->size() == 2);
  move({.set = 2});
  const auto left = [&] {
    REQUIRE(feed().home == FeedHome{.set = 2});
    REQUIRE(groups().Of(whole) == nullptr);
    REQUIRE(groups().Find(id, "g")->last == FeedId{1, 1});
  };
  left();
  Open();
  left();
  // A home that cannot be so changes nothing.
  MutationBuilder bad;
  bad.SetFeedHome(id, "x");
  REQUIRE_FALSE(Applied(Change(++number, bad)).ok());
  left();
}

TEST_CASE_METHOD(Sets, "Groups of the only set become those of the whole feed", "[tablets]") {
  Make("a", {{"f", {}}});
  REQUIRE(store->CreateFeed("0", "all", Kept(1'000'000)).ok());
  const uint64_t id = store->engine().feeds().Find("0", "all")->id;
  FeedGroupChanges group;
  group.Create({9, 7});
  group.AddConsumer("c", 5);
  group.Claim("c", {{{8, 1'000'002}, 100, 4}});
  REQUIRE(store->ChangeFeedGroup(id, "g", group).ok());
  FeedGroupChanges fresh;
  fresh.Create({});
  REQUIRE(store->ChangeFeedGroup(id, "h", fresh).ok());
  REQUIRE(changes().MakeWhole().ok());
  const auto check = [&, this] {
    const FeedGroups& groups = store->engine().feeds().groups();
    REQUIRE(groups.Of(id) == nullptr);
    const FeedGroup* const made = groups.Find(WholeFeedGroups(id), "g");
    REQUIRE(made->last == FeedId{9, 1'000'000'000'007});
    REQUIRE(made->pending.at({8, 2'000'000'000'002}).times == 4);
    REQUIRE(groups.Find(WholeFeedGroups(id), "h")->last == FeedId{});
  };
  check();
  REQUIRE(changes().MakeWhole().ok());
  Open();
  check();
}

}  // namespace catalog_changes_test
