// The groups of commands on the cluster, one file each.
#pragma once

#include <span>

#include "commands/catalog/command.h"

namespace cellar {

std::span<const Command> ClusterCommands();
std::span<const Command> TabletCommands();

}  // namespace cellar
