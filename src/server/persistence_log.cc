// See persistence_log.h.
#include "server/persistence_log.h"

#include <fmt/format.h>

#include "base/os/log.h"

namespace cellar {
namespace {

// What is wrong with the log; empty if nothing is.
std::string LogTrouble(const JournalStats& stats) {
  if (stats.log_ok && stats.log_room_ok) return {};
  std::string text = stats.log_room_ok ? "The log cannot be written; " : "The log cannot grow; ";
  text += stats.log_ok ? "once the space left is used up, writes will be refused with MISCONF: "
                       : "writes are refused with MISCONF: ";
  return text + stats.log_error;
}

}  // namespace

bool PersistenceLog::HasChanged(Topic* topic, const std::string& trouble, int64_t now_micros) {
  if (trouble == topic->trouble) return false;
  if (now_micros - topic->told_micros < kPauseMicros) return false;
  topic->trouble = trouble;
  topic->told_micros = now_micros;
  return true;
}

void PersistenceLog::Look(const JournalStats& stats, int64_t now_micros) {
  if (stats.saves > saves_) {
    Log(LogSeverity::kNotice,
        fmt::format("Snapshot written: {} bytes in {} s", stats.snapshot_bytes, stats.last_save_s));
  }
  saves_ = stats.saves;  // DEBUG RELOAD begins anew
  const std::string trouble = LogTrouble(stats);
  if (HasChanged(&log_, trouble, now_micros)) {
    if (trouble.empty()) {
      Log(LogSeverity::kNotice, "The log can be written and has space again");
    } else {
      Log(LogSeverity::kWarning, trouble);
    }
  }
  const std::string failure = stats.last_save_ok ? std::string() : stats.last_save_error;
  if (!HasChanged(&snapshot_, failure, now_micros)) return;
  if (failure.empty()) {
    Log(LogSeverity::kNotice, "Snapshots can be written again");
  } else {
    Log(LogSeverity::kWarning,
        "The snapshot failed; the log keeps what it would have held: " + failure);
  }
}

}  // namespace cellar
