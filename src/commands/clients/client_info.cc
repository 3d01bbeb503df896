// See client_info.h.
#include "commands/clients/client_info.h"

#include <fmt/format.h>

#include "base/assert.h"
#include "commands/arguments/arguments.h"
#include "commands/catalog/command_table.h"
#include "commands/session/pubsub.h"
#include "commands/session/tracking.h"
#include "commands/session/transaction.h"

namespace cellar {
namespace {

std::string Flags(const Session& session) {
  std::string flags;
  if (IsChannel(session)) flags += 'F';
  if (session.peer == PeerRole::kReplica) flags += 'S';
  if (session.peer == PeerRole::kMaster) flags += 'M';
  if (session.monitor) flags += 'O';
  if (session.pubsub) flags += 'P';
  if (session.in_multi()) flags += 'x';
  if (IsBlocked(session)) flags += 'b';
  if (session.tracking) flags += 't';
  if (session.tracking && session.tracking->broken_redirect) flags += 'R';
  if (session.tracking && session.tracking->bcast) flags += 'B';
  if (session.life == SessionLife::kEnding) flags += 'c';
  if (session.ended()) flags += 'A';
  if (session.unix_socket) flags += 'U';
  if (session.switches.no_evict) flags += 'e';
  if (session.switches.no_touch) flags += 'T';
  return flags.empty() ? "N" : flags;
}

size_t Listening(const Session& session, ChannelKind kind) {
  return session.pubsub ? session.pubsub->names[static_cast<size_t>(kind)].size() : 0;
}

}  // namespace

bool IsChannel(const Session& session) { return session.switches.queues_judged; }

// Its address is the client's there, with the node's behind it.
std::string_view NodeOfChannel(const Session& session) {
  CELLAR_ASSERT(IsChannel(session));
  return std::string_view(session.address).substr(session.address.rfind('/') + 1);
}

std::string ClientLine(const Session& session, int64_t now_micros) {
  const bool multi = session.in_multi();
  const size_t multi_bytes = session.transaction ? session.transaction->memory_bytes() : 0;
  const size_t output_bytes = session.reply_bytes();
  const size_t total = sizeof(Session) + session.query_bytes + session.memory_bytes();
  // The order is that of Redis 7.2. `watch` (7.4) and `io-thread` (8.0) came later, and are behind.
  return fmt::format(
      "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={} db={} sub={} psub={} ssub={} "
      "multi={} qbuf={} qbuf-free=0 argv-mem=0 multi-mem={} rbs=0 rbp=0 obl=0 oll={} "
      "omem={} tot-mem={} events={} cmd={} user={} redir={} resp={} lib-name={} lib-ver={} "
      "watch={} io-thread={}\n",
      session.id, session.address, session.local_address, session.fd, session.name,
      (now_micros - session.created_micros) / 1'000'000,
      (now_micros - session.last_activity_micros) / 1'000'000, Flags(session), session.keyspace,
      Listening(session, ChannelKind::kChannel), Listening(session, ChannelKind::kPattern),
      Listening(session, ChannelKind::kShard),
      multi ? static_cast<int64_t>(session.transaction->queue.size()) : -1, session.query_bytes,
      multi_bytes, session.output_in_flight > 0 ? 1 : 0, output_bytes, total,
      session.output_in_flight > 0 ? "rw" : "r",
      session.last_command == nullptr ? "NULL" : session.last_command->full_name, session.user_name,
      session.tracking ? static_cast<int64_t>(session.tracking->redirect) : -1,
      static_cast<int>(session.version), session.lib_name, session.lib_version,
      session.transaction ? session.transaction->watches.size() : 0, session.io_thread);
}

Status CheckKept(const Session& session, const Config& config) {
  if (session.kept_bytes() <= static_cast<size_t>(config.client_query_buffer_limit)) {
    return Status::Ok();
  }
  return Status::Error(ErrorCode::kErr,
                       "queued commands, watches and subscriptions of this client exceed "
                       "client-query-buffer-limit");
}

bool BeyondHardLimit(const Session& session, const Config& config) {
  const int64_t hard = config.output_limits[static_cast<size_t>(ClassOf(session))].hard_bytes;
  return hard > 0 && session.reply_bytes() > static_cast<size_t>(hard);
}

bool PushesBeyondLimit(const Session& session, const Config& config) {
  const int64_t hard = config.output_limits[static_cast<size_t>(ClientClass::kPubsub)].hard_bytes;
  return hard > 0 && session.pushed_bytes > static_cast<size_t>(hard);
}

ClientClass ClassOf(const Session& session) {
  if (session.peer == PeerRole::kReplica) return ClientClass::kReplica;
  if (session.peer == PeerRole::kMaster) return ClientClass::kMaster;
  return session.pubsub ? ClientClass::kPubsub : ClientClass::kNormal;
}

std::optional<ClientClass> ClientClassOfWord(std::string_view word) {
  if (EqualsIgnoreCase(word, "normal")) return ClientClass::kNormal;
  if (EqualsIgnoreCase(word, "pubsub")) return ClientClass::kPubsub;
  if (EqualsIgnoreCase(word, "replica") || EqualsIgnoreCase(word, "slave"))
    return ClientClass::kReplica;
  if (EqualsIgnoreCase(word, "master")) return ClientClass::kMaster;
  return std::nullopt;
}

}  // namespace cellar
