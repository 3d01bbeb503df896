// What an index declares (cellar-model(7), "INDEXES"). Plain data, part of TableSchema.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/status.h"
#include "engine/keys/value.h"

namespace cellar {

struct TableSchema;

inline constexpr size_t kIndexesMax{64};        // of one table
inline constexpr size_t kIndexColumnsMax{32};   // ON columns of one index
inline constexpr size_t kIndexIncludeMax{256};  // INCLUDE columns of one index

// The numbers are part of the formats on disk.
enum class IndexState : uint8_t {
  kBuilding = 0,  // rows that were there when it was created are still being added
  kReady = 1,
  kFailed = 2,  // rows could not have their entries: holds nothing until it is dropped
};

struct IndexColumn {
  uint32_t family_id{0};
  bool whole_family{false};           // ON 1 family: every qualifier; INCLUDE: the whole family
  std::string qualifier;              // encoded; empty if whole_family
  ValueType type{ValueType::kBytes};  // ON alone
  bool type_is_given{false};          // ON alone: by AS; else it was the column's
  bool descending{false};             // ON alone
};

struct IndexSchema {
  std::string name;
  uint64_t id{0};  // never used again in its table
  bool unique{false};
  IndexState state{IndexState::kBuilding};
  // All rows have been found to be of a size that it can hold, and no change since could make one
  // too large. False while it is built, again after a change of retention, and of versions that
  // left out such rows.
  bool judged{false};
  std::vector<IndexColumn> on;
  std::vector<IndexColumn> include;
  Status failure;  // kFailed: NOTUNIQUE or TOOLARGE, naming a row

  // ON 1 family: the entries are qualifiers, not values.
  bool of_qualifiers() const { return on.size() == 1 && on[0].whole_family; }
  // ON 0: every row has an entry.
  bool of_rows() const { return on.empty(); }
  bool NamesFamily(uint32_t family_id) const;
  // Is it an ON column of the family with the type that TypeOf said, since AS did not?
  static bool TakesTypeOf(const IndexColumn& column, uint32_t family_id);
};

void EncodeIndexSchema(const IndexSchema& index, std::string* to);
// False if *from is malformed.
[[nodiscard]] bool DecodeIndexSchema(std::string_view* from, IndexSchema* index);

// Which indexes of a table have failed, and why; empty: none has. Another set that is about to have
// its rows is told so.
std::string EncodeIndexFailures(const TableSchema& schema);
// The indexes of *schema that these are of have failed, if they have not already. *changes: one had
// not. False if they are malformed.
[[nodiscard]] bool TakeIndexFailures(std::string_view failures, TableSchema* schema, bool* changes);

// "-family:qualifier", as INDEX CREATE takes it and INDEX INFO shows it.
std::string IndexColumnText(const TableSchema& schema, const IndexColumn& column);
// What stands behind INDEX CREATE table: "name ON 1 -f:q AS i64 INCLUDE 1 f UNIQUE", in redis-cli
// quoting.
std::string IndexDefinitionText(const TableSchema& schema, const IndexSchema& index);

}  // namespace cellar
