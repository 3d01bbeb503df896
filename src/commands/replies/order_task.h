// OrderTask: waits for what has become of an order to a replica set (replica/set_order.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "commands/session/host.h"
#include "commands/session/task.h"
#include "replica/replication.h"
#include "replica/set_node.h"

namespace cellar {

class OrderTask final : public BlockedTask {
 public:
  // `wording`: what a client is told of a failure; if there is none, its code and text.
  OrderTask(Host& host, uint64_t ticket, std::string (*wording)(const Status&) = nullptr)
      : host_(host), ticket_(ticket), wording_(wording) {}

  TaskProgress Step(TaskContext& context) override {
    SetNode* const set = host_.replication().set();
    if (unblocked() == UnblockReason::kError) {
      context.Fail(kUnblockedError);
      return TaskProgress::kDone;
    }
    const std::optional<Status> result = set == nullptr
                                             ? Status::Error(ErrorCode::kErr, "this node leaves")
                                             : set->OrderResult(ticket_);
    const bool goes_on = unblocked() || context.budget.unlimited();
    if (!result && !goes_on) return TaskProgress::kWaiting;
    if (!result) {
      context.Fail("TRYAGAIN it goes on: its outcome is not known yet");
    } else if (result->ok()) {
      context.reply.Ok();
    } else {
      context.Fail(wording_ == nullptr ? result->ToString() : wording_(*result));
    }
    return TaskProgress::kDone;
  }

 private:
  Host& host_;
  const uint64_t ticket_;
  std::string (*const wording_)(const Status&);
};

}  // namespace cellar
