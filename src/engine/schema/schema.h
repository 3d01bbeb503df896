// What a table declares: its key order, its families with their options, its locality groups.
//
// A TableSchema is plain data: it is copied into a consistent scan, compared, written into the
// snapshot's catalog and into the log, and printed as the commands that rebuild it. The data itself
// and its counters live in Table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/equal_bytes.h"
#include "base/inline.h"
#include "cellar/status.h"
#include "engine/keys/compression.h"
#include "engine/keys/fold.h"
#include "engine/keys/order.h"
#include "engine/keys/value.h"
#include "engine/request/family_access.h"
#include "engine/schema/index_schema.h"
#include "engine/schema/retention.h"

namespace cellar {

inline constexpr size_t kNameBytesMax{64};              // cellar-model(7), "TERMS"
inline constexpr size_t kFamiliesMax{256};              // cellar-model(7), "LIMITS"
inline constexpr size_t kTypedColumnsMax{256};          // of a family, by COLUMN
inline constexpr size_t kRowKeyBytesMax{64 * 1024};     // Bigtable paper: "up to 64KB"
inline constexpr size_t kQualifierBytesMax{16 * 1024};  // Bigtable's own limit
inline constexpr std::string_view kDefaultGroup{"default"};

// True for [A-Za-z0-9_][A-Za-z0-9_.-]{0,63}: names of keyspaces, tables, families, groups, indexes.
bool IsName(std::string_view text);

// COLUMN: a column with a type of its own.
struct TypedColumn {
  std::string qualifier;  // encoded
  ValueType type{ValueType::kBytes};

  friend bool operator==(const TypedColumn&, const TypedColumn&) = default;
};

struct FamilySchema {
  std::string name;
  uint32_t id{0};                 // part of every cell's key; never used again in its table
  uint32_t group{0};              // index into TableSchema::groups
  std::optional<ValueType> type;  // of columns that have none of their own: ask TypeOf
  Order order;                    // of the qualifiers
  RetentionPolicy policy;
  // At a set of a cluster: what the policy is from when nothing is stored any more that this one
  // has dropped (store/policy_changes.h).
  std::optional<RetentionPolicy> next_policy;
  FoldKind fold{FoldKind::kNone};                // AGGREGATE; fixed, as is then the type
  Compression compression{Compression::kNever};  // COMPRESS, of what is written from now on
  int64_t bucket_ms{0};                          // BUCKET; fixed; 0: none
  std::vector<TypedColumn> columns;              // COLUMN, ascending by qualifier
  // Worked out when it is decoded, for the way of most puts: every column takes any bytes as they
  // are. False says nothing.
  bool takes_plain_bytes{false};

  // Cells stand at the timestamps that writes say, and a put is all there is to a write.
  bool is_plain() const { return fold == FoldKind::kNone && bucket_ms == 0; }
  bool is_hll() const { return fold == FoldKind::kHll; }
  // As it was said last.
  const RetentionPolicy& policy_said() const { return next_policy ? *next_policy : policy; }
  // The column of that encoded qualifier, if it has a type of its own.
  const TypedColumn* FindColumn(std::string_view qualifier) const;
};

// The one answer to which type a cell of the column has that is written without AS, and that AS
// must say: COLUMN's, else TYPE's. Nothing: AS decides, and bytes where that says nothing. Cells
// from before a change of type have their own.
CELLAR_INLINE std::optional<ValueType> TypeOf(const FamilySchema& family,
                                              std::string_view qualifier) {
  if (family.columns.empty()) [[likely]]
    return family.type;
  const TypedColumn* const column = family.FindColumn(qualifier);
  return column != nullptr ? column->type : family.type;
}

// COLUMN qualifier type, or NOCOLUMN qualifier, as it was sent.
struct ColumnTypeOption {
  std::string qualifier;
  std::optional<ValueType> type;  // unset: NOCOLUMN
};

// What becomes of cells of another type where FAMILY ALTER changes types.
enum class OtherCells : uint8_t {
  kRefuse,   // there may be none
  kKeep,     // KEEP: they stay as they are
  kConvert,  // CONVERT: they are rewritten, or all is refused
  kSkip,     // CONVERT SKIP: they are rewritten where that can be done
};

// What FAMILY ADD and ALTER may say; what is not set was not said.
struct FamilyOptions {
  std::optional<std::optional<ValueType>> type;  // the inner nullopt is TYPE NONE
  std::optional<Order> order;
  std::optional<RetentionPolicy> gc;
  std::optional<uint64_t> versions_max;  // 0 stands for ALL
  std::optional<uint64_t> ttl_ms;        // 0 stands for NONE
  std::optional<std::string> group;
  std::optional<FoldKind> fold;            // AGGREGATE
  std::optional<int64_t> bucket_ms;        // BUCKET
  std::optional<Compression> compression;  // kNever stands for NONE
  std::vector<ColumnTypeOption> columns;
  std::optional<OtherCells> other_cells;  // FAMILY ALTER

