// Named snapshots in the engine: their mutations, what hostile ones do, and catalogs in files.
#include "engine/state/snapshot_set.h"

#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "btree/btree.h"
#include "engine/state/engine.h"
#include "engine/state/table_copy.h"
#include "engine/table/mutation.h"

namespace snapshot_set_test {

using namespace cellar;

std::string SchemaOf(uint64_t tree_id) {
  TableSchema schema;
  schema.groups.push_back({std::string(kDefaultGroup), tree_id});
  FamilySchema family;
  family.name = "f";
  family.id = schema.family_id_next++;
  schema.families.push_back(family);
  std::string bytes;
  EncodeTableSchema(schema, &bytes);
  return bytes;
}

// Rows of table `id`, of one cell each.
void PutRows(Engine* engine, uint64_t id, int first, int count, std::string_view value) {
  MutationBuilder mutation;
  const Table* table = engine->FindTableById(id);
  for (int i = first; i < first + count; ++i) {
    std::string key;
    REQUIRE(table->schema().key.Encode("row" + std::to_string(i), &key).ok());
    mutation.Row(id, key);
    std::string qualifier;
    REQUIRE(table->schema().families[0].order.Encode("q", &qualifier).ok());
    std::string cell;
    PutCellValue(&cell, {.type = ValueType::kBytes, .expiry_micros = kNoExpiry, .stored = value});
    mutation.Put(1, qualifier, 7, cell);
  }
  REQUIRE(engine->Apply(mutation.payload()).ok());
}

void MakeTable(Engine* engine, std::string_view name) {
  MutationBuilder mutation;
  mutation.CreateTable("0", name, engine->table_id_next(), SchemaOf(engine->tree_id_next()));
  REQUIRE(engine->Apply(mutation.payload()).ok());
}

Status Snapshot(Engine* engine, std::string_view name, std::vector<uint64_t> tables) {
  MutationBuilder mutation;
  mutation.CreateSnapshot("0", name, engine->table_id_next(),
                          EncodeSnapshotDefinition({.created_micros = 5,
                                                    .ttl_micros = 0,
                                                    .tree_id_first = engine->tree_id_next(),
                                                    .table_ids = std::move(tables)}));
  return engine->Apply(mutation.payload());
}

std::string Copy(const Engine& engine, uint64_t source_id) {
  CopyDefinition definition;
  definition.source_id = source_id;
  definition.tree_id_first = engine.tree_id_next();
  return EncodeCopyDefinition(definition);
}

struct File {
  std::string catalog;
  std::vector<std::pair<uint64_t, std::vector<std::string>>> trees;
};

File Save(Engine* engine) {
  File file;
  const StateMachine::StateSnapshot state = engine->TakeSnapshot();
  file.catalog = state.catalog;
  for (const StateMachine::TreeSnapshot& tree : state.trees) {
    BTreeImageReader reader = tree.newer.valid()
                                  ? BTreeImageReader(tree.snapshot, tree.newer, tree.version_epoch)
                                  : BTreeImageReader(tree.snapshot);
    auto& images = file.trees.emplace_back(tree.tree_id, std::vector<std::string>()).second;
    for (std::string image; reader.Next(&image); image.clear()) images.push_back(image);
  }
  return file;
}

Status Load(const File& file, Engine* engine) {
  engine->Reset();
  RETURN_IF_ERROR(engine->BeginLoad(file.catalog));
  for (const auto& [id, images] : file.trees) {
    BTree* tree = engine->TreeForLoad(id);
    if (tree == nullptr) return Status::Error(ErrorCode::kCorruption, "no such tree");
    BTreeBulkLoader loader(tree);
    for (const std::string& image : images) RETURN_IF_ERROR(loader.AddImage(image));
    RETURN_IF_ERROR(loader.Finish());
  }
  return engine->FinishLoad();
}

TEST_CASE("a table of a snapshot is found by its name alone, and is not in the way", "[snapshot]") {
  Engine engine;
  MakeTable(&engine, "t");
  PutRows(&engine, 1, 0, 300, "old");
  REQUIRE(Snapshot(&engine, "s", {1}).ok());
  PutRows(&engine, 1, 100, 300, "new");
  const Table* frozen = engine.FindTable("0", "t@s");
  REQUIRE(frozen != nullptr);
  CHECK(frozen->frozen());
  CHECK(frozen->cells() == 300);
  CHECK(engine.FindTable("0", "t")->cells() == 400);
  CHECK(engine.FindTableById(frozen->id()) == nullptr);
  CHECK(engine.Tables("0").size() == 1);
  CHECK(engine.FindTable("0", "t@x") == nullptr);
  CHECK(engine.FindTable("1", "t@s") == nullptr);
}

TEST_CASE("what a transaction has done to snapshots can be taken back", "[snapshot]") {
  Engine engine;
  MakeTable(&engine, "t");
  PutRows(&engine, 1, 0, 300, "old");
  REQUIRE(Snapshot(&engine, "kept", {1}).ok());
  engine.BeginUndo();
  PutRows(&engine, 1, 0, 100, "inside");
  REQUIRE(Snapshot(&engine, "inside", {1}).ok());
  MutationBuilder drop;
  drop.DropSnapshot(engine.snapshots().Find("0", "kept")->id);
  REQUIRE(engine.Apply(drop.payload()).ok());
  PutRows(&engine, 1, 300, 100, "behind");
  engine.RollBack();
  CHECK(engine.snapshots().Find("0", "inside") == nullptr);
  REQUIRE(engine.FindTable("0", "t@kept") != nullptr);
  CHECK(engine.FindTable("0", "t@kept")->cells() == 300);
  CHECK(engine.FindTable("0", "t")->cells() == 300);
  while (!engine.CollectGarbage(1000)) {
  }
  CHECK(engine.garbage_bytes() == 0);
}

TEST_CASE("ops that no server has written are refused", "[snapshot]") {
  Engine engine;
  MakeTable(&engine, "t");
  PutRows(&engine, 1, 0, 10, "v");
  REQUIRE(Snapshot(&engine, "s", {1}).ok());
  const uint64_t frozen_id = engine.FindTable("0", "t@s")->id();
  CHECK_FALSE(Snapshot(&engine, "s", {1}).ok());
  CHECK_FALSE(Snapshot(&engine, "a b", {1}).ok());
  CHECK_FALSE(Snapshot(&engine, "two", {1, 1}).ok());
  CHECK_FALSE(Snapshot(&engine, "none", {77}).ok());
  CHECK_FALSE(Snapshot(&engine, "of a snapshot", {frozen_id}).ok());
  const auto refused = [&engine](const MutationBuilder& mutation) {
    return engine.Apply(mutation.payload()).code() == ErrorCode::kCorruption;
  };
  for (const uint64_t id : {uint64_t{0}, uint64_t{1}, frozen_id, UINT64_MAX}) {
    MutationBuilder drop;
    drop.DropSnapshot(id);
    CHECK(refused(drop));
    MutationBuilder create;
    create.CreateSnapshot("0", "x", id,
                          EncodeSnapshotDefinition({.created_micros = 5,
                                                    .ttl_micros = 0,
                                                    .tree_id_first = engine.tree_id_next(),
                                                    .table_ids = {1}}));
    CHECK(refused(create));
    MutationBuilder copy;
    copy.CopyTable("0", "u", engine.table_id_next(), Copy(engine, id == frozen_id ? 1 : id));
    CHECK(refused(copy));
  }
  for (const std::string_view name : {"t", "", "t@s"}) {
    MutationBuilder copy;
    copy.CopyTable("0", name, engine.table_id_next(), Copy(engine, frozen_id));
    CHECK(refused(copy));
  }
  for (const std::string_view bytes : {"", "\x01", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"}) {
    MutationBuilder create;
    create.CreateSnapshot("0", "x", engine.table_id_next(), bytes);
    CHECK(refused(create));
    MutationBuilder copy;
    copy.CopyTable("0", "u", engine.table_id_next(), bytes);
    CHECK(refused(copy));
  }
  MutationBuilder write;
  write.DeleteRows(frozen_id, "a", "b");
  CHECK(refused(write));
  CHECK(engine.snapshots().size() == 1);
}

TEST_CASE("files with snapshots are loaded as they were, and damaged ones refused", "[snapshot]") {
  Random random(4);
  Engine engine;
  for (const std::string_view name : {"t", "u"}) MakeTable(&engine, name);
  for (int i = 0; i < 6; ++i) {
    PutRows(&engine, 1, static_cast<int>(random.Below(500)), 400,
            std::string(20, static_cast<char>('a' + i)));
    PutRows(&engine, 2, static_cast<int>(random.Below(500)), 50, "v");
    REQUIRE(Snapshot(&engine, "s" + std::to_string(i),
                     i % 2 == 0 ? std::vector<uint64_t>{1} : std::vector<uint64_t>{1, 2})
                .ok());
  }
  MutationBuilder drop;  // its versions are of a tree that is gone
  drop.DropTable(2);
  REQUIRE(engine.Apply(drop.payload()).ok());
  const File file = Save(&engine);
  std::map<std::string, uint64_t> cells;
  for (const Table* table : engine.snapshots().Tables())
    cells[table->shown_name()] = table->cells();
  Engine loaded;
  REQUIRE(Load(file, &loaded).ok());
  for (const auto& [name, count] : cells) {
    REQUIRE(loaded.FindTable("0", name) != nullptr);
    CHECK(loaded.FindTable("0", name)->tree(0).entries() == count);
  }
  const File again = Save(&loaded);
  CHECK(again.catalog == file.catalog);
  CHECK(again.trees == file.trees);

  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    File wrong = file;
    std::string& bytes =
        random.OneIn(3) ? wrong.trees[random.Below(wrong.trees.size())].second[0] : wrong.catalog;
    if (random.OneIn(8)) {
      bytes.resize(random.Below(bytes.size()));
    } else if (random.OneIn(8)) {
      std::swap(wrong.trees[random.Below(wrong.trees.size())],
                wrong.trees[random.Below(wrong.trees.size())]);
    } else {
      bytes[random.Below(bytes.size())] ^= static_cast<char>(1 << random.Below(8));
    }
    if (!Load(wrong, &loaded).ok()) ++refused;  // whatever it says, it must not fall
  }
  CHECK(refused > 1000);
  REQUIRE(Load(file, &loaded).ok());
}

}  // namespace snapshot_set_test
