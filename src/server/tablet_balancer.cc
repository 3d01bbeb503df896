// See tablet_balancer.h.
#include "server/tablet_balancer.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

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
  for (const auto& [ticket, change] : bound_changes_) calls_.Forget(ticket);
  bound_changes_.clear();
  sizes_.clear();
  busy_micros_.clear();
  hot_micros_.clear();
  memory_.Clear();
  asking_ = false;
  next_micros_ = now() + kRoundMicros;
}

void TabletBalancer::Step() {
  TakeBoundChanges();
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
  if (!bound_changes_.empty()) return;
  BalanceInput input = MakeInput();
  NoteHot(&input);
  for (const BalanceStep& step : PlanBalance(input)) Carry(input, step);
}

// What nobody has answered is seen, or planned again.
void TabletBalancer::TakeBoundChanges() {
  std::erase_if(bound_changes_, [this](const auto& each) {
    const auto& [ticket, change] = each;
    if (calls_.IsPending(ticket)) return false;
    const auto answer = calls_.Take(ticket);
    if (!answer || answer->code != MoveAnswer::Code::kOk) {
      memory_.NoteRefused(change.tablet, now());
      if (answer) Log(LogSeverity::kVerbose, "No " + change.what + ": " + answer->text);
      return true;
    }
    (void)MoveJobs::Tell(host_.store(), change.what, change.why);
    Hurry();
    return true;
  });
}

void TabletBalancer::Ask() {
  asking_ = true;
  asked_micros_ = now();
  MoveStep step;
  step.kind = MoveStep::Kind::kSizes;
  step.cluster_id = host_.store().engine().cluster().cluster_id;
  step.job = kSizesAndLoads;
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
    bool loads = false;
    if (!answer || answer->code != MoveAnswer::Code::kOk ||
        !DecodeTabletSizes(answer->text, &sizes, &loads))
      continue;
    asked.sizes = std::move(sizes);
    asked.loads = loads;
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

bool TabletBalancer::IsBusy(uint64_t set, uint64_t load_percent) {
  if (load_percent < host_.services().move_trials.busy_percent.value_or(kBusyPercent)) {
    busy_micros_.erase(set);
    return false;
  }
  const auto since = busy_micros_.try_emplace(set, now()).first;
  return now() - since->second >= kBusyMicros;
}

// One that has not answered in this round is as it was.
void TabletBalancer::NoteHot(BalanceInput* input) {
  const std::set<uint64_t> hot = HotSets(*input);
  for (const BalanceInput::Set& set : input->sets)
    if (set.has_loads && !hot.contains(set.number)) hot_micros_.erase(set.number);
  for (const uint64_t set : hot) {
    const int64_t since = hot_micros_.try_emplace(set, now()).first->second;
    if (now() - since >= kHotMicros) input->hot_for_long.insert(set);
  }
}

BalanceInput TabletBalancer::MakeInput() {
  const int64_t at = now();
  memory_.BeginRound(at);
  Store& store = host_.store();
  Services& services = host_.services();
  const int64_t quiet_micros =
      services.move_trials.quiet_micros.value_or(TabletMemory::kQuietMicros);
  BalanceInput input;
  input.split_bytes = Option("tablet-split-bytes");
  input.merge_bytes = Option("tablet-merge-bytes");
  input.moves_max = Option("tablet-moves");
  const std::string balance = OptionText("tablet-balance");
  input.spreads = balance != "no";
  input.by_load = balance == "yes";
  sizes_.clear();
  std::map<uint64_t, BalanceInput::Set> sets;
  for (const MapTables::SetRow& row : services.cluster_map.Sets(store)) {
    BalanceInput::Set& set = sets[row.number];
    set = {.number = row.number, .draining = row.draining};
    const auto asked = asked_.find(row.number);
    set.answers = asked != asked_.end() && asked->second.sizes.has_value();
    const ClusterSet* const known = services.cluster_view.sets.Find(row.number);
    if (known != nullptr) set.maxmemory = known->maxmemory;
    set.loop = known == nullptr ? 0 : known->load;
    set.busy = IsBusy(row.number, set.loop);
    if (!set.answers) continue;
    set.has_loads = asked->second.loads;
    for (const TabletSize& size : *asked->second.sizes) sizes_[{size.table_id, size.begin}] = size;
  }
  const int64_t ms = store.now_micros() / 1000;
  for (const auto& [number, job] : services.move_jobs.All(store)) {
    const bool had_no_room = job.state == MoveJob::State::kCancelled &&
                             job.error.find(kNoRoomWords) != std::string::npos &&
                             ms - job.ended_ms < kNoRoomMs;
    if (const auto found = sets.find(job.to); had_no_room && found != sets.end())
      found->second.refuses = true;
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
      if (const MoveJob* job = services.move_jobs.Of(store, id, tablet.tablet); job != nullptr) {
        tablet.moves = true;
        tablet.to = job->to;
      }
      const auto set = sets.find(entry.set);
      const bool loads = set != sets.end() && set->second.has_loads;
      memory_.Fill(SizeOf(id, entry.begin), loads, at, quiet_micros, &tablet);
    }
  }
  memory_.EndRound(at);
  return input;
}

