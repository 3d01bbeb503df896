// What an option's text is answered that is no value of it.
#pragma once

#include <string>
#include <utility>

#include "cellar/status.h"

namespace cellar {

// An error that tells the client, or who reads the log at start, what is wrong with the value.
inline Status Invalid(std::string text) { return Status::Error(ErrorCode::kErr, std::move(text)); }

}  // namespace cellar
