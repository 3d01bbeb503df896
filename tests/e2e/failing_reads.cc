// A disk that does not give back what it holds, for LD_PRELOAD: while the file FAILING_READS
// exists, with "<from> <to> [short]" in it, pread of those bytes of a snapshot fails with EIO, or
// finds that the file ends before them.
#include <dlfcn.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <string>

extern "C" ssize_t pread(int file, void* bytes, size_t size, off_t offset) {
  static auto* const next =
      reinterpret_cast<ssize_t (*)(int, void*, size_t, off_t)>(dlsym(RTLD_NEXT, "pread"));
  std::ifstream order(std::getenv("FAILING_READS"));
  off_t from = 0;
  off_t to = 0;
  if (!(order >> from >> to) || offset >= to || offset + static_cast<off_t>(size) <= from)
    return next(file, bytes, size, offset);
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t length = readlink(link.c_str(), path, sizeof path);
  if (!std::string(path, length < 0 ? 0 : static_cast<size_t>(length)).ends_with(".snapshot"))
    return next(file, bytes, size, offset);
  std::string how;
  if (order >> how)
    return offset >= from ? 0 : next(file, bytes, static_cast<size_t>(from - offset), offset);
  errno = EIO;
  return -1;
}
