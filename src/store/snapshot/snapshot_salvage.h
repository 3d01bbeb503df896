// What is sound in a damaged snapshot file.
//
//   header   what is lost of it the manifest knows: the LSN
//   catalog  stands at the front and in the footer (store/format/snapshot_format.h); one of the two is enough,
//            without either nothing can be read
//   blocks   each is verified alone, and in its place, which its hash has in it
//
// A block that is bad is left out. Where the next one begins is what its header says, if a good one
// begins there; otherwise every offset is tried. Of two blocks of a tree with nothing between them
// that verifies, the keys at both sides tell what is lost: all between them and nothing else.
//
// Trees that hold nothing of their own are passed over: the start builds them again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/os/file.h"
#include "cellar/status.h"
#include "engine/state/state_machine.h"
#include "store/format/manifest.h"

namespace cellar {

struct Salvage {
  Lsn lsn;
  int64_t commit_micros{0};  // 0 if that is lost
  std::string members;
  uint64_t trees{0};
  uint64_t entries{0};
  std::vector<std::string> lost;  // a line each; none: nothing
};

// Loads what is sound of the file into the empty `state`. `entry` is what a manifest says of it, if
// there is one. kCorruption if nothing can be read of it.
Result<Salvage> SalvageSnapshot(FileSystem& files, const std::string& path,
                                const std::optional<SnapshotEntry>& entry, StateMachine& state);

}  // namespace cellar
