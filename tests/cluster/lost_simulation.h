// Sets that move tablets, as in move_simulation.h, of which one or two are lost for good at any
// moment: their processes are gone, with all that they had not said, and what they had said may
// still come, late or twice. The director, who leads set 0, hears of that after a while (CLUSTER
// REMOVE n FORCE), and lets other sets have the rows (TABLET ADOPT).
//
// The director's map, jobs and removed sets stand in the log of set 0, as its tables do; what the
// sets have reported, and how far a job is, its process alone knows, and forgets. What it does is
// what server/tablet_mover.cc, cluster/cluster_map.cc and commands/cluster/move_commands.cc do; the
// map (cluster/map_check.h, lost_rows.h) and adoptions (cluster/adoption.h) are the real thing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/adoption.h"
#include "cluster/lost_rows.h"
#include "cluster/map_cache.h"
#include "cluster/map_check.h"
#include "cluster/move_jobs.h"
#include "cluster/move_protocol.h"
#include "tests/cluster/move_simulation.h"

namespace cellar {

struct move_simulation::DirectorTables {
  MapCache map;
  std::map<uint64_t, uint64_t> incarnations;  // of sets, as which they are of the cluster; 0
  std::map<uint64_t, MoveJob> jobs;
  uint64_t job_next{1};
  std::set<uint64_t> removed;
  // Positions in the log of set 0.
  size_t jobs_at{0};
  size_t sets_at{0};
};

namespace lost_simulation {

using move_simulation::DirectorTables;
using move_simulation::KeyOf;
using move_simulation::kTable;
using move_simulation::Row;
using move_simulation::State;

enum class Fault : uint8_t {
  kNone,
  kAdoptUnasked,         // no set is asked whether it has the rows
  kAdoptAnyTime,         // no other job is waited for
  kMoveBesideAdoptions,  // an ordinary job does not wait for one that adopts
  kReclaimAnyTime,       // a tablet is taken back though the set that is to have it is there
  kReclaimOldEpoch,      // or gets the epoch that it had before
  kNoDrop,               // the donor is lost, and the recipient is not told that nothing comes
  kDoneUnheard,          // a job is over though the map says that the rows are lost; and as unasked
  kStepUncommitted,      // the director asks for what another one may not know of
  kDeposedDenies,        // who leads a set no more, and does not know, says what it has
  kAdoptBesideMoves,     // adoptions wait for adoptions alone: that is no fault, for all are asked
};
inline constexpr Fault kFaults[] = {
    Fault::kAdoptUnasked,   Fault::kAdoptAnyTime,    Fault::kMoveBesideAdoptions,
    Fault::kReclaimAnyTime, Fault::kReclaimOldEpoch, Fault::kNoDrop,
    Fault::kDoneUnheard,    Fault::kStepUncommitted, Fault::kDeposedDenies};

class LostSimulation : public move_simulation::Simulation {
 public:
  LostSimulation(uint64_t seed, Fault fault)
      : Simulation(seed, move_simulation::Fault::kNone, seed % 3 == 0 ? 3 : 4), breaks_(fault) {
    if (breaks_ == Fault::kReclaimOldEpoch) reclaim_raises_ = 0;
    Claims claims{{kTable, {.name = "0/t", .sets = {}}}};
    for (const Set& set : sets_)
      claims.at(kTable).sets.push_back({set.number, set.committed.owned});
    auto tables = std::make_shared<DirectorTables>();
    tables->map.Apply(PlanAnew(tables->map, claims));
    sets_[0].committed.tables = std::move(tables);
    Elect(&sets_[0]);
  }

  // Empty, or what is wrong.
  std::string Run(int steps);
  uint64_t adopted() const { return adopted_; }
  uint64_t reclaimed() const { return reclaims_; }
  // Of tablets that a lost set had given away, those that came nevertheless.
  uint64_t came_late() const { return came_late_; }

 protected:
  // A job, as the process that directs knows it.
  struct Ordered {
    uint64_t ask{0};  // 0: nothing is asked
    bool is_over{false};
    std::optional<MoveAnswer> answer;  // none: there was none
    bool given{false};
    bool cancel{false};
    int asks{0};  // since it came further
    Adoption adoption;
  };
  struct Director {
    std::map<uint64_t, Ordered> ordered;
    std::map<uint64_t, Tablets::Pointer> claims;  // that it has heard
  };
  struct Report {
    uint64_t process{0};  // to whom
    Tablets::Pointer claimed;
  };
  // A key that nobody may have any more.
  struct Loss {
    bool values{false};  // the lost set owned it: what was written is lost, too
    bool adopted{false};
    bool returned{false};  // the set has come back with it, as it was before
  };
  struct Owner {
    uint64_t set{0};
    uint64_t epoch{0};
    bool there{false};
  };

  // When a set is lost.
  enum class Moment : uint8_t { kAny, kGiven, kOwn };

