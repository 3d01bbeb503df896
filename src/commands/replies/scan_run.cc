// See scan_run.h.
// PullCells makes a reply of a scan's steps. TakeRow, TakeCell and EndPage decide where the call
// ends, FinishRows makes a cursor of that place.
#include "commands/replies/scan_run.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/assert.h"
#include "base/inline.h"
#include "base/text/quote.h"
#include "commands/arguments/scan_cursor.h"
#include "commands/replies/schema_commands.h"
#include "store/store.h"

namespace cellar {

PinHold::PinHold(Store& store, uint64_t id) : store_(&store), id_(id) { store.HoldPin(id); }

PinHold::~PinHold() {
  if (store_ != nullptr) store_->ReleasePin(id_);
}

// What was begun elsewhere (options.begun) goes on where it stands. Else the frame of the reply
// begins here, with a guess for its count.
ScanRun::ScanRun(std::unique_ptr<Scan> scan, ScanRunOptions&& options, Store& store,
                 OutputBuffer* client, RespVersion version)
    : scan_(std::move(scan)),
      options_(std::move(options)),
      store_(&store),
      reply_(client, version, options_.begun ? options_.begun->begin : client->size()),
      row_(options_.format) {
  CELLAR_ASSERT(options_.rows_max > 0 || options_.rows_before > 0);
  CELLAR_ASSERT(options_.cells_max > 0 || options_.rows_before > 0);
  if (options_.stats_clock != nullptr) begin_micros_ = options_.stats_clock->MonotonicMicros();
  // One limit to compare with at each step: where there is no page, it is the reply's.
  options_.page_bytes_max = std::min(options_.page_bytes_max, options_.reply_bytes_max);
  if (options_.begun) {
    // begin_place_ stays at zero, which is where the reply was begun: taking back includes that
    // part.
    CELLAR_ASSERT(options_.shown != ScanShown::kPage);
    const ReplyPieces::Mark open = reply_.Adopt(options_.begun->open);
    if (options_.shown == ScanShown::kRow) {
      row_.GoOn(open, options_.begun->count);
    } else {
      rows_mark_ = open;
      rows_ = options_.begun->count;
    }
    return;
  }
  begin_place_ = reply_.here();
  if (options_.shown == ScanShown::kRow) {
    row_.Begin(reply_);
  } else {
    const bool is_list = options_.shown == ScanShown::kList;  // has as many as it names
    rows_mark_ = reply_.BeginArray(is_list ? options_.rows_max
                                           : std::min(options_.rows_max, kScanCountDefault));
  }
}

void ScanRun::BeginRow() {
  ++rows_;
  CELLAR_DEBUG_ASSERT(rows_ <= options_.rows_max);
  if (options_.shown == ScanShown::kRow) return;
  reply_.NextPiece();
  // To cut the reply here if the row turns out not to fit into the page.
  row_place_ = reply_.here();
  cells_before_row_ = cells_;
  if (options_.tells_places) [[unlikely]]
    places_.emplace_back(scan_->PositionAtRow().row_key, scan_->PositionInGroup().row_key.size());
  if (options_.shown == ScanShown::kList) return row_.Begin(reply_);
  ReplyWriter& writer = reply_.writer();
  if (!options_.keys_only) writer.Array(2);
  writer.Bulk(scan_->row_text());
  if (options_.keys_only) {
    scan_->SkipRow();
  } else {
    row_.Begin(reply_);
  }
}

void ScanRun::EndRow() {
  if (row_.open()) row_.End(reply_);
}

// The limits are looked at when the next row is there, not when they are reached: a page that holds
// the last row must say so.
bool ScanRun::TakeRow() {
  if (options_.shown != ScanShown::kRow) EndRow();
  // The end of a row may have made it longer: what is no page is refused for that (EndPage).
  const bool is_full = options_.shown == ScanShown::kPage && rows_ + options_.rows_before > 0 &&
                       reply_.bytes() > options_.page_bytes_max;
  if (rows_ == options_.rows_max || cells_ == options_.cells_max || is_full) {
    // The row that has just begun is where the next call begins: what lies before it and was not
    // wanted is not looked at again.
    next_ = scan_->PositionAtRow();
    return false;
  }
  BeginRow();
  return true;
}

// With CELLS, or a page that is full inside a row, the call ends behind a cell; where that is has
// to be saved before the scan moves on.
CELLAR_INLINE bool ScanRun::TakeCell() {
  const ScanCell& cell = scan_->cell();
  if (row_.Shows(cell)) {
    if (cells_ == options_.cells_max) {
      next_ = std::move(after_cell_);
      return false;
    }
    row_.Add(reply_, *scan_);
    ++cells_;
    if (SplitsRow() && reply_.bytes() > options_.page_bytes_max) [[unlikely]]
      options_.cells_max = cells_;
  }
  // Also behind versions that are not shown, so that the next call does not begin with them.
  if (cells_ == options_.cells_max) after_cell_ = scan_->PositionAfterCell();
  return true;
}

// Takes back all that was written, the frame of the reply included, and puts the error in its
// place.
void ScanRun::Refuse() {
  CELLAR_ASSERT(refusal_.ok());
  CELLAR_ASSERT(options_.shown != ScanShown::kPage || rows_ <= 1);
  reply_.Truncate(begin_place_);
  row_.Abandon();
  refusal_ = Status::Error(
      ErrorCode::kTooLarge,
      options_.shown == ScanShown::kList
          ? "these rows make a reply of more than reply-max-bytes: read fewer, or some columns"
          : "row " + Quote(scan_->row_text()) +
                " makes a reply of more than reply-max-bytes: read some of its columns, or all by "
                "CSCAN with CELLS");
}

bool ScanRun::EndPage() {
  // With CELLS the page ends behind a cell of the row instead (TakeCell).
  if (SplitsRow()) return false;
  // What comes alone may be longer than a page, up to reply-max-bytes.
  if (rows_ + options_.rows_before <= 1 || options_.shown == ScanShown::kList) {
    if (reply_.bytes() <= options_.reply_bytes_max) return false;
    Refuse();
    return true;
  }
  // It does not fit behind the others: it goes as a whole and begins the next page.
  reply_.Truncate(row_place_);
  row_.Abandon();
  --rows_;
  if (options_.tells_places) places_.pop_back();
  next_ = scan_->PositionAtRow();
  return true;
}

bool ScanRun::Pull(uint64_t cells) {
  const bool done = PullCells(cells);
  // A page that is full has not come to the end of its ranges.
  options_.heat.Note(*scan_, done && !next_.has_value(), reply_.bytes());
  return done;
}

bool ScanRun::PullOnWorker(uint64_t cells) {
  const bool done = PullCells(cells);
  if (done)
    ended_beside_ = true;
  else
    options_.heat.Keep(*scan_, reply_.bytes());
  return done;
}

void ScanRun::RecordHeat() {
  if (!std::exchange(ended_beside_, false)) return;
  options_.heat.TellKept();
  options_.heat.Note(*scan_, !next_.has_value(), reply_.bytes());
}

bool ScanRun::PullCells(uint64_t cells) {
  scan_->SetBudget(cells);
  const size_t slice_end = cells == kUnlimited ? SIZE_MAX : reply_.bytes() + kSliceReplyBytes;
  // One limit to compare with at each step.
  const size_t looks_behind = std::min(slice_end - 1, options_.page_bytes_max);
  for (;;) {
    switch (scan_->Next()) {
      case ScanStep::kRow:
        if (!TakeRow()) return true;
        break;
      case ScanStep::kCell:
        if (!TakeCell()) return true;
        break;
      case ScanStep::kPause:
        CELLAR_ASSERT(cells != kUnlimited);
        return false;
      case ScanStep::kEnd:
        return true;
    }
    if (reply_.bytes() <= looks_behind) [[likely]]
      continue;
    if (reply_.bytes() > options_.page_bytes_max && EndPage()) return true;
    if (reply_.bytes() >= slice_end) return false;
  }
}

// From here on others may write. A pinned view is held, the scan moves to snapshots, the reply into
// memory of its own.
void ScanRun::Detach(Table& table) {
  CELLAR_ASSERT(scan_ != nullptr);
  CELLAR_ASSERT(!next_.has_value());
  // Pinned while nobody has written yet: the view is the one that the scan began with.
  if (options_.pin_wanted && !options_.pin.has_value())
    options_.pin = store_->PinSnapshot(table, options_.rights);
  if (options_.pin.has_value()) hold_ = PinHold(*store_, *options_.pin);
  // They die with the handler.
  options_.rights = nullptr;
  scan_->Detach();
  reply_.Own();
}

void BeginStats(ReplyWriter& reply, const ScanStats& stats, int64_t micros, size_t fields_more) {
  reply.Map(5 + (stats.index.empty() ? 0U : 1U) + fields_more);
  const auto field = [&reply](std::string_view name, uint64_t value) {
    reply.Bulk(name);
    reply.Unsigned(value);
  };
  field("rows", stats.rows);
  field("cells", stats.cells);
  field("bytes", stats.bytes);
  field("groups", stats.groups);
  field("micros", static_cast<uint64_t>(micros));
  if (stats.index.empty()) return;
  reply.Bulk("index");
  reply.Bulk(stats.index);
}

void ScanRun::ReplyStats() {
  CELLAR_ASSERT(options_.stats_clock != nullptr);
  const int64_t micros = options_.stats_clock->MonotonicMicros() - begin_micros_;
  scan_->AddNotes(&options_.notes);
  BeginStats(reply_.writer(), scan_->stats(), micros, options_.notes.empty() ? 0 : 1);
  if (options_.notes.empty()) return;
  reply_.writer().Bulk("notes");
  ReplyNames(reply_.writer(), options_.notes);
}

void ScanRun::ReplyPlaces() {
  ReplyWriter& writer = reply_.writer();
  const ScanPosition place = scan_->PositionInGroup();
  writer.Array(2 + 2 * places_.size());
  writer.Bulk(place.row_key);
  writer.Unsigned(place.group_rows);
  for (const auto& [key, front_bytes] : places_) {
    writer.Bulk(key);
    writer.Unsigned(front_bytes);
  }
}

void ScanRun::Finish(Table* table) {
  // Only a page goes on in another call: anything else would be told as if it were whole.
  CELLAR_ASSERT(options_.shown == ScanShown::kPage || !next_.has_value());
  EndRow();
  if (options_.shown == ScanShown::kPage && refusal_.ok()) FinishRows(table);
  if (options_.shown == ScanShown::kList && refusal_.ok()) reply_.EndArray(rows_mark_, rows_);
  if (scan_ != nullptr) store_->EndScan(std::move(scan_));
}

// The cursor is known only now, and stands in front: so the frame is made last and prepended.
void ScanRun::FinishRows(Table* table) {
  reply_.EndArray(rows_mark_, rows_);
  if (options_.stats_clock != nullptr) ReplyStats();
  if (options_.tells_place) [[unlikely]]
    ReplyPlaces();

  std::string cursor = "0";
  if (next_.has_value()) {
    // The lot of a row must not be drawn again when the row goes on in the next call.
    if (!options_.draws_rows) next_->seed = 0;
    // All of it ran in the handler, so the table is still as the scan has seen it. A task has
    // pinned in Detach, and comes without a table.
    if (options_.pin_wanted && !options_.pin.has_value() && table != nullptr) {
      options_.pin = store_->PinSnapshot(*table, options_.rights);
    }
    cursor =
        EncodeCursor({.position = std::move(*next_), .pin = options_.pin}, options_.cursor_binding);
  } else if (options_.pin.has_value()) {
    scan_.reset();  // it reads what is unpinned
    hold_ = PinHold();
    store_->UnpinSnapshot(*options_.pin);
  }
  OutputBuffer front;
  ReplyWriter writer(&front, reply_.writer().version());
  writer.Array(2U + (options_.stats_clock != nullptr ? 1U : 0U) + (options_.tells_place ? 1U : 0U));
  writer.Bulk(cursor);
  reply_.Prepend(front.view());
}

}  // namespace cellar
