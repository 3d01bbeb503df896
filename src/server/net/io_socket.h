// IoSocket: the socket of a connection that belongs to an I/O thread, and what both threads know of
// it. See io_thread.h.
//
// The server's thread makes it and may use its atomics until it has asked for the close; the rest
// is the I/O thread's from kAdopt on, which frees it when the socket is closed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "resp/output_buffer.h"
#include "server/net/client_socket.h"

namespace cellar {

class Connection;
class IoThread;

class IoSocket final : public SocketOwner {
 public:
  // For an accepted socket `fd`, which becomes the thread's with kAdopt.
  IoSocket(IoThread& thread, Connection* connection, SocketKind kind, int fd);

  // --- the server's thread
  IoThread& thread() const { return thread_; }
  // It speaks TLS. REQUIRES: before kAdopt.
  void BeginTls(const TlsContext& context);
  // Bytes that the kernel has taken, of all that was handed over. A little behind.
  uint64_t sent_bytes() const { return sent_bytes_.load(std::memory_order_seq_cst); }
  // An entry kSent comes when all is sent that has been handed over by then; not if it is already:
  // ask sent_bytes() behind this.
  void TellWhenSent() { tell_when_sent_.store(true, std::memory_order_seq_cst); }
  // Takes that back; false: it comes.
  bool TellNot() { return tell_when_sent_.exchange(false, std::memory_order_seq_cst); }
  bool handshaking() const { return handshaking_.load(std::memory_order_relaxed); }
  // What takes the bytes that wait to be sent, with what was sent of them. A little behind.
  size_t waiting_memory() const { return waiting_memory_.load(std::memory_order_relaxed); }
  // With the object itself, without what waits to be sent.
  size_t memory_bytes() const { return memory_bytes_.load(std::memory_order_relaxed); }

  // --- the I/O thread
  void Adopt(uv_loop_t* loop);
  void StartReading();
  void StopReading();
  void Send(std::string_view bytes);
  // The whole buffer; it is empty behind it, and keeps its memory if all could be sent at once.
  void SendLarge(OutputBuffer* bytes);
  void Close();
  void OnRead(int64_t bytes, const char* data);
  ClientSocket& socket() { return socket_; }
  bool was_read_in(uint64_t turn) const { return read_in_turn_ == turn; }

 private:
  void OnSent() override;
  void OnBroken() override;
  void OnClosed() override;
  void ReceiveTls(std::string_view bytes);
  // What is handed over has to wait its turn.
  bool must_wait() const { return socket_.writing() || socket_.handshaking(); }
  // False: it is broken.
  bool SendWaiting();
  // After anything that may have changed what waits.
  void Publish();

  IoThread& thread_;
  Connection* const connection_;
  ClientSocket socket_;
  OutputBuffer waiting_;     // handed over while a write is in flight, or before TLS is open
  uint64_t taken_bytes_{0};  // handed over in all
  uint64_t read_in_turn_{0};
  int adopted_fd_;
  bool ended_{false};   // the client sends no more
  bool broken_{false};  // and nothing can be sent
  bool closing_{false};

  std::atomic<uint64_t> sent_bytes_{0};
  std::atomic<bool> tell_when_sent_{false};
  std::atomic<bool> handshaking_{false};
  std::atomic<size_t> memory_bytes_;
  std::atomic<size_t> waiting_memory_{0};
};

}  // namespace cellar
