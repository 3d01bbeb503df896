// See entry_log.h.
#include "replica/set/entry_log.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/assert.h"

namespace cellar {

std::optional<EntryLog> EntryLog::Of(const LogShape& shape) {
  EntryLog log;
  SetMembers members;
  if (!shape.snapshot_members.empty() && !DecodeMembers(shape.snapshot_members, &members))
    return std::nullopt;
  log.Restart(shape.snapshot, std::move(members));
  auto begin = shape.begins.begin();
  auto named = shape.named.begin();
  uint32_t term = 0;
  for (uint64_t i = shape.snapshot.seq + 1; i <= shape.last.seq; ++i) {
    if (begin != shape.begins.end() && begin->seq == i) term = (begin++)->epoch;
    const bool names = named != shape.named.end() && named->lsn.seq == i;
    if (!log.Append({term, i}, names ? RecordKind::kMembers : RecordKind::kCommand,
                    names ? std::string_view(named->payload) : std::string_view()))
      return std::nullopt;
    if (names) ++named;
  }
  CELLAR_ASSERT(log.last() == shape.last);
  return log;
}

void EntryLog::Restart(Lsn snapshot, SetMembers members) {
  runs_.clear();
  named_.clear();
  first_ = snapshot.seq + 1;
  last_ = snapshot_ = snapshot;
  before_ = std::move(members);
}

bool EntryLog::Append(Lsn lsn, RecordKind kind, std::string_view payload) {
  CELLAR_ASSERT(lsn.seq <= last_.seq + 1);
  CELLAR_ASSERT(lsn.seq > snapshot_.seq);
  CELLAR_ASSERT(lsn.epoch >= TermOf(lsn.seq - 1));
  SetMembers members;
  if (kind == RecordKind::kMembers &&
      (!DecodeMembers(payload, &members) || members.index != lsn.seq))
    return false;
  const bool voids = lsn.seq <= last_.seq;
  while (!runs_.empty() && runs_.back().first >= lsn.seq) runs_.pop_back();
  named_.erase(named_.lower_bound(lsn.seq), named_.end());
  if (runs_.empty()) first_ = lsn.seq;
  ++appended_;
  if (runs_.empty() || voids || runs_.back().term != lsn.epoch)
    runs_.push_back({lsn.seq, lsn.epoch, appended_});
  if (kind == RecordKind::kMembers) named_.emplace(lsn.seq, std::move(members));
  last_ = lsn;
  return true;
}

void EntryLog::TakeSnapshot(Lsn snapshot, uint64_t first) {
  CELLAR_ASSERT(TermOf(snapshot.seq) == snapshot.epoch);
  CELLAR_ASSERT(first >= first_ && first <= snapshot.seq + 1);
  snapshot_ = snapshot;
  while (runs_.size() > 1 && runs_[1].first <= first) runs_.erase(runs_.begin());
  if (first > last_.seq) runs_.clear();
  if (!runs_.empty() && runs_.front().first < first) {
    runs_.front().ordinal += first - runs_.front().first;
    runs_.front().first = first;
  }
  first_ = first;
  while (!named_.empty() && named_.begin()->first < first) {
    before_ = std::move(named_.begin()->second);
    named_.erase(named_.begin());
  }
}

uint32_t EntryLog::TermOf(uint64_t index) const {
  if (index >= first_ && index <= last_.seq) {
    const auto behind = std::upper_bound(runs_.begin(), runs_.end(), index,
                                         [](uint64_t i, const Run& run) { return i < run.first; });
    CELLAR_ASSERT(behind != runs_.begin());
    return std::prev(behind)->term;
  }
  return index == snapshot_.seq ? snapshot_.epoch : 0;
}

uint64_t EntryLog::DurableIndex(uint64_t appended) const {
  uint64_t end = last_.seq;  // of the run looked at
  for (auto run = runs_.rbegin(); run != runs_.rend(); ++run) {
    if (run->ordinal <= appended) return std::min(end, run->first + (appended - run->ordinal));
    end = run->first - 1;
  }
  return std::max(first_ - 1, snapshot_.seq);
}

const SetMembers& EntryLog::MembersAt(uint64_t index) const {
  const auto behind = named_.upper_bound(index);
  return behind == named_.begin() ? before_ : std::prev(behind)->second;
}

}  // namespace cellar
