// See info.h. One function a section, in Redis' order.
#include "commands/reports/info.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "cellar/version.h"
#include "cluster/lost_rows.h"
#include "commands/arguments/arguments.h"
#include "commands/clients/client_info.h"
#include "commands/dispatch/dispatch.h"
#include "commands/reports/cluster_report.h"
#include "commands/session/host.h"
#include "commands/session/info_data.h"
#include "commands/session/pubsub.h"
#include "commands/session/services.h"
#include "commands/session/session.h"
#include "commands/session/transaction.h"
#include "replica/replication.h"
#include "replica/set_node.h"
#include "store/store.h"

namespace cellar {
namespace {

class InfoWriter {
 public:
  explicit InfoWriter(std::string* out) : out_(out) {}

  void Section(std::string_view name) {
    if (!out_->empty()) out_->append("\r\n");
    out_->append("# ").append(name).append("\r\n");
  }
  template <typename T>
  void Field(std::string_view name, const T& value) {
    fmt::format_to(std::back_inserter(*out_), "{}:{}\r\n", name, value);
  }
  void Bytes(const std::string& name, uint64_t bytes) {
    Field(name, bytes);
    Field(name + "_human", HumanBytes(bytes));
  }
  void Ratio(std::string_view name, double value) { Field(name, fmt::format("{:.2f}", value)); }
  // Features that are not there, in the words tools expect.
  void Zeros(std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) Field(name, 0);
  }

