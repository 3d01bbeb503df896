// See aggregate_job.h.
#include "engine/aggregate/aggregate_job.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/assert.h"
#include "base/text/number.h"
#include "engine/aggregate/leaf_fold.h"
#include "engine/scans/table_scan.h"

namespace cellar {
namespace {

// What is folded between two looks at whether it is still wanted.
constexpr uint64_t kPieceCells{4'096};
// Groups that are merged, or compared, for the budget of so many cells.
constexpr uint64_t kCellsPerGroup{4};
// What FILL adds between two looks at the memory.
constexpr uint64_t kPieceGroups{1'024};
// How long the last pieces of others are waited for before the loop has its turn.
constexpr std::chrono::microseconds kWait{200};

Status OutOfMemory(size_t bytes_max) {
  return Status::Error(ErrorCode::kTooLarge,
                       "the groups take more than agg-max-memory (" + FormatUint64(bytes_max) +
                           " bytes): narrow the rows by PREFIX or RANGE, or group by less");
}

}  // namespace

// One thread's part of the pieces, and its groups.
class AggregateJob::Helper final : public WorkerPool::Work {
 public:
  explicit Helper(AggregateJob* job)
      : groups(job->plan_), fold(job->plan_, job->scan_->view(), &groups), job_(*job) {}

  AggregateGroups groups;
  AggregateFold fold;
  ScanStats stats;
  std::atomic<size_t> memory_bytes{0};

 private:
  WorkerPool::Progress Run(WorkerPool::Turn& turn) override;

  AggregateJob& job_;
  std::unique_ptr<LeafFold> piece_;
};

AggregateJob::AggregateJob(std::unique_ptr<Scan> scan, AggregatePlan plan,
                           const AggregateLimits& limits)
    : plan_(std::move(plan)),
      limits_(limits),
      scan_(std::move(scan)),
      cells_(scan_->shape().plan),
      sorter_(plan_, GroupOrder::kAnswer) {
  groups_ = std::make_unique<AggregateGroups>(plan_);
  fold_ = std::make_unique<AggregateFold>(plan_, scan_->view(), groups_.get());
  // Without BY there is one group, also over nothing.
  if (plan_.terms.empty()) (void)groups_->Find({}, 0);
}

Result<std::unique_ptr<AggregateJob>> AggregateJob::Create(
    std::unique_ptr<Scan> scan, const AggregateRequest& request,
    const std::vector<ColumnSelector>& columns, bool reverse, const AggregateLimits& limits) {
  const ScanShape shape = scan->shape();
  const TableSchema& schema = scan->view().schema();
  ASSIGN_OR_RETURN(AggregatePlan plan, AggregatePlan::Compile(schema, request, columns, reverse));
  const bool by_leaf = shape.index_order == nullptr && LeafFold::CanFold(shape, schema);
  std::unique_ptr<AggregateJob> job(new AggregateJob(std::move(scan), std::move(plan), limits));
  if (by_leaf) {
    job->ranges_ = *shape.ranges;
    if (shape.where != nullptr) job->where_ = *shape.where;
    job->leaves_ = std::make_unique<LeafFold>(job->scan_->view(), *shape.plan, job->ranges_,
                                              job->where_, job->fold_.get());
  }
  return job;
}

AggregateJob::~AggregateJob() {
  cancelled_ = true;
  for (const std::unique_ptr<Helper>& helper : helpers_) limits_.helpers->Stop(helper.get());
}

size_t AggregateJob::memory_bytes() const {
  size_t bytes = groups_->memory_bytes();
  size_t groups = groups_->size();
  for (const std::unique_ptr<Helper>& helper : helpers_)
    bytes += helper->memory_bytes.load(std::memory_order_relaxed);
  return bytes + groups * GroupSorter::kBytesPerGroup;
}

size_t AggregateJob::memory_bytes_max() const {
  const size_t tables = 1 + (WantsSplitKeys() ? limits_.threads : 0);
  size_t bytes = limits_.memory_bytes_max;
  if (plan_.terms.empty()) {  // one group
    size_t group = 4096;
    for (const PlannedReduce& reduce : plan_.reduces) {
      const size_t most = AccumulatorBytesMax(reduce);
      group += std::min(most, bytes);
    }
    bytes = std::min(bytes, group);
  }
  return bytes * tables;
}

// A thread that has used up what there is for it ends, and so does the whole.
bool AggregateJob::MustEnd() {
  if (!groups_->refusal().ok()) {
    status_ = groups_->refusal();
    cancelled_ = true;
    return true;
  }
  const size_t bytes = groups_->memory_bytes() + groups_->size() * GroupSorter::kBytesPerGroup;
  if (bytes <= limits_.memory_bytes_max && !cancelled_) return false;
  status_ = OutOfMemory(limits_.memory_bytes_max);
  cancelled_ = true;
  return true;
}

void AggregateJob::AddStats(const ScanStats& stats, ScanStats* to) const {
  to->rows += stats.rows;
  to->cells += stats.cells;
  to->bytes += stats.bytes;
  to->groups = std::max(to->groups, stats.groups);
}

ScanStats AggregateJob::stats() const {
  ScanStats stats = stats_;
  if (leaves_ != nullptr) AddStats(leaves_->stats(), &stats);
  for (const std::unique_ptr<Helper>& helper : helpers_) AddStats(helper->stats, &stats);
  if (leaves_ == nullptr && helpers_.empty()) stats = scan_->stats();
  stats.groups = std::max(stats.groups, scan_->stats().groups);  // those of conditions too
  AddStats(added_, &stats);
  if (!added_.index.empty()) stats.index = added_.index;
  return stats;
}

std::string_view AggregateJob::place() const {
  if (stage_ != Stage::kFold) return {};
  return leaves_ != nullptr ? leaves_->place() : scan_->row_key();
}

bool AggregateJob::AddGroups(std::string_view bytes) {
  CELLAR_ASSERT(stage_ == Stage::kFold);
  const bool well = groups_->Decode(bytes);
  (void)MustEnd();
  return well;
}

void AggregateJob::AddExamined(const ScanStats& stats, uint64_t skipped) {
  AddStats(stats, &added_);
  if (!stats.index.empty()) added_.index = stats.index;
  groups_->AddSkipped(skipped);
}

// --- folding

// Folds what a scan gives: the general way, for filters and indexes. The memory is looked at now
// and then, since it grows by groups and not by cells.
bool AggregateJob::PullScan(uint64_t cells) {
  scan_->SetBudget(cells);
  uint64_t until_look = kPieceCells;
  for (;;) {
    switch (scan_->Next()) {
      case ScanStep::kRow:
        fold_->BeginRow();
        break;
      case ScanStep::kCell: {
        const ScanCell& cell = scan_->cell();
        const RawCell& raw = scan_->raw_cell();
        fold_->SetRowKey(scan_->row_key());
        fold_->Add(raw.family, raw.qualifier, cell.timestamp_micros, cell.type, cell.stored);
        if (--until_look > 0) break;
        until_look = kPieceCells;
        if (MustEnd()) return true;
        break;
      }
      case ScanStep::kPause:
        return MustEnd();
      case ScanStep::kEnd:
        return true;
    }
  }
}

bool AggregateJob::PullLeaves(uint64_t cells) {
  while (cells > 0) {
    const uint64_t slice = std::min(cells, kPieceCells);
    if (leaves_->Pull(slice)) return true;
    if (MustEnd()) return true;
    if (cells != kUnlimited) cells -= slice;
  }
  return false;
}

// Stages follow one another: folding (here, or in several threads and then merging), sorting, done.
// Each does about as much as `cells` cells are worth and is gone on with by the next call.
bool AggregateJob::Pull(uint64_t cells) {
  if (stage_ == Stage::kFold) {
    if (!(leaves_ != nullptr ? PullLeaves(cells) : PullScan(cells))) return false;
    BeginOrder();
  }
  if (stage_ == Stage::kThreads) {
    if (!PullPieces(cells)) return false;
    stage_ = Stage::kMerge;
  }
  if (!status_.ok() || MustEnd()) return true;
  if (stage_ == Stage::kMerge) {
    if (!PullMerge(cells / kCellsPerGroup + 1)) return false;
    if (MustEnd()) return true;
    BeginOrder();
  }
  if (stage_ == Stage::kFill) {
    if (!PullFill(cells / kCellsPerGroup + 1)) return false;
    if (!status_.ok()) return true;
    BeginSort();
  }
  if (stage_ == Stage::kSort) {
    if (!sorter_.Step(cells / kCellsPerGroup + 1)) return false;
    stage_ = Stage::kDone;
  }
  return true;
}

void AggregateJob::BeginOrder() {
  if (plan_.fill == Fill::kNone || !status_.ok() || MustEnd()) return BeginSort();
  stage_ = Stage::kFill;
  fill_ = std::make_unique<GroupFill>(plan_, groups_.get());
}

void AggregateJob::BeginSort() {
  stage_ = Stage::kSort;
  fill_.reset();
  if (!status_.ok() || MustEnd()) return;
  sorter_.Begin(groups_->all());
}

// The memory is looked at now and then, as in PullScan.
bool AggregateJob::PullFill(uint64_t groups) {
  while (groups > 0) {
    const uint64_t slice = std::min(groups, kPieceGroups);
    const bool done = fill_->Step(static_cast<size_t>(slice));
    if (MustEnd() || done) return true;
    if (groups != kUnlimited / kCellsPerGroup + 1) groups -= slice;
  }
  return false;
}

bool AggregateJob::WantsSplitKeys() const {
  if (limits_.helpers == nullptr || limits_.threads == 0 || leaves_ == nullptr) return false;
  if (!where_.empty()) return false;  // conditions count what they meet
  const auto& families = cells_->choice.columns.families();
  if (families.empty()) return false;
  const ReadView& view = scan_->view();
  return view.entries(view.schema().families[families[0].index].group) >=
         limits_.entries_for_threads;
}

// From here on others may write. If there is much to read, the ranges are cut into pieces that
// threads fold side by side.
void AggregateJob::Detach(const std::vector<std::string>& split_keys) {
  scan_->Detach();
  fold_->Reattach(scan_->view());
  if (leaves_ == nullptr) return;
  if (stage_ != Stage::kFold || split_keys.empty() || !WantsSplitKeys()) {
    return leaves_->Reattach(scan_->view());
  }
  // Pieces of the table, each as what it has of the ranges.
  KeyRangeSet all;
  for (const KeyRange& range : ranges_) all.Add(range);
  for (size_t i = 0; i <= split_keys.size(); ++i) {
    KeyRange part;
    if (i > 0) part.begin.bytes = split_keys[i - 1];
    if (i < split_keys.size()) part.end = {split_keys[i], false};
    KeyRangeSet piece;
    piece.Add(part);
    piece.IntersectWith(all);
    if (!piece.empty()) pieces_.push_back(piece.ranges());
  }
  const ReadView& view = scan_->view();
  const uint64_t entries =
      view.entries(view.schema().families[cells_->choice.columns.families()[0].index].group);
  // Split keys cut the tree into parts of about one size, so the number of pieces says how much
  // lies in the ranges.
  const uint64_t entries_in_range = entries / (split_keys.size() + 1) * pieces_.size();
  if (pieces_.size() < 2 || entries_in_range < limits_.entries_for_threads) {
    pieces_.clear();
    return leaves_->Reattach(view);
  }
  GoOverToPieces();
}

// --- threads

// What the first slice has folded is folded again: that is less than a piece.
void AggregateJob::GoOverToPieces() {
  CELLAR_ASSERT(where_.empty());  // they are one thread's
  leaves_.reset();
  fold_.reset();
  groups_ = std::make_unique<AggregateGroups>(plan_);
  fold_ = std::make_unique<AggregateFold>(plan_, scan_->view(), groups_.get());
  if (plan_.terms.empty()) (void)groups_->Find({}, 0);
  stage_ = Stage::kThreads;
}

void AggregateJob::StartHelpers() {
  // The loop folds pieces too (PullPieces), hence one less.
  const size_t threads = std::min<size_t>(limits_.threads, pieces_.size() - 1);
  helpers_running_ = threads;
  for (size_t i = 0; i < threads; ++i) helpers_.push_back(std::make_unique<Helper>(this));
  for (const std::unique_ptr<Helper>& helper : helpers_)
    limits_.helpers->Start(helper.get(), limits_.threads);
}

std::unique_ptr<LeafFold> AggregateJob::NextPiece(AggregateFold* fold) {
  if (cancelled_) return nullptr;
  const size_t piece = piece_next_++;
  if (piece >= pieces_.size()) return nullptr;
  return std::make_unique<LeafFold>(scan_->view(), *cells_, pieces_[piece], where_, fold);
}

WorkerPool::Progress AggregateJob::Helper::Run(WorkerPool::Turn& turn) {
  for (;;) {
    if (piece_ == nullptr) piece_ = job_.NextPiece(&fold);
    if (piece_ == nullptr || job_.cancelled_) break;
    const bool piece_done = piece_->Pull(kPieceCells);
    const size_t bytes = groups.memory_bytes() + groups.size() * GroupSorter::kBytesPerGroup;
    memory_bytes.store(bytes, std::memory_order_relaxed);
    if (bytes > job_.limits_.memory_bytes_max || !groups.refusal().ok()) job_.cancelled_ = true;
    if (piece_done) {
      job_.AddStats(piece_->stats(), &stats);
      piece_.reset();
    }
    if (turn.MustPause()) return WorkerPool::Progress::kPaused;
  }
  const std::lock_guard lock(job_.mutex_);
  --job_.helpers_running_;
  job_.done_.notify_one();
  return WorkerPool::Progress::kDone;
}

bool AggregateJob::AwaitHelpers(bool for_ever) {
  std::unique_lock lock(mutex_);
  const auto all_done = [this] { return helpers_running_ == 0; };
  if (for_ever)
    done_.wait(lock, all_done);
  else if (!done_.wait_for(lock, kWait, all_done))
    return false;
  lock.unlock();
  // Their last word was not their last deed.
  for (const std::unique_ptr<Helper>& helper : helpers_) limits_.helpers->Stop(helper.get());
  return true;
}

bool AggregateJob::PullPieces(uint64_t cells) {
  if (helpers_.empty()) StartHelpers();
  while (cells > 0) {
    if (leaves_ == nullptr) leaves_ = NextPiece(fold_.get());
    if (leaves_ == nullptr) break;
    if (leaves_->Pull(std::min(cells, kPieceCells))) {
      AddStats(leaves_->stats(), &stats_);
      leaves_.reset();
    }
    if (MustEnd()) break;
    if (cells != kUnlimited) cells -= std::min(cells, kPieceCells);
  }
  if (leaves_ != nullptr && status_.ok()) return false;
  if (!AwaitHelpers(cells == kUnlimited)) return false;
  for (const std::unique_ptr<Helper>& helper : helpers_) groups_->Refuse(helper->groups.refusal());
  (void)MustEnd();
  return true;
}

bool AggregateJob::PullMerge(uint64_t groups) {
  for (; merge_helper_ < helpers_.size(); ++merge_helper_, merge_at_ = 0) {
    const AggregateGroups& from = helpers_[merge_helper_]->groups;
    if (!groups_->Merge(from, &merge_at_, static_cast<size_t>(groups))) return false;
  }
  return true;
}

}  // namespace cellar
