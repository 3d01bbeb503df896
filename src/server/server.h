// Server: the loop. Listens, reads, lets the dispatcher work, and ends every turn in the same
// order:
//
//   poll     read callbacks: what comes is kept (turn_input.h)
//   EndTurn  1 all commands at hand are executed, replies into the outputs; a follower applies a
//              slice of what its leader has sent
//            2 tasks, if there are any: 3 to 5 for what is done already, then a slice of about a
//              millisecond, round robin
//            3 the store hands the turn's log records to the sync thread
//            4 every output that grew is sent (one send each), as far as it is released
//            5 commands that had to wait and no longer must are parsed
//
// The journal wakes the loop by a uv_async when more records are durable: outputs behind a reply
// gate are looked at again. Callbacks are thin and noexcept; what they decide lives in Connection
// and the commands. With `io-threads` above 1 clients are read from and written to by other threads
// (net/io_thread.h), whose blocks are the input of a turn and take its outputs; everything else,
// and all that is decided, stays on this one, without a lock.
//
//   server.cc        construction, run, stop, the turn, tasks
//   listeners.cc     addresses, accepting, refusing
//   server_cron.cc   what happens now and then: timeouts, limits, rates, sweeping
//   reload.cc        SIGHUP
//   tls_server.cc    the certificate that TLS connections begin with, and its replacement
//   server_host.cc   what commands ask of the process (Host)
//   server_io.cc     I/O threads: what they bring and take
//   server_peers.cc  connections to other nodes, and what replication asks of the process
//   server_set.cc    a member of a replica set: its options, its timer, what Sentinel would publish
#pragma once

#include <uv.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "commands/dispatch/dispatch.h"
#include "commands/dispatch/request_shapes.h"
#include "commands/session/applied_changes.h"
#include "commands/session/host.h"
#include "commands/session/services.h"
#include "replica/links/peer.h"
#include "replica/replication.h"
#include "server/arrival_log.h"
#include "server/command_links.h"
#include "server/connection/command_batch.h"
#include "server/connection/command_reader.h"
#include "server/connection/connection.h"
#include "server/connection/turn_input.h"
#include "server/net/buffer_pool.h"
#include "server/net/doorbell.h"
#include "server/net/io_thread.h"
#include "server/net/tls_context.h"
#include "server/persistence_log.h"
#include "server/set_timer.h"
#include "server/systemd_notify.h"
#include "store/store.h"

namespace cellar {

// What a listener's clients begin with.
enum class SocketSpeech : uint8_t { kPlain, kTls };

class Server final : public Host, private ConnectionHost, private ReplicationHost {
 public:
  // `config` is what `sources` say.
  Server(Clock& clock, Config config, ConfigSources sources);
  ~Server() override;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Users as the configuration and the aclfile say. Before Listen.
  Status LoadUsers();
  // Writes the aclfile that LoadUsers let pass as one to come. When the store is open.
  Status BeginAclFile();
  // Binds and listens, or takes over the sockets that systemd has opened; from now on
  // PollWhileLoading answers clients with LOADING. kIo with the address if that fails.
  Status Listen();
  // To be called now and then while the store is being opened. kLoading: a signal or SHUTDOWN came,
  // the load shall end.
  Status PollWhileLoading(const LoadProgress& progress);
  // A signal or SHUTDOWN came: Run, if it is called at all, returns at once.
  bool stopping() const { return stopping_; }
  // The store is there: commands are answered. Borrowed; it outlives Run(). An error: what the
  // folder says of other nodes cannot be read; no store is known then.
  Status Attach(Store* store);
  // For JournalOptions::members.
  std::string members_payload() const;
  // After Run: the store is about to go.
  void Detach() {
    replication_.Detach();
    store_ = nullptr;
    loading_ = true;
  }
  // Serves until Shutdown or a signal; returns the exit status of the process.
  int Run();
  // For JournalOptions::wake: may be called from any thread while the server lives.
  void WakeFromThread() { (void)uv_async_send(&async_); }

