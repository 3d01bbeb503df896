// Fuzzes what cellar-import reads of Avro files. The first byte chooses the size of the pieces in
// which the input arrives and what stands in front of it: nothing; or a header with one of a few
// schemas, for random bytes rarely make one, behind which the input is blocks, or one block's
// content. Whatever the pieces, the same rows must come out, and the same error at the end; but
// where a deflated block is damaged, the sooner the more of it is read at once.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "base/coding.h"
#include "cellar-import/avro_reader.h"
#include "cellar-import/command.h"
#include "cellar-import/input.h"

namespace {

using namespace cellar;            // NOLINT(google-build-using-namespace)
using namespace cellar::importer;  // NOLINT(google-build-using-namespace)

constexpr std::string_view kSchemas[] = {
    // Bigtable's
    R"({"type":"record","name":"BigtableRow","fields":[{"name":"key","type":"bytes"},
        {"name":"cells","type":{"type":"array","items":{"type":"record","name":"BigtableCell",
        "fields":[{"name":"family","type":"string"},{"name":"qualifier","type":"bytes"},
        {"name":"timestamp","type":"long"},{"name":"value","type":"bytes"}]}}}]})",
    // other orders, unions, fields to be skipped
    R"({"type":"record","name":"r","fields":[{"name":"more","type":["null",{"type":"map",
        "values":"double"}]},{"name":"key","type":["null","string"]},{"name":"id","type":
        {"type":"fixed","name":"f","size":3}},{"name":"cells","type":{"type":"array","items":
        {"type":"record","name":"c","fields":[{"name":"value","type":["null","bytes"]},
        {"name":"flag","type":"boolean"},{"name":"kind","type":{"type":"enum","name":"e",
        "symbols":["A","B"]}},{"name":"timestamp","type":["null","long"]},{"name":"qualifier",
        "type":"f"},{"name":"family","type":"string"}]}}},{"name":"tail","type":"float"}]})",
    // logical types
    R"({"type":"record","name":"r","fields":[{"name":"key","type":{"type":"bytes","logicalType":
        "decimal","precision":9,"scale":2}},{"name":"cells","type":{"type":"array","items":
        {"type":"record","name":"c","fields":[{"name":"family","type":"string"},{"name":"qualifier",
        "type":{"type":"fixed","name":"u","size":16,"logicalType":"uuid"}},{"name":"timestamp",
        "type":["null",{"type":"long","logicalType":"timestamp-millis"},{"type":"int",
        "logicalType":"date"}]},{"name":"value","type":"bytes"}]}}}]})",
    // one that holds itself
    R"({"type":"record","name":"r","fields":[{"name":"key","type":"bytes"},{"name":"next","type":
        ["null","r"]},{"name":"cells","type":{"type":"array","items":{"type":"record","name":"c",
        "fields":[{"name":"family","type":"string"},{"name":"qualifier","type":"bytes"},
        {"name":"value","type":"bytes"}]}}}]})",
};

constexpr size_t kSyncBytes{16};

void PutLong(int64_t value, std::string* out) {
  PutVarint64(out, (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
}

void PutText(std::string_view text, std::string* out) {
  PutLong(static_cast<int64_t>(text.size()), out);
  out->append(text);
}

std::string FileOf(unsigned kind, std::string_view input) {
  constexpr unsigned kSchemaCount{std::size(kSchemas)};
  if (kind == 0) return std::string(input);
  std::string file{"Obj\x01"};
  PutLong(2, &file);
  PutText("avro.schema", &file);
  PutText(kSchemas[(kind - 1) % kSchemaCount], &file);
  PutText("avro.codec", &file);
  PutText(kind == 2 * kSchemaCount + 1 ? "deflate" : "null", &file);
  PutLong(0, &file);
  file.append(kSyncBytes, 's');
  if (kind <= kSchemaCount) return file.append(input);
  PutLong(3, &file);
  PutText(input, &file);
  return file.append(kSyncBytes, 's');
}

struct Told {
  std::vector<std::string> rows;  // commands; and the errors of records
  std::string end;                // the error that ended it, if there was one
};

Told ReadAll(const std::string& file, size_t chunk_bytes) {
  Input input = Input::FromText(file, chunk_bytes);
  AvroReader reader(&input, "file");
  Told told;
  const Status header = reader.ReadHeader();
  if (!header.ok()) return {.rows = {}, .end = header.text()};
  Record record;
  while (true) {
    const Result<bool> found = reader.Next(&record);
    if (!found.ok()) {
      told.end = found.status().text();
      break;
    }
    if (!*found) break;
    if (!record.error.empty()) {
      told.rows.push_back(record.error);
      continue;
    }
    std::string bytes;
    if (!reader.row().cells.empty()) AppendRow({.table = "t", .ttl = {}}, reader.row(), &bytes);
    told.rows.push_back(std::move(bytes));
  }
  return told;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kInputBytesMax{4096};
  constexpr unsigned kKinds{2 * std::size(kSchemas) + 2};
  if (size == 0 || size > kInputBytesMax) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const unsigned kind{data[0] % kKinds};
  const std::string file = FileOf(kind, input);
  const Told whole = ReadAll(file, SIZE_MAX);
  const Told pieces = ReadAll(file, size_t{1} + data[0] / kKinds);
  CELLAR_ASSERT(whole.end.empty() == pieces.end.empty());
  const bool may_differ{!whole.end.empty() && file.find("deflate") != std::string::npos};
  if (!may_differ) {
    CELLAR_ASSERT(whole.rows == pieces.rows);
    CELLAR_ASSERT(whole.end == pieces.end);
  } else {
    CELLAR_ASSERT(whole.rows.size() <= pieces.rows.size());
    CELLAR_ASSERT(std::equal(whole.rows.begin(), whole.rows.end(), pieces.rows.begin()));
  }
  return 0;
}
