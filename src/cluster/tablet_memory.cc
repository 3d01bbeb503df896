// See tablet_memory.h.
#include "cluster/tablet_memory.h"

#include <algorithm>

namespace cellar {

void TabletMemory::Clear() { *this = {}; }

void TabletMemory::BeginRound(int64_t now) {
  std::erase_if(moved_,
                [now](const auto& each) { return now - each.second.on_way_micros >= kRestMicros; });
  std::erase_if(told_, [now](const auto& each) { return now - each.second >= kRestMicros; });
  std::erase_if(refused_, [now](const auto& each) { return now - each.second >= kRefusedMicros; });
}

void TabletMemory::EndRound(int64_t now) {
  std::erase_if(quiet_, [now](const auto& each) { return each.second.seen_micros != now; });
}

bool TabletMemory::IsQuiet(const TabletSize* size, int64_t now, int64_t quiet_micros,
                           const Name& name) {
  Quiet& quiet = quiet_.try_emplace(name, Quiet{now, now, now}).first->second;
  quiet.seen_micros = now;
  if (size == nullptr) return false;
  if (size->load >= kQuietLoad || now - quiet.known_micros > kUnknownMicros)
    quiet.since_micros = now;
  quiet.known_micros = now;
  return size->load < kQuietLoad && now - quiet.since_micros >= quiet_micros;
}

// One that has not gone where it was to go takes what it is said to.
void TabletMemory::Fill(const TabletSize* size, bool loads, int64_t now, int64_t quiet_micros,
                        BalanceInput::Tablet* tablet) {
  const Name name = NameOf(*tablet);
  if (size != nullptr) {
    tablet->bytes = size->bytes;
    tablet->rows = size->rows;
    tablet->middle = size->middle;
    tablet->load = size->load;
    tablet->load_middle = size->load_middle;
    tablet->top_percent = size->top_percent;
  }
  tablet->quiet = IsQuiet(loads ? size : nullptr, now, quiet_micros, name);
  if (refused_.contains(name)) {
    tablet->middle.clear();
    tablet->load_middle.clear();
    tablet->quiet = false;
  }
  const auto found = moved_.find(name);
  if (found == moved_.end()) return;
  Moved& moved = found->second;
  if (tablet->moves) moved.on_way_micros = now;
  if (!tablet->moves && tablet->set != moved.to) {
    moved_.erase(found);
    return;
  }
  tablet->rests = moved.for_load;
  if (now - moved.on_way_micros < kRampMicros) tablet->load = std::max(tablet->load, moved.load);
}

void TabletMemory::NoteMove(const BalanceInput::Tablet& tablet, const BalanceStep& step,
                            int64_t now) {
  moved_[NameOf(tablet)] = {
      .to = step.to, .load = tablet.load, .on_way_micros = now, .for_load = step.for_load};
}

void TabletMemory::NoteSplit(const BalanceInput::Tablet& tablet) {
  if (const auto moved = moved_.find(NameOf(tablet)); moved != moved_.end())
    moved->second.load /= 2;
}

}  // namespace cellar
