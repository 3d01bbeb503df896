// MessageLinks: what is published at one node of a replica set, or of a cluster of several, reaches
// those who listen at the others.
//
//   PUBLISH -> Publish -> kMessage on a link to each other node -> PubSub::Publish there
//
// Each node dials all others, and keeps these links: a message that is published before a link
// stands, or while one takes no more, does not go there (at most once, as everywhere in pub/sub).
// Messages of one client arrive in the order in which it has sent them. What a node tells of itself
// (keyspace events, Sentinel's channels) it tells its own clients alone.
//
//   kMessage   of each message: shard u8, channel, text (length-prefixed)
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "commands/session/host.h"
#include "replica/links/peer.h"
#include "replica/replication.h"

namespace cellar {

class MessageLinks {
 public:
  // Both outlive it; `dialler` is the same server as `host`.
  MessageLinks(Host& host, ReplicationHost& dialler);
  ~MessageLinks();
  MessageLinks(const MessageLinks&) = delete;
  MessageLinks& operator=(const MessageLinks&) = delete;

  void Publish(bool shard, std::string_view channel, std::string_view message);
  // PEER of another node, whose messages come.
  PeerHandler* Accept(PeerLink* link, uint64_t node);
  // At the end of a turn: what was published in it leaves.
  void OnTurn();
  // Links to all that are members now, of this set and the others, and to nobody else.
  void OnTick();

 private:
  class Out;
  class In;
  static constexpr int64_t kRedialMicros{500'000};
  // Waits at most for one node; beyond it messages are dropped.
  static constexpr size_t kWaitingBytesMax{8 << 20};
  // A longer message stays here: a frame holds no more.
  static constexpr size_t kMessageBytesMax{4 << 20};

  bool active() const;
  // By node: those to be told.
  std::map<uint64_t, NodeAddress> Others() const;

  Host& host_;
  ReplicationHost& dialler_;
  std::vector<std::unique_ptr<Out>> outs_;
  std::vector<std::unique_ptr<In>> ins_;
  bool published_{false};  // in this turn
};

}  // namespace cellar