  // --- the director
  Director& DirectorOf(const Process& process) { return directors_[process.id]; }
  static const DirectorTables& TablesOf(const Process& process) { return *process.head.tables; }
  bool IsOfCluster(const Process& process, uint64_t set) const {
    return set < sets_.size() && !TablesOf(process).removed.contains(set);
  }
  std::vector<uint64_t> SetsOf(const Process& process) const;
  Claims ClaimsOf(const Process& process);
  template <typename Change>
  bool Write(Process* process, Change change);
  void Tend(Process* process);
  void GiveUp(Process* process, uint64_t set);
  void GiveUpSome(Process* process, int percent);
  void Order(Process* process);
  void Adopt(Process* process, const std::string& key, uint64_t to);
  void AddJob(Process* process, MoveJob job);
  void StepJobs(Process* process, bool all);
  void StepJob(Process* process, uint64_t number, uint64_t floor);
  void AskOf(Process* process, const MoveJob& job, uint64_t floor, Ordered* ordered);
  void Ask(const Process& process, uint64_t job, uint64_t to, MoveStep step, Ordered* ordered);
  void Note(Process* process, uint64_t job, MoveJob::State state);
  bool IsStillLost(const Process& process, const MoveJob& job) const;
  void TakeAnswer(Process* process, const MoveJob& job, const MoveAnswer& answer, Ordered* ordered);
  void CancelSome(Process* process);
  Process* SomeDirector();

  // --- what happens
  void TakeDirected(const Message& asked, const MoveAnswer& answer) override;
  void OnOwn(const MoveIn& move, const State& next) override;
  Set* SomeSet();
  void SendReport(const Set& set);
  void DeliverReport(uint64_t set);
  void DeliverOrLose(size_t at, bool keep);
  bool DeliverToDeposed(const Message& message);
  // Who has asked hears that there is no answer.
  virtual void Unanswered(const Message& asked);
  void LoseSome();
  void SplitSome(Set* set);
  void LoseSet(Set* set);
  // Sets that come back (return_simulation.h): something of that; all of it, without failures.
  virtual void StepReturns() {}
  virtual void EndReturns() {}
  virtual bool MayGiveUp(const Set& set) const { return !IsThere(set); }
  bool MayLoseNow(const Set& set, Moment moment) const;
  void StepOnce(int crashes, bool slow);

  // --- what is checked
  std::string CheckAll();
  std::string CheckKey(const std::string& key);
  std::string CheckLoss(const std::string& key);
  std::string CheckEpoch(const std::string& key);
  bool Fits(const std::string& key, const std::optional<Row>& row, uint64_t generation);
  bool AllRest();
  bool IsOwned(const std::string& key) const;
  std::vector<MapFault> MapFaults();
  std::string Round();
  std::string CheckRest();
  std::string Describe() const;

