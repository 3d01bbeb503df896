// LinkOrCopy on the machine's own files, past the page cache where it can, and with faults.
#include "store/format/file_copy.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "base/random.h"
#include "tests/store/faulty_file_system.h"

namespace cellar::file_copy_test {

// The machine's files, without second names for one.
class NoLinks final : public FileSystem {
 public:
  Result<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    return files_.Create(path);
  }
  Result<std::unique_ptr<WritableFile>> OpenForWriting(const std::string& path) override {
    return files_.OpenForWriting(path);
  }
  Result<std::unique_ptr<ReadableFile>> OpenForReading(const std::string& path) override {
    return files_.OpenForReading(path);
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
