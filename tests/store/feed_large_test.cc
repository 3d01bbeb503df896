// A step of many thousand changes, as its readers meet it: in slices, and a few entries at a time.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "store/store.h"
#include "tests/manual_clock.h"
#include "tests/store/faulty_file_system.h"

namespace cellar::feed_large_test {

struct Told {
  FeedId id;
  std::string fields;
  friend bool operator==(const Told&, const Told&) = default;
};

class Collect final : public FeedSink {
 public:
  explicit Collect(size_t most) : most_(most) {}
  bool OnEntry(const FeedEntry& entry) override {
    told.push_back({entry.id, entry.fields});
    return told.size() < most_;
  }
  std::vector<Told> told;

 private:
  const size_t most_;
};

class LargeStep {
 public:
  LargeStep() {
    StoreOptions options;
    options.journal.directory = "db";
    options.journal.sync_policy = SyncPolicy::kAlways;
    options.feed_sync_micros = 0;
    Result<std::unique_ptr<Store>> opened = Store::Open(options, disk_, clock_, {});
    if (!opened.ok()) FAIL(opened.status().ToString());
    store = *std::move(opened);
    Result<Order> key = Order::Parse("bytes");
    REQUIRE(key.ok());
    REQUIRE(store->CreateTable("0", "t", *key, {{.name = "f", .options = {}}}).ok());
    for (const bool old : {false, true}) {
      Feed feed;
      feed.keyspace = "0";
      feed.keep_micros = 86'400'000'000;
      feed.old = feed.expired = old;
      REQUIRE(store->CreateFeed("0", old ? "old" : "plain", feed).ok());
    }
  }

  void Change(const std::string& row, const std::string& qualifier, const std::string& value) {
    Result<Table*> table = store->FindTable("0", "t");
    REQUIRE(table.ok());
    RowWrite write;
    write.row = row;
    CellOp op;
    op.family = "f";
    op.qualifier = qualifier;
    op.text = value;
    write.ops.push_back(op);
    REQUIRE(store->Write(**table, write).ok());
  }

  // One step of so many puts, of few rows and columns, so that most have something before them.
  void Step(uint64_t puts, uint64_t seed) {
    Random random(seed);
    clock_.now_micros += 1000;
    store->SetTurnTime();
    store->BeginTransaction(Store::Atomicity::kRedis);
    for (uint64_t i = 0; i < puts; ++i) {
      Change("r" + std::to_string(random.Below(300)), "q" + std::to_string(random.Below(20)),
             std::to_string(i));
    }
    store->CommitTransaction();
  }

  void Settle() {
    store->Flush();
    for (int i = 0; i < 200'000; ++i) {
      store->journal().Poll();
      if (store->journal().durable_appended() == store->journal().appended()) break;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    REQUIRE(store->UpdateFeedLog().ok());
  }

  const Feed& FeedOf(const std::string& name) const { return *store->FindFeed("0", name); }

  // No call may do more than a slice of work, whatever it is.
  template <typename Call>
  void InSlices(Call call) {
    for (bool done = false; !done;) {
      const uint64_t before = store->feed_log().large_work();
      const Result<bool> called = call();
      if (!called.ok()) FAIL(called.status().text());
      done = *called;
      most_work = std::max(most_work, store->feed_log().large_work() - before);
    }
  }

  // All entries, `count` at a time, as a client asks that comes back with the last id.
  std::vector<Told> Read(const std::string& feed, size_t count) {
    std::vector<Told> all;
    FeedId after;
    for (;;) {
      FeedScan scan;
      scan.after = after;
      Collect sink(count);
      InSlices([&] { return store->feed_log().Read(FeedOf(feed), &scan, &sink); });
      if (sink.told.empty()) return all;
      after = sink.told.back().id;
      all.insert(all.end(), sink.told.begin(), sink.told.end());
    }
  }

  std::vector<Told> ReadBack(const std::string& feed, size_t most) {
    FeedScan scan;
    std::vector<FeedEntry> entries;
    InSlices([&]() -> Result<bool> {
      ASSIGN_OR_RETURN(const bool done,
                       store->feed_log().ReadBack(FeedOf(feed), &scan, most, &entries));
      return done || !entries.empty();
    });
    std::vector<Told> told;
    for (const FeedEntry& entry : entries) told.push_back({entry.id, entry.fields});
    return told;
  }

  uint64_t Work() const { return store->feed_log().large_work(); }

  uint64_t most_work{0};

 private:
  FaultyFileSystem disk_;
  ManualClock clock_{1'000'000'000'000};

 public:
  std::unique_ptr<Store> store;  // goes before its disk
};

TEST_CASE("A large step read a few entries at a time costs what it costs at once, in slices",
          "[feed][store]") {
  LargeStep step;
  step.Step(500, 1);
  step.Step(30'000, 2);
  step.Step(20, 3);
  step.Settle();
  for (const std::string feed : {"plain", "old"}) {
    INFO(feed);
    uint64_t begin = step.Work();
    const std::vector<Told> all = step.Read(feed, SIZE_MAX);
    const uint64_t once = step.Work() - begin;
    CHECK(all.size() >= 30'520);
    CHECK(once > 30'000);
    begin = step.Work();
    CHECK(step.Read(feed, 10) == all);
    // What a reader takes twice is the entry that it is told of last.
    CHECK(step.Work() - begin <= once + once / 4);
    begin = step.Work();
    step.InSlices([&] { return step.store->feed_log().Count(step.FeedOf(feed)); });
    CHECK(step.store->feed_log().CountsOf(step.FeedOf(feed)).length == all.size());
    CHECK(step.Work() - begin <= once);
    // Many readers, each at another place.
    std::vector<size_t> at;
    for (size_t i = 0; i < 20; ++i) at.push_back(i * 1400);
    begin = step.Work();
    for (int round = 0; round < 50; ++round) {
      for (size_t& place : at) {
        FeedScan scan;
        if (place > 0) scan.after = all[place - 1].id;
        Collect sink(7);
        step.InSlices([&] { return step.store->feed_log().Read(step.FeedOf(feed), &scan, &sink); });
        REQUIRE(sink.told.size() == 7);
        REQUIRE(std::equal(sink.told.begin(), sink.told.end(),
                           all.begin() + static_cast<std::ptrdiff_t>(place)));
        place += 7;
      }
    }
    CHECK(step.Work() - begin <= 21 * once);
    CHECK(step.ReadBack(feed, 3) == std::vector<Told>(all.end() - 3, all.end()));
    const std::vector<Told> last = step.ReadBack(feed, 1000);
    CHECK(
        std::equal(last.begin(), last.end(), all.end() - static_cast<std::ptrdiff_t>(last.size())));
    // Some that are far apart.
    std::vector<FeedId> ids;
    for (size_t i = 5; i < all.size(); i += 5000) ids.push_back(all[i].id);
    size_t next = 0;
    FeedScan scan;
    Collect sink(SIZE_MAX);
    step.InSlices([&] {
      return step.store->feed_log().Find(step.FeedOf(feed), ids, FeedDecoder::Fields::kYes, &next,
                                         &scan, &sink);
    });
    REQUIRE(sink.told.size() == ids.size());
    for (size_t i = 0; i < ids.size(); ++i) CHECK(sink.told[i].id == ids[i]);
  }
  CHECK(step.most_work <= FeedLog::kSliceWork + 100);
}

}  // namespace cellar::feed_large_test
