// Sets that are lost, as in lost_simulation.h, and come back with what was kept of them: all that
// they had committed, or less. The director settles what they are to have (cluster/settlement.h,
// the real thing; around it what server/set_settler.cc does), and opens them; also several at once,
// while it fails itself and others adopt, move and split.
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

#include "base/coding.h"
#include "cluster/settlement.h"
#include "tests/cluster/lost_simulation.h"

namespace cellar::return_simulation {

using lost_simulation::ClaimedOf;
using lost_simulation::IsGivenBy;
using lost_simulation::LostSimulation;
using move_simulation::DirectorTables;
using move_simulation::KeyOf;
using move_simulation::kTable;
using move_simulation::State;

enum class Fault : uint8_t {
  kNone,
  kOpenAsIs,         // nothing is settled
  kJobsGoOn,         // jobs are not ended first
  kReportsWillDo,    // nobody is asked: what was reported counts
  kDeposedAnswers,   // who leads a set no more, and does not know, says what it has
  kForgetsEnded,     // it does not hear which jobs have ended in what it has forgotten
  kStagesStay,       // what was on its way to it stays on its way
  kGivenStays,       // what it had given away stays so
  kOpenUncommitted,  // it is opened by what the next director may not know of
  kSchemaAnyTime,    // its schema becomes newer than that of who has a tablet on its way to it
  kOldAttempts,      // a donor's attempts have the numbers of those that it has forgotten
};
inline constexpr Fault kFaults[] = {
    Fault::kOpenAsIs,      Fault::kJobsGoOn,   Fault::kReportsWillDo, Fault::kDeposedAnswers,
    Fault::kForgetsEnded,  Fault::kStagesStay, Fault::kGivenStays,    Fault::kOpenUncommitted,
    Fault::kSchemaAnyTime, Fault::kOldAttempts};

inline ReportedState ReportedOf(uint64_t set, const State& state) {
  ReportedState report;
  report.state = {.cluster_id = 1, .set = set, .catalog = state.catalog, .moves = state.moves};
  if (const Tablets::Pointer claimed = ClaimedOf(state); !claimed->list().empty())
    report.tablets.emplace(kTable, claimed);
  return report;
}

class ReturnSimulation final : public LostSimulation {
 public:
  ReturnSimulation(uint64_t seed, Fault fault)
      : LostSimulation(seed, lost_simulation::Fault::kNone), wrong_(fault) {
    counts_attempts_ = fault != Fault::kOldAttempts;
  }

  uint64_t opened() const { return opened_; }
  uint64_t settled() const { return settled_; }
  uint64_t kept() const { return kept_; }        // keys that an opened set has again
  uint64_t set_aside() const { return aside_; }  // keys that it had to give up
  uint64_t lost() const { return lost_keys_; }   // keys that nobody had when one was opened

 private:
  static constexpr size_t kHistory{30};
  // What a director knows of a set that has come back.
  struct Desk {
    uint64_t incarnation{0};
    std::shared_ptr<const ReportedState> report{};
    std::optional<size_t> proof{};  // a record, which has to be committed
    std::map<uint64_t, uint64_t> asks{};
    std::map<uint64_t, ReportedState> answers{};
  };
  struct ReturnReport {
    uint64_t process{0};
    uint64_t incarnation{0};
    ReportedState report{};
  };
  struct Order {
    uint64_t set{0};
    uint64_t incarnation{0};
    std::string bytes{};  // a settlement; empty: it is opened
    uint64_t catalog{0};  // ... or is to have the changes of the schema up to that
  };

  uint64_t KnownAs(const Process& process, uint64_t set) const {
    const auto& known = TablesOf(process).incarnations;
    const auto found = known.find(set);
    return found == known.end() ? 0 : found->second;
  }
  // Of those that have come back, and are not open yet, as the process knows.
  std::set<uint64_t> ClosedOf(const Process& process) {
    std::set<uint64_t> closed;
    for (const auto& [number, desk] : desks_[process.id])
      if (desk.report && desk.incarnation > KnownAs(process, number) &&
          IsOfCluster(process, number))
        closed.insert(number);
    return closed;
  }

