// See server.h.
#include "server/server.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/assert.h"
#include "commands/command_groups.h"
#include "commands/pubsub.h"
#include "store/store.h"

namespace cellar {
namespace {

Server* ServerOf(const uv_loop_t* loop) { return static_cast<Server*>(loop->data); }

std::string AddressText(const sockaddr_storage& address) {
  char host[INET6_ADDRSTRLEN] = "?";
  int port = 0;
  if (address.ss_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &address, sizeof(in));
    (void)inet_ntop(AF_INET, &in.sin_addr, host, sizeof(host));
    port = ntohs(in.sin_port);
    return std::string(host) + ":" + std::to_string(port);
  }
  sockaddr_in6 in{};
  std::memcpy(&in, &address, sizeof(in));
  (void)inet_ntop(AF_INET6, &in.sin6_addr, host, sizeof(host));
  port = ntohs(in.sin6_port);
  return "[" + std::string(host) + "]:" + std::to_string(port);
}

}  // namespace

Server::Server(Clock& clock) : clock_(clock) {
  services_ = &services_own_;
  dispatcher_ = &dispatcher_own_;
  AddAllCommands(&services_own_.commands);
  (void)std::signal(SIGPIPE, SIG_IGN);
  CELLAR_ASSERT(uv_loop_init(&loop_) == 0);
  CELLAR_ASSERT(uv_async_init(&loop_, &wake_,
                              [](uv_async_t* h) noexcept { ServerOf(h->loop)->OnWake(); }) == 0);
  loop_.data = this;
  services_own_.stats.start_micros = clock_.WallMicros();
  services_own_.stats.start_monotonic_micros = clock_.MonotonicMicros();
  dispatcher_own_.SetTurnTime(clock_.WallMicros());
}

Server::~Server() { (void)uv_loop_close(&loop_); }

Status Server::Listen(const ServerOptions& options) {
  const auto fail = [](const std::string& what, int error) {
    return Status::Error(ErrorCode::kIo, what + ": " + uv_strerror(error));
  };
  if (options.port > 0) {
    sockaddr_in address{};
    int error = uv_ip4_addr(options.bind.c_str(), options.port, &address);
    if (error != 0) return fail(options.bind, error);
    (void)uv_tcp_init(&loop_, &tcp_listener_);
    sockaddr generic{};
    std::memcpy(&generic, &address, sizeof(generic));
    error = uv_tcp_bind(&tcp_listener_, &generic, 0);
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): libuv's way of inheritance.
    auto* stream = reinterpret_cast<uv_stream_t*>(&tcp_listener_);
    if (error == 0) {
      error = uv_listen(stream, 511, [](uv_stream_t* listener, int status) noexcept {
        if (status == 0) ServerOf(listener->loop)->Accept(listener, SocketKind::kTcp);
      });
    }
    if (error != 0) return fail(options.bind + ":" + std::to_string(options.port), error);
    tcp_listening_ = true;
  }
  if (!options.unix_socket.empty()) {
    (void)uv_pipe_init(&loop_, &unix_listener_, 0);
    (void)unlink(options.unix_socket.c_str());
    int error = uv_pipe_bind(&unix_listener_, options.unix_socket.c_str());
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): libuv's way of inheritance.
    auto* stream = reinterpret_cast<uv_stream_t*>(&unix_listener_);
    if (error == 0) {
      error = uv_listen(stream, 511, [](uv_stream_t* listener, int status) noexcept {
        if (status == 0) ServerOf(listener->loop)->Accept(listener, SocketKind::kUnix);
      });
    }
    if (error != 0) return fail(options.unix_socket, error);
    unix_listening_ = true;
  }
  return Status::Ok();
}