  const Fault breaks_;
  std::map<uint64_t, Director> directors_;  // by process
  std::map<uint64_t, std::deque<Report>> reports_;
  std::map<std::string, Loss> losses_;
  std::map<std::string, Owner> owners_;
  uint64_t adopted_{0};
  uint64_t came_late_{0};
};

// With what it has given away, and does not know yet to be another set's.
inline Tablets::Pointer ClaimedOf(const State& state) {
  Tablets::Pointer claimed = state.owned;
  for (const auto& [job, move] : state.moves.out()) {
    if (!move.given) continue;
    if (Tablets::Pointer with = WithTablet(*claimed, move.tablet); with != nullptr)
      claimed = std::move(with);
  }
  return claimed;
}

inline bool IsGivenBy(const State& state, const std::string& key) {
  const auto& out = state.moves.out();
  return std::any_of(out.begin(), out.end(), [&key](const auto& move) {
    return move.second.given && move.second.tablet.Contains(key);
  });
}

inline std::optional<Row> RowOf(const State& state, const std::string& key) {
  const auto found = state.rows.find(key);
  return found == state.rows.end() ? std::nullopt : std::optional(found->second);
}

// --- the director

inline std::vector<uint64_t> LostSimulation::SetsOf(const Process& process) const {
  std::vector<uint64_t> sets;
  for (const Set& set : sets_)
    if (IsOfCluster(process, set.number)) sets.push_back(set.number);
  return sets;
}

// A set that has not reported owns what the map says.
inline Claims LostSimulation::ClaimsOf(const Process& process) {
  const MapCache& map = TablesOf(process).map;
  const auto mapped_to = [&map](uint64_t set) {
    std::vector<Tablet> list;
    if (const MapTable* const table = map.Find(kTable); table != nullptr)
      for (const MapEntry& entry : table->tablets)
        if (entry.set == set) list.push_back({entry.begin, entry.end, entry.epoch});
    return Tablets::Make(std::move(list));
  };
  const Director& director = DirectorOf(process);
  Claims claims{{kTable, {.name = "0/t", .sets = {{0, ClaimedOf(process.head)}}}}};
  for (const uint64_t set : SetsOf(process)) {
    if (set == 0) continue;
    const auto found = director.claims.find(set);
    Tablets::Pointer its = found == director.claims.end() ? mapped_to(set) : found->second;
    if (its != nullptr && !its->list().empty()) claims.at(kTable).sets.push_back({set, its});
  }
  AddLost(LostOf(map), &claims);
  return claims;
}

// False: the disk is full. `change` gets the tables and the position of the record.
template <typename Change>
bool LostSimulation::Write(Process* process, Change change) {
  if (Draw(30) == 0) return false;
  State next = process->head;
  next.log.push_back({});
  auto tables = std::make_shared<DirectorTables>(*next.tables);
  change(tables.get(), next.log.size());
  next.tables = std::move(tables);
  Append(process, std::move(next));
  return true;
}

inline void LostSimulation::Tend(Process* process) {
  MapChange change = PlanMap(TablesOf(*process).map, ClaimsOf(*process), {kTable});
  if (change.empty()) return;
  (void)Write(process,
              [&](DirectorTables* tables, size_t) { tables->map.Apply(std::move(change)); });
}

inline void LostSimulation::GiveUp(Process* process, uint64_t set) {
  Claims claims = ClaimsOf(*process);
  for (SetClaim& claim : claims.at(kTable).sets)
    if (claim.set == set) claim.set = LostWith(set);
  MapChange change = PlanMap(TablesOf(*process).map, claims, {kTable});
  const bool done = Write(process, [&](DirectorTables* tables, size_t at) {
    tables->removed.insert(set);
    tables->sets_at = at;
    if (!change.empty()) tables->map.Apply(std::move(change));
  });
  if (done) DirectorOf(*process).claims.erase(set);
}

inline void LostSimulation::GiveUpSome(Process* process, int percent) {
  for (const Set& set : sets_)
    if (MayGiveUp(set) && IsOfCluster(*process, set.number) && Chance(percent))
      GiveUp(process, set.number);
}

inline void LostSimulation::AddJob(Process* process, MoveJob job) {
  job.table_id = kTable;
  (void)Write(process, [&](DirectorTables* tables, size_t at) {
    job.number = tables->job_next++;
    tables->jobs.emplace(job.number, job);
    tables->jobs_at = at;
  });
}

// TABLET MOVE
inline void LostSimulation::Order(Process* process) {
  Tend(process);
  const DirectorTables& tables = TablesOf(*process);
  const MapTable* const table = tables.map.Find(kTable);
  if (table == nullptr || table->tablets.empty()) return;
  const MapEntry& entry = table->tablets[Draw(table->tablets.size())];
  const uint64_t to = Draw(sets_.size());
  if (IsLost(entry.set) || to == entry.set || !IsOfCluster(*process, to)) return;
  MoveJob job;
  job.tablet = {entry.begin, entry.end, entry.epoch};
  job.from = entry.set;
  job.to = to;
  const bool moves = std::any_of(tables.jobs.begin(), tables.jobs.end(), [&](const auto& other) {
    const bool counts = breaks_ != Fault::kMoveBesideAdoptions || !IsLost(other.second.from);
    return counts && other.second.state == MoveJob::State::kOrdered &&
           other.second.tablet.Overlaps(job.tablet);
  });
  if (!moves) AddJob(process, job);
}

// TABLET ADOPT
inline void LostSimulation::Adopt(Process* process, const std::string& key, uint64_t to) {
  if (!IsOfCluster(*process, to)) return;
  Tend(process);
  const DirectorTables& tables = TablesOf(*process);
  MapEntry lost;
  if (const MapEntry* const entry = tables.map.FindTablet(kTable, key); entry != nullptr) {
    lost = *entry;
    if (!IsLost(lost.set)) return;
  } else {
    lost.set = LostWith(0);
    if (const MapTable* const table = tables.map.Find(kTable); table != nullptr) {
      for (const MapEntry& other : table->tablets) {
        lost.epoch = std::max(lost.epoch, other.epoch);
        if (other.begin <= key)
          lost.begin = other.end;
        else if (lost.end.empty())
          lost.end = other.begin;
      }
    }
  }
  MoveJob job;
  job.tablet = {lost.begin, lost.end, lost.epoch};
  job.from = lost.set;
  job.to = to;
  const bool waits = std::any_of(tables.jobs.begin(), tables.jobs.end(), [&](const auto& other) {
    if (breaks_ == Fault::kAdoptAnyTime) return false;
    if (breaks_ == Fault::kAdoptBesideMoves && !IsLost(other.second.from)) return false;
    return !other.second.ended() && other.second.tablet.Overlaps(job.tablet);
  });
  if (!waits) AddJob(process, job);
}

inline void LostSimulation::StepJobs(Process* process, bool all) {
  Director& director = DirectorOf(*process);
  const auto& jobs = TablesOf(*process).jobs;
  std::erase_if(director.ordered, [&jobs](const auto& ordered) {
    const auto found = jobs.find(ordered.first);
    return found == jobs.end() || found->second.ended();
  });
  std::vector<uint64_t> running;
  for (const auto& [number, job] : jobs)
    if (!job.ended()) running.push_back(number);
  if (running.empty()) return;
  // What it asks for is committed, and so is that sets are lost.
  const DirectorTables& tables = TablesOf(*process);
  const bool is_known = process->committed >= std::max(tables.jobs_at, tables.sets_at);
  if (!is_known && breaks_ != Fault::kStepUncommitted) return;
  const uint64_t floor = running.front() - 1;
  if (!all) running = {running[Draw(running.size())]};
  for (const uint64_t number : running) StepJob(process, number, floor);
}

inline void LostSimulation::StepJob(Process* process, uint64_t number, uint64_t floor) {
  Ordered& ordered = DirectorOf(*process).ordered[number];
  if (ordered.ask != 0) {
    if (!ordered.is_over) return;
    ordered.ask = 0;
    const std::optional<MoveAnswer> answer = std::exchange(ordered.answer, std::nullopt);
    const MoveJob job = TablesOf(*process).jobs.at(number);
    if (answer) TakeAnswer(process, job, *answer, &ordered);
  }
  const MoveJob job = TablesOf(*process).jobs.at(number);
  if (job.ended()) return;
  constexpr int kPatience{60};
  if (!ordered.given && ordered.asks >= kPatience) ordered.cancel = true;
  AskOf(process, job, floor, &ordered);
}

inline void LostSimulation::AskOf(Process* process, const MoveJob& job, uint64_t floor,
                                  Ordered* ordered) {
  const bool is_adoption = IsLost(job.from);
  const bool drops = job.state == MoveJob::State::kCancelling;
  if (drops && !IsOfCluster(*process, job.to)) {
    Note(process, job.number, MoveJob::State::kCancelled);
    return;
  }
  const bool is_donor_lost = !is_adoption && !drops && !IsOfCluster(*process, job.from);
  if (is_donor_lost || (is_adoption && !drops && ordered->cancel)) {
    const bool is_told = !is_donor_lost || breaks_ != Fault::kNoDrop;
    Note(process, job.number, is_told ? MoveJob::State::kCancelling : MoveJob::State::kCancelled);
    return;
  }
  if (is_adoption && !drops) {
    const bool asks = breaks_ != Fault::kAdoptUnasked && breaks_ != Fault::kDoneUnheard;
    Adoption::Question question = ordered->adoption.Next(
        job, asks ? SetsOf(*process) : std::vector<uint64_t>{}, process->head.catalog);
    question.step.floor = floor;
    return Ask(*process, job.number, question.set, std::move(question.step), ordered);
  }
  MoveStep step;
  step.kind = drops                            ? MoveStep::Kind::kDrop
              : !IsOfCluster(*process, job.to) ? MoveStep::Kind::kReclaim
              : ordered->cancel                ? MoveStep::Kind::kCancel
                                               : MoveStep::Kind::kJob;
  const bool takes_back = breaks_ == Fault::kReclaimAnyTime && !drops && Chance(20);
  if (takes_back) step.kind = MoveStep::Kind::kReclaim;
  step.job = job.number;
  step.floor = floor;
  step.out = {.table_id = job.table_id, .tablet = job.tablet, .to = job.to, .given = false};
  Ask(*process, job.number, drops ? job.to : job.from, std::move(step), ordered);
}

inline void LostSimulation::Ask(const Process& process, uint64_t job, uint64_t to, MoveStep step,
                                Ordered* ordered) {
  step.cluster_id = 1;
  ++ordered->asks;
  ordered->is_over = false;
  ordered->ask = ++ask_last_;
  Send({to, std::move(step), process.id, job, ordered->ask, true});
}

inline void LostSimulation::Note(Process* process, uint64_t job, MoveJob::State state) {
  if (TablesOf(*process).jobs.at(job).state == state) return;
  (void)Write(process, [&](DirectorTables* tables, size_t at) {
    tables->jobs.at(job).state = state;
    tables->jobs_at = at;
  });
}

inline bool LostSimulation::IsStillLost(const Process& process, const MoveJob& job) const {
  const MapEntry* const entry = TablesOf(process).map.FindTablet(kTable, job.tablet.begin);
  return (entry == nullptr ? IsLost(job.from) : IsLost(entry->set)) && IsOfCluster(process, job.to);
}

inline void LostSimulation::TakeAnswer(Process* process, const MoveJob& job,
                                       const MoveAnswer& answer, Ordered* ordered) {
  const bool drops = job.state == MoveJob::State::kCancelling;
  if (IsLost(job.from) && !drops && answer.code != MoveAnswer::Code::kEnded) {
    ordered->adoption.Take(answer);
    const bool further = answer.code == MoveAnswer::Code::kOk || answer.text == kPurgingText;
    if (further) ordered->asks = 0;
    return;
  }
  if (answer.code == MoveAnswer::Code::kOk) {
    ordered->given = answer.given;
    if (answer.given) ordered->cancel = false;
    return;
  }
  if (answer.code != MoveAnswer::Code::kEnded) return;
  MoveJob::State state = drops ? MoveJob::State::kCancelled : MoveJob::State::kCancelling;
  if (answer.end == MoveEnd::kMoved) state = MoveJob::State::kDone;
  const bool waits = state == MoveJob::State::kDone && IsStillLost(*process, job);
  if (waits && breaks_ != Fault::kDoneUnheard) return;
  Note(process, job.number, state);
}

// TABLET CANCEL
inline void LostSimulation::CancelSome(Process* process) {
  auto& ordered = DirectorOf(*process).ordered;
  if (ordered.empty()) return;
  auto one = ordered.begin();
  std::advance(one, static_cast<std::ptrdiff_t>(Draw(ordered.size())));
  one->second.cancel = true;
}

// Mostly the one that leads set 0.
inline LostSimulation::Process* LostSimulation::SomeDirector() {
  Set& set = sets_[0];
  if (!set.deposed.empty() && Chance(25)) return set.deposed[Draw(set.deposed.size())].get();
  return set.leader.get();
}

// --- what happens

inline void LostSimulation::TakeDirected(const Message& asked, const MoveAnswer& answer) {
  if (FindProcess(asked.process) == nullptr) return;
  auto& ordered = directors_[asked.process].ordered;
  const auto found = ordered.find(asked.job);
  if (found == ordered.end() || found->second.ask != asked.ask) return;
  found->second.is_over = true;
  found->second.answer = answer;
}

inline void LostSimulation::Unanswered(const Message& asked) {
  Process* const asker = asked.ask == 0 ? nullptr : FindProcess(asked.process);
  if (asker == nullptr) return;
  if (asked.directs) {
    auto& ordered = directors_[asked.process].ordered;
    const auto found = ordered.find(asked.job);
    if (found != ordered.end() && found->second.ask == asked.ask) found->second.is_over = true;
    return;
  }
  const auto donor = asker->donors.find(asked.job);
  if (donor == asker->donors.end() || donor->second.ask != asked.ask) return;
  donor->second.ask = 0;
  donor->second.donor->OnLost();
}

inline void LostSimulation::OnOwn(const MoveIn& move, const State& next) {
  for (int number = 0; number < keys_; ++number) {
    const std::string key = KeyOf(number);
    if (!move.tablet.Contains(key)) continue;
    const auto loss = losses_.find(key);
    if (!IsLost(move.from)) {
      if (loss != losses_.end()) ++came_late_;
      continue;
    }
    ++adopted_;
    if (loss == losses_.end())
      broken_ = key + " is adopted, and it was not lost";
    else if (next.rows.contains(key))
      broken_ = key + " is adopted, and is not empty";
    else
      loss->second.adopted = true;
  }
}

inline LostSimulation::Set* LostSimulation::SomeSet() {
  for (;;)
    if (Set& set = sets_[Draw(sets_.size())]; IsThere(set)) return &set;
}

// What is committed is told.
inline void LostSimulation::SendReport(const Set& set) {
  if (set.number == 0) return;
  reports_[set.number].push_back({SomeDirector()->id, ClaimedOf(set.committed)});
}

inline void LostSimulation::DeliverReport(uint64_t set) {
  std::deque<Report>& reports = reports_[set];
  if (reports.empty()) return;
  const Report report = reports.front();
  reports.pop_front();
  Process* const process = FindProcess(report.process);
  if (process == nullptr || !IsOfCluster(*process, set)) return;
  DirectorOf(*process).claims[set] = report.claimed;
  if (Chance(70)) Tend(process);
}

inline void LostSimulation::DeliverOrLose(size_t at, bool keep) {
  const Message asked = messages_[at];
  const bool deposed = breaks_ == Fault::kDeposedDenies && DeliverToDeposed(asked);
  if (!deposed && IsThere(SetOf(asked.to))) return Deliver(at, keep);
  messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(at));
  if (!deposed) Unanswered(asked);
}

inline bool LostSimulation::DeliverToDeposed(const Message& message) {
  const auto& deposed = SetOf(message.to).deposed;
  if (message.step.kind != MoveStep::Kind::kHolds || deposed.empty() || Chance(50)) return false;
  const Process& process = *deposed[Draw(deposed.size())];
  if (process.committed < process.head.log.size()) return false;
  TakeDirected(message, AnswerMoveStep(*process.party, message.step));
  return true;
}

// Who has asked waits no longer; what it asked for may come nevertheless.
inline void LostSimulation::LoseSome() {
  if (messages_.empty()) return;
  const size_t at = Draw(messages_.size());
  const Message asked = messages_[at];
  messages_[at].ask = 0;
  if (Chance(50)) messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(at));
  Unanswered(asked);
}

