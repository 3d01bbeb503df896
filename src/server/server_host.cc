// What commands ask of the process around them: see commands/session/host.h.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#ifdef CELLAR_MIMALLOC
#include <mimalloc.h>
#else
#include <malloc.h>
#endif

#include "base/assert.h"
#include "base/os/file.h"
#include "base/os/log.h"
#include "btree/nodes/arena.h"
#include "commands/clients/acl_sessions.h"
#include "commands/clients/set_users.h"
#include "engine/keys/compression.h"
#include "replica/set_node.h"
#include "server/net/descriptors.h"
#include "server/server.h"
#include "server/store_config.h"
#include "store/format/manifest.h"
#include "store/requests.h"

namespace cellar {
namespace {

// Second field of /proc/self/statm: pages in memory.
uint64_t ResidentBytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  unsigned long long size = 0;
  unsigned long long resident = 0;
  const int fields = std::fscanf(file, "%llu %llu", &size, &resident);
  (void)std::fclose(file);
  return fields == 2 ? resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) : 0;
}

}  // namespace

Lsn Server::released_lsn() const {
  if (const SetNode* const set = replication_.set(); set != nullptr) [[unlikely]]
    return command_links_.cluster().Bounded(set->released());
  return store_ == nullptr ? Lsn{} : store_->journal().released_lsn();
}
Lsn Server::durable_lsn() const {
  return store_ == nullptr ? Lsn{} : store_->journal().durable_lsn();
}
Lsn Server::last_lsn() const { return store_ == nullptr ? Lsn{} : store_->last_lsn(); }

// What counts against maxmemory is what is known to be used, kind by kind; resident memory is told
// beside it, and moves by itself.
MemoryFigures Server::memory() {
  MemoryFigures figures;
  figures.startup_bytes = memory_startup_bytes_;
  for (Connection* connection : connections_) {
    (void)Recount(connection);
    if (connection->peer() != nullptr) figures.links_bytes += connection->counted_bytes;
  }
  figures.clients_bytes = ClientsBytes() - figures.links_bytes;
  figures.links_bytes += replication_.waiting_bytes();
  figures.command_links_bytes = command_links_.held_bytes();
  figures.tail_bytes = replication_.tail_bytes();
  figures.used_bytes =
      figures.startup_bytes + figures.clients_bytes + figures.links_bytes + figures.tail_bytes;
  if (store_ != nullptr) {
    figures.data_bytes = data_figures().bytes;
    const JournalStats journal = store_->journal().Stats();
    figures.log_buffer_bytes = journal.unsynced_bytes + journal.spare_bytes;
    figures.used_bytes += figures.data_bytes + figures.log_buffer_bytes;
    figures.compacting = store_->engine().compacting();
    figures.held_bytes = store_->engine().snapshots().held_bytes();
  }
  figures.prepared_bytes = NodeArena::Global().stats().kept_bytes;
  figures.used_bytes += figures.prepared_bytes + PackBuffer::held_bytes();
  figures.resident_bytes = ResidentBytes();
  figures.system_bytes =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
#ifdef CELLAR_MIMALLOC
  figures.allocator = "mimalloc";
#endif
  return figures;
}

void Server::ReleaseFreeMemory() {
#ifdef CELLAR_MIMALLOC
  mi_collect(true);
#else
  (void)malloc_trim(0);
#endif
}

void Server::ReleaseAgedMemory() {
#ifdef CELLAR_MIMALLOC
  mi_collect(false);
#endif
}

