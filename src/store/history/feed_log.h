// FeedLog: feeds as they are read, from the log on disk; and how long the log is kept for them.
//
//   log      dropped |  kept ...                        | written, not on disk yet
//                    ^ by KEEP, log-keep-bytes          ^ what is shown ends here
//   sweep    ------->                                     one scan for each feed: what it drops
//   tail     ------------------------------------------>  another: how many entries there are
//
// An entry is told only when it is on disk, and in a replica set committed: no reader knows more
// than a restart does, and records that are void by now are passed over (log_index.h). What a feed
// has dropped stays so: it is logged (kTrimFeed) within a second, and before a segment of the log
// goes, which stays until that is on disk. Where the log has lost more than that (files that are
// gone, a gap behind a failed disk), all before is taken for dropped.
//
// A record that a feed cannot decode is an error for its readers, once a line in the server's log,
// and found by --check (feed_check.h). It is dropped in its time like any other.
//
// A follower reads its own log, whose records have the same commit times, so ids are the same.
//
// Belongs to the loop. Every call reads one piece of the log at most (store/log/log_index.h). A
// record that is larger than that is read and decoded in slices, and where readers stand in it is
// remembered (Standing): a reader that comes back with the last id that it got goes on from there,
// so that reading a large step a few entries at a time costs no more than reading it at once.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cellar/clock.h"
#include "engine/state/engine.h"
#include "store/history/feed_decoder.h"
#include "store/journal/journal.h"
#include "store/log/log_index.h"

namespace cellar {

inline constexpr uint64_t kLogKeepBytesDefault{8ULL << 30};
// Versions of tables that are kept for readers (engine/feeds/feed_set.h); beyond it the oldest go,
// and the entries that need them.
inline constexpr size_t kFeedHistoryBytesMax{64 << 20};

// A walk through the entries with after < id <= to.
struct FeedScan {
  FeedId after;
  FeedId to{FeedId::Max()};
  LogPlace place{};  // where it goes on; nowhere yet
  // Of ReadBack, as long as it has not come to the end of the piece: what it has found in it.
  struct Back {
    bool goes_on{false};
    FeedId after;
    std::vector<FeedEntry> entries;  // a ring, of which `next` is the oldest
    size_t next{0};
  };
  Back back{};
};

// What is known of a feed's entries without looking for more.
struct FeedCounts {
  FeedId dropped;      // the last one that is gone; 0-0: none is
  uint64_t length{0};  // kept and shown
  FeedId last;         // 0-0: there has been none since `dropped`
  uint64_t told{0};    // counted since the server has begun to count
  uint64_t log_bytes{0};
};

class FeedLog {
 public:
  // `number` tells it from others that a store has had.
  FeedLog(uint64_t number, Engine& engine, Journal& journal, FileSystem& files, Clock& clock,
          std::string directory)
      : number_(number),
        engine_(engine),
        journal_(journal),
        clock_(clock),
        index_(files, std::move(directory)) {}

  uint64_t number() const { return number_; }
  // Looks at what there is to be read now. To be called before the others in a turn. `applied`: the
  // engine's state is that behind this record.
  Status Update(int64_t now_micros, Lsn applied);
  Lsn shown() const { return index_.shown(); }
  bool has_log() const { return index_.first_segment() != 0 || journal_.Stats().log_enabled; }

  // Goes on to find what the feed has dropped by now. True: that is known.
  Result<bool> Settle(const Feed& feed);
  // Goes on to count the entries that there are. True: CountsOf is right. REQUIRES: Settle said
  // true.
  Result<bool> Count(const Feed& feed);
  FeedCounts CountsOf(const Feed& feed) const;
  FeedId DroppedOf(const Feed& feed) const;
  // A reader has found nothing behind `after` up to where *scan stands, the end.
  void NoteQuiet(const Feed& feed, const FeedId& after, const FeedScan& scan);
  // For those who wait: looks whether anything has come behind `after`, once for all of them. It
  // may be said that there could be something where that is not known.
  enum class Behind : uint8_t { kNothing, kPerhaps, kMore };  // kMore: ask again
  Result<Behind> LookBehind(const Feed& feed, const FeedId& after);
  // The id of the newest thing shown, of whatever feed: `$` for who waits for what comes.
  Result<FeedId> End();

  // Goes on with *scan by one piece. True: `sink` has got all, or wants no more.
  Result<bool> Read(const Feed& feed, FeedScan* scan, FeedSink* sink) {
    return ReadPart(feed, FeedDecoder::Fields::kYes, scan, sink);
  }
  // Read for who wants the ids alone: the entries have no fields.
  Result<bool> CountThrough(const Feed& feed, FeedScan* scan, FeedSink* sink) {
    return ReadPart(feed, FeedDecoder::Fields::kNo, scan, sink);
  }
  // Goes on by one piece towards the beginning: its entries, in ascending order, are appended to
  // *entries, `most` of the newest at most. True: all is read. The first call has scan->place
  // nowhere.
  Result<bool> ReadBack(const Feed& feed, FeedScan* scan, size_t most,
                        std::vector<FeedEntry>* entries);
  // Goes on by one piece to look for the entries `ids`, which ascend, from the `*next`th on, and
  // moves that behind those that have been looked for; `sink` gets those that are there. True: all
  // have been, or `sink` wants no more.
  Result<bool> Find(const Feed& feed, const std::vector<FeedId>& ids, FeedDecoder::Fields fields,
                    size_t* next, FeedScan* scan, FeedSink* sink);

