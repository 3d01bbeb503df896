// See backup.h.
#include "cellar-cluster/backup.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/os/file.h"
#include "base/os/object_store.h"
#include "cellar-cluster/node_process.h"
#include "client/reply_fields.h"
#include "s3/impatience.h"
#include "s3/s3_store.h"
#include "s3/s3_url.h"
#include "store/format/object_files.h"
#include "store/offline/cut_list.h"
#include "store/offline/recover_point.h"

namespace cellar::cluster_tool {
namespace {

constexpr char kDescription[]{"cluster.json"};
constexpr auto kPause = std::chrono::milliseconds(200);
constexpr int kTries{50};
constexpr auto kTellPause = std::chrono::seconds(5);
constexpr std::string_view kCutWord{"CUT:"};

int Fail(const std::string& text) {
  (void)std::fprintf(stderr, "cellar-cluster: %s\n", text.c_str());
  return 1;
}

void Tell(const Options& options, const std::string& text) {
  if (options.quiet) return;
  (void)std::fprintf(stderr, "%s\n", text.c_str());
}

// --- a backup of a cluster

struct BackupStatus {
  std::string state;
  std::string error;
  std::string id;
  uint64_t cut{0};
  std::string sets;  // of each set its state, for people
};

std::string TextOf(const redisReply* reply) {
  return reply != nullptr && reply->str != nullptr ? std::string(reply->str, reply->len)
                                                   : std::string();
}

Result<BackupStatus> ReadStatus(client::Connection* connection) {
  ASSIGN_OR_RETURN(const client::Reply reply, connection->Call({"BACKUP", "STATUS"}));
  if (const std::string_view error = client::ErrorText(*reply); !error.empty())
    return Status::Error(ErrorCode::kErr, std::string(error));
  BackupStatus status;
  for (size_t i = 0; i + 1 < reply->elements; i += 2) {
    const std::string name = TextOf(reply->element[i]);
    const redisReply* const value = reply->element[i + 1];
    if (name == "state") status.state = TextOf(value);
    if (name == "error") status.error = TextOf(value);
    if (name == "id") status.id = TextOf(value);
    if (name == "cut") status.cut = static_cast<uint64_t>(value->integer);
    if (name != "sets") continue;
    for (size_t n = 0; n < value->elements; ++n) {
      const redisReply* const set = value->element[n];
      if (set->elements < 4) continue;
      status.sets += fmt::format("{}set {} {}", status.sets.empty() ? "" : ", ",
                                 set->element[1]->integer, TextOf(set->element[3]));
    }
  }
  return status;
}

// An error reply is an error.
Status Do(client::Connection* connection, std::initializer_list<std::string_view> words) {
  ASSIGN_OR_RETURN(const client::Reply reply, connection->Call(words));
  const std::string_view error = client::ErrorText(*reply);
  return error.empty() ? Status::Ok() : Status::Error(ErrorCode::kErr, std::string(error));
}

Status WaitUntilReady(const Options& options, client::Connection* connection,
                      const volatile bool* stopped) {
  auto told = std::chrono::steady_clock::now();
  while (true) {
    ASSIGN_OR_RETURN(const BackupStatus status, ReadStatus(connection));
    if (status.state == "incrementing") return Status::Ok();
    if (status.state == "failed")
      return Status::Error(ErrorCode::kErr, "the backup failed: " + status.error);
    if (*stopped) return Status::Error(ErrorCode::kErr, "stopped");
    if (const auto now = std::chrono::steady_clock::now(); now - told > kTellPause) {
      told = now;
      Tell(options, status.sets);
    }
    std::this_thread::sleep_for(kPause);
  }
}

// --- a cluster of a backup

// What cluster.json says of a set's part.
struct PartNote {
  std::string folder;
  struct File {
    std::string name;
    uint64_t bytes{0};
  };
  std::vector<File> files;
};
struct BackupNote {
  std::string cluster;
  uint64_t cut{0};
  std::vector<PartNote> sets;  // by number
};

Status Damaged(const std::string& path, std::string_view what) {
  return Status::Error(ErrorCode::kCorruption, fmt::format("{}: {}", path, what));
}

// Nothing: there is no such file.
Result<std::optional<BackupNote>> ReadNote(FileSystem& files, const std::string& from) {
  const std::string path = JoinPath(from, kDescription);
  ASSIGN_OR_RETURN(const bool exists, files.Exists(path));
  if (!exists) return std::optional<BackupNote>();
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(files, path));
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  const auto is_number = [](const nlohmann::json& in, const char* name) {
    const auto found = in.find(name);
    return found != in.end() && found->is_number_unsigned();
  };
  const auto is_text = [](const nlohmann::json& in, const char* name) {
    const auto found = in.find(name);
    return found != in.end() && found->is_string();
  };
  if (json.is_discarded() || !json.is_object() || !is_number(json, "version") ||
      !is_number(json, "cut") || !is_text(json, "cluster") || !json.contains("sets") ||
      !json["sets"].is_array())
    return Damaged(path, "it does not describe a backup of a cluster");
  if (json["version"].get<uint64_t>() != 1)
    return Damaged(path, "a later version of Cellar has written it");
  BackupNote note{.cluster = json["cluster"].get<std::string>(),
                  .cut = json["cut"].get<uint64_t>(),
                  .sets = {}};
  for (const nlohmann::json& set : json["sets"]) {
    if (!set.is_object() || !is_number(set, "set") || !is_text(set, "folder") ||
        !set.contains("files") || !set["files"].is_array() ||
        set["set"].get<uint64_t>() < note.sets.size())
      return Damaged(path, "what it says of a set cannot be read");
    PartNote part{.folder = set["folder"].get<std::string>(), .files = {}};
    if (part.folder != fmt::format("set-{}", set["set"].get<uint64_t>()))
      return Damaged(path, "the folder of a set cannot be that one");
    for (const nlohmann::json& each : set["files"]) {
      if (!each.is_object() || !is_text(each, "name") || !is_number(each, "bytes") ||
          each["name"].get<std::string>().find('/') != std::string::npos)
        return Damaged(path, "what it says of a file cannot be read");
      part.files.push_back({each["name"].get<std::string>(), each["bytes"].get<uint64_t>()});
    }
    note.sets.push_back(std::move(part));
  }
  if (note.sets.empty() || note.cut == 0) return Damaged(path, "it names no set, or no cut");
  return std::optional(std::move(note));
}

// Whether the files are there that the note names.
Status CheckFiles(FileSystem& files, const std::string& from, const BackupNote& note) {
  for (const PartNote& part : note.sets) {
    for (const PartNote::File& file : part.files) {
      const std::string path = JoinPath(JoinPath(from, part.folder), file.name);
      ASSIGN_OR_RETURN(const bool exists, files.Exists(path));
      if (!exists) return Damaged(path, "it is missing, and the backup is not whole");
      ASSIGN_OR_RETURN(const auto reader, files.OpenForReading(path));
      ASSIGN_OR_RETURN(const uint64_t bytes, reader->Size());
      if (bytes != file.bytes)
        return Damaged(path,
                       fmt::format("it has {} bytes, and was made with {}", bytes, file.bytes));
    }
  }
  return Status::Ok();
}

std::string PartFolder(const std::string& from, size_t set) {
  return JoinPath(from, fmt::format("set-{}", set));
}

// Where the backup is, or the archives are, as paths begin; what is in a bucket is mounted.
Result<std::string> Reach(const Options& options, ObjectFiles* files) {
  std::string from = options.words.front();
  while (from.size() > 1 && from.back() == '/') from.pop_back();
  if (!IsObjectPath(from)) return from;
  ASSIGN_OR_RETURN(const S3Url url, ParseS3Url(from));
  from = url.Text();
  const ObjectStoreOpener opener = S3Opener(options.s3, FileSystem::Posix());
  RETURN_IF_ERROR(files->Mount(opener, from));
  for (size_t i = 0; i < options.directories.size(); ++i)
    RETURN_IF_ERROR(files->Mount(opener, PartFolder(from, i)));
  return from;
}

// The last good cut up to the time that `until` is, of those that the files of all sets lead to. A
// cut stays as it is.
Result<std::string> ChooseCut(const Options& options, ObjectFiles* files, const std::string& from,
                              const std::string& until) {
  ASSIGN_OR_RETURN(const RecoverPoint point, ParseRecoverPoint(until));
  if (point.kind == RecoverPoint::Kind::kCut) return until;
  if (point.kind != RecoverPoint::Kind::kTime)
    return Status::Error(ErrorCode::kErr, until + " is of one set: say --until TIME, or CUT:n");
  std::map<uint64_t, int64_t> cuts;
  for (size_t i = 0; i < options.directories.size(); ++i) {
    ASSIGN_OR_RETURN(const CutList list, ListCuts(*files, PartFolder(from, i)));
    if (i == 0) cuts = list.marks;
    std::erase_if(cuts, [&](const auto& cut) {
      const bool is_good = i > 0 || list.good.contains(cut.first);
      return !is_good || cut.second > point.micros || !list.marks.contains(cut.first);
    });
  }
  if (cuts.empty()) {
    return Status::Error(
        ErrorCode::kErr,
        fmt::format("there is no good cut up to {} that all sets have in {}", until, from));
  }
  const auto& [number, micros] = *cuts.rbegin();
  Tell(options, fmt::format("{}{} of {} is the last one up to {} that all sets have", kCutWord,
                            number, FormatTime(micros), until));
  return fmt::format("{}{}", kCutWord, number);
}

// What makes one set's folder.
std::vector<std::string> RecoverWords(const Options& options, const std::string& from,
                                      const std::string& until, const std::string& to) {
  std::vector<std::string> words{options.program.empty() ? ServerProgram() : options.program,
                                 "--recover",
                                 from,
                                 "--until",
                                 until,
                                 "--dir",
                                 to};
  const auto add = [&words](const char* name, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {name, value});
  };
  add("--s3-endpoint", options.s3.endpoint);
  add("--s3-region", options.s3.region);
  add("--s3-credentials-file", options.s3.credentials_file);
  return words;
}

