// The cellar program: reads the configuration, wires store, server and loop, serves; or looks at
// the files of a store (--check, --dump).
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/os/file.h"
#include "base/os/log.h"
#include "base/os/object_store.h"
#include "base/sanitizer.h"
#include "btree/nodes/arena.h"
#include "cellar/clock.h"
#include "cellar/version.h"
#include "commands/config/config.h"
#include "commands/config/config_sources.h"
#include "replica/links/identity_check.h"
#include "replica/set/member_file.h"
#include "replica/set/set_recovery.h"
#include "s3/impatience.h"
#include "s3/s3_store.h"
#include "s3/s3_url.h"
#include "server/server.h"
#include "server/store_config.h"
#include "store/format/manifest.h"
#include "store/format/object_files.h"
#include "store/history/feed_check.h"
#include "store/history/file_modes.h"
#include "store/offline/check.h"
#include "store/offline/point_recovery.h"
#include "store/store.h"

namespace cellar {
namespace {

constexpr std::string_view kUsage =
    "usage: cellar [FILE.conf] [--option value ...]   serve\n"
    "       cellar --check DIR [--repair]             check a store's files for damage\n"
    "       cellar --dump DIR|FILE                    print log records as commands\n"
    "       cellar --recover DIR... --until TIME|ID|CUT:n|SNAPSHOT --dir NEW\n"
    "                                                 make a store of a moment of its past\n"
    "           DIR may be s3://bucket/prefix, with --s3-endpoint URL, --s3-region REGION,\n"
    "           --s3-credentials-file FILE\n"
    "       cellar --replica-recover DIR [--yes]      go on without the rest of a replica set\n"
    "       cellar --version | --help\n"
    "\n"
    "Every option of cellar.conf(5) can be given here and overrides the file:\n"
    "  --port 6479 --bind 127.0.0.1 -::1           where to listen\n"
    "  --dir .                                     where the data is kept\n"
    "  --create-dir yes                            begin a new store there\n"
    "  --appendfsync everysec|always|no            when a write is safe on disk\n"
    "  --requirepass PASSWORD                      what clients must authenticate with\n"
    "  --maxmemory 4gb                             beyond it, writes are refused\n"
    "  --logfile FILE                              log here, not to standard output\n"
    "\n"
    "Exit status: 0 orderly end; 1 fault, reported on standard error; 2 invalid command line.\n";

// There is no way on without memory; the log has what was acknowledged.
[[noreturn]] void EndWithoutMemory() {
  (void)std::fputs("cellar: out of memory\n", stderr);
  std::abort();
}

int Fail(const Status& status) {
  (void)std::fprintf(stderr, "cellar: %s\n", status.text().c_str());
  return 1;
}

int Misused(const std::string& complaint) {
  (void)std::fprintf(stderr, "cellar: %s (see cellar --help)\n", complaint.c_str());
  return 2;
}

// Takes the options for s3:// out of *words, each with its value. What is wrong; empty: nothing.
std::string TakeS3Options(std::vector<std::string>* words, S3Settings* settings) {
  const std::pair<std::string_view, std::string*> options[] = {
      {"--s3-endpoint", &settings->endpoint},
      {"--s3-region", &settings->region},
      {"--s3-credentials-file", &settings->credentials_file}};
  for (const auto& [name, value] : options) {
    const auto found = std::find(words->begin(), words->end(), name);
    if (found == words->end()) continue;
    if (found + 1 == words->end() || (found + 1)->empty()) return *found + " needs a value";
    *value = *(found + 1);
    words->erase(found, found + 2);
    if (std::find(words->begin(), words->end(), name) != words->end())
      return "'" + std::string(name) + "' is there twice";
  }
  return {};
}

// As ParseS3Url writes it, if it is of an object store.
std::string PlaceOf(const std::string& word) {
  const Result<S3Url> url = IsObjectPath(word) ? ParseS3Url(word) : Status::SyntaxError();
  return url.ok() ? url->Text() : word;
}

// A bucket can only be looked at, since a repair renames and cuts files. Both parts are printed
// even if the first fails: the files, and what a member of a replica set has promised.
int Check(std::vector<std::string> words) {
  S3Settings s3;
  if (const std::string wrong = TakeS3Options(&words, &s3); !wrong.empty()) return Misused(wrong);
  if (words.size() < 2 || words[1].starts_with("--")) {
    return Misused("--check needs a directory");
  }
  const bool repair = words.size() == 3 && words[2] == "--repair";
  if (words.size() > 2 && !repair) {
    const size_t wrong = words[2] == "--repair" ? 3 : 2;
    return Misused("--check takes a directory and --repair, not '" + words[wrong] + "'");
  }
  if (repair && IsObjectPath(words[1]))
    return Misused("--repair works in a directory: copy " + words[1] + " into one");
  const std::string place = PlaceOf(words[1]);
  ObjectFiles files(FileSystem::Posix());
  Impatience watcher("cellar");
  if (IsObjectPath(place)) {
    const Status mounted = files.Mount(S3Opener(s3, FileSystem::Posix()), place);
    if (!mounted.ok()) return Fail(mounted);
  }
  files.SetWatcher(&watcher);
  Engine engine;
  CheckedMember member;
  const Status status = CheckStore(files, place, repair ? CheckMode::kRepair : CheckMode::kLook,
                                   engine, std::cout, &member);
  Status slots = CheckIdentitySlots(files, place);
  if (!slots.ok()) std::cout << kReplicaFileName << ": DAMAGED: " << slots.text() << '\n';
  const Status past = CheckMemberFiles(files, place, std::cout);
  if (slots.ok()) slots = past;
  const Status told = TellOfMember(files, place, member, std::cout);
  if (repair && !member.members.empty()) {
    std::cout
        << "warning: this is a member of a replica set. What a repair has dropped it may have "
           "acknowledged to\nthe others, which count on it. If it has dropped anything, empty "
        << words[1] << " and let the node join anew\n";
  }
  if (!status.ok()) return Fail(status);
  if (!told.ok()) return Fail(told);
  const Lsn shown = member.members.empty() ? member.last : member.committed;
  const Status read = CheckFeeds(files, place, engine.feeds(), shown, std::cout);
  if (!read.ok()) return Fail(read);
  return slots.ok() ? 0 : Fail(slots);
}

int ReplicaRecover(const std::vector<std::string>& words) {
  if (words.size() < 2 || words[1].starts_with("--"))
    return Misused("--replica-recover needs a directory");
  const bool sure = words.size() == 3 && words[2] == "--yes";
  if (words.size() > 2 && !sure) {
    const size_t wrong = words[2] == "--yes" ? 3 : 2;
    return Misused("--replica-recover takes a directory and --yes, not '" + words[wrong] + "'");
  }
  FileSystem& files = FileSystem::Posix();
  Clock& clock = Clock::System();
  const Status status = sure ? RecoverSet(files, clock, words[1], std::cout)
                             : LookForRecovery(files, words[1], std::cout);
  return status.ok() ? 0 : Fail(status);
}

int Dump(const std::vector<std::string>& words) {
  if (words.size() < 2 || words[1].starts_with("--")) {
    return Misused("--dump needs a directory or a file");
  }
  if (words.size() > 2)
    return Misused("--dump takes one directory or file, not '" + words[2] + "'");
  Engine engine;
  const auto describe = [&engine](std::string_view payload) { return engine.Describe(payload); };
  const Status status = DumpStore(FileSystem::Posix(), words[1], describe, std::cout);
  return status.ok() ? 0 : Fail(status);
}

// DIR... --until POINT --dir NEW, in any order.
int Recover(std::vector<std::string> words) {
  S3Settings s3;
  if (const std::string wrong = TakeS3Options(&words, &s3); !wrong.empty()) return Misused(wrong);
  RecoverRequest request;
  std::string until;
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!word.starts_with("--")) {
      request.from.push_back(PlaceOf(word));
      continue;
    }
    std::string* const value = word == "--until" ? &until : word == "--dir" ? &request.to : nullptr;
    if (value == nullptr) return Misused("--recover does not take '" + word + "'");
    if (!value->empty()) return Misused("'" + word + "' is there twice");
    if (i + 1 == words.size() || words[i + 1].empty()) return Misused(word + " needs a value");
    *value = words[++i];
  }
  if (request.from.empty()) return Misused("--recover needs directories to recover from");
  if (until.empty()) return Misused("--recover needs --until TIME|ID|CUT:n|SNAPSHOT");
  if (request.to.empty()) return Misused("--recover needs --dir NEW, where the store is made");
  Result<RecoverPoint> point = ParseRecoverPoint(until);
  if (!point.ok()) return Misused(point.status().text());
  request.until = *std::move(point);
  if (IsObjectPath(request.to)) return Misused("--dir NEW is a directory of this machine");
  ObjectFiles files(FileSystem::Posix());
  Impatience watcher("cellar");
  for (const std::string& from : request.from) {
    if (!IsObjectPath(from)) continue;
    const Status mounted = files.Mount(S3Opener(s3, FileSystem::Posix()), from);
    if (!mounted.ok()) return Fail(mounted);
  }
  files.SetWatcher(&watcher);
  const Status status = RecoverToPoint(files, Clock::System(), request, std::cout);
  (void)std::cout.flush();
  return status.ok() ? 0 : Fail(status);
}

