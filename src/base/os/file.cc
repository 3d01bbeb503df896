// The machine's files behind base/os/file.h: thin wrappers of POSIX calls that repeat what a signal
// interrupted and put the system's reason into a Status.
#include "base/os/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "base/assert.h"
#include "base/os/object_store.h"

namespace cellar {
namespace {

// strerror's text is shared between threads; this one is the caller's.
std::string ErrorText(int error) {
  char text[128];
  return strerror_r(error, text, sizeof text);
}

Status Failed(std::string_view call, const std::string& path, int error) {
  // A quota and a limit of file sizes are a full disk to whoever writes.
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return Status::Error(full ? ErrorCode::kNoSpace : ErrorCode::kIo,
                       std::string(call) + " '" + path + "': " + ErrorText(error));
}

// O_DIRECT on or off; returns whether it is on.
bool SetDirect(int fd, bool wanted) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) return false;
  const int changed = wanted ? flags | O_DIRECT : flags & ~O_DIRECT;
  return ::fcntl(fd, F_SETFL, changed) == 0 ? wanted : (flags & O_DIRECT) != 0;
}

class PosixWritableFile final : public WritableFile {
 public:
  PosixWritableFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  ~PosixWritableFile() override {
    if (fd_ >= 0) (void)::close(fd_);
  }
  PosixWritableFile(const PosixWritableFile&) = delete;
  PosixWritableFile& operator=(const PosixWritableFile&) = delete;

  Status WriteAt(uint64_t offset, std::string_view bytes) override {
    CELLAR_ASSERT(fd_ >= 0);
    while (!bytes.empty()) {
      const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return Failed("write", path_, errno);
      bytes.remove_prefix(static_cast<size_t>(n));
      offset += static_cast<uint64_t>(n);
    }
    return Status::Ok();
  }

  Status Allocate(uint64_t offset, uint64_t size) override {
    CELLAR_ASSERT(fd_ >= 0);
    int error = EINTR;
    while (error == EINTR)
      error = ::posix_fallocate(fd_, static_cast<off_t>(offset), static_cast<off_t>(size));
    return error == 0 ? Status::Ok() : Failed("allocate", path_, error);
  }

  Status Truncate(uint64_t size) override {
    CELLAR_ASSERT(fd_ >= 0);
    while (::ftruncate(fd_, static_cast<off_t>(size)) != 0)
      if (errno != EINTR) return Failed("truncate", path_, errno);
    return Status::Ok();
  }

  Status Sync() override {
    CELLAR_ASSERT(fd_ >= 0);
    // Not repeated on EINTR: a sync that did not succeed at once has told us nothing.
    return ::fdatasync(fd_) == 0 ? Status::Ok() : Failed("fdatasync", path_, errno);
  }

  Status Close() override {
    CELLAR_ASSERT(fd_ >= 0);
    // Never repeated: on Linux the descriptor is gone, whatever close says.
    const int result = ::close(fd_);
    fd_ = -1;
    return result == 0 ? Status::Ok() : Failed("close", path_, errno);
  }

  void BeginWriteback(uint64_t offset, uint64_t size) override {
    (void)::sync_file_range(fd_, static_cast<off_t>(offset), static_cast<off_t>(size),
                            SYNC_FILE_RANGE_WRITE);
  }

  void DropCache(uint64_t offset, uint64_t size) override {
    (void)::posix_fadvise(fd_, static_cast<off_t>(offset), static_cast<off_t>(size),
                          POSIX_FADV_DONTNEED);
  }

  bool PassCache(bool wanted) override { return SetDirect(fd_, wanted); }

 private:
  const std::string path_;
  int fd_;
};

class PosixReadableFile final : public ReadableFile {
 public:
  PosixReadableFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  ~PosixReadableFile() override { (void)::close(fd_); }
  PosixReadableFile(const PosixReadableFile&) = delete;
  PosixReadableFile& operator=(const PosixReadableFile&) = delete;

