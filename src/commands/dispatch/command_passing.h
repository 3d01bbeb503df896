// CommandPassing: what the dispatcher asks on a node that does not lead its replica set, or whose
// set is one of several of a cluster: whether a command is carried out here, or passed on to who
// does (ANY NODE in cellar-replication(7)). The server implements it on command links
// (server/command_links.h).
//
// The replies of a client come in the order of its commands whoever makes them: what is passed on
// goes ahead without waiting, and a command that is carried out here waits until all of it has been
// answered, or is passed on as well, to this node itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "commands/arguments/arguments.h"
#include "commands/catalog/command.h"
#include "commands/session/task.h"

namespace cellar {

struct CommandEntry;
struct Session;

class CommandPassing {
 public:
  virtual ~CommandPassing() = default;

  // Of a command, with what it does: of EXEC, what it is about to run.
  struct Doing {
    bool writes;
    bool reads;
  };
  // The lane of commands of one row, of a session that nothing but other nodes may hinder: what
  // Takes, Pass, HoldsBack, Lags and OnRunsHere come to for most of them, at once.
  enum class Lane : uint8_t {
    kHere,    // it is carried out here
    kBehind,  // likewise, between BeginBehind and EndBehind: its reply leaves behind those of others
    kPassed,  // it has been passed on
    kNone,    // it goes by the long way
  };
  virtual Lane TakeLane(Session& session, const CommandEntry& command, Arguments args) = 0;
  virtual void BeginBehind(Session& session) = 0;
  virtual void EndBehind(Session& session) = 0;
  // Whether the command is passed on. Nothing happens.
  virtual bool Takes(const Session& session, const CommandEntry& command, Arguments args,
                     Doing doing) const = 0;
  // Whether it goes over several sets, and is one of those that do.
  virtual bool Scatters(const Session& session, const CommandEntry& command,
                        Arguments args) const = 0;
  // What carries these out, in place of their handlers.
  virtual CommandHandler scatterer() const = 0;
  enum class Outcome : uint8_t {
    kPassed,
    kWaits,    // it will be tried again
    kNull,     // EXEC whose watches are gone with who has kept them
    kRefused,  // *error says why
  };
  // REQUIRES: Takes.
  virtual Outcome Pass(Session& session, const CommandEntry& command, Arguments args, Doing doing,
                       std::string* error) = 0;
  // Whether earlier commands of the client have not been answered yet. Then what is answered here
  // waits: the session is tried again when that has changed.
  virtual bool HoldsBack(Session& session) = 0;
  // Whether a command that is answered here, behind HoldsBack, would be answered from an older
  // state than its connection was told of. It waits until that has come; *error: for too long.
  virtual bool Lags(Session& session, const CommandEntry& command, Doing doing,
                    std::string* error) = 0;
  // CLIENT UNBLOCK of a client some of whose commands were passed on: asks who carries them out to
  // end the waiting of the one in front. Returns a ticket for the answer; 0: nothing waits.
  virtual uint64_t AskToUnblock(Session& session, UnblockReason reason) = 0;
  enum class Unblocked : uint8_t { kNotYet, kNo, kYes };
  // The answer to a ticket. It costs memory until ForgetUnblocking.
  virtual Unblocked AnswerToUnblock(uint64_t ticket) const = 0;
  virtual void ForgetUnblocking(uint64_t ticket) = 0;
  // A message for those who listen at other nodes.
  virtual void Publish(bool shard, std::string_view channel, std::string_view message) = 0;
  // The command is about to be carried out here.
  virtual void OnRunsHere(Session& session, const CommandEntry& command) = 0;
};

}  // namespace cellar