  // --- Host
  Clock& clock() override { return clock_; }
  int64_t now_micros() const override { return dispatcher_own_.now_micros(); }
  Lsn released_lsn() const override;
  Lsn durable_lsn() const override;
  Lsn last_lsn() const override;
  uint64_t memory_used_bytes() const override { return memory_used_bytes_; }
  MemoryFigures memory() override;
  PersistenceFigures persistence() override;
  DataFigures data_figures() override;
  std::vector<KeyspaceFigures> keyspaces() override;
  Status StartSnapshot() override;
  Status FinishSnapshot() override;
  void ReleaseFreeMemory() override;
  void ForEachSession(const std::function<void(Session&)>& visit) override;
  Session* FindSession(uint64_t id) override;
  size_t session_count() const override { return connections_.size(); }
  void KillSession(Session& session) override;
  void ScheduleFlush(Session& session) override {
    if (session.flush_pending) return;
    session.flush_pending = true;
    flush_list_.push_back(Connection::Of(session));
  }
  void Pushed(Session& session, size_t bytes) override;
  void EndForOutput(Session& session) override;
  void PauseClients(int64_t until_micros, Pause pause) override;
  void UnpauseClients() override;
  void WakeTasks() override { tasks_woken_ = true; }
  Status Shutdown(ShutdownMode mode) override;
  bool ShutdownLater(ShutdownMode mode) override;
  bool CancelShutdown() override;
  Status ApplyConfig(ConfigTopic topic) override;
  Status ReloadStore() override;
  Replication& replication() override { return replication_; }
  Result<std::string> AcceptPeer(Session& session, std::string_view version,
                                 std::string_view cluster, std::string_view node,
                                 std::string_view purpose, std::string_view features) override;
  Status FollowLeader(const std::string& leader, uint16_t port) override;

 private:
  static constexpr int64_t kTaskSliceMicros{1000};
  static constexpr uint64_t kPollMillis{10};  // of waiting tasks, sweeping
  // While an index is built: a slice in each turn of the timer makes that half of the time.
  static constexpr uint64_t kBuildMillis{2};
  static constexpr uint64_t kSweepCells{2000};
  static constexpr size_t kConnectionsPerCron{1000};
  static constexpr size_t kRestingBytesMax{16 * 1024};      // of a connection
  static constexpr uint64_t kReturnedBytesMin{8ULL << 20};  // freed by clients: worth asking
  static constexpr uint32_t kGiveBackRounds{20};
  static constexpr int64_t kHandshakeMicros{10'000'000};  // for all of TLS's handshake

  struct Listener;

  // --- Host
  ClusterFigures cluster_figures() const override;

  // --- ConnectionHost
  void AddTask(Connection* connection) override;
  void StartReading(Connection* connection) override;
  void AddGated(Connection* connection) override;
  bool Recount(Connection* connection) override;
  bool OutputExceeded(Connection& connection) override;
  void Forget(Connection* connection) override;

  // listeners.cc
  Status ListenBind(int port, SocketSpeech speech);
  // After a change of `bind` or `port`: closes the TCP listeners and listens anew. Clients stay.
  Status ListenAgain();
  // Makes the log what `appendonly` says, or has it done when the running snapshot has ended.
  Status SwitchLog();
  void SwitchLogIfDue();
  Status ListenTcp(const std::string& address, int port, SocketSpeech speech);
  Status ListenUnix(const std::string& path);
  // The sockets of socket activation (sd_listen_fds(3)); how many there are.
  Result<int> ListenInherited();
  int StartListening(Listener* listener);
  void Accept(uv_stream_t* listener, const Listener& owner);
  // What Accept does once there is a connected socket.
  void Welcome(Connection* client, const Listener& owner);
  // Fewer than maxclients may fit into the system's limit of open files.
  Status FitClients();
  // `config` with as many clients as fit, which is told if they are fewer.
  void LowerMaxClients(Config* config);
  // There are more clients than places.
  bool BeyondPlaces(size_t clients);
  bool Refuse(Connection* client);
  // An accepted socket for which there is no place, before an I/O thread hears of it: it is told
  // and closed. False: there is one.
  bool RefuseUnadopted(int fd);
  size_t CountLeaving();
  // A connection made by libuv is taken into the lists: id, addresses, keepalive.
  void Register(Connection* client);
  // The addresses of its socket, and what the socket is to be like.
  void NameAddresses(Connection* client, SocketKind kind);
  void SetKeepalive(const Session& session) const;

