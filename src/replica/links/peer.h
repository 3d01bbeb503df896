// What replication needs of the process around it: connections to other nodes, a worker thread, the
// loop's attention. server/ implements it on libuv; tests with a few lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "cellar/status.h"

namespace cellar {

// One end of a connection between two nodes. Owned by the server; gone when OnClosed is called.
class PeerLink {
 public:
  virtual ~PeerLink() = default;
  // The bytes leave at the end of the turn, or as soon as the socket takes them. Copies.
  virtual void Write(std::string_view bytes) = 0;
  // Written and not taken by the socket yet.
  virtual size_t waiting_bytes() const = 0;
  // Written and not acknowledged by the other end's system yet, as far as this one can tell.
  virtual size_t unacknowledged_bytes() const { return waiting_bytes(); }
  // Whether bytes are read from the socket: who cannot take in more lets the peer wait.
  virtual void SetReading(bool reading) = 0;
  // What the other end does not acknowledge for so long ends the link, as far as the system can
  // tell.
  virtual void SetPatience(int64_t micros) { (void)micros; }
  // Ends the connection at the end of the turn; OnClosed is not called.
  virtual void Close() = 0;
  // "10.0.0.7", as the other end is seen from here.
  virtual std::string peer_host() const = 0;
};

// Who sits on a link. Each call is made on the loop's thread, outside of commands.
class PeerHandler {
 public:
  virtual ~PeerHandler() = default;
  // Of a link that was dialled: it stands.
  virtual void OnConnected(PeerLink* link) = 0;
  virtual void OnBytes(std::string_view bytes) = 0;
  // The socket has taken what waited.
  virtual void OnDrained() = 0;
  // The link is gone, or could not be made: `why` is for the log.
  virtual void OnClosed(std::string_view why) = 0;
};

class ReplicationHost {
 public:
  virtual ~ReplicationHost() = default;
  // Connects to a node, over TLS if tls-replication says so. The handler gets OnConnected or
  // OnClosed, unless CancelDial comes before.
  virtual void Dial(const std::string& host, uint16_t port, PeerHandler* handler) = 0;
  // Likewise, plainly, to the unix socket of a node on this machine. Who listens there runs as this
  // process does, or as root.
  virtual void DialSocket(const std::string& path, PeerHandler* handler) = 0;
  virtual void CancelDial(PeerHandler* handler) = 0;
  // Runs `work` on another thread, then `done` on the loop's. REQUIRES: what `work` touches lives
  // until then; `done` finds out by itself whether who asked still lives.
  virtual void RunInBackground(std::function<void()> work, std::function<void()> done) = 0;
  // There is work left: another turn shall follow at once, which calls OnTurn.
  virtual void WakeSoon() = 0;
  // Followers have acknowledged, or the role has changed: waiting commands look again.
  virtual void WakeTasks() = 0;
  // Reads that wait for SetNode::read_ready look again.
  virtual void WakeReads() = 0;
  // The node leads now, or follows (another one): whoever was asked.
  virtual void OnRoleChanged() = 0;
  // Clients lose their connections: their node is another one from now on.
  virtual void DisconnectClients() = 0;
  // Clients lose their connections at once: what they would still have been answered does not
  // leave.
  virtual void DropClients() = 0;
  // What cannot be mended by waiting: the process leaves, with that in its log.
  virtual void EndProcess(const std::string& why) = 0;
  // CLIENT PAUSE WRITE for all, and its end.
  virtual void HoldWrites(bool held) = 0;
  // Puts what a full sync has brought in place of the store's content; see Store::ReplaceContent.
  virtual Status ReplaceStore(const std::function<Status(Status* status)>& replace) = 0;
};

}  // namespace cellar
