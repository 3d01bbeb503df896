// What `cellar --check ARCHIVE` does: reads every byte of an archive (archive.h), and tells what is
// damaged and where something is missing.
#pragma once

#include <iosfwd>
#include <string>

#include "base/os/file.h"
#include "cellar/status.h"

namespace cellar {

// A line for each file on `out`. OK if all is sound, and nothing is missing but what the archive
// itself has noted; kCorruption otherwise; kIo.
Status CheckArchive(FileSystem& files, const std::string& directory, std::ostream& out);

}  // namespace cellar
