// See unix_socket_name.h.
#include "server/net/unix_socket_name.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#include <cerrno>
#include <cstring>

#include "base/assert.h"

namespace cellar {
namespace {

// One byte is the zero at its end: a longer path would be cut in silence.
constexpr size_t kPathBytesMax{sizeof(sockaddr_un{}.sun_path) - 1};

// As libuv words what TCP says: "no such file or directory".
std::string ErrorText(int error) { return uv_strerror(uv_translate_sys_error(error)); }

Status Refused(const std::string& path, const std::string& why) {
  return Status::Error(ErrorCode::kIo, "cannot listen on " + path + ": " + why);
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

// connect(2) or bind(2); 0 or errno.
template <typename Call>
int CallWith(const Call& call, int socket, const std::string& path) {
  CELLAR_ASSERT(path.size() <= kPathBytesMax);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the socket API.
  const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
  return call(socket, generic, sizeof(address)) == 0 ? 0 : errno;
}

int NewSocket() { return ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

// Umask of the process while the object lives.
class UmaskFor {
 public:
  explicit UmaskFor(mode_t mode) : before_(::umask(0777 & ~mode)) {}
  ~UmaskFor() { (void)::umask(before_); }
  UmaskFor(const UmaskFor&) = delete;
  UmaskFor& operator=(const UmaskFor&) = delete;

 private:
  const mode_t before_;
};

// Whoever may read a folder may lock it, and for ever: nobody is waited for longer than another
// server needs.
void TryLock(int folder) {
  constexpr int kTries{100};
  constexpr useconds_t kPauseMicros{10'000};
  for (int i = 0; i < kTries && ::flock(folder, LOCK_EX | LOCK_NB) != 0; ++i) {
    if (errno != EWOULDBLOCK && errno != EINTR) return;
    (void)::usleep(kPauseMicros);
  }
}

// 0: somebody listens there; else why a connection was refused.
int Knock(const std::string& path) {
  const int socket = NewSocket();
  if (socket < 0) return errno;
  const int error = CallWith(::connect, socket, path);
  (void)::close(socket);
  return error == EAGAIN ? 0 : error;  // as many wait there as may
}

}  // namespace

Result<int> UnixSocketName::Bind(const std::string& path, mode_t mode) {
  CELLAR_ASSERT(!kept_);
  if (path.size() > kPathBytesMax) {
    return Refused(path, "the path of a unix socket has at most " + std::to_string(kPathBytesMax) +
                             " bytes, and this one " + std::to_string(path.size()));
  }
  path_ = path;
  folder_ = ::open(FolderOf(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_ >= 0) TryLock(folder_);
  const Status status = RemoveDead();
  Result<int> socket = status.ok() ? BindFree(mode) : Result<int>(status);
  if (!socket.ok()) Unlock();
  return socket;
}

Result<int> UnixSocketName::BindFree(mode_t mode) {
  const int socket = NewSocket();
  if (socket < 0) return Refused(path_, ErrorText(errno));
  int error = 0;
  if (mode == 0) {
    error = CallWith(::bind, socket, path_);
  } else {
    // Not even for a moment may others come in. No other thread makes files yet.
    const UmaskFor umask(mode);
    error = CallWith(::bind, socket, path_);
  }
  struct stat info {};
  if (error == 0 && ::lstat(path_.c_str(), &info) == 0 && S_ISSOCK(info.st_mode)) {
    device_ = info.st_dev;
    inode_ = info.st_ino;
    kept_ = true;
  }
  if (error == 0 && mode != 0 && ::chmod(path_.c_str(), mode) != 0) error = errno;
  if (error == 0) return socket;
  Remove();
  (void)::close(socket);
  return Refused(path_, ErrorText(error));
}

Status UnixSocketName::RemoveDead() const {
  struct stat info {};
  if (::lstat(path_.c_str(), &info) != 0)
    return errno == ENOENT ? Status::Ok() : Refused(path_, ErrorText(errno));
  if (!S_ISSOCK(info.st_mode)) {
    const bool link = S_ISLNK(info.st_mode);
    return Refused(path_, link ? "it is a link" : "a file that is no socket has this name");
  }
  const int error = Knock(path_);
  if (error == 0) return Refused(path_, "another process listens there");
  if (error != ECONNREFUSED)
    return Refused(path_, "whose socket it is cannot be told: " + ErrorText(error));
  // Nobody listens any more: what a crash has left.
  if (::unlink(path_.c_str()) == 0) return Status::Ok();
  return Refused(path_, "the old socket cannot be removed: " + ErrorText(errno));
}

void UnixSocketName::Remove() {
  if (!kept_) return;
  kept_ = false;
  struct stat info {};
  if (::lstat(path_.c_str(), &info) != 0) return;
  if (info.st_dev == device_ && info.st_ino == inode_) (void)::unlink(path_.c_str());
}

void UnixSocketName::Unlock() {
  if (folder_ >= 0) (void)::close(folder_);
  folder_ = -1;
}

}  // namespace cellar