// The balancer's and the operator's: tablets that do not move are cut, or made one.
inline void LostSimulation::SplitSome(Set* set) {
  Process& process = *set->leader;
  const std::string key = KeyOf(1 + static_cast<int>(Draw(static_cast<uint64_t>(keys_ - 1))));
  const Tablet* const tablet = process.head.owned->Find(key);
  if (tablet == nullptr || process.head.moves.OutOf(kTable, *tablet) != 0) return;
  Tablets::Pointer changed;
  if (Chance(50)) {
    changed = process.head.owned->Split(key);
  } else {
    const Tablet* const next =
        tablet->end.empty() ? nullptr : process.head.owned->Find(tablet->end);
    if (next == nullptr || process.head.moves.OutOf(kTable, *next) != 0) return;
    changed = process.head.owned->Merge(key);
  }
  if (changed == nullptr) return;
  State next = process.head;
  next.owned = std::move(changed);
  next.log.push_back({});
  Append(&process, std::move(next));
}

// While something is between it and another set, or is about to be the other's.
inline bool LostSimulation::MayLoseNow(const Set& set, Moment moment) const {
  if (moment == Moment::kAny) return true;
  if (moment == Moment::kOwn) {
    return std::any_of(messages_.begin(), messages_.end(), [&set](const Message& message) {
      return message.step.kind == MoveStep::Kind::kOwn && message.step.from == set.number;
    });
  }
  return std::any_of(sets_.begin(), sets_.end(), [&set](const Set& each) {
    const auto& out = each.committed.moves.out();
    return IsThere(each) && std::any_of(out.begin(), out.end(), [&](const auto& move) {
             return move.second.given &&
                    (each.number == set.number || move.second.to == set.number);
           });
  });
}

