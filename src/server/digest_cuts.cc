// See digest_cuts.h.
#include "server/digest_cuts.h"

#include "base/assert.h"
#include "commands/session/services.h"
#include "replica/replication.h"
#include "store/store.h"

namespace cellar {

void DigestCuts::OnCut(const CutMark& mark, uint64_t number, Lsn record) {
  // What came behind it in this turn would be among the rows, too.
  CELLAR_ASSERT(host_.store().last_lsn() == record);
  host_.services().cut_digests.Take(host_.store(),
                                    {.number = number, .term = host_.replication().term()},
                                    mark.time_micros, host_.clock().MonotonicMicros());
}

void DigestCuts::OnTick() {
  host_.services().cut_listeners[CutPurpose::kDigest] = this;
  host_.services().cut_digests.Sweep(host_.clock().MonotonicMicros());
}

}  // namespace cellar
