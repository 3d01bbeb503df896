// A store that an earlier version has written is read by this one: tests/fixtures/store-v1, made by
// the hidden test below with the first version of the formats, and store-v2, made when the leaves
// of snapshots got dictionaries. They are never made again: a new version of a format gets a new
// folder beside them, and all of them go on being read.
//
// Each is the map of 120 numbered mutations: a snapshot behind the first 50, closed segments, an
// open one, and behind its last record 20 bytes of a record that a crash cut short.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "store/check.h"
#include "store/recovery.h"
#include "tests/store/journal_rig.h"

namespace cellar::golden_test {

const std::filesystem::path kFixtures =
    std::filesystem::path(__FILE__).parent_path().parent_path() / "fixtures";
constexpr uint64_t kMutations = 120;

std::string Read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file.good());
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Of a row of ten columns for each k, so that leaves have dictionaries.
std::string RowMutation(uint64_t k) {
  const std::string n = std::to_string(k);
  std::string mutation = "n=" + n + ";";
  for (const char* column : {"altitude", "battery", "heading", "humidity", "latitude", "longitude",
                             "pressure", "signal", "speed", "temperature"})
    mutation += "station#" + std::to_string(100 + k * 37 % 120) + ":" + column + ":time" + n + "=" +
                column + n + ";";
  return mutation;
}

void CheckFixture(const std::string& name, MutationMaker mutation_of) {
  FaultyFileSystem disk;
  REQUIRE(disk.CreateDirectory("db").ok());
  size_t snapshots = 0;
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFixtures / name)) {
    disk.SetContent("db/" + entry.path().filename().string(), Read(entry.path()));
    snapshots += static_cast<size_t>(entry.path().extension() == ".snapshot");
    ++files;
  }
  REQUIRE(snapshots == 1);
  REQUIRE(files > 3);  // the manifest, and segments
  MapMachine checked;
  std::ostringstream said;
  REQUIRE(CheckStore(disk, "db", CheckMode::kLook, checked, said).ok());
  CHECK(said.str().find("20 bytes") != std::string::npos);
  JournalRig rig(&disk);
  rig.mutation_of = mutation_of;
  REQUIRE(rig.Open().ok());
  CHECK(rig.CheckState() == kMutations);
  CHECK(rig.journal->recovery().snapshot_lsn == Lsn{1, 50});
  CHECK(rig.journal->recovery().records_replayed == 70);
  CHECK(rig.journal->recovery().tail_bytes_cut == 20);
  REQUIRE(rig.WriteAndWait().ok());
  CHECK(rig.lsn == Lsn{1, kMutations + 1});
}

TEST_CASE("The store of format version 1 is read", "[golden]") {
  CheckFixture("store-v1", NumberedMutation);
}

TEST_CASE("The store of format version 2, with dictionaries in its leaves, is read", "[golden]") {
  CheckFixture("store-v2", RowMutation);
}

TEST_CASE("Make the store of the current format version", "[.make-fixture]") {
  const std::filesystem::path fixture = kFixtures / "store-v2";
  FaultyFileSystem disk;
  {
    JournalRig rig(&disk);
    rig.mutation_of = RowMutation;
    REQUIRE(rig.Open().ok());
    while (rig.written < kMutations) {
      REQUIRE(rig.WriteAndWait().ok());
      if (rig.written == 50) REQUIRE(rig.journal->SaveNow().ok());
    }
  }
  std::filesystem::create_directories(fixture);
  std::string last;
  for (const std::string& path : disk.Paths())
    if (path.ends_with(".log")) last = path;
  for (const std::string& path : disk.Paths()) {
    if (path.ends_with(".lock")) continue;
    std::string content = disk.Content(path);
    if (path == last) content += std::string(20, '\x21');
    std::ofstream(fixture / path.substr(3), std::ios::binary) << content;
  }
}

}  // namespace cellar::golden_test
