// CommandLinks: the lane of commands of one row. Most commands of most clients are such that
// nothing is to be asked but where their row is: they go the way that Takes and Pass would find for
// them, in a third of the instructions. Whatever is unusual about them, or their client, goes the
// long way.
#include <string>

#include "base/assert.h"
#include "commands/catalog/command_table.h"
#include "commands/clients/set_users.h"
#include "commands/cluster/command_route.h"
#include "commands/config/config.h"
#include "commands/session/services.h"
#include "replica/set_node.h"
#include "server/command_link_ends.h"
#include "server/command_links.h"
#include "server/connection/connection.h"
#include "server/passed_client.h"

namespace cellar {
namespace {

// Of its words together.
constexpr size_t kLaneBytesMax{64 << 10};

// Nothing of what has been is under way for it still but calls.
bool Rests(const Session& session) {
  return session.pushes == nullptr && session.read_ticket == 0 && !session.switches.waits_elsewhere;
}

bool IsShort(Arguments args) {
  size_t bytes = 0;
  for (const std::string_view word : args) bytes += word.size();
  return bytes <= kLaneBytesMax;
}

bool GoesToLeader(const Config& config, const Session& session, const CommandEntry& command) {
  if (command.Has(kWrite)) return true;
  return command.Has(kReadonly) && ClusterReadsOf(config) == ClusterReads::kLeader &&
         !session.switches.reads_stale;
}

}  // namespace

CommandPassing::Lane CommandLinks::TakeLane(Session& session, const CommandEntry& command,
                                            Arguments args) {
  const bool takes_writes = !host_.restrains_writes();
  Connection* const connection = static_cast<ConnectedSession&>(session).connection;
  // What another node has passed on was asked whether it belongs here.
  if (connection == nullptr) return takes_writes ? Lane::kHere : Lane::kNone;
  if (set() == nullptr || !IsPlain(session, command) || !Rests(session) ||
      !SetUsers::AreKnown(host_))
    return Lane::kNone;
  const bool routes = host_.routes();
  const bool leads = set()->open();
  if (routes && !place_.Find(host_.store(), session.keyspace, command, args,
                             {.map = &MapOf(host_), .own_set = own_set(), .leads = leads}))
    return Lane::kNone;
  const bool is_own = !routes || place_.set() == own_set();
  auto* const client = static_cast<PassedClient*>(connection->passed.get());
  if (is_own && leads) return takes_writes ? RunInLane(client, command) : Lane::kNone;
  if (is_own && !GoesToLeader(host_.services().config, session, command)) return Lane::kNone;
  return PassInLane(connection, command, args, is_own ? kOwnSet : place_.set());
}

CommandPassing::Lane CommandLinks::RunInLane(PassedClient* client, const CommandEntry& command) {
  if (client == nullptr) return Lane::kHere;
  if (!client->under_way()) {
    client->since_micros = 0;
    client->misled = false;
    return Lane::kHere;
  }
  // What goes on as a task cannot be kept.
  const bool behind = command.Has(kFast) && host_.routes() && !client->has_watched() &&
                      !IsFull(*client, false) && client->MayKeep() &&
                      client->window.Note(&place_.table(), MapOf(host_).version());
  return behind ? Lane::kBehind : Lane::kNone;
}

CommandPassing::Lane CommandLinks::PassInLane(Connection* connection, const CommandEntry& command,
                                              Arguments args, uint64_t number) {
  if (!host_.services().config.cluster_forward || leave_by_micros_ != 0 || refused_node_ != 0 ||
      !IsShort(args))
    return Lane::kNone;
  PassedClient* const client = MakeClient(connection);
  if (client->since_micros != 0 || client->has_watched() || IsFull(*client, false))
    return Lane::kNone;
  if (!client->under_way()) client->window.Begin();
  const bool beside =
      host_.routes() && client->window.Note(&place_.table(), MapOf(host_).version());
  PassedChannel& channel = client->ChannelTo(number);
  EntryLink* const link = client->MayGo(channel, beside) ? LinkFor(channel) : nullptr;
  if (link == nullptr || !link->MayPass(channel) || !link->MakeRoom(channel)) return Lane::kNone;
  client->Goes(&channel, beside);
  const Doing doing{.writes = command.Has(kWrite), .reads = command.Has(kReadonly)};
  PutCall(link, &channel, connection->session, command, args, doing);
  client->skips = false;
  ++figures_.calls_out;
  return Lane::kPassed;
}

void CommandLinks::BeginBehind(Session& session) { aside_.Begin(&session); }

void CommandLinks::EndBehind(Session& session) {
  const Lsn gate = aside_.End(&session);
  ClientOf(session)->Keep(aside_.reply(), gate);
  aside_.Clear();
}

}  // namespace cellar
