// StoreOptions: how a store keeps what it holds, and what it refuses. The server makes them of its
// configuration, libcellar of its caller's.
#pragma once

#include <cstdint>

#include "engine/state/snapshot_set.h"
#include "store/history/archive.h"
#include "store/history/backup.h"
#include "store/history/feed_log.h"
#include "store/journal/journal.h"

namespace cellar {

struct StoreOptions {
  JournalOptions journal;
  uint64_t value_bytes_max{64ULL << 20};               // max-value-bytes
  int64_t future_max_micros{0};                        // ts-future-max
  int64_t snapshot_cursor_timeout_micros{60'000'000};  // snapshot-cursor-timeout
  uint64_t log_keep_bytes{kLogKeepBytesDefault};       // log-keep-bytes
  int64_t feed_sync_micros{50'000};                    // feed-sync
  uint64_t snapshots_max{kSnapshotsMaxDefault};        // snapshots-max
  int64_t drop_keep_micros{0};                         // drop-keep
  BackupOptions backup;
  ArchiveOptions archive;
  uint64_t seed{0};       // of SAMPLE and sample()
  bool following{false};  // it is a follower's from the start: nothing is added to the log
};

}  // namespace cellar
