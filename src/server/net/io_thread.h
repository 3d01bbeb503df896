// IoThread: a thread that reads from and writes to the sockets of its clients, with their TLS, so
// that the server's thread does nothing but execute commands.
//
//                 I/O thread                                     server's thread
//   kernel -> uv_read -> [TLS] -> InputBlock  --input_-------->  TakeInput: commands in order
//                                      ^------free_input_------  GiveBack
//   kernel <- send <--- [TLS] <- OutputBlock  <------output_---  Add..., Post
//                                      |------free_output_---->
//                 bell_  <------------- Post rings          server_bell  <- input rings
//
// One turn of a loop is one block, whatever the number of sockets in it, so a wake-up and the cache
// lines that travel between the cores are shared by all of them. What happens to one connection
// keeps its order in both directions.
//
// Who touches what:
//   input_, free_input_, output_, free_output_   one thread puts in, the other one takes out
//   a block        its thread's, until it is in a queue; then that of who takes it out
//   IoSocket       the I/O thread's from kAdopt on; the server's thread reads its atomics, until it
//                  has asked for kClose
//   Connection     the server's; an I/O thread passes the pointer on and never looks behind it. The
//                  server frees it behind kClosed, the last entry that names it
//   open_output_, sockets_given_   the server's thread's
//   given_back_, ending_   atomics, see there
//   all else       the I/O thread's
//
// Bounds: kInputBlocks blocks of 80 KiB are read ahead of the server; then the thread waits until
// one comes back, and the kernel's buffers and TCP hold the clients. What is to be sent is bounded
// by what a connection may have in flight (connection.h). The server's thread never waits for this
// one but at the end.
#pragma once

#include <uv.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "server/net/buffer_pool.h"
#include "server/net/doorbell.h"
#include "server/net/io_blocks.h"
#include "server/net/spsc_queue.h"

namespace cellar {

class ClientSocket;

class IoThread {
 public:
  // `server_bell` wakes the server's loop, `server_buffers` is where its thread takes memory for
  // outputs from; both are borrowed. The thread runs from now on.
  IoThread(unsigned number, Doorbell& server_bell, BufferPool& server_buffers);
  // REQUIRES: End was called.
  ~IoThread();
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  // --- the server's thread
  // What its sockets shall do, in order; goes with the next Post.
  void Add(IoSocket* socket, OutputBlock::Kind kind);
  // The first `bytes` of `output`, which are taken from there.
  void AddSend(IoSocket* socket, OutputBuffer* output, size_t bytes);
  void Post();
  // The next block of input; null: none is there. Each is to be given back.
  InputBlock* TakeInput() { return input_.Pop(); }
  void GiveBack(InputBlock* block);
  bool has_input() const { return !input_.empty(); }
  size_t sockets() const { return sockets_given_; }
  // Sends what it can at once, closes all its sockets and ends. REQUIRES: kClose was asked for of
  // each. Connections whose end has not been told yet come in `closed`.
  void End(std::vector<Connection*>* closed);
  // 1, 2, ...
  unsigned number() const { return number_; }

  // --- for IoSocket, on the I/O thread
  BufferPool& buffers() { return buffers_; }
  uint64_t turn() const { return turn_; }
  void StartReading(ClientSocket* socket);
  // Where plain bytes go next: at least kReadBytes.
  std::span<char> ReadRoom();
  // So many bytes of it are the connection's.
  void Received(Connection* connection, size_t bytes);
  void Tell(Connection* connection, InputBlock::Kind kind, std::string_view text);
  // Its socket is closed.
  void Forget(Connection* connection);

 private:
  static constexpr size_t kInputBlocks{16};
  static constexpr size_t kOutputBlocks{64};
  // Above it an output is handed over as it is, below it is copied into the block.
  static constexpr size_t kLargeBytes{8 * 1024};
  // What a block keeps of its memory when it has been carried out.
  static constexpr size_t kKeptOutputBytes{256 * 1024};

  void Run();
  void BeforePoll();
  void AfterPoll();
  void TakeOutput();
  void Carry(OutputBlock& block, const OutputBlock::Entry& entry);
  void PostInput();
  // Where TLS is read to.
  std::span<char> EncryptedRoom();
  // The block that is being filled.
  InputBlock& Input();
  InputBlock* FreeInput();

  const unsigned number_;

  // The server's thread.
  BufferPool& server_buffers_;
  std::unique_ptr<OutputBlock> open_output_;
  size_t sockets_given_{0};

  // Between the two.
  SpscQueue<InputBlock, kInputBlocks> input_;
  SpscQueue<InputBlock, kInputBlocks> free_input_;
  SpscQueue<OutputBlock, kOutputBlocks> output_;
  SpscQueue<OutputBlock, kOutputBlocks> free_output_;
  std::atomic<uint32_t> given_back_{0};  // counts: the I/O thread waits for it to change
  std::atomic<bool> ending_{false};      // set by the server's thread, once
  Doorbell bell_;
  Doorbell& server_bell_;

  // The I/O thread.
  uv_loop_t loop_{};
  uv_prepare_t prepare_{};
  uv_check_t check_{};
  uv_idle_t idle_{};  // active while the loop must not sleep
  bool idle_running_{false};
  std::unique_ptr<InputBlock> open_input_;
  size_t input_blocks_{0};             // made so far
  std::unique_ptr<char[]> encrypted_;  // where TLS is read to; made when needed
  BufferPool buffers_;
  size_t sockets_{0};
  uint64_t turn_{1};
  std::vector<Connection*> closed_at_end_;  // read by the server's thread when this one has ended

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace cellar
