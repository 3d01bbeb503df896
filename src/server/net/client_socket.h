// ClientSocket: the bytes of one client on their way from and to the kernel, with TLS in between
// where the client speaks it.
//
//   network --uv_read--> owner's buffer --> owner --(tls()->Receive, Read)--> commands
//   network <--send, uv_write-- [ encrypted <-- plain ] <--Send-- replies
//
// Output goes by send(2), which is what uv_try_write would do after 150 instructions; what the
// kernel does not take goes with one uv_write at a time. With TLS no more is encrypted than the
// socket takes: while it takes nothing, one piece waits encrypted and the rest as it was, so a slow
// reader costs the same memory as without.
//
// It knows neither commands nor the server. It belongs to one loop and is used on that loop's
// thread alone: the server's, or that of an I/O thread (io_thread.h). Reading is the owner's, who
// has the memory for it.
#pragma once

#include <uv.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "resp/output_buffer.h"
#include "server/net/buffer_pool.h"
#include "server/net/tls_stream.h"

namespace cellar {

class TlsContext;

enum class SocketKind : uint8_t { kTcp, kUnix };

// Whom a socket belongs to.
class SocketOwner {
 public:
  // Of what Send had to keep less is waiting; unless it is writing() more may come.
  virtual void OnSent() = 0;
  // Nothing can be sent any more. The owner closes the socket, now or later.
  virtual void OnBroken() = 0;
  // After Close: libuv is done with it, and the owner may free it.
  virtual void OnClosed() = 0;

 protected:
  ~SocketOwner() = default;
};

class ClientSocket {
 public:
  // `buffers` is the thread's; both are borrowed.
  ClientSocket(SocketOwner& owner, SocketKind kind, BufferPool& buffers);
  ~ClientSocket();
  ClientSocket(const ClientSocket&) = delete;
  ClientSocket& operator=(const ClientSocket&) = delete;

  // The handle is libuv's from here on, until OnClosed.
  void Init(uv_loop_t* loop);
  // Takes over a socket that another loop has accepted; libuv's error, or 0. After Init.
  int Adopt(int fd);
  // The descriptor is known once the handle is connected.
  void NoteDescriptor();
  int fd() const { return fd_; }
  SocketKind kind() const { return kind_; }
  SocketOwner& owner() const { return owner_; }
  uv_handle_t* handle() { return &handle_.handle; }
  uv_stream_t* stream() { return &handle_.stream; }
  uv_tcp_t* tcp() { return &handle_.tcp; }
  uv_pipe_t* pipe() { return &handle_.pipe; }
  static ClientSocket* Of(uv_handle_t* handle) { return static_cast<ClientSocket*>(handle->data); }

  // It speaks TLS from its first byte on. REQUIRES: nothing has been read or written.
  void BeginTls(const TlsContext& context);
  // Null: plain.
  TlsStream* tls() const;
  // Still in the handshake of TLS.
  bool handshaking() const;

  // Sends the first `bytes` of `output`, and keeps what the kernel does not take now: they are gone
  // from `output` either way. False: it is broken. REQUIRES: !writing(), !handshaking(), bytes > 0.
  [[nodiscard]] bool Send(OutputBuffer* output, size_t bytes);
  // Sends `bytes`; what the kernel does not take now is copied. False: it is broken. REQUIRES:
  // !writing(), !handshaking(), not empty.
  [[nodiscard]] bool Send(std::string_view bytes);
  // Sends what TLS itself has to say, and what is kept. False: it is broken. REQUIRES: !writing().
  [[nodiscard]] bool Pump();
  // A uv_write is in flight.
  bool writing() const { return writing_; }
  // Of what Send was given: bytes that wait here, and the memory that they take in a uv_write.
  size_t waiting_bytes() const;
  size_t waiting_memory() const { return in_flight_memory_; }

  // Says goodbye, if it speaks TLS and nothing else waits, then closes. Once.
  void Close();
  // Without the object itself.
  size_t memory_bytes() const;

 private:
  struct WriteRequest;
  struct TlsSide;

  // Offers bytes to the socket; how many it took, -1 if it is broken.
  int64_t TrySend(std::string_view bytes) const;
  // The rest of `bytes` from `offset` on goes by a uv_write, which takes the memory over.
  bool SendLater(OutputBuffer* bytes, size_t offset);
  void WriteDone(int status);
  bool PumpTls();

  union Handle {
    uv_handle_t handle;
    uv_stream_t stream;
    uv_tcp_t tcp;
    uv_pipe_t pipe;
  };

  SocketOwner& owner_;
  BufferPool& buffers_;
  std::unique_ptr<TlsSide> tls_;  // null: plain
  size_t in_flight_{0};           // bytes in the uv_write
  size_t in_flight_memory_{0};
  int fd_{-1};
  SocketKind kind_;
  bool writing_{false};
  bool closing_{false};
  Handle handle_;
};

}  // namespace cellar
