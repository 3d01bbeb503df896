// See cluster_part.h.
#include "commands/cluster/cluster_part.h"

#include "cluster/lost_rows.h"
#include "commands/arguments/cell_arguments.h"
#include "commands/arguments/syntax_error.h"
#include "commands/cluster/command_route.h"
#include "commands/reports/cluster_report.h"
#include "commands/session/command_context.h"
#include "commands/session/services.h"
#include "commands/session/table_events.h"
#include "replica/set_node.h"
#include "store/store.h"

namespace cellar {

ClusterTelling::ClusterTelling(Host& host) : host_(host), before_(host.store().last_lsn()) {}

// As of tables that have changed as a whole.
ClusterTelling::~ClusterTelling() {
  if (host_.store().last_lsn() == before_) return;
  for (const std::string_view table : kClusterTables)
    NotifyTrackers(host_, kClusterKeyspace, table);
}

bool ClusterPart::Directs(Host& host) {
  const SetNode* const set = host.replication().set();
  return set != nullptr && set->open() && set->may_append() && set->has_room() && !host.closed() &&
         host.store().engine().cluster().set == 0;
}

void ClusterPart::Tend(Host& host) {
  const SetNode* const set = host.replication().set();
  if (host.loading() || set == nullptr || set->member().state_is_void()) return;
  Services& services = host.services();
  const bool in_cluster = IsInCluster(host);
  SetClusterReadsDefault(&services.config, in_cluster);
  if (!in_cluster || !Directs(host)) return;
  const ClusterTelling telling(host);
  // What cannot be written now is tried again.
  (void)services.cluster_map.Tend(host.store(), host.replication().term());
}

bool ClusterPart::IsOfSet(CommandContext& ctx) {
  const SetNode* const set = ctx.host.replication().set();
  if (!ctx.host.replication().in_set()) {
    ctx.Fail(kClusterDisabled);
  } else if (ctx.host.loading() || set == nullptr || set->member().state_is_void()) {
    ctx.Fail("LOADING Cellar is loading the dataset in memory");
  } else if (set->is_empty()) {
    ctx.Fail("CLUSTERDOWN no leader: " + set->NoLeaderText());
  } else if (set->is_witness()) {
    ctx.Fail("CLUSTERDOWN this node is a witness, which holds no data");
  } else {
    return true;
  }
  return false;
}

bool ClusterPart::IsOfCluster(CommandContext& ctx) {
  if (!IsOfSet(ctx)) return false;
  ctx.DependsOn(ctx.store().schema_lsn());
  if (IsInCluster(ctx.host)) return true;
  ctx.Fail(kClusterDisabled);
  return false;
}

Status ClusterPart::CheckAllThere(Host& host, const Table& table) {
  if (!IsInCluster(host)) return Status::Ok();
  return cellar::CheckAllThere(MapOf(host), table.id(), table.shown_name());
}

Result<uint64_t> ClusterPart::CountAsked(Arguments words) {
  uint64_t count = 10;
  ArgumentCursor at(words, 0);
  if (at.done()) return count;
  if (!at.TakeWord("COUNT")) return UnexpectedWord(at.Peek(), "COUNT");
  ASSIGN_OR_RETURN(const std::string_view word, at.TakeAny("COUNT", "count"));
  ASSIGN_OR_RETURN(count, ParseCount("COUNT", word, 1));
  if (!at.done()) return Status::Error(ErrorCode::kErr, "syntax error");
  return count;
}

}  // namespace cellar
