// Session: what the server remembers of one client between its commands. Plain data; the connection
// (server/) owns it, the commands read and change it.
//
// What few clients use lies behind pointers, so that an idle connection stays small: a transaction
// being queued, subscriptions, a running task.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/inline.h"
#include "cellar/lsn.h"
#include "commands/session/task.h"
#include "resp/output_buffer.h"
#include "resp/reply_writer.h"

namespace cellar {

struct CommandEntry;
struct PubSubState;
struct TrackingState;
struct TransactionState;
struct User;

// Another node that has become a peer by PEER, or was dialled: it speaks frames, no commands.
enum class PeerRole : uint8_t { kNone, kReplica, kMaster };

// CLIENT REPLY.
enum class ReplyMode : uint8_t { kOn, kOff, kSkipNext, kSkipping };

// How much longer it lasts. It only ever gets less.
enum class SessionLife : uint8_t {
  kOpen,
  kEnding,  // QUIT, errors of the protocol: nothing more is read; ends when it has been answered
  kEnded,   // killed: the connection goes at the end of the turn
};

// A command that goes on (task.h), and what it takes to end it as its handler would have.
struct RunningTask {
  explicit RunningTask(std::unique_ptr<Task> task) : work(std::move(task)) {}

  std::unique_ptr<Task> work;      // never null
  CommandEntry* command{nullptr};  // set when its handler has returned, as all below
  std::vector<std::string> words;  // of the command, cut short, for the slow log
  uint64_t cycles{0};              // spent so far
  OutputBuffer output;             // of the reply: appended to the session's when it is whole
  Lsn depends_on{};                // of what has been read so far
  Outcome outcome{};               // of its last step, when that is done
  bool waiting{false};             // nothing to do before it is woken (TaskProgress::kWaiting)
  bool reply_begun{false};         // the first byte of the reply has been sent ahead
  bool revoked{false};             // the right to see what it reads is gone

  size_t memory_bytes() const;
};

// Replies from byte `position` of the output on wait until `lsn` is released.
struct ReplyGate {
  size_t position;
  Lsn lsn;
};

// What a client has said of itself.
struct SessionSwitches {
  bool no_evict{false};
  bool no_touch{false};
  bool reads_stale{false};      // READONLY: its reads need not see what it was told of
  bool redirects{false};        // CLIENT CAPA redirect: it goes to the leader by itself
  bool queues_judged{false};    // what it queues has been judged by the node that it comes from
  bool waits_elsewhere{false};  // what was passed on to another node may wait for others
};

struct Session {
  // Beyond so much output nothing more is executed for this client until it has read some.
  static constexpr size_t kOutputPauseBytes{1024 * 1024};

  Session();
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  uint64_t id{0};
  RespVersion version{RespVersion::k2};
  bool authenticated{true};
  ReplyMode reply_mode{ReplyMode::kOn};
  SessionLife life{SessionLife::kOpen};
  bool monitor{false};
  bool unix_socket{false};
  bool exec_running{false};   // the commands of an EXEC are being executed
  bool flush_pending{false};  // is in the server's list of outputs to flush
  bool in_command{false};     // a reply is being written: pushes go to `pushes`
  bool postponed{false};      // CLIENT PAUSE, or read_ticket: the next command waits
  bool restricted{false};     // its user may not do everything: access control asks
  bool gate_grows{false};     // the last of `gates` is of this turn
  PeerRole peer{PeerRole::kNone};
  SessionSwitches switches;
  bool input_ended{false};  // the client sends no more; it gets the replies to what it has sent

