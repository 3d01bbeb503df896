// The server's side of its I/O threads: see net/io_thread.h.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "base/assert.h"
#include "base/os/log.h"
#include "server/net/io_socket.h"
#include "server/server.h"
#include "server/server_listener.h"

namespace cellar {
namespace {

// Of one thread in one turn; then others have their turn, and replies leave.
constexpr size_t kBlocksATurn{8};

// A handle that is there to accept and for nothing else.
struct Doorkeeper {
  union {
    uv_handle_t handle;
    uv_stream_t stream;
    uv_tcp_t tcp;
    uv_pipe_t pipe;
  };
};

// Accepts a connection for another loop: libuv gives sockets to handles of the listener's own loop
// only, so the descriptor is doubled and the handle closed. -1: there was none, or no room for it.
int AcceptDescriptor(uv_stream_t* listener, SocketKind kind) {
  auto* const keeper = new Doorkeeper;  // libuv's until it is closed
  if (kind == SocketKind::kTcp) {
    (void)uv_tcp_init(listener->loop, &keeper->tcp);
  } else {
    (void)uv_pipe_init(listener->loop, &keeper->pipe, 0);
  }
  keeper->handle.data = keeper;
  int accepted = -1;
  int own = -1;
  if (uv_accept(listener, &keeper->stream) == 0 && uv_fileno(&keeper->handle, &accepted) == 0) {
    own = fcntl(accepted, F_DUPFD_CLOEXEC, 0);
  }
  uv_close(&keeper->handle, [](uv_handle_t* closed) noexcept {
    const std::unique_ptr<Doorkeeper> self(static_cast<Doorkeeper*>(closed->data));
  });
  return own;
}

}  // namespace

void Server::StartIoThreads() {
  const int64_t threads = services_own_.config.io_threads;
  for (int64_t i = 1; i < threads; ++i) {
    io_threads_.push_back(std::make_unique<IoThread>(static_cast<unsigned>(i), io_bell_, buffers_));
  }
}

void Server::AcceptForThread(uv_stream_t* listener, const Listener& owner) {
  const int fd = AcceptDescriptor(listener, owner.kind);
  if (fd < 0 || RefuseUnadopted(fd)) return;
  IoThread& thread = **std::min_element(
      io_threads_.begin(), io_threads_.end(),
      [](const auto& one, const auto& other) { return one->sockets() < other->sockets(); });
  auto connection = std::make_unique<Connection>(connection_services_);
  // Both are their threads' until kClosed.
  Connection* const client = connection.release();
  auto socket = std::make_unique<IoSocket>(thread, client, owner.kind, fd);
  client->UseSocket(socket.get());
  client->session.fd = fd;
  client->session.io_thread = thread.number();
  Register(client);
  // Nothing reaches the thread before the next Post, so the socket may still be made ready.
  thread.Add(socket.release(), OutputBlock::Kind::kAdopt);
  Welcome(client, owner);
}

void Server::TakeInput() {
  for (const std::unique_ptr<IoThread>& thread : io_threads_) {
    for (size_t left = kBlocksATurn; left > 0 && !stopping_; --left) {
      InputBlock* const block = thread->TakeInput();
      if (block == nullptr) break;
      BeginTurn();
      TakeBlock(*block);
      thread->GiveBack(block);
    }
  }
}

// What a connection has waiting is executed before another entry of it, so that its bytes stay in
// order. A command may close any connection: its entries are passed over, up to kClosed, with which
// the I/O thread gives it back to be freed.
void Server::TakeBlock(const InputBlock& block) {
  for (const InputBlock::Entry& entry : block.entries) {
    Connection* const client = entry.connection;
    if (entry.kind == InputBlock::Kind::kClosed) {
      CELLAR_ASSERT(client->closing());
      const std::unique_ptr<Connection> gone(client);
      continue;
    }
    // Its bytes before this come first; and it has one entry at a time (turn_input.h).
    if (client->input_waits) input_.Process();
    if (client->closing()) continue;
    switch (entry.kind) {
      case InputBlock::Kind::kBytes:
        services_own_.stats.input_bytes += entry.bytes.size();
        ++services_own_.stats.reads;
        ++services_own_.stats.threaded_reads;
        client->session.bytes_in += entry.bytes.size();
        client->session.last_activity_micros = dispatcher_own_.now_micros();
        if (!client->reading()) {  // it was told to go on between a long read and its kStopped
          client->io()->thread().Add(client->io(), OutputBlock::Kind::kStopReading);
        }
        input_.AddBorrowed(client, entry.bytes);
        break;
      case InputBlock::Kind::kStopped:
        client->ReadingStopped();
        break;
      case InputBlock::Kind::kEnd:
        client->EndInput();
        break;
      case InputBlock::Kind::kTlsFailed:
        client->FailTls(entry.bytes);
        break;
      case InputBlock::Kind::kBroken:
        client->Close();
        break;
      case InputBlock::Kind::kSent:
        client->Sent();
        break;
      case InputBlock::Kind::kClosed:
        break;
    }
    if (stopping_) return;
  }
  input_.Process();
}

bool Server::InputWaits() const {
  return std::any_of(io_threads_.begin(), io_threads_.end(),
                     [](const auto& thread) { return thread->has_input(); });
}

void Server::PostOutput() {
  for (const std::unique_ptr<IoThread>& thread : io_threads_) thread->Post();
}

void Server::BeforePoll() {
  if (replication_.set() != nullptr) [[unlikely]]
    set_timer_.BeforePoll();
  if (io_threads_.empty() || stopping_ || idle_running_) return;
  io_bell_.Arm();
  if (!InputWaits()) return;
  io_bell_.Disarm();
  UpdateIdle();
}

void Server::EndIoThreads() {
  std::vector<Connection*> closed;
  for (const std::unique_ptr<IoThread>& thread : io_threads_) {
    thread->End(&closed);
    for (InputBlock* block = thread->TakeInput(); block != nullptr; block = thread->TakeInput()) {
      for (const InputBlock::Entry& entry : block->entries) {
        if (entry.kind == InputBlock::Kind::kClosed) closed.push_back(entry.connection);
      }
      thread->GiveBack(block);
    }
  }
  // The command that has ended the server may be one of theirs: it returns first.
  for (Connection* connection : closed) closed_at_end_.emplace_back(connection);
}

}  // namespace cellar
