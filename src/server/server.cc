// The server's life and its turn. See server.h.
#include "server/server.h"

#include <fmt/format.h>
#include <openssl/rand.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/assert.h"
#include "base/os/log.h"
#include "cellar/version.h"
#include "commands/all_commands.h"
#include "commands/session/pubsub.h"
#include "commands/session/transaction.h"
#include "replica/set_node.h"
#include "server/connection/peer_side.h"
#include "server/server_listener.h"

namespace cellar {
namespace {

Server* ServerOf(const uv_loop_t* loop) { return static_cast<Server*>(loop->data); }

// 40 hexadecimal digits that no other start has.
std::string NewRunId() {
  unsigned char bytes[20] = {};
  (void)RAND_bytes(bytes, sizeof(bytes));
  std::string id;
  for (const unsigned char byte : bytes) id += fmt::format("{:02x}", byte);
  return id;
}

// Whether one of them has something to do before it is woken.
bool SomeProceed(const std::vector<Connection*>& tasks) {
  return std::any_of(tasks.begin(), tasks.end(), [](const Connection* connection) {
    return !connection->session.task->waiting;
  });
}

}  // namespace

Server::Server(Clock& clock, Config config, ConfigSources sources)
    : clock_(clock), replication_(*this, FileSystem::Posix(), clock) {
  services_ = &services_own_;
  dispatcher_ = &dispatcher_own_;
  services_own_.config = std::move(config);
  services_own_.config_sources = std::move(sources);
  services_own_.run_id = NewRunId();
  services_own_.stats.start_micros = clock_.WallMicros();
  services_own_.stats.start_monotonic_micros = clock_.MonotonicMicros();
  services_own_.readers.SetWake([this] { WakeFromThread(); });
  services_own_.work_memory.SetWake([this] { WakeTasks(); });
  services_own_.merge_memory.SetWake([this] { WakeTasks(); });
  AddAllCommands(&services_own_.commands);
  dispatcher_own_.UpdateSlowBound();
  ConfigureHeat();
  (void)std::signal(SIGPIPE, SIG_IGN);
  (void)std::signal(SIGXFSZ, SIG_IGN);  // a limit of file sizes is a full disk, not the end
  const int failure = uv_loop_init(&loop_);
  CELLAR_ASSERT(failure == 0);
  loop_.data = this;
  (void)uv_check_init(&loop_, &check_);
  (void)uv_prepare_init(&loop_, &prepare_);
  (void)uv_idle_init(&loop_, &idle_);
  (void)uv_timer_init(&loop_, &tenth_);
  (void)uv_timer_init(&loop_, &poll_timer_);
  (void)uv_timer_init(&loop_, &watchdog_);
  set_timer_.Open(&loop_);
  (void)uv_signal_init(&loop_, &sigterm_);
  (void)uv_signal_init(&loop_, &sigint_);
  (void)uv_signal_init(&loop_, &sighup_);
  (void)uv_async_init(&loop_, &async_, [](uv_async_t* h) noexcept { ServerOf(h->loop)->OnWake(); });
  io_bell_.Open(&loop_);
  // A turn ends behind the poll, for what was read there, and before the next one, for what timers
  // did.
  (void)uv_check_start(&check_, [](uv_check_t* h) noexcept {
    ServerOf(h->loop)->AfterPoll();
    ServerOf(h->loop)->EndTurn();
  });
  (void)uv_prepare_start(&prepare_, [](uv_prepare_t* h) noexcept {
    ServerOf(h->loop)->connection_services_.large_intake.BeginRound();
    ServerOf(h->loop)->EndTurn();
    ServerOf(h->loop)->BeforePoll();
  });
  const auto period_ms = static_cast<uint64_t>(1000 / services_own_.config.hz);
  (void)uv_timer_start(
      &tenth_, [](uv_timer_t* h) noexcept { ServerOf(h->loop)->OnCron(); }, period_ms, period_ms);
  const auto on_signal = [](uv_signal_t* h, int number) noexcept {
    const std::string name = number == SIGTERM ? "SIGTERM" : "SIGINT";
    Server* const server = ServerOf(h->loop);
    // Why it stays, where it does, has been logged.
    const bool later = server->ShutdownLater(ShutdownMode::kDefault);
    if (!later && !server->Shutdown(ShutdownMode::kDefault).ok()) return;
    Log(LogSeverity::kNotice, name + (later ? ": leaving, what is under way first" : ": leaving"));
  };
  (void)uv_signal_start(&sigterm_, on_signal, SIGTERM);
  (void)uv_signal_start(&sigint_, on_signal, SIGINT);
  (void)uv_signal_start(
      &sighup_, [](uv_signal_t* h, int) noexcept { ServerOf(h->loop)->OnHangup(); }, SIGHUP);
  if (const uint64_t millis = notify_.watchdog_interval_ms(); millis > 0) {
    (void)uv_timer_start(
        &watchdog_, [](uv_timer_t* h) noexcept { ServerOf(h->loop)->notify_.Send("WATCHDOG=1"); },
        millis, millis);
  }
  UpdateMemory();
  memory_startup_bytes_ = memory().resident_bytes;
  UpdateMemory();
  BeginTurn();
}

Server::~Server() {
  if (!stopping_) Stop();
  (void)uv_run(&loop_, UV_RUN_DEFAULT);  // close callbacks
  (void)uv_loop_close(&loop_);
}

// Called throughout the load. Every 5 ms the loop gets a turn, so that clients hear LOADING and
// signals are heard. Once a second the service manager is asked for 30 seconds more.
Status Server::PollWhileLoading(const LoadProgress& progress) {
  constexpr int64_t kIntervalMicros{5'000};
  constexpr int64_t kTellMicros{1'000'000};
  load_progress_ = progress;
  const int64_t now = clock_.MonotonicMicros();
  if (loading_start_unix_s_ == 0) loading_start_unix_s_ = clock_.WallMicros() / 1'000'000;
  if (now - loading_polled_micros_ < kIntervalMicros) return Status::Ok();
  const bool tell = now / kTellMicros != loading_polled_micros_ / kTellMicros;
  loading_polled_micros_ = now;
  if (tell && notify_.active()) {
    notify_.Send(fmt::format("EXTEND_TIMEOUT_USEC=30000000\nSTATUS=Loading: {} of {} MB",
                             progress.bytes_done >> 20, progress.bytes_total >> 20));
  }
  (void)uv_run(&loop_, UV_RUN_NOWAIT);
  if (stopping_) return Status::Error(ErrorCode::kLoading, "loading was interrupted");
  return Status::Ok();
}

Status Server::Attach(Store* store) {
  store_ = store;
  loading_ = false;
  released_seen_ = store_->journal().released_lsn();
  store_->set_memory_is_short([this] {
    const int64_t memory_max = services_own_.config.maxmemory;
    return memory_max > 0 && memory_used_bytes() > static_cast<uint64_t>(memory_max);
  });
  store_->set_reclaim_listener([this](const Table& table, std::string_view row_key) {
    Tracking& tracking = services_own_.tracking;
    if (tracking.active()) tracking.RowReclaimed(*this, table, row_key);
  });
  store_->set_apply_listener(&applied_changes_);
  // CONFIG SET and SIGHUP are heard while data is loaded, by a store of the options of the start.
  ApplyStoreConfig();
  Status status = replication_.Attach(store, services_own_.config.dir);
  if (status.ok() && replication_.set() == nullptr) status = ApplyReplicaOf();
  if (replication_.set() != nullptr) {
    dispatcher_own_.SetPassing(&command_links_);
    services_own_.remote = &command_links_.remote();
    services_own_.tracked_sets = &command_links_.tracked_sets();
    services_own_.moves = &command_links_.moves();
    services_own_.cuts = &command_links_.cluster().cuts();
  }
  if (!status.ok()) Detach();
  return status;
}

int Server::Run() {
  if (stopping_) return exit_status_;  // a signal came while data was loaded
  Log(LogSeverity::kNotice, "Ready to accept connections");
  notify_.Send("READY=1\nSTATUS=Ready to accept connections");
  (void)uv_run(&loop_, UV_RUN_DEFAULT);
  return exit_status_;
}

// A snapshot that is asked for and fails keeps the server going: data that nobody has saved is not
// thrown away.
Status Server::Shutdown(ShutdownMode mode) {
  if (stopping_) return Status::Ok();
  notify_.Send("STOPPING=1\nSTATUS=Writing the rest to disk");
  if (store_ != nullptr) {
    const Config& config = services_own_.config;
    const bool by_default =
        mode == ShutdownMode::kDefault && !config.appendonly && !config.save_rules.empty();
    if (mode == ShutdownMode::kSave || by_default) {
      if (Status status = store_->journal().SaveNow(); !status.ok()) {
        Log(LogSeverity::kWarning, "cannot shut down: " + status.text());
        notify_.Send("STATUS=Ready to accept connections");
        return status;
      }
    }
    store_->Flush();
  }
  Stop();
  return Status::Ok();
}

// The replies of this turn are sent as far as the sockets take them at once; then everything is
// closed, and the loop runs out of handles.
void Server::Stop() {
  if (stopping_) return;
  stopping_ = true;
  FlushAll();
  // Without the others nobody knows any more what may be told.
  if (replication_.set() != nullptr) KillClients();
  replication_.Detach();
  FlushAll();
  while (!connections_.empty()) connections_.back()->Close();
  EndIoThreads();
  command_links_.cluster().Stop();
  services_own_.readers.End();
  services_own_.aggregators.End();
  services_own_.cut_digests.Clear();
  CloseListeners();
  const auto close = [](auto& handle) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): libuv's way of inheritance.
    uv_close(reinterpret_cast<uv_handle_t*>(&handle), nullptr);
  };
  close(check_);
  close(prepare_);
  close(idle_);
  close(tenth_);
  close(poll_timer_);
  close(watchdog_);
  close(set_timer_.handle());
  close(async_);
  io_bell_.Close();
  close(sigterm_);
  close(sigint_);
  close(sighup_);
}

