// Services: what the commands share besides the data: the command table, configuration,
// subscriptions, counters. Owned by the server (one each), reached through Host::services().
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/os/load_meter.h"
#include "base/os/worker_pool.h"
#include "cluster/cluster_map.h"
#include "cluster/cluster_view.h"
#include "cluster/cursor_uses.h"
#include "cluster/cut_desk.h"
#include "cluster/cut_digests.h"
#include "cluster/director_desk.h"
#include "cluster/move_desk.h"
#include "cluster/move_jobs.h"
#include "cluster/move_trials.h"
#include "cluster/table_cuts.h"
#include "commands/acl/acl.h"
#include "commands/catalog/command_table.h"
#include "commands/config/config.h"
#include "commands/config/config_sources.h"
#include "commands/session/pubsub.h"
#include "commands/session/remote_calls.h"
#include "commands/session/server_stats.h"
#include "commands/session/slow_log.h"
#include "commands/session/table_events.h"
#include "commands/session/tablet_listeners.h"
#include "commands/session/tracking.h"
#include "commands/session/work_memory.h"
#include "heat/heat_map.h"
#include "heat/hot_keys.h"
#include "heat/load_samples.h"

namespace cellar {

struct CallPiece;
class FeedLook;
class TrackedSets;

struct Services {
  CommandTable commands;
  Config config;
  Acl acl{commands, config};
  ConfigSources config_sources;
  PubSub pubsub;
  TableEvents table_events;
  Tracking tracking;
  ServerStats stats;
  SlowLog slow_log;
  LatencyMonitor latency;
  HeatMap heat;
  HotKeys hot_keys;
  LoadSamples load_samples;
  ClusterMap cluster_map;
  MoveJobs move_jobs;
  ClusterView cluster_view;
  LoadMeter load;  // of the loop
  TabletListeners tablet_listeners;
  DirectorDesk* director{nullptr};
  MoveDesk* moves{nullptr};
  CutDesk* cuts{nullptr};  // null: this node is of no replica set
  CutListeners cut_listeners{};
  CutDigests cut_digests;
  CursorUses cursor_uses;  // at the director
  TableCuts table_cuts;
  MoveTrials move_trials;
  RemoteCalls* remote{nullptr};                               // null: no other set can be asked
  TrackedSets* tracked_sets{nullptr};                         // null: there are no others
  std::map<std::string, std::weak_ptr<FeedLook>> feed_looks;  // by what is waited for
  const CallPiece* piece{nullptr};  // what the command at hand is asked for alone; null: all
  WorkMemory work_memory;           // dies after the reads that have taken of it
  // Likewise, of what this node puts together of several sets. Who has taken of it waits for parts
  // that take of work_memory, here and elsewhere, and these wait for nobody who has: were both one,
  // all of it could be held by those who wait for each other.
  WorkMemory merge_memory;
  // Their threads are the only ones that commands work in beside the loop's.
  WorkerPool aggregators{"cellar-agg", WorkerPool::Pace::kSteady, Clock::System()};
  WorkerPool readers{"cellar-read", WorkerPool::Pace::kGiving, Clock::System()};
  size_t monitors{0};  // sessions in MONITOR
  std::string run_id;  // 40 hex digits, new at every start

  // Whether anybody is to be told of changes of rows (NotifyRow).
  bool has_row_listeners() const {
    return tracking.active() || (config.notify_flags & kNotifyTable) != 0;
  }
  // Whether anybody is to be told of any change at all.
  bool changes_are_heard() const {
    return tracking.active() ||
           (config.notify_flags & (kNotifyTable | kNotifyGeneric | kNotifyNew)) != 0;
  }
};

}  // namespace cellar
