// See feed_log.h.
#include "store/history/feed_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/assert.h"
#include "base/os/log.h"
#include "base/text/quote.h"

namespace cellar {
namespace {

constexpr uint64_t kRetainNothing{UINT64_MAX};
// What has been dropped is logged no more often than this, but at once where much log can go by it.
// Where little can, it waits: the Trim itself is log that can go later, so that an archive, which
// closes segments by their age, and a feed would keep each other busy for ever.
constexpr int64_t kTrimMicros{1'000'000};
constexpr uint64_t kTrimmedSegmentsMin{8};
constexpr uint64_t kTrimmedBytesMin{64 << 10};
// What goes at once where the disk is full: the log reserves up to 16 MiB at a time, and the next
// snapshot, which lets more of it go, has to have room as well.
constexpr uint64_t kFreedBytes{32 << 20};
// With less on disk even a Trim may find no room in the log.
constexpr uint64_t kTrimRoomBytes{4096};
// Places in large records that are remembered. One that nobody comes back to goes when there is no
// room for another record and so many calls have passed over it, or with the next rounds of Sweep.
constexpr size_t kStandingsMax{32};
// Decoders of feeds that tell what was there before may hold what one command of the record has
// put: such places have records of so many bytes together, or there is one of any size.
constexpr size_t kHeldBytesMax{64 << 20};
constexpr uint32_t kPassedOverMax{64};

Result<bool> Pass(const LogRecord& /*record*/, int64_t /*before_micros*/) { return true; }

// Is it worth a Trim that what is before segment `needed` may go, of what the log says to be needed
// so far? REQUIRES: some may.
bool FreesEnough(const LogIndex& index, const Feed& feed, uint64_t needed) {
  const int64_t logged = std::max(feed.through_micros, index.begin_micros());
  LogPlace from{};
  from.segment = index.Find(logged + 1).segment;
  LogPlace to{};
  to.segment = needed;
  uint64_t segments = 0;
  for (std::optional<uint64_t> next = from.segment; next && *next < needed;
       next = index.NextOf(*next)) {
    if (++segments >= kTrimmedSegmentsMin) return true;
  }
  return index.BytesFrom(from) - index.BytesFrom(to) >= kTrimmedBytesMin;
}

// Counts entries, and remembers the last one.
class CountingSink final : public FeedSink {
 public:
  bool OnEntry(const FeedEntry& entry) override {
    ++count_;
    last_ = entry.id;
    return true;
  }
  uint64_t count() const { return count_; }
  const FeedId& last() const { return last_; }

 private:
  uint64_t count_{0};
  FeedId last_;
};

// Hands all on, and remembers the last one.
class NotingSink final : public FeedSink {
 public:
  explicit NotingSink(FeedSink* to) : to_(*to) {}
  bool OnEntry(const FeedEntry& entry) override {
    last_ = entry.id;
    return to_.OnEntry(entry);
  }
  // 0-0: none has come.
  const FeedId& last() const { return last_; }

 private:
  FeedSink& to_;
  FeedId last_;
};

// Keeps the newest of the entries that come.
class CollectingSink final : public FeedSink {
 public:
  CollectingSink(size_t most, FeedScan::Back* back) : most_(most), back_(*back) {
    CELLAR_ASSERT(most_ > 0);
  }
  bool OnEntry(const FeedEntry& entry) override {
    back_.after = entry.id;
    if (back_.entries.size() < most_) {
      back_.entries.push_back(entry);
    } else {
      back_.entries[back_.next] = entry;
      back_.next = (back_.next + 1) % most_;
    }
    return true;
  }
  // Appends them in ascending order.
  void MoveTo(std::vector<FeedEntry>* entries) {
    std::rotate(back_.entries.begin(),
                back_.entries.begin() + static_cast<std::ptrdiff_t>(back_.next),
                back_.entries.end());
    std::move(back_.entries.begin(), back_.entries.end(), std::back_inserter(*entries));
    back_ = {};
  }

