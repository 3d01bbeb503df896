// What `cellar --check DIR [--repair]` and `cellar --dump DIR|FILE` do: looking at a store's files
// without a server and without changing anything, unless told to repair.
//
// A check verifies every byte, and loads the store as a start would, so that it finds what a start
// would refuse; it takes the memory that the server takes. A dump needs no loaded state. Both work
// on files that a server refuses to start from. What is in the cells they leave to the engine.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

#include "base/os/file.h"
#include "cellar/lsn.h"
#include "cellar/status.h"
#include "engine/state/state_machine.h"

namespace cellar {

enum class CheckMode : uint8_t {
  kLook,
  // Cuts the log at the first damaged record: that record and everything after it is lost to the
  // store. Of a damaged snapshot, unless the log leads to it from an earlier one, what is sound is
  // written to another (snapshot_salvage.h), and what is lost said. A manifest that is lost is made
  // anew from the files (manifest_rebuild.h). What was damaged is kept beside under names that end
  // in ".damaged".
  kRepair,
};

// What the log of a replica set's member says.
struct CheckedMember {
  std::string members;  // payload of a kMembers record; empty: it names none
  Lsn committed;
  Lsn last;
};

// Reads every byte of the store in `directory`, verifies every checksum, applies it all to the
// empty `state`, and prints what it finds, one line per file and per fault. OK if the store is
// sound (a torn tail, which a start would cut, is named and is sound), or was made so; kCorruption
// if anything is damaged, even where a server would start; kIo. The folder must not be in use by a
// running server (kIo). `member` may be null.
Status CheckStore(FileSystem& files, const std::string& directory, CheckMode mode,
                  StateMachine& state, std::ostream& out, CheckedMember* member);
inline Status CheckStore(FileSystem& files, const std::string& directory, CheckMode mode,
                         StateMachine& state, std::ostream& out) {
  return CheckStore(files, directory, mode, state, out, nullptr);
}

// Readable text of a record's payload; one or more lines, no newline at the end.
using DescribeMutation = std::function<std::string(std::string_view payload)>;

// Prints the records of a log segment, one readable command a line, or a summary of a snapshot or a
// manifest; for a folder the files that its manifest names, in order. Goes on behind damage as far
// as it can, saying so; kCorruption at the end then. Works beside a running server.
Status DumpStore(FileSystem& files, const std::string& path, const DescribeMutation& describe,
                 std::ostream& out);

}  // namespace cellar
