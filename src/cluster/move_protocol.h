// How a tablet moves from one set to another, as the leaders of both go about it (SCALE-DESIGN 6).
//
//   MoveParty      what a set has logged, and logs: the store's, or that of a simulation
//   AnswerMoveStep what a set does with a step that it is told, and answers
//   MoveDonor      what the donor does next about one job: it asks the recipient what it has, copies
//                  the tablet as it was at one moment, sends what has changed since, gives it away
//                  once there is little of that, sends the rest, and lets the recipient own it
//
// Between Give and Own nobody owns the tablet: so short a time that those who want its rows wait.
// All that a donor's object knows may be lost: the next one asks the recipient and goes on from
// where the copy was complete, or begins another attempt. Attempts of a later term are larger, so
// that who leads no more cannot mix its parts with those of who does.
//
// Neither sockets nor clocks: tests/cluster/move_protocol_test.cc runs it in a simulation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cellar/status.h"
#include "cluster/move_steps.h"
#include "engine/state/tablet_moves.h"

namespace cellar {

// How a set refuses a tablet that it has no room for, behind its name: the job that ends so has it.
inline constexpr std::string_view kNoRoomWords{" has no room for it: "};

// A tablet's rows on the way out.
class MoveSource {
 public:
  virtual ~MoveSource() = default;
  enum class Got : uint8_t {
    kMore,
    kAll,   // Copy: there is no more of it. Tail: nothing has changed behind what was given
    kWait,  // not yet: what would be told is not committed
    kLost,  // the log has not all any more: another attempt is needed
  };
  // Appended to *ops: cells as they were when the source was opened.
  virtual Got Copy(std::string* ops) = 0;
  // Appended to *ops: what has changed since, or since the last call. *through: up to there.
  virtual Got Tail(std::string* ops, LogMark* through) = 0;
  // Of the log, that Tail has to go through, as of when it was looked at last. O(1)
  virtual uint64_t bytes_behind() const = 0;
  // The same as of now: looks at it.
  virtual uint64_t Refresh() { return bytes_behind(); }
};

class MoveParty {
 public:
  virtual ~MoveParty() = default;
  // --- what is so
  virtual const TabletMoves& moves() const = 0;
  virtual uint64_t cluster_id() const = 0;
  virtual uint64_t set() const = 0;
  virtual uint64_t catalog() const = 0;
  virtual uint32_t term() const = 0;
  // One more of the job: a number that this process has not had of it in this term. The recipient
  // may have forgotten those before (settlement.h), and parts of them may still come.
  virtual uint64_t CountAttempt(uint64_t job) = 0;
  virtual bool HasTable(uint64_t table_id) const = 0;
  // Exactly that tablet; a part of it.
  virtual bool Owns(uint64_t table_id, const Tablet& tablet) const = 0;
  virtual bool OwnsPart(uint64_t table_id, const Tablet& tablet) const = 0;
  // Why nothing can be given away now, or taken in; empty: it can. Of the latter others tell, too:
  // it names the set.
  virtual std::string WhyKept(const MoveOut& move) const = 0;
  virtual std::string WhyNoRoom() const = 0;
  // Changes of rows of the table are under way that go on over several turns.
  virtual bool RowsAreHeld(uint64_t table_id) const = 0;
  virtual LogMark Mark() const = 0;
  virtual int64_t stamp() const = 0;
  virtual uint64_t record_next(uint64_t table_id) const = 0;
  // Of the table's indexes (EncodeIndexFailures).
  virtual std::string IndexFailures(uint64_t table_id) const = 0;
  // --- what is done, as MoveChanges
  virtual Status Begin(uint64_t job, const MoveOut& move) = 0;
  virtual Status Give(uint64_t job) = 0;
  virtual Status Done(uint64_t job) = 0;
  virtual Status Cancel(uint64_t job) = 0;
  virtual Status Reclaim(uint64_t job) = 0;
  virtual Status Raise(uint64_t floor) = 0;
  // `failures`: of the table's indexes, which are this set's too from now on.
  virtual Status Stage(uint64_t job, const MoveIn& move, std::string_view failures) = 0;
  virtual Status Fill(uint64_t job, const MovePart& part, std::string_view ops) = 0;
  virtual Status Own(uint64_t job, const MovePart& part, int64_t stamp, uint64_t record_next) = 0;
  // Deletes something that another attempt has left. True: there was something.
  virtual Result<bool> PurgeStage(const MoveIn& move) = 0;
  // Of now; `from`: what has changed behind it alone. Null: the log has not all of that.
  virtual std::unique_ptr<MoveSource> Open(const MoveOut& move, const LogMark* from) = 0;
};

// REQUIRES: this node leads its set.
MoveAnswer AnswerMoveStep(MoveParty& party, const MoveStep& step);

class MoveDonor {
 public:
  // REQUIRES: the job is one of party.moves().out(). `party` outlives it.
  MoveDonor(MoveParty& party, uint64_t job) : party_(party), job_(job) {}