 private:
  const size_t most_;
  FeedScan::Back& back_;
};

// Hands on those that are among `ids`, and counts in *next how many of these are behind.
class PickingSink final : public FeedSink {
 public:
  PickingSink(const std::vector<FeedId>& ids, size_t* next, FeedSink* sink)
      : ids_(ids), next_(*next), sink_(*sink) {}
  bool OnEntry(const FeedEntry& entry) override {
    while (next_ < ids_.size() && ids_[next_] < entry.id) ++next_;
    if (next_ == ids_.size()) return false;
    if (ids_[next_] != entry.id) return true;
    ++next_;
    full_ = !sink_.OnEntry(entry);
    return !full_;
  }
  bool full() const { return full_; }

 private:
  const std::vector<FeedId>& ids_;
  size_t& next_;
  FeedSink& sink_;
  bool full_{false};
};

}  // namespace

Status FeedLog::Update(int64_t now_micros, Lsn applied) {
  now_micros_ = now_micros;
  // Also where nothing new is on disk: a segment that holds nothing may have made way for another.
  return UpdateIndex(applied);
}

Status FeedLog::UpdateIndex(Lsn applied) {
  // In this order: the manifest names the files of all that is durable. What a follower has not
  // applied may speak of tables that it does not know yet.
  const Lsn settled = journal_.settled_lsn();
  const bool whole = journal_.healthy();
  return index_.Update(journal_.CopyManifest(), settled.seq <= applied.seq ? settled : applied,
                       whole);
}

Result<LogIndex::Ended> FeedLog::ReadPiece(const Feed& feed, LogPlace* place,
                                           const LogIndex::Visit& visit) {
  Result<LogIndex::Ended> ended = index_.ReadPiece(place, visit);
  if (!ended.ok() && ended.status().code() == ErrorCode::kCorruption)
    NoteUnreadable(feed, place->last, ended.status());
  if (index_.large().TakeWantsRoom()) ForgetIdle(kPassedOverMax);
  return ended;
}

// --- large records

Result<bool> FeedLog::Decode(FeedDecoder* decoder, const Wanted& wanted, const LogRecord& record,
                             int64_t before, FeedSink* sink, bool* again) {
  if (record.payload.size() >= LargeRecords::kBytesMin)
    return DecodeSlice(wanted, record, before, sink, again);
  return decoder->Decode(record, before, wanted.after, wanted.to, sink);
}

Result<bool> FeedLog::DecodeSlice(const Wanted& wanted, const LogRecord& record, int64_t before,
                                  FeedSink* sink, bool* again) {
  const Standings::iterator at = StandingFor(wanted, record, before);
  FeedDecoder& decoder = (*at)->decoder;
  const uint64_t work_before = decoder.work();
  const Result<FeedDecoder::Progress> progress =
      decoder.Go(wanted.after, wanted.to, kSliceWork, sink);
  large_work_ += decoder.work() - work_before;
  if (!progress.ok() || *progress == FeedDecoder::Progress::kDone) Forget(at);
  RETURN_IF_ERROR(progress.status());
  *again = *progress == FeedDecoder::Progress::kMore;
  return *progress == FeedDecoder::Progress::kDone;
}

// The one that is nearest before what is wanted, or a new one at the beginning.
FeedLog::Standings::iterator FeedLog::StandingFor(const Wanted& wanted, const LogRecord& record,
                                                  int64_t before) {
  auto nearest = standings_.end();
  for (auto at = standings_.begin(); at != standings_.end(); ++at) {
    const Standing& standing = **at;
    if (standing.feed.id != wanted.feed.id || standing.fields != wanted.fields ||
        standing.lsn != record.lsn || standing.payload.data() != record.payload.data() ||
        standing.decoder.passed() > wanted.after) {
      continue;
    }
    if (nearest == standings_.end() || (*nearest)->decoder.passed() < standing.decoder.passed())
      nearest = at;
  }
  if (nearest == standings_.end()) {
    if (standings_.size() >= kStandingsMax) Forget(std::prev(standings_.end()));
    size_t held = record.payload.size();
    for (auto at = standings_.begin(); at != standings_.end() && wanted.feed.tells_pre_images();) {
      const auto standing = at++;
      if (!(*standing)->feed.tells_pre_images()) continue;
      held += (*standing)->payload.size();
      if (held > kHeldBytesMax) Forget(standing);
    }
    standings_.push_front(std::make_unique<Standing>(engine_.feeds(), wanted.feed, wanted.fields));
    Standing& made = *standings_.front();
    made.lsn = record.lsn;
    made.payload = record.payload;
    index_.large().Pin(record.payload);
    made.decoder.Begin(record, before);
  } else {
    standings_.splice(standings_.begin(), standings_, nearest);
  }
  standings_.front()->passed_over = 0;
  return standings_.begin();
}

void FeedLog::Forget(Standings::iterator standing) {
  index_.large().Unpin((*standing)->payload);
  standings_.erase(standing);
}

void FeedLog::ForgetIdle(uint32_t passed_over) {
  for (auto at = standings_.begin(); at != standings_.end();) {
    const auto standing = at++;
    if (++(*standing)->passed_over > passed_over) Forget(standing);
  }
}

// --- what is known of each feed

void FeedLog::NoteUnreadable(const Feed& feed, Lsn behind, const Status& status) {
  if (!unreadable_.insert(feed.id).second) return;
  Log(LogSeverity::kWarning,
      fmt::format("feed {} in keyspace {} cannot be read behind record {}: {}", Quote(feed.name),
                  Quote(feed.keyspace), FormatLsn(behind), status.text()));
}

// What was known of the feed is of no use any more: it begins anew behind `through_micros`.
void FeedLog::Restart(State* state, int64_t through_micros, const FeedId& dropped) const {
  state->through_micros = through_micros;
  state->dropped = dropped;
  state->drop_place = {};
  state->drop_after = {};
  state->gone = 0;
  state->told = 0;
  state->tail = {.after = FeedId::LastOf(through_micros), .to = FeedId::Max()};
  state->last = {};
  state->counted_to = {};
  state->quiet = {};
  state->quiet_last = {};
}

// The state that this process has of a feed, brought up to what the log itself says: that entries
// were dropped, by a leader, or that older log is gone.
FeedLog::State& FeedLog::StateOf(const Feed& feed) {
  const auto [at, fresh] = states_.try_emplace(feed.id);
  State& state = at->second;
  if (fresh) Restart(&state, feed.through_micros, feed.dropped);
  // What a leader has logged of its own log; this one may have had less to keep.
  if (feed.dropped > state.dropped) {
    if (state.through_micros < feed.through_micros) {
      Restart(&state, feed.through_micros, feed.dropped);
    } else {
      state.dropped = feed.dropped;
    }
  }
  const int64_t begin = index_.begin_micros();
  if (begin > state.through_micros && begin != INT64_MAX)
    Restart(&state, begin, FeedId::LastOf(begin));
  return state;
}

// Entries up to here may be dropped: they are older than KEEP, or had to go for room.
int64_t FeedLog::HorizonOf(const Feed& feed) const {
  const int64_t now = std::max(now_micros_, journal_.last_commit_micros());
  const int64_t by_age = feed.keep_micros >= now ? 0 : now - feed.keep_micros;
  return std::max(by_age, forced_micros_);
}

FeedId FeedLog::DroppedOf(const Feed& feed) const {
  const auto state = states_.find(feed.id);
  return state == states_.end() ? feed.dropped : std::max(state->second.dropped, feed.dropped);
}

// A place is good as long as its segment is there; a lost one is found again by the time.
Status FeedLog::Place(LogPlace* place, int64_t micros) const {
  if (place->segment != 0 && index_.IsThere(*place)) return Status::Ok();
  if (index_.first_segment() == 0 || micros < index_.begin_micros())
    return Status::Error(ErrorCode::kIo, "the log does not reach back so far");
  *place = index_.Find(micros + 1);
  return Status::Ok();
}

// Goes through the entries between what was dropped before and the horizon, to know the last one
// that is dropped now and how many there were. A call reads one piece; true when it has come to the
// horizon.
Result<bool> FeedLog::Settle(const Feed& feed) {
  if (index_.first_segment() == 0) return true;  // nothing is there yet
  State& state = StateOf(feed);
  const int64_t horizon = HorizonOf(feed);
  if (horizon <= state.through_micros) return true;
  RETURN_IF_ERROR(Place(&state.drop_place, state.through_micros));
  FeedDecoder decoder(engine_.feeds(), feed, FeedDecoder::Fields::kNo);
  CountingSink sink;
  const FeedId after = std::max(FeedId::LastOf(state.through_micros), state.drop_after);
  const Wanted wanted{feed, FeedDecoder::Fields::kNo, after, FeedId::LastOf(horizon)};
  bool again = false;
  int64_t seen = state.through_micros;
  FeedId passed;  // what cannot be read was not shown either, and is dropped whole
  const auto visit = [&](const LogRecord& record, int64_t before) -> Result<bool> {
    if (before >= horizon) return false;  // nor is anything behind it
    if (record.commit_micros > state.through_micros) {
      const Result<bool> all = Decode(&decoder, wanted, record, before, &sink, &again);
      if (again) return false;
      if (!all.ok() && record.commit_micros > horizon) return all.status();
      if (!all.ok()) {
        NoteUnreadable(feed, state.drop_place.last, all.status());
        passed = FeedId::LastOf(record.commit_micros);
      }
    }
    if (record.commit_micros > horizon) return false;
    seen = record.commit_micros;
    return true;
  };
  ASSIGN_OR_RETURN(const LogIndex::Ended ended, ReadPiece(feed, &state.drop_place, visit));
  state.gone += sink.count();
  if (sink.count() > 0) state.drop_after = sink.last();
  state.dropped = std::max(state.dropped, state.drop_after);
  if (again) return false;
  state.dropped = std::max(state.dropped, passed);
  // What is not shown yet is not dropped unseen.
  if (ended == LogIndex::Ended::kVisit) seen = horizon;
  if (ended == LogIndex::Ended::kShown) seen = std::min(horizon, state.drop_place.micros);
  state.through_micros = std::max(seen, state.through_micros);
  return ended != LogIndex::Ended::kPiece;
}

// Counts on from where it was. Where more has been dropped than was counted, it begins behind that.
Result<bool> FeedLog::Count(const Feed& feed) {
  if (index_.first_segment() == 0) return true;
  State& state = StateOf(feed);
  if (state.counted_to == index_.shown()) return true;
  if (state.tail.after.micros() < state.through_micros) {
    // What was dropped counts as told: the length is the difference of the two.
    state.told = state.gone;
    state.last = state.dropped;
    state.tail = {.after = FeedId::LastOf(state.through_micros), .place = state.drop_place};
  }
  FeedDecoder decoder(engine_.feeds(), feed, FeedDecoder::Fields::kNo);
  RETURN_IF_ERROR(Place(&state.tail.place, state.tail.after.micros()));
  CountingSink sink;
  const Wanted wanted{feed, FeedDecoder::Fields::kNo, state.tail.after, state.tail.to};
  bool again = false;
  const auto visit = [&](const LogRecord& record, int64_t before) -> Result<bool> {
    if (FeedId::LastOf(record.commit_micros) <= state.tail.after) return true;
    return Decode(&decoder, wanted, record, before, &sink, &again);
  };
  ASSIGN_OR_RETURN(const LogIndex::Ended ended, ReadPiece(feed, &state.tail.place, visit));
  state.told += sink.count();
  if (sink.count() > 0) state.last = sink.last();
  if (again) state.tail.after = std::max(state.tail.after, state.last);
  if (again) return false;
  // What is behind is counted whole.
  state.tail.after = std::max(state.tail.after, FeedId::LastOf(state.tail.place.micros));
  if (ended == LogIndex::Ended::kPiece) return false;
  state.counted_to = index_.shown();
  return true;
}

FeedCounts FeedLog::CountsOf(const Feed& feed) const {
  FeedCounts counts;
  counts.dropped = DroppedOf(feed);
  const auto found = states_.find(feed.id);
  if (found == states_.end()) return counts;
  const State& state = found->second;
  counts.length = state.told - std::min(state.told, state.gone);
  counts.last = std::max(state.last, counts.dropped);
  counts.told = state.told;
  LogPlace from = state.drop_place;
  if (index_.first_segment() != 0 && Place(&from, state.through_micros).ok())
    counts.log_bytes = index_.BytesFrom(from);
  return counts;
}

// Somebody has read up to `scan.place` and found nothing behind `after`: the next ones who wait
// there need not read that again. Two such stretches that touch become one.
void FeedLog::NoteQuiet(const Feed& feed, const FeedId& after, const FeedScan& scan) {
  State& state = StateOf(feed);
  if (scan.place.segment == 0) return;
  const FeedScan known = state.quiet;
  if (known.place.segment != 0 && scan.place.last < known.place.last) return;
  const bool joins = known.place.segment != 0 && index_.IsThere(known.place) &&
                     known.after <= after && after.micros() <= known.place.micros;
  state.quiet.place = scan.place;
  if (joins) return;
  state.quiet.after = after;
  state.quiet_last = {};
}

// For readers that wait: is there anything new? Only what is behind the quiet stretch is read, once
// for all of them.
Result<FeedLog::Behind> FeedLog::LookBehind(const Feed& feed, const FeedId& after) {
  if (index_.first_segment() == 0) return Behind::kNothing;
  State& state = StateOf(feed);
  if (state.dropped > after) return Behind::kPerhaps;
  FeedScan& quiet = state.quiet;
  if (quiet.place.segment == 0 || !index_.IsThere(quiet.place) || quiet.after > after)
    return Behind::kPerhaps;
  if (state.quiet_last > after) return Behind::kPerhaps;
  FeedDecoder decoder(engine_.feeds(), feed, FeedDecoder::Fields::kNo);
  CountingSink sink;
  const Wanted wanted{feed, FeedDecoder::Fields::kNo, std::max(quiet.after, state.quiet_last),
                      FeedId::Max()};
  bool again = false;
  const auto visit = [&](const LogRecord& record, int64_t before) -> Result<bool> {
    return Decode(&decoder, wanted, record, before, &sink, &again);
  };
  ASSIGN_OR_RETURN(const LogIndex::Ended ended, ReadPiece(feed, &quiet.place, visit));
  if (sink.count() > 0) state.quiet_last = sink.last();
  if (state.quiet_last > after) return Behind::kPerhaps;
  return again || ended == LogIndex::Ended::kPiece ? Behind::kMore : Behind::kNothing;
}

Result<FeedId> FeedLog::End() {
  if (index_.first_segment() == 0) return FeedId{};
  LogPlace place = index_.Find(INT64_MAX);
  // From the last piece that is known: a turn's worth, once somebody has been here.
  for (;;) {
    ASSIGN_OR_RETURN(const LogIndex::Ended ended, index_.ReadPiece(&place, Pass));
    if (ended == LogIndex::Ended::kShown) return FeedId::LastOf(place.micros);
  }
}

// One piece of the log for one reader, from its place or, if it has none, from what is known to be
// quiet.
Result<bool> FeedLog::ReadPart(const Feed& feed, FeedDecoder::Fields fields, FeedScan* scan,
                               FeedSink* sink) {
  if (index_.first_segment() == 0) return true;
  const State& state = StateOf(feed);
  scan->after = std::max(scan->after, FeedId::LastOf(state.through_micros));
  // Behind it may be much that is known to be nothing.
  const FeedScan& quiet = state.quiet;
  if (scan->place.segment == 0 && quiet.place.segment != 0 && quiet.after <= scan->after &&
      state.quiet_last <= scan->after && scan->after.micros() < quiet.place.micros) {
    scan->place = quiet.place;
  }
  const int64_t behind = std::min(scan->after.micros() - 1, INT64_MAX - 2);
  RETURN_IF_ERROR(Place(&scan->place, std::max(behind, index_.begin_micros())));
  FeedDecoder decoder(engine_.feeds(), feed, fields);
  const Wanted wanted{feed, fields, scan->after, scan->to};
  NotingSink noting(sink);
  bool again = false;
  const auto visit = [&](const LogRecord& record, int64_t before) -> Result<bool> {
    if (record.commit_micros < wanted.after.micros()) return true;
    return Decode(&decoder, wanted, record, before, &noting, &again);
  };
  ASSIGN_OR_RETURN(const LogIndex::Ended ended, ReadPiece(feed, &scan->place, visit));
  scan->after = std::max(scan->after, noting.last());
  return !again && ended != LogIndex::Ended::kPiece;
}

// Looks for single entries, in ascending order. Each may stand far behind the one before, so the
// place jumps where that saves reading.
Result<bool> FeedLog::Find(const Feed& feed, const std::vector<FeedId>& ids,
                           FeedDecoder::Fields fields, size_t* next, FeedScan* scan,
                           FeedSink* sink) {
  CELLAR_DEBUG_ASSERT(std::is_sorted(ids.begin(), ids.end()));
  CELLAR_ASSERT(*next <= ids.size());
  if (index_.first_segment() == 0) return true;
  const State& state = StateOf(feed);
  while (*next < ids.size() && ids[*next].micros() <= state.through_micros) ++*next;
  if (*next == ids.size()) return true;
  scan->after = ids[*next].Previous();
  // Between two of them may be much that is none.
  LogPlace there{};
  const int64_t behind = std::min(ids[*next].micros() - 1, INT64_MAX - 2);
  RETURN_IF_ERROR(Place(&there, std::max(behind, index_.begin_micros())));
  if (scan->place.segment == 0 || !index_.IsThere(scan->place) || scan->place.last < there.last)
    scan->place = there;
  FeedDecoder decoder(engine_.feeds(), feed, fields);
  PickingSink picking(ids, next, sink);
  const Wanted wanted{feed, fields, scan->after, ids.back()};
  bool again = false;
  const auto visit = [&](const LogRecord& record, int64_t before) -> Result<bool> {
    if (record.commit_micros < scan->after.micros()) return true;
    return Decode(&decoder, wanted, record, before, &picking, &again);
  };
  ASSIGN_OR_RETURN(const LogIndex::Ended ended, ReadPiece(feed, &scan->place, visit));
  if (again) return *next == ids.size();
  if (ended != LogIndex::Ended::kPiece) {
    if (!picking.full()) *next = ids.size();
    return true;
  }
  while (*next < ids.size() && ids[*next].micros() <= scan->place.micros) ++*next;
  return *next == ids.size();
}

// Records can only be read forwards, so the way back goes by pieces: a call decodes one of them,
// and keeps the newest of its entries. False without an entry is usual too: something else has to
// be read first, and the call is to be made again.
Result<bool> FeedLog::ReadBack(const Feed& feed, FeedScan* scan, size_t most,
                               std::vector<FeedEntry>* entries) {
  if (index_.first_segment() == 0) return true;
  ASSIGN_OR_RETURN(const bool may_read, index_.FindSuperseded());
  if (!may_read) return false;
  const State& state = StateOf(feed);
  scan->after = std::max(scan->after, FeedId::LastOf(state.through_micros));
  if (scan->after >= scan->to) return true;
  if (scan->back.goes_on) {
    if (!index_.IsThere(scan->place)) return true;
  } else if (scan->place.segment == 0) {
    // Where the last piece begins that can have any. What was never read has to be, up to there.
    const int64_t to = std::clamp(scan->to.micros(), index_.begin_micros(), INT64_MAX - 2);
    const LogPlace begin = index_.Find(to + 1);
    LogPlace at = begin;
    ASSIGN_OR_RETURN(const LogIndex::Ended ended, index_.ReadPiece(&at, Pass));
    if (ended == LogIndex::Ended::kPiece && at.micros <= to) return false;
    scan->place = begin;
  } else {
    if (!index_.IsThere(scan->place)) return true;  // nor is anything before it
    ASSIGN_OR_RETURN(const bool known, index_.LookBefore(scan->place));
    if (!known) return false;
    const std::optional<LogPlace> before = index_.Before(scan->place);
    if (!before || scan->place.micros < scan->after.micros()) return true;
    scan->place = *before;
  }
  FeedDecoder decoder(engine_.feeds(), feed, FeedDecoder::Fields::kYes);
  CollectingSink sink(most, &scan->back);
  const Wanted wanted{feed, FeedDecoder::Fields::kYes, std::max(scan->after, scan->back.after),
                      scan->to};
  bool again = false;
  const auto visit = [&](const LogRecord& record, int64_t before) -> Result<bool> {
    if (record.commit_micros < wanted.after.micros()) return true;
    return Decode(&decoder, wanted, record, before, &sink, &again);
  };
  LogPlace at = scan->place;
  ASSIGN_OR_RETURN(const LogIndex::Ended ended, ReadPiece(feed, &at, visit));
  // A large record that comes is read in several calls, and decoded in several.
  const bool stood_still = at.segment == scan->place.segment && at.offset == scan->place.offset;
  scan->back.goes_on = again || (ended == LogIndex::Ended::kPiece && stood_still);
  if (!scan->back.goes_on) sink.MoveTo(entries);
  return false;
}

// Entries are shown once they are durable. A reader that waits asks for a sync, but not more often
// than sync_micros_ allows.
void FeedLog::AskForSync() {
  sync_wanted_ = journal_.durable_appended() < journal_.appended();
  if (!sync_wanted_) return;
  const int64_t now = clock_.MonotonicMicros();
  if (now - sync_asked_micros_ < sync_micros_) return;
  sync_asked_micros_ = now;
  sync_wanted_ = false;
  journal_.RequestSync();
}

// --- what may go

// Where the log takes more than it may, or the disk is full, its oldest segments are given up,
// whatever KEEP says: the horizon moves behind them. Of a full disk this hears when no more room
// can be reserved, which is before what is reserved is used up.
void FeedLog::LimitBytes() {
  const Manifest manifest = journal_.CopyManifest();
  if (!manifest.snapshot) return;
  uint64_t bytes = 0;
  for (const SegmentEntry& entry : manifest.segments) bytes += entry.end ? entry.end->offset : 0;
  const bool disk_is_full = !journal_.Stats().log_room_ok;
  uint64_t freed = 0;
  for (const SegmentEntry& entry : manifest.segments) {
    // What the next start would read stays in any case.
    if (!entry.end || entry.end->last > manifest.snapshot->lsn) return;
    if (bytes <= keep_bytes_ && !disk_is_full) return;
    const std::optional<int64_t> end = index_.EndOf(entry.number);
    if (end) forced_micros_ = std::max(forced_micros_, *end);
    CELLAR_ASSERT(bytes >= entry.end->offset);
    bytes -= entry.end->offset;
    freed += entry.end->offset;
    if (disk_is_full && freed >= kFreedBytes) return;
  }
}

// The first segment that has anything behind what the feed has dropped; nothing: its place is not
// known, so neither is that.
std::optional<uint64_t> FeedLog::FirstNeeded(const State& state) const {
  LogPlace place = state.drop_place;
  if (!Place(&place, state.through_micros).ok()) return std::nullopt;
  // The place may be the end of a segment, and still be in it.
  uint64_t needed = place.segment;
  for (std::optional<uint64_t> next = index_.NextOf(needed);
       next && index_.BeginOf(*next) <= state.through_micros; next = index_.NextOf(needed)) {
    needed = *next;
  }
  return needed;
}

// A segment may go when no feed needs it and the log itself says so: else a restart would find that
// it is missing, and take all before it for dropped. That is better than a store that takes no
// write any more, so where the log has no room to say anything, it goes unsaid.
void FeedLog::Retain() {
  uint64_t from = kRetainNothing;
  const JournalStats stats = journal_.Stats();
  const bool can_say = stats.log_room_ok || stats.log_room_bytes >= kTrimRoomBytes;
  bool awaits_sync = false;
  for (const Feed* feed : engine_.feeds().All()) {
    State& state = StateOf(*feed);
    if (feed->through_micros != state.logged_micros) {
      state.logged_micros = feed->through_micros;
      state.logged_lsn = journal_.last_lsn();
    }
    const std::optional<uint64_t> needed = FirstNeeded(state);
    const bool is_said = needed && state.logged_lsn.seq <= index_.shown().seq &&
                         state.logged_micros >= index_.BeginOf(*needed);
    if (is_said || (needed && !can_say)) state.free_before = *needed;
    from = std::min(from, state.free_before);
    awaits_sync = awaits_sync || state.logged_lsn.seq > index_.shown().seq;
  }
  if (awaits_sync && !stats.log_room_ok) journal_.RequestSync();
  if (from == retained_from_) return;
  retained_from_ = from;
  journal_.RetainFrom(from);
}

void FeedLog::NoteFeed() {
  if (retained_from_ == 0) return;
  retained_from_ = 0;
  journal_.RetainFrom(0);
}

void FeedLog::BeginRound() {
  constexpr uint32_t kRoundsMax{256};
  ForgetIdle(kRoundsMax);
  LimitBytes();
  const TableHistory& history = engine_.feeds().history();
  if (history.bytes() > kFeedHistoryBytesMax)
    forced_micros_ = std::max(forced_micros_, history.TimeToForget(kFeedHistoryBytesMax / 2));
  Retain();
  // By what the log says to be dropped: what a restart brings back must be readable then.
  int64_t needed = INT64_MAX;
  for (const Feed* feed : engine_.feeds().All())
    needed = std::min(needed, std::max(feed->after_micros, feed->through_micros));
  engine_.ForgetHistoryBefore(needed);
}

// A round brings the index up to date and then looks at every feed, one a call; sweep_id_ is the
// last one that is settled. A Trim comes where a whole segment can go by it, which goes when the
// Trim itself is in the log (Retain), and where entries were dropped, so that a restart does not
// bring them back.
Result<std::optional<FeedLog::Trim>> FeedLog::Sweep(int64_t now_micros, Lsn applied, bool* more) {
  *more = false;
  const FeedSet& feeds = engine_.feeds();
  if (feeds.empty()) {
    states_.clear();
    Retain();
    return std::optional<Trim>();
  }
  now_micros_ = now_micros;
  if (sync_wanted_) AskForSync();
  if (sweep_id_ == 0) {
    std::erase_if(states_,
                  [&feeds](const auto& state) { return feeds.FindById(state.first) == nullptr; });
    RETURN_IF_ERROR(UpdateIndex(applied));
    if (index_.first_segment() == 0) return std::optional<Trim>();
    BeginRound();
  }
  // One feed in each call.
  const Feed* feed = feeds.FindBehind(sweep_id_);
  if (feed == nullptr) {
    sweep_id_ = 0;
    return std::optional<Trim>();
  }
  CELLAR_ASSERT(feed->id > sweep_id_);  // or the round would never end
  *more = true;
  const Result<bool> settled = Settle(*feed);
  // One that cannot be read does not keep the others' log.
  if (!settled.ok() || *settled) sweep_id_ = feed->id;
  if (!settled.ok()) return std::optional<Trim>();
  State& state = StateOf(*feed);
  const std::optional<uint64_t> needed = FirstNeeded(state);
  const bool frees = needed && feed->through_micros < index_.BeginOf(*needed) &&
                     (!journal_.Stats().log_room_ok || FreesEnough(index_, *feed, *needed));
  const int64_t now = clock_.MonotonicMicros();
  const bool forgets = engine_.feeds().history().bytes() > kFeedHistoryBytesMax &&
                       state.through_micros > feed->through_micros;
  const bool is_due =
      (forgets || state.dropped > feed->dropped) && now - state.trimmed_micros >= kTrimMicros;
  if (!frees && !is_due) return std::optional<Trim>();
  state.trimmed_micros = now;
  return std::optional(Trim{feed->id, EncodeFeedTrim(state.through_micros, state.dropped)});
}

}  // namespace cellar
