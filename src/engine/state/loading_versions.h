// Versions of trees in a file that is being loaded (engine_snapshots.cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "btree/btree.h"
#include "engine/state/engine.h"

namespace cellar {

// Numbers that the tree of an index had in files of earlier formats of its entries.
std::vector<uint64_t> EarlierIndexTreeIds(uint64_t tree_id);

// What is being loaded. Planned by BeginLoad, from the catalog; carried out as the trees come.
struct Engine::LoadingVersions {
  static constexpr uint64_t kOutdated{UINT64_MAX};
  struct Plan {
    uint64_t newer{0};   // number in the file; 0: there is none
    uint64_t root{0};    // of the tree that all of the chain are versions of, or of the newest
    uint64_t number{0};  // from the oldest, 1
    Table* table{nullptr};
    size_t group{0};
    uint64_t index_id{0};  // 0: the tree of the group; kOutdated: of no index any more
  };
  std::map<uint64_t, Plan> plans;      // by number in the file
  std::map<uint64_t, size_t> counts;   // by root: how many
  std::map<uint64_t, BTree*> loaded;   // by number in the file
  std::map<uint64_t, BTree*> origins;  // by root, of chains whose tree is gone
  std::vector<BTree*> versions;
};

}  // namespace cellar
