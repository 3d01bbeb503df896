// The ways to the same cell agree: a point read with its short way to the newest version, the same
// read of a snapshot, which has none, and scans in both directions, whole and in small steps.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/schema/column_set.h"
#include "engine/table/read_view.h"
#include "store/store.h"
#include "tests/store/index_fixture.h"

namespace read_path_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)
using index_fixture::Fixture;

constexpr int64_t kNewest{INT64_MAX};
constexpr int64_t kSecond{1'000'000};

// Some cells of `table` written, deleted, aged.
class Writer {
 public:
  Writer(Fixture& fixture, Table& table, uint64_t seed)
      : fixture_(fixture), table_(table), random_(seed) {}

  // Names that are prefixes of one another, with bytes that have to be escaped, long ones.
  std::string Name(bool may_be_empty) {
    std::string name(random_.Below(3) + (may_be_empty ? 0 : 1), 'a');
    for (char& c : name) c = "ab\0\xff"[random_.Below(4)];
    if (random_.OneIn(16)) name.append(200, 'x');
    return name;
  }
  std::string Family() { return families[random_.Below(families.size())]; }

  void Step() {
    const std::string row = Name(false);
    const std::string family = Family();
    const std::string qualifier =
        family == "number" ? std::to_string(random_.Below(300)) : Name(true);
    const std::string value(random_.Below(24), 'v');
    CellOp op = Fixture::Put(family, qualifier, value);
    if (random_.OneIn(8)) {
      op.kind = CellOp::Kind::kDelete;
      op.selector = {ColumnSelector::Kind::kColumn, family, qualifier, {}};
    } else {
      if (random_.OneIn(2)) op.timestamp_micros = static_cast<int64_t>(random_.Below(8) * kSecond);
      if (random_.OneIn(6)) op.ttl_micros = random_.Below(20) * kSecond + 1;
    }
    const Status done = fixture_.Do(table_, row, {op});
    REQUIRE(done.ok());
    if (random_.OneIn(4)) {
      fixture_.SetTime(fixture_.clock.now_micros + static_cast<int64_t>(random_.Below(kSecond)));
    }
  }

  const std::vector<std::string> families{"age", "all", "number", "other", "two"};

 private:
  Fixture& fixture_;
  Table& table_;
  Random random_;
};

Table& MakeTable(Fixture& fixture, uint64_t seed) {
  FamilyOptions age;
  age.ttl_ms = 5000;
  FamilyOptions two;
  two.versions_max = 2;
  FamilyOptions number;
  number.order = *Order::Parse("-u64");
  FamilyOptions other;
  if (seed % 2 == 0) other.group = "apart";
  return fixture.Make(
      "t" + std::to_string(seed),
      {{"two", two}, {"age", age}, {"all", {}}, {"number", number}, {"other", other}});
}

TEST_CASE_METHOD(Fixture, "Point reads agree with those of a snapshot and with scans", "[store]") {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    INFO("seed " << seed);
    Table& table = MakeTable(*this, seed);
    Writer writer(*this, table, seed);
    for (int step = 0; step < 1200; ++step) {
      writer.Step();
      if (step % 300 != 299) continue;
      ReadView snapshot(table, clock.now_micros);
      snapshot.Detach();
      CellOptions newest;
      std::map<std::string, std::string> shown = Cells(table, {}, newest, kUnlimited);
      size_t found = 0;
      for (int i = 0; i < 2000; ++i) {
        const std::string row = writer.Name(false);
        const std::string name = writer.Family();
        const std::string qualifier =
            name == "number" ? std::to_string(i % 300) : writer.Name(true);
        const FamilySchema& family = *snapshot.schema().FindFamily(name);
        std::string row_key;
        std::string encoded;
        REQUIRE(EncodeRowKey(snapshot.schema(), row, &row_key).ok());
        REQUIRE(EncodeQualifier(family, qualifier, &encoded).ok());
        const int64_t at = i % 3 == 0 ? 4 * kSecond : kNewest;
        const auto slow = snapshot.ReadCell(row_key, family, encoded, at);
        const auto opened = store->OpenRow(table, row);
        REQUIRE(opened.ok());
        const auto got = (*opened)->Get(name + ":" + qualifier, at);
        REQUIRE(got.ok());
        const CellRead* const quick = *got;
        REQUIRE((quick != nullptr) == slow.has_value());
        if (!slow) continue;
        ++found;
        REQUIRE(quick->timestamp_micros() == slow->timestamp_micros());
        REQUIRE(quick->value.stored == slow->value.stored);
        if (at != kNewest) continue;
        const std::string text = " " + name + ":" + qualifier + "@" +
                                 FormatInt64(slow->timestamp_micros()) + "=" +
                                 ValueText(slow->value.type, slow->value.stored);
        REQUIRE((shown[row] + " ").find(text + " ") != std::string::npos);
      }
      REQUIRE(found > 0);
    }
  }
}

// The cells of a row as Cells() shows them, its columns the other way round.
std::string Reversed(const std::string& cells) {
  std::vector<std::string> columns;
  size_t begin = 0;
  while (begin < cells.size()) {
    size_t end = cells.find(' ', begin + 1);
    end = end == std::string::npos ? cells.size() : end;
    const std::string cell = cells.substr(begin, end - begin);
    if (cell.ends_with('+'))
      columns.back() += cell;
    else
      columns.push_back(cell);
    begin = end;
  }
  std::string reversed;
  for (size_t i = columns.size(); i-- > 0;) reversed += columns[i];
  return reversed;
}

TEST_CASE_METHOD(Fixture, "Scans agree in both directions and in steps of every size", "[store]") {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    INFO("seed " << seed);
    Table& table = MakeTable(*this, seed);
    Writer writer(*this, table, seed);
    for (int step = 0; step < 900; ++step) {
      writer.Step();
      if (step % 300 != 299) continue;
      for (const uint64_t versions : {uint64_t{1}, uint64_t{2}, kUnlimited}) {
        CellOptions cells;
        cells.versions_max = versions;
        const std::map<std::string, std::string> whole = Cells(table, {}, cells, kUnlimited);
        for (const uint64_t budget : {uint64_t{1}, uint64_t{2}, uint64_t{7}}) {
          REQUIRE(Cells(table, {}, cells, budget) == whole);
        }
        // One range of each family, so that none is read whole.
        CellOptions ranges = cells;
        for (const std::string& family : writer.families) {
          ranges.columns.push_back({ColumnSelector::Kind::kRange, family, "-", "+"});
        }
        REQUIRE(Cells(table, {}, ranges, kUnlimited) == whole);
        CellOptions reverse = cells;
        reverse.columns_reverse = true;
        std::map<std::string, std::string> turned = Cells(table, {}, reverse, 5);
        REQUIRE(turned.size() == whole.size());
        for (const auto& [row, shown] : whole) {
          if (row == "order" || row == "groups") {
            REQUIRE(turned[row] == shown);
          } else {
            REQUIRE(turned[row] == Reversed(shown));
          }
        }
      }
    }
  }
}

}  // namespace read_path_test