  // --- what happens
  void OnCommitted(const Set& set) override {
    std::deque<State>& history = history_[set.number];
    if (!Chance(30)) return;
    history.push_back(set.committed);
    if (history.size() > kHistory)
      history.erase(history.begin() + static_cast<std::ptrdiff_t>(Draw(kHistory)));
  }
  void ComeBack(Set* set) {
    std::deque<State>& history = history_[set->number];
    if (!history.empty() && Chance(65)) {
      const size_t at = Draw(history.size());
      set->committed = history[at];
      history.resize(at + 1);
    }
    ++set->incarnation;
    Elect(set);
    NoteReturned(set->committed);
  }
  // What was lost, and is had again.
  void NoteReturned(const State& state) {
    for (int number = 0; number < keys_; ++number) {
      const std::string key = KeyOf(number);
      const auto loss = losses_.find(key);
      const bool has = state.owned->Owns(key) || IsGivenBy(state, key);
      if (loss == losses_.end() || !has) continue;
      loss->second.values = loss->second.returned = true;
    }
  }
  // One that has come back, too, unless it was opened.
  bool MayGiveUp(const Set& set) const override {
    if (!IsUp(set)) return true;
    return !IsThere(set) && gives_up_ && KnownAs(*sets_[0].leader, set.number) < set.incarnation;
  }

  MoveAnswer AnswerOf(Process& process, const MoveStep& step) override {
    if (step.kind != MoveStep::Kind::kOwned) return LostSimulation::AnswerOf(process, step);
    MoveAnswer answer;
    const ReportedState report = ReportedOf(process.set->number, process.head);
    EncodeClusterState(report.state, report.tablets, &answer.text);
    return answer;
  }
  void TakeDirected(const Message& asked, const MoveAnswer& answer) override {
    if (asked.step.kind != MoveStep::Kind::kOwned)
      return LostSimulation::TakeDirected(asked, answer);
    Desk* const desk = DeskOf(asked);
    if (desk == nullptr) return;
    desk->asks.erase(asked.to);
    ReportedState report;
    if (DecodeClusterState(answer.text, &report.state, &report.tablets))
      desk->answers[asked.to] = std::move(report);
  }
  void Unanswered(const Message& asked) override {
    if (asked.step.kind != MoveStep::Kind::kOwned) return LostSimulation::Unanswered(asked);
    if (Desk* const desk = DeskOf(asked); desk != nullptr) desk->asks.erase(asked.to);
  }
  // That waits for this very answer.
  Desk* DeskOf(const Message& asked) {
    if (asked.ask == 0 || FindProcess(asked.process) == nullptr) return nullptr;
    auto& desks = desks_[asked.process];
    const auto desk = desks.find(asked.job);
    if (desk == desks.end()) return nullptr;
    const auto ask = desk->second.asks.find(asked.to);
    return ask != desk->second.asks.end() && ask->second == asked.ask ? &desk->second : nullptr;
  }

  // --- the director
  void StepReturn(Process* process, uint64_t number) {
    const std::set<uint64_t> closed = ClosedOf(*process);
    if (!closed.contains(number)) return;
    Desk& desk = desks_[process->id][number];
    if (wrong_ == Fault::kOpenAsIs) return Open(process, number, &desk, {});
    if (!desk.proof) {
      (void)Write(process, [&](DirectorTables*, size_t at) { desk.proof = at; });
      return;
    }
    if (process->committed < *desk.proof) return;
    if (!EndJobs(process, number, closed)) return;
    std::map<uint64_t, const ReportedState*> others;
    bool is_all = true;
    for (const uint64_t set : SetsOf(*process)) {
      if (set == number) continue;
      if (closed.contains(set)) {
        others[set] = &*desks_[process->id][set].report;
        continue;
      }
      const auto answer = desk.answers.find(set);
      if (answer != desk.answers.end()) {
        others[set] = &answer->second;
        continue;
      }
      is_all = false;
      if (desk.asks.contains(set)) continue;
      if (wrong_ == Fault::kReportsWillDo && reported_.contains(set)) {
        desk.answers[set] = reported_.at(set);
        continue;
      }
      MoveStep step;
      step.kind = MoveStep::Kind::kOwned;
      step.cluster_id = 1;
      desk.asks[set] = ++ask_last_;
      Send({set, std::move(step), process->id, number, ask_last_, true});
    }
    if (!is_all) return;
    const auto& jobs = TablesOf(*process).jobs;
    const std::set<uint64_t> live{kTable};
    const ReturnedSet returned{.number = number,
                               .report = *desk.report,
                               .others = others,
                               .closed = closed,
                               .map = TablesOf(*process).map,
                               .tables = live,
                               .jobs = jobs,
                               .floor = FloorOf(jobs)};
    Settlement settlement = Settle(returned);
    if (!settlement.fits) broken_ = "what a set says contradicts itself";
    if (!IsWithin(settlement, *desk.report)) broken_ = "a set is told to have what it has not";
    Spoil(*desk.report, &settlement);
    if (settlement.changes) {
      std::string bytes;
      EncodeSettlement({HashOf(*desk.report), settlement}, &bytes);
      orders_.push_back({number, desk.incarnation, std::move(bytes)});
      desk.answers.clear();
      desk.report.reset();
      return;
    }
    const uint64_t catalog = std::min(process->head.catalog, settlement.catalog_max);
    if (desk.report->state.catalog < catalog) {
      orders_.push_back({number, desk.incarnation, {}, catalog});
      desk.answers.clear();
      desk.report.reset();
      return;
    }
    Open(process, number, &desk, UnownedRows(returned, {kTable}));
  }

