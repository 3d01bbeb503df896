// What INFO and MEMORY show of the layers below and around: plain figures that the host collects.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cellar/lsn.h"

namespace cellar {

// "epoch:seq".
inline std::string LsnText(Lsn lsn) {
  return std::to_string(lsn.epoch) + ':' + std::to_string(lsn.seq);
}

// Adds up: used = startup + data + clients + links + tail + log buffer + prepared.
struct MemoryFigures {
  uint64_t used_bytes{0};
  uint64_t startup_bytes{0};  // of the process before there was any data
  uint64_t data_bytes{0};     // trees of all tables
  uint64_t held_bytes{0};     // of it, what named snapshots keep and no table uses
  uint64_t clients_bytes{0};
  // Of clients and links, what commands that are passed on hold, both ways.
  uint64_t command_links_bytes{0};
  uint64_t links_bytes{0};  // connections to other nodes, and what has come and is not applied
  uint64_t tail_bytes{0};   // of the log, for followers
  uint64_t log_buffer_bytes{0};
  uint64_t prepared_bytes{0};  // got ahead for trees that grow, or about to be given back
  uint64_t resident_bytes{0};
  uint64_t system_bytes{0};
  std::string_view allocator{"libc"};
  bool compacting{false};
};

struct KeyspaceFigures {
  std::string name;
  uint64_t tables{0};
  uint64_t rows{0};
  uint64_t cells{0};
  uint64_t bytes{0};
};

struct DataFigures {
  uint64_t tables{0};
  uint64_t rows{0};
  uint64_t cells{0};
  uint64_t bytes{0};
  uint64_t reclaimed_cells{0};
  // Cells that came with a TS of the client's own which is most likely a mistake.
  uint64_t cells_in_future{0};
  uint64_t cells_dead_on_arrival{0};
  uint64_t cells_not_in_micros{0};
};

struct PersistenceFigures {
  bool log_enabled{false};
  bool log_switch_waits{false};  // appendonly has been set, and waits for a snapshot to end
  uint64_t changes_since_save{0};
  bool save_in_progress{false};
  int64_t last_save_unix_s{0};
  bool last_save_ok{true};
  std::string last_save_error;  // why last_save_ok is false
  int64_t last_save_s{-1};
  int64_t current_save_s{-1};
  uint64_t saves{0};
  uint64_t snapshots{0};  // on disk
  uint64_t snapshots_bytes{0};
  uint64_t save_keys_done{0};
  uint64_t save_keys_total{0};
  uint64_t loaded_cells{0};
  uint64_t log_bytes{0};
  uint64_t log_bytes_retained{0};  // of the log alone, with what is kept for followers
  uint64_t log_bytes_appended{0};
  uint64_t base_bytes{0};
  uint64_t buffer_bytes{0};
  uint64_t log_segments{0};
  bool sync_in_progress{false};
  uint64_t syncs{0};
  uint64_t delayed_syncs{0};
  bool log_ok{true};
  bool log_room_ok{true};
  uint64_t log_room_bytes{0};
  std::string log_error;
  uint64_t log_failures{0};
  std::string last_lsn{"0:0"};  // epoch:seq
  std::string durable_lsn{"0:0"};
  std::string backup_state{"idle"};
  std::string backup_error;
  bool archives{false};
  std::string archive_error;  // of the last attempt
  uint64_t archive_lag_bytes{0};
  uint64_t archive_bytes{0};
  uint64_t archive_files{0};
  uint64_t archive_gaps{0};
  int64_t loading_start_unix_s{0};
  uint64_t loading_total_bytes{0};
  uint64_t loading_done_bytes{0};
};

// Commands that are passed on between the nodes of a replica set. The first four are levels.
struct ClusterFigures {
  size_t links{0};
  size_t channels{0};       // of other nodes' clients, here
  size_t calls_waiting{0};  // sent on, no answer yet: clients
  size_t calls_held{0};     // to be sent on, or behind what was
  uint64_t calls_out{0};
  uint64_t calls_in{0};
  uint64_t calls_bounced{0};       // calls that a leader sent back which was one no more
  uint64_t calls_retried{0};       // clients some of whose calls were asked again
  uint64_t connections_closed{0};  // since nobody knew what became of a write
};

}  // namespace cellar