void Server::StartReading(Connection* connection) {
  const auto allocate = [](uv_handle_t* handle, size_t, uv_buf_t* buffer) noexcept {
    // One read a turn: what more a connection has sent waits until the others have been read.
    Server* const server = ServerOf(handle->loop);
    if (Connection::Of(*ClientSocket::Of(handle))->read_in_turn == server->turn_) return;
    const std::span<char> room = server->input_.NextRead();
    *buffer = uv_buf_init(room.data(), static_cast<unsigned>(room.size()));
  };
  const auto read = [](uv_stream_t* stream, ssize_t bytes, const uv_buf_t*) noexcept {
    auto* const socket = static_cast<ClientSocket*>(stream->data);
    ServerOf(stream->loop)->OnRead(Connection::Of(*socket), bytes);
  };
  (void)uv_read_start(connection->socket()->stream(), allocate, read);
}

void Server::OnRead(Connection* client, int64_t bytes) {
  if (bytes == 0 || bytes == UV_ENOBUFS) return;  // nothing there; it was not given memory
  if (bytes < 0) {
    // What it sent before its end is carried out first.
    if (client->input_waits) input_.Process();
    if (client->closing()) return;
    return bytes == UV_EOF ? client->EndInput() : client->Close();
  }
  BeginTurn();
  services_own_.stats.input_bytes += static_cast<uint64_t>(bytes);
  ++services_own_.stats.reads;
  client->session.bytes_in += static_cast<uint64_t>(bytes);
  client->session.last_activity_micros = dispatcher_own_.now_micros();
  client->read_in_turn = turn_;
  input_.Add(client, static_cast<size_t>(bytes));
  if (input_.full()) input_.Process();
}

