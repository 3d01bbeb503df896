// See tablet_moves.h.
#include "engine/state/tablet_moves.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/coding.h"

namespace cellar {
namespace {

bool IsRange(const Tablet& tablet) {
  return tablet.epoch > 0 && (tablet.end.empty() || tablet.begin < tablet.end);
}

template <typename Moves>
uint64_t JobOf(const Moves& moves, uint64_t table_id, const Tablet& range) {
  for (const auto& [job, move] : moves)
    if (move.table_id == table_id && move.tablet.Overlaps(range)) return job;
  return 0;
}

void PutTablet(const Tablet& tablet, std::string* to) {
  PutLengthPrefixed(to, tablet.begin);
  PutLengthPrefixed(to, tablet.end);
  PutVarint64(to, tablet.epoch);
}

bool GetTablet(std::string_view* from, Tablet* tablet) {
  std::string_view begin;
  std::string_view end;
  if (!GetLengthPrefixed(from, &begin) || !GetLengthPrefixed(from, &end) ||
      !GetVarint64(from, &tablet->epoch))
    return false;
  tablet->begin = begin;
  tablet->end = end;
  return IsRange(*tablet) && begin.size() <= kTabletEndBytesMax && end.size() <= kTabletEndBytesMax;
}

bool GetFlag(std::string_view* from, bool* flag) {
  if (from->empty() || static_cast<uint8_t>(from->front()) > 1) return false;
  *flag = from->front() != 0;
  from->remove_prefix(1);
  return true;
}

void PutFlag(bool flag, std::string* to) { to->push_back(flag ? '\1' : '\0'); }

void PutMark(const LogMark& mark, std::string* to) {
  PutVarint64(to, mark.lsn.epoch);
  PutVarint64(to, mark.lsn.seq);
  PutVarint64(to, static_cast<uint64_t>(mark.micros));
}

bool GetMark(std::string_view* from, LogMark* mark) {
  uint64_t epoch = 0;
  uint64_t micros = 0;
  if (!GetVarint64(from, &epoch) || epoch > UINT32_MAX || !GetVarint64(from, &mark->lsn.seq) ||
      !GetVarint64(from, &micros) || micros >= static_cast<uint64_t>(INT64_MAX))
    return false;
  mark->lsn.epoch = static_cast<uint32_t>(epoch);
  mark->micros = static_cast<int64_t>(micros);
  return true;
}

template <typename Move, typename GetMove>
bool GetMoves(std::string_view* from, std::map<uint64_t, Move>* moves, GetMove get) {
  uint64_t count = 0;
  if (!GetVarint64(from, &count)) return false;
  moves->clear();
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t job = 0;
    Move move{};
    if (!GetVarint64(from, &job) || !get(from, &move)) return false;
    if (!moves->empty() && job <= moves->rbegin()->first) return false;
    moves->emplace(job, std::move(move));
  }
  return true;
}

}  // namespace

const MoveOut* TabletMoves::FindOut(uint64_t job) const {
  const auto found = out_.find(job);
  return found == out_.end() ? nullptr : &found->second;
}

const MoveIn* TabletMoves::FindIn(uint64_t job) const {
  const auto found = in_.find(job);
  return found == in_.end() ? nullptr : &found->second;
}

uint64_t TabletMoves::OutOf(uint64_t table_id, const Tablet& range) const {
  return JobOf(out_, table_id, range);
}

uint64_t TabletMoves::InOf(uint64_t table_id, const Tablet& range) const {
  return JobOf(in_, table_id, range);
}

bool TabletMoves::TouchesTable(uint64_t table_id) const {
  const auto of_table = [table_id](const auto& move) { return move.second.table_id == table_id; };
  return std::any_of(out_.begin(), out_.end(), of_table) ||
         std::any_of(in_.begin(), in_.end(), of_table);
}

bool TabletMoves::Begin(uint64_t job, MoveOut move) {
  const bool may = !HasEnded(job) && !out_.contains(job) && !in_.contains(job) &&
                   out_.size() < kMovesMax && !move.given && IsRange(move.tablet) &&
                   OutOf(move.table_id, move.tablet) == 0;
  if (may) out_.emplace(job, std::move(move));
  return may;
}