inline void LostSimulation::LoseSet(Set* set) {
  const State& head = set->leader->head;
  const State& committed = set->committed;
  for (int number = 0; number < keys_; ++number) {
    const std::string key = KeyOf(number);
    const bool values = committed.owned->Owns(key);
    const bool had =
        values || head.owned->Owns(key) || IsGivenBy(committed, key) || IsGivenBy(head, key);
    // Somebody else has it for sure, or has given it and has it again.
    const bool is_safe = std::any_of(sets_.begin(), sets_.end(), [&](const Set& other) {
      return IsThere(other) && other.number != set->number &&
             (other.committed.owned->Owns(key) || IsGivenBy(other.committed, key));
    });
    if (!values && (!had || is_safe)) continue;
    Loss& loss = losses_[key];
    loss.values = loss.values || values;
    loss.adopted = false;
  }
  // What it had answered may still come.
  for (size_t i = 0; i < answers_.size();) {
    const Answer& answer = answers_[i];
    const bool is_its = answer.set == set->number;
    if (!is_its || (answer.position <= set->leader->committed && Chance(50))) {
      ++i;
      continue;
    }
    const Message asked = answer.asked;
    answers_.erase(answers_.begin() + static_cast<std::ptrdiff_t>(i));
    Unanswered(asked);
  }
  std::erase_if(unacknowledged_, [&](const auto& write) { return write.set == set->number; });
  set->deposed.clear();
  set->leader.reset();
}

