// FaultyFileSystem: a disk in memory that fails on demand and forgets at a power loss what POSIX
// allows it to forget.
//
//   - FailCall(n): the n-th call from now fails (and if `sticky`, all later ones); a write that
//     fails may have written a part, a rename that fails may have been done
//   - FailSyncsOf, HoldSyncsOf: those of one kind of file, by how its name ends
//   - Kill, KillAtCall(n): the process ends; all that was written stays, half of the call that it
//     died in too
//   - SetCapacity: bytes on the disk, beyond which Allocate and WriteAt say kNoSpace
//   - PowerLoss(seed): of each file only what was synced is certain; of the writes since, each
//     512-byte piece survives or not by chance; a size change likewise. Of each name only what
//     SyncDirectory saw is certain; of its later states (made, renamed, removed) any may be found.
//     Every call fails from then on until Reboot(), and calls of files opened before fail for ever
//
// A file that is written without being reserved first may be found with zeros where bytes were
// lost, or shorter. One folder level is enough for a store: names are whole paths.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/os/file.h"
#include "base/random.h"

namespace cellar {

enum class FileCall : uint8_t {
  kOpen,
  kCreate,
  kRead,
  kWrite,
  kAllocate,
  kTruncate,
  kSync,
  kClose,
  kRename,
  kLink,
  kRemove,
  kList,
  kSyncDirectory,
  kExists,
  kLock,
};

class FaultyFileSystem final : public FileSystem {
 public:
  static constexpr uint64_t kFileBytesMax{1 << 28};

  FaultyFileSystem() = default;

  // The n-th call from now (1 is the next) fails with `code`.
  void FailCall(uint64_t n, bool sticky = false, ErrorCode code = ErrorCode::kIo) {
    const std::lock_guard lock(mutex_);
    fail_at_ = calls_ + n;
    sticky_ = sticky;
    fail_code_ = code;
  }
  // Every call of this kind fails until Heal().
  void FailKind(FileCall kind) {
    const std::lock_guard lock(mutex_);
    failing_.insert(kind);
  }
  // From the next call of kind `first` on every call of these kinds fails until Heal().
  void FailKindsFrom(FileCall first, std::set<FileCall> kinds) {
    const std::lock_guard lock(mutex_);
    fails_from_ = first;
    fails_then_ = std::move(kinds);
  }
  // Syncs of files whose names end so fail until Heal().
  void FailSyncsOf(std::string_view ending) {
    const std::lock_guard lock(mutex_);
    sync_fails_ = ending;
  }
  // Syncs of files whose names end so do not return before ReleaseSyncs().
  void HoldSyncsOf(std::string_view ending) {
    const std::lock_guard lock(mutex_);
    sync_held_ = ending;
  }
  void ReleaseSyncs() { HoldSyncsOf({}); }
  void Heal() {
    const std::lock_guard lock(mutex_);
    sync_fails_.clear();
    fails_from_.reset();
    fail_at_ = 0;
    failing_.clear();
  }
  uint64_t calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  bool has_failed() const {
    const std::lock_guard lock(mutex_);
    return failures_ > 0;
  }
  // How long a sync takes; several may run at once.
  void SetSyncMicros(int64_t micros) {
    const std::lock_guard lock(mutex_);
    sync_micros_ = micros;
  }
  void SetCapacity(uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    capacity_ = bytes;
  }
  uint64_t used_bytes() const {
    const std::lock_guard lock(mutex_);
    return UsedBytes();
  }

