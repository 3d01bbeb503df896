// cellar-import's readers: CSV by RFC 4180, TSV, lines; every text also in pieces of every size.
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cellar-import/record_reader.h"

namespace reader_test {
namespace {

using namespace cellar;            // NOLINT(google-build-using-namespace)
using namespace cellar::importer;  // NOLINT(google-build-using-namespace)

std::unique_ptr<RecordReader> NewReader(Format format, Input* input) {
  if (format == Format::kCsv) return NewCsvReader(input, ',');
  return format == Format::kTsv ? NewTsvReader(input) : NewLineReader(input);
}

// The records as text: "line@end: field|field" or "line@end: !error".
std::vector<std::string> Read(Format format, const std::string& text, size_t chunk_bytes) {
  Input input = Input::FromText(text, chunk_bytes);
  auto reader = NewReader(format, &input);
  std::vector<std::string> seen;
  Record record;
  while (true) {
    const Result<bool> found = reader->Next(&record);
    REQUIRE(found.ok());
    if (!*found) break;
    std::string line{std::to_string(record.line) + "@" + std::to_string(record.end_offset) + ":"};
    if (!record.error.empty()) {
      line += " !" + record.error;
    } else {
      for (const std::string& field : record.fields) line += " " + field + "|";
    }
    seen.push_back(line);
  }
  CHECK(input.offset() == text.size());
  return seen;
}

void CheckAllChunks(Format format, const std::string& text,
                    const std::vector<std::string>& expected) {
  for (size_t chunk_bytes{1}; chunk_bytes <= text.size() + 1; ++chunk_bytes) {
    INFO("pieces of " << chunk_bytes << " bytes of: " << text);
    CHECK(Read(format, text, chunk_bytes) == expected);
  }
}

TEST_CASE("CSV: plain fields, either line end, the last one without", "[import]") {
  CheckAllChunks(Format::kCsv, "a,b\r\n1,\n,2\n3,4",
                 {"1@5: a| b|", "2@8: 1| |", "3@11: | 2|", "4@14: 3| 4|"});
  CheckAllChunks(Format::kCsv, "", {});
  CheckAllChunks(Format::kCsv, "\n\n", {});
  CheckAllChunks(Format::kCsv, "a", {"1@1: a|"});
}

TEST_CASE("CSV: a quoted field holds delimiters, doubled quotes and line breaks", "[import]") {
  CheckAllChunks(Format::kCsv, "\"a,\"\"b\"\"\r\nc\",d\ne\n",
                 {"1@15: a,\"b\"\r\nc| d|", "3@17: e|"});
  CheckAllChunks(Format::kCsv, "\"\",\"\"\"\"", {"1@7: | \"|"});
}

TEST_CASE("CSV: blank lines and a byte order mark are skipped, and counted", "[import]") {
  CheckAllChunks(Format::kCsv,
                 "\xef\xbb\xbf"
                 "a\n\n\r\nb\n\n",
                 {"1@5: a|", "4@10: b|"});
}

TEST_CASE("CSV: a malformed record is reported and reading goes on behind it", "[import]") {
  CheckAllChunks(Format::kCsv, "\"a\"x,b\nc\n", {"1@7: !text after a closing quote", "2@9: c|"});
  CheckAllChunks(Format::kCsv, "a\n\"b\nc\n", {"1@2: a|", "2@7: !a quote that is never closed"});
}

TEST_CASE("CSV: a quote inside an unquoted field stands for itself", "[import]") {
  CheckAllChunks(Format::kCsv, "5\" pipe,a\n", {"1@10: 5\" pipe| a|"});
}

TEST_CASE("CSV: NUL and high bytes pass", "[import]") {
  const std::string text("a\0b,\xff\n", 6);
  CheckAllChunks(Format::kCsv, text, {std::string("1@6: a\0b| \xff|", 12)});
}

TEST_CASE("TSV: escapes stand for what cannot stand there", "[import]") {
  CheckAllChunks(Format::kTsv, "a\\tb\t\\n\\\\\\x\\\n\n\"q\"\t\n",
                 {"1@13: a\tb| \n\\\\x\\|", "3@19: \"q\"| |"});
}

TEST_CASE("lines: each is one field, blank ones are skipped", "[import]") {
  CheckAllChunks(Format::kJsonLines, "{}\r\n \n[1]", {"1@4: {}|", "3@9: [1]|"});
}

TEST_CASE("skipping forward lands on the byte, and refuses to go beyond the end", "[import]") {
  Input input = Input::FromText("0123456789", 3);
  REQUIRE(input.SkipTo(4).ok());
  REQUIRE(input.Fill().ok());
  CHECK(input.View().substr(0, 1) == "4");
  CHECK(!input.SkipTo(11).ok());
}

}  // namespace
}  // namespace reader_test