inline void LostSimulation::StepOnce(int crashes, bool slow) {
  Set& set = *SomeSet();
  const uint64_t choice = Draw(100);
  if (choice < 10) {
    ClientWrites();
  } else if (choice < 26) {
    // Without those of set 0 the director waits.
    if (!slow || Chance(15)) CommitSome(Chance(30) ? &sets_[0] : &set, false);
  } else if (choice < 40) {
    if (!set.deposed.empty() && Chance(30))
      StepDonors(set.deposed[Draw(set.deposed.size())].get());
    else
      StepDonors(set.leader.get());
  } else if (choice < 57) {
    for (uint64_t count = 1 + Draw(3); count > 0 && !messages_.empty(); --count)
      DeliverOrLose(Draw(messages_.size()), Chance(30));
  } else if (choice < 72) {
    for (uint64_t count = 1 + Draw(3); count > 0 && !answers_.empty(); --count)
      DeliverAnswer(Draw(answers_.size()));
  } else if (choice < 81) {
    StepJobs(SomeDirector(), Chance(50));
  } else if (choice < 83) {
    if (Chance(60)) Order(SomeDirector());
  } else if (choice < 85) {
    Adopt(SomeDirector(), KeyOf(static_cast<int>(Draw(static_cast<uint64_t>(keys_)))),
          Draw(sets_.size()));
  } else if (choice < 88) {
    if (Chance(60)) SendReport(set);
  } else if (choice < 91) {
    DeliverReport(Draw(sets_.size()));
  } else if (choice < 92) {
    Tend(SomeDirector());
    if (Chance(8)) CancelSome(SomeDirector());
  } else if (choice < 93) {
    if (Chance(40)) GiveUpSome(sets_[0].leader.get(), 50);
  } else if (choice < 94) {
    if (Chance(8)) ChangeSchema();
  } else if (choice < 95) {
    TakeSchema(&set);
  } else if (choice < 96) {
    if (!copies_.empty()) messages_.push_back(copies_[Draw(copies_.size())]);
  } else if (choice < 97) {
    if (Chance(10 * crashes)) Kill(&set);
  } else if (choice < 98) {
    if (Chance(12 * crashes)) Depose(&set);
  } else if (choice < 99) {
    if (Chance(30)) SplitSome(&set);
  } else {
    if (Chance(50)) LoseSome();
  }
}

inline std::string LostSimulation::Run(int steps) {
  const int crashes = static_cast<int>(Draw(4));
  const bool slow = Chance(40);
  int losses = sets_.size() > 3 && Chance(50) ? 2 : 1;
  auto moment = static_cast<Moment>(Draw(3));
  auto lose_at = static_cast<int>(Draw(static_cast<uint64_t>(steps) / 2));
  uint64_t lost = 1 + Draw(sets_.size() - 1);
  for (int step = 0; step < steps; ++step) {
    StepOnce(crashes, slow);
    StepReturns();
    std::erase_if(directors_,
                  [this](const auto& known) { return FindProcess(known.first) == nullptr; });
    const bool waits = step < lose_at + steps / 4 && !MayLoseNow(SetOf(lost), moment);
    if (losses > 0 && step >= lose_at && IsThere(SetOf(lost)) && !waits) {
      LoseSet(&SetOf(lost));
      --losses;
      moment = static_cast<Moment>(Draw(3));
      lose_at = step + static_cast<int>(Draw(static_cast<uint64_t>(steps) / 4));
      for (int draws = 0; losses > 0 && draws < 9 && !IsThere(SetOf(lost)); ++draws)
        lost = 1 + Draw(sets_.size() - 1);
    }
    if (std::string wrong = CheckAll(); !wrong.empty()) return wrong;
  }
  return CheckRest();
}

