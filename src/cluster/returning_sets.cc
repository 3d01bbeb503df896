// See returning_sets.h.
#include "cluster/returning_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "cluster/lost_rows.h"

namespace cellar {
namespace {

const MapTables::SetRow* RowOf(const std::vector<MapTables::SetRow>& rows, uint64_t number) {
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [number](const auto& row) { return row.number == number; });
  return found == rows.end() ? nullptr : &*found;
}

// Without what its recipient has taken already.
Tablets::Pointer OwnedOf(uint64_t table_id, const ReportedState& report,
                         const std::map<uint64_t, const ReportedState*>& others) {
  const auto claimed = report.tablets.find(table_id);
  if (claimed == report.tablets.end()) return Tablets::None();
  Tablets::Pointer owned = claimed->second;
  for (const auto& [job, move] : report.state.moves.out()) {
    if (!move.given || move.table_id != table_id) continue;
    const auto recipient = others.find(move.to);
    if (recipient == others.end()) continue;
    const auto tablets = recipient->second->tablets.find(table_id);
    if (tablets == recipient->second->tablets.end()) continue;
    const Tablet* const there = tablets->second->Find(move.tablet.begin);
    if (there == nullptr || there->epoch <= move.tablet.epoch) continue;
    if (Tablets::Pointer without = WithoutTablet(*owned, move.tablet); without != nullptr)
      owned = std::move(without);
  }
  return owned;
}

std::string Id(uint64_t set_id) { return fmt::format("{:016x}", set_id); }

}  // namespace

uint64_t LastJobOf(const TabletMoves& moves) {
  uint64_t last = moves.floor();
  if (!moves.out().empty()) last = std::max(last, moves.out().rbegin()->first);
  if (!moves.in().empty()) last = std::max(last, moves.in().rbegin()->first);
  if (!moves.ended().empty()) last = std::max(last, moves.ended().rbegin()->first);
  return last;
}

std::vector<MapFault> FindOwnershipFaults(
    const std::map<uint64_t, std::string>& tables,
    const std::map<uint64_t, const ReportedState*>& reports_by_number,
    const std::map<uint64_t, TabletsByTable>& lost) {
  Claims claims;
  for (const auto& [id, name] : tables) {
    TableClaims& claimed = claims[id];
    claimed.name = name;
    for (const auto& [number, report] : reports_by_number)
      claimed.sets.push_back({number, OwnedOf(id, *report, reports_by_number)});
  }
  AddLost(lost, &claims);
  std::vector<MapFault> faults = FindFaults(MapCache(), claims);
  std::erase_if(faults, [](const MapFault& fault) {
    return fault.kind != MapFault::Kind::kHole && fault.kind != MapFault::Kind::kOverlap;
  });
  return faults;
}

// Replica sets that are not those of the directory, and say that they are that set of the cluster.
std::vector<uint64_t> ReturningSets::Candidates(const Director& director, uint64_t number) const {
  const MapTables::SetRow* const row = RowOf(director.rows, number);
  std::vector<uint64_t> candidates;
  for (const auto& [set_id, report] : reports_) {
    const bool is_new = row == nullptr || row->id != set_id;
    if (is_new && report.state.set == number) candidates.push_back(set_id);
  }
  return candidates;
}

