// The library as a program sees it: public headers alone, directories of the test's own.
#include "cellar/store.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/manual_clock.h"

namespace embedded_store_test {

using cellar::ErrorCode;
using cellar::Result;
using cellar::Status;
using cellar::embedded::Batch;
using cellar::embedded::Cell;
using cellar::embedded::Condition;
using cellar::embedded::Options;
using cellar::embedded::Scanner;
using cellar::embedded::ScanOptions;
using cellar::embedded::Snapshot;
using cellar::embedded::Store;
using cellar::embedded::Sync;

class Directory {
 public:
  Directory() {
    char name[] = "/tmp/cellar-embedded-test-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    path_ = name;
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::unique_ptr<Store> MustOpen(const std::string& path, const Options& options = {}) {
  Result<std::unique_ptr<Store>> store = Store::Open(path, options);
  if (!store.ok()) FAIL(store.status().ToString());
  return *std::move(store);
}

std::string Word(const Status& status) {
  return status.ok() ? "OK" : std::string(cellar::ErrorCodeWord(status.code()));
}

std::optional<std::string> ValueOf(Store& store, const std::string& table, const std::string& row,
                                   const std::string& column, const Snapshot* snapshot = nullptr) {
  Result<std::optional<Cell>> cell = store.Get(table, row, column, {.snapshot = snapshot});
  if (!cell.ok()) FAIL(cell.status().ToString());
  if (!cell->has_value()) return std::nullopt;
  return (*cell)->value;
}

using Cells = std::vector<std::tuple<std::string, std::string, std::string>>;

Cells AllOf(Store& store, const std::string& table, const ScanOptions& options = {}) {
  Result<std::unique_ptr<Scanner>> scan = store.Scan(table, options);
  if (!scan.ok()) FAIL(scan.status().ToString());
  Cells cells;
  while ((*scan)->Next()) {
    const Cell& cell = (*scan)->cell();
    cells.emplace_back(cell.row, cell.column, cell.value);
  }
  return cells;
}

TEST_CASE("The library keeps typed cells, versions and rows in order", "[embedded]") {
  const Directory directory;
  std::unique_ptr<Store> store = MustOpen(directory.path());
  REQUIRE(store
              ->CreateTable("planes", {.key = "utf8#-u64",
                                       .families = {{.name = "stat", .type = "i64", .versions = 2},
                                                    {.name = "text"}}})
              .ok());
  REQUIRE(store->Put("planes", "LH400#7", "stat:seats", "364").ok());
  REQUIRE(store->Put("planes", "LH400#9", "text:from", "FRA").ok());
  REQUIRE(store->Put("planes", "LH400#7", "stat:seats", "365", {.timestamp_micros = 5}).ok());

  const Result<std::optional<Cell>> cell = store->Get("planes", "LH400#7", "stat:seats");
  REQUIRE(cell.ok());
  CHECK((*cell)->value == "364");
  CHECK((*cell)->type == "i64");
  CHECK(store->Get("planes", "LH400#7", "stat:seats", {.at_micros = 5}).ok());
  CHECK((*store->Get("planes", "LH400#7", "stat:seats", {.at_micros = 5}))->value == "365");
  CHECK_FALSE((*store->Get("planes", "LH400#8", "stat:seats")).has_value());

  CHECK(AllOf(*store, "planes") ==
        Cells{{"LH400#9", "text:from", "FRA"}, {"LH400#7", "stat:seats", "364"}});
  CHECK(AllOf(*store, "planes", {.columns = {"stat"}, .versions = 0}).size() == 2);
  CHECK(AllOf(*store, "planes", {.min = "[LH400#8", .reverse = true}) ==
        Cells{{"LH400#7", "stat:seats", "364"}});
  CHECK(AllOf(*store, "planes", {.prefix = "LH4", .filter = "family = \"text\""}) ==
        Cells{{"LH400#9", "text:from", "FRA"}});
  CHECK(store->Tables("0") == std::vector<std::string>{"planes"});

  REQUIRE(store->Delete("planes", "LH400#7", "stat").ok());
  REQUIRE(store->DeleteRow("planes", "LH400#9").ok());
  CHECK(AllOf(*store, "planes").empty());
  REQUIRE(store->DropTable("planes").ok());
  CHECK(store->Tables("0").empty());
}

TEST_CASE("The library's errors are those of the server and change nothing", "[embedded]") {
  const Directory directory;
  std::unique_ptr<Store> store = MustOpen(directory.path());
  REQUIRE(store->CreateTable("t", {.families = {{.name = "f", .type = "u8"}}}).ok());
  CHECK(Word(store->CreateTable("t", {})) == "BUSYKEY");
  CHECK(Word(store->CreateTable("a b", {})) == "ERR");
  CHECK(Word(store->CreateTable("u", {.key = "utf9"})) == "ERR");
  CHECK(Word(store->CreateTable("u", {.families = {{.name = "f", .type = "u9"}}})) != "OK");
  CHECK(Word(store->CreateTable("u", {.families = {{.name = "f", .order = "recno"}}})) == "ERR");
  CHECK(Word(store->CreateTable("u", {.families = {{.name = "f", .ttl_ms = -1}}})) == "ERR");
  CHECK(Word(store->CreateTable(
            "u", {.families = {{.name = "f", .versions = 1, .gc = "maxversions=1"}}})) == "ERR");
  CHECK(Word(store->AddFamily("t", {.name = "f"})) == "BUSYKEY");
  CHECK(Word(store->DropTable("none")) == "NOTABLE");
  CHECK(Word(store->Put("9x/t", "r", "f:q", "1")) == "NOKEYSPACE");
  CHECK(Word(store->Put("none", "r", "f:q", "1")) == "NOTABLE");
  CHECK(Word(store->Put("t", "r", "g:q", "1")) == "NOFAMILY");
  CHECK(Word(store->Put("t", "r", "fq", "1")) == "ERR");
  CHECK(Word(store->Put("t", "r", "f:q", "256")) == "BADVALUE");
  CHECK(Word(store->Put("t", "", "f:q", "1")) != "OK");
  CHECK(Word(store->Put("t", std::string(65 << 10, 'r'), "f:q", "1")) == "TOOLARGE");
  CHECK(Word(store->Put("t", "r", "f:q", "1", {.type = "i64"})) != "OK");
  CHECK(Word(store->Put("t", "r", "f:q", "1", {.timestamp_micros = -1})) == "ERR");
  CHECK(Word(store->Put("t", "r", "f:q", "1", {.ttl_micros = 0})) == "ERR");
  CHECK(Word(store->Get("t", "r", "f").status()) == "ERR");
  CHECK(Word(store->Get("t", "r", "f:q", {.at_micros = -1}).status()) == "ERR");
  CHECK(Word(store->Scan("t", {.prefix = "a", .min = "[a"}).status()) == "ERR");
  CHECK(Word(store->Scan("t", {.min = "a"}).status()) == "ERR");
  CHECK(Word(store->Scan("t", {.columns = {"g:q"}}).status()) == "NOFAMILY");
  CHECK(Word(store->Scan("t", {.filter = "nonsense("}).status()) == "BADFILTER");
  CHECK(AllOf(*store, "t").empty());
  CHECK(Word(Store::Open(directory.path(), {}).status()) == "IOERR");  // it is open here
  CHECK_FALSE(Store::Open(directory.path() + "/a/b", {}).ok());
  CHECK_FALSE(Store::Open(directory.path() + "/new", {.may_create = false}).ok());
}

TEST_CASE("A batch of the library is done whole or not at all", "[embedded]") {
  const Directory directory;
  std::unique_ptr<Store> store = MustOpen(directory.path());
  REQUIRE(store->CreateTable("t", {.families = {{.name = "n", .type = "u8"}, {.name = "f"}}}).ok());
  REQUIRE(store->CreateTable("u", {.families = {{.name = "f"}}}).ok());
  REQUIRE(store->Put("t", "gone", "f:q", "x").ok());
  Batch batch;
  batch.Put("t", "a", "f:q", "1");
  batch.Put("u", "b", "f:q", "2", {.type = "string"});
  batch.Increment("t", "a", "n:count", 250);
  batch.DeleteRow("t", "gone");
  CHECK(batch.size() == 4);
  REQUIRE(store->Apply(batch).ok());
  CHECK(AllOf(*store, "t") == Cells{{"a", "f:q", "1"}, {"a", "n:count", "250"}});
  CHECK(ValueOf(*store, "u", "b", "f:q") == "2");
  // Its counter overflows, the last of all: nothing of it stays.
  batch.Clear();
  batch.Put("u", "c", "f:q", "3");
  batch.Delete("t", "a", "f:q");
  batch.Increment("t", "a", "n:count", 6);
  CHECK(Word(store->Apply(batch)) == "ERR");
  CHECK(AllOf(*store, "t") == Cells{{"a", "f:q", "1"}, {"a", "n:count", "250"}});
  CHECK_FALSE(ValueOf(*store, "u", "c", "f:q").has_value());
  CHECK(store->Apply(Batch()).ok());
}

TEST_CASE("Puts of a batch in one row are one write, unless a column comes twice", "[embedded]") {
  const Directory directory;
  cellar::ManualClock clock;
  std::unique_ptr<Store> store = MustOpen(directory.path(), {.clock = &clock});
  REQUIRE(store->CreateTable("t", {.families = {{.name = "f"}}}).ok());
  Batch batch;
  for (const char* column : {"f:c", "f:a", "f:b", "f:a", "f:d"}) {
    batch.Put("t", "r", column, "v" + std::to_string(batch.size()));
  }
  batch.Put("t", "s", "f:a", "1");
  REQUIRE(store->Apply(batch).ok());
  std::vector<Cell> cells;
  REQUIRE(store->GetRow("t", "r", {.versions = 0}, &cells).ok());
  std::string told;
  for (const Cell& cell : cells) told += cell.column.substr(2) + "=" + cell.value + " ";
  CHECK(told == "a=v3 a=v1 b=v2 c=v0 d=v4 ");
  CHECK(cells[0].timestamp_micros > cells[1].timestamp_micros);
  CHECK(cells[1].timestamp_micros == cells[2].timestamp_micros);
  CHECK(cells[0].timestamp_micros == cells[4].timestamp_micros);
  // A word that is wrong, anywhere in it: none of it is done.
  for (const char* wrong : {"g:a", "fa", ""}) {
    batch.Clear();
    batch.Put("t", "u", "f:a", "1");
    batch.Put("t", "u", wrong, "1");
    CHECK_FALSE(store->Apply(batch).ok());
    batch.Put("t", "v", "f:a", "1");
    CHECK_FALSE(store->Apply(batch).ok());
  }
  CHECK(AllOf(*store, "t").size() == 5);
  batch.Clear();
  batch.Put("t", "w", "f:b", "1", {.type = "u8", .timestamp_micros = 7});
  batch.Put("t", "w", "f:a", "2", {.type = "u16", .timestamp_micros = 6});
  REQUIRE(store->Apply(batch).ok());
  REQUIRE(store->GetRow("t", "w", {}, &cells).ok());
  REQUIRE(cells.size() == 2);
  CHECK(cells[0].type == "u16");
  CHECK(cells[0].timestamp_micros == 6);
  CHECK(cells[0].row == "w");
  CHECK(cells[1].timestamp_micros == 7);
}

TEST_CASE("The library reads a row, of now, of a time and of a snapshot", "[embedded]") {
  const Directory directory;
  std::unique_ptr<Store> store = MustOpen(directory.path());
  REQUIRE(store->CreateTable("t", {.families = {{.name = "f"}, {.name = "g"}}}).ok());
  REQUIRE(store->Put("t", "r", "f:a", "old", {.timestamp_micros = 5}).ok());
  REQUIRE(store->Put("t", "r", "g:b", "1", {.timestamp_micros = 6}).ok());
  REQUIRE(store->Put("t", "rr", "f:a", "another row").ok());
  const std::unique_ptr<Snapshot> snapshot = store->TakeSnapshot();
  REQUIRE(store->Put("t", "r", "f:a", "new").ok());
  std::vector<Cell> cells(20);
  REQUIRE(store->GetRow("t", "r", {}, &cells).ok());
  REQUIRE(cells.size() == 2);
  CHECK(cells[0].value == "new");
  CHECK(cells[1].column == "g:b");
  REQUIRE(store->GetRow("t", "r", {.columns = {"f"}, .versions = 0}, &cells).ok());
  CHECK(cells.size() == 2);
  REQUIRE(store->GetRow("t", "r", {.at_micros = 5}, &cells).ok());
  REQUIRE(cells.size() == 1);
  CHECK(cells[0].value == "old");
  REQUIRE(store->GetRow("t", "r", {.snapshot = snapshot.get(), .columns = {"f:a"}}, &cells).ok());
  REQUIRE(cells.size() == 1);
  CHECK(cells[0].value == "old");
  REQUIRE(store->GetRow("t", "none", {}, &cells).ok());
  CHECK(cells.empty());
  CHECK(Word(store->GetRow("none", "r", {}, &cells)) == "NOTABLE");
  CHECK(Word(store->GetRow("t", "r", {.columns = {"h:a"}}, &cells)) == "NOFAMILY");
  CHECK(Word(store->GetRow("t", "r", {.at_micros = -1}, &cells)) == "ERR");
}

TEST_CASE("A batch of the library with conditions on a row", "[embedded]") {
  using Test = Condition::Test;
  const Directory directory;
  std::unique_ptr<Store> store = MustOpen(directory.path());
  REQUIRE(
      store->CreateTable("t", {.families = {{.name = "f"}, {.name = "n", .type = "i64"}}}).ok());
  Batch batch;
  batch.Append("t", "log", "f:text", "x");
  const auto holds = [&](const std::vector<Condition>& conditions) {
    const std::string before = ValueOf(*store, "t", "log", "f:text").value_or("");
    const Result<bool> held = store->ApplyIf("t", "r", conditions, batch);
    if (!held.ok()) FAIL(held.status().ToString());
    CHECK(ValueOf(*store, "t", "log", "f:text").value_or("") == before + (*held ? "x" : ""));
    return *held;
  };
  CHECK(holds({}));
  CHECK(holds({{.test = Test::kMissing}}));
  CHECK_FALSE(holds({{.test = Test::kExists}}));
  REQUIRE(store->Put("t", "r", "n:a", "7").ok());
  REQUIRE(store->Put("t", "r", "f:a", "seven").ok());
  CHECK(holds({{.test = Test::kExists}, {.column = "n:a"}}));
  CHECK_FALSE(holds({{.test = Test::kExists}, {.column = "n:b"}}));
  CHECK(holds({{.column = "n:b", .test = Test::kMissing}}));
  const std::vector<std::tuple<Test, bool, bool, bool>> compared{
      {Test::kEqual, false, true, false},   {Test::kNotEqual, true, false, true},
      {Test::kLess, false, false, true},    {Test::kLessOrEqual, false, true, true},
      {Test::kGreater, true, false, false}, {Test::kGreaterOrEqual, true, true, false}};
  for (const auto& [test, with_6, with_7, with_10] : compared) {
    CHECK(holds({{.column = "n:a", .test = test, .value = "6"}}) == with_6);
    CHECK(holds({{.column = "n:a", .test = test, .value = "7"}}) == with_7);
    CHECK(holds({{.column = "n:a", .test = test, .value = "10"}}) == with_10);
  }
  CHECK(holds({{.column = "f:a", .test = Test::kMatch, .value = "sev*"}}));
  CHECK_FALSE(holds({{.column = "f:a", .test = Test::kMatch, .value = "ev*"}}));
  CHECK(holds({{.test = Test::kFilter, .value = "family = \"f\""}}));
  CHECK_FALSE(holds({{.test = Test::kFilter, .value = "qualifier = \"g\""}}));
  const auto word = [&](const Condition& condition) {
    return Word(store->ApplyIf("t", "r", {condition}, batch).status());
  };
  CHECK(word({.column = "na", .test = Test::kEqual, .value = "7"}) == "ERR");
  CHECK(word({.column = "h:a"}) == "NOFAMILY");
  CHECK(word({.test = Test::kEqual, .value = "7"}) == "ERR");
  CHECK(word({.column = "f:a", .test = Test::kFilter, .value = "family = \"f\""}) == "ERR");
  CHECK(word({.test = Test::kFilter, .value = "nonsense("}) == "BADFILTER");
}

TEST_CASE("The library adds to cells, and deletes rows by range", "[embedded]") {
  const Directory directory;
  std::unique_ptr<Store> store = MustOpen(directory.path());
  REQUIRE(store
              ->CreateTable("t", {.families = {{.name = "n", .type = "u8"},
                                               {.name = "x", .type = "f64"},
                                               {.name = "f"}}})
              .ok());
  CHECK(*store->Increment("t", "r", "n:a", 250) == "250");
  CHECK(*store->Increment("t", "r", "n:a", -1) == "249");
  CHECK(Word(store->Increment("t", "r", "n:a", 7).status()) == "ERR");
  CHECK(Word(store->Increment("t", "r", "na", 7).status()) == "ERR");
  Batch batch;
  batch.IncrementFloat("t", "r", "x:a", 0.1);
  batch.IncrementFloat("t", "r", "x:a", 1e300);
  batch.Append("t", "r", "f:a", "ab");
  batch.Append("t", "r", "f:a", std::string("\0c", 2));
  REQUIRE(store->Apply(batch).ok());
  CHECK(ValueOf(*store, "t", "r", "x:a") == "1e+300");
  CHECK(ValueOf(*store, "t", "r", "f:a") == std::string("ab\0c", 4));
  batch.Clear();
  for (int i = 0; i < 30'000; ++i) batch.Put("t", "k" + std::to_string(10'000 + i), "f:a", "1");
  REQUIRE(store->Apply(batch).ok());
  CHECK(*store->DeleteRange("t", "[k10000", "(k30000") == 20'000);
  CHECK(*store->DeleteRange("t", "[k10000", "(k30000") == 0);
  CHECK(*store->DeletePrefix("t", "k30") == 1000);
  CHECK(*store->DeleteRange("t", "(k39998", "+") == 2);  // k39999 and r
  CHECK(AllOf(*store, "t").size() == 30'000 - 20'000 - 1000 - 1);
  CHECK(Word(store->DeletePrefix("t", "").status()) == "ERR");
  CHECK(Word(store->DeleteRange("t", "k", "+").status()) == "ERR");
  CHECK(Word(store->DeleteRange("none", "", "").status()) == "NOTABLE");
  CHECK(*store->DeleteRange("t", "", "") == 8999);
  CHECK(AllOf(*store, "t").empty());
}

TEST_CASE("Snapshots and scans of the library stay as they were, and hold the store open",
          "[embedded]") {
  const Directory directory;
  std::unique_ptr<Store> store = MustOpen(directory.path());
  REQUIRE(store->CreateTable("t", {.families = {{.name = "f"}}}).ok());
  for (int i = 0; i < 1000; ++i) {
    REQUIRE(store->Put("t", "r" + std::to_string(1000 + i), "f:q", "old").ok());
  }
  std::unique_ptr<Snapshot> snapshot = store->TakeSnapshot();
  Result<std::unique_ptr<Scanner>> scan = store->Scan("t", {});
  REQUIRE(scan.ok());
  REQUIRE((*scan)->Next());
  for (int i = 0; i < 1000; ++i) {
    REQUIRE(store->Put("t", "r" + std::to_string(1000 + i), "f:q", "new").ok());
  }
  REQUIRE(store->Put("t", "r0", "f:q", "new").ok());
  size_t cells = 1;
  while ((*scan)->Next()) {
    CHECK((*scan)->cell().value == "old");
    ++cells;
  }
  CHECK(cells == 1000);
  CHECK(ValueOf(*store, "t", "r1500", "f:q") == "new");
  CHECK(ValueOf(*store, "t", "r1500", "f:q", snapshot.get()) == "old");
  CHECK_FALSE(ValueOf(*store, "t", "r0", "f:q", snapshot.get()).has_value());
  REQUIRE(store->DropTable("t").ok());
  CHECK(AllOf(*store, "t", {.snapshot = snapshot.get(), .reverse = true}).size() == 1000);
  CHECK(Word(store->Scan("u", {.snapshot = snapshot.get()}).status()) == "NOTABLE");
  CHECK(Word(store->Close()) == "ERR");
  scan->reset();
  snapshot.reset();
  CHECK(store->Close().ok());
}

TEST_CASE("What the library has written outlives the process, however that ends", "[embedded]") {
  const Sync sync = GENERATE(Sync::kAlways, Sync::kEverySecond, Sync::kNever);
  const Directory directory;
  constexpr int kPuts = 500;
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    Result<std::unique_ptr<Store>> store = Store::Open(directory.path(), {.sync = sync});
    bool ok = store.ok() && (*store)->CreateTable("t", {.families = {{.name = "f"}}}).ok();
    for (int i = 0; ok && i < kPuts; ++i) {
      ok = (*store)->Put("t", std::to_string(i), "f:q", std::string(100, 'x')).ok();
      if (ok && i == kPuts / 2) ok = (*store)->Checkpoint().ok();
    }
    if (!ok) _exit(1);
    (void)kill(getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  std::unique_ptr<Store> store = MustOpen(directory.path(), {.may_create = false});
  CHECK(AllOf(*store, "t").size() == kPuts);
  CHECK(store->Flush().ok());
}

TEST_CASE("Without a log the library keeps what a checkpoint has written", "[embedded]") {
  const Directory directory;
  {
    std::unique_ptr<Store> store = MustOpen(directory.path(), {.log = false});
    REQUIRE(store->CreateTable("t", {.families = {{.name = "f"}}}).ok());
    REQUIRE(store->Put("t", "a", "f:q", "1").ok());
    REQUIRE(store->Checkpoint().ok());
    REQUIRE(store->Put("t", "b", "f:q", "1").ok());
    CHECK(Word(store->Flush()) == "ERR");
  }
  std::unique_ptr<Store> store = MustOpen(directory.path(), {.log = false});
  CHECK(AllOf(*store, "t").size() == 1);
}

TEST_CASE("Versions that are too old leave the library's memory while it is maintained",
          "[embedded]") {
  const Directory directory;
  cellar::ManualClock clock;
  std::unique_ptr<Store> store = MustOpen(directory.path(), {.clock = &clock});
  REQUIRE(store->CreateTable("t", {.families = {{.name = "f", .ttl_ms = 1000}}}).ok());
  for (int i = 0; i < 2000; ++i) REQUIRE(store->Put("t", std::to_string(i), "f:q", "1").ok());
  CHECK(AllOf(*store, "t").size() == 2000);
  clock.now_micros += 2'000'000;
  CHECK(AllOf(*store, "t").empty());
  while (store->Maintain()) {
  }
  CHECK(AllOf(*store, "t", {.versions = 0}).empty());
}

TEST_CASE("The library agrees with a map through random writes and reopenings", "[embedded]") {
  const auto seed = static_cast<uint32_t>(GENERATE(1, 2, 3));
  std::cout << "embedded store model: seed " << seed << std::endl;
  std::mt19937 random(seed);
  const Directory directory;
  std::unique_ptr<Store> store = MustOpen(directory.path());
  REQUIRE(
      store->CreateTable("t", {.families = {{.name = "f", .versions = 1}, {.name = "g"}}}).ok());
  using Model = std::map<std::pair<std::string, std::string>, std::string>;
  Model model;
  Model at_snapshot;
  std::unique_ptr<Snapshot> snapshot;
  std::vector<Cell> cells_of_row;
  const auto pick = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  const auto compare = [&](const Model& expected, const Snapshot* at) {
    Cells cells;
    for (const auto& [key, value] : expected) cells.emplace_back(key.first, key.second, value);
    REQUIRE(AllOf(*store, "t", {.snapshot = at}) == cells);
  };
  for (int step = 0; step < 3000; ++step) {
    const std::string row = "r" + std::to_string(pick(40));
    const std::string column =
        (pick(2) == 0 ? "f:" : "g:") + std::string(1, static_cast<char>('a' + pick(5)));
    switch (pick(15)) {
      case 0:
        REQUIRE(store->DeleteRow("t", row).ok());
        std::erase_if(model, [&](const auto& cell) { return cell.first.first == row; });
        break;
      case 1:
        REQUIRE(store->Delete("t", row, column).ok());
        model.erase({row, column});
        break;
      case 2: {
        Batch batch;
        Model after = model;
        for (uint32_t i = pick(5) + 1; i > 0; --i) {
          const std::string value(pick(3000), static_cast<char>('a' + pick(26)));
          batch.Put("t", row, column, value);
          batch.Put("t", row + "x", column, value);
          after[{row, column}] = after[{row + "x", column}] = value;
        }
        const bool spoilt = pick(3) == 0;
        if (spoilt) batch.Put("t", row, "h:q", "no such family");
        REQUIRE(store->Apply(batch).ok() == !spoilt);
        if (!spoilt) model = after;
        break;
      }
      case 5: {  // one row, columns in any order, some of them twice
        Batch batch;
        for (uint32_t i = pick(12) + 1; i > 0; --i) {
          const std::string other = "f:" + std::string(1, static_cast<char>('a' + pick(8)));
          const std::string value = std::to_string(random());
          batch.Put("t", row, other, value);
          model[{row, other}] = value;
        }
        REQUIRE(store->Apply(batch).ok());
        break;
      }
      case 6: {
        if (pick(4) != 0) break;
        const std::string from = "r" + std::to_string(pick(40));
        const std::string to = "r" + std::to_string(pick(40));
        std::set<std::string> gone;
        for (const auto& [key, value] : model) {
          if (key.first >= from && key.first < to) gone.insert(key.first);
        }
        REQUIRE(*store->DeleteRange("t", "[" + from, "(" + to) == gone.size());
        std::erase_if(model, [&](const auto& cell) { return gone.contains(cell.first.first); });
        break;
      }
      case 7: {
        Cells expected;
        for (const auto& [key, value] : model) {
          if (key.first == row) expected.emplace_back(row, key.second, value);
        }
        REQUIRE(store->GetRow("t", row, {}, &cells_of_row).ok());
        Cells found;
        for (const Cell& cell : cells_of_row) found.emplace_back(cell.row, cell.column, cell.value);
        REQUIRE(found == expected);
        break;
      }
      case 3:
        if (pick(20) != 0) break;
        snapshot.reset();
        REQUIRE(store->Close().ok());
        store = MustOpen(directory.path(), {.may_create = false});
        compare(model, nullptr);
        break;
      case 4:
        if (pick(20) == 0) REQUIRE(store->Checkpoint().ok());
        if (pick(20) == 0) {
          snapshot = store->TakeSnapshot();
          at_snapshot = model;
        }
        break;
      default: {
        const std::string value(pick(200), static_cast<char>('a' + pick(26)));
        REQUIRE(store->Put("t", row, column, value).ok());
        model[{row, column}] = value;
      }
    }
    if (step % 100 == 0) {
      compare(model, nullptr);
      if (snapshot != nullptr) compare(at_snapshot, snapshot.get());
    }
  }
  snapshot.reset();
}

}  // namespace embedded_store_test
