// A store that an earlier version has written is read by this one: tests/fixtures/store-v1, made by
// the hidden test below with the first version of the formats. It is never made again: a new
// version of a format gets a new folder beside it, and all of them go on being read.
//
// The map of 120 numbered mutations: a snapshot behind the first 50, two closed segments, an open
// one, and behind its last record 20 bytes of a record that a crash cut short.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "store/check.h"
#include "store/recovery.h"
#include "tests/store/journal_rig.h"

namespace cellar::golden_test {

const std::filesystem::path kFixture =
    std::filesystem::path(__FILE__).parent_path().parent_path() / "fixtures" / "store-v1";
constexpr uint64_t kMutations = 120;

std::string Read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file.good());
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST_CASE("The store of format version 1 is read", "[golden]") {
  FaultyFileSystem disk;
  REQUIRE(disk.CreateDirectory("db").ok());
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFixture)) {
    disk.SetContent("db/" + entry.path().filename().string(), Read(entry.path()));
    ++files;
  }
  REQUIRE(files == 5);  // manifest, snapshot, three segments
  std::ostringstream said;
  REQUIRE(CheckStore(disk, "db", CheckMode::kLook, said).ok());
  CHECK(said.str().find("20 bytes") != std::string::npos);
  JournalRig rig(&disk);
  REQUIRE(rig.Open().ok());
  CHECK(rig.CheckState() == kMutations);
  CHECK(rig.journal->recovery().snapshot_lsn == Lsn{1, 50});
  CHECK(rig.journal->recovery().records_replayed == 70);
  CHECK(rig.journal->recovery().tail_bytes_cut == 20);
  REQUIRE(rig.WriteAndWait().ok());
  CHECK(rig.lsn == Lsn{1, kMutations + 1});
}

TEST_CASE("Make the store of the current format version", "[.make-fixture]") {
  FaultyFileSystem disk;
  {
    JournalRig rig(&disk);
    REQUIRE(rig.Open().ok());
    while (rig.written < kMutations) {
      REQUIRE(rig.WriteAndWait().ok());
      if (rig.written == 50) REQUIRE(rig.journal->SaveNow().ok());
    }
    REQUIRE(rig.journal->Stats().log_segments == 3);
  }
  std::filesystem::create_directories(kFixture);
  std::string last;
  for (const std::string& path : disk.Paths())
    if (path.ends_with(".log")) last = path;
  for (const std::string& path : disk.Paths()) {
    if (path.ends_with(".lock")) continue;
    std::string content = disk.Content(path);
    if (path == last) content += std::string(20, '\x21');
    std::ofstream(kFixture / path.substr(3), std::ios::binary) << content;
  }
}

}  // namespace cellar::golden_test
