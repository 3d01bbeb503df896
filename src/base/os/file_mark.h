// FileMark: which file it is that stands under a name: one that was copied back is another one,
// whatever it holds. The device is left out: disks change their numbers from boot to boot.
#pragma once

#include <cstdint>
#include <string>

namespace cellar {

struct FileMark {
  uint64_t inode{0};       // 0: not known
  int64_t birth_nanos{0};  // 0: the file system does not say
  bool known() const { return inode != 0; }
  friend bool operator==(const FileMark&, const FileMark&) = default;
};

FileMark MarkOfFile(const std::string& path);

// Of this start of the machine; 0: not known. What was written before the end of a process is there
// as long as this stays the same.
uint64_t BootId();

}  // namespace cellar