// `set 1 of cluster 0123456789abcdef, ...`, as --recover says it.
Status CheckSaid(const std::string& said, const std::string& folder, size_t number,
                 std::string* cluster) {
  const std::string is_set = fmt::format("set {} of cluster ", number);
  const size_t at = said.find(is_set);
  const bool is_line = at != std::string::npos && (at == 0 || said[at - 1] == '\n');
  if (!is_line)
    return Status::Error(ErrorCode::kErr, fmt::format("{} is not of set {}", folder, number));
  const std::string id = said.substr(at + is_set.size(), 16);
  if (!cluster->empty() && *cluster != id)
    return Status::Error(ErrorCode::kErr,
                         fmt::format("{} is of cluster {}, not of {}", folder, id, *cluster));
  *cluster = id;
  return Status::Ok();
}

}  // namespace

int MakeBackup(const Options& options, client::Connection* connection,
               const volatile bool* stopped) {
  Status begun = Do(connection, {"BACKUP", "START"});
  // A set may not know yet if a sealed one is there.
  for (int i = 0; i < kTries && !begun.ok() && !*stopped; ++i) {
    if (!begun.text().starts_with("TRYAGAIN")) break;
    std::this_thread::sleep_for(kPause);
    begun = Do(connection, {"BACKUP", "START"});
  }
  if (!begun.ok()) return Fail(begun.text());
  if (const Status ready = WaitUntilReady(options, connection, stopped); !ready.ok()) {
    (void)Do(connection, {"BACKUP", "ABORT"});
    return Fail(ready.text());
  }
  Tell(options, "all sets have their base, and seal at one moment");
  if (const Status done = Do(connection, {"BACKUP", "SEAL"}); !done.ok()) {
    // Some may have sealed their part.
    (void)Do(connection, {"BACKUP", "ABORT"});
    (void)Do(connection, {"BACKUP", "CLEANUP"});
    return Fail(done.text());
  }
  const Result<BackupStatus> sealed = ReadStatus(connection);
  if (!sealed.ok()) return Fail(sealed.status().text());
  if (!options.quiet)
    std::printf("sealed at CUT:%llu, %s\n", static_cast<unsigned long long>(sealed->cut),
                sealed->id.c_str());
  return 0;
}

