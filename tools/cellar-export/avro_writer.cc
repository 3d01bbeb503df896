// The format avro (RowWriter): an object container file of Apache Avro 1.x, whose records have the
// shape that Google's Bigtable templates exchange:
//
//   file    "Obj" 1 | metadata, a map: avro.schema, avro.codec, cellar.schema | sync u8[16] | block...
//   block   records, long | bytes, long | the records, perhaps deflated | sync u8[16]
//   record  key, bytes | array of {family, string; qualifier, bytes; timestamp, long; value, bytes}
//   long    zigzag, seven bits a byte, the lowest first; of bytes and strings the length in front
//
// A record must be whole in memory, here and in whoever reads it. So a row of much more than
// kRecordBytes is several records of the same key, which readers that write rows put together.
// `cellar.schema` (--schema) is a JSON array of the commands that make the table; other readers
// skip it.
//
// Written here and not by libavro: what is needed of the format is these few lines, and the library
// has no bound on what a reader unpacks, which cellar-import must have (its avro_reader.h).
#include <zlib.h>

#include <limits>
#include <random>
#include <utility>

#include "base/assert.h"
#include "base/text/ascii.h"
#include "base/text/quote.h"
#include "cellar-export/row_writer.h"
#include "client/hex_text.h"
#include "client/json_text.h"

namespace cellar::exporter {
namespace {

constexpr size_t kBlockBytes{256 << 10};
constexpr size_t kRecordBytes{4 << 20};
constexpr size_t kSyncBytes{16};
constexpr int kRawDeflate{-15};  // window bits: no header, as Avro has it
constexpr int kMemoryLevel{8};
constexpr int kLevel{6};

constexpr std::string_view kRecordSchema{
    R"({"type":"record","name":"BigtableRow","namespace":"com.google.cloud.teleport.bigtable",)"
    R"("fields":[{"name":"key","type":"bytes"},{"name":"cells","type":{"type":"array","items":)"
    R"({"type":"record","name":"BigtableCell","fields":[{"name":"family","type":"string"},)"
    R"({"name":"qualifier","type":"bytes"},)"
    R"({"name":"timestamp","type":"long","logicalType":"timestamp-micros"},)"
    R"({"name":"value","type":"bytes"}]}}}]})"};

void AppendLong(int64_t number, std::string* out) {
  auto bits = static_cast<uint64_t>(number) << 1 ^ static_cast<uint64_t>(number >> 63);
  for (; bits > 0x7f; bits >>= 7) out->push_back(static_cast<char>(bits | 0x80));
  out->push_back(static_cast<char>(bits));
}

void AppendBytes(std::string_view bytes, std::string* out) {
  AppendLong(static_cast<int64_t>(bytes.size()), out);
  out->append(bytes);
}

class AvroWriter final : public RowWriter {
 public:
  AvroWriter(std::vector<std::string> schema, bool deflate, Complaints* complaints)
      : schema_(std::move(schema)), deflates_(deflate), complaints_(complaints) {
    if (!deflates_) return;
    const int status =
        deflateInit2(&stream_, kLevel, Z_DEFLATED, kRawDeflate, kMemoryLevel, Z_DEFAULT_STRATEGY);
    CELLAR_ASSERT(status == Z_OK);  // else there is no memory
  }
  ~AvroWriter() override {
    if (deflates_) (void)deflateEnd(&stream_);
  }
  AvroWriter(const AvroWriter&) = delete;
  AvroWriter& operator=(const AvroWriter&) = delete;

  void WriteHeader(std::string* out) override {
    std::random_device random;
    sync_.clear();
    for (size_t i = 0; i < kSyncBytes; ++i) sync_.push_back(static_cast<char>(random() & 0xff));
    out->append("Obj\x01");
    AppendLong(schema_.empty() ? 2 : 3, out);
    AppendBytes("avro.schema", out);
    AppendBytes(kRecordSchema, out);
    AppendBytes("avro.codec", out);
    AppendBytes(deflates_ ? "deflate" : "null", out);
    if (!schema_.empty()) {
      std::string commands = "[";
      for (const std::string& command : schema_) {
        if (commands.size() > 1) commands.push_back(',');
        client::AppendJsonText(command, &commands);
      }
      AppendBytes("cellar.schema", out);
      AppendBytes(commands + "]", out);
    }
    AppendLong(0, out);
    out->append(sync_);
  }

