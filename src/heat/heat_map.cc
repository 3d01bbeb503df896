// See heat_map.h.
// Counting comes first; then how ranges are cut, how minutes become frames and grow old, and how
// memory stays within its bound.
#include "heat/heat_map.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "engine/table/row_split.h"
#include "engine/table/table.h"
#include "store/store.h"

namespace cellar {
namespace {

// A node of the map, and what the allocator rounds up.
constexpr size_t kTableOverheadBytes{96};

uint64_t TableBytes(const Table& table) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < table.groups(); ++i) bytes += table.tree(i).payload_bytes();
  return bytes;
}

int64_t FloorTo(int64_t minute, int64_t step) { return minute / step * step; }

// What a string takes beside itself; short ones stand inside.
size_t HeapBytes(const std::string& text) {
  constexpr size_t kInside{15};
  return text.capacity() > kInside ? text.capacity() + 1 : 0;
}

}  // namespace

bool HeatMap::TailKeys::Note(std::string_view key) {
  const size_t before = memory_bytes();
  key = key.substr(0, kKeyBytesMax);
  if (!is_known || key < low) low = key;
  if (!is_known || key > high) high = key;
  is_known = true;
  return memory_bytes() > before;
}

size_t HeatMap::TailKeys::memory_bytes() const { return HeapBytes(low) + HeapBytes(high); }

void HeatMap::TailKeys::Clip(const HeatCut& in, HeatPlaces* places) const {
  if (is_known) {
    places->ClipLast(in, low, is_open ? nullptr : &high);
  } else {
    places->UnclipLast();
  }
}

size_t HeatMap::Frame::memory_bytes() const { return HeapBytes(packed) + tail.memory_bytes(); }

HeatPlaces HeatMap::PlacesOf(const HeatCut& from, const TailKeys& tail, const HeatCut& to) {
  HeatPlaces places(from, to);
  tail.Clip(to, &places);
  return places;
}

HeatMap::HeatMap() = default;
HeatMap::~HeatMap() = default;

void HeatMap::Configure(uint64_t memory_bytes_max, uint64_t sample, uint64_t seed) {
  CELLAR_ASSERT(sample > 0);
  memory_bytes_max_ = memory_bytes_max;
  sample_ = sample;
  random_ = Random(seed);
  examined_left_ = static_cast<int64_t>(NextDistance() * kExaminedSampleFactor);
  if (memory_bytes_max_ == 0) {
    last_id_ = 0;
    last_ = nullptr;
    tables_.clear();
    table_bytes_ = 0;
    CELLAR_ASSERT(cut_bytes_ == 0);
  }
  // Some of many tables are no longer counted.
  (void)MakeRoomFor(nullptr);
}

uint64_t HeatMap::TakeExaminedNow() {
  CELLAR_ASSERT(examined_left_ <= 0);
  uint64_t rows = 0;
  while (examined_left_ <= 0) {
    examined_left_ += static_cast<int64_t>(NextDistance() * kExaminedSampleFactor);
    rows += sample_ * kExaminedSampleFactor;
  }
  return enabled() ? rows : 0;
}

// --- counting

// Most accesses are of the table of the one before, which is remembered by its id. Whatever is due
// for a table, a new minute or new ranges, is done here.
HeatMap::TableHeat* HeatMap::Find(const Table& table, int64_t now_micros) {
  if (!enabled()) return nullptr;
  CELLAR_ASSERT(table.id() != 0);
  const int64_t minute = now_micros / kMinuteMicros;
  minute_ = minute;
  if (table.id() != last_id_) {
    auto found = tables_.find(table.id());
    if (found == tables_.end()) {
      auto cut = std::make_shared<const HeatCut>(std::vector<std::string>(1), &cut_bytes_);
      found = tables_.emplace(table.id(), TableHeat(std::move(cut))).first;
      found->second.generation = ++generation_;
      found->second.live_minute = minute;
      Cut(table, &found->second, now_micros);
      if (!MakeRoom()) {
        Forget(table.id());
        return nullptr;
      }
    }
    last_id_ = table.id();
    last_ = &found->second;
  }
  TableHeat* const heat = last_;
  if (heat->live_minute != minute) EndMinute(heat, minute);
  const uint64_t bytes = TableBytes(table);
  if (bytes > 2 * heat->cut_table_bytes || CutIsOld(*heat, bytes, now_micros, kCutMicrosMin)) {
    Cut(table, heat, now_micros);
  }
  if (memory_bytes() <= memory_bytes_max_) [[likely]]
    return heat;
  Forget(table.id());
  return nullptr;
}

