// The files of a store, a backup or an archive that an earlier version, or another umask, has made
// readable for all: see base/os/file_modes.h.
#pragma once

#include <string>

namespace cellar {

// The folder and the files in it that belong to a store; others are left as they are. What cannot
// be changed stays. A folder that is not there, or holds no store, is none of our business.
void LimitStoreModes(const std::string& folder);

}  // namespace cellar