  // The sync bytes, as hexadecimal digits.
  std::string marker() const override { return HexText(sync_); }
  Status GoOn(const std::string& marker) override {
    sync_ = client::DecodeHex(marker).value_or("");
    if (sync_.size() == kSyncBytes) return Status::Ok();
    return Status::Error(ErrorCode::kErr,
                         "the export's state is damaged: its marker is not 16 bytes");
  }

  void BeginRow(std::string_view row, std::string*) override {
    row_ = row;
    cells_.clear();
    cell_count_ = 0;
  }

  void AddCell(const Cell& cell, std::string* out) override {
    if (cells_.size() > kRecordBytes) EndRow(out);
    const size_t colon = cell.column.find(':');
    CELLAR_ASSERT(colon != std::string_view::npos);
    AppendBytes(cell.column.substr(0, colon), &cells_);
    AppendBytes(cell.column.substr(colon + 1), &cells_);
    AppendLong(cell.timestamp_micros, &cells_);
    if (cell.type == "bool") {
      AppendBytes(cell.value == "1" ? "true" : "false", &cells_);
    } else {
      AppendBytes(cell.value, &cells_);
    }
    ++cell_count_;
    if (!cell.expires_micros) return;
    complaints_->Add(row_, Quote(cell.column) + " expires: the cell is written without that");
  }

  void EndRow(std::string* out) override {
    AppendBytes(row_, &block_);
    if (cell_count_ > 0) AppendLong(cell_count_, &block_);
    block_.append(cells_);
    AppendLong(0, &block_);
    cells_.clear();
    cell_count_ = 0;
    ++record_count_;
    if (block_.size() >= kBlockBytes) EndBlock(out);
  }

  void EndBlock(std::string* out) override {
    if (record_count_ == 0) return;
    AppendLong(record_count_, out);
    if (deflates_) Deflate();
    AppendBytes(block_, out);
    out->append(sync_);
    block_.clear();
    record_count_ = 0;
    // What a wide row took is given back.
    if (block_.capacity() > 2 * kRecordBytes) block_.shrink_to_fit();
    if (cells_.capacity() > 2 * kRecordBytes) cells_.shrink_to_fit();
  }

 private:
  void Deflate() {
    CELLAR_ASSERT(block_.size() <= std::numeric_limits<uInt>::max());
    (void)deflateReset(&stream_);
    packed_.resize(deflateBound(&stream_, block_.size()));
    stream_.next_in = reinterpret_cast<Bytef*>(block_.data());
    stream_.avail_in = static_cast<uInt>(block_.size());
    stream_.next_out = reinterpret_cast<Bytef*>(packed_.data());
    stream_.avail_out = static_cast<uInt>(packed_.size());
    const int status = deflate(&stream_, Z_FINISH);
    CELLAR_ASSERT(status == Z_STREAM_END);
    packed_.resize(packed_.size() - stream_.avail_out);
    std::swap(block_, packed_);
  }

  std::vector<std::string> schema_;
  bool deflates_;
  Complaints* complaints_;
  z_stream stream_{};
  std::string sync_;
  std::string row_;
  std::string cells_;  // of the record
  int64_t cell_count_{0};
  std::string block_;
  int64_t record_count_{0};
  std::string packed_;
};

}  // namespace

std::unique_ptr<RowWriter> NewAvroWriter(std::vector<std::string> schema, bool deflate,
                                         Complaints* complaints) {
  return std::make_unique<AvroWriter>(std::move(schema), deflate, complaints);
}

}  // namespace cellar::exporter
