// Recovery: manifest, snapshot, log; what a start does before the first command.
//
// Changes nothing on disk except the manifest of a store that holds nothing: whatever happens
// during recovery, the next one finds the same. The torn tail is cut when the log is opened for
// writing.
//
// A newest snapshot that is damaged is passed over if an earlier one is kept, or the log from its
// first record, and the log leads from there to what the newest one held and beyond: then nothing
// is lost. Otherwise it stops the start.
#pragma once

#include <cstdint>
#include <string>

#include "base/os/file.h"
#include "cellar/clock.h"
#include "engine/state/state_machine.h"
#include "store/format/log_format.h"
#include "store/format/manifest.h"
#include "store/journal/journal.h"
#include "store/log/log_replay.h"

namespace cellar {

struct RecoveredStore {
  Manifest manifest;
  uint64_t next_number{1};  // above every file in the folder
  // Where the history ends; `offset` is the place in the last segment if that is still open.
  LogPosition end;
  uint64_t log_bytes{0};               // of records
  std::string members;                 // of the replica set, as applied; empty without one
  std::string snapshot_members;        // as the snapshot has them
  NewestSnapshot newest;               // which that is
  std::vector<NamedMembers> named;     // behind the snapshot, as applied
  uint32_t first_epoch{0};             // of the snapshot, or else of the first record
  std::vector<Lsn> epoch_begins;       // the first record of each epoch behind that
  CommitMark mark;                     // the newest in the log
  std::vector<PendingRecord> pending;  // behind the mark, where recovery stops at it
  std::vector<std::string> leftovers;  // paths of files that may go now
  std::vector<std::string> dropped;    // of files that may go when `manifest` is installed
  RecoveryReport report;
};

struct RecoveryTask {
  StateContent content{StateContent::kEmpty};  // what `state` holds
  ApplyUpTo up_to{ApplyUpTo::kEnd};
  StoreContent begins_as{StoreContent::kState};  // a store in which no record is
};

// REQUIRES: the folder is there and locked.
Result<RecoveredStore> RecoverStore(FileSystem& files, Clock& clock, const std::string& directory,
                                    StateMachine& state, const RecoveryTask& task,
                                    const LoadProgressCallback& progress);

}  // namespace cellar
