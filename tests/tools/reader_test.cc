// cellar-import's readers: CSV by RFC 4180, TSV, lines; every text also in pieces of every size.
#include <zlib.h>
#include <zstd.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "cellar-import/export_marks.h"
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

TEST_CASE("a carriage return alone ends no line, and is in no field", "[import]") {
  for (const Format format : {Format::kCsv, Format::kTsv}) {
    const std::string csv{format == Format::kCsv ? "," : "\t"};
    for (const std::string& text :
         {"a" + csv + "b\r1" + csv + "2\r3" + csv + "4\r", "a" + csv + "b\r" + csv + "c\n",
          std::string("a\rb"), "\ra" + csv + "b\n"}) {
      const std::vector<std::string> seen = Read(format, text, SIZE_MAX);
      INFO(text);
      REQUIRE(seen.size() == 1);
      CHECK(seen[0].find("!a carriage return without a line feed") != std::string::npos);
      for (size_t chunk_bytes{1}; chunk_bytes <= text.size(); ++chunk_bytes) {
        CHECK(Read(format, text, chunk_bytes) == seen);
      }
    }
  }
  CheckAllChunks(Format::kCsv, "\"a\rb\",c\r\n", {"1@9: a\rb| c|"});
}

TEST_CASE("a reader says whether its last record had a line end", "[import]") {
  for (const Format format : {Format::kCsv, Format::kTsv, Format::kJsonLines}) {
    for (const auto& [text, cut] : {std::pair{"a\nb", true},
                                    {"a\nb\n", false},
                                    {"a\r\n", false},
                                    {"", false},
                                    {"a\nb\n\n", false}}) {
      Input input = Input::FromText(text, 1);
      auto reader = NewReader(format, &input);
      Record record;
      while (*reader->Next(&record)) continue;
      CHECK(reader->ends_in_a_line() == cut);
    }
  }
}

std::string Gzip(const std::string& text) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string packed(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(packed.size() - stream.avail_out);
  (void)deflateEnd(&stream);
  return packed;
}

std::string Zstd(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  (void)ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  packed.resize(ZSTD_compress2(context, packed.data(), packed.size(), text.data(), text.size()));
  (void)ZSTD_freeCCtx(context);
  return packed;
}

// All that comes of the bytes, or "!" and the error.
std::string Unpacked(const std::string& bytes, size_t chunk_bytes) {
  Result<Input> input = Input::FromPacked(bytes, chunk_bytes);
  if (!input.ok()) return "!" + input.status().text();
  while (true) {
    const Result<bool> more = input->Fill();
    if (!more.ok()) return "!" + more.status().text();
    if (!*more) return std::string(input->View());
  }
}

TEST_CASE("what is packed comes whole, or its end is missed", "[import]") {
  Random random(17);
  for (const auto pack : {Gzip, Zstd}) {
    for (int i{0}; i < 20; ++i) {
      std::string text;
      for (uint64_t bytes{random.Below(2'000)}; bytes > 0; --bytes) {
        text.push_back(static_cast<char>('a' + random.Below(4)));
      }
      const std::string packed{pack(text)};
      CHECK(Unpacked(packed, 1 + random.Below(100)) == text);
      CHECK(Unpacked(packed + pack("") + pack(text), 1 + random.Below(100)) == text + text);
      for (size_t end{4}; end < packed.size(); ++end) {
        INFO("cut to " << end << " of " << packed.size());
        CHECK(Unpacked(packed.substr(0, end), 1 + random.Below(100)).ends_with("has no end"));
      }
      // A wrong bit is found, or changes nothing, as in gzip's time of the file.
      for (int flip{0}; flip < 100; ++flip) {
        std::string wrong{packed};
        const size_t at{4 + random.Below(packed.size() - 4)};
        wrong[at] = static_cast<char>(wrong[at] ^ 1 << random.Below(8));
        const std::string seen{Unpacked(wrong, SIZE_MAX)};
        const bool is_right = seen == text || seen.starts_with("!");
        CHECK(is_right);
      }
    }
  }
  CHECK(Unpacked(Gzip("a") + std::string(512, '\0'), 7) == "a");
  CHECK(Unpacked(Gzip("a") + "more", 7).starts_with("!text: its gzip data is damaged"));
  CHECK(Unpacked("plain", 2) == "plain");
  CHECK(Unpacked("", 2).empty());
}

TEST_CASE("an export's marks say whether it is whole", "[import]") {
  using Verdict = ExportMarks::Verdict;
  const std::vector<std::string> lines{R"({"begin":"rows"})",       R"({"schema":[]})",
                                       R"({"row":"a","cells":[]})", R"({"row":"b","cells":[]})",
                                       R"({"end":{"lines":2}})",    R"({"begin":"rows"})",
                                       R"({"row":"c","cells":[]})", R"({"end":{"lines":1}})"};
  // Of the lines from `begin` to `end` without number `missing`.
  const auto look = [&lines](size_t begin, size_t end, size_t missing) -> Result<Verdict> {
    ExportMarks marks;
    bool is_first{true};
    for (size_t i{begin}; i < end; ++i) {
      if (i == missing) continue;
      if (is_first) marks.LookAtBeginning(lines[i]);
      is_first = false;
      ASSIGN_OR_RETURN(const bool is_mark, marks.Take(lines[i]));
      CHECK(is_mark == (lines[i].starts_with("{\"begin") || lines[i].starts_with("{\"end")));
    }
    return marks.verdict();
  };
  for (size_t end{1}; end <= lines.size(); ++end) {
    const Result<Verdict> seen = look(0, end, SIZE_MAX);
    REQUIRE(seen.ok());
    CHECK(*seen == (end == 5 || end == 8 ? Verdict::kWhole : Verdict::kCut));
  }
  for (const size_t missing : {2U, 3U, 4U, 6U}) CHECK(!look(0, lines.size(), missing).ok());
  CHECK(*look(0, lines.size(), 7) == Verdict::kCut);
  CHECK(*look(2, 4, SIZE_MAX) == Verdict::kUnmarked);  // an old one
  ExportMarks cut;  // a part of which nothing but its first line is left, and another one behind it
  cut.LookAtBeginning(lines[0]);
  CHECK(*cut.Take(lines[0]));
  CHECK(!cut.Take(lines[5]).ok());
  ExportMarks resumed;
  resumed.LookAtBeginning(lines[0]);
  resumed.BeginInside();
  CHECK(!*resumed.Take(lines[3]));
  CHECK(resumed.verdict() == Verdict::kCut);
  CHECK(*resumed.Take(lines[4]));
  CHECK(resumed.verdict() == Verdict::kWhole);
  for (const char* end : {"{\"end\":", "{\"end\":{}}", "{\"end\":{\"lines\":\"x\"}}"}) {
    CHECK(!ExportMarks().Take(end).ok());
  }
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