// The figures of journal, backup and archive in one struct, so that INFO does not reach into them.
// While data is loaded there are only those of the loading, and the others are zero.
PersistenceFigures Server::persistence() {
  PersistenceFigures figures;
  if (store_ == nullptr) {
    figures.loading_start_unix_s = loading_start_unix_s_;
    figures.loading_total_bytes = load_progress_.bytes_total;
    figures.loading_done_bytes = load_progress_.bytes_done;
    return figures;
  }
  const JournalStats stats = store_->journal().Stats();
  figures.log_enabled = stats.log_enabled;
  figures.log_switch_waits = log_switch_waits_;
  figures.changes_since_save = stats.changes_since_save;
  figures.save_in_progress = stats.save_in_progress;
  figures.last_save_unix_s = stats.last_save_unix_s;
  figures.last_save_ok = stats.last_save_ok;
  figures.last_save_error = stats.last_save_error;
  figures.last_save_s = stats.last_save_s;
  figures.current_save_s = stats.current_save_s;
  figures.saves = stats.saves;
  figures.snapshots = stats.snapshots;
  figures.snapshots_bytes = stats.snapshots_bytes;
  figures.save_keys_done = stats.save_cells_done;
  figures.save_keys_total = stats.save_cells_total;
  figures.loaded_cells = store_->journal().recovery().snapshot_cells;
  figures.log_bytes = stats.current_bytes;
  figures.log_bytes_retained = stats.log_bytes;
  figures.log_bytes_appended = stats.appended_bytes;
  figures.base_bytes = stats.base_bytes;
  figures.buffer_bytes = stats.buffer_bytes;
  figures.log_segments = stats.log_segments;
  figures.sync_in_progress = stats.sync_in_progress;
  figures.syncs = stats.syncs;
  figures.delayed_syncs = stats.delayed_syncs;
  figures.log_ok = stats.log_ok;
  figures.log_room_ok = stats.log_room_ok;
  figures.log_room_bytes = stats.log_room_bytes;
  figures.log_error = stats.log_error;
  figures.log_failures = stats.log_failures;
  figures.backup_state = BackupStateName(store_->backup().state());
  figures.backup_error = store_->backup().error();
  if (const Archive* const archive = store_->archive(); archive != nullptr) {
    const ArchiveStats kept = archive->Stats();
    figures.archives = true;
    figures.archive_error = kept.error;
    figures.archive_lag_bytes = stats.log_bytes - std::min(stats.log_bytes, kept.log_bytes);
    figures.archive_bytes = kept.bytes;
    figures.archive_files = kept.files;
    figures.archive_gaps = kept.gaps;
  }
  figures.last_lsn = LsnText(stats.last_lsn);
  figures.durable_lsn = LsnText(stats.durable_lsn);
  return figures;
}

std::vector<KeyspaceFigures> Server::keyspaces() {
  std::vector<KeyspaceFigures> all;
  if (store_ == nullptr) return all;
  for (const std::string& name : store_->Keyspaces()) {
    KeyspaceFigures figures{.name = name};
    for (const Table* table : store_->Tables(name)) {
      ++figures.tables;
      figures.rows += table->counters().rows;
      figures.cells += table->cells();
      figures.bytes += table->memory_bytes();
    }
    all.push_back(std::move(figures));
  }
  return all;
}

DataFigures Server::data_figures() {
  DataFigures total;
  if (store_ == nullptr) return total;
  for (const Table* table = store_->engine().FindTableFrom(0); table != nullptr;
       table = store_->engine().FindTableFrom(table->id() + 1)) {
    ++total.tables;
    total.rows += table->counters().rows;
    total.cells += table->cells();
    total.bytes += table->memory_bytes();
  }
  const SweeperStats sweeper = store_->sweeper_stats();
  total.bytes += sweeper.garbage_bytes;
  total.bytes += store_->engine().feeds().bytes();
  total.bytes += store_->engine().snapshots().own_bytes();
  total.reclaimed_cells = sweeper.cells_reclaimed;
  const ArrivalWatch& arrivals = store_->arrivals();
  total.cells_in_future = arrivals.count(OddArrival::kInFuture);
  total.cells_dead_on_arrival = arrivals.count(OddArrival::kDeadOnArrival);
  total.cells_not_in_micros = arrivals.count(OddArrival::kNotMicros);
  return total;
}

Status Server::StartSnapshot() { return store().journal().StartSnapshot(); }

Status Server::FinishSnapshot() { return store().journal().SaveNow(); }

// What was in memory is gone, and it must not look like an empty store.
void Server::EndWithoutStore(const Status& status) {
  Log(LogSeverity::kWarning, "Cannot load the data again, exiting: " + status.text());
  std::_Exit(1);
}

