// The stores of earlier versions in tests/fixtures are read by this one, down to every cell.
// tests/e2e/test_old_stores.py compares what the server answers about them.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "store/offline/check.h"
#include "tests/store/rich_store.h"

namespace cellar::golden_test {

const std::filesystem::path kFixtures =
    std::filesystem::path(__FILE__).parent_path().parent_path() / "fixtures";

std::string Read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file.good());
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST_CASE("The stores of earlier versions are read, checked and gone on with", "[golden]") {
  size_t stores = 0;
  for (const auto& folder : std::filesystem::directory_iterator(kFixtures)) {
    if (!folder.is_directory()) continue;
    INFO(folder.path());
    FaultyFileSystem disk;
    REQUIRE(disk.CreateDirectory("db").ok());
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      if (name != "expected.json") disk.SetContent("db/" + name, Read(entry.path()));
    }
    std::ostringstream said;
    Engine engine;
    REQUIRE(CheckStore(disk, "db", CheckMode::kLook, engine, said).ok());
    CHECK(said.str().find("20 bytes") != std::string::npos);
    RichStore rich(&disk);
    RichStore::Do(rich.Open());
    const RecoveryReport& report = rich.store->journal().recovery();
    CHECK(report.from_snapshot);
    CHECK(report.records_replayed > 20);
    CHECK(report.tail_bytes_cut == 20);
    RichStore::Do(ValidateStore(rich.store.get()));
    rich.Write(rich.Find("plain"), "new", {RichStore::Put("f", "v", "1")});
    RichStore::Do(rich.store->journal().SaveNow());
    RichStore::Do(rich.store->journal().Close());
    RichStore::Do(rich.Open());
    RichStore::Do(ValidateStore(rich.store.get()));
    ++stores;
  }
  CHECK(stores >= 3);
}

}  // namespace cellar::golden_test
