// A backup holds exactly what there was at its SEAL, or there is none, whatever fails meanwhile.
#include "store/history/backup.h"

#include <catch2/catch.hpp>
#include <sstream>
#include <string>

#include "store/journal/recovery.h"
#include "store/offline/check.h"
#include "tests/store/journal_rig.h"

namespace cellar::backup_test {

class BackupRig {
 public:
  explicit BackupRig(FaultyFileSystem* disk) : rig(disk), disk_(*disk) {
    REQUIRE(rig.Open().ok());
    Open();
  }
  void Open() {
    backup.reset();
    backup = std::make_unique<Backup>(BackupOptions{.directory = "copies", .sealed_ttl_micros = 0},
                                      Backup::Source{.directory = "db",
                                                     .whole_log = true,
                                                     .files = disk_,
                                                     .clock = Clock::System(),
                                                     .journal = *rig.journal,
                                                     .state = *rig.machine,
                                                     .wake = [] {}});
  }
  ~BackupRig() { backup.reset(); }
  void Write(uint64_t count) {
    // A call that fails may be one of the log's own, which takes writes again after a while.
    for (uint64_t i = 0; i < count; ++i)
      REQUIRE(rig.WaitUntil([this] { return rig.Write().ok(); }));
    rig.journal->Flush();
  }
  // Until no other thread works for it.
  void Settle() {
    REQUIRE(rig.WaitUntil([this] {
      backup->Poll();
      const BackupState state = backup->state();
      return !backup->working() && state != BackupState::kPending &&
             state != BackupState::kSnapshotting && !backup->sealing();
    }));
  }

  JournalRig rig;
  std::unique_ptr<Backup> backup;

 private:
  FaultyFileSystem& disk_;
};

// How many mutations the backup holds; REQUIREs that it is whole.
uint64_t MutationsIn(FaultyFileSystem& disk) {
  MapMachine checked;
  std::ostringstream out;
  const Status sound = CheckStore(disk, "copies", CheckMode::kLook, checked, out);
  INFO(out.str() << sound.ToString());
  REQUIRE(sound.ok());
  const std::string n = checked.Get("n");
  const uint64_t k = n == "(none)" ? 0 : std::stoull(n);
  REQUIRE(checked.Content() == NumberedState(k));
  return k;
}

TEST_CASE("A backup is what there was at its seal", "[backup]") {
  FaultyFileSystem disk;
  BackupRig rig(&disk);
  rig.Write(40);
  REQUIRE(rig.backup->Start().ok());
  rig.Write(30);
  rig.Settle();
  REQUIRE(rig.backup->state() == BackupState::kIncrementing);
  CHECK(rig.backup->Files().size() == 1);
  rig.Write(80);
  REQUIRE(rig.rig.journal->SaveNow().ok());  // the log stays all the same
  rig.Write(20);
  REQUIRE(rig.backup->Seal().ok());
  rig.Write(10);
  rig.Settle();
  INFO(rig.backup->error());
  REQUIRE(rig.backup->state() == BackupState::kSealed);
  // What was written after SEAL may be in it, as much of it as it says.
  const uint64_t held = MutationsIn(disk);
  CHECK((held >= 170 && held <= 180));
  CHECK(rig.backup->Files().size() > 3);
  for (const std::string& path : rig.backup->Files()) CHECK(*disk.Exists(path));
  // Found again.
  const std::vector<std::string> files = rig.backup->Files();
  const std::string id = rig.backup->id();
  rig.Open();
  CHECK(rig.backup->state() == BackupState::kSealed);
  CHECK(rig.backup->Files() == files);
  CHECK(rig.backup->id() == id);
  REQUIRE(rig.backup->Cleanup().ok());
  rig.Settle();
  CHECK(disk.List("copies")->empty());
  // The log that it held goes with the next snapshot.
  REQUIRE(rig.rig.journal->SaveNow().ok());
  CHECK(rig.rig.journal->CopyManifest().segments.size() <= 1);
}

TEST_CASE("A backup with nothing behind its base, and one of nothing", "[backup]") {
  FaultyFileSystem disk;
  BackupRig rig(&disk);
  for (const uint64_t written : {0u, 25u}) {
    rig.Write(written);
    REQUIRE(rig.backup->Start().ok());
    rig.Settle();
    REQUIRE(rig.backup->Seal().ok());
    rig.Settle();
    REQUIRE(rig.backup->state() == BackupState::kSealed);
    CHECK(MutationsIn(disk) == written);
    REQUIRE(rig.backup->Cleanup().ok());
    rig.Settle();
  }
}

TEST_CASE("Whatever call fails, a backup is whole or there is none", "[backup]") {
  uint64_t failed = 0;
  uint64_t sealed = 0;
  for (uint64_t n = 1; n < 90; ++n) {
    FaultyFileSystem disk;
    BackupRig rig(&disk);
    rig.Write(60);
    REQUIRE(rig.rig.WaitReleased());
    if (n % 2 == 0) disk.FailCall(n / 2);
    (void)rig.backup->Start();
    rig.Settle();
    rig.Write(60);
    (void)rig.rig.WaitReleased();
    if (n % 2 == 1) disk.FailCall(n / 2 + 1);
    if (rig.backup->state() == BackupState::kIncrementing) (void)rig.backup->Seal();
    rig.Settle();
    disk.Heal();
    INFO("call " << n << ": " << rig.backup->error());
    if (rig.backup->state() == BackupState::kSealed) {
      ++sealed;
      REQUIRE(MutationsIn(disk) == 120);
      continue;
    }
    ++failed;
    REQUIRE(rig.backup->state() == BackupState::kFailed);
    REQUIRE_FALSE(rig.backup->error().empty());
    // And the next one is.
    REQUIRE(rig.backup->Start().ok());
    rig.Settle();
    REQUIRE(rig.backup->state() == BackupState::kIncrementing);
    REQUIRE(rig.backup->Seal().ok());
    rig.Settle();
    REQUIRE(MutationsIn(disk) == 120);
  }
  CHECK(failed > 10);
  CHECK(sealed > 5);
}

TEST_CASE("What was aborted at work ends no backup that was begun behind it", "[backup]") {
  uint64_t aborted = 0;
  for (uint64_t n = 0; n < 40; ++n) {
    INFO("round " << n);
    FaultyFileSystem disk;
    BackupRig rig(&disk);
    rig.Write(40);
    REQUIRE(rig.backup->Start().ok());
    if (n % 4 != 0) {  // else the base is being written
      rig.Settle();
      rig.Write(40);
      REQUIRE(rig.backup->Seal().ok());
      for (uint64_t poll = 0; poll < n; ++poll) rig.backup->Poll();
    }
    if (rig.backup->Abort("as asked").ok()) {
      ++aborted;
    } else {
      REQUIRE(rig.backup->Cleanup().ok());
    }
    rig.Write(40);
    REQUIRE(rig.backup->Start().ok());
    rig.Settle();
    INFO(rig.backup->error());
    REQUIRE(rig.backup->state() == BackupState::kIncrementing);
    REQUIRE(rig.backup->Seal().ok());
    rig.Settle();
    REQUIRE(rig.backup->state() == BackupState::kSealed);
    REQUIRE(MutationsIn(disk) == (n % 4 != 0 ? 120 : 80));
  }
  CHECK(aborted >= 10);
}

}  // namespace cellar::backup_test
