// LinkOrCopy on the machine's own files, past the page cache where it can, and with faults.
#include "store/format/file_copy.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/random.h"
#include "tests/store/faulty_file_system.h"

namespace cellar::file_copy_test {

// A file that says that it passes the cache, and then takes only what is aligned to more than it
// promised, or nothing from some place on.
struct Direct {
  bool on{false};
  uint64_t alignment{1};
  uint64_t fails_from{UINT64_MAX};

  bool Takes(uint64_t offset, uint64_t size) const {
    return !on || (offset % alignment == 0 && size % alignment == 0 && offset + size <= fails_from);
  }
};

class DirectWritable final : public WritableFile {
 public:
  DirectWritable(std::unique_ptr<WritableFile> file, Direct direct, int* direct_writes)
      : file_(std::move(file)), direct_(direct), direct_writes_(direct_writes) {}
  Status WriteAt(uint64_t offset, std::string_view bytes) override {
    if (!direct_.Takes(offset, bytes.size())) return Status::Error(ErrorCode::kIo, "not aligned");
    if (direct_.on) ++*direct_writes_;
    return file_->WriteAt(offset, bytes);
  }
  Status Allocate(uint64_t offset, uint64_t size) override { return file_->Allocate(offset, size); }
  Status Truncate(uint64_t size) override { return file_->Truncate(size); }
  Status Sync() override { return file_->Sync(); }
  Status Close() override { return file_->Close(); }
  void BeginWriteback(uint64_t offset, uint64_t size) override {
    file_->BeginWriteback(offset, size);
  }
  void DropCache(uint64_t offset, uint64_t size) override { file_->DropCache(offset, size); }
  bool PassCache(bool wanted) override { return direct_.on = wanted; }

 private:
  const std::unique_ptr<WritableFile> file_;
  Direct direct_;
  int* const direct_writes_;
};

class DirectReadable final : public ReadableFile {
 public:
  DirectReadable(std::unique_ptr<ReadableFile> file, Direct direct)
      : file_(std::move(file)), direct_(direct) {}
  Result<size_t> ReadAt(uint64_t offset, size_t size, char* to) override {
    if (!direct_.Takes(offset, size)) return Status::Error(ErrorCode::kIo, "not aligned");
    return file_->ReadAt(offset, size, to);
  }
  Result<uint64_t> Size() override { return file_->Size(); }
  bool PassCache(bool wanted) override { return direct_.on = wanted; }

 private:
  const std::unique_ptr<ReadableFile> file_;
  Direct direct_;
};

// The machine's files, without second names for one; with `direct`, as it says.
class NoLinks final : public FileSystem {
 public:
  Result<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    if (!writes) return files_.Create(path);
    ASSIGN_OR_RETURN(auto file, files_.Create(path));
    return std::unique_ptr<WritableFile>(
        std::make_unique<DirectWritable>(std::move(file), *writes, &direct_writes));
  }
  Result<std::unique_ptr<WritableFile>> OpenForWriting(const std::string& path) override {
    return files_.OpenForWriting(path);
  }
  Result<std::unique_ptr<ReadableFile>> OpenForReading(const std::string& path) override {
    if (!reads) return files_.OpenForReading(path);
    ASSIGN_OR_RETURN(auto file, files_.OpenForReading(path));
    return std::unique_ptr<ReadableFile>(std::make_unique<DirectReadable>(std::move(file), *reads));
  }
  Result<bool> Exists(const std::string& path) override { return files_.Exists(path); }
  Status Rename(const std::string& from, const std::string& to) override {
    return files_.Rename(from, to);
  }
  Status Remove(const std::string& path) override { return files_.Remove(path); }
  Status Link(const std::string&, const std::string&) override {
    return Status::Error(ErrorCode::kIo, "no links here");
  }
  Result<std::vector<std::string>> List(const std::string& directory) override {
    return files_.List(directory);
  }
  Status CreateDirectory(const std::string& path) override { return files_.CreateDirectory(path); }
  Status SyncDirectory(const std::string& path) override { return files_.SyncDirectory(path); }
  Result<std::unique_ptr<FileLock>> Lock(const std::string& path) override {
    return files_.Lock(path);
  }

  std::optional<Direct> writes;
  std::optional<Direct> reads;
  int direct_writes{0};

