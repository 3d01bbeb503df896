// A schema survives its bytes and its text.
#include "engine/schema/schema.h"

#include <catch2/catch.hpp>
#include <string>

#include "base/text/quote.h"

namespace schema_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)

TableSchema Sample() {
  TableSchema schema;
  schema.key = *Order::Parse("utf8#-u64");
  schema.groups = {{"default", 7}, {"cold", 9}};
  FamilySchema plain;
  plain.name = "a";
  plain.id = 1;
  FamilySchema rich;
  rich.name = "b";
  rich.id = 300;
  rich.group = 1;
  rich.type = ValueType::kI64;
  rich.order = *Order::Parse("timeuuid:bytes");
  rich.policy = *RetentionPolicy::Parse("maxversions=3 && maxage=7d || maxage=30d");
  FamilySchema simple;
  simple.name = "c";
  simple.id = 2;
  simple.policy = RetentionPolicy::FromVersionsAndTtl(4, 90'000);
  schema.families = {plain, rich, simple};
  schema.family_id_next = 301;
  return schema;
}

TEST_CASE("A table's schema reads back from its bytes", "[schema]") {
  const TableSchema schema = Sample();
  std::string bytes;
  EncodeTableSchema(schema, &bytes);
  bytes += "rest";
  std::string_view view = bytes;
  TableSchema back;
  REQUIRE(DecodeTableSchema(&view, &back).ok());
  CHECK(view == "rest");
  CHECK(back.key == schema.key);
  CHECK(back.family_id_next == 301);
  REQUIRE(back.families.size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(back.families[i].name == schema.families[i].name);
    CHECK(back.families[i].id == schema.families[i].id);
    CHECK(back.families[i].group == schema.families[i].group);
    CHECK(back.families[i].type == schema.families[i].type);
    CHECK(back.families[i].order == schema.families[i].order);
    CHECK(back.families[i].policy == schema.families[i].policy);
  }
  CHECK(back.groups[1].name == "cold");
  CHECK(back.groups[1].tree_id == 9);
}

// One with types of columns behind everything else that a family has.
TableSchema Typed() {
  TableSchema schema = Sample();
  FamilySchema& family = schema.families[2];
  family.order = *Order::Parse("utf8#u16");
  family.bucket_ms = 1000;
  for (const auto& [text, type] :
       {std::pair{"a#1", ValueType::kU64}, std::pair{"a#2", ValueType::kBytes},
        std::pair{"b c#1", ValueType::kBool}}) {
    std::string qualifier;
    REQUIRE(family.order.Encode(text, &qualifier).ok());
    family.columns.push_back({qualifier, type});
  }
  return schema;
}

TEST_CASE("Types of columns read back, and show", "[schema]") {
  const TableSchema schema = Typed();
  std::string bytes;
  EncodeTableSchema(schema, &bytes);
  std::string_view view = bytes;
  TableSchema back;
  REQUIRE(DecodeTableSchema(&view, &back).ok());
  CHECK(view.empty());
  const FamilySchema& family = back.families[2];
  CHECK(family.columns == schema.families[2].columns);
  CHECK(family.bucket_ms == 1000);
  CHECK(HasTypedColumns(back));
  CHECK_FALSE(IsPlainSchema(back));
  CHECK(TypeOf(family, family.columns[0].qualifier) == ValueType::kU64);
  CHECK(TypeOf(family, family.columns[0].qualifier + "x") == std::nullopt);
  CHECK(
      FamilyOptionsText(back, family) ==
      " BUCKET 1s ORDER utf8#u16 COLUMN a#1 u64 COLUMN a#2 bytes COLUMN \"b c#1\" bool VERSIONS 4 "
      "TTL 90s");
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    std::string_view part = std::string_view(bytes).substr(0, cut);
    TableSchema ignored;
    if (DecodeTableSchema(&part, &ignored).ok()) CHECK(part.empty());
  }
}

