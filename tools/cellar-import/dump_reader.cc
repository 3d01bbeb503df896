// See dump_reader.h.
#include "cellar-import/dump_reader.h"

#include <utility>

#include "client/json_text.h"

namespace cellar::importer {
namespace {

constexpr size_t kColumnsPerRecord{1000};
constexpr size_t kBytesPerRecord{256 << 10};

}  // namespace

// Until there are elements, or the end is reached.
Result<bool> DumpReader::Next(Record* record) {
  while (state_ != State::kEnd) {
    if (state_ != State::kElements) {
      RETURN_IF_ERROR(Step());
      continue;
    }
    RETURN_IF_ERROR(ReadElements(record));
    if (!record->fields.empty()) return true;
  }
  return false;
}

Status DumpReader::Step() {
  switch (state_) {
    case State::kStart:
      return Begin();
    case State::kPartitions:
      return BeginPartition();
    case State::kMembers:
      return ReadMember();
    case State::kKeyedRows:
      return ReadKeyedRow();
    case State::kSuperColumns:
      return ReadSuperColumn();
    case State::kSuperMembers:
      return ReadSuperMember();
    case State::kElements:
    case State::kEnd:
      break;
  }
  return Status::Ok();
}

// An array; or an object, of a partition or of all rows: its first member tells.
Status DumpReader::Begin() {
  ASSIGN_OR_RETURN(const char first, cursor_.Peek());
  state_ = State::kPartitions;
  in_array_ = first == '[';
  if (in_array_) return cursor_.Take('[');
  if (first == '\0') {
    state_ = State::kEnd;
    return Status::Ok();
  }
  if (first != '{') return cursor_.Error("this is no dump: neither an array nor an object");
  RETURN_IF_ERROR(cursor_.Take('{'));
  ++place_.partition;
  first_member_ = false;
  state_ = State::kMembers;
  ASSIGN_OR_RETURN(const char next, cursor_.Peek());
  if (next == '}') return Status::Ok();
  RETURN_IF_ERROR(cursor_.ReadName(&first_name_));
  ASSIGN_OR_RETURN(const char value, cursor_.Peek());
  const bool is_partition{
      (first_name_ == "key" || first_name_ == "partition" || first_name_ == "table kind") &&
      value != '['};
  if (!is_partition) state_ = State::kKeyedRows;
  return Status::Ok();
}

Status DumpReader::BeginPartition() {
  if (in_array_) {
    ASSIGN_OR_RETURN(const bool more, cursor_.Next(']', &first_partition_));
    if (!more) {
      ASSIGN_OR_RETURN(const char next, cursor_.Peek());
      if (next != '\0') return cursor_.Error("something stands behind the end of the dump");
      state_ = State::kEnd;
      return Status::Ok();
    }
  } else {
    ASSIGN_OR_RETURN(const char next, cursor_.Peek());
    if (next == '\0') {
      state_ = State::kEnd;
      return Status::Ok();
    }
  }
  RETURN_IF_ERROR(cursor_.Take('{'));
  const uint64_t number{place_.partition + 1};
  place_ = DumpPlace{};
  place_.partition = number;
  first_member_ = true;
  state_ = State::kMembers;
  return Status::Ok();
}

Status DumpReader::ReadMember() {
  std::string name{std::exchange(first_name_, {})};
  if (name.empty()) {
    ASSIGN_OR_RETURN(const bool more, cursor_.Next('}', &first_member_));
    if (!more) {
      state_ = State::kPartitions;
      return Status::Ok();
    }
    RETURN_IF_ERROR(cursor_.ReadName(&name));
  }
  if (name == "partition" || name == "key") return cursor_.ReadValue(&place_.key);
  if (name == "metadata" || name == "deletedAt") return cursor_.ReadValue(&place_.metadata);
  const bool is_rows{name == "rows"};
  if (!is_rows && name != "columns" && name != "cells") return cursor_.SkipValue();
  if (place_.key.empty()) return cursor_.Error("\"" + name + "\" stands before the key");
  place_.is_columns = !is_rows;
  place_.is_hex_key = name == "columns";
  ASSIGN_OR_RETURN(const char first, cursor_.Peek());
  if (is_rows || first != '{') return EnterElements(State::kMembers);
  after_super_columns_ = State::kMembers;
  first_super_column_ = true;
  state_ = State::kSuperColumns;
  return cursor_.Take('{');
}

Status DumpReader::ReadKeyedRow() {
  std::string name{std::exchange(first_name_, {})};
  if (name.empty()) {
    ASSIGN_OR_RETURN(const bool more, cursor_.Next('}', &first_member_));
    if (!more) {
      ASSIGN_OR_RETURN(const char next, cursor_.Peek());
      if (next != '\0') return cursor_.Error("something stands behind the end of the dump");
      state_ = State::kEnd;
      return Status::Ok();
    }
    RETURN_IF_ERROR(cursor_.ReadName(&name));
    ++place_.partition;
  }
  const uint64_t number{place_.partition};
  place_ = DumpPlace{};
  place_.partition = number;
  place_.is_columns = true;
  place_.is_hex_key = true;
  client::AppendJsonString(name, &place_.key);
  ASSIGN_OR_RETURN(const char first, cursor_.Peek());
  if (first != '{') return EnterElements(State::kKeyedRows);
  after_super_columns_ = State::kKeyedRows;
  first_super_column_ = true;
  state_ = State::kSuperColumns;
  return cursor_.Take('{');
}

Status DumpReader::ReadSuperColumn() {
  ASSIGN_OR_RETURN(const bool more, cursor_.Next('}', &first_super_column_));
  place_.super_column.clear();
  place_.super_column_metadata.clear();
  place_.has_super_column = more;
  if (!more) {
    state_ = after_super_columns_;
    return Status::Ok();
  }
  RETURN_IF_ERROR(cursor_.ReadName(&place_.super_column));
  first_super_member_ = true;
  state_ = State::kSuperMembers;
  return cursor_.Take('{');
}

Status DumpReader::ReadSuperMember() {
  ASSIGN_OR_RETURN(const bool more, cursor_.Next('}', &first_super_member_));
  if (!more) {
    state_ = State::kSuperColumns;
    return Status::Ok();
  }
  std::string name;
  RETURN_IF_ERROR(cursor_.ReadName(&name));
  if (name == "metadata" || name == "deletedAt") {
    return cursor_.ReadValue(&place_.super_column_metadata);
  }
  if (name == "subColumns" || name == "subcolumns") return EnterElements(State::kSuperMembers);
  return cursor_.SkipValue();
}

Status DumpReader::EnterElements(State after) {
  first_element_ = true;
  after_elements_ = after;
  state_ = State::kElements;
  return cursor_.Take('[');
}

Status DumpReader::ReadElements(Record* record) {
  record->error.clear();
  record->fields.clear();
  size_t bytes{0};
  while (record->fields.size() < (place_.is_columns ? kColumnsPerRecord : 1) &&
         bytes < kBytesPerRecord) {
    ASSIGN_OR_RETURN(const bool more, cursor_.Next(']', &first_element_));
    if (!more) {
      state_ = after_elements_;
      break;
    }
    RETURN_IF_ERROR(cursor_.Peek().status());
    if (record->fields.empty()) record->line = cursor_.line();
    RETURN_IF_ERROR(cursor_.ReadValue(&record->fields.emplace_back()));
    bytes += record->fields.back().size();
    line_ = cursor_.line();
    record->end_offset = cursor_.offset();
  }
  return Status::Ok();
}

}  // namespace cellar::importer
