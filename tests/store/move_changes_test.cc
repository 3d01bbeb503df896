// A tablet from one store to another: what is copied, what changes meanwhile, what is left behind.
#include "store/move_changes.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "store/catalog_changes.h"
#include "store/requests.h"
#include "store/sliced_change.h"
#include "store/tablet_changes.h"
#include "tests/store/index_fixture.h"

namespace move_changes_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)
using index_fixture::Fixture;

constexpr uint64_t kCluster{42};

class Donor : public Fixture {
 public:
  MoveChanges changes() { return MoveChanges(*store); }
  const TabletMoves& moves() { return store->engine().cluster().moves; }
  // Until all that was logged is on disk.
  void Settle() {
    store->Flush();
    while (store->journal().settled_lsn() < store->last_lsn()) {
      store->journal().RequestSync();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  void PurgeAll() {
    for (;;) {
      const Result<bool> more = changes().Purge(100);
      REQUIRE(more.ok());
      if (!*more) return;
    }
  }
  uint64_t Stored(Table& table) { return table.cells(); }
};

// One write of any kind, by the generator.
class Writer {
 public:
  Writer(Donor& donor, unsigned seed) : donor_(donor), rng_(seed) {}
  std::string Key() {
    return std::string(1, static_cast<char>('a' + Draw(6))) + std::to_string(Draw(12));
  }
  void Step() {
    Table& table = donor_.Find("t");
    donor_.SetTime(donor_.clock.now_micros + 1 + static_cast<int64_t>(Draw(1000)));
    const std::string row = Key();
    const std::string value(Draw(40), 'v');
    const std::string number = std::to_string(Draw(100));
    CellOp op;
    switch (Draw(12)) {
      case 0:
      case 1:
      case 2:
        (void)donor_.Do(table, row, {Donor::Put("f", number, value), Donor::Put("g", "x", number)});
        return;
      case 3:
        op.kind = CellOp::Kind::kDeleteRow;
        (void)donor_.Do(table, row, {op});
        return;
      case 4:
        op.kind = CellOp::Kind::kDelete;
        op.selector.family = "f";
        (void)donor_.Do(table, row, {op, Donor::Put("f", "again", value)});
        return;
      case 5:
        op.kind = CellOp::Kind::kAdd;
        op.family = "h";
        op.qualifier = "seen";
        op.text = number;
        (void)donor_.Do(table, row, {op});
        return;
      case 6:
        op.kind = CellOp::Kind::kIncrementAny;
        op.family = "n";
        op.qualifier = "count";
        op.text = number;
        (void)donor_.Do(table, row, {op});
        return;
      case 7: {
        // Over the ends of tablets, and the same rows once more behind it, as one record.
        RowOptions rows;
        const std::string prefix = row.substr(0, 1);
        rows.rows.push_back({RowSelector::Kind::kPrefix, prefix, {}});
        donor_.store->BeginTransaction(Store::Atomicity::kRedis);
        (void)donor_.Do(table, row, {Donor::Put("f", "a", "before")});
        auto change = donor_.store->DeleteRows(table, rows);
        REQUIRE(change.ok());
        while (!(*change)->done()) REQUIRE((*change)->Step(50).ok());
        (void)donor_.Do(table, row, {Donor::Put("f", "a", "behind")});
        donor_.store->CommitTransaction();
        return;
      }
      case 8: {
        donor_.store->BeginTransaction(Store::Atomicity::kRedis);
        for (int i = 0; i < 3; ++i)
          (void)donor_.Do(table, Key(),
                          {Donor::Put("f", "t", value), Donor::Put("n", "count", "1")});
        donor_.store->CommitTransaction();
        return;
      }
      case 9:
        while (donor_.store->Sweep(1000)) {
        }
        return;
      default:
        (void)donor_.Do(table, row, {Donor::Put("g", "y", number)});
    }
  }

 private:
  uint64_t Draw(uint64_t below) { return rng_() % below; }
  Donor& donor_;
  std::mt19937_64 rng_;
};

std::vector<NewFamily> Families() {
  FamilyOptions versions;
  versions.versions_max = 2;
  FamilyOptions grouped;
  grouped.group = "other";
  FamilyOptions seen;
  seen.fold = FoldKind::kHll;
  FamilyOptions numbers;
  numbers.type = ValueType::kI64;
  numbers.versions_max = 1;
  return {{"f", versions}, {"g", grouped}, {"h", seen}, {"n", numbers}};
}

TEST_CASE("A tablet goes over with all that was written meanwhile", "[moves]") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    Donor from;
    Donor to;
    from.SetTime(1'000'000);
    to.SetTime(1'000'000);
    from.Make("t", Families());
    REQUIRE(TabletChanges(*from.store).Init(kCluster).ok());
    // The other set has the schema, and owns nothing of it.
    CatalogChange whole;
    whole.number = from.store->engine().cluster().catalog;
    whole.ops = *CatalogChanges::Whole(from.store->engine());
    ClusterState state;
    state.cluster_id = kCluster;
    state.set = 1;
    REQUIRE(CatalogChanges(*to.store).Join(state, whole).ok());
    const std::vector<std::string_view> cuts{"b", "e"};
    REQUIRE(TabletChanges(*from.store).Split(from.Find("t"), cuts).ok());
    Writer writer(from, seed);
    for (int i = 0; i < 150; ++i) writer.Step();

    const Tablet tablet = from.Find("t").tablets()->list()[1];
    const MoveOut out{.table_id = from.Find("t").id(), .tablet = tablet, .to = 1, .given = false};
    REQUIRE(from.changes().Begin(1, out).ok());
    MoveIn in{.table_id = out.table_id, .tablet = tablet, .from = 0, .attempt = 5};
    ++in.tablet.epoch;
    REQUIRE(to.changes().Stage(1, in, {}).ok());
    REQUIRE_FALSE(*to.changes().PurgeStage(*to.moves().FindIn(1), 100));
    REQUIRE(to.changes().Clear(1, 5).ok());

    const LogMark mark = from.changes().Mark();
    uint64_t parts = 0;
    {
      RangeCopy copy(from.Find("t"), tablet);
      MutationBuilder builder;
      for (bool more = true; more;) {
        builder.Reset();
        more = copy.Next(200, &builder);
        REQUIRE(to.changes().Fill(1, {5, ++parts, {}}, builder.Since(kMutationBeginBytes)).ok());
        if (parts % 3 == 0) writer.Step();
      }
    }
    const auto tail = [&](RangeTail* log) {
      from.Settle();
      REQUIRE(log->Update(from.store->journal(), from.store->applied_lsn()).ok());
      MutationBuilder builder;
      for (bool all = false; !all;) {
        builder.Reset();
        const Result<bool> read = log->Next(&builder);
        REQUIRE(read.ok());
        all = *read;
        REQUIRE(to.changes()
                    .Fill(1, {5, ++parts, log->through()}, builder.Since(kMutationBeginBytes))
                    .ok());
      }
    };
    // Of a log in which another record has that place nothing is told.
    LogMark lost = mark;
    ++lost.lsn.epoch;
    RangeTail foreign = from.changes().TailOf(out, lost);
    from.Settle();
    REQUIRE(foreign.Update(from.store->journal(), from.store->applied_lsn()).ok());
    for (Status refused = Status::Ok(); refused.ok();) {
      MutationBuilder builder;
      const Result<bool> read = foreign.Next(&builder);
      REQUIRE_FALSE((read.ok() && *read));
      if (!read.ok()) refused = read.status();
      CHECK((read.ok() || refused.text().find("is not of this log any more") != std::string::npos));
    }
    auto log = std::make_unique<RangeTail>(from.changes().TailOf(out, mark));
    for (int round = 0; round < 4; ++round) {
      for (int i = 0; i < 30; ++i) writer.Step();
      tail(log.get());
      if (round == 2) {
        // Whoever leads by then goes on from what is there, and both have been started anew.
        from.Open();
        to.Open();
        log = std::make_unique<RangeTail>(from.changes().TailOf(out, to.moves().FindIn(1)->tail));
      }
    }
    REQUIRE(from.changes().Give(1).ok());
    REQUIRE(from.Find("t").CheckOwned(tablet.begin).code() == ErrorCode::kTryAgain);
    tail(log.get());
    // What the donor still has of it, as the recipient will have it.
    const std::vector<Tablet> own = from.Find("t").tablets()->list();
    from.Find("t").SetTablets(Tablets::Make({tablet}));
    const int64_t now = from.clock.now_micros;
    to.SetTime(now);
    const std::string before = from.store->DigestTable(from.Find("t"));
    from.Find("t").SetTablets(Tablets::Make(own));
    // By its own clock the recipient would log what was before all that the donor has logged.
    const int64_t told = to.moves().FindIn(1)->tail.micros;
    REQUIRE(told >= now - 1'000'000);
    to.SetTime(now - 60'000'000);
    REQUIRE(to.changes().Own(1, {5, parts, {}}, from.store->engine().stamp(), 0).ok());
    REQUIRE(CatalogChanges(*to.store).last_commit_micros() > told);
    to.SetTime(now);
    REQUIRE(to.store->DigestTable(to.Find("t")) == before);
    REQUIRE(to.store->engine().stamp() >= from.store->engine().stamp());
    REQUIRE(from.changes().Done(1).ok());
    from.PurgeAll();
    to.PurgeAll();
    to.Open();
    REQUIRE(to.store->DigestTable(to.Find("t")) == before);
    REQUIRE(to.Find("t").tablets()->list() == std::vector<Tablet>{{tablet.begin, tablet.end, 2}});
    from.Open();
    for (size_t group = 0; group < from.Find("t").groups(); ++group) {
      BTreeCursor& at = from.Find("t").cursor(group);
      at.Seek(tablet.begin);
      REQUIRE((!at.valid() || at.key() >= tablet.end));
    }
    REQUIRE(from.moves().ended().at(1) == MoveEnd::kMoved);
    REQUIRE(from.changes().Raise(1).ok());
    REQUIRE(to.changes().Raise(1).ok());
    from.Open();
    REQUIRE(from.moves().floor() == 1);
    REQUIRE_FALSE(from.changes().Begin(1, out).ok());
  }
}

