// Connection: one client's socket. Bytes in, commands through the dispatcher, replies out.
//
//   TurnInput -> Feed -> parser -> Dispatcher::Execute -> session.output -> Flush (once a turn)
//
// Commands are parsed a batch ahead (command_batch.h), so that the cells that they will touch can
// be brought into the cache: those at the beginning of a turn's input together with those of other
// connections (turn_input.h), those of a longer pipeline by themselves. They are executed one by
// one, and what was parsed beyond the last one executed is forgotten.
//
// Input is parsed where the kernel put it, in the buffer of the turn's input; only what is not yet
// a whole command, or must wait, is copied into `pending_`. Nothing is parsed while a task runs,
// the output is above Session::kOutputPauseBytes, or clients are paused; then the socket is not
// read either.
//
// Output goes by send(2), which is what uv_try_write would do after 150 instructions; what the
// kernel does not take goes with one uv_write at a time.
// Bytes behind a reply gate wait for their log record.
//
// A connection of the TLS port has a TlsSide between socket and commands (connection_tls.cc): what
// comes is decrypted before Feed sees it, what leaves is encrypted piece by piece, no faster than
// the socket takes it. Everything above is the same.
//
// Ownership: the Server creates it; Close() begins its end; libuv's close callback deletes it.
#pragma once

#include <uv.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "commands/session/session.h"
#include "resp/request_parser.h"
#include "server/command_batch.h"

namespace cellar {

class Connection;
class PeerSide;
class Server;
class TlsContext;

enum class SocketKind : uint8_t { kTcp, kUnix };

// A session that knows its connection: commands hand sessions back to the server.
struct ConnectedSession : Session {
  Connection* connection{nullptr};
};

class Connection {
 public:
  // Of a client that has not said who it is: beyond so much input of one command, or output that it
  // does not take, it is disconnected. Enough for AUTH with two words of 16 KiB.
  static constexpr size_t kStrangerQueryBytesMax{36 * 1024};
  static constexpr size_t kStrangerOutputBytesMax{16 * 1024};

  Connection(Server* server, SocketKind kind);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  ConnectedSession session;

  uv_stream_t* stream() { return &handle_.stream; }
  uv_handle_t* handle() { return &handle_.handle; }
  SocketKind kind() const { return kind_; }
  static Connection* Of(uv_handle_t* handle) { return static_cast<Connection*>(handle->data); }
  static Connection* Of(Session& session) {
    return static_cast<ConnectedSession&>(session).connection;
  }

  // The socket speaks TLS from its first byte on. REQUIRES: nothing has been read or written.
  void BeginTls(const TlsContext& context);
  // From now on its bytes are the handler's of `side`; commands are no longer read.
  void BecomePeer(std::unique_ptr<PeerSide> side, PeerRole role);
  PeerSide* peer() const { return peer_.get(); }
  // Still in the handshake of TLS.
  bool handshaking() const;
  // Parses the commands at the front of the bytes that Receive will get next, as many as there is
  // `room` for, if that can be done before; executes nothing. REQUIRES: `room` is not empty.
  CommandBatch ReadAhead(std::string_view bytes, std::span<ParsedCommand> room);
  // Takes in bytes from the socket. `ahead` is what ReadAhead made of them.
  void Receive(std::string_view bytes, const CommandBatch& ahead) {
    if (tls_ == nullptr) [[likely]]
      return Feed(bytes, ahead);
    ReceiveTls(bytes);
  }
  // Takes in bytes that a client meant (perhaps none: goes on with what is pending).
  void Feed(std::string_view bytes, const CommandBatch& ahead);
  // Sends what may be sent. Called at the end of a turn.
  void Flush();
  // Reads or not, according to what can be taken in.
  void UpdateReading();
  // Whether commands wait that could be parsed now.
  bool Resumable() const { return !pending_.empty() && !starved_ && session.Proceeds(); }
  bool closing() const { return closing_; }
  // Ends the connection; the object lives until libuv's callback.
  void Close();
  size_t memory_bytes() const;
  // The client sends no more. What it has sent is answered, then the connection ends.
  void EndInput();
  // Asks the socket of one that is not read at the moment whether the client is still there.
  void LookForClient();

  uint64_t counted_bytes{0};  // its part of the server's figure
  size_t index{0};            // in the server's list
  bool input_waits{false};    // has an entry in the turn's input
  uint64_t read_in_turn{0};   // the last one, by the server's count

 private:
  friend class Server;
  struct WriteRequest;
  struct TlsSide;

  void Process(std::string_view* input, CommandBatch batch);
  void FeedPeer(std::string_view bytes);
  // Parses what stands whole at the front of `input`, at least one command if there is one.
  CommandBatch ReadBatch(std::string_view input, std::span<ParsedCommand> room);
  // What was parsed beyond the commands executed will be parsed again.
  void ForgetAhead();
  void FailProtocol(std::string_view error);
  // After EndInput: nothing is left to be executed.
  bool InputDone() const {
    return !session.task && !session.postponed && (pending_.empty() || starved_);
  }
  // How many bytes at the front of the output may be sent now.
  size_t ReleasedBytes() const;
  // The gates before byte `bytes` of the output are passed, the others that much nearer.
  void DropGates(size_t bytes);
  void DropSent(size_t bytes);
  // Moves the first `bytes` of the output to the empty `to`.
  void TakeOutput(size_t bytes, OutputBuffer* to);
  // Offers bytes to the socket; how many it took, -1 if it is broken.
  int64_t TrySend(std::string_view bytes);
  // The rest of `bytes` from `offset` on goes by a uv_write, which takes the memory over.
  void SendLater(OutputBuffer* bytes, size_t offset);
  void WriteDone(size_t bytes, int status);
  void SendOutput();

  // connection_tls.cc
  void ReceiveTls(std::string_view bytes);
  void SendTls();
  // What waits between output and socket.
  size_t TlsWaitingBytes() const;
  void FailTls();
  void ShutdownTls();
  size_t TlsMemoryBytes() const;

  union Handle {
    uv_handle_t handle;
    uv_stream_t stream;
    uv_tcp_t tcp;
    uv_pipe_t pipe;
  };

  Server* server_;
  Handle handle_;
  SocketKind kind_;
  bool reading_{false};
  bool writing_{false};  // a uv_write is in flight
  bool closing_{false};
  bool starved_{false};  // `pending_` is the beginning of a command: more bytes are needed
  bool in_task_list_{false};
  bool counted_large_{false};       // counted_bytes is more than a connection at rest has
  bool gated_{false};               // in the server's list of outputs that wait for a log record
  std::unique_ptr<TlsSide> tls_;    // null: plaintext
  std::unique_ptr<PeerSide> peer_;  // null: a client
  RequestParser parser_;
  std::string pending_;                         // begins with the first byte of a command
  std::vector<std::string_view> pending_args_;  // of the incomplete command, into pending_
};

}  // namespace cellar
