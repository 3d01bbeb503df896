// See tablet_listeners.h.
#include "commands/session/tablet_listeners.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "cluster/lost_rows.h"
#include "commands/session/host.h"
#include "commands/session/services.h"
#include "commands/session/session.h"
#include "resp/reply_writer.h"
#include "store/store.h"
#include "store/tablet_changes.h"

namespace cellar {
namespace {

std::string LeaderOf(const ClusterView& view, uint64_t set) {
  const ClusterSet* const known = view.sets.Find(set);
  const ClusterMember* const leader = known == nullptr ? nullptr : known->Find(known->leader);
  return leader == nullptr ? std::string() : fmt::format("{}:{}", leader->host, leader->port);
}

}  // namespace

void TabletListeners::Begin(const Session& session) { listeners_.try_emplace(session.id); }

void TabletListeners::End(const Session& session) { listeners_.erase(session.id); }

void TabletListeners::Note(const Session& session, uint64_t table_id, std::string name,
                           uint64_t version) {
  const auto found = listeners_.find(session.id);
  if (found == listeners_.end() || found->second.size() >= kTablesMax) return;
  found->second.try_emplace(table_id, Heard{std::move(name), version});
}

void TabletListeners::TellOne(Host& host, Session& session, uint64_t table_id,
                              const MapTable& mapped, Heard* heard) {
  const Table* const table = host.store().TableById(table_id);
  if (table == nullptr) return;
  const uint64_t since = heard->version;
  GatePush(session, host.store().last_lsn());
  const size_t bytes_before = session.reply_bytes();
  for (const MapEntry& entry : mapped.tablets) {
    heard->version = std::max(heard->version, entry.version);
    if (entry.version <= since) continue;
    ReplyWriter push(&PushTarget(session), session.version);
    push.Push(6);
    push.Bulk("tablet");
    push.Bulk(heard->name);
    push.Bulk(TabletBoundText(*table, entry.begin));
    push.Bulk(TabletBoundText(*table, entry.end));
    push.Unsigned(SetNumber(entry.set));
    push.Bulk(LeaderOf(host.services().cluster_view, entry.set));
  }
  const size_t bytes = session.reply_bytes() - bytes_before;
  if (bytes > 0) host.Pushed(session, bytes);
}

void TabletListeners::Tell(Host& host, const MapCache& map) {
  if (listeners_.empty() || map.version() == version_) return;
  version_ = map.version();
  for (auto at = listeners_.begin(); at != listeners_.end();) {
    Session* const session = host.FindSession(at->first);
    const bool is_gone = session == nullptr || session->ended();
    if (is_gone) {
      at = listeners_.erase(at);
      continue;
    }
    for (auto& [table_id, heard] : at->second) {
      const MapTable* const mapped = map.Find(table_id);
      const bool is_news = mapped != nullptr && session->version == RespVersion::k3;
      if (is_news) TellOne(host, *session, table_id, *mapped, &heard);
    }
    ++at;
  }
}

}  // namespace cellar
