// LongRead: a read that its handler has not ended: it has paused, and is detached to snapshots
// (engine/rows/scan.h). It goes on in slices, of which the loop does the first; one that is still
// not at its end then, or is known to be long beforehand, goes on in a worker (`read-threads`).
//
//   loop                                              worker ("cellar-read")
//   handler  Pull ... Detach
//   Step     slices, one turn of a millisecond
//   Step     Start ------------------------------->   Run: Pull, Pull, ... in turns with others
//   Step     kWaiting, first for memory (work_memory.h)    publishes its sizes
//            <------------ uv_async, WakeTasks ---    done
//   Step     HEAT, the end of the reply; deliver
//
// Only the place where cells are read is another one. What is read was fixed before: the snapshots,
// the schema as it was, the moment that decides what has expired, the rights. What the reply
// depends on, its order among others, its limits, tracking, the slow log and the statistics are the
// loop's as ever. Inside EXEC, and with read-threads 0, the loop does all.
//
// What a worker touches of a LongRead, all of which is the read's own or changes no more:
//   the scan     its compiled options, filters, cursors, the ReadView with schema, snapshots and
//                cursors of its own (read_view.h). Nodes that a snapshot sees do not change, and
//                are freed by the loop alone, when the snapshot has been dropped: there, with the
//                read. Dropping or altering the table, DEBUG RELOAD and a full sync leave to their
//                snapshots what these see, as they do for reads in slices.
//   the reply    in memory of its own (reply_pieces.h), at most a page or reply-max-bytes. Nothing
//                of it is sent before it is whole, and then by the loop, as the client takes it.
//   the figures  reply_bytes, memory_bytes: atomic; what HEAT is to be told (scan_heat.h): the
//                read's own until its end
//   memory       of unpacked values (PackBuffer counts it atomically) and zstd's contexts, which
//                are the thread's; buffers of replies (base/buffer_memory.h, under its mutex)
// Not the store, the session, the host, the clock of the turn.
//
// A client that leaves, or loses the right to what is read: the task goes at once, the read when
// its worker has noticed, within a slice (WorkerPool::Abandon, Reap). So does SHUTDOWN (End).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/os/worker_pool.h"
#include "cellar/lsn.h"
#include "commands/session/task.h"
#include "commands/session/work_memory.h"
#include "engine/rows/scan.h"

namespace cellar {

class Host;
class Table;

// Cells examined in the handler itself (about a millisecond at most, also with a WHERE), and
// between two looks at the clock in a task.
inline constexpr uint64_t kFirstSliceCells{2 * 1024};
inline constexpr uint64_t kSliceCells{128};

class LongRead : public WorkerPool::Work {
 public:
  // What is done at once is about `slice_cells`: some ten microseconds of work.
  explicit LongRead(uint64_t slice_cells) : slice_cells_(slice_cells) {}

  // Pulls for about so many cells, in whichever thread has the read. True: nothing is left to be
  // pulled. With kUnlimited it is always true.
  virtual bool Pull(uint64_t cells) = 0;
  bool PullSlice() { return Pull(slice_cells_); }
  // Tells HEAT what has been examined since the last time. In the loop.
  virtual void RecordHeat() = 0;

  // Of the reply so far. While a worker has the read: as of one of its last slices.
  size_t reply_bytes() const {
    return beside() ? reply_bytes_.load(std::memory_order_relaxed) : ReplyBytes();
  }
  size_t memory_bytes() const {
    return beside() ? memory_bytes_.load(std::memory_order_relaxed) : MemoryBytes();
  }

  // What it needs of memory beforehand. Until that is granted it holds nothing and is not pulled.
  void Await(WorkMemory::Lease lease) { lease_ = std::move(lease); }
  bool may_work() const { return lease_.granted(); }
  // All has been pulled: it holds no more than it holds now.
  void KeepWhatItHolds() { lease_.ShrinkTo(memory_bytes()); }

  // Gives the read to a worker. REQUIRES: !beside(). From then on it is the worker's until
  // TakeBack().
  void Offload(WorkerPool& workers, size_t threads);
  bool beside() const { return beside_; }
  // What the worker has spent, in cycles. REQUIRES: done().
  uint64_t TakeBack();

 protected:
  // True while a worker pulls: then HEAT is told later.
  bool in_worker() const { return in_worker_; }
  virtual size_t ReplyBytes() const = 0;
  virtual size_t MemoryBytes() const = 0;

 private:
  // So many slices apart the worker publishes its sizes.
  static constexpr uint32_t kSlicesBetweenFigures{16};

  WorkerPool::Progress Run(WorkerPool::Turn& turn) final;
  void PublishSizes();

  const uint64_t slice_cells_;
  WorkMemory::Lease lease_;  // the loop's
  bool beside_{false};       // the loop's
  bool in_worker_{false};    // the reader's, as is
  uint64_t cycles_{0};
  std::atomic<size_t> reply_bytes_{0};
  std::atomic<size_t> memory_bytes_{0};
};

// Where a long read begins that has not ended in its handler.
enum class LongReadStart : uint8_t {
  kInLoop,  // it may end soon
  kBeside,  // it is known to be long
};

// Cells to be examined in the handler. Inside EXEC nothing else may run before the command is done.
constexpr uint64_t FirstBudget(bool in_exec, bool is_known_long) {
  if (in_exec) return kUnlimited;
  return is_known_long ? 0 : kFirstSliceCells;
}

constexpr LongReadStart StartOf(bool is_known_long) {
  return is_known_long ? LongReadStart::kBeside : LongReadStart::kInLoop;
}

// Is a scan of `table`, not begun yet, known to be so long that the loop should not begin it?
// `rows_max` and `cells_max` end it if they are reached. False also where that is not known, and
// where the loop does all. O(log n), and nothing for a small table or a small page.
bool IsKnownLong(const Host& host, const Table& table, const Scan& scan, uint64_t rows_max,
                 uint64_t cells_max);

// Carries on a LongRead and then replies.
class LongReadTask : public Task {
 public:
  LongReadTask(Host& host, std::unique_ptr<LongRead> read, LongReadStart start, Lsn depends_on)
      : host_(host), read_(std::move(read)), start_(start), depends_on_(depends_on) {}
  ~LongReadTask() override;

  TaskProgress Step(TaskContext& context) final;
  bool Streams() const final { return complete_ && StreamsReply(); }
  size_t reply_bytes() const final { return read_->reply_bytes(); }
  size_t memory_bytes() const final { return read_->memory_bytes(); }

 protected:
  // All has been pulled: ends the reply. Once.
  virtual void Complete() = 0;
  // Hands the reply to the client, or a part of it; true when that was all.
  virtual bool Reply(TaskContext& context) = 0;
  virtual bool StreamsReply() const { return false; }
  LongRead& read() { return *read_; }

 private:
  // In the loop a read has so many slices at most, if there are workers.
  static constexpr uint32_t kLoopSlices{48};

  // False: it goes on, *progress says how.
  bool PullToEnd(TaskContext& context, TaskProgress* progress);
  bool PullInLoop(TaskContext& context, TaskProgress* progress);

  Host& host_;
  std::unique_ptr<LongRead> read_;
  LongReadStart start_;
  uint32_t slices_{0};
  Lsn depends_on_;
  bool complete_{false};
};

}  // namespace cellar
