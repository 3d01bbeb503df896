// MutationCheck: could this op have come from the store that the mutation is applied to? Asked of
// mutations that come from a disk or a peer, op by op, before each is carried out.
//
// A record's checksum says that its bytes are what somebody wrote; this says that they mean
// something: keys and qualifiers are complete encodings of the table's orders and the only ones of
// their text, values are valid for their type, ranges do not cut through a row or a column, a
// schema goes on from the one before it, names and ids are as the store gives them. What passes can
// be applied, read, scanned, indexed and saved without a surprise: the primitives of Table and all
// readers rely on it.
//
// A server's own mutations are made of checked arguments and are not checked again.
#pragma once

#include <string>
#include <string_view>

#include "cellar/status.h"
#include "engine/table/mutation.h"

namespace cellar {

class Engine;
class Table;

class MutationCheck {
 public:
  explicit MutationCheck(const Engine& engine) : engine_(engine) {}

  Status CheckStamp(int64_t stamp) const;
  // kCorruption with what is wrong. `table` is the one that the ops before have named, or null.
  // O(op), and O(schema) for one that carries a schema.
  Status Check(const DecodedOp& op, const Table* table);

 private:
  Status CheckRow(const DecodedOp& op, const Table& table);
  Status CheckCell(const DecodedOp& op, const Table& table);
  Status CheckNewTable(const DecodedOp& op) const;
  Status CheckNewSchema(const DecodedOp& op) const;
  Status CheckNewTrees(const TableSchema& schema, size_t groups_known) const;
  bool IsKey(const Order& order, std::string_view encoded, size_t text_bytes_max);

  const Engine& engine_;
  std::string text_;
  std::string encoded_;
};

// Do these bytes cut through no key of the order: is no complete key followed by something?
bool IsBoundOf(const Order& order, std::string_view bound);

// Is `bytes` the value of a cell, as DecodeCellValue reads it, and its only form?
bool IsCellValue(std::string_view bytes);
// And one that the family's cells can have.
bool IsValueOf(const FamilySchema& family, std::string_view cell_value);

}  // namespace cellar
