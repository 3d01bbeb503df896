// Indexes through the store: at every moment an index is a sort of what the table says, whatever
// was written, deleted, expired, rolled back, or restarted.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "base/random.h"
#include "base/text/number.h"
#include "store/requests.h"
#include "store/sliced_change.h"
#include "store/store.h"
#include "tests/store/index_fixture.h"

namespace store_index_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)
using index_fixture::Fixture;

TEST_CASE_METHOD(Fixture, "The call centre: customers by phone, the last calls of a customer",
                 "[index]") {
  Table& calls = Make("calls", {{"c", {}}});
  REQUIRE(store
              ->CreateIndex(calls, {.name = "by-customer",
                                    .on = {On("c", "customer", ValueType::kI64),
                                           On("c", "date", std::nullopt, true)},
                                    .include = {}})
              .ok());
  const auto call = [&](std::string_view id, std::string_view customer, std::string_view date) {
    CellOp who = Put("c", "customer", customer);
    who.type = ValueType::kI64;
    REQUIRE(Do(calls, id, {who, Put("c", "date", date)}).ok());
  };
  call("1", "1", "2024-01-01");
  call("2", "2", "2024-01-02");
  call("3", "1", "2024-01-03");
  call("4", "10", "2024-01-04");
  call("5", "1", "2024-01-05");
  REQUIRE(Rows(calls, "by-customer") == " 5 3 1 2 4");
  IndexOptions of_one;
  of_one.name = "by-customer";
  of_one.equal = {"1"};
  REQUIRE(Rows(calls, of_one) == " 5 3 1");
  REQUIRE(Rows(calls, of_one, true) == " 1 3 5");
  REQUIRE(Rows(calls, of_one, false, 1) == " 5 3 1");
  of_one.between = {"[2024-01-02", "+"};
  REQUIRE(Rows(calls, of_one) == " 5 3");
  of_one.between = {"(2024-01-01", "(2024-01-05"};
  REQUIRE(Rows(calls, of_one) == " 3");
  of_one.equal = {"1", "2024-01-03"};
  of_one.between = {"[3", "[3"};
  REQUIRE(Rows(calls, of_one) == " 3");
  IndexOptions from;
  from.name = "by-customer";
  from.from = {"1", "2024-01-04"};
  REQUIRE(Rows(calls, from) == " 3 1 2 4");
  REQUIRE(Rows(calls, from, true) == " 5");
  const auto near = [&](std::string_view customer) {
    Result<std::unique_ptr<NearSearch>> search =
        store->NearIndex(calls, "by-customer", {customer}, nullptr);
    REQUIRE(search.ok());
    REQUIRE((*search)->Step(kUnlimited));
    REQUIRE((*search)->place() != nullptr);
    return *(*search)->place();
  };
  REQUIRE(near("3").row == "4");
  REQUIRE(near("3").direction == 1);
  REQUIRE(near("3").values.size() == 2);
  REQUIRE(near("99").direction == -1);
  REQUIRE(store->NearIndex(calls, "none", {"1"}, nullptr).status().code() == ErrorCode::kNoIndex);
  IndexOptions bad;
  bad.name = "by-customer";
  bad.equal = {"one"};
  REQUIRE(Rows(calls, bad) == "BADVALUE");
  bad.equal = {"1", "2", "3"};
  REQUIRE(Rows(calls, bad) == "ERR");
  REQUIRE(store->DropFamily(calls, "c").code() == ErrorCode::kErr);
  Open();
  REQUIRE(Rows(Find("calls"), "by-customer") == " 5 3 1 2 4");
  REQUIRE(store->DropIndex(Find("calls"), "by-customer").ok());
  REQUIRE(Rows(Find("calls"), "by-customer") == "NOINDEX");
}

TEST_CASE_METHOD(Fixture, "UNIQUE refuses a second row and changes nothing", "[index]") {
  Table& table = Make("t", {{"f", {}}});
  REQUIRE(
      store->CreateIndex(table, {.name = "u", .on = {On("f", "x")}, .include = {}, .unique = true})
          .ok());
  REQUIRE(Do(table, "a", {Put("f", "x", "1")}).ok());
  const std::string before = store->Digest();
  REQUIRE(Do(table, "b", {Put("f", "y", "0"), Put("f", "x", "1")}).code() == ErrorCode::kNotUnique);
  REQUIRE(store->Digest() == before);
  const std::string_view cell[] = {"f:x", "1"};
  REQUIRE(store->Put(table, "b", cell).code() == ErrorCode::kNotUnique);
  REQUIRE(store->Digest() == before);
  REQUIRE(Do(table, "a", {Put("f", "x", "1")}).ok());
  REQUIRE(Do(table, "b", {Put("f", "x", "2")}).ok());
  // Deleting the newest version would reveal a value that another row holds by now.
  REQUIRE(Do(table, "b", {Put("f", "x", "3")}).ok());
  REQUIRE(Do(table, "c", {Put("f", "x", "2")}).ok());
  CellOp remove;
  remove.kind = CellOp::Kind::kDelete;
  remove.selector = {ColumnSelector::Kind::kColumn, "f", "x", {}};
  remove.time = {clock.now_micros, INT64_MAX};
  RowWrite write;
  write.row = "b";
  std::string versions;
  {
    CellOptions cells;
    cells.versions_max = kUnlimited;
    RowOptions rows;
    rows.rows.push_back({RowSelector::Kind::kRow, "b", {}});
    Result<std::unique_ptr<Scan>> scan = store->ScanRows(table, rows, cells, nullptr);
    int64_t newest = 0;
    for (ScanStep step = (*scan)->Next(); step != ScanStep::kEnd; step = (*scan)->Next()) {
      if (step == ScanStep::kCell) newest = std::max(newest, (*scan)->cell().timestamp_micros);
    }
    remove.time.min_micros = newest;
  }
  REQUIRE(Do(table, "b", {remove}).code() == ErrorCode::kNotUnique);
  REQUIRE(Rows(table, "u") == " a c b");
  // Created over duplicates it fails, and says so.
  REQUIRE(Do(table, "d", {Put("f", "y", "7")}).ok());
  REQUIRE(Do(table, "e", {Put("f", "y", "7")}).ok());
  REQUIRE(
      store->CreateIndex(table, {.name = "v", .on = {On("f", "y")}, .include = {}, .unique = true})
          .ok());
  REQUIRE(store->DescribeIndex(table, "v")->state == "failed");
  REQUIRE(Rows(table, "v") == "NOTUNIQUE");
  Open();
  REQUIRE(store->DescribeIndex(Find("t"), "v")->state == "failed");
  REQUIRE(Rows(Find("t"), "u") == " a c b");
}