int Server::Run() {
  (void)uv_check_init(&loop_, &check_);
  (void)uv_prepare_init(&loop_, &prepare_);
  (void)uv_idle_init(&loop_, &idle_);
  (void)uv_timer_init(&loop_, &timer_);
  (void)uv_signal_init(&loop_, &sigterm_);
  (void)uv_signal_init(&loop_, &sigint_);
  (void)uv_check_start(&check_, [](uv_check_t* h) noexcept { ServerOf(h->loop)->EndTurn(); });
  (void)uv_prepare_start(&prepare_, [](uv_prepare_t* h) noexcept { ServerOf(h->loop)->EndTurn(); });
  (void)uv_timer_start(
      &timer_, [](uv_timer_t* h) noexcept { ServerOf(h->loop)->OnSecondTenth(); }, 100, 100);
  const auto on_signal = [](uv_signal_t* h, int) noexcept { ServerOf(h->loop)->Stop(); };
  (void)uv_signal_start(&sigterm_, on_signal, SIGTERM);
  (void)uv_signal_start(&sigint_, on_signal, SIGINT);
  (void)uv_run(&loop_, UV_RUN_DEFAULT);
  return 0;
}

void Server::Stop() {
  if (stopping_) return;
  stopping_ = true;
  FlushAll();
  uv_walk(
      &loop_,
      [](uv_handle_t* handle, void* self) noexcept {
        if (uv_is_closing(handle) != 0) return;
        const auto* server = static_cast<Server*>(self);
        const bool stream = handle->type == UV_TCP || handle->type == UV_NAMED_PIPE;
        // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): libuv's way of inheritance.
        const bool listener =
            handle == reinterpret_cast<const uv_handle_t*>(&server->tcp_listener_) ||
            // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
            handle == reinterpret_cast<const uv_handle_t*>(&server->unix_listener_);
        if (stream && !listener) {
          Connection::Of(handle)->Close();
        } else {
          uv_close(handle, nullptr);
        }
      },
      this);
}

Status Server::Shutdown(ShutdownMode mode) {
  (void)mode;
  Stop();
  return Status::Ok();
}

void Server::Accept(uv_stream_t* listener, SocketKind kind) {
  auto connection = std::make_unique<Connection>(this, kind);
  Connection* client = connection.get();
  if (kind == SocketKind::kTcp) {
    (void)uv_tcp_init(&loop_, &client->handle_.tcp);
  } else {
    (void)uv_pipe_init(&loop_, &client->handle_.pipe, 0);
  }
  client->handle_.handle.data = client;
  (void)connection.release();  // libuv's from here on, until the close callback
  Session& session = client->session;
  session.id = next_id_++;
  session.created_micros = session.last_activity_micros = dispatcher_own_.now_micros();
  client->index = connections_.size();
  connections_.push_back(client);
  connections_by_id_.emplace(session.id, client);
  ++services_own_.stats.connections;
  if (uv_accept(listener, client->stream()) != 0) return client->Close();
  (void)uv_fileno(client->handle(), &session.fd);
  if (kind == SocketKind::kTcp) {
    (void)uv_tcp_nodelay(&client->handle_.tcp, 1);
    sockaddr_storage address{};
    int size = sizeof(address);
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the socket API.
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (uv_tcp_getpeername(&client->handle_.tcp, generic, &size) == 0) {
      session.address = AddressText(address);
    }
    size = sizeof(address);
    if (uv_tcp_getsockname(&client->handle_.tcp, generic, &size) == 0) {
      session.local_address = AddressText(address);
    }
  } else {
    session.unix_socket = true;
  }
  client->UpdateReading();
}

void Server::StartReading(Connection* connection) {
  const auto allocate = [](uv_handle_t* handle, size_t, uv_buf_t* buffer) noexcept {
    *buffer = uv_buf_init(ServerOf(handle->loop)->read_buffer_.get(), kReadBytes);
  };
  const auto read = [](uv_stream_t* stream, ssize_t bytes, const uv_buf_t* buffer) noexcept {
    auto* client = static_cast<Connection*>(stream->data);
    if (bytes < 0) return client->Close();
    if (bytes == 0) return;
    Server* server = client->server_;
    ServerStats& stats = server->services_own_.stats;
    stats.input_bytes += static_cast<uint64_t>(bytes);
    ++stats.reads;
    client->session.bytes_in += static_cast<uint64_t>(bytes);
    server->BeginTurn();
    client->session.last_activity_micros = server->dispatcher_own_.now_micros();
    client->Feed({buffer->base, static_cast<size_t>(bytes)});
  };
  (void)uv_read_start(connection->stream(), allocate, read);
}

