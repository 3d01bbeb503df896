// Task: a command that goes on after its handler has returned, in slices, so that no command holds
// the loop for long (cellar-query(7), "HOW A READ IS ANSWERED").
//
// A handler whose work may be long copies what it needs from its arguments (they are views that die
// with the handler) into a Task and hands it over by `context.Continue(std::move(task))`. The
// server calls Step in turns of about a millisecond, round robin with all other tasks; the client's
// next command waits meanwhile, other clients are served. Inside EXEC a task is run to its end at
// once. A task whose client leaves is destroyed between two steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "cellar/clock.h"
#include "cellar/lsn.h"
#include "cellar/status.h"
#include "commands/session/outcome.h"
#include "resp/reply_writer.h"

namespace cellar {

// How long a step may run.
class TaskBudget {
 public:
  // Until `deadline_micros` of the monotonic clock.
  TaskBudget(Clock& clock, int64_t deadline_micros)
      : clock_(&clock), deadline_micros_(deadline_micros) {}
  // For EXEC: the step must not stop before its work is done.
  static TaskBudget Unlimited() { return TaskBudget(); }

  bool unlimited() const { return clock_ == nullptr; }
  // Reads the clock (25 ns): ask every few dozen cells.
  bool Spent() const { return clock_ != nullptr && clock_->MonotonicMicros() >= deadline_micros_; }

 private:
  TaskBudget() = default;
  Clock* clock_{nullptr};
  int64_t deadline_micros_{0};
};

enum class TaskProgress : uint8_t {
  kMore,     // call again soon
  kWaiting,  // nothing to do before something else happens (a sync, a thread, a time): call again
             // when the server polls, about every 10 ms, or after Host::WakeTasks()
  kDone,     // the reply is complete
};

// What a step sees of the world.
struct TaskContext {
  ReplyWriter& reply;
  const TaskBudget& budget;
  int64_t now_micros;  // wall clock of the turn
  // The reply must not leave before this record is durable; a step raises it.
  Lsn depends_on{};
  // What another thread has spent for the task since the last step; a step sets it.
  uint64_t cycles_beside{0};
  Outcome outcome{};

  // As those of CommandContext; the step that fails is the last one.
  void Fail(const Status& status) { outcome.Fail(reply, status); }
  void Fail(std::string_view line) { outcome.Fail(reply, line); }
};

enum class UnblockReason : uint8_t { kTimeout, kError };
inline constexpr std::string_view kUnblockedError{"UNBLOCKED client unblocked via CLIENT UNBLOCK"};

class Task {
 public:
  virtual ~Task() = default;
  // Works until its budget is spent. May write parts of the reply, which goes into a buffer of its
  // own (marks of ReplyWriter stay good from step to step); with kDone the reply is whole.
  // REQUIRES: with an unlimited budget it returns kDone.
  virtual TaskProgress Step(TaskContext& context) = 0;
  // Whether what a step has written may be sent before the task is done. Then an error can no
  // longer take the place of the reply, and marks do not outlive a step.
  virtual bool Streams() const { return false; }
  // The reply so far, as far as the task itself keeps it: its bytes, and the memory they take.
  virtual size_t reply_bytes() const { return 0; }
  virtual size_t memory_bytes() const { return reply_bytes(); }
  // The first byte of the reply, if it is known before the reply is. A client that sends no more
  // (it has closed the connection, or only its side) is sent this much ahead: the answer to it
  // tells whether anybody is there. 0: it is not known.
  virtual char FirstByte() const { return 0; }
  // CLIENT UNBLOCK: a task that waits for others ends at its next step, as if its time were over or
  // with kUnblockedError. False if it does not wait.
  virtual bool Unblock(UnblockReason) { return false; }
  // Its client has left; it is destroyed next.
  virtual void Abandon() {}
};

// A task that waits for others, and notes that CLIENT UNBLOCK has ended its wait.
class BlockedTask : public Task {
 public:
  bool Unblock(UnblockReason reason) final {
    unblocked_ = reason;
    return true;
  }

 protected:
  // Why it is to end at its next step; nothing: it may wait on.
  const std::optional<UnblockReason>& unblocked() const { return unblocked_; }

 private:
  std::optional<UnblockReason> unblocked_{};
};

}  // namespace cellar
