// See config.h.
#include "commands/config/config.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <thread>

#include "base/assert.h"
#include "base/text/duration.h"
#include "base/text/number.h"
#include "commands/arguments/arguments.h"
#include "commands/config/client_limits.h"
#include "commands/config/config_words.h"
#include "commands/config/invalid.h"
#include "commands/config/option_value.h"
#include "commands/config/set_options.h"
#include "resp/decimal.h"
#include "resp/request_parser.h"

namespace cellar {
namespace {

using Kind = ConfigOption::Kind;

// --- save ---

bool ParseSave(std::string_view text, std::vector<SaveRule>* rules) {
  const auto words = Words(text);
  if (words.size() % 2 != 0) return false;
  for (size_t i = 0; i < words.size(); i += 2) {
    SaveRule rule{};
    if (!ParseStrictInt64(words[i], &rule.seconds) || rule.seconds < 1) return false;
    if (!ParseStrictInt64(words[i + 1], &rule.changes) || rule.changes < 0) return false;
    rules->push_back(rule);
  }
  return true;
}
Status CheckSave(std::string* text) {
  std::vector<SaveRule> rules;
  if (!ParseSave(*text, &rules)) return Invalid("Invalid save parameters");
  *text = Joined(Words(*text));
  return Status::Ok();
}
void DeriveSave(Config* config) {
  config->save_rules.clear();
  const bool parsed = ParseSave(config->save, &config->save_rules);
  CELLAR_ASSERT(parsed);
}

// --- drop-keep ---

Status CheckDropKeep(std::string* text) {
  return *text == "0" ? Status::Ok() : ParseDurationMs(*text).status();
}
void DeriveDropKeep(Config* config) {
  config->drop_keep_ms = config->drop_keep == "0" ? 0 : *ParseDurationMs(config->drop_keep);
}

// --- backupdirname, archive-... ---

Status CheckBackupName(std::string* text) {
  if (!text->empty() && *text != "." && *text != "..") return Status::Ok();
  return Status::Error(ErrorCode::kErr, "it must be the name of a folder");
}
Status CheckArchiveKeep(std::string* text) { return ParseDurationMs(*text).status(); }
void DeriveArchiveTimes(Config* config) {
  config->archive_keep_ms = *ParseDurationMs(config->archive_keep);
  config->archive_timeout_ms =
      config->archive_timeout == "0" ? 0 : *ParseDurationMs(config->archive_timeout);
}

// --- notify-keyspace-events ---

constexpr std::string_view kTableLetters = "$lshzxetd";

bool ParseNotify(std::string_view text, uint32_t* flags) {
  for (const char c : text) {
    if (c == 'K') {
      *flags |= kNotifyKeyspace;
    } else if (c == 'E') {
      *flags |= kNotifyKeyevent;
    } else if (c == 'g') {
      *flags |= kNotifyGeneric;
    } else if (c == 'A') {
      *flags |= kNotifyGeneric | kNotifyTable;
    } else if (c == 'n') {
      *flags |= kNotifyNew;
    } else if (c == 'm') {
      *flags |= kNotifyMiss;
    } else if (kTableLetters.find(c) != std::string_view::npos) {
      *flags |= kNotifyTable;
    } else {
      return false;
    }
  }
  return true;
}
Status CheckNotify(std::string* text) {
  uint32_t flags = 0;
  if (!ParseNotify(*text, &flags)) {
    return Invalid("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.");
  }
  // Redis' canonical order, with all table classes as A.
  std::string canonical;
  if ((flags & kNotifyTable) != 0 && (flags & kNotifyGeneric) != 0) {
    canonical = "A";
  } else {
    if ((flags & kNotifyGeneric) != 0) canonical += "g";
    for (const char c : kTableLetters) {
      if (text->find(c) != std::string::npos) canonical += c;
    }
  }
  if ((flags & kNotifyKeyspace) != 0) canonical += "K";
  if ((flags & kNotifyKeyevent) != 0) canonical += "E";
  if ((flags & kNotifyMiss) != 0) canonical += "m";
  if ((flags & kNotifyNew) != 0) canonical += "n";
  *text = canonical;
  return Status::Ok();
}
void DeriveNotify(Config* config) {
  config->notify_flags = 0;
  const bool parsed = ParseNotify(config->notify_keyspace_events, &config->notify_flags);
  CELLAR_ASSERT(parsed);
}

// --- latency-tracking-info-percentiles ---

bool ParsePercentiles(std::string_view text, std::vector<double>* percentiles) {
  for (const std::string_view word : Words(text)) {
    double value = 0;
    if (ParseDouble(word, &value) != NumberError::kNone || value < 0 || value > 100) return false;
    percentiles->push_back(value);
  }
  return true;
}
Status CheckPercentiles(std::string* text) {
  std::vector<double> percentiles;
  if (!ParsePercentiles(*text, &percentiles)) {
    return Invalid("percentiles must be between 0.0 and 100.0");
  }
  *text = Joined(Words(*text));
  return Status::Ok();
}
void DerivePercentiles(Config* config) {
  config->percentiles.clear();
  const bool parsed =
      ParsePercentiles(config->latency_tracking_info_percentiles, &config->percentiles);
  CELLAR_ASSERT(parsed);
}

Status CheckDirectory(std::string* text) {
  return text->empty() ? Invalid("dir must name a directory") : Status::Ok();
}

Status CheckBind(std::string* text) {
  *text = Joined(Words(*text));
  if (Words(*text).size() > 16) return Invalid("Too many bind addresses specified.");
  return Status::Ok();
}

// In the spelling of the configuration, which the TLS context understands.
Status CheckTlsProtocols(std::string* text) {
  std::string canonical;
  for (const std::string_view word : Words(*text)) {
    std::string_view known;
    for (const std::string_view protocol : {"TLSv1.2", "TLSv1.3"}) {
      if (EqualsIgnoreCase(word, protocol)) known = protocol;
    }
    if (known.empty()) return Invalid("tls-protocols takes TLSv1.2 and TLSv1.3");
    canonical.append(canonical.empty() ? "" : " ").append(known);
  }
  *text = canonical;
  return Status::Ok();
}

constexpr std::string_view kLogLevels[] = {"debug", "verbose", "notice", "warning", "nothing"};
constexpr std::string_view kDebugWords[] = {"no", "local", "yes"};
constexpr std::string_view kFsyncWords[] = {"everysec", "always", "no"};
constexpr std::string_view kAuthClientsWords[] = {"no", "yes", "optional"};
constexpr std::string_view kReplicaKindWords[] = {"voter", "standby", "witness"};
constexpr std::string_view kClusterReadsWords[] = {"local", "leader", "linearizable", "local",
                                                   "leader"};
constexpr std::string_view kReplicaReadsWords[] = {"stale", "no", "linearizable"};
constexpr std::string_view kChannelWords[] = {"allchannels", "resetchannels"};
constexpr std::string_view kTrackingNames[] = {"row", "table", "both"};
constexpr std::string_view kPolicies[] = {"noeviction"};

constexpr int64_t kInt32Max{INT32_MAX};

// Files, command line, CONFIG and its tests go by this table. A new option needs a member of
// Config, a row here and its text in conf/cellar.conf; one that must do something when it changes
// needs a topic.
const ConfigOption kOptions[] = {
    // network
    {.name = "bind",
     .kind = Kind::kText,
     .member = &Config::bind,
     .help = "Addresses to listen on; one that is not there is skipped if it begins with `-`.",
     .flags = kConfigMultiWord,
     .topic = ConfigTopic::kBind,
     .check = CheckBind},
    {.name = "port",
     .kind = Kind::kInteger,
     .member = &Config::port,
     .help = "TCP port; 0: no TCP at all.",
     .topic = ConfigTopic::kPort,
     .high = 65535},
    {.name = "tcp-backlog",
     .kind = Kind::kInteger,
     .member = &Config::tcp_backlog,
     .help = "Connections that may wait to be accepted.",
     .flags = kConfigImmutable,
     .high = kInt32Max},
    {.name = "unixsocket",
     .kind = Kind::kText,
     .member = &Config::unixsocket,
     .help = "Path of a unix socket to listen on as well.",
     .flags = kConfigImmutable},
    {.name = "unixsocketperm",
     .kind = Kind::kOctal,
     .member = &Config::unixsocketperm,
     .help = "Its permissions, octal; 0: as umask has it.",
     .flags = kConfigImmutable,
     .high = 0777},
    {.name = "timeout",
     .kind = Kind::kInteger,
     .member = &Config::timeout,
     .help = "Seconds after which an idle client is disconnected; 0: never.",
     .high = kInt32Max},
    {.name = "tcp-keepalive",
     .kind = Kind::kInteger,
     .member = &Config::tcp_keepalive,
     .help = "Seconds between TCP probes that find dead peers; 0: none.",
     .topic = ConfigTopic::kKeepalive,
     .high = kInt32Max},
    {.name = "maxclients",
     .kind = Kind::kInteger,
     .member = &Config::maxclients,
     .help = "Clients at the same time.",
     .topic = ConfigTopic::kClients,
     .low = 1,
     .high = kInt32Max},
    {.name = "protected-mode",
     .kind = Kind::kBool,
     .member = &Config::protected_mode,
     .help = "Without a password only this machine may connect."},
    // limits
    {.name = "proto-max-bulk-len",
     .kind = Kind::kMemory,
     .member = &Config::proto_max_bulk_len,
     .help = "Largest single argument.",
     .low = 1024 * 1024},
    {.name = "client-query-buffer-limit",
     .kind = Kind::kMemory,
     .member = &Config::client_query_buffer_limit,
     .help = "Largest command; a client that sends more is disconnected.",
     .low = 1024 * 1024},
    {.name = "client-output-buffer-limit",
     .kind = Kind::kText,
     .member = &Config::client_output_buffer_limit,
     .help = "A client that does not read is disconnected beyond the hard limit, or beyond the "
             "soft one for so many seconds; by class: normal, replica, pubsub.",
     .flags = kConfigMultiWord,
     .check = CheckOutputLimits,
     .derive = DeriveOutputLimits},
    {.name = "reply-max-bytes",
     .kind = Kind::kMemory,
     .member = &Config::reply_max_bytes,
     .help = "Largest reply of one row, of one CMGET or CROWS, and of the reads of one EXEC: a "
             "read beyond it is TOOLARGE.",
     .low = 1},
    {.name = "maxmemory",
     .kind = Kind::kMemory,
     .member = &Config::maxmemory,
     .help = "Bytes of data beyond which writes are refused with OOM; 0: no limit.",
     .topic = ConfigTopic::kMemory},
    {.name = "maxmemory-clients",
     .kind = Kind::kText,
     .member = &Config::maxmemory_clients,
     .help = "What clients may take together, bytes or a percentage of maxmemory: beyond it the "
             "largest are disconnected; 0: their requests a half of maxmemory.",
     .check = CheckMaxmemoryClients,
     .derive = DeriveMaxmemoryClients},
    {.name = "maxmemory-policy",
     .kind = Kind::kEnum,
     .member = &Config::maxmemory_policy,
     .help = "Cellar never throws data away.",
     .words = kPolicies},
    {.name = "max-value-bytes",
     .kind = Kind::kMemory,
     .member = &Config::max_value_bytes,
     .help = "Largest value of a cell.",
     .topic = ConfigTopic::kValueBytes,
     .low = 1,
     .high = 512LL << 20},
    // persistence
    {.name = "dir",
     .kind = Kind::kText,
     .member = &Config::dir,
     .help = "Where log, snapshot and manifest live.",
     .flags = kConfigImmutable,
     .check = CheckDirectory},
    {.name = "create-dir",
     .kind = Kind::kBool,
     .member = &Config::create_dir,
     .help = "Begin a new store where dir holds none.",
     .flags = kConfigImmutable},
    {.name = "appendonly",
     .kind = Kind::kBool,
     .member = &Config::appendonly,
     .help = "Keep a log of every change.",
     .topic = ConfigTopic::kLog},
    {.name = "appendfsync",
     .kind = Kind::kEnum,
     .member = &Config::appendfsync,
     .help = "When the log is on disk: before the reply, each second, when the system decides.",
     .topic = ConfigTopic::kSyncPolicy,
     .words = kFsyncWords},
    {.name = "save",
     .kind = Kind::kText,
     .member = &Config::save,
     .help = "Snapshot after so many seconds with at least so many changes; several pairs.",
     .flags = kConfigMultiWord,
     .topic = ConfigTopic::kSavePoints,
     .check = CheckSave,
     .derive = DeriveSave},
    {.name = "auto-aof-rewrite-percentage",
     .kind = Kind::kInteger,
     .member = &Config::auto_aof_rewrite_percentage,
     .help = "Snapshot when the log has grown by so much since the last one; 0: never.",
     .topic = ConfigTopic::kRewriteTrigger,
     .high = kInt32Max},
    {.name = "auto-aof-rewrite-min-size",
     .kind = Kind::kMemory,
     .member = &Config::auto_aof_rewrite_min_size,
     .help = "But not before the log has this size.",
     .topic = ConfigTopic::kRewriteTrigger},
    {.name = "snapshot-keep",
     .kind = Kind::kInteger,
     .member = &Config::snapshot_keep,
     .help = "How many snapshots stay, with the log behind the oldest.",
     .topic = ConfigTopic::kSnapshotsKept,
     .low = 1,
     .high = 100},
    {.name = "stop-writes-on-bgsave-error",
     .kind = Kind::kBool,
     .member = &Config::stop_writes_on_bgsave_error,
     .help = "Without a log: refuse writes after a failed snapshot.",
     .topic = ConfigTopic::kSnapshotErrors},
    {.name = "log-keep-bytes",
     .kind = Kind::kMemory,
     .member = &Config::log_keep_bytes,
     .help = "Log that is kept for feeds: beyond it their oldest entries go.",
     .topic = ConfigTopic::kFeeds},
    {.name = "feed-sync",
     .kind = Kind::kInteger,
     .member = &Config::feed_sync,
     .help = "Milliseconds between syncs that readers of feeds may ask for.",
     .topic = ConfigTopic::kFeeds,
     .low = 1,
     .high = 60'000},
    {.name = "snapshots-max",
     .kind = Kind::kInteger,
     .member = &Config::snapshots_max,
     .help = "How many named snapshots there may be.",
     .topic = ConfigTopic::kNamedSnapshots,
     .low = 0,
     .high = 100'000},
    {.name = "drop-keep",
     .kind = Kind::kText,
     .member = &Config::drop_keep,
     .help = "How long a snapshot of what is dropped or truncated is kept; 0: none is made.",
     .topic = ConfigTopic::kNamedSnapshots,
     .check = CheckDropKeep,
     .derive = DeriveDropKeep},
    {.name = "backupdirname",
     .kind = Kind::kText,
     .member = &Config::backupdirname,
     .help = "Folder that BACKUP writes to, in `dir` unless it begins with a slash.",
     .flags = kConfigImmutable,
     .check = CheckBackupName},
    {.name = "backup-sealed-ttl",
     .kind = Kind::kInteger,
     .member = &Config::backup_sealed_ttl,
     .help = "Seconds until a sealed backup is removed; 0: it stays.",
     .topic = ConfigTopic::kBackup,
     .high = kInt32Max},
    {.name = "archive-dir",
     .kind = Kind::kText,
     .member = &Config::archive_dir,
     .help =
         "Folder, or s3://bucket/prefix, that closed log segments and snapshots are archived to.",
     .flags = kConfigImmutable},
    {.name = "archive-keep",
     .kind = Kind::kText,
     .member = &Config::archive_keep,
     .help = "How far back the archive reaches.",
     .topic = ConfigTopic::kArchive,
     .check = CheckArchiveKeep,
     .derive = DeriveArchiveTimes},
    {.name = "archive-max-bytes",
     .kind = Kind::kMemory,
     .member = &Config::archive_max_bytes,
     .help = "Beyond it the archive's oldest go, but for the newest snapshot; 0: no limit.",
     .topic = ConfigTopic::kArchive},
    {.name = "archive-timeout",
     .kind = Kind::kText,
     .member = &Config::archive_timeout,
     .help = "A log segment with records is closed at this age, for the archive; 0: it is not.",
     .topic = ConfigTopic::kArchive,
     .check = CheckDropKeep,
     .derive = DeriveArchiveTimes},
    // security
    {.name = "s3-endpoint",
     .kind = Kind::kText,
     .member = &Config::s3_endpoint,
     .help = "Server of s3:// places, http://host:port; empty: AWS_ENDPOINT_URL, else AWS.",
     .flags = kConfigImmutable},
    {.name = "s3-region",
     .kind = Kind::kText,
     .member = &Config::s3_region,
     .help = "Region of s3:// places; empty: AWS_REGION, else us-east-1.",
     .flags = kConfigImmutable},
    {.name = "s3-credentials-file",
     .kind = Kind::kText,
     .member = &Config::s3_credentials_file,
     .help = "Keys for s3:// places, as in ~/.aws/credentials; empty: of the environment.",
     .flags = kConfigImmutable},
    {.name = "requirepass",
     .kind = Kind::kText,
     .member = &Config::requirepass,
     .help = "Password of the default user; empty: none is needed.",
     .flags = kConfigHidden,
     .topic = ConfigTopic::kPassword},
    {.name = "aclfile",
     .kind = Kind::kText,
     .member = &Config::aclfile,
     .help = "File of users, for ACL LOAD and ACL SAVE; none if empty.",
     .flags = kConfigImmutable},
    {.name = "acllog-max-len",
     .kind = Kind::kInteger,
     .member = &Config::acllog_max_len,
     .help = "Refusals that ACL LOG remembers.",
     .topic = ConfigTopic::kAclLogLength,
     .high = 1'000'000},
    {.name = "acl-pubsub-default",
     .kind = Kind::kEnum,
     .member = &Config::acl_pubsub_default,
     .help = "Channels of new users: all, or none until a rule allows some.",
     .words = kChannelWords},
    {.name = "enable-debug-command",
     .kind = Kind::kEnum,
     .member = &Config::enable_debug_command,
     .help = "Who may use DEBUG: no one, clients of this machine, all.",
     .flags = kConfigImmutable,
     .words = kDebugWords},
    // TLS
    {.name = "tls-port",
     .kind = Kind::kInteger,
     .member = &Config::tls_port,
     .help = "TCP port on which TLS is spoken; 0: none.",
     .topic = ConfigTopic::kPort,
     .high = 65535},
    {.name = "tls-cert-file",
     .kind = Kind::kText,
     .member = &Config::tls_cert_file,
     .help = "The server's certificate, followed by those that lead to its authority (PEM).",
     .topic = ConfigTopic::kTls},
    {.name = "tls-key-file",
     .kind = Kind::kText,
     .member = &Config::tls_key_file,
     .help = "Its private key (PEM).",
     .topic = ConfigTopic::kTls},
    {.name = "tls-key-file-pass",
     .kind = Kind::kText,
     .member = &Config::tls_key_file_pass,
     .help = "The password of an encrypted key.",
     .flags = kConfigHidden,
     .topic = ConfigTopic::kTls},
    {.name = "tls-ca-cert-file",
     .kind = Kind::kText,
     .member = &Config::tls_ca_cert_file,
     .help = "The authorities whose client certificates are trusted (PEM).",
     .topic = ConfigTopic::kTls},
    {.name = "tls-ca-cert-dir",
     .kind = Kind::kText,
     .member = &Config::tls_ca_cert_dir,
     .help = "The same as a directory that openssl rehash has prepared.",
     .topic = ConfigTopic::kTls},
    {.name = "tls-auth-clients",
     .kind = Kind::kEnum,
     .member = &Config::tls_auth_clients,
     .help =
         "Whether clients need a certificate: no, yes, or optional (only a bad one is refused).",
     .topic = ConfigTopic::kTls,
     .words = kAuthClientsWords},
    {.name = "tls-protocols",
     .kind = Kind::kText,
     .member = &Config::tls_protocols,
     .help = "TLSv1.2, TLSv1.3; empty: both.",
     .flags = kConfigMultiWord,
     .topic = ConfigTopic::kTls,
     .check = CheckTlsProtocols},
    {.name = "tls-ciphers",
     .kind = Kind::kText,
     .member = &Config::tls_ciphers,
     .help = "Ciphers of TLS 1.2, as openssl ciphers knows them; empty: OpenSSL's choice.",
     .topic = ConfigTopic::kTls},
    {.name = "tls-ciphersuites",
     .kind = Kind::kText,
     .member = &Config::tls_ciphersuites,
     .help = "Cipher suites of TLS 1.3; empty: OpenSSL's choice.",
     .topic = ConfigTopic::kTls},
    {.name = "tls-prefer-server-ciphers",
     .kind = Kind::kBool,
     .member = &Config::tls_prefer_server_ciphers,
     .help = "Of the ciphers that both know, take the server's first instead of the client's.",
     .topic = ConfigTopic::kTls},
    {.name = "tls-session-caching",
     .kind = Kind::kBool,
     .member = &Config::tls_session_caching,
     .help = "Let clients that come back shorten their handshake.",
     .topic = ConfigTopic::kTls},
    {.name = "tls-session-cache-size",
     .kind = Kind::kInteger,
     .member = &Config::tls_session_cache_size,
     .help = "Sessions kept; 0: no limit.",
     .topic = ConfigTopic::kTls,
     .high = kInt32Max},
    {.name = "tls-session-cache-timeout",
     .kind = Kind::kInteger,
     .member = &Config::tls_session_cache_timeout,
     .help = "Seconds that a session can be taken up again.",
     .topic = ConfigTopic::kTls,
     .high = kInt32Max},
    // replication
    {.name = "replicaof",
     .kind = Kind::kText,
     .member = &Config::replicaof,
     .help = "Host and port of the server that this one follows; none if empty.",
     .flags = kConfigMultiWord,
     .topic = ConfigTopic::kReplicaOf,
     .check = CheckReplicaOf},
    {.name = "cluster-nodes",
     .kind = Kind::kText,
     .member = &Config::cluster_nodes,
     .help = "All nodes of the replica set that this node belongs to; none if empty.",
     .flags = kConfigMultiWord | kConfigImmutable,
     .check = CheckClusterNodes},
    {.name = "replica-kind",
     .kind = Kind::kEnum,
     .member = &Config::replica_kind,
     .help =
         "As what this node joins a replica set: with data and a vote, with data, or with a vote.",
     .flags = kConfigImmutable,
     .words = kReplicaKindWords},
    {.name = "replica-election-timeout",
     .kind = Kind::kInteger,
     .member = &Config::replica_election_timeout,
     .help = "Milliseconds of a leader's silence after which a replica set elects another one.",
     .flags = kConfigImmutable,
     .low = 100,
     .high = 60'000},
    {.name = "replica-lease",
     .kind = Kind::kBool,
     .member = &Config::replica_lease,
     .help =
         "Whether the leader of a replica set answers reads without asking the others each time.",
     .flags = kConfigImmutable},
    {.name = "masteruser",
     .kind = Kind::kText,
     .member = &Config::masteruser,
     .help = "User that this node is to another one; empty: the default one.",
     .flags = kConfigHidden,
     .topic = ConfigTopic::kReplication},
    {.name = "masterauth",
     .kind = Kind::kText,
     .member = &Config::masterauth,
     .help = "Its password; empty: none is sent.",
     .flags = kConfigHidden,
     .topic = ConfigTopic::kReplication},
    {.name = "tls-replication",
     .kind = Kind::kBool,
     .member = &Config::tls_replication,
     .help = "Connections to other nodes speak TLS.",
     .topic = ConfigTopic::kReplication},
    {.name = "replica-reads",
     .kind = Kind::kEnum,
     .member = &Config::replica_reads,
     .help = "Whether a replica answers reads, from what it has so far or as new as the leader's.",
     .words = kReplicaReadsWords},
    {.name = "replica-max-lag",
     .kind = Kind::kInteger,
     .member = &Config::replica_max_lag,
     .help = "Milliseconds that a replica may be behind and still answer reads; 0: any.",
     .high = kInt32Max},
    {.name = "cluster-forward",
     .kind = Kind::kBool,
     .member = &Config::cluster_forward,
     .help = "In a replica set, commands for the leader are passed on to it.",
     .topic = ConfigTopic::kNone},
    {.name = "cluster-acl",
     .kind = Kind::kBool,
     .member = &Config::cluster_acl,
     .help = "In a replica set, users belong to the set and not to each node.",
     .topic = ConfigTopic::kNone},
    {.name = "cluster-wait",
     .kind = Kind::kInteger,
     .member = &Config::cluster_wait,
     .help = "Milliseconds that a command waits for a leader that could take it.",
     .low = 0,
     .high = 3'600'000},
    {.name = "cluster-reads",
     .kind = Kind::kEnum,
     .member = &Config::cluster_reads,
     .help = "Who answers reads on a follower: this node, or the leader.",
     .words = kClusterReadsWords},
    {.name = "cluster-link-idle",
     .kind = Kind::kInteger,
     .member = &Config::cluster_link_idle,
     .help = "Seconds without a command after which a link to another node is closed.",
     .low = 1,
     .high = kInt32Max},
    {.name = "cluster-machine",
     .kind = Kind::kText,
     .member = &Config::cluster_machine,
     .help =
         "Nodes of one name pass commands on by unixsocket, if they have one; empty: the host's.",
     .topic = ConfigTopic::kNone,
     .check = CheckPlaceName},
    {.name = "cluster-zone",
     .kind = Kind::kText,
     .member = &Config::cluster_zone,
     .help = "Where this node is, as others are told: a room, a data centre; at most 64 bytes.",
     .topic = ConfigTopic::kNone,
     .check = CheckPlaceName},
    {.name = "cluster-join",
     .kind = Kind::kText,
     .member = &Config::cluster_join,
     .help = "Nodes of the cluster that this set is, or wants to be, part of; none if empty.",
     .flags = kConfigMultiWord | kConfigImmutable,
     .check = CheckClusterJoin},
    {.name = "cluster-admit",
     .kind = Kind::kBool,
     .member = &Config::cluster_admit,
     .help = "Whether this node, as the director, takes in sets that ask, without CLUSTER ADMIT.",
     .topic = ConfigTopic::kNone},
    {.name = "replica-priority",
     .kind = Kind::kInteger,
     .member = &Config::replica_priority,
     .help = "Sentinel prefers a low one as the next master; 0: never.",
     .topic = ConfigTopic::kReplication,
     .high = kInt32Max},
    {.name = "sentinel-name",
     .kind = Kind::kText,
     .member = &Config::sentinel_name,
     .help = "Name by which SENTINEL knows the replica set; empty: any.",
     .topic = ConfigTopic::kNone,
     .check = CheckSentinelName},
    {.name = "replica-announce-ip",
     .kind = Kind::kText,
     .member = &Config::replica_announce_ip,
     .help = "Address by which others reach this node; empty: the one that they see.",
     .flags = kConfigImmutable,
     .topic = ConfigTopic::kReplication,
     .check = CheckAnnouncedHost},
    {.name = "replica-announce-port",
     .kind = Kind::kInteger,
     .member = &Config::replica_announce_port,
     .help = "Port likewise; 0: the one it listens on.",
     .flags = kConfigImmutable,
     .topic = ConfigTopic::kReplication,
     .high = 65535},
    {.name = "min-replicas-to-write",
     .kind = Kind::kInteger,
     .member = &Config::min_replicas_to_write,
     .help = "Writes are refused unless so many replicas have answered lately; 0: never.",
     .topic = ConfigTopic::kReplication,
     .high = kInt32Max},
    {.name = "min-replicas-max-lag",
     .kind = Kind::kInteger,
     .member = &Config::min_replicas_max_lag,
     .help = "Lately: within so many seconds.",
     .high = kInt32Max},
    {.name = "repl-timeout",
     .kind = Kind::kInteger,
     .member = &Config::repl_timeout,
     .help = "Seconds of silence after which a link is closed.",
     .topic = ConfigTopic::kReplication,
     .low = 1,
     .high = kInt32Max},
    {.name = "shutdown-timeout",
     .kind = Kind::kInteger,
     .member = &Config::shutdown_timeout,
     .help = "Seconds for a replica set's leader to hand over when it leaves; 0: none.",
     .high = kInt32Max},
    {.name = "repl-backlog-size",
     .kind = Kind::kMemory,
     .member = &Config::repl_backlog_size,
     .help = "Log behind a snapshot that is kept for replicas that come back.",
     .topic = ConfigTopic::kReplication},
    {.name = "repl-tail-size",
     .kind = Kind::kMemory,
     .member = &Config::repl_tail_size,
     .help = "Newest part of the log that is kept in memory for replicas.",
     .topic = ConfigTopic::kReplication},
    {.name = "repl-sync-rate",
     .kind = Kind::kMemory,
     .member = &Config::repl_sync_rate,
     .help = "Bytes per second of a full copy; 0: as fast as it goes.",
     .topic = ConfigTopic::kReplication},
    // the process
    {.name = "loglevel",
     .kind = Kind::kEnum,
     .member = &Config::loglevel,
     .help = "The least severity that is logged.",
     .topic = ConfigTopic::kLogLevel,
     .words = kLogLevels},
    {.name = "logfile",
     .kind = Kind::kText,
     .member = &Config::logfile,
     .help = "Where these lines go; empty: standard error.",
     .flags = kConfigImmutable},
    {.name = "pidfile",
     .kind = Kind::kText,
     .member = &Config::pidfile,
     .help = "A file to hold the process id.",
     .flags = kConfigImmutable},
    {.name = "override-file",
     .kind = Kind::kText,
     .member = &Config::override_file,
     .help = "A file to be read after this one, which CONFIG REWRITE writes in its place.",
     .flags = kConfigImmutable},
    {.name = "databases",
     .kind = Kind::kInteger,
     .member = &Config::databases,
     .help = "Keyspaces 0 to 15 always exist; kept for tools that ask.",
     .flags = kConfigImmutable,
     .low = 16,
     .high = 16},
    {.name = "io-threads",
     .kind = Kind::kInteger,
     .member = &Config::io_threads,
     .help = "Threads that serve clients: one executes all commands, the others read, write and "
             "speak TLS.",
     .flags = kConfigImmutable,
     .low = 1,
     .high = 128},
    {.name = "hz",
     .kind = Kind::kInteger,
     .member = &Config::hz,
     .help = "Housekeeping rounds a second.",
     .topic = ConfigTopic::kHousekeeping,
     .low = 1,
     .high = 500},
    {.name = "huge-pages",
     .kind = Kind::kBool,
     .member = &Config::huge_pages,
     .help = "Ask the kernel for huge pages: fewer cache misses, memory in steps of 2 MB.",
     .flags = kConfigImmutable},
    // what is watched
    {.name = "slowlog-log-slower-than",
     .kind = Kind::kInteger,
     .member = &Config::slowlog_log_slower_than,
     .help = "Microseconds from which on a command is kept in SLOWLOG; -1: none.",
     .topic = ConfigTopic::kSlowBound,
     .low = -1},
    {.name = "slowlog-max-len",
     .kind = Kind::kInteger,
     .member = &Config::slowlog_max_len,
     .help = "Entries of SLOWLOG.",
     .topic = ConfigTopic::kSlowLogLength,
     .high = kInt32Max},
    {.name = "latency-monitor-threshold",
     .kind = Kind::kInteger,
     .member = &Config::latency_monitor_threshold,
     .help = "Milliseconds from which on an event is kept by LATENCY; 0: none.",
     .topic = ConfigTopic::kSlowBound},
    {.name = "latency-tracking",
     .kind = Kind::kBool,
     .member = &Config::latency_tracking,
     .help = "Show latencies by command in INFO latencystats."},
    {.name = "latency-tracking-info-percentiles",
     .kind = Kind::kText,
     .member = &Config::latency_tracking_info_percentiles,
     .help = "Which ones.",
     .flags = kConfigMultiWord,
     .check = CheckPercentiles,
     .derive = DerivePercentiles},
    {.name = "notify-keyspace-events",
     .kind = Kind::kText,
     .member = &Config::notify_keyspace_events,
     .help = "Publish changes of tables: K, E, g, A, n, m and Redis' other letters.",
     .check = CheckNotify,
     .derive = DeriveNotify},
    {.name = "tracking-table-max-keys",
     .kind = Kind::kInteger,
     .member = &Config::tracking_table_max_keys,
     .help = "Rows and tables remembered for CLIENT TRACKING; 0 is no limit.",
     .topic = ConfigTopic::kTrackingLimit},
    {.name = "tracking-names",
     .kind = Kind::kEnum,
     .member = &Config::tracking_names,
     .help = "What invalidations name: the table, as COMMAND GETKEYS does, the row, or both.",
     .words = kTrackingNames},
    {.name = "heat-memory",
     .kind = Kind::kMemory,
     .member = &Config::heat_memory,
     .help = "What HEAT may keep of all tables; 0: nothing is counted.",
     .topic = ConfigTopic::kHeat},
    {.name = "heat-sample",
     .kind = Kind::kInteger,
     .member = &Config::heat_sample,
     .help = "One access of so many is looked at for HEAT, on average.",
     .topic = ConfigTopic::kHeat,
     .low = 1,
     .high = 1'000'000},
    // cells
    {.name = "scan-reply-max-bytes",
     .kind = Kind::kMemory,
     .member = &Config::scan_reply_max_bytes,
     .help = "A page of CSCAN ends here too, whatever COUNT says; in EXEC all pages together.",
     .low = 1},
    {.name = "read-threads",
     .kind = Kind::kInteger,
     .member = &Config::read_threads,
     .help = "Threads that go on with long reads beside the loop; 0: the loop does, in slices.",
     .low = 0,
     .high = 64},
    {.name = "agg-max-memory",
     .kind = Kind::kMemory,
     .member = &Config::agg_max_memory,
     .help = "What the groups of a CAGG may take in each of its threads; beyond it the command is "
             "TOOLARGE.",
     .low = 64 * 1024},
    {.name = "work-max-memory",
     .kind = Kind::kMemory,
     .member = &Config::work_max_memory,
     .help = "What the groups of all CAGGs together may take, and at most a quarter of maxmemory: "
             "others wait.",
     .low = 64 * 1024},
    {.name = "agg-threads",
     .kind = Kind::kInteger,
     .member = &Config::agg_threads,
     .help =
         "Threads that help with large CAGGs, beside the one that each of them has; 0: none does.",
     .low = 0,
     .high = 64},
    {.name = "snapshot-cursor-timeout",
     .kind = Kind::kInteger,
     .member = &Config::snapshot_cursor_timeout,
     .help = "Seconds after its last use until a SNAPSHOT cursor dies.",
     .topic = ConfigTopic::kCursorTimeout,
     .low = 1,
     .high = kInt32Max},
    {.name = "ts-future-max",
     .kind = Kind::kInteger,
     .member = &Config::ts_future_max,
     .help = "Seconds that a TS may be ahead before the log and INFO tell of it; 0: any.",
     .topic = ConfigTopic::kFutureMax,
     .high = kInt32Max},
};

IntegerOption IntegerOf(const ConfigOption& option) {
  return {option.kind, option.low, option.high, option.words};
}

}  // namespace

int64_t DefaultIoThreads() {
  const int64_t cores = std::thread::hardware_concurrency();  // 0: unknown
  return cores <= 2 ? 1 : std::min<int64_t>(4, cores / 2);
}

ClusterReads ClusterReadsOf(const Config& config) {
  const auto reads = static_cast<ClusterReads>(config.cluster_reads);
  return reads == ClusterReads::kLocalUnsaid    ? ClusterReads::kLocal
         : reads == ClusterReads::kLeaderUnsaid ? ClusterReads::kLeader
                                                : reads;
}

void SetClusterReadsDefault(Config* config, bool in_cluster) {
  const auto reads = static_cast<ClusterReads>(config->cluster_reads);
  if (reads != ClusterReads::kLocalUnsaid && reads != ClusterReads::kLeaderUnsaid) return;
  config->cluster_reads =
      static_cast<int64_t>(in_cluster ? ClusterReads::kLeaderUnsaid : ClusterReads::kLocalUnsaid);
}

std::span<const ConfigOption> ConfigOptions() { return kOptions; }

const ConfigOption* FindConfigOption(std::string_view name) {
  for (const ConfigOption& option : kOptions) {
    if (EqualsIgnoreCase(name, option.name)) return &option;
  }
  return nullptr;
}

Status SetConfigOption(Config* config, const ConfigOption& option, std::string_view text) {
  // Checked first and then taken over: a refused text leaves the option as it was.
  if (option.kind == Kind::kBool) {
    const bool yes = EqualsIgnoreCase(text, "yes");
    if (!yes && !EqualsIgnoreCase(text, "no")) return Invalid("argument must be 'yes' or 'no'");
    config->*std::get<bool Config::*>(option.member) = yes;
  } else if (option.kind == Kind::kText) {
    std::string checked(text);
    if (option.check != nullptr) RETURN_IF_ERROR(option.check(&checked));
    config->*std::get<std::string Config::*>(option.member) = std::move(checked);
  } else {
    ASSIGN_OR_RETURN(config->*std::get<int64_t Config::*>(option.member),
                     ReadOptionInteger(IntegerOf(option), text));
  }
  if (option.derive != nullptr) option.derive(config);
  return Status::Ok();
}

std::string ConfigOptionText(const Config& config, const ConfigOption& option) {
  if (option.kind == Kind::kBool) {
    return config.*std::get<bool Config::*>(option.member) ? "yes" : "no";
  }
  if (option.kind == Kind::kText) return config.*std::get<std::string Config::*>(option.member);
  const int64_t value = config.*std::get<int64_t Config::*>(option.member);
  return OptionIntegerText(IntegerOf(option), value);
}

}  // namespace cellar
