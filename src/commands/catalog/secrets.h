// Passwords in arguments: what is kept of a command (slow log) shows "(redacted)" in their place.
#pragma once

#include "commands/catalog/command_table.h"
#include "commands/words/arguments.h"

namespace cellar {

// `args` with passwords replaced. The result lives until the next call or as long as `args`.
Arguments WithoutSecrets(const CommandEntry& command, Arguments args);

}  // namespace cellar
