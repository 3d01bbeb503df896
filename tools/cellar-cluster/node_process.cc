// See node_process.h.
#include "cellar-cluster/node_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX declares it nowhere

namespace cellar::cluster_tool {
namespace {

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  if (file) text << file.rdbuf();
  return text.str();
}

Status Fault(std::string text) { return Status::Error(ErrorCode::kErr, std::move(text)); }

constexpr size_t kHeadBytesMax{60};  // of a log line
constexpr int kReadsMax{50};         // of a pid file that is empty
constexpr std::chrono::milliseconds kReadPause{20};

// The last line that says something, without the time and process in front of it.
std::string LastLine(const std::string& text) {
  const size_t end = text.find_last_not_of("\r\n ");
  if (end == std::string::npos) return "it has said nothing";
  const size_t before = text.rfind('\n', end);
  std::string line = text.substr(before == std::string::npos ? 0 : before + 1,
                                 end - (before == std::string::npos ? std::string::npos : before));
  for (const char* mark : {" # ", " * ", " - ", " . "}) {
    if (const size_t at = line.find(mark); at < kHeadBytesMax) return line.substr(at + 3);
  }
  return line;
}

// Runs a program with these words and waits; its exit status, or -1. Its output is this program's.
int RunAndWait(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t pid = 0;
  if (posix_spawnp(&pid, argv[0], nullptr, nullptr, argv.data(), environ) != 0) return -1;
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

pid_t NodeProcess::Pid() const {
  const std::string path = folder_->PidPath(node_);
  std::string text = ReadAll(path);
  // A server that writes its file at this moment has emptied it before.
  for (int i = 0; i < kReadsMax && text.empty() && access(path.c_str(), F_OK) == 0; ++i) {
    std::this_thread::sleep_for(kReadPause);
    text = ReadAll(path);
  }
  const pid_t pid = static_cast<pid_t>(std::strtol(text.c_str(), nullptr, 10));
  if (pid <= 1) return begun_;
  // The number may be another's by now. Words of a command line end with a NUL each.
  const std::string words = ReadAll("/proc/" + std::to_string(pid) + "/cmdline");
  return words.find(folder_->ConfigPath(node_, false)) == std::string::npos ? begun_ : pid;
}

bool NodeProcess::IsRunning() const {
  if (systemd_) return RunAndWait({"systemctl", "is-active", "--quiet", Unit()}) == 0;
  return Pid() > 0;
}

Status NodeProcess::CheckPort() const {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const std::string& host = node_.machine.host;
  const std::string port = std::to_string(node_.port);
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0) {
    return Fault(host + " is no address of this machine: " + gai_strerror(error));
  }
  const int descriptor = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  (void)setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  const bool is_free =
      bind(descriptor, found->ai_addr, found->ai_addrlen) == 0 && listen(descriptor, 1) == 0;
  const int error = errno;
  (void)close(descriptor);
  freeaddrinfo(found);
  if (is_free) return Status::Ok();
  if (error == EADDRINUSE) {
    return Fault("port " + port + ", of " + node_.Name() +
                 ", is in use by another program: choose others with --port");
  }
  return Fault(node_.Address() + " cannot be listened on: " + std::strerror(error));
}

Status NodeProcess::Begin(const std::string& program) {
  if (systemd_) {
    // An enabled unit begins with the machine, too. A node is ready when its set has a leader.
    if (RunAndWait({"systemctl", "enable", "--now", "--no-block", "--quiet", Unit()}) == 0)
      return Status::Ok();
    return Fault("systemctl enable --now " + Unit() + " has failed");
  }
  (void)unlink(folder_->PidPath(node_).c_str());
  const std::string log = folder_->LogPath(node_);
  const std::string config = folder_->ConfigPath(node_, false);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  (void)posix_spawn_file_actions_init(&files);
  (void)posix_spawnattr_init(&attributes);
  (void)posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  (void)posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log.c_str(),
                                         O_WRONLY | O_CREAT | O_APPEND, 0600);
  (void)posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  sigset_t defaults;
  (void)sigemptyset(&defaults);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE}) (void)sigaddset(&defaults, signal);
  (void)posix_spawnattr_setsigdefault(&attributes, &defaults);
  (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF);
  std::vector<char*> argv{const_cast<char*>(program.c_str()), const_cast<char*>(config.c_str()),
                          nullptr};
  const int error =
      posix_spawnp(&begun_, program.c_str(), &files, &attributes, argv.data(), environ);
  (void)posix_spawn_file_actions_destroy(&files);
  (void)posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    begun_ = 0;
    return Fault(program + " cannot be run: " + std::strerror(error));
  }
  // As it will say itself; a run of this program that comes before that finds it, too.
  return WriteFile(folder_->PidPath(node_), std::to_string(begun_) + "\n");
}

Status NodeProcess::CheckAlive() {
  if (systemd_) {
    if (RunAndWait({"systemctl", "is-failed", "--quiet", Unit()}) != 0) return Status::Ok();
    return Fault(Unit() + " has failed: journalctl -u " + Unit());
  }
  if (begun_ <= 0) return Status::Ok();
  int status = 0;
  if (waitpid(begun_, &status, WNOHANG) != begun_) return Status::Ok();
  begun_ = 0;
  return Fault(node_.Name() + " has ended: " + LastLine(ReadAll(folder_->LogPath(node_))) + " (" +
               folder_->LogPath(node_) + ")");
}

Status NodeProcess::Tell() const {
  if (systemd_) {
    if (RunAndWait({"systemctl", "disable", "--now", "--quiet", Unit()}) == 0) return Status::Ok();
    return Fault("systemctl disable --now " + Unit() + " has failed");
  }
  const pid_t pid = Pid();
  if (pid <= 0 || kill(pid, SIGTERM) == 0 || errno == ESRCH) return Status::Ok();
  return Fault(node_.Name() + ", process " + std::to_string(pid) +
               ", cannot be told to end: " + std::strerror(errno));
}

int RunAndRead(const std::vector<std::string>& words, std::string* output) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  posix_spawn_file_actions_t files;
  (void)posix_spawn_file_actions_init(&files);
  (void)posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  const int error = posix_spawnp(&child, argv[0], &files, nullptr, argv.data(), environ);
  (void)posix_spawn_file_actions_destroy(&files);
  (void)close(ends[1]);
  char bytes[4096];
  while (error == 0) {
    const ssize_t count = read(ends[0], bytes, sizeof(bytes));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    output->append(bytes, static_cast<size_t>(count));
  }
  (void)close(ends[0]);
  if (error != 0) return -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string ServerProgram() {
  std::error_code error;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    const std::filesystem::path beside = own.parent_path() / "cellar";
    if (access(beside.c_str(), X_OK) == 0) return beside.string();
  }
  return "cellar";
}

}  // namespace cellar::cluster_tool
