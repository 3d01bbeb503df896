// Fuzzes what cellar-import reads of Cassandra's dumps: JSON of sstabledump and of sstable2json.
// The first byte chooses the size of the pieces in which the input arrives and whether hexadecimal
// digits are decoded. Whatever the pieces, the same rows must come out, and the same error at the
// end.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/assert.h"
#include "cellar-import/command.h"
#include "cellar-import/dump_mapper.h"
#include "cellar-import/dump_reader.h"
#include "cellar-import/input.h"

namespace {

using namespace cellar;            // NOLINT(google-build-using-namespace)
using namespace cellar::importer;  // NOLINT(google-build-using-namespace)

// The commands of all rows and the errors, in their order, and how it ended.
std::vector<std::string> ReadAll(const std::string& text, size_t chunk_bytes, bool hex) {
  Input input = Input::FromText(text, chunk_bytes);
  DumpReader reader(&input, "file");
  MapperOptions options;
  options.default_family = "d";
  options.key_fields = {"key"};
  DumpMapper mapper(options, hex);
  std::vector<std::string> told;
  Record record;
  Row row;
  while (true) {
    const Result<bool> found = reader.Next(&record);
    if (!found.ok()) {
      told.push_back(found.status().text());
      break;
    }
    if (!*found) break;
    const Result<bool> lives = mapper.Map(reader.place(), record, &row);
    if (!lives.ok()) {
      told.push_back(lives.status().text());
      continue;
    }
    if (!*lives) continue;
    std::string bytes;
    CELLAR_ASSERT(AppendRow({.table = "t", .ttl = {}}, row, &bytes) == 1);
    told.push_back(std::move(bytes));
  }
  told.push_back(std::to_string(mapper.hidden()));
  return told;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kInputBytesMax{4096};
  if (size == 0 || size > kInputBytesMax) return 0;
  const bool hex{data[0] % 2 == 1};
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::vector<std::string> whole = ReadAll(text, SIZE_MAX, hex);
  CELLAR_ASSERT(whole == ReadAll(text, size_t{1} + data[0] / 2U, hex));
  return 0;
}
