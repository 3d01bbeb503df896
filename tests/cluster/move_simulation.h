// Some sets that give tablets of one table to each other, with nodes that die or are deposed and
// go on for a while, calls that come late, twice or never, changes of the schema and clients'
// writes, all by one seed. What sets do is the real thing (cluster/move_protocol.h, engine/state/
// tablet_moves.h); their logs are lists of states. Who breaks a rule on purpose is a Fault, which
// the checks must find. Sets that are lost for good are in lost_simulation.h, which goes on from
// here.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "cluster/move_protocol.h"
#include "engine/state/tablet_moves.h"

namespace cellar::move_simulation {

enum class Fault : uint8_t {
  kNone,
  kAnswerUncommitted,  // an answer does not wait for what it tells of
  kForgetEnded,        // no floor: the number of a job that has ended may begin again
  kNoTail,             // what has changed since the copy is not sent
  kNoLastTail,         // what has changed since the tail was looked at last
  kCopyUncommitted,    // a copy holds what is not committed
  kOwnEarly,           // the recipient is told to own what has not been given
  kTakeBack,           // the donor takes back what it has given
  kOneTerm,            // attempts of two leaders have the same numbers
  kNoPurge,            // what another attempt has left is not deleted
  kSchemaAnyTime,      // a change of the schema is taken while a tablet is between two sets
  kSchemaStays,        // and does not end jobs that have not come so far
  kRestartUnbinds,     // or is taken once another attempt has begun
};
inline constexpr Fault kFaults[] = {
    Fault::kAnswerUncommitted, Fault::kForgetEnded,   Fault::kNoTail,      Fault::kNoLastTail,
    Fault::kCopyUncommitted,   Fault::kOwnEarly,      Fault::kTakeBack,    Fault::kOneTerm,
    Fault::kNoPurge,           Fault::kSchemaAnyTime, Fault::kSchemaStays, Fault::kRestartUnbinds};

inline constexpr uint64_t kTable{1};
inline constexpr int kSets{3};  // each begins with two keys: [k0, k2) [k2, k4) [k4, end)

struct Row {
  uint64_t write{0};  // number of the write
  uint64_t generation{0};
  friend bool operator==(const Row&, const Row&) = default;
};

// A client's write, as a set has logged it; or a record of the set's own.
struct Record {
  std::string key;  // empty: none of a row
  Row row;
  bool deletes{false};
};

// What set 0 has in its own tables of the cluster (lost_simulation.h).
struct DirectorTables;

// Of a set, as its log has made it.
struct State {
  TabletMoves moves;
  Tablets::Pointer owned{Tablets::None()};
  uint64_t catalog{1};
  uint64_t generation{1};  // of the schema: TRUNCATE
  std::map<std::string, Row> rows;
  std::vector<Record> log;  // numbered from 1
  std::shared_ptr<const DirectorTables> tables;
  uint64_t opened_as{0};  // the incarnation as which it serves (return_simulation.h)
  Lsn last() const { return {1, log.size()}; }
};

inline std::string KeyOf(int number) { return "k" + std::to_string(number); }

class Simulation {
 public:
  Simulation(uint64_t seed, Fault fault, int sets = kSets)
      : rng_(seed), fault_(fault), keys_(2 * sets), sets_(static_cast<size_t>(sets)) {
    for (int set = 0; set < sets; ++set) {
      Set& one = sets_[static_cast<size_t>(set)];
      one.number = static_cast<uint64_t>(set);
      std::vector<Tablet> tablets;
      const int first = 2 * set;
      tablets.push_back({set == 0 ? "" : KeyOf(first), set == sets - 1 ? "" : KeyOf(first + 2), 1});
      one.committed.owned = Tablets::Make(std::move(tablets));
      Elect(&one);
    }
  }

  virtual ~Simulation() = default;
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // Empty, or what is wrong.
  std::string Run(int steps);
  uint64_t moves_done() const { return moves_done_; }

 protected:
  class Party;
  class Source;
  struct Process;