bool TabletMoves::Give(uint64_t job) {
  const auto found = out_.find(job);
  if (found == out_.end() || found->second.given) return false;
  found->second.given = true;
  return true;
}

bool TabletMoves::Done(uint64_t job) {
  const auto found = out_.find(job);
  if (found == out_.end() || !found->second.given) return false;
  out_.erase(found);
  ended_.emplace(job, MoveEnd::kMoved);
  return true;
}

bool TabletMoves::Reclaim(uint64_t job) {
  const auto found = out_.find(job);
  if (found == out_.end() || !found->second.given) return false;
  out_.erase(found);
  ended_.emplace(job, MoveEnd::kCancelled);
  return true;
}

bool TabletMoves::End(uint64_t job, MoveEnd end) {
  if (HasEnded(job)) return false;
  out_.erase(job);
  in_.erase(job);
  ended_.emplace(job, end);
  return true;
}

bool TabletMoves::Await(uint64_t job, const MoveIn& move) {
  if (HasEnded(job) || out_.contains(job) || !IsRange(move.tablet)) return false;
  in_.try_emplace(job, move).first->second.binds = true;
  return true;
}

bool TabletMoves::Cancel(uint64_t job) {
  if (HasEnded(job)) return false;
  if (const MoveOut* const move = FindOut(job); move != nullptr && move->given) return false;
  out_.erase(job);
  in_.erase(job);
  ended_.emplace(job, MoveEnd::kCancelled);
  return true;
}

bool TabletMoves::Stage(uint64_t job, MoveIn move) {
  if (HasEnded(job) || out_.contains(job) || !IsRange(move.tablet)) return false;
  if (move.clear || move.parts != 0 || move.complete() || move.binds) return false;
  const auto found = in_.find(job);
  if (found != in_.end()) {
    const MoveIn& before = found->second;
    const bool same = before.table_id == move.table_id && before.tablet == move.tablet &&
                      before.from == move.from;
    if (!same || move.attempt <= before.attempt) return false;
    move.binds = before.binds;
  } else if (in_.size() >= kMovesMax || InOf(move.table_id, move.tablet) != 0) {
    return false;
  }
  in_[job] = std::move(move);
  return true;
}

bool TabletMoves::Clear(uint64_t job, uint64_t attempt) {
  const auto found = in_.find(job);
  if (found == in_.end() || found->second.attempt != attempt || found->second.clear) return false;
  found->second.clear = true;
  return true;
}

bool TabletMoves::Fill(uint64_t job, uint64_t attempt, uint64_t part, const LogMark& tail) {
  const auto found = in_.find(job);
  if (found == in_.end()) return false;
  MoveIn& move = found->second;
  const bool is_next = move.attempt == attempt && move.clear && part == move.parts + 1;
  // Behind the copy comes no more of it, and the log is followed forwards.
  const bool fits = tail.lsn == Lsn{} ? !move.complete() : move.tail.lsn.seq <= tail.lsn.seq;
  if (!is_next || !fits) return false;
  move.parts = part;
  move.tail = tail;
  move.binds = move.binds || move.complete();
  return true;
}

bool TabletMoves::Own(uint64_t job, uint64_t attempt, uint64_t parts) {
  const auto found = in_.find(job);
  if (found == in_.end()) return false;
  const MoveIn& move = found->second;
  if (move.attempt != attempt || move.parts != parts || !move.complete()) return false;
  in_.erase(found);
  ended_.emplace(job, MoveEnd::kMoved);
  return true;
}

bool TabletMoves::Raise(uint64_t floor) {
  if (floor <= floor_) return false;
  const auto goes_on = [floor](const auto& move) { return move.first <= floor; };
  if (std::any_of(out_.begin(), out_.end(), goes_on) ||
      std::any_of(in_.begin(), in_.end(), goes_on))
    return false;
  floor_ = floor;
  ended_.erase(ended_.begin(), ended_.upper_bound(floor));
  return true;
}