void TabletBalancer::Carry(const BalanceInput& input, const BalanceStep& step) {
  const BalanceInput::Tablet& tablet = input.tablets[step.tablet];
  Store& store = host_.store();
  const Table* const table = store.TableById(tablet.table_id);
  if (table == nullptr) return;
  const std::string name = table->keyspace() + "/" + table->name();
  switch (step.kind) {
    case BalanceStep::Kind::kMove:
      if (Order(tablet, step, name)) memory_.NoteMove(tablet, step, now());
      return;
    case BalanceStep::Kind::kSplit:
      memory_.NoteSplit(tablet);
      return Split(tablet, step, name);
    case BalanceStep::Kind::kMerge:
      return Merge(input, step, name);
    case BalanceStep::Kind::kHotRow:
      if (!memory_.TakeHotRow(tablet, now())) return;
      (void)MoveJobs::Tell(
          store,
          fmt::format("hot row {} of {}", Quote(TabletBoundText(*table, tablet.load_middle)), name),
          step.reason);
      return;
  }
}

bool TabletBalancer::Order(const BalanceInput::Tablet& tablet, const BalanceStep& step,
                           std::string name) {
  MoveJob job;
  job.table_id = tablet.table_id;
  job.table = std::move(name);
  job.tablet = tablet.tablet;
  job.from = tablet.set;
  job.to = step.to;
  job.why = step.reason;
  const Table* const table = host_.store().TableById(tablet.table_id);
  if (!host_.services().cluster_map.CheckMayMove(*table, tablet.tablet).ok()) return false;
  const Result<uint64_t> ordered = host_.services().move_jobs.Order(host_.store(), std::move(job));
  if (!ordered.ok())
    Log(LogSeverity::kVerbose, "A move is not ordered: " + ordered.status().text());
  return ordered.ok();
}

void TabletBalancer::Split(const BalanceInput::Tablet& tablet, const BalanceStep& step,
                           const std::string& name) {
  const Table* const table = host_.store().TableById(tablet.table_id);
  const std::string& at = step.for_load ? tablet.load_middle : tablet.middle;
  AskFor(MoveStep::Kind::kSplit, tablet, at,
         fmt::format("split {} at {}", name, Quote(TabletBoundText(*table, at))), step);
}

void TabletBalancer::Merge(const BalanceInput& input, const BalanceStep& step,
                           const std::string& name) {
  const BalanceInput::Tablet& tablet = input.tablets[step.tablet];
  const BalanceInput::Tablet& next = input.tablets[step.tablet + 1];
  const Table* const table = host_.store().TableById(tablet.table_id);
  AskFor(MoveStep::Kind::kMerge, tablet, next.tablet.end,
         fmt::format("merge {} at {}", name, Quote(TabletBoundText(*table, next.tablet.begin))),
         step);
}

void TabletBalancer::AskFor(MoveStep::Kind kind, const BalanceInput::Tablet& tablet,
                            const std::string& key, std::string what, const BalanceStep& step) {
  MoveStep asked;
  asked.kind = kind;
  asked.cluster_id = host_.store().engine().cluster().cluster_id;
  asked.job = 1;
  asked.out.table_id = tablet.table_id;
  asked.out.tablet = tablet.tablet;
  asked.ops = key;
  bound_changes_[calls_.Ask(tablet.set, asked)] = {
      .tablet = TabletMemory::NameOf(tablet), .what = std::move(what), .why = step.reason};
}

}  // namespace cellar
