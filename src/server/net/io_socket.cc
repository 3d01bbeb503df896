// See io_socket.h.
#include "server/net/io_socket.h"

#include <unistd.h>

#include <algorithm>
#include <memory>

#include "base/assert.h"
#include "server/net/io_thread.h"

namespace cellar {

IoSocket::IoSocket(IoThread& thread, Connection* connection, SocketKind kind, int fd)
    : thread_(thread),
      connection_(connection),
      socket_(*this, kind, thread.buffers()),
      adopted_fd_(fd),
      memory_bytes_(sizeof(*this)) {}

void IoSocket::BeginTls(const TlsContext& context) {
  socket_.BeginTls(context);
  handshaking_.store(true, std::memory_order_relaxed);
}

void IoSocket::Adopt(uv_loop_t* loop) {
  socket_.Init(loop);
  if (socket_.Adopt(adopted_fd_) == 0) return;
  (void)::close(adopted_fd_);
  OnBroken();
}

void IoSocket::StartReading() {
  if (!broken_ && !ended_ && !closing_) thread_.StartReading(&socket_);
}

void IoSocket::StopReading() {
  if (!closing_) (void)uv_read_stop(socket_.stream());
}

void IoSocket::Send(std::string_view bytes) {
  taken_bytes_ += bytes.size();
  if (!broken_ && !closing_) {
    if (must_wait()) {
      waiting_.Append(bytes);
    } else if (!socket_.Send(bytes)) {
      return OnBroken();
    }
  }
  Publish();
}

void IoSocket::SendLarge(OutputBuffer* bytes) {
  const size_t size = bytes->size();
  taken_bytes_ += size;
  if (broken_ || closing_) {
    bytes->Clear();
  } else if (must_wait()) {
    waiting_.Append(bytes->view());
    bytes->Clear();
  } else if (!socket_.Send(bytes, size)) {
    return OnBroken();
  }
  Publish();
}

bool IoSocket::SendWaiting() {
  if (!waiting_.empty() && !must_wait() && !socket_.Send(&waiting_, waiting_.size())) return false;
  if (waiting_.empty()) waiting_.Free();
  return true;
}

void IoSocket::OnSent() {
  if (!SendWaiting()) return OnBroken();
  Publish();
}

void IoSocket::OnBroken() {
  if (broken_ || closing_) return;
  broken_ = true;
  if (socket_.fd() >= 0) (void)uv_read_stop(socket_.stream());
  waiting_.Free();
  TlsStream* const tls = socket_.tls();
  if (tls != nullptr && !tls->error().empty()) {
    thread_.Tell(connection_, InputBlock::Kind::kTlsFailed, tls->error());
  } else {
    thread_.Tell(connection_, InputBlock::Kind::kBroken, {});
  }
}

void IoSocket::Close() {
  CELLAR_ASSERT(!closing_);
  closing_ = true;
  socket_.Close();
}

void IoSocket::OnClosed() {
  const std::unique_ptr<IoSocket> self(this);
  thread_.Forget(connection_);
}

void IoSocket::OnRead(int64_t bytes, const char* data) {
  if (closing_ || broken_ || bytes == 0 || bytes == UV_ENOBUFS) return;
  if (bytes < 0) {
    if (bytes != UV_EOF) return OnBroken();
    ended_ = true;
    return thread_.Tell(connection_, InputBlock::Kind::kEnd, {});
  }
  read_in_turn_ = thread_.turn();
  const auto size = static_cast<size_t>(bytes);
  if (socket_.tls() == nullptr) {
    thread_.Received(connection_, size);
  } else {
    ReceiveTls({data, size});
  }
  if (size < InputBlock::kLongRead || broken_ || ended_) return;
  (void)uv_read_stop(socket_.stream());
  thread_.Tell(connection_, InputBlock::Kind::kStopped, {});
}

// Reads all that can be decrypted, so that nothing is left where only the next byte from the
// network would wake it.
void IoSocket::ReceiveTls(std::string_view bytes) {
  TlsStream& stream = *socket_.tls();
  stream.Receive(bytes);
  size_t got{1};
  while (got > 0) {
    const std::span<char> room = thread_.ReadRoom();
    size_t size{0};
    do {
      got = stream.Read(room.data() + size, room.size() - size);
      size += got;
    } while (got > 0 && size < room.size());
    if (size > 0) thread_.Received(connection_, size);
  }
  if (stream.open()) handshaking_.store(false, std::memory_order_relaxed);
  if (!stream.error().empty()) return OnBroken();
  if (!socket_.writing() && !socket_.Pump()) return OnBroken();
  if (!SendWaiting()) return OnBroken();
  if (stream.ended() && !ended_) {
    ended_ = true;
    (void)uv_read_stop(socket_.stream());
    thread_.Tell(connection_, InputBlock::Kind::kEnd, {});
  }
  Publish();
}

void IoSocket::Publish() {
  // In flight are bytes of TLS, a few more than were handed over.
  const uint64_t waiting =
      std::min<uint64_t>(taken_bytes_, socket_.waiting_bytes() + waiting_.size());
  const uint64_t sent =
      std::max(taken_bytes_ - waiting, sent_bytes_.load(std::memory_order_relaxed));
  sent_bytes_.store(sent, std::memory_order_seq_cst);
  memory_bytes_.store(sizeof(*this) + socket_.memory_bytes(), std::memory_order_relaxed);
  waiting_memory_.store(waiting_.capacity() + socket_.waiting_memory(), std::memory_order_relaxed);
  if (sent < taken_bytes_ || !tell_when_sent_.load(std::memory_order_seq_cst)) return;
  if (tell_when_sent_.exchange(false, std::memory_order_seq_cst))
    thread_.Tell(connection_, InputBlock::Kind::kSent, {});
}

}  // namespace cellar