  // What every command touches stands together, behind the flags: thousands of sessions take turns
  // in the cache.
  std::string keyspace{"0"};
  const CommandEntry* last_command{nullptr};
  uint64_t commands{0};
  uint64_t bytes_in{0};
  uint64_t bytes_out{0};
  int64_t last_activity_micros{0};  // wall clock
  // On a follower that asks its leader before it reads; 0: nothing waits for that.
  uint64_t read_ticket{0};
  int64_t read_since_micros{0};          // monotonic
  OutputBuffer output;                   // replies of this turn and what could not be sent yet
  std::vector<ReplyGate> gates;          // ascending in both
  size_t output_in_flight{0};            // bytes handed to the socket and not taken yet
  size_t output_in_flight_memory{0};     // that these take, what was taken of them included
  size_t pushed_bytes{0};                // messages in the output, about; 0 once it is empty
  size_t query_bytes{0};                 // input kept: an incomplete command, or commands that wait
  std::unique_ptr<OutputBuffer> pushes;  // messages that came while a reply was written
  std::unique_ptr<RunningTask> task;     // a command that goes on
  std::unique_ptr<TransactionState> transaction;  // MULTI and WATCH
  std::unique_ptr<PubSubState> pubsub;
  std::unique_ptr<TrackingState> tracking;  // CLIENT TRACKING
  int fd{-1};
  uint32_t io_thread{0};  // that reads and writes for it; 0: the one that executes commands

  std::string name;      // CLIENT SETNAME
  std::string lib_name;  // CLIENT SETINFO
  std::string lib_version;
  std::string user_name{"default"};
  const User* user{nullptr};  // null: the default one
  std::string address;        // "127.0.0.1:50000", or the path of the unix socket and ":0"
  std::string local_address;
  int64_t created_micros{0};  // wall clock

  Lsn pushes_depend_on{};              // the newest record that `pushes` tell of
  size_t exec_position{0};             // where the reply of the running EXEC begins
  Lsn exec_depends_on{};               // what the commands of the running EXEC depend on
  int64_t soft_limit_since_micros{0};  // client-output-buffer-limit: when the soft one was passed

  ReplyWriter writer() { return {&output, version}; }
  // Whether its next command may be executed: none goes on as a task, and it is not to end or to
  // wait.
  bool Proceeds() const {
    return task == nullptr && peer == PeerRole::kNone && life == SessionLife::kOpen && !postponed &&
           output.size() + output_in_flight < kOutputPauseBytes;
  }
  // Nothing of it is carried out or sent any more.
  bool ended() const { return life == SessionLife::kEnded; }
  bool ending() const { return life != SessionLife::kOpen; }
  // Once what it has been answered has been sent.
  void EndAfterReplies() {
    if (life == SessionLife::kOpen) life = SessionLife::kEnding;
  }
  void End() { life = SessionLife::kEnded; }
  // Its task, if there is one, has a turn again though it waits.
  void WakeTask() {
    if (task != nullptr) task->waiting = false;
  }
  bool in_multi() const;
  // What waits for the client: bytes of replies and messages, finished or being made (omem).
  size_t reply_bytes() const;
  // What its commands have made us keep for it until it says otherwise: queued commands, watches,
  // subscriptions, prefixes, names. At most client-query-buffer-limit, about.
  size_t kept_bytes() const;
  // All that it costs in memory besides the Session itself, without the input.
  size_t memory_bytes() const;
  // The output from `position` on waits for `lsn`. REQUIRES: lsn is not older than that of an
  // earlier gate, or it changes nothing. The records of a turn reach the disk together, so one gate
  // does for all replies of a turn: the first one's position, the last one's record.
  CELLAR_INLINE void AddGate(size_t position, Lsn lsn) {
    if (!gate_grows || gates.empty()) [[unlikely]]
      return OpenGate(position, lsn);
    if (lsn > gates.back().lsn) gates.back().lsn = lsn;
  }
  void OpenGate(size_t position, Lsn lsn);
};

// Where a message goes that is no reply (pub/sub, MONITOR, invalidations): behind the reply being
// written, if any. The reply of a read that goes on as a task counts as being written: a part of it
// may be in the output already, and a change is told after what was read before it.
OutputBuffer& PushTarget(Session& session);
// To be called before a message that tells of record `lsn` is written there.
void GatePush(Session& session, Lsn lsn);

}  // namespace cellar
