// See store_config.h.
#include "server/store_config.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/os/file.h"
#include "base/os/log.h"
#include "base/os/object_store.h"
#include "s3/s3_store.h"
#include "s3/s3_url.h"

namespace cellar {
namespace {

// The largest change that a member takes, for each millisecond of replica-election-timeout. By
// trial with three nodes and a client on two cores: changes of 32 MB mostly got through with 300
// ms, of 64 MB none did.
constexpr size_t kChangeBytesPerMs{100'000};

}  // namespace

SyncPolicy SyncPolicyOf(const Config& config) {
  switch (static_cast<AppendFsync>(config.appendfsync)) {
    case AppendFsync::kAlways:
      return SyncPolicy::kAlways;
    case AppendFsync::kEverysec:
      return SyncPolicy::kEverySecond;
    case AppendFsync::kNo:
      break;
  }
  return SyncPolicy::kNo;
}

std::vector<SavePoint> SavePointsOf(const Config& config) {
  std::vector<SavePoint> points;
  for (const SaveRule& rule : config.save_rules) {
    points.push_back({.seconds = static_cast<uint32_t>(rule.seconds),
                      .changes = static_cast<uint64_t>(rule.changes)});
  }
  return points;
}

namespace {

// Whatever the working directory is. The folder need not be there.
std::string AbsolutePathOf(const std::string& path) {
  if (IsObjectPath(path)) {
    const Result<S3Url> url = ParseS3Url(path);
    return url.ok() ? url->Text() : path;  // what is wrong with it is told when it is opened
  }
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::weakly_canonical(path, error);
  return error ? path : absolute.string();
}

S3Settings S3SettingsOf(const Config& config) {
  return {.endpoint = config.s3_endpoint,
          .region = config.s3_region,
          .credentials_file = config.s3_credentials_file.empty()
                                  ? std::string()
                                  : AbsolutePathOf(config.s3_credentials_file)};
}

}  // namespace

ArchiveOptions ArchiveOptionsOf(const Config& config) {
  return {
      .directory = config.archive_dir.empty() ? std::string() : AbsolutePathOf(config.archive_dir),
      .objects = S3Opener(S3SettingsOf(config), FileSystem::Posix()),
      .keep_micros = config.archive_keep_ms * 1000,
      .bytes_max = static_cast<uint64_t>(config.archive_max_bytes),
      .timeout_micros = config.archive_timeout_ms * 1000};
}

StoreOptions StoreOptionsOf(const Config& config) {
  StoreOptions options;
  options.journal.directory = config.dir;
  options.journal.may_create = config.create_dir;
  options.journal.log_enabled = config.appendonly;
  options.journal.sync_policy = SyncPolicyOf(config);
  options.journal.save_points = SavePointsOf(config);
  options.journal.rewrite_percentage = static_cast<uint32_t>(config.auto_aof_rewrite_percentage);
  options.journal.rewrite_bytes_min = static_cast<uint64_t>(config.auto_aof_rewrite_min_size);
  options.journal.snapshots_kept = static_cast<uint32_t>(config.snapshot_keep);
  options.journal.stop_writes_on_snapshot_error = config.stop_writes_on_bgsave_error;
  options.value_bytes_max = static_cast<uint64_t>(config.max_value_bytes);
  options.future_max_micros = config.ts_future_max * 1'000'000;
  options.snapshot_cursor_timeout_micros = config.snapshot_cursor_timeout * 1'000'000;
  options.log_keep_bytes = static_cast<uint64_t>(config.log_keep_bytes);
  options.feed_sync_micros = config.feed_sync * 1000;
  options.snapshots_max = static_cast<uint64_t>(config.snapshots_max);
  options.drop_keep_micros = config.drop_keep_ms * 1000;
  const bool is_absolute =
      config.backupdirname.starts_with('/') || IsObjectPath(config.backupdirname);
  options.backup.directory = AbsolutePathOf(
      is_absolute ? config.backupdirname : JoinPath(config.dir, config.backupdirname));
  options.archive = ArchiveOptionsOf(config);
  options.backup.objects = options.archive.objects;
  options.backup.sealed_ttl_micros = config.backup_sealed_ttl * 1'000'000;
  options.journal.set_member = !config.cluster_nodes.empty();
  if (options.journal.set_member) {
    options.journal.change_bytes_max =
        std::min(static_cast<size_t>(config.replica_election_timeout) * kChangeBytesPerMs,
                 kRecordPayloadBytesMax);
  }
  options.journal.log_only = options.journal.set_member &&
                             static_cast<ReplicaKind>(config.replica_kind) == ReplicaKind::kWitness;
  options.following = !config.replicaof.empty() || options.journal.set_member;
  return options;
}

void ApplyLogLevel(const Config& config) {
  const auto level = static_cast<LogLevel>(config.loglevel);
  SilenceLog(level == LogLevel::kNothing);
  if (level != LogLevel::kNothing) SetLogSeverity(static_cast<LogSeverity>(config.loglevel));
}

}  // namespace cellar
