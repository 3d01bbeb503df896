// Writes a snapshot file (store/format/snapshot_format.h) from copy-on-write copies of the trees.
//
// Runs on any thread; reads the trees through BTreeImageReader only, so the owner goes on writing.
// Bytes are synced piece by piece as they are written: one sync of a gigabyte at the end would hold
// up the log's syncs, which share the file system's journal. Between blocks the thread lets those
// pass that serve clients.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/os/file.h"
#include "engine/state/state_machine.h"
#include "store/format/manifest.h"
#include "store/format/snapshot_format.h"

namespace cellar {

// Shared with whoever watches.
struct SnapshotProgress {
  std::atomic<uint64_t> cells_done{0};  // an estimate inside a tree
  std::atomic<bool> cancelled{false};   // set it to give up soon
  std::vector<SnapshotTree> trees{};    // in the file; for whoever has waited for its end
};

struct SnapshotTask {
  std::string directory;
  uint64_t number{0};
  Lsn lsn;
  uint64_t created_micros{0};
  int64_t commit_micros{0};  // of `lsn`
  std::string members{};     // of the replica set, see store/format/snapshot_format.h
  uint64_t salvaged_from{};  // likewise
  std::string name{};        // of the file; empty: by its number
};

// Writes `cellar-<number>.snapshot`, or what `name` says: under a temporary name first; synced,
// renamed, folder synced. What it returns is ready for the manifest. After an error the temporary
// file is gone if that could be done.
Result<SnapshotEntry> WriteSnapshot(FileSystem& files, const SnapshotTask& task,
                                    const StateMachine::StateSnapshot& state,
                                    SnapshotProgress* progress);

}  // namespace cellar