bool HeatMap::CutIsOld(const TableHeat& heat, uint64_t table_bytes, int64_t now_micros,
                       int64_t age_micros) {
  if (now_micros >= heat.cut_micros && now_micros - heat.cut_micros < age_micros) return false;
  const uint64_t before = heat.cut_table_bytes;
  return table_bytes > before + before / 8 || table_bytes + before / 8 < before;
}

// The tail matters only for the last range, which has no end.
void HeatMap::Add(const Table& table, std::string_view row_key, const HeatAmounts& amounts,
                  int64_t now_micros) {
  TableHeat* const heat = Find(table, now_micros);
  if (heat == nullptr) return;
  CELLAR_DEBUG_ASSERT(heat->live.ranges() == heat->cut->size());
  const size_t range = heat->cut->RangeOf(row_key);
  heat->live.Add(range, amounts);
  heat->live_counts = true;
  heat->total.reads += amounts.reads;
  heat->total.writes += amounts.writes;
  heat->total.bytes += amounts.bytes;
  if (range + 1 == heat->cut->size() && heat->tail.Note(row_key)) HasGrown(table, heat);
}

void HeatMap::AddSpan(const Table& table, std::string_view first,
                      std::optional<std::string_view> last, const HeatAmounts& amounts,
                      int64_t now_micros) {
  TableHeat* const heat = Find(table, now_micros);
  if (heat == nullptr) return;
  // Ranges share what there was, so they must be about equal.
  if (CutIsOld(*heat, TableBytes(table), now_micros, kSpanCutMicrosMin)) {
    Cut(table, heat, now_micros);
  }
  const HeatCut& cut = *heat->cut;
  // How far the last range, which has no end, is used is remembered too.
  const std::string_view tail = cut.keys().back();
  const size_t tail_bytes = heat->tail.memory_bytes();
  (void)heat->tail.Note(std::max(first, tail));
  (void)heat->tail.Note(std::max(last.value_or(tail), tail));
  heat->tail.is_open = heat->tail.is_open || !last;
  heat->live.AddSpan(cut.PlaceOf(first),
                     last ? cut.PlaceOf(*last) : static_cast<double>(cut.size()), amounts);
  heat->live_counts = true;
  heat->total.reads += amounts.reads;
  heat->total.writes += amounts.writes;
  heat->total.bytes += amounts.bytes;
  if (heat->tail.memory_bytes() > tail_bytes) HasGrown(table, heat);
}

void HeatMap::NoteLarge(const Table& table, std::string_view row_key, uint64_t bytes) {
  TableHeat* const heat = Find(table, minute_ * kMinuteMicros);
  if (heat == nullptr) return;
  std::string scratch;
  const std::string_view text = table.schema().key.TextOf(row_key, &scratch);
  for (LargeRow& row : heat->large) {
    if (row.row == text) {
      row.bytes = bytes;
      return;
    }
  }
  if (heat->large.size() == kLargeRowsMax) heat->large.erase(heat->large.begin());
  heat->large.push_back({std::string(text.substr(0, kKeyBytesMax)), bytes});
  HasGrown(table, heat);
}

HeatAmounts HeatMap::TotalOf(const Table& table) const {
  const auto found = tables_.find(table.id());
  return found == tables_.end() ? HeatAmounts{} : found->second.total;
}

// --- ranges