Status Server::ReloadStore() {
  if (replication_.set() != nullptr)
    return Status::Error(ErrorCode::kErr, "DEBUG RELOAD is not allowed in a replica set");
  JournalOptions journal = StoreOptionsOf(services_own_.config).journal;  // as they are by now
  journal.wake = [this] { WakeFromThread(); };
  const Result<Continuity> continuity = store().Reload(std::move(journal));
  if (!continuity.ok()) {
    if (continuity.status().code() == ErrorCode::kMisconf) return continuity.status();
    EndWithoutStore(continuity.status());
  }
  replication_.OnReloaded();
  log_switch_waits_ = false;  // the journal has been opened as the configuration says
  released_seen_ = Lsn{};
  dispatcher_own_.SetReleased(released_lsn());
  if (*continuity == Continuity::kOtherState && services_own_.tracking.active()) {
    services_own_.tracking.AllChanged(*this);
  }
  return Status::Ok();
}

void Server::ForEachSession(const std::function<void(Session&)>& visit) {
  for (Connection* connection : connections_) visit(connection->session);
  command_links_.ForEachSession(visit);
}

ClusterFigures Server::cluster_figures() const {
  const CommandLinks::Figures& figures = command_links_.figures();
  return {.links = command_links_.links(),
          .channels = command_links_.channels(),
          .calls_waiting = command_links_.calls_waiting(),
          .calls_held = command_links_.calls_held(),
          .calls_out = figures.calls_out,
          .calls_in = figures.calls_in,
          .calls_bounced = figures.bounced,
          .calls_retried = figures.retried,
          .connections_closed = figures.closed};
}

Session* Server::FindSession(uint64_t id) {
  const auto found = connections_by_id_.find(id);
  return found == connections_by_id_.end() ? command_links_.FindSession(id)
                                           : &found->second->session;
}

void Server::KillSession(Session& session) {
  session.End();
  ScheduleFlush(session);
}

void Server::PauseClients(int64_t until_micros, Pause pause) {
  CELLAR_ASSERT(pause != Pause::kNone);
  // As in Redis: of two pauses the stricter kind and the later end hold.
  if (pause_ == Pause::kNone) pause_until_micros_ = 0;
  pause_ = std::max(pause_, pause);
  pause_until_micros_ = std::max(pause_until_micros_, until_micros);
}

void Server::UnpauseClients() {
  pause_ = Pause::kNone;
  for (Connection* connection : connections_) {
    if (!connection->session.postponed || connection->calls_under_way()) continue;
    connection->session.postponed = false;
    connection->session.last_activity_micros = dispatcher_own_.now_micros();  // it was not idle
    ScheduleFlush(connection->session);
  }
}

void Server::ConfigureHeat() {
  const Config& config = services_own_.config;
  services_own_.heat.Configure(static_cast<uint64_t>(config.heat_memory),
                               static_cast<uint64_t>(config.heat_sample),
                               static_cast<uint64_t>(clock_.WallMicros()));
  dispatcher_own_.sampler().Restart();
}

