// What the store is asked for and what it answers, where that is more than words and rows: tables,
// families and indexes to make, what is known of an index, a scan explained.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/rows/scan.h"
#include "engine/scans/explain.h"
#include "engine/schema/schema.h"

namespace cellar {

struct NewFamily {
  std::string_view name;
  FamilyOptions options;
};

// TABLE CREATE. What it names is borrowed.
struct NewTable {
  const Order& key;
  const std::vector<NewFamily>& families;
  Placement placement;
  // In a cluster its tablets begin there, and at the front; as rows or first components of rows.
  std::span<const std::string_view> split_at;
};

struct NewIndexColumn {
  std::string_view family;
  std::optional<std::string_view> qualifier;  // unset: the whole family
  std::optional<ValueType> type;              // ON: AS
  bool descending{false};                     // ON
};

struct NewIndex {
  std::string_view name;
  std::vector<NewIndexColumn> on;
  std::vector<NewIndexColumn> include;
  bool unique{false};
};

// INDEX INFO. `schema` dies with the next change of the table's schema.
struct IndexInfo {
  const IndexSchema* schema{nullptr};
  std::string_view state;
  double progress{0};           // 0..1
  uint64_t entries{0};          // held
  bool entries_are_live{true};  // false: some are not there now; a scan counts those that are
  uint64_t rows_left_out{0};    // for a cell's type or size (engine/table/index.h)
  uint64_t bytes{0};
};

struct ScanExplained {
  std::unique_ptr<Scan> scan;
  Explanation explanation;
};

// What records may hold that older versions do not know.
enum class Feature : uint8_t {
  kSnapshots,    // and copies of tables
  kCompression,  // of families
  kColumnTypes,  // COLUMN, and cells that CONVERT has rewritten
  kRowEntries,   // of feeds: ENTRIES ROW
  kTablets,      // ownership of rows
  kPlacement,    // COLOCATE, WHOLE
  kMoves,        // of tablets
  kWholeGroups,  // of feeds that go over several sets, and where they are at home
  kCuts,         // one moment over several sets, and as which replica set one serves
};

// What the sweeper has done, for INFO.
struct SweeperStats {
  uint64_t passes{0};           // over all tables that have something to sweep
  uint64_t cells_reclaimed{0};  // by retention, in all ways
  uint64_t garbage_bytes{0};    // of dropped tables, not freed yet
  bool idle{true};
};

}  // namespace cellar
