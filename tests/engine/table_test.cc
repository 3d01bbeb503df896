// What the primitives of a table leave behind: shortcuts against the general way.
#include "engine/table/table.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/text/number.h"
#include "engine/keys/timestamp.h"
#include "engine/state/engine.h"

namespace table_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)

constexpr uint64_t kTableId{1};
constexpr int64_t kNow{1'700'000'000'000'000};

// A table with a family for each of `policies`, the second one in a group of its own.
void MakeTable(Engine& engine, const std::vector<std::string>& policies) {
  TableSchema schema;
  schema.groups = {{std::string(kDefaultGroup), 1}, {"other", 2}};
  for (const std::string& policy : policies) {
    FamilySchema family;
    family.id = schema.family_id_next++;
    family.name = "f" + FormatUint64(family.id);
    family.group = family.id == 2 ? 1 : 0;
    family.policy = *RetentionPolicy::Parse(policy);
    schema.families.push_back(std::move(family));
  }
  std::string bytes;
  EncodeTableSchema(schema, &bytes);
  MutationBuilder mutation;
  mutation.CreateTable("0", "t", kTableId, bytes);
  REQUIRE(engine.Apply(mutation.payload()).ok());
}

// Everything that a table stores and counts.
std::string Dump(const Engine& engine) {
  const Table& table = *engine.FindTableById(kTableId);
  std::string text;
  table.EncodeCounters(&text);
  text += FormatUint64(table.changes());
  for (size_t group = 0; group < table.groups(); ++group) {
    BTreeCursor& at = table.cursor(group);
    for (at.SeekFirst(); at.valid(); at.Next()) {
      text.append("\n").append(at.key()).append("=").append(at.value());
    }
  }
  return text;
}

std::string RandomValue(Random& random) {
  CellValue cell;
  const std::string content(random.Below(40), static_cast<char>('a' + random.Below(26)));
  cell.stored = content;
  if (random.OneIn(4)) cell.expiry_micros = kNow + 1 + static_cast<int64_t>(random.Below(1000));
  std::string bytes;
  PutCellValue(&bytes, cell);
  return bytes;
}

std::string Value(std::string_view text) {
  std::string bytes;
  PutCellValue(&bytes, {.stored = text});
  return bytes;
}

// A row key or qualifier as the trees have it.
std::string Key(std::string text) { return std::move(text) + std::string("\0\1", 2); }

void PutValue(char* to, std::string_view value) { std::memcpy(to, value.data(), value.size()); }

// One step of a history: rows of puts, among them some with a cell twice, with other ops before,
// between and behind, or of too many bytes for a run.
void AddRandomRow(Random& random, MutationBuilder* mutation) {
  mutation->Row(kTableId, Key("r" + FormatUint64(random.Below(40))));
  const auto puts = random.Below(random.OneIn(20) ? 60 : 14);
  const size_t long_key = random.OneIn(100) ? 20'000 : 0;
  for (uint64_t i = 0; i < puts; ++i) {
    if (random.OneIn(40)) mutation->DeleteRow();
    const auto family = static_cast<uint32_t>(1 + random.Below(3));
    const std::string qualifier =
        Key(std::string(long_key, 'l') + "q" + FormatUint64(random.Below(30)));
    const auto timestamp = static_cast<int64_t>(random.Below(4));
    if (random.OneIn(40)) {
      mutation->DeleteCell(family, qualifier, timestamp);
    } else {
      mutation->Put(family, qualifier, timestamp, RandomValue(random));
    }
  }
}

TEST_CASE("Rows from elsewhere are put as runs, with the outcome of single puts", "[table]") {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    Engine elsewhere;  // runs, where they are of use
    Engine own;        // op by op
    const std::vector<std::string> policies{"maxversions=2", "maxage=1h", "none"};
    MakeTable(elsewhere, policies);
    MakeTable(own, policies);
    for (int step = 0; step < 300; ++step) {
      MutationBuilder mutation;
      const auto rows = 1 + random.Below(6);
      for (uint64_t i = 0; i < rows; ++i) AddRandomRow(random, &mutation);
      REQUIRE(elsewhere.Apply(mutation.payload()).ok());
      REQUIRE(own.ApplyOps(mutation.payload().substr(kMutationHeaderBytes)).ok());
      if (step % 10 == 0) REQUIRE(Dump(elsewhere) == Dump(own));
    }
    REQUIRE(Dump(elsewhere) == Dump(own));
  }
}

