// ScanRun: one CROW, CROWS or CSCAN at work, from the steps of a Scan to a reply.
//
//   in the handler   Pull() with a small budget; most reads are done then: Finish()
//   else             Detach(): the scan goes over to snapshots, the reply into memory of its own,
//                    and the whole of it into a Task (long_read.h), which pulls in slices, in the
//                    loop or in a worker, finishes, and delivers in pieces
//
//   shape    CROW   map                          CSCAN   [cursor, [[row key, map] ...] (, stats)]
//            CROWS  [map ...]                    KEYSONLY   [cursor, [row key ...] (, stats)]
//
// It knows the limits of a call (COUNT, CELLS, bytes of the page) and finds the cursor to go on
// from. A call ends when a limit is reached and one more row or cell is there: so a "0" comes with
// the last row, not after it.
//
// A row is given whole: one that would make the page longer than `page_bytes_max` is taken back and
// begins the next page; one that is longer by itself is a page alone. Under CELLS, where a row may
// be split, the page ends with the cell that fills it. A row, of CROW too, that is longer than
// `reply_bytes_max` is refused (TOOLARGE), and so are all rows of a CROWS together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cellar/clock.h"
#include "cellar/lsn.h"
#include "commands/arguments/read_arguments.h"
#include "commands/replies/cell_reply.h"
#include "commands/replies/long_read.h"
#include "commands/replies/reply_pieces.h"
#include "commands/replies/scan_heat.h"
#include "commands/session/task.h"
#include "engine/rows/scan.h"

namespace cellar {

class Store;
class Table;

// Bytes of reply written in one slice, for cells with large values.
inline constexpr size_t kSliceReplyBytes{512 * 1024};

// Keeps a pinned view from going stale while a task reads it.
class PinHold {
 public:
  PinHold() = default;
  PinHold(Store& store, uint64_t id);
  ~PinHold();
  PinHold(PinHold&& other) noexcept
      : store_(std::exchange(other.store_, nullptr)), id_(other.id_) {}
  PinHold& operator=(PinHold&& other) noexcept {
    std::swap(store_, other.store_);
    std::swap(id_, other.id_);
    return *this;
  }

 private:
  Store* store_{nullptr};  // null: holds nothing
  uint64_t id_{0};
};

// Begins the map of STATS: what has been examined, and an index if one answered. The caller writes
// `fields_more` fields behind.
void BeginStats(ReplyWriter& reply, const ScanStats& stats, int64_t micros, size_t fields_more);

enum class ScanShown : uint8_t {
  kRow,   // CROW: a map
  kList,  // CROWS: a map for each row that the scan names, empty for one that is not there
  kPage,  // CSCAN: a cursor and rows with their keys
};

// A reply that somebody else has begun at the client's end, before the scan of the rest.
struct BegunReply {
  size_t begin{0};           // where it begins in the client's output
  ReplyWriter::Mark open{};  // CROW: the row's map; CROWS: the array of rows
  uint64_t count{0};         // columns of the row so far, at least one; whole rows
};

struct ScanRunOptions {
  ScanShown shown{ScanShown::kPage};
  std::optional<BegunReply> begun;  // CROW, CROWS
  bool keys_only{false};
  CellFormat format;
  uint64_t rows_max{kUnlimited};
  uint64_t cells_max{kUnlimited};
  size_t page_bytes_max{SIZE_MAX};   // CSCAN: scan-reply-max-bytes
  size_t reply_bytes_max{SIZE_MAX};  // of a row that comes alone: reply-max-bytes
  // Rows are drawn by lot (SAMPLE): the cursor carries the seed, so that each is drawn once.
  bool draws_rows{false};
  // CSCAN alone
  uint64_t cursor_binding{0};
  std::optional<uint64_t> pin;  // the pinned view that this call reads
  bool pin_wanted{false};       // SNAPSHOT, first call: pin if the scan does not end in this call
  Clock* stats_clock{nullptr};  // STATS
  ScanHeat heat;
  std::vector<std::string> notes;  // which STATS tells (read_notes.h)
  // A part of a page that lies on several sets: so many rows of it come before, and the node that
  // puts them together is told, behind all else, where the scan stands in EACH: front of the group,
  // rows given out of it; and with `tells_places` of each row the key of its place and how much of
  // that is its group's front. rows_max and cells_max may be 0: then it says where the next row is.
  uint64_t rows_before{0};
  bool tells_place{false};
  bool tells_places{false};
  // Of whom a snapshot is pinned for; used in the handler alone.
  const FamilyAccess* rights{nullptr};
};

class ScanRun {
 public:
  // The reply begins at the end of `client`, or where it was begun. `store` outlives the run.
  ScanRun(std::unique_ptr<Scan> scan, ScanRunOptions&& options, Store& store, OutputBuffer* client,
          RespVersion version);
  ScanRun(ScanRun&&) = default;

