// Fuzzes what cellar-import reads: the first byte chooses the format and the size of the pieces in
// which the input arrives, the rest is the input. Whatever the pieces, the same records must come
// out, and each must map to a row or to an error, never to a crash. The same bytes as lines of an
// export, and as what gzip or zstd has packed.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/assert.h"
#include "cellar-import/command.h"
#include "cellar-import/export_marks.h"
#include "cellar-import/record_reader.h"
#include "cellar-import/row_mapper.h"

namespace {

using namespace cellar;            // NOLINT(google-build-using-namespace)
using namespace cellar::importer;  // NOLINT(google-build-using-namespace)

std::unique_ptr<RecordReader> NewReader(unsigned format, Input* input) {
  if (format == 0) return NewCsvReader(input, ',');
  return format == 1 ? NewTsvReader(input) : NewLineReader(input);
}

std::vector<Record> ReadAll(unsigned format, const std::string& text, size_t chunk_bytes) {
  Input input = Input::FromText(text, chunk_bytes);
  const auto reader = NewReader(format, &input);
  std::vector<Record> records;
  Record record;
  while (true) {
    const Result<bool> found = reader->Next(&record);
    CELLAR_ASSERT(found.ok());
    if (!*found) break;
    records.push_back(record);
  }
  CELLAR_ASSERT(input.offset() == text.size());
  return records;
}

// As lines of an export.
void FuzzRows(const std::vector<Record>& records) {
  ExportMarks marks;
  Row row;
  for (const Record& record : records) {
    if (record.fields.empty() || !marks.Take(record.fields[0]).ok()) return;
    std::vector<std::string> schema;
    if (!MapRows(record.fields[0], &row, &schema).ok() || !schema.empty()) continue;
    std::string bytes;
    CELLAR_ASSERT(AppendRow({.table = "t", .ttl = {}}, row, &bytes) >= 1);
  }
}

// What the text says if it is gzip's or zstd's; "!" and the error if it is damaged.
std::string Unpacked(const std::string& text, size_t chunk_bytes) {
  constexpr size_t kUnpackedBytesMax{1 << 20};
  Result<Input> input = Input::FromPacked(text, chunk_bytes);
  if (!input.ok()) return "!";
  std::string all;
  while (all.size() < kUnpackedBytesMax) {
    const Result<bool> more = input->Fill();
    if (!more.ok()) return "!";
    all += input->View();
    input->Consume(input->View().size());
    if (!*more) break;
  }
  return all.size() < kUnpackedBytesMax ? all : "";
}

void FuzzPacked(const std::string& text, size_t chunk_bytes) {
  for (const std::string magic : {"", "\x1f\x8b\x08", "\x28\xb5\x2f\xfd"}) {
    CELLAR_ASSERT(Unpacked(magic + text, SIZE_MAX) == Unpacked(magic + text, chunk_bytes));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kInputBytesMax{4096};
  if (size == 0 || size > kInputBytesMax) return 0;
  const unsigned format{data[0] % 3U};
  const size_t chunk_bytes{size_t{1} + data[0] / 3U};
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);

  const std::vector<Record> records = ReadAll(format, text, SIZE_MAX);
  const std::vector<Record> in_pieces = ReadAll(format, text, chunk_bytes);
  CELLAR_ASSERT(records.size() == in_pieces.size());
  for (size_t i{0}; i < records.size(); ++i) {
    CELLAR_ASSERT(records[i].line == in_pieces[i].line);
    CELLAR_ASSERT(records[i].end_offset == in_pieces[i].end_offset);
    CELLAR_ASSERT(records[i].error == in_pieces[i].error);
    CELLAR_ASSERT(records[i].fields == in_pieces[i].fields);
  }

  MapperOptions options;
  options.default_family = "d";
  options.json_types = data[0] % 2 == 0;
  options.arrays = static_cast<ArrayStyle>(data[0] / 64 % 3);
  options.key_fields = {format == 2 ? "k" : records.empty() ? "*" : records[0].fields[0]};
  RowMapper mapper(options);
  if (format != 2 && (records.empty() || !mapper.SetHeader(records[0].fields).ok())) return 0;
  Row row;
  for (const Record& record : records) {
    const Status status = format == 2            ? mapper.MapJson(record.fields[0], &row)
                          : record.error.empty() ? mapper.MapFields(record, &row)
                                                 : Status::Error(ErrorCode::kErr, record.error);
    if (!status.ok()) continue;
    std::string bytes;
    CELLAR_ASSERT(AppendRow({.table = "t", .ttl = {}}, row, &bytes) == 1);
    CELLAR_ASSERT(bytes.ends_with("\r\n"));
  }
  (void)ParseTimestamp(text, TimeUnit::kMicros);
  FuzzRows(records);
  FuzzPacked(text, chunk_bytes);
  return 0;
}