TEST_CASE_METHOD(Donor, "A change of the schema ends jobs, and waits for what is between two sets",
                 "[moves]") {
  Make("t", {{"f", {}}});
  Make("u", {{"f", {}}});
  REQUIRE(TabletChanges(*store).Init(kCluster).ok());
  const Tablet all = Find("t").tablets()->list()[0];
  REQUIRE(changes().Begin(1, {Find("t").id(), all, 1, false}).ok());
  REQUIRE(store->AddFamily(Find("u"), {"g", {}}).ok());
  REQUIRE(moves().FindOut(1) != nullptr);
  REQUIRE(store->AddFamily(Find("t"), {"g", {}}).ok());
  REQUIRE(moves().FindOut(1) == nullptr);
  REQUIRE(moves().ended().at(1) == MoveEnd::kCancelled);
  REQUIRE(changes().Begin(2, {Find("t").id(), all, 1, false}).ok());
  const std::vector<std::string_view> row{"m"};
  REQUIRE(TabletChanges(*store).Split(Find("t"), row).code() == ErrorCode::kTryAgain);
  REQUIRE(changes().Give(2).ok());
  REQUIRE(store->AddFamily(Find("t"), {"h", {}}).code() == ErrorCode::kTryAgain);
  REQUIRE(store->TruncateTable(Find("t")).code() == ErrorCode::kTryAgain);
  REQUIRE(store->DropTable(Find("t")).code() == ErrorCode::kTryAgain);
  REQUIRE(Find("t").schema().families.size() == 2);
  REQUIRE_FALSE(changes().Cancel(2).ok());
  Open();
  REQUIRE(moves().FindOut(2)->given);
  REQUIRE(changes().Done(2).ok());
  REQUIRE(store->AddFamily(Find("t"), {"h", {}}).ok());
  // Those of a table that is dropped end with it.
  REQUIRE(changes().Begin(3, {Find("u").id(), all, 1, false}).ok());
  REQUIRE(store->DropTable(Find("u")).ok());
  REQUIRE(moves().ended().at(3) == MoveEnd::kCancelled);
  Make("v", {{"f", {}}});
  REQUIRE(changes().Begin(4, {Find("v").id(), all, 1, false}).ok());
  REQUIRE(store->TruncateTable(Find("v")).ok());
  REQUIRE(moves().ended().at(4) == MoveEnd::kCancelled);
  Open();
  REQUIRE(moves().out().empty());
}

}  // namespace move_changes_test