  static uint64_t FloorOf(const std::map<uint64_t, MoveJob>& jobs) {
    for (const auto& [job, known] : jobs)
      if (!known.ended()) return job - 1;
    return jobs.empty() ? 0 : jobs.rbegin()->first;
  }

  // True: nothing comes of those that could be in the way.
  bool EndJobs(Process* process, uint64_t number, const std::set<uint64_t>& closed) {
    if (wrong_ == Fault::kJobsGoOn) return true;
    const std::vector<uint64_t> to_end = JobsToEnd(number, TablesOf(*process).jobs);
    bool is_over = true;
    for (const uint64_t job : to_end) {
      const MoveJob known = TablesOf(*process).jobs.at(job);
      if (known.state == MoveJob::State::kOrdered) Note(process, job, MoveJob::State::kCancelling);
      is_over = is_over && IsOver(TablesOf(*process).jobs.at(job), closed);
    }
    return is_over && process->committed >= TablesOf(*process).jobs_at;
  }

  void Spoil(const ReportedState& report, Settlement* settlement) {
    if (wrong_ == Fault::kSchemaAnyTime) settlement->catalog_max = UINT64_MAX;
    const bool spoils = wrong_ == Fault::kForgetsEnded || wrong_ == Fault::kStagesStay ||
                        wrong_ == Fault::kGivenStays;
    if (!spoils) return;
    const TabletMoves& before = report.state.moves;
    TabletMoves& moves = settlement->state.moves;
    auto out = moves.out();
    auto in = moves.in();
    std::map<uint64_t, MoveEnd> ended = before.ended();
    if (wrong_ == Fault::kStagesStay) in.insert(before.in().begin(), before.in().end());
    if (wrong_ == Fault::kGivenStays) {
      for (const auto& [job, move] : before.out()) {
        if (!move.given) continue;
        out.emplace(job, move);
        const auto own = settlement->tablets.find(kTable);
        if (own == settlement->tablets.end()) continue;
        std::vector<Tablet> left;
        for (const Tablet& tablet : own->second->list())
          if (!tablet.Overlaps(move.tablet)) left.push_back(tablet);
        own->second = Tablets::Make(std::move(left));
      }
    }
    const auto end = [&](uint64_t job, MoveEnd as) {
      if (!out.contains(job) && !in.contains(job)) ended.emplace(job, as);
    };
    for (const auto& [job, move] : before.out()) end(job, MoveEnd::kCancelled);
    for (const auto& [job, move] : before.in()) end(job, MoveEnd::kCancelled);
    for (const auto& [job, as] : moves.ended())
      if (wrong_ != Fault::kForgetsEnded || before.FindOut(job) != nullptr) end(job, as);
    // Through its bytes: no change makes such a state.
    std::string bytes;
    PutVarint64(&bytes, before.floor());
    PutVarint64(&bytes, out.size());
    for (const auto& [job, move] : out) {
      PutVarint64(&bytes, job);
      EncodeMoveOut(move, &bytes);
    }
    PutVarint64(&bytes, in.size());
    for (const auto& [job, move] : in) {
      PutVarint64(&bytes, job);
      EncodeMoveIn(move, &bytes);
    }
    PutVarint64(&bytes, ended.size());
    for (const auto& [job, as] : ended) {
      PutVarint64(&bytes, job);
      bytes.push_back(static_cast<char>(as));
    }
    std::string_view from = bytes;
    if (!moves.Decode(&from)) broken_ = "no such state";
    const auto own = settlement->tablets.find(kTable);
    const size_t kept = own == settlement->tablets.end() ? 0 : own->second->list().size();
    const auto had = report.tablets.find(kTable);
    size_t owned = had == report.tablets.end() ? 0 : had->second->list().size();
    for (const auto& [job, move] : before.out()) owned -= move.given ? 1 : 0;
    settlement->changes = !(moves == before) || kept != owned;
  }