int RecoverCluster(const Options& options, const volatile bool* stopped) {
  Impatience watcher("cellar-cluster", stopped);
  ObjectFiles files(FileSystem::Posix());
  files.SetWatcher(&watcher);
  const Result<std::string> place = Reach(options, &files);
  if (!place.ok()) return Fail(place.status().text());
  const std::string& from = *place;
  std::string until = options.until;
  std::string cluster;
  const Result<std::optional<BackupNote>> note = ReadNote(files, from);
  if (!note.ok()) return Fail(note.status().text());
  if (*note) {
    const BackupNote& backup = **note;
    const std::string its = fmt::format("{}{}", kCutWord, backup.cut);
    if (!until.empty() && until != its) return Fail(from + " is a backup of " + its);
    until = its;
    cluster = backup.cluster;
    if (backup.sets.size() != options.directories.size()) {
      return Fail(fmt::format("{} has {} sets, and --sets names {} folders", from,
                              backup.sets.size(), options.directories.size()));
    }
    if (const Status whole = CheckFiles(files, from, backup); !whole.ok())
      return Fail(whole.text());
  }
  if (until.empty()) {
    return Fail(from + " has no " + kDescription +
                ": say --until TIME, or CUT:n as CLUSTER CUTS tells");
  }
  for (const std::string& directory : options.directories) {
    std::error_code error;
    if (std::filesystem::exists(directory, error) && !std::filesystem::is_empty(directory, error))
      return Fail(directory + " is not empty: each set is recovered into a folder of its own");
  }
  const Result<std::string> cut = ChooseCut(options, &files, from, until);
  if (!cut.ok()) return Fail(cut.status().text());
  for (size_t i = 0; i < options.directories.size(); ++i) {
    if (*stopped) return Fail("stopped");
    const std::string folder = PartFolder(from, i);
    Tell(options, fmt::format("set {} of {}: {}", i, options.directories.size(), folder));
    const std::filesystem::path parent =
        std::filesystem::path(options.directories[i]).lexically_normal().parent_path();
    std::error_code error;
    if (!parent.empty()) std::filesystem::create_directories(parent, error);
    if (error) return Fail(fmt::format("cannot make {}: {}", parent.string(), error.message()));
    std::string said;
    if (RunAndRead(RecoverWords(options, folder, *cut, options.directories[i]), &said) != 0)
      return Fail(fmt::format("{} cannot be recovered", folder));
    Tell(options, said.substr(0, said.find_last_not_of('\n') + 1));
    if (const Status checked = CheckSaid(said, folder, i, &cluster); !checked.ok())
      return Fail(checked.text());
  }
  Tell(options,
       fmt::format("Cluster {} as it was at {}. Start each set of its folder, set 0 first, "
                   "with cluster-nodes of its own and cluster-join to set 0; it serves "
                   "once all are there.",
                   cluster, *cut));
  return 0;
}

}  // namespace cellar::cluster_tool
