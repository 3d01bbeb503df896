// See store_party.h.
#include "server/store_party.h"

#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/assert.h"
#include "base/text/quote.h"
#include "commands/config/config.h"
#include "commands/session/services.h"
#include "replica/replication.h"
#include "replica/set_node.h"
#include "store/store.h"
#include "store/tablet_changes.h"

namespace cellar {
namespace {

// What a turn does of a copy, or of a purge: about a millisecond.
constexpr size_t kPartBytes{128 << 10};
// And of what has changed: each part is a round trip, and a record on two disks, and clients write
// meanwhile.
constexpr size_t kTailPartBytes{512 << 10};
constexpr uint64_t kPurgeCells{2'000};
// Beyond this part of maxmemory nothing is taken in.
constexpr uint64_t kRoomPercent{85};

}  // namespace

class StoreParty::Source final : public MoveSource {
 public:
  Source(StoreParty& party, Table& table, const MoveOut& move)
      : party_(party),
        lineage_(party.host_.store().lineage()),
        begin_(party.changes().Mark()),
        copy_(std::in_place, table, move.tablet),
        tail_(party.changes().TailOf(move, begin_)) {
    party_.sources_.insert(this);
  }
  Source(StoreParty& party, const MoveOut& move, const LogMark& from)
      : party_(party),
        lineage_(party.host_.store().lineage()),
        begin_(from),
        tail_(party.changes().TailOf(move, from)) {
    party_.sources_.insert(this);
  }
  ~Source() override {
    party_.sources_.erase(this);
    party_.Retain();
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  uint64_t segment() const { return tail_.segment(); }
  // Whether the log has all that it is going to need.
  bool Look() {
    Store& store = party_.host_.store();
    if (lineage_ != store.lineage()) return false;
    const Status status = tail_.Update(store.journal(), store.applied_lsn());
    if (!status.ok()) return false;
    round_bytes_ = tail_.bytes_behind();
    party_.Retain();
    return true;
  }

  // --- MoveSource
  // What is not committed nobody else is told.
  Got Copy(std::string* ops) override {
    if (!copy_) return Got::kAll;
    if (party_.host_.released_lsn() < begin_.lsn) return Got::kWait;
    builder_.Reset();
    const bool more = copy_->Next(kPartBytes, &builder_);
    *ops = builder_.Since(kMutationBeginBytes);
    if (more) return ops->empty() ? Got::kWait : Got::kMore;
    copy_.reset();
    return Got::kAll;
  }
  Got Tail(std::string* ops, LogMark* through) override {
    if (behind_ && !Look()) return Got::kLost;
    behind_ = false;
    builder_.Reset();
    while (!behind_ && builder_.size() < kTailPartBytes) {
      const LogMark before = tail_.through();
      Result<bool> all = tail_.Next(&builder_);
      if (!all.ok()) return Got::kLost;
      behind_ = *all;
      // A piece in which nothing is to be told is as much work as another one.
      if (!behind_ && tail_.through() == before) break;
    }
    *ops = builder_.Since(kMutationBeginBytes);
    *through = tail_.through();
    // Who waits for what is not on disk does not wait for the next second.
    Journal& journal = party_.host_.store().journal();
    if (behind_ && journal.durable_appended() < journal.appended()) journal.RequestSync();
    return behind_ ? Got::kAll : Got::kMore;
  }
  uint64_t bytes_behind() const override { return std::max(round_bytes_, tail_.bytes_behind()); }
  // Where that cannot be, Tail finds out.
  uint64_t Refresh() override {
    behind_ = !Look();
    return behind_ ? UINT64_MAX : bytes_behind();
  }

 private:
  StoreParty& party_;
  const uint64_t lineage_;
  const LogMark begin_;
  std::optional<RangeCopy> copy_;
  RangeTail tail_;
  MutationBuilder builder_;
  uint64_t round_bytes_{UINT64_MAX};  // of the log, when somebody looked
  bool behind_{true};                 // all has been read that there was when somebody looked
};

StoreParty::~StoreParty() { CELLAR_ASSERT(sources_.empty()); }

void StoreParty::Retain() {
  if (host_.loading()) return;
  uint64_t first = 0;
  for (const Source* source : sources_) {
    if (source->segment() != 0 && (first == 0 || source->segment() < first))
      first = source->segment();
  }
  // Those without a source may need what was there when they were seen first.
  if (sources_.size() < kept_from_.size()) {
    for (const auto& [job, segment] : kept_from_)
      if (first == 0 || segment < first) first = segment;
  }
  if (first == std::exchange(retained_, first)) return;
  changes().Retain(first);
}

void StoreParty::KeepLog() {
  Store& store = host_.store();
  if (lineage_ != store.lineage()) {
    lineage_ = store.lineage();
    kept_from_.clear();
    looked_lsn_ = {};
    retained_ = 0;
  }
  const Lsn looked = std::exchange(looked_lsn_, store.applied_lsn());
  const auto& out = moves().out();
  if (out.empty() && kept_from_.empty()) return;
  bool changes =
      std::erase_if(kept_from_, [&out](const auto& kept) { return !out.contains(kept.first); }) > 0;
  for (const auto& [job, move] : out) {
    if (kept_from_.contains(job)) continue;
    // It began behind what had been applied the last time.
    uint64_t segment = 0;
    for (const SegmentEntry& entry : store.journal().CopyManifest().segments)
      if (segment == 0 || entry.after.seq <= looked.seq) segment = entry.number;
    kept_from_.emplace(job, std::max<uint64_t>(segment, 1));
    changes = true;
  }
  if (changes) Retain();
}

Result<bool> StoreParty::Purge() { return changes().Purge(kPurgeCells); }

const Table* StoreParty::TableOf(uint64_t table_id) const {
  return host_.store().TableById(table_id);
}

const TabletMoves& StoreParty::moves() const { return host_.store().engine().cluster().moves; }

uint64_t StoreParty::cluster_id() const { return host_.store().engine().cluster().cluster_id; }

uint64_t StoreParty::set() const { return host_.store().engine().cluster().set; }

uint64_t StoreParty::catalog() const { return host_.store().engine().cluster().catalog; }

uint32_t StoreParty::term() const { return host_.replication().term(); }

uint64_t StoreParty::CountAttempt(uint64_t job) {
  std::erase_if(attempts_,
                [this](const auto& known) { return moves().FindOut(known.first) == nullptr; });
  return ++attempts_[job];
}

bool StoreParty::HasTable(uint64_t table_id) const { return TableOf(table_id) != nullptr; }

bool StoreParty::Owns(uint64_t table_id, const Tablet& tablet) const {
  const Table* const table = TableOf(table_id);
  const Tablet* const owned = table == nullptr ? nullptr : table->tablets()->Find(tablet.begin);
  return owned != nullptr && *owned == tablet;
}

bool StoreParty::OwnsPart(uint64_t table_id, const Tablet& tablet) const {
  const Table* const table = TableOf(table_id);
  return table != nullptr && WithTablet(*table->tablets(), tablet) == nullptr;
}

std::string StoreParty::WhyKept(const MoveOut& move) const {
  const Table* const table = TableOf(move.table_id);
  if (table->fixed()) return "the cluster's own tables stay at set 0";
  // From then on what a snapshot has does not move with its table.
  if (host_.replication().set()->feature_level() >= kCutsLevel) return {};
  for (const NamedSnapshot* snapshot : host_.store().engine().snapshots().All()) {
    if (snapshot->keyspace == table->keyspace() && snapshot->Find(table->name()) != nullptr)
      return "snapshot " + Quote(snapshot->name) + " holds the table";
  }
  return {};
}

// Of a small disk a sixteenth is enough. Where the system does not say what is free, the log does
// once there is nothing.
std::string StoreParty::WhyDiskIsFull() const {
  constexpr uint64_t kFreeBytesMin{64 << 20};
  const JournalStats stats = host_.store().journal().Stats();
  if (!stats.log_ok || !stats.log_room_ok) return stats.log_error;
  std::error_code error;
  const std::filesystem::space_info space =
      std::filesystem::space(host_.services().config.dir, error);
  if (error || space.available >= std::min<uint64_t>(kFreeBytesMin, space.capacity / 16)) return {};
  return fmt::format("its disk has {} bytes left of {}", space.available, space.capacity);
}

std::string StoreParty::WhyNoRoom() const {
  const auto limit = static_cast<uint64_t>(host_.services().config.maxmemory);
  const uint64_t used = host_.memory_used_bytes();
  const Status fits = CheckTabletsFit(host_.store().engine(), 1);
  std::string why;
  if (limit != 0 && used > limit / 100 * kRoomPercent)
    why = fmt::format("it uses {} bytes, and takes nothing in beyond {} % of maxmemory, {}", used,
                      kRoomPercent, limit);
  else if (!fits.ok())
    why = fits.text();
  else
    why = WhyDiskIsFull();
  if (why.empty()) return {};
  return fmt::format("set {}{}{}", set(), kNoRoomWords, why);
}

bool StoreParty::RowsAreHeld(uint64_t table_id) const {
  const Table* const table = TableOf(table_id);
  return table != nullptr && table->rows_are_held();
}

LogMark StoreParty::Mark() const { return changes().Mark(); }

int64_t StoreParty::stamp() const { return host_.store().engine().stamp(); }

uint64_t StoreParty::record_next(uint64_t table_id) const {
  const Table* const table = TableOf(table_id);
  return table == nullptr ? 0 : table->counters().record_number_next;
}

std::string StoreParty::IndexFailures(uint64_t table_id) const {
  const Table* const table = TableOf(table_id);
  return table == nullptr ? std::string() : EncodeIndexFailures(table->schema());
}

void StoreParty::StopIfToldTo(MoveTrials::Step step) {
  if (host_.services().move_trials.TakeStop(step)) [[unlikely]]
    (void)kill(getpid(), SIGSTOP);
}

Status StoreParty::Logged(MoveTrials::Step step, Status status) {
  if (status.ok()) StopIfToldTo(step);
  return status;
}

Status StoreParty::Begin(uint64_t job, const MoveOut& move) {
  return Logged(MoveTrials::Step::kBegin, changes().Begin(job, move));
}
// None happens within a cut: a moment that some sets have yet to reach would have two owners of it,
// or none, if the hold did not last.
Status StoreParty::Give(uint64_t job) {
  if (host_.services().cluster_view.replies_are_held) {
    return Status::Error(ErrorCode::kTryAgain,
                         "all sets are about to have a change of the schema, or one moment");
  }
  return Logged(MoveTrials::Step::kGive, changes().Give(job));
}
Status StoreParty::Done(uint64_t job) {
  return Logged(MoveTrials::Step::kDone, changes().Done(job));
}
Status StoreParty::Cancel(uint64_t job) { return changes().Cancel(job); }
Status StoreParty::Reclaim(uint64_t job) { return changes().Reclaim(job); }
Status StoreParty::Raise(uint64_t floor) { return changes().Raise(floor); }
Status StoreParty::Stage(uint64_t job, const MoveIn& move, std::string_view failures) {
  return Logged(MoveTrials::Step::kStage, changes().Stage(job, move, failures));
}

Status StoreParty::Fill(uint64_t job, const MovePart& part, std::string_view ops) {
  Status status = changes().Fill(job, part, ops);
  if (part.part == 0) return status;
  const bool is_tail = part.tail.lsn != Lsn{};
  return Logged(is_tail ? MoveTrials::Step::kTail : MoveTrials::Step::kRun, std::move(status));
}

Status StoreParty::Own(uint64_t job, const MovePart& part, int64_t stamp, uint64_t record_next) {
  return Logged(MoveTrials::Step::kOwn, changes().Own(job, part, stamp, record_next));
}

Result<bool> StoreParty::PurgeStage(const MoveIn& move) {
  return changes().PurgeStage(move, kPurgeCells);
}

std::unique_ptr<MoveSource> StoreParty::Open(const MoveOut& move, const LogMark* from) {
  Table* const table = host_.store().TableById(move.table_id);
  if (table == nullptr) return nullptr;
  auto source = from == nullptr ? std::make_unique<Source>(*this, *table, move)
                                : std::make_unique<Source>(*this, move, *from);
  if (!source->Look()) return nullptr;
  return source;
}

}  // namespace cellar
