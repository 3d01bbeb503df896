// What a feed has shown is there for ever: after a power loss or the end of the process at any
// time, under each policy, with the same ids, and in a set whatever is voided.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "tests/store/set_member.h"

namespace cellar::feed_power_test {

uint64_t Seeds(uint64_t usual) {
  const char* text = std::getenv("CELLAR_TEST_SEEDS");
  return text == nullptr ? usual : std::strtoull(text, nullptr, 10);
}

struct Told {
  FeedId id;
  std::string fields;
  friend bool operator==(const Told&, const Told&) = default;
};

std::ostream& operator<<(std::ostream& to, const Told& told) { return to << told.id.text(); }

class Collect final : public FeedSink {
 public:
  bool OnEntry(const FeedEntry& entry) override {
    told.push_back({entry.id, entry.fields});
    return true;
  }
  std::vector<Told> told;
};

// All that the feed shows now.
std::vector<Told> ReadFeed(Store& store) {
  const Feed* feed = store.FindFeed("0", "changes");
  if (feed == nullptr) return {};
  REQUIRE(store.UpdateFeedLog().ok());
  FeedScan scan;
  Collect sink;
  for (;;) {
    const Result<bool> done = store.feed_log().Read(*feed, &scan, &sink);
    if (!done.ok()) FAIL(done.status().text());
    if (*done) break;
  }
  store.feed_log().AskForSync();
  return sink.told;
}

bool BeginsWith(const std::vector<Told>& all, const std::vector<Told>& first) {
  return first.size() <= all.size() && std::equal(first.begin(), first.end(), all.begin());
}

Feed EverythingForADay() {
  Feed feed;
  feed.keyspace = "0";
  feed.keep_micros = 86'400'000'000;
  return feed;
}

void MakeTable(Store& store, const std::string& name) {
  Result<Order> key = Order::Parse("bytes");
  REQUIRE(key.ok());
  (void)store.CreateTable("0", name, *key, {{.name = "f", .options = {}}});
}

Status PutText(Store& store, const std::string& row, const std::string& value) {
  ASSIGN_OR_RETURN(Table* const table, store.FindTable("0", "t"));
  RowWrite write;
  write.row = row;
  CellOp put;
  put.family = "f";
  put.qualifier = "q";
  put.text = value;
  write.ops.push_back(put);
  return store.Write(*table, write).status();
}

constexpr std::array kPolicies{SyncPolicy::kAlways, SyncPolicy::kEverySecond, SyncPolicy::kNo};

std::unique_ptr<Store> OpenAlone(FaultyFileSystem& disk, ManualClock& clock, SyncPolicy policy) {
  StoreOptions options;
  options.journal.directory = "db";
  options.journal.sync_policy = policy;
  options.journal.segment_bytes_max = 8192;
  options.journal.allocation_bytes_max = 4096;
  options.journal.allocation_bytes_min = 512;
  options.journal.retry_delay_micros = 500;
  options.feed_sync_micros = 0;
  Result<std::unique_ptr<Store>> opened = Store::Open(options, disk, clock, {});
  if (!opened.ok()) FAIL(opened.status().ToString());
  return *std::move(opened);
}

// Some turns of work. What has been shown is added to *shown, and never less than before.
void WorkABit(Store& store, ManualClock& clock, Random& random, std::vector<Told>* shown) {
  const uint64_t turns = 5 + random.Below(40);
  for (uint64_t turn = 0; turn < turns; ++turn) {
    clock.now_micros += static_cast<int64_t>(random.Below(3000));
    store.SetTurnTime();
    for (uint64_t left = random.Below(5); left > 0; --left) {
      const std::string row = "r" + std::to_string(random.Below(20));
      if (!PutText(store, row, std::string(random.Below(600), 'v')).ok()) return;
    }
    if (random.OneIn(15)) MakeTable(store, "more" + std::to_string(random.Below(50)));
    store.Flush();
    if (random.OneIn(12)) (void)store.journal().StartSnapshot();
    if (random.OneIn(5)) (void)store.Sweep(100);
    store.journal().Poll();
    if (random.OneIn(3)) std::this_thread::sleep_for(std::chrono::microseconds(random.Below(400)));
    if (random.OneIn(2)) continue;
    std::vector<Told> now = ReadFeed(store);
    REQUIRE(BeginsWith(now, *shown));
    *shown = std::move(now);
  }
}

TEST_CASE("What a feed has shown is there after a power loss, under every policy",
          "[feed][store][crash]") {
  const uint64_t seeds = Seeds(30);
  size_t most = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    FaultyFileSystem disk;
    disk.SetSyncMicros(seed % 2 * 100);
    ManualClock clock(1'000'000'000'000);
    clock.tick_micros = 100;  // or the sync thread would wait for ever until it may try again
    std::vector<Told> shown;
    for (int life = 0; life < 4; ++life) {
      std::unique_ptr<Store> store = OpenAlone(disk, clock, kPolicies[seed % kPolicies.size()]);
      REQUIRE(BeginsWith(ReadFeed(*store), shown));
      MakeTable(*store, "t");
      if (store->FindFeed("0", "changes") == nullptr)
        REQUIRE(store->CreateFeed("0", "changes", EverythingForADay()).ok());
      store->Flush();
      WorkABit(*store, clock, random, &shown);
      if (random.OneIn(3)) {
        disk.Kill();
      } else {
        disk.PowerLoss(random.Next());
      }
      store.reset();
      disk.Reboot();
      // A clock that is set back changes nothing.
      if (random.OneIn(3)) clock.now_micros -= 1'000'000;
    }
    const std::unique_ptr<Store> store = OpenAlone(disk, clock, SyncPolicy::kAlways);
    const std::vector<Told> all = ReadFeed(*store);
    REQUIRE(BeginsWith(all, shown));
    for (size_t i = 1; i < all.size(); ++i) REQUIRE(all[i - 1].id < all[i].id);
    most = std::max(most, shown.size());
  }
  CHECK(most > 100);
}

