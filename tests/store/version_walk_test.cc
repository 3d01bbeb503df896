// An entry of a tree that is no cell ends the process, whoever meets it: nobody steps over it.
#include "engine/table/version_walk.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include "engine/aggregate/aggregate_job.h"
#include "engine/request/aggregate_request.h"
#include "engine/schema/column_set.h"
#include "engine/table/read_view.h"
#include "store/store.h"
#include "tests/store/index_fixture.h"

namespace version_walk_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)
using index_fixture::Fixture;

// How a child of this process ends that does this: 0, or the signal.
int EndOf(const std::function<void()>& work) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    (void)std::signal(SIGABRT, SIG_DFL);  // else the test framework reports it
    const rlimit none{0, 0};
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)close(STDERR_FILENO);
    work();
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

struct Meeting {
  std::string name;
  std::function<void(Fixture&, Table&)> work;
};

void ScanAll(Fixture& fixture, Table& table, const RowOptions& rows, const CellOptions& cells) {
  (void)fixture.Cells(table, rows, cells, kUnlimited);
}

void Aggregate(Fixture& fixture, Table& table, const AggregateRequest& request,
               const RowOptions& rows) {
  CellOptions cells;
  auto job = fixture.store->Aggregate(table, rows, cells, request, {});
  if (!job.ok()) return;
  (void)(*job)->Pull(kUnlimited);
}

// All that goes over the versions of the one column there is.
std::vector<Meeting> Meetings() {
  std::vector<Meeting> all;
  const auto add = [&all](const char* name, std::function<void(Fixture&, Table&)> work) {
    all.push_back({name, std::move(work)});
  };
  add("a point read", [](Fixture& fixture, Table& table) {
    (void)(*fixture.store->OpenRow(table, "r"))->Get("f:q", kTimestampMax);
  });
  add("a point read of a moment", [](Fixture& fixture, Table& table) {
    (void)(*fixture.store->OpenRow(table, "r"))->Get("f:q", 1);
  });
  add("is there a row", [](Fixture& fixture, Table& table) {
    const ReadView view(table, fixture.clock.now_micros);
    (void)view.RowIsLive(*fixture.store->RowKey(table, "r"));
  });
  add("a scan", [](Fixture& fixture, Table& table) { ScanAll(fixture, table, {}, {}); });
  add("a scan backwards", [](Fixture& fixture, Table& table) {
    RowOptions rows;
    rows.reverse = true;
    ScanAll(fixture, table, rows, {});
  });
  add("all versions", [](Fixture& fixture, Table& table) {
    CellOptions cells;
    cells.versions_max = kUnlimited;
    ScanAll(fixture, table, {}, cells);
  });
  add("a fold of leaves", [](Fixture& fixture, Table& table) {
    AggregateRequest request;
    request.reduces.emplace_back().function = Reduce::Function::kSum;
    Aggregate(fixture, table, request, {});
  });
  add("a value that groups are made of", [](Fixture& fixture, Table& table) {
    AggregateRequest request;
    GroupTerm& term = request.terms.emplace_back();
    term.kind = GroupTerm::Kind::kValue;
    term.family = "f";
    term.qualifier = "q";
    request.reduces.emplace_back().function = Reduce::Function::kRows;
    Aggregate(fixture, table, request, {});
  });
  add("an increment", [](Fixture& fixture, Table& table) {
    CellOp op = Fixture::Put("f", "q", "1");
    op.kind = CellOp::Kind::kIncrement;
    (void)fixture.Do(table, "r", {op});
  });
  add("a put where retention has dropped something", [](Fixture& fixture, Table& table) {
    (void)fixture.Do(table, "r", {Fixture::Put("f", "q", "1")});
  });
  add("a delete of a time", [](Fixture& fixture, Table& table) {
    CellOp op;
    op.kind = CellOp::Kind::kDelete;
    op.selector = {ColumnSelector::Kind::kColumn, "f", "q", {}};
    op.time.max_micros = 5;
    (void)fixture.Do(table, "r", {op});
  });
  add("an index", [](Fixture& fixture, Table& table) {
    (void)fixture.store->CreateIndex(table, {"i", {Fixture::On("f", "q")}, {}});
  });
  add("the sweeper", [](Fixture& fixture, Table&) {
    while (fixture.store->Sweep(1000)) {
    }
  });
  return all;
}

enum class Harm : uint8_t { kNoValue, kCutExpiry, kLongTimestamp };

// A column with two cells, the newer of which expires, and then a broken one as its newest.
Table& MakeBroken(Fixture& fixture, Harm harm) {
  FamilyOptions options;
  options.versions_max = 3;
  Table& table = fixture.Make("t", {{"f", options}});
  CellOp old = Fixture::Put("f", "q", "old");
  old.timestamp_micros = 1;
  CellOp brief = Fixture::Put("f", "q", "brief");
  brief.timestamp_micros = 2;
  brief.ttl_micros = 1'000'000;
  REQUIRE(fixture.Do(table, "r", {old, brief}).ok());
  fixture.SetTime(fixture.clock.now_micros + 2'000'000);
  std::string key = *fixture.store->RowKey(table, "r");
  const FamilySchema& family = *table.schema().FindFamily("f");
  PutFamilyId(&key, family.id);
  REQUIRE(EncodeQualifier(family, "q", &key).ok());
  PutTimestamp(&key, fixture.clock.now_micros + 1'000'000);
  std::string value;
  PutCellValue(&value, {.stored = "1"});
  switch (harm) {
    case Harm::kNoValue:
      value.clear();
      break;
    case Harm::kCutExpiry:
      value.front() = static_cast<char>(value.front() | kCellHasExpiry);
      break;
    case Harm::kLongTimestamp:
      key.push_back('\xff');
      break;
  }
  table.mutable_tree(0)->Put(key, value);
  return table;
}

TEST_CASE("An entry that is no cell ends the process wherever it is met", "[version_walk]") {
  for (const Harm harm : {Harm::kNoValue, Harm::kCutExpiry, Harm::kLongTimestamp}) {
    Fixture fixture;
    Table& table = MakeBroken(fixture, harm);
    for (const Meeting& meeting : Meetings()) {
      INFO(meeting.name << ", harm " << static_cast<int>(harm));
      CHECK(EndOf([&] { meeting.work(fixture, table); }) == SIGABRT);
    }
  }
}

TEST_CASE("What drops whatever its age drops all behind it, an age does not", "[version_walk]") {
  const RetentionPolicy policy = *RetentionPolicy::Parse("maxversions=2 || maxage=1s");
  constexpr int64_t kNow{10'000'000};
  VersionWalk walk(policy, false, kNow);
  walk.Count();
  CHECK(walk.FateOf(kNow, kNoExpiry) == Fate::kLive);
  CHECK(walk.FateOf(kNow, kNow) == Fate::kDropped);  // by its own expiry
  CHECK(walk.FateOf(kNow, kNow + 1) == Fate::kLive);
  CHECK(walk.FateOf(kNow - 1'000'000, kNoExpiry) == Fate::kDropped);
  CHECK(walk.FateOf(0, kNoExpiry) == Fate::kLive);  // it has no age
  walk.Count();
  CHECK(walk.FateOf(kNow, kNoExpiry) == Fate::kLive);
  CHECK_FALSE(walk.is_behind_last());
  walk.Count();
  CHECK(walk.FateOf(kNow, kNoExpiry) == Fate::kAllDropped);
  CHECK(walk.is_behind_last());
  walk.BeginColumn();
  walk.Count();
  CHECK(walk.FateOf(kNow, kNoExpiry) == Fate::kLive);
}

}  // namespace version_walk_test
