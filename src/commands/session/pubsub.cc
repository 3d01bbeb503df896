// See pubsub.h.
#include "commands/session/pubsub.h"

#include <algorithm>
#include <memory>

#include "base/assert.h"
#include "base/text/glob.h"
#include "commands/acl/acl_check.h"
#include "commands/arguments/schema_arguments.h"
#include "commands/session/host.h"
#include "commands/session/session.h"

namespace cellar {
namespace {

// What a name costs: in the session's set and in the registry, with their nodes.
size_t MemoryOf(std::string_view name) { return 2 * name.size() + 192; }

// What a listener gets, and by which of its names.
struct Delivery {
  ChannelKind kind;
  std::string_view pattern;  // of a kPattern alone
  std::string_view channel;
  std::string_view message;
  Lsn depends_on;
};

void Send(Host& host, Session& session, const Delivery& delivery) {
  if (session.ended()) return;
  GatePush(session, delivery.depends_on);
  const size_t bytes_before = session.reply_bytes();
  ReplyWriter push(&PushTarget(session), session.version);
  if (delivery.kind == ChannelKind::kPattern) {
    push.Push(4);
    push.Bulk("pmessage");
    push.Bulk(delivery.pattern);
  } else {
    push.Push(3);
    push.Bulk(delivery.kind == ChannelKind::kShard ? "smessage" : "message");
  }
  push.Bulk(delivery.channel);
  push.Bulk(delivery.message);
  host.Pushed(session, session.reply_bytes() - bytes_before);
}

}  // namespace

bool PubSub::Subscribe(Session& session, ChannelKind kind, std::string_view name) {
  if (!session.pubsub) session.pubsub = std::make_unique<PubSubState>();
  const auto index = static_cast<size_t>(kind);
  if (!session.pubsub->names[index].emplace(name).second) return false;
  session.pubsub->memory_bytes += MemoryOf(name);
  registries_[index][std::string(name)].push_back(&session);
  return true;
}

bool PubSub::Unsubscribe(Session& session, ChannelKind kind, std::string_view name) {
  if (!session.pubsub) return false;
  const auto index = static_cast<size_t>(kind);
  auto& names = session.pubsub->names[index];
  const auto own = names.find(name);
  if (own == names.end()) return false;
  const auto listeners = registries_[index].find(name);
  CELLAR_ASSERT(listeners != registries_[index].end());
  const size_t erased = std::erase(listeners->second, &session);
  CELLAR_ASSERT(erased == 1);
  if (listeners->second.empty()) registries_[index].erase(listeners);
  CELLAR_ASSERT(session.pubsub->memory_bytes >= MemoryOf(name));
  session.pubsub->memory_bytes -= MemoryOf(name);
  names.erase(own);
  return true;
}

void PubSub::UnsubscribeAll(Session& session) {
  if (!session.pubsub) return;
  for (const ChannelKind kind :
       {ChannelKind::kChannel, ChannelKind::kPattern, ChannelKind::kShard}) {
    auto& names = session.pubsub->names[static_cast<size_t>(kind)];
    while (!names.empty()) {
      // A copy, since Unsubscribe erases the name in the set.
      const std::string name = *names.begin();
      (void)Unsubscribe(session, kind, name);
    }
  }
  CELLAR_ASSERT(session.pubsub->memory_bytes == 0);
  session.pubsub.reset();
}

size_t PubSub::PublishAbout(Host& host, ChannelKind kind, std::string_view channel,
                            std::string_view message, Lsn depends_on, const TableName* table) {
  CELLAR_ASSERT(kind != ChannelKind::kPattern);
  size_t receivers = 0;
  // Names of tables are hidden from those who may not read them, in events too.
  const auto may_know = [table](const Session& session) {
    return table == nullptr || !session.restricted ||
           MayReadWholeTable(*session.user, table->keyspace, table->table);
  };
  const Registry& exact = registry(kind);
  if (const auto found = exact.find(channel); found != exact.end()) {
    // A listener that takes too little is ended on the way. Its subscriptions go with its
    // connection at the end of the turn, so the list stays as it is here.
    for (Session* session : found->second) {
      if (may_know(*session)) Send(host, *session, {kind, {}, channel, message, depends_on});
    }
    receivers += found->second.size();
  }
  // As in Redis, patterns do not match shard channels.
  if (kind == ChannelKind::kShard) return receivers;
  for (const auto& [pattern, sessions] : registry(ChannelKind::kPattern)) {
    if (!GlobMatch(pattern, channel)) continue;
    for (Session* session : sessions) {
      if (!may_know(*session)) continue;
      Send(host, *session, {ChannelKind::kPattern, pattern, channel, message, depends_on});
    }
    receivers += sessions.size();
  }
  return receivers;
}

bool InSubscribedMode(const Session& session) {
  return session.pubsub != nullptr &&
         session.pubsub->channels_and_patterns() + session.pubsub->shards() > 0;
}

}  // namespace cellar