  void PowerLoss(uint64_t seed) {
    const std::lock_guard lock(mutex_);
    Random random(seed);
    Halt();
    std::map<std::string, std::shared_ptr<File>> names;
    std::set<std::string> all;
    for (const auto& [path, file] : durable_names_) all.insert(path);
    for (const auto& [path, states] : pending_names_) all.insert(path);
    for (const std::string& path : all) {
      std::vector<std::shared_ptr<File>> states;
      const auto durable = durable_names_.find(path);
      states.push_back(durable == durable_names_.end() ? nullptr : durable->second);
      if (const auto it = pending_names_.find(path); it != pending_names_.end())
        states.insert(states.end(), it->second.begin(), it->second.end());
      const auto& found = states[random.Below(states.size())];
      if (found != nullptr) names[path] = found;
    }
    names_ = names;
    durable_names_ = names;
    pending_names_.clear();
    std::set<File*> seen;
    for (auto& [path, file] : names_)
      if (seen.insert(file.get()).second) LosePower(file.get(), &random);
  }
  // As kill -9: nothing is lost, but the process can do no more.
  void Kill() {
    const std::lock_guard lock(mutex_);
    Halt();
  }
  // The process is killed in the n-th call from now: of a write the first half is done.
  void KillAtCall(uint64_t n) {
    const std::lock_guard lock(mutex_);
    kill_at_ = calls_ + n;
  }
  // The process is dead.
  bool is_halted() const {
    const std::lock_guard lock(mutex_);
    return halted_;
  }
  // The next process may use the disk.
  void Reboot() {
    const std::lock_guard lock(mutex_);
    halted_ = false;
    fail_at_ = 0;
    kill_at_ = 0;
    fails_from_.reset();
    failing_.clear();
  }

  // A file system without hard links.
  void ForbidLinks() {
    const std::lock_guard lock(mutex_);
    has_links_ = false;
  }

  // Content for tests: what a reader would see.
  std::string Content(const std::string& path) const {
    const std::lock_guard lock(mutex_);
    return names_.at(path)->bytes;
  }
  // Which file stands there: another one has another number.
  uint64_t NumberOf(const std::string& path) const {
    const std::lock_guard lock(mutex_);
    return names_.at(path)->number;
  }
  // What was to leave the page cache: offsets and sizes, in order.
  std::vector<std::pair<uint64_t, uint64_t>> Dropped(const std::string& path) const {
    const std::lock_guard lock(mutex_);
    return names_.at(path)->dropped;
  }
  void SetContent(const std::string& path, std::string bytes) {
    const std::lock_guard lock(mutex_);
    auto file = std::make_shared<File>();
    file->bytes = bytes;
    file->synced = std::move(bytes);
    names_[path] = file;
    durable_names_[path] = file;
    pending_names_.erase(path);
  }
  std::vector<std::string> Paths() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> paths;
    for (const auto& [path, file] : names_) paths.push_back(path);
    return paths;
  }
  // The same disk again, whole and at rest.
  std::unique_ptr<FaultyFileSystem> Clone() const {
    auto copy = std::make_unique<FaultyFileSystem>();
    for (const std::string& path : Paths()) copy->SetContent(path, Content(path));
    copy->directories_ = directories_;
    return copy;
  }

  // --- FileSystem ---
  Result<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  Result<std::unique_ptr<WritableFile>> OpenForWriting(const std::string& path) override;
  Result<std::unique_ptr<ReadableFile>> OpenForReading(const std::string& path) override;
  Result<bool> Exists(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    RETURN_IF_ERROR(Count(FileCall::kExists, path));
    return names_.contains(path) || directories_.contains(path);
  }
  Status Rename(const std::string& from, const std::string& to) override {
    const std::lock_guard lock(mutex_);
    Status status = Count(FileCall::kRename, from);
    if (halted_ || (!status.ok() && (calls_ & 1) != 0))
      return status;  // else it is done and said to have failed
    const auto it = names_.find(from);
    if (it == names_.end()) return Status::Error(ErrorCode::kIo, "rename: no " + from);
    SetName(to, it->second);
    SetName(from, nullptr);
    return status;
  }
  Status Link(const std::string& from, const std::string& to) override {
    const std::lock_guard lock(mutex_);
    RETURN_IF_ERROR(Count(FileCall::kLink, from));
    if (!has_links_ || !names_.contains(from) || names_.contains(to))
      return Status::Error(ErrorCode::kIo, "link: " + from);
    SetName(to, names_.at(from));
    return Status::Ok();
  }
  Status Remove(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    RETURN_IF_ERROR(Count(FileCall::kRemove, path));
    if (!names_.contains(path)) return Status::Error(ErrorCode::kIo, "remove: no " + path);
    SetName(path, nullptr);
    return Status::Ok();
  }
  Result<std::vector<std::string>> List(const std::string& directory) override {
    const std::lock_guard lock(mutex_);
    RETURN_IF_ERROR(Count(FileCall::kList, directory));
    if (!directories_.contains(directory))
      return Status::Error(ErrorCode::kIo, "list: no folder " + directory);
    std::vector<std::string> names;
    const std::string prefix = directory + "/";
    for (const auto& [path, file] : names_)
      if (path.starts_with(prefix)) names.push_back(path.substr(prefix.size()));
    return names;
  }
  Status CreateDirectory(const std::string& directory) override {
    const std::lock_guard lock(mutex_);
    RETURN_IF_ERROR(Count(FileCall::kCreate, directory));
    directories_.insert(directory);
    return Status::Ok();
  }
  Status SyncDirectory(const std::string& directory) override {
    const std::lock_guard lock(mutex_);
    RETURN_IF_ERROR(Count(FileCall::kSyncDirectory, directory));
    durable_names_ = names_;
    pending_names_.clear();
    return Status::Ok();
  }
  Result<std::unique_ptr<FileLock>> Lock(const std::string& path) override;

