// The store in a folder of its own, driven as commands drive it.
#include "store/store.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/text/number.h"
#include "store/requests.h"
#include "store/sliced_change.h"
#include "tests/manual_clock.h"

namespace store_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)

class StoreFixture {
 public:
  StoreFixture() {
    char name[] = "/tmp/cellar-store-test-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    directory = name;
    Open();
  }
  ~StoreFixture() {
    store.reset();
    std::filesystem::remove_all(directory);
  }
  void Open() {
    Result<std::unique_ptr<Store>> opened = TryOpen({});
    if (!opened.ok()) FAIL(opened.status().ToString());
    store = *std::move(opened);
  }
  Result<std::unique_ptr<Store>> TryOpen(const LoadProgressCallback& progress) {
    StoreOptions options;
    options.journal.directory = directory;
    options.journal.sync_policy = SyncPolicy::kNo;
    options.journal.segment_bytes_max = 1 << 20;
    options.journal.allocation_bytes_min = 4096;
    options.journal.allocation_bytes_max = 65536;
    return Store::Open(options, FileSystem::Posix(), clock, progress);
  }
  Table& Make(const std::string& name, const std::string& order,
              const std::vector<NewFamily>& families) {
    Result<Order> key = Order::Parse(order);
    REQUIRE(key.ok());
    const Status made = store->CreateTable("0", name, *key, families);
    if (!made.ok()) FAIL(made.ToString());
    return **store->FindTable("0", name);
  }
  Table& Find(const std::string& name) { return **store->FindTable("0", name); }

  Result<RowWriteResult> Do(Table& table, const std::string& row, std::vector<CellOp> ops) {
    RowWrite write;
    write.row = row;
    write.ops = std::move(ops);
    return store->Write(table, write);
  }
  static CellOp Put(std::string_view family, std::string_view qualifier, std::string_view value,
                    std::optional<int64_t> ts = std::nullopt) {
    CellOp op;
    op.family = family;
    op.qualifier = qualifier;
    op.text = value;
    op.timestamp_micros = ts;
    return op;
  }
  // By their columns' names, without what else may be said of them.
  Status PutCells(Table& table, std::string_view row, const std::vector<CellOp>& ops) {
    std::vector<std::string> names;
    for (const CellOp& op : ops)
      names.push_back(std::string(op.family) + ":" + std::string(op.qualifier));
    std::vector<std::string_view> cells;
    for (size_t i = 0; i < ops.size(); ++i) {
      cells.push_back(names[i]);
      cells.push_back(ops[i].text);
    }
    return store->Put(table, row, cells);
  }
  Status PutCell(Table& table, std::string_view row, std::string_view column,
                 std::string_view value) {
    const std::string_view cells[] = {column, value};
    return store->Put(table, row, cells);
  }
  // "row{family:qualifier@ts=value ...} ..." of what a scan gives.
  std::string Text(Table& table, const RowOptions& rows, const CellOptions& cells,
                   uint64_t budget = kUnlimited) {
    Result<std::unique_ptr<Scan>> scan = store->ScanRows(table, rows, cells, nullptr);
    if (!scan.ok()) return scan.status().ToString();
    std::string text;
    (*scan)->SetBudget(budget);
    for (;;) {
      switch ((*scan)->Next()) {
        case ScanStep::kRow:
          text += "|" + std::string((*scan)->row_text());
          break;
        case ScanStep::kCell: {
          const ScanCell& cell = (*scan)->cell();
          text += " ";
          if (cell.column_begins) {
            text += std::string(cell.family) + ":" + std::string(cell.qualifier_text);
          }
          text +=
              "@" + FormatInt64(cell.timestamp_micros) + "=" + ValueText(cell.type, cell.stored);
          break;
        }
        case ScanStep::kPause:
          (*scan)->Detach();
          (*scan)->SetBudget(budget);
          break;
        case ScanStep::kEnd:
          store->EndScan(*std::move(scan));
          return text;
      }
    }
  }
  std::string All(Table& table) {
    CellOptions cells;
    cells.versions_max = kUnlimited;
    return Text(table, {}, cells);
  }

