// The headers that most of store/ uses, for base/precompiled.h's purpose.
#pragma once

#include "base/precompiled.h"
#include "engine/state/engine.h"
#include "engine/state/state_machine.h"
#include "store/format/log_format.h"
#include "store/format/manifest.h"
#include "store/format/snapshot_format.h"
