// The headers that most of replica/ uses, for base/precompiled.h's purpose.
#pragma once

#include "base/precompiled.h"
#include "replica/set/set_message.h"
#include "store/store.h"
