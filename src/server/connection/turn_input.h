// TurnInput: what the sockets of one turn gave, kept until it is processed together.
//
//   buffer |<- A's ->|<- B's ->|<- C's ->|<-------- the next read -------->|
//   entries   A, its bytes   B, its bytes   C, its bytes
//
// Clients that send one command and wait for its reply give a turn many connections with a command
// each. Executed as they are read, each would meet caches that the kernel has just used, and wait
// for the memory of its row alone. So reading only takes bytes; at the end of the poll phase, or
// when the buffer is full, the first commands of as many connections as make a batch are parsed,
// their rows asked for, and then each connection's commands are executed in order.
//
// A connection is read once a turn, whatever it sends, so it has one entry at most. What I/O
// threads have read (net/io_thread.h) is processed in the same way, where it lies.
//
// Connections are borrowed; one that closes is forgotten.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "commands/dispatch/row_prefetch.h"
#include "server/connection/command_batch.h"

namespace cellar {

class Connection;

class TurnInput {
 public:
  static constexpr size_t kReadBytes{64 * 1024};

  explicit TurnInput(Host& host) : prefetch_(host) {}

  // Where the next read goes. REQUIRES: !full().
  std::span<char> NextRead() { return {buffer_.get() + used_bytes_, kReadBytes}; }
  // The read gave so many bytes, from this connection. REQUIRES: it has none waiting here.
  void Add(Connection* connection, size_t bytes);
  // Bytes from this connection that lie elsewhere and stay until Process. REQUIRES: as Add.
  void AddBorrowed(Connection* connection, std::string_view bytes);
  // There is no room for another read: Process must be called.
  bool full() const { return used_bytes_ > kBufferBytes - kReadBytes; }
  bool empty() const { return entries_.empty(); }
  // Gives every connection its bytes. Not to be called by what a command does.
  void Process();
  // The connection is being closed.
  void Forget(Connection* connection);

 private:
  // Beyond this what was read first would leave the core's nearest caches before it is parsed; long
  // pipelines make batches by themselves.
  static constexpr size_t kGatheredBytes{16 * 1024};
  static constexpr size_t kBufferBytes{kReadBytes + kGatheredBytes};

  struct Entry {
    Connection* connection;  // null: forgotten
    std::string_view bytes;
    CommandBatch batch;
  };

  // Processes entries from `begin` on, as many as fill a batch; where it stopped.
  size_t ProcessGroup(size_t begin);

  RowPrefetch prefetch_;
  std::unique_ptr<char[]> buffer_{new char[kBufferBytes]};
  size_t used_bytes_{0};
  std::vector<Entry> entries_;
  ParsedCommands commands_;
};

}  // namespace cellar