void Server::BeginTurn() {
  dispatcher_own_.SetTurnTime(clock_.WallMicros());
  store_->SetTurnTime();
}

void Server::EndTurn() {
  if (!tasks_.empty()) RunTasks();
  store_->Flush();
  if (!flush_list_.empty()) FlushAll();
  const bool busy = !tasks_.empty() || !flush_list_.empty();
  if (busy == idle_running_ || stopping_) return;
  idle_running_ = busy;
  if (busy) {
    (void)uv_idle_start(&idle_, [](uv_idle_t*) noexcept {});
  } else {
    (void)uv_idle_stop(&idle_);
  }
}

void Server::AddTask(Connection* connection) {
  CELLAR_ASSERT(!connection->in_task_list_);
  connection->in_task_list_ = true;
  tasks_.push_back(connection);
}

void Server::RunTasks() {
  BeginTurn();
  const TaskBudget budget(clock_, clock_.MonotonicMicros() + kTaskSliceMicros);
  for (size_t stepped = 0; stepped < tasks_.size() && !budget.Spent(); ++stepped) {
    next_task_ %= tasks_.size();
    Connection* connection = tasks_[next_task_];
    if (!dispatcher_own_.StepTask(connection->session, budget)) {
      ++next_task_;
      continue;
    }
    connection->in_task_list_ = false;
    tasks_.erase(tasks_.begin() + static_cast<std::ptrdiff_t>(next_task_));
    ScheduleFlush(connection->session);
  }
}

void Server::FlushAll() {
  flush_now_.swap(flush_list_);
  for (Connection* connection : flush_now_) {
    if (connection == nullptr) continue;
    connection->session.flush_pending = false;
    connection->Flush();
    if (!connection->closing() && connection->Resumable()) connection->Feed({});
  }
  flush_now_.clear();
}

void Server::Recycle(OutputBuffer* buffer) { buffer->Free(); }

void Server::OnSecondTenth() {
  BeginTurn();
  store_->journal().Poll();
  (void)store_->journal().MaybeStartSnapshot();
  (void)store_->Sweep(kSweepCells);
}

size_t Server::memory_used_bytes() const { return 0; }

void Server::ForEachSession(const std::function<void(Session&)>& visit) {
  for (Connection* connection : connections_) visit(connection->session);
}

Session* Server::FindSession(uint64_t id) {
  const auto found = connections_by_id_.find(id);
  return found == connections_by_id_.end() ? nullptr : &found->second->session;
}

void Server::KillSession(Session& session) {
  session.closed = true;
  ScheduleFlush(session);
}

void Server::PauseClients(int64_t until_micros, bool writes_only) {
  (void)until_micros;
  (void)writes_only;
}
void Server::UnpauseClients() {}
Status Server::ApplyConfig(std::string_view name) {
  (void)name;
  return Status::Ok();
}

void Server::QueryBufferExceeded(Connection& connection) {
  ++services_own_.stats.query_buffer_limit_disconnections;
  (void)std::fprintf(stderr, "closing client %s: query buffer limit reached\n",
                     connection.session.address.c_str());
}

void Server::LogProtocolError(Connection& connection, std::string_view error) {
  (void)std::fprintf(stderr, "client %s: %.*s\n", connection.session.address.c_str(),
                     static_cast<int>(error.size()), error.data());
}

void Server::Forget(Connection* connection) {
  services_own_.pubsub.UnsubscribeAll(connection->session);
  connections_by_id_.erase(connection->session.id);
  Connection* last = connections_.back();
  connections_[connection->index] = last;
  last->index = connection->index;
  connections_.pop_back();
  std::erase(tasks_, connection);
  std::erase(flush_list_, connection);
  std::replace(flush_now_.begin(), flush_now_.end(), connection, static_cast<Connection*>(nullptr));
}

Lsn Server::released_lsn() const { return store_->journal().released_lsn(); }

void Server::OnWake() {
  store_->journal().Poll();
  for (Connection* connection : connections_) {
    if (connection->AwaitsRelease()) ScheduleFlush(connection->session);
  }
}

}  // namespace cellar
