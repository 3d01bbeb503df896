// How much each tablet of a set has, as the director asks for it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cellar {

class Engine;

struct TabletSize {
  uint64_t table_id{0};
  std::string begin;   // of the tablet
  uint64_t bytes{0};   // of memory, about
  uint64_t rows{0};    // about
  std::string middle;  // where half of them are before; empty: nowhere, as within one row
  friend bool operator==(const TabletSize&, const TabletSize&) = default;
};
// v count { v table id, b begin, v bytes, b middle }, { v rows } of each. Who is of a version
// before leaves the rows out.
void EncodeTabletSizes(const std::vector<TabletSize>& sizes, std::string* to);
[[nodiscard]] bool DecodeTabletSizes(std::string_view from, std::vector<TabletSize>* sizes);

// Of all that are owned, about: of tables of several tablets by where keys divide their trees.
// O(tablets + tables), and some thousand times O(log n).
std::vector<TabletSize> TabletSizesOf(const Engine& engine);

}  // namespace cellar
