// See backup_cuts.h.
#include "server/backup_cuts.h"

#include "base/assert.h"
#include "replica/set_node.h"
#include "store/store.h"

namespace cellar {

void BackupCuts::OnCut(const CutMark&, uint64_t number, Lsn record) {
  // What came behind it in this turn would be in the backup, too.
  CELLAR_ASSERT(host_.store().last_lsn() == record);
  host_.store().backup().NoteCut(number);
}

// The next leader begins a part of its own.
void BackupCuts::OnTick() {
  const SetNode* const set = host_.replication().set();
  if (set == nullptr || host_.loading()) return;
  Backup& backup = host_.store().backup();
  if (const ClusterState& cluster = host_.store().engine().cluster(); cluster.active())
    backup.LookForPart(cluster.set);
  if (set->open()) return;
  if (backup.is_part() && backup.active()) (void)backup.Abort("this node leads its set no more");
}

}  // namespace cellar
