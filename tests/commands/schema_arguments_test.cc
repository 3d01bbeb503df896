// TABLE CREATE and FAMILY ADD|ALTER as words in and plain data out.
#include "commands/arguments/schema_arguments.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace schema_arguments_test {

using namespace cellar;
using Words = std::vector<std::string_view>;

std::string CreateError(const Words& words) {
  const Result<TableRequest> request = ParseTableCreate(ArgumentCursor(words, 0));
  return request.ok() ? "OK" : request.status().ToString();
}
std::string FamilyError(FamilyVerb verb, const Words& words) {
  const Result<FamilyRequest> request = ParseFamily(verb, ArgumentCursor(words, 0));
  return request.ok() ? "OK" : request.status().ToString();
}

TEST_CASE("A table's name may have its keyspace in front", "[schema_arguments]") {
  CHECK(SplitTableName("7", "planes").keyspace == "7");
  CHECK(SplitTableName("7", "planes").table == "planes");
  CHECK(SplitTableName("7", "fleet/planes").keyspace == "fleet");
  CHECK(SplitTableName("7", "fleet/planes").table == "planes");
  CHECK(CheckTableName("fleet/planes").ok());
  CHECK_FALSE(CheckTableName("fleet/planes/1").ok());
  CHECK_FALSE(CheckTableName("/planes").ok());
  CHECK_FALSE(CheckTableName("fleet/").ok());
  CHECK_FALSE(CheckTableName("").ok());
  CHECK_FALSE(CheckTableName("two words").ok());
  CHECK_FALSE(CheckTableName(std::string(65, 'a')).ok());
  CHECK(CheckTableName(std::string(64, 'a')).ok());
}

TEST_CASE("TABLE CREATE takes the key's order and families with options", "[schema_arguments]") {
  const Words words = {"FAMILY",   "a",
                       "TYPE",     "i64",
                       "versions", "3",
                       "TTL",      "7d",
                       "KEY",      "utf8#-u64",
                       "family",   "b",
                       "ORDER",    "timeuuid:bytes",
                       "GC",       "maxversions=3 && maxage=7d || maxage=30d",
                       "GROUP",    "big"};
  const Result<TableRequest> request = ParseTableCreate(ArgumentCursor(words, 0));
  REQUIRE(request.ok());
  CHECK(request->key.spec() == "utf8#-u64");
  REQUIRE(request->families.size() == 2);
  const FamilyOptions& a = request->families[0].options;
  CHECK(request->families[0].name == "a");
  CHECK(*a.type == ValueType::kI64);
  CHECK(a.versions_max == 3);
  CHECK(a.ttl_ms == 7ull * 24 * 3600 * 1000);
  CHECK_FALSE(a.gc.has_value());
  const FamilyOptions& b = request->families[1].options;
  CHECK(b.order->spec() == "timeuuid:bytes");
  CHECK(b.gc->is_expression());
  CHECK(b.group == "big");
  CHECK(CreateError({}) == "OK");
}

TEST_CASE("What TABLE CREATE cannot read is a plain error", "[schema_arguments]") {
  for (const Words& words : std::vector<Words>{{"KEY"},
                                               {"KEY", "i64", "KEY", "i64"},
                                               {"FAMILY"},
                                               {"FAMILY", "f", "TYPE"},
                                               {"FAMILY", "f", "TYPE", "i64", "TYPE", "i64"},
                                               {"FAMILY", "f", "VERSIONS", "1", "VERSIONS", "1"},
                                               {"FAMILY", "f", "TTL", "1", "TTL", "1"},
                                               {"FAMILY", "f", "GROUP", "g", "GROUP", "g"},
                                               {"FAMILY", "f", "ORDER", "i64", "ORDER", "i64"},
                                               {"FAMILY", "f", "GC", "maxversions=1", "TTL", "1"},
                                               {"FAMILY", "f", "VERSIONS", "1", "GC", "NONE"},
                                               {"FAMILY", "f", "COLOUR", "red"},
                                               {"f"}}) {
    CHECK(CreateError(words).starts_with("ERR syntax error: "));
  }
  for (const Words& words : std::vector<Words>{{"KEY", "number"},
                                               {"FAMILY", "f:"},
                                               {"FAMILY", "f", "TYPE", "number"},
                                               {"FAMILY", "f", "VERSIONS", "0"},
                                               {"FAMILY", "f", "TTL", "0"},
                                               {"FAMILY", "f", "TTL", "x"},
                                               {"FAMILY", "f", "GC", "maxversions="},
                                               {"FAMILY", "f", "ORDER", "a#b"},
                                               {"FAMILY", "f", "GROUP", "-"}}) {
    INFO(words.back());
    CHECK(CreateError(words).starts_with("ERR "));
  }
}