  Result<size_t> ReadAt(uint64_t offset, size_t size, char* to) override {
    size_t done = 0;
    while (done < size) {
      const ssize_t n = ::pread(fd_, to + done, size - done, static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return Failed("read", path_, errno);
      if (n == 0) break;
      done += static_cast<size_t>(n);
    }
    return done;
  }

  Result<uint64_t> Size() override {
    struct stat info {};
    if (::fstat(fd_, &info) != 0) return Failed("stat", path_, errno);
    return static_cast<uint64_t>(info.st_size);
  }

  bool PassCache(bool wanted) override { return SetDirect(fd_, wanted); }

 private:
  const std::string path_;
  const int fd_;
};

class PosixFileLock final : public FileLock {
 public:
  explicit PosixFileLock(int fd) : fd_(fd) {}
  ~PosixFileLock() override { (void)::close(fd_); }
  PosixFileLock(const PosixFileLock&) = delete;
  PosixFileLock& operator=(const PosixFileLock&) = delete;

 private:
  const int fd_;
};

// Of all that is made here, whatever the umask says: values of a store are nobody else's business.
constexpr mode_t kFileMode{0640};
constexpr mode_t kFolderMode{0750};

int OpenDescriptor(const std::string& path, int flags, mode_t mode) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

class PosixFileSystem final : public FileSystem {
 public:
  Result<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    const int fd = OpenDescriptor(path, O_WRONLY | O_CREAT | O_EXCL, kFileMode);
    if (fd < 0) return Failed("create", path, errno);
    (void)::fchmod(fd, kFileMode);  // not every file system has modes
    return std::unique_ptr<WritableFile>(std::make_unique<PosixWritableFile>(path, fd));
  }

  Result<std::unique_ptr<WritableFile>> OpenForWriting(const std::string& path) override {
    const int fd = OpenDescriptor(path, O_WRONLY, 0);
    if (fd < 0) return Failed("open", path, errno);
    return std::unique_ptr<WritableFile>(std::make_unique<PosixWritableFile>(path, fd));
  }

  Result<std::unique_ptr<ReadableFile>> OpenForReading(const std::string& path) override {
    const int fd = OpenDescriptor(path, O_RDONLY, 0);
    if (fd < 0) return Failed("open", path, errno);
    return std::unique_ptr<ReadableFile>(std::make_unique<PosixReadableFile>(path, fd));
  }

  Result<bool> Exists(const std::string& path) override {
    struct stat info {};
    if (::stat(path.c_str(), &info) == 0) return true;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return Failed("stat", path, errno);
  }

  Status Rename(const std::string& from, const std::string& to) override {
    return ::rename(from.c_str(), to.c_str()) == 0 ? Status::Ok() : Failed("rename", from, errno);
  }

  Status Link(const std::string& from, const std::string& to) override {
    return ::link(from.c_str(), to.c_str()) == 0 ? Status::Ok() : Failed("link", from, errno);
  }

  Status Remove(const std::string& path) override {
    return ::unlink(path.c_str()) == 0 ? Status::Ok() : Failed("remove", path, errno);
  }

  Result<std::vector<std::string>> List(const std::string& directory) override {
    DIR* dir = ::opendir(directory.c_str());
    if (dir == nullptr) return Failed("list", directory, errno);
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(dir)) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
      errno = 0;
    }
    const int error = errno;
    (void)::closedir(dir);
    if (error != 0) return Failed("list", directory, error);
    std::sort(names.begin(), names.end());
    return names;
  }

  Status CreateDirectory(const std::string& directory) override {
    if (::mkdir(directory.c_str(), kFolderMode) == 0) {
      (void)::chmod(directory.c_str(), kFolderMode);
      return Status::Ok();
    }
    return errno == EEXIST ? Status::Ok() : Failed("mkdir", directory, errno);
  }

  Status SyncDirectory(const std::string& directory) override {
    const int fd = OpenDescriptor(directory, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0) return Failed("open", directory, errno);
    const int error = ::fsync(fd) == 0 ? 0 : errno;
    (void)::close(fd);
    return error == 0 ? Status::Ok() : Failed("fsync", directory, error);
  }

  Result<std::unique_ptr<FileLock>> Lock(const std::string& path) override {
    int fd = OpenDescriptor(path, O_RDWR | O_CREAT, kFileMode);
    // A lock needs no right to write: a store on a read-only disk can be looked at.
    if (const int why = errno; fd < 0 && (why == EROFS || why == EACCES)) {
      fd = OpenDescriptor(path, O_RDONLY, 0);
      if (fd < 0 && errno == ENOENT) errno = why;  // it is not there, and cannot be made
    }
    if (fd < 0) return Failed("open", path, errno);
    auto lock = std::make_unique<PosixFileLock>(fd);
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) {
      (void)::fchmod(fd, kFileMode);  // an old one too
      return std::unique_ptr<FileLock>(std::move(lock));
    }
    if (errno == EWOULDBLOCK)
      return Status::Error(ErrorCode::kIo,
                           "'" + path + "' is locked: another process is using this directory");
    return Failed("lock", path, errno);
  }
};

}  // namespace