// Keys that divide the table into ranges of about equal bytes, by the shape of its tree. On the way
// rows are found that fill several parts by themselves: those are the large ones that HEAT names.
// With several groups no tree has the whole row, and they are found when they are read.
std::vector<std::string> HeatMap::CutKeys(const Table& table, TableHeat* heat) const {
  const Order& order = table.schema().key;
  std::vector<std::string> rows;
  if (table.groups() == 1) {
    rows = table.tree(0).SplitKeys(heat->ranges_max);
    const double part =
        static_cast<double>(table.tree(0).payload_bytes()) / static_cast<double>(rows.size() + 1);
    size_t same = 0;  // so many parts lie whole in the last row
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i].resize(order.EncodedSize(rows[i]));
      same = i > 0 && rows[i] == rows[i - 1] ? same + 1 : 0;
      const auto bytes = static_cast<uint64_t>(part * static_cast<double>(same));
      const bool ends = i + 1 == rows.size() || !rows[i + 1].starts_with(rows[i]);
      if (!ends || bytes < kLargeRowBytes || heat->large.size() == kLargeRowsMax) continue;
      std::string scratch;
      const std::string_view text = order.TextOf(rows[i], &scratch);
      heat->large.push_back({std::string(text.substr(0, kKeyBytesMax)), bytes});
    }
  } else {
    rows = SplitRowKeys(table, heat->ranges_max);
  }
  std::vector<std::string> keys(1);
  for (std::string& row : rows) {
    if (row.size() > kKeyBytesMax) {
      // Its beginning divides as well where that is a key too.
      std::string text;
      if (!order.is_plain_bytes() || !order.Decode(row, &text)) continue;
      text.resize(std::min(text.size(), kKeyBytesMax / 2));
      row.clear();
      if (!order.Encode(text, &row).ok()) continue;
    }
    if (row > keys.back()) keys.push_back(std::move(row));
  }
  return keys;
}

// What has been counted in this minute moves to the new ranges; frames keep the cut that they were
// counted with.
void HeatMap::UseCut(HeatCutPointer cut, TableHeat* heat) {
  HeatCounts live(cut->size());
  if (heat->live_counts) live.AddMapped(heat->live, PlacesOf(*heat->cut, heat->tail, *cut));
  heat->tail.low = cut->keys().back();
  heat->tail.high = std::max(heat->tail.high, heat->tail.low);
  heat->live = std::move(live);
  heat->cut = std::move(cut);
  Recount(heat);
}

void HeatMap::Cut(const Table& table, TableHeat* heat, int64_t now_micros) {
  heat->cut_micros = now_micros;
  heat->cut_table_bytes = TableBytes(table);
  if (table.groups() == 1) heat->large.clear();  // found anew
  std::vector<std::string> keys = CutKeys(table, heat);
  if (keys == heat->cut->keys()) {
    Recount(heat);
  } else {
    UseCut(std::make_shared<const HeatCut>(std::move(keys), &cut_bytes_), heat);
  }
  // One that is being made may have to go itself.
  if (last_id_ == table.id()) (void)MakeRoomFor(heat);
}

void HeatMap::CutIfChanged(const Table& table, TableHeat* heat, int64_t now_micros) {
  if (heat->cut_table_bytes != TableBytes(table)) Cut(table, heat, now_micros);
}

// --- time

void HeatMap::PushFrame(TableHeat* heat, Frame frame) {
  CELLAR_ASSERT(frame.minutes > 0);
  CELLAR_ASSERT(frame.cut != nullptr);
  heat->frame_bytes += frame.memory_bytes();
  heat->frames.push_back(std::move(frame));
}

// Packs the minute that is over into a frame, if anything was counted, and makes what is old
// coarser.
void HeatMap::EndMinute(TableHeat* heat, int64_t minute) {
  CELLAR_ASSERT(minute != heat->live_minute);
  if (heat->live_counts) {
    PushFrame(heat, {heat->live_minute, 1, heat->cut, heat->live.Packed(), std::move(heat->tail)});
    heat->live = HeatCounts(heat->cut->size());
    heat->live_counts = false;
  }
  heat->tail = {};
  heat->live_minute = minute;
  Age(heat, minute);
  Recount(heat);
  (void)MakeRoomFor(heat);
}

