// See tail_cache.h.
#include "replica/links/tail_cache.h"

#include <algorithm>

#include "base/assert.h"
#include "store/format/log_format.h"

namespace cellar {

void TailCache::SetBytesMax(size_t bytes_max) { bytes_max_ = bytes_max; }

void TailCache::Restart(Lsn last) {
  chunks_.clear();
  bytes_ = 0;
  begin_ = end_ = last;
}

void TailCache::OnRecords(std::string_view records, Lsn last) {
  if (!voids_) {
    CELLAR_ASSERT(last >= end_);
    return Add(records, last);
  }
  // Up to each record that voids, and on from there.
  Lsn before = end_;
  size_t begin = 0;
  for (size_t at = 0; at < records.size();) {
    const RecordPlace place = PlaceOfRecord(records.substr(at));
    const bool voids = place.lsn.seq <= before.seq && place.lsn.epoch != before.epoch;
    if (voids) {
      if (at > begin) Add(records.substr(begin, at - begin), before);
      VoidFrom(place.lsn.seq);
      begin = at;
    }
    before = place.lsn;
    at += place.bytes;
  }
  CELLAR_ASSERT(before == last);
  if (begin < records.size()) Add(records.substr(begin), last);
}

void TailCache::VoidFrom(uint64_t seq) {
  CELLAR_ASSERT(seq <= end_.seq);
  while (!chunks_.empty() && chunks_.back().after.seq >= seq) {
    bytes_ -= chunks_.back().bytes.capacity();
    end_ = chunks_.back().after;
    chunks_.pop_back();
  }
  if (chunks_.empty()) {
    // The record before it is not here, and its epoch not known: nobody's position is this one.
    if (seq <= begin_.seq) begin_ = end_ = Lsn{0, seq - 1};
    return;
  }
  Chunk& chunk = chunks_.back();
  size_t at = 0;
  Lsn before = chunk.after;
  while (at < chunk.bytes.size()) {
    const RecordPlace place = PlaceOfRecord(std::string_view(chunk.bytes).substr(at));
    if (place.lsn.seq >= seq) break;
    before = place.lsn;
    at += place.bytes;
  }
  chunk.bytes.resize(at);
  chunk.last = end_ = before;
}

void TailCache::Add(std::string_view records, Lsn last) {
  if (chunks_.empty() || chunks_.back().bytes.size() + records.size() > kChunkBytes) {
    chunks_.push_back({.bytes = {}, .after = end_, .last = end_});
    chunks_.back().bytes.reserve(std::max(kChunkBytes, records.size()));
    bytes_ += chunks_.back().bytes.capacity();
  }
  chunks_.back().bytes.append(records);
  chunks_.back().last = end_ = last;
  while (chunks_.size() > 1 && bytes_ > bytes_max_) {
    bytes_ -= chunks_.front().bytes.capacity();
    begin_ = chunks_.front().last;
    chunks_.pop_front();
  }
}

std::optional<TailCache::Piece> TailCache::Behind(Lsn after, size_t bytes_max) const {
  if (after == end_) return Piece{{}, end_};
  if (after < begin_ || after > end_) return std::nullopt;
  const auto chunk = std::upper_bound(chunks_.begin(), chunks_.end(), after,
                                      [](Lsn lsn, const Chunk& c) { return lsn < c.last; });
  CELLAR_ASSERT(chunk != chunks_.end());
  const std::string_view bytes = chunk->bytes;
  // From record to record: the first one behind `after`, then the end of what is wanted.
  size_t begin = 0;
  Lsn before = chunk->after;
  while (before < after) {
    const RecordPlace place = PlaceOfRecord(bytes.substr(begin));
    begin += place.bytes;
    before = place.lsn;
  }
  if (before != after) return std::nullopt;
  // Claims and marks behind it have its number and are of no use elsewhere.
  for (;;) {
    const RecordPlace place = PlaceOfRecord(bytes.substr(begin));
    if (place.lsn != after) break;
    begin += place.bytes;
  }
  if (bytes.size() - begin <= bytes_max) return Piece{bytes.substr(begin), chunk->last};
  const RecordPlace end = PlaceOfRecords(bytes.substr(begin), bytes_max);
  return Piece{bytes.substr(begin, end.bytes), end.lsn};
}

}  // namespace cellar
