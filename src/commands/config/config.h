// Config: every option of the server, in one table: name, type, bounds, default, what it is for.
//
// The values are plain members, read wherever they are needed. Texts come from three places and
// pass the same checks: the configuration files and the command line (redis.conf's style,
// config_file.h, config_sources.h) at start, CONFIG SET while running. CONFIG GET and CONFIG
// REWRITE print them back.
// conf/cellar.conf documents every option; a test compares it with this table.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cellar/status.h"
#include "commands/config/cluster_config.h"
#include "commands/config/memory_config.h"
#include "commands/config/tls_config.h"

namespace cellar {

enum class LogLevel : int64_t { kDebug, kVerbose, kNotice, kWarning, kNothing };
enum class DebugAccess : int64_t { kNo, kLocal, kYes };
enum class AppendFsync : int64_t { kEverysec, kAlways, kNo };
enum class ReplicaKind : int64_t { kVoter, kStandby, kWitness };
enum class ReplicaReads : int64_t { kStale, kNo, kLinearizable };

// One class of client-output-buffer-limit. 0 is no limit.
struct OutputLimit {
  int64_t hard_bytes{0};
  int64_t soft_bytes{0};
  int64_t soft_seconds{0};
  friend bool operator==(const OutputLimit&, const OutputLimit&) = default;
};
// A master has no limit of its own: Redis has none for it either.
enum class ClientClass : uint8_t { kNormal, kReplica, kPubsub, kMaster };

// `save` points: a snapshot after so many seconds with at least so many changes.
struct SaveRule {
  int64_t seconds;
  int64_t changes;
};

// What invalidations of CLIENT TRACKING name: session/tracking.h.
enum class TrackingNames : uint8_t { kRow, kTable, kBoth };

// One up to two cores; beyond, half of them and at most four.
int64_t DefaultIoThreads();

struct Config : MemoryConfig, ClusterConfig, TlsConfig {
  // network
  std::string bind{"127.0.0.1 -::1"};
  int64_t port{6479};
  int64_t tcp_backlog{511};
  std::string unixsocket;
  int64_t unixsocketperm{0};
  int64_t timeout{0};
  int64_t tcp_keepalive{300};
  int64_t maxclients{10'000};
  bool protected_mode{true};
  // limits
  int64_t proto_max_bulk_len{512LL << 20};
  int64_t client_query_buffer_limit{1LL << 30};
  std::string client_output_buffer_limit{
      "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60"};
  int64_t reply_max_bytes{512LL << 20};
  int64_t maxmemory_policy{0};
  int64_t max_value_bytes{64LL << 20};
  // persistence
  std::string dir{"."};
  bool create_dir{false};
  bool appendonly{true};
  int64_t appendfsync{static_cast<int64_t>(AppendFsync::kEverysec)};
  std::string save{"3600 1 300 100 60 10000"};
  int64_t auto_aof_rewrite_percentage{100};
  int64_t auto_aof_rewrite_min_size{64LL << 20};
  int64_t snapshot_keep{1};
  bool stop_writes_on_bgsave_error{true};
  int64_t log_keep_bytes{8LL << 30};
  int64_t feed_sync{50};
  int64_t snapshots_max{256};
  std::string drop_keep{"0"};
  int64_t drop_keep_ms{0};  // of drop_keep
  std::string backupdirname{"backupdir"};
  int64_t backup_sealed_ttl{0};
  std::string archive_dir;
  std::string archive_keep{"7d"};
  int64_t archive_keep_ms{7LL * 86'400'000};  // of archive_keep
  int64_t archive_max_bytes{0};
  std::string archive_timeout{"60s"};
  int64_t archive_timeout_ms{60'000};  // of archive_timeout
  std::string s3_endpoint;
  std::string s3_region;
  std::string s3_credentials_file;
  // security
  std::string requirepass;
  std::string aclfile;
  int64_t acllog_max_len{128};
  int64_t acl_pubsub_default{1};                // of ChannelDefault
  std::vector<std::vector<std::string>> users;  // `user` lines: name and rules
  int64_t enable_debug_command{static_cast<int64_t>(DebugAccess::kNo)};
  // replication
  std::string replicaof;  // "host port", or empty
  std::string masteruser;
  std::string masterauth;
  std::string sentinel_name;  // of the replica set for SENTINEL; empty: any
  std::string cluster_nodes;  // "host:port host:port ...", or empty
  int64_t replica_election_timeout{300};
  bool replica_lease{true};
  int64_t replica_kind{static_cast<int64_t>(ReplicaKind::kVoter)};
  int64_t replica_reads{0};
  int64_t replica_max_lag{0};
  int64_t replica_priority{100};
  std::string replica_announce_ip;
  int64_t replica_announce_port{0};
  int64_t min_replicas_to_write{0};
  int64_t min_replicas_max_lag{10};
  int64_t repl_timeout{60};
  int64_t shutdown_timeout{10};
  int64_t repl_backlog_size{1LL << 30};
  int64_t repl_tail_size{64LL << 20};
  int64_t repl_sync_rate{0};
  // the process
  int64_t loglevel{static_cast<int64_t>(LogLevel::kNotice)};
  std::string logfile;
  std::string pidfile;
  std::string override_file;
  int64_t databases{16};
  int64_t hz{10};
  int64_t io_threads{DefaultIoThreads()};
  bool huge_pages{true};
  // what is watched
  int64_t slowlog_log_slower_than{10'000};
  int64_t slowlog_max_len{128};
  int64_t latency_monitor_threshold{0};
  bool latency_tracking{true};
  std::string latency_tracking_info_percentiles{"50 99 99.9"};
  std::string notify_keyspace_events;
  int64_t tracking_table_max_keys{1'000'000};
  int64_t tracking_names{static_cast<int64_t>(TrackingNames::kTable)};
  int64_t heat_memory{16LL << 20};
  int64_t heat_sample{64};
  // cells
  int64_t scan_reply_max_bytes{16LL << 20};
  int64_t agg_threads{1};
  int64_t read_threads{1};
  int64_t snapshot_cursor_timeout{60};
  int64_t ts_future_max{86'400};

  // --- derived from the texts above, kept up to date by Set
  OutputLimit output_limits[4]{{}, {256LL << 20, 64LL << 20, 60}, {32LL << 20, 8LL << 20, 60}, {}};
  std::vector<SaveRule> save_rules{{3600, 1}, {300, 100}, {60, 10'000}};
  uint32_t notify_flags{0};
  std::vector<double> percentiles{50, 99, 99.9};
};

enum ConfigFlags : uint32_t {
  kConfigImmutable = 1u << 0,  // only at start
  kConfigMultiWord = 1u << 1,  // takes several words in a file
  kConfigHidden = 1u << 2,     // a password: not shown by CONFIG GET to those who ... and MONITOR
};

// What the server takes over when an option changes while it runs (Host::ApplyConfig). Most options
// are read where they are needed, and there is nothing to take over.
enum class ConfigTopic : uint8_t {
  kNone,
  kBind,
  kPort,
  kKeepalive,
  kClients,
  kPassword,
  kAclLogLength,
  kTls,
  kMemory,
  kValueBytes,
  kLog,
  kSyncPolicy,
  kSavePoints,
  kRewriteTrigger,
  kSnapshotsKept,
  kSnapshotErrors,
  kLogLevel,
  kHousekeeping,
  kSlowBound,
  kSlowLogLength,
  kTrackingLimit,
  kHeat,
  kCursorTimeout,
  kFeeds,
  kNamedSnapshots,
  kBackup,
  kArchive,
  kFutureMax,
  kReplicaOf,
  kReplication,
};

struct ConfigOption {
  enum class Kind : uint8_t { kBool, kInteger, kMemory, kOctal, kText, kEnum };
  std::string_view name;
  Kind kind;
  std::variant<bool Config::*, int64_t Config::*, std::string Config::*> member;
  std::string_view help;
  uint32_t flags{0};
  ConfigTopic topic{ConfigTopic::kNone};
  int64_t low{0};
  int64_t high{INT64_MAX};
  std::span<const std::string_view> words{};  // of an enum, value = position
  // Checks (and rewrites into its canonical form) a text; null: any text.
  Status (*check)(std::string* text){nullptr};
  // Recomputes what is derived; null: nothing is.
  void (*derive)(Config* config){nullptr};
};

// cluster-reads, said or not: one of the first three.
ClusterReads ClusterReadsOf(const Config& config);
// What nobody has said is what is the default in a cluster, or outside of one.
void SetClusterReadsDefault(Config* config, bool in_cluster);

// In the order of conf/cellar.conf.
std::span<const ConfigOption> ConfigOptions();
// In any case; null if there is none.
const ConfigOption* FindConfigOption(std::string_view name);

// Sets one option from its text. The error says what was expected ("argument must be ..."); nothing
// has changed then.
Status SetConfigOption(Config* config, const ConfigOption& option, std::string_view text);
// The value as CONFIG GET shows it.
std::string ConfigOptionText(const Config& config, const ConfigOption& option);

// Bits of Config::notify_flags, Redis' letters.
enum NotifyFlags : uint32_t {
  kNotifyKeyspace = 1u << 0,  // K
  kNotifyKeyevent = 1u << 1,  // E
  kNotifyGeneric = 1u << 2,   // g
  kNotifyTable = 1u << 3,     // the others, all meaning: cells of a table have changed
  kNotifyNew = 1u << 4,       // n
  kNotifyMiss = 1u << 5,      // m
};

}  // namespace cellar
