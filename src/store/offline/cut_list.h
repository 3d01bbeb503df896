// ListCuts: the moments over all sets of a cluster (cluster/cut_desk.h) that a set's files lead to:
// its archive, a copy of its data directory. For who looks for the last one before a time.
//
//   marks   what the log says: each set has noted the cut, with the same number and time
//   good    what set 0 has found out since, by the table of cuts (cluster/map_tables.h), of which
//           it keeps the newest thousand
//
// All of the log is read, from the newest base backwards, as far as there is no gap.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "base/os/file.h"
#include "cellar/status.h"

namespace cellar {

struct CutList {
  std::map<uint64_t, int64_t> marks{};  // by number; Unix micros
  std::set<uint64_t> good{};            // of set 0
};

// kIo, kCorruption as RecoverToPoint; ERR if the files are of no set of a cluster.
Result<CutList> ListCuts(FileSystem& files, const std::string& directory);

}  // namespace cellar
