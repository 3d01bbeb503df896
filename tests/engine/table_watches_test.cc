// What WATCH and CWATCH compare is counted by what is applied, whoever brings it.
#include "engine/table/table_watches.h"

#include <catch2/catch.hpp>
#include <string>
#include <utility>

#include "btree/btree.h"
#include "engine/keys/value.h"
#include "engine/schema/schema.h"
#include "engine/state/engine.h"

namespace table_watches_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)

constexpr uint64_t kTableId{1};

std::string Key(std::string text) { return std::move(text) + std::string("\0\1", 2); }

TableSchema Schema() {
  TableSchema schema;
  schema.groups = {{std::string(kDefaultGroup), 1}};
  FamilySchema family;
  family.id = schema.family_id_next++;
  family.name = "f";
  family.policy = *RetentionPolicy::Parse("maxversions=1");
  schema.families.push_back(std::move(family));
  return schema;
}

std::string Encoded(const TableSchema& schema) {
  std::string bytes;
  EncodeTableSchema(schema, &bytes);
  return bytes;
}

std::string Value() {
  CellValue cell;
  cell.stored = "v";
  std::string bytes;
  PutCellValue(&bytes, cell);
  return bytes;
}

// A leader applies as commands do, a follower what the log brings.
struct Pair {
  Engine leader;
  Engine follower;

  void Do(const MutationBuilder& mutation) {
    REQUIRE(leader.ApplyOps(mutation.payload().substr(kMutationHeaderBytes)).ok());
    REQUIRE(follower.Apply(mutation.payload()).ok());
  }
};

// Whether the mutation is a change of the table, and of row r, to those who watch.
std::pair<bool, bool> Touched(Pair& pair, const MutationBuilder& mutation) {
  const auto look = [](const Engine& engine) {
    const TableWatches& watches = engine.FindTableById(kTableId)->watches();
    return std::pair(watches.changes(), watches.RowChanges(Key("r")).value());
  };
  const auto leader = look(pair.leader);
  const auto follower = look(pair.follower);
  pair.Do(mutation);
  const std::pair touched(look(pair.leader).first != leader.first,
                          look(pair.leader).second != leader.second);
  CHECK(touched == std::pair(look(pair.follower).first != follower.first,
                             look(pair.follower).second != follower.second));
  return touched;
}

