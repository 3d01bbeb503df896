// See tail_cache.h.
#include "replica/tail_cache.h"

#include <algorithm>

#include "base/assert.h"
#include "store/log_format.h"

namespace cellar {

void TailCache::SetBytesMax(size_t bytes_max) { bytes_max_ = bytes_max; }

void TailCache::Restart(Lsn last) {
  chunks_.clear();
  bytes_ = 0;
  begin_ = end_ = last;
}

void TailCache::OnRecords(std::string_view records, Lsn last) {
  CELLAR_ASSERT(last >= end_);
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
  if (bytes.size() - begin <= bytes_max) return Piece{bytes.substr(begin), chunk->last};
  size_t end = begin;
  while (end < bytes.size() && (end == begin || end - begin < bytes_max)) {
    const RecordPlace place = PlaceOfRecord(bytes.substr(end));
    end += place.bytes;
    before = place.lsn;
  }
  return Piece{bytes.substr(begin, end - begin), before};
}

}  // namespace cellar
