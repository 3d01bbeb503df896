// See persistence_log.h.
#include "server/persistence_log.h"

#include <fmt/format.h>

#include "base/log.h"

namespace cellar {

bool PersistenceLog::IsNews(Matter* matter, const std::string& trouble, int64_t now_micros) {
  if (trouble == matter->trouble) return false;
  if (now_micros - matter->told_micros < kPauseMicros) return false;
  matter->trouble = trouble;
  matter->told_micros = now_micros;
  return true;
}

void PersistenceLog::Look(const JournalStats& stats, int64_t now_micros) {
  if (stats.saves > saves_) {
    Log(LogSeverity::kNotice,
        fmt::format("Snapshot written: {} bytes in {} s", stats.snapshot_bytes, stats.last_save_s));
  }
  saves_ = stats.saves;  // DEBUG RELOAD begins anew
  if (IsNews(&log_, stats.log_ok ? std::string() : stats.log_error, now_micros)) {
    if (stats.log_ok) {
      Log(LogSeverity::kNotice, "The log is written and has room again");
    } else {
      // There may be some room left: what is asked for is more than the next write needs.
      Log(LogSeverity::kWarning,
          "The log cannot grow; without room writes are answered MISCONF: " + stats.log_error);
    }
  }
  const std::string failure = stats.last_save_ok ? std::string() : stats.last_save_error;
  if (!IsNews(&snapshot_, failure, now_micros)) return;
  if (failure.empty()) {
    Log(LogSeverity::kNotice, "Snapshots can be written again");
  } else {
    Log(LogSeverity::kWarning,
        "The snapshot failed, the log keeps what it would have held: " + failure);
  }
}

}  // namespace cellar