  void Open(Process* process, uint64_t number, Desk* desk, const TabletsByTable& unowned) {
    Director& director = DirectorOf(*process);
    for (const auto& [set, answer] : desk->answers) {
      const auto claimed = answer.tablets.find(kTable);
      if (set != 0)
        director.claims[set] = claimed == answer.tablets.end() ? Tablets::None() : claimed->second;
    }
    const auto its = desk->report->tablets.find(kTable);
    director.claims[number] = its == desk->report->tablets.end() ? Tablets::None() : its->second;
    Claims claims = ClaimsOf(*process);
    for (const auto& [id, tablets] : unowned)
      claims.at(kTable).sets.push_back({LostWith(number), tablets});
    MapChange change = PlanMap(TablesOf(*process).map, claims, {kTable});
    const uint64_t incarnation = desk->incarnation;
    const bool done = Write(process, [&](DirectorTables* tables, size_t at) {
      tables->incarnations[number] = incarnation;
      tables->sets_at = at;
      if (!change.empty()) tables->map.Apply(std::move(change));
    });
    if (!done) return;
    for (int key = 0; key < keys_; ++key)
      for (const auto& [id, tablets] : unowned) lost_keys_ += tablets->Owns(KeyOf(key)) ? 1 : 0;
    desk->report.reset();
    desk->answers.clear();
    desk->proof.reset();
  }

  // --- the set
  void TakeOrder(size_t at) {
    const Order order = orders_[at];
    orders_.erase(orders_.begin() + static_cast<std::ptrdiff_t>(at));
    Set& set = SetOf(order.set);
    if (!IsUp(set) || set.incarnation != order.incarnation || IsThere(set)) return;
    Process& process = *set.leader;
    if (order.catalog > 0) {
      if (process.head.catalog < order.catalog) TakeSchema(&set);
      return;
    }
    State next = process.head;
    if (order.bytes.empty()) {
      next.opened_as = order.incarnation;
      for (const auto& [job, move] : process.head.moves.out())
        if (!move.given) (void)next.moves.Cancel(job);
      NoteReturned(next);
      ++opened_;
      for (int key = 0; key < keys_; ++key) kept_ += next.owned->Owns(KeyOf(key)) ? 1 : 0;
    } else {
      SettlementOrder told;
      if (!DecodeSettlement(order.bytes, &told)) {
        broken_ = "a settlement that cannot be read";
        return;
      }
      if (told.of != HashOf(ReportedOf(set.number, process.head))) return;
      const auto owned = told.settlement.tablets.find(kTable);
      next.owned = owned == told.settlement.tablets.end() ? Tablets::None() : owned->second;
      next.moves = told.settlement.state.moves;
      CheckAside(process.head, next, told.settlement);
      ++settled_;
    }
    next.log.push_back({});
    Append(&process, std::move(next));
  }
  // What it gives up is set aside, and that alone.
  void CheckAside(const State& before, const State& after, const Settlement& settlement) {
    for (int number = 0; number < keys_; ++number) {
      const std::string key = KeyOf(number);
      const bool is_aside =
          std::any_of(settlement.aside.begin(), settlement.aside.end(),
                      [&key](const Settlement::Aside& aside) { return aside.range.Contains(key); });
      const bool is_left = before.owned->Owns(key) && !after.owned->Owns(key);
      aside_ += is_aside ? 1 : 0;
      if (is_left && !is_aside) broken_ = key + " is given up, and not set aside";
      if (is_aside && after.owned->Owns(key)) broken_ = key + " is set aside, and its own";
    }
  }
  void SendReturnReport(const Set& set) {
    if (set.number == 0 || !IsUp(set) || IsThere(set)) return;
    return_reports_[set.number].push_back(
        {SomeDirector()->id, set.incarnation, ReportedOf(set.number, set.committed)});
  }
  void TakeReturnReport(uint64_t number) {
    std::deque<ReturnReport>& reports = return_reports_[number];
    if (reports.empty()) return;
    ReturnReport report = std::move(reports.front());
    reports.pop_front();
    Process* const process = FindProcess(report.process);
    if (process == nullptr) return;
    // The directory says it, once that is committed, and for good.
    const bool is_said =
        report.incarnation == KnownAs(*process, number) &&
        (process->committed >= TablesOf(*process).sets_at || wrong_ == Fault::kOpenUncommitted);
    if (is_said) orders_.push_back({number, report.incarnation});
    if (report.incarnation <= KnownAs(*process, number)) return;
    Desk& desk = desks_[process->id][number];
    if (report.incarnation < desk.incarnation) return;
    if (report.incarnation > desk.incarnation) desk = {};
    if (desk.report && HashOf(*desk.report) != HashOf(report.report)) desk.answers.clear();
    desk.incarnation = report.incarnation;
    desk.report = std::make_shared<const ReportedState>(std::move(report.report));
  }

