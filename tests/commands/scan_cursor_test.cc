// Cursors come back as they went out, and nothing else is taken for one.
#include "commands/arguments/scan_cursor.h"

#include <catch2/catch.hpp>
#include <string>

namespace scan_cursor_test {

using namespace cellar;

ScanCursor Sample() {
  ScanCursor cursor;
  cursor.position.row_key = std::string("row\0\xff\x01", 6);
  cursor.position.inside_row = true;
  cursor.position.cell_key = std::string("\x01q\0\x01\x7f", 5);
  cursor.position.cells_before = 1'000'000;
  cursor.position.columns_before = 300;
  cursor.position.super_columns_before = 2;
  cursor.position.index_table_id = 300;
  cursor.position.index_id = 5;
  cursor.position.group_rows = 200;
  cursor.pin = 77;
  return cursor;
}

TEST_CASE("A cursor reads back to the same position and is printable", "[scan_cursor]") {
  const uint64_t binding = ScanBinding("utf8#-u64", "", false);
  const std::string text = EncodeCursor(Sample(), binding);
  for (const char byte : text) {
    CHECK((byte == '-' || byte == '_' || (byte >= '0' && byte <= '9') ||
           (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z')));
  }
  CHECK_FALSE(IsStartCursor(text));
  const Result<ScanCursor> read = DecodeCursor(text, binding);
  REQUIRE(read.ok());
  CHECK(read->position.row_key == Sample().position.row_key);
  CHECK(read->position.inside_row);
  CHECK_FALSE(read->position.row_done);
  CHECK(read->position.cell_key == Sample().position.cell_key);
  CHECK(read->position.cells_before == 1'000'000);
  CHECK(read->position.columns_before == 300);
  CHECK(read->position.super_columns_before == 2);
  CHECK(read->pin == 77);
  CHECK(read->position.index_table_id == 300);
  CHECK(read->position.index_id == 5);
  CHECK(read->position.group_rows == 200);

  ScanCursor plain;
  plain.position.row_key = "r";
  plain.position.row_done = true;
  const Result<ScanCursor> read_plain = DecodeCursor(EncodeCursor(plain, binding), binding);
  REQUIRE(read_plain.ok());
  CHECK(read_plain->position.row_done);
  CHECK_FALSE(read_plain->position.inside_row);
  CHECK_FALSE(read_plain->pin.has_value());
  CHECK(read_plain->position.index_id == 0);
  CHECK(read_plain->position.group_rows == 0);
}

TEST_CASE("A cursor is bound to key order, direction and index", "[scan_cursor]") {
  const std::string text = EncodeCursor(Sample(), ScanBinding("bytes", "", false));
  CHECK(DecodeCursor(text, ScanBinding("bytes", "", false)).ok());
  CHECK_FALSE(DecodeCursor(text, ScanBinding("i64", "", false)).ok());
  CHECK_FALSE(DecodeCursor(text, ScanBinding("bytes", "", true)).ok());
  CHECK_FALSE(DecodeCursor(text, ScanBinding("bytes", "by_name", false)).ok());
}

TEST_CASE("No changed, cut or invented text is a cursor", "[scan_cursor]") {
  const uint64_t binding = ScanBinding("bytes", "", false);
  const std::string text = EncodeCursor(Sample(), binding);
  for (size_t i = 0; i < text.size(); ++i) {
    CHECK_FALSE(DecodeCursor(text.substr(0, i), binding).ok());
    std::string changed = text;
    changed[i] = changed[i] == 'x' ? 'y' : 'x';
    CHECK_FALSE(DecodeCursor(changed, binding).ok());
  }
  for (const char* other : {"", "1", "A", "00", "-1", "A!", "Axyz", "A%%%%%%%%%%%", "bogus"}) {
    const Result<ScanCursor> read = DecodeCursor(other, binding);
    REQUIRE_FALSE(read.ok());
    CHECK(read.status().ToString().starts_with("ERR invalid cursor: "));
  }
  CHECK_FALSE(CheckCursorForm("17").ok());
  CHECK_FALSE(CheckCursorForm("Not a cursor").ok());
  CHECK(CheckCursorForm("0").ok());
  CHECK(CheckCursorForm(text).ok());
  CHECK_FALSE(DecodeCursor(text + "A", binding).ok());
}

}  // namespace scan_cursor_test
