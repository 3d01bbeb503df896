// See set_returns.h.
#include "server/set_returns.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/os/log.h"
#include "cluster/lost_rows.h"
#include "commands/cluster/cluster_part.h"
#include "commands/reports/cluster_report.h"
#include "commands/session/services.h"
#include "replica/set_node.h"
#include "server/own_tablets.h"
#include "store/store.h"
#include "store/tablet_changes.h"

namespace cellar {
namespace {

std::map<uint64_t, std::string> TableNames(const Engine& engine) {
  std::map<uint64_t, std::string> names;
  for (const Table* table = engine.FindTableFrom(0); table != nullptr;
       table = engine.FindTableFrom(table->id() + 1))
    names.emplace(table->id(), table->keyspace() + "/" + table->name());
  return names;
}

}  // namespace

std::string SetReturns::ClosedText() const {
  const ClusterState& cluster = host_.store().engine().cluster();
  if (is_replaced_) {
    return fmt::format("this replica set is set {} no more: it was removed, or another one is",
                       cluster.set);
  }
  if (cluster.set == 0 && !news_.empty()) return news_.front();
  return fmt::format("the cluster decides what set {} owns", cluster.set);
}

void SetReturns::Note() {
  const SetNode* const set = host_.replication().set();
  const bool has_state = set != nullptr && !host_.loading() && !set->is_witness() &&
                         !set->is_empty() && !set->member().state_is_void();
  if (!has_state) return;
  Store& store = host_.store();
  if (lineage_ == store.lineage() && schema_seen_ == store.schema_lsn() && set_id_ != 0) return;
  lineage_ = store.lineage();
  schema_seen_ = store.schema_lsn();
  set_id_ = OwnSetId(host_);
  const ClusterState& cluster = store.engine().cluster();
  const bool is_open = !cluster.active() || (cluster.IsOpenAs(set_id_) && !is_replaced_);
  std::string& closed = host_.services().cluster_view.closed;
  if (is_open) {
    closed.clear();
  } else if (closed.empty()) {
    closed = ClosedText();
    Log(LogSeverity::kWarning, "This set serves nothing: " + closed);
  }
  is_open_ = is_open;
  host_.SetClosed(!is_open);
}

void SetReturns::NoteReplaced() {
  if (std::exchange(is_replaced_, true)) return;
  set_id_ = 0;  // so that it is looked at anew
  Note();
}

// The director's directory names this replica set: what it has is in order.
bool SetReturns::SayOpen() {
  Store& store = host_.store();
  const ClusterState& cluster = store.engine().cluster();
  if (store.in_transaction()) return false;
  if (cluster.set != 0) {
    const ClusterSet* const known = host_.services().cluster_view.sets.Find(cluster.set);
    if (known == nullptr || known->id != set_id_) return false;
    if (std::exchange(is_replaced_, false)) {
      set_id_ = 0;
      Note();
    }
  } else if (!is_open_) {
    return false;  // Direct says it
  }
  const bool has_said = cluster.opened_as == set_id_ && cluster.recovered_cut == 0;
  if (has_said || (is_open_ && host_.replication().set()->feature_level() < kCutsLevel))
    return false;
  return TabletChanges(store).OpenAs(set_id_).ok();
}

ReportedState SetReturns::Own() const {
  const Engine& engine = host_.store().engine();
  return {.state = engine.cluster(), .tablets = OwnTablets(engine)};
}

void SetReturns::Clear() {
  sets_.Clear();
  opened_.clear();
  settler_.Clear();
  told_.clear();
}

std::optional<uint64_t> SetReturns::ToldAs(uint64_t set_id) const {
  for (const auto& [number, told] : told_)
    if (told.set_id == set_id) return number;
  return std::nullopt;
}

uint64_t SetReturns::ToldUpTo(uint64_t number) const {
  const auto found = told_.find(number);
  return found == told_.end() ? UINT64_MAX : found->second.catalog;
}

bool SetReturns::Direct(const Say& say) {
  Store& store = host_.store();
  Services& services = host_.services();
  const auto& rows = services.cluster_map.Sets(store);
  const bool is_all_known =
      std::all_of(sets_.reports().begin(), sets_.reports().end(), [&rows](const auto& report) {
        return std::any_of(rows.begin(), rows.end(),
                           [&report](const auto& row) { return row.id == report.first; });
      });
  if (store.in_transaction() || (is_open_ && is_all_known)) {
    if (is_open_) news_.clear();
    settler_.Clear();
    told_.clear();
    return false;
  }
  const ReportedState own = Own();
  const std::map<uint64_t, std::string> names = TableNames(store.engine());
  const std::map<uint64_t, TabletsByTable> lost = LostOf(services.cluster_map.Current(store));
  const ReturnVerdict verdict = sets_.Decide({.set_id = set_id_,
                                              .own = own,
                                              .rows = rows,
                                              .tables = names,
                                              .lost = lost,
                                              .kept_from = MapTables(store).FirstChange()});
  const std::vector<std::string> before = std::exchange(news_, verdict.why);
  for (std::string& text : services.cluster_map.TextsOf(store, verdict.faults))
    news_.push_back(std::move(text));
  const bool opened =
      verdict.open.empty() ? Settle(verdict, say) : Write(verdict, own.state.recovered_cut, {});
  if (opened) {
    news_.clear();
    return true;
  }
  if (news_ != before && !news_.empty())
    Log(LogSeverity::kWarning, "Sets that have come back: " + news_.front());
  if (!is_open_) services.cluster_view.closed = ClosedText();
  return false;
}

// One is opened at a time, so that what it has counts for the next one.
bool SetReturns::Settle(const ReturnVerdict& verdict, const Say& say) {
  std::set<uint64_t> set_ids;
  std::map<uint64_t, const ReportedState*> closed;
  for (const auto& [number, set_id] : verdict.settle) {
    set_ids.insert(set_id);
    closed.emplace(number, &sets_.reports().at(set_id));
  }
  settler_.KeepOnly(set_ids);
  std::erase_if(told_, [&](const auto& told) { return !set_ids.contains(told.second.set_id); });
  for (const auto& [number, set_id] : verdict.settle) {
    SetSettler::Next next = settler_.Step(number, set_id, closed);
    using Kind = SetSettler::Next::Kind;
    if (next.kind != Kind::kSchema) told_.erase(number);
    switch (next.kind) {
      case Kind::kWait:
        break;
      case Kind::kSettle:
        next.why = say(set_id, next.order)
                       ? "it is told what it is to have"
                       : "it is of an earlier version, and cannot be told what it is to have";
        break;
      case Kind::kSchema:
        told_[number] = {set_id, next.catalog};
        break;
      case Kind::kOpen: {
        ReturnVerdict one;
        one.open.push_back({number, set_id});
        one.last_job = LastJobOf(closed.at(number)->state.moves);
        if (Write(one, 0, next.lost)) return true;
        continue;
      }
    }
    news_.push_back(fmt::format("{:016x} comes back as set {}: {}", set_id, number, next.why));
  }
  return false;
}

bool SetReturns::Write(const ReturnVerdict& verdict, uint64_t cut, const TabletsByTable& lost) {
  Store& store = host_.store();
  Services& services = host_.services();
  const uint32_t term = host_.replication().term();
  const ClusterTelling telling(host_);
  for (const ReturnVerdict::Opening& opening : verdict.open) {
    const auto report = sets_.reports().find(opening.set_id);
    if (report == sets_.reports().end()) continue;
    services.cluster_map.TakeClaims(store, term, opening.number, report->second.tablets,
                                    report->second.state.catalog);
  }
  const Status done = services.cluster_map.Reopen(store, verdict, cut, lost);
  if (!done.ok()) {
    news_.push_back(done.text());
    return false;
  }
  opened_.clear();
  for (const ReturnVerdict::Opening& opening : verdict.open) opened_.insert(opening.set_id);
  opened_lsn_ = store.last_lsn();
  Log(LogSeverity::kNotice, fmt::format("{} of the cluster's sets are back", verdict.open.size()));
  return true;
}

bool SetReturns::AwaitsCommit(uint64_t set_id) const {
  return opened_.contains(set_id) && host_.released_lsn() < opened_lsn_;
}

// --- the set that has come back

bool SetReturns::TakeSettlement(std::string_view order) {
  SettlementOrder told;
  if (!DecodeSettlement(order, &told)) return false;
  const bool is_new = !order_ || order_->of != told.of;
  if (is_open_ || !is_new) return true;
  const ReportedState own = Own();
  if (told.of != HashOf(own)) return true;
  if (!IsWithin(told.settlement, own)) return false;
  asides_.Begin(told.settlement.aside);
  order_ = std::move(told);
  return true;
}

void SetReturns::StopSettlement() {
  asides_.Stop();
  order_.reset();
  refusal_.clear();
}

void SetReturns::StepSettlement() {
  if (!order_) return;
  Store& store = host_.store();
  if (is_open_ || order_->of != HashOf(Own())) return StopSettlement();
  if (store.in_transaction() || asides_.Step()) return;
  const Settlement& settlement = order_->settlement;
  const Status done = TabletChanges(store).Settle(settlement.state.moves, settlement.tablets);
  if (done.ok()) {
    Log(LogSeverity::kNotice, "This set has what the cluster has decided; others' rows go");
    return StopSettlement();
  }
  if (std::exchange(refusal_, done.text()) != done.text()) {
    Log(LogSeverity::kWarning,
        "What this set is to have cannot be taken, which is tried again: " + refusal_);
  }
}

bool SetReturns::OnTick(bool directs, const Say& say) {
  Note();
  const bool changed = directs && Direct(say);
  if (!directs) StepSettlement();
  if (changed) Note();
  const bool said = SayOpen();
  if (said) Note();
  return changed || said;
}

}  // namespace cellar