TEST_CASE_METHOD(Fixture, "A scan that an index covers does not read the table", "[index]") {
  Table& table = Make("t", {{"f", {}}, {"g", {}}});
  REQUIRE(store
              ->CreateIndex(table, {.name = "i",
                                    .on = {On("f", "phone")},
                                    .include = {On("f", "name"), {"g", std::nullopt, {}, false}}})
              .ok());
  REQUIRE(Do(table, "1",
             {Put("f", "phone", "555"), Put("f", "name", "Eve"), Put("g", "b", "2"),
              Put("g", "a", "1"), Put("f", "other", "x")})
              .ok());
  RowOptions rows;
  rows.index.emplace();
  rows.index->name = "i";
  CellOptions cells;
  cells.columns = {{ColumnSelector::Kind::kColumn, "f", "name", {}},
                   {ColumnSelector::Kind::kFamily, "g", {}, {}}};
  auto shown = Cells(table, rows, cells, kUnlimited);
  REQUIRE(shown["groups"] == "0");
  REQUIRE(shown["1"].find("f:name@") != std::string::npos);
  REQUIRE(shown["1"].find("phone") == std::string::npos);
  REQUIRE(shown["1"].find("g:a@") < shown["1"].find("g:b@"));
  cells.columns_reverse = true;
  shown = Cells(table, rows, cells, kUnlimited);
  REQUIRE(shown["1"].find("g:b@") < shown["1"].find("g:a@"));
  cells.columns.push_back({ColumnSelector::Kind::kColumn, "f", "other", {}});
  shown = Cells(table, rows, cells, kUnlimited);
  REQUIRE(shown["groups"] == "1");
  REQUIRE(shown["1"].find("f:other@") != std::string::npos);
  // The included cell changes with the table's, and what is too large stays in the table.
  REQUIRE(Do(table, "1", {Put("f", "name", std::string(100'000, 'n'))}).ok());
  cells.columns = {{ColumnSelector::Kind::kColumn, "f", "name", {}}};
  shown = Cells(table, rows, cells, kUnlimited);
  REQUIRE(shown["1"].size() > 100'000);
}

TEST_CASE_METHOD(Fixture, "The smallest covering column group is chosen, and cursors do not care",
                 "[index]") {
  Table& table = Make("t", {{"f", {}}, {"big", {}}});
  const std::string page(2000, 'p');
  for (int i = 0; i < 50; ++i) {
    const std::string number = std::to_string(100 + i);
    std::vector<CellOp> ops{Put("big", "page", page)};
    if (i % 5 != 0) ops.push_back(Put("f", "x", number));
    if (i % 7 != 0) ops.push_back(Put("f", "y", number));
    REQUIRE(Do(table, "r" + number, ops).ok());
  }
  const auto scan = [&](RowOptions rows, CellOptions cells, const ScanPosition* from = nullptr) {
    return *store->ScanRows(table, rows, cells, from);
  };
  CellOptions x_alone;
  x_alone.columns = {{ColumnSelector::Kind::kColumn, "f", "x", {}}};
  const auto before = Cells(table, {}, x_alone, kUnlimited);
  REQUIRE(scan({}, x_alone)->stats().index.empty());
  REQUIRE(store
              ->CreateIndex(
                  table,
                  {.name = "wide", .on = {}, .include = {{"f", std::nullopt, std::nullopt, false}}})
              .ok());
  REQUIRE(scan({}, x_alone)->stats().index == "wide");
  REQUIRE(store->CreateIndex(table, {.name = "narrow", .on = {}, .include = {On("f", "x")}}).ok());
  REQUIRE(scan({}, x_alone)->stats().index == "narrow");
  auto now = Cells(table, {}, x_alone, kUnlimited);
  REQUIRE(now["groups"] == "0");
  now["groups"] = before.at("groups");
  REQUIRE(now == before);

  // Not where it would say less, or something else.
  CellOptions other = x_alone;
  other.columns[0].first = "y";
  REQUIRE(scan({}, other)->stats().index == "wide");
  other.columns[0].family = "big";
  REQUIRE(scan({}, other)->stats().index.empty());
  other = x_alone;
  other.versions_max = 2;
  REQUIRE(scan({}, other)->stats().index.empty());
  other = x_alone;
  other.time.min_micros = 1;
  REQUIRE(scan({}, other)->stats().index.empty());
  other = x_alone;
  other.filter = "latest(1)";
  REQUIRE(scan({}, other)->stats().index.empty());
  RowOptions rows;
  rows.where.emplace_back().kind = Predicate::Kind::kRowExists;
  REQUIRE(scan(rows, x_alone)->stats().index.empty());

  // Row keys alone: any group knows them. Ranges and directions are those of the table.
  rows = {};
  rows.cells_wanted = false;
  REQUIRE(scan(rows, {})->stats().index == "narrow");
  rows.rows = {{RowSelector::Kind::kRange, "[r110", "(r120"},
               {RowSelector::Kind::kPrefix, "r14", {}}};
  rows.reverse = true;
  REQUIRE(Cells(table, rows, {}, 3)["order"].size() == 20 * 5);
  rows.cells_wanted = true;
  REQUIRE(scan(rows, x_alone)->stats().index == "narrow");
  REQUIRE(Cells(table, rows, x_alone, 3)["order"].size() == 16 * 5);

  // A cursor of either goes on in the other.
  auto first = scan({}, x_alone);
  for (int i = 0; i < 20; ++i) (void)first->Next();
  const ScanPosition position = first->PositionAfterRow();
  first.reset();
  std::string rest;
  const auto drain = [&] {
    rest.clear();
    auto second = scan({}, x_alone, &position);
    for (ScanStep step = second->Next(); step != ScanStep::kEnd; step = second->Next()) {
      if (step == ScanStep::kRow) rest += second->row_text();
    }
    return rest;
  };
  const std::string by_group = drain();
  REQUIRE(store->DropIndex(table, "narrow").ok());
  REQUIRE(store->DropIndex(table, "wide").ok());
  REQUIRE(drain() == by_group);
  REQUIRE(!by_group.empty());
}

TEST_CASE_METHOD(Fixture, "What may not be read is not chosen, nor shown by an index", "[index]") {
  Table& table = Make("t", {{"open", {}}, {"secret", {}}});
  const std::string text(200, 'o');
  for (int i = 0; i < 30; ++i) {
    const std::string number = std::to_string(100 + i);
    std::vector<CellOp> ops{Put("secret", "s", number)};
    if (i % 2 == 0) ops.push_back(Put("open", "o", text));
    REQUIRE(Do(table, "r" + number, ops).ok());
  }
  REQUIRE(
      store
          ->CreateIndex(table,
                        {.name = "both", .on = {}, .include = {On("open", "o"), On("secret", "s")}})
          .ok());
  REQUIRE(store->CreateIndex(table, {.name = "none", .on = {}, .include = {On("open", "n")}}).ok());
  class OpenAlone final : public FamilyAccess {
   public:
    bool MayRead(std::string_view family) const override { return family == "open"; }
    bool MayWrite(std::string_view) const override { return false; }
    bool MayWriteAll() const override { return false; }
  } access;
  CellOptions cells;
  cells.access = &access;
  cells.columns = {{ColumnSelector::Kind::kColumn, "open", "o", {}}};
  RowOptions rows;
  auto plain = Cells(table, rows, cells, kUnlimited);
  REQUIRE((*store->ScanRows(table, rows, cells, nullptr))->stats().index.empty());
  // Every row has a stored cell, but half of them none that this reader may know of.
  cells.columns.clear();
  rows.cells_wanted = false;
  REQUIRE((*store->ScanRows(table, rows, cells, nullptr))->stats().index.empty());
  REQUIRE(Cells(table, rows, cells, kUnlimited)["order"] == plain["order"]);
  rows.cells_wanted = true;
  rows.index.emplace();
  rows.index->name = "both";
  auto named = Cells(table, rows, cells, kUnlimited);
  REQUIRE(named["order"] == plain["order"]);
  REQUIRE(named["r100"].find("secret") == std::string::npos);
}

TEST_CASE_METHOD(Fixture, "An index without INCLUDE gives its own columns and its keys",
                 "[index]") {
  Table& table = Make("t", {{"f", {}}});
  const auto row = [&](std::string_view key, std::string_view country, std::string_view people) {
    CellOp number = Put("f", "people", people);
    number.type = ValueType::kF64;
    REQUIRE(Do(table, key, {Put("f", "country", country), number, Put("f", "z", "z")}).ok());
  };
  row("1", "CAN", "35");
  row("2", "AU", "450.5");
  row("3", "AU", "-0.0");
  REQUIRE(store
              ->CreateIndex(table,
                            {.name = "i",
                             .on = {On("f", "people", ValueType::kF64, true), On("f", "country")},
                             .include = {}})
              .ok());
  RowOptions rows;
  rows.index.emplace();
  rows.index->name = "i";
  CellOptions cells;
  cells.columns = {{ColumnSelector::Kind::kColumn, "f", "people", {}},
                   {ColumnSelector::Kind::kColumn, "f", "country", {}}};
  REQUIRE(Cells(table, rows, cells, kUnlimited)["groups"] == "1");  // timestamps are in the table
  cells.timestamps = false;
  IndexOptions of_one = *rows.index;
  rows.index->equal = {"450.5"};
  auto shown = Cells(table, rows, cells, kUnlimited);
  REQUIRE(shown["groups"] == "0");
  REQUIRE(shown["2"] == " f:country@0=AU f:people@0=450.5");
  rows.index = of_one;
  shown = Cells(table, rows, cells, kUnlimited);
  REQUIRE(shown["order"] == " 2 1 3");
  REQUIRE(shown["groups"] == "1");  // -0.0, which keys do not tell from 0.0
  REQUIRE(shown["3"].find("people@1000000002=-0") != std::string::npos);
  cells.columns = {};
  rows.cells_wanted = false;
  shown = Cells(table, rows, cells, kUnlimited);
  REQUIRE(shown["order"] == " 2 1 3");
  REQUIRE(shown["groups"] == "0");
}

TEST_CASE_METHOD(Fixture, "Whatever becomes due at once, no command pays for it", "[index]") {
  FamilyOptions aging;
  aging.ttl_ms = 10'000;
  Table& table = Make("t", {{"f", aging}, {"g", {}}});
  REQUIRE(
      store
          ->CreateIndex(
              table, {.name = "i", .on = {On("f", "x"), On("g", "y")}, .include = {On("f", "z")}})
          .ok());
  constexpr int kRows{5000};
  for (int i = 0; i < kRows; ++i) {
    const std::string number = std::to_string(10'000 + i);
    CellOp old = Put("g", "y", "old");
    old.timestamp_micros = 1;
    CellOp fresh = Put("g", "y", "new");
    fresh.ttl_micros = 5'000'000;
    REQUIRE(Do(table, "r" + number, {Put("f", "x", number), old, fresh}).ok());
  }
  const Index& index = *table.indexes()->Find(table.schema().indexes[0].id);
  const auto evaluated = [&](auto&& what) {
    const uint64_t before = index.evaluations();
    what();
    return index.evaluations() - before;
  };
  IndexOptions one;
  one.name = "i";
  one.equal = {"12345", "new"};
  REQUIRE(evaluated([&] { REQUIRE(Rows(table, one) == " r12345"); }) == 0);
  // Now every row stands somewhere else in the index, and no row was touched for that.
  SetTime(clock.now_micros + 5'000'000);
  REQUIRE(evaluated([&] { REQUIRE(Rows(table, one).empty()); }) == 0);
  one.equal = {"12345", "old"};
  REQUIRE(evaluated([&] { REQUIRE(Rows(table, one) == " r12345"); }) == 0);
  REQUIRE(evaluated([&] { REQUIRE(Do(table, "s", {Put("g", "y", "1")}).ok()); }) == 2);
  // And now none is in it. (The server's timestamps run ahead of a clock that stands still.)
  SetTime(clock.now_micros + 5'000'000 + kRows);
  REQUIRE(evaluated([&] { REQUIRE(Rows(table, "i").empty()); }) == 0);
  REQUIRE(evaluated([&] { REQUIRE(Do(table, "s", {Put("g", "y", "2")}).ok()); }) == 2);
  // The entries go with the cells, about as many at a time as the sweeper is given.
  constexpr uint64_t kSlice{100};
  uint64_t slices = 0;
  for (bool more = true; more; ++slices) {
    const uint64_t work = evaluated([&] { (void)store->Sweep(kSlice); });
    REQUIRE(work <= 4 * kSlice);
    more = store->sweeper_stats().passes == 0;
  }
  REQUIRE(slices > kRows / kSlice);
  REQUIRE(index.entries().entries() == 0);
  // A clock set back shows what is still there, and nothing else.
  REQUIRE(Do(table, "late", {Put("f", "x", "1"), Put("g", "y", "1")}).ok());
  SetTime(clock.now_micros + 20'000'000);
  REQUIRE(Rows(table, "i").empty());
  SetTime(clock.now_micros - 15'000'000);
  REQUIRE(Rows(table, "i") == " late");
}

TEST_CASE_METHOD(Fixture, "Whole indexes are in the snapshot, others are built again", "[index]") {
  FamilyOptions aging;
  aging.ttl_ms = 10'000;
  {
    Table& table = Make("t", {{"f", aging}, {"g", {}}});
    REQUIRE(store->CreateIndex(table, {.name = "i", .on = {On("f", "x")}, .include = {}}).ok());
    REQUIRE(
        store
            ->CreateIndex(table, {.name = "u", .on = {On("g", "y")}, .include = {}, .unique = true})
            .ok());
    for (int i = 0; i < 300; ++i) {
      const std::string number = std::to_string(100 + i);
      REQUIRE(Do(table, "r" + number, {Put("f", "x", number), Put("g", "y", number)}).ok());
    }
    REQUIRE(store->journal().SaveNow().ok());
    // What comes behind the snapshot comes from the log.
    REQUIRE(Do(table, "late", {Put("f", "x", "150"), Put("g", "y", "late")}).ok());
    REQUIRE(store->CreateIndex(table, {.name = "new", .on = {On("g", "y")}, .include = {}}).ok());
  }
  Open();
  Table& table = Find("t");
  const auto evaluations = [&](std::string_view name) {
    return table.indexes()->Find(table.schema().FindIndex(name)->id)->evaluations();
  };
  REQUIRE(evaluations("i") <= 2);  // of the row that was written later
  REQUIRE(evaluations("u") <= 2);
  REQUIRE(evaluations("new") >= 301);
  REQUIRE(store->VerifyIndexes().ok());
  IndexOptions of_one;
  of_one.name = "i";
  of_one.equal = {"150"};
  REQUIRE(Rows(table, of_one) == " late r150");
  REQUIRE(Do(table, "other", {Put("g", "y", "late")}).code() == ErrorCode::kNotUnique);
  REQUIRE(Do(table, "other", {Put("g", "y", "other")}).ok());
  SetTime(clock.now_micros + 20'000'000);
  REQUIRE(Rows(table, of_one).empty());
  while (store->sweeper_stats().passes == 0) (void)store->Sweep(1000);
  REQUIRE(store->DescribeIndex(table, "i")->entries_are_live);
  REQUIRE(store->DescribeIndex(table, "i")->entries == 0);
}

TEST_CASE_METHOD(Fixture, "An index of many rows is built in slices while writes go on",
                 "[index]") {
  Table& table = Make("t", {{"f", {}}});
  for (int i = 0; i < 6000; ++i) {
    const std::string number = std::to_string(10'000 + i);
    REQUIRE(Do(table, "r" + number, {Put("f", "x", number)}).ok());
  }
  REQUIRE(store->CreateIndex(table, {.name = "i", .on = {On("f", "x")}, .include = {}}).ok());
  REQUIRE(store->DescribeIndex(table, "i")->state == "building");
  REQUIRE(Do(table, "r10000", {Put("f", "x", "99999")}).ok());
  REQUIRE(Do(table, "r15999", {Put("f", "x", "00000")}).ok());
  while (store->Sweep(500)) {
  }
  const Result<IndexInfo> info = store->DescribeIndex(table, "i");
  REQUIRE(info->state == "ready");
  REQUIRE(info->entries == 6000);
  IndexOptions ends;
  ends.name = "i";
  ends.between = {"-", "[00001"};
  REQUIRE(Rows(table, ends) == " r15999");
  ends.between = {"[90000", "+"};
  REQUIRE(Rows(table, ends) == " r10000");
}

TEST_CASE_METHOD(Fixture, "Conditions are asked of entries where these tell of their columns",
                 "[index]") {
  FamilyOptions apart;
  apart.group = "pages";
  Table& table = Make("t", {{"f", {}}, {"g", {}}, {"big", apart}});
  for (int i = 0; i < 10; ++i) {
    const std::string number = std::to_string(i);
    CellOp zero = Put("f", "z", i % 2 == 0 ? "-0.0" : "0");
    zero.type = ValueType::kF64;
    const std::string y = "y" + number;
    std::vector<CellOp> ops{Put("f", "x", number), Put("g", "y", y), zero,
                            Put("big", "page", number)};
    if (i >= 5) ops.push_back(Put("f", "late", number));
    REQUIRE(Do(table, "r" + number, ops).ok());
  }
  const auto create = [&](NewIndex index) { REQUIRE(store->CreateIndex(table, index).ok()); };
  create({.name = "keys", .on = {On("f", "x"), On("g", "y")}, .include = {}});
  create({.name = "cells", .on = {On("f", "x")}, .include = {On("g", "y"), On("f", "late")}});
  create({.name = "zeros", .on = {On("f", "z", ValueType::kF64)}, .include = {}});
  create({.name = "qualifiers", .on = {{"f", {}, {}, false}}, .include = {}});
  create({.name = "rows", .on = {}, .include = {On("f", "x"), On("g", "y")}});
  // The rows that come, and how many groups were opened for them.
  const auto ask = [&](std::string_view index, Predicate predicate, bool cells_wanted = false) {
    RowOptions rows;
    if (!index.empty()) rows.index.emplace().name = index;
    rows.where = {predicate};
    rows.cells_wanted = cells_wanted;
    auto shown = Cells(table, rows, {}, kUnlimited);
    return shown["order"] + " / " + shown["groups"];
  };
  const auto compare = [](std::string_view family, std::string_view qualifier, CompareOp op,
                          std::string_view literal) {
    return Predicate{Predicate::Kind::kCompare, family, qualifier, op, literal};
  };
  const Predicate y3 = compare("g", "y", CompareOp::kEq, "y3");
  for (const std::string_view index : {"keys", "cells", "rows", ""}) {
    INFO(index);
    REQUIRE(ask(index, y3) == " r3 / 0");
    REQUIRE(ask(index, compare("f", "x", CompareOp::kGe, "8")) == " r8 r9 / 0");
  }
  // The row is read where the entry tells nothing of the column, and only of the rows that are
  // left.
  REQUIRE(ask("keys", compare("f", "late", CompareOp::kEq, "7")) == " r7 / 1");
  REQUIRE(ask("cells", compare("f", "late", CompareOp::kEq, "7")) == " r7 / 0");
  REQUIRE(ask("cells", {Predicate::Kind::kColumnMissing, "f", "late", {}, {}}) ==
          " r0 r1 r2 r3 r4 / 0");
  REQUIRE(ask("cells", compare("f", "late", CompareOp::kNe, "7")) ==
          " r0 r1 r2 r3 r4 r5 r6 r8 r9 / 0");
  REQUIRE(ask("cells", y3, true) == " r3 / 2");
  REQUIRE(ask("keys", compare("big", "page", CompareOp::kEq, "4")) == " r4 / 1");
  REQUIRE(ask("", compare("big", "page", CompareOp::kEq, "4")) == " r4 / 2");
  // That an entry is there says that the row is; not so in an index of rows.
  REQUIRE(ask("keys", {Predicate::Kind::kRowMissing, {}, {}, {}, {}}) == " / 0");
  REQUIRE(ask("rows", {Predicate::Kind::kRowMissing, {}, {}, {}, {}}) == " / 2");
  REQUIRE(ask("qualifiers", y3).ends_with("/ 1"));
  // Keys do not tell 0.0 from -0.0, but their texts differ.
  const Predicate minus{Predicate::Kind::kMatch, "f", "z", {}, "-*"};
  REQUIRE(ask("zeros", minus) == " r0 r2 r4 r6 r8 / 1");
  // What is too large for an entry is asked of the row.
  REQUIRE(Do(table, "r3", {Put("f", "late", std::string(100'000, '3'))}).ok());
  REQUIRE(ask("cells", {Predicate::Kind::kMatch, "f", "late", {}, "3*"}) == " r3 / 1");
  // A condition asks for the newest version, whatever versions are wanted.
  REQUIRE(Do(table, "r5", {Put("g", "y", "y3")}).ok());
  RowOptions rows;
  rows.index.emplace().name = "cells";
  rows.where = {y3};
  CellOptions versions;
  versions.versions_max = kUnlimited;
  versions.columns = {{ColumnSelector::Kind::kColumn, "g", "y", {}}};
  auto shown = Cells(table, rows, versions, kUnlimited);
  REQUIRE(shown["order"] == " r3 r5");
  REQUIRE(shown["r5"].find("y5") != std::string::npos);
}

TEST_CASE_METHOD(Fixture, "Another policy builds a UNIQUE index again in slices", "[index]") {
  constexpr uint64_t kRows{8000};
  Table& table = Make("t", {{"f", {}}, {"g", {}}});
  const auto row = [](uint64_t i) { return "r" + FormatUint64(100'000 + i); };
  for (uint64_t i = 0; i < kRows; ++i) {
    REQUIRE(Do(table, row(i), {Put("f", "x", row(i)), Put("g", "y", "y")}).ok());
  }
  REQUIRE(
      store->CreateIndex(table, {.name = "u", .on = {On("f", "x")}, .include = {}, .unique = true})
          .ok());
  const auto index = [&] { return table.indexes()->Find(table.schema().indexes[0].id); };
  while (!index()->built()) (void)store->Sweep(1000);
  const auto alter = [&](uint64_t ttl_ms) {
    FamilyOptions options;
    options.ttl_ms = ttl_ms;
    Result<std::unique_ptr<SlicedChange>> change =
        store->AlterFamily(table, {"f", options}, nullptr);
    REQUIRE(change.ok());
    return *std::move(change);
  };
  constexpr uint64_t kCells{200};
  auto change = alter(86'400'000);
  while (table.schema().FindFamily("f")->policy == RetentionPolicy()) {
    REQUIRE(change->Step(kCells).ok());
  }
  // The policy is another one, and the index knows some rows again.
  REQUIRE_FALSE(change->done());
  REQUIRE_FALSE(index()->built());
  REQUIRE(Rows(table, "u") == "TRYAGAIN");
  uint64_t slices = 0;
  for (; !change->done(); ++slices) {
    const std::string before = store->Digest();
    for (const uint64_t i : {uint64_t{0}, slices, kRows - 1}) {
      const Status status = Do(table, row(i), {Put("g", "z", "z"), Put("f", "x", row(kRows - 1))});
      REQUIRE(status.code() == ErrorCode::kTryAgain);
      REQUIRE(status.text().find("'u'") != std::string::npos);
      REQUIRE(Do(table, "new", {Put("f", "x", "new")}).code() == ErrorCode::kTryAgain);
    }
    REQUIRE(store->Digest() == before);
    // What does not concern the index is written, before and behind where it stands.
    REQUIRE(Do(table, row(slices), {Put("g", "y", FormatUint64(slices))}).ok());
    REQUIRE(Do(table, row(kRows - 1), {Put("g", "y", FormatUint64(slices))}).ok());
    RowOptions rows;
    const std::string last = row(kRows - 2 - slices);
    rows.rows.push_back({RowSelector::Kind::kRow, last, {}});
    REQUIRE((*store->DeleteRows(table, rows))->Step(100).ok());
    const uint64_t evaluations = index()->evaluations();
    REQUIRE(change->Step(kCells).ok());
    REQUIRE(index()->evaluations() - evaluations <= kCells);
  }
  REQUIRE(slices > kRows / kCells / 2);
  REQUIRE(index()->built());
  REQUIRE(store->VerifyIndexes().ok());
  REQUIRE(Do(table, "new", {Put("f", "x", row(0))}).code() == ErrorCode::kNotUnique);
  REQUIRE(Do(table, "new", {Put("f", "x", "new")}).ok());
  // Whoever has left does not keep it from being built; what the sweeper does meanwhile is no
  // reason to refuse anything later.
  change = alter(0);
  while (index()->built()) REQUIRE(change->Step(kCells).ok());
  change.reset();
  while (!index()->built()) (void)store->Sweep(kCells);
  REQUIRE(Do(table, "new", {Put("f", "x", "newer")}).ok());
}

TEST_CASE_METHOD(Fixture, "A transaction builds at once only what it asks for itself", "[index]") {
  constexpr uint64_t kRows{8000};
  constexpr uint64_t kCells{200};
  Table& table = Make("t", {{"f", {}}});
  for (uint64_t i = 0; i < kRows; ++i) {
    REQUIRE(Do(table, "r" + FormatUint64(i), {Put("f", "x", FormatUint64(i))}).ok());
  }
  const NewIndex unique{.name = "u", .on = {On("f", "x")}, .include = {}, .unique = true};
  const auto index = [&] { return table.indexes()->Find(table.schema().indexes[0].id); };
  const auto alter = [&](uint64_t ttl_ms) {
    FamilyOptions options;
    options.ttl_ms = ttl_ms;
    Result<std::unique_ptr<SlicedChange>> change =
        store->AlterFamily(table, {"f", options}, nullptr);
    REQUIRE(change.ok());
    while (!(*change)->done()) REQUIRE((*change)->Step(kUnlimited).ok());
  };
  // One that only begins an index leaves it to the slices behind it.
  store->BeginTransaction(Store::Atomicity::kRedis);
  REQUIRE(store->CreateIndex(table, unique).ok());
  store->CommitTransaction();
  REQUIRE_FALSE(index()->built());
  // What others are building is not built for a transaction that reads, nor for a rollback.
  store->BeginTransaction(Store::Atomicity::kAll);
  REQUIRE(Rows(table, "u") == "TRYAGAIN");
  store->RollBackTransaction();
  REQUIRE_FALSE(index()->built());
  while (!index()->built()) (void)store->Sweep(kCells);
  // The same with a change of retention, also if it is undone.
  store->BeginTransaction(Store::Atomicity::kAll);
  alter(86'400'000);
  store->RollBackTransaction();
  REQUIRE_FALSE(index()->built());
  REQUIRE(Do(table, "new", {Put("f", "x", "new")}).code() == ErrorCode::kTryAgain);
  while (!index()->built()) (void)store->Sweep(kCells);
  store->BeginTransaction(Store::Atomicity::kRedis);
  alter(86'400'000);
  store->CommitTransaction();
  REQUIRE_FALSE(index()->built());
  REQUIRE(Do(table, "new", {Put("f", "x", "new")}).code() == ErrorCode::kTryAgain);
  store->BeginTransaction(Store::Atomicity::kRedis);
  REQUIRE(Do(table, "new", {Put("f", "x", "new")}).code() == ErrorCode::kTryAgain);
  store->CommitTransaction();
  while (!index()->built()) (void)store->Sweep(kCells);
  REQUIRE(Do(table, "new", {Put("f", "x", "new")}).ok());
  // Inside one transaction nothing comes in between: what it needs itself is there.
  store->BeginTransaction(Store::Atomicity::kRedis);
  alter(172'800'000);
  REQUIRE_FALSE(index()->built());
  REQUIRE(Do(table, "other", {Put("f", "x", "new")}).code() == ErrorCode::kNotUnique);
  REQUIRE(Do(table, "new", {Put("f", "x", "newest")}).ok());
  store->CommitTransaction();
  store->BeginTransaction(Store::Atomicity::kRedis);
  alter(0);
  REQUIRE(Rows(table, "u") != "TRYAGAIN");
  store->CommitTransaction();
  REQUIRE(index()->built());
  REQUIRE(store->VerifyIndexes().ok());
}

// --- random changes against a sort of the table

struct Entry {
  std::string text;  // what orders it, as bytes that sort so
  std::string row;
  friend bool operator<(const Entry& a, const Entry& b) {
    return std::tie(a.text, a.row) < std::tie(b.text, b.row);
  }
};

std::string NumberText(std::string_view stored) {
  char text[32];
  const auto number = static_cast<int64_t>(LoadInteger(ValueType::kI64, stored));
  (void)std::snprintf(text, sizeof(text), "%06lld", static_cast<long long>(number + 100'000));
  return text;
}

std::string Complemented(std::string text) {
  for (char& c : text) c = static_cast<char>(~c);
  return text + "\xff";  // shorter sorts behind
}

// What the three indexes must give, from a scan of the table.
std::map<std::string, std::string> Expected(Store& store, Table& table) {
  std::map<std::string, std::vector<Entry>> entries{{"n", {}}, {"nd", {}}, {"q", {}}, {"all", {}}};
  Result<std::unique_ptr<Scan>> scan = store.ScanRows(table, {}, {}, nullptr);
  REQUIRE(scan.ok());
  std::string row;
  std::map<std::string, std::string> columns;
  const auto end_row = [&] {
    if (row.empty()) return;
    entries["all"].push_back({"", row});
    if (columns.contains("n")) entries["n"].push_back({columns["n"], row});
    if (columns.contains("n") && columns.contains("s")) {
      entries["nd"].push_back({Complemented(columns["s"]) + "|" + columns["n"], row});
    }
    columns.clear();
  };
  for (ScanStep step = (*scan)->Next(); step != ScanStep::kEnd; step = (*scan)->Next()) {
    if (step == ScanStep::kRow) {
      end_row();
      row = (*scan)->row_text();
      continue;
    }
    const ScanCell& cell = (*scan)->cell();
    const std::string qualifier(cell.qualifier_text);
    if (cell.family == "q") entries["q"].push_back({qualifier, row});
    if (cell.family == "f" && qualifier == "n" && cell.type == ValueType::kI64) {
      columns["n"] = NumberText(cell.stored);
    }
    if (cell.family == "f" && qualifier == "s" && cell.type == ValueType::kBytes) {
      columns["s"] = cell.stored;
    }
  }
  end_row();
  std::map<std::string, std::string> rows;
  for (auto& [name, list] : entries) {
    std::sort(list.begin(), list.end());
    std::string& text = rows[name];
    for (const Entry& entry : list) text += " " + entry.row;
  }
  return rows;
}

class RandomChanges : public Fixture {
 public:
  void CreateIndexes() {
    Table& table = Find("t");
    REQUIRE(store
                ->CreateIndex(table,
                              {.name = "n", .on = {On("f", "n", ValueType::kI64)}, .include = {}})
                .ok());
    REQUIRE(store
                ->CreateIndex(
                    table, {.name = "nd",
                            .on = {On("f", "s", std::nullopt, true), On("f", "n", ValueType::kI64)},
                            .include = {}})
                .ok());
    REQUIRE(store
                ->CreateIndex(
                    table,
                    {.name = "q", .on = {{"q", std::nullopt, std::nullopt, false}}, .include = {}})
                .ok());
    REQUIRE(store
                ->CreateIndex(table, {.name = "cov",
                                      .on = {On("f", "n", ValueType::kI64)},
                                      .include = {On("f", "s"), {"q", {}, {}, false}}})
                .ok());
    REQUIRE(store
                ->CreateIndex(table, {.name = "all",
                                      .on = {},
                                      .include = {{"f", std::nullopt, std::nullopt, false}}})
                .ok());
  }
  CellOp RandomOp(std::vector<std::string>* texts) {
    const auto text = [&](std::string value) -> std::string_view {
      texts->push_back(std::move(value));
      return texts->back();
    };
    CellOp op;
    const uint64_t which = random.Below(10);
    if (which < 6) {
      const uint64_t column = random.Below(4);
      op = column == 0   ? Put("f", "n", text(std::to_string(random.Below(20))))
           : column == 1 ? Put("f", "s", text(std::string(random.Below(3), "ab"[random.Below(2)])))
           : column == 2 ? Put("f", "n", "text")
                         : Put("q", text(std::string(1, "xyz"[random.Below(3)])), "v");
      if (column == 0) op.type = ValueType::kI64;
      if (random.OneIn(3))
        op.timestamp_micros = clock.now_micros - static_cast<int64_t>(random.Below(3'000'000));
      if (random.OneIn(5)) op.ttl_micros = 1 + random.Below(2'000'000);
      return op;
    }
    op.kind = which == 6 ? CellOp::Kind::kDeleteRow : CellOp::Kind::kDelete;
    op.selector = random.OneIn(2) ? ColumnSelector{ColumnSelector::Kind::kFamily, "q", {}, {}}
                                  : ColumnSelector{ColumnSelector::Kind::kColumn, "f", "n", {}};
    if (random.OneIn(2)) op.time.min_micros = clock.now_micros - 500'000;
    return op;
  }
  void Change() {
    Table& table = Find("t");
    std::vector<std::string> texts;
    texts.reserve(16);
    std::vector<CellOp> ops;
    for (uint64_t n = 1 + random.Below(3); n > 0; --n) ops.push_back(RandomOp(&texts));
    const std::string row = "row" + std::to_string(random.Below(8));
    const Status status = Do(table, row, std::move(ops));
    if (!status.ok()) FAIL(status.ToString());
  }
  void Other() {
    switch (random.Below(12)) {
      case 0:
        if (random.OneIn(3)) REQUIRE(store->journal().SaveNow().ok());
        return Open();
      case 1: {
        RowOptions rows;
        rows.rows.push_back({RowSelector::Kind::kRange, "[row2", "(row5"});
        auto change = store->DeleteRows(Find("t"), rows);
        REQUIRE(change.ok());
        while (!(*change)->done()) REQUIRE((*change)->Step(3).ok());
        return;
      }
      case 2:
        while (store->Sweep(100)) {
        }
        return;
      case 3:
        store->BeginTransaction(Store::Atomicity::kAll);
        Change();
        if (random.OneIn(3)) REQUIRE(store->DropIndex(Find("t"), "n").ok());
        if (random.OneIn(3)) REQUIRE(store->TruncateTable(Find("t")).ok());
        Change();
        store->RollBackTransaction();
        return;
      case 4:
        store->BeginTransaction(Store::Atomicity::kRedis);
        Change();
        Change();
        store->CommitTransaction();
        return;
      case 5:
        if (random.OneIn(4)) REQUIRE(store->TruncateTable(Find("t")).ok());
        return;
      case 6: {
        FamilyOptions options;
        options.ttl_ms = random.OneIn(2) ? 0 : 500 + random.Below(3000);
        options.versions_max = random.Below(3);
        auto change = store->AlterFamily(Find("t"), {"f", options}, nullptr);
        REQUIRE(change.ok());
        while (!(*change)->done()) REQUIRE((*change)->Step(1000).ok());
        return;
      }
      case 7:
        return SetTime(clock.now_micros - static_cast<int64_t>(random.Below(400'000)));
      default:
        return SetTime(clock.now_micros + static_cast<int64_t>(random.Below(800'000)));
    }
  }
  // What a covering index gives of the rows must be what the table gives.
  void CheckCovered() {
    Table& table = Find("t");
    RowOptions by_index;
    by_index.index.emplace();
    for (const std::string_view name : {"cov", "all"}) {
      by_index.index->name = name;
      CellOptions cells;
      cells.columns = {{ColumnSelector::Kind::kColumn, "f", "s", {}},
                       {ColumnSelector::Kind::kColumn, "f", "n", {}}};
      if (name == "cov") cells.columns.push_back({ColumnSelector::Kind::kFamily, "q", {}, {}});
      cells.columns_reverse = random.OneIn(2);
      if (random.OneIn(2)) cells.columns_skip = random.Below(3);
      if (random.OneIn(2)) cells.columns_max = 1 + random.Below(2);
      auto held = Cells(table, by_index, cells, random.OneIn(2) ? kUnlimited : 2);
      // A range of time, even one that everything is in, is for the table alone.
      CellOptions of_table = cells;
      of_table.time.max_micros = INT64_MAX - 1;
      auto read = Cells(table, {}, of_table, kUnlimited);
      REQUIRE(held["groups"] == "0");
      // What the server chooses by itself, in both directions.
      RowOptions plain;
      plain.reverse = random.OneIn(2);
      auto chosen = Cells(table, plain, cells, random.OneIn(2) ? kUnlimited : 2);
      auto not_chosen = Cells(table, plain, of_table, kUnlimited);
      if (chosen["groups"] == "0") ++groups_chosen;
      chosen.erase("groups");
      not_chosen.erase("groups");
      REQUIRE(chosen == not_chosen);
      held.erase("groups");
      held.erase("order");
      for (const auto& [row, text] : held) {
        if (read[row] != text) {
          CAPTURE(row, text, read[row]);
          FAIL("an entry holds other cells than the table");
        }
      }
    }
  }
  Predicate RandomPredicate() {
    static constexpr std::pair<std::string_view, std::string_view> kColumns[]{
        {"f", "n"}, {"f", "n"}, {"f", "s"}, {"q", "x"}, {"q", "z"}, {"f", "none"}};
    static constexpr std::string_view kLiterals[]{"", "a", "bb", "3", "12", "text", "v"};
    static constexpr std::string_view kGlobs[]{"*", "1*", "a?", "[^1]", "text", ""};
    Predicate predicate;
    predicate.kind = static_cast<Predicate::Kind>(random.Below(6));
    std::tie(predicate.family, predicate.qualifier) = kColumns[random.Below(std::size(kColumns))];
    predicate.op = static_cast<CompareOp>(random.Below(6));
    predicate.literal = predicate.kind == Predicate::Kind::kMatch
                            ? kGlobs[random.Below(std::size(kGlobs))]
                            : kLiterals[random.Below(std::size(kLiterals))];
    return predicate;
  }
  // Whoever answers conditions, entries or rows, the same rows come with the same cells.
  void CheckConditions() {
    Table& table = Find("t");
    RowOptions where;
    for (uint64_t n = 1 + random.Below(2); n > 0; --n) where.where.push_back(RandomPredicate());
    CellOptions cells;
    if (random.OneIn(2)) cells.columns = {{ColumnSelector::Kind::kColumn, "f", "n", {}}};
    if (random.OneIn(3)) cells.columns.push_back({ColumnSelector::Kind::kColumn, "f", "s", {}});
    CellOptions of_table = cells;
    of_table.time.max_micros = INT64_MAX - 1;
    auto asked = Cells(table, where, of_table, kUnlimited);
    REQUIRE(asked["groups"] != "0");
    auto chosen = Cells(table, where, cells, random.OneIn(2) ? kUnlimited : 2);
    if (chosen["groups"] == "0") ++conditions_of_entries;
    asked.erase("groups");
    chosen.erase("groups");
    REQUIRE(chosen == asked);
    RowOptions by_index;
    by_index.index.emplace();
    by_index.reverse = random.OneIn(2);
    for (const std::string_view name : {"n", "nd", "q", "cov", "all"}) {
      by_index.index->name = name;
      INFO("index " << name);
      by_index.where.clear();
      std::istringstream all(Cells(table, by_index, cells, kUnlimited)["order"]);
      std::string expected;
      for (std::string row; all >> row;) {
        if (asked.contains(row)) expected += " " + row;
      }
      by_index.where = where.where;
      auto given = Cells(table, by_index, cells, random.OneIn(2) ? kUnlimited : 2);
      REQUIRE(given["order"] == expected);
      if (given["groups"] == "0") ++conditions_of_entries;
      for (const auto& [row, text] : given) {
        if (name != "q" && asked.contains(row) && row != "order") REQUIRE(asked[row] == text);
      }
      // Keys tell no timestamps, and row keys alone are no cells: the rows are the same.
      CellOptions values = cells;
      values.timestamps = false;
      REQUIRE(Cells(table, by_index, values, kUnlimited)["order"] == expected);
      if (!cells.columns.empty()) continue;
      by_index.cells_wanted = false;
      REQUIRE(Cells(table, by_index, values, 2)["order"] == expected);
      by_index.cells_wanted = true;
    }
  }
  void Check() {
    Table& table = Find("t");
    CheckCovered();
    CheckConditions();
    for (const auto& [name, rows] : Expected(*store, table)) {
      INFO("index " << name);
      IndexOptions options;
      options.name = name;
      const std::string forward = Rows(table, options);
      if (forward != rows) {
        CAPTURE(forward, rows);
        FAIL("index and table disagree");
      }
      if (random.OneIn(4) && Rows(table, options, false, 1) != rows) FAIL("in slices");
      if (random.OneIn(4)) {
        const std::string backward = Rows(table, options, true);
        if (backward.size() != rows.size()) FAIL("backwards");
      }
      const Result<IndexInfo> info = store->DescribeIndex(table, name);
      const auto count = static_cast<uint64_t>(std::count(rows.begin(), rows.end(), ' '));
      const bool counts = info->entries_are_live ? info->entries == count : info->entries >= count;
      if (!counts) FAIL("entries " << info->entries << " for " << count);
    }
  }

  Random random{0};
  uint64_t groups_chosen{0};
  uint64_t conditions_of_entries{0};  // checks in which the table was not read
};

TEST_CASE_METHOD(RandomChanges, "An index never disagrees with its table", "[index]") {
  const uint64_t seed = 271'828;
  INFO("seed " << seed);
  random = Random(seed);
  FamilyOptions aging;
  aging.ttl_ms = 2000;
  (void)Make("t", {{"f", aging}, {"q", {}}});
  CreateIndexes();
  for (int step = 0; step < 3000; ++step) {
    INFO("step " << step);
    if (random.OneIn(3)) {
      Other();
    } else {
      Change();
    }
    Check();
  }
  REQUIRE(groups_chosen > 0);
  REQUIRE(conditions_of_entries > 1000);
}

}  // namespace store_index_test