// The own state has come back: nothing goes on before all of it is certain.
ReturnVerdict ReturningSets::DecideAll(const Director& director) const {
  ReturnVerdict verdict;
  const ClusterState& own = director.own.state;
  const uint64_t cut = own.recovered_cut;
  std::map<uint64_t, const ReportedState*> reports{{0, &director.own}};
  verdict.open.push_back({0, director.set_id});
  for (const MapTables::SetRow& row : director.rows) {
    if (row.number == 0) continue;
    const std::vector<uint64_t> candidates = Candidates(director, row.number);
    const auto known = reports_.find(row.id);
    if (candidates.size() > 1) {
      verdict.why.push_back(fmt::format("two sets say that they are set {}: {} and {}", row.number,
                                        Id(candidates[0]), Id(candidates[1])));
      continue;
    }
    if (candidates.empty() && known == reports_.end()) {
      verdict.why.push_back(fmt::format("set {} is not here yet", row.number));
      continue;
    }
    const ReportedState& report =
        candidates.empty() ? known->second : reports_.find(candidates[0])->second;
    if (candidates.empty() && cut != 0) {
      verdict.why.push_back(
          fmt::format("set {} goes on, and set 0 was recovered to cut {}", row.number, cut));
    } else if (!candidates.empty() && (cut == 0 || report.state.recovered_cut != cut)) {
      const auto text = [](uint64_t to) {
        return to == 0 ? std::string("by itself") : fmt::format("to cut {}", to);
      };
      verdict.why.push_back(fmt::format("set {} was recovered {}, set 0 {}", row.number,
                                        text(report.state.recovered_cut), text(cut)));
    } else if (report.state.catalog > own.catalog || (cut != 0 && report.state.catalog != cut)) {
      verdict.why.push_back(fmt::format("set {} has change {} of the schema, set 0 {}", row.number,
                                        report.state.catalog, own.catalog));
    }
    reports.emplace(row.number, &report);
    verdict.open.push_back({row.number, candidates.empty() ? row.id : candidates[0]});
  }
  for (const auto& [number, report] : reports)
    verdict.last_job = std::max(verdict.last_job, LastJobOf(report->state.moves));
  for (const auto& [number, report] : reports)
    if (number != 0) verdict.floor = std::max(verdict.floor, report->state.moves.floor());
  if (verdict.why.empty())
    verdict.faults = FindOwnershipFaults(director.tables, reports, director.lost);
  if (!verdict.why.empty() || !verdict.faults.empty()) verdict.open.clear();
  std::sort(verdict.open.begin(), verdict.open.end(),
            [](const auto& a, const auto& b) { return a.number < b.number; });
  return verdict;
}

// Empty: nothing speaks against it.
std::string ReturningSets::WhyNot(const Director& director, uint64_t set_id,
                                  const ReportedState& report) const {
  const ClusterState& state = report.state;
  const MapTables::SetRow* const row = RowOf(director.rows, state.set);
  if (row == nullptr || state.set == 0) return "no such set is missing";
  if (const auto candidates = Candidates(director, state.set); candidates.size() > 1) {
    const uint64_t other = candidates[0] == set_id ? candidates[1] : candidates[0];
    return fmt::format("{} says the same", Id(other));
  }
  if (reports_.contains(row->id)) return fmt::format("{} is here, too", Id(row->id));
  if (state.recovered_cut != 0)
    return fmt::format("it was recovered to cut {}, and the cluster goes on", state.recovered_cut);
  const uint64_t catalog = director.own.state.catalog;
  const bool can_be_told =
      state.catalog == catalog || (director.kept_from != 0 && state.catalog < catalog &&
                                   director.kept_from <= state.catalog + 1);
  if (!can_be_told)
    return fmt::format("it has change {} of the schema, the cluster {}", state.catalog, catalog);
  return {};
}

ReturnVerdict ReturningSets::DecideSome(const Director& director) const {
  ReturnVerdict verdict;
  for (const auto& [set_id, report] : reports_) {
    const MapTables::SetRow* const row = RowOf(director.rows, report.state.set);
    if (row != nullptr && row->id == set_id) continue;
    const std::string why = WhyNot(director, set_id, report);
    if (why.empty()) {
      verdict.settle.push_back({report.state.set, set_id});
    } else {
      verdict.why.push_back(
          fmt::format("{} comes back as set {}: {}", Id(set_id), report.state.set, why));
    }
  }
  std::sort(verdict.settle.begin(), verdict.settle.end(),
            [](const auto& a, const auto& b) { return a.number < b.number; });
  return verdict;
}

ReturnVerdict ReturningSets::Decide(const Director& director) const {
  CELLAR_ASSERT(director.own.state.set == 0);
  return director.own.state.IsOpenAs(director.set_id) ? DecideSome(director) : DecideAll(director);
}

}  // namespace cellar