 private:
  std::string* out_;
};

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

// Redis' fields, with constants where nothing here varies: clients and dashboards look for them.
void ServerSection(Host& host, InfoWriter& out) {
  const Services& services = host.services();
  utsname system{};
  (void)uname(&system);
  const int64_t uptime_s =
      (host.clock().MonotonicMicros() - services.stats.start_monotonic_micros) / 1'000'000;
  out.Section("Server");
  out.Field("redis_version", kRedisVersion);
  out.Field("redis_git_sha1", "00000000");
  out.Field("redis_git_dirty", 0);
  out.Field("redis_build_id", "cellar");
  out.Field("redis_mode", "standalone");
  out.Field("cellar_version", kVersion);
  out.Field("os", fmt::format("{} {} {}", system.sysname, system.release, system.machine));
  out.Field("arch_bits", 64);
  out.Field("monotonic_clock", "POSIX clock_gettime");
  out.Field("multiplexing_api", "libuv");
  out.Field("gcc_version", __VERSION__);
  out.Field("process_id", getpid());
  out.Field("process_supervised", getenv("NOTIFY_SOCKET") != nullptr ? "systemd" : "no");
  out.Field("run_id", services.run_id);
  // As in Redis: where clients are answered.
  out.Field("tcp_port", services.config.port > 0 ? services.config.port : services.config.tls_port);
  out.Field("server_time_usec", host.now_micros());
  out.Field("uptime_in_seconds", uptime_s);
  out.Field("uptime_in_days", uptime_s / 86'400);
  out.Field("hz", services.config.hz);
  out.Field("configured_hz", services.config.hz);
  out.Field("lru_clock", (host.now_micros() / 1'000'000) & 0xffffff);
  char path[4096];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof(path));
  out.Field("executable", std::string_view(path, size > 0 ? static_cast<size_t>(size) : 0));
  out.Field("config_file", services.config_sources.file());
  out.Field("io_threads_active", services.config.io_threads > 1 ? 1 : 0);
}

void ClientsSection(Host& host, InfoWriter& out) {
  size_t blocked = 0;
  size_t input_max = 0;
  size_t output_max = 0;
  size_t pubsub = 0;
  size_t peers = 0;
  size_t watching = 0;
  size_t watches = 0;
  host.ForEachSession([&](Session& session) {
    // A client whose command was passed on waits at its own node, and is counted there.
    blocked += IsBlocked(session) && !IsChannel(session) ? 1 : 0;
    pubsub += session.pubsub ? 1 : 0;
    peers += session.peer != PeerRole::kNone ? 1 : 0;
    watching += session.transaction && !session.transaction->watches.empty() ? 1 : 0;
    watches += session.transaction ? session.transaction->watches.size() : 0;
    input_max = std::max(input_max, session.query_bytes);
    output_max = std::max(output_max, session.reply_bytes());
  });
  out.Section("Clients");
  out.Field("connected_clients", host.session_count() - peers);
  out.Field("cluster_connections", 0);
  out.Field("maxclients", host.services().config.maxclients);
  out.Field("client_recent_max_input_buffer", input_max);
  out.Field("client_recent_max_output_buffer", output_max);
  out.Field("blocked_clients", blocked);
  out.Field("tracking_clients", host.services().tracking.clients());
  out.Field("pubsub_clients", pubsub);
  out.Field("watching_clients", watching);
  out.Field("clients_in_timeout_table", 0);
  out.Field("total_watched_keys", watches);
  out.Zeros({"total_blocking_keys", "total_blocking_keys_on_nokey"});
}

// Fields of what Cellar has not (scripts, eviction) are zero, as dashboards look for them. The peak
// is raised before it is shown, so that it is never below what is used.
void MemorySection(Host& host, InfoWriter& out) {
  const MemoryFigures memory = host.memory();
  ServerStats& stats = host.services().stats;
  stats.memory_peak_bytes = std::max<uint64_t>(stats.memory_peak_bytes, memory.used_bytes);
  const auto used = static_cast<double>(memory.used_bytes);
  const auto rss = static_cast<double>(memory.resident_bytes);
  const auto peak = static_cast<double>(stats.memory_peak_bytes);
  const uint64_t overhead = memory.used_bytes - memory.data_bytes;
  out.Section("Memory");
  out.Bytes("used_memory", memory.used_bytes);
  out.Bytes("used_memory_rss", memory.resident_bytes);
  out.Bytes("used_memory_peak", stats.memory_peak_bytes);
  out.Field("used_memory_peak_perc", fmt::format("{:.2f}%", peak > 0 ? 100 * used / peak : 0));
  out.Field("used_memory_overhead", overhead);
  out.Field("used_memory_startup", memory.startup_bytes);
  out.Field("used_memory_dataset", memory.data_bytes);
  const uint64_t above_startup = memory.used_bytes - memory.startup_bytes;
  out.Field(
      "used_memory_dataset_perc",
      fmt::format("{:.2f}%", above_startup == 0 ? 0.0
                                                : 100.0 * static_cast<double>(memory.data_bytes) /
                                                      static_cast<double>(above_startup)));
  out.Field("allocator_allocated", memory.used_bytes);
  out.Field("allocator_active", memory.resident_bytes);
  out.Field("allocator_resident", memory.resident_bytes);
  out.Bytes("total_system_memory", memory.system_bytes);
  out.Zeros({"used_memory_lua", "used_memory_vm_eval"});
  out.Field("used_memory_lua_human", "0B");
  out.Zeros({"used_memory_scripts_eval", "number_of_cached_scripts", "number_of_functions",
             "number_of_libraries", "used_memory_vm_functions", "used_memory_vm_total",
             "used_memory_functions", "used_memory_scripts"});
  out.Field("used_memory_vm_total_human", "0B");
  out.Field("used_memory_scripts_human", "0B");
  out.Bytes("maxmemory", static_cast<uint64_t>(host.services().config.maxmemory));
  out.Field("maxmemory_policy", "noeviction");
  out.Ratio("allocator_frag_ratio", used > 0 ? rss / used : 1);
  out.Field("allocator_frag_bytes",
            static_cast<int64_t>(memory.resident_bytes) - static_cast<int64_t>(memory.used_bytes));
  out.Ratio("allocator_rss_ratio", 1);
  out.Field("allocator_rss_bytes", 0);
  out.Ratio("rss_overhead_ratio", 1);
  out.Field("rss_overhead_bytes", 0);
  out.Ratio("mem_fragmentation_ratio", used > 0 ? rss / used : 1);
  out.Field("mem_fragmentation_bytes",
            static_cast<int64_t>(memory.resident_bytes) - static_cast<int64_t>(memory.used_bytes));
  // What waits for the disk or for followers, or is ready for growth, is not freed by deletes:
  // maxmemory leaves it out.
  out.Field("mem_not_counted_for_evict", memory.log_buffer_bytes + memory.tail_bytes +
                                             memory.links_bytes + memory.prepared_bytes);
  out.Field("mem_replication_backlog", memory.tail_bytes);
  out.Field("mem_total_replication_buffers", memory.tail_bytes + memory.links_bytes);
  out.Field("mem_clients_slaves", memory.links_bytes);
  out.Field("mem_clients_normal", memory.clients_bytes);
  out.Field("mem_snapshots_held", memory.held_bytes);
  out.Field("mem_heat", host.services().heat.memory_bytes());
  WorkMemory& work = host.services().work_memory;
  work.Configure(host.services().config.work_max_memory, host.services().config.maxmemory);
  out.Field("mem_work_max", work.bound());
  out.Field("mem_work_taken", work.taken_bytes());
  out.Field("mem_work_aggregates", work.taken_bytes(WorkKind::kAggregate));
  out.Field("mem_work_updates", work.taken_bytes(WorkKind::kUpdate));
  out.Field("mem_work_pages", work.taken_bytes(WorkKind::kPage));
  const WorkMemory& merge = host.services().merge_memory;
  out.Field("mem_work_merged", merge.taken_bytes());
  out.Field("work_waiting", work.waiting() + merge.waiting());
  out.Field("mem_cluster_links", memory.command_links_bytes);
  out.Field("mem_aof_buffer", memory.log_buffer_bytes);
  out.Field("mem_prepared", memory.prepared_bytes);
  out.Field("mem_allocator", memory.allocator);
  out.Field("active_defrag_running", memory.compacting ? 1 : 0);
  out.Zeros({"lazyfree_pending_objects", "lazyfreed_objects"});
}

// Backup and archive.
void CopiesFields(const PersistenceFigures& p, InfoWriter& out) {
  out.Field("backup_state", p.backup_state);
  if (!p.backup_error.empty()) out.Field("backup_error", p.backup_error);
  out.Field("archive_enabled", p.archives ? 1 : 0);
  if (p.archives) {
    out.Field("archive_error", p.archive_error);
    out.Field("archive_lag_bytes", p.archive_lag_bytes);
    out.Field("archive_bytes", p.archive_bytes);
    out.Field("archive_files", p.archive_files);
    out.Field("archive_gaps", p.archive_gaps);
  }
}

// A snapshot is to Redis' names both a BGSAVE and a rewrite of the AOF, so the same figures stand
// in both groups. A follower that gets its first copy is `loading`; with a later one it goes on
// serving, which is `async_loading`.
void PersistenceSection(Host& host, InfoWriter& out) {
  out.Section("Persistence");
  const PersistenceFigures p = host.persistence();
  const Replication& replication = host.replication();
  const auto upstream = replication.upstream();
  const bool copies = upstream && upstream->copies;
  const bool first_copy = replication.awaits_first_copy();
  const bool loading = host.loading() || first_copy;
  out.Field("loading", loading ? 1 : 0);
  out.Field("async_loading", copies && !first_copy ? 1 : 0);
  out.Zeros({"current_cow_peak", "current_cow_size", "current_cow_size_age"});
  out.Ratio("current_fork_perc", p.save_keys_total == 0
                                     ? 0
                                     : 100.0 * static_cast<double>(p.save_keys_done) /
                                           static_cast<double>(p.save_keys_total));
  out.Field("current_save_keys_processed", p.save_keys_done);
  out.Field("current_save_keys_total", p.save_keys_total);
  out.Field("rdb_changes_since_last_save", p.changes_since_save);
  out.Field("rdb_bgsave_in_progress", p.save_in_progress ? 1 : 0);
  out.Field("rdb_last_save_time", p.last_save_unix_s);
  out.Field("rdb_last_bgsave_status", p.last_save_ok ? "ok" : "err");
  out.Field("rdb_last_bgsave_time_sec", p.last_save_s);
  out.Field("rdb_current_bgsave_time_sec", p.current_save_s);
  out.Field("rdb_saves", p.saves);
  out.Field("rdb_snapshots", p.snapshots);
  out.Field("rdb_snapshots_bytes", p.snapshots_bytes);
  out.Zeros({"rdb_last_cow_size", "rdb_last_load_keys_expired"});
  out.Field("rdb_last_load_keys_loaded", p.loaded_cells);
  out.Field("aof_enabled", p.log_enabled ? 1 : 0);
  out.Field("aof_rewrite_in_progress", p.save_in_progress ? 1 : 0);
  out.Field("aof_rewrite_scheduled", p.log_switch_waits ? 1 : 0);
  out.Field("aof_last_rewrite_time_sec", p.last_save_s);
  out.Field("aof_current_rewrite_time_sec", p.current_save_s);
  out.Field("aof_last_bgrewrite_status", p.last_save_ok ? "ok" : "err");
  out.Field("aof_rewrites", p.saves);
  out.Field("aof_rewrites_consecutive_failures", p.last_save_ok ? 0 : 1);
  out.Field("aof_last_write_status", p.log_ok ? "ok" : "err");
  out.Field("aof_last_cow_size", 0);
  out.Zeros({"module_fork_in_progress", "module_fork_last_cow_size"});
  if (p.log_enabled) {
    out.Field("aof_current_size", p.log_bytes);
    out.Field("aof_base_size", p.base_bytes);
    out.Field("aof_pending_rewrite", 0);
    out.Field("aof_buffer_length", p.buffer_bytes);
    out.Field("aof_pending_bio_fsync", p.sync_in_progress ? 1 : 0);
    out.Field("aof_delayed_fsync", p.delayed_syncs);
    out.Field("aof_syncs", p.syncs);
    out.Field("aof_segments", p.log_segments);
    out.Field("aof_failures", p.log_failures);
    out.Field("aof_room_status", p.log_room_ok ? "ok" : "low");
    out.Field("aof_room_bytes", p.log_room_bytes);
    out.Field("aof_last_lsn", p.last_lsn);
    out.Field("aof_durable_lsn", p.durable_lsn);
  }
  if (!p.log_error.empty()) out.Field("aof_last_error", p.log_error);
  CopiesFields(p, out);
  if (!loading && !copies) return;
  const uint64_t total = copies ? upstream->sync_bytes_total : p.loading_total_bytes;
  const uint64_t done = copies ? upstream->sync_bytes : p.loading_done_bytes;
  out.Field("loading_start_time",
            copies ? upstream->copy_begin_micros / 1'000'000 : p.loading_start_unix_s);
  out.Field("loading_total_bytes", total);
  out.Field("loading_loaded_bytes", done);
  out.Ratio("loading_loaded_perc",
            total == 0 ? 0 : 100.0 * static_cast<double>(done) / static_cast<double>(total));
}

uint64_t CommandNanos(Host& host) {
  uint64_t nanos = 0;
  for (const auto& entry : host.services().commands.entries()) nanos += entry->stats.nanos;
  return nanos;
}

// Redis' fields, those of what Cellar has not being zero; its own stand among what they belong to.
void StatsSection(Host& host, InfoWriter& out) {
  const ServerStats& stats = host.services().stats;
  const PubSub& pubsub = host.services().pubsub;
  out.Section("Stats");
  out.Field("total_connections_received", stats.connections);
  out.Field("total_commands_processed", stats.commands);
  out.Field("instantaneous_ops_per_sec", stats.commands_rate.PerSecond());
  out.Field("total_net_input_bytes", stats.input_bytes);
  out.Field("total_net_output_bytes", stats.output_bytes);
  const ReplicationStats& replication = host.replication().stats();
  out.Field("total_net_repl_input_bytes", replication.link_bytes_in);
  out.Field("total_net_repl_output_bytes", replication.link_bytes_out);
  out.Ratio("instantaneous_input_kbps", static_cast<double>(stats.input_rate.PerSecond()) / 1024);
  out.Ratio("instantaneous_output_kbps", static_cast<double>(stats.output_rate.PerSecond()) / 1024);
  out.Ratio("instantaneous_input_repl_kbps",
            static_cast<double>(stats.link_input_rate.PerSecond()) / 1024);
  out.Ratio("instantaneous_output_repl_kbps",
            static_cast<double>(stats.link_output_rate.PerSecond()) / 1024);
  out.Field("rejected_connections", stats.rejected_connections);
  out.Field("sync_full", replication.full_syncs_served);
  out.Field("sync_partial_ok", replication.partial_syncs_served);
  out.Field("sync_partial_err", replication.partial_syncs_refused);
  const DataFigures data = host.data_figures();
  out.Field("expired_keys", data.reclaimed_cells);
  out.Ratio("expired_stale_perc", 0);
  out.Zeros({"expired_time_cap_reached_count", "expire_cycle_cpu_milliseconds", "evicted_keys"});
  out.Field("evicted_clients", stats.evicted_clients);
  out.Zeros({"total_eviction_exceeded_time", "current_eviction_exceeded_time"});
  out.Field("cells_in_future", data.cells_in_future);
  out.Field("cells_dead_on_arrival", data.cells_dead_on_arrival);
  out.Field("cells_not_in_micros", data.cells_not_in_micros);
  out.Field("keyspace_hits", stats.key_hits);
  out.Field("keyspace_misses", stats.key_misses);
  out.Field("pubsub_channels", pubsub.registry(ChannelKind::kChannel).size());
  out.Field("pubsub_patterns", pubsub.registry(ChannelKind::kPattern).size());
  out.Field("pubsubshard_channels", pubsub.registry(ChannelKind::kShard).size());
  out.Zeros({"latest_fork_usec", "total_forks", "migrate_cached_sockets",
             "slave_expires_tracked_keys", "active_defrag_hits", "active_defrag_misses",
             "active_defrag_key_hits", "active_defrag_key_misses", "total_active_defrag_time",
             "current_active_defrag_time"});
  const Tracking& tracking = host.services().tracking;
  out.Field("tracking_total_keys", tracking.keys());
  out.Field("tracking_total_items", tracking.items());
  out.Field("tracking_total_prefixes", tracking.prefixes());
  out.Field("unexpected_error_replies", stats.unexpected_errors);
  out.Field("total_error_replies", stats.error_replies);
  out.Field("dump_payload_sanitizations", 0);
  out.Field("total_reads_processed", stats.reads);
  out.Field("total_writes_processed", stats.writes);
  out.Field("io_threaded_reads_processed", stats.threaded_reads);
  out.Field("io_threaded_writes_processed", stats.threaded_writes);
  out.Zeros({"reply_buffer_shrinks", "reply_buffer_expands"});
  out.Field("reads_in_threads", stats.reads_beside);
  out.Field("client_query_buffer_limit_disconnections", stats.query_buffer_limit_disconnections);
  out.Field("client_output_buffer_limit_disconnections", stats.output_buffer_limit_disconnections);
  out.Field("eventloop_cycles", stats.turns);
  out.Field("eventloop_duration_sum", stats.turn_nanos / 1000);
  out.Field("eventloop_duration_max", stats.turn_nanos_max / 1000);
  out.Field("eventloop_duration_cmd_sum", CommandNanos(host) / 1000);
  const uint64_t turns_per_second = stats.turns_rate.PerSecond();
  out.Field("instantaneous_eventloop_cycles_per_sec", turns_per_second);
  out.Field(
      "instantaneous_eventloop_duration_usec",
      turns_per_second == 0 ? 0 : stats.turn_nanos_rate.PerSecond() / turns_per_second / 1000);
  out.Field("acl_access_denied_auth", stats.auth_failures);
  out.Field("acl_access_denied_cmd", stats.acl_denied_command);
  out.Field("acl_access_denied_key", stats.acl_denied_key);
  out.Field("acl_access_denied_channel", stats.acl_denied_channel);
}

int64_t Seconds(int64_t micros) { return micros / 1'000'000; }

void LeaderFields(const Replication& replication, const Config& config, InfoWriter& out) {
  const std::vector<FollowerFigures> followers = replication.followers();
  out.Field("role", replication.is_leader() ? "master" : "slave");
  out.Field("connected_slaves", followers.size());
  if (config.min_replicas_to_write > 0 && config.min_replicas_max_lag > 0) {
    out.Field("min_slaves_good_slaves",
              replication.FollowersWithin(config.min_replicas_max_lag * 1'000'000));
  }
  for (size_t i = 0; i < followers.size(); ++i) {
    const FollowerFigures& follower = followers[i];
    out.Field(
        "slave" + std::to_string(i),
        fmt::format("ip={},port={},state={},offset={},lag={},lag_ms={}", follower.address.host,
                    follower.address.port, follower.state, follower.durable.seq,
                    Seconds(follower.ack_age_micros), follower.lag_micros / 1000));
  }
}

void FollowerFields(Host& host, const UpstreamFigures& upstream, InfoWriter& out) {
  const Config& config = host.services().config;
  out.Field("master_host", upstream.address.host);
  out.Field("master_port", upstream.address.port);
  out.Field("master_link_status", upstream.up ? "up" : "down");
  out.Field("master_last_io_seconds_ago",
            upstream.last_io_age_micros < 0 ? -1 : Seconds(upstream.last_io_age_micros));
  const bool syncs = upstream.state == LinkState::kSync;
  out.Field("master_sync_in_progress", syncs ? 1 : 0);
  out.Field("slave_read_repl_offset", host.last_lsn().seq);
  out.Field("slave_repl_offset", host.last_lsn().seq);
  if (syncs) {
    out.Field("master_sync_total_bytes", upstream.sync_bytes_total);
    out.Field("master_sync_read_bytes", upstream.sync_bytes);
  }
  if (!upstream.up) {
    out.Field("master_link_down_since_seconds",
              Seconds(host.clock().MonotonicMicros() - upstream.down_since_micros));
  }
  out.Field("slave_priority", config.replica_priority);
  out.Field("slave_read_only", 1);
  out.Field("replica_announced", 1);
}

// Of a replica set.
void SetFields(Host& host, const SetNode& set, InfoWriter& out) {
  const Config& config = host.services().config;
  const std::vector<MemberFigures> members = set.Members();
  out.Field("replica_members", members.size());
  for (size_t i = 0; i < members.size(); ++i) {
    const MemberFigures& member = members[i];
    out.Field("member" + std::to_string(i),
              fmt::format("id={:016x},ip={},port={},kind={},state={},lsn={},lag_ms={},room={}",
                          member.node, member.address.host, member.address.port, member.kind,
                          member.state, LsnText(member.lsn), member.lag_micros / 1000,
                          member.room ? 1 : 0));
  }
  const int64_t lease = set.set().lease_micros();
  const int64_t left = std::max<int64_t>(lease - host.clock().MonotonicMicros(), 0);
  out.Field("replica_lease", !set.open() ? -1 : left / 1000);
  out.Field("replica_rollbacks", set.rollbacks());
  out.Field("replica_frames_refused", set.set().frames_refused());
  out.Field("replica_feature_level", fmt::format("{}/{}", kFeatureLevel, set.feature_level()));
  const bool always = static_cast<AppendFsync>(config.appendfsync) == AppendFsync::kAlways;
  out.Field("replica_durability", always ? "always" : "everysec");
}

// First the fields by which Redis' clients and tools find a leader; what only Cellar has is called
// replica_... . Offsets are sequence numbers of records, those of the backlog bytes of the log.
void ReplicationSection(Host& host, InfoWriter& out) {
  const Replication& replication = host.replication();
  const Config& config = host.services().config;
  out.Section("Replication");
  LeaderFields(replication, config, out);
  if (const auto upstream = replication.upstream()) FollowerFields(host, *upstream, out);
  out.Field("master_failover_state", FailoverStateWord(replication.failover_state()));
  out.Field("master_replid", replication.cluster_text());
  out.Field("master_replid2", std::string(40, '0'));
  out.Field("master_repl_offset", host.last_lsn().seq);
  out.Field("second_repl_offset", -1);
  // Bytes of the log, which is what a follower that comes back is sent.
  const PersistenceFigures log = host.persistence();
  const bool active = replication.active();
  out.Field("repl_backlog_active", active ? 1 : 0);
  out.Field("repl_backlog_size", config.repl_backlog_size);
  out.Field("repl_backlog_first_byte_offset",
            active
                ? log.log_bytes_appended - std::min(log.log_bytes_appended, log.log_bytes_retained)
                : 0);
  out.Field("repl_backlog_histlen", log.log_bytes_retained);
  out.Field("master_repl_bytes", log.log_bytes_appended);
  out.Field("replica_state", replication.state_word());
  out.Field("replica_id", fmt::format("{:016x}", replication.node()));
  out.Field("replica_term", replication.term());
  out.Field("replica_commit", LsnText(replication.commit()));
  out.Field("replica_applied", LsnText(host.last_lsn()));
  out.Field("replica_skew_micros", replication.skew_micros());
  if (replication.set() != nullptr) SetFields(host, *replication.set(), out);
  const ReplicationStats& stats = replication.stats();
  out.Field("replica_full_syncs", stats.full_syncs);
  out.Field("replica_partial_syncs", stats.partial_syncs);
  out.Field("replica_diverged_records", stats.diverged_records);
  out.Field("replica_diverged_total", replication.diverged_total());
}

void CpuSection(Host&, InfoWriter& out) {
  rusage self{};
  rusage thread{};
  (void)getrusage(RUSAGE_SELF, &self);
  (void)getrusage(RUSAGE_THREAD, &thread);
  const auto field = [&out](std::string_view name, const timeval& time) {
    out.Field(name, fmt::format("{:.6f}", Seconds(time)));
  };
  out.Section("CPU");
  field("used_cpu_sys", self.ru_stime);
  field("used_cpu_user", self.ru_utime);
  field("used_cpu_sys_children", timeval{});
  field("used_cpu_user_children", timeval{});
  field("used_cpu_sys_main_thread", thread.ru_stime);
  field("used_cpu_user_main_thread", thread.ru_utime);
}

void ModulesSection(Host&, InfoWriter& out) { out.Section("Modules"); }

void CommandStatsSection(Host& host, InfoWriter& out) {
  out.Section("Commandstats");
  for (const auto& entry : host.services().commands.entries()) {
    const CommandStats& stats = entry->stats;
    if (stats.calls == 0 && stats.rejected_calls == 0 && stats.failed_calls == 0) continue;
    const uint64_t micros = stats.nanos / 1000;
    out.Field("cmdstat_" + entry->full_name,
              fmt::format("calls={},usec={},usec_per_call={:.2f},rejected_calls={},failed_calls={}",
                          stats.calls, micros,
                          stats.calls == 0 ? 0.0
                                           : static_cast<double>(stats.nanos) / 1000 /
                                                 static_cast<double>(stats.calls),
                          stats.rejected_calls, stats.failed_calls));
  }
}

void ErrorStatsSection(Host& host, InfoWriter& out) {
  out.Section("Errorstats");
  for (const auto& [code, count] : host.services().stats.errors) {
    out.Field("errorstat_" + code, fmt::format("count={}", count));
  }
}

void LatencyStatsSection(Host& host, InfoWriter& out) {
  const Config& config = host.services().config;
  out.Section("Latencystats");
  if (!config.latency_tracking) return;
  for (const auto& entry : host.services().commands.entries()) {
    if (entry->stats.calls == 0) continue;
    std::string text;
    for (const double percentile : config.percentiles) {
      text += fmt::format("{}p{:g}={:.3f}", text.empty() ? "" : ",", percentile,
                          entry->stats.latency.PercentileMicros(percentile));
    }
    out.Field("latency_percentiles_usec_" + entry->full_name, text);
  }
}

// Of a cluster what this node knows of it, and of the sets what the director does.
void ClusterFields(Host& host, InfoWriter& out) {
  const SetReport report = ReportSet(host);
  Store& store = host.store();
  const ClusterView& view = host.services().cluster_view;
  const MapCache& map = report.set == 0 ? host.services().cluster_map.Current(store) : view.map;
  const bool leads = host.replication().set()->open();
  const bool directs = leads && report.set == 0;
  SetDirectory sets = view.sets;
  (void)sets.Put(OwnClusterSet(host));
  out.Field("cluster_set", report.set);
  out.Field("cluster_sets", sets.sets().size());
  out.Field("cluster_role", directs ? "director" : leads ? "leader" : "member");
  out.Field("cluster_map_version", map.version());
  const bool is_behind = !directs && view.map_heard > map.version();
  out.Field("cluster_map_behind", is_behind ? view.map_heard - map.version() : 0);
  out.Field("cluster_catalog", store.engine().cluster().catalog);
  out.Field("cluster_tablets_owned", report.tablets);
  const TabletMoves& moves = store.engine().cluster().moves;
  out.Field("cluster_tablets_given", moves.out().size());
  out.Field("cluster_tablets_staged", moves.in().size());
  out.Field("cluster_tablets_lost", LostTablets(map));
  const MoveFigures moved =
      host.services().moves == nullptr ? MoveFigures{} : host.services().moves->figures();
  out.Field("cluster_rows_to_purge", moved.purges ? 1 : 0);
  out.Field("cluster_jobs_done", moved.done);
  out.Field("cluster_jobs_cancelled", moved.cancelled);
  out.Field("cluster_pause_us_max", moved.pause_micros_max);
  const CutFigures cuts =
      host.services().cuts == nullptr ? CutFigures{} : host.services().cuts->figures();
  out.Field("cluster_cuts_good", cuts.good);
  out.Field("cluster_cuts_bad", cuts.bad);
  out.Field("cluster_hold_us_max", cuts.hold_micros_max);
  out.Field("cluster_given_ms", moved.given_micros / 1000);
  if (!directs) {
    out.Field("cluster_jobs_running", moves.out().size() + moves.in().size());
    return;
  }
  int64_t oldest_ms = 0;
  uint64_t running = 0;
  for (const auto& [number, job] : host.services().move_jobs.All(store)) {
    if (job.decided()) continue;
    ++running;
    oldest_ms = std::max(oldest_ms, store.now_micros() / 1000 - job.started_ms);
  }
  out.Field("cluster_jobs_running", running);
  out.Field("cluster_job_oldest_s", oldest_ms / 1000);
  for (const auto& [number, set] : sets.sets()) {
    const ClusterMember* const leader = set.Find(set.leader);
    out.Field(
        fmt::format("set{}", number),
        fmt::format(
            "state={},leader={},tablets={},bytes={},load={},catalog={}", SetStateOf(set),
            leader == nullptr ? std::string() : fmt::format("{}:{}", leader->host, leader->port),
            set.tablets, set.bytes, set.load, set.catalog));
  }
}

void ClusterSection(Host& host, InfoWriter& out) {
  const ClusterFigures figures = host.cluster_figures();
  out.Section("Cluster");
  out.Field("cluster_enabled", 0);
  out.Field("cluster_links", figures.links);
  out.Field("cluster_channels", figures.channels);
  out.Field("cluster_calls_waiting", figures.calls_waiting);
  out.Field("cluster_calls_held", figures.calls_held);
  out.Field("cluster_calls_out", figures.calls_out);
  out.Field("cluster_calls_in", figures.calls_in);
  out.Field("cluster_calls_bounced", figures.calls_bounced);
  out.Field("cluster_calls_retried", figures.calls_retried);
  out.Field("cluster_connections_closed", figures.connections_closed);
  if (const SetNode* const set = host.replication().set(); set != nullptr)
    out.Field("cluster_feature_level", fmt::format("{}/{}", kFeatureLevel, set->feature_level()));
  if (IsInCluster(host)) ClusterFields(host, out);
}

// Redis' form with the tables as keys, and nothing else: tools that read these lines refuse any
// other.
void KeyspaceSection(Host& host, InfoWriter& out) {
  out.Section("Keyspace");
  for (const KeyspaceFigures& keyspace : host.keyspaces()) {
    if (keyspace.tables == 0) continue;
    const bool number = keyspace.name.find_first_not_of("0123456789") == std::string::npos;
    out.Field((number ? "db" : "") + keyspace.name,
              fmt::format("keys={},expires=0,avg_ttl=0", keyspace.tables));
  }
}

// What Redis has no place for.
void CellarSection(Host& host, InfoWriter& out) {
  out.Section("Cellar");
  for (const KeyspaceFigures& keyspace : host.keyspaces()) {
    if (keyspace.tables == 0) continue;
    out.Field("keyspace_" + keyspace.name,
              fmt::format("tables={},rows={},cells={},bytes={}", keyspace.tables, keyspace.rows,
                          keyspace.cells, keyspace.bytes));
  }
}

// A line a table, with its keyspace in front. Reads and writes are about (heat_map.h), since the
// start, in rows; `reclaim_due` is 1 while retention may have dropped cells that are still stored.
void TablesSection(Host& host, InfoWriter& out) {
  constexpr size_t kTablesShown{1'000};
  out.Section("Tables");
  if (host.loading()) return;
  Store& store = host.store();
  size_t shown = 0;
  for (const std::string& keyspace : store.Keyspaces()) {
    for (const Table* table : store.Tables(keyspace)) {
      if (++shown > kTablesShown) return;
      const HeatAmounts heat = host.services().heat.TotalOf(*table);
      uint64_t expiring = 0;
      uint64_t reclaimed = 0;
      for (const FamilyCounters& family : table->counters().families) {
        expiring += family.expiring_cells;
        reclaimed += family.reclaimed;
      }
      std::map<std::string_view, size_t> states;
      for (const IndexSchema& index : table->schema().indexes) {
        const Index* const built =
            table->has_indexes() ? table->indexes()->Find(index.id) : nullptr;
        const bool ready = index.state == IndexState::kReady && built != nullptr && built->built();
        ++states[index.state == IndexState::kFailed ? "failed" : ready ? "ready" : "building"];
      }
      std::string text = fmt::format(
          "rows={},cells={},bytes={},reads={:.0f},writes={:.0f},reclaimed={},expiring={},"
          "reclaim_due={},indexes={}",
          table->counters().rows, table->cells(), table->memory_bytes(), heat.reads, heat.writes,
          reclaimed, expiring, table->MayHoldDropped() ? 1 : 0, table->schema().indexes.size());
      for (const auto& [state, count] : states) text += fmt::format(",indexes_{}={}", state, count);
      out.Field("table_" + keyspace + "/" + table->name(), text);
    }
  }
}

struct Section {
  std::string_view name;
  void (*write)(Host&, InfoWriter&);
  bool by_default;
  bool of_data{false};  // tells how much data there is in all
};
constexpr Section kSections[] = {
    {"server", ServerSection, true},
    {"clients", ClientsSection, true},
    {"memory", MemorySection, true, true},
    {"persistence", PersistenceSection, true, true},
    {"stats", StatsSection, true},
    {"replication", ReplicationSection, true},
    {"cpu", CpuSection, true},
    {"modules", ModulesSection, true},
    {"commandstats", CommandStatsSection, false},
    {"errorstats", ErrorStatsSection, true},
    {"latencystats", LatencyStatsSection, false},
    {"cluster", ClusterSection, true},
    {"keyspace", KeyspaceSection, true, true},
    {"cellar", CellarSection, true, true},
    {"tables", TablesSection, false, true},
};

}  // namespace

std::string HumanBytes(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{}B", bytes);
  auto value = static_cast<double>(bytes) / 1024;
  for (const char unit : {'K', 'M', 'G', 'T', 'P'}) {
    if (value < 1024) return fmt::format("{:.2f}{}", value, unit);
    value /= 1024;
  }
  return fmt::format("{}B", bytes);
}

std::string InfoText(Host& host, std::span<const std::string_view> sections, InfoScope scope) {
  std::string text;
  InfoWriter out(&text);
  for (const Section& section : kSections) {
    bool wanted = sections.empty() && section.by_default;
    for (const std::string_view name : sections) {
      wanted = wanted || EqualsIgnoreCase(name, section.name) ||
               EqualsIgnoreCase(name, "everything") ||
               (EqualsIgnoreCase(name, "all") && section.name != "modules") ||
               (EqualsIgnoreCase(name, "default") && section.by_default);
    }
    if (section.of_data && scope == InfoScope::kWithoutData) continue;
    if (wanted) section.write(host, out);
  }
  return text;
}

}  // namespace cellar
