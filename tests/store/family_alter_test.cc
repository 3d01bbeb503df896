// FAMILY ALTER with types, slice by slice: what others do between two slices, and a process that
// ends behind any of them.
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/text/number.h"
#include "engine/table/type_walk.h"
#include "store/requests.h"
#include "store/sliced_change.h"
#include "store/store.h"
#include "tests/manual_clock.h"
#include "tests/store/faulty_file_system.h"
#include "tests/store/index_fixture.h"

namespace family_alter_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)
using index_fixture::Fixture;

constexpr uint64_t kSliceCells{128};

FamilyOptions Column(std::string_view qualifier, std::optional<ValueType> type, OtherCells others) {
  FamilyOptions options;
  options.columns.push_back({std::string(qualifier), type});
  options.other_cells = others;
  return options;
}

std::string RowName(uint64_t number) { return "r" + FormatUint64(10'000 + number); }

class TypesFixture : public Fixture {
 public:
  TypesFixture() { (void)Make("t", {{"f", {}}}); }

  void PutText(const std::string& row, std::string_view qualifier, std::string_view text,
               std::optional<ValueType> type = std::nullopt) {
    CellOp put = Put("f", qualifier, text);
    put.type = type;
    const Status done = Do(Find("t"), row, {put});
    if (!done.ok()) FAIL(done.ToString());
  }
  // The one version of it is written anew each time.
  void PutVersion(const std::string& row, std::string_view qualifier, std::string_view text) {
    CellOp put = Put("f", qualifier, text);
    put.timestamp_micros = 1;
    const Status done = Do(Find("t"), row, {put});
    if (!done.ok()) FAIL(done.ToString());
  }
  void DeleteColumn(const std::string& row, std::string_view qualifier) {
    CellOp op;
    op.kind = CellOp::Kind::kDelete;
    op.selector = {ColumnSelector::Kind::kColumn, "f", qualifier, {}};
    REQUIRE(Do(Find("t"), row, {op}).ok());
  }
  void Fill(uint64_t rows, std::string_view qualifier = "a") {
    for (uint64_t i = 0; i < rows; ++i) PutText(RowName(i), qualifier, FormatUint64(i));
  }
  std::unique_ptr<SlicedChange> Alter(const FamilyOptions& options) {
    Result<std::unique_ptr<SlicedChange>> change =
        store->AlterFamily(Find("t"), {"f", options}, nullptr);
    if (!change.ok()) FAIL(change.status().ToString());
    return *std::move(change);
  }
  static Status Finish(SlicedChange& change, uint64_t* steps = nullptr) {
    while (!change.done()) {
      RETURN_IF_ERROR(change.Step(kSliceCells));
      if (steps != nullptr) ++*steps;
    }
    return Status::Ok();
  }
  // How many cells of the column have which type.
  std::map<ValueType, uint64_t> Types(std::string_view qualifier) {
    std::map<ValueType, uint64_t> types;
    CellOptions cells;
    cells.versions_max = kUnlimited;
    Result<std::unique_ptr<Scan>> scan = store->ScanRows(Find("t"), {}, cells, nullptr);
    REQUIRE(scan.ok());
    for (;;) {
      const ScanStep step = (*scan)->Next();
      if (step == ScanStep::kEnd) break;
      if (step != ScanStep::kCell) continue;
      const ScanCell& cell = (*scan)->cell();
      if (cell.qualifier_text == qualifier) ++types[cell.type];
    }
    store->EndScan(*std::move(scan));
    return types;
  }
};

TEST_CASE_METHOD(TypesFixture, "What is counted is there in the end and counted once", "[alter]") {
  constexpr uint64_t kRows{2'000};
  Fill(kRows);
  for (const uint64_t row : {3, 4, 500, 1'900}) PutText(RowName(row), "a", "n/a");
  const auto change = Alter(Column("a", ValueType::kI64, OtherCells::kConvert));
  for (int i = 0; i < 10; ++i) REQUIRE(change->Step(kSliceCells).ok());
  // Mended behind the walk.
  DeleteColumn(RowName(3), "a");
  for (int i = 0; i < 3; ++i) {
    REQUIRE(change->Step(kSliceCells).ok());
    PutText(RowName(4), "b", "touched");  // is still stuck, and counts once
    PutText(RowName(20), "a", "spoilt");  // behind the walk, again and again
    PutText(RowName(1'999), "a", "n/a");  // before it
  }
  const Status refused = Finish(*change);
  CHECK(refused.code() == ErrorCode::kWrongType);
  // Rows 4, 500, 1900, thrice 20, thrice 1999.
  CHECK(refused.text() ==
        "row 'r10004': column 'f:a' holds 'n/a', no i64: 9 cells cannot be converted; CONVERT SKIP "
        "leaves those");
  CHECK_FALSE(change->schema_changed());
}

TEST_CASE_METHOD(TypesFixture, "A row that an index refuses is passed over among others",
                 "[alter]") {
  REQUIRE(
      store
          ->CreateIndex(
              Find("t"),
              {.name = "one", .on = {On("f", "a", ValueType::kI64)}, .include = {}, .unique = true})
          .ok());
  for (const std::string_view text : {"7", "007", "8", "08", "9"})
    PutText("row" + std::string(text), "a", text);
  const auto change = Alter(Column("a", ValueType::kI64, OtherCells::kSkip));
  REQUIRE(Finish(*change).ok());
  CHECK(change->rows() == 3);
  CHECK(Types("a") == std::map<ValueType, uint64_t>{{ValueType::kI64, 3}, {ValueType::kBytes, 2}});
  REQUIRE(store->VerifyIndexes().ok());
}

TEST_CASE_METHOD(TypesFixture, "What is mended while it looks is not refused", "[alter]") {
  Fill(2'000);
  for (const uint64_t row : {3, 4}) PutText(RowName(row), "bad", "n/a");
  FamilyOptions options;
  options.type.emplace(ValueType::kI64);
  options.other_cells = OtherCells::kConvert;
  const auto change = Alter(options);
  for (int i = 0; i < 5; ++i) REQUIRE(change->Step(kSliceCells).ok());
  for (const uint64_t row : {3, 4}) DeleteColumn(RowName(row), "bad");
  const Status done = Finish(*change);
  CHECK(done.ToString() == Status::Ok().ToString());
  CHECK(Types("a") == std::map<ValueType, uint64_t>{{ValueType::kI64, 2'000}});
}

TEST_CASE_METHOD(TypesFixture, "What goes with all of its table is not counted", "[alter]") {
  Fill(2'000);
  PutText(RowName(3), "a", "n/a");
  const auto change = Alter(Column("a", ValueType::kI64, OtherCells::kConvert));
  for (int i = 0; i < 5; ++i) REQUIRE(change->Step(kSliceCells).ok());
  REQUIRE(store->TruncateTable(Find("t")).ok());
  Fill(100);
  REQUIRE(Finish(*change).ok());
  CHECK(Types("a") == std::map<ValueType, uint64_t>{{ValueType::kI64, 100}});
}

TEST_CASE_METHOD(TypesFixture, "A wide row that changes all the time does not hold it up",
                 "[alter]") {
  constexpr uint64_t kColumns{4'000};
  for (uint64_t i = 0; i < kColumns; ++i) PutText("hot", "c" + FormatUint64(i), "5");
  Fill(3'000);
  const auto change = Alter(Column("a", ValueType::kI64, OtherCells::kConvert));
  uint64_t steps = 0;
  while (!change->schema_changed()) {
    PutText("hot", "c1", "6");
    REQUIRE(change->Step(kSliceCells).ok());
    ++steps;
  }
  // The walk, and a few times the row.
  CHECK(steps < (kColumns + 3'000) / kSliceCells + 5 * kColumns / kSliceCells);
  REQUIRE(Finish(*change).ok());
  CHECK(Types("a") == std::map<ValueType, uint64_t>{{ValueType::kI64, 3'000}});
}

TEST_CASE_METHOD(TypesFixture, "More rows change than are kept: they are looked at before its end",
                 "[alter]") {
  constexpr uint64_t kRows{20'000};
  Fill(kRows);
  const auto change = Alter(Column("a", ValueType::kI64, OtherCells::kConvert));
  size_t memory_max = 0;
  uint64_t at = 0;
  while (!change->schema_changed()) {
    REQUIRE(change->Step(2 * kSliceCells).ok());
    // Each adds a version, which a round looks at as well: not so many that rounds grow for ever.
    for (int i = 0; i < 60; ++i) PutText(RowName(at++ % kRows), "a", "7");
    memory_max = std::max(memory_max, change->memory_bytes());
  }
  REQUIRE(Finish(*change).ok());
  CHECK(memory_max < 8 << 20);
  CHECK(Types("a") == std::map<ValueType, uint64_t>{{ValueType::kI64, kRows + at}});
}

TEST_CASE_METHOD(TypesFixture, "The walk goes on however many rows change behind it", "[alter]") {
  constexpr uint64_t kRows{24'000};
  for (uint64_t i = 0; i < kRows; ++i) PutVersion(RowName(i), "a", "5");
  const auto change = Alter(Column("a", ValueType::kI64, OtherCells::kConvert));
  size_t memory_max = 0;
  uint64_t at = 0;
  // While a round looks at as many rows as are kept, more than those change.
  uint64_t steps = 0;
  while (!change->schema_changed()) {
    const Status done = change->Step(2 * kSliceCells);
    if (!done.ok()) FAIL(done.ToString());
    for (int i = 0; i < 220; ++i) PutVersion(RowName(at++ % kRows), "a", "7");
    memory_max = std::max(memory_max, change->memory_bytes());
    // The walk and a round before its end, and four behind it.
    REQUIRE(++steps < 6 * 2 * kRows / (2 * kSliceCells));
  }
  REQUIRE(Finish(*change).ok());
  CHECK(memory_max < 8 << 20);
  CHECK(Types("a") == std::map<ValueType, uint64_t>{{ValueType::kI64, kRows}});
}

TEST_CASE_METHOD(TypesFixture, "Wide rows that all change for ever: it gives up, unchanged",
                 "[alter]") {
  constexpr uint64_t kRows{30};
  constexpr uint64_t kColumns{2'000};  // in all more cells than a turn looks at
  for (uint64_t row = 0; row < kRows; ++row) {
    for (uint64_t i = 0; i < kColumns; ++i) PutVersion(RowName(row), "c" + FormatUint64(i), "5");
    PutVersion(RowName(row), "a", "5");
  }
  const FamilyOptions options = Column("a", ValueType::kI64, OtherCells::kConvert);
  const auto change = Alter(options);
  Status ended;
  uint64_t steps = 0;
  while (ended.ok() && !change->schema_changed()) {
    for (uint64_t row = 0; row < kRows; ++row) PutVersion(RowName(row), "c7", "6");
    ended = change->Step(8 * kSliceCells);
    // The walk and 16 rounds.
    REQUIRE(++steps < 18 * kRows * kColumns / (8 * kSliceCells));
  }
  REQUIRE_FALSE(ended.ok());
  CHECK(ended.code() == ErrorCode::kTryAgain);
  CHECK(ended.text() == "rows of family 'f' change faster than they can be looked at");
  CHECK_FALSE(change->schema_changed());
  CHECK(Find("t").schema().FindFamily("f")->FindColumn("a") == nullptr);
  CHECK(Types("a") == std::map<ValueType, uint64_t>{{ValueType::kBytes, kRows}});
  // The others have gone.
  const Status again = Finish(*Alter(options));
  CHECK(again.ToString() == Status::Ok().ToString());
  CHECK(Types("a") == std::map<ValueType, uint64_t>{{ValueType::kI64, kRows}});
}

TEST_CASE_METHOD(TypesFixture, "More wait for a round than memory is given to: it gives up",
                 "[alter]") {
  constexpr uint64_t kRows{700};
  const auto name = [](uint64_t row) { return RowName(row) + std::string(60'000, 'k'); };
  for (uint64_t row = 0; row < kRows; ++row) PutVersion(name(row), "a", "5");
  const FamilyOptions options = Column("a", ValueType::kI64, OtherCells::kConvert);
  const auto change = Alter(options);
  // By its bytes a slice ends long before.
  for (int i = 0; i < 35; ++i) REQUIRE(change->Step(kRows).ok());
  REQUIRE_FALSE(change->schema_changed());
  for (uint64_t row = 0; row < kRows; ++row) PutVersion(name(row), "a", "6");
  const Status ended = Finish(*change);
  REQUIRE_FALSE(ended.ok());
  CHECK(ended.code() == ErrorCode::kTryAgain);
  CHECK_FALSE(change->schema_changed());
  const Status again = Finish(*Alter(options));
  CHECK(again.ToString() == Status::Ok().ToString());
  CHECK(Types("a") == std::map<ValueType, uint64_t>{{ValueType::kI64, kRows}});
}

TEST_CASE_METHOD(TypesFixture, "A slice of the look is bounded by bytes", "[alter]") {
  constexpr size_t kValueBytes{300 << 10};
  constexpr uint64_t kRows{20};
  const std::string value(kValueBytes, 'v');
  for (uint64_t row = 0; row < kRows; ++row) PutVersion(RowName(row), "a", value);
  const auto change = Alter(Column("a", ValueType::kString, OtherCells::kConvert));
  uint64_t steps = 0;
  for (; !change->schema_changed(); ++steps) REQUIRE(change->Step(kSliceCells).ok());
  CHECK(steps >= kRows * kValueBytes / (TypeWalk::kSliceBytesMax + kValueBytes));
  REQUIRE(Finish(*change).ok());
  CHECK(Types("a") == std::map<ValueType, uint64_t>{{ValueType::kString, kRows}});
}

TEST_CASE_METHOD(TypesFixture, "Other columns may get types while one is converted", "[alter]") {
  Fill(1'000);
  Fill(1'000, "b");
  SECTION("one that is named") {
    const auto change = Alter(Column("a", ValueType::kI64, OtherCells::kConvert));
    while (change->rows() == 0) REQUIRE(change->Step(kSliceCells).ok());
    REQUIRE(Finish(*Alter(Column("b", ValueType::kU8, OtherCells::kKeep))).ok());
    REQUIRE(Finish(*change).ok());
    CHECK(Types("a") == std::map<ValueType, uint64_t>{{ValueType::kI64, 1'000}});
    CHECK(Types("b") == std::map<ValueType, uint64_t>{{ValueType::kBytes, 1'000}});
  }
  SECTION("all that have none of their own") {
    FamilyOptions options;
    options.type.emplace(ValueType::kI64);
    options.other_cells = OtherCells::kConvert;
    const auto change = Alter(options);
    while (change->rows() == 0) REQUIRE(change->Step(kSliceCells).ok());
    REQUIRE(Finish(*Alter(Column("b", ValueType::kBytes, OtherCells::kKeep))).ok());
    REQUIRE(Finish(*change).ok());
    CHECK(Types("a") == std::map<ValueType, uint64_t>{{ValueType::kI64, 1'000}});
    // From then on those of b are none of its business.
    CHECK(Types("b")[ValueType::kBytes] > 0);
  }
  SECTION("during the look it goes on where it was") {
    const auto change = Alter(Column("a", ValueType::kI64, OtherCells::kConvert));
    uint64_t steps = 0;
    for (; steps < 8; ++steps) REQUIRE(change->Step(kSliceCells).ok());
    REQUIRE(Finish(*Alter(Column("b", ValueType::kU8, OtherCells::kKeep))).ok());
    while (!change->schema_changed()) {
      REQUIRE(change->Step(kSliceCells).ok());
      ++steps;
    }
    CHECK(steps <= 2 + 2'000 / kSliceCells);
  }
  SECTION("the same one") {
    const auto change = Alter(Column("a", ValueType::kI64, OtherCells::kConvert));
    while (change->rows() == 0) REQUIRE(change->Step(kSliceCells).ok());
    REQUIRE(Finish(*Alter(Column("a", ValueType::kU8, OtherCells::kKeep))).ok());
    const Status ended = Finish(*change);
    CHECK(ended.text().starts_with("the types of family 'f' were changed again, after "));
  }
}

// --- the walk

TEST_CASE_METHOD(TypesFixture, "A slice is bounded by bytes, also within a column", "[alter]") {
  constexpr size_t kValueBytes{200'000};
  constexpr uint64_t kVersions{24};
  FamilyOptions keeps;
  const bool has_ranks = GENERATE(false, true);
  const uint64_t live = has_ranks ? 20 : kVersions;
  keeps.gc = *RetentionPolicy::Parse(has_ranks ? "maxversions=20" : "none");
  (void)Make("w", {{"f", keeps}});
  Table& table = Find("w");
  const std::string value(kValueBytes, 'v');
  for (const char* row : {"one", "two"}) {
    for (uint64_t i = 0; i < kVersions; ++i) {
      CellOp put = Put("f", "a", value);
      put.timestamp_micros = static_cast<int64_t>(1 + i);
      REQUIRE(Do(table, row, {put}).ok());
    }
  }
  FamilySchema after = *table.schema().FindFamily("f");
  const FamilyOptions column = Column("a", ValueType::kString, OtherCells::kConvert);
  REQUIRE(AlterColumns(column.columns, &after).ok());
  const TypeChange change(after, column);
  TypeWalk walk(after.id);
  std::set<std::pair<std::string, int64_t>> seen;
  uint64_t slices = 0;
  while (!walk.at_end()) {
    size_t bytes = 0;
    (void)walk.Step(table, change, clock.now_micros, kUnlimited, [&](const TypeWalk::Cell& cell) {
      bytes += cell.value.stored.size();
      const bool is_new = seen.emplace(cell.row_key, cell.timestamp).second;
      CHECK(is_new);
    });
    CHECK(bytes <= TypeWalk::kSliceBytesMax + kValueBytes);
    ++slices;
  }
  CHECK(seen.size() == 2 * live);
  for (const auto& [row, timestamp] : seen)
    CHECK(timestamp > static_cast<int64_t>(kVersions - live));
  CHECK(slices >= 2 * live * kValueBytes / (TypeWalk::kSliceBytesMax + kValueBytes));
}

// --- kill

class Told final : public FeedSink {
 public:
  bool OnEntry(const FeedEntry& entry) override {
    const auto is = [&entry](std::string_view op) {
      return entry.fields.find("$2\r\nop\r\n$" + FormatUint64(op.size()) + "\r\n" +
                               std::string(op)) != std::string::npos;
    };
    ++entries;
    puts += is("put") ? 1 : 0;
    schemas += is("schema") ? 1 : 0;
    return true;
  }
  uint64_t entries{0};
  uint64_t puts{0};
  uint64_t schemas{0};
};

class KilledStore {
 public:
  static constexpr uint64_t kRows{160};
  static constexpr uint64_t kColumns{8};

  KilledStore() : clock(1'000'000'000'000) {
    clock.tick_micros = 10;
    Open();
    REQUIRE(store->CreateTable("0", "t", Order(), {{"f", {}}}).ok());
    NewIndex index;
    index.name = "i";
    index.on.push_back({"f", "c0", ValueType::kI64, false});
    index.include.push_back({"f", "c1", std::nullopt, false});
    index.unique = true;
    for (uint64_t row = 0; row < kRows; ++row) {
      RowWrite write;
      const std::string name = RowName(row);
      write.row = name;
      std::vector<std::string> words;
      for (uint64_t i = 0; i < kColumns; ++i) words.push_back("c" + FormatUint64(i));
      for (uint64_t i = 0; i < kColumns; ++i) words.push_back(FormatUint64(row * kColumns + i));
      for (uint64_t i = 0; i < kColumns; ++i)
        write.ops.push_back(Fixture::Put("f", words[i], words[kColumns + i]));
      REQUIRE(store->Write(Find(), write).ok());
    }
    REQUIRE(store->CreateIndex(Find(), index).ok());
    for (const bool old : {false, true}) {
      Feed feed;
      feed.keyspace = "0";
      feed.on.push_back({"t", ""});
      feed.keep_micros = 86'400'000'000;
      feed.old = old;
      REQUIRE(store->CreateFeed("0", old ? "old" : "plain", std::move(feed)).ok());
    }
    store->Flush();
    told_before = {Read("plain"), Read("old")};
  }
  void Open() {
    StoreOptions options;
    options.journal.directory = "db";
    options.journal.sync_policy = SyncPolicy::kNo;
    options.feed_sync_micros = 0;
    Result<std::unique_ptr<Store>> opened = Store::Open(options, disk, clock, {});
    if (!opened.ok()) FAIL(opened.status().ToString());
    store = *std::move(opened);
    store->SetTurnTime();
  }
  Table& Find() { return **store->FindTable("0", "t"); }
  std::unique_ptr<SlicedChange> Alter() {
    FamilyOptions options;
    options.type.emplace(ValueType::kI64);
    options.other_cells = OtherCells::kConvert;
    auto change = store->AlterFamily(Find(), {"f", options}, nullptr);
    REQUIRE(change.ok());
    return *std::move(change);
  }
  Told Read(const std::string& name) {
    const Feed* feed = store->FindFeed("0", name);
    REQUIRE(feed != nullptr);
    // All of it is on disk: nothing has been lost.
    for (;;) {
      store->feed_log().AskForSync();
      REQUIRE(store->UpdateFeedLog().ok());
      if (store->journal().durable_lsn() == store->journal().last_lsn()) break;
      std::this_thread::yield();
      store->journal().Poll();
    }
    REQUIRE(store->UpdateFeedLog().ok());
    FeedScan scan;
    Told told;
    for (;;) {
      const Result<bool> done = store->feed_log().Read(*feed, &scan, &told);
      if (!done.ok()) FAIL(done.status().text());
      if (*done) return told;
    }
  }
  // Every cell is of one type or the other and of the same value; how many are of the new one.
  uint64_t Converted() {
    Result<std::unique_ptr<Scan>> scan = store->ScanRows(Find(), {}, {}, nullptr);
    REQUIRE(scan.ok());
    uint64_t converted = 0;
    uint64_t cells = 0;
    for (;;) {
      const ScanStep step = (*scan)->Next();
      if (step == ScanStep::kEnd) break;
      if (step != ScanStep::kCell) continue;
      const ScanCell& cell = (*scan)->cell();
      CHECK((cell.type == ValueType::kI64 || cell.type == ValueType::kBytes));
      CHECK(ValueText(cell.type, cell.stored) == FormatUint64(cells++));
      converted += cell.type == ValueType::kI64 ? 1 : 0;
    }
    store->EndScan(*std::move(scan));
    CHECK(cells == kRows * kColumns);
    return converted;
  }
  void CheckAll(bool schema_changed, uint64_t converted) {
    CHECK(store->VerifyIndexes().ToString() == Status::Ok().ToString());
    CHECK(Find().schema().FindFamily("f")->type.has_value() == schema_changed);
    CHECK(Converted() == converted);
    const Told plain = Read("plain");
    CHECK(plain.puts == told_before.first.puts);
    CHECK(plain.schemas - told_before.first.schemas == (schema_changed ? 1 : 0));
    const Told old = Read("old");
    CHECK(old.puts - told_before.second.puts == converted);
    CHECK(old.schemas - told_before.second.schemas == (schema_changed ? 1 : 0));
  }
  void Kill() {
    disk.Kill();
    store.reset();
    disk.Reboot();
    Open();
  }

  FaultyFileSystem disk;
  ManualClock clock;
  std::unique_ptr<Store> store;
  std::pair<Told, Told> told_before;
};

TEST_CASE("A conversion that is killed behind any slice leaves store, index and feeds that agree",
          "[alter][store][crash]") {
  uint64_t slices_of_conversion = 0;
  bool ends = false;
  for (uint64_t slices = 0; !ends; ++slices) {
    INFO("killed behind slice " << slices);
    KilledStore killed;
    bool schema_changed = false;
    uint64_t converted = 0;
    {
      const auto change = killed.Alter();
      for (uint64_t i = 0; i < slices && !change->done(); ++i) {
        REQUIRE(change->Step(kSliceCells).ok());
        killed.store->Flush();
      }
      ends = change->done();
      schema_changed = change->schema_changed();
      converted = killed.Converted();
      slices_of_conversion += schema_changed ? 1 : 0;
    }
    killed.Kill();
    killed.CheckAll(schema_changed, converted);
    // What is said again goes on with the rest.
    const auto again = killed.Alter();
    while (!again->done()) REQUIRE(again->Step(kSliceCells).ok());
    killed.store->Flush();
    CHECK(killed.store->VerifyIndexes().ok());
    CHECK(killed.Converted() == KilledStore::kRows * KilledStore::kColumns);
    CHECK(killed.Read("old").puts - killed.told_before.second.puts ==
          KilledStore::kRows * KilledStore::kColumns);
  }
  CHECK(slices_of_conversion >= 10);
}

TEST_CASE("A conversion that is killed in the middle of a write leaves a step whole or not at all",
          "[alter][store][crash]") {
  for (uint64_t call = 1;; ++call) {
    INFO("killed in call " << call);
    KilledStore killed;
    {
      const auto change = killed.Alter();
      killed.disk.KillAtCall(call);
      while (!change->done() && !killed.disk.is_halted()) {
        if (!change->Step(kSliceCells).ok()) break;
        killed.store->Flush();
      }
    }
    const bool was_killed = killed.disk.is_halted();
    killed.Kill();
    const uint64_t converted = killed.Converted();
    killed.CheckAll(killed.Find().schema().FindFamily("f")->type.has_value(), converted);
    if (!was_killed) break;
  }
}

}  // namespace family_alter_test
