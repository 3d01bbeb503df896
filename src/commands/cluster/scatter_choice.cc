// See scatter_choice.h.
#include "commands/cluster/scatter_choice.h"

#include <algorithm>
#include <map>
#include <utility>

#include "commands/arguments/scan_cursor.h"
#include "commands/cluster/reply_reader.h"

namespace cellar {
namespace {

// Of what a set lists at once.
constexpr uint64_t kPlacesMax{4 * 1024};
constexpr size_t kPlacesBytesMax{256 << 10};
// Of a row that is remembered, beside its key.
constexpr size_t kRowBytes{64};

}  // namespace

ScatterChoice::ScatterChoice(Plan plan) : plan_(std::move(plan)) {
  rests_.push_back({plan_.rows, "0"});
}

size_t ScatterChoice::memory_bytes() const {
  size_t bytes = chosen_bytes_ + met_bytes_;
  for (const Stream& stream : streams_)
    for (const Place& place : stream.places) bytes += sizeof(Place) + place.key.capacity();
  return bytes;
}

bool ScatterChoice::OpenStreams(ScatterTask& task) {
  while (!rests_.empty()) {
    std::map<uint64_t, KeyRangeSet> parts;
    if (!DivideRows(task.map(), rests_.back().rows, &parts)) return false;
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

void ScatterChoice::Ask(ScatterTask& task, Stream* stream, uint64_t rows_max) {
  CallPiece piece;
  piece.table_id = task.table_id();
  piece.rows = stream->rows;
  piece.rows_max = std::clamp<uint64_t>(rows_max, 1, kPlacesMax);
  piece.bytes_max = kPlacesBytesMax;
  piece.seed = plan_.seed;
  piece.tells_place = true;
  piece.tells_places = true;
  piece.lists_rows = true;
  piece.cursor = stream->cursor;
  stream->ticket = task.Ask(stream->set, piece);
}

// [cursor, [row ...], [front, rows of it, place, bytes of its front, ...]]
bool ScatterChoice::TakePart(Stream* stream, std::string_view reply) {
  ReplyReader reader(reply);
  uint64_t elements = 0;
  uint64_t rows = 0;
  uint64_t numbers = 0;
  std::string_view text;
  if (!reader.Array(&elements) || elements != 3 || !reader.Bulk(&text)) return false;
  stream->cursor = text;
  stream->ended = IsStartCursor(text);
  if (!reader.Array(&rows)) return false;
  for (uint64_t i = 0; i < rows; ++i)
    if (!reader.Skip()) return false;
  if (!reader.Array(&numbers) || numbers != 2 + 2 * rows || !reader.Skip() || !reader.Skip())
    return false;
  stream->places.clear();
  stream->next = 0;
  for (uint64_t i = 0; i < rows; ++i) {
    uint64_t front_bytes = 0;
    if (!reader.Bulk(&text) || !reader.Unsigned(&front_bytes) || front_bytes > text.size())
      return false;
    stream->places.push_back({std::string(text), front_bytes});
  }
  return reader.done();
}

bool ScatterChoice::TakeAnswers(ScatterTask& task, TaskContext& context, bool* moved) {
  using TaskCame = ScatterTask::Came;
  for (size_t i = 0; i < streams_.size();) {
    Stream& stream = streams_[i++];
    if (!stream.ticket) continue;
    std::string reply;
    const TaskCame came = task.Take(*stream.ticket, &reply);
    if (came == TaskCame::kNothing) continue;
    stream.ticket.reset();
    if (came == TaskCame::kMoved) {
      rests_.push_back({std::move(stream.rows), std::move(stream.cursor)});
      streams_.erase(streams_.begin() + static_cast<ptrdiff_t>(--i));
      *moved = true;
      continue;
    }
    if (came == TaskCame::kReply) {
      task.NoteProgress();
      if (TakePart(&stream, reply)) continue;
      reply = "ERR another node has answered what are no rows";
    }
    if (!task.failed()) task.Fail(context, reply);
    return false;
  }
  return true;
}

ScatterChoice::Stream* ScatterChoice::FindNext() {
  Stream* next = nullptr;
  for (Stream& stream : streams_) {
    if (!stream.has_row()) continue;
    const std::string& key = stream.places[stream.next].key;
    const bool is_first = next == nullptr || (plan_.reverse ? next->places[next->next].key < key
                                                            : key < next->places[next->next].key);
    if (is_first) next = &stream;
  }
  return next;
}

// Whether the row is given: of its group there are not enough yet.
bool ScatterChoice::CountInGroup(const Place& place) {
  if (!plan_.each) return true;
  const std::string_view front = std::string_view(place.key).substr(0, place.front_bytes);
  if (front != group_front_) {
    group_front_ = front;
    group_rows_ = 0;
  }
  if (group_rows_ >= plan_.each->rows) return false;
  ++group_rows_;
  return true;
}

bool ScatterChoice::TakeRow(Stream* stream) {
  const Place& place = stream->places[stream->next];
  std::string row = place.key;
  if (plan_.index) {
    row.erase(0, plan_.index->ValuesSize(place.key));
    if (met_.contains(row)) {
      if (!plan_.once) return false;
      ++stream->next;
      return true;
    }
  }
  const bool is_given = CountInGroup(place);
  ++stream->next;
  if (!is_given) return true;
  if (plan_.index) {
    met_.insert(row);
    met_bytes_ += row.size() + kRowBytes;
  }
  chosen_bytes_ += row.size() + kRowBytes;
  chosen_.push_back(std::move(row));
  return true;
}

ScatterChoice::Came ScatterChoice::Choose(ScatterTask& task, TaskContext& context,
                                          uint64_t rows_max) {
  bool moved = false;
  if (!TakeAnswers(task, context, &moved)) return Came::kFailed;
  if (moved || !OpenStreams(task))
    return task.Wait(context) == TaskProgress::kDone ? Came::kFailed : Came::kWaits;
  while (chosen_.size() < rows_max) {
    bool asks = false;
    for (Stream& stream : streams_) {
      if (stream.has_row()) continue;
      if (!stream.ended && !stream.ticket) Ask(task, &stream, rows_max);
      asks = asks || stream.ticket.has_value();
    }
    if (asks) return Came::kWaits;
    Stream* const next = FindNext();
    ended_ = next == nullptr;
    if (ended_ || !TakeRow(next)) break;
    if (context.budget.Spent()) return Came::kGoesOn;
  }
  return Came::kChosen;
}

KeyRangeSet ScatterChoice::TakeRows() {
  std::sort(chosen_.begin(), chosen_.end());
  KeyRangeSet rows;
  for (std::string& key : chosen_) {
    KeyRange range;
    AssignSuccessor(key, &range.end);
    range.begin.bytes = std::move(key);
    rows.Add(std::move(range));
  }
  chosen_.clear();
  chosen_bytes_ = 0;
  if (!plan_.once) {
    met_.clear();
    met_bytes_ = 0;
  }
  return rows;
}

}  // namespace cellar