 private:
  FileSystem& files_{FileSystem::Posix()};
};

struct Folder {
  Folder() {
    char name[] = "/tmp/cellar-file-copy-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    path = name;
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string path;
};

std::string RandomText(uint64_t bytes, Random* random) {
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(random->Below(256));
  return text;
}

TEST_CASE("a copy is the first bytes of the file, of every length", "[file_copy]") {
  const Folder folder;
  NoLinks files;
  const uint64_t seed = Catch::rngSeed();
  CAPTURE(seed);
  Random random(seed);
  const std::string from = folder.path + "/from";
  constexpr uint64_t kMiB{1 << 20};
  const std::string text = RandomText(3 * kMiB + 123, &random);
  std::ofstream(from, std::ios::binary) << text;
  for (const uint64_t bytes :
       {uint64_t{0}, uint64_t{1}, uint64_t{4095}, uint64_t{4096}, kMiB - 1, kMiB, kMiB + 1,
        2 * kMiB, 2 * kMiB + 4096, 3 * kMiB, uint64_t{text.size() - 1}, uint64_t{text.size()}}) {
    CAPTURE(bytes);
    const std::string to = folder.path + "/to";
    REQUIRE(LinkOrCopy(files, from, to, bytes).ok());
    const Result<std::string> copied = ReadWholeFile(files, to);
    REQUIRE(copied.ok());
    REQUIRE(*copied == text.substr(0, bytes));
    REQUIRE_FALSE(*files.Exists(to + ".tmp"));
    REQUIRE(files.Remove(to).ok());
  }
  CHECK(LinkOrCopy(files, from, folder.path + "/to", text.size() + 1).code() == ErrorCode::kIo);
  CHECK_FALSE(*files.Exists(folder.path + "/to"));
}

TEST_CASE("a copy goes by way of the cache where the other way ends", "[file_copy]") {
  const Folder folder;
  const uint64_t seed = Catch::rngSeed();
  CAPTURE(seed);
  Random random(seed);
  constexpr uint64_t kMiB{1 << 20};
  const std::string from = folder.path + "/from";
  const std::string to = folder.path + "/to";
  const std::string text = RandomText(4 * kMiB + 4096 + 77, &random);
  std::ofstream(from, std::ios::binary) << text;
  for (const uint64_t alignment : {uint64_t{1}, uint64_t{8192}, 2 * kMiB}) {
    for (const uint64_t fails_from : {uint64_t{UINT64_MAX}, uint64_t{0}, kMiB, 3 * kMiB}) {
      for (const bool of_reads : {false, true}) {
        CAPTURE(alignment, fails_from, of_reads);
        NoLinks files;
        files.writes = Direct{};
        files.reads = Direct{};
        (of_reads ? files.reads : files.writes) =
            Direct{.alignment = alignment, .fails_from = fails_from};
        REQUIRE(LinkOrCopy(files, from, to, text.size()).ok());
        files.reads.reset();
        REQUIRE(*ReadWholeFile(files, to) == text);
        REQUIRE(files.Remove(to).ok());
        // Of five pieces the last is not aligned; what cannot be read so can be written so.
        const bool is_hindered = alignment > kMiB || fails_from < kMiB;
        if (of_reads || (alignment == 1 && fails_from > 4 * kMiB)) {
          CHECK(files.direct_writes == 4);
        } else if (is_hindered) {
          CHECK(files.direct_writes == 0);
        }
      }
    }
  }
}

TEST_CASE("a copy that fails at any call leaves nothing behind", "[file_copy]") {
  for (uint64_t call = 1;; ++call) {
    CAPTURE(call);
    FaultyFileSystem disk;
    REQUIRE(disk.CreateDirectory("db").ok());
    const std::string text(3 << 20, 'x');
    REQUIRE(WriteFreshFile(disk, "db/from", text).ok());
    disk.FailCall(call);
    const Status status = LinkOrCopy(disk, "db/from", "db/to", text.size() - 1);
    if (status.ok()) {
      CHECK(disk.Content("db/to") == text.substr(1));
      if (call > 8) break;
    } else {
      CHECK_FALSE(*disk.Exists("db/to"));
      CHECK_FALSE(*disk.Exists("db/to.tmp"));
    }
  }
}

}  // namespace cellar::file_copy_test
