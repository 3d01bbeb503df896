// Passwords in arguments: whatever shows commands to people (SLOWLOG, MONITOR) says "(redacted)" in
// their place. Everything that does so goes through here.
#pragma once

#include "commands/arguments/arguments.h"
#include "commands/catalog/command_table.h"

namespace cellar {

// `args` with passwords replaced, in commands that were refused too. The result lives until the
// next call or as long as `args`.
Arguments WithoutSecrets(const CommandEntry& command, Arguments args);

}  // namespace cellar
