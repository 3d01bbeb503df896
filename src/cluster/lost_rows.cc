// See lost_rows.h.
#include "cluster/lost_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text/quote.h"
#include "engine/keys/key_range_set.h"
#include "engine/state/snapshot_set.h"

namespace cellar {
std::vector<Tablet> Uncovered(const Tablet& tablet, const KeyRangeSet& owned) {
  std::vector<Tablet> left;
  std::string begin = tablet.begin;
  for (size_t i = owned.FindRange(begin); i < owned.ranges().size(); ++i) {
    const KeyRange& range = owned.ranges()[i];
    const bool is_behind = !tablet.end.empty() && range.begin.bytes >= tablet.end;
    if (is_behind) break;
    if (begin < range.begin.bytes) left.push_back({begin, range.begin.bytes, tablet.epoch});
    if (range.end.at_end) return left;
    begin = range.end.bytes;
  }
  if (tablet.end.empty() || begin < tablet.end) left.push_back({begin, tablet.end, tablet.epoch});
  return left;
}

std::string LostRowText(std::string_view table, std::string_view row, uint64_t set) {
  return fmt::format("CLUSTERDOWN {} {}: lost with set {}", table, Quote(row), SetNumber(set));
}

std::string LostRowsText(uint64_t set) {
  return fmt::format("CLUSTERDOWN some of the rows are lost with set {}", SetNumber(set));
}

Status CheckAllThere(const MapCache& map, uint64_t table_id, std::string_view name) {
  const MapTable* const table = map.Find(table_id);
  if (table == nullptr) return Status::Ok();
  for (const MapEntry& entry : table->tablets) {
    if (!IsLost(entry.set)) continue;
    return Status::Error(
        ErrorCode::kClusterDown,
        fmt::format("rows of table {} are lost with set {}", Quote(name), SetNumber(entry.set)));
  }
  return Status::Ok();
}

size_t LostTablets(const MapCache& map) {
  size_t count = 0;
  if (!map.has_lost()) return count;
  for (const auto& [id, table] : map.tables()) {
    if (IsOfCursor(table.name)) continue;
    for (const MapEntry& entry : table.tablets) count += IsLost(entry.set) ? 1 : 0;
  }
  return count;
}

std::map<uint64_t, TabletsByTable> LostOf(const MapCache& map) {
  if (!map.has_lost()) return {};
  std::map<uint64_t, std::map<uint64_t, std::vector<Tablet>>> lists;
  for (const auto& [id, table] : map.tables()) {
    for (const MapEntry& entry : table.tablets)
      if (IsLost(entry.set)) lists[entry.set][id].push_back({entry.begin, entry.end, entry.epoch});
  }
  std::map<uint64_t, TabletsByTable> lost;
  for (auto& [set, tables] : lists) {
    for (auto& [id, list] : tables)
      if (Tablets::Pointer made = Tablets::Make(std::move(list)); made != nullptr)
        lost[set].emplace(id, std::move(made));
  }
  return lost;
}

void AddLost(const std::map<uint64_t, TabletsByTable>& lost, Claims* claims) {
  for (const auto& [set, tables] : lost) {
    for (const auto& [id, tablets] : tables) {
      const auto claimed = claims->find(id);
      if (claimed == claims->end()) continue;
      // In order, so that each is added at the end.
      std::vector<KeyRange> ranges;
      for (const SetClaim& claim : claimed->second.sets) {
        const auto& its = claim.tablets->owned().ranges();
        ranges.insert(ranges.end(), its.begin(), its.end());
      }
      std::sort(ranges.begin(), ranges.end(),
                [](const KeyRange& a, const KeyRange& b) { return a.begin < b.begin; });
      KeyRangeSet owned;
      for (KeyRange& range : ranges) owned.Add(std::move(range));
      std::vector<Tablet> left;
      for (const Tablet& tablet : tablets->list())
        for (Tablet& piece : Uncovered(tablet, owned)) left.push_back(std::move(piece));
      if (left.empty()) continue;
      if (Tablets::Pointer made = Tablets::Make(std::move(left)); made != nullptr)
        claimed->second.sets.push_back({set, std::move(made)});
    }
  }
}

}  // namespace cellar
