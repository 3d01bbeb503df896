// cellar-import's mapping of records to rows, its timestamps, and the commands that rows become.
#include "cellar-import/row_mapper.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/random.h"
#include "cellar-import/command.h"
#include "cellar-import/options.h"

namespace row_mapper_test {
namespace {

using namespace cellar;            // NOLINT(google-build-using-namespace)
using namespace cellar::importer;  // NOLINT(google-build-using-namespace)

MapperOptions Keyed(std::vector<std::string> keys, std::string default_family) {
  MapperOptions options;
  options.key_fields = std::move(keys);
  options.default_family = std::move(default_family);
  return options;
}

// The command that a record becomes, or "!" and the error.
std::string MapFields(const MapperOptions& options, const std::vector<std::string>& header,
                      const std::vector<std::string>& fields) {
  RowMapper mapper(options);
  Status status = mapper.SetHeader(header);
  Row row;
  Record record;
  record.fields = fields;
  if (status.ok()) status = mapper.MapFields(record, &row);
  return status.ok() ? DescribeRow({.table = "t", .ttl = {}}, row) : "!" + status.text();
}

std::string MapJson(const MapperOptions& options, const std::string& text) {
  Row row;
  const Status status = RowMapper(options).MapJson(text, &row);
  return status.ok() ? DescribeRow({.table = "t", .ttl = {}}, row) : "!" + status.text();
}

TEST_CASE("a column is family, qualifier and perhaps a type", "[import]") {
  CHECK(ParseColumn("f:q")->type.empty());
  CHECK(ParseColumn("f:q:i64")->type == "i64");
  CHECK(ParseColumn("f:q:r")->qualifier == "q:r");
  CHECK(ParseColumn("f:q:r:uuid")->qualifier == "q:r");
  CHECK(ParseColumn("f:")->qualifier.empty());
  CHECK(ParseColumn("f:i64")->qualifier == "i64");
  CHECK(ParseColumn("-")->family.empty());
  CHECK(!ParseColumn("f").ok());
  CHECK(!ParseColumn(":q").ok());
}

TEST_CASE("fields go where options, their names, or the default family say", "[import]") {
  MapperOptions options = Keyed({"a", "b"}, "d");
  options.columns["c"] = *ParseColumn("m:see:i32");
  options.columns["e"] = Column{};
  CHECK(
      MapFields(options, {"a", "b", "c", "x:y:f64", "e", "rest"}, {"1", "2", "3", "4", "5", "6"}) ==
      "CPUT t 1#2 m:see 3 AS i32 x:y 4 AS f64 d:rest 6\n");
  options.keep_key_fields = true;
  options.key_delimiter = "/";
  CHECK(MapFields(options, {"a", "b", "c", "e"}, {"1", "2", "3", "4"}) ==
        "CPUT t 1/2 d:a 1 d:b 2 m:see 3 AS i32\n");
}

TEST_CASE("a field that nothing maps is a mistake, not a loss", "[import]") {
  MapperOptions options = Keyed({"a"}, "");
  options.columns["c"] = *ParseColumn("m:c");
  CHECK(MapFields(options, {"a", "b", "c"}, {"1", "2", "3"}).starts_with("!field 'b' is mapped"));
  options.ignore_unmapped = true;
  CHECK(MapFields(options, {"a", "b", "c"}, {"1", "2", "3"}) == "CPUT t 1 m:c 3\n");
}

TEST_CASE("headers that cannot be are refused", "[import]") {
  CHECK(MapFields(Keyed({"k"}, "d"), {"a"}, {"1"}) == "!there is no field 'k'");
  CHECK(MapFields(Keyed({"a"}, "d"), {"a", "a"}, {"1", "2"}).starts_with("!field 'a' is twice"));
}

TEST_CASE("records that do not fit are refused", "[import]") {
  CHECK(MapFields(Keyed({"a"}, "d"), {"a", "b"}, {"1"}) == "!1 fields where the header has 2");
  CHECK(MapFields(Keyed({"a"}, "d"), {"a", "b"}, {"", "1"}) == "!the row key is empty");
  CHECK(MapFields(Keyed({"a"}, "d"), {"a", "b"}, {"1", ""}) == "!no field gives a cell");
}

TEST_CASE("empty fields and nulls give no cell unless asked for", "[import]") {
  MapperOptions options = Keyed({"a"}, "d");
  options.null_text = "\\N";
  CHECK(MapFields(options, {"a", "b", "c", "e"}, {"1", "", "\\N", "x"}) == "CPUT t 1 d:e x\n");
  options.keep_empty = true;
  CHECK(MapFields(options, {"a", "b", "c"}, {"1", "", "\\N"}) == "CPUT t 1 d:b \"\"\n");
}

TEST_CASE("a star asks for record numbers", "[import]") {
  CHECK(MapFields(Keyed({"*"}, "d"), {"a"}, {"1"}) == "CPUT t * d:a 1\n");
}

TEST_CASE("a timestamp field stamps every cell", "[import]") {
  MapperOptions options = Keyed({"a"}, "d");
  options.timestamp_field = "when";
  options.timestamp_unit = TimeUnit::kSeconds;
  CHECK(MapFields(options, {"a", "b", "when"}, {"1", "2", "5"}) == "CPUT t 1 d:b 2 TS 5000000\n");
  CHECK(MapFields(options, {"a", "b", "when"}, {"1", "2", "soon"}) == "!'soon' is not a timestamp");
}

TEST_CASE("timestamps are numbers of a unit or ISO 8601", "[import]") {
  const auto micros = [](std::string_view text) {
    const Result<int64_t> result = ParseTimestamp(text, TimeUnit::kMillis);
    return result.ok() ? *result : -1;
  };
  CHECK(micros("7") == 7'000);
  CHECK(micros("0") == 0);
  CHECK(micros("-1") == -1);
  CHECK(micros("9223372036854775807") == -1);
  CHECK(micros("1970-01-02") == 86'400'000'000);
  CHECK(micros("2000-02-29T00:00:00Z") == 951'782'400'000'000);
  CHECK(micros("2024-05-01T12:34:56.25+02:00") == 1'714'559'696'250'000);
  CHECK(micros("2024-05-01 12:34") == 1'714'566'840'000'000);
  CHECK(micros("2024-05-01T12:34:56.123456000Z") == 1'714'566'896'123'456);
  CHECK(micros("2024-05-01T12:34:56.1234567Z") == -1);
  CHECK(micros("2023-02-29") == -1);
  CHECK(micros("2024-13-01") == -1);
  CHECK(micros("2024-05-01T25:00") == -1);
  CHECK(micros("2024-05-01T12:34:56x") == -1);
  CHECK(micros("1969-12-31") == -1);
  CHECK(micros("7.25") == 7'250);
  CHECK(micros("7.0009999") == 7'000);
  CHECK(micros("9223372036854775.807") == INT64_MAX);
  CHECK(micros("9223372036854775.808") == -1);
  for (const char* text : {"7.", ".5", "-0.5", "7.5.5", "7.x", "-7.5", "7,5", "7e3"}) {
    CHECK(micros(text) == -1);
  }
  CHECK(*ParseTimestamp("1700000000.123456789", TimeUnit::kSeconds) == 1'700'000'000'123'456);
  CHECK(*ParseTimestamp("5.000", TimeUnit::kMicros) == 5);
  CHECK(!ParseTimestamp("5.5", TimeUnit::kMicros).ok());
  CHECK(micros("") == -1);
}

TEST_CASE("JSON: objects at the top are families, deeper ones dotted qualifiers", "[import]") {
  CHECK(
      MapJson(Keyed({"name"}, ""), R"({"name":"vim","meta":{"size":{"kb":3},"v":"9"},"x":null})") ==
      "CPUT t vim meta:size.kb 3 meta:v 9\n");
  CHECK(MapJson(Keyed({"a.b", "c"}, "d"), R"({"a":{"b":1,"e":2},"c":true,"f":1.5})") ==
        "CPUT t 1#true a:e 2 d:f 1.5\n");
}

TEST_CASE("JSON: paths can be mapped and left out", "[import]") {
  MapperOptions options = Keyed({"k"}, "d");
  options.columns["m.v"] = *ParseColumn("x:y:i64");
  options.ignored_fields = {"m.w", "z"};
  CHECK(MapJson(options, R"({"k":"r","m":{"v":1,"w":2,"u":3},"z":4})") ==
        "CPUT t r x:y 1 AS i64 m:u 3\n");
  options.columns["m"] = *ParseColumn("x:all");
  CHECK(MapJson(options, R"({"k":"r","m":{"v":1}})") == "CPUT t r x:all \"{\\\"v\\\":1}\"\n");
}

TEST_CASE("JSON: natural types on request", "[import]") {
  MapperOptions options = Keyed({"k"}, "d");
  options.json_types = true;
  CHECK(
      MapJson(options, R"({"k":"r","a":-1,"b":18446744073709551615,"c":1.5,"e":false,"f":"s"})") ==
      "CPUT t r d:a -1 AS i64 d:b 18446744073709551615 AS u64 d:c 1.5 AS f64 d:e false AS bool "
      "d:f s AS string\n");
}

TEST_CASE("JSON: a number is the text that stands there, wherever it stands", "[import]") {
  const MapperOptions options = Keyed({"k"}, "d");
  Random random(41);
  const auto digits = [&random](size_t most) {
    std::string text(1 + random.Below(most), '0');
    for (char& c : text) c = static_cast<char>('0' + random.Below(10));
    return text;
  };
  for (int i{0}; i < 2'000; ++i) {
    std::string number{random.Below(2) == 0 ? "-" : ""};
    const std::string integer{digits(60)};
    const size_t first{integer.find_first_not_of('0')};
    number += first == std::string::npos ? "0" : integer.substr(first);
    if (random.Below(2) == 0) number += "." + digits(40);
    if (random.Below(3) == 0) number += (random.Below(2) == 0 ? "e" : "E+") + digits(4);
    INFO(number);
    CHECK(MapJson(options, "{\"k\":" + number + ",\"v\":" + number + ",\"m\":{\"n\":" + number +
                               "},\"a\":[[" + number + "],{\"x\":" + number + "}]}") ==
          "CPUT t " + number + " d:v " + number + " m:n " + number + " d:a \"[[" + number +
              "],{\\\"x\\\":" + number + "}]\"\n");
  }
}

TEST_CASE("JSON: what is nested too deep is refused, whatever it is", "[import]") {
  for (const size_t depth : {33UL, 1'000UL, 100'000UL}) {
    for (const auto& [open, close] : {std::pair{"[", "]"}, {"{\"k\":", "}"}, {"[{\"k\":", "}]"}}) {
      std::string text{"{\"k\":\"r\",\"v\":"};
      for (size_t i{0}; i < depth; ++i) text += open;
      text += '1';
      for (size_t i{0}; i < depth; ++i) text += close;
      text += '}';
      Row row;
      std::vector<std::string> schema;
      CHECK(MapJson(Keyed({"k"}, "d"), text) == "!nested too deep");
      CHECK(!MapRows("{\"row\":\"r\",\"cells\":" + text + "}", &row, &schema).ok());
      CHECK(MapJson(Keyed({"k"}, "d"), text.substr(0, depth)).starts_with("!"));
    }
  }
}

TEST_CASE("JSON: of members of one name the last one counts", "[import]") {
  CHECK(MapJson(Keyed({"k"}, "d"), R"({"k":1,"v":2,"k":"r","v":[{"a":1,"b":2,"a":3}]})") ==
        "CPUT t r d:v \"[{\\\"b\\\":2,\\\"a\\\":3}]\"\n");
}

TEST_CASE("JSON: escapes are read, and what is no JSON is refused", "[import]") {
  const MapperOptions options = Keyed({"k"}, "d");
  Row row;
  REQUIRE(RowMapper(options).MapJson(R"({"k":"r","v":"\u00e9\ud83d\ude00\/\n"})", &row).ok());
  CHECK(row.cells.at(0).value == "\xc3\xa9\xf0\x9f\x98\x80/\n");
  for (const char* text : {"",
                           "{",
                           "{}}",
                           "{\"k\":1,}",
                           "{\"k\":01}",
                           "{\"k\":1.}",
                           "{\"k\":.1}",
                           "{\"k\":+1}",
                           "{\"k\":1e}",
                           "{\"k\":tru}",
                           "{k:1}",
                           "{\"k\" 1}",
                           "{\"k\":[1 2]}",
                           "{\"k\":\"\t\"}",
                           "{\"k\":\"\\x\"}",
                           "{\"k\":\"\\ud800\"}",
                           "{\"k\":\"\\udc00\"}",
                           "{\"k\":\"\\u12\"}",
                           "{\"k\":-}",
                           "{\"k\":NaN}",
                           "{\"k\":1}{\"k\":2}"}) {
    INFO(text);
    CHECK(MapJson(options, text).starts_with("!not JSON at its byte "));
  }
}

TEST_CASE("JSON: arrays as text, by index, as a set", "[import]") {
  MapperOptions options = Keyed({"k"}, "d");
  const std::string line{R"({"k":"r","tag":["a",7]})"};
  CHECK(MapJson(options, line) == "CPUT t r d:tag \"[\\\"a\\\",7]\"\n");
  options.arrays = ArrayStyle::kIndex;
  CHECK(MapJson(options, line) == "CPUT t r tag:0 a tag:1 7\n");
  options.arrays = ArrayStyle::kSet;
  CHECK(MapJson(options, line) == "CPUT t r tag:a \"\" tag:7 \"\"\n");
  CHECK(MapJson(options, R"({"k":"r","tag":[[]]})").starts_with("!an object or array inside"));
}

TEST_CASE("JSON: lines that do not fit are refused with the reason", "[import]") {
  const MapperOptions options = Keyed({"k"}, "d");
  CHECK(MapJson(options, "{\"k\":").starts_with("!not JSON at its byte 6: a value"));
  CHECK(MapJson(options, "[1]") == "!the line is not a JSON object");
  CHECK(MapJson(options, "{\"a\":1}") == "!there is no field 'k'");
  CHECK(MapJson(options, "{\"k\":[1]}") == "!key field 'k' is neither text nor a number");
  CHECK(MapJson(options, "{\"k\":1}") == "!no field gives a cell");
  CHECK(
      MapJson(options, "{\"k\":\"\xff\"}").starts_with("!not JSON at its byte 7: it is not UTF-8"));
}

TEST_CASE("a row becomes one command on the wire, or several if it is wide", "[import]") {
  Row row{.key = "r", .cells = {}, .timestamp_micros = 5};
  row.cells.push_back({"f", "q", std::string("\r\n\0", 3), "i8"});
  std::string bytes;
  CHECK(AppendRow({.table = "t", .ttl = "7d"}, row, &bytes) == 1);
  using std::string_literals::operator""s;
  CHECK(bytes ==
        "*11\r\n$4\r\nCPUT\r\n$1\r\nt\r\n$1\r\nr\r\n$3\r\nf:q\r\n$3\r\n\r\n\0\r\n"
        "$2\r\nAS\r\n$2\r\ni8\r\n$2\r\nTS\r\n$1\r\n5\r\n$3\r\nTTL\r\n$2\r\n7d\r\n"s);
  row.timestamp_micros.reset();
  row.cells.assign(5, {"f", "q", "v", ""});
  CHECK(DescribeRow({.table = "t", .ttl = {}, .cells_per_command = 2}, row) ==
        "CPUT t r f:q v f:q v\nCPUT t r f:q v f:q v\nCPUT t r f:q v\n");
}

TEST_CASE("words of a FAMILY clause are split at blanks outside quotes", "[import]") {
  CHECK(SplitWords("meta GC \"maxversions=3 && maxage=7d\"  X") ==
        std::vector<std::string>{"meta", "GC", "maxversions=3 && maxage=7d", "X"});
  CHECK(SplitWords(" ").empty());
}

}  // namespace
}  // namespace row_mapper_test