// Carries out an option that has its new value in the configuration already; after an error the
// caller puts the old one back. Without a store, while data is loaded, the store's options are
// changed in the configuration alone.
Status Server::ApplyConfig(ConfigTopic topic) {
  const Config& config = services_own_.config;
  switch (topic) {
    case ConfigTopic::kBind:
    case ConfigTopic::kPort: {
      if (config.tls_port > 0 && tls_context_ == nullptr) RETURN_IF_ERROR(LoadTls());
      Status status = ListenAgain();
      if (status.ok()) return status;
      const bool port = topic == ConfigTopic::kPort;
      return Status::Error(ErrorCode::kErr, (port ? "Unable to listen on this port: "
                                                  : "Failed to bind to specified addresses: ") +
                                                status.text());
    }
    case ConfigTopic::kKeepalive:
      for (const Connection* connection : connections_) SetKeepalive(connection->session);
      return Status::Ok();
    case ConfigTopic::kReplicaOf:
      if (store_ != nullptr) return ApplyReplicaOf();
      SetReplicationOptions();
      return Status::Ok();
    case ConfigTopic::kReplication:
      SetReplicationOptions();
      return Status::Ok();
    case ConfigTopic::kPassword:
      if (SetUsers::AreLogged(*this))
        return Status::Error(ErrorCode::kErr,
                             "users belong to the replica set: ACL SETUSER default");
      services_own_.acl.SetDefaultPassword(config.requirepass);
      return Status::Ok();
    case ConfigTopic::kAclLogLength:
      services_own_.acl.log().Trim(static_cast<size_t>(config.acllog_max_len));
      return Status::Ok();
    case ConfigTopic::kTls:
      return tls_context_ == nullptr ? CheckTls() : LoadTls();
    case ConfigTopic::kClients: {
      const int64_t fit = ClientsThatFit(config, config.maxclients);
      if (fit >= config.maxclients) return Status::Ok();
      return Status::Error(ErrorCode::kErr,
                           fmt::format("The operating system is not able to handle the specified "
                                       "number of clients, try with {}",
                                       fit));
    }
    case ConfigTopic::kLogLevel:
      ApplyLogLevel(config);
      return Status::Ok();
    case ConfigTopic::kHousekeeping:
      uv_timer_set_repeat(&tenth_, static_cast<uint64_t>(1000 / config.hz));
      return Status::Ok();
    case ConfigTopic::kSlowBound:
      dispatcher_own_.UpdateSlowBound();
      return Status::Ok();
    case ConfigTopic::kSlowLogLength:
      services_own_.slow_log.Trim(static_cast<size_t>(config.slowlog_max_len));
      return Status::Ok();
    case ConfigTopic::kHeat:
      ConfigureHeat();
      return Status::Ok();
    case ConfigTopic::kTrackingLimit:
      services_own_.tracking.Shrink(*this, static_cast<size_t>(config.tracking_table_max_keys));
      return Status::Ok();
    default:  // of the store, or of nothing
      return store_ == nullptr ? Status::Ok() : ApplyStoreConfig(topic);
  }
}

// Only turning the log on or off can fail. A topic that neither this switch nor the one above knows
// meets the assert at the end.
Status Server::ApplyStoreConfig(ConfigTopic topic) {
  const Config& config = services_own_.config;
  Journal& journal = store_->journal();
  switch (topic) {
    case ConfigTopic::kMemory:
      UpdateMemory();
      break;
    case ConfigTopic::kValueBytes:
      store_->set_value_bytes_max(static_cast<uint64_t>(config.max_value_bytes));
      break;
    case ConfigTopic::kLog:
      return SwitchLog();
    case ConfigTopic::kSyncPolicy:
      journal.SetSyncPolicy(SyncPolicyOf(config));
      break;
    case ConfigTopic::kSavePoints:
      journal.SetSavePoints(SavePointsOf(config));
      break;
    case ConfigTopic::kRewriteTrigger:
      journal.SetRewriteTrigger(static_cast<uint32_t>(config.auto_aof_rewrite_percentage),
                                static_cast<uint64_t>(config.auto_aof_rewrite_min_size));
      break;
    case ConfigTopic::kSnapshotsKept:
      journal.SetSnapshotsKept(static_cast<uint32_t>(config.snapshot_keep));
      break;
    case ConfigTopic::kSnapshotErrors:
      journal.SetStopWritesOnSnapshotError(config.stop_writes_on_bgsave_error);
      break;
    case ConfigTopic::kCursorTimeout:
      store_->set_snapshot_cursor_timeout(config.snapshot_cursor_timeout * 1'000'000);
      break;
    case ConfigTopic::kFeeds:
      store_->set_log_keep_bytes(static_cast<uint64_t>(config.log_keep_bytes));
      store_->set_feed_sync(config.feed_sync * 1000);
      break;
    case ConfigTopic::kNamedSnapshots:
      store_->set_snapshots_max(static_cast<uint64_t>(config.snapshots_max));
      store_->set_drop_keep(config.drop_keep_ms * 1000);
      break;
    case ConfigTopic::kBackup:
      store_->backup().set_sealed_ttl(config.backup_sealed_ttl * 1'000'000);
      break;
    case ConfigTopic::kArchive:
      if (Archive* const archive = store_->archive(); archive != nullptr) {
        const ArchiveOptions limits = ArchiveOptionsOf(config);
        archive->SetLimits(limits.keep_micros, limits.bytes_max, limits.timeout_micros);
      }
      break;
    case ConfigTopic::kFutureMax:
      store_->set_future_max_micros(config.ts_future_max * 1'000'000);
      break;
    default:
      CELLAR_ASSERT(topic == ConfigTopic::kNone);
      break;
  }
  return Status::Ok();
}

