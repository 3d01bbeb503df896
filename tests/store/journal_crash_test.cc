// Crashes, power losses and failing calls at every point: no acknowledged mutation is lost, none is
// there by half, none that was refused is there.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "base/random.h"
#include "tests/store/journal_rig.h"

namespace cellar::journal_crash_test {

// CELLAR_TEST_SEEDS sets how many (the default keeps `make test` short).
uint64_t Seeds(uint64_t usual) {
  const char* text = std::getenv("CELLAR_TEST_SEEDS");
  return text == nullptr ? usual : std::strtoull(text, nullptr, 10);
}

// Every other seed has a slow disk, whose syncs run beside each other.
void ChooseDisk(uint64_t seed, FaultyFileSystem* disk) { disk->SetSyncMicros(seed % 2 * 50); }
void ChooseSyncs(uint64_t seed, JournalRig* rig) {
  if (seed % 2 == 1) rig->options.overlap_sync_micros_min = 0;
  rig->joins = seed % 3 > 0;
}

// Some work in an order that the seed decides. Stops at the first refusal. Returns how many
// mutations are acknowledged by then, of which `acknowledged` were before.
uint64_t WorkABit(JournalRig* rig, Random* random, uint64_t acknowledged) {
  const uint64_t turns = 1 + random->Below(60);
  for (uint64_t turn = 0; turn < turns; ++turn) {
    const uint64_t writes = 1 + random->Below(6);
    for (uint64_t i = 0; i < writes; ++i) {
      if (!rig->Write().ok()) return acknowledged;
      if (random->OneIn(20)) rig->joins = !rig->joins;
    }
    rig->journal->Flush();
    if (random->OneIn(15)) (void)rig->journal->StartSnapshot();
    if (random->OneIn(30)) (void)rig->journal->SaveNow();
    // Without a wait the next turn's records are synced beside these.
    if (rig->options.overlap_sync_micros_min == 0 ? !random->OneIn(4) : random->OneIn(4)) continue;
    const uint64_t written = rig->written;
    if (!rig->WaitUntil(
            [&] { return rig->journal->released_lsn() >= rig->lsn || !rig->journal->healthy(); }))
      FAIL("neither released nor failed");
    if (rig->journal->released_lsn() >= rig->lsn) acknowledged = written;
  }
  return acknowledged;
}

TEST_CASE("After a power loss every acknowledged mutation is there", "[journal][crash]") {
  const uint64_t seeds = Seeds(150);
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    FaultyFileSystem disk;
    ChooseDisk(seed, &disk);
    for (int life = 0; life < 4; ++life) {
      JournalRig rig(&disk);
      ChooseSyncs(seed, &rig);
      const Status opened = rig.Open();
      INFO(opened.ToString());
      REQUIRE(opened.ok());
      rig.CheckState();
      const uint64_t acknowledged = WorkABit(&rig, &random, rig.written);
      const bool power = !random.OneIn(4);
      if (power)
        disk.PowerLoss(random.Next());
      else
        disk.Kill();
      rig.journal.reset();
      disk.Reboot();
      JournalRig after(&disk);
      const Status recovered = after.Open();
      INFO(recovered.ToString());
      REQUIRE(recovered.ok());
      const uint64_t found = after.CheckState();
      REQUIRE(found >= acknowledged);
      REQUIRE(found <= rig.written);
    }
  }
}

// As above with one call failing, or a spell of failures, on the way.
TEST_CASE("A fault before a power loss loses nothing acknowledged either", "[journal][crash]") {
  const uint64_t seeds = Seeds(150);
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    FaultyFileSystem disk;
    ChooseDisk(seed, &disk);
    for (int life = 0; life < 3; ++life) {
      JournalRig rig(&disk);
      ChooseSyncs(seed, &rig);
      REQUIRE(rig.Open().ok());
      disk.FailCall(1 + random.Below(150), random.OneIn(3),
                    random.OneIn(3) ? ErrorCode::kNoSpace : ErrorCode::kIo);
      uint64_t acknowledged = WorkABit(&rig, &random, rig.written);
      if (random.OneIn(2)) {
        disk.Heal();
        acknowledged = WorkABit(&rig, &random, acknowledged);
      }
      disk.PowerLoss(random.Next());
      rig.journal.reset();
      disk.Reboot();
      JournalRig after(&disk);
      const Status recovered = after.Open();
      INFO(recovered.ToString());
      REQUIRE(recovered.ok());
      const uint64_t found = after.CheckState();
      REQUIRE(found >= acknowledged);
      REQUIRE(found <= rig.written);
    }
  }
}

// One life with everything in it. False if the journal could not be opened.
bool WholeLife(JournalRig* rig, uint64_t* acknowledged) {
  if (!rig->Open().ok()) return false;
  const auto write = [&](int count) {
    for (int i = 0; i < count; ++i) {
      // A refused write is tried again: the fault is over by then.
      REQUIRE(rig->WaitUntil([&] { return rig->Write().ok(); }));
      rig->journal->Flush();
      REQUIRE(rig->WaitReleased());
      *acknowledged = rig->written;
    }
  };
  write(40);
  (void)rig->journal->SaveNow();
  write(30);
  (void)rig->journal->StartSnapshot();
  write(30);
  REQUIRE(rig->WaitUntil([&] { return !rig->journal->snapshot_running(); }));
  if (rig->journal->SetLogEnabled(false).ok()) {
    if (!rig->journal->SetLogEnabled(true).ok()) REQUIRE(rig->journal->SetLogEnabled(true).ok());
    REQUIRE(rig->WaitUntil([&] { return !rig->journal->snapshot_running(); }));
    // The log counts from the snapshot on that follows switching it on.
    if (!rig->journal->Stats().last_save_ok) REQUIRE(rig->journal->SaveNow().ok());
  }
  write(5);
  return true;
}

TEST_CASE("Whichever call fails once, nothing acknowledged is lost and writes resume",
          "[journal][crash]") {
  bool was_hit = true;
  for (uint64_t n = 1; was_hit; ++n) {
    INFO("call " << n);
    FaultyFileSystem disk;
    {
      JournalRig before(&disk);
      REQUIRE(before.Open().ok());
      for (int i = 0; i < 30; ++i) REQUIRE(before.WriteAndWait().ok());
      REQUIRE(before.journal->SaveNow().ok());
      for (int i = 0; i < 5; ++i) REQUIRE(before.WriteAndWait().ok());
    }
    ChooseDisk(n, &disk);
    disk.FailCall(n);
    JournalRig rig(&disk);
    ChooseSyncs(n, &rig);
    uint64_t acknowledged = 35;
    const bool opened = WholeLife(&rig, &acknowledged);
    was_hit = disk.has_failed();
    if (!opened) REQUIRE(was_hit);
    if (n % 2 == 0) {
      disk.PowerLoss(n);
    } else if (rig.journal) {
      CHECK(rig.journal->Close().ok());
    }
    rig.journal.reset();
    disk.Reboot();
    JournalRig after(&disk);
    const Status recovered = after.Open();
    INFO(recovered.ToString());
    REQUIRE(recovered.ok());
    const uint64_t found = after.CheckState();
    REQUIRE(found >= acknowledged);
    if (opened) REQUIRE(found <= rig.written);
  }
}

}  // namespace cellar::journal_crash_test
