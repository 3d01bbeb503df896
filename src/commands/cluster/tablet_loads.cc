// See tablet_loads.h.
#include "commands/cluster/tablet_loads.h"

#include "commands/session/host.h"
#include "commands/session/services.h"
#include "store/store.h"

namespace cellar {

void AddTabletLoads(Host& host, std::vector<TabletSize>* sizes) {
  const LoadView view = host.services().load_samples.View(host.clock().MonotonicMicros());
  for (TabletSize& size : *sizes) {
    const Table* const table = host.store().TableById(size.table_id);
    const Tablet* const tablet = table == nullptr || table->tablets() == nullptr
                                     ? nullptr
                                     : table->tablets()->Find(size.begin);
    if (tablet == nullptr) continue;
    RangeLoad load = view.Of(size.table_id, tablet->begin, tablet->end);
    size.load = load.permille;
    size.top_percent = load.top_percent;
    if (load.middle.empty()) continue;
    size.load_middle = TabletBoundOf(table->schema(), load.middle);
  }
}

}  // namespace cellar
