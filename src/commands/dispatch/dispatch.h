// Dispatcher: from the words of a request to a reply: look the command up, check that this client
// may run it here and now, run or queue it, count it.
//
// The order of the checks: authentication (behind the next two in Redis), does it exist, arity,
// DEBUG, access control, memory, loading, the node's role, subscribed mode, MULTI. Every refusal
// inside MULTI makes EXEC fail.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "base/cycle_clock.h"
#include "cellar/lsn.h"
#include "commands/arguments/arguments.h"
#include "commands/catalog/command_table.h"
#include "commands/dispatch/access_sampler.h"
#include "commands/session/host.h"
#include "commands/session/outcome.h"
#include "commands/session/parsed_command.h"
#include "commands/session/session.h"
#include "commands/session/task.h"

namespace cellar {

class CommandPassing;
class SetNode;
struct CommandContext;

class Dispatcher {
 public:
  explicit Dispatcher(Host& host) : host_(host), sampler_(host) {}

  // Executes requests one after the other while the session proceeds; returns after each one of an
  // unauthenticated client, so that the caller can look at its output. How many were executed, the
  // one that ended it included. The replies are in session.output when it returns, unless
  // session.task has been set: then StepTask goes on with the last one. A request without words is
  // passed over; views of the words need to live only for the call. REQUIRES: the session proceeds;
  // there is a request.
  size_t ExecuteInOrder(Session& session, std::span<const ParsedCommand> commands);

  // One step of session.task. True when the task is done (and gone). REQUIRES: there is one.
  bool StepTask(Session& session, const TaskBudget& budget);

  // The first byte of the reply that session.task makes goes ahead, if it is known.
  void BeginReplyAhead(Session& session);

  // Runs a command of EXEC, to its end. Errors are counted. What became of it.
  Outcome Call(Session& session, CommandEntry& command, Arguments args);

  // The wall clock of this turn, and up to which record replies may leave as it begins.
  void BeginTurn(int64_t now_micros, Lsn released) {
    now_micros_ = now_micros;
    released_ = released;
  }
  int64_t now_micros() const { return now_micros_; }
  // What a reply of this turn depends on at least that tells of data; Lsn{}: nothing. Then nothing
  // is released but by gates.
  void SetFloor(Lsn floor) {
    floor_ = floor;
    has_floor_ = floor != Lsn{};
    if (has_floor_) released_ = Lsn{};
  }
  Lsn floor() const { return floor_; }
  // Whether a reply depends on it, since this was asked last.
  bool TakeFloorUse() { return std::exchange(floor_used_, false); }
  // Where that may have become less in the middle of a turn: the log has been turned on.
  void SetReleased(Lsn released) { released_ = released; }

  // On a node of a replica set: who passes commands on. Borrowed.
  void SetPassing(CommandPassing* passing) { passing_ = passing; }
  // Null on any other node.
  CommandPassing* passing() const { return passing_; }
  // Whether replies that other nodes make come before what would be answered now; then the session
  // waits for them.
  bool HoldBack(Session& session);

  const CycleClock& cycles() const { return cycles_; }
  AccessSampler& sampler() { return sampler_; }
  // Takes over slowlog-log-slower-than and latency-monitor-threshold, as one bound below which
  // nobody looks. To be called when they change.
  void UpdateSlowBound();

