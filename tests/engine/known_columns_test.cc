// Columns by their names: what is known is what the schema says.
#include "engine/schema/known_columns.h"

#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "engine/keys/cell.h"
#include "engine/schema/column_set.h"

namespace known_columns_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)
using namespace std::string_literals;

TableSchema MakeSchema(const std::vector<std::string>& families, const std::string& order) {
  TableSchema schema;
  for (const std::string& name : families) {
    FamilySchema family;
    family.name = name;
    family.id = schema.family_id_next++ == 2 ? kFamilyIdShortMax : schema.family_id_next;
    family.order = *Order::Parse(order);
    schema.families.push_back(std::move(family));
  }
  return schema;
}

// Its part of a cell's key, as whoever does not know it works it out.
std::string KeyOf(const FamilySchema& family, std::string_view qualifier) {
  std::string key;
  PutFamilyId(&key, family.id);
  REQUIRE(EncodeQualifier(family, qualifier, &key).ok());
  return key;
}

void CheckIsColumn(const TableSchema& schema, const KnownColumn& column, const std::string& family,
                   const std::string& qualifier) {
  const FamilySchema* const expected = schema.FindFamily(family);
  REQUIRE(&column.family() == expected);
  REQUIRE(column.name() == family + ":" + qualifier);
  char bytes[KnownColumn::kKeyBytesMax];
  const char* const end = column.CopyKey(bytes);
  REQUIRE(std::string(bytes, static_cast<size_t>(end - bytes)) == KeyOf(*expected, qualifier));
}

void Note(KnownColumns* columns, const TableSchema& schema, const std::string& family,
          const std::string& qualifier) {
  const FamilySchema& found = *schema.FindFamily(family);
  columns->Note(family + ":" + qualifier, found, KeyOf(found, qualifier));
}

TEST_CASE("A name becomes known when it comes twice", "[known_columns]") {
  const TableSchema schema = MakeSchema({"f", "meta"}, "bytes");
  KnownColumns columns;
  CHECK(columns.Find("meta:miles") == nullptr);
  CHECK(columns.Find("") == nullptr);
  Note(&columns, schema, "meta", "miles");
  CHECK(columns.Find("meta:miles") == nullptr);
  CHECK(columns.Find("") == nullptr);
  CHECK(columns.memory_bytes() > 0);
  Note(&columns, schema, "meta", "miles");
  REQUIRE(columns.Find("meta:miles") != nullptr);
  CheckIsColumn(schema, *columns.Find("meta:miles"), "meta", "miles");
  for (const char* other : {"meta:mile", "meta:miles1", "meta:milet", "Meta:miles", "meta", ""})
    CHECK(columns.Find(other) == nullptr);
  columns.Clear();
  CHECK(columns.Find("meta:miles") == nullptr);
  CHECK(columns.memory_bytes() == 0);
}

TEST_CASE("What is known of random names is what the schema says", "[known_columns]") {
  const uint64_t seed = 20261122;
  INFO("seed " << seed);
  Random random(seed);
  for (const char* order : {"bytes", "-bytes", "u64", "bytes:u8"}) {
    const TableSchema schema =
        MakeSchema({"a", "f", "family.of_seventeen", "family.of_twenty-three"}, order);
    KnownColumns columns;
    uint64_t found = 0;
    for (int step = 0; step < 20'000; ++step) {
      const std::string family = schema.families[random.Below(schema.families.size())].name;
      std::string qualifier;
      if (order == "u64"s) {
        qualifier = std::string(random.Below(3), '0') + std::to_string(random.Below(20));
      } else if (order == "bytes:u8"s) {
        qualifier = std::string(random.Below(3), 'q') + ":" + std::to_string(random.Below(20));
      } else {
        for (uint64_t n = random.Below(8); n > 0; --n)
          qualifier += static_cast<char>(random.OneIn(3) ? random.Below(2) : ':' + random.Below(3));
      }
      const std::string name = family + ":" + qualifier;
      const KnownColumn* const column = columns.Find(name);
      if (column == nullptr) {
        Note(&columns, schema, family, qualifier);
        if (random.OneIn(4)) Note(&columns, schema, family, qualifier);
      } else {
        ++found;
        CheckIsColumn(schema, *column, family, qualifier);
      }
    }
    CHECK(found > 1'000);
  }
}

TEST_CASE("Names and keys that are too long do not become known", "[known_columns]") {
  const TableSchema schema = MakeSchema({"f", "g"}, "u64");
  const TableSchema wide = MakeSchema({"f"}, "bytes");
  KnownColumns columns;
  const auto is_known_after = [&](const TableSchema& of, const std::string& qualifier) {
    for (int i = 0; i < 3; ++i) Note(&columns, of, "f", qualifier);
    return columns.Find("f:" + qualifier) != nullptr;
  };
  constexpr size_t kMost{KnownColumn::kNameBytesMax - 2};  // of a qualifier
  CHECK(is_known_after(schema, "5"));
  CHECK(is_known_after(schema, std::string(kMost - 1, '0') + "7"));
  CHECK_FALSE(is_known_after(schema, std::string(kMost, '0') + "7"));
  // A zero byte takes two in a key, which has two more at its end.
  CHECK(is_known_after(wide, std::string(10, '\0')));
  CHECK_FALSE(is_known_after(wide, std::string(kMost, '\0')));
}

}  // namespace known_columns_test
