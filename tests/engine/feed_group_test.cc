// Groups of consumers as they are kept: changes as bytes, catalogs, what is taken back.
#include "engine/feeds/feed_group.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/feeds/feed_set.h"
#include "engine/feeds/merged_id.h"

namespace cellar::feed_group_test {

constexpr uint64_t kFeed{7};

std::string TextOf(const FeedGroups& groups) {
  std::string bytes;
  groups.Encode(&bytes);
  return bytes;
}

bool Apply(FeedGroups* groups, const std::string& group, const FeedGroupChanges& changes) {
  return groups->Apply(kFeed, group, changes.bytes());
}

FeedGroupChanges Created() {
  FeedGroupChanges changes;
  changes.Create({5, 0});
  changes.AddConsumer("ann", 100);
  changes.AddConsumer("bob", 100);
  changes.Deliver("ann", 200, {{6, 1}, {6, 2}, {7, 0}});
  return changes;
}

TEST_CASE("A group knows what is pending with whom", "[feeds]") {
  FeedGroups groups;
  REQUIRE(Apply(&groups, "g", Created()));
  const FeedGroup* group = groups.Find(kFeed, "g");
  REQUIRE(group != nullptr);
  CHECK(group->last == FeedId{7, 0});
  CHECK(group->pending.size() == 3);
  CHECK(group->FindConsumer("ann")->pending.size() == 3);
  CHECK(group->FindConsumer("ann")->seen_ms == 200);
  FeedGroupChanges changes;
  changes.Claim("bob", {{{6, 2}, 300, 4}, {{9, 9}, 300, 1}});
  changes.Forget({{6, 1}, {1, 1}});
  REQUIRE(Apply(&groups, "g", changes));
  CHECK(group->pending.size() == 3);
  CHECK(group->FindConsumer("bob")->pending.size() == 2);
  CHECK(group->pending.at({6, 2}).times == 4);
  FeedGroupChanges dropped;
  dropped.DropConsumer("bob");
  REQUIRE(Apply(&groups, "g", dropped));
  CHECK(group->pending.size() == 1);
  CHECK(group->FindConsumer("bob") == nullptr);
  FeedGroupChanges destroyed;
  destroyed.Destroy();
  REQUIRE(Apply(&groups, "g", destroyed));
  CHECK(groups.empty());
  CHECK(groups.bytes() == 0);
}

TEST_CASE("Changes that cannot be so are refused", "[feeds]") {
  FeedGroups groups;
  FeedGroupChanges changes;
  changes.SetLast({1, 1});
  CHECK_FALSE(Apply(&groups, "g", changes));  // there is none
  REQUIRE(Apply(&groups, "g", Created()));
  CHECK_FALSE(Apply(&groups, "g", Created()));  // there is one
  for (const auto& wrong : std::vector<std::string>{"", "\x09", "\x05none", "\x03\x01"})
    CHECK_FALSE(groups.Apply(kFeed, "g", wrong));
  FeedGroupChanges nobody;
  nobody.Deliver("nobody", 1, {{8, 8}});
  CHECK_FALSE(Apply(&groups, "g", nobody));
  FeedGroupChanges again;
  again.AddConsumer("ann", 1);
  CHECK_FALSE(Apply(&groups, "g", again));
  FeedGroupChanges long_name;
  long_name.AddConsumer(std::string(kFeedGroupNameBytesMax + 1, 'n'), 1);
  CHECK_FALSE(Apply(&groups, "g", long_name));
  // Cut at every byte.
  const std::string whole = Created().bytes();
  for (size_t size = 0; size < whole.size(); ++size) {
    FeedGroups cut;
    (void)cut.Apply(kFeed, "g", std::string_view(whole).substr(0, size));
  }
}

TEST_CASE("A catalog cut at any byte is refused", "[feeds]") {
  FeedGroups groups;
  REQUIRE(Apply(&groups, "g", Created()));
  const std::string whole = TextOf(groups);
  const auto is_feed = [](uint64_t id) { return id == kFeed; };
  for (size_t size = 0; size < whole.size(); ++size) {
    FeedGroups cut;
    std::string_view rest = std::string_view(whole).substr(0, size);
    CHECK_FALSE(cut.Decode(&rest, is_feed));
  }
  std::string_view rest = whole;
  FeedGroups other;
  CHECK_FALSE(other.Decode(&rest, [](uint64_t) { return false; }));
}

// One change, of those that fit now.
FeedGroupChanges SomeChange(const FeedGroups& groups, const std::string& name, Random* random) {
  FeedGroupChanges changes;
  const FeedGroup* group = groups.Find(kFeed, name);
  const auto id = [random] { return FeedId{1 + random->Below(20), random->Below(3)}; };
  if (group == nullptr) {
    changes.Create(id());
    return changes;
  }
  const std::string consumer(1, static_cast<char>('a' + random->Below(4)));
  const bool known = group->FindConsumer(consumer) != nullptr;
  switch (random->Below(8)) {
    case 0:
      if (random->Below(4) == 0) {
        changes.Destroy();
      } else {
        changes.SetLast(id());
      }
      return changes;
    case 1:
      if (known) {
        changes.DropConsumer(consumer);
      } else {
        changes.AddConsumer(consumer, static_cast<int64_t>(random->Below(1000)));
      }
      return changes;
    case 2:
    case 3:
      changes.Forget({id(), id()});
      return changes;
    default:
      break;
  }
  if (!known) changes.AddConsumer(consumer, 5);
  if (random->Below(2) == 0) {
    FeedId first = id();
    changes.Deliver(consumer, 9, {first, first.Next()});
  } else {
    changes.Claim(consumer, {{id(), 7, random->Below(9)}, {id(), 8, 1}});
  }
  return changes;
}

TEST_CASE("What a catalog holds is what was there, and what is taken back never was", "[feeds]") {
  const uint64_t seed = 1 + GENERATE(range(0, 40));
  CAPTURE(seed);
  Random random(seed);
  FeedGroups groups;
  const auto is_feed = [](uint64_t) { return true; };
  for (int step = 0; step < 200; ++step) {
    const bool takes_back = random.Below(3) == 0;
    const std::string before = TextOf(groups);
    const size_t bytes_before = groups.bytes();
    if (takes_back) groups.BeginUndo();
    for (uint64_t i = random.Below(8); i > 0; --i) {
      const std::string name(1, static_cast<char>('x' + random.Below(3)));
      REQUIRE(Apply(&groups, name, SomeChange(groups, name, &random)));
      if (random.Below(40) == 0) groups.DropFeed(kFeed);
    }
    if (takes_back && random.Below(2) == 0) {
      groups.RollBack();
      // When somebody was heard of is not taken back.
      CHECK(groups.bytes() == bytes_before);
      CHECK(TextOf(groups).size() <= before.size() + 16);
    } else if (takes_back) {
      groups.ForgetUndo();
    }
    FeedGroups loaded;
    const std::string text = TextOf(groups);
    std::string_view rest = text;
    REQUIRE(loaded.Decode(&rest, is_feed));
    CHECK(rest.empty());
    CHECK(TextOf(loaded) == text);
    CHECK(loaded.bytes() == groups.bytes());
  }
}

TEST_CASE("Groups of a whole feed are others than those of a set's part of it", "[feeds]") {
  CHECK(WholeFeedGroups(kFeed) != kFeed);
  CHECK(FeedOfGroups(WholeFeedGroups(kFeed)) == kFeed);
  CHECK(FeedOfGroups(kFeed) == kFeed);
  FeedSet feeds;
  Feed feed;
  feed.id = kFeed;
  feed.keyspace = "0";
  feed.name = "f";
  feed.keep_micros = 1;
  feeds.Add(feed);
  const uint64_t whole = WholeFeedGroups(kFeed);
  REQUIRE(feeds.groups().Apply(kFeed, "g", Created().bytes()));
  REQUIRE(feeds.groups().Find(whole, "g") == nullptr);
  FeedGroupChanges other;
  other.Create({1, 1});
  REQUIRE(feeds.groups().Apply(whole, "g", other.bytes()));
  REQUIRE(feeds.groups().Find(kFeed, "g")->pending.size() == 3);
  REQUIRE(feeds.groups().Find(whole, "g")->pending.empty());
  const std::string text = TextOf(feeds.groups());
  std::string_view rest = text;
  FeedGroups loaded;
  REQUIRE(loaded.Decode(&rest, [](uint64_t id) { return id == kFeed; }));
  REQUIRE(TextOf(loaded) == text);
  const auto home = [](const FeedHome& at) { return EncodeFeedHome(at); };
  // On their way from set 1 to set 2: each keeps what it has, and the new home alone waits.
  for (const uint64_t own : {uint64_t{1}, uint64_t{2}}) {
    REQUIRE(feeds.SetHome(kFeed, home({.set = 2, .from = 1, .awaits = true}), own));
    REQUIRE(feeds.FindById(kFeed)->home.awaits == (own == 2));
    REQUIRE(feeds.groups().Find(whole, "g") != nullptr);
  }
  REQUIRE(feeds.SetHome(kFeed, home({.set = 2}), 2));
  REQUIRE(feeds.groups().Find(whole, "g") != nullptr);
  // What is taken back was not.
  feeds.BeginUndo();
  REQUIRE(feeds.SetHome(kFeed, home({.set = 3}), 2));
  REQUIRE(feeds.groups().Find(whole, "g") == nullptr);
  feeds.RollBack();
  REQUIRE(feeds.FindById(kFeed)->home == FeedHome{.set = 2});
  REQUIRE(feeds.groups().Find(whole, "g") != nullptr);
  for (const std::string& wrong : {std::string(), std::string("\x01"), home({.set = 2}) + "x",
                                   home({.set = 2, .from = {}, .awaits = true})})
    REQUIRE_FALSE(feeds.SetHome(kFeed, wrong, 2));
  REQUIRE_FALSE(feeds.SetHome(kFeed + 1, home({.set = 2}), 2));
  REQUIRE(feeds.SetHome(kFeed, home({.set = 3}), 2));
  REQUIRE(feeds.groups().Find(whole, "g") == nullptr);
  REQUIRE(feeds.groups().Find(kFeed, "g") != nullptr);
  REQUIRE(feeds.groups().Apply(whole, "g", other.bytes()));
  feeds.Drop(kFeed);
  REQUIRE(feeds.groups().empty());
}

TEST_CASE("The home of a feed stands in its definition where it has one", "[feeds]") {
  Feed feed;
  feed.keep_micros = 5;
  feed.slices = 7;
  feed.old = true;
  const std::string without = EncodeFeedDefinition(feed);
  for (const FeedHome& home :
       {FeedHome{}, FeedHome{.set = 3}, FeedHome{.set = 0, .from = 2, .awaits = true},
        FeedHome{.set = 1'000, .from = 0, .awaits = false}}) {
    feed.home = home;
    const std::string bytes = EncodeFeedDefinition(feed);
    CHECK((bytes == without) == (home == FeedHome{}));
    Feed read;
    std::string_view rest = bytes;
    REQUIRE(DecodeFeedDefinition(&rest, &read));
    CHECK(rest.empty());
    CHECK(read.home == home);
    CHECK((read.slices == 7 && read.old && !read.rows_only));
    for (size_t cut = 0; cut < bytes.size(); ++cut) {
      Feed part;
      std::string_view some = std::string_view(bytes).substr(0, cut);
      CHECK_FALSE(DecodeFeedDefinition(&some, &part));
    }
  }
}

TEST_CASE("A group says what makes it, with other ids", "[feeds]") {
  FeedGroups groups;
  REQUIRE(Apply(&groups, "g", Created()));
  FeedGroupChanges more;
  more.Claim("bob", {{{6, 2}, 300, 4}});
  REQUIRE(Apply(&groups, "g", more));
  const FeedGroup& group = *groups.Find(kFeed, "g");
  const auto same = [](const FeedId& id) { return id; };
  FeedGroups copy;
  REQUIRE(Apply(&copy, "g", ChangesOf(group, same)));
  CHECK(TextOf(copy) == TextOf(groups));
  FeedGroups merged;
  REQUIRE(
      Apply(&merged, "g", ChangesOf(group, [](const FeedId& id) { return MergedIdOf(3, id); })));
  const FeedGroup& other = *merged.Find(kFeed, "g");
  CHECK(other.last == MergedIdOf(3, {7, 0}));
  CHECK(other.pending.at(MergedIdOf(3, {6, 2})).times == 4);
  CHECK(other.FindConsumer("ann")->pending.size() == 2);
}

TEST_CASE("A merged id says of which set it is", "[feeds]") {
  for (const FeedId& own : {FeedId{5, 0}, FeedId{5, 999'999'999}, FeedId{1, 17}}) {
    CHECK(IsOwnId(own));
    CHECK_FALSE(IsMergedId(own));
    for (const uint64_t set : {uint64_t{0}, uint64_t{3}, uint64_t{1'023}}) {
      const FeedId merged = MergedIdOf(set, own);
      CHECK_FALSE(IsOwnId(merged));
      CHECK(IsMergedId(merged));
      CHECK(SetOfMerged(merged) == set);
      CHECK(OwnIdUpTo(set, merged) == own);
    }
  }
  for (const FeedId& neither : {FeedId{5, 1'000'000'000}, FeedId{5, UINT64_MAX}, FeedId::Max()}) {
    CHECK_FALSE(IsOwnId(neither));
    CHECK_FALSE(IsMergedId(neither));
  }
}

}  // namespace cellar::feed_group_test