// Fourteen days are kept. A day's minutes are joined when a quarter of an hour ends, not minute by
// minute.
void HeatMap::Age(TableHeat* heat, int64_t minute) {
  size_t dropped = 0;
  while (dropped < heat->frames.size() &&
         heat->frames[dropped].minute + heat->frames[dropped].minutes <= minute - kKept) {
    ++dropped;
  }
  DropOldest(heat, dropped);
  if (!heat->frames.empty() && minute % kCoarseMinutes == 0) JoinMinutes(heat, minute - kDay);
}

void HeatMap::DropOldest(TableHeat* heat, size_t frames) {
  CELLAR_ASSERT(frames <= heat->frames.size());
  if (frames == 0) return;
  heat->generation = ++generation_;
  heat->frames.erase(heat->frames.begin(),
                     heat->frames.begin() + static_cast<std::ptrdiff_t>(frames));
  if (heat->frames.empty())
    heat->frames = {};
  else if (heat->frames.size() < heat->frames.capacity() / 2)
    heat->frames.shrink_to_fit();
  // Summed up anew: a string that moves down may keep the memory of the one that stood there, so
  // those that are left need not take what they took before.
  heat->frame_bytes = 0;
  for (const Frame& frame : heat->frames) heat->frame_bytes += frame.memory_bytes();
}

// Makes one frame of all minutes of a quarter of an hour that lies wholly before `before_minute`.
// They may have different cuts: the newest one is kept, and the counts of the others are mapped to
// it.
void HeatMap::JoinMinutes(TableHeat* heat, int64_t before_minute) {
  const auto joins = [before_minute](const Frame& frame) {
    return frame.minutes == 1 &&
           FloorTo(frame.minute, kCoarseMinutes) + kCoarseMinutes <= before_minute;
  };
  if (std::none_of(heat->frames.begin(), heat->frames.end(), joins)) return;
  heat->generation = ++generation_;
  std::vector<Frame> frames = std::exchange(heat->frames, {});
  heat->frame_bytes = 0;
  for (size_t i = 0; i < frames.size();) {
    if (!joins(frames[i])) {
      PushFrame(heat, std::move(frames[i++]));
      continue;
    }
    const int64_t quarter = FloorTo(frames[i].minute, kCoarseMinutes);
    size_t end = i;
    while (end < frames.size() && joins(frames[end]) &&
           FloorTo(frames[end].minute, kCoarseMinutes) == quarter) {
      ++end;
    }
    const HeatCutPointer cut = frames[end - 1].cut;
    HeatCounts counts(cut->size());
    TailKeys tail;
    tail.Note(cut->keys().back());
    for (; i < end; ++i) {
      const TailKeys& of = frames[i].tail;
      counts.AddPacked(frames[i].packed, PlacesOf(*frames[i].cut, of, *cut));
      tail.is_open = tail.is_open || of.is_open;
      tail.high = std::max(tail.high, of.high);
    }
    PushFrame(heat, {quarter, kCoarseMinutes, cut, counts.Packed(), std::move(tail)});
  }
  CELLAR_ASSERT(heat->frames.size() <= frames.size());
}

// Frames older than an hour lose resolution: to at most `ranges_max` ranges. Frames that shared a
// cut share the coarser one too.
bool HeatMap::JoinRanges(TableHeat* heat, size_t ranges_max) {
  CELLAR_ASSERT(ranges_max > 0);
  bool joined = false;
  HeatCutPointer from;  // many frames have the same one
  HeatCutPointer to;
  std::optional<HeatPlaces> places;
  heat->frame_bytes = 0;
  for (Frame& frame : heat->frames) {
    if (frame.cut->size() > ranges_max && frame.minute + frame.minutes <= minute_ - kHour) {
      if (frame.cut != from) {
        from = frame.cut;
        to = std::make_shared<const HeatCut>(from->Fewer(ranges_max), &cut_bytes_);
        places.emplace(*from, *to);
      }
      frame.tail.Clip(*to, &*places);
      HeatCounts counts(to->size());
      counts.AddPacked(frame.packed, *places);
      frame.packed = counts.Packed();
      frame.cut = to;
      frame.tail.low = to->keys().back();
      joined = true;
    }
    heat->frame_bytes += frame.memory_bytes();
  }
  if (joined) heat->generation = ++generation_;
  return joined;
}