 private:
  // Asks access control on behalf of a restricted user; logs a refusal. Empty if the command may
  // run, then `*selectors` are those that allow it.
  std::string AclRefusal(Session& session, const CommandEntry& command, Arguments args,
                         uint64_t* selectors);
  // One request, with what the command table has for the first of `args`, begun at `begin_cycles`.
  // When the handler ended.
  uint64_t ExecuteFound(Session& session, CommandEntry* command, Arguments args,
                        uint64_t begin_cycles);
  // Of a command that something may hinder: Admit, or the lane of commands of one row. As Admit;
  // null also where the lane has carried it out or passed it on. *begin_cycles: when the next one
  // begins.
  CommandEntry* FindWay(Session& session, CommandEntry* command, Arguments args,
                        uint64_t* begin_cycles, CommandHandler* handler);
  bool HasLane(const Session& session, const CommandEntry* command, Arguments args) const;
  // Runs the handler, which is the command's or stands in for it, and what goes with it, for Call
  // and ExecuteFound. When it ended. *outcome, if it is not null: what became of the command.
  uint64_t Run(Session& session, CommandEntry& command, CommandHandler handler, Arguments args,
               uint64_t begin_cycles, Outcome* outcome);
  // Run, which is inlined where the usual command passes, with the command's own handler.
  uint64_t RunByCall(Session& session, CommandEntry& command, Arguments args, uint64_t begin_cycles,
                     Outcome* outcome);
  void Handle(CommandHandler handler, CommandContext& context);
  // With what the restricted user may do.
  void HandleRestricted(CommandHandler handler, CommandContext& context);
  // In a replica set: what the reply depends on is not less than the floor.
  Lsn AtLeastFloor(const CommandEntry& command, Lsn depends_on);
  // Behind a handler that EXEC runs.
  void EndInsideExec(CommandContext& context);
  bool MayRead(Session& session, CommandEntry& command);
  // What is answered here waits for other nodes: for the replies that come before it, and until
  // this node has what the connection was told of. False: it has been refused, or is tried again.
  bool MayRunHere(Session& session, CommandEntry& command);
  std::string SetRefusal(const SetNode& set, const Session& session,
                         const CommandEntry& command) const;
  std::string ReplicaRefusal(const Session& session, const CommandEntry& command) const;
  // Who answers the command, if it is not to be queued.
  enum class Way : uint8_t {
    kHere,
    kPassedOn,   // another node
    kScattered,  // this one, of what it asks several sets
  };
  Way WayOf(const Session& session, const CommandEntry& command, Arguments args) const;
  // Passes it on, or has it wait, or refuses it.
  void PassOn(Session& session, CommandEntry& command, Arguments args);
  // A command without a reply of its own that CLIENT REPLY SKIP has been said for is over.
  static void EndSkipping(Session& session);
  // It has gone ahead.
  static void SkipFirstByte(Session& session);
  // The task has written its reply, from `position` of the output on; it is gone afterwards.
  void FinishTask(Session& session, size_t position, uint64_t slice_cycles);
  // The task's user has lost rights: an error takes the place of the reply.
  void EndRevokedTask(Session& session);
  // Nothing that a check of Admit asks about is the case, but for arity and other nodes: it would
  // let any command of the session run.
  bool Unhindered(const Session& session) const;
  // The checks, for a command that may be unknown. The command to run now, a container's subcommand
  // if it is one, and *handler what carries it out; null if it was refused or queued, or must wait.
  CommandEntry* Admit(Session& session, CommandEntry* command, Arguments args,
                      CommandHandler* handler);
  // Empty if the command may run, else the whole error line.
  std::string Refusal(Session& session, const CommandEntry& command, Arguments args, Way* way);
  // Why enable-debug-command forbids the command; empty if it does not.
  std::string DebugRefusal(const Session& session, const CommandEntry& command) const;
  std::string UnknownCommand(const Session& session, const CommandEntry* container,
                             Arguments args) const;
  bool MustWait(const Session& session, const CommandEntry& command) const;
  void Reject(Session& session, CommandEntry* command, std::string_view error);
  // How long a command has worked: in all, and since others were served last. They differ for a
  // task, whose earlier slices have been looked at already.
  struct WorkTime {
    uint64_t cycles;
    uint64_t last_slice_cycles;
  };
  // After a reply is complete: counters, error statistics, slow log, pushes that had to wait.
  void Finish(Session& session, CommandEntry& command, Arguments args, size_t reply_position,
              WorkTime time, const Outcome& outcome);
  // The slow log's entry, if the whole command was slow.
  void RecordSlow(const Session& session, const CommandEntry& command, Arguments args,
                  uint64_t cycles);
  // LATENCY's, if others had to wait so long: for a command, or for a slice of one.
  void RecordStall(const CommandEntry& command, uint64_t cycles);
  void FeedMonitors(const Session& session, const CommandEntry& command, Arguments args);
  void CountError(std::string_view line);

  Host& host_;
  CommandPassing* passing_{nullptr};
  AccessSampler sampler_;
  CycleClock cycles_;
  uint64_t slow_cycles_{UINT64_MAX};  // neither RecordSlow nor RecordStall has to look below
  int64_t now_micros_{0};
  Lsn released_{};
  Lsn floor_{};
  bool has_floor_{false};  // floor_ is one
  bool floor_used_{false};
};

}  // namespace cellar