  struct Set {
    uint64_t number{0};
    uint32_t term{0};
    State committed;
    std::unique_ptr<Process> leader;  // null: the set is lost
    uint64_t incarnation{0};          // one more each time that it comes back
    std::vector<std::unique_ptr<Process>> deposed;
  };
  // A step on its way; who asked waits for an answer unless it is gone.
  struct Message {
    uint64_t to{0};
    MoveStep step;
    uint64_t process{0};  // that asked; 0: the director, which is never gone
    uint64_t job{0};
    uint64_t ask{0};
    bool directs{false};  // asked by the director
  };
  struct Answer {
    uint64_t from_process{0};  // whose records it waits for
    uint64_t set{0};
    size_t position{0};  // of its log
    MoveAnswer answer;
    Message asked;
  };
  struct Job {
    uint64_t number{0};
    MoveOut out;
    uint64_t from{0};
    bool cancelling{false};
    bool ended{false};
    bool wants_cancel{false};
    uint64_t ask{0};  // 0: nothing is asked
  };

  uint64_t Draw(uint64_t below) {
    return std::uniform_int_distribution<uint64_t>(0, below - 1)(rng_);
  }
  bool Chance(int percent) { return Draw(100) < static_cast<uint64_t>(percent); }
  Set& SetOf(uint64_t number) { return sets_[number]; }

  void Elect(Set* set);
  void Append(Process* process, State state);
  void CommitSome(Set* set, bool all);
  void Kill(Set* set);
  void Depose(Set* set);
  Process* FindProcess(uint64_t id);
  void ClientWrites();
  void ChangeSchema();
  void TakeSchema(Set* set);
  void OrderJob();
  void StepDirector(Job* job);
  void StepDonors(Process* process);
  void Deliver(size_t at, bool keep);
  void DeliverAnswer(size_t at);
  virtual void TakeDirected(const Message& asked, const MoveAnswer& answer);
  // A set is about to own what has come; `next` is what it will be then.
  virtual void OnOwn(const MoveIn&, const State&) {}
  static bool IsUp(const Set& set) { return set.leader != nullptr; }
  // And serves.
  static bool IsThere(const Set& set);
  virtual MoveAnswer AnswerOf(Process& process, const MoveStep& step);
  virtual void OnCommitted(const Set&) {}
  void LoseAnswers();
  // Mostly one from which something moves.
  Set* BusySet();
  void Send(Message message) { messages_.push_back(std::move(message)); }
  std::string Check();
  std::string CheckEnd();
  std::string Describe() const;
  bool Rests();
  uint64_t Floor() const;

  std::mt19937_64 rng_;
  const Fault fault_;
  const int keys_;
  std::vector<Set> sets_;
  uint64_t process_last_{0};
  uint64_t ask_last_{0};
  std::vector<Message> messages_;
  std::vector<Message> copies_;  // that may come once more
  std::vector<Answer> answers_;
  std::map<uint64_t, Job> jobs_;
  uint64_t job_next_{1};
  uint64_t catalog_{1};  // that set 0 would have: all that were made
  uint64_t write_last_{0};
  // Of each key: the newest write that was acknowledged, and those behind it that may be there.
  struct Known {
    std::optional<Row> row;  // nothing: there is none
    std::vector<std::optional<Row>> perhaps;
  };
  struct Unacknowledged {
    uint64_t process{0};
    uint64_t set{0};
    size_t position{0};
    std::string key;
    std::optional<Row> row;
  };
  std::map<std::string, Known> known_;
  std::vector<Unacknowledged> unacknowledged_;
  uint64_t moves_done_{0};
  uint64_t reclaims_{0};
  uint64_t reclaim_raises_{2};  // an epoch, by so much
  bool counts_attempts_{true};
  std::string broken_;
};

// --- a process that leads a set, or thinks so

struct Simulation::Process {
  explicit Process(Simulation& of) : simulation(of) {}
  ~Process() {
    donors.clear();
    party.reset();
  }
  Simulation& simulation;
  uint64_t id{0};
  Set* set{nullptr};
  uint32_t term{0};
  bool is_deposed{false};
  State head;
  std::deque<State> pending;  // behind what is committed
  size_t committed{0};        // records, as it knows
  std::unique_ptr<Party> party;
  struct Donor {
    std::unique_ptr<MoveDonor> donor;
    uint64_t ask{0};
  };
  std::map<uint64_t, Donor> donors;

