// A mutation that no builder makes: its bytes are sound and its meaning is not.
#pragma once

#include <string>
#include <string_view>

#include "cellar/status.h"

namespace cellar {

// kCorruption: `what` is named by a mutation and is not there, or is there twice.
inline Status Malformed(std::string_view what) {
  return Status::Error(ErrorCode::kCorruption, "a mutation names " + std::string(what));
}

}  // namespace cellar