 private:
  friend class FaultyWritableFile;
  friend class FaultyReadableFile;
  friend class FaultyLock;

  struct Change {  // since the last sync
    enum class Kind : uint8_t { kWrite, kResize } kind;
    uint64_t offset;  // of the bytes; the new size
    std::string bytes;
  };
  struct File {
    std::string bytes;                                   // as a reader sees it
    std::string synced;                                  // as of the last sync
    std::vector<Change> changes;                         // since it was synced
    uint64_t synced_changes{0};                          // how many there were before these
    std::vector<std::pair<uint64_t, uint64_t>> dropped;  // from the page cache: offset, size
    const uint64_t number{++files_made};                 // as an inode's
    static inline std::atomic<uint64_t> files_made{0};
  };

  // REQUIRES of all: mutex_ held.
  void Halt() {
    halted_ = true;
    ++generation_;
    locks_.clear();
  }
  Status Count(FileCall kind, const std::string& what) {
    if (halted_) return Status::Error(ErrorCode::kIo, "the process is dead");
    ++calls_;
    if (kill_at_ != 0 && calls_ >= kill_at_) {
      Halt();
      return Status::Error(ErrorCode::kIo, "the process was killed");
    }
    if (fails_from_ == kind) {
      fails_from_.reset();
      failing_.merge(fails_then_);
    }
    const bool hit = fail_at_ != 0 && (calls_ == fail_at_ || (sticky_ && calls_ > fail_at_));
    if (!hit && !failing_.contains(kind)) return Status::Ok();
    ++failures_;
    return Status::Error(hit ? fail_code_ : ErrorCode::kIo, "injected fault at '" + what + "'");
  }
  uint64_t UsedBytes() const {
    uint64_t used = 0;
    for (const auto& [path, file] : names_) used += file->bytes.size();
    return used;
  }
  Status Grow(File* file, uint64_t size) {
    if (size <= file->bytes.size()) return Status::Ok();
    if (capacity_ != 0 && UsedBytes() + size - file->bytes.size() > capacity_)
      return Status::Error(ErrorCode::kNoSpace, "the simulated disk is full");
    Resize(file, size);
    return Status::Ok();
  }
  static void Resize(File* file, uint64_t size) {
    file->bytes.resize(size, '\0');
    file->changes.push_back({Change::Kind::kResize, size, {}});
  }
  void SetName(const std::string& path, std::shared_ptr<File> file) {
    pending_names_[path].push_back(file);
    if (file != nullptr)
      names_[path] = std::move(file);
    else
      names_.erase(path);
  }
  // Does a part of a change to *bytes.
  static void Redo(const Change& change, uint64_t at, uint64_t size, std::string* bytes) {
    if (change.kind == Change::Kind::kResize) {
      bytes->resize(change.offset, '\0');
      return;
    }
    const uint64_t offset = change.offset + at;
    if (bytes->size() < offset + size) bytes->resize(offset + size, '\0');
    std::memcpy(&(*bytes)[offset], &change.bytes[at], size);
  }
  static void LosePower(File* file, Random* random) {
    constexpr uint64_t kPiece = 512;
    std::string found = file->synced;
    for (const Change& change : file->changes) {
      if (change.kind == Change::Kind::kResize) {
        if (random->OneIn(2)) Redo(change, 0, 0, &found);
        continue;
      }
      for (uint64_t at = 0; at < change.bytes.size();) {
        const uint64_t offset = change.offset + at;
        const uint64_t n = std::min(kPiece - offset % kPiece, change.bytes.size() - at);
        if (random->OneIn(2)) Redo(change, at, n, &found);
        at += n;
      }
    }
    file->bytes = found;
    file->synced = std::move(found);
    file->synced_changes += file->changes.size();
    file->changes.clear();
  }

  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<File>> names_;          // as a process sees them
  std::map<std::string, std::shared_ptr<File>> durable_names_;  // as of the last SyncDirectory
  std::map<std::string, std::vector<std::shared_ptr<File>>> pending_names_;  // null: removed
  std::set<std::string> directories_;
  std::set<std::string> locks_;
  int64_t sync_micros_{0};
  uint64_t generation_{0};
  uint64_t calls_{0};
  uint64_t fail_at_{0};
  uint64_t kill_at_{0};
  uint64_t failures_{0};
  bool sticky_{false};
  bool halted_{false};
  ErrorCode fail_code_{ErrorCode::kIo};
  std::set<FileCall> failing_;
  std::optional<FileCall> fails_from_;
  std::set<FileCall> fails_then_;
  bool has_links_{true};
  std::string sync_fails_;
  std::string sync_held_;
  uint64_t capacity_{0};
};

