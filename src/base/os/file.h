// FileSystem: every access of the project to a file goes through here, so that a test can fail or
// tear the n-th call, drop what was not synced, or fill the disk
// (tests/store/faulty_file_system.h).
//
//   FileSystem    names: open, create, rename, remove, list, sync of a directory, lock
//   WritableFile  writes at offsets, reserves space, syncs
//   ReadableFile  reads at offsets
//
// What a caller may rely on after a power loss, and nothing more:
//   - bytes of a file:   those written before a successful Sync() of that file
//   - names in a folder: those created, renamed or removed before a successful SyncDirectory()
// A rename is atomic: afterwards the name stands for the old file or the new one, never for
// neither.
//
// Errors are kNoSpace for a full disk, quota or limit of file sizes, otherwise kIo; the text names
// the call, the path and the system's reason. After a failed Sync() the state of the file on disk
// is unknown, a second Sync() that succeeds proves nothing (the kernel reports an error once): the
// caller gives the file up.
//
// Calls block. All are safe to make from several threads, one thread at a time per file object; but
// a WriteAt may overlap with any other call on the file except Close: a Sync that runs meanwhile
// covers it or not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/status.h"

namespace cellar {

// Of the address in memory, the place in the file and the size of what passes the page cache.
inline constexpr size_t kDirectAlignment{4096};

class WritableFile {
 public:
  virtual ~WritableFile() = default;  // closes, ignoring errors

  // Writes all of `bytes` at `offset`, beyond the end too (a gap reads as zeros). On an error any
  // part of it may have been written.
  virtual Status WriteAt(uint64_t offset, std::string_view bytes) = 0;
  // Reserves room on the disk for [offset, offset + size), so that later writes there cannot run
  // out of space; extends the file with zeros. kNoSpace leaves the content as it was.
  virtual Status Allocate(uint64_t offset, uint64_t size) = 0;
  virtual Status Truncate(uint64_t size) = 0;
  // Returns when content and size are on stable storage.
  virtual Status Sync() = 0;
  // Gives the descriptor back and says if the system had an error left to tell. No call may follow.
  virtual Status Close() = 0;
  // A hint that these written bytes shall be on their way to the disk when they are synced: a sync
  // of many megabytes at once occupies a processor for milliseconds.
  virtual void BeginWriteback(uint64_t offset, uint64_t size) = 0;
  // A hint that these bytes, already synced, will not be read soon: keeps a large file from pushing
  // others out of the page cache.
  virtual void DropCache(uint64_t offset, uint64_t size) = 0;
  // Whether writes go past the page cache from now on, for which they must be aligned to
  // kDirectAlignment. True if that is what they do; not every file system can. A write that fails
  // because it is not aligned enough has written nothing.
  virtual bool PassCache(bool wanted) {
    (void)wanted;
    return false;
  }
};

class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  // Reads up to `size` bytes at `offset` to `to`; fewer only at the end of the file. Returns how
  // many.
  virtual Result<size_t> ReadAt(uint64_t offset, size_t size, char* to) = 0;
  virtual Result<uint64_t> Size() = 0;
  // As of WritableFile, for reads. At the end of the file one may be of fewer bytes.
  virtual bool PassCache(bool wanted) {
    (void)wanted;
    return false;
  }
};

// Held as long as the object lives.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Makes a new, empty file. An existing one is an error (kIo).
  virtual Result<std::unique_ptr<WritableFile>> Create(const std::string& path) = 0;
  // Opens an existing file for writing, content kept.
  virtual Result<std::unique_ptr<WritableFile>> OpenForWriting(const std::string& path) = 0;
  virtual Result<std::unique_ptr<ReadableFile>> OpenForReading(const std::string& path) = 0;

  // True if the name is there. An error other than its absence is an error here.
  virtual Result<bool> Exists(const std::string& path) = 0;
  // Replaces `to` if it is there.
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  virtual Status Remove(const std::string& path) = 0;
  // Another name for the same file. An existing one is an error; so is a file system that has no
  // such thing.
  virtual Status Link(const std::string& from, const std::string& to) = 0;
  // Names (without the folder) of the entries of `directory`, sorted; no "." and "..".
  virtual Result<std::vector<std::string>> List(const std::string& directory) = 0;
  // Makes `directory`; OK if it is there. Its parent must be there.
  virtual Status CreateDirectory(const std::string& directory) = 0;
  // Makes the names in `directory` durable.
  virtual Status SyncDirectory(const std::string& directory) = 0;
  // Takes the lock file `path` (made if need be) for this process alone; kIo if another holds it.
  virtual Result<std::unique_ptr<FileLock>> Lock(const std::string& path) = 0;

  // The machine's own file system. Lives as long as the process.
  static FileSystem& Posix();
};

// All of a file's bytes. For files that fit into memory.
Result<std::string> ReadWholeFile(FileSystem& files, const std::string& path);
// *bytes := all of a file's bytes, in the memory that it has where that is enough.
Status ReadWholeFile(FileSystem& files, const std::string& path, std::string* bytes);

// Writes a file that is durable but for its name; one that is there is removed first.
Status WriteFreshFile(FileSystem& files, const std::string& path, std::string_view text);
// Makes `text` the content of the file, durably: after a crash it holds the old or the new one.
// `path`.tmp may stay behind then, and is removed by the next call.
Status ReplaceFile(FileSystem& files, const std::string& path, std::string_view text);

// Makes `text` the content of the file, of which others see either the old or the new one, also
// after a crash. For files that hold passwords: owner and permissions stay what they were, as far
// as this process may set them, and a file that was not there is for its owner alone.
Status ReplaceFile(const std::string& path, std::string_view text);

// `directory` and `name` with one slash between them.
std::string JoinPath(std::string_view directory, std::string_view name);

}  // namespace cellar