TEST_CASE("What is wrong in a row of puts is refused behind those before it", "[table]") {
  Engine engine;
  Engine expected;
  for (Engine* each : {&engine, &expected}) {
    MakeTable(*each, {"none"});
    MutationBuilder rows;  // after which runs are expected
    for (const char* row : {"a", "b"}) {
      rows.Row(kTableId, Key(row));
      for (const char* name : {"1", "2", "3", "4"}) rows.Put(1, Key(name), 1, Value("v"));
    }
    REQUIRE(each->Apply(rows.payload()).ok());
  }
  MutationBuilder wrong;
  wrong.Row(kTableId, Key("c"));
  for (const char* name : {"1", "2", "3"}) wrong.Put(1, Key(name), 1, Value("v"));
  wrong.Put(9, Key("4"), 1, Value("v"));  // no family has this id
  const Status status = engine.Apply(wrong.payload());
  CHECK(status.code() == ErrorCode::kCorruption);
  MutationBuilder before;
  before.Row(kTableId, Key("c"));
  for (const char* name : {"1", "2", "3"}) before.Put(1, Key(name), 1, Value("v"));
  REQUIRE(expected.Apply(before.payload()).ok());
  // The row was not ended in one, so only what is stored is compared.
  const auto cells = [](const Engine& of) {
    std::string text;
    BTreeCursor& at = of.FindTableById(kTableId)->cursor(0);
    for (at.SeekFirst(); at.valid(); at.Next()) text.append(at.key()).append(at.value());
    return text;
  };
  CHECK(cells(engine) == cells(expected));
}

TEST_CASE("A version that takes the place of another is a put and a reclaim", "[table]") {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    Engine replaces;
    Engine reclaims;
    const std::vector<std::string> policies{"maxversions=1", "maxversions=1", "maxversions=3"};
    MakeTable(replaces, policies);
    MakeTable(reclaims, policies);
    std::map<std::string, std::set<int64_t>> columns;
    for (int step = 0; step < 4000; ++step) {
      const std::string row = "r" + FormatUint64(random.Below(60)) + std::string("\0\1", 2);
      const auto family = static_cast<uint32_t>(1 + random.Below(3));
      const size_t versions_max = family == 3 ? 3 : 1;
      const std::string qualifier = "q" + FormatUint64(random.Below(3)) + std::string("\0\1", 2);
      const std::string value = RandomValue(random);
      std::set<int64_t>& stored = columns[row + FormatUint64(family) + qualifier];
      const auto timestamp = static_cast<int64_t>(random.Below(random.OneIn(2) ? 1 << 20 : 1 << 8));
      MutationBuilder a;
      MutationBuilder b;
      a.Row(kTableId, row);
      b.Row(kTableId, row);
      b.Put(family, qualifier, timestamp, value);
      b.ReclaimColumn(family, qualifier, kNow);
      if (random.OneIn(20)) {
        a.Reset();
        b.Reset();
        for (MutationBuilder* mutation : {&a, &b}) {
          mutation->Row(kTableId, row);
          mutation->DeleteRow();
        }
        std::erase_if(columns, [&](const auto& column) { return column.first.starts_with(row); });
      } else if (stored.size() == versions_max && timestamp > *stored.rbegin()) {
        a.Replace(family, qualifier, timestamp, *stored.begin(), value);
        stored.erase(stored.begin());
        stored.insert(timestamp);
      } else {
        a.Put(family, qualifier, timestamp, value);
        a.ReclaimColumn(family, qualifier, kNow);
        stored.insert(timestamp);
        if (stored.size() > versions_max) stored.erase(stored.begin());
      }
      REQUIRE(replaces.Apply(a.payload()).ok());
      REQUIRE(reclaims.Apply(b.payload()).ok());
      if (step % 50 == 0) REQUIRE(Dump(replaces) == Dump(reclaims));
    }
    CHECK(Dump(replaces) == Dump(reclaims));
  }
}

TEST_CASE("A version whose place is to be taken may be gone, and the new one there", "[table]") {
  Engine engine;
  MakeTable(engine, {"maxversions=1"});
  const std::string cell("\0v", 2);
  MutationBuilder mutation;
  mutation.Row(kTableId, Key("r"));
  mutation.Put(1, Key("q"), 10, cell);
  mutation.Replace(1, Key("q"), 20, 10, cell);
  mutation.Replace(1, Key("q"), 20, 10, cell);
  mutation.Replace(1, Key("p"), 20, 10, cell);
  REQUIRE(engine.Apply(mutation.payload()).ok());
  const Table& table = *engine.FindTableById(kTableId);
  CHECK(table.counters().rows == 1);
  CHECK(table.cells() == 2);
  CHECK(table.counters().families[0].reclaimed == 1);
  CHECK(table.counters().families[0].bytes == table.tree(0).payload_bytes());
}

