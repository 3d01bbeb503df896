// The refusals of replication: an order, a greeting or a set that cannot be had as asked for.
#pragma once

#include <string>
#include <utility>

#include "cellar/status.h"

namespace cellar {

// An error that the client or peer is told as it is.
inline Status Refused(std::string text) { return Status::Error(ErrorCode::kErr, std::move(text)); }

}  // namespace cellar