TEST_CASE("FAMILY ALTER changes what it names, and must name something", "[schema_arguments]") {
  const Words words = {"f", "type", "none", "ttl", "NONE", "versions", "ALL"};
  const Result<FamilyRequest> request = ParseFamily(FamilyVerb::kAlter, ArgumentCursor(words, 0));
  REQUIRE(request.ok());
  REQUIRE(request->options.type.has_value());
  CHECK_FALSE(request->options.type->has_value());
  CHECK(request->options.ttl_ms == 0);
  CHECK(request->options.versions_max == 0);
  CHECK_FALSE(request->options.gc.has_value());

  const Words none = {"f", "GC", "none"};
  const Result<FamilyRequest> off = ParseFamily(FamilyVerb::kAlter, ArgumentCursor(none, 0));
  REQUIRE(off.ok());
  CHECK(off->options.gc->keeps_everything());

  CHECK(FamilyError(FamilyVerb::kAlter, {"f"}).starts_with("ERR syntax error: "));
  CHECK(FamilyError(FamilyVerb::kAlter, {}).starts_with("ERR syntax error: "));
  CHECK(FamilyError(FamilyVerb::kAlter, {"f", "TTL", "1", "x"}).starts_with("ERR syntax error: "));
  CHECK(FamilyError(FamilyVerb::kAdd, {"f"}) == "OK");
  CHECK(FamilyError(FamilyVerb::kAdd, {"f", "ORDER", "i64", "GROUP", "g"}) == "OK");
  CHECK(FamilyError(FamilyVerb::kAdd, {"f:x"}).starts_with("ERR family name"));
}

TEST_CASE("Columns may have types, and ALTER says what becomes of cells", "[schema_arguments]") {
  const Words words = {"f",      "COLUMN", "",     "u64",     "nocolumn", "b",
                       "column", "TYPE",   "byte", "CONVERT", "skip"};
  const Result<FamilyRequest> request = ParseFamily(FamilyVerb::kAlter, ArgumentCursor(words, 0));
  REQUIRE(request.ok());
  const FamilyOptions& options = request->options;
  REQUIRE(options.columns.size() == 3);
  CHECK(options.columns[0].qualifier.empty());
  CHECK(options.columns[0].type == ValueType::kU64);
  CHECK(options.columns[1].type == std::nullopt);
  CHECK(options.columns[2].qualifier == "TYPE");
  CHECK(options.columns[2].type == ValueType::kU8);
  CHECK(options.other_cells == OtherCells::kSkip);

  for (const Words& bad : std::vector<Words>{{"f", "COLUMN", "x"},
                                             {"f", "COLUMN"},
                                             {"f", "NOCOLUMN"},
                                             {"f", "KEEP"},
                                             {"f", "CONVERT", "TTL", "1"},
                                             {"f", "TYPE", "i64", "KEEP", "CONVERT"},
                                             {"f", "TYPE", "i64", "CONVERT", "CONVERT"}}) {
    CHECK(FamilyError(FamilyVerb::kAlter, bad).starts_with("ERR syntax error: "));
  }
  CHECK(FamilyError(FamilyVerb::kAlter, {"f", "COLUMN", "x", "NONE"}).starts_with("ERR unknown"));
  CHECK(FamilyError(FamilyVerb::kAdd, {"f", "COLUMN", "x", "i64"}) == "OK");
  CHECK(FamilyError(FamilyVerb::kAdd, {"f", "NOCOLUMN", "x"}).starts_with("ERR syntax error: "));
  CHECK(FamilyError(FamilyVerb::kAdd, {"f", "TYPE", "i64", "KEEP"})
            .starts_with("ERR syntax error: "));
}

}  // namespace schema_arguments_test
