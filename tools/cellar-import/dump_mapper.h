// Elements of Cassandra's dumps (dump_reader.h) to rows.
//
//   row key     the partition's key and the clustering, joined; static columns have the partition's
//   column      FAMILY:name; of a collection's element FAMILY:name.key; of a super column's
//               FAMILY:super.name; or where --column says (a collection's element there is
//               qualifier.key, or key alone if the qualifier is empty)
//   timestamp   Cassandra's own, in microseconds
//   expiry      expires_at
//   a set's element has an empty value; a row without columns one cell, FAMILY: with an empty value
//
// What a deletion in the same dump hides is left out, and counted: deletions of partitions, ranges,
// rows, collections and cells. Ranges are open from one element to another, so the mapper must see
// all elements in order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cellar-import/dump_reader.h"
#include "cellar-import/json_tree.h"
#include "cellar-import/row_mapper.h"

namespace cellar::importer {

class DumpMapper {
 public:
  // `hex`: names and values of hexadecimal digits are decoded.
  DumpMapper(MapperOptions options, bool hex) : options_(std::move(options)), hex_(hex) {}

  // False: nothing of it lives. *row is used again. Errors are the record's.
  Result<bool> Map(const DumpPlace& place, const Record& record, Row* row);
  // Cells and rows that a deletion hides, tombstones too.
  uint64_t hidden() const { return hidden_; }

 private:
  // What is said once of all cells of a row.
  struct RowLife {
    int64_t deleted_micros{INT64_MIN};  // cells up to here are gone
    const JsonTree* timestamp{nullptr};
    const JsonTree* expiry{nullptr};
  };

  Status EnterPartition(const DumpPlace& place);
  Status EnterSuperColumn(const DumpPlace& place);
  Status MapRow(const JsonTree& element, Row* row);
  Status MapBound(const JsonTree& element);
  Status MapCells(const JsonTree& cells, const RowLife& life, Row* row);
  Status MapCell(const JsonTree& entry, const RowLife& life, int64_t deleted_micros, Row* row);
  Status MapColumn(const DumpPlace& place, const JsonTree& element, Row* row);
  Status AddCell(const std::string& name, const std::string* path, const JsonTree& value, Cell cell,
                 Row* row) const;
  Result<Column> ColumnOf(const std::string& name) const;
  Result<std::string> Decoded(std::string text) const;

  MapperOptions options_;
  bool hex_;
  uint64_t hidden_{0};
  // Of the partition.
  uint64_t partition_{0};
  std::string key_;
  int64_t partition_deleted_{INT64_MIN};
  int64_t range_deleted_{INT64_MIN};
  int64_t super_deleted_{INT64_MIN};
};

}  // namespace cellar::importer