// The file's absolute name, so that CONFIG REWRITE finds it whatever the working directory.
std::string AbsolutePath(const std::string& path) {
  char absolute[PATH_MAX];
  return realpath(path.c_str(), absolute) == nullptr ? path : absolute;
}

// A file that holds the process id, gone when the process ends in order. A server that finds its
// port taken has not written it, and one whose file another has written over leaves that.
class PidFile {
 public:
  explicit PidFile(std::string path) : path_(std::move(path)) {
    if (path_.empty()) return;
    std::FILE* file = std::fopen(path_.c_str(), "w");
    if (file == nullptr) {
      Log(LogSeverity::kWarning, "cannot write the pidfile " + path_);
      path_.clear();
      return;
    }
    (void)std::fprintf(file, "%d\n", static_cast<int>(getpid()));
    (void)std::fclose(file);
  }
  ~PidFile() { Remove(); }
  void Remove() {
    if (!path_.empty() && IsOurs()) (void)unlink(path_.c_str());
    path_.clear();
  }
  PidFile(const PidFile&) = delete;
  PidFile& operator=(const PidFile&) = delete;

 private:
  bool IsOurs() const {
    std::FILE* file = std::fopen(path_.c_str(), "r");
    if (file == nullptr) return false;
    int pid = 0;
    const bool read = std::fscanf(file, "%d", &pid) == 1;
    (void)std::fclose(file);
    return read && pid == static_cast<int>(getpid());
  }

