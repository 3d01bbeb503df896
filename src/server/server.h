// Server: the loop. Listens, reads, lets the dispatcher work, and ends every turn in the same
// order:
//
//   poll     read callbacks: parse and execute all commands at hand, replies into the outputs
//   EndTurn  1 tasks: a slice of about a millisecond, round robin
//            2 the store hands the turn's log records to the sync thread
//            3 every output that grew is sent (one uv_try_write each), as far as it is released
//            4 commands that had to wait and no longer must are parsed
//
// The journal wakes the loop by a uv_async when more records are durable. One thread, no locks.
// Callbacks are thin and noexcept; what they decide lives in Connection and the commands.
#pragma once

#include <uv.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "commands/dispatch.h"
#include "commands/host.h"
#include "commands/services.h"
#include "server/connection.h"

namespace cellar {

struct ServerOptions {
  std::string bind{"127.0.0.1"};
  int port{6479};
  std::string unix_socket;
};

class Server final : public Host {
 public:
  explicit Server(Clock& clock);
  ~Server() override;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // What journal threads call: wakes the loop. Any thread.
  void Wake() noexcept { (void)uv_async_send(&wake_); }
  // The data to serve. REQUIRES: before Run; `store` outlives the server.
  void Attach(Store* store) { store_ = store; }

  // Binds and listens. kIo with the address if that fails.
  Status Listen(const ServerOptions& options);
  // Serves until Shutdown; returns the exit status of the process.
  int Run();

  // --- Host
  Store& store() override { return *store_; }
  Clock& clock() override { return clock_; }
  bool loading() const override { return false; }
  Lsn released_lsn() const override;
  size_t memory_used_bytes() const override;
  void ForEachSession(const std::function<void(Session&)>& visit) override;
  Session* FindSession(uint64_t id) override;
  size_t session_count() const override { return connections_.size(); }
  void KillSession(Session& session) override;
  void ScheduleFlush(Session& session) override {
    if (session.flush_pending) return;
    session.flush_pending = true;
    flush_list_.push_back(Connection::Of(session));
  }
  void PauseClients(int64_t until_micros, bool writes_only) override;
  void UnpauseClients() override;
  void WakeTasks() override { tasks_woken_ = true; }
  Status Shutdown(ShutdownMode mode) override;
  Status ApplyConfig(std::string_view name) override;

  // --- for Connection
  Dispatcher& dispatcher_object() { return dispatcher_own_; }
  std::vector<std::string_view>* scratch_args() { return &scratch_args_; }
  int64_t bulk_bytes_max() const { return bulk_bytes_max_; }
  size_t query_buffer_bytes_max() const { return query_buffer_bytes_max_; }
  void AddTask(Connection* connection);
  void StartReading(Connection* connection);
  void Recycle(OutputBuffer* buffer);
  void CountOutput(size_t bytes) {
    services_own_.stats.output_bytes += bytes;
    ++services_own_.stats.writes;
  }
  void QueryBufferExceeded(Connection& connection);
  void LogProtocolError(Connection& connection, std::string_view error);
  // The connection is being closed: nothing may point to it any more.
  void Forget(Connection* connection);

 private:
  static constexpr size_t kReadBytes{64 * 1024};
  static constexpr int64_t kTaskSliceMicros{1000};
  static constexpr uint64_t kSweepCells{20'000};  // examined ten times a second
  static constexpr size_t kRecycledBytesMax{64 * 1024};
  static constexpr size_t kRecycledBuffersMax{64};

  void Accept(uv_stream_t* listener, SocketKind kind);
  void BeginTurn();
  void EndTurn();
  void RunTasks();
  void FlushAll();
  void OnSecondTenth();  // ten times a second
  void OnWake();         // the journal has news
  void Stop();

  Clock& clock_;
  Store* store_{nullptr};
  Services services_own_;
  Dispatcher dispatcher_own_{*this};
  uv_loop_t loop_{};
  uv_tcp_t tcp_listener_{};
  uv_pipe_t unix_listener_{};
  uv_check_t check_{};
  uv_prepare_t prepare_{};
  uv_idle_t idle_{};  // active while the loop must not sleep
  uv_timer_t timer_{};
  uv_async_t wake_{};
  uv_signal_t sigterm_{};
  uv_signal_t sigint_{};
  bool tcp_listening_{false};
  bool unix_listening_{false};
  bool idle_running_{false};
  bool stopping_{false};
  bool tasks_woken_{false};

  std::unique_ptr<char[]> read_buffer_{new char[kReadBytes]};
  std::vector<std::string_view> scratch_args_;
  std::vector<Connection*> connections_;
  std::unordered_map<uint64_t, Connection*> connections_by_id_;
  std::vector<Connection*> flush_list_;
  std::vector<Connection*> flush_now_;
  std::vector<Connection*> tasks_;
  size_t next_task_{0};
  std::vector<OutputBuffer> recycled_;
  uint64_t next_id_{1};
  int64_t bulk_bytes_max_{512LL * 1024 * 1024};
  size_t query_buffer_bytes_max_{1024ULL * 1024 * 1024};
};

}  // namespace cellar
