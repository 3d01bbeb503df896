// From the configuration's words to what store, journal and log want.
#pragma once

#include <vector>

#include "commands/config/config.h"
#include "replica/replication.h"
#include "store/store.h"

namespace cellar {

SyncPolicy SyncPolicyOf(const Config& config);
std::vector<SavePoint> SavePointsOf(const Config& config);
// Of cluster-nodes.
std::vector<NodeAddress> NodesOf(const std::string& text);
ArchiveOptions ArchiveOptionsOf(const Config& config);
// Without the journal's wake and members, and without a seed.
StoreOptions StoreOptionsOf(const Config& config);
void ApplyLogLevel(const Config& config);

}  // namespace cellar
