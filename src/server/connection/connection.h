// Connection: one client's socket. Bytes in, commands through the dispatcher, replies out.
//
//   TurnInput -> Feed -> CommandReader -> Dispatcher -> session.output -> Flush (once a turn)
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
// The socket, TLS included, is either the connection's own, on the server's loop
// (net/client_socket.h), or that of an I/O thread (net/io_thread.h), which brings what was read
// and takes what is to be sent; then `reading_` is what it was told last. Bytes behind a reply gate
// wait for their log record in either case.
//
// Ownership: the server creates it (all that it knows of that is connection_host.h); Close() begins
// its end; it is deleted when its socket is closed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "commands/session/session.h"
#include "server/connection/command_batch.h"
#include "server/connection/command_reader.h"
#include "server/connection/connection_host.h"
#include "server/connection/passed_commands.h"
#include "server/net/client_socket.h"

namespace cellar {

class Connection;
class IoSocket;
class PeerSide;
class TlsContext;

// A session that knows its connection: commands hand sessions back to the server.
struct ConnectedSession : Session {
  Connection* connection{nullptr};
};

class Connection final : public SocketOwner {
 public:
  // Of a client that has not authenticated: beyond so much input of one command, or output that it
  // does not take, it is disconnected. Enough for AUTH with two words of 16 KiB.
  static constexpr size_t kUnauthenticatedQueryBytesMax{36 * 1024};
  static constexpr size_t kUnauthenticatedOutputBytesMax{16 * 1024};

  explicit Connection(ConnectionServices& services);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  ConnectedSession session;

  // One or the other, before anything else. It is the connection's own, and not null: a socket on
  // the server's loop, which is given its handle; or that of an I/O thread.
  ClientSocket* OpenSocket(SocketKind kind);
  void UseSocket(IoSocket* socket) { io_ = socket; }
  // Null: it belongs to an I/O thread.
  ClientSocket* socket() { return socket_.get(); }
  IoSocket* io() { return io_; }
  static Connection* Of(ClientSocket& socket) { return static_cast<Connection*>(&socket.owner()); }
  static Connection* Of(Session& session) {
    return static_cast<ConnectedSession&>(session).connection;
  }

  // The socket speaks TLS from its first byte on. REQUIRES: nothing has been read or written.
  void BeginTls(const TlsContext& context);
  // It belongs to an I/O thread: all that was handed over to be sent is sent.
  void Sent();
  // Looks how much of it is, for who counts what waits.
  void NoteSent();
  // Whether the client has taken any of what waits to be sent since this was asked last.
  bool IsTaking();
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
    if (!encrypted_) [[likely]]
      return Feed(bytes, ahead);
    ReceiveTls(bytes);
  }
  // Takes in bytes that a client meant (perhaps none: goes on with what is pending).
  void Feed(std::string_view bytes, const CommandBatch& ahead);
  // Sends what may be sent. Called at the end of a turn.
  void Flush();
  // Reads or not, according to what can be taken in.
  void UpdateReading();
  // As last decided.
  bool reading() const { return reading_; }
  // Its I/O thread has stopped reading by itself. It is told to go on if more can be taken in.
  void ReadingStopped();
  // Whether commands wait that could be parsed now.
  bool Resumable() const {
    return !pending_.empty() && !starved_ && !held_over && session.Proceeds();
  }
  bool closing() const { return closing_; }
  // Ends the connection; the object lives until libuv's callback.
  void Close();
  // TLS has failed: that is logged, and Close.
  void FailTls(std::string_view error);
  size_t memory_bytes() const;
  // Of these what its requests take: the half of a command, commands that wait, a queue of MULTI.
  size_t request_bytes() const;
  // The client sends no more. What it has sent is answered, then the connection ends.
  void EndInput();
  // Requests that were passed on and have done nothing: they are the client's next commands again.
  void GiveBack(std::string_view requests);
  // What was passed on for it has not all been answered.
  bool calls_under_way() const { return passed != nullptr && passed->under_way(); }
  // The newest record that a reply to it waits for; Lsn{}: none waits.
  Lsn newest_gate() const;
  // Asks the socket of one that is not read at the moment whether the client is still there.
  void LookForClient();

  // --- the server's notes of where it keeps this connection
  uint64_t counted_bytes{0};               // its part of the server's figure
  size_t index{0};                         // in the server's list
  uint64_t read_in_turn{0};                // the last one, by the server's count
  bool input_waits{false};                 // has an entry in the turn's input
  bool held_over{false};                   // its next request is large: it goes on in another turn
  bool has_task{false};                    // is in the list of those that are given time
  bool gated{false};                       // is in the list of outputs that wait for a log record
  std::unique_ptr<PassedCommands> passed;  // null: nothing ever was passed on for it

 private:
  // Of what an I/O thread was given: up to so much nobody looks how much of it is sent. To look
  // costs a cache line that the other core has just written.
  static constexpr uint64_t kUncheckedBytes{16 * 1024};

  // SocketOwner
  void OnSent() override;
  void OnBroken() override;
  void OnClosed() override;

  void Process(std::string_view* input, CommandBatch batch);
  void FeedPeer(std::string_view bytes);
  // Parses what stands whole at the front of `input`, at least one command if there is one.
  CommandBatch ReadBatch(std::string_view input, std::span<ParsedCommand> room);
  void FailProtocol(std::string_view error);
  // More input of one command than it may send.
  void FailQueryBuffer();
  // Has not authenticated and does not take what it is answered.
  void FailUnauthenticatedOutput();
  // After EndInput: nothing is left to be executed.
  bool InputDone() const {
    return !session.task && !session.postponed && (pending_.empty() || starved_) &&
           !calls_under_way();
  }
  // How many bytes at the front of the output may be sent now.
  size_t ReleasedBytes() const;
  // The gates before byte `bytes` of the output are passed, the others that much nearer.
  void DropGates(size_t bytes);
  // So many bytes are sent at once.
  void CountOutput(size_t bytes);
  void SendOutput();
  // Hands over what may be sent to the I/O thread.
  void HandOver();
  // Of what the I/O thread was given: bytes that are not sent yet, exactly.
  uint64_t Unsent();
  void CountInFlight();
  // Whether something that was sent has not been taken by the kernel, as far as is known.
  bool writing() const {
    return io_ == nullptr ? socket_->writing() : session.output_in_flight > 0;
  }
  // writing() for certain, as an I/O thread knows it; if so, the connection is told when all is
  // sent.
  bool StillSending();
  void ReceiveTls(std::string_view bytes);

  ConnectionServices& services_;
  std::unique_ptr<ClientSocket> socket_;  // null: io_
  IoSocket* io_{nullptr};                 // the I/O thread's; not to be touched once closing_
  uint64_t handed_bytes_{0};              // to it
  uint64_t taken_seen_{0};                // by IsTaking
  uint64_t sent_bytes_{0};                // of these, as last seen
  bool encrypted_{false};                 // what comes from socket_ is TLS
  bool reading_{false};
  bool closing_{false};
  bool starved_{false};        // `pending_` is the beginning of a command: more bytes are needed
  bool counted_large_{false};  // counted_bytes is more than a connection at rest has
  std::unique_ptr<PeerSide> peer_;  // null: a client
  CommandReader reader_;
  std::string pending_;  // begins with the first byte of a command
};

}  // namespace cellar
