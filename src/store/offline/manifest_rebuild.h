// A manifest from the files that it should name, when it is lost.
//
// What a segment continues stands in its header: the LSN of the record before it, and that record's
// hash. So segments are put one behind the other where one holds just the record that the next
// continues, whatever else follows there; what follows was written again in the next one, after a
// write that had failed. A way begins behind a snapshot, at the segment that holds the snapshot's
// record or continues it, or without one at the first segment of all. Of two segments that continue
// the same one the newer counts, unless it only repeats what stands there. Of all ways the one is
// taken that reaches the highest LSN; of these, one from a snapshot that is whole, and then the
// newest. The log that leads to its beginning stays in it, with the whole snapshots on that way.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/os/file.h"
#include "cellar/status.h"
#include "store/format/manifest.h"

namespace cellar {

struct RebuiltManifest {
  Manifest manifest;  // without a file on disk yet
  struct Left {
    std::string name;
    std::string why;
  };
  std::vector<Left> left;  // files of a store that it does not name
};

// Nothing if the files make no store: neither a snapshot nor the beginning of a log. The snapshot
// `without` does not count. Reads everything. An error is one of the file system.
Result<std::optional<RebuiltManifest>> RebuildManifest(FileSystem& files,
                                                       const std::string& directory,
                                                       std::optional<uint64_t> without);

}  // namespace cellar
