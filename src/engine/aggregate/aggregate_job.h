// AggregateJob: one CAGG at work, from a scan to groups in their order.
//
//   Pull     folds in slices, on the caller's thread: leaf by leaf where CanFold says so, else what
//            the scan gives out
//            then adds the groups of FILL, and sorts
//   Detach   goes over to snapshots; from here on Pull may be called between writes, or by another
//            thread. A large range of leaves is then cut into pieces, which the threads of a pool
//            help to fold as soon as Pull is called:
//
//              pieces    | 0 | 1 | 2 | 3 | ...            each thread takes the next one, and so
//                              ^next                      does Pull; rows are never cut
//              groups    one table for each thread        merged in slices when all pieces are done
//
// The memory of each table is bounded by agg-max-memory, so that the answer is the same with and
// without threads. The destructor ends the helpers, which takes them a few hundred microseconds.
//
// What threads share: the view, the plans and pieces_, which nobody changes; piece_next_,
// cancelled_, Helper::memory_bytes, which are atomic; helpers_running_, under mutex_. All else of a
// helper is its own until it is done, all else of the job that of the thread that pulls.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/os/worker_pool.h"
#include "cellar/status.h"
#include "engine/aggregate/aggregate_fold.h"
#include "engine/aggregate/aggregate_plan.h"
#include "engine/aggregate/group_fill.h"
#include "engine/aggregate/group_sorter.h"
#include "engine/rows/scan.h"

namespace cellar {

class LeafFold;

struct AggregateLimits {
  size_t memory_bytes_max{64 << 20};
  // Whose `threads` help; null: nobody's do. Outlives the job.
  WorkerPool* helpers{nullptr};
  uint32_t threads{0};  // beside the caller's
  // A table of fewer entries is not worth a thread.
  uint64_t entries_for_threads{500'000};
};

class AggregateJob {
 public:
  // Checks the request against what the scan reads.
  static Result<std::unique_ptr<AggregateJob>> Create(std::unique_ptr<Scan> scan,
                                                      const AggregateRequest& request,
                                                      const std::vector<ColumnSelector>& columns,
                                                      bool reverse, const AggregateLimits& limits);
  ~AggregateJob();

  // Looks at about `cells` cells, or does work like that. True when all is folded and sorted, or
  // status() is an error. With kUnlimited it is always true.
  bool Pull(uint64_t cells);
  // After Pull said false, before anything else runs. `split_keys` cut the table into parts of
  // about equal size (SplitRowKeys).
  void Detach(const std::vector<std::string>& split_keys);
  // Is a Detach with split keys going to use them?
  bool WantsSplitKeys() const;

  // Before Pull, of a job whose scan finds nothing: groups that others have folded by the same
  // plan, and what they have examined. False: these are no bytes of groups. status() may be an
  // error.
  [[nodiscard]] bool AddGroups(std::string_view bytes);
  void AddExamined(const ScanStats& stats, uint64_t skipped);
  // The groups as they are folded, for another node. REQUIRES: as of groups(); no FILL.
  const AggregateGroups& folded() const { return *groups_; }

  const Status& status() const { return status_; }
  const Scan& scan() const { return *scan_; }
  const AggregatePlan& plan() const { return plan_; }
  // REQUIRES: Pull said true, status() is OK.
  size_t groups() const { return sorter_.size(); }
  const AggregateGroup& group(size_t i) const { return sorter_.at(i); }
  ScanStats stats() const;
  // After Pull said false: an encoded key about where it is; empty: it does not walk over rows any
  // more, or its helpers do.
  std::string_view place() const;
  uint64_t skipped() const { return groups_->skipped(); }
  size_t memory_bytes() const;
  // What it may come to take, with all its threads, of those that Detach would let it have.
  size_t memory_bytes_max() const;

 private:
  enum class Stage : uint8_t { kFold, kThreads, kMerge, kFill, kSort, kDone };
  class Helper;

  AggregateJob(std::unique_ptr<Scan> scan, AggregatePlan plan, const AggregateLimits& limits);
  bool PullScan(uint64_t cells);
  bool PullLeaves(uint64_t cells);
  bool PullPieces(uint64_t cells);
  bool PullMerge(uint64_t groups);
  bool PullFill(uint64_t groups);
  // What follows on the groups of all cells.
  void BeginOrder();
  void BeginSort();
  // The pieces are to be folded by several threads, and are from the first Pull on.
  void GoOverToPieces();
  void StartHelpers();
  // True when they are done; waits for a moment only, unless `for_ever`.
  bool AwaitHelpers(bool for_ever);
  // The next piece to be folded into `fold`; null if there is none.
  std::unique_ptr<LeafFold> NextPiece(AggregateFold* fold);
  void AddStats(const ScanStats& stats, ScanStats* to) const;
  // There is no answer: status() says why.
  bool MustEnd();

  AggregatePlan plan_;
  AggregateLimits limits_;
  std::unique_ptr<Scan> scan_;
  const CellPlan* cells_;             // of the scan
  std::span<const Condition> where_;  // likewise, where leaves_ asks them
  std::unique_ptr<AggregateGroups> groups_;
  std::unique_ptr<AggregateFold> fold_;
  std::unique_ptr<LeafFold> leaves_;  // dies before the scan
  std::vector<KeyRange> ranges_;      // of the leaves
  ScanStats stats_;                   // of pieces that are done
  ScanStats added_;                   // of others
  Stage stage_{Stage::kFold};
  Status status_;
  std::unique_ptr<GroupFill> fill_;
  GroupSorter sorter_;

  // Threads
  std::vector<std::vector<KeyRange>> pieces_;
  std::atomic<size_t> piece_next_{0};
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;
  std::condition_variable done_;
  size_t helpers_running_{0};  // under mutex_
  std::vector<std::unique_ptr<Helper>> helpers_;
  size_t merge_helper_{0};
  size_t merge_at_{0};
};

}  // namespace cellar
