// A store's file under another name, in a folder that may be of another file system.
#pragma once

#include <cstdint>
#include <string>

#include "base/os/file.h"
#include "cellar/status.h"

namespace cellar {

// Makes `to` what the first `bytes` of `from` are: a second name for the same file if it is just so
// long and the file system can, else a copy, written under `to`.tmp, synced and renamed; of an
// object store, an object. The name is not durable yet. `from` does not change any more. An error
// leaves neither behind if that could be done; kIo if `from` is shorter.
Status LinkOrCopy(FileSystem& files, const std::string& from, const std::string& to,
                  uint64_t bytes);

}  // namespace cellar
