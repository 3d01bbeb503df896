// A cluster on this machine: begun and ended.
//
//   set 0's nodes begin, elect a leader, CLUSTER INIT
//   the others begin, elect theirs, ask to join; each is admitted in its order, so that the n-th
//   set of the folder is set n of the cluster
//
// Every step looks first at what is so already: a start that is made again, or was broken off, goes
// on from there. A node's configuration is written once, and is the operator's from then on.
#pragma once

#include "cellar-cluster/options.h"

namespace cellar::cluster_tool {

// Each returns the exit status, and has said why on the standard error.
int StartCluster(const Options& options, const volatile bool* stopped);
int StopCluster(const Options& options, const volatile bool* stopped);

}  // namespace cellar::cluster_tool
