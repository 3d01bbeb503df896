// See cut_run.h.
#include "commands/cluster/cut_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "commands/session/host.h"
#include "commands/session/services.h"

namespace cellar {

CutRun::CutRun(Host& host, Order order)
    : host_(host), order_(std::move(order)), begun_micros_(host.clock().MonotonicMicros()) {}

CutRun::~CutRun() {
  if (open_ && order_.undo) order_.undo();
}

CutRun::State CutRun::Fail(Status status) {
  status_ = std::move(status);
  return state_ = State::kFailed;
}

CutRun::State CutRun::Begin() {
  CutDesk* const desk = host_.services().cuts;
  if (desk == nullptr)
    return Fail(Status::Error(ErrorCode::kTryAgain, "this node does not lead set 0"));
  const int64_t now = host_.clock().MonotonicMicros();
  if (now < next_micros_) return state_;
  Result<uint64_t> number = desk->Begin({.purpose = order_.purpose,
                                         .argument = order_.argument,
                                         .make = order_.make,
                                         .attempt = attempt_});
  if (!number.ok()) {
    const bool waits =
        number.status().code() == ErrorCode::kTryAgain && now - begun_micros_ < kPatienceMicros;
    if (!waits) return Fail(number.status());
    next_micros_ = now + kRestMicros;
    return state_;
  }
  number_ = *number;
  cut_micros_ = now;
  open_ = true;
  return state_;
}

CutRun::State CutRun::Step() {
  if (state_ != State::kRuns) return state_;
  if (!open_) return Begin();
  switch (host_.services().cuts->StateOf(number_)) {
    case CutDesk::State::kOpen:
      return state_;
    case CutDesk::State::kGood:
      open_ = false;
      return state_ = State::kGood;
    case CutDesk::State::kBad:
      break;
  }
  open_ = false;
  if (order_.undo) order_.undo();
  ++attempt_;
  const int64_t now = host_.clock().MonotonicMicros();
  if (now - cut_micros_ >= kLateMicros) ++late_;
  if (late_ == kLateMax || now - begun_micros_ >= kPatienceMicros) {
    return Fail(Status::Error(
        ErrorCode::kTryAgain,
        fmt::format("cut {} is not one moment of all sets; nothing was done: one of them is "
                    "slow, or its clock is a day behind",
                    number_)));
  }
  next_micros_ = now + std::min(kRestMicrosMax, kRestMicros * attempt_);
  return state_;
}

}  // namespace cellar