  std::string directory;
  ManualClock clock{1'700'000'000'000'000};
  std::unique_ptr<Store> store;
};

TEST_CASE_METHOD(StoreFixture, "A row that was put comes back, also after a restart", "[store]") {
  Table& table = Make("planes", "bytes", {{"meta", {}}, {"dep", {}}});
  REQUIRE(Do(table, "b", {Put("meta", "x", "1", 5), Put("dep", "y", "2", 7)}).ok());
  REQUIRE(Do(table, "a", {Put("meta", "z", "3", 1)}).ok());
  REQUIRE(Do(table, "b", {Put("meta", "x", "0", 4)}).ok());
  const std::string expected = "|a meta:z@1=3|b dep:y@7=2 meta:x@5=1 @4=0";
  CHECK(All(table) == expected);
  CHECK(table.counters().rows == 2);
  CHECK(table.cells() == 4);
  const std::string digest = store->Digest();
  store.reset();
  Open();
  CHECK(All(Find("planes")) == expected);
  CHECK(store->Digest() == digest);
  REQUIRE(store->journal().SaveNow().ok());
  store.reset();
  Open();
  CHECK(All(Find("planes")) == expected);
  CHECK(store->Digest() == digest);
  CHECK(Find("planes").counters().rows == 2);
}

TEST_CASE_METHOD(StoreFixture, "A load can be ended at any progress, and changes no file",
                 "[store]") {
  Table& table = Make("t", "bytes", {{"f", {}}});
  const std::string value(10'000, 'x');
  for (int64_t i = 0; i < 200; ++i) {
    REQUIRE(Do(table, "row" + FormatInt64(i), {Put("f", "q", value, i)}).ok());
  }
  const std::string digest = store->Digest();
  for (const bool snapshot : {false, true}) {
    if (snapshot) REQUIRE(store->journal().SaveNow().ok());
    store.reset();
    int last = 0;  // the call at which the load is ended, until it makes no more of them
    for (int calls = 0; calls == last;) {
      ++last;
      calls = 0;
      const auto ended = TryOpen([&](const LoadProgress&) {
        return ++calls < last ? Status::Ok() : Status::Error(ErrorCode::kLoading, "ended");
      });
      CHECK(ended.ok() == (calls < last));
      if (!ended.ok()) CHECK(ended.status().ToString() == "LOADING ended");
    }
    CHECK(last > 1);
    Open();
    CHECK(store->Digest() == digest);
  }
}

TEST_CASE_METHOD(StoreFixture, "Families come by name although their ids have another order",
                 "[store]") {
  Table& table = Make("t", "bytes", {{"m", {}}});
  REQUIRE(store->AddFamily(table, {"a", {}}).ok());
  FamilyOptions other_group;
  other_group.group = "other";
  REQUIRE(store->AddFamily(table, {"k", other_group}).ok());
  for (const char* row : {"1", "2", "3"}) {
    REQUIRE(
        Do(table, row, {Put("m", "q", "m", 1), Put("a", "q", "a", 1), Put("k", "q", "k", 1)}).ok());
  }
  CHECK(All(table) ==
        "|1 a:q@1=a k:q@1=k m:q@1=m|2 a:q@1=a k:q@1=k m:q@1=m|3 a:q@1=a k:q@1=k m:q@1=m");
  RowOptions reverse;
  reverse.reverse = true;
  CellOptions columns_reverse;
  columns_reverse.columns_reverse = true;
  CHECK(Text(table, reverse, columns_reverse) ==
        "|3 m:q@1=m k:q@1=k a:q@1=a|2 m:q@1=m k:q@1=k a:q@1=a|1 m:q@1=m k:q@1=k a:q@1=a");
  CHECK(Text(table, {}, columns_reverse) ==
        "|1 m:q@1=m k:q@1=k a:q@1=a|2 m:q@1=m k:q@1=k a:q@1=a|3 m:q@1=m k:q@1=k a:q@1=a");
  CHECK(table.counters().rows == 3);
  CellOptions only_k;
  only_k.columns.push_back({ColumnSelector::Kind::kFamily, "k", {}, {}});
  CHECK(Text(table, {}, only_k) == "|1 k:q@1=k|2 k:q@1=k|3 k:q@1=k");
  REQUIRE(store->DropFamily(table, "a").ok());
  CHECK(All(table) == "|1 k:q@1=k m:q@1=m|2 k:q@1=k m:q@1=m|3 k:q@1=k m:q@1=m");
  while (store->Sweep(2)) {
  }
  CHECK(table.counts_are_live());
  CHECK(table.counters().rows == 3);
}

TEST_CASE_METHOD(StoreFixture, "What has been swept is not swept again before something changes",
                 "[store]") {
  FamilyOptions two;
  two.versions_max = 2;
  Table& table = Make("t", "bytes", {{"f", two}});
  const auto sweep = [&] {  // a whole pass; was there anything to look at?
    const uint64_t passes = store->sweeper_stats().passes;
    while (store->sweeper_stats().passes == passes) (void)store->Sweep(1);
    return !store->sweeper_stats().idle;
  };
  for (int64_t timestamp = 1; timestamp <= 5; ++timestamp)
    REQUIRE(Do(table, "r", {Put("f", "q", "v", timestamp)}).ok());
  CHECK(table.MayHoldDropped());
  CHECK(sweep());
  CHECK(table.cells() == 2);
  CHECK_FALSE(table.MayHoldDropped());
  CHECK_FALSE(sweep());
  REQUIRE(Do(table, "r", {Put("f", "q", "v", 6)}).ok());
  CHECK(table.MayHoldDropped());
  CHECK(sweep());
  CHECK_FALSE(table.MayHoldDropped());
  FamilyOptions aging;  // in time everything is due, whether or not something changes
  aging.ttl_ms = 10'000;
  REQUIRE(store->AddFamily(table, {"g", aging}).ok());
  CHECK(table.MayHoldDropped());
  CHECK(sweep());
  CHECK(table.MayHoldDropped());
}

TEST_CASE_METHOD(StoreFixture, "An operation that is refused leaves nothing behind", "[store]") {
  Table& table = Make("t", "bytes", {{"f", {}}});
  REQUIRE(Do(table, "r", {Put("f", "n", "5", 1), Put("f", "s", "text", 1)}).ok());
  const std::string before = store->Digest();
  CellOp increment;
  increment.kind = CellOp::Kind::kIncrement;
  increment.family = "f";
  increment.qualifier = "n";
  increment.text = "1";
  CellOp bad = increment;
  bad.qualifier = "s";
  CellOp drop;
  drop.kind = CellOp::Kind::kDeleteRow;
  const Result<RowWriteResult> refused =
      Do(table, "r", {increment, Put("f", "x", "9"), drop, Put("f", "s", "t"), bad});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.status().code() == ErrorCode::kWrongType);
  CHECK(store->Digest() == before);
  CHECK(table.counters().rows == 1);
  CHECK(table.cells() == 2);
  const Result<RowWriteResult> done = Do(table, "r", {increment, increment, drop, increment});
  if (!done.ok()) FAIL(done.status().ToString());
  CHECK(ValueText(done->results[1].type, done->results[1].stored) == "7");
  CHECK(done->results[2].count == 3);
  CHECK(ValueText(done->results[3].type, done->results[3].stored) == "1");
  CHECK(table.cells() == 1);
}

TEST_CASE_METHOD(StoreFixture, "MULTI ATOMIC takes back schema, cells and record numbers",
                 "[store]") {
  Table& table = Make("t", "recno", {{"f", {}}});
  RowWrite next;
  next.row = "*";
  next.allocates = true;
  next.ops = {Put("f", "x", "1")};
  REQUIRE(store->Write(table, next)->row == "1");
  const std::string before = store->Digest();
  store->BeginTransaction(Store::Atomicity::kAll);
  REQUIRE(store->Write(table, next)->row == "2");
  REQUIRE(store->CreateTable("0", "u", Order(), {{"f", {}}}).ok());
  REQUIRE(store->TruncateTable(table).ok());
  REQUIRE(store->Write(Find("t"), next)->row == "3");
  REQUIRE(store->DropTable(Find("t")).ok());
  store->RollBackTransaction();
  CHECK(store->Digest() == before);
  REQUIRE(store->Write(Find("t"), next)->row == "2");
  CHECK(store->FindTable("0", "u").status().code() == ErrorCode::kNoTable);
  store->BeginTransaction(Store::Atomicity::kRedis);
  REQUIRE(store->Write(Find("t"), next)->row == "3");
  REQUIRE(store->CreateTable("0", "u", Order(), {{"f", {}}}).ok());
  store->CommitTransaction();
  const std::string after = store->Digest();
  REQUIRE(store->Reload(store->options().journal).ok());
  CHECK(store->Digest() == after);
}

TEST_CASE_METHOD(StoreFixture, "What retention has dropped is gone for good", "[store]") {
  FamilyOptions two;
  two.versions_max = 2;
  Table& table = Make("t", "bytes", {{"f", two}});
  for (int64_t ts = 1; ts <= 5; ++ts) {
    REQUIRE(Do(table, "r", {Put("f", "c", FormatInt64(ts), ts)}).ok());
  }
  CHECK(All(table) == "|r f:c@5=5 @4=4");
  CellOp drop;
  drop.kind = CellOp::Kind::kDelete;
  drop.selector = {ColumnSelector::Kind::kColumn, "f", "c", {}};
  drop.time = {5, 5};
  const Result<RowWriteResult> dropped = Do(table, "r", {drop});
  REQUIRE(dropped.ok());
  CHECK(dropped->results[0].count == 1);
  CHECK(All(table) == "|r f:c@4=4");
  FamilyOptions all;
  all.versions_max = 0;
  Result<std::unique_ptr<SlicedChange>> alter = store->AlterFamily(table, {"f", all}, nullptr);
  REQUIRE(alter.ok());
  while (!(*alter)->done()) REQUIRE((*alter)->Step(1).ok());
  CHECK(All(table) == "|r f:c@4=4");
  CHECK(table.counts_are_live());
  CHECK(table.cells() == 1);
}

// Everything that a table stores and counts.
std::string Dump(const Table& table) {
  std::string text;
  table.EncodeCounters(&text);
  for (size_t group = 0; group < table.groups(); ++group) {
    BTreeCursor& at = table.cursor(group);
    for (at.SeekFirst(); at.valid(); at.Next()) {
      text.append("\n").append(at.key()).append("=").append(at.value());
    }
  }
  return text;
}

TEST_CASE_METHOD(StoreFixture, "What writes leave is what their records give back", "[store]") {
  const uint64_t seed = 20261121;
  INFO("seed " << seed);
  Random random(seed);
  FamilyOptions one;
  one.versions_max = 1;
  FamilyOptions three;
  three.versions_max = 3;
  three.group = "g2";
  FamilyOptions aged;
  aged.ttl_ms = 5;
  aged.versions_max = 2;
  Make("t", "bytes", {{"all", {}}, {"one", one}, {"three", three}, {"aged", aged}});
  const std::vector<std::string> families{"all", "one", "three", "aged"};
  for (int step = 1; step <= 3000; ++step) {
    clock.now_micros += static_cast<int64_t>(random.Below(1000));
    store->SetTurnTime();
    Table& table = Find("t");
    const std::string row = "r" + FormatUint64(random.Below(20));
    const std::string value = FormatUint64(random.Below(1000));
    std::vector<std::string> qualifiers;
    for (int i = 0; i < 3; ++i) qualifiers.push_back("q" + FormatUint64(random.Below(3)));
    RowWrite write;
    write.row = row;
    for (uint64_t left = random.OneIn(3) ? 3 : 1; left > 0; --left) {
      CellOp op = Put(families[random.Below(4)], qualifiers[left - 1], value);
      if (random.OneIn(3))
        op.timestamp_micros = clock.now_micros - static_cast<int64_t>(random.Below(4));
      if (random.OneIn(8)) op.ttl_micros = random.Below(5000);
      write.ops.push_back(op);
    }
    const bool plain = random.OneIn(2);
    const bool has_options = std::any_of(write.ops.begin(), write.ops.end(), [](const CellOp& op) {
      return op.timestamp_micros || op.ttl_micros;
    });
    if (plain && !has_options) {
      REQUIRE(PutCells(table, row, write.ops).ok());
    } else if (plain) {
      REQUIRE(store->Write(table, write).ok());
    } else {
      if (random.OneIn(3)) write.ops[0].kind = CellOp::Kind::kAppend;
      if (random.OneIn(3)) write.ops[0].kind = CellOp::Kind::kIncrement;
      RowWriteResult result;
      (void)store->Write(table, write, &result).ok();  // some sums are refused
    }
    if (random.OneIn(50)) store->Sweep(kUnlimited);
    if (step % 300 != 0) continue;
    const std::string before = Dump(table);
    const std::string digest = store->Digest();
    REQUIRE(store->Reload(store->options().journal).ok());
    CHECK(Dump(Find("t")) == before);
    CHECK(store->Digest() == digest);
  }
}

std::string WithoutTimestamps(const std::string& cells) {
  std::string text;
  bool in_timestamp = false;
  for (const char c : cells) {
    if (c == '@') in_timestamp = true;
    if (c == '=') in_timestamp = false;
    if (!in_timestamp) text.push_back(c);
  }
  return text;
}

TEST_CASE_METHOD(StoreFixture, "A put by names leaves what a write of the same leaves", "[store]") {
  const uint64_t seed = 20261126;
  INFO("seed " << seed);
  Random random(seed);
  FamilyOptions two;
  two.versions_max = 2;
  FamilyOptions number;
  number.type = ValueType::kI64;
  FamilyOptions sum;
  sum.type = ValueType::kI64;
  sum.fold = FoldKind::kSum;
  const std::vector<NewFamily> families{{"f", {}}, {"two", two}, {"n", number}, {"sum", sum}};
  Table& by_names = Make("names", "bytes", families);
  Table& by_write = Make("write", "bytes", families);
  store->set_value_bytes_max(9);
  uint64_t refused = 0;
  for (int step = 0; step < 4000; ++step) {
    clock.now_micros += 1;
    store->SetTurnTime();
    // Few names and many, in families that are there and one that is not.
    const std::string row(random.Below(3), 'r');
    std::vector<std::string> texts;
    std::vector<CellOp> ops;
    const uint64_t count = random.OneIn(2) ? 1 : 1 + random.Below(5);
    for (uint64_t i = 0; i < count; ++i) {
      texts.push_back(random.OneIn(2) ? "q" : std::string(random.Below(30), 'q') + ":");
      const uint64_t kind = random.Below(100);
      texts.push_back(kind == 0   ? "no number"
                      : kind == 1 ? "much too long"
                                  : FormatUint64(random.Below(1000)));
    }
    for (uint64_t i = 0; i < count; ++i) {
      const std::string_view family =
          random.OneIn(80) ? std::string_view("g") : families[random.Below(4)].name;
      ops.push_back(Put(family, texts[2 * i], texts[2 * i + 1]));
    }
    const Status put = PutCells(by_names, row, ops);
    const Status written = Do(by_write, row, ops).status();
    std::string expected = written.ToString();
    if (const size_t name = expected.find("table 'write'"); name != std::string::npos)
      expected.replace(name, 13, "table 'names'");
    REQUIRE(put.ToString() == expected);
    refused += put.ok() ? 0 : 1;
  }
  CHECK(refused > 100);
  CHECK(by_names.cells() > 100);
  CHECK(by_names.cells() == by_write.cells());
  CHECK(WithoutTimestamps(All(by_names)) == WithoutTimestamps(All(by_write)));
}

TEST_CASE_METHOD(StoreFixture, "A put of one cell changes nothing where it is refused", "[store]") {
  FamilyOptions numbers;
  numbers.type = ValueType::kI64;
  Table& table = Make("t", "u32", {{"f", {}}, {"n", numbers}});
  const auto put = [&](std::string_view row, std::string_view column, std::string_view value) {
    return PutCell(table, row, column, value).ToString();
  };
  REQUIRE(PutCell(table, "1", "f:q", "value").ok());
  const Lsn lsn = store->last_lsn();
  const std::string before = Dump(table);
  store->set_value_bytes_max(10);
  CHECK_THAT(put("x", "f:q", "v"), Catch::StartsWith("BADKEY"));
  CHECK_THAT(put("2", "g:q", "v"), Catch::StartsWith("NOFAMILY"));
  CHECK_THAT(put("2", "f:q", "more than ten bytes"), Catch::StartsWith("TOOLARGE"));
  CHECK_THAT(put("2", "n:q", "no number"), Catch::Contains("column 'n:q'"));
  CHECK(store->last_lsn() == lsn);
  CHECK(Dump(table) == before);

  // All or nothing with what else the transaction holds; the refused one leaves no trace in it.
  store->BeginTransaction(Store::Atomicity::kAll);
  CHECK(PutCell(table, "2", "f:q", "other").ok());
  CHECK_FALSE(PutCell(table, "3", "g:q", "other").ok());
  CHECK(PutCell(table, "4", "n:q", "17").ok());
  store->RollBackTransaction();
  CHECK(Dump(table) == before);
  store->BeginTransaction(Store::Atomicity::kAll);
  CHECK(PutCell(table, "2", "f:q", "other").ok());
  CHECK_FALSE(PutCell(table, "3", "g:q", "other").ok());
  store->CommitTransaction();
  CHECK(Dump(table) != before);
  const std::string after = Dump(table);
  REQUIRE(store->Reload(store->options().journal).ok());
  CHECK(Dump(Find("t")) == after);
}

TEST_CASE_METHOD(StoreFixture, "A put of one cell counts record numbers", "[store]") {
  Table& table = Make("t", "recno", {{"f", {}}});
  REQUIRE(PutCell(table, "7", "f:q", "value").ok());
  RowWrite write;
  write.row = "*";
  write.allocates = true;
  write.ops = {Put("f", "q", "next")};
  Result<RowWriteResult> next = store->Write(table, write);
  REQUIRE(next.ok());
  CHECK(next->row == "8");
}

TEST_CASE_METHOD(StoreFixture, "A version that the next put drops leaves at once", "[store]") {
  FamilyOptions two;
  two.versions_max = 2;
  Table& table = Make("t", "bytes", {{"f", two}});
  for (int64_t ts = 1; ts <= 5; ++ts) {
    REQUIRE(Do(table, "r", {Put("f", "c", FormatInt64(ts), ts)}).ok());
  }
  CHECK(table.cells() == 2);
  CHECK(table.counters().families[0].reclaimed == 3);
  // One in the middle is nobody's successor, and one that is there already takes no place.
  REQUIRE(Do(table, "r", {Put("f", "c", "x", 5)}).ok());
  CHECK(All(table) == "|r f:c@5=x @4=4");
  REQUIRE(Do(table, "r", {Put("f", "c", "y", 3)}).ok());
  CHECK(All(table) == "|r f:c@5=x @4=4");
  // Of several puts each is newer than what was there before all of them.
  REQUIRE(
      Do(table, "r", {Put("f", "c", "8", 8), Put("f", "c", "7", 7), Put("f", "c", "8", 8)}).ok());
  CHECK(All(table) == "|r f:c@8=8 @7=7");
  REQUIRE(Do(table, "r", {Put("f", "c", "8", 8), Put("f", "c", "9", 9)}).ok());
  CHECK(All(table) == "|r f:c@9=9 @8=8");
}

TEST_CASE_METHOD(StoreFixture, "Rows are deleted by range, in slices, and counted exactly",
                 "[store]") {
  FamilyOptions other_group;
  other_group.group = "g";
  Table& table = Make("t", "i64", {{"f", {}}, {"g", other_group}});
  for (int64_t i = -50; i < 50; ++i) {
    const std::string row = FormatInt64(i);
    if (i % 3 != 0) REQUIRE(Do(table, row, {Put("f", "a", "1"), Put("f", "b", "2")}).ok());
    if (i % 3 != 1) REQUIRE(Do(table, row, {Put("g", "a", "1")}).ok());
  }
  CHECK(table.counters().rows == 100);
  RowOptions rows;
  rows.rows.push_back({RowSelector::Kind::kRange, "[-10", "(10"});
  Result<std::unique_ptr<SlicedChange>> change = store->DeleteRows(table, rows);
  REQUIRE(change.ok());
  int steps = 0;
  for (; !(*change)->done(); ++steps) REQUIRE((*change)->Step(7).ok());
  CHECK(steps > 3);
  CHECK((*change)->rows() == 20);
  CHECK(table.counters().rows == 80);
  CHECK(Text(table, rows, {}).empty());
  const std::string digest = store->Digest();
  REQUIRE(store->Reload(store->options().journal).ok());
  CHECK(store->Digest() == digest);
}

TEST_CASE_METHOD(StoreFixture, "A scan has the memory of the one before and none of its options",
                 "[store]") {
  FamilyOptions in_group;
  in_group.group = "g2";
  Table& wide = Make("wide", "bytes", {{"f", {}}, {"g", in_group}});
  Table& narrow = Make("narrow", "u8", {{"f", {}}});
  for (const std::string row : {"a", "b", "c"}) {
    REQUIRE(
        Do(wide, row, {Put("f", "x", row, 1), Put("f", "x", row, 2), Put("g", "y", row, 3)}).ok());
  }
  REQUIRE(Do(narrow, "7", {Put("f", "z", "v", 4)}).ok());
  RowOptions one;
  one.rows = {{RowSelector::Kind::kRow, "b", {}}};
  RowOptions several;
  several.rows = {{RowSelector::Kind::kRow, "c", {}},
                  {RowSelector::Kind::kRow, "missing", {}},
                  {RowSelector::Kind::kRow, "a", {}},
                  {RowSelector::Kind::kRow, "c", {}}};
  RowOptions reversed = several;
  reversed.reverse = true;
  CellOptions picky;
  picky.columns = {{ColumnSelector::Kind::kColumn, "f", "x", {}}};
  picky.versions_max = kUnlimited;
  picky.columns_reverse = true;
  CellOptions filtered;
  filtered.filter = "strip";
  CellOptions unknown;
  unknown.columns = {{ColumnSelector::Kind::kFamily, "none", {}, {}}};
  for (int round = 0; round < 2; ++round) {
    REQUIRE(Text(wide, reversed, picky) == "|c f:x@2=c @1=c|a f:x@2=a @1=a");
    REQUIRE(Text(wide, one, {}) == "|b f:x@2=b g:y@3=b");
    REQUIRE(Text(narrow, {}, {}) == "|7 f:z@4=v");
    REQUIRE(Text(wide, several, {}, 1) == "|a f:x@2=a g:y@3=a|c f:x@2=c g:y@3=c");
    REQUIRE(Text(wide, one, filtered) == "|b f:x@2= @1= g:y@3=");
    REQUIRE(Text(wide, one, unknown).starts_with("NOFAMILY"));
    REQUIRE(Text(wide, one, {}) == "|b f:x@2=b g:y@3=b");
    REQUIRE(Text(wide, {}, {}) == "|a f:x@2=a g:y@3=a|b f:x@2=b g:y@3=b|c f:x@2=c g:y@3=c");
  }
  REQUIRE(store->DropTable(narrow).ok());
  REQUIRE(Text(wide, one, {}) == "|b f:x@2=b g:y@3=b");
}

TEST_CASE_METHOD(StoreFixture, "A filter that looks at megabytes pauses between them", "[store]") {
  Table& table = Make("t", "bytes", {{"f", {}}});
  const std::string megabyte(1024 * 1024, 'a');
  constexpr int kRows{8};
  for (int i = 0; i < kRows; ++i) {
    REQUIRE(Do(table, "r" + std::to_string(i), {Put("f", "x", megabyte)}).ok());
  }
  CellOptions cells;
  cells.filter = "value ~ \"(a*)*b\"";
  Result<std::unique_ptr<Scan>> scan = store->ScanRows(table, {}, cells, nullptr);
  REQUIRE(scan.ok());
  int pauses = 0;
  for (;;) {
    (*scan)->SetBudget(1000);  // less than a megabyte comes to
    const ScanStep step = (*scan)->Next();
    if (step == ScanStep::kEnd) break;
    REQUIRE(step == ScanStep::kPause);
    ++pauses;
    (*scan)->Detach();
  }
  REQUIRE(pauses == kRows);
}

// Puts, deletes and scans with every kind of choice against a sorted map.
TEST_CASE_METHOD(StoreFixture, "Scans with limits agree with a naive model", "[store][model]") {
  const uint64_t seed = 20260601;
  INFO("seed " << seed);
  Random random(seed);
  FamilyOptions in_group;
  in_group.group = "g2";
  Table& table = Make("t", "bytes", {{"b", {}}, {"c", in_group}});
  REQUIRE(store->AddFamily(table, {"a", {}}).ok());
  using Key = std::tuple<std::string, std::string, std::string, int64_t>;  // ts negated
  std::map<Key, std::string> model;
  const std::vector<std::string> families{"a", "b", "c"};
  for (int step = 0; step < 3000; ++step) {
    const std::string row = "r" + FormatUint64(random.Below(12));
    const std::string family = families[random.Below(3)];
    const std::string qualifier = "q" + FormatUint64(random.Below(6));
    if (random.OneIn(6)) {
      CellOp drop;
      drop.kind = CellOp::Kind::kDelete;
      drop.selector = {ColumnSelector::Kind::kColumn, family, qualifier, {}};
      const Result<RowWriteResult> done = Do(table, row, {drop});
      REQUIRE(done.ok());
      const uint64_t erased = std::erase_if(model, [&](const auto& cell) {
        return std::get<0>(cell.first) == row && std::get<1>(cell.first) == family &&
               std::get<2>(cell.first) == qualifier;
      });
      REQUIRE(done->results[0].count == erased);
    } else {
      const auto ts = static_cast<int64_t>(random.Below(5));
      const std::string value = FormatInt64(step);
      REQUIRE(Do(table, row, {Put(family, qualifier, value, ts)}).ok());
      model[{row, family, qualifier, -ts}] = value;
    }
    if (step % 10 != 0) continue;
    CellOptions cells;
    if (random.OneIn(2)) cells.versions_max = 1 + random.Below(3);
    cells.columns_reverse = random.OneIn(2);
    cells.columns_skip = random.Below(3);
    if (random.OneIn(2)) cells.columns_max = 1 + random.Below(4);
    RowOptions rows;
    rows.reverse = random.OneIn(2);
    // The model's answer.
    std::map<std::string, std::vector<std::pair<std::string, std::vector<std::string>>>> by_row;
    for (const auto& [key, value] : model) {
      auto& columns = by_row[std::get<0>(key)];
      const std::string column = std::get<1>(key) + ":" + std::get<2>(key);
      if (columns.empty() || columns.back().first != column) columns.push_back({column, {}});
      if (columns.back().second.size() < cells.versions_max.value_or(1)) {
        columns.back().second.push_back("@" + FormatInt64(-std::get<3>(key)) + "=" + value);
      }
    }
    std::vector<std::string> lines;
    for (auto& [row_key, columns] : by_row) {
      if (cells.columns_reverse) std::reverse(columns.begin(), columns.end());
      std::string line;
      for (size_t i = cells.columns_skip; i < columns.size(); ++i) {
        if (i - cells.columns_skip >= cells.columns_max) break;
        line += " " + columns[i].first;
        for (size_t v = 0; v < columns[i].second.size(); ++v) {
          line += (v == 0 ? "" : " ") + columns[i].second[v];
        }
      }
      if (!line.empty()) lines.push_back("|" + row_key + line);
    }
    if (rows.reverse) std::reverse(lines.begin(), lines.end());
    std::string expected;
    for (const std::string& line : lines) expected += line;
    REQUIRE(Text(table, rows, cells) == expected);
    REQUIRE(Text(table, rows, cells, 1 + random.Below(20)) == expected);
    REQUIRE(table.counters().rows == by_row.size());
  }
}

}  // namespace store_test