// The clock is read once a turn by the dispatcher and once by the store, both here.
void Server::BeginTurn() {
  if (turn_begun_) return;
  turn_begun_ = true;
  turn_begin_cycles_ = CycleClock::Now();
  dispatcher_own_.BeginTurn(clock_.WallMicros(), released_lsn());
  if (const SetNode* const set = replication_.set(); set != nullptr) [[unlikely]]
    dispatcher_own_.SetFloor(set->floor());
  if (store_ == nullptr) return;
  store_->SetTurnTime();
  if (services_own_.config.maxmemory > 0 || services_own_.config.maxmemory_clients_bytes > 0)
    UpdateMemory();
}

// In this order: what clients have sent is executed, tasks get their slice, then the log gets the
// records and the clients get the replies. Nothing of a turn is sent before its records are with
// the log.
void Server::EndTurn() {
  if (stopping_) return;
  if (!input_.empty()) input_.Process();
  if (!io_threads_.empty()) TakeInput();
  if (connection_services_.large_intake.holds_some() && !set_timer_.waits()) [[unlikely]] {
    BeginTurn();
    connection_services_.large_intake.Resume();
  }
  if (restrains_writes()) ApplyFromLeader();
  const bool tasks = !tasks_.empty() || command_links_.has_tasks();
  if (tasks && (tasks_woken_ || SomeProceed(tasks_) || command_links_.tasks_proceed())) {
    ReleaseReplies();  // nobody's reply waits for a slice of somebody's long command
    RunTasks();
  }
  if (stopping_) return;
  if (turn_begun_ && store_ != nullptr) ++services_own_.stats.turns;
  ReleaseReplies();
  if (turn_begun_) {
    const uint64_t cycles = CycleClock::Now() - turn_begin_cycles_;
    CountTurn(dispatcher_own_.cycles().ToNanos(cycles));
  }
  turn_begun_ = false;
  ++turn_;
  if (!stopping_) UpdateIdle();
}