  // What is committed, as far as it knows.
  const State& settled() const { return pending.empty() ? head : settled_state; }
  State settled_state;
};

class Simulation::Source final : public MoveSource {
 public:
  Source(Process& process, const Tablet& tablet, const LogMark* from)
      : process_(process), tablet_(tablet) {
    if (from == nullptr) {
      mark_ = process.head.log.size();
      for (const auto& [key, row] : process.head.rows)
        if (tablet.Contains(key)) copy_.emplace_back(key, row);
    } else {
      mark_ = from->lsn.seq;
      copied_ = true;
    }
    through_ = mark_;
  }
  Got Copy(std::string* ops) override {
    if (copied_) return Got::kAll;
    if (process_.committed < mark_ && process_.simulation.fault_ != Fault::kCopyUncommitted)
      return Got::kWait;
    for (int i = 0; i < 2 && next_ < copy_.size(); ++i, ++next_)
      Put(copy_[next_].first, copy_[next_].second, false, ops);
    copied_ = next_ == copy_.size();
    return copied_ ? Got::kAll : Got::kMore;
  }
  Got Tail(std::string* ops, LogMark* through) override {
    const std::vector<Record>& log = process_.head.log;
    const Fault fault = process_.simulation.fault_;
    size_t read = 0;
    while (through_ < process_.committed && read < 3) {
      const Record& record = log[through_++];
      ++read;
      const bool given =
          fault == Fault::kNoLastTail && process_.head.moves.OutOf(kTable, tablet_) != 0 &&
          process_.head.moves.FindOut(process_.head.moves.OutOf(kTable, tablet_))->given;
      if (fault == Fault::kNoTail || given) continue;
      if (!record.key.empty() && tablet_.Contains(record.key))
        Put(record.key, record.row, record.deletes, ops);
    }
    *through = {{1, through_}, static_cast<int64_t>(through_)};
    return through_ == process_.committed ? Got::kAll : Got::kMore;
  }
  uint64_t bytes_behind() const override {
    // Sometimes there is too much to give the tablet away.
    return process_.simulation.rng_() % 4 == 0 ? UINT64_MAX : 0;
  }
  uint64_t Refresh() override { return 0; }