TEST_CASE("Rows that change are recorded for each who asks", "[watches]") {
  TableWatches watches;
  watches.NoteRow("before");
  const uint64_t one = watches.Record();
  watches.NoteRow("a");
  watches.NoteRow("a");
  const uint64_t other = watches.Record();
  watches.NoteRow("b");
  CHECK(watches.TakeRecord(one) == std::vector<std::string>{"a", "b"});
  CHECK(watches.TakeRecord(one) == std::vector<std::string>{});
  CHECK(watches.TakeRecord(other) == std::vector<std::string>{"b"});
  (void)watches.Watch("w");
  watches.EndRecord(one);
  watches.NoteRow("w");
  CHECK(watches.RowChanges("w") == 1);
  CHECK(watches.TakeRecord(one) == std::nullopt);
  CHECK(watches.TakeRecord(other) == std::vector<std::string>{"w"});
  for (int i = 0; i < 100'001; ++i) watches.NoteRow(std::to_string(i));
  CHECK(watches.TakeRecord(other) == std::nullopt);  // too many: any may have changed
  watches.NoteRow("z");
  CHECK(watches.TakeRecord(other) == std::vector<std::string>{"z"});
  watches.ForgetRecords();
  CHECK(watches.TakeRecord(other) == std::nullopt);
  watches.Unwatch("w");
  watches.NoteRow("w");
}

TEST_CASE("Watches count what is applied, on a leader and on a follower alike", "[watches]") {
  Pair pair;
  MutationBuilder create;
  create.CreateTable("0", "t", kTableId, Encoded(Schema()));
  pair.Do(create);
  for (Engine* engine : {&pair.leader, &pair.follower}) {
    (void)engine->FindTableById(kTableId)->watches().Watch(Key("r"));
  }
  const auto row = [](std::string text) {
    MutationBuilder mutation;
    mutation.Row(kTableId, Key(std::move(text)));
    return mutation;
  };
  MutationBuilder put = row("r");
  put.Put(1, Key("q"), 5, Value());
  CHECK(Touched(pair, put) == std::pair(true, true));
  MutationBuilder other = row("other");
  other.Put(1, Key("q"), 5, Value());
  CHECK(Touched(pair, other) == std::pair(true, false));
  MutationBuilder older = row("r");
  older.Put(1, Key("q"), 4, Value());
  CHECK(Touched(pair, older) == std::pair(true, true));
  MutationBuilder reclaim = row("r");
  reclaim.ReclaimColumn(1, Key("q"), 100);
  CHECK(Touched(pair, reclaim) == std::pair(false, false));
  MutationBuilder nothing = row("r");
  nothing.DeleteCell(1, Key("q"), 77);
  CHECK(Touched(pair, nothing) == std::pair(false, false));
  MutationBuilder range;
  range.DeleteRows(kTableId, Key("o"), Key("p"));
  CHECK(Touched(pair, range) == std::pair(true, false));
  range.Reset();
  range.DeleteRows(kTableId, Key("o"), Key("p"));
  CHECK(Touched(pair, range) == std::pair(false, false));

  TableSchema schema = Schema();
  IndexSchema index;
  index.name = "i";
  index.id = schema.index_id_next++;
  schema.indexes.push_back(index);
  MutationBuilder indexed;
  indexed.SetSchema(kTableId, Encoded(schema));
  CHECK(Touched(pair, indexed) == std::pair(true, true));
  schema.indexes[0].state = IndexState::kReady;
  MutationBuilder built;
  built.SetSchema(kTableId, Encoded(schema));
  CHECK(Touched(pair, built) == std::pair(false, false));
  CHECK(Touched(pair, built) == std::pair(true, true));  // a command that changes nothing counts

  MutationBuilder rename;
  rename.RenameTable(kTableId, "0", "u");
  CHECK(Touched(pair, rename) == std::pair(true, true));
}

TEST_CASE("A state that takes another one's place inherits what clients hold", "[watches]") {
  MutationBuilder create;
  create.CreateTable("0", "t", kTableId, Encoded(Schema()));
  const auto loaded = [&create] {
    auto engine = std::make_unique<Engine>();
    REQUIRE(engine->Apply(create.payload()).ok());
    return engine;
  };
  for (const Continuity continuity : {Continuity::kSameState, Continuity::kOtherState}) {
    std::unique_ptr<Engine> before = loaded();
    Table* const table = before->FindTableById(kTableId);
    MutationBuilder put;
    put.Row(kTableId, Key("r"));
    put.Put(1, Key("q"), 5, Value());
    REQUIRE(before->Apply(put.payload()).ok());
    const uint64_t row = table->watches().Watch(Key("r"));
    const uint64_t changes = table->changes();
    const uint64_t name = before->WatchName("0", "absent");
    BTreeSnapshot scan = table->mutable_tree(0)->TakeSnapshot();

    CarriedState inheritance = before->GiveUp(Trees::kInUse);
    before.reset();
    std::unique_ptr<Engine> now = loaded();
    now->Inherit(std::move(inheritance), continuity);
    const TableWatches& watches = now->FindTableById(kTableId)->watches();
    if (continuity == Continuity::kSameState) {
      CHECK(now->lineage() == 0);
      CHECK(watches.changes() == changes);
      CHECK(watches.RowChanges(Key("r")) == row);
      CHECK(now->NameChanges("0", "absent") == name);
    } else {
      CHECK(now->lineage() == 1);
      CHECK(!watches.watches_rows());
    }
    // What a scan reads stays until it ends.
    CHECK(scan.entries() == 1);
    CHECK(now->garbage_bytes() > 0);
    scan = BTreeSnapshot();
    while (!now->CollectGarbage(1000)) {
    }
    CHECK(now->garbage_bytes() == 0);
  }
}

}  // namespace table_watches_test