void Server::CountTurn(uint64_t nanos) {
  ServerStats& stats = services_own_.stats;
  stats.turn_nanos += nanos;
  stats.turn_nanos_max = std::max(stats.turn_nanos_max, nanos);
  const int64_t threshold_millis = services_own_.config.latency_monitor_threshold;
  const auto millis = static_cast<int64_t>(nanos / 1'000'000);
  if (threshold_millis == 0 || millis < threshold_millis) return;
  services_own_.latency.Add("eventloop", dispatcher_own_.now_micros() / 1'000'000, millis);
}

// Records to the log, replies to the clients that may have them.
void Server::ReleaseReplies() {
  if (stopping_) return;
  if (turn_begun_ && store_ != nullptr) store_->Flush();
  if (SetNode* const set = replication_.set(); set != nullptr) [[unlikely]] {
    command_links_.cluster().BeforeReplies();
    set->AwaitCommits(!tasks_.empty() || command_links_.lags());
  }
  if (replication_.active()) replication_.OnFlushed();
  if (!gated_.empty()) ReleaseGated();
  SendAll();
  if (SetNode* const set = replication_.set(); set != nullptr) [[unlikely]] {
    if (dispatcher_own_.TakeFloorUse()) set->OnRepliesWait(dispatcher_own_.floor());
    SendAll();
    if (!stopping_) set_timer_.Update(set->timer_micros());
  }
  PostOutput();
}

// A client that goes on while outputs are sent may have something passed on.
void Server::SendAll() {
  if (replication_.set() != nullptr) [[unlikely]] {
    command_links_.OnTurn(released_lsn());
    if (!flush_list_.empty()) FlushAll();
    command_links_.OnTurn(released_lsn());
  }
  if (!flush_list_.empty()) FlushAll();
}

void Server::UpdateIdle() {
  const bool busy = !flush_list_.empty() || InputWaits() ||
                    connection_services_.large_intake.holds_some() || SomeProceed(tasks_) ||
                    (tasks_woken_ && (!tasks_.empty() || command_links_.has_tasks())) ||
                    command_links_.tasks_proceed();
  UpdatePollTimer();
  if (busy == idle_running_) return;
  idle_running_ = busy;
  if (busy) {
    (void)uv_idle_start(&idle_, [](uv_idle_t*) noexcept {});
  } else {
    (void)uv_idle_stop(&idle_);
  }
}

void Server::AddTask(Connection* connection) {
  CELLAR_ASSERT(!connection->has_task);
  connection->has_task = true;
  connection->session.WakeTask();
  tasks_.push_back(connection);
}

