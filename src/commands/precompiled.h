// The headers that most of commands/ uses, for base/precompiled.h's purpose.
#pragma once

#include "base/precompiled.h"
#include "commands/acl/acl_check.h"
#include "commands/arguments/arguments.h"
#include "commands/session/command_context.h"
#include "commands/session/host.h"
#include "commands/session/session.h"
#include "store/store.h"
