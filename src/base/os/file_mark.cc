// See file_mark.h.
#include "base/os/file_mark.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <fstream>

#include "base/hash.h"

namespace cellar {

FileMark MarkOfFile(const std::string& path) {
  struct statx found {};
  if (statx(AT_FDCWD, path.c_str(), 0, STATX_INO | STATX_BTIME, &found) != 0) return {};
  FileMark mark{.inode = found.stx_ino};
  if ((found.stx_mask & STATX_BTIME) != 0)
    mark.birth_nanos = found.stx_btime.tv_sec * 1'000'000'000 + found.stx_btime.tv_nsec;
  return mark;
}

uint64_t BootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text;
  return std::getline(file, text) ? Hash64(text) | 1 : 0;
}

}  // namespace cellar
