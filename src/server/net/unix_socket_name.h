// UnixSocketName: the name of a unix socket in the file system, from the claim to the removal.
//
//   Bind    the name is free, or that of a socket to which nobody listens any more, which goes;
//           then a new socket has it
//   (listen)
//   Keep    others may look at it now
//   Remove  it goes, if it is still that of the socket that was bound
//
// A file that is no socket, a link, and a socket that somebody listens to are never touched. Of two
// servers that find the same dead socket one must not remove what the other has just bound: from
// Bind to Keep the folder is locked (flock), as far as it can be within a second. Not by
// uv_pipe_bind: libuv cuts the path, and removes whatever has the name when it closes the handle.
#pragma once

#include <sys/types.h>

#include <string>

#include "cellar/status.h"

namespace cellar {

class UnixSocketName {
 public:
  UnixSocketName() = default;
  ~UnixSocketName() { Unlock(); }
  UnixSocketName(const UnixSocketName&) = delete;
  UnixSocketName& operator=(const UnixSocketName&) = delete;

  // The descriptor of a socket that is bound to the name, with these permissions (0: as the umask
  // has it). kIo with the reason if the name cannot be had; nothing has changed then.
  Result<int> Bind(const std::string& path, mode_t mode);
  // It listens.
  void Keep() { Unlock(); }
  // To be called while the socket is open: its inode cannot be another file's then.
  void Remove();

 private:
  Status RemoveDead() const;
  Result<int> BindFree(mode_t mode);
  void Unlock();

  std::string path_;
  int folder_{-1};  // locked
  bool kept_{false};
  dev_t device_{0};
  ino_t inode_{0};
};

}  // namespace cellar
