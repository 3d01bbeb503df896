// The headers that most of server/ uses, for base/precompiled.h's purpose.
#pragma once

#include "base/precompiled.h"
#include "commands/session/session.h"
#include "server/connection/connection.h"
#include "store/store.h"
