// See adoption.h.
#include "cluster/adoption.h"

#include <algorithm>

namespace cellar {
namespace {

// There is one attempt, with one part, behind which nothing has changed: nothing was copied.
constexpr uint64_t kAttempt{1};
constexpr uint64_t kPart{1};
constexpr LogMark kNowhere{.lsn = {.epoch = 0, .seq = 1}, .micros = 0};

}  // namespace

Adoption::Question Adoption::Next(const MoveJob& job, const std::vector<uint64_t>& sets,
                                  uint64_t catalog) {
  Question question;
  MoveStep& step = question.step;
  step.job = job.number;
  step.out = {.table_id = job.table_id, .tablet = job.tablet, .to = job.to, .given = false};
  const auto next = std::find_if(sets.begin(), sets.end(), [&](uint64_t set) {
    return set != job.to && !denied_.contains(set);
  });
  asks_ = next != sets.end();
  if (asks_) {
    asked_ = question.set = *next;
    step.kind = MoveStep::Kind::kHolds;
    return question;
  }
  question.set = job.to;
  step.from = job.from;
  if (!known_.clear) {
    step.kind = MoveStep::Kind::kBegin;
    step.catalog = catalog;
    step.in.table_id = job.table_id;
    step.in.tablet = job.tablet;
    step.in.tablet.epoch += 1;
    step.in.from = job.from;
    step.in.attempt = kAttempt;
    return question;
  }
  step.kind = known_.complete() ? MoveStep::Kind::kOwn : MoveStep::Kind::kPart;
  step.part = {.attempt = kAttempt, .part = kPart, .tail = kNowhere};
  if (known_.complete()) step.part.tail = {};
  return question;
}

void Adoption::Take(const MoveAnswer& answer) {
  switch (answer.code) {
    case MoveAnswer::Code::kOk:
      if (asks_)
        denied_.insert(asked_);
      else
        known_ = answer.in;
      return;
    case MoveAnswer::Code::kStale:
      known_ = {};
      return;
    default:
      return;
  }
}

}  // namespace cellar
