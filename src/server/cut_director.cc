// See cut_director.h.
#include "server/cut_director.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/os/log.h"
#include "cluster/catalog_agreement.h"
#include "commands/cluster/cluster_part.h"
#include "commands/session/services.h"
#include "engine/state/snapshot_set.h"
#include "store/catalog_changes.h"
#include "store/frozen_tables.h"
#include "store/store.h"

namespace cellar {
namespace {

// So long does it take, about, until all sets have logged a cut: its time is that much ahead, more
// when that was not enough.
constexpr int64_t kLeadMicros[] = {10'000, 60'000, 400'000};
constexpr size_t kDecidedMax{64};
constexpr int64_t kSecond{1'000'000};
// A restore point that is due and could not be made is tried again then.
constexpr int64_t kAgainSeconds{10};

Status NotNow(std::string_view why) {
  return Status::Error(ErrorCode::kTryAgain, std::string(why) + "; nothing was done");
}

}  // namespace

void CutDirector::BeginTerm() {
  open_.reset();
  looks_ = true;
  clocks_.clear();
  interval_micros_ = 0;
  interval_run_.reset();
}

void CutDirector::NoteClock(uint64_t set, int64_t clock_micros, int64_t commit_micros) {
  const int64_t now = host_.clock().WallMicros();
  const int64_t most = kAheadMicrosMax - kSecond;
  clocks_[set] = {.ahead_micros = std::clamp<int64_t>(clock_micros - now, 0, most),
                  .commit_micros = std::min(commit_micros, Now() + most)};
}

void CutDirector::NoteHold(int64_t micros) {
  figures_.hold_micros_max = std::max(figures_.hold_micros_max, micros);
}

// A hold would lengthen the time in which nobody has the tablet; and the moment would have no owner
// for it.
Status CutDirector::CheckMoves() const {
  Services& services = host_.services();
  bool given = !CatalogChanges::NothingIsGiven(host_.store().engine());
  for (const auto& [number, job] : services.move_jobs.All(host_.store())) {
    if (job.ended() || services.moves == nullptr) continue;
    given = given || services.moves->JobProgress(number).given;
  }
  return given ? NotNow("a tablet is on its way from one set to another") : Status::Ok();
}

// The store may go by another clock (DEBUG SET-TIME), by which it is later.
int64_t CutDirector::Now() const {
  return std::max(host_.clock().WallMicros(), host_.store().now_micros());
}

int64_t CutDirector::TimeOf(int attempt) const {
  Store& store = host_.store();
  const size_t last = std::size(kLeadMicros) - 1;
  const int64_t lead = kLeadMicros[std::min(static_cast<size_t>(attempt), last)];
  const int64_t now = Now();
  int64_t latest = now + lead;
  for (const auto& [set, clock] : clocks_) {
    // Records of a set whose commit clock has run ahead, as a cut before has made it, are a
    // microsecond apart: many attempts do not carry all clocks away.
    latest =
        std::max({latest, now + clock.ahead_micros + lead, clock.commit_micros + kLeadMicros[0]});
  }
  return std::max(store.CommitMicros(), latest);
}

Result<uint64_t> CutDirector::Begin(const Order& order) {
  Store& store = host_.store();
  CELLAR_ASSERT(!store.in_transaction());
  if (!director_.active() || !ClusterPart::Directs(host_))
    return NotNow("this node does not lead set 0");
  Decide();
  if (open_) return NotNow(fmt::format("cut {} goes on", open_->number));
  if (now() < rests_until_micros_) return NotNow("a set has just been too late for a cut");
  RETURN_IF_ERROR(CheckMoves());
  RETURN_IF_ERROR(links_.CheckSets());
  const ClusterTelling telling(host_);
  MapTables tables(store);
  if (!tables.exist()) return NotNow("the cluster has no map");
  if (!tables.has_cuts())
    RETURN_IF_ERROR(MapTables::AsOne(store, [&tables] { return tables.CreateCuts(); }));
  CutMark mark{
      .purpose = order.purpose, .time_micros = TimeOf(order.attempt), .argument = order.argument};
  MapTables::CutRow row{.number = store.engine().cluster().catalog + 1,
                        .time_micros = mark.time_micros,
                        .purpose = std::string(CutPurposeName(mark.purpose)),
                        .state = MapTables::CutState::kOpen};
  const Status made = MapTables::AsOne(store, [&]() -> Status {
    RETURN_IF_ERROR(CatalogChanges(store).MakeCut(mark, order.make));
    CELLAR_ASSERT(store.engine().cluster().catalog == row.number);
    return tables.WriteCut(row);
  });
  RETURN_IF_ERROR(made);
  const uint64_t number = row.number;
  begun_micros_ = now();
  open_ = std::move(row);
  links_.OnCutLogged(mark, number, CatalogChanges::NothingIsGiven(store.engine()));
  return number;
}

Status CutDirector::Write(const MapTables::CutRow& row) {
  const ClusterTelling telling(host_);
  return MapTables::AsOne(host_.store(), [&] { return MapTables(host_.store()).WriteCut(row); });
}

void CutDirector::Decide() {
  if (!open_ || host_.store().in_transaction()) return;
  const CatalogDirector::Cut cut = director_.cut(open_->number);
  if (cut == CatalogDirector::Cut::kOpen) return;
  MapTables::CutRow row = *open_;
  const bool good = cut == CatalogDirector::Cut::kGood;
  row.state = good ? MapTables::CutState::kGood : MapTables::CutState::kBad;
  // What cannot be written now is not known to those who come later: it is tried again.
  if (director_.active() && !Write(row).ok()) return;
  if (!good)
    Log(LogSeverity::kNotice, fmt::format("Cut {} for a {} is bad: a set did not have it in time",
                                          row.number, row.purpose));
  ++(good ? figures_.good : figures_.bad);
  // Another one at once would go on holding replies that sets have held for as long as they may.
  if (!good && now() - begun_micros_ >= kHoldMicros) rests_until_micros_ = now() + kHoldMicros / 2;
  decided_[row.number] = good ? State::kGood : State::kBad;
  if (decided_.size() > kDecidedMax) decided_.erase(decided_.begin());
  open_.reset();
}

CutDesk::State CutDirector::StateOf(uint64_t number) {
  Decide();
  if (open_ && open_->number == number) return State::kOpen;
  const auto found = decided_.find(number);
  return found == decided_.end() ? State::kBad : found->second;
}

void CutDirector::OnTick() {
  Store& store = host_.store();
  if (store.in_transaction()) return;
  Decide();
  if (looks_ && MapTables(store).has_cuts()) {
    for (MapTables::CutRow& row : MapTables(store).Cuts(kDecidedMax)) {
      if (row.state != MapTables::CutState::kOpen || (open_ && open_->number == row.number))
        continue;
      row.state = MapTables::CutState::kBad;
      if (!Write(row).ok()) return;
    }
  }
  looks_ = false;
  StepInterval();
  DropStaleCursors();
}

// All at once: each record is a change of the schema, behind which replies are held.
void CutDirector::DropStaleCursors() {
  Services& services = host_.services();
  Store& store = host_.store();
  const SnapshotSet& snapshots = store.engine().snapshots();
  if (snapshots.empty()) return;
  services.cursor_uses.KeepOnly(
      [&snapshots](uint64_t id) { return snapshots.FindById(id) != nullptr; });
  const int64_t timeout = store.options().snapshot_cursor_timeout_micros;
  std::vector<uint64_t> stale;
  for (const NamedSnapshot* const snapshot : snapshots.All()) {
    if (IsCursorName(snapshot->name) && services.cursor_uses.IsStale(snapshot->id, now(), timeout))
      stale.push_back(snapshot->id);
  }
  if (!stale.empty()) (void)FrozenTables(store).Drop(stale);  // a full disk delays it
}

// As often as a command would try, which holds replies for no longer; and then again before the
// next one is due.
void CutDirector::StepInterval() {
  const std::map<std::string, std::string> options = MapTables(host_.store()).Options();
  const auto option = options.find("cluster-cut-interval");
  int64_t seconds = 0;
  if (option != options.end()) {
    const std::string& text = option->second;
    (void)std::from_chars(text.data(), text.data() + text.size(), seconds);
  }
  if (seconds <= 0) {
    interval_micros_ = 0;
    interval_run_.reset();
    return;
  }
  if (interval_micros_ == 0) interval_micros_ = now() + seconds * kSecond;
  if (now() < interval_micros_) return;
  if (!interval_run_) interval_run_.emplace(host_, CutRun::Order{});
  const CutRun::State state = interval_run_->Step();
  if (state == CutRun::State::kRuns) return;
  if (state == CutRun::State::kFailed) {
    Log(LogSeverity::kNotice,
        "The restore point that is due is not made yet: " + interval_run_->status().text());
    seconds = std::min(seconds, kAgainSeconds);
  }
  interval_run_.reset();
  interval_micros_ = now() + seconds * kSecond;
}

}  // namespace cellar
