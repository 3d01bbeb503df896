// Publish and subscribe: channels, patterns and sharded channels, and who listens to them.
//
// A session keeps the names it listens to; the registry keeps, for each name, the sessions. Both
// sides are changed together, here only.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/lsn.h"

namespace cellar {

class Host;
struct Session;
struct TableName;

enum class ChannelKind : unsigned char { kChannel, kPattern, kShard };

// What one session listens to.
struct PubSubState {
  std::set<std::string, std::less<>> names[3];  // by ChannelKind
  size_t memory_bytes{0};                       // of the names, here and in the registry
  size_t channels_and_patterns() const { return names[0].size() + names[1].size(); }
  size_t shards() const { return names[2].size(); }
};

class PubSub {
 public:
  // False if the session listens to it already (is not listening to it).
  bool Subscribe(Session& session, ChannelKind kind, std::string_view name);
  bool Unsubscribe(Session& session, ChannelKind kind, std::string_view name);
  void UnsubscribeAll(Session& session);

  // Sends `message` to the listeners of `channel`; returns how many there were. Where the message
  // tells of a change, it waits like a reply until record `depends_on` is durable.
  size_t Publish(Host& host, ChannelKind kind, std::string_view channel, std::string_view message,
                 Lsn depends_on) {
    return PublishAbout(host, kind, channel, message, depends_on, nullptr);
  }
  // Publish of a message about a table, which reaches only those who may read all of it: it does
  // not say which family has changed.
  size_t PublishAbout(Host& host, ChannelKind kind, std::string_view channel,
                      std::string_view message, Lsn depends_on, const TableName* table);

  using Registry = std::map<std::string, std::vector<Session*>, std::less<>>;
  const Registry& registry(ChannelKind kind) const {
    return registries_[static_cast<size_t>(kind)];
  }

 private:
  Registry registries_[3];  // by ChannelKind
};

// Whether RESP2 allows the session only (P|S)SUBSCRIBE, PING ... now.
bool InSubscribedMode(const Session& session);

}  // namespace cellar
