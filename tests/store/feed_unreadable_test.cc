// A feed whose log cannot be decoded at some record: its readers hear of it, --check finds it, and
// when its time has come it is dropped like any other.
#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "store/history/feed_check.h"
#include "store/store.h"
#include "tests/manual_clock.h"
#include "tests/store/faulty_file_system.h"

namespace cellar::feed_unreadable_test {

class Values final : public FeedSink {
 public:
  bool OnEntry(const FeedEntry& entry) override {
    if (entry.fields.find("\r\nput\r\n") != std::string::npos) ++puts;
    return true;
  }
  size_t puts{0};
};

void Put(Store& store, const std::string& row) {
  Result<Table*> table = store.FindTable("0", "t");
  REQUIRE(table.ok());
  RowWrite write;
  write.row = row;
  CellOp op;
  op.family = "f";
  op.qualifier = "q";
  op.text = "v";
  write.ops.push_back(op);
  REQUIRE(store.Write(**table, write).ok());
}

void Settle(Store& store) {
  store.Flush();
  for (int i = 0; i < 200'000; ++i) {
    store.journal().Poll();
    if (store.journal().durable_appended() == store.journal().appended()) break;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  REQUIRE(store.UpdateFeedLog().ok());
}

Result<size_t> Puts(Store& store, const std::string& name) {
  const Feed& feed = *store.FindFeed("0", name);
  for (;;) {
    ASSIGN_OR_RETURN(const bool settled, store.feed_log().Settle(feed));
    if (settled) break;
  }
  FeedScan scan;
  Values sink;
  for (;;) {
    ASSIGN_OR_RETURN(const bool done, store.feed_log().Read(feed, &scan, &sink));
    if (done) return sink.puts;
  }
}

TEST_CASE("A record that a feed cannot decode is found, and is dropped in its time",
          "[feed][store]") {
  FaultyFileSystem disk;
  ManualClock clock(1'000'000'000'000);
  StoreOptions options;
  options.journal.directory = "db";
  options.journal.sync_policy = SyncPolicy::kAlways;
  options.feed_sync_micros = 0;
  Result<std::unique_ptr<Store>> opened = Store::Open(options, disk, clock, {});
  REQUIRE(opened.ok());
  Store& store = **opened;
  const Result<Order> key = Order::Parse("bytes");
  REQUIRE(key.ok());
  REQUIRE(store.CreateTable("0", "t", *key, {{.name = "f", .options = {}}}).ok());
  for (const std::string name : {"a", "old", "z"}) {
    Feed feed;
    feed.keyspace = "0";
    feed.keep_micros = 60'000'000;
    feed.old = name == "old";
    REQUIRE(store.CreateFeed("0", name, feed).ok());
  }
  Put(store, "before");
  Settle(store);
  std::ostringstream sound;
  CHECK(CheckFeeds(disk, "db", store.engine().feeds(), store.last_lsn(), sound).ok());
  CHECK(sound.str().empty());
  // It says to tell of 99 changes, where there are fewer.
  MutationBuilder broken;
  broken.SetStamp(store.engine().stamp());
  const Result<Table*> table = store.FindTable("0", "t");
  REQUIRE(table.ok());
  broken.Row((*table)->id(), "r");
  broken.PreImages(99 << 1, 0, {});
  (void)store.journal().Append(broken.payload(), 0);
  Settle(store);
  Put(store, "behind");
  Settle(store);
  CHECK(*Puts(store, "a") == 2);
  CHECK(Puts(store, "old").status().code() == ErrorCode::kCorruption);
  std::ostringstream found;
  const Status checked = CheckFeeds(disk, "db", store.engine().feeds(), store.last_lsn(), found);
  CHECK(checked.code() == ErrorCode::kCorruption);
  CHECK(found.str().find("feed 'old' in keyspace '0': CANNOT BE READ behind") == 0);
  CHECK(found.str().find("'a'") == std::string::npos);
  clock.now_micros += 90'000'000;
  store.SetTurnTime();
  Put(store, "late");
  Settle(store);
  for (int i = 0; i < 20; ++i) (void)store.Sweep(100);
  for (const std::string name : {"a", "old", "z"}) {
    INFO(name);
    const Result<size_t> puts = Puts(store, name);
    REQUIRE(puts.ok());
    CHECK(*puts == 1);
  }
  CHECK(store.feed_log().DroppedOf(*store.FindFeed("0", "old")) != FeedId{});
}

}  // namespace cellar::feed_unreadable_test