void Server::ApplyStoreConfig() {
  for (const ConfigTopic topic :
       {ConfigTopic::kMemory, ConfigTopic::kValueBytes, ConfigTopic::kSyncPolicy,
        ConfigTopic::kSavePoints, ConfigTopic::kRewriteTrigger, ConfigTopic::kSnapshotsKept,
        ConfigTopic::kSnapshotErrors, ConfigTopic::kCursorTimeout, ConfigTopic::kFeeds,
        ConfigTopic::kNamedSnapshots, ConfigTopic::kBackup, ConfigTopic::kArchive,
        ConfigTopic::kFutureMax}) {
    const Status status = ApplyStoreConfig(topic);
    CELLAR_ASSERT(status.ok());
  }
  log_switch_waits_ = store_->journal().Stats().log_enabled != services_own_.config.appendonly;
  SwitchLogIfDue();
}

Status Server::SwitchLog() {
  const Config& config = services_own_.config;
  Journal& journal = store_->journal();
  log_switch_waits_ = false;
  if (journal.Stats().log_enabled == config.appendonly) return Status::Ok();
  if (!config.appendonly && !store_->engine().feeds().empty())
    return Status::Error(ErrorCode::kErr, "feeds are read from the log: there are some");
  if (replication_.set() != nullptr)
    return Status::Error(ErrorCode::kErr, "a member of a replica set needs its log");
  if (journal.snapshot_running()) {
    log_switch_waits_ = true;
    Log(LogSeverity::kNotice, "appendonly takes effect when the background save has ended");
    return Status::Ok();
  }
  Status status = journal.SetLogEnabled(config.appendonly);
  dispatcher_own_.SetReleased(released_lsn());  // also where the log is on, and its snapshot not
  return status;
}

void Server::SwitchLogIfDue() {
  if (!log_switch_waits_ || store_->journal().snapshot_running()) return;
  const Status status = SwitchLog();
  if (status.ok()) return;
  Config& config = services_own_.config;
  config.appendonly = store_->journal().Stats().log_enabled;
  Log(LogSeverity::kWarning, "appendonly stays as it was: " + status.text());
}

Status Server::LoadUsers() {
  const Config& config = services_own_.config;
  RETURN_IF_ERROR(services_own_.acl.LoadConfig());
  if (config.aclfile.empty()) return Status::Ok();
  ASSIGN_OR_RETURN(const bool exists, FileSystem::Posix().Exists(AclFilePath(config)));
  if (exists) return LoadAclFile(*this, LoadVictims::kAll, nullptr);
  // An aclfile of the data directory is as new as the store in it. Later on a missing one means
  // that users are lost, and without them anybody might come in.
  const std::string manifest = JoinPath(config.dir, kManifestName);
  ASSIGN_OR_RETURN(const bool has_store, FileSystem::Posix().Exists(manifest));
  if (!config.aclfile.starts_with('/') && !has_store) {
    acl_file_is_to_come_ = true;
    return Status::Ok();
  }
  return Status::Error(ErrorCode::kErr, "the aclfile " + AclFilePath(config) +
                                            " does not exist: restore it, or create an empty one "
                                            "to start with the default user only");
}

Status Server::BeginAclFile() {
  if (!std::exchange(acl_file_is_to_come_, false)) return Status::Ok();
  return ReplaceFile(AclFilePath(services_own_.config), "");
}

}  // namespace cellar
