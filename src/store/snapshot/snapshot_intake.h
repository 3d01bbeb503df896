// SnapshotIntake: a snapshot that comes from another machine, loaded while it comes, beside the
// state that is there.
//
//   the file          | header | head | block | block | ... | footer | trailer |
//   order of coming     1        3      4       5             2
//
// Footer and trailer come right behind the header, since the catalog in the footer says which trees
// there are. Every byte is verified as a start verifies it (snapshot_reader.h) before it is used;
// the blocks are loaded in slices, so that the loop goes on meanwhile.
//
// What has come and is not loaded yet waits in memory: how much that may be is up to who adds it.
// Knows no files and no links.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "btree/btree.h"
#include "cellar/clock.h"
#include "cellar/status.h"
#include "engine/state/engine.h"
#include "store/format/manifest.h"
#include "store/format/snapshot_format.h"

namespace cellar {

class SnapshotIntake {
 public:
  // `end_bytes`: footer and trailer.
  SnapshotIntake(const SnapshotEntry& entry, uint64_t end_bytes);
  ~SnapshotIntake();

  // The next bytes, in the order above.
  void Add(std::string_view bytes) { buffer_.append(bytes); }
  // Loads of what is there until the deadline (monotonic). True if more could be loaded now.
  // kCorruption: this is not the snapshot that `entry` names, or it is damaged.
  Result<bool> Step(Clock& clock, int64_t deadline_micros);
  // All of it has been loaded.
  bool done() const { return done_; }
  // Who were the members where it ends, as its footer says; empty: it does not, or has not come.
  std::string_view members() const {
    return footer_ ? std::string_view(footer_->members) : std::string_view();
  }
  size_t memory_bytes() const { return buffer_.capacity(); }

  // What was loaded: all of it if done(), else what is good only to be thrown away.
  std::unique_ptr<Engine> TakeEngine();

 private:
  std::string_view rest() const { return std::string_view(buffer_).substr(begin_); }
  void Consume(size_t bytes);
  // Each takes a part from the front of the buffer; false: more bytes are needed.
  Result<bool> TakeFrame();
  Result<bool> TakeHead();
  Result<bool> TakeBlock();
  Status EndTrees();
  Status EndTree(const SnapshotTree& tree);
  Status Corruption(std::string_view what) const;

  const SnapshotEntry entry_;
  const uint64_t end_bytes_;
  std::string buffer_;
  size_t begin_{0};
  uint64_t offset_{0};  // in the file, of the next block
  std::unique_ptr<Engine> engine_;
  std::optional<SnapshotFooter> footer_;
  uint64_t head_bytes_{0};  // while the head has not come
  size_t tree_{0};          // of the footer
  BTree* loading_{nullptr};
  uint64_t blocks_{0};
  std::unique_ptr<BTreeBulkLoader> loader_;  // of tree_
  std::vector<std::string_view> images_;
  bool done_{false};
};

}  // namespace cellar
