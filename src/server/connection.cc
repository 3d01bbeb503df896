// See connection.h.
#include "server/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "commands/dispatch/dispatch.h"
#include "commands/dispatch/row_prefetch.h"
#include "server/peer_side.h"
#include "server/server.h"
#include "server/tls_side.h"

namespace cellar {

// A uv_write in flight; owns the bytes. Adopted by its callback.
struct Connection::WriteRequest {
  uv_write_t request;
  OutputBuffer bytes;
  size_t size{0};
};

Connection::Connection(Server* server, SocketKind kind) : server_(server), kind_(kind) {
  std::memset(&handle_, 0, sizeof(handle_));
  session.connection = this;
}

Connection::~Connection() = default;

void Connection::BecomePeer(std::unique_ptr<PeerSide> side, PeerRole role) {
  CELLAR_ASSERT(peer_ == nullptr);
  peer_ = std::move(side);
  session.peer = role;
}

void Connection::FeedPeer(std::string_view bytes) {
  // What came right behind PEER.
  const std::string waited = std::exchange(pending_, {});
  session.query_bytes = 0;
  if (!waited.empty() && !session.closed) peer_->OnBytes(waited);
  if (!bytes.empty() && !session.closed) peer_->OnBytes(bytes);
  server_->ScheduleFlush(session);
  UpdateReading();
}

void Connection::Feed(std::string_view bytes, const CommandBatch& ahead) {
  if (peer_ != nullptr) [[unlikely]]
    return FeedPeer(bytes);
  if (session.output.capacity() == 0) server_->Provide(&session.output);
  session.query_bytes = pending_.size() + bytes.size();
  if (pending_.empty()) {
    std::string_view rest = bytes;
    Process(&rest, ahead);
    if (!rest.empty()) {
      pending_.assign(rest);
      RequestParser::Rebase(rest.data(), pending_.data(), &pending_args_);
    }
  } else {
    const char* old_begin = pending_.data();
    pending_.append(bytes);
    // NOLINTNEXTLINE(clang-analyzer-cplusplus.InnerPointer): not read, only distances count.
    RequestParser::Rebase(old_begin, pending_.data(), &pending_args_);
    std::string_view rest = pending_;
    Process(&rest, {});
    const size_t used = pending_.size() - rest.size();
    if (rest.empty()) {
      pending_ = std::string();
    } else if (used > 0) {
      pending_.erase(0, used);
      RequestParser::Rebase(rest.data(), pending_.data(), &pending_args_);
    }
  }
  session.query_bytes = pending_.size();
  if (session.input_ended) [[unlikely]]
    session.close_after_reply = session.close_after_reply || InputDone();
  const size_t query_bytes_max =
      session.authenticated ? static_cast<size_t>(server_->config().client_query_buffer_limit)
                            : kStrangerQueryBytesMax;
  if (session.query_bytes > query_bytes_max) {
    server_->QueryBufferExceeded(*this);
    session.closed = true;
  }
  if (session.task && !in_task_list_) server_->AddTask(this);
  server_->ScheduleFlush(session);
  if (peer_ != nullptr && !pending_.empty()) [[unlikely]]
    return FeedPeer({});
  UpdateReading();
}

CommandBatch Connection::ReadAhead(std::string_view bytes, std::span<ParsedCommand> room) {
  // What is pending goes before; TLS must be decrypted first.
  if (!pending_.empty() || tls_ != nullptr || !session.Proceeds()) return {};
  return ReadBatch(bytes, room);
}

CommandBatch Connection::ReadBatch(std::string_view input, std::span<ParsedCommand> room) {
  const RequestParser::Limits limits{.bulk_bytes_max = server_->config().proto_max_bulk_len,
                                     .unauthenticated = !session.authenticated};
  const CommandTable& table = server_->services().commands;
  RequestShapes& shapes = server_->request_shapes();
  const bool resumed = parser_.in_command();
  if (resumed) room[0].args = std::exchange(pending_args_, {});
  std::string_view ahead = input;
  size_t size = 0;
  if (!resumed && limits.AllowShort()) [[likely]] {
    for (; size < room.size(); ++size) {
      ParsedCommand& command = room[size];
      size_t bytes = shapes.Take(ahead, &command);  // it may look like the one before
      if (bytes == 0) [[unlikely]] {
        bytes = parser_.NextShort(ahead, &command.args);
        if (bytes == 0) break;
        command.entry = table.Find(command.args[0]);
        shapes.Note(ahead, bytes, command);
      }
      ahead.remove_prefix(bytes);
      command.rest = ahead;
    }
    if (size == room.size() || ahead.empty() || (size > 0 && ahead[0] != '*')) [[likely]]
      return {room.first(size), RequestParser::Outcome::kCommand, true};
  }
  // An inline command may have its words in the parser's memory, where the next one overwrites
  // them.
  const size_t size_max = resumed || input[0] != '*' ? 1 : room.size();
  do {
    ParsedCommand& command = room[size];
    std::string_view rest = ahead;
    const RequestParser::Outcome outcome = parser_.Next(&rest, limits, &command.args);
    if (outcome != RequestParser::Outcome::kCommand) {
      if (resumed) {
        pending_args_ = std::move(command.args);
      } else if (parser_.in_command()) {
        pending_args_ = command.args;
      }
      return {room.first(size), outcome, true};
    }
    command.entry = command.args.empty() ? nullptr : table.Find(command.args[0]);
    ahead = rest;
    command.rest = ahead;
    ++size;
  } while (size < size_max && !ahead.empty() && ahead[0] == '*');
  return {room.first(size), RequestParser::Outcome::kCommand, true};
}

void Connection::ForgetAhead() {
  parser_.Forget();
  pending_args_ = {};
}

void Connection::Process(std::string_view* input, CommandBatch batch) {
  starved_ = false;
  Dispatcher& dispatcher = server_->dispatcher_object();
  while (!input->empty() && session.Proceeds()) {
    if (!batch.read) {
      batch = ReadBatch(*input, server_->commands_ahead());
      RowPrefetch prefetch(*server_);
      prefetch.Begin(session);
      for (const ParsedCommand& command : batch.commands) {
        prefetch.Add(command.entry, command.args);
      }
      prefetch.Flush();
    }
    std::span<const ParsedCommand> commands = batch.commands;
    const bool executes = !commands.empty();
    while (!commands.empty()) {
      const size_t executed = dispatcher.ExecuteInOrder(session, commands);
      // One that waits until the pause is over is read again then.
      const size_t done = session.postponed ? executed - 1 : executed;
      if (done > 0) *input = commands[done - 1].rest;
      if (!session.authenticated &&
          session.output.size() + session.output_in_flight > kStrangerOutputBytesMax) [[unlikely]] {
        server_->StrangerExceeded(*this);
        session.closed = true;
      }
      if (!session.Proceeds()) return ForgetAhead();
      commands = commands.subspan(executed);
    }
    batch.read = false;
    if (batch.outcome == RequestParser::Outcome::kIncomplete) {
      starved_ = true;
      return;
    }
    if (batch.outcome == RequestParser::Outcome::kError) {
      if (executes) {  // what was executed may have moved the limits
        ForgetAhead();
        continue;
      }
      FailProtocol(parser_.error());
      *input = {};
      return;
    }
  }
  if (batch.read) ForgetAhead();  // something has come between reading ahead and now
}

void Connection::FailProtocol(std::string_view error) {
  session.writer().Error("ERR " + std::string(error));
  session.close_after_reply = true;
  server_->LogProtocolError(*this, error);
}

void Connection::UpdateReading() {
  if (closing_) return;
  const bool wanted = peer_ == nullptr ? session.Proceeds() && !session.input_ended
                                       : peer_->reading() && !session.closed;
  if (wanted == reading_) return;
  reading_ = wanted;
  if (wanted) {
    server_->StartReading(this);
  } else {
    (void)uv_read_stop(stream());
  }
}

size_t Connection::ReleasedBytes() const {
  if (session.gates.empty()) [[likely]]
    return session.output.size();
  const Lsn released = server_->released_now();
  for (const ReplyGate& gate : session.gates) {
    if (gate.lsn > released) return gate.position;
  }
  return session.output.size();
}

void Connection::DropGates(size_t bytes) {
  size_t passed = 0;
  for (ReplyGate& gate : session.gates) {
    if (gate.position < bytes) {
      ++passed;
    } else {
      gate.position -= bytes;
    }
  }
  if (passed > 0) {
    session.gates.erase(session.gates.begin(),
                        session.gates.begin() + static_cast<std::ptrdiff_t>(passed));
  }
  if (bytes == session.output.size()) session.gates.clear();
}

void Connection::DropSent(size_t bytes) {
  DropGates(bytes);
  session.output.Replace(0, bytes, {});
}

void Connection::TakeOutput(size_t bytes, OutputBuffer* to) {
  CELLAR_ASSERT(to->empty());
  DropGates(bytes);
  OutputBuffer tail;  // what waits behind a gate stays
  if (bytes < session.output.size()) tail.Append(session.output.view().substr(bytes));
  session.output.Truncate(bytes);
  to->Swap(session.output);
  session.output.Swap(tail);
}

void Connection::Flush() {
  if (closing_) return;
  session.gate_grows = false;
  if (session.closed) return Close();
  if (!writing_) {
    if (tls_ != nullptr) [[unlikely]] {
      SendTls();
    } else if (!session.output.empty()) {
      SendOutput();
    }
    if (closing_) return;
  }
  if (session.output.empty()) {
    server_->Recycle(&session.output);
    if (!writing_) session.pushed_bytes = 0;
  } else if (!writing_ && !gated_ && !session.gates.empty()) {
    gated_ = true;
    server_->AddGated(this);
  }
  if (session.input_ended && InputDone()) [[unlikely]]
    session.close_after_reply = true;
  if (session.close_after_reply && !writing_ && session.output.empty() && !session.task) {
    return Close();
  }
  if (session.output.size() + session.output_in_flight > 0 || session.task || counted_large_) {
    if (server_->OutputExceeded(*this)) return Close();
    counted_large_ = server_->Recount(this);
  }
  UpdateReading();
}

void Connection::EndInput() {
  if (peer_ != nullptr) return Close();
  session.input_ended = true;
  reading_ = false;  // libuv has stopped
  if (InputDone()) {
    if (session.output.empty() && !writing_) return Close();  // its place is free at once
    session.close_after_reply = true;
  }
  if (session.task) LookForClient();
  if (!closing_) server_->ScheduleFlush(session);
}

// The socket says that the client has closed both directions as soon as it knows: when the client
// left unread bytes behind, and when an answer to it came back as undeliverable.
void Connection::LookForClient() {
  if (closing_ || reading_) return;
  pollfd socket{.fd = session.fd, .events = POLLRDHUP, .revents = 0};
  if (::poll(&socket, 1, 0) <= 0) return;
  if ((socket.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) return Close();
  if ((socket.revents & POLLRDHUP) == 0 || !session.task) return;
  // It sends no more. One that waits for others waits no longer; of other replies the first byte,
  // sent ahead, finds out whether anybody is there.
  if (session.task->Unblock(UnblockReason::kTimeout)) {
    session.task_waiting = false;
    return;
  }
  server_->dispatcher_object().BeginReplyAhead(session);
}

void Connection::SendOutput() {
  const size_t bytes = ReleasedBytes();
  if (bytes == 0) return;
  const int64_t sent = TrySend(session.output.view().substr(0, bytes));
  if (sent < 0) return Close();
  const auto taken = static_cast<size_t>(sent);
  if (taken > 0) DropSent(taken);
  if (taken == bytes) return;
  OutputBuffer rest;
  TakeOutput(bytes - taken, &rest);
  session.output_in_flight = bytes - taken;
  SendLater(&rest, 0);
}

int64_t Connection::TrySend(std::string_view bytes) {
  CELLAR_ASSERT(!writing_);
  ssize_t sent = 0;
  do {
    sent = ::send(session.fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
  session.bytes_out += static_cast<size_t>(sent);
  server_->CountOutput(static_cast<size_t>(sent));
  return sent;
}

void Connection::SendLater(OutputBuffer* bytes, size_t offset) {
  CELLAR_ASSERT(!writing_);
  CELLAR_ASSERT(offset < bytes->size());
  auto request = std::make_unique<WriteRequest>();
  request->bytes.Swap(*bytes);
  request->size = request->bytes.size() - offset;
  session.output_in_flight_memory = request->bytes.capacity();
  request->request.data = this;
  uv_buf_t buffer = uv_buf_init(const_cast<char*>(request->bytes.data()) + offset,
                                static_cast<unsigned>(request->size));
  writing_ = true;
  const auto done = [](uv_write_t* written, int status) noexcept {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the request is the first member.
    const std::unique_ptr<WriteRequest> self(reinterpret_cast<WriteRequest*>(written));
    static_cast<Connection*>(written->data)->WriteDone(self->size, status);
  };
  if (uv_write(&request->request, stream(), &buffer, 1, done) != 0) {
    writing_ = false;
    session.output_in_flight = session.output_in_flight_memory = 0;
    return Close();
  }
  (void)request.release();
}

void Connection::WriteDone(size_t bytes, int status) {
  writing_ = false;
  session.output_in_flight = TlsWaitingBytes();
  session.output_in_flight_memory = 0;
  if (closing_) return;
  if (status < 0) return Close();
  session.bytes_out += bytes;
  server_->CountOutput(bytes);
  if (peer_ != nullptr) peer_->OnDrained();
  session.task_waiting = false;  // a task that writes its reply in parts may go on
  server_->ScheduleFlush(session);
}

void Connection::Close() {
  if (closing_) return;
  ShutdownTls();
  closing_ = true;
  session.closed = true;
  server_->Forget(this);
  uv_close(handle(), [](uv_handle_t* closed) noexcept {
    const std::unique_ptr<Connection> self(Of(closed));
  });
}

size_t Connection::memory_bytes() const {
  return sizeof(*this) + session.memory_bytes() + pending_.capacity() +
         pending_args_.capacity() * sizeof(std::string_view) + TlsMemoryBytes();
}

}  // namespace cellar
