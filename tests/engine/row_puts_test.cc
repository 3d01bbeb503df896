// RowPuts: puts of a row in the order of their keys; see row_puts.h.
#include "engine/table/row_puts.h"

#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "engine/schema/schema.h"

namespace row_puts_test {

using cellar::FamilySchema;
using cellar::ResolvedPut;
using cellar::RowPuts;

// A put of `key`, which begins with a row's key of three bytes, of the value at `at` in `payload`.
void Add(RowPuts* puts, const FamilySchema& family, std::string_view key, std::string_view payload,
         size_t at) {
  ResolvedPut put;
  put.family = &family;
  put.key = key.data();
  put.row_bytes = 3;
  put.key_bytes = key.size();
  put.cell_value = payload.substr(at, 1);
  puts->Add(put, payload);
}

TEST_CASE("the puts of a row are sorted by key, with their values", "[row_puts]") {
  const FamilySchema family;
  const std::string payload = "0123456789";
  const std::vector<std::string> keys{"row5", "row1", "row", "row7", "row3x", "row3"};
  RowPuts puts;
  for (int round = 0; round < 2; ++round) {  // the second one begins with what the first one left
    puts.Clear();
    for (size_t i = 0; i < keys.size(); ++i) Add(&puts, family, keys[i], payload, i);
    REQUIRE(puts.Finish());
    CHECK(puts.row_bytes() == 3);
    std::string found;
    for (const RowPuts::Put& put : puts.puts()) {
      CHECK(put.value_bytes == 1);
      CHECK(puts.key(put) == keys[put.value_at]);
      found += payload[put.value_at];
    }
    CHECK(found == "215403");
  }
}

TEST_CASE("puts that cannot be done in any order are of no use", "[row_puts]") {
  const FamilySchema family;
  const std::string payload = "0123456789";
  RowPuts puts;
  puts.Clear();
  CHECK_FALSE(puts.Finish());                                       // there are none
  for (const std::string_view keys : {"ab", "aa", "aba", "baa"}) {  // the last bytes of the keys
    puts.Clear();
    for (size_t i = 0; i < keys.size(); ++i)
      Add(&puts, family, std::string("row") + keys[i], payload, i);
    CHECK(puts.Finish() == (keys == "ab"));
  }
  puts.Clear();
  Add(&puts, family, "row1", payload, 0);
  puts.MarkIncomplete();
  Add(&puts, family, "row2", payload, 1);
  CHECK_FALSE(puts.Finish());

  puts.Clear();
  ResolvedPut replacing;
  replacing.family = &family;
  replacing.key = "row1";
  replacing.row_bytes = 3;
  replacing.key_bytes = 4;
  replacing.cell_value = std::string_view(payload).substr(0, 1);
  replacing.timestamp = 2;
  replacing.replaced = 1;
  puts.Add(replacing, payload);
  CHECK_FALSE(puts.Finish());
}

TEST_CASE("a list of puts holds no more keys than it may", "[row_puts]") {
  const FamilySchema family;
  const std::string payload = "0";
  const std::string key(RowPuts::kKeysBytesMax / 2, 'k');
  RowPuts puts;
  puts.Clear();
  Add(&puts, family, key, payload, 0);
  Add(&puts, family, key.substr(1) + "l", payload, 0);
  CHECK(puts.Finish());
  puts.Clear();
  Add(&puts, family, key, payload, 0);
  Add(&puts, family, key + "l", payload, 0);
  CHECK_FALSE(puts.Finish());
}

}  // namespace row_puts_test
