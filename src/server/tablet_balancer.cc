// See tablet_balancer.h.
#include "server/tablet_balancer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/os/log.h"
#include "base/text/number.h"
#include "base/text/quote.h"
#include "cluster/lost_rows.h"
#include "cluster/map_tables.h"
#include "commands/config/cluster_options.h"
#include "commands/session/services.h"
#include "replica/replication.h"
#include "store/store.h"
#include "store/tablet_changes.h"

namespace cellar {

void TabletBalancer::Stop() {
  for (const auto& [set, asked] : asked_)
    if (asked.ticket != 0) calls_.Forget(asked.ticket);
  asked_.clear();
  for (const uint64_t ticket : splits_) calls_.Forget(ticket);
  splits_.clear();
  sizes_.clear();
  asking_ = false;
  next_micros_ = now() + kRoundMicros;
}

void TabletBalancer::Step() {
  std::erase_if(splits_, [this](uint64_t ticket) {
    if (calls_.IsPending(ticket)) return false;
    if (const auto answer = calls_.Take(ticket); answer && !answer->text.empty())
      Log(LogSeverity::kVerbose, "A tablet is not split: " + answer->text);
    return true;
  });
  if (!asking_) {
    if (now() < next_micros_) return;
    if (host_.services().cluster_map.Sets(host_.store()).size() < 2) {
      next_micros_ = now() + kRoundMicros;
      return;
    }
    Ask();
  }
  if (!TakeAnswers()) return;
  asking_ = false;
  next_micros_ = now() + kRoundMicros;
  if (!splits_.empty()) return;
  const BalanceInput input = MakeInput();
  for (const BalanceStep& step : PlanBalance(input)) Carry(input, step);
}

void TabletBalancer::Ask() {
  asking_ = true;
  asked_micros_ = now();
  MoveStep step;
  step.kind = MoveStep::Kind::kSizes;
  step.cluster_id = host_.store().engine().cluster().cluster_id;
  step.job = 1;  // none: a step has one
  for (const MapTables::SetRow& set : host_.services().cluster_map.Sets(host_.store()))
    asked_[set.number] = {.ticket = calls_.Ask(set.number, step)};
}

// One that is silent is left out of this round.
bool TabletBalancer::TakeAnswers() {
  bool all = true;
  const bool late = now() - asked_micros_ >= kAnswerMicros;
  for (auto& [set, asked] : asked_) {
    if (asked.ticket == 0) continue;
    if (calls_.IsPending(asked.ticket)) {
      all = false;
      if (late) calls_.Forget(std::exchange(asked.ticket, 0));
      continue;
    }
    const auto answer = calls_.Take(std::exchange(asked.ticket, 0));
    std::vector<TabletSize> sizes;
    if (answer && answer->code == MoveAnswer::Code::kOk && DecodeTabletSizes(answer->text, &sizes))
      asked.sizes = std::move(sizes);
  }
  return all || late;
}

std::string TabletBalancer::OptionText(std::string_view name) const {
  const auto options = MapTables(host_.store()).Options();
  if (const auto found = options.find(std::string(name)); found != options.end())
    return found->second;
  const ClusterOption* const option = FindClusterOption(name);
  return option == nullptr ? std::string() : std::string(option->value);
}

uint64_t TabletBalancer::Option(std::string_view name) const {
  uint64_t value = 0;
  (void)ParseUint64(OptionText(name), &value);
  return value;
}

const TabletSize* TabletBalancer::SizeOf(uint64_t table_id, std::string_view begin) const {
  const auto found = sizes_.find({table_id, std::string(begin)});
  return found == sizes_.end() ? nullptr : &found->second;
}

BalanceInput TabletBalancer::MakeInput() {
  Store& store = host_.store();
  Services& services = host_.services();
  BalanceInput input;
  input.split_bytes = Option("tablet-split-bytes");
  input.moves_max = Option("tablet-moves");
  input.spreads = OptionText("tablet-balance") != "no";
  sizes_.clear();
  std::map<uint64_t, BalanceInput::Set> sets;
  for (const MapTables::SetRow& row : services.cluster_map.Sets(store)) {
    BalanceInput::Set& set = sets[row.number];
    set = {.number = row.number, .draining = row.draining};
    const auto asked = asked_.find(row.number);
    set.answers = asked != asked_.end() && asked->second.sizes.has_value();
    if (const ClusterSet* known = services.cluster_view.sets.Find(row.number); known != nullptr)
      set.maxmemory = known->maxmemory;
    if (!set.answers) continue;
    for (const TabletSize& size : *asked->second.sizes) sizes_[{size.table_id, size.begin}] = size;
  }
  for (const auto& [number, job] : services.move_jobs.All(store)) {
    if (job.ended()) continue;
    for (const uint64_t set : {job.from, job.to}) {
      const bool rests = set == job.from && job.state == MoveJob::State::kCancelling;
      if (rests) continue;
      if (const auto found = sets.find(set); found != sets.end()) ++found->second.moving;
    }
  }
  for (const auto& [number, set] : sets) input.sets.push_back(set);
  for (const auto& [id, mapped] : services.cluster_map.Current(store).tables()) {
    const Table* const table = store.TableById(id);
    if (table == nullptr) continue;
    for (const MapEntry& entry : mapped.tablets) {
      if (IsLost(entry.set)) continue;
      BalanceInput::Tablet& tablet = input.tablets.emplace_back();
      tablet.table_id = id;
      tablet.tablet = {entry.begin, entry.end, entry.epoch};
      tablet.set = tablet.to = entry.set;
      tablet.fixed = table->fixed();
      tablet.whole = table->schema().placement.whole;
      if (const TabletSize* const size = SizeOf(id, entry.begin); size != nullptr) {
        tablet.bytes = size->bytes;
        tablet.middle = size->middle;
      }
      if (const MoveJob* job = services.move_jobs.Of(store, id, tablet.tablet); job != nullptr) {
        tablet.moves = true;
        tablet.to = job->to;
      }
    }
  }
  return input;
}

void TabletBalancer::Carry(const BalanceInput& input, const BalanceStep& step) {
  const BalanceInput::Tablet& tablet = input.tablets[step.tablet];
  Store& store = host_.store();
  const Table* const table = store.TableById(tablet.table_id);
  if (table == nullptr) return;
  const std::string name = table->keyspace() + "/" + table->name();
  if (step.kind == BalanceStep::Kind::kMove) {
    MoveJob job;
    job.table_id = tablet.table_id;
    job.table = name;
    job.tablet = tablet.tablet;
    job.from = tablet.set;
    job.to = step.to;
    job.why = step.reason;
    const Result<uint64_t> ordered = host_.services().move_jobs.Order(store, std::move(job));
    if (!ordered.ok())
      Log(LogSeverity::kVerbose, "A move is not ordered: " + ordered.status().text());
    return;
  }
  MoveStep split;
  split.kind = MoveStep::Kind::kSplit;
  split.cluster_id = store.engine().cluster().cluster_id;
  split.job = 1;
  split.out.table_id = tablet.table_id;
  split.out.tablet = tablet.tablet;
  split.ops = tablet.middle;
  splits_.push_back(calls_.Ask(tablet.set, split));
  (void)MoveJobs::Tell(
      store, fmt::format("split {} at {}", name, Quote(TabletBoundText(*table, tablet.middle))),
      step.reason);
  Hurry();
}

}  // namespace cellar
