// See set_settler.h.
#include "server/set_settler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/os/log.h"
#include "commands/cluster/cluster_part.h"
#include "commands/session/services.h"
#include "replica/replication.h"
#include "server/own_tablets.h"
#include "store/range_file.h"
#include "store/store.h"
#include "store/tablet_changes.h"

namespace cellar {
namespace {

std::set<uint64_t> LiveTables(const Engine& engine) {
  std::set<uint64_t> ids;
  for (const Table* table = engine.FindTableFrom(0); table != nullptr;
       table = engine.FindTableFrom(table->id() + 1))
    ids.insert(table->id());
  return ids;
}

// Also those of snapshots.
std::set<uint64_t> TablesOf(const MapCache& map, const Engine& engine) {
  std::set<uint64_t> ids;
  for (const auto& [id, table] : map.tables())
    if (engine.FindTableById(id) != nullptr || engine.FindFrozenById(id) != nullptr) ids.insert(id);
  return ids;
}

}  // namespace

void SetSettler::Forget(Desk* desk) {
  for (const auto& [set, ticket] : desk->tickets) calls_.Forget(ticket);
  desk->tickets.clear();
  desk->answers.clear();
}

void SetSettler::KeepOnly(const std::set<uint64_t>& set_ids) {
  for (auto desk = desks_.begin(); desk != desks_.end();) {
    if (set_ids.contains(desk->first)) {
      ++desk;
      continue;
    }
    Forget(&desk->second);
    desk = desks_.erase(desk);
  }
}

std::string SetSettler::EndJobs(uint64_t number, const std::set<uint64_t>& closed) {
  Store& store = host_.store();
  MoveJobs& jobs = host_.services().move_jobs;
  std::string why;
  for (const uint64_t job : JobsToEnd(number, jobs.All(store))) {
    const MoveJob* known = jobs.Find(store, job);
    if (known->state == MoveJob::State::kOrdered) {
      const Status noted = jobs.Note(store, job, MoveJob::State::kCancelling,
                                     fmt::format("set {} comes back", number));
      if (!noted.ok()) return noted.text();
      if (host_.services().moves != nullptr) host_.services().moves->Wake();
      known = jobs.Find(store, job);
    }
    if (known == nullptr || IsOver(*known, closed)) continue;
    why = fmt::format("job {} is to end at set {}", job, known->to);
  }
  const Table* const table = MapTables(store).jobs();
  if (why.empty() && table != nullptr && host_.released_lsn() < table->last_lsn())
    why = "that its jobs are over is being written";
  return why;
}

std::string SetSettler::Ask(uint64_t number, Desk* desk,
                            const std::map<uint64_t, const ReportedState*>& closed,
                            std::map<uint64_t, const ReportedState*>* others) {
  Store& store = host_.store();
  std::string why;
  for (const MapTables::SetRow& row : host_.services().cluster_map.Sets(store)) {
    if (row.number == number) continue;
    if (row.number == 0) {
      own_ = {.state = store.engine().cluster(), .tablets = OwnTablets(store.engine())};
      others->emplace(0, &own_);
      continue;
    }
    if (const auto back = closed.find(row.number); back != closed.end()) {
      others->emplace(row.number, back->second);
      continue;
    }
    if (const auto answer = desk->answers.find(row.number); answer != desk->answers.end()) {
      others->emplace(row.number, &answer->second);
      continue;
    }
    why = fmt::format("set {} is asked what it has", row.number);
    const auto ticket = desk->tickets.find(row.number);
    if (ticket != desk->tickets.end()) {
      if (calls_.IsPending(ticket->second)) continue;
      const std::optional<MoveAnswer> answer = calls_.Take(ticket->second);
      desk->tickets.erase(ticket);
      ReportedState report;
      const bool is_told = answer && answer->code == MoveAnswer::Code::kOk &&
                           DecodeClusterState(answer->text, &report.state, &report.tablets);
      if (is_told) {
        others->emplace(row.number, &(desk->answers[row.number] = std::move(report)));
        if (others->size() + 1 == host_.services().cluster_map.Sets(store).size()) why.clear();
        continue;
      }
      why = fmt::format("set {} does not say what it has", row.number);
    }
    MoveStep step;
    step.kind = MoveStep::Kind::kOwned;
    step.cluster_id = store.engine().cluster().cluster_id;
    step.job = 1;  // of none
    desk->tickets[row.number] = calls_.Ask(row.number, step);
  }
  const bool is_all = others->size() + 1 == host_.services().cluster_map.Sets(store).size();
  return is_all ? std::string() : why;
}

// What it has and is others' by now, for people.
void SetSettler::Tell(uint64_t number, const Settlement& settlement) {
  Store& store = host_.store();
  constexpr size_t kTold{20};
  for (size_t i = 0; i < std::min(kTold, settlement.aside.size()); ++i) {
    const auto& [table_id, range] = settlement.aside[i];
    const Table* const table = store.TableById(table_id);
    if (table == nullptr) continue;
    const std::string what = fmt::format(
        "set {} has come back with {}/{} {}, which is not its own any more", number,
        table->keyspace(), table->name(), TabletRangeText(table, range.begin, range.end));
    const std::string name =
        RangeFileName(table->keyspace(), table->name(), TabletBoundText(*table, range.begin));
    Log(LogSeverity::kWarning, what);
    (void)MoveJobs::Tell(store, what, "set aside there as " + name + ", if there are rows");
  }
}

SetSettler::Next SetSettler::Step(uint64_t number, uint64_t set_id,
                                  const std::map<uint64_t, const ReportedState*>& closed) {
  const ClusterTelling telling(host_);
  Store& store = host_.store();
  Desk& desk = desks_[set_id];
  const ReportedState& report = *closed.at(number);
  std::set<uint64_t> numbers;
  for (const auto& [each, state] : closed) numbers.insert(each);
  if (!desk.proof) {
    const Status told =
        MoveJobs::Tell(store, fmt::format("set {} comes back as {:016x}", number, set_id),
                       "what it has is compared with what others have");
    if (!told.ok()) return Wait(told.text());
    desk.proof = store.last_lsn();
  }
  if (host_.released_lsn() < *desk.proof) return Wait("that it is here is being written");
  if (const uint64_t of = HashOf(report); of != desk.of) {
    desk.of = of;
    Forget(&desk);
  }
  if (std::string why = EndJobs(number, numbers); !why.empty()) {
    Forget(&desk);
    return Wait(std::move(why));
  }
  // What it sets aside first may take its time.
  if (desk.told == desk.of && host_.clock().MonotonicMicros() < desk.again_micros)
    return Wait("it takes what it is to have");
  std::map<uint64_t, const ReportedState*> others;
  if (std::string why = Ask(number, &desk, closed, &others); !why.empty())
    return Wait(std::move(why));
  Services& services = host_.services();
  const MapCache& map = services.cluster_map.Current(store);
  const std::set<uint64_t> tables = LiveTables(store.engine());
  const ReturnedSet returned{.number = number,
                             .report = report,
                             .others = others,
                             .closed = numbers,
                             .map = map,
                             .tables = tables,
                             .jobs = services.move_jobs.All(store),
                             .floor = services.move_jobs.Floor(store)};
  Settlement settlement = Settle(returned);
  if (!settlement.fits) return Wait("what it says that it has contradicts itself");
  Next next;
  if (settlement.changes) {
    if (std::exchange(desk.told, desk.of) != desk.of) Tell(number, settlement);
    desk.again_micros = host_.clock().MonotonicMicros() + kAgainMicros;
    next.kind = Next::Kind::kSettle;
    EncodeSettlement({.of = desk.of, .settlement = std::move(settlement)}, &next.order);
    return next;
  }
  next.catalog = std::min(store.engine().cluster().catalog, settlement.catalog_max);
  if (report.state.catalog < next.catalog) {
    next.kind = Next::Kind::kSchema;
    next.why = fmt::format("it takes change {} of the schema and those before", next.catalog);
    return next;
  }
  next.lost = UnownedRows(returned, TablesOf(map, store.engine()));
  if (!next.lost.empty() && !services.cluster_map.KnowLost())
    return Wait("rows are lost with it, and a set of an earlier version cannot be told that");
  next.kind = Next::Kind::kOpen;
  for (const auto& [set, answer] : desk.answers)
    services.cluster_map.TakeClaims(store, host_.replication().term(), set, answer.tablets);
  Forget(&desk);
  return next;
}

}  // namespace cellar