// Round robin, one slice for each, until the turn's time for tasks is spent; next_task_ remembers
// whose turn is next.
void Server::RunTasks() {
  BeginTurn();
  const TaskBudget budget(clock_, clock_.MonotonicMicros() + kTaskSliceMicros);
  const bool woken = tasks_woken_;
  tasks_woken_ = false;
  for (size_t left = tasks_.size(); left > 0 && !tasks_.empty() && !budget.Spent(); --left) {
    next_task_ %= tasks_.size();
    Connection* connection = tasks_[next_task_];
    // Of a client that is gone nothing is carried out any more.
    if ((connection->session.task->waiting && !woken) || connection->session.ended()) {
      ++next_task_;
      continue;
    }
    if (!dispatcher_own_.StepTask(connection->session, budget)) {
      ++next_task_;
    } else {
      connection->has_task = false;
      tasks_.erase(tasks_.begin() + static_cast<std::ptrdiff_t>(next_task_));
    }
    ScheduleFlush(connection->session);  // which looks at the limits and counts
  }
  command_links_.RunTasks(budget, woken);
}

void Server::FlushAll() {
  flush_now_.swap(flush_list_);
  // The journal looks at the clock to tell; once for all will do.
  if (!flush_now_.empty()) connection_services_.released = released_lsn();
  // Less than a moment ago, where a lease has run out: what waits is looked at when it is back.
  released_seen_ = std::min(released_seen_, connection_services_.released);
  // Closing a connection empties its place in the list.
  for (size_t i = 0; i < flush_now_.size(); ++i) {
    Connection* connection = flush_now_[i];
    if (connection == nullptr) continue;
    connection->session.flush_pending = false;
    connection->Flush();
    // A client that was held up, as by its own output, goes on with what it has sent already.
    if (flush_now_[i] == nullptr || stopping_ || !connection->Resumable()) continue;
    BeginTurn();
    connection->Feed({}, {});
  }
  flush_now_.clear();
}

void Server::AddGated(Connection* connection) {
  CELLAR_ASSERT(!connection->gated);
  connection->gated = true;
  gated_.push_back(connection);
}

// Connections whose output waits for a record are looked at only when more has been released.
void Server::ReleaseGated() {
  const Lsn released = released_lsn();
  if (released == released_seen_) return;
  released_seen_ = released;
  // What may be acknowledged may be read: those who wait for it look in the next turn.
  tasks_woken_ = true;
  for (Connection* connection : gated_) {
    connection->gated = false;
    ScheduleFlush(connection->session);
  }
  gated_.clear();
}

void Server::OnWake() {
  services_own_.readers.Reap();
  if (store_ == nullptr || stopping_) return;
  store_->journal().Poll();
  if (store_->backup().working()) store_->backup().Poll();
  // Nobody knows here for whom it was, so all tasks that wait look once.
  tasks_woken_ = true;
}

// Everything that knows the connection by its pointer lets go of it. The last one takes its place
// in connections_, so that no other index changes.
void Server::Forget(Connection* connection) {
  Session& session = connection->session;
  if (connection->peer() != nullptr) connection->peer()->OnClosed();
  connection->passed.reset();
  services_own_.pubsub.UnsubscribeAll(session);
  services_own_.tracking.Disable(session);
  if (session.monitor) --services_own_.monitors;
  if (store_ != nullptr) DiscardTransaction(*this, session);
  if (session.task != nullptr) session.task->work->Abandon();
  session.task.reset();
  clients_bytes_ -= connection->counted_bytes;
  connections_by_id_.erase(session.id);
  Connection* last = connections_.back();
  connections_[connection->index] = last;
  last->index = connection->index;
  connections_.pop_back();
  input_.Forget(connection);
  connection_services_.large_intake.Forget(connection);
  if (connection->has_task) std::erase(tasks_, connection);
  if (connection->gated) std::erase(gated_, connection);
  if (session.flush_pending) std::erase(flush_list_, connection);
  std::replace(flush_now_.begin(), flush_now_.end(), connection, static_cast<Connection*>(nullptr));
}

}  // namespace cellar
