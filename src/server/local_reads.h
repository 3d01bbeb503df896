// What a read needs of a node beside the state that is applied there, so that a node that does not
// lead its set may answer it (command_links.h):
//
//   feeds     the log on its own disk, which may be behind the state
//   indexes   each node builds its own, in its own time
//
// Of EXEC, what it is about to run.
#pragma once

#include "commands/arguments/arguments.h"
#include "commands/catalog/command_table.h"
#include "commands/session/session.h"
#include "store/store.h"

namespace cellar {

// Whether it reads feeds or what is known of them.
bool ReadsFeeds(const Session& session, const CommandEntry& command);

// Whether it names an index that this node has not built, though it may be ready elsewhere.
bool ReadsUnbuiltIndex(Store& store, const Session& session, const CommandEntry& command,
                       Arguments args);

// Whether it goes on with a scan, or begins one whose cursor shall hold a state (CSCAN ...
// SNAPSHOT): a cursor may hold a state of this node, and its number means another one elsewhere.
bool BelongsHere(const Session& session, const CommandEntry& command, Arguments args);

// The newest record that feeds tell of here. Everything else tells of Store::applied_lsn.
Lsn ShownByFeeds(Store& store);

}  // namespace cellar