  // Pulls until the call is complete (true) or `cells` have been examined or a slice of reply has
  // been written (false), and tells HEAT.
  bool Pull(uint64_t cells);
  // Pull in a worker; the loop calls RecordHeat() before it goes on with the run.
  bool PullOnWorker(uint64_t cells);
  void RecordHeat();
  // Rows written to the reply so far, but for one that was begun before.
  uint64_t rows() const { return rows_; }
  // Completes the reply: closes what is open, puts the cursor in front, the statistics behind.
  // `table` is null if it may have changed since the scan began. REQUIRES: Pull said true.
  void Finish(Table* table);
  // Why there is no reply: nothing of it is left, and the error takes its place. OK: there is one.
  const Status& refusal() const { return refusal_; }
  // After Pull said false, before anything else runs.
  void Detach(Table& table);
  // A page ends here at the latest.
  void LimitPage(size_t bytes) {
    options_.page_bytes_max = std::min(options_.page_bytes_max, bytes);
  }
  size_t page_bytes_max() const { return options_.page_bytes_max; }

  ReplyPieces& reply() { return reply_; }
  const ReplyPieces& reply() const { return reply_; }
  char first_byte() const {
    return options_.shown == ScanShown::kRow && reply_.resp3() ? '%' : '*';
  }
  size_t memory_bytes() const {
    return reply_.memory_bytes() + (scan_ != nullptr ? scan_->memory_bytes() : 0);
  }

 private:
  bool PullCells(uint64_t cells);
  void BeginRow();
  void EndRow();
  // False if the limits are reached: the call is complete.
  bool TakeRow();
  bool TakeCell();
  // Whether the page may end inside the current row.
  bool SplitsRow() const { return options_.cells_max != kUnlimited && cells_ > cells_before_row_; }
  // The reply is longer than it may be: nothing is left of it.
  void Refuse();
  // The reply is longer than a page may be. True if the call is complete now; else it will be
  // behind the row, or the cell, that came last.
  bool EndPage();
  void ReplyStats();
  void ReplyPlaces();
  // What comes before and behind the rows of a CSCAN.
  void FinishRows(Table* table);

  PinHold hold_;  // outlives the scan
  std::unique_ptr<Scan> scan_;
  ScanRunOptions options_;
  Store* store_;
  ReplyPieces reply_;
  RowReply row_;
  ReplyPieces::Mark rows_mark_{};
  uint64_t rows_{0};
  uint64_t cells_{0};
  uint64_t cells_before_row_{0};
  std::vector<std::pair<std::string, size_t>> places_;  // tells_places: of each row
  ReplyPieces::Place begin_place_{};
  ReplyPieces::Place row_place_{};  // where the last row begins in the reply
  Status refusal_;
  bool ended_beside_{false};  // and HEAT has not been told
  int64_t begin_micros_{0};
  // Where the next call goes on; unset when the scan has come to its end.
  std::optional<ScanPosition> next_;
  ScanPosition after_cell_;  // kept once cells_ has reached its limit
};

// A run that has been detached.
class ScanRead final : public LongRead {
 public:
  explicit ScanRead(ScanRun run) : LongRead(kSliceCells), run_(std::move(run)) {}
  ScanRun& run() { return run_; }

  bool Pull(uint64_t cells) override {
    return in_worker() ? run_.PullOnWorker(cells) : run_.Pull(cells);
  }
  void RecordHeat() override { run_.RecordHeat(); }

 private:
  size_t ReplyBytes() const override { return run_.reply().held_bytes(); }
  size_t MemoryBytes() const override { return run_.memory_bytes(); }

  ScanRun run_;
};

// Carries it on.
class ScanTask final : public LongReadTask {
 public:
  // `page`: what its page may take.
  ScanTask(Host& host, ScanRun run, WorkMemory::Lease page, LongReadStart start, Lsn depends_on)
      : LongReadTask(host, std::make_unique<ScanRead>(std::move(run)), start, depends_on),
        first_byte_(this->run().first_byte()) {
    read().Await(std::move(page));
  }
  char FirstByte() const override { return first_byte_; }

 private:
  ScanRun& run() { return static_cast<ScanRead&>(read()).run(); }
  void Complete() override { run().Finish(nullptr); }
  bool Reply(TaskContext& context) override {
    if (!run().refusal().ok()) {
      context.Fail(run().refusal());
      return true;
    }
    return run().reply().Deliver(context.reply, context.budget);
  }
  bool StreamsReply() const override { return true; }

  const char first_byte_;
};

}  // namespace cellar
