// See tablet_report.h.
#include "commands/cluster/tablet_report.h"

#include <algorithm>
#include <utility>

#include "cluster/lost_rows.h"
#include "commands/cluster/cluster_part.h"
#include "commands/cluster/tablet_loads.h"
#include "commands/session/host.h"
#include "commands/session/services.h"
#include "store/store.h"

namespace cellar {

TabletReport TabletReports::Of(uint64_t table_id, const MapEntry& entry) {
  TabletReport report;
  SayState(table_id, entry, &report);
  SaySize(table_id, entry, &report);
  return report;
}

void TabletReports::SayState(uint64_t table_id, const MapEntry& entry, TabletReport* report) const {
  Services& services = host_.services();
  const Tablet tablet{entry.begin, entry.end, entry.epoch};
  if (IsLost(entry.set)) report->state = "lost";
  if (ClusterPart::Directs(host_)) {
    const MoveJob* const job = services.move_jobs.Of(host_.store(), table_id, tablet);
    if (job == nullptr || job->from != entry.set) return;
    const MoveProgress progress =
        services.moves == nullptr ? MoveProgress{} : services.moves->JobProgress(job->number);
    if (!IsLost(entry.set)) report->state = progress.given ? "given" : "moving";
    report->job = job->number;
    report->to = job->to;
    report->progress = progress.state;
    return;
  }
  const ClusterState& cluster = host_.store().engine().cluster();
  if (const uint64_t out = cluster.moves.OutOf(table_id, tablet); out != 0) {
    const MoveOut& move = *cluster.moves.FindOut(out);
    report->state = move.given ? "given" : "moving";
    report->job = out;
    report->to = move.to;
    const auto progress =
        services.moves == nullptr ? std::nullopt : services.moves->DonorProgress(out);
    if (progress) report->progress = progress->state;
  } else if (const uint64_t in = cluster.moves.InOf(table_id, tablet);
             in != 0 && entry.set != cluster.set) {
    if (!IsLost(entry.set)) report->state = "staged";
    report->job = in;
    report->to = cluster.set;
  }
}

const TabletSize* TabletReports::OwnSize(uint64_t table_id, std::string_view begin) {
  if (!own_sizes_) {
    own_sizes_ = TabletSizesOf(host_.store().engine());
    AddTabletLoads(host_, &*own_sizes_);
  }
  const auto found = std::find_if(
      own_sizes_->begin(), own_sizes_->end(),
      [&](const TabletSize& each) { return each.table_id == table_id && each.begin == begin; });
  return found == own_sizes_->end() ? nullptr : &*found;
}

void TabletReports::SaySize(uint64_t table_id, const MapEntry& entry, TabletReport* report) {
  const Table* const table = host_.store().TableById(table_id);
  const bool is_own = table != nullptr && entry.set == host_.store().engine().cluster().set;
  const bool is_whole = is_own && entry.begin.empty() && entry.end.empty();
  if (is_whole) {
    report->bytes = table->memory_bytes();
    report->rows = table->counters().rows;
  }
  // Of a cluster of one set nobody counts what it takes.
  if (is_whole && !host_.routes()) return;
  const MoveDesk* const desk = host_.services().moves;
  const TabletSize* size = is_own ? OwnSize(table_id, entry.begin) : nullptr;
  if (size == nullptr && desk != nullptr) size = desk->SizeOf(table_id, entry.begin);
  if (size == nullptr) return;
  if (!is_whole) {
    report->bytes = size->bytes;
    report->rows = size->rows;
  }
  if (host_.routes()) report->load = size->load / 10;
}

}  // namespace cellar
