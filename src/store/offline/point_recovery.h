// What `cellar --recover DIR... --until POINT --dir NEW` does: from what several folders have of a
// store, its data directory, an archive of it, backups, it makes a data directory that holds
// exactly the steps committed up to a point.
//
//   base      the newest snapshot not behind the point, or the first record of the log
//   log       from there on, segment by segment, whichever folder has it; the last record used may
//             hold steps behind the point, which are left out
//   result    one snapshot in NEW, as if the server had saved there
//
// Only what is needed is read, and all of it is checked. Nothing is changed but in NEW, which gets
// its files once the state is made, and its manifest last.
//
// Of a replica set's member only what it knows to be committed counts: records that others have
// voided, or may, are left out. What comes of it is a store of its own, in no set.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "base/os/file.h"
#include "cellar/clock.h"
#include "cellar/status.h"
#include "store/offline/recover_point.h"

namespace cellar {

struct RecoverRequest {
  std::vector<std::string> from;
  RecoverPoint until;
  std::string to;
};

// Says on `out` which files it has used, a line each; the last line is `recovered to ID TIME, N
// steps after snapshot FILE`. An error leaves nothing in `to`: kCorruption naming file and offset
// for damage, a gap, files of different stores; ERR for a point that is before all there is, or is
// not to be found; kIo.
Status RecoverToPoint(FileSystem& files, Clock& clock, const RecoverRequest& request,
                      std::ostream& out);

}  // namespace cellar