// --- what is checked

inline bool LostSimulation::Fits(const std::string& key, const std::optional<Row>& row,
                                 uint64_t generation) {
  const Known& known = known_[key];
  if (row == known.row) return true;
  if (std::find(known.perhaps.begin(), known.perhaps.end(), row) != known.perhaps.end())
    return true;
  // A change of the schema that the owner has taken has emptied it.
  return !row && (!known.row || known.row->generation < generation);
}

// One that was lost, and that a set has for sure, is as good as any other from then on.
inline std::string LostSimulation::CheckLoss(const std::string& key) {
  const Loss loss = losses_.at(key);
  for (const Set& set : sets_) {
    if (!IsThere(set) || !set.committed.owned->Owns(key)) continue;
    const std::optional<Row> row = RowOf(set.committed, key);
    const bool may_be_any = loss.values || loss.adopted;
    if (!may_be_any && !Fits(key, row, set.committed.generation))
      return key + " was given before its set was lost, and is another one";
    Known& known = known_[key];
    known.row = row;
    known.perhaps.clear();
    for (const Unacknowledged& write : unacknowledged_)
      if (write.process == set.leader->id && write.key == key) known.perhaps.push_back(write.row);
    losses_.erase(key);
    return {};
  }
  return {};
}

// Epochs grow with each change of the owner. One that is adopted gets that behind the map's, which
// may not have heard of what the lost set had last.
inline std::string LostSimulation::CheckEpoch(const std::string& key) {
  Owner& before = owners_[key];
  before.there =
      before.there && IsUp(SetOf(before.set)) && SetOf(before.set).committed.owned->Owns(key);
  for (const Set& set : sets_) {
    if (!IsThere(set)) continue;
    const Tablet* const tablet = set.committed.owned->Find(key);
    if (tablet == nullptr) continue;
    const auto loss = losses_.find(key);
    // Or it is given once more to a set that has forgotten that it had it.
    const bool stays = (before.there || loss != losses_.end()) && before.set == set.number;
    const bool is_adopted =
        loss != losses_.end() && (loss->second.adopted || loss->second.returned);
    const bool grows = tablet->epoch > before.epoch || (stays && tablet->epoch == before.epoch);
    if (!grows && !is_adopted) {
      return key + " is set " + std::to_string(set.number) + "'s with epoch " +
             std::to_string(tablet->epoch) + ", and was set " + std::to_string(before.set) +
             "'s with " + std::to_string(before.epoch);
    }
    before = {set.number, tablet->epoch, true};
  }
  return {};
}

inline std::string LostSimulation::CheckKey(const std::string& key) {
  const Process* owner = nullptr;
  bool given = false;
  for (const Set& set : sets_) {
    // One that has come back, and is not open yet, will have it.
    if (IsUp(set) && !IsThere(set)) given = given || set.leader->head.owned->Owns(key);
    if (!IsThere(set)) continue;
    given = given || IsGivenBy(set.leader->head, key);
    if (!set.leader->head.owned->Owns(key)) continue;
    if (owner != nullptr) return key + " has two owners";
    owner = set.leader.get();
  }
  if (owner == nullptr)
    return given || losses_.contains(key) ? std::string() : key + " has no owner";
  const std::optional<Row> row = RowOf(owner->head, key);
  if (row && row->generation != owner->head.generation)
    return key + " is of before a change of the schema";
  if (losses_.contains(key) || Fits(key, row, owner->head.generation)) return {};
  const Known& known = known_[key];
  return key + " is write " + std::to_string(row ? row->write : 0) + " at set " +
         std::to_string(owner->set->number) + ", acknowledged was " +
         std::to_string(known.row ? known.row->write : 0);
}

inline std::string LostSimulation::CheckAll() {
  for (int number = 0; number < keys_ && broken_.empty(); ++number) {
    const std::string key = KeyOf(number);
    broken_ = CheckEpoch(key);
    if (broken_.empty() && losses_.contains(key)) broken_ = CheckLoss(key);
    if (broken_.empty()) broken_ = CheckKey(key);
  }
  return broken_;
}

inline bool LostSimulation::IsOwned(const std::string& key) const {
  return std::any_of(sets_.begin(), sets_.end(), [&key](const Set& set) {
    return IsThere(set) && set.leader->head.owned->Owns(key);
  });
}

// Of the director's map, as against what sets own.
inline std::vector<MapFault> LostSimulation::MapFaults() {
  const MapCache& map = TablesOf(*sets_[0].leader).map;
  Claims claims{{kTable, {.name = "0/t", .sets = {}}}};
  for (const Set& set : sets_)
    if (IsThere(set)) claims.at(kTable).sets.push_back({set.number, set.leader->head.owned});
  AddLost(LostOf(map), &claims);
  return FindFaults(map, claims);
}