  bool empty() const;
};

// Which rows of a table have one owner in a cluster, whatever becomes of its tablets.
struct Placement {
  uint32_t colocate{0};  // COLOCATE: those whose first so many key components are equal; 0: none
  bool whole{false};     // WHOLE: all of the table

  bool any() const { return whole || colocate != 0; }
  friend bool operator==(const Placement&, const Placement&) = default;
};

struct GroupSchema {
  std::string name;
  uint64_t tree_id{0};  // unique in the whole store; never used again
};

struct TableSchema {
  Order key;
  Placement placement;
  uint32_t family_id_next{1};
  std::vector<FamilySchema> families;  // ascending by name: the order of replies
  std::vector<GroupSchema> groups;     // a group stays when its last family goes
  uint64_t index_id_next{1};
  std::vector<IndexSchema> indexes;  // ascending by name
  // Not null in the copy that a restricted read works with: families that may not be read are not
  // in it, and naming one is refused whether it exists or not. Not part of the stored schema.
  const FamilyAccess* access{nullptr};

  // By name; null if there is none. The pointer dies when the schema changes.
  CELLAR_INLINE const FamilySchema* FindFamily(std::string_view name) const {
    // Tables have few families: a walk beats a search until there are many.
    if (families.size() > 8) [[unlikely]]
      return SearchFamily(name);
    for (const FamilySchema& family : families) {
      if (EqualBytes(family.name, name)) [[likely]]
        return &family;
    }
    return nullptr;
  }
  FamilySchema* FindFamily(std::string_view name);
  const FamilySchema* FindFamilyById(uint32_t id) const;
  const IndexSchema* FindIndex(std::string_view name) const;

 private:
  const FamilySchema* SearchFamily(std::string_view name) const;
};

// The retention that `options` make of `policy`: options not said stay, GC replaces VERSIONS and
// TTL and the other way round.
RetentionPolicy AlterRetention(const RetentionPolicy& policy, const FamilyOptions& options);

// `key` as the argument of TABLE CREATE ... KEY, and one family with its options, in redis-cli
// quoting.
std::string FamilyOptionsText(const TableSchema& schema, const FamilySchema& family);

void EncodeTableSchema(const TableSchema& schema, std::string* to);
// Takes a schema from the front of *from. kCorruption if it is malformed.
Status DecodeTableSchema(std::string_view* from, TableSchema* schema);
// Whether all that has changed from `before` to `after` is how far indexes have come.
bool DifferInIndexStatesAlone(const TableSchema& before, const TableSchema& after);
// Whether a server that knows neither AGGREGATE nor BUCKET can read it, nor COMPRESS, nor COLUMN,
// nor COLOCATE and WHOLE.
bool IsPlainSchema(const TableSchema& schema);
// Whether one of its families has COLUMN.
bool HasTypedColumns(const TableSchema& schema);
// Whether one of its families has, or has had, COMPRESS.
bool MayHoldPacked(const TableSchema& schema);
// DecodeTableSchema of a format without indexes.
Status DecodeTableSchemaV1(std::string_view* from, TableSchema* schema);

}  // namespace cellar
