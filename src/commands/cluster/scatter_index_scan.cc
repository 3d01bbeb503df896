// See scatter_index_scan.h.
#include "commands/cluster/scatter_index_scan.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/assert.h"
#include "commands/cluster/scatter_scan.h"

namespace cellar {
namespace {

constexpr size_t kCursorWord{2};
// Of what each of many streams may bring at once.
constexpr size_t kStreamBytesMin{64 << 10};

}  // namespace

ScatterIndexScan::ScatterIndexScan(const CommandContext& ctx, const Table& table, Plan plan)
    : ScatterTask(ctx, table), plan_(std::move(plan)), page_(plan_.shape, ctx.host.clock()) {
  rests_.push_back({KeyRangeSet::All(), words()[kCursorWord]});
  group_front_ = plan_.group_front;
  group_rows_ = plan_.from.group_rows;
}

size_t ScatterIndexScan::memory_bytes() const {
  size_t bytes = page_.memory_bytes();
  for (const Stream& stream : streams_) bytes += stream.part.bytes.capacity();
  return bytes;
}

bool ScatterIndexScan::OpenStreams() {
  while (!rests_.empty()) {
    std::map<uint64_t, KeyRangeSet> parts;
    if (!DivideRows(map(), rests_.back().rows, &parts)) return false;
    for (auto& [set, rows] : parts) {
      Stream& stream = streams_.emplace_back();
      stream.set = set;
      stream.rows = std::move(rows);
      stream.cursor = rests_.back().cursor;
    }
    rests_.pop_back();
  }
  return true;
}

// Who is asked for one row brings it whole, if a page of its own could have it so.
void ScatterIndexScan::SetLimits(const Stream& stream, CallPiece* piece) const {
  if (!by_cells()) {
    piece->rows_max = std::max<uint64_t>(1, plan_.rows_max - page_.rows());
    piece->bytes_max = std::max(kStreamBytesMin, plan_.bytes_max / streams_.size());
    return;
  }
  piece->rows_max = 1;
  piece->cells_max = std::max<uint64_t>(1, plan_.cells_max - page_.cells());
  piece->bytes_max = plan_.bytes_max;
  if (!stream.asked_exactly) return;
  const size_t room = plan_.bytes_max + RowsHeadBytes(1);
  piece->bytes_max = room - std::min(room, RowsHeadBytes(plan_.rows_max) + page_.bytes());
  piece->rows_before = page_.rows();
}

void ScatterIndexScan::Ask(Stream* stream) {
  CallPiece piece;
  piece.table_id = table_id();
  piece.rows = stream->rows;
  piece.tells_place = true;
  piece.tells_places = true;
  piece.seed = plan_.seed;
  stream->asked_at_rows = page_.rows();
  stream->asked_exactly = stream->wanted.has_value() || page_.rows() == 0;
  SetLimits(*stream, &piece);
  words()[kCursorWord] = stream->cursor;
  stream->ticket = ScatterTask::Ask(stream->set, piece);
}

bool ScatterIndexScan::IsExact(const Stream& stream) const {
  return stream.asked_exactly && stream.asked_at_rows == page_.rows();
}

bool ScatterIndexScan::TakePart(Stream* stream, std::string reply) {
  PagePart part;
  part.bytes = std::move(reply);
  if (!page_.Read(&part, true) || part.places.size() != part.rows) return false;
  stream->cursor = part.cursor;
  stream->ended = IsStartCursor(part.cursor);
  stream->cut = false;
  if (!stream->ended) {
    const Result<ScanCursor> cursor = DecodeCursor(part.cursor, plan_.binding);
    if (!cursor.ok()) return false;
    stream->cut = cursor->position.inside_row;
  }
  if (stream->ended || part.rows > 0) stream->wanted.reset();
  stream->positions = page_.RowPositions(part);
  stream->part = std::move(part);
  stream->next = 0;
  return true;
}

bool ScatterIndexScan::TakeAnswers(TaskContext& context, bool* moved) {
  for (size_t i = 0; i < streams_.size();) {
    Stream& stream = streams_[i++];
    if (!stream.ticket) continue;
    std::string reply;
    const Came came = Take(*stream.ticket, &reply);
    if (came == Came::kNothing) continue;
    stream.ticket.reset();
    if (came == Came::kMoved) {
      rests_.push_back({std::move(stream.rows), std::move(stream.cursor)});
      streams_.erase(streams_.begin() + static_cast<ptrdiff_t>(--i));
      *moved = true;
      continue;
    }
    if (came == Came::kReply) {
      NoteProgress();
      if (TakePart(&stream, std::move(reply))) continue;
      reply = "ERR another node has answered what is no page";
    }
    if (!failed()) Fail(context, reply);
    return false;
  }
  return true;
}

ScatterIndexScan::Stream* ScatterIndexScan::FindNext() {
  Stream* next = nullptr;
  for (Stream& stream : streams_) {
    if (!stream.has_row()) continue;
    if (next == nullptr || (plan_.reverse ? next->head().key < stream.head().key
                                          : stream.head().key < next->head().key))
      next = &stream;
  }
  return next;
}

// Of the position where the row at hand begins. As a page's it says what is drawn; a set that is
// asked is told that apart.
std::string ScatterIndexScan::CursorAt(const PagePart::Place& place, bool of_page) const {
  ScanPosition position;
  position.row_key = place.key;
  position.index_table_id = table_id();
  position.index_id = plan_.index_id;
  if (of_page && plan_.draws_rows) position.seed = plan_.seed;
  const std::string_view front = std::string_view(place.key).substr(0, place.front_bytes);
  if (plan_.each && front == group_front_) position.group_rows = group_rows_;
  return EncodeCursor({.position = std::move(position), .pin = plan_.pin}, plan_.binding);
}

void ScatterIndexScan::EndPageAt(const PagePart::Place& place) { page_.End(CursorAt(place, true)); }

// False: no other row of its group is wanted. One that goes on where an earlier page has ended has
// been counted.
bool ScatterIndexScan::CountInGroup(const PagePart::Place& place) {
  if (!plan_.each) return true;
  const std::string_view front = std::string_view(place.key).substr(0, place.front_bytes);
  const bool begins = page_.rows() == 0;
  if (begins && plan_.from.inside_row && place.key == plan_.from.row_key) {
    group_front_ = front;
    return true;
  }
  if (front != group_front_) {
    group_front_ = front;
    group_rows_ = 0;
  }
  if (group_rows_ >= plan_.each->rows) return false;
  ++group_rows_;
  return true;
}

// The cursor of a row that is cut is its set's, which was told how many rows of the group others
// have given: by the client's cursor, or when it was asked for just this row.
ScatterIndexScan::Taken ScatterIndexScan::TakeRowByCells(Stream* stream) {
  const size_t bytes = RowsHeadBytes(plan_.rows_max) + page_.bytes() + stream->row().size();
  const bool fits = !stream->cut && bytes <= plan_.bytes_max &&
                    page_.cells() + page_.CellsIn(stream->row(), 1) <= plan_.cells_max;
  if (!fits && !IsExact(*stream)) {
    stream->wanted = stream->head();
    stream->cursor = CursorAt(stream->head(), false);
    stream->ended = false;
    stream->part.places.clear();
    stream->next = 0;
    return Taken::kAsksAgain;
  }
  const bool wanted = CountInGroup(stream->head());
  if (wanted) page_.AddRow(stream->row());
  ++stream->next;
  if (!wanted || !stream->cut) return Taken::kRow;
  page_.End(stream->cursor);
  return Taken::kPageEnds;
}

ScatterIndexScan::Taken ScatterIndexScan::TakeRow(Stream* stream) {
  const PagePart::Place& place = stream->head();
  const size_t head = RowsHeadBytes(plan_.rows_max);
  const std::string_view front = std::string_view(place.key).substr(0, place.front_bytes);
  const bool is_over = plan_.each && front == group_front_ && group_rows_ >= plan_.each->rows;
  if (is_over && page_.rows() > 0) {  // of a group that has given enough
    ++stream->next;
    return Taken::kRow;
  }
  if (page_.rows() == plan_.rows_max || page_.cells() == plan_.cells_max ||
      (page_.rows() > 0 && head + page_.bytes() > plan_.bytes_max)) {
    EndPageAt(place);
    return Taken::kPageEnds;
  }
  if (by_cells()) return TakeRowByCells(stream);
  if (page_.rows() > 0 && head + page_.bytes() + stream->row().size() > plan_.bytes_max) {
    EndPageAt(place);
    return Taken::kPageEnds;
  }
  if (CountInGroup(place)) page_.AddRow(stream->row());
  ++stream->next;
  return Taken::kRow;
}

// Of a stream without a row nobody knows whether its next one comes first.
bool ScatterIndexScan::AskWhereNeeded() {
  bool asks = false;
  for (Stream& stream : streams_) {
    if (stream.has_row()) continue;
    if (!stream.ended && !stream.ticket) Ask(&stream);
    asks = asks || stream.ticket.has_value();
  }
  return !asks;
}

TaskProgress ScatterIndexScan::Advance(TaskContext& context) {
  if (page_.ended()) return page_.Deliver(context.reply, context.budget);
  bool moved = false;
  if (!TakeAnswers(context, &moved)) return TaskProgress::kDone;
  if (moved || !OpenStreams()) return Wait(context);
  for (const Stream& stream : streams_) {
    // Not even the front of that row fits.
    if (!stream.wanted || stream.ticket || !IsExact(stream)) continue;
    EndPageAt(*stream.wanted);
    return page_.Deliver(context.reply, context.budget);
  }
  for (;;) {
    if (!AskWhereNeeded()) return TaskProgress::kWaiting;
    Stream* const next = FindNext();
    if (next == nullptr) page_.End("0");
    if (next == nullptr || TakeRow(next) == Taken::kPageEnds)
      return page_.Deliver(context.reply, context.budget);
    if (context.budget.Spent()) return TaskProgress::kMore;
  }
}

}  // namespace cellar