  struct Progress {
    std::string_view state{"ordered"};
    uint64_t bytes{0};  // sent
    std::string why{};  // it does not go on
  };
  // What it says to the recipient now; nothing: nothing now. The answer to it must come before it
  // is asked again.
  std::optional<MoveStep> Next();
  void OnAnswer(const MoveAnswer& answer);
  // Nobody can say what became of the step, or nobody was there.
  void OnLost() { phase_ = Phase::kAsk; }
  // It is not worth asking at once.
  bool waits() const { return waits_; }
  // The job is over here.
  bool ended() const { return party_.moves().FindOut(job_) == nullptr; }
  const Progress& progress() const { return progress_; }
  bool is_given() const;
  // Attempts that have come to nothing.
  int restarts() const { return restarts_; }
  const MoveSource* source() const { return source_.get(); }

 private:
  enum class Phase : uint8_t { kAsk, kCopy, kTail, kOwn };

  MoveStep StepOf(MoveStep::Kind kind) const;
  const MoveOut& move() const { return *party_.moves().FindOut(job_); }
  std::optional<MoveStep> NextPart();
  std::optional<MoveStep> PartStep();
  void TakeStage(const MoveIn& in);
  void Restart(uint64_t above);
  void Wait(std::string why);
  void NotePart();
  uint64_t GiveBytes() const;
  bool MayGive() const;
  bool Give();

  // So often a copy is begun anew, unless the tablet is given away already.
  static constexpr int kRestartsMax{12};
  // Give once no more of the log than this is to be looked through: what comes behind it is what
  // clients wait for. Where so little is never left, more will do in the end (SCALE-DESIGN 6.2).
  static constexpr uint64_t kGiveBytes{128 << 10};
  static constexpr uint64_t kGiveBytesMax{1 << 20};
  static constexpr uint64_t kPartsPatience{64};  // of what has changed, until twice as much will do

  MoveParty& party_;
  const uint64_t job_;
  Phase phase_{Phase::kAsk};
  bool waits_{false};
  std::unique_ptr<MoveSource> source_;  // null: not begun, or begun by who led before
  uint64_t proposed_{0};                // the attempt that is to begin; 0: none
  uint64_t attempt_{0};                 // 0: none yet
  uint64_t parts_{0};                   // of it, there
  bool copied_{false};                  // all of the copy is sent, or about to be
  bool complete_{false};                // the copy is there
  int restarts_{0};
  uint64_t tail_parts_{0};           // that were sent since
  std::optional<MovePart> pending_;  // sent, or to be sent
  std::string ops_;
  LogMark seen_{};  // of the log, all that has been read
  LogMark told_{};  // up to there the recipient has it
  LogMark end_{};   // of what has to be sent; known once it is given
  Progress progress_;
};

}  // namespace cellar