void TabletMoves::DropTable(uint64_t table_id) {
  std::erase_if(out_, [&](const auto& move) {
    if (move.second.table_id != table_id) return false;
    ended_.emplace(move.first, move.second.given ? MoveEnd::kMoved : MoveEnd::kCancelled);
    return true;
  });
  std::erase_if(in_, [&](const auto& move) {
    if (move.second.table_id != table_id) return false;
    ended_.emplace(move.first, MoveEnd::kCancelled);
    return true;
  });
}

void TabletMoves::Encode(std::string* to) const {
  PutVarint64(to, floor_);
  PutVarint64(to, out_.size());
  for (const auto& [job, move] : out_) {
    PutVarint64(to, job);
    EncodeMoveOut(move, to);
  }
  PutVarint64(to, in_.size());
  for (const auto& [job, move] : in_) {
    PutVarint64(to, job);
    EncodeMoveIn(move, to);
  }
  PutVarint64(to, ended_.size());
  for (const auto& [job, end] : ended_) {
    PutVarint64(to, job);
    PutFlag(end == MoveEnd::kMoved, to);
  }
}

bool TabletMoves::Decode(std::string_view* from) {
  *this = {};
  const auto get_end = [](std::string_view* bytes, MoveEnd* end) {
    bool moved = false;
    if (!GetFlag(bytes, &moved)) return false;
    *end = moved ? MoveEnd::kMoved : MoveEnd::kCancelled;
    return true;
  };
  return GetVarint64(from, &floor_) && GetMoves(from, &out_, DecodeMoveOut) &&
         GetMoves(from, &in_, DecodeMoveIn) && GetMoves(from, &ended_, get_end);
}

void EncodeMoveOut(const MoveOut& move, std::string* to) {
  PutVarint64(to, move.table_id);
  PutTablet(move.tablet, to);
  PutVarint64(to, move.to);
  PutFlag(move.given, to);
}

bool DecodeMoveOut(std::string_view* from, MoveOut* move) {
  return GetVarint64(from, &move->table_id) && GetTablet(from, &move->tablet) &&
         GetVarint64(from, &move->to) && GetFlag(from, &move->given);
}

void EncodeMoveIn(const MoveIn& move, std::string* to) {
  PutVarint64(to, move.table_id);
  PutTablet(move.tablet, to);
  PutVarint64(to, move.from);
  PutVarint64(to, move.attempt);
  PutFlag(move.clear, to);
  PutVarint64(to, move.parts);
  PutMark(move.tail, to);
  PutFlag(move.binds, to);
}

bool DecodeMoveIn(std::string_view* from, MoveIn* move) {
  return GetVarint64(from, &move->table_id) && GetTablet(from, &move->tablet) &&
         GetVarint64(from, &move->from) && GetVarint64(from, &move->attempt) &&
         GetFlag(from, &move->clear) && GetVarint64(from, &move->parts) &&
         GetMark(from, &move->tail) && GetFlag(from, &move->binds);
}

void EncodeMovePart(const MovePart& part, std::string* to) {
  PutVarint64(to, part.attempt);
  PutVarint64(to, part.part);
  PutMark(part.tail, to);
}

bool DecodeMovePart(std::string_view from, MovePart* part) {
  return GetVarint64(&from, &part->attempt) && GetVarint64(&from, &part->part) &&
         GetMark(&from, &part->tail) && from.empty();
}

Tablets::Pointer WithoutTablet(const Tablets& tablets, const Tablet& tablet) {
  std::vector<Tablet> list = tablets.list();
  const auto found = std::find(list.begin(), list.end(), tablet);
  if (found == list.end()) return nullptr;
  list.erase(found);
  return Tablets::Make(std::move(list));
}

Tablets::Pointer WithTablet(const Tablets& tablets, const Tablet& tablet) {
  std::vector<Tablet> list = tablets.list();
  const auto behind = std::find_if(list.begin(), list.end(), [&tablet](const Tablet& other) {
    return other.begin > tablet.begin;
  });
  list.insert(behind, tablet);
  return Tablets::Make(std::move(list));  // null where they overlap
}

}  // namespace cellar