inline bool LostSimulation::AllRest() {
  const DirectorTables& tables = TablesOf(*sets_[0].leader);
  const bool over = std::all_of(tables.jobs.begin(), tables.jobs.end(),
                                [](const auto& job) { return job.second.ended(); });
  const std::vector<MapFault> faults = MapFaults();
  const bool is_mapped = std::all_of(faults.begin(), faults.end(), [](const MapFault& fault) {
    return fault.kind == MapFault::Kind::kHole || fault.kind == MapFault::Kind::kLost;
  });
  return over && is_mapped && std::all_of(sets_.begin(), sets_.end(), [&](const Set& set) {
           if (!IsThere(set)) return tables.removed.contains(set.number);
           return set.leader->head.moves.out().empty() && set.leader->head.moves.in().empty() &&
                  set.leader->pending.empty() && set.leader->head.catalog == catalog_;
         });
}

// What goes on.
inline std::string LostSimulation::Describe() const {
  const DirectorTables& tables = TablesOf(*sets_[0].leader);
  std::string text;
  for (const auto& [number, job] : tables.jobs) {
    if (job.ended()) continue;
    text += "job " + std::to_string(number) + " from " + std::to_string(SetNumber(job.from)) +
            (IsLost(job.from) ? " lost" : "") + " to " + std::to_string(job.to) + " [" +
            job.tablet.begin + "," + job.tablet.end + ") " +
            std::string(job.decided() ? "cancelling; " : "ordered; ");
  }
  if (const MapTable* const table = tables.map.Find(kTable); table != nullptr) {
    text += "map:";
    for (const MapEntry& entry : table->tablets)
      text += " [" + entry.begin + "," + entry.end + ") " + std::to_string(SetNumber(entry.set)) +
              (IsLost(entry.set) ? " lost" : "") + "/" + std::to_string(entry.epoch);
    text += "; ";
  }
  for (const Set& set : sets_) {
    text += "set " + std::to_string(set.number);
    if (!IsUp(set)) {
      text += " lost; ";
      continue;
    }
    if (!IsThere(set)) text += " closed";
    const State& head = set.leader->head;
    text += " catalog " + std::to_string(head.catalog) + " of " + std::to_string(catalog_) + ":";
    for (const Tablet& tablet : head.owned->list())
      text += " [" + tablet.begin + "," + tablet.end + ")/" + std::to_string(tablet.epoch);
    for (const auto& [job, move] : head.moves.out())
      text += " out " + std::to_string(job) + (move.given ? " given" : "");
    for (const auto& [job, move] : head.moves.in())
      text += " in " + std::to_string(job) + (move.complete() ? " complete" : "");
    text += "; ";
  }
  return text;
}

// All goes on, and nobody fails.
inline std::string LostSimulation::Round() {
  Process* const director = sets_[0].leader.get();
  GiveUpSome(director, 100);
  for (Set& set : sets_) {
    if (IsThere(set)) {
      TakeSchema(&set);
      CommitSome(&set, true);
      StepDonors(set.leader.get());
      SendReport(set);
    }
    while (!reports_[set.number].empty()) DeliverReport(set.number);
  }
  EndReturns();
  Tend(director);
  StepJobs(director, true);
  if (Chance(30)) ClientWrites();
  // What lost sets have said long ago, too.
  if (!copies_.empty() && Chance(50)) messages_.push_back(copies_[Draw(copies_.size())]);
  while (!messages_.empty()) DeliverOrLose(Draw(messages_.size()), false);
  for (Set& set : sets_)
    if (IsThere(set)) CommitSome(&set, true);
  while (!answers_.empty()) {
    const size_t before = answers_.size();
    DeliverAnswer(Draw(answers_.size()));
    if (answers_.size() == before) break;
  }
  return CheckAll();
}

// Once nothing fails any more, all comes to an end; and what is lost then can be had again.
inline std::string LostSimulation::CheckRest() {
  for (Set& set : sets_) set.deposed.clear();
  constexpr int kRounds{4'000};
  int round = 0;
  for (; round < kRounds && !AllRest(); ++round)
    if (std::string wrong = Round(); !wrong.empty()) return wrong;
  if (!AllRest()) return "it does not come to an end: " + Describe();
  const auto is_open = [this] {
    for (int number = 0; number < keys_; ++number)
      if (!IsOwned(KeyOf(number))) return true;
    return !AllRest();
  };
  for (round = 0; round < kRounds && is_open(); ++round) {
    for (int number = 0; number < keys_; ++number)
      if (const std::string key = KeyOf(number); !IsOwned(key) && Chance(30))
        Adopt(sets_[0].leader.get(), key, SomeSet()->number);
    if (std::string wrong = Round(); !wrong.empty()) return wrong;
  }
  if (is_open()) return "what is lost is not had again: " + Describe();
  if (!MapFaults().empty()) return "the map is wrong at the end: " + Describe();
  return {};
}

}  // namespace lost_simulation
}  // namespace cellar
