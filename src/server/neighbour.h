// Neighbours: nodes of one machine, which pass commands on to each other by unix sockets.
#pragma once

#include "commands/config/config.h"
#include "replica/greeting.h"

namespace cellar {

// What this node tells of itself: the machine is cluster-machine, else the host's name; the socket
// is unixsocket, if its absolute path can be dialled.
Neighbour NeighbourOf(const Config& config);

// Whether who listens at the other end of a connected unix socket runs as this process does, or as
// root: a path alone, which another node has told, proves nothing, and a password is sent there.
bool IsOwnOrRoots(int fd);

}  // namespace cellar
