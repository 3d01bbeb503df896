// See connection.h.
#include "server/connection/connection.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/assert.h"
#include "base/free_string.h"
#include "base/os/log.h"
#include "commands/dispatch/dispatch.h"
#include "commands/dispatch/row_prefetch.h"
#include "commands/session/transaction.h"
#include "server/connection/peer_side.h"
#include "server/net/io_socket.h"
#include "server/net/io_thread.h"

namespace cellar {
namespace {

// Of the queue that one of the commands executes.
size_t QueuedBytes(const TransactionState& transaction, std::span<const ParsedCommand> commands) {
  const bool executes = std::any_of(commands.begin(), commands.end(), [](const auto& command) {
    return command.entry != nullptr && command.entry->Is(CommandRole::kExec);
  });
  return executes ? transaction.bytes.size() : 0;
}

}  // namespace

Connection::Connection(ConnectionServices& services) : services_(services) {
  session.connection = this;
}

Connection::~Connection() = default;

ClientSocket* Connection::OpenSocket(SocketKind kind) {
  socket_ = std::make_unique<ClientSocket>(*this, kind, services_.buffers);
  return socket_.get();
}

void Connection::BeginTls(const TlsContext& context) {
  if (io_ != nullptr) return io_->BeginTls(context);
  socket_->BeginTls(context);
  encrypted_ = true;
}

bool Connection::handshaking() const {
  if (closing_) return false;
  return io_ != nullptr ? io_->handshaking() : socket_->handshaking();
}

void Connection::BecomePeer(std::unique_ptr<PeerSide> side, PeerRole role) {
  CELLAR_ASSERT(peer_ == nullptr);
  peer_ = std::move(side);
  session.peer = role;
}

void Connection::FeedPeer(std::string_view bytes) {
  // What came right behind PEER.
  const std::string waited = std::exchange(pending_, {});
  session.query_bytes = 0;
  if (!waited.empty() && !session.ended()) peer_->OnBytes(waited);
  if (!bytes.empty() && !session.ended()) peer_->OnBytes(bytes);
  services_.commands_host.ScheduleFlush(session);
  UpdateReading();
}

// Bytes are parsed where they lie. Only the end that is no whole command yet is copied, to
// pending_, and what the reader has of that command moves with it (Rebase). A handler may have made
// a peer of the connection: then what is left in pending_ is for it.
void Connection::Feed(std::string_view bytes, const CommandBatch& ahead) {
  if (peer_ != nullptr) [[unlikely]]
    return FeedPeer(bytes);
  if (session.output.capacity() == 0) services_.buffers.Provide(&session.output);
  session.query_bytes = pending_.size() + bytes.size();
  if (pending_.empty()) {
    std::string_view rest = bytes;
    Process(&rest, ahead);
    if (!rest.empty()) {
      pending_.assign(rest);
      reader_.Rebase(rest.data(), pending_.data());
    }
  } else {
    if (ahead.read) reader_.Forget();  // they were not at the front after all (GiveBack)
    const char* old_begin = pending_.data();
    pending_.append(bytes);
    reader_.Rebase(old_begin, pending_.data());
    std::string_view rest = pending_;
    Process(&rest, {});
    const size_t used = pending_.size() - rest.size();
    if (rest.empty()) {
      FreeString(&pending_);
    } else if (used > 0) {
      pending_.erase(0, used);
      reader_.Rebase(rest.data(), pending_.data());
    }
  }
  session.query_bytes = pending_.size();
  if (session.input_ended) [[unlikely]]
    if (InputDone()) session.EndAfterReplies();
  const size_t query_bytes_max =
      session.authenticated ? static_cast<size_t>(services_.config.client_query_buffer_limit)
                            : kUnauthenticatedQueryBytesMax;
  if (session.query_bytes > query_bytes_max) {
    FailQueryBuffer();
  }
  if (session.task && !has_task) services_.host.AddTask(this);
  services_.commands_host.ScheduleFlush(session);
  if (peer_ != nullptr && !pending_.empty()) [[unlikely]]
    return FeedPeer({});
  UpdateReading();
}

CommandBatch Connection::ReadAhead(std::string_view bytes, std::span<ParsedCommand> room) {
  // What is pending goes before; TLS must be decrypted first.
  if (!pending_.empty() || encrypted_ || !session.Proceeds()) return {};
  return ReadBatch(bytes, room);
}

CommandBatch Connection::ReadBatch(std::string_view input, std::span<ParsedCommand> room) {
  const RequestParser::Limits limits{.bulk_bytes_max = services_.config.proto_max_bulk_len,
                                     .unauthenticated = !session.authenticated};
  return reader_.Read(input, limits, services_.reader, room);
}

// Parses a batch, fetches its rows into the cache, executes it, and so on. Commands that were
// parsed and not executed are forgotten and parsed again later: by then the limits, or what the
// connection is, may be others.
void Connection::Process(std::string_view* input, CommandBatch batch) {
  starved_ = false;
  Dispatcher& dispatcher = services_.dispatcher;
  while (!input->empty() && session.Proceeds()) {
    if (!batch.read) {
      batch = ReadBatch(*input, services_.commands_ahead);
      RowPrefetch prefetch(services_.commands_host);
      prefetch.Begin(session);
      for (const ParsedCommand& command : batch.commands) {
        prefetch.Add(command.entry, command.args);
      }
      prefetch.Flush();
    }
    std::span<const ParsedCommand> commands = batch.commands;
    const bool executes = !commands.empty();
    if (executes) {
      auto bytes = static_cast<size_t>(commands.back().rest.data() - input->data());
      if (session.transaction != nullptr) [[unlikely]]
        bytes += QueuedBytes(*session.transaction, commands);
      if (held_over || !services_.large_intake.Admits(this, bytes)) [[unlikely]]
        return reader_.Forget();
    }
    while (!commands.empty()) {
      const size_t executed = dispatcher.ExecuteInOrder(session, commands);
      // One that waits until the pause is over is read again then.
      const size_t done = session.postponed ? executed - 1 : executed;
      if (done > 0) *input = commands[done - 1].rest;
      if (!session.authenticated && session.output.size() + session.output_in_flight >
                                        kUnauthenticatedOutputBytesMax) [[unlikely]] {
        FailUnauthenticatedOutput();
      }
      if (!session.Proceeds()) return reader_.Forget();
      commands = commands.subspan(executed);
    }
    batch.read = false;
    if (batch.outcome == RequestParser::Outcome::kIncomplete) {
      starved_ = true;
      return;
    }
    if (batch.outcome == RequestParser::Outcome::kError) {
      if (executes) {  // what was executed may have moved the limits
        reader_.Forget();
        continue;
      }
      if (calls_under_way()) {  // the replies to what came before it come first
        reader_.Forget();
        (void)services_.dispatcher.HoldBack(session);
        return;
      }
      FailProtocol(reader_.error());
      *input = {};
      return;
    }
  }
  if (batch.read) reader_.Forget();  // something has come between reading ahead and now
}

void Connection::GiveBack(std::string_view requests) {
  if (requests.empty()) return;
  reader_.Forget();
  starved_ = false;
  pending_.insert(0, requests);
  session.query_bytes = pending_.size();
}

void Connection::FailProtocol(std::string_view error) {
  session.writer().Error("ERR " + std::string(error));
  session.EndAfterReplies();
  Log(LogSeverity::kVerbose, fmt::format("{} from client {}", error, session.address));
}

void Connection::FailQueryBuffer() {
  ++services_.stats.query_buffer_limit_disconnections;
  Log(LogSeverity::kWarning,
      fmt::format("Closing client {} that reached max query buffer length", session.address));
  session.End();
}

void Connection::FailUnauthenticatedOutput() {
  ++services_.stats.output_buffer_limit_disconnections;
  Log(LogSeverity::kVerbose,
      fmt::format("Closing unauthenticated client {} with too much output", session.address));
  session.End();
}

void Connection::FailTls(std::string_view error) {
  Log(LogSeverity::kNotice, fmt::format("TLS with client {} failed: {}", session.address, error));
  Close();
}

void Connection::ReadingStopped() {
  CELLAR_ASSERT(io_ != nullptr);
  reading_ = false;
  UpdateReading();
}

void Connection::UpdateReading() {
  if (closing_) return;
  const bool wanted = peer_ == nullptr ? session.Proceeds() && !session.input_ended && !held_over
                                       : peer_->reading() && !session.ended();
  // Of a client that may not go on nothing is read: what it sends waits in the kernel, and then at
  // its own end.
  if (wanted == reading_) return;
  reading_ = wanted;
  if (io_ != nullptr) {
    io_->thread().Add(io_, wanted ? OutputBlock::Kind::kRead : OutputBlock::Kind::kStopReading);
  } else if (wanted) {
    services_.host.StartReading(this);
  } else {
    (void)uv_read_stop(socket_->stream());
  }
}

Lsn Connection::newest_gate() const {
  const Lsn own = session.gates.empty() ? Lsn{} : session.gates.back().lsn;
  return passed == nullptr ? own : std::max(own, passed->kept_gate());
}

size_t Connection::ReleasedBytes() const {
  if (session.gates.empty()) [[likely]]
    return session.output.size();
  const Lsn released = services_.released;
  for (const ReplyGate& gate : session.gates) {
    if (gate.lsn > released) return gate.position;
  }
  return session.output.size();
}

// Gates count from the output's front, which moves by what is sent.
void Connection::DropGates(size_t bytes) {
  size_t dropped = 0;
  for (ReplyGate& gate : session.gates) {
    if (gate.position < bytes) {
      ++dropped;
    } else {
      gate.position -= bytes;
    }
  }
  if (dropped > 0) {
    session.gates.erase(session.gates.begin(),
                        session.gates.begin() + static_cast<std::ptrdiff_t>(dropped));
  }
  if (bytes == session.output.size()) session.gates.clear();
}

// Sends what may be sent, and then asks everything that depends on how much is left: gates, the end
// of the connection, limits, whether to read on.
void Connection::Flush() {
  if (closing_) return;
  session.gate_grows = false;
  if (session.ended()) return Close();
  if (io_ != nullptr) {
    HandOver();
  } else if (!socket_->writing()) {
    SendOutput();
    if (closing_) return;
  }
  if (session.output.empty()) {
    services_.buffers.Recycle(&session.output);
    if (!writing()) session.pushed_bytes = 0;
  } else if (!gated && !session.gates.empty() && (io_ != nullptr || !socket_->writing())) {
    services_.host.AddGated(this);
  }
  if (session.input_ended && InputDone()) [[unlikely]]
    session.EndAfterReplies();
  if (session.ending() && session.output.empty() && !session.task && !calls_under_way() &&
      !StillSending()) [[unlikely]]
    return Close();
  if (session.output.size() + session.output_in_flight > 0 || session.task || counted_large_) {
    if (services_.host.OutputExceeded(*this)) return Close();
    counted_large_ = services_.host.Recount(this);
  }
  UpdateReading();
}

// The client sends no more, but may still wait for replies: it gets them before the connection
// ends.
void Connection::EndInput() {
  if (peer_ != nullptr) return Close();
  // Nobody can tell whether anybody still waits for what may come much later.
  if (calls_under_way() && passed->MayWaitForEver()) return Close();
  session.input_ended = true;
  reading_ = false;  // libuv has stopped
  if (InputDone()) {
    if (session.output.empty() && !StillSending()) return Close();  // its place is free at once
    session.EndAfterReplies();
  }
  if (session.task || calls_under_way()) LookForClient();
  if (!closing_) services_.commands_host.ScheduleFlush(session);
}

// The socket says that the client has closed both directions as soon as it knows: when the client
// left unread bytes behind, and when an answer to it came back as undeliverable.
void Connection::LookForClient() {
  if (closing_ || reading_) return;
  pollfd socket{.fd = session.fd, .events = POLLRDHUP, .revents = 0};
  if (::poll(&socket, 1, 0) <= 0) return;
  if ((socket.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) return Close();
  if ((socket.revents & POLLRDHUP) == 0) return;
  // It sends no more. One that waits for others waits no longer; of other replies the first byte,
  // sent ahead, finds out whether anybody is there.
  if (calls_under_way()) passed->BeginReply();
  if (!session.task) return;
  if (session.task->work->Unblock(UnblockReason::kTimeout)) {
    session.WakeTask();
    return;
  }
  services_.dispatcher.BeginReplyAhead(session);
}

void Connection::CountOutput(size_t bytes) {
  session.last_activity_micros = services_.dispatcher.now_micros();
  session.bytes_out += bytes;
  services_.stats.output_bytes += bytes;
  ++services_.stats.writes;
}

void Connection::SendOutput() {
  if (encrypted_ && !socket_->Pump()) [[unlikely]]
    return OnBroken();
  if (session.output.empty() || socket_->writing() || socket_->handshaking()) return;
  const size_t bytes = ReleasedBytes();
  if (bytes == 0) return;
  DropGates(bytes);
  CountOutput(bytes);
  if (!socket_->Send(&session.output, bytes)) return OnBroken();
  session.output_in_flight = socket_->waiting_bytes();
  session.output_in_flight_memory = socket_->waiting_memory();
}

void Connection::OnSent() {
  session.output_in_flight = socket_->waiting_bytes();
  session.output_in_flight_memory = socket_->waiting_memory();
  if (closing_) return;
  if (peer_ != nullptr) peer_->OnDrained();
  session.WakeTask();  // a task that writes its reply in parts may go on
  services_.commands_host.ScheduleFlush(session);
}

void Connection::OnBroken() {
  if (closing_) return;
  const TlsStream* const tls = socket_->tls();
  if (tls != nullptr && !tls->error().empty()) return FailTls(tls->error());
  Close();
}

void Connection::OnClosed() { const std::unique_ptr<Connection> self(this); }

uint64_t Connection::Unsent() {
  sent_bytes_ = io_->sent_bytes();
  return handed_bytes_ - sent_bytes_;
}

void Connection::NoteSent() {
  if (io_ == nullptr || closing_) return;
  const bool has_sent = handed_bytes_ == sent_bytes_ || Unsent() == 0;
  session.output_in_flight = has_sent ? 0 : handed_bytes_ - sent_bytes_;
  CountInFlight();
}

// A buffer of which little is left to be sent takes what it took at first. Of what has been handed
// over a moment ago the I/O thread may not know yet.
void Connection::CountInFlight() {
  session.output_in_flight_memory =
      session.output_in_flight == 0
          ? 0
          : std::max<size_t>(session.output_in_flight, io_->waiting_memory());
}

bool Connection::IsTaking() {
  NoteSent();
  const size_t waiting = io_ != nullptr ? session.output_in_flight : socket_->waiting_bytes();
  if (waiting == 0) return false;
  const uint64_t taken = session.bytes_out - std::min<uint64_t>(session.bytes_out, waiting);
  if (taken == taken_seen_) return false;
  taken_seen_ = taken;
  session.last_activity_micros = services_.dispatcher.now_micros();
  return true;
}

// Flush with an I/O thread: the output goes to it as a block. How much of it is sent is known only
// by asking, which costs a cache miss, so it is asked only beyond kUncheckedBytes.
void Connection::HandOver() {
  uint64_t unsent = handed_bytes_ - sent_bytes_;
  if (unsent >= kUncheckedBytes) unsent = Unsent();
  const size_t bytes = unsent < Session::kOutputPauseBytes ? ReleasedBytes() : 0;
  if (bytes > 0) {
    DropGates(bytes);
    CountOutput(bytes);
    ++services_.stats.threaded_writes;
    handed_bytes_ += bytes;
    io_->thread().AddSend(io_, &session.output, bytes);
  }
  unsent += bytes;
  session.output_in_flight = unsent < kUncheckedBytes ? 0 : unsent;
  CountInFlight();
  // Who goes on when all is sent: one that has much waiting, a task that streams, a peer.
  const bool more = session.output_in_flight > 0 || session.task != nullptr || peer_ != nullptr;
  if (more && unsent > 0) (void)StillSending();
}

bool Connection::StillSending() {
  if (io_ == nullptr) return socket_->writing();
  if (handed_bytes_ == sent_bytes_ || Unsent() == 0) return false;
  io_->TellWhenSent();
  // It may have been sent before that was seen.
  if (Unsent() > 0 || !io_->TellNot()) return true;
  Sent();
  return false;
}

void Connection::Sent() {
  if (closing_) return;
  session.output_in_flight = session.output_in_flight_memory = 0;
  (void)Unsent();
  if (peer_ != nullptr) peer_->OnDrained();
  session.WakeTask();
  services_.commands_host.ScheduleFlush(session);
}

void Connection::Close() {
  if (closing_) return;
  closing_ = true;
  session.End();
  services_.host.Forget(this);
  if (io_ != nullptr) return io_->thread().Add(io_, OutputBlock::Kind::kClose);
  socket_->Close();
}

// Reads all that can be decrypted, so that nothing is left where only the next byte from the
// network would wake it. What may not be parsed now waits in `pending_`, as without TLS.
void Connection::ReceiveTls(std::string_view bytes) {
  TlsStream& stream = *socket_->tls();
  stream.Receive(bytes);
  const std::span<char> buffer = services_.tls_plaintext;
  size_t got{1};
  while (got > 0 && !closing_) {
    size_t size{0};
    do {
      got = stream.Read(buffer.data() + size, buffer.size() - size);
      size += got;
    } while (got > 0 && size < buffer.size());
    if (size > 0) Feed({buffer.data(), size}, {});
  }
  if (closing_) return;
  if (!stream.error().empty()) return OnBroken();
  if (stream.ended()) {
    if (!session.input_ended) EndInput();
    return UpdateReading();
  }
  if (!stream.output().empty()) services_.commands_host.ScheduleFlush(session);
}

size_t Connection::request_bytes() const {
  const size_t queued = session.transaction == nullptr ? 0 : session.transaction->memory_bytes();
  return pending_.capacity() + reader_.memory_bytes() + queued;
}

size_t Connection::memory_bytes() const {
  size_t bytes =
      sizeof(*this) + session.memory_bytes() + pending_.capacity() + reader_.memory_bytes();
  if (passed != nullptr) bytes += passed->memory_bytes();
  if (socket_ != nullptr) bytes += sizeof(ClientSocket) + socket_->memory_bytes();
  if (io_ != nullptr && !closing_) bytes += io_->memory_bytes();
  return bytes;
}

}  // namespace cellar
