// CursorUses: when snapshots that cursors read were used last, as the director has heard. What
// nobody has used for as long as snapshot-cursor-timeout goes.
//
// No store and no clock.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

namespace cellar {

class CursorUses {
 public:
  void Note(uint64_t snapshot, int64_t now_micros) { used_[snapshot] = now_micros; }
  // Of a snapshot that is there; one that is not known is as good as used now: another director
  // may know more.
  bool IsStale(uint64_t snapshot, int64_t now_micros, int64_t timeout_micros) {
    const auto [used, is_new] = used_.try_emplace(snapshot, now_micros);
    return !is_new && now_micros - used->second > timeout_micros;
  }
  void KeepOnly(const std::function<bool(uint64_t)>& is_there) {
    std::erase_if(used_, [&](const auto& used) { return !is_there(used.first); });
  }

 private:
  std::map<uint64_t, int64_t> used_;
};

}  // namespace cellar
