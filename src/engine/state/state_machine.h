// StateMachine: all that durability needs to know of the engine, so that neither includes the
// other's files. The engine implements it, store/journal/journal.h drives it; tests put a
// small map in its place.
//
// Everything here happens on the owner thread of the trees (the loop thread), with one exception:
// the journal's snapshot thread reads the BTreeSnapshots of a StateSnapshot, and gives them back to
// the owner thread to be dropped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "btree/btree.h"
#include "cellar/status.h"

namespace cellar {

// Set in the id of a tree that holds nothing that other trees do not hold: an index. What it holds
// is not counted among the cells.
inline constexpr uint64_t kDerivedTree{1ULL << 63};

// A stretch of a tree that is missing: what stood between two keys that are there, or before the
// first or behind the last.
struct LoadGap {
  uint64_t tree_id{0};
  std::optional<std::string> after{};
  std::optional<std::string> before{};
};

class StateMachine {
 public:
  // One tree of the state at one moment. `tree_id` is the engine's own number for the tree, the
  // same before and after a restart.
  struct TreeSnapshot {
    uint64_t tree_id{0};
    BTreeSnapshot snapshot;
    // Of a version (btree/version.h): what its runs are of, a tree before it, and when it was made.
    BTreeSnapshot newer{};
    uint64_t version_epoch{0};
  };
  // How much of the log was a part of the state's since it was loaded.
  struct Logged {
    uint64_t table_id{0};
    uint32_t family_id{0};
    uint64_t bytes{0};
  };
  // The whole state at one moment: what is not in trees (schema, counters) as one string, and every
  // tree. To be destroyed on the owner thread.
  struct StateSnapshot {
    std::string catalog;
    std::vector<TreeSnapshot> trees;
    std::vector<Logged> logged{};  // ascending by table and family
  };

  virtual ~StateMachine() = default;

  // When the last step of the record that Apply gets next was committed (log_format.h).
  virtual void SetCommitTime(int64_t /*micros*/) {}
  // Applies the payload of one log record during recovery. An error means that the record's
  // checksum is right and its content cannot be: the start is refused with the Status' text.
  virtual Status Apply(std::string_view mutation) = 0;

  // O(trees), no copying of content. For one BTreeImageReader each (of `newer`: none), no cursor.
  virtual StateSnapshot TakeSnapshot() = 0;
  // Likewise, at a cut of its cluster: the snapshot says that it is of that moment (ClusterState).
  virtual StateSnapshot TakeSnapshotOfCut(uint64_t /*cut*/) { return TakeSnapshot(); }

  // Loading a snapshot, on an empty state machine: BeginLoad with the catalog, then TreeForLoad for
  // each tree of the snapshot in its order (each once; the journal fills it with BTreeBulkLoader),
  // then FinishLoad, where the engine checks its own invariants and derives what it keeps besides.
  virtual Status BeginLoad(std::string_view catalog) = 0;
  // The empty tree that will hold `tree_id`; stays the engine's. Null if the catalog knows of no
  // such tree, which refuses the snapshot.
  virtual BTree* TreeForLoad(uint64_t tree_id) = 0;
  // All that the catalog knows of, but for those of kDerivedTree; ascending.
  virtual std::vector<uint64_t> TreesForLoad() const = 0;
  virtual Status FinishLoad() = 0;
  // Instead of FinishLoad, where trees may lack entries, and none holds what others hold: counts
  // anew what the catalog counted, and appends to *lost what is not there any more, a line each.
  // Gaps in which nothing can have been need no word.
  virtual Status FinishSalvage(const std::vector<LoadGap>& gaps,
                               std::vector<std::string>* lost) = 0;
  // Empty again, for another load: behind one that failed, or is not the one that is wanted.
  virtual void Reset() = 0;

  // One or more lines of readable text for the payload of one record (--dump), without a newline at
  // the end. Never fails: what cannot be read is rendered as such. Needs no loaded state.
  virtual std::string Describe(std::string_view mutation) = 0;
};

}  // namespace cellar
