// Groups of consumers as they are kept: changes as bytes, catalogs, what is taken back.
#include "engine/feeds/feed_group.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/random.h"

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

}  // namespace cellar::feed_group_test
