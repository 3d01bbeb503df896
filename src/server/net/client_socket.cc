// See client_socket.h.
#include "server/net/client_socket.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/assert.h"

namespace cellar {

// A uv_write in flight; owns the bytes. Adopted by its callback.
struct ClientSocket::WriteRequest {
  uv_write_t request;
  OutputBuffer bytes;
};

struct ClientSocket::TlsSide {
  explicit TlsSide(const TlsContext& context) : stream(context) {}

  // Encrypted at once: sixteen records, one write to the socket.
  static constexpr size_t kPieceBytes{256 * 1024};

  TlsStream stream;
  OutputBuffer plain;      // what Send was given
  size_t plain_offset{0};  // up to here it is encrypted
};

ClientSocket::ClientSocket(SocketOwner& owner, SocketKind kind, BufferPool& buffers)
    : owner_(owner), buffers_(buffers), kind_(kind) {
  std::memset(&handle_, 0, sizeof(handle_));
}

ClientSocket::~ClientSocket() = default;

void ClientSocket::Init(uv_loop_t* loop) {
  if (kind_ == SocketKind::kTcp) {
    (void)uv_tcp_init(loop, &handle_.tcp);
  } else {
    (void)uv_pipe_init(loop, &handle_.pipe, 0);
  }
  handle_.handle.data = this;
}

int ClientSocket::Adopt(int fd) {
  const int error =
      kind_ == SocketKind::kTcp ? uv_tcp_open(&handle_.tcp, fd) : uv_pipe_open(&handle_.pipe, fd);
  if (error == 0) fd_ = fd;
  return error;
}

void ClientSocket::NoteDescriptor() { (void)uv_fileno(&handle_.handle, &fd_); }

void ClientSocket::BeginTls(const TlsContext& context) {
  CELLAR_ASSERT(tls_ == nullptr);
  tls_ = std::make_unique<TlsSide>(context);
}

TlsStream* ClientSocket::tls() const { return tls_ == nullptr ? nullptr : &tls_->stream; }

bool ClientSocket::handshaking() const { return tls_ != nullptr && !tls_->stream.open(); }

// Tried at once, without the loop: most replies fit into the socket's buffer. Only what is left
// needs a request of libuv, which takes the memory over.
bool ClientSocket::Send(OutputBuffer* output, size_t bytes) {
  CELLAR_ASSERT(!writing_);
  CELLAR_ASSERT(bytes > 0);
  size_t sent = 0;
  if (tls_ == nullptr) [[likely]] {
    const int64_t taken = TrySend(output->view().substr(0, bytes));
    if (taken < 0) return false;
    sent = static_cast<size_t>(taken);
    if (sent > 0) output->Replace(0, sent, {});
    if (sent == bytes) [[likely]]
      return true;
  }
  OutputBuffer rest;  // what is not to be sent yet stays
  const size_t left = bytes - sent;
  if (left < output->size()) rest.Append(output->view().substr(left));
  output->Truncate(left);
  output->Swap(rest);
  if (tls_ == nullptr) return SendLater(&rest, 0);
  CELLAR_ASSERT(tls_->plain.empty());
  tls_->plain.Swap(rest);
  return PumpTls();
}

bool ClientSocket::Send(std::string_view bytes) {
  CELLAR_ASSERT(!writing_);
  if (tls_ != nullptr) {
    CELLAR_ASSERT(tls_->plain.empty());
    if (tls_->plain.capacity() == 0) buffers_.Provide(&tls_->plain);
    tls_->plain.Append(bytes);
    return PumpTls();
  }
  const int64_t taken = TrySend(bytes);
  if (taken < 0) return false;
  if (static_cast<size_t>(taken) == bytes.size()) [[likely]]
    return true;
  OutputBuffer rest;
  rest.Append(bytes.substr(static_cast<size_t>(taken)));
  return SendLater(&rest, 0);
}

bool ClientSocket::Pump() { return tls_ == nullptr || PumpTls(); }

// Encrypts and sends in turns, a piece at a time, so that never more than a piece waits encrypted.
bool ClientSocket::PumpTls() {
  TlsSide& tls = *tls_;
  OutputBuffer& encrypted = tls.stream.output();
  while (!writing_) {
    if (!encrypted.empty()) {
      const int64_t sent = TrySend(encrypted.view());
      if (sent < 0) return false;
      if (static_cast<size_t>(sent) < encrypted.size())
        return SendLater(&encrypted, static_cast<size_t>(sent));
      buffers_.Recycle(&encrypted);
    }
    if (tls.plain.empty()) break;
    const size_t piece = std::min(TlsSide::kPieceBytes, tls.plain.size() - tls.plain_offset);
    if (encrypted.capacity() == 0) buffers_.Provide(&encrypted);
    if (!tls.stream.Write(tls.plain.view().substr(tls.plain_offset, piece))) return false;
    tls.plain_offset += piece;
    if (tls.plain_offset == tls.plain.size()) {
      buffers_.Recycle(&tls.plain);
      tls.plain_offset = 0;
    }
  }
  return true;
}

// 0: the socket is full. A client that has gone is an error here, and no signal.
int64_t ClientSocket::TrySend(std::string_view bytes) const {
  ssize_t sent = 0;
  do {
    sent = ::send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
  return sent;
}

bool ClientSocket::SendLater(OutputBuffer* bytes, size_t offset) {
  CELLAR_ASSERT(!writing_);
  CELLAR_ASSERT(offset < bytes->size());
  auto request = std::make_unique<WriteRequest>();
  request->bytes.Swap(*bytes);
  request->request.data = this;
  const size_t size = request->bytes.size() - offset;
  uv_buf_t buffer =
      uv_buf_init(const_cast<char*>(request->bytes.data()) + offset, static_cast<unsigned>(size));
  const auto done = [](uv_write_t* written, int status) noexcept {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the request is the first member.
    const std::unique_ptr<WriteRequest> self(reinterpret_cast<WriteRequest*>(written));
    static_cast<ClientSocket*>(written->data)->WriteDone(status);
  };
  if (uv_write(&request->request, stream(), &buffer, 1, done) != 0) return false;
  writing_ = true;
  in_flight_ = size;
  in_flight_memory_ = request->bytes.capacity();
  (void)request.release();
  return true;
}

void ClientSocket::WriteDone(int status) {
  writing_ = false;
  in_flight_ = in_flight_memory_ = 0;
  if (closing_) return;
  if (status < 0 || !Pump()) return owner_.OnBroken();
  owner_.OnSent();
}

size_t ClientSocket::waiting_bytes() const {
  if (tls_ == nullptr) [[likely]]
    return in_flight_;
  return tls_->plain.size() - tls_->plain_offset + in_flight_;
}

void ClientSocket::Close() {
  CELLAR_ASSERT(!closing_);
  closing_ = true;
  // So that the client knows that the end is the end; it is not waited for.
  if (tls_ != nullptr && !writing_ && tls_->stream.output().empty() && tls_->plain.empty()) {
    tls_->stream.Shutdown();
  }
  if (tls_ != nullptr && !writing_ && !tls_->stream.output().empty())
    (void)TrySend(tls_->stream.output().view());
  uv_close(handle(), [](uv_handle_t* closed) noexcept { Of(closed)->owner_.OnClosed(); });
}

size_t ClientSocket::memory_bytes() const {
  if (tls_ == nullptr) [[likely]]
    return 0;
  return sizeof(TlsSide) + tls_->stream.memory_bytes() + tls_->plain.capacity();
}

}  // namespace cellar
