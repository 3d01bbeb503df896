// See row_sample.h.
#include "commands/replies/row_sample.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "base/assert.h"
#include "engine/request/read_options.h"
#include "engine/rows/scan.h"
#include "engine/table/row_split.h"
#include "engine/table/table.h"
#include "engine/table/tablets.h"
#include "store/store.h"

namespace cellar {
namespace {

// So many parts of a set go into one of all.
constexpr uint64_t kPartsPerPart{8};

// The first row at or behind `key`, or of all; none: there is no more.
bool FindRow(Store& store, const Table& table, const std::string* key, SamplePoint* point) {
  ScanPosition from;
  if (key != nullptr) from.row_key = *key;
  const Result<std::unique_ptr<Scan>> scan =
      store.ScanRows(table, {}, {}, key == nullptr ? nullptr : &from);
  CELLAR_ASSERT(scan.ok());
  if ((*scan)->Next() != ScanStep::kRow) return false;
  point->key = (*scan)->row_key();
  point->row = (*scan)->row_text();
  return true;
}

}  // namespace

// Parts whose rows are another set's, or gone, are no part of it.
void ReplySamplePoints(CommandContext& ctx, const Table& table, uint64_t parts) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < table.groups(); ++i) bytes += table.tree(i).payload_bytes();
  const std::vector<std::string> keys =
      SplitRowKeys(table, std::min(parts, kSplitPartsMax / kPartsPerPart) * kPartsPerPart);
  std::vector<SamplePoint> points;
  SamplePoint point{{}, {}, bytes / (keys.size() + 1)};
  if (FindRow(ctx.store(), table, nullptr, &point)) points.push_back(point);
  for (const std::string& key : keys) {
    if (points.empty()) break;
    const Tablets* const shown = table.shown();
    if (key <= points.back().key || (shown != nullptr && !shown->Owns(key))) continue;
    if (!FindRow(ctx.store(), table, &key, &point)) break;
    if (point.key != points.back().key) points.push_back(point);
  }
  ctx.DependsOn(table.last_lsn());
  ctx.reply.Array(1 + 2 * points.size());
  ctx.reply.Unsigned(point.bytes);
  for (const SamplePoint& each : points) {
    ctx.reply.Bulk(each.key);
    ctx.reply.Bulk(each.row);
  }
}

// As SplitRowKeys does it with the trees of a table. The first row of all splits nothing off.
std::vector<std::string> SplitPoints(std::vector<SamplePoint> points, uint64_t parts) {
  CELLAR_ASSERT(parts >= 1);
  std::sort(points.begin(), points.end(),
            [](const SamplePoint& a, const SamplePoint& b) { return a.key < b.key; });
  double bytes_total = 0;
  for (const SamplePoint& point : points) bytes_total += static_cast<double>(point.bytes);
  const auto end_of = [&](uint64_t part) {
    return bytes_total * static_cast<double>(part) / static_cast<double>(parts);
  };
  std::vector<std::string> rows;
  double bytes_before = 0;
  uint64_t part = 1;
  for (size_t i = 0; i < points.size() && part < parts; ++i) {
    const auto bytes = static_cast<double>(points[i].bytes);
    // Half a part early is as good as half a part late.
    const double place = bytes_before + bytes / 2;
    bytes_before += bytes;
    if (i == 0 || place < end_of(part)) continue;
    rows.push_back(std::move(points[i].row));
    if (bytes_total <= 0) break;
    // The first one that ends behind it. There may be very many.
    const double passed = std::floor(place / bytes_total * static_cast<double>(parts));
    if (passed >= static_cast<double>(parts)) break;
    part = std::max(part, static_cast<uint64_t>(passed)) + 1;
  }
  return rows;
}

}  // namespace cellar