TEST_CASE("Types of columns that no family can have are refused", "[schema]") {
  const auto refuses = [](const auto& spoil) {
    TableSchema schema = Typed();
    spoil(&schema.families[2]);
    std::string bytes;
    EncodeTableSchema(schema, &bytes);
    std::string_view view = bytes;
    TableSchema ignored;
    return !DecodeTableSchema(&view, &ignored).ok();
  };
  CHECK_FALSE(refuses([](FamilySchema*) {}));
  CHECK(refuses([](FamilySchema* f) { std::swap(f->columns[0], f->columns[1]); }));
  CHECK(refuses([](FamilySchema* f) { f->columns[1] = f->columns[0]; }));
  CHECK(refuses([](FamilySchema* f) { f->columns[0].qualifier = "no key"; }));
  CHECK(refuses([](FamilySchema* f) { f->columns[0].qualifier += "x"; }));
  CHECK(refuses([](FamilySchema* f) { f->columns[0].type = ValueType::kHll; }));
  CHECK(refuses([](FamilySchema* f) {
    f->fold = FoldKind::kSum;
    f->type = ValueType::kI64;
  }));
}

TEST_CASE("The type of a column is found among few and among many", "[schema]") {
  for (const size_t count : {size_t{1}, size_t{8}, size_t{9}, kTypedColumnsMax}) {
    FamilySchema family;
    family.type = ValueType::kI8;
    for (size_t i = 0; i < count; ++i) {
      const std::string text{static_cast<char>('a' + i / 16), static_cast<char>('a' + i % 16)};
      family.columns.push_back({text, i % 2 == 0 ? ValueType::kU8 : ValueType::kF32});
    }
    for (size_t i = 0; i < count; ++i) {
      const std::string& qualifier = family.columns[i].qualifier;
      CHECK(TypeOf(family, qualifier) == family.columns[i].type);
      CHECK(TypeOf(family, qualifier + "a") == ValueType::kI8);
      CHECK(TypeOf(family, qualifier.substr(0, 1)) == ValueType::kI8);
    }
  }
}

TEST_CASE("A schema cut short anywhere is refused", "[schema]") {
  std::string bytes;
  EncodeTableSchema(Sample(), &bytes);
  for (size_t size = 0; size < bytes.size(); ++size) {
    std::string_view view = std::string_view(bytes).substr(0, size);
    TableSchema back;
    if (size == bytes.size() - 2) continue;  // a schema of the first format, without indexes
    CHECK_FALSE(DecodeTableSchema(&view, &back).ok());
  }
}

TEST_CASE("A family is shown as the options that make it", "[schema]") {
  const TableSchema schema = Sample();
  CHECK(FamilyOptionsText(schema, schema.families[0]).empty());
  CHECK(
      FamilyOptionsText(schema, schema.families[1]) ==
      " TYPE i64 ORDER timeuuid:bytes GC \"maxversions=3 && maxage=7d || maxage=30d\" GROUP cold");
  CHECK(FamilyOptionsText(schema, schema.families[2]) == " VERSIONS 4 TTL 90s");
}

TEST_CASE("ALTER keeps what is not named, and GC and VERSIONS replace each other", "[schema]") {
  const RetentionPolicy both = RetentionPolicy::FromVersionsAndTtl(4, 90'000);
  FamilyOptions versions;
  versions.versions_max = 2;
  CHECK(AlterRetention(both, versions).versions() == 2);
  CHECK(AlterRetention(both, versions).ttl_ms() == 90'000);
  FamilyOptions gc;
  gc.gc = *RetentionPolicy::Parse("maxversions=3 && maxage=7d");
  CHECK(AlterRetention(both, gc).is_expression());
  CHECK(AlterRetention(*gc.gc, versions).ttl_ms() == 0);
  FamilyOptions nothing;
  nothing.ttl_ms = 0;
  nothing.versions_max = 0;
  CHECK(AlterRetention(both, nothing).keeps_everything());
}

TEST_CASE("Names follow the one rule", "[schema]") {
  for (const char* good : {"a", "_", "0", "a.b-c_D", "9lives"}) CHECK(IsName(good));
  for (const char* bad : {"", ".a", "-a", "a b", "a/b", "a:b", "\xc3\xa4"})
    CHECK_FALSE(IsName(bad));
  CHECK(IsName(std::string(64, 'x')));
  CHECK_FALSE(IsName(std::string(65, 'x')));
}

TEST_CASE("Words are quoted as redis-cli reads them", "[schema]") {
  CHECK(QuoteWord("plain#word") == "plain#word");
  CHECK(QuoteWord("") == "\"\"");
  CHECK(QuoteWord("a b") == "\"a b\"");
  CHECK(QuoteWord(std::string_view("\0\"\\\xff", 4)) == "\"\\x00\\\"\\\\\\xff\"");
}

}  // namespace schema_test