class FaultyWritableFile final : public WritableFile {
 public:
  FaultyWritableFile(FaultyFileSystem* disk, std::string path,
                     std::shared_ptr<FaultyFileSystem::File> file)
      : disk_(disk), path_(std::move(path)), file_(std::move(file)), born_(disk->generation_) {}

  Status WriteAt(uint64_t offset, std::string_view bytes) override {
    const std::lock_guard lock(disk_->mutex_);
    const bool was_dead = dead() || disk_->halted_;
    Status status = Begin(FileCall::kWrite);
    if (!status.ok()) bytes = bytes.substr(0, bytes.size() / 2);  // torn
    if (bytes.empty() || was_dead) return status;
    if (offset + bytes.size() < offset || offset + bytes.size() > FaultyFileSystem::kFileBytesMax)
      return Status::Error(ErrorCode::kIo, "File too large");
    RETURN_IF_ERROR(disk_->Grow(file_.get(), offset + bytes.size()));
    std::memcpy(&file_->bytes[offset], bytes.data(), bytes.size());
    file_->changes.push_back({FaultyFileSystem::Change::Kind::kWrite, offset, std::string(bytes)});
    return status;
  }
  Status Allocate(uint64_t offset, uint64_t size) override {
    const std::lock_guard lock(disk_->mutex_);
    RETURN_IF_ERROR(Begin(FileCall::kAllocate));
    return disk_->Grow(file_.get(), offset + size);
  }
  Status Truncate(uint64_t size) override {
    const std::lock_guard lock(disk_->mutex_);
    RETURN_IF_ERROR(Begin(FileCall::kTruncate));
    FaultyFileSystem::Resize(file_.get(), size);
    return Status::Ok();
  }
  Status Sync() override {
    std::unique_lock lock(disk_->mutex_);
    // What is written while it lasts is not covered.
    const uint64_t end = file_->synced_changes + file_->changes.size();
    if (disk_->sync_micros_ > 0) {
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::microseconds(disk_->sync_micros_));
      lock.lock();
    }
    while (!disk_->sync_held_.empty() && path_.ends_with(disk_->sync_held_)) {
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      lock.lock();
    }
    const bool is_dead = dead() || disk_->halted_;  // the kernel goes on without the process
    Status status = Begin(FileCall::kSync);
    if (status.ok() && !disk_->sync_fails_.empty() && path_.ends_with(disk_->sync_fails_))
      status = Status::Error(ErrorCode::kIo, "injected fault at the sync of '" + path_ + "'");
    if (is_dead) return status;
    std::vector<FaultyFileSystem::Change>& changes = file_->changes;
    const uint64_t covered = end - std::min(end, file_->synced_changes);
    const auto covered_end = changes.begin() + static_cast<std::ptrdiff_t>(covered);
    // Like a kernel when it fails: what could not be written is forgotten, and the next sync will
    // say OK. A reader still sees it until the power goes.
    for (auto change = changes.begin(); status.ok() && change != covered_end; ++change)
      FaultyFileSystem::Redo(*change, 0, change->bytes.size(), &file_->synced);
    changes.erase(changes.begin(), covered_end);
    file_->synced_changes += covered;
    return status;
  }
  Status Close() override {
    const std::lock_guard lock(disk_->mutex_);
    return Begin(FileCall::kClose);
  }
  void BeginWriteback(uint64_t, uint64_t) override {}
  void DropCache(uint64_t offset, uint64_t size) override {
    const std::lock_guard lock(disk_->mutex_);
    file_->dropped.emplace_back(offset, size);
  }

 private:
  bool dead() const { return born_ != disk_->generation_; }
  Status Begin(FileCall kind) {
    if (dead()) return Status::Error(ErrorCode::kIo, "the process is dead");
    return disk_->Count(kind, path_);
  }
  FaultyFileSystem* const disk_;
  const std::string path_;
  const std::shared_ptr<FaultyFileSystem::File> file_;
  const uint64_t born_;
};