  // server.cc
  // `bytes` were read into the turn's input, or it is libuv's error.
  void OnRead(Connection* client, int64_t bytes);
  void BeginTurn();
  void EndTurn();
  // A turn took so long.
  void CountTurn(uint64_t nanos);
  void ReleaseReplies();
  // Calls to and from other nodes leave, and the turn's outputs.
  void SendAll();
  void RunTasks();
  void FlushAll();
  void ReleaseGated();
  void UpdateIdle();
  void OnWake();
  void Stop();
  void CloseListeners();

  // server_io.cc
  void StartIoThreads();
  // REQUIRES: all connections are closed.
  void EndIoThreads();
  // Accept, for an I/O thread.
  void AcceptForThread(uv_stream_t* listener, const Listener& owner);
  // What the threads have read is processed.
  void TakeInput();
  void TakeBlock(const InputBlock& block);
  // Something is there for TakeInput.
  bool InputWaits() const;
  // The turn's outputs go to the threads.
  void PostOutput();
  // Around the time in which the loop may sleep.
  void BeforePoll();
  void AfterPoll() { io_bell_.Disarm(); }

  // server_peers.cc, server_set.cc
  struct DialRequest;
  void Dial(const std::string& host, uint16_t port, PeerHandler* handler) override;
  void DialSocket(const std::string& path, PeerHandler* handler) override;
  DialRequest* BeginDial(PeerHandler* handler);
  void CancelDial(PeerHandler* handler) override;
  void EndDial(DialRequest* request, std::string_view failure);
  Status ConnectTo(DialRequest* request, const sockaddr* address);
  void RunInBackground(std::function<void()> work, std::function<void()> done) override;
  void WakeSoon() override { (void)uv_async_send(&async_); }
  void WakeReads() override;
  void OnRoleChanged() override;
  void DisconnectClients() override;
  void DropClients() override;
  // All of them.
  void KillClients();
  void EndProcess(const std::string& why) override;
  void HoldWrites(bool held) override;
  Status ReplaceStore(const std::function<Status(Status* status)>& replace) override;
  // There is no store any more: as a start that fails.
  [[noreturn]] static void EndWithoutStore(const Status& status);
  void SetReplicationOptions();
  // Follows as `replicaof` says, or leads.
  Status ApplyReplicaOf();
  void UpdateRestraint();
  // What cluster-nodes needs, and which of them this node is.
  Status CheckSetOptions();
  // Publishes what Sentinel would: +sdown and -sdown of members, +switch-master and +slave where
  // another one leads the set than before.
  void TellOfMembers();
  void OnSetTimer();
  // It has handed over, or cannot: it leaves.
  void ShutDownIfDue();
  // What came from other nodes is applied; a slice of a millisecond.
  void ApplyFromLeader();

  // tls_server.cc
  // What connections that this node makes begin with.
  Status LoadTlsClient();
  // There is room to decrypt to.
  void ProvidePlaintext();
  // Reads certificate, key and authorities.
  Result<std::unique_ptr<TlsContext>> MakeTls() const;
  // What new connections get from now on.
  void UseTls(std::unique_ptr<TlsContext> context);
  // Both. An error: the context stays as it was.
  Status LoadTls();
  // What the options of TLS name can be used, as far as they name it.
  Status CheckTls() const;
  void ConfigureHeat();
  // ApplyConfig of the topics of the store. REQUIRES: it is there.
  Status ApplyStoreConfig(ConfigTopic topic);
  // All that the store goes by: for one that is new, or has another journal. REQUIRES: store_.
  void ApplyStoreConfig();

  // reload.cc
  void OnHangup();
  Status Reload();
  Status ApplyReload(const std::vector<const ConfigOption*>& options, const Config& before);

