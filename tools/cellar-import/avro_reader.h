// Rows of an Avro container file in the shape that Google's Bigtable templates exchange, and
// `cellar-export --format avro` writes:
//
//   record of {key, cells: array of {family, qualifier, timestamp, value}}
//
// The writer's schema decides where these are: in any order but for the key, which comes before the
// cells; texts may be bytes, string or fixed, each also in a union with null; other fields are
// skipped. Without a timestamp the server gives it. What a logical type says is followed: a
// timestamp may be micros, millis or a date, a text a decimal or a uuid; other logical types of
// what is wanted are refused, for their plain numbers would be something else.
//
// A record of many cells comes as several rows of one key, so what is held does not grow with it.
// A file that is damaged ends the import with its name and the place: what lies behind the damage
// cannot be told from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cellar-import/avro_bytes.h"
#include "cellar-import/avro_schema.h"
#include "cellar-import/record_reader.h"
#include "cellar-import/row_mapper.h"

namespace cellar::importer {

class AvroReader final : public RecordReader {
 public:
  // `path` is what errors call the input.
  AvroReader(Input* input, std::string path)
      : RecordReader(input), bytes_(input, std::move(path)) {}

  // To be called first.
  Status ReadHeader();
  // The commands that make the table, if the file says them.
  const std::vector<std::string>& table_schema() const { return table_schema_; }

  // Record::line is the number of the Avro record, Record::end_offset the number of the row.
  Result<bool> Next(Record* record) override;
  // That Next() has found, unless Record::error is set.
  const Row& row() const { return row_; }

 private:
  enum class Role : uint8_t { kSkipped, kKey, kCells, kFamily, kQualifier, kTimestamp, kValue };
  struct Field {
    Role role{Role::kSkipped};
    const AvroNode* node{nullptr};
  };

  Status ReadMetadata();
  Status TakeMetadata(const std::string& name, std::string value);
  Status FindFields();
  Status CheckMeanings(const Field& field, const std::string& name) const;
  Result<bool> BeginBlock();
  Status ReadRecord(Record* record);
  Status ReadFields(Record* record);
  // False when the row is full and the array is not at its end.
  Result<bool> ReadCells(Record* record);
  Status ReadCell(Record* record);
  // Appends a text; false if it is null.
  Result<bool> ReadText(const AvroNode* node, std::string* out);
  // False if it is null, or beyond what micros can say: then record->error says so.
  Result<bool> ReadTimestamp(const AvroNode* node, int64_t* micros, Record* record);
  Result<const AvroNode*> ReadBranch(const AvroNode& node);
  Result<uint64_t> ReadLength(uint64_t bytes_max);
  Status Skip(const AvroNode& node, int depth);
  Status SkipBlocks(const AvroNode& node, int depth);
  Status SkipItem(const AvroNode& container, const AvroNode& item, int depth);

  AvroBytes bytes_;
  std::string sync_;
  std::string schema_text_;
  std::string codec_{"null"};
  AvroSchema schema_;
  std::vector<std::string> table_schema_;
  std::vector<Field> fields_;       // of a record
  std::vector<Field> cell_fields_;  // of a cell
  // Where the reader is.
  uint64_t records_left_{0};  // in the block
  bool in_block_{false};
  bool in_record_{false};
  size_t field_{0};         // of the record: the next one
  uint64_t cells_left_{0};  // in the array's block
  bool in_cells_{false};
  uint64_t row_number_{0};
  size_t row_bytes_{0};
  Row row_;
};

}  // namespace cellar::importer
