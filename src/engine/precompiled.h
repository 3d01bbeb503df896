// The headers that most of engine/ uses, for base/precompiled.h's purpose.
#pragma once

#include "base/precompiled.h"
#include "engine/schema/column_set.h"
#include "engine/table/table.h"
