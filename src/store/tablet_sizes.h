// How much each tablet of a set has, as the director asks for it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cellar {

class Engine;
struct TableSchema;

struct TabletSize {
  uint64_t table_id{0};
  std::string begin;   // of the tablet
  uint64_t bytes{0};   // of memory, about
  uint64_t rows{0};    // about
  std::string middle;  // where half of them are before; empty: nowhere, as within one row
  // As RangeLoad (heat/load_samples.h), of those commands whose rows are known.
  uint64_t load{0};  // permille of a core
  std::string load_middle{};
  uint64_t top_percent{0};
  friend bool operator==(const TabletSize&, const TabletSize&) = default;
};
// v count { v table id, b begin, v bytes, b middle }, { v rows } of each, and if `loads` { v load,
// b load_middle, v top_percent } of each. Who is of a version before leaves rows and loads out, and
// reads no loads.
void EncodeTabletSizes(const std::vector<TabletSize>& sizes, bool loads, std::string* to);
// *loads: they are among it.
[[nodiscard]] bool DecodeTabletSizes(std::string_view from, std::vector<TabletSize>* sizes,
                                     bool* loads);

// Where a tablet of the table may begin, at the key or before it: between groups of a COLOCATE.
// Empty: nowhere.
std::string TabletBoundOf(const TableSchema& schema, const std::string& key);

// Of all that are owned, about: of tables of several tablets by where keys divide their trees.
// O(tablets + tables), and some thousand times O(log n).
std::vector<TabletSize> TabletSizesOf(const Engine& engine);

}  // namespace cellar