class Node final : public SetMember {
 public:
  void Put(const std::string& row) {
    Tick();
    REQUIRE(PutText(*store, row, row).ok());
    store->Flush();
  }
  void Commit() {
    if (store->following()) REQUIRE(*store->ApplyCommitted(last(), INT64_MAX));
    store->journal().SetCommitted(last());
  }
};

TEST_CASE("In a set a feed shows what is committed, the same on all, and nothing that is voided",
          "[feed][store][set]") {
  Node one;
  Node two;
  one.Lead(1);
  MakeTable(*one.store, "t");
  REQUIRE(one.store->CreateFeed("0", "changes", EverythingForADay()).ok());
  one.Put("a");
  one.Send(two, 1);
  CHECK(ReadFeed(*one.store).empty());  // on disk, and not committed
  CHECK(two.store->FindFeed("0", "changes") == nullptr);
  one.Commit();
  two.Commit();
  const std::vector<Told> first = ReadFeed(*one.store);
  CHECK(first.size() == 2);  // the schema, and a
  CHECK(ReadFeed(*two.store) == first);
  // One writes what nobody gets, and Two leads.
  one.Put("lost");
  one.Put("lost too");
  one.Settle();
  CHECK(ReadFeed(*one.store) == first);
  const uint64_t seq = two.last().seq + 1;
  two.clock.now_micros += 5;
  two.Lead(2);
  two.Put("b");
  two.Put("c");
  one.Follow();
  two.Send(one, seq);
  CHECK(ReadFeed(*one.store) == first);
  const Lsn committed = two.last();
  two.Commit();
  REQUIRE(one.store->ReloadCommitted(committed).ok());
  one.store->journal().SetSink(&one);
  REQUIRE(*one.store->ApplyCommitted(committed, INT64_MAX));
  one.store->journal().SetCommitted(committed);
  one.Settle();
  const std::vector<Told> all = ReadFeed(*two.store);
  CHECK(all.size() == 4);
  CHECK(BeginsWith(all, first));
  CHECK(ReadFeed(*one.store) == all);
  for (const Told& told : all) CHECK(told.fields.find("lost") == std::string::npos);
}

}  // namespace cellar::feed_power_test
