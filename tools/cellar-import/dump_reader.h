// What Cassandra's tools say of an SSTable, as JSON, a row or some columns at a time:
//
//   sstabledump (3.0 and later): an array of partitions, or with -l one after the other
//     {"partition": {"key": ["LH", "400"], "deletion_info": {...}},
//      "rows": [{"type": "row", "clustering": [7], "liveness_info": {...}, "cells": [...]}, ...]}
//   sstable2json (1.0 to 2.2): an array of rows; "cells" in place of "columns" since 2.1
//     {"key": "4c48", "metadata": {"deletionInfo": {...}}, "columns": [["name", "value", 5], ...]}
//   sstable2json (0.6 to 0.8): an object of rows
//     {"4c48": [["6e61", "76", 5, false], ...], ...}
//   in each of the last two, super columns
//     {"super": {"deletedAt": 5, "subColumns": [["name", "value", 5], ...]}, ...}
//
// A partition may be larger than memory, so its elements come one by one, each beside what its
// partition says. Elements of one partition that are columns come some at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cellar-import/json_cursor.h"
#include "cellar-import/record_reader.h"

namespace cellar::importer {

// Of the elements of a record: where they stand.
struct DumpPlace {
  uint64_t partition{0};   // counted from 1
  bool is_columns{false};  // of sstable2json; else a row of sstabledump
  bool is_hex_key{false};
  // JSON texts; empty if they are not there.
  std::string key;           // of sstabledump's partition all that is said of it
  std::string metadata;      // "metadata" of the partition, or the number "deletedAt"
  std::string super_column;  // a name as it is, not JSON
  std::string super_column_metadata;
  bool has_super_column{false};
};

class DumpReader final : public RecordReader {
 public:
  DumpReader(Input* input, std::string path)
      : RecordReader(input), cursor_(input, std::move(path)) {}

  // Record::fields are the elements, JSON texts that may be malformed.
  Result<bool> Next(Record* record) override;
  // Of the record that Next() has given.
  const DumpPlace& place() const { return place_; }

 private:
  // What the next byte stands in.
  enum class State : uint8_t {
    kStart,         // nothing was read
    kPartitions,    // between partitions that are objects
    kMembers,       // in such an object
    kKeyedRows,     // between the members of an object of rows
    kElements,      // in an array of rows or columns
    kSuperColumns,  // in an object of super columns
    kSuperMembers,  // in one of them
    kEnd
  };

  Status Step();
  Status Begin();
  Status BeginPartition();
  Status ReadMember();
  Status ReadKeyedRow();
  Status ReadSuperColumn();
  Status ReadSuperMember();
  Status EnterElements(State after);
  Status ReadElements(Record* record);

  JsonCursor cursor_;
  State state_{State::kStart};
  bool in_array_{false};  // the partitions are
  State after_elements_{State::kMembers};
  State after_super_columns_{State::kMembers};
  // Whether the next one is the first, of each state that is a list.
  bool first_partition_{true};
  bool first_member_{true};
  bool first_element_{true};
  bool first_super_column_{true};
  bool first_super_member_{true};
  std::string first_name_;  // of the object that Begin() has looked into
  DumpPlace place_;
};

}  // namespace cellar::importer
