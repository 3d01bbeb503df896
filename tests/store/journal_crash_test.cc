// Crashes, power losses and failing calls at every point: no acknowledged mutation is lost, none is
// there by half, none that was refused is there.
#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>

#include "base/random.h"
#include "store/journal/tail_writer.h"
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
constexpr std::array kPolicies{SyncPolicy::kAlways, SyncPolicy::kEverySecond, SyncPolicy::kNo};

// Under these what is acknowledged survives the end of the process, not that of the machine.
bool IsLazy(const JournalRig& rig) { return rig.options.sync_policy != SyncPolicy::kAlways; }

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
    if (IsLazy(*rig) && rig->journal->released_lsn() >= rig->lsn) acknowledged = rig->written;
    if (rig->options.overlap_sync_micros_min == 0 ? !random->OneIn(4) : random->OneIn(4)) continue;
    const uint64_t written = rig->written;
    if (!rig->WaitUntil(
            [&] { return rig->journal->released_lsn() >= rig->lsn || !rig->journal->healthy(); }))
      FAIL("neither released nor failed");
    if (rig->journal->released_lsn() >= rig->lsn) acknowledged = written;
  }
  return acknowledged;
}

TEST_CASE("After a crash every acknowledged mutation is there", "[journal][crash]") {
  const uint64_t seeds = Seeds(250);
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const SyncPolicy policy = kPolicies[seed / 2 % kPolicies.size()];
    INFO("seed " << seed << ", policy " << static_cast<int>(policy));
    Random random(seed);
    FaultyFileSystem disk;
    ChooseDisk(seed, &disk);
    for (int life = 0; life < 4; ++life) {
      JournalRig rig(&disk);
      ChooseSyncs(seed, &rig);
      rig.options.sync_policy = policy;
      const Status opened = rig.Open();
      INFO(opened.ToString());
      REQUIRE(opened.ok());
      rig.CheckState();
      const uint64_t acknowledged = WorkABit(&rig, &random, rig.written);
      const bool power = !IsLazy(rig) && !random.OneIn(4);
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
TEST_CASE("A fault before a crash loses nothing acknowledged either", "[journal][crash]") {
  const uint64_t seeds = Seeds(250);
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const SyncPolicy policy = kPolicies[seed / 2 % kPolicies.size()];
    INFO("seed " << seed << ", policy " << static_cast<int>(policy));
    Random random(seed);
    FaultyFileSystem disk;
    ChooseDisk(seed, &disk);
    for (int life = 0; life < 3; ++life) {
      JournalRig rig(&disk);
      ChooseSyncs(seed, &rig);
      rig.options.sync_policy = policy;
      REQUIRE(rig.Open().ok());
      disk.FailCall(1 + random.Below(150), random.OneIn(3),
                    random.OneIn(3) ? ErrorCode::kNoSpace : ErrorCode::kIo);
      uint64_t acknowledged = WorkABit(&rig, &random, rig.written);
      if (random.OneIn(2)) {
        disk.Heal();
        acknowledged = WorkABit(&rig, &random, acknowledged);
      }
      if (IsLazy(rig))
        disk.Kill();
      else
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

// Every 41st is more than the loop writes itself.
std::string MutationOfManySizes(uint64_t k) {
  std::string mutation = NumberedMutation(k);
  if (k % 41 == 40) mutation += "large=" + std::string(kTailWriteBytesMax, 'l') + ";";
  return mutation;
}

// Turns of one to five mutations, with snapshots on the way, until the process dies.
uint64_t WorkUntilKilled(JournalRig* rig, const FaultyFileSystem& disk) {
  uint64_t acknowledged = 0;
  for (uint64_t turn = 1; turn <= 45; ++turn) {
    for (uint64_t i = 0; i <= turn % 5; ++i)
      if (!rig->Write().ok()) return acknowledged;
    rig->journal->Flush();
    const uint64_t written = rig->written;
    const auto is_released = [&] { return rig->journal->released_lsn() >= rig->lsn; };
    if (!rig->WaitUntil([&] { return is_released() || disk.is_halted(); }))
      FAIL("neither released nor killed");
    if (is_released()) acknowledged = written;
    if (turn % 20 == 7) (void)rig->journal->StartSnapshot();
    if (turn == 35) (void)rig->journal->SaveNow();
  }
  return acknowledged;
}

TEST_CASE("In whichever call the process is killed, nothing acknowledged is lost",
          "[journal][crash]") {
  for (const SyncPolicy policy : kPolicies) {
    bool was_hit = true;
    for (uint64_t n = 1; was_hit; ++n) {
      INFO("policy " << static_cast<int>(policy) << ", call " << n);
      FaultyFileSystem disk;
      ChooseDisk(n, &disk);
      JournalRig rig(&disk);
      ChooseSyncs(n, &rig);
      rig.options.sync_policy = policy;
      rig.mutation_of = MutationOfManySizes;
      disk.KillAtCall(n);
      const uint64_t acknowledged = rig.Open().ok() ? WorkUntilKilled(&rig, disk) : 0;
      was_hit = disk.is_halted();
      if (!was_hit) disk.Kill();
      rig.journal.reset();
      disk.Reboot();
      JournalRig after(&disk);
      after.mutation_of = MutationOfManySizes;
      const Status recovered = after.Open();
      INFO(recovered.ToString());
      REQUIRE(recovered.ok());
      const uint64_t found = after.CheckState();
      REQUIRE(found >= acknowledged);
      REQUIRE(found <= rig.written);
    }
  }
}

// A rename that is said to have failed may have been done: what the loop has written meanwhile must
// be in both segments.
TEST_CASE("Killed after a rotation that may have been done, a process has lost nothing",
          "[journal][crash]") {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    FaultyFileSystem disk;
    JournalRig rig(&disk);
    rig.options.sync_policy = kPolicies[1 + seed % 2];
    rig.options.retry_delay_micros = 1'000'000;
    REQUIRE(rig.Open().ok());
    for (uint64_t i = 0; i < seed % 7; ++i) REQUIRE(rig.WriteAndWait().ok());
    disk.SetSyncMicros(300);
    disk.FailKindsFrom(FileCall::kRename, {FileCall::kRename, FileCall::kCreate});
    uint64_t acknowledged = rig.written;
    while (rig.journal->healthy() && rig.Write().ok()) {
      rig.journal->Flush();
      if (rig.journal->released_lsn() >= rig.lsn) acknowledged = rig.written;
      std::this_thread::sleep_for(std::chrono::microseconds(10));
    }
    disk.Kill();
    rig.journal.reset();
    disk.Reboot();
    JournalRig after(&disk);
    REQUIRE(after.Open().ok());
    const uint64_t found = after.CheckState();
    REQUIRE(found >= acknowledged);
    REQUIRE(found <= rig.written);
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
  const SyncPolicy policy =
      GENERATE(SyncPolicy::kAlways, SyncPolicy::kEverySecond, SyncPolicy::kNo);
  bool was_hit = true;
  for (uint64_t n = 1; was_hit; ++n) {
    INFO("policy " << static_cast<int>(policy) << ", call " << n);
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
    rig.options.sync_policy = policy;
    uint64_t acknowledged = 35;
    const bool opened = WholeLife(&rig, &acknowledged);
    was_hit = disk.has_failed();
    if (!opened) REQUIRE(was_hit);
    if (n % 2 == 0) {
      if (IsLazy(rig))
        disk.Kill();
      else
        disk.PowerLoss(n);
    } else if (rig.journal) {
      const bool closed = rig.journal->Close().ok();
      // Syncs come by the clock: where few came before, the call may be one of Close.
      CHECK((closed || (!was_hit && disk.has_failed())));
      was_hit = disk.has_failed();
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
