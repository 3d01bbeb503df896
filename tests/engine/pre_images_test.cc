// What ops of a mutation meet, as it is taken down for feeds: kinds, keys, and what none has met.
#include "engine/state/pre_images.h"

#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/coding.h"
#include "engine/keys/timestamp.h"
#include "engine/state/engine.h"

namespace cellar::pre_images_test {

constexpr uint64_t kTableId{1};
constexpr uint32_t kFamily{1};
constexpr int64_t kNow{1'700'000'000'000'000};

std::string Key(std::string text) { return std::move(text) + std::string("\0\1", 2); }

std::string Value(std::string_view text) {
  std::string bytes;
  PutCellValue(&bytes, {.stored = text});
  return bytes;
}

void MakeTable(Engine& engine, const std::string& policy) {
  TableSchema schema;
  schema.groups = {{std::string(kDefaultGroup), 1}};
  FamilySchema family;
  family.id = schema.family_id_next++;
  REQUIRE(family.id == kFamily);
  family.name = "f";
  family.policy = *RetentionPolicy::Parse(policy);
  schema.families.push_back(std::move(family));
  std::string bytes;
  EncodeTableSchema(schema, &bytes);
  MutationBuilder mutation;
  mutation.CreateTable("0", "t", kTableId, bytes);
  for (const int64_t timestamp : {3, 2, 1}) {
    mutation.Row(kTableId, Key("r"));
    mutation.Put(kFamily, Key("q"), timestamp, Value(std::to_string(timestamp)));
  }
  REQUIRE(engine.Apply(mutation.payload()).ok());
}

struct Met {
  uint64_t op;
  OldCellKind kind;
  std::string value;
  friend bool operator==(const Met&, const Met&) = default;
};

// What the ops of `mutation` meet, and how many ops there are.
std::pair<uint64_t, std::vector<Met>> Taken(const Engine& engine, const MutationBuilder& mutation) {
  PreImages cells;
  cells.Begin(kNow, PreImages::Taken::kTogether);
  const std::string_view ops = mutation.payload().substr(kMutationHeaderBytes);
  REQUIRE(cells.TakeAll(ops, *engine.FindTableById(kTableId)).ok());
  MutationBuilder built;
  cells.AppendTo(&built);
  CHECK(built.size() <= kMutationBeginBytes + cells.bytes());
  MutationReader reader(built.payload().substr(kMutationBeginBytes));
  DecodedOp op;
  REQUIRE(reader.Next(&op));
  REQUIRE(op.op == MutationOp::kPreImages);
  std::vector<Met> met;
  std::string_view rest = op.first;
  while (!rest.empty()) {
    uint64_t index = 0;
    uint64_t count = 0;
    REQUIRE(GetVarint64(&rest, &index));
    REQUIRE(GetVarint64(&rest, &count));
    for (uint64_t i = 0; i < count; ++i) {
      const auto kind = static_cast<OldCellKind>(rest.front());
      rest.remove_prefix(1);
      std::string_view key;
      std::string_view value;
      REQUIRE(GetLengthPrefixed(&rest, &key));
      REQUIRE(GetLengthPrefixed(&rest, &value));
      CellValue cell;
      REQUIRE(DecodeCellHead(value, &cell));
      met.push_back({index, kind, std::string(cell.stored)});
    }
  }
  CHECK(op.number == met.size());
  return {op.id >> 1, met};
}

TEST_CASE("A put meets the newest live version, a deletion each one", "[feeds]") {
  Engine engine;
  MakeTable(engine, "maxversions=2");
  MutationBuilder mutation;
  mutation.Row(kTableId, Key("r"));
  mutation.Put(kFamily, Key("q"), 9, Value("9"));
  mutation.Put(kFamily, Key("new"), 9, Value("9"));
  mutation.ReclaimColumn(kFamily, Key("q"), kNow);
  mutation.DeleteCell(kFamily, Key("q"), 2);
  mutation.DeleteRange(kFamily, "", "");
  mutation.DeleteRow();
  mutation.DeleteRows(kTableId, "", "");
  const auto [ops, met] = Taken(engine, mutation);
  CHECK(ops == 7);
  const std::vector<Met> all{{4, OldCellKind::kRemoved, "3"},
                             {4, OldCellKind::kRemoved, "2"},
                             {4, OldCellKind::kReclaimed, "1"}};
  std::vector<Met> wanted{{0, OldCellKind::kNewest, "3"},
                          {2, OldCellKind::kReclaimed, "1"},
                          {3, OldCellKind::kRemoved, "2"}};
  for (uint64_t op = 4; op < 7; ++op) {
    for (Met one : all) {
      one.op = op;
      wanted.push_back(one);
    }
  }
  CHECK(met == wanted);
}

TEST_CASE("Old cells in a mutation change nothing", "[feeds]") {
  Engine engine;
  MakeTable(engine, "maxversions=2");
  const uint64_t cells = engine.FindTableById(kTableId)->cells();
  MutationBuilder mutation;
  mutation.PreImages(3, 1, "whatever");
  REQUIRE(engine.Apply(mutation.payload()).ok());
  CHECK(engine.FindTableById(kTableId)->cells() == cells);
}

}  // namespace cellar::pre_images_test