  std::string path_;
};

// The end of a server whose files are synced and closed. What it has in memory goes back to the
// system as a whole; to give back 36 million cells one by one took two seconds, for which whoever
// starts it again would wait. The sanitizers' builds return instead, so that leaks are found.
void EndAtOnce([[maybe_unused]] PidFile* pid_file, [[maybe_unused]] int exit_status) {
#ifndef CELLAR_SANITIZER
  pid_file->Remove();
  (void)std::fflush(nullptr);
  _exit(exit_status);
#endif
}

void LogRecovery(const RecoveryReport& report, const std::string& directory) {
  // With create-dir a mistyped --dir looks just like a first start.
  if (report.directory_created) {
    Log(LogSeverity::kWarning, fmt::format("The data directory {} did not exist: it has been "
                                           "created, and the store is empty",
                                           AbsolutePath(directory)));
  }
  for (const std::string& warning : report.warnings) Log(LogSeverity::kWarning, warning);
  if (report.from_snapshot) {
    Log(LogSeverity::kNotice,
        fmt::format("Snapshot loaded: {} cells in {:.3f} seconds", report.snapshot_cells,
                    static_cast<double>(report.snapshot_micros) / 1e6));
  }
  Log(LogSeverity::kNotice,
      fmt::format("Log replayed: {} records in {:.3f} seconds", report.records_replayed,
                  static_cast<double>(report.replay_micros) / 1e6));
}

// A file's name may stand first; what follows are options.
ConfigSources SourcesOf(std::vector<std::string> words) {
  std::string config_file;
  if (!words.empty() && !words[0].starts_with("-")) {
    config_file = AbsolutePath(words[0]);
    words.erase(words.begin());
  }
  return {std::move(config_file), std::move(words)};
}

// The complaints of files begin with a file's name, those of the command line with its word.
int RefuseConfiguration(const Status& status) {
  if (status.text().starts_with("-") || status.text().starts_with("'-")) {
    return Misused(status.text());
  }
  if (status.code() != ErrorCode::kIo) return Fail(status);
  return Fail(Status::Error(status.code(), "cannot read the configuration: " + status.text()));
}