class FaultyReadableFile final : public ReadableFile {
 public:
  FaultyReadableFile(FaultyFileSystem* disk, std::string path,
                     std::shared_ptr<FaultyFileSystem::File> file)
      : disk_(disk), path_(std::move(path)), file_(std::move(file)) {}
  Result<size_t> ReadAt(uint64_t offset, size_t size, char* to) override {
    const std::lock_guard lock(disk_->mutex_);
    RETURN_IF_ERROR(disk_->Count(FileCall::kRead, path_));
    if (offset >= file_->bytes.size()) return size_t{0};
    const size_t n = std::min<size_t>(size, file_->bytes.size() - offset);
    std::memcpy(to, file_->bytes.data() + offset, n);
    return n;
  }
  Result<uint64_t> Size() override {
    const std::lock_guard lock(disk_->mutex_);
    RETURN_IF_ERROR(disk_->Count(FileCall::kRead, path_));
    return static_cast<uint64_t>(file_->bytes.size());
  }

 private:
  FaultyFileSystem* const disk_;
  const std::string path_;
  const std::shared_ptr<FaultyFileSystem::File> file_;
};

class FaultyLock final : public FileLock {
 public:
  FaultyLock(FaultyFileSystem* disk, std::string path)
      : disk_(disk), path_(std::move(path)), born_(disk->generation_) {}
  ~FaultyLock() override {
    const std::lock_guard lock(disk_->mutex_);
    if (born_ == disk_->generation_) disk_->locks_.erase(path_);
  }
  FaultyLock(const FaultyLock&) = delete;
  FaultyLock& operator=(const FaultyLock&) = delete;

 private:
  FaultyFileSystem* const disk_;
  const std::string path_;
  const uint64_t born_;
};

inline Result<std::unique_ptr<WritableFile>> FaultyFileSystem::Create(const std::string& path) {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(Count(FileCall::kCreate, path));
  if (names_.contains(path)) return Status::Error(ErrorCode::kIo, "create: there is " + path);
  auto file = std::make_shared<File>();
  SetName(path, file);
  return std::unique_ptr<WritableFile>(std::make_unique<FaultyWritableFile>(this, path, file));
}

inline Result<std::unique_ptr<WritableFile>> FaultyFileSystem::OpenForWriting(
    const std::string& path) {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(Count(FileCall::kOpen, path));
  if (!names_.contains(path)) return Status::Error(ErrorCode::kIo, "open: no " + path);
  return std::unique_ptr<WritableFile>(
      std::make_unique<FaultyWritableFile>(this, path, names_[path]));
}

inline Result<std::unique_ptr<ReadableFile>> FaultyFileSystem::OpenForReading(
    const std::string& path) {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(Count(FileCall::kOpen, path));
  if (!names_.contains(path)) return Status::Error(ErrorCode::kIo, "open: no " + path);
  return std::unique_ptr<ReadableFile>(
      std::make_unique<FaultyReadableFile>(this, path, names_[path]));
}

inline Result<std::unique_ptr<FileLock>> FaultyFileSystem::Lock(const std::string& path) {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(Count(FileCall::kLock, path));
  if (!names_.contains(path)) SetName(path, std::make_shared<File>());
  if (!locks_.insert(path).second) return Status::Error(ErrorCode::kIo, "locked: " + path);
  return std::unique_ptr<FileLock>(std::make_unique<FaultyLock>(this, path));
}

}  // namespace cellar