 private:
  static void Put(const std::string& key, const Row& row, bool deletes, std::string* ops) {
    PutLengthPrefixed(ops, key);
    PutVarint64(ops, row.write);
    PutVarint64(ops, row.generation);
    PutVarint64(ops, deletes ? 1 : 0);
  }
  Process& process_;
  const Tablet tablet_;
  std::vector<std::pair<std::string, Row>> copy_;
  size_t next_{0};
  bool copied_{false};
  size_t mark_{0};
  size_t through_{0};
};

class Simulation::Party final : public MoveParty {
 public:
  explicit Party(Process& process) : process_(process) {}
  const TabletMoves& moves() const override { return process_.head.moves; }
  uint64_t cluster_id() const override { return 1; }
  uint64_t set() const override { return process_.set->number; }
  uint64_t catalog() const override { return process_.head.catalog; }
  uint32_t term() const override {
    return process_.simulation.fault_ == Fault::kOneTerm ? 1 : process_.term;
  }
  uint64_t CountAttempt(uint64_t job) override {
    return process_.simulation.counts_attempts_ ? ++attempts_[job] : 1;
  }
  bool HasTable(uint64_t table_id) const override { return table_id == kTable; }
  bool Owns(uint64_t, const Tablet& tablet) const override {
    const Tablet* const owned = process_.head.owned->Find(tablet.begin);
    return owned != nullptr && *owned == tablet;
  }
  bool OwnsPart(uint64_t, const Tablet& tablet) const override {
    return WithTablet(*process_.head.owned, tablet) == nullptr;
  }
  std::string WhyKept(const MoveOut&) const override { return {}; }
  std::string WhyNoRoom() const override { return Draw(10) == 0 ? "full" : ""; }
  bool RowsAreHeld(uint64_t) const override { return Draw(5) == 0; }
  LogMark Mark() const override {
    return {process_.head.last(), static_cast<int64_t>(process_.head.log.size())};
  }
  int64_t stamp() const override { return 1; }
  uint64_t record_next(uint64_t) const override { return 1; }
  std::string IndexFailures(uint64_t) const override { return {}; }
  Status Begin(uint64_t job, const MoveOut& move) override {
    return Do([&](State* state) { return state->moves.Begin(job, move); });
  }
  Status Give(uint64_t job) override {
    return Do([&](State* state) {
      const MoveOut* const move = state->moves.FindOut(job);
      if (move == nullptr || !state->moves.Give(job)) return false;
      state->owned = WithoutTablet(*state->owned, move->tablet);
      return state->owned != nullptr;
    });
  }
  Status Done(uint64_t job) override {
    ++process_.simulation.moves_done_;
    return Do([&](State* state) { return state->moves.Done(job); });
  }
  Status Cancel(uint64_t job) override {
    return Do([&](State* state) { return state->moves.Cancel(job); });
  }
  Status Reclaim(uint64_t job) override {
    return Do([&](State* state) {
      const MoveOut* const found = state->moves.FindOut(job);
      if (found == nullptr) return false;
      Tablet tablet = found->tablet;
      tablet.epoch += process_.simulation.reclaim_raises_;
      if (!state->moves.Reclaim(job)) return false;
      state->owned = WithTablet(*state->owned, tablet);
      if (state->owned == nullptr) return false;
      ++process_.simulation.reclaims_;
      return true;
    });
  }
  Status Raise(uint64_t floor) override {
    return Do([&](State* state) {
      if (process_.simulation.fault_ != Fault::kForgetEnded) return state->moves.Raise(floor);
      // Forgotten, and no floor.
      TabletMoves fresh;
      for (const auto& [job, move] : state->moves.out()) {
        MoveOut begun = move;
        begun.given = false;
        (void)fresh.Begin(job, begun);
        if (move.given) (void)fresh.Give(job);
      }
      for (const auto& [job, move] : state->moves.in()) {
        MoveIn staged = move;
        staged.clear = false;
        staged.parts = 0;
        staged.tail = {};
        staged.binds = false;
        (void)fresh.Stage(job, staged);
        if (move.clear) (void)fresh.Clear(job, move.attempt);
        for (uint64_t part = 1; part <= move.parts; ++part)
          (void)fresh.Fill(job, move.attempt, part, part == move.parts ? move.tail : LogMark{});
      }
      for (const auto& [job, end] : state->moves.ended())
        if (job > floor) (void)fresh.Cancel(job);
      state->moves = fresh;
      return true;
    });
  }
  Status Stage(uint64_t job, const MoveIn& move, std::string_view) override {
    return Do([&](State* state) { return state->moves.Stage(job, move); });
  }
  Status Fill(uint64_t job, const MovePart& part, std::string_view ops) override {
    return Do([&](State* state) {
      const bool is_next = part.part == 0
                               ? state->moves.Clear(job, part.attempt)
                               : state->moves.Fill(job, part.attempt, part.part, part.tail);
      if (!is_next) return false;
      while (!ops.empty()) {
        std::string_view key;
        Row row;
        uint64_t deletes = 0;
        if (!GetLengthPrefixed(&ops, &key) || !GetVarint64(&ops, &row.write) ||
            !GetVarint64(&ops, &row.generation) || !GetVarint64(&ops, &deletes))
          return false;
        if (deletes != 0)
          state->rows.erase(std::string(key));
        else
          state->rows[std::string(key)] = row;
      }
      return true;
    });
  }
  Status Own(uint64_t job, const MovePart& part, int64_t, uint64_t) override {
    return Do([&](State* state) {
      const MoveIn* const found = state->moves.FindIn(job);
      if (found == nullptr) return false;
      const MoveIn move = *found;
      if (!state->moves.Own(job, part.attempt, part.part)) return false;
      state->owned = WithTablet(*state->owned, move.tablet);
      if (state->owned == nullptr) return false;
      process_.simulation.OnOwn(move, *state);
      return true;
    });
  }
  Result<bool> PurgeStage(const MoveIn& move) override {
    if (process_.simulation.fault_ == Fault::kNoPurge) return false;
    for (const auto& [key, row] : process_.head.rows) {
      if (!move.tablet.Contains(key)) continue;
      const std::string gone = key;
      (void)Do([&](State* state) { return state->rows.erase(gone) > 0; });
      return true;
    }
    return false;
  }
  std::unique_ptr<MoveSource> Open(const MoveOut& move, const LogMark* from) override {
    if (from != nullptr && (Draw(8) == 0 || from->lsn.seq > process_.committed)) return nullptr;
    return std::make_unique<Source>(process_, move.tablet, from);
  }

  template <typename Change>
  Status Do(Change change) {
    if (Draw(30) == 0) return Status::Error(ErrorCode::kMisconf, "no room");
    State next = process_.head;
    if (!change(&next)) return Status::Error(ErrorCode::kCorruption, "it cannot be");
    next.log.push_back({});
    process_.simulation.Append(&process_, std::move(next));
    return Status::Ok();
  }