// A few tables a tick, in the order of their ids, so that a thousand idle tables cost nothing
// noticeable.
void HeatMap::Tick(const Store& store, int64_t now_micros) {
  minute_ = now_micros / kMinuteMicros;
  if (store.lineage() != lineage_) {  // ids may stand for other tables now
    lineage_ = store.lineage();
    while (!tables_.empty()) Forget(tables_.begin()->first);
  }
  for (size_t i = 0; i < kTablesPerTick && !tables_.empty(); ++i) {
    auto at = tables_.upper_bound(tick_id_);
    if (at == tables_.end()) {
      tick_id_ = 0;
      return;
    }
    tick_id_ = at->first;
    TableHeat& heat = at->second;
    if (heat.live_minute != minute_) EndMinute(&heat, minute_);
    if (memory_bytes() > memory_bytes_max_) {
      Forget(at->first);
      continue;
    }
    if (memory_bytes() < memory_bytes_max_ / 2) heat.ranges_max = kRangesMax;
    if (store.TableById(at->first) == nullptr) Forget(at->first);
  }
}

// --- memory

void HeatMap::Recount(TableHeat* heat) {
  CELLAR_ASSERT(table_bytes_ >= heat->counted_bytes);
  table_bytes_ -= heat->counted_bytes;
  heat->counted_bytes = sizeof(TableHeat) + kTableOverheadBytes + heat->live.memory_bytes() +
                        heat->frame_bytes + heat->frames.capacity() * sizeof(Frame) +
                        heat->tail.memory_bytes() +
                        heat->large.capacity() * (sizeof(LargeRow) + kKeyBytesMax);
  table_bytes_ += heat->counted_bytes;
}

void HeatMap::Forget(uint64_t table_id) {
  const auto found = tables_.find(table_id);
  CELLAR_ASSERT(found != tables_.end());
  CELLAR_ASSERT(table_bytes_ >= found->second.counted_bytes);
  table_bytes_ -= found->second.counted_bytes;
  if (last_id_ == table_id) last_id_ = 0;
  tables_.erase(found);
}

bool HeatMap::MakeRoom() {
  while (memory_bytes() > memory_bytes_max_) {
    if (!CoarsenLargest()) return false;
  }
  return true;
}

// The table at hand stays, so that who has found it may go on. Of the others those go that came
// last.
bool HeatMap::MakeRoomFor(TableHeat* heat) {
  while (!MakeRoom()) {
    auto last = tables_.rbegin();
    if (last != tables_.rend() && &last->second == heat) ++last;
    if (last == tables_.rend()) return false;
    Forget(last->first);
  }
  return true;
}

void HeatMap::HasGrown(const Table& table, TableHeat* heat) {
  Recount(heat);
  if (!MakeRoomFor(heat)) Forget(table.id());
}

// One step on the way to less memory, by the table that takes most. False: nothing can be made
// smaller any more.
bool HeatMap::CoarsenLargest() {
  TableHeat* largest = nullptr;
  for (auto& [id, heat] : tables_) {
    if (largest == nullptr || heat.frame_bytes > largest->frame_bytes) largest = &heat;
  }
  if (largest == nullptr) return false;
  if (!largest->frames.empty()) {
    Coarsen(largest);
    return true;
  }
  // Nothing is kept but what is being counted.
  for (auto& [id, heat] : tables_) {
    if (heat.cut->size() > largest->cut->size()) largest = &heat;
  }
  if (largest->cut->size() == 1) return false;
  largest->ranges_max = largest->cut->size() / 2;
  UseCut(std::make_shared<const HeatCut>(largest->cut->Fewer(largest->ranges_max), &cut_bytes_),
         largest);
  return true;
}

void HeatMap::Coarsen(TableHeat* heat) {
  const size_t frames = heat->frames.size();
  // One measure at a time, the mildest that still changes anything.
  JoinMinutes(heat, minute_ - kHour);
  if (heat->frames.size() == frames && !JoinRanges(heat, kCoarseRanges) &&
      !JoinRanges(heat, kCoarsestRanges)) {
    // A quarter at once: one by one they would be moved each time.
    DropOldest(heat, frames / 4 + 1);
  }
  Recount(heat);
}

}  // namespace cellar