  void NoteReported() {
    for (const Set& set : sets_)
      if (IsThere(set) && Draw(300) == 0)
        reported_[set.number] = ReportedOf(set.number, set.committed);
  }
  // Just when something is about to become another set's because of it; what it has said comes
  // late.
  void LoseGiver() {
    for (const Message& message : messages_) {
      const bool owns = message.step.kind == MoveStep::Kind::kOwn && !IsLost(message.step.from);
      Set& giver = SetOf(owns ? message.step.from : 0);
      if (giver.number == 0 || !IsThere(giver)) continue;
      for (Message& each : messages_) {
        if (each.step.kind != MoveStep::Kind::kOwn || each.step.from != giver.number) continue;
        Message late = each;
        late.ask = 0;
        copies_.push_back(std::move(late));
        each.ask = UINT64_MAX;
      }
      if (Chance(70))
        std::erase_if(messages_, [](const Message& each) { return each.ask == UINT64_MAX; });
      LoseSet(&giver);
      return;
    }
  }
  // Sometimes it is who leads no more that answers.
  void AnswerFromDeposed() {
    for (size_t i = 0; i < messages_.size(); ++i) {
      const Message asked = messages_[i];
      const auto& deposed = SetOf(asked.to).deposed;
      if (asked.step.kind != MoveStep::Kind::kOwned || deposed.empty()) continue;
      messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(i));
      TakeDirected(asked, AnswerOf(*deposed[Draw(deposed.size())], asked.step));
      return;
    }
  }

  void StepReturns() override {
    std::erase_if(desks_, [this](const auto& desk) { return FindProcess(desk.first) == nullptr; });
    NoteReported();
    if (wrong_ == Fault::kDeposedAnswers) AnswerFromDeposed();
    Set& set = sets_[1 + Draw(sets_.size() - 1)];
    const uint64_t choice = Draw(100);
    if (choice < 8) {
      if (!IsUp(set) && Chance(25)) ComeBack(&set);
    } else if (choice < 14) {
      if (IsUp(set) && !IsThere(set)) CommitSome(&set, Chance(50));
    } else if (choice < 20) {
      SendReturnReport(set);
    } else if (choice < 28) {
      TakeReturnReport(set.number);
    } else if (choice < 40) {
      StepReturn(SomeDirector(), set.number);
    } else if (choice < 46) {
      if (!orders_.empty()) TakeOrder(Draw(orders_.size()));
    } else if (choice < 48) {
      if (IsUp(set) && !IsThere(set) && Chance(30)) Kill(&set);
    } else if (choice < 50) {
      gives_up_ = Chance(3);
      // Once more, before it has been settled or behind that.
      if (IsUp(set) && Chance(4) && again_-- > 0) LoseSet(&set);
    } else if (choice < 54) {
      if (again_ > 0 && Chance(20)) LoseGiver();
    }
  }
  void EndReturns() override {
    gives_up_ = false;
    for (Set& set : sets_) {
      if (!IsUp(set) || IsThere(set)) continue;
      if (TablesOf(*sets_[0].leader).removed.contains(set.number)) continue;
      CommitSome(&set, true);
      SendReturnReport(set);
      while (!return_reports_[set.number].empty()) TakeReturnReport(set.number);
      StepReturn(sets_[0].leader.get(), set.number);
      while (!orders_.empty()) TakeOrder(Draw(orders_.size()));
      CommitSome(&set, true);
    }
  }

  const Fault wrong_;
  std::map<uint64_t, std::deque<State>> history_;
  std::map<uint64_t, std::map<uint64_t, Desk>> desks_;  // by process and set
  std::map<uint64_t, std::deque<ReturnReport>> return_reports_;
  std::map<uint64_t, ReportedState> reported_;  // that anybody may have heard
  std::vector<Order> orders_;
  bool gives_up_{false};
  int again_{2};
  uint64_t opened_{0};
  uint64_t settled_{0};
  uint64_t kept_{0};
  uint64_t aside_{0};
  uint64_t lost_keys_{0};
};

}  // namespace cellar::return_simulation
