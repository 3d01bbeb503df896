// RangeFile: rows of a table as a snapshot file of their own, of which --recover makes a store that
// a server serves: alone in a folder, as cellar-000001.snapshot. So a set keeps what it had and is
// others' by now (cluster/settlement.h).
//
// The rows are copied in pieces, by the owner of the store, and written by a worker. That costs the
// memory of the rows once more, and as much on the disk.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/os/worker_pool.h"
#include "engine/state/engine.h"
#include "engine/table/mutation.h"
#include "engine/table/tablets.h"
#include "store/format/manifest.h"
#include "store/range_copy.h"
#include "store/snapshot/snapshot_writer.h"

namespace cellar {

class RangeFile final : public WorkerPool::Work {
 public:
  // `task`: where, and under which name. The rows are those of now.
  RangeFile(FileSystem& files, SnapshotTask task, Table& table, const Tablet& range);

  // About `bytes_max` bytes more. False: all are copied. REQUIRES: it was not said yet.
  Result<bool> Copy(size_t bytes_max);
  // Cells that were copied.
  uint64_t cells() const { return copy_.cells(); }
  // Of the file. REQUIRES: done().
  const Status& status() const { return status_; }
  // It is not wanted any more: whoever writes it gives up soon.
  void Cancel() { progress_.cancelled.store(true, std::memory_order_relaxed); }

 protected:
  WorkerPool::Progress Run(WorkerPool::Turn& turn) override;

 private:
  FileSystem& files_;
  const SnapshotTask task_;
  RangeCopy copy_;
  MutationBuilder mutation_;
  Engine engine_;
  std::optional<StateMachine::StateSnapshot> state_{};
  SnapshotProgress progress_;
  Status status_{};
};

// cellar-orphan-<table>-<start>.snapshot, without what no name of a file should have.
std::string RangeFileName(std::string_view keyspace, std::string_view table,
                          std::string_view start);

}  // namespace cellar
