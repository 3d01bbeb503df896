// Host: what commands need of the process around them: the other clients, the clock of the turn,
// configuration, the end of the server. server/ implements it on libuv; tests with a few lines.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "cellar/clock.h"
#include "cellar/lsn.h"
#include "cellar/status.h"
#include "commands/session/info_data.h"

namespace cellar {

enum class ConfigTopic : uint8_t;
class Dispatcher;
class Replication;
class Store;
struct Services;
struct Session;

enum class ShutdownMode : uint8_t { kDefault, kSave, kNoSave };

class Host {
 public:
  virtual ~Host() = default;

  // --- what commands work on
  // REQUIRES: !loading().
  Store& store() const {
    CELLAR_ASSERT(store_ != nullptr);
    return *store_;
  }
  virtual Clock& clock() = 0;
  // Wall clock of the turn, microseconds since the epoch: read once a turn.
  virtual int64_t now_micros() const = 0;
  Services& services() const { return *services_; }
  Dispatcher& dispatcher() const { return *dispatcher_; }

  // --- the state of the process
  // Recovery is running: only commands with kLoading are answered.
  bool loading() const { return loading_; }
  // Replies that depend on records up to here may leave.
  virtual Lsn released_lsn() const = 0;
  virtual Lsn durable_lsn() const = 0;
  virtual Lsn last_lsn() const = 0;
  // What counts against maxmemory; exact at the beginning of a turn.
  virtual uint64_t memory_used_bytes() const = 0;
  virtual MemoryFigures memory() = 0;
  virtual PersistenceFigures persistence() = 0;
  virtual DataFigures data_figures() = 0;
  virtual std::vector<KeyspaceFigures> keyspaces() = 0;

  // Begins to write a snapshot (kErr if one is being written); FinishSnapshot waits for its end.
  virtual Status StartSnapshot() = 0;
  virtual Status FinishSnapshot() = 0;
  // DEBUG RELOAD: recovers everything from the files.
  virtual Status ReloadStore() = 0;
  // Gives memory that the allocator keeps back to the system.
  virtual void ReleaseFreeMemory() = 0;

  // --- other clients
  virtual void ForEachSession(const std::function<void(Session&)>& visit) = 0;
  virtual Session* FindSession(uint64_t id) = 0;
  virtual size_t session_count() const = 0;
  // Ends the connection at the end of the turn; what is in its output already is not sent.
  virtual void KillSession(Session& session) = 0;
  // Something was written to the session's output outside of its own command: send it this turn.
  virtual void ScheduleFlush(Session& session) = 0;
  // ScheduleFlush for `bytes` of messages that the client has not asked for: one that takes too few
  // of them is disconnected.
  virtual void Pushed(Session& session, size_t bytes) = 0;
  // Beyond client-output-buffer-limit: the connection ends, and what waits for it goes at once.
  virtual void EndForOutput(Session& session) = 0;
  // CLIENT PAUSE: which commands must wait.
  enum class Pause : uint8_t { kNone, kWrites, kAll };
  // Until `until_micros` (wall clock). REQUIRES: not kNone.
  virtual void PauseClients(int64_t until_micros, Pause pause) = 0;
  virtual void UnpauseClients() = 0;
  // Whether commands that write must wait now; whether all others must, too.
  bool writes_paused() const { return pause_ != Pause::kNone; }
  bool all_paused() const { return pause_ == Pause::kAll; }
  // Waiting tasks are stepped again this turn.
  virtual void WakeTasks() = 0;

  // --- other nodes
  virtual Replication& replication() = 0;
  virtual ClusterFigures cluster_figures() const { return {}; }
  // The session's connection becomes a link to another node: what sits on it is `replication`'s.
  // The reply of PEER, or why it is refused.
  virtual Result<std::string> AcceptPeer(Session& session, std::string_view version,
                                         std::string_view cluster, std::string_view node,
                                         std::string_view purpose, std::string_view features) = 0;
  // REPLICAOF host port, or NO ONE if `leader` is empty; the option `replicaof` follows it.
  virtual Status FollowLeader(const std::string& leader, uint16_t port) = 0;
  // Whether commands that write may be refused because of other nodes: ask at each.
  bool restrains_writes() const { return restrains_writes_; }
  // This node's set has come back, and serves nothing yet (cluster/cluster_view.h).
  bool closed() const { return closed_; }
  void SetClosed(bool closed) {
    closed_ = closed;
    Fold();
  }
  // Whether rows are those of several sets, so that each command is asked which one it goes to.
  bool routes() const { return routes_; }
  void SetRoutes(bool routes) {
    routes_ = routes;
    Fold();
  }
  // Whether this node's set, which has nothing, waits to be taken into a cluster.
  bool awaits_cluster() const { return awaits_cluster_; }
  void SetAwaitsCluster(bool awaits) {
    awaits_cluster_ = awaits;
    Fold();
  }
  // Any of these.
  bool asks_nodes() const { return asks_nodes_; }
  // Other nodes have something to do with commands, and it is nothing that refuses them all.
  bool has_lane() const { return has_lane_; }

  // --- the end
  // Stops accepting, flushes, leaves with status 0 after this turn. An error: it does not.
  virtual Status Shutdown(ShutdownMode mode) = 0;
  // The leader of a replica set hands over first, and shuts down then: true. Asked again meanwhile
  // it does not wait any longer.
  virtual bool ShutdownLater(ShutdownMode mode) {
    (void)mode;
    return false;
  }
  // Takes that back. False: there is nothing to be taken back.
  virtual bool CancelShutdown() { return false; }
  // Options of this topic have changed: the server takes them over.
  virtual Status ApplyConfig(ConfigTopic topic) = 0;

 protected:
  void RestrainWrites(bool restrains) {
    restrains_ = restrains;
    Fold();
  }

  // Set by the implementation before the first command; owned by it.
  Services* services_{nullptr};
  Dispatcher* dispatcher_{nullptr};
  // Every command asks for these, so they are members and no calls; the implementation sets them.
  Store* store_{nullptr};
  bool loading_{true};
  Pause pause_{Pause::kNone};

 private:
  void Fold() {
    restrains_writes_ = restrains_ || closed_;
    asks_nodes_ = routes_ || restrains_writes_ || awaits_cluster_;
    has_lane_ = asks_nodes_ && !closed_ && !awaits_cluster_;
  }

  bool restrains_{false};
  bool closed_{false};
  bool restrains_writes_{false};
  bool routes_{false};
  bool awaits_cluster_{false};
  bool asks_nodes_{false};
  bool has_lane_{false};
};

}  // namespace cellar
