// A backup of a cluster, and a cluster of a backup (cellar-cluster(7), "BACKUP AND RECOVERY").
#pragma once

#include "cellar-cluster/options.h"
#include "client/connection.h"

namespace cellar::cluster_tool {

// BACKUP START, until all sets are ready; then SEAL. What fails is taken back. The exit status, and
// what is wrong on the standard error.
int MakeBackup(const Options& options, client::Connection* connection,
               const volatile bool* stopped);

// Makes the data directory of each set, of what a folder has of it: a backup, with the cut that it
// is of, or archives, with the one that is asked for. Likewise.
int RecoverCluster(const Options& options, const volatile bool* stopped);

}  // namespace cellar::cluster_tool