  // The end of what is shown has been reached by a reader: what is newer shall get to disk soon.
  void AskForSync();
  void set_sync_micros(int64_t micros) { sync_micros_ = micros; }
  void set_keep_bytes(uint64_t bytes) { keep_bytes_ = bytes; }

  // What must be logged so that log can go; nothing if there is nothing.
  struct Trim {
    uint64_t feed_id;
    std::string bytes;
  };
  // One piece of housekeeping. *more: there is more to do at once.
  Result<std::optional<Trim>> Sweep(int64_t now_micros, Lsn applied, bool* more);

  // A feed has come, or is there from the start: until Sweep has looked at it, no log goes.
  void NoteFeed();

  size_t memory_bytes() const { return index_.memory_bytes(); }
  // Work that decoding large records has cost since the start (FeedDecoder::work).
  uint64_t large_work() const { return large_work_; }
  // Of a call.
  static constexpr uint64_t kSliceWork{4096};

 private:
  struct State {
    int64_t through_micros{0};  // entries up to it are dropped, and counted in `gone`
    FeedId dropped;
    LogPlace drop_place;
    FeedId drop_after;  // in the record at drop_place: counted up to here
    uint64_t gone{0};   // dropped since both began to count
    FeedScan tail;
    uint64_t told{0};
    FeedId last;
    Lsn counted_to;  // shown when Count was done
    // Of the entries behind `quiet.after` up to `quiet.place` the last one is `quiet_last`, 0-0 if
    // there is none.
    FeedScan quiet;
    FeedId quiet_last;
    int64_t logged_micros{-1};  // through_micros as it is logged, and in which record at the latest
    Lsn logged_lsn;
    int64_t trimmed_micros{INT64_MIN / 2};  // monotonic: when Sweep gave a Trim last
    uint64_t free_before{0};                // segments that the feed needs no more
  };

  Status UpdateIndex(Lsn applied);
  // That of the index, for a feed.
  Result<LogIndex::Ended> ReadPiece(const Feed& feed, LogPlace* place,
                                    const LogIndex::Visit& visit);
  void NoteUnreadable(const Feed& feed, Lsn behind, const Status& status);
  // What is to be decoded: entries with after < id <= to.
  struct Wanted {
    const Feed& feed;
    FeedDecoder::Fields fields;
    FeedId after;
    FeedId to;
  };
  // FeedDecoder::Decode; of a large record a slice. *again: there is more of it, and false is
  // returned; the next call is to be behind what the sink has got.
  Result<bool> Decode(FeedDecoder* decoder, const Wanted& wanted, const LogRecord& record,
                      int64_t before, FeedSink* sink, bool* again);
  Result<bool> DecodeSlice(const Wanted& wanted, const LogRecord& record, int64_t before,
                           FeedSink* sink, bool* again);
  // Where somebody stands in a large record: the decoder that has come so far.
  struct Standing {
    Standing(const FeedSet& feeds, const Feed& of, FeedDecoder::Fields with)
        : feed(of), fields(with), decoder(feeds, feed, with) {}
    const Feed feed;
    const FeedDecoder::Fields fields;
    FeedDecoder decoder;
    Lsn lsn;
    std::string_view payload;  // pinned in the index
    uint32_t passed_over{0};   // since somebody has gone on from there
  };
  using Standings = std::list<std::unique_ptr<Standing>>;
  Standings::iterator StandingFor(const Wanted& wanted, const LogRecord& record, int64_t before);
  void Forget(Standings::iterator standing);
  void ForgetIdle(uint32_t passed_over);
  Result<bool> ReadPart(const Feed& feed, FeedDecoder::Fields fields, FeedScan* scan,
                        FeedSink* sink);
  State& StateOf(const Feed& feed);
  void Restart(State* state, int64_t through_micros, const FeedId& dropped) const;
  int64_t HorizonOf(const Feed& feed) const;
  Status Place(LogPlace* place, int64_t micros) const;
  std::optional<uint64_t> FirstNeeded(const State& state) const;
  void LimitBytes();
  void Retain();
  void BeginRound();

  const uint64_t number_;
  Engine& engine_;
  Journal& journal_;
  Clock& clock_;
  LogIndex index_;
  int64_t now_micros_{0};
  uint64_t keep_bytes_{kLogKeepBytesDefault};
  int64_t sync_micros_{50'000};
  int64_t sync_asked_micros_{0};  // monotonic
  bool sync_wanted_{false};
  int64_t forced_micros_{0};  // dropped for lack of room
  uint64_t retained_from_{UINT64_MAX};
  std::map<uint64_t, State> states_;
  uint64_t sweep_id_{0};
  std::set<uint64_t> unreadable_;  // feeds of which the server's log says it
  Standings standings_;            // who went on last is in front
  uint64_t large_work_{0};
};

}  // namespace cellar
