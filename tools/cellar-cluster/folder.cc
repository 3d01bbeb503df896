// See folder.h.
#include "cellar-cluster/folder.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cellar-cluster/json_writer.h"
#include "cellar-cluster/options.h"

namespace cellar::cluster_tool {
namespace {

constexpr char kNote[]{"cluster.json"};

Status Fault(const std::string& path, const char* why) {
  return Status::Error(ErrorCode::kErr, path + ": " + why);
}

bool IsNumberWithin(const nlohmann::json& json, const char* name, uint64_t max) {
  const auto found = json.find(name);
  return found != json.end() && found->is_number_unsigned() && found->get<uint64_t>() >= 1 &&
         found->get<uint64_t>() <= max;
}

bool IsText(const nlohmann::json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string();
}

}  // namespace

Folder::Folder(const std::string& directory) {
  std::error_code error;
  path_ = std::filesystem::absolute(directory, error).lexically_normal().string();
  if (error) path_ = directory;
  while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
}

Result<std::optional<ClusterNote>> Folder::Read() const {
  const std::string path = path_ + "/" + kNote;
  std::ifstream file(path);
  if (!file) {
    std::error_code error;
    if (std::filesystem::exists(path, error)) return Fault(path, "cannot be read");
    return std::optional<ClusterNote>();
  }
  std::stringstream text;
  text << file.rdbuf();
  const nlohmann::json json = nlohmann::json::parse(text.str(), nullptr, false);
  if (json.is_discarded() || !json.is_object() || !IsNumberWithin(json, "sets", kSetsMax) ||
      !IsNumberWithin(json, "voters", kVotersMax) || !IsNumberWithin(json, "port", 65535) ||
      !IsText(json, "host") || !IsText(json, "id") || !json.contains("systemd") ||
      !json["systemd"].is_boolean()) {
    return Fault(path, "is no note of a cluster");
  }
  return std::optional(ClusterNote{.sets = json["sets"].get<uint64_t>(),
                                   .voters = json["voters"].get<uint64_t>(),
                                   .host = json["host"].get<std::string>(),
                                   .port = json["port"].get<int>(),
                                   .systemd = json["systemd"].get<bool>(),
                                   .id = json["id"].get<std::string>()});
}

Status Folder::Lock() const {
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  // Open until the program ends: the lock goes with it. Nodes do not inherit it.
  const int descriptor = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return Fault(path_, std::strerror(errno));
  if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) return Status::Ok();
  (void)close(descriptor);
  return Fault(path_, "another cellar-cluster is at work there");
}

Status Folder::Write(const ClusterNote& note) const {
  JsonWriter json;
  json.BeginObject();
  json.Name("sets").Number(note.sets);
  json.Name("voters").Number(note.voters);
  json.Name("host").Text(note.host);
  json.Name("port").Number(static_cast<uint64_t>(note.port));
  json.Name("systemd").Flag(note.systemd);
  json.Name("id").Text(note.id);
  json.EndObject();
  return WriteFile(path_ + "/" + kNote, json.Take());
}

std::string Folder::ConfigPath(const PlannedNode& node, bool systemd) const {
  return path_ + "/" + node.Name() + (systemd ? ".conf" : "/cellar.conf");
}

std::string Folder::LogPath(const PlannedNode& node) const {
  return path_ + "/" + node.Name() + "/cellar.log";
}

std::string Folder::PidPath(const PlannedNode& node) const {
  return path_ + "/" + node.Name() + "/cellar.pid";
}

bool Folder::HasConfig(const PlannedNode& node, bool systemd) const {
  std::error_code error;
  return std::filesystem::exists(ConfigPath(node, systemd), error);
}

NodeFiles Folder::FilesOf(const PlannedNode& node, bool systemd) const {
  if (systemd) return {.directory = "/var/lib/cellar/" + node.Name(), .logfile = "", .pidfile = ""};
  return {.directory = path_ + "/" + node.Name() + "/data",
          .logfile = LogPath(node),
          .pidfile = PidPath(node)};
}

Status Folder::WriteConfig(const PlannedNode& node, bool systemd, const std::string& text) const {
  const std::string path = ConfigPath(node, systemd);
  RETURN_IF_ERROR(WriteFile(path, text));
  if (systemd) {
    // The unit's user reads it, and nobody else; a machine without the package has no such user.
    const group* const server = getgrnam("cellar");
    if (server != nullptr && chown(path.c_str(), static_cast<uid_t>(-1), server->gr_gid) != 0)
      return Fault(path, std::strerror(errno));
    if (chmod(path.c_str(), 0640) != 0) return Fault(path, std::strerror(errno));
    return Status::Ok();
  }
  std::error_code error;
  std::filesystem::create_directories(FilesOf(node, false).directory, error);
  return error ? Fault(FilesOf(node, false).directory, "cannot be made") : Status::Ok();
}

Plan PlanOf(const ClusterNote& note) {
  Result<Plan> plan = MakePlan(
      {.machines = {{note.host, ""}}, .sets = note.sets, .voters = note.voters, .port = note.port});
  return plan.ok() ? *std::move(plan) : Plan{};
}

Status WriteFile(const std::string& path, const std::string& text) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  const auto failed = [&] {
    return Status::Error(ErrorCode::kErr, path + " cannot be written: " + std::strerror(errno));
  };
  const std::string part = path + ".part";
  const int descriptor = open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (descriptor < 0) return failed();
  const bool written =
      write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      fsync(descriptor) == 0;
  (void)close(descriptor);
  if (!written || rename(part.c_str(), path.c_str()) != 0) return failed();
  return Status::Ok();
}

}  // namespace cellar::cluster_tool
