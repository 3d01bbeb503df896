// See move_protocol.h.
#include "cluster/move_protocol.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/text/number.h"

namespace cellar {
namespace {

using Code = MoveAnswer::Code;
using Kind = MoveStep::Kind;

constexpr int kAttemptBits{16};  // below those of the term
// Of the log, at once.
constexpr int kTailPieces{16};

MoveAnswer Ok(const MoveIn& in) { return {.code = Code::kOk, .in = in}; }
MoveAnswer Later(std::string why) { return {.code = Code::kWait, .text = std::move(why)}; }
// Of a recipient, whose trouble is told where nobody knows which set it comes from.
MoveAnswer Fails(const MoveParty& party, const Status& status) {
  return Later("set " + FormatUint64(party.set()) + ": " + status.text());
}
MoveAnswer Stale() { return {.code = Code::kStale}; }
MoveAnswer Ended(MoveEnd end, std::string why = {}) {
  return {.code = Code::kEnded, .end = end, .text = std::move(why)};
}
// What became of a job at or below the floor is forgotten: who asks for it is no director any more,
// or no donor, and must not take it for cancelled.
MoveAnswer EndOf(const TabletMoves& moves, uint64_t job) {
  const auto found = moves.ended().find(job);
  if (found == moves.ended().end())
    return Later("the job has ended, and how is known to set 0 alone");
  return Ended(found->second);
}

MoveAnswer Refuse(MoveParty& party, uint64_t job, std::string why) {
  if (const Status status = party.Cancel(job); !status.ok()) return Later(status.text());
  return Ended(MoveEnd::kCancelled, std::move(why));
}

MoveAnswer AnswerJob(MoveParty& party, const MoveStep& step) {
  const TabletMoves& moves = party.moves();
  if (const MoveOut* const out = moves.FindOut(step.job)) {
    const bool is_it = out->table_id == step.out.table_id && out->tablet == step.out.tablet &&
                       out->to == step.out.to;
    if (!is_it) return Ended(MoveEnd::kCancelled, "another job has that number");
    MoveAnswer answer;
    answer.given = out->given;
    return answer;
  }
  const MoveOut& move = step.out;
  if (move.given || move.to == party.set()) return Refuse(party, step.job, "it cannot go there");
  if (!party.HasTable(move.table_id) || !party.Owns(move.table_id, move.tablet))
    return Refuse(party, step.job, "the tablet is another one by now");
  if (moves.OutOf(move.table_id, move.tablet) != 0)
    return Refuse(party, step.job, "another job moves it");
  if (moves.out().size() >= kMovesMax) return Later("too many tablets are moving");
  if (std::string why = party.WhyKept(move); !why.empty())
    return Refuse(party, step.job, std::move(why));
  if (const Status status = party.Begin(step.job, move); !status.ok()) return Later(status.text());
  return {};
}

MoveAnswer AnswerBegin(MoveParty& party, const MoveStep& step) {
  const TabletMoves& moves = party.moves();
  const MoveIn& in = step.in;
  if (in.from == party.set() || moves.FindOut(step.job) != nullptr) return Stale();
  const MoveIn* stage = moves.FindIn(step.job);
  const bool is_it = stage == nullptr || (stage->table_id == in.table_id &&
                                          stage->tablet == in.tablet && stage->from == in.from);
  if (!is_it) return Later("another job has that number");
  const bool begins = in.attempt > (stage == nullptr ? 0 : stage->attempt);
  if (begins) {
    // From here on each change of its schema ends the job at the set that has it first.
    if (step.catalog != party.catalog() || !party.HasTable(in.table_id))
      return Later("the sets are of different changes of the schema");
    if (party.OwnsPart(in.table_id, in.tablet)) return Later("the set owns a part of it");
    const uint64_t other = moves.InOf(in.table_id, in.tablet);
    if (other != 0 && other != step.job) return Later("another job has to end first");
    if (stage == nullptr && moves.in().size() >= kMovesMax)
      return Later("too many tablets are moving");
    // What may have been given away already has to find room.
    const bool may_wait = stage == nullptr || !stage->binds;
    if (std::string why = party.WhyNoRoom(); may_wait && !why.empty()) return Later(std::move(why));
    MoveIn fresh = in;
    fresh.clear = false;
    fresh.parts = 0;
    fresh.tail = {};
    fresh.binds = false;
    if (const Status status = party.Stage(step.job, fresh, step.failures); !status.ok())
      return Fails(party, status);
    stage = moves.FindIn(step.job);
    CELLAR_ASSERT(stage != nullptr);
  }
  if (stage == nullptr) return Ok({});
  if (!stage->clear) {
    const Result<bool> found = party.PurgeStage(*stage);
    if (!found.ok()) return Fails(party, found.status());
    if (*found) return Later(std::string(kPurgingText));
    const Status status = party.Fill(step.job, {stage->attempt, 0, {}}, {});
    if (!status.ok()) return Fails(party, status);
  }
  return Ok(*moves.FindIn(step.job));
}

MoveAnswer AnswerPart(MoveParty& party, const MoveStep& step) {
  const MoveIn* const stage = party.moves().FindIn(step.job);
  const MovePart& part = step.part;
  const bool is_its = stage != nullptr && stage->from == step.from;
  if (!is_its || stage->attempt != part.attempt || !stage->clear) return Stale();
  if (part.part != stage->parts + 1) return Stale();
  const bool is_copy = part.tail.lsn == Lsn{};
  if (is_copy && stage->complete()) return Stale();
  if (std::string why = party.WhyNoRoom(); is_copy && !stage->binds && !why.empty())
    return Later(std::move(why));
  const Status status = party.Fill(step.job, part, step.ops);
  if (status.ok()) return Ok(*party.moves().FindIn(step.job));
  if (status.code() != ErrorCode::kCorruption) return Fails(party, status);
  // Whatever went wrong, another attempt copies what there is.
  MoveAnswer answer = Stale();
  answer.text = status.text();
  return answer;
}

MoveAnswer AnswerOwn(MoveParty& party, const MoveStep& step) {
  const MoveIn* const stage = party.moves().FindIn(step.job);
  const bool is_all = stage != nullptr && stage->from == step.from &&
                      stage->attempt == step.part.attempt && stage->parts == step.part.part &&
                      stage->complete();
  if (!is_all) return Stale();
  const Status status = party.Own(step.job, step.part, step.stamp, step.record_next);
  return status.ok() ? Ended(MoveEnd::kMoved) : Fails(party, status);
}

MoveAnswer AnswerCancel(MoveParty& party, const MoveStep& step) {
  if (const MoveOut* const out = party.moves().FindOut(step.job); out != nullptr && out->given) {
    MoveAnswer answer;
    answer.given = true;
    return answer;
  }
  return Refuse(party, step.job, {});
}

// Whom it was given to never has it, or had it for nothing.
MoveAnswer AnswerReclaim(MoveParty& party, const MoveStep& step) {
  const MoveOut* const out = party.moves().FindOut(step.job);
  if (out == nullptr || !out->given) return Refuse(party, step.job, {});
  if (const Status status = party.Reclaim(step.job); !status.ok()) return Later(status.text());
  return Ended(MoveEnd::kCancelled);
}

// Also what may come to be owned by a job that goes on counts.
MoveAnswer AnswerHolds(MoveParty& party, const MoveStep& step) {
  const TabletMoves& moves = party.moves();
  const uint64_t table_id = step.out.table_id;
  const Tablet& range = step.out.tablet;
  const uint64_t in = moves.InOf(table_id, range);
  const bool holds = party.OwnsPart(table_id, range) || moves.OutOf(table_id, range) != 0 ||
                     (in != 0 && in != step.job);
  return holds ? Later("set " + FormatUint64(party.set()) + " has rows of it") : MoveAnswer{};
}

}  // namespace

MoveAnswer AnswerMoveStep(MoveParty& party, const MoveStep& step) {
  if (party.cluster_id() == 0 || step.cluster_id != party.cluster_id())
    return Later("the set is of another cluster");
  // What cannot be forgotten now is forgotten later.
  if (step.floor > party.moves().floor() && !party.moves().ended().empty())
    (void)party.Raise(step.floor);
  if (party.moves().HasEnded(step.job)) return EndOf(party.moves(), step.job);
  switch (step.kind) {
    case Kind::kJob:
      return AnswerJob(party, step);
    case Kind::kBegin:
      return AnswerBegin(party, step);
    case Kind::kPart:
      return AnswerPart(party, step);
    case Kind::kOwn:
      return AnswerOwn(party, step);
    case Kind::kDrop:
    case Kind::kCancel:
      return AnswerCancel(party, step);
    case Kind::kReclaim:
      return AnswerReclaim(party, step);
    case Kind::kHolds:
      return AnswerHolds(party, step);
    case Kind::kSizes:
    case Kind::kOwned:
    case Kind::kSplit:
    case Kind::kMerge:
    case Kind::kLead:
    case Kind::kGroups:
    case Kind::kArrived:
      break;  // no steps of a move
  }
  return Stale();
}

// --- the donor

bool MoveDonor::is_given() const {
  const MoveOut* const move = party_.moves().FindOut(job_);
  return move != nullptr && move->given;
}

MoveStep MoveDonor::StepOf(Kind kind) const {
  MoveStep step;
  step.kind = kind;
  step.cluster_id = party_.cluster_id();
  step.job = job_;
  step.floor = party_.moves().floor();
  step.from = party_.set();
  return step;
}

void MoveDonor::Wait(std::string why) {
  waits_ = true;
  progress_.why = std::move(why);
}

std::optional<MoveStep> MoveDonor::Next() {
  waits_ = false;
  if (ended()) return std::nullopt;
  if (phase_ == Phase::kAsk) {
    MoveStep step = StepOf(Kind::kBegin);
    step.catalog = party_.catalog();
    step.in.table_id = move().table_id;
    step.in.tablet = move().tablet;
    ++step.in.tablet.epoch;
    step.in.from = party_.set();
    step.in.attempt = proposed_;
    step.failures = party_.IndexFailures(move().table_id);
    return step;
  }
  if (phase_ == Phase::kOwn) {
    MoveStep step = StepOf(Kind::kOwn);
    step.part = {attempt_, parts_, {}};
    step.stamp = party_.stamp();
    step.record_next = party_.record_next(move().table_id);
    return step;
  }
  return NextPart();
}

std::optional<MoveStep> MoveDonor::PartStep() {
  MoveStep step = StepOf(Kind::kPart);
  step.part = *pending_;
  step.ops = ops_;
  return step;
}

uint64_t MoveDonor::GiveBytes() const {
  const uint64_t doublings = std::min<uint64_t>(tail_parts_ / kPartsPatience, 16);
  return std::min(kGiveBytesMax, kGiveBytes << doublings);
}

bool MoveDonor::MayGive() const {
  return complete_ && !move().given && source_->bytes_behind() < GiveBytes() &&
         !party_.RowsAreHeld(move().table_id);
}

std::optional<MoveStep> MoveDonor::NextPart() {
  if (pending_) return PartStep();
  ops_.clear();
  if (phase_ == Phase::kCopy) {
    progress_.state = "copying";
    const MoveSource::Got got = source_->Copy(&ops_);
    if (got == MoveSource::Got::kWait) {
      Wait({});
      return std::nullopt;
    }
    if (got == MoveSource::Got::kAll) {
      copied_ = true;
      phase_ = Phase::kTail;
    }
    if (!ops_.empty()) {
      pending_ = MovePart{attempt_, parts_ + 1, {}};
      return PartStep();
    }
  }
  progress_.state = move().given ? "giving" : "tailing";
  for (int pieces = 0; pieces < kTailPieces; ++pieces) {
    if (MayGive()) {
      // Whoever leads next goes on from there, in a log that it has for sure.
      if (told_.lsn.seq < seen_.lsn.seq) {
        pending_ = MovePart{attempt_, parts_ + 1, seen_};
        return PartStep();
      }
      // What has come while that part was on its way is waited for, too.
      if (source_->Refresh() < GiveBytes() && !Give()) return std::nullopt;
    }
    const MoveSource::Got got = source_->Tail(&ops_, &seen_);
    if (got == MoveSource::Got::kLost) {
      Restart(attempt_);
      return std::nullopt;
    }
    if (got == MoveSource::Got::kWait) {
      Wait({});
      return std::nullopt;
    }
    // What makes the copy complete is told though nothing has changed.
    if (!ops_.empty() || !complete_) {
      pending_ = MovePart{attempt_, parts_ + 1, seen_};
      return PartStep();
    }
    if (move().given && seen_.lsn.seq >= end_.lsn.seq) {
      phase_ = Phase::kOwn;
      progress_.state = "owning";
      return Next();
    }
    if (got == MoveSource::Got::kAll) {
      Wait({});
      return std::nullopt;
    }
  }
  return std::nullopt;
}

bool MoveDonor::Give() {
  if (const Status status = party_.Give(job_); !status.ok()) {
    Wait(status.text());
    return false;
  }
  end_ = party_.Mark();
  progress_.state = "giving";
  return true;
}

void MoveDonor::OnAnswer(const MoveAnswer& answer) {
  progress_.why.clear();
  if (ended()) return;
  switch (answer.code) {
    case Code::kEnded: {
      const bool moved = answer.end == MoveEnd::kMoved;
      if (moved != move().given) {
        // Neither can be: the recipient owns only what was given, and drops only what was not.
        phase_ = Phase::kAsk;
        return Wait("the recipient says that the job has ended");
      }
      const Status status = moved ? party_.Done(job_) : party_.Cancel(job_);
      if (!status.ok()) Wait(status.text());
      return;
    }
    case Code::kWait:
      if (answer.text == kPurgingText) {
        progress_.state = kPurgingText;
        return;
      }
      return Wait(answer.text);
    case Code::kStale:
      if (!answer.text.empty() && attempt_ != 0) {
        Restart(attempt_);
        progress_.why = answer.text;
        return;
      }
      phase_ = Phase::kAsk;
      proposed_ = 0;
      return;
    case Code::kOk:
      break;
  }
  if (phase_ == Phase::kAsk) return TakeStage(answer.in);
  if (pending_) NotePart();
}

// The part at hand has come.
void MoveDonor::NotePart() {
  parts_ = pending_->part;
  if (complete_) ++tail_parts_;
  complete_ = complete_ || pending_->tail.lsn != Lsn{};
  told_ = pending_->tail;
  progress_.bytes += ops_.size();
  pending_.reset();
}

// What the recipient has, is either this object's own attempt, or one that somebody before it has
// completed: behind the copy all go by the same log. Any other one is begun anew.
void MoveDonor::TakeStage(const MoveIn& in) {
  if (in.attempt == 0) return Restart(0);
  const bool is_it = in.table_id == move().table_id && in.tablet.begin == move().tablet.begin &&
                     in.tablet.end == move().tablet.end && in.from == party_.set();
  if (!is_it) return Wait("the recipient tells of another tablet");
  const bool is_own = source_ != nullptr && in.attempt == attempt_;
  if (is_own && !in.complete()) {
    if (pending_ && in.parts == pending_->part) NotePart();
    if (in.parts != parts_ || complete_) return Restart(in.attempt);
    phase_ = copied_ ? Phase::kTail : Phase::kCopy;
    return;
  }
  const bool is_new = in.attempt == proposed_ && in.parts == 0;
  if (!is_new && !in.complete()) return Restart(in.attempt);
  pending_.reset();
  source_ = party_.Open(move(), is_new ? nullptr : &in.tail);
  if (source_ == nullptr) return Restart(in.attempt);
  proposed_ = 0;
  attempt_ = in.attempt;
  parts_ = in.parts;
  complete_ = copied_ = in.complete();
  told_ = seen_ = in.tail;
  end_ = party_.Mark();
  phase_ = complete_ ? Phase::kTail : Phase::kCopy;
}

void MoveDonor::Restart(uint64_t above) {
  phase_ = Phase::kAsk;
  source_.reset();
  pending_.reset();
  if (above != 0) ++restarts_;
  attempt_ = 0;
  complete_ = copied_ = false;
  if (restarts_ > kRestartsMax && !move().given) {
    if (const Status status = party_.Cancel(job_); !status.ok()) Wait(status.text());
    return;
  }
  const uint64_t first = uint64_t{party_.term()} << kAttemptBits;
  // Somebody of a later term has begun it: this node leads no more, or is about to learn so.
  if ((above >> kAttemptBits) > party_.term()) {
    proposed_ = 0;
    return Wait("who leads by now goes on with it");
  }
  proposed_ = std::max(first + party_.CountAttempt(job_), above + 1);
}

}  // namespace cellar
