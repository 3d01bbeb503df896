// See tablet_sizes.h.
#include "store/tablet_sizes.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/coding.h"
#include "engine/state/engine.h"
#include "engine/table/row_split.h"

namespace cellar {
namespace {

// Into so many parts of equal size a table is divided at most, and all of them together: the loop
// waits for it.
constexpr uint64_t kSizeParts{256};
constexpr uint64_t kSizePartsOfAll{1'024};
constexpr uint64_t kPartBytesMin{32 << 10};

void AddSizes(const Table& table, uint64_t bytes_of_all, std::vector<TabletSize>* sizes) {
  const std::vector<Tablet>& tablets = table.tablets()->list();
  const uint64_t bytes = table.memory_bytes();
  const uint64_t part_bytes = std::max(kPartBytesMin, bytes_of_all / kSizePartsOfAll);
  const uint64_t parts = std::clamp<uint64_t>(bytes / part_bytes, 1, kSizeParts);
  const std::vector<std::string> keys =
      parts < 2 ? std::vector<std::string>() : SplitRowKeys(table, parts);
  for (const Tablet& tablet : tablets) {
    TabletSize size{.table_id = table.id(), .begin = tablet.begin, .bytes = 0, .middle = {}};
    if (keys.empty()) {
      // Too little to look into; and what is here of other sets' is about to go.
      size.bytes = bytes / tablets.size();
      sizes->push_back(std::move(size));
      continue;
    }
    const auto first = std::lower_bound(keys.begin(), keys.end(), tablet.begin);
    const auto last =
        tablet.end.empty() ? keys.end() : std::lower_bound(first, keys.end(), tablet.end);
    const auto count = static_cast<uint64_t>(last - first);
    // Between two keys there is one part, so that a tablet without one has less than that.
    size.bytes = bytes / (keys.size() + 1) * (count + (tablets.size() == 1 ? 1 : 0)) +
                 (count == 0 ? bytes / (keys.size() + 1) / 2 : 0);
    if (count > 1) size.middle = TabletBoundOf(table.schema(), *(first + (last - first) / 2));
    if (size.middle <= tablet.begin) size.middle.clear();
    sizes->push_back(std::move(size));
  }
}

}  // namespace

std::string TabletBoundOf(const TableSchema& schema, const std::string& key) {
  const uint32_t components = schema.placement.colocate;
  if (components == 0) return key;
  const size_t bytes = schema.key.ComponentsSize(key, components);
  return bytes == 0 ? std::string() : key.substr(0, bytes);
}

void EncodeTabletSizes(const std::vector<TabletSize>& sizes, bool loads, std::string* to) {
  PutVarint64(to, sizes.size());
  for (const TabletSize& size : sizes) {
    PutVarint64(to, size.table_id);
    PutLengthPrefixed(to, size.begin);
    PutVarint64(to, size.bytes);
    PutLengthPrefixed(to, size.middle);
  }
  for (const TabletSize& size : sizes) PutVarint64(to, size.rows);
  if (!loads) return;
  for (const TabletSize& size : sizes) {
    PutVarint64(to, size.load);
    PutLengthPrefixed(to, size.load_middle);
    PutVarint64(to, size.top_percent);
  }
}

bool DecodeTabletSizes(std::string_view from, std::vector<TabletSize>* sizes, bool* loads) {
  sizes->clear();
  uint64_t count = 0;
  if (!GetVarint64(&from, &count) || count > from.size()) return false;
  *loads = count == 0;  // whoever has nothing says all of it
  for (uint64_t i = 0; i < count; ++i) {
    TabletSize size;
    std::string_view begin;
    std::string_view middle;
    if (!GetVarint64(&from, &size.table_id) || !GetLengthPrefixed(&from, &begin) ||
        !GetVarint64(&from, &size.bytes) || !GetLengthPrefixed(&from, &middle))
      return false;
    size.begin = begin;
    size.middle = middle;
    sizes->push_back(std::move(size));
  }
  if (from.empty()) return true;
  for (TabletSize& size : *sizes)
    if (!GetVarint64(&from, &size.rows)) return false;
  *loads = *loads || !from.empty();
  if (from.empty()) return true;
  for (TabletSize& size : *sizes) {
    std::string_view middle;
    if (!GetVarint64(&from, &size.load) || !GetLengthPrefixed(&from, &middle) ||
        !GetVarint64(&from, &size.top_percent))
      return false;
    size.load_middle = middle;
  }
  return from.empty();
}

std::vector<TabletSize> TabletSizesOf(const Engine& engine) {
  std::vector<const Table*> tables;
  uint64_t bytes_of_all = 0;
  for (const Table* table = engine.FindTableFrom(0); table != nullptr;
       table = engine.FindTableFrom(table->id() + 1)) {
    if (table->tablets() == nullptr || table->tablets()->list().empty()) continue;
    tables.push_back(table);
    bytes_of_all += table->memory_bytes();
  }
  std::vector<TabletSize> sizes;
  for (const Table* table : tables) {
    const size_t first = sizes.size();
    AddSizes(*table, bytes_of_all, &sizes);
    // Rows are counted for a table as a whole.
    const uint64_t bytes = std::max<uint64_t>(table->memory_bytes(), 1);
    const auto rows = static_cast<double>(table->counters().rows);
    for (size_t i = first; i < sizes.size(); ++i) {
      const double part = static_cast<double>(sizes[i].bytes) / static_cast<double>(bytes);
      sizes[i].rows = static_cast<uint64_t>(std::llround(std::min(part, 1.0) * rows));
    }
  }
  return sizes;
}

}  // namespace cellar
