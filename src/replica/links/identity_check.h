// What `cellar --check` says of cellar.replica beside who the node is.
#pragma once

#include <string>

#include "base/os/file.h"
#include "cellar/status.h"

namespace cellar {

// kCorruption if either slot of the folder's file (identity_file.h), or their seal, is not sound:
// also where a server starts, since a crash may have torn it. OK if there is no file. What ties the
// folder to its last start is looked at elsewhere (replica/set/member_file.h).
Status CheckIdentitySlots(FileSystem& files, const std::string& directory);

}  // namespace cellar
