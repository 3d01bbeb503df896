// See file_modes.h.
#include "base/os/file_modes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

namespace cellar {
namespace {

constexpr mode_t kFileMode{0640};
constexpr mode_t kFolderMode{0750};

// Closed at the end of its life.
struct Opened {
  Opened(const std::string& path, int flags)
      : fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags)) {
    if (fd >= 0 && ::fstat(fd, &info) != 0) info = {};
  }
  ~Opened() {
    if (fd >= 0) (void)::close(fd);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  bool ours() const { return fd >= 0 && info.st_uid == ::geteuid(); }

  const int fd;
  struct stat info {};
};

bool IsSame(const struct stat& one, const char* path) {
  struct stat other {};
  return path != nullptr && ::stat(path, &other) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

}  // namespace

void SetStoreFileMode(const std::string& path) {
  const Opened file(path, 0);
  if (!file.ours() || !S_ISREG(file.info.st_mode)) return;
  if ((file.info.st_mode & 07777) != kFileMode) (void)::fchmod(file.fd, kFileMode);
}

void LimitStoreFolderMode(const std::string& folder) {
  const Opened opened(folder + "/", O_DIRECTORY);
  if (!opened.ours() || (opened.info.st_mode & S_ISVTX) != 0) return;
  if (IsSame(opened.info, "/") || IsSame(opened.info, std::getenv("HOME"))) return;
  const mode_t mode = opened.info.st_mode & 07777;
  const mode_t limited = mode & (kFolderMode | S_ISGID);
  if (limited != mode) (void)::fchmod(opened.fd, limited);
}

}  // namespace cellar