TEST_CASE("A dropped table is freed by bytes, not only by entries", "[table]") {
  Engine engine;
  MakeTable(engine, {"none"});
  CellValue cell;
  const std::string content(300'000, 'x');
  cell.stored = content;
  std::string value;
  PutCellValue(&value, cell);
  for (int i = 0; i < 100; ++i) {
    MutationBuilder mutation;
    mutation.Row(kTableId, Key("r" + FormatUint64(static_cast<uint64_t>(i))));
    mutation.Put(1, Key("q"), 10, value);
    REQUIRE(engine.Apply(mutation.payload()).ok());
  }
  MutationBuilder drop;
  drop.DropTable(kTableId);
  REQUIRE(engine.Apply(drop.payload()).ok());
  for (bool done = false; !done;) {
    const uint64_t before = engine.garbage_bytes();
    done = engine.CollectGarbage(2000);
    CHECK(before - engine.garbage_bytes() < 5 << 20);
  }
  CHECK(engine.garbage_bytes() == 0);
}

TEST_CASE("What a snapshot leaves behind is freed in slices, without writes and after a drop",
          "[table]") {
  constexpr int kRows{60'000};
  for (const bool dropped : {false, true}) {
    Engine engine;
    MakeTable(engine, {"maxversions=1"});
    Random random(3);
    const auto fill = [&](int64_t timestamp) {
      MutationBuilder mutation;
      for (int i = 0; i < kRows; ++i) {
        mutation.Row(kTableId, Key("row number " + FormatUint64(static_cast<uint64_t>(i))));
        mutation.Put(1, Key("q"), timestamp, RandomValue(random));
        if (timestamp > 1) mutation.ReclaimColumn(1, Key("q"), kNow);
      }
      REQUIRE(engine.Apply(mutation.payload()).ok());
    };
    fill(1);
    BTree* const tree = engine.FindTableById(kTableId)->mutable_tree(0);
    std::optional<BTreeSnapshot> snapshot = tree->TakeSnapshot();
    fill(2);
    const uint64_t with_both = tree->memory_bytes();
    const auto held = [&] { return dropped ? engine.garbage_bytes() : tree->memory_bytes(); };
    if (dropped) {
      MutationBuilder drop;
      drop.DropTable(kTableId);
      REQUIRE(engine.Apply(drop.payload()).ok());
    }
    snapshot.reset();
    CHECK(held() >= with_both);
    uint64_t most_at_once = 0;
    for (bool done = false; !done;) {
      const uint64_t before = held();
      done = engine.CollectGarbage(400);
      most_at_once = std::max(most_at_once, before - held());
    }
    CHECK(held() <= (dropped ? 0 : with_both * 6 / 10));
    CHECK(most_at_once <= 400 * 4096);
    CHECK(most_at_once < with_both / 3);
  }
}

TEST_CASE("One put is applied as its op in a mutation would be", "[table]") {
  for (uint64_t seed = 11; seed <= 13; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    Engine directly;
    Engine from_bytes;
    MakeTable(directly, {"maxversions=1", "maxversions=2", "none"});
    MakeTable(from_bytes, {"maxversions=1", "maxversions=2", "none"});
    Table& table = *directly.FindTableById(kTableId);
    std::string key;
    for (int step = 0; step < 4000; ++step) {
      const std::string row = Key("r" + FormatUint64(random.Below(500)));
      const std::string qualifier = Key("q" + FormatUint64(random.Below(3)));
      const std::string value = RandomValue(random);
      ResolvedPut put;
      put.family = &table.schema().families[random.Below(3)];
      put.timestamp = 5 + static_cast<int64_t>(random.Below(20));
      key = row;
      put.row_bytes = key.size();
      PutFamilyId(&key, put.family->id);
      put.family_bytes = key.size();
      key += qualifier;
      put.column_bytes = key.size();
      PutTimestamp(&key, put.timestamp);
      put.key = key.data();
      put.key_bytes = key.size();
      put.cell_value = value;
      if (random.OneIn(2)) put.replaced = static_cast<int64_t>(random.Below(5));
      MutationBuilder mutation;
      mutation.Row(kTableId, row);
      if (put.replaced) {
        mutation.Replace(put.family->id, qualifier, put.timestamp, *put.replaced, value);
      } else {
        mutation.Put(put.family->id, qualifier, put.timestamp, value);
      }
      directly.ApplyPut(&table, put);
      REQUIRE(from_bytes.Apply(mutation.payload()).ok());
      if (step % 100 == 0) REQUIRE(Dump(directly) == Dump(from_bytes));
    }
    CHECK(Dump(directly) == Dump(from_bytes));
  }
}

}  // namespace table_test
