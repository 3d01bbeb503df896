// The journal at work: what is acknowledged is found again, whatever happens to the disk.
#include "store/journal/journal.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "store/format/log_format.h"
#include "store/format/manifest.h"
#include "tests/store/journal_rig.h"

namespace cellar::journal_test {

TEST_CASE("What was written is there after a restart, without and with snapshots", "[journal]") {
  FaultyFileSystem disk;
  JournalRig rig(&disk);
  for (const SyncPolicy policy : {SyncPolicy::kAlways, SyncPolicy::kEverySecond, SyncPolicy::kNo}) {
    rig.options.sync_policy = policy;
    for (const bool save : {false, true, false}) {
      REQUIRE(rig.Open().ok());
      rig.CheckState();
      for (int i = 0; i < 100; ++i) REQUIRE(rig.WriteAndWait().ok());
      if (save) REQUIRE(rig.journal->SaveNow().ok());
      for (int i = 0; i < 10; ++i) REQUIRE(rig.WriteAndWait().ok());
      const uint64_t written = rig.written;
      REQUIRE(rig.journal->Close().ok());
      REQUIRE(rig.Open().ok());
      CHECK(rig.CheckState() == written);
      CHECK(rig.journal->recovery().warnings.empty());
      CHECK(rig.journal->recovery().tail_bytes_cut == 0);
    }
  }
}

TEST_CASE("Record numbers go on after a restart and are never given out twice", "[journal]") {
  FaultyFileSystem disk;
  JournalRig rig(&disk);
  REQUIRE(rig.Open().ok());
  CHECK(rig.journal->last_lsn() == Lsn{});
  REQUIRE(rig.WriteAndWait().ok());
  CHECK(rig.journal->last_lsn() == Lsn{1, 1});
  for (int i = 0; i < 5; ++i) {
    const Lsn before = rig.journal->last_lsn();
    if (i == 3) REQUIRE(rig.journal->SaveNow().ok());
    REQUIRE(rig.Open().ok());
    CHECK(rig.journal->last_lsn() == before);
    CHECK(rig.journal->durable_lsn() == before);
    REQUIRE(rig.WriteAndWait().ok());
    CHECK(rig.journal->last_lsn() == Lsn{1, before.seq + 1});
  }
}

TEST_CASE("A snapshot rotates the log, and what it supersedes goes", "[journal]") {
  FaultyFileSystem disk;
  JournalRig rig(&disk);
  REQUIRE(rig.Open().ok());
  for (int i = 0; i < 300; ++i) REQUIRE(rig.WriteAndWait().ok());
  CHECK(rig.journal->Stats().log_segments > 5);
  REQUIRE(rig.journal->StartSnapshot().ok());
  CHECK_FALSE(rig.journal->StartSnapshot().ok());
  for (int i = 0; i < 20; ++i) REQUIRE(rig.WriteAndWait().ok());
  REQUIRE(rig.WaitUntil([&] { return !rig.journal->snapshot_running(); }));
  const JournalStats stats = rig.journal->Stats();
  CHECK(stats.saves == 1);
  CHECK(stats.last_save_ok);
  CHECK(stats.changes_since_save == 20);
  CHECK(stats.log_segments < 3);
  CHECK(disk.Paths().size() <= 2 + 1 + stats.log_segments);  // manifest, lock, snapshot, segments
  REQUIRE(rig.Open().ok());
  CHECK(rig.CheckState() == 320);
  CHECK(rig.journal->recovery().from_snapshot);
  CHECK(rig.journal->recovery().records_replayed == 20);
}

TEST_CASE("A save in the foreground waits for a running one and saves what came after",
          "[journal]") {
  FaultyFileSystem disk;
  JournalRig rig(&disk);
  rig.options.log_enabled = false;
  REQUIRE(rig.Open().ok());
  for (int i = 0; i < 50; ++i) REQUIRE(rig.WriteAndWait().ok());
  REQUIRE(rig.journal->StartSnapshot().ok());
  for (int i = 0; i < 50; ++i) REQUIRE(rig.WriteAndWait().ok());
  REQUIRE(rig.journal->SaveNow().ok());
  CHECK(rig.journal->Stats().saves == 2);
  REQUIRE(rig.Open().ok());
  CHECK(rig.CheckState() == 100);
}

TEST_CASE("Under everysec a reply does not wait for a sync, and the record is durable soon after",
          "[journal]") {
  FaultyFileSystem disk;
  JournalRig rig(&disk);
  rig.options.sync_policy = SyncPolicy::kEverySecond;
  REQUIRE(rig.Open().ok());
  REQUIRE(rig.Write().ok());
  CHECK(rig.journal->released_lsn() < rig.lsn);  // it is in this process only
  rig.journal->Flush();
  CHECK(rig.journal->released_lsn() == rig.lsn);
  CHECK(rig.WaitUntil([&] { return rig.journal->durable_lsn() == rig.lsn; }));
  rig.journal->SetSyncPolicy(SyncPolicy::kAlways);
  REQUIRE(rig.Write().ok());
  CHECK(rig.journal->released_lsn() < rig.lsn);
  rig.journal->Flush();
  CHECK(rig.WaitReleased());
  CHECK(rig.journal->durable_lsn() == rig.lsn);
}

TEST_CASE("What is said of the log does not shrink while a sync runs", "[journal]") {
  FaultyFileSystem disk;
  JournalRig rig(&disk);
  rig.options.sync_policy = SyncPolicy::kEverySecond;
  REQUIRE(rig.Open().ok());
  for (int round = 0; round < 5; ++round) {
    REQUIRE(rig.Write().ok());
    rig.journal->Flush();
    const JournalStats before = rig.journal->Stats();
    disk.SetSyncMicros(20'000);
    rig.journal->RequestSync();
    do {
      const JournalStats now = rig.journal->Stats();
      REQUIRE(now.log_bytes >= before.log_bytes);
      REQUIRE(now.log_room_bytes <= before.log_room_bytes);
    } while (rig.journal->durable_lsn() < rig.lsn);
    disk.SetSyncMicros(0);
  }
}

TEST_CASE("A sync that is asked for behind a snapshot comes for what is in the next segment, too",
          "[journal]") {
  for (int round = 0; round < 10; ++round) {
    FaultyFileSystem disk;
    JournalRig rig(&disk);
    rig.options.sync_policy = SyncPolicy::kNo;
    REQUIRE(rig.Open().ok());
    for (int i = 0; i < 3; ++i) {
      REQUIRE(rig.WriteAndWait().ok());
      REQUIRE(rig.journal->StartSnapshot().ok());
      REQUIRE(rig.WaitUntil([&] { return !rig.journal->snapshot_running(); }));
      REQUIRE(rig.Write().ok());
      rig.journal->Flush();
      rig.journal->RequestSync();
      REQUIRE(rig.WaitUntil([&] { return rig.journal->durable_lsn() == rig.lsn; }));
    }
  }
}

TEST_CASE("A snapshot that ends behind a failed sync leaves in the log what was acknowledged",
          "[journal]") {
  for (const SyncPolicy policy : {SyncPolicy::kEverySecond, SyncPolicy::kNo}) {
    FaultyFileSystem disk;
    JournalRig rig(&disk);
    rig.options.sync_policy = policy;
    rig.options.retry_delay_micros = 3'600'000'000;  // no fresh segment in this life
    REQUIRE(rig.Open().ok());
    for (int i = 0; i < 5; ++i) REQUIRE(rig.WriteAndWait().ok());
    disk.HoldSyncsOf(".snapshot.tmp");
    REQUIRE(rig.journal->StartSnapshot().ok());
    REQUIRE(rig.WriteAndWait().ok());  // in the next segment
    rig.journal->RequestSync();
    REQUIRE(rig.WaitUntil([&] { return rig.journal->durable_lsn() == rig.lsn; }));
    disk.FailSyncsOf(".log");
    for (int i = 0; i < 5; ++i) REQUIRE(rig.WriteAndWait().ok());
    REQUIRE(rig.written == 11);
    REQUIRE(rig.journal->durable_lsn() < rig.lsn);
    disk.ReleaseSyncs();
    REQUIRE(rig.WaitUntil([&] { return !rig.journal->snapshot_running(); }));
    REQUIRE(rig.journal->Stats().last_save_ok);
    REQUIRE_FALSE(rig.journal->healthy());
    disk.Kill();
    rig.journal.reset();
    disk.Reboot();
    disk.Heal();
    REQUIRE(rig.Open().ok());
    CHECK(rig.CheckState() == 11);
    CHECK(rig.journal->recovery().from_snapshot);
  }
}

TEST_CASE("Small mutations of a turn share a record", "[journal]") {
  FaultyFileSystem disk;
  const MutationMaker make = [](uint64_t k) {
    const std::string text = std::to_string(k);
    return "n=" + text + ";k" + text + "=" + std::string(k == 12 ? 5000 : 100, 'v') + ";";
  };
  {
    JournalRig rig(&disk);
    rig.mutation_of = make;
    rig.options.segment_bytes_max = 1 << 20;
    rig.options.allocation_bytes_max = 1 << 16;
    rig.joins = true;
    REQUIRE(rig.Open().ok());
    std::vector<uint64_t> numbers;
    const auto write = [&] {
      REQUIRE(rig.Write().ok());
      numbers.push_back(rig.lsn.seq);
    };
    for (int i = 0; i < 3; ++i) write();
    CHECK(rig.journal->last_lsn() == rig.lsn);
    rig.journal->Flush();
    write();  // a turn later
    rig.joins = false;
    write();  // never joins
    rig.joins = true;
    write();  // nor is joined
    write();
    REQUIRE(rig.journal->StartSnapshot().ok());
    write();  // behind the snapshot
    REQUIRE(rig.journal->SaveNow().ok());
    for (int i = 0; i < 5; ++i) write();  // the fourth is too large
    CHECK(numbers == std::vector<uint64_t>{1, 1, 1, 2, 3, 4, 4, 5, 6, 6, 6, 7, 8});
    for (int i = 0; i < 100; ++i) write();
    CHECK(numbers.back() == 10);  // 100 of some 120 bytes, 4 KiB a record
    rig.journal->Flush();
    REQUIRE(rig.WaitReleased());
    CHECK(rig.journal->Stats().changes_since_save == rig.written - 8);
    disk.PowerLoss(1);
  }
  disk.Reboot();
  JournalRig after(&disk);
  after.mutation_of = make;
  REQUIRE(after.Open().ok());
  CHECK(after.CheckState() == 113);
}

TEST_CASE("What mutations of a record begin with is there once, the last one's", "[journal]") {
  FaultyFileSystem disk;
  {
    JournalRig rig(&disk);
    REQUIRE(rig.Open().ok());
    for (const char* mutation : {"n=1;a=1;", "n=2;b=2;", "n=3;c=3;a=4;"}) {
      REQUIRE(rig.journal->Reserve(12).ok());
      rig.lsn = rig.journal->AppendJoined(mutation, 4, 1);
    }
    CHECK(rig.lsn.seq == 1);
    rig.journal->Flush();
    REQUIRE(rig.WaitReleased());
    disk.PowerLoss(1);
  }
  disk.Reboot();
  JournalRig after(&disk);
  REQUIRE(after.Open().ok());
  CHECK(after.machine->Content() ==
        std::map<std::string, std::string>{{"n", "3"}, {"a", "4"}, {"b", "2"}, {"c", "3"}});
}

TEST_CASE("What comes at a later time begins another record", "[journal]") {
  FaultyFileSystem disk;
  JournalRig rig(&disk);
  REQUIRE(rig.Open().ok());
  const auto append = [&](const char* mutation) {
    REQUIRE(rig.journal->Reserve(12).ok());
    return rig.journal->AppendJoined(mutation, 4, 1).seq;
  };
  const uint64_t first = append("n=1;a=1;");
  const int64_t begun = rig.journal->last_commit_micros();
  CHECK(append("n=2;a=2;") == first);
  CHECK(rig.journal->last_commit_micros() == begun + 1);
  rig.journal->SetTurnTime(begun + 2);
  CHECK(append("n=3;a=3;") == first);  // a microsecond later, as its place in the record says
  rig.journal->SetTurnTime(begun + 1'000);
  CHECK(append("n=4;a=4;") == first + 1);
  CHECK(append("n=5;a=5;") == first + 1);
  CHECK(rig.journal->last_commit_micros() == begun + 1'001);
  rig.journal->Flush();
  REQUIRE(rig.WaitReleased());
}

TEST_CASE("A long turn goes to the disk in pieces, unless each would be synced", "[journal]") {
  constexpr int kRecords{5'000};  // of 100 bytes and more, in one turn
  for (const SyncPolicy policy : {SyncPolicy::kAlways, SyncPolicy::kEverySecond, SyncPolicy::kNo}) {
    INFO("policy " << static_cast<int>(policy));
    FaultyFileSystem disk;
    JournalRig rig(&disk);
    rig.options.segment_bytes_max = 64 << 20;
    rig.options.allocation_bytes_max = 16 << 20;
    rig.options.sync_policy = policy;
    REQUIRE(rig.Open().ok());
    uint64_t of_turn = 0;
    for (int i = 0; i < kRecords; ++i) {
      REQUIRE(rig.Write().ok());
      of_turn += kRecordHeaderBytes + rig.mutation_of(rig.written).size();
    }
    REQUIRE(of_turn > 500'000);
    const auto written = [&] { return rig.journal->Stats().log_bytes; };
    if (policy == SyncPolicy::kAlways) {
      CHECK(written() == 0);
    } else {  // all but the last piece, without a Flush
      CHECK(rig.WaitUntil([&] { return written() > of_turn - 100'000; }));
      CHECK(written() < of_turn);
    }
    rig.journal->Flush();
    REQUIRE(rig.WaitUntil(
        [&] { return rig.journal->durable_lsn() == rig.lsn || policy == SyncPolicy::kNo; }));
    CHECK(rig.journal->Close().ok());
    REQUIRE(rig.Open().ok());
    CHECK(rig.CheckState() == kRecords);
  }
}

TEST_CASE("Buffers are kept for the next records, until none come", "[journal]") {
  constexpr uint64_t kSpareBytesIdle{512 << 10};
  FaultyFileSystem disk;
  JournalRig rig(&disk);
  rig.options.segment_bytes_max = 64 << 20;
  rig.options.allocation_bytes_max = 16 << 20;
  rig.options.sync_policy = SyncPolicy::kEverySecond;
  rig.options.spares_kept_micros = 3'600'000'000;
  rig.mutation_of = [](uint64_t k) {
    return "n=" + std::to_string(k) + ";v=" + std::string(100'000, 'v') + ";";
  };
  const auto write_some = [&] {
    for (int i = 0; i < 30; ++i) {
      REQUIRE(rig.Write().ok());
      rig.journal->Flush();
    }
    REQUIRE(rig.WaitReleased());
    const auto retired = [&] { return rig.journal->Stats().unsynced_bytes == 0; };
    REQUIRE(rig.WaitUntil(retired));
  };
  REQUIRE(rig.Open().ok());
  write_some();
  CHECK(rig.WaitUntil([&] { return rig.journal->Stats().spare_bytes > kSpareBytesIdle; }));
  // They are used again: as much once more needs hardly any other memory.
  const uint64_t kept = rig.journal->Stats().spare_bytes;
  write_some();
  CHECK(rig.journal->Stats().spare_bytes < 2 * kept);
  // A few small syncs do not mean that it is over.
  for (int i = 0; i < 2; ++i) {
    REQUIRE(rig.Write().ok());
    rig.journal->Flush();
    REQUIRE(rig.WaitReleased());
    REQUIRE(rig.WaitUntil([&] { return rig.journal->Stats().unsynced_bytes == 0; }));
  }
  CHECK(rig.WaitUntil([&] { return rig.journal->Stats().spare_bytes >= kept / 4 * 3; }));

  // Without a log nothing will need them.
  rig.options.spares_kept_micros = 1'000;
  REQUIRE(rig.Open().ok());
  write_some();
  REQUIRE(rig.journal->SetLogEnabled(false).ok());
  CHECK(rig.WaitUntil([&] { return rig.journal->Stats().spare_bytes <= kSpareBytesIdle; }));

  rig.options.spares_kept_micros = 1'000;
  REQUIRE(rig.Open().ok());
  write_some();
  CHECK(rig.WaitUntil([&] { return rig.journal->Stats().spare_bytes <= kSpareBytesIdle; }));
}

TEST_CASE("After a failed write or sync replies wait, writes are refused, and both resume",
          "[journal]") {
  for (const FileCall kind : {FileCall::kWrite, FileCall::kSync}) {
    FaultyFileSystem disk;
    JournalRig rig(&disk);
    REQUIRE(rig.Open().ok());
    for (int i = 0; i < 10; ++i) REQUIRE(rig.WriteAndWait().ok());
    disk.FailKind(kind);
    REQUIRE(rig.Write().ok());
    rig.journal->Flush();
    REQUIRE(rig.WaitUntil([&] { return !rig.journal->healthy(); }));
    CHECK(rig.journal->released_lsn() < rig.lsn);
    const Status refused = rig.Write();
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.code() == ErrorCode::kMisconf);
    CHECK_FALSE(rig.journal->Stats().log_ok);
    disk.Heal();
    REQUIRE(rig.WaitReleased());
    CHECK(rig.journal->healthy());
    REQUIRE(rig.WriteAndWait().ok());
    CHECK(rig.journal->Stats().log_ok);
    CHECK(rig.journal->Stats().log_failures == 1);
    const uint64_t written = rig.written;
    disk.PowerLoss(1);
    disk.Reboot();
    REQUIRE(rig.Open().ok());
    CHECK(rig.CheckState() == written);
  }
}

TEST_CASE("On a full disk writes are refused before anything changes, and resume", "[journal]") {
  for (const SyncPolicy policy : {SyncPolicy::kAlways, SyncPolicy::kEverySecond}) {
    FaultyFileSystem disk;
    JournalRig rig(&disk);
    rig.options.sync_policy = policy;
    disk.SetCapacity(40'000);
    REQUIRE(rig.Open().ok());
    Status status;
    while ((status = rig.WriteAndWait()).ok()) {
      REQUIRE(rig.written < 10'000);
      CHECK(rig.journal->Stats().log_ok);  // as long as none is refused
    }
    CHECK_FALSE(rig.journal->Stats().log_ok);
    CHECK_FALSE(rig.journal->Stats().log_room_ok);
    CHECK(rig.journal->Stats().log_room_bytes < 1000);
    CHECK(status.code() == ErrorCode::kMisconf);
    CHECK(rig.written > 100);
    CHECK(disk.used_bytes() > 39'000);
    CHECK(rig.journal->healthy());  // nothing accepted is in danger
    const uint64_t written = rig.written;
    CHECK_FALSE(rig.Write().ok());
    CHECK_FALSE(rig.journal->SaveNow().ok());
    CHECK_FALSE(rig.journal->Stats().last_save_ok);
    disk.SetCapacity(80'000);
    REQUIRE(rig.WaitUntil([&] { return rig.Write().ok(); }));
    rig.journal->Flush();
    REQUIRE(rig.WaitReleased());
    CHECK(rig.written == written + 1);
    CHECK(rig.journal->Stats().log_ok);
    REQUIRE(rig.journal->SaveNow().ok());
    REQUIRE(rig.journal->Close().ok());
    REQUIRE(rig.Open().ok());
    CHECK(rig.CheckState() == written + 1);
  }
}

// It would take the room that the next manifest needs, and only an installed manifest frees any.
TEST_CASE("A snapshot for whose manifest there is no room leaves the disk", "[journal]") {
  FaultyFileSystem disk;
  JournalRig rig(&disk);
  REQUIRE(rig.Open().ok());
  for (int i = 0; i < 20; ++i) REQUIRE(rig.WriteAndWait().ok());
  const auto snapshots = [&] {
    const Result<std::vector<std::string>> names = disk.List(rig.options.directory);
    REQUIRE(names.ok());
    return std::ranges::count_if(*names,
                                 [](const auto& name) { return name.ends_with(".snapshot"); });
  };
  int failed = 0;
  uint64_t room = 0;
  do {
    REQUIRE(snapshots() == 0);
    disk.SetCapacity(disk.used_bytes() + room++);
  } while (!rig.journal->SaveNow().ok() && ++failed < 100'000);
  CHECK(failed > 100);
  CHECK(snapshots() == 1);
}

TEST_CASE("A start on a full disk succeeds and waits for room", "[journal]") {
  FaultyFileSystem disk;
  JournalRig rig(&disk);
  disk.SetCapacity(200);
  REQUIRE(rig.Open().ok());
  CHECK_FALSE(rig.Write().ok());
  disk.SetCapacity(0);
  REQUIRE(rig.WaitUntil([&] { return rig.Write().ok(); }));
}

TEST_CASE("The log can be switched off and on while running", "[journal]") {
  FaultyFileSystem disk;
  JournalRig rig(&disk);
  REQUIRE(rig.Open().ok());
  for (int i = 0; i < 50; ++i) REQUIRE(rig.WriteAndWait().ok());
  REQUIRE(rig.journal->SetLogEnabled(false).ok());
  for (int i = 0; i < 50; ++i) REQUIRE(rig.WriteAndWait().ok());
  SECTION("what was written without a log and without a snapshot is lost") {
    rig.options.log_enabled = GENERATE(false, true);
    REQUIRE(rig.Open().ok());
    CHECK(rig.CheckState() == 50);
    REQUIRE(rig.WriteAndWait().ok());
  }
  SECTION("a snapshot saves it") {
    REQUIRE(rig.journal->SaveNow().ok());
    rig.options.log_enabled = GENERATE(false, true);
    REQUIRE(rig.Open().ok());
    CHECK(rig.CheckState() == 100);
  }
  SECTION("switching on takes a snapshot") {
    REQUIRE(rig.journal->SetLogEnabled(true).ok());
    REQUIRE(rig.WriteAndWait().ok());
    REQUIRE(rig.WaitUntil([&] { return !rig.journal->snapshot_running(); }));
    REQUIRE(rig.WaitUntil([&] { return rig.journal->durable_lsn() == rig.lsn; }));
    REQUIRE(rig.WriteAndWait().ok());
    disk.PowerLoss(3);
    disk.Reboot();
    REQUIRE(rig.Open().ok());
    CHECK(rig.CheckState() == 102);
  }
  SECTION("a close right after switching on loses nothing") {
    REQUIRE(rig.journal->SetLogEnabled(true).ok());
    REQUIRE(rig.WriteAndWait().ok());
    REQUIRE(rig.journal->Close().ok());
    REQUIRE(rig.Open().ok());
    CHECK(rig.CheckState() == 101);
  }
}

TEST_CASE("Save points and the growth of the log start snapshots", "[journal]") {
  FaultyFileSystem disk;
  JournalRig rig(&disk);
  rig.options.save_points = {{.seconds = 3600, .changes = 1}, {.seconds = 0, .changes = 10}};
  rig.options.rewrite_percentage = 0;
  REQUIRE(rig.Open().ok());
  CHECK_FALSE(rig.journal->MaybeStartSnapshot());
  for (int i = 0; i < 9; ++i) REQUIRE(rig.WriteAndWait().ok());
  CHECK_FALSE(rig.journal->MaybeStartSnapshot());
  REQUIRE(rig.WriteAndWait().ok());
  CHECK(rig.journal->MaybeStartSnapshot());
  REQUIRE(rig.WaitUntil([&] { return !rig.journal->snapshot_running(); }));
  CHECK_FALSE(rig.journal->MaybeStartSnapshot());

  rig.journal->SetSavePoints({});
  rig.journal->SetRewriteTrigger(100, 8'000);
  while (rig.journal->Stats().current_bytes < 9'000) {
    CHECK_FALSE(rig.journal->snapshot_running());
    REQUIRE(rig.WriteAndWait().ok());
  }
  CHECK(rig.journal->MaybeStartSnapshot());
}

TEST_CASE("Without a log a failed snapshot stops writes if there are save points", "[journal]") {
  FaultyFileSystem disk;
  JournalRig rig(&disk);
  rig.options.log_enabled = false;
  rig.options.save_points = {{.seconds = 3600, .changes = 1}};
  REQUIRE(rig.Open().ok());
  REQUIRE(rig.WriteAndWait().ok());
  disk.FailKind(FileCall::kRename);
  CHECK_FALSE(rig.journal->SaveNow().ok());
  CHECK_FALSE(rig.Write().ok());
  rig.journal->SetStopWritesOnSnapshotError(false);
  CHECK(rig.Write().ok());
  rig.journal->SetStopWritesOnSnapshotError(true);
  disk.Heal();
  CHECK(rig.journal->SaveNow().ok());
  CHECK(rig.Write().ok());
}

TEST_CASE("Records larger than a segment and than what is reserved at once are taken",
          "[journal]") {
  FaultyFileSystem disk;
  JournalRig rig(&disk);
  rig.options.queue_bytes_max = 10'000;
  REQUIRE(rig.Open().ok());
  for (int i = 0; i < 10; ++i) {
    const std::string mutation = "big=" + std::string(30'000, static_cast<char>('a' + i)) + ";";
    REQUIRE(rig.journal->Reserve(mutation.size()).ok());
    rig.lsn = rig.journal->Append(mutation, 1);
    REQUIRE(rig.machine->Apply(mutation).ok());
    rig.journal->Flush();
    REQUIRE(rig.WaitReleased());
  }
  REQUIRE(rig.Open().ok());
  CHECK(rig.machine->Get("big") == std::string(30'000, 'j'));
  CHECK(rig.journal->Reserve(kRecordPayloadBytesMax + 1).code() == ErrorCode::kTooLarge);
}

TEST_CASE("A folder has one journal, and a folder without its manifest is not begun anew",
          "[journal]") {
  FaultyFileSystem disk;
  JournalRig rig(&disk);
  REQUIRE(rig.Open().ok());
  REQUIRE(rig.WriteAndWait().ok());
  {
    JournalRig second(&disk);
    CHECK_FALSE(second.Open().ok());
  }
  rig.journal.reset();
  REQUIRE(disk.Remove("db/cellar.manifest").ok());
  const Status status = rig.Open();
  REQUIRE_FALSE(status.ok());
  CHECK(status.code() == ErrorCode::kCorruption);
}

TEST_CASE("Files of Redis are left alone, and told to be unread", "[journal]") {
  FaultyFileSystem disk;
  JournalRig rig(&disk);
  REQUIRE(rig.Open().ok());
  rig.journal.reset();
  disk.SetContent("db/dump.rdb", "REDIS0011");
  disk.SetContent("db/appendonly.aof", "*1");
  REQUIRE(rig.Open().ok());
  const std::vector<std::string>& warnings = rig.journal->recovery().warnings;
  REQUIRE(warnings.size() == 2);
  for (const std::string& warning : warnings) {
    CHECK(warning.find("is data of Redis: Cellar does not read it, and leaves it alone") !=
          std::string::npos);
  }
  CHECK(*disk.Exists("db/dump.rdb"));
  CHECK(IsRedisFileName("appendonlydir"));
  CHECK_FALSE(IsRedisFileName("cellar-000001.log"));
}

TEST_CASE("Unknown files are left alone and named, leftovers go", "[journal]") {
  FaultyFileSystem disk;
  JournalRig rig(&disk);
  REQUIRE(rig.Open().ok());
  REQUIRE(rig.journal->SaveNow().ok());
  rig.journal.reset();
  disk.SetContent("db/notes.txt", "mine");
  disk.SetContent("db/cellar-000001.snapshot", "superseded");
  disk.SetContent("db/cellar-000099.log", "being made");
  disk.SetContent("db/cellar-000098.snapshot.tmp", "being made");
  REQUIRE(rig.Open().ok());
  CHECK(rig.journal->recovery().warnings.size() == 2);
  CHECK(disk.Exists("db/notes.txt").ok());
  CHECK(*disk.Exists("db/cellar-000099.log"));
  CHECK_FALSE(*disk.Exists("db/cellar-000001.snapshot"));
  CHECK_FALSE(*disk.Exists("db/cellar-000098.snapshot.tmp"));
}

TEST_CASE("What is to be durable first is released then, and what is behind it", "[journal]") {
  for (const SyncPolicy policy : {SyncPolicy::kEverySecond, SyncPolicy::kNo}) {
    FaultyFileSystem disk;
    JournalRig rig(&disk);
    rig.options.sync_policy = policy;
    REQUIRE(rig.Open().ok());
    REQUIRE(rig.WriteAndWait().ok());
    disk.HoldSyncsOf(".log");
    const Lsn before = rig.lsn;
    REQUIRE(rig.Write().ok());
    rig.journal->ReleaseWhenDurable();
    rig.journal->Flush();
    REQUIRE(rig.Write().ok());
    rig.journal->Flush();
    REQUIRE(rig.Write().ok());
    rig.journal->ReleaseWhenDurable();
    rig.journal->Flush();
    for (int i = 0; i < 100; ++i) {
      rig.journal->Poll();
      REQUIRE(rig.journal->released_lsn() <= before);
    }
    // Nobody has to ask for the sync, whenever the policy would have one.
    disk.ReleaseSyncs();
    REQUIRE(rig.WaitReleased());
    REQUIRE(rig.WriteAndWait().ok());
    rig.CheckState();
  }
}

}  // namespace cellar::journal_test