FileSystem& FileSystem::Posix() {
  static PosixFileSystem files;
  return files;
}

Status ReadWholeFile(FileSystem& files, const std::string& path, std::string* bytes) {
  ASSIGN_OR_RETURN(auto file, files.OpenForReading(path));
  ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  bytes->resize(size);
  ASSIGN_OR_RETURN(const size_t n, file->ReadAt(0, bytes->size(), bytes->data()));
  bytes->resize(n);
  return Status::Ok();
}

Result<std::string> ReadWholeFile(FileSystem& files, const std::string& path) {
  std::string bytes;
  RETURN_IF_ERROR(ReadWholeFile(files, path, &bytes));
  return bytes;
}

Status WriteFreshFile(FileSystem& files, const std::string& path, std::string_view text) {
  // What an earlier attempt has left is in the way of Create, which takes only a new name.
  if (!IsObjectPath(path)) {
    ASSIGN_OR_RETURN(const bool is_left, files.Exists(path));
    if (is_left) RETURN_IF_ERROR(files.Remove(path));
  }
  ASSIGN_OR_RETURN(auto file, files.Create(path));
  RETURN_IF_ERROR(file->WriteAt(0, text));
  RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

namespace {

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Status ReplaceFile(FileSystem& files, const std::string& path, std::string_view text) {
  if (IsObjectPath(path)) return WriteFreshFile(files, path, text);  // replaced as a whole
  // At any moment `path` holds the old text or the new one, whole: it is synced before it gets the
  // name. The folder is synced last, so that the name stays.
  const std::string temporary = path + ".tmp";
  RETURN_IF_ERROR(WriteFreshFile(files, temporary, text));
  RETURN_IF_ERROR(files.Rename(temporary, path));
  return files.SyncDirectory(FolderOf(path));
}

namespace {

// Where the links lead that `path` may be: to the name of a file, or of none yet.
Result<std::string> FollowLinks(std::string path) {
  constexpr int kLinksMax{40};  // as in the kernel
  for (int i = 0; i < kLinksMax; ++i) {
    char target[PATH_MAX];
    const ssize_t size = ::readlink(path.c_str(), target, sizeof(target));
    if (size < 0) return path;
    const std::string_view to(target, static_cast<size_t>(size));
    path = to.starts_with('/') ? std::string(to) : JoinPath(FolderOf(path), to);
  }
  return Failed("open", path, ELOOP);
}

// `fresh` becomes a file with the text, the owner and the mode that the file `path` has.
Status WriteFreshLike(const std::string& path, const std::string& fresh, std::string_view text) {
  constexpr mode_t kOwnerAlone{0700};
  // Nobody else may read it before it has the owner and the mode of the old one.
  const int fd = OpenDescriptor(fresh, O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (fd < 0) return Failed("create", fresh, errno);
  PosixWritableFile file(fresh, fd);
  struct stat old {};
  if (::stat(path.c_str(), &old) == 0) {
    // What the old group might do is nothing for another one.
    const bool same_owner = ::fchown(fd, old.st_uid, old.st_gid) == 0;
    const mode_t mode = old.st_mode & (same_owner ? 0777 : kOwnerAlone);
    if (::fchmod(fd, mode) != 0) return Failed("chmod", fresh, errno);
  }
  RETURN_IF_ERROR(file.WriteAt(0, text));
  RETURN_IF_ERROR(file.Sync());
  return file.Close();
}

}  // namespace

Status ReplaceFile(const std::string& link_or_path, std::string_view text) {
  FileSystem& files = FileSystem::Posix();
  ASSIGN_OR_RETURN(const std::string path, FollowLinks(link_or_path));
  const std::string fresh = path + ".new";
  (void)files.Remove(fresh);
  Status status = WriteFreshLike(path, fresh, text);
  if (status.ok()) status = files.Rename(fresh, path);
  if (!status.ok()) {
    (void)files.Remove(fresh);  // it may hold passwords
    return status;
  }
  return files.SyncDirectory(FolderOf(path));
}

std::string JoinPath(std::string_view directory, std::string_view name) {
  std::string path(directory);
  if (!path.empty() && path.back() != '/') path += '/';
  path += name;
  return path;
}

}  // namespace cellar
