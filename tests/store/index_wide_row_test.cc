// Indexes over rows of many columns: a change is worked out from the columns that it touches, and
// the index is what an evaluation of all rows says all the same.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/text/number.h"
#include "store/requests.h"
#include "store/sliced_change.h"
#include "store/store.h"
#include "tests/store/index_fixture.h"

namespace index_wide_row_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)
using index_fixture::Fixture;

// Qualifiers, zero padded: "c0042".
std::string ColumnName(uint64_t number) {
  const std::string digits = FormatUint64(10'000 + number);
  return "c" + digits.substr(1);
}

CellOp Increment(std::string_view family, std::string_view qualifier) {
  CellOp op(CellPut{family, qualifier, "1"});
  op.kind = CellOp::Kind::kIncrement;
  return op;
}

CellOp Append(std::string_view family, std::string_view qualifier) {
  CellOp op(CellPut{family, qualifier, "+"});
  op.kind = CellOp::Kind::kAppend;
  return op;
}

CellOp Delete(ColumnSelector::Kind kind, std::string_view family, std::string_view first = {},
              std::string_view second = {}) {
  CellOp op;
  op.kind = CellOp::Kind::kDelete;
  op.selector = {kind, family, first, second};
  return op;
}

CellOp DeleteRow() {
  CellOp op;
  op.kind = CellOp::Kind::kDeleteRow;
  return op;
}

NewIndexColumn Family(std::string_view family, bool descending = false) {
  return {family, std::nullopt, std::nullopt, descending};
}

class WideRows : public Fixture {
 public:
  // Columns c0000 ... of family f.
  void Fill(const std::string& row, uint64_t width) {
    constexpr uint64_t kAtOnce{1000};
    std::vector<std::string> names;
    for (uint64_t i = 0; i < width; ++i) names.push_back(ColumnName(i));
    for (uint64_t from = 0; from < width; from += kAtOnce) {
      std::vector<CellOp> ops;
      for (uint64_t i = from; i < std::min(width, from + kAtOnce); ++i) {
        ops.push_back(Put("f", names[i], "value"));
      }
      REQUIRE(Do(Find("t"), row, std::move(ops)).ok());
    }
  }

  Index& IndexNamed(std::string_view name) {
    Table& table = Find("t");
    return *table.indexes()->Find(table.schema().FindIndex(name)->id);
  }

  struct Work {
    uint64_t evaluations{0};
    uint64_t cells{0};
    friend bool operator==(const Work&, const Work&) = default;
  };
  Work WorkOf(std::string_view index, const std::function<void()>& change) {
    const Work before{IndexNamed(index).evaluations(), IndexNamed(index).cells_evaluated()};
    change();
    return {IndexNamed(index).evaluations() - before.evaluations,
            IndexNamed(index).cells_evaluated() - before.cells};
  }

  uint64_t EntriesOf(std::string_view index) { return IndexNamed(index).entries().entries(); }

  void CreateIndex(const NewIndex& index) {
    const Status status = store->CreateIndex(Find("t"), index);
    if (!status.ok()) FAIL(status.ToString());
  }
};

TEST_CASE_METHOD(WideRows,
                 "A write costs an index of a family what it touches, however wide its row",
                 "[index]") {
  struct Case {
    const char* name;
    std::vector<CellOp> ops;
    uint64_t columns;  // touched, again where the ops come back to one
  };
  const std::string prefix = "c000";  // ten columns
  std::vector<Case> cases{
      {"a new column", {Put("f", "new", "v")}, 1},
      {"a column that is there", {Put("f", "c0003", "v")}, 1},
      {"a column of another family", {Put("g", "c0003", "v")}, 0},
      {"several columns",
       {Put("f", "c0003", "v"), Put("g", "x", "v"), Put("f", "c0005", "v"), Put("f", "n", "v")},
       3},
      {"an increment", {Increment("f", "number")}, 1},
      {"an append", {Append("f", "c0004")}, 1},
      {"a column and back to it",
       {Put("f", "c0006", "v"), Put("f", "c0007", "v"), Append("f", "c0006")},
       3},
      {"put and deleted", {Put("f", "m", "v"), Delete(ColumnSelector::Kind::kColumn, "f", "m")}, 2},
      {"a column deleted", {Delete(ColumnSelector::Kind::kColumn, "f", "c0008")}, 1},
      {"a column that is not there", {Delete(ColumnSelector::Kind::kColumn, "f", "none")}, 1},
      {"a range deleted", {Delete(ColumnSelector::Kind::kRange, "f", "[c0001", "(c0003")}, 2},
      {"a prefix deleted", {Delete(ColumnSelector::Kind::kPrefix, "f", prefix)}, 10},
  };
  CellOp expiring = Put("f", "c0009", "v");
  expiring.ttl_micros = 1'000'000;
  CellOp older = Put("f", "c0009", "v");
  older.timestamp_micros = 7;
  cases.insert(cases.begin(), {{"one that expires", {expiring}, 1}, {"an older one", {older}, 1}});
  for (const uint64_t versions : {uint64_t{0}, uint64_t{1}, uint64_t{3}}) {
    for (const uint64_t ttl_ms : {uint64_t{0}, uint64_t{86'400'000}}) {
      FamilyOptions options;
      options.versions_max = versions;
      options.ttl_ms = ttl_ms;
      (void)Make("t", {{"f", options}, {"g", {}}});
      CreateIndex({.name = "up", .on = {Family("f")}, .include = {}});
      CreateIndex({.name = "down", .on = {Family("f", true)}, .include = {}});
      Fill("narrow", 20);
      Fill("wide", 5000);
      for (const Case& one : cases) {
        INFO(one.name << ", VERSIONS " << versions << ", TTL " << ttl_ms);
        for (const std::string_view index : {"up", "down"}) {
          const auto write = [&](const std::string& row) {
            return WorkOf(index, [&] { REQUIRE(Do(Find("t"), row, one.ops).ok()); });
          };
          const Work narrow = write("narrow");
          const Work wide = write("wide");
          REQUIRE(wide == narrow);
          REQUIRE(wide.evaluations <= 2 * one.columns);
          REQUIRE(wide.cells <= 2 * 8 * one.columns);
        }
      }
      REQUIRE(store->VerifyIndexes().ok());
      REQUIRE(EntriesOf("up") == EntriesOf("down"));
      REQUIRE(store->DropTable(Find("t")).ok());
    }
  }
}

TEST_CASE_METHOD(WideRows, "Bringing a wide row in costs an index a look at each column",
                 "[index]") {
  constexpr uint64_t kWidth{3000};
  (void)Make("t", {{"f", {}}});
  CreateIndex({.name = "i", .on = {Family("f")}, .include = {}});
  // Three writes, the columns of each come in order: none was there, then all are looked at.
  REQUIRE(WorkOf("i", [&] { Fill("a", kWidth); }) == Work{2 * 3, kWidth});
  REQUIRE(EntriesOf("i") == kWidth);
  // The same again: each of them was there, and is looked at before and afterwards.
  REQUIRE(WorkOf("i", [&] { Fill("a", kWidth); }).evaluations == 2 * kWidth);
  REQUIRE(EntriesOf("i") == kWidth);
  // What comes between columns is in order as far as the next one of them.
  const auto evaluations = [&](std::vector<CellOp> ops) {
    return WorkOf("i", [&] { REQUIRE(Do(Find("t"), "a", ops).ok()); }).evaluations;
  };
  REQUIRE(evaluations({Put("f", "c0001a", "v"), Put("f", "c0001b", "v"), Put("f", "c0001a", "w"),
                       Put("f", "c0001c", "v"), Put("f", "c0001b", "w")}) == 2);
  REQUIRE(evaluations({Put("f", "c0002a", "v"), Put("f", "c0003a", "v")}) == 4);
  REQUIRE(evaluations({Put("f", "c0004b", "v"), Put("f", "c0004a", "v")}) == 4);
  REQUIRE(evaluations({Put("f", "x", "v"), Put("f", "y", "v"), Put("f", "z", "v")}) == 2);
  REQUIRE(evaluations({Put("f", "x", "w"), Put("f", "y", "w")}) == 4);
  REQUIRE(store->VerifyIndexes().ok());
  REQUIRE(Do(Find("t"), "a", {DeleteRow()}).ok());
  Fill("a", kWidth);
  // It goes with one look at each, in one piece.
  REQUIRE(WorkOf("i", [&] { REQUIRE(Do(Find("t"), "a", {DeleteRow()}).ok()); }) == Work{2, kWidth});
  REQUIRE(EntriesOf("i") == 0);
}

TEST_CASE_METHOD(WideRows, "What retention reclaims in a wide row costs its columns alone",
                 "[index]") {
  constexpr uint64_t kWidth{3000};
  constexpr uint64_t kSlice{100};
  FamilyOptions aging;
  aging.ttl_ms = 10'000;
  (void)Make("t", {{"f", aging}});
  CreateIndex({.name = "i", .on = {Family("f")}, .include = {}});
  Fill("a", kWidth);
  SetTime(clock.now_micros + 20'000'000);
  uint64_t evaluated = 0;
  while (store->sweeper_stats().passes == 0) {
    const Work work = WorkOf("i", [&] { (void)store->Sweep(kSlice); });
    REQUIRE(work.cells <= 4 * kSlice);
    evaluated += work.cells;
  }
  REQUIRE(evaluated == kWidth);
  REQUIRE(EntriesOf("i") == 0);
  REQUIRE(store->VerifyIndexes().ok());
}

TEST_CASE_METHOD(WideRows, "Columns that an index neither orders by nor holds are written past it",
                 "[index]") {
  (void)Make("t", {{"f", {}}, {"g", {}}});
  CreateIndex({.name = "i", .on = {On("f", "c0001"), On("g", "y")}, .include = {On("f", "c0002")}});
  CreateIndex({.name = "all", .on = {On("f", "c0001")}, .include = {Family("f")}});
  Fill("r", 100);
  REQUIRE(Do(Find("t"), "r", {Put("g", "y", "1")}).ok());
  const auto work = [&](std::string_view index, std::vector<CellOp> ops) {
    return WorkOf(index, [&] { REQUIRE(Do(Find("t"), "r", ops).ok()); }).evaluations;
  };
  REQUIRE(work("i", {Put("f", "c0003", "v"), Put("g", "x", "v")}) == 0);
  REQUIRE(work("i", {Delete(ColumnSelector::Kind::kColumn, "f", "c0003")}) == 0);
  REQUIRE(work("i", {Delete(ColumnSelector::Kind::kRange, "f", "(c0002", "+")}) == 0);
  REQUIRE(work("i", {Put("f", "c0001", "v")}) == 2);
  REQUIRE(work("i", {Put("f", "c0002", "v"), Put("g", "y", "v"), Put("f", "c0001", "w")}) == 2);
  REQUIRE(work("i", {Delete(ColumnSelector::Kind::kPrefix, "f", "c")}) == 2);
  REQUIRE(work("all", {Put("f", "c0003", "v")}) == 2);
  REQUIRE(work("all", {Put("g", "y", "v")}) == 0);
  REQUIRE(store->VerifyIndexes().ok());
}

TEST_CASE_METHOD(WideRows, "An index of rows looks at cells when those change that it holds",
                 "[index]") {
  (void)Make("t", {{"f", {}}, {"g", {}}, {"h", {}}});
  CreateIndex({.name = "i", .on = {}, .include = {Family("f"), On("g", "y")}});
  CreateIndex({.name = "keys", .on = {}, .include = {}});
  Table& table = Find("t");
  const auto cells = [&](const std::string& row, std::vector<CellOp> ops) {
    return WorkOf("i", [&] { REQUIRE(Do(table, row, ops).ok()); }).cells;
  };
  // A row that comes with a cell which is not held has an entry, and goes with it.
  REQUIRE(cells("a", {Put("h", "z", "v")}) == 0);
  REQUIRE(EntriesOf("i") == 1);
  REQUIRE(cells("a", {Delete(ColumnSelector::Kind::kColumn, "h", "z")}) == 0);
  REQUIRE(EntriesOf("i") == 0);
  Fill("a", 200);
  REQUIRE(cells("a", {Put("h", "z", "v"), Put("g", "x", "v")}) == 0);
  // What the entry holds is known before the change, and read after it.
  REQUIRE(cells("a", {Put("h", "y", "v"), Put("g", "y", "v")}) == 201);
  REQUIRE(cells("a", {Put("f", "new", "v")}) == 202);
  REQUIRE(cells("a", {Delete(ColumnSelector::Kind::kFamily, "f")}) == 1);
  REQUIRE(cells("a", {Delete(ColumnSelector::Kind::kFamily, "h"), Put("h", "y", "v")}) == 0);
  REQUIRE(cells("a", {DeleteRow(), Put("h", "z", "v")}) == 0);
  REQUIRE(EntriesOf("i") == 1);
  REQUIRE(store->VerifyIndexes().ok());
  REQUIRE(cells("a", {DeleteRow()}) == 0);
  REQUIRE(EntriesOf("i") == 0);
  REQUIRE(EntriesOf("keys") == 0);
  // More than an entry holds is not read to its end.
  Fill("b", 20'000);
  const uint64_t of_many = cells("b", {Put("g", "y", "v")});
  REQUIRE(of_many > 1000);
  REQUIRE(of_many < 5000);
  REQUIRE(cells("b", {Put("f", "c0005", "v")}) == of_many);
  REQUIRE(cells("b", {Delete(ColumnSelector::Kind::kRange, "f", "[c0100", "+")}) == 101);
  REQUIRE(store->VerifyIndexes().ok());
}

TEST_CASE_METHOD(WideRows, "A row of very many columns is built in slices while it is written",
                 "[index]") {
  constexpr uint64_t kWidth{9000};
  constexpr uint64_t kSlice{100};
  for (const bool unique : {false, true}) {
    const uint64_t seed = unique ? 31 : 32;
    INFO("seed " << seed);
    Random random(seed);
    (void)Make("t", {{"f", {}}, {"g", {}}});
    Fill("wide", kWidth);
    REQUIRE(Do(Find("t"), "another", {Put("f", "mine", "v"), Put("g", "y", "v")}).ok());
    CreateIndex({.name = "i", .on = {Family("f", !unique)}, .include = {}, .unique = unique});
    REQUIRE(store->DescribeIndex(Find("t"), "i")->state == "building");
    uint64_t slices = 0;
    for (; !IndexNamed("i").built(); ++slices) {
      REQUIRE(WorkOf("i", [&] { (void)store->Sweep(kSlice); }).cells <= kSlice + 1);
      const std::string name = ColumnName(random.Below(kWidth));
      const std::string end = "(" + name + "5";
      const std::string begin = "[" + name;
      const std::string fresh = name + "new";
      const std::string low = ColumnName(slices);
      const std::string high = ColumnName(kWidth - 1 - slices);
      std::vector<CellOp> ops{Put("f", fresh, "v"), Put("f", low, "v"), Put("f", high, "v")};
      if (random.OneIn(2)) ops.push_back(Delete(ColumnSelector::Kind::kRange, "f", begin, end));
      if (random.OneIn(9)) {
        ops.push_back(Delete(ColumnSelector::Kind::kPrefix, "f",
                             std::string_view(name).substr(0, name.size() - 2)));
      }
      REQUIRE(Do(Find("t"), "wide", ops).ok());
      if (unique && random.OneIn(3)) {
        REQUIRE(Do(Find("t"), "other", {Put("f", ColumnName(slices / 2), "v")}).code() ==
                ErrorCode::kNotUnique);
      }
      if (random.OneIn(20)) {  // what comes behind it is a larger slice
        store->BeginTransaction(Store::Atomicity::kAll);
        REQUIRE(Do(Find("t"), "wide", {DeleteRow(), Put("f", name, "w")}).ok());
        store->RollBackTransaction();
      }
    }
    REQUIRE(slices > 10);
    REQUIRE(store->VerifyIndexes().ok());
    REQUIRE(store->DescribeIndex(Find("t"), "i")->state == "ready");
    REQUIRE(store->DropTable(Find("t")).ok());
  }
}

TEST_CASE_METHOD(WideRows, "UNIQUE on the qualifiers of a family is asked of those that come",
                 "[index]") {
  (void)Make("t", {{"f", {}}});
  CreateIndex({.name = "u", .on = {Family("f")}, .include = {}, .unique = true});
  Table& table = Find("t");
  Fill("a", 50);
  const std::string before = store->Digest();
  REQUIRE(Do(table, "b", {Put("f", "mine", "v"), Put("f", "c0007", "v")}).code() ==
          ErrorCode::kNotUnique);
  // A conflict in the middle of ops that go on elsewhere is found, too.
  REQUIRE(
      Do(table, "b", {Put("f", "c0007", "v"), Put("f", "mine", "v"), Append("f", "mine")}).code() ==
      ErrorCode::kNotUnique);
  REQUIRE(store->Digest() == before);
  REQUIRE(EntriesOf("u") == 50);
  // Gone before the command ends, it is no conflict.
  REQUIRE(Do(table, "b",
             {Put("f", "c0007", "v"), Put("f", "mine", "v"),
              Delete(ColumnSelector::Kind::kColumn, "f", "c0007")})
              .ok());
  REQUIRE(Do(table, "a", {Delete(ColumnSelector::Kind::kRange, "f", "[c0007", "[c0009")}).ok());
  REQUIRE(Do(table, "b", {Put("f", "c0007", "v"), Put("f", "c0009", "v")}).ok());
  REQUIRE(Do(table, "a", {Put("f", "c0006", "v")}).ok());
  REQUIRE(Do(table, "a", {DeleteRow(), Put("f", "c0009", "v")}).code() == ErrorCode::kNotUnique);
  REQUIRE(EntriesOf("u") == 50);
  REQUIRE(store->VerifyIndexes().ok());
  Open();
  REQUIRE(EntriesOf("u") == 50);
  REQUIRE(store->VerifyIndexes().ok());
}

TEST_CASE_METHOD(WideRows,
                 "While a UNIQUE index is built again its own columns wait, others do not",
                 "[index]") {
  Table& table = Make("t", {{"f", {}}});
  CreateIndex({.name = "u", .on = {On("f", "x")}, .include = {On("f", "y")}, .unique = true});
  constexpr uint64_t kRows{6000};
  for (uint64_t i = 0; i < kRows; ++i) {
    REQUIRE(Do(table, FormatUint64(10'000 + i), {Put("f", "x", FormatUint64(i))}).ok());
  }
  FamilyOptions aging;
  aging.ttl_ms = 86'400'000;
  auto change = store->AlterFamily(table, {"f", aging}, nullptr);
  REQUIRE(change.ok());
  while (table.schema().FindFamily("f")->policy == RetentionPolicy()) {
    REQUIRE((*change)->Step(200).ok());
  }
  REQUIRE_FALSE(IndexNamed("u").built());
  for (const std::string_view row : {"10000", "15999", "new"}) {
    REQUIRE(Do(table, row, {Put("f", "x", "v")}).code() == ErrorCode::kTryAgain);
    // Of a row that is not there nothing is deleted.
    REQUIRE(Do(table, row, {Delete(ColumnSelector::Kind::kFamily, "f")}).ok() == (row == "new"));
    REQUIRE(Do(table, row, {Put("f", "z", "v"), Put("f", "y", "v")}).ok());
    REQUIRE(Do(table, row, {Delete(ColumnSelector::Kind::kColumn, "f", "z")}).ok());
  }
  while (!(*change)->done()) REQUIRE((*change)->Step(200).ok());
  REQUIRE(store->VerifyIndexes().ok());
}

// --- random changes of wide rows

class WideModel : public WideRows {
 public:
  static constexpr uint64_t kColumns{60};
  static constexpr uint64_t kRows{5};

  void NewRound() {
    std::vector<NewFamily> families;
    for (const char* name : {"f", "g"}) {
      FamilyOptions options;
      options.versions_max = random.Below(4);
      options.ttl_ms = random.OneIn(2) ? 0 : 500 + random.Below(3000);
      families.push_back({name, options});
    }
    (void)Make("t", families);
    Many();
    CreateIndex({.name = "up", .on = {Family("f")}, .include = {}});
    CreateIndex({.name = "down", .on = {Family("f", true)}, .include = {}});
    CreateIndex({.name = "g", .on = {Family("g")}, .include = {}});
    Many();
    CreateIndex({.name = "one", .on = {On("f", "c0003")}, .include = {On("f", "c0005")}});
    CreateIndex({.name = "two",
                 .on = {On("f", "c0003"), On("g", "c0004", std::nullopt, true)},
                 .include = {Family("f")}});
    CreateIndex({.name = "rows", .on = {}, .include = {Family("g"), On("f", "c0001")}});
    if (random.OneIn(2)) {
      unique = On("g", "u");
      CreateIndex({.name = "u", .on = {On("g", "u")}, .include = {}, .unique = true});
    }
  }

  std::string_view Keep(std::string text) {
    texts.push_back(std::move(text));
    return texts.back();
  }
  std::string_view Column() { return Keep(ColumnName(random.Below(kColumns))); }
  std::string_view FamilyName() { return random.OneIn(3) ? "g" : "f"; }

  CellOp RandomPut() {
    CellOp op = Put(FamilyName(), Column(), Keep(FormatUint64(random.Below(5))));
    if (random.OneIn(30)) op = Put("g", "u", Keep(FormatUint64(random.Below(8))));
    if (random.OneIn(3)) {
      op.timestamp_micros = clock.now_micros - static_cast<int64_t>(random.Below(3'000'000));
    }
    if (random.OneIn(20)) op.timestamp_micros = 0;
    if (random.OneIn(5)) op.ttl_micros = 1 + random.Below(2'000'000);
    return op;
  }
  CellOp RandomDelete() {
    using Kind = ColumnSelector::Kind;
    const std::string_view family = FamilyName();
    CellOp op;
    switch (random.Below(12)) {
      case 0:
        op = DeleteRow();
        break;
      case 1:
        op = Delete(Kind::kFamily, family);
        break;
      case 2:
      case 3: {
        const uint64_t tens = random.Below(kColumns / 10);
        op = Delete(Kind::kPrefix, family, Keep(ColumnName(tens * 10).substr(0, 4)));
        break;
      }
      case 4:
      case 5: {
        const std::string min = std::string(1, "[("[random.Below(2)]) + std::string(Column());
        const std::string max = std::string(1, "[("[random.Below(2)]) + std::string(Column());
        op = Delete(Kind::kRange, family, random.OneIn(8) ? "-" : Keep(min),
                    random.OneIn(8) ? "+" : Keep(max));
        break;
      }
      default:
        op = Delete(Kind::kColumn, family, Column());
    }
    if (random.OneIn(2)) {
      op.time.min_micros = clock.now_micros - static_cast<int64_t>(random.Below(2'000'000));
    }
    return op;
  }
  CellOp RandomOp() {
    const uint64_t which = random.Below(20);
    if (which < 12) return RandomPut();
    if (which < 17) return RandomDelete();
    return which == 17 ? Append(FamilyName(), Column()) : Increment(FamilyName(), Column());
  }
  // Any error leaves everything as it was.
  void Change() {
    texts.clear();
    texts.reserve(200);
    RowWrite write;
    write.row = Keep("row" + FormatUint64(random.Below(kRows)));
    const uint64_t count = random.OneIn(10) ? 30 : 1 + random.Below(4);
    for (uint64_t n = count; n > 0; --n) write.ops.push_back(RandomOp());
    if (random.OneIn(4)) {
      write.conditions.push_back(
          {Predicate::Kind::kColumnExists, FamilyName(), Column(), CompareOp::kEq, {}});
      for (uint64_t n = random.Below(3); n > 0; --n) write.else_ops.push_back(RandomOp());
    }
    const Status status = store->Write(Find("t"), write).status();
    if (status.ok()) return;
    const bool known =
        status.code() == ErrorCode::kNotUnique || status.code() == ErrorCode::kWrongType;
    if (!known) FAIL(status.ToString());
  }
  void Many() {
    for (int i = 0; i < 30; ++i) Change();
  }
  void Rollback() {
    store->BeginTransaction(Store::Atomicity::kAll);
    Change();
    if (random.OneIn(4)) REQUIRE(store->TruncateTable(Find("t")).ok());
    if (random.OneIn(4)) REQUIRE(store->DropIndex(Find("t"), "up").ok());
    Change();
    store->RollBackTransaction();
  }
  void Alter() {
    FamilyOptions options;
    options.ttl_ms = random.OneIn(2) ? 0 : 500 + random.Below(3000);
    options.versions_max = random.Below(4);
    auto change = store->AlterFamily(Find("t"), {FamilyName(), options}, nullptr);
    REQUIRE(change.ok());
    while (!(*change)->done()) {
      REQUIRE((*change)->Step(20).ok());
      if (!(*change)->done() && unique.family.empty()) Change();
    }
    while (store->Sweep(1000)) {
    }
  }
  void Other() {
    switch (random.Below(12)) {
      case 0:
        if (random.OneIn(2)) REQUIRE(store->journal().SaveNow().ok());
        return Open();
      case 1: {
        RowOptions rows;
        rows.rows.push_back({RowSelector::Kind::kRange, "[row1", "(row3"});
        auto change = store->DeleteRows(Find("t"), rows);
        REQUIRE(change.ok());
        while (!(*change)->done()) REQUIRE((*change)->Step(3).ok());
        return;
      }
      case 2:
      case 3:
        (void)store->Sweep(10 + random.Below(100));
        return;
      case 4:
        return Rollback();
      case 5:
        store->BeginTransaction(Store::Atomicity::kRedis);
        Change();
        Change();
        return store->CommitTransaction();
      case 6:
        return Alter();
      case 7:
        return SetTime(clock.now_micros - static_cast<int64_t>(random.Below(400'000)));
      default:
        return SetTime(clock.now_micros + static_cast<int64_t>(random.Below(800'000)));
    }
  }

  // The entries of the indexes of families, from a scan of the table: "c0001 row1 ..."
  std::string Expected(std::string_view family, bool descending) {
    Result<std::unique_ptr<Scan>> scan = store->ScanRows(Find("t"), {}, {}, nullptr);
    REQUIRE(scan.ok());
    std::map<std::string, std::vector<std::string>> rows_of;
    std::string row;
    for (ScanStep step = (*scan)->Next(); step != ScanStep::kEnd; step = (*scan)->Next()) {
      if (step == ScanStep::kRow) row = (*scan)->row_text();
      if (step != ScanStep::kCell || (*scan)->cell().family != family) continue;
      rows_of[std::string((*scan)->cell().qualifier_text)].push_back(row);
    }
    store->EndScan(*std::move(scan));
    std::vector<std::string> pieces;
    for (const auto& [qualifier, rows] : rows_of) {
      std::string& piece = pieces.emplace_back();
      for (const std::string& one : rows) piece += " " + one;
    }
    if (descending) std::reverse(pieces.begin(), pieces.end());
    std::string text;
    for (const std::string& piece : pieces) text += piece;
    return text;
  }
  void Check() {
    const Status verified = store->VerifyIndexes();
    if (!verified.ok()) FAIL(verified.ToString());
    Table& table = Find("t");
    REQUIRE(Rows(table, "up") == Expected("f", false));
    REQUIRE(Rows(table, "down") == Expected("f", true));
    REQUIRE(Rows(table, "g") == Expected("g", false));
  }

  Random random{0};
  NewIndexColumn unique;
  std::vector<std::string> texts;
};

TEST_CASE_METHOD(WideModel, "Partial changes of wide rows leave every index what all rows say",
                 "[index][model]") {
  constexpr int kRounds{12};
  constexpr int kSteps{600};
  for (int round = 0; round < kRounds; ++round) {
    const auto seed = static_cast<uint64_t>(7000 + round);
    INFO("seed " << seed);
    random = Random(seed);
    unique = {};
    NewRound();
    for (int step = 0; step < kSteps; ++step) {
      INFO("step " << step);
      if (random.OneIn(4)) {
        Other();
      } else {
        Change();
      }
      Check();
    }
    REQUIRE(store->DropTable(Find("t")).ok());
  }
}

}  // namespace index_wide_row_test