  // server_cron.cc
  void OnCron();  // `hz` times a second: ten by default
  void OnPoll();  // every kPollMillis while something waits
  void CheckConnections();
  void Sweep();
  void UpdateMemory();
  // Of connections as last counted, and what is kept for them besides.
  uint64_t ClientsBytes() const;
  void NoteOutputExceeded(const Session& session);
  // Disconnects the largest clients where all together hold too much (client_eviction.h).
  void EvictClients();
  void GiveMemoryBack();
  static void ReleaseAgedMemory();
  void UpdatePollTimer();

  Clock& clock_;
  Services services_own_;
  bool acl_file_is_to_come_{false};
  Replication replication_;
  Dispatcher dispatcher_own_{*this};
  CommandLinks command_links_{*this, *this};
  AppliedChanges applied_changes_{*this};
  SystemdNotify notify_;
  PersistenceLog persistence_log_;
  ArrivalLog arrival_log_;
  std::unique_ptr<TlsContext> tls_context_;         // null: no listener speaks TLS
  std::unique_ptr<TlsContext> tls_client_context_;  // null: links are not encrypted
  std::vector<DialRequest*> dials_;                 // libuv's until their callbacks
  uv_loop_t loop_{};
  std::vector<Listener*> listeners_;  // libuv's until their close callbacks
  uv_check_t check_{};
  uv_prepare_t prepare_{};
  uv_idle_t idle_{};  // active while the loop must not sleep
  uv_timer_t tenth_{};
  uv_timer_t poll_timer_{};  // active while tasks wait or memory is being swept
  uv_timer_t watchdog_{};
  uv_async_t async_{};
  uv_signal_t sigterm_{};
  uv_signal_t sigint_{};
  uv_signal_t sighup_{};
  bool listeners_inherited_{false};  // systemd says where
  bool idle_running_{false};
  uint64_t poll_millis_{0};  // 0: the timer does not run
  NodeAddress self_;         // of cluster-nodes
  SetTimer set_timer_{clock_, [this] { OnSetTimer(); }};
  int64_t look_for_leaving_micros_{0};  // not before that (monotonic)
  // What clients were told of members (by id) and the leader the last time.
  struct Told {
    std::optional<NodeAddress> leader{};
    std::set<uint64_t> down{};
  };
  Told told_;
  bool stopping_{false};
  std::optional<ShutdownMode> leaving_;  // once this node leads no more
  bool turn_begun_{false};
  bool tasks_woken_{false};
  bool sweep_pending_{false};
  bool log_switch_waits_{false};
  int exit_status_{0};
  int64_t pause_until_micros_{0};  // unless pause_ is kNone
  Lsn released_seen_{};            // when gated outputs were last looked at
  uint64_t turn_{1};               // counts poll phases
  uint64_t turn_begin_cycles_{0};
  uint64_t memory_used_bytes_{0};
  uint64_t memory_startup_bytes_{0};
  uint64_t clients_bytes_{0};       // sum of what is counted of the connections
  uint64_t clients_bytes_high_{0};  // since memory was last given back
  uint32_t give_back_rounds_{0};    // so often the allocator is still asked
  int64_t loading_start_unix_s_{0};
  LoadProgress load_progress_{};
  int64_t loading_polled_micros_{0};

  TurnInput input_{*this};
  std::unique_ptr<char[]> tls_plaintext_;  // there when tls_context_ is
  ParsedCommands commands_ahead_;
  RequestShapes request_shapes_;
  const CommandReader::Context reader_context_{services_own_.commands, request_shapes_};
  std::vector<Connection*> connections_;
  std::unordered_map<uint64_t, Connection*> connections_by_id_;
  size_t cron_next_{0};  // of connections_
  std::vector<Connection*> flush_list_;
  std::vector<Connection*> flush_now_;
  std::vector<Connection*> gated_;
  std::vector<Connection*> tasks_;
  size_t next_task_{0};
  BufferPool buffers_;
  ConnectionServices connection_services_{
      *this,    *this,           dispatcher_own_, services_own_.config, services_own_.stats,
      buffers_, reader_context_, commands_ahead_};
  Doorbell io_bell_;
  std::vector<std::unique_ptr<IoThread>> io_threads_;  // beside this one; none: it does all
  std::vector<std::unique_ptr<Connection>> closed_at_end_;
  uint64_t next_id_{1};
};

}  // namespace cellar
