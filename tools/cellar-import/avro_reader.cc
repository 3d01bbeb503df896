// See avro_reader.h. The format itself stands in cellar-export/avro_writer.cc.
#include "cellar-import/avro_reader.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/text/ascii.h"

namespace cellar::importer {
namespace {

constexpr size_t kSyncBytes{16};
constexpr uint64_t kMetadataBytesMax{16 << 20};
constexpr uint64_t kMetadataMax{1000};
constexpr uint64_t kTextBytesMax{512 << 20};  // proto-max-bulk-len
constexpr size_t kCellsPerRow{10'000};
constexpr size_t kBytesPerRow{4 << 20};
constexpr int kDepthMax{64};
constexpr uint64_t kDecimalBytesMax{1024};
constexpr int64_t kMicrosPerDay{86'400'000'000};
constexpr int64_t kInt64Min{INT64_MIN};

// "-12.50" of the bytes of -1250, big-endian, and a scale of 2. Digits are split off from the
// lowest on: O(size^2), for kDecimalBytesMax at most.
std::string DecimalText(std::string bytes, uint32_t scale) {
  const bool is_negative{!bytes.empty() && static_cast<uint8_t>(bytes[0]) >= 0x80};
  if (is_negative) {
    unsigned carry{1};
    for (size_t i{bytes.size()}; i-- > 0;) {
      const unsigned byte{static_cast<uint8_t>(~static_cast<uint8_t>(bytes[i])) + carry};
      bytes[i] = static_cast<char>(byte & 0xff);
      carry = byte >> 8;
    }
  }
  std::string digits;  // the lowest one first
  for (size_t front{0}; front < bytes.size();) {
    unsigned rest{0};
    for (size_t i{front}; i < bytes.size(); ++i) {
      const unsigned part{rest << 8 | static_cast<uint8_t>(bytes[i])};
      bytes[i] = static_cast<char>(part / 10);
      rest = part % 10;
    }
    digits.push_back(static_cast<char>('0' + rest));
    while (front < bytes.size() && bytes[front] == 0) ++front;
  }
  while (digits.size() > scale + 1 && digits.back() == '0') digits.pop_back();
  while (digits.size() <= scale) digits.push_back('0');
  if (scale > 0) digits.insert(scale, 1, '.');
  if (is_negative) digits.push_back('-');
  return {digits.rbegin(), digits.rend()};
}

bool IsText(AvroType type) {
  return type == AvroType::kBytes || type == AvroType::kString || type == AvroType::kFixed;
}
bool IsNumber(AvroType type) { return type == AvroType::kInt || type == AvroType::kLong; }

}  // namespace

Result<uint64_t> AvroReader::ReadLength(uint64_t bytes_max) {
  ASSIGN_OR_RETURN(const int64_t length, bytes_.ReadLong());
  if (length < 0) return bytes_.Error("a length below 0");
  if (std::cmp_greater(length, bytes_max)) {
    return bytes_.Error("a length of " + std::to_string(length) + " bytes, above " +
                        std::to_string(bytes_max));
  }
  return static_cast<uint64_t>(length);
}

// --- what stands in front

Status AvroReader::ReadHeader() {
  std::string magic;
  if (!bytes_.Read(4, &magic).ok() || magic != std::string_view("Obj\x01", 4)) {
    return bytes_.Error("this is no Avro container file (\"Obj\", 1 is not at its beginning)");
  }
  RETURN_IF_ERROR(ReadMetadata());
  RETURN_IF_ERROR(bytes_.Read(kSyncBytes, &sync_));
  if (schema_text_.empty()) return bytes_.Error("the file names no schema (avro.schema)");
  if (codec_ != "null" && codec_ != "deflate") {
    return bytes_.Error("its codec is '" + codec_.substr(0, 40) +
                        "': only null and deflate can be read");
  }
  Result<AvroSchema> schema = AvroSchema::Parse(schema_text_);
  if (!schema.ok()) return bytes_.Error(schema.status().text());
  schema_ = *std::move(schema);
  return FindFields();
}

Status AvroReader::ReadMetadata() {
  uint64_t entries{0};
  while (true) {
    ASSIGN_OR_RETURN(int64_t count, bytes_.ReadLong());
    if (count == 0) return Status::Ok();
    if (count < 0) {
      RETURN_IF_ERROR(bytes_.ReadLong().status());  // bytes: for those who skip
      count = count == kInt64Min ? INT64_MAX : -count;
    }
    for (; count > 0; --count) {
      if (++entries > kMetadataMax) return bytes_.Error("more than 1,000 entries of metadata");
      std::string name;
      std::string value;
      ASSIGN_OR_RETURN(const uint64_t name_bytes, ReadLength(kMetadataBytesMax));
      RETURN_IF_ERROR(bytes_.Read(name_bytes, &name));
      ASSIGN_OR_RETURN(const uint64_t value_bytes, ReadLength(kMetadataBytesMax));
      RETURN_IF_ERROR(bytes_.Read(value_bytes, &value));
      RETURN_IF_ERROR(TakeMetadata(name, std::move(value)));
    }
  }
}

Status AvroReader::TakeMetadata(const std::string& name, std::string value) {
  if (name == "avro.schema") schema_text_ = std::move(value);
  if (name == "avro.codec") codec_ = std::move(value);
  if (name != "cellar.schema") return Status::Ok();
  const nlohmann::json commands = nlohmann::json::parse(value, nullptr, false);
  if (!commands.is_array()) return bytes_.Error("cellar.schema is no array of commands");
  for (const nlohmann::json& command : commands) {
    if (!command.is_string()) return bytes_.Error("cellar.schema holds what is no text");
    table_schema_.push_back(command.get<std::string>());
  }
  return Status::Ok();
}

// Which fields of the writer's schema are those of a row.
Status AvroReader::FindFields() {
  const auto wrong = [this](const std::string& text) {
    return bytes_.Error("the schema is not that of Bigtable's rows: " + text);
  };
  // The branch that is not null of a union, or the node itself.
  const auto core = [this](const AvroNode* node) {
    if (node->type != AvroType::kUnion) return node;
    for (const AvroNode::Part& part : node->parts) {
      if (schema_.node(part.node).type != AvroType::kNull) return &schema_.node(part.node);
    }
    return node;
  };
  if (schema_.root().type != AvroType::kRecord) return wrong("it is no record");
  const AvroNode* cell{nullptr};
  bool has_key{false};
  for (const AvroNode::Part& part : schema_.root().parts) {
    Field& field = fields_.emplace_back(Field{Role::kSkipped, &schema_.node(part.node)});
    if (part.name == "key" && IsText(core(field.node)->type)) {
      field.role = Role::kKey;
      has_key = true;
      RETURN_IF_ERROR(CheckMeanings(field, part.name));
    } else if (part.name == "cells" && field.node->type == AvroType::kArray) {
      if (!has_key) return wrong("cells come before the key");
      field.role = Role::kCells;
      cell = &schema_.node(field.node->parts[0].node);
    }
  }
  if (!has_key) return wrong("it has no key");
  if (cell == nullptr || cell->type != AvroType::kRecord) {
    return wrong("it has no array of cells that are records");
  }
  for (const AvroNode::Part& part : cell->parts) {
    Field& field = cell_fields_.emplace_back(Field{Role::kSkipped, &schema_.node(part.node)});
    const AvroType type{core(field.node)->type};
    if (part.name == "family" && IsText(type)) field.role = Role::kFamily;
    if (part.name == "qualifier" && IsText(type)) field.role = Role::kQualifier;
    if (part.name == "timestamp" && IsNumber(type)) field.role = Role::kTimestamp;
    if (part.name == "value" && IsText(type)) field.role = Role::kValue;
    RETURN_IF_ERROR(CheckMeanings(field, part.name));
  }
  for (const auto& [role, name] : {std::pair{Role::kFamily, "family"},
                                   {Role::kQualifier, "qualifier"},
                                   {Role::kValue, "value"}}) {
    bool found{false};
    for (const Field& field : cell_fields_) found = found || field.role == role;
    if (!found) return wrong(std::string("a cell has no ") + name);
  }
  return Status::Ok();
}

// Of a field with a role: that each of its branches can be converted.
Status AvroReader::CheckMeanings(const Field& field, const std::string& name) const {
  if (field.role == Role::kSkipped) return Status::Ok();
  const auto is_known = [&field](const AvroNode& node) {
    using Meaning = AvroMeaning;
    const bool is_time = node.meaning == Meaning::kMillis || node.meaning == Meaning::kMicros ||
                         node.meaning == Meaning::kDays;
    if (node.meaning == Meaning::kOther) return node.type == AvroType::kString;
    return node.meaning == Meaning::kPlain || (field.role == Role::kTimestamp) == is_time;
  };
  std::vector<const AvroNode*> branches{field.node};
  for (const AvroNode::Part& part : field.node->parts) {
    if (field.node->type == AvroType::kUnion) branches.push_back(&schema_.node(part.node));
  }
  for (const AvroNode* node : branches) {
    if (is_known(*node)) continue;
    return bytes_.Error("the logical type '" + node->logical_type + "' of " + name +
                        " cannot be read");
  }
  return Status::Ok();
}

// --- records

Result<bool> AvroReader::BeginBlock() {
  while (records_left_ == 0) {
    if (in_block_) {
      RETURN_IF_ERROR(bytes_.EndBlock());
      in_block_ = false;
      std::string sync;
      RETURN_IF_ERROR(bytes_.Read(kSyncBytes, &sync));
      if (sync != sync_) return bytes_.Error("the block does not end in the file's sync marker");
    }
    ASSIGN_OR_RETURN(const bool at_end, bytes_.AtEnd());
    if (at_end) return false;
    ASSIGN_OR_RETURN(records_left_, ReadLength(INT64_MAX));
    ASSIGN_OR_RETURN(const uint64_t block_bytes, ReadLength(INT64_MAX));
    RETURN_IF_ERROR(bytes_.BeginBlock(block_bytes, codec_ == "deflate"));
    in_block_ = true;
  }
  return true;
}

Result<bool> AvroReader::Next(Record* record) {
  record->error.clear();
  record->fields.clear();
  if (!in_record_) {
    ASSIGN_OR_RETURN(const bool found, BeginBlock());
    if (!found) return false;
    --records_left_;
    in_record_ = true;
    field_ = 0;
    row_.key.clear();
  }
  record->line = line_;
  const Status read = ReadRecord(record);
  if (!read.ok()) {
    return Status::Error(read.code(), read.text() + " (record " + std::to_string(line_) + ")");
  }
  if (!in_record_) ++line_;
  record->end_offset = ++row_number_;
  return true;
}

// A row of the record: the whole, or a part of it.
Status AvroReader::ReadRecord(Record* record) {
  row_.cells.clear();
  row_bytes_ = 0;
  RETURN_IF_ERROR(ReadFields(record));
  if (record->error.empty() && row_.key.empty()) record->error = "the row key is empty";
  if (record->error.empty() && row_.cells.empty()) record->error = "the row has no cells";
  return Status::Ok();
}

Status AvroReader::ReadFields(Record* record) {
  for (; field_ < fields_.size(); ++field_) {
    const Field& field = fields_[field_];
    if (field.role == Role::kKey) {
      ASSIGN_OR_RETURN(const bool found, ReadText(field.node, &row_.key));
      if (!found) record->error = "the row key is null";
    } else if (field.role == Role::kCells) {
      ASSIGN_OR_RETURN(const bool all, ReadCells(record));
      if (!all) return Status::Ok();
    } else {
      RETURN_IF_ERROR(Skip(*field.node, 0));
    }
  }
  in_record_ = false;
  return Status::Ok();
}

Result<bool> AvroReader::ReadCells(Record* record) {
  while (true) {
    if (cells_left_ == 0) {
      ASSIGN_OR_RETURN(const int64_t count, bytes_.ReadLong());
      if (count == 0) break;
      if (count < 0) RETURN_IF_ERROR(bytes_.ReadLong().status());
      cells_left_ =
          count < 0 ? uint64_t{0} - static_cast<uint64_t>(count) : static_cast<uint64_t>(count);
    }
    // Not at once when it is full: it may have been the last one.
    if (row_.cells.size() >= kCellsPerRow || row_bytes_ >= kBytesPerRow) return false;
    RETURN_IF_ERROR(ReadCell(record));
    --cells_left_;
  }
  return true;
}

Status AvroReader::ReadCell(Record* record) {
  Cell& cell = row_.cells.emplace_back();
  for (const Field& field : cell_fields_) {
    bool found{true};
    switch (field.role) {
      case Role::kFamily: {
        ASSIGN_OR_RETURN(found, ReadText(field.node, &cell.family));
        break;
      }
      case Role::kQualifier: {
        ASSIGN_OR_RETURN(found, ReadText(field.node, &cell.qualifier));
        break;
      }
      case Role::kValue: {
        ASSIGN_OR_RETURN(found, ReadText(field.node, &cell.value));
        break;
      }
      case Role::kTimestamp: {
        int64_t micros{0};
        ASSIGN_OR_RETURN(const bool has_timestamp, ReadTimestamp(field.node, &micros, record));
        if (has_timestamp) cell.timestamp_micros = micros;
        break;
      }
      default:
        RETURN_IF_ERROR(Skip(*field.node, 0));
    }
    if (!found) record->error = "a cell's family, qualifier or value is null";
  }
  // A cell costs memory also if its texts are short.
  row_bytes_ += sizeof(Cell) + cell.qualifier.size() + cell.value.size();
  return Status::Ok();
}

Result<const AvroNode*> AvroReader::ReadBranch(const AvroNode& node) {
  ASSIGN_OR_RETURN(const int64_t branch, bytes_.ReadLong());
  if (branch < 0 || std::cmp_greater_equal(branch, node.parts.size())) {
    return bytes_.Error("a union has no branch " + std::to_string(branch));
  }
  return &schema_.node(node.parts[static_cast<size_t>(branch)].node);
}

Result<bool> AvroReader::ReadText(const AvroNode* node, std::string* out) {
  if (node->type == AvroType::kUnion) {
    ASSIGN_OR_RETURN(node, ReadBranch(*node));
  }
  if (node->type == AvroType::kNull) return false;
  if (!IsText(node->type)) return bytes_.Error("a text is of another type");
  uint64_t length{node->fixed_bytes};
  if (node->type != AvroType::kFixed) {
    ASSIGN_OR_RETURN(length, ReadLength(kTextBytesMax));
  }
  if (node->meaning != AvroMeaning::kDecimal && node->meaning != AvroMeaning::kUuid) {
    RETURN_IF_ERROR(bytes_.Read(length, out));
    return true;
  }
  if (length > kDecimalBytesMax) return bytes_.Error("a decimal of more than 1,024 bytes");
  std::string raw;
  RETURN_IF_ERROR(bytes_.Read(length, &raw));
  if (node->meaning == AvroMeaning::kDecimal) {
    out->append(DecimalText(raw, node->scale));
    return true;
  }
  for (size_t i{0}; i < raw.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out->push_back('-');
    AppendHex(raw[i], out);
  }
  return true;
}

Result<bool> AvroReader::ReadTimestamp(const AvroNode* node, int64_t* micros, Record* record) {
  if (node->type == AvroType::kUnion) {
    ASSIGN_OR_RETURN(node, ReadBranch(*node));
  }
  if (node->type == AvroType::kNull) return false;
  if (!IsNumber(node->type)) return bytes_.Error("a timestamp is of another type");
  ASSIGN_OR_RETURN(*micros, bytes_.ReadLong());
  const int64_t unit{node->meaning == AvroMeaning::kMillis ? 1'000
                     : node->meaning == AvroMeaning::kDays ? kMicrosPerDay
                                                           : 1};
  if (__builtin_mul_overflow(*micros, unit, micros)) {
    record->error = "a timestamp is beyond what microseconds can say";
    return false;
  }
  return true;
}

// --- what is not wanted

// NOLINTNEXTLINE(misc-no-recursion): kDepthMax bounds it
Status AvroReader::Skip(const AvroNode& node, int depth) {
  if (depth > kDepthMax) return bytes_.Error("values are nested too deep");
  if (node.is_empty) return Status::Ok();  // however many records without bytes it holds
  switch (node.type) {
    case AvroType::kNull:
      return Status::Ok();
    case AvroType::kBoolean:
      return bytes_.Skip(1);
    case AvroType::kInt:
    case AvroType::kLong:
    case AvroType::kEnum:
      return bytes_.ReadLong().status();
    case AvroType::kFloat:
      return bytes_.Skip(sizeof(float));
    case AvroType::kDouble:
      return bytes_.Skip(sizeof(double));
    case AvroType::kFixed:
      return bytes_.Skip(node.fixed_bytes);
    case AvroType::kBytes:
    case AvroType::kString: {
      ASSIGN_OR_RETURN(const uint64_t length, ReadLength(INT64_MAX));
      return bytes_.Skip(length);
    }
    case AvroType::kRecord:
      for (const AvroNode::Part& part : node.parts) {
        RETURN_IF_ERROR(Skip(schema_.node(part.node), depth + 1));
      }
      return Status::Ok();
    case AvroType::kUnion: {
      ASSIGN_OR_RETURN(const AvroNode* branch, ReadBranch(node));
      return Skip(*branch, depth + 1);
    }
    case AvroType::kArray:
    case AvroType::kMap:
      break;
  }
  return SkipBlocks(node, depth);
}

// NOLINTNEXTLINE(misc-no-recursion): kDepthMax bounds it
Status AvroReader::SkipItem(const AvroNode& container, const AvroNode& item, int depth) {
  if (container.type == AvroType::kMap) {
    ASSIGN_OR_RETURN(const uint64_t length, ReadLength(INT64_MAX));
    RETURN_IF_ERROR(bytes_.Skip(length));
  }
  return Skip(item, depth);
}

// Of an array or a map.
// NOLINTNEXTLINE(misc-no-recursion): kDepthMax bounds it
Status AvroReader::SkipBlocks(const AvroNode& node, int depth) {
  const AvroNode& item = schema_.node(node.parts[0].node);
  while (true) {
    ASSIGN_OR_RETURN(int64_t count, bytes_.ReadLong());
    if (count == 0) return Status::Ok();
    if (count < 0) {  // then it says how many bytes they take
      ASSIGN_OR_RETURN(const uint64_t length, ReadLength(INT64_MAX));
      RETURN_IF_ERROR(bytes_.Skip(length));
      continue;
    }
    if (node.type == AvroType::kArray && item.is_empty) continue;
    for (; count > 0; --count) RETURN_IF_ERROR(SkipItem(node, item, depth + 1));
  }
}

}  // namespace cellar::importer
