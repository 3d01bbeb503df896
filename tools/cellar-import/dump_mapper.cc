// See dump_mapper.h.
#include "cellar-import/dump_mapper.h"

#include <algorithm>
#include <utility>

#include "base/text/quote.h"
#include "client/hex_text.h"
#include "resp/decimal.h"

namespace cellar::importer {
namespace {

Status BadRecord(std::string text) { return Status::Error(ErrorCode::kBadValue, std::move(text)); }

// "2018-07-20T20:23:08.378711Z", or with -t a number of `unit`s, perhaps in quotes.
Result<int64_t> TimeOf(const JsonTree& value, TimeUnit unit) {
  int64_t number{0};  // below 0 too: the smallest one is "never"
  const bool is_micros{unit == TimeUnit::kMicros && ParseStrictInt64(value.text, &number)};
  if (is_micros) return number;
  return ParseTimestamp(value.ToText(), unit);
}

// Of {"marked_deleted": ..., ...}; INT64_MIN of what does not say so.
Result<int64_t> MarkedDeleted(const JsonTree* deletion) {
  if (deletion == nullptr) return INT64_MIN;
  const JsonTree* marked = deletion->Find("marked_deleted");
  if (marked == nullptr) marked = deletion->Find("markedForDeleteAt");
  if (marked == nullptr) return INT64_MIN;
  return TimeOf(*marked, TimeUnit::kMicros);
}

// Of sstable2json: {"deletionInfo": {"markedForDeleteAt": n}}, or n itself.
Result<int64_t> DeletedAt(const std::string& metadata) {
  if (metadata.empty()) return INT64_MIN;
  ASSIGN_OR_RETURN(const JsonTree tree, JsonTree::Parse(metadata));
  if (tree.kind == JsonTree::Kind::kInteger) return TimeOf(tree, TimeUnit::kMicros);
  return MarkedDeleted(tree.Find("deletionInfo"));
}

// A name as CQL writes it: between double quotes if it is not all in lower case.
std::string Unquoted(const std::string& name) {
  if (name.size() < 2 || !name.starts_with('"') || !name.ends_with('"')) return name;
  std::string plain;
  for (size_t i{1}; i + 1 < name.size(); ++i) {
    plain.push_back(name[i]);
    if (name[i] == '"' && name[i + 1] == '"' && i + 2 < name.size()) ++i;
  }
  return plain;
}

// The total of a counter's shards, which sstable2json writes as they are kept, in hexadecimal
// digits: the number of elements of a header, two bytes each; then of each shard an id of 16 bytes,
// a clock and a count of 8. What is no such text stays as it is.
std::string CounterText(const std::string& text) {
  constexpr size_t kShardBytes{32};
  constexpr size_t kCountOffset{24};
  const std::string bytes{client::DecodeHex(text).value_or("")};
  const auto byte = [&bytes](size_t at) {
    return static_cast<uint64_t>(static_cast<uint8_t>(bytes[at]));
  };
  if (bytes.size() < 2) return text;
  const auto elements = static_cast<int16_t>(byte(0) << 8 | byte(1));
  const size_t header{2 + 2 * static_cast<size_t>(elements < 0 ? -elements : elements)};
  if (header >= bytes.size() || (bytes.size() - header) % kShardBytes != 0) return text;
  uint64_t total{0};
  for (size_t shard{header}; shard < bytes.size(); shard += kShardBytes) {
    uint64_t count{0};
    for (size_t i{0}; i < sizeof(count); ++i) count = count << 8 | byte(shard + kCountOffset + i);
    total += count;
  }
  return std::to_string(static_cast<int64_t>(total));
}

}  // namespace

Result<bool> DumpMapper::Map(const DumpPlace& place, const Record& record, Row* row) {
  row->cells.clear();
  row->timestamp_micros.reset();
  if (place.partition != partition_) RETURN_IF_ERROR(EnterPartition(place));
  super_deleted_ = INT64_MIN;
  if (place.has_super_column) {
    ASSIGN_OR_RETURN(super_deleted_, DeletedAt(place.super_column_metadata));
  }
  row->key = key_;
  Status outcome;  // the first column that is wrong makes the record so, but all are looked at
  for (const std::string& text : record.fields) {
    Result<JsonTree> element = JsonTree::Parse(text);
    Status mapped = element.ok() ? Status::Ok() : element.status();
    if (mapped.ok()) {
      mapped = place.is_columns ? MapColumn(place, *element, row) : MapRow(*element, row);
    }
    if (outcome.ok()) outcome = mapped;
  }
  if (!outcome.ok()) return BadRecord("row " + Quote(row->key) + ": " + outcome.text());
  if (row->key.empty()) return BadRecord("the row key is empty");
  return !row->cells.empty();
}

Status DumpMapper::EnterPartition(const DumpPlace& place) {
  partition_ = 0;  // an error is one of each of its records
  range_deleted_ = INT64_MIN;
  key_.clear();
  if (place.is_columns) {
    ASSIGN_OR_RETURN(const JsonTree key, JsonTree::Parse(place.key));
    key_ = place.is_hex_key ? client::DecodeHex(key.text).value_or(key.text) : key.text;
    ASSIGN_OR_RETURN(partition_deleted_, DeletedAt(place.metadata));
  } else {
    ASSIGN_OR_RETURN(const JsonTree tree, JsonTree::Parse(place.key));
    const JsonTree* key = tree.Find("key");
    if (key == nullptr || !key->is_array()) return BadRecord("the partition has no key");
    for (const JsonTree& component : key->items) {
      if (&component != &key->items.front()) key_ += options_.key_delimiter;
      key_ += component.ToText();
    }
    ASSIGN_OR_RETURN(partition_deleted_, MarkedDeleted(tree.Find("deletion_info")));
  }
  partition_ = place.partition;
  return Status::Ok();
}

// --- sstabledump

Status DumpMapper::MapRow(const JsonTree& element, Row* row) {
  const JsonTree* type = element.Find("type");
  if (type == nullptr) return BadRecord("a row does not say its type");
  if (type->text.starts_with("range_tombstone")) return MapBound(element);
  if (type->text != "row" && type->text != "static_block") {
    return BadRecord("there is no row of the type " + Quote(type->text));
  }
  if (const JsonTree* clustering = element.Find("clustering")) {
    for (const JsonTree& component : clustering->items) {
      row->key += options_.key_delimiter + component.ToText();
    }
  }
  RowLife life;
  ASSIGN_OR_RETURN(life.deleted_micros, MarkedDeleted(element.Find("deletion_info")));
  life.deleted_micros = std::max({life.deleted_micros, partition_deleted_, range_deleted_});
  const JsonTree* liveness = element.Find("liveness_info");
  if (liveness != nullptr) {
    life.timestamp = liveness->Find("tstamp");
    life.expiry = liveness->Find("expires_at");
  }
  if (const JsonTree* cells = element.Find("cells")) {
    RETURN_IF_ERROR(MapCells(*cells, life, row));
  }
  if (!row->cells.empty() || life.timestamp == nullptr) return Status::Ok();
  // All of the row is its key: without a cell it would not be here.
  Cell cell;
  ASSIGN_OR_RETURN(const int64_t micros, TimeOf(*life.timestamp, TimeUnit::kMicros));
  if (micros <= life.deleted_micros) {
    ++hidden_;
    return Status::Ok();
  }
  cell.family = options_.default_family;
  if (cell.family.empty()) return Status::Ok();
  cell.timestamp_micros = micros;
  if (life.expiry != nullptr) {
    ASSIGN_OR_RETURN(cell.expires_micros, TimeOf(*life.expiry, TimeUnit::kSeconds));
  }
  row->cells.push_back(std::move(cell));
  return Status::Ok();
}

// A range begins or ends here; at a boundary one ends and another begins.
Status DumpMapper::MapBound(const JsonTree& element) {
  ++hidden_;
  const JsonTree* start = element.Find("start");
  range_deleted_ = INT64_MIN;
  if (start == nullptr) return Status::Ok();
  ASSIGN_OR_RETURN(range_deleted_, MarkedDeleted(start->Find("deletion_info")));
  return Status::Ok();
}

Status DumpMapper::MapCells(const JsonTree& cells, const RowLife& life, Row* row) {
  std::string collection;  // whose deletion holds
  int64_t collection_deleted{INT64_MIN};
  for (const JsonTree& entry : cells.items) {
    const JsonTree* name = entry.Find("name");
    if (name == nullptr || !name->is_text()) return BadRecord("a cell has no name");
    ASSIGN_OR_RETURN(const int64_t marked, MarkedDeleted(entry.Find("deletion_info")));
    if (marked != INT64_MIN) {  // of all of a collection's elements, which follow
      collection = name->text;
      collection_deleted = marked;
      ++hidden_;
      continue;
    }
    const int64_t deleted{name->text == collection ? collection_deleted : INT64_MIN};
    RETURN_IF_ERROR(MapCell(entry, life, std::max(deleted, life.deleted_micros), row));
  }
  return Status::Ok();
}

Status DumpMapper::MapCell(const JsonTree& entry, const RowLife& life, int64_t deleted_micros,
                           Row* row) {
  const JsonTree* own_timestamp = entry.Find("tstamp");
  const JsonTree* timestamp = own_timestamp != nullptr ? own_timestamp : life.timestamp;
  const std::string name{Unquoted(entry.Find("name")->text)};
  if (timestamp == nullptr) return BadRecord("column " + Quote(name) + " has no timestamp");
  Cell cell;
  ASSIGN_OR_RETURN(cell.timestamp_micros, TimeOf(*timestamp, TimeUnit::kMicros));
  const JsonTree* value = entry.Find("value");
  if (value == nullptr || *cell.timestamp_micros <= deleted_micros) {
    ++hidden_;
    return Status::Ok();
  }
  // What was written with the row expires with it. Of what was written later the dump says a ttl if
  // it is another one; if it says none, living on loses nothing.
  const JsonTree* expiry = entry.Find("expires_at");
  if (expiry == nullptr && own_timestamp == nullptr) expiry = life.expiry;
  if (expiry != nullptr) {
    ASSIGN_OR_RETURN(cell.expires_micros, TimeOf(*expiry, TimeUnit::kSeconds));
  }
  const JsonTree* path = entry.Find("path");
  if (path == nullptr) return AddCell(name, nullptr, *value, std::move(cell), row);
  std::string element;
  for (const JsonTree& step : path->items) element += (element.empty() ? "" : ".") + step.ToText();
  return AddCell(name, &element, *value, std::move(cell), row);
}

// --- sstable2json

Status DumpMapper::MapColumn(const DumpPlace& place, const JsonTree& element, Row* row) {
  const std::vector<JsonTree>& parts = element.items;
  if (!element.is_array() || parts.size() < 3) {
    return BadRecord("a column is not [name, value, timestamp, ...]");
  }
  // "d", "e", "c"; in 0.6 and 0.7 whether it is deleted. A range is [from, to, timestamp, "t", n].
  const std::string flag{parts.size() > 3 ? parts[3].text : ""};
  Cell cell;
  ASSIGN_OR_RETURN(cell.timestamp_micros, TimeOf(parts[2], TimeUnit::kMicros));
  const int64_t deleted{std::max(partition_deleted_, super_deleted_)};
  if (flag == "d" || flag == "t" || flag == "true" || *cell.timestamp_micros <= deleted) {
    ++hidden_;
    return Status::Ok();
  }
  if ((flag == "e" || flag == "false") && parts.size() > 5) {
    ASSIGN_OR_RETURN(cell.expires_micros, TimeOf(parts[5], TimeUnit::kSeconds));
  }
  ASSIGN_OR_RETURN(std::string name, Decoded(parts[0].ToText()));
  JsonTree value{parts[1]};
  if (flag == "c") {
    value.text = CounterText(value.text);
  } else {
    ASSIGN_OR_RETURN(value.text, Decoded(value.text));
  }
  if (!place.has_super_column) return AddCell(name, nullptr, value, std::move(cell), row);
  ASSIGN_OR_RETURN(const std::string super_column, Decoded(place.super_column));
  return AddCell(super_column, &name, value, std::move(cell), row);
}

// --- both

Result<std::string> DumpMapper::Decoded(std::string text) const {
  if (!hex_) return text;
  std::optional<std::string> bytes = client::DecodeHex(text);
  if (!bytes) return BadRecord(Quote(text) + " is not hexadecimal (--hex)");
  return *std::move(bytes);
}

Result<Column> DumpMapper::ColumnOf(const std::string& name) const {
  if (const auto found = options_.columns.find(name); found != options_.columns.end()) {
    return found->second;
  }
  const auto& ignored = options_.ignored_fields;
  if (std::find(ignored.begin(), ignored.end(), name) != ignored.end()) return Column{};
  if (!options_.default_family.empty()) return Column{options_.default_family, name, {}};
  if (options_.ignore_unmapped) return Column{};
  return BadRecord("column " + Quote(name) +
                   " is mapped nowhere: use --column, --default-family, --ignore or "
                   "--ignore-unmapped");
}

// `path`: of an element of the column, if it is one of several.
Status DumpMapper::AddCell(const std::string& name, const std::string* path, const JsonTree& value,
                           Cell cell, Row* row) const {
  ASSIGN_OR_RETURN(Column column, ColumnOf(name));
  if (column.family.empty() || value.kind == JsonTree::Kind::kNull) return Status::Ok();
  cell.family = std::move(column.family);
  cell.qualifier = std::move(column.qualifier);
  if (path != nullptr) cell.qualifier += (cell.qualifier.empty() ? "" : ".") + *path;
  cell.type = std::move(column.type);
  if (cell.type.empty()) cell.type = options_.default_type;
  if (cell.type.empty() && options_.json_types) cell.type = value.NaturalType();
  cell.value = value.ToText();
  // A blob.
  if ((hex_ || cell.type == "bytes") && value.is_text() && cell.value.starts_with("0x")) {
    std::optional<std::string> bytes = client::DecodeHex(std::string_view(cell.value).substr(2));
    if (bytes) cell.value = *std::move(bytes);
  }
  row->cells.push_back(std::move(cell));
  return Status::Ok();
}

}  // namespace cellar::importer