 private:
  uint64_t Draw(uint64_t below) const { return process_.simulation.Draw(below); }
  Process& process_;
  std::map<uint64_t, uint64_t> attempts_;
};

inline bool Simulation::IsThere(const Set& set) {
  return IsUp(set) && set.leader->head.opened_as == set.incarnation;
}

inline void Simulation::Elect(Set* set) {
  set->leader = std::make_unique<Process>(*this);
  Process& process = *set->leader;
  process.id = ++process_last_;
  process.set = set;
  process.term = ++set->term;
  process.head = set->committed;
  process.settled_state = set->committed;
  process.committed = set->committed.log.size();
  process.party = std::make_unique<Party>(process);
}

inline void Simulation::Append(Process* process, State state) {
  process->head = state;
  process->pending.push_back(std::move(state));
}

inline Simulation::Set* Simulation::BusySet() {
  Set* set = &sets_[Draw(sets_.size())];
  for (int i = 0; i < 4 && set->leader->head.moves.out().empty(); ++i)
    set = &sets_[Draw(sets_.size())];
  return set;
}

inline Simulation::Process* Simulation::FindProcess(uint64_t id) {
  for (Set& set : sets_) {
    if (IsUp(set) && set.leader->id == id) return set.leader.get();
    for (auto& process : set.deposed)
      if (process->id == id) return process.get();
  }
  return nullptr;
}

inline void Simulation::CommitSome(Set* set, bool all) {
  Process& process = *set->leader;
  uint64_t count = all ? process.pending.size() : Draw(process.pending.size() + 1);
  for (; count > 0; --count) {
    set->committed = process.pending.front();
    process.pending.pop_front();
    process.committed = set->committed.log.size();
    OnCommitted(*set);
  }
  for (size_t i = 0; i < unacknowledged_.size();) {
    const Unacknowledged& write = unacknowledged_[i];
    if (write.process == process.id && write.position <= process.committed) {
      Known& known = known_[write.key];
      known.row = write.row;
      // Those before it are over, one way or the other.
      const auto at = std::find(known.perhaps.begin(), known.perhaps.end(), write.row);
      if (at != known.perhaps.end()) known.perhaps.erase(known.perhaps.begin(), at + 1);
      unacknowledged_.erase(unacknowledged_.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
}

// What was not committed is lost, or, of one that was deposed, taken over as far as anybody has it.
inline void Simulation::Kill(Set* set) {
  if (Chance(50)) CommitSome(set, false);
  set->leader->donors.clear();
  const uint64_t id = set->leader->id;
  Elect(set);
  std::erase_if(unacknowledged_, [id](const auto& write) { return write.process == id; });
  LoseAnswers();
}

inline void Simulation::Depose(Set* set) {
  if (Chance(50)) CommitSome(set, false);
  set->leader->is_deposed = true;
  set->deposed.push_back(std::move(set->leader));
  if (set->deposed.size() > 2) set->deposed.erase(set->deposed.begin());
  const uint64_t id = set->deposed.back()->id;
  Elect(set);
  std::erase_if(unacknowledged_, [id](const auto& write) { return write.process == id; });
  LoseAnswers();
}

// Who is gone answers no more, and gets no answer.
inline void Simulation::LoseAnswers() {
  for (size_t i = 0; i < answers_.size();) {
    Process* const from = FindProcess(answers_[i].from_process);
    const bool is_said = from == nullptr ? !IsThere(SetOf(answers_[i].set)) : !from->is_deposed;
    if (is_said) {
      ++i;
      continue;
    }
    const Message asked = answers_[i].asked;
    answers_.erase(answers_.begin() + static_cast<std::ptrdiff_t>(i));
    // It is asked anew.
    if (asked.ask != 0) Send(asked);
  }
}

inline void Simulation::ClientWrites() {
  const std::string key = KeyOf(static_cast<int>(Draw(static_cast<uint64_t>(keys_))));
  for (Set& set : sets_) {
    if (!IsThere(set)) continue;
    Process& process = *set.leader;
    if (!process.head.owned->Owns(key)) continue;
    const Row row{++write_last_, process.head.generation};
    const bool deletes = Chance(25);
    State next = process.head;
    if (deletes)
      next.rows.erase(key);
    else
      next.rows[key] = row;
    next.log.push_back({key, row, deletes});
    Append(&process, std::move(next));
    const std::optional<Row> there = deletes ? std::nullopt : std::optional(row);
    known_[key].perhaps.push_back(there);
    unacknowledged_.push_back({process.id, set.number, process.head.log.size(), key, there});
    return;
  }
}

// TRUNCATE, which every set takes in its turn. Clients' knowledge of rows before it is void.
inline void Simulation::ChangeSchema() { ++catalog_; }

inline void Simulation::TakeSchema(Set* set) {
  Process& process = *set->leader;
  if (process.head.catalog >= catalog_) return;
  // Set 0 is first.
  if (set->number != 0 && sets_[0].committed.catalog <= process.head.catalog) return;
  State next = process.head;
  std::vector<uint64_t> ended;
  bool busy = false;
  for (const auto& [job, move] : next.moves.out()) {
    busy = busy || move.given;
    ended.push_back(job);
  }
  for (const auto& [job, move] : next.moves.in()) {
    busy = busy || (fault_ == Fault::kRestartUnbinds ? move.complete() : move.binds);
    ended.push_back(job);
  }
  if (busy && fault_ != Fault::kSchemaAnyTime) return;
  if (fault_ != Fault::kSchemaStays)
    for (const uint64_t job : ended) (void)next.moves.Cancel(job);
  ++next.catalog;
  ++next.generation;
  next.rows.clear();
  next.log.push_back({});
  Append(&process, std::move(next));
}

inline uint64_t Simulation::Floor() const {
  for (const auto& [number, job] : jobs_)
    if (!job.ended) return number - 1;
  return job_next_ - 1;
}

// From a map that may be old.
inline void Simulation::OrderJob() {
  const Set& from = sets_[Draw(sets_.size())];
  const State& seen = Chance(80) ? from.committed : sets_[Draw(sets_.size())].committed;
  if (seen.owned->list().empty()) return;
  Job job;
  job.number = job_next_++;
  job.from = from.number;
  job.out.table_id = kTable;
  job.out.tablet = seen.owned->list()[Draw(seen.owned->list().size())];
  job.out.to = Draw(sets_.size());
  jobs_.emplace(job.number, job);
}

inline void Simulation::StepDirector(Job* job) {
  if (job->ended || job->ask != 0) return;
  Message message;
  message.to = job->cancelling ? job->out.to : job->from;
  message.step.kind = job->cancelling     ? MoveStep::Kind::kDrop
                      : job->wants_cancel ? MoveStep::Kind::kCancel
                                          : MoveStep::Kind::kJob;
  message.step.cluster_id = 1;
  message.step.job = job->number;
  message.step.floor = Floor();
  message.step.out = job->out;
  message.job = job->number;
  message.ask = job->ask = ++ask_last_;
  message.directs = true;
  Send(std::move(message));
}

inline void Simulation::StepDonors(Process* process) {
  for (const auto& [job, move] : process->head.moves.out()) {
    Process::Donor& donor = process->donors[job];
    if (donor.donor == nullptr) donor.donor = std::make_unique<MoveDonor>(*process->party, job);
  }
  for (auto& [job, donor] : process->donors) {
    if (donor.ask != 0 || donor.donor->ended()) continue;
    const MoveOut* const move = process->head.moves.FindOut(job);
    const uint64_t to = move->to;
    std::optional<MoveStep> step = donor.donor->Next();
    if (!step) continue;
    if (fault_ == Fault::kOwnEarly && step->kind == MoveStep::Kind::kPart &&
        step->part.tail.lsn != Lsn{}) {
      MoveStep early = *step;
      early.kind = MoveStep::Kind::kOwn;
      copies_.push_back({to, early, 0, 0, 0, false});
    }
    Message message{to, *std::move(step), process->id, job, ++ask_last_, false};
    donor.ask = message.ask;
    Send(std::move(message));
  }
}

inline MoveAnswer Simulation::AnswerOf(Process& process, const MoveStep& step) {
  return AnswerMoveStep(*process.party, step);
}

inline void Simulation::Deliver(size_t at, bool keep) {
  Message message = messages_[at];
  messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(at));
  if (keep && copies_.size() < 40) {
    Message copy = message;
    copy.ask = 0;
    copies_.push_back(std::move(copy));
  }
  Process& process = *SetOf(message.to).leader;
  const MoveAnswer answer = AnswerOf(process, message.step);
  answers_.push_back({process.id, message.to, process.head.log.size(), answer, std::move(message)});
}

inline void Simulation::DeliverAnswer(size_t at) {
  const Answer answer = answers_[at];
  const Process* const from = SetOf(answer.set).leader.get();
  // Of one that is gone with its set only what was committed is on its way.
  const bool waits =
      from != nullptr && from->id == answer.from_process && from->committed < answer.position;
  if (waits && fault_ != Fault::kAnswerUncommitted) return;
  answers_.erase(answers_.begin() + static_cast<std::ptrdiff_t>(at));
  if (answer.asked.ask == 0) return;
  // Through its bytes, as over a link.
  std::string bytes;
  EncodeMoveAnswer(answer.answer, &bytes);
  MoveAnswer read;
  if (!DecodeMoveAnswer(bytes, &read)) {
    broken_ = "an answer that cannot be read";
    return;
  }
  if (answer.asked.directs) return TakeDirected(answer.asked, read);
  Process* const asker = FindProcess(answer.asked.process);
  if (asker == nullptr) return;
  const auto donor = asker->donors.find(answer.asked.job);
  if (donor == asker->donors.end() || donor->second.ask != answer.asked.ask) return;
  donor->second.ask = 0;
  if (Chance(5))
    donor->second.donor->OnLost();
  else
    donor->second.donor->OnAnswer(read);
}

inline void Simulation::TakeDirected(const Message& asked, const MoveAnswer& answer) {
  Job& job = jobs_.at(asked.job);
  if (job.ask != asked.ask) return;
  job.ask = 0;
  if (answer.code == MoveAnswer::Code::kOk && answer.given) job.wants_cancel = false;
  if (answer.code != MoveAnswer::Code::kEnded) return;
  if (answer.end == MoveEnd::kMoved || job.cancelling)
    job.ended = true;
  else
    job.cancelling = true;
}

inline std::string Simulation::Check() {
  for (int number = 0; number < keys_; ++number) {
    const std::string key = KeyOf(number);
    const Process* owner = nullptr;
    for (const Set& set : sets_) {
      if (!set.leader->head.owned->Owns(key)) continue;
      if (owner != nullptr) return key + " has two owners";
      owner = set.leader.get();
    }
    if (owner == nullptr) {
      const bool given = std::any_of(sets_.begin(), sets_.end(), [&](const Set& set) {
        const auto& out = set.leader->head.moves.out();
        return std::any_of(out.begin(), out.end(), [&](const auto& move) {
          return move.second.given && move.second.tablet.Contains(key);
        });
      });
      if (!given) return key + " has no owner";
      continue;
    }
    const auto found = owner->head.rows.find(key);
    const std::optional<Row> row =
        found == owner->head.rows.end() ? std::nullopt : std::optional(found->second);
    if (row && row->generation != owner->head.generation)
      return key + " is of before a change of the schema";
    const Known& known = known_[key];
    const bool fits = row == known.row || std::find(known.perhaps.begin(), known.perhaps.end(),
                                                    row) != known.perhaps.end();
    // A change of the schema that the owner has taken has emptied it.
    const bool emptied = !row && (!known.row || known.row->generation < owner->head.generation);
    if (!fits && !emptied) {
      return key + " is write " + std::to_string(row ? row->write : 0) + " at set " +
             std::to_string(owner->set->number) + ", acknowledged was " +
             std::to_string(known.row ? known.row->write : 0);
    }
  }
  return broken_;
}

inline bool Simulation::Rests() {
  return std::all_of(jobs_.begin(), jobs_.end(),
                     [](const auto& job) { return job.second.ended; }) &&
         std::all_of(sets_.begin(), sets_.end(), [this](const Set& set) {
           return set.leader->head.moves.out().empty() && set.leader->head.moves.in().empty() &&
                  set.leader->pending.empty() && set.leader->head.catalog == catalog_;
         });
}

inline std::string Simulation::Run(int steps) {
  const int crashes = static_cast<int>(Draw(4));
  const bool slow = Chance(40);
  for (int step = 0; step < steps; ++step) {
    Set& set = sets_[Draw(sets_.size())];
    const uint64_t choice = Draw(100);
    if (choice < 20) {
      ClientWrites();
    } else if (choice < 40) {
      // Some disks are slow.
      if (!slow || Chance(15)) CommitSome(&set, false);
    } else if (choice < 58) {
      // Whoever does not know yet that he leads no more goes on.
      if (!set.deposed.empty() && Chance(40))
        StepDonors(set.deposed[Draw(set.deposed.size())].get());
      else
        StepDonors(set.leader.get());
    } else if (choice < 72) {
      if (!messages_.empty()) Deliver(Draw(messages_.size()), Chance(30));
    } else if (choice < 86) {
      if (!answers_.empty()) DeliverAnswer(Draw(answers_.size()));
    } else if (choice < 90) {
      if (!jobs_.empty()) {
        auto job = jobs_.begin();
        std::advance(job, static_cast<std::ptrdiff_t>(Draw(jobs_.size())));
        if (Chance(6)) job->second.wants_cancel = true;
        StepDirector(&job->second);
      }
    } else if (choice < 92) {
      if (jobs_.size() < 12 && Chance(40)) OrderJob();
    } else if (choice < 93) {
      if (Chance(20)) ChangeSchema();
    } else if (choice < 95) {
      TakeSchema(&set);
    } else if (choice < 97) {
      if (!copies_.empty()) {
        // Once more, and late.
        messages_.push_back(copies_[Draw(copies_.size())]);
      }
    } else if (choice < 98) {
      if (fault_ == Fault::kTakeBack && Chance(30)) {
        State next = set.leader->head;
        for (const auto& [job, move] : set.leader->head.moves.out()) {
          if (!move.given) continue;
          const Tablets::Pointer back = WithTablet(*next.owned, move.tablet);
          if (back == nullptr || !next.moves.Done(job)) continue;
          next.owned = back;
          next.log.push_back({});
          Append(set.leader.get(), std::move(next));
          break;
        }
      }
      if (Chance(20 * crashes)) Kill(BusySet());
    } else if (choice < 99) {
      if (Chance(25 * crashes)) Depose(BusySet());
    } else {
      messages_.erase(
          std::remove_if(messages_.begin(), messages_.end(),
                         [this](const Message& one) { return one.ask == 0 && Chance(50); }),
          messages_.end());
    }
    if (std::string wrong = Check(); !wrong.empty()) return wrong;
  }
  return CheckEnd();
}

// What goes on.
inline std::string Simulation::Describe() const {
  std::string text;
  for (const auto& [number, job] : jobs_) {
    if (!job.ended) {
      text += "job " + std::to_string(number) + " from " + std::to_string(job.from) + " to " +
              std::to_string(job.out.to) + (job.cancelling ? " cancelling; " : "; ");
    }
  }
  for (const Set& set : sets_) {
    const Process& process = *set.leader;
    text += "set " + std::to_string(set.number) + " catalog " +
            std::to_string(process.head.catalog) + " of " + std::to_string(catalog_) + " term " +
            std::to_string(process.term) + ":";
    for (const auto& [job, move] : process.head.moves.out()) {
      const auto donor = process.donors.find(job);
      text +=
          " out " + std::to_string(job) + (move.given ? " given" : "") + " asks " +
          (donor == process.donors.end() ? "nothing"
                                         : std::to_string(donor->second.ask) + " " +
                                               std::string(donor->second.donor->progress().state) +
                                               " " + donor->second.donor->progress().why);
    }
    for (const auto& [job, move] : process.head.moves.in()) {
      text += " in " + std::to_string(job) + " attempt " + std::to_string(move.attempt) +
              " parts " + std::to_string(move.parts) + (move.complete() ? " complete" : "");
    }
    text += "; ";
  }
  return text;
}

// Once nothing fails any more, all comes to an end.
inline std::string Simulation::CheckEnd() {
  for (Set& set : sets_) set.deposed.clear();
  copies_.clear();
  for (int round = 0; round < 4'000 && !Rests(); ++round) {
    for (Set& set : sets_) {
      TakeSchema(&set);
      CommitSome(&set, true);
      StepDonors(set.leader.get());
    }
    for (auto& [number, job] : jobs_) StepDirector(&job);
    while (!messages_.empty()) Deliver(Draw(messages_.size()), false);
    for (Set& set : sets_) CommitSome(&set, true);
    while (!answers_.empty()) {
      const size_t before = answers_.size();
      DeliverAnswer(Draw(answers_.size()));
      if (answers_.size() == before) break;
    }
    if (std::string wrong = Check(); !wrong.empty()) return wrong;
  }
  if (!Rests()) return "it does not come to an end: " + Describe();
  for (int number = 0; number < keys_; ++number) {
    const std::string key = KeyOf(number);
    const bool owned = std::any_of(sets_.begin(), sets_.end(), [&key](const Set& set) {
      return set.leader->head.owned->Owns(key);
    });
    if (!owned) return key + " is owned by nobody at the end";
  }
  return Check();
}

}  // namespace cellar::move_simulation