// The order matters: users before sockets, so that nobody comes in without a password; sockets
// before data, so that clients read LOADING instead of finding the port closed; the log is closed
// while the server still stands.
int Serve(const std::vector<std::string>& words) {
  Config config;
  ConfigSources sources = SourcesOf(words);
  if (const Status status = sources.Read(&config); !status.ok()) {
    return RefuseConfiguration(status);
  }
  ApplyLogLevel(config);
  if (!SetLogFile(config.logfile)) {
    return Fail(Status::Error(ErrorCode::kIo, "cannot open the logfile " + config.logfile));
  }
  Log(LogSeverity::kNotice, fmt::format("Cellar {} starting, pid {}, port {}, data in {}", kVersion,
                                        getpid(), config.port, config.dir));
  Clock& clock = Clock::System();
  NodeArena::Configure({.huge_pages = config.huge_pages, .keeper = true});
  NodeArena::Global().PrepareChunks(1);  // no client waits for the first one either
  Server server(clock, config, std::move(sources));
  if (const Status status = server.LoadUsers(); !status.ok()) {
    Log(LogSeverity::kWarning, "Aborting because of ACL errors: " + status.text());
    return Fail(status);
  }
  if (const Status status = server.Listen(); !status.ok()) {
    Log(LogSeverity::kWarning, status.text());
    return Fail(status);
  }
  PidFile pid_file(config.pidfile);
  StoreOptions store_options = StoreOptionsOf(config);
  store_options.journal.wake = [&server] { server.WakeFromThread(); };
  store_options.journal.members = [&server] { return server.members_payload(); };
  store_options.seed = static_cast<uint64_t>(clock.WallMicros());
  static constexpr std::string_view kLeftWhileLoading =
      "Stopped while loading; nothing has changed on disk";
  auto store = Store::Open(store_options, FileSystem::Posix(), clock,
                           [&server, &pid_file](const LoadProgress& progress) {
                             Status status = server.PollWhileLoading(progress);
                             if (status.ok() || !server.stopping()) return status;
                             Log(LogSeverity::kNotice, kLeftWhileLoading);
                             EndAtOnce(&pid_file, 0);
                             return status;
                           });
  if (!store.ok() && server.stopping()) return 0;
  if (!store.ok()) {
    Log(LogSeverity::kWarning, store.status().text());
    return Fail(store.status());
  }
  LogRecovery((*store)->journal().recovery(), config.dir);
  LimitStoreModes(config.dir);
  LimitStoreModes(StoreOptionsOf(config).backup.directory);
  LimitStoreModes(config.archive_dir);
  if (const Status status = server.BeginAclFile(); !status.ok()) {
    Log(LogSeverity::kWarning, status.text());
    return Fail(status);
  }
  if (const Status status = server.Attach(store->get()); !status.ok()) {
    Log(LogSeverity::kWarning, status.text());
    return Fail(status);
  }
  int exit_status = server.Run();
  if (const Status status = (*store)->journal().Close(); !status.ok()) {
    Log(LogSeverity::kWarning, "the end of the log may be missing: " + status.text());
    exit_status = 1;
  }
  server.Detach();
  Log(LogSeverity::kNotice, "Cellar is now ready to exit, bye bye...");
  EndAtOnce(&pid_file, exit_status);
  return exit_status;
}

int Main(const std::vector<std::string>& words) {
  const std::string_view first = words.empty() ? std::string_view{} : words[0];
  if (first == "--version" || first == "-v") {
    (void)std::printf("Cellar %s\n", std::string(kVersion).c_str());
    return 0;
  }
  if (first == "--help" || first == "-h") {
    (void)std::fputs(kUsage.data(), stdout);
    return 0;
  }
  if (first == "--check") return Check(words);
  if (first == "--dump") return Dump(words);
  if (first == "--replica-recover") return ReplicaRecover(words);
  if (first == "--recover") return Recover(words);
  for (const std::string& word : words) {
    if (word == "--repair") {
      return Misused("--repair needs --check: cellar --check DIR --repair");
    }
    if (word == "--check" || word == "--dump" || word == "--version" || word == "--help" ||
        word == "--replica-recover" || word == "--recover") {
      return Misused(word + " must come first, followed only by its own arguments");
    }
  }
  return Serve(words);
}

}  // namespace
}  // namespace cellar

int main(int argc, char** argv) {
  std::set_new_handler(cellar::EndWithoutMemory);
  return cellar::Main(std::vector<std::string>(argv + 1, argv + argc));
}
