// The small files beside a store: whatever has changed in one is noticed, named by --check, and
// nothing that it spoke for goes.
#include "store/format/notes.h"

#include <catch2/catch.hpp>
#include <map>
#include <sstream>
#include <string>

#include "base/os/log.h"
#include "store/format/store_files.h"
#include "store/history/archive.h"
#include "store/history/backup.h"
#include "store/offline/check.h"
#include "tests/store/journal_rig.h"

namespace cellar::notes_test {

const std::string kId = "0123456789abcdef0123456789abcdef";

std::string Flipped(std::string text, size_t bit) {
  text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
  return text;
}

// All changes of one place that a disk makes: a bit, a byte of zeros, the rest of the file.
template <typename Use>
void ForEachDamage(const std::string& text, Use use) {
  for (size_t bit = 0; bit < text.size() * 8; ++bit) use(Flipped(text, bit));
  for (size_t at = 0; at < text.size(); ++at) {
    std::string zeroed = text;
    zeroed[at] = '\0';
    use(zeroed);
    use(text.substr(0, at));
  }
  use(text + '\n');
  use(std::string(text.size(), '\0'));
}

TEST_CASE("Notes are read back, and any damage to one is noticed", "[notes]") {
  const BackupNote begun{.start_unix_s = 1795720514};
  const BackupNote sealed{
      .start_unix_s = 1795720514, .end_unix_s = 1795720601, .id = "1795720600000-123000000"};
  for (const BackupNote& note : {begun, sealed}) {
    CHECK(*ParseBackupNote(FormatBackupNote(note)) == note);
    ForEachDamage(FormatBackupNote(note), [](const std::string& text) {
      INFO(text);
      REQUIRE(ParseBackupNote(text).status().code() == ErrorCode::kCorruption);
    });
  }
  const ArchiveNote whole{.store = kId};
  const ArchiveNote gaps{.store = kId, .gaps = {"gap after 1-7 to 1-90", "gap after 1-99 to 2-3"}};
  for (const ArchiveNote& note : {whole, gaps}) {
    CHECK(*ParseArchiveNote(FormatArchiveNote(note)) == note);
    ForEachDamage(FormatArchiveNote(note), [](const std::string& text) {
      INFO(text);
      REQUIRE(ParseArchiveNote(text).status().code() == ErrorCode::kCorruption);
    });
  }
  const StoreIdNote bare{.store = kId};
  const StoreIdNote full{.store = kId, .archive = "/backup/an archive"};
  for (const StoreIdNote& note : {bare, full}) {
    CHECK(*ParseStoreIdNote(FormatStoreIdNote(note)) == note);
    ForEachDamage(FormatStoreIdNote(note), [](const std::string& text) {
      INFO(text);
      REQUIRE(ParseStoreIdNote(text).status().code() == ErrorCode::kCorruption);
    });
  }
}

TEST_CASE("Notes of version 1 are read, and refused where they cannot be right", "[notes]") {
  const auto backup = ParseBackupNote("cellar-backup 1\nstart 7\nend 9\nid 8000-5\n");
  REQUIRE(backup.ok());
  CHECK(*backup == BackupNote{.start_unix_s = 7, .end_unix_s = 9, .id = "8000-5", .is_old = true});
  CHECK(ParseBackupNote("cellar-backup 1\nstart 7\n")->is_old);
  for (const std::string text :
       {"cellar-backup 1\nstart 7\nend 6\nid 8000-5\n", "cellar-backup 1\nstart 7\nend 9\n",
        "cellar-backup 1\nstart 7\nend 9\nid 8000-5", "cellar-backup 1\n", "cellar-backup 3\n",
        "cellar-backup 1\nstart 7\nend 9\nid 8000-5\nmore 1\n", "cellar-backup 2\nstart 7\n", "",
        "cellar-backup 1\nstart 7x\n", "callar-backup 1\nstart 7\n"}) {
    INFO(text);
    CHECK(ParseBackupNote(text).status().code() == ErrorCode::kCorruption);
  }
  const auto archive =
      ParseArchiveNote("cellar-archive 1\nstore " + kId + "\ngap after 1-2 to 1-3\n");
  REQUIRE(archive.ok());
  CHECK(archive->store == kId);
  CHECK(archive->gaps == std::vector<std::string>{"gap after 1-2 to 1-3"});
  CHECK_FALSE(ParseArchiveNote("cellar-archive 1\nstore " + kId + "\ngap after 1-2 to 1\n").ok());
  CHECK_FALSE(ParseArchiveNote("cellar-archive 1\nstore 0\n").ok());
  const auto own = ParseStoreIdNote("store " + kId + "\narchive s3://bucket/x\n");
  REQUIRE(own.ok());
  CHECK(own->archive == "s3://bucket/x");
  CHECK(ParseStoreIdNote("store " + kId + "\n")->is_old);
  CHECK_FALSE(ParseStoreIdNote("store " + kId + "\narchivE s3://bucket/x\n").ok());
}

// A store with an archive and a sealed backup, and all that is on its disk then.
class RichDisk {
 public:
  RichDisk() : rig(&disk) {
    REQUIRE(rig.Open().ok());
    for (int i = 0; i < 40; ++i) REQUIRE(rig.WriteAndWait().ok());
    REQUIRE(rig.journal->SaveNow().ok());
    OpenBackup();
    REQUIRE(backup->Start().ok());
    Settle();
    for (int i = 0; i < 20; ++i) REQUIRE(rig.WriteAndWait().ok());
    REQUIRE(backup->Seal().ok());
    Settle();
    REQUIRE(backup->state() == BackupState::kSealed);
    REQUIRE(OpenArchive().ok());
    REQUIRE(rig.WaitUntil([this] { return archive->Stats().files >= 2; }));
    archive.reset();
    backup.reset();
  }
  void OpenBackup() {
    backup.reset();
    backup = std::make_unique<Backup>(
        BackupOptions{.directory = "copies", .sealed_ttl_micros = 3'600'000'000},
        Backup::Source{.directory = "db",
                       .whole_log = true,
                       .files = disk,
                       .clock = Clock::System(),
                       .journal = *rig.journal,
                       .state = *rig.machine,
                       .wake = [] {}});
  }
  Status OpenArchive() {
    archive.reset();
    auto opened = Archive::Open({.directory = "past"}, "db", disk, Clock::System(), *rig.journal);
    if (!opened.ok()) return opened.status();
    archive = *std::move(opened);
    return Status::Ok();
  }
  void Settle() {
    REQUIRE(rig.WaitUntil([this] {
      backup->Poll();
      return !backup->working() && backup->state() != BackupState::kPending &&
             backup->state() != BackupState::kSnapshotting && !backup->sealing();
    }));
  }
  std::map<std::string, std::string> ContentOf(const std::string& folder) {
    std::map<std::string, std::string> content;
    const auto names = disk.List(folder);
    REQUIRE(names.ok());
    for (const std::string& name : *names) content[name] = disk.Content(folder + "/" + name);
    return content;
  }

  FaultyFileSystem disk;
  JournalRig rig;
  std::unique_ptr<Backup> backup;
  std::unique_ptr<Archive> archive;
};

TEST_CASE("A damaged backup is said, kept, never expired and never overwritten", "[notes]") {
  SilenceLog(true);
  RichDisk rich;
  for (const std::string name : {"cellar.backup", "cellar.manifest"}) {
    const std::string path = "copies/" + name;
    const std::string sound = rich.disk.Content(path);
    REQUIRE_FALSE(sound.empty());
    ForEachDamage(sound, [&](const std::string& damaged) {
      INFO(name << ": " << damaged);
      rich.disk.SetContent(path, damaged);
      const auto before = rich.ContentOf("copies");
      rich.OpenBackup();
      CHECK(rich.backup->state() == BackupState::kFailed);
      CHECK(rich.backup->error().find(path) != std::string::npos);
      CHECK_FALSE(rich.backup->Start().ok());
      CHECK_FALSE(rich.backup->Seal().ok());
      rich.backup->set_sealed_ttl(1);
      rich.Settle();
      REQUIRE(rich.ContentOf("copies") == before);
    });
    rich.disk.SetContent(path, sound);
    rich.OpenBackup();
    CHECK(rich.backup->state() == BackupState::kSealed);
  }
  SilenceLog(false);
  // Who has seen it may remove it.
  rich.disk.SetContent("copies/cellar.backup", "what is this");
  rich.OpenBackup();
  REQUIRE(rich.backup->Cleanup().ok());
  rich.Settle();
  CHECK(rich.disk.List("copies")->empty());
  REQUIRE(rich.backup->Start().ok());
  rich.Settle();
  CHECK(rich.backup->state() == BackupState::kIncrementing);
}

TEST_CASE("A backup that cannot be read at the start is not taken for none", "[notes]") {
  RichDisk rich;
  const auto before = rich.ContentOf("copies");
  rich.disk.FailKind(FileCall::kOpen);
  rich.OpenBackup();
  CHECK(rich.backup->state() == BackupState::kIdle);
  CHECK(rich.backup->Start().code() == ErrorCode::kTryAgain);
  rich.disk.Heal();
  CHECK(rich.ContentOf("copies") == before);
  REQUIRE(rich.rig.WaitUntil([&] {
    rich.backup->Poll();
    return rich.backup->state() == BackupState::kSealed;
  }));
}

TEST_CASE("A start names the note that is damaged, and changes nothing in the archive", "[notes]") {
  RichDisk rich;
  for (const std::string path : {"past/cellar.archive", "db/cellar.store"}) {
    const std::string sound = rich.disk.Content(path);
    REQUIRE_FALSE(sound.empty());
    ForEachDamage(sound, [&](const std::string& damaged) {
      INFO(path << ": " << damaged);
      rich.disk.SetContent(path, damaged);
      const auto before = rich.ContentOf("past");
      const Status opened = rich.OpenArchive();
      REQUIRE_FALSE(opened.ok());
      CHECK(opened.text().find(path + " is damaged") != std::string::npos);
      REQUIRE(rich.ContentOf("past") == before);
    });
    rich.disk.SetContent(path, sound);
    REQUIRE(rich.OpenArchive().ok());
    rich.archive.reset();
  }
}

TEST_CASE("An archive of version 1 is taken on and gets its checksums", "[notes]") {
  RichDisk rich;
  const std::string id = ParseStoreIdNote(rich.disk.Content("db/cellar.store"))->store;
  rich.disk.SetContent("db/cellar.store", "store " + id + "\narchive past\n");
  rich.disk.SetContent("past/cellar.archive",
                       "cellar-archive 1\nstore " + id + "\ngap after 1-2 to 1-3\n");
  REQUIRE(rich.OpenArchive().ok());
  REQUIRE(rich.rig.WaitUntil(
      [&] { return rich.disk.Content("past/cellar.archive").starts_with("cellar-archive 2\n"); }));
  rich.archive.reset();
  CHECK(*ParseArchiveNote(rich.disk.Content("past/cellar.archive")) ==
        ArchiveNote{.store = id, .gaps = {"gap after 1-2 to 1-3"}});
  CHECK(*ParseStoreIdNote(rich.disk.Content("db/cellar.store")) ==
        StoreIdNote{.store = id, .archive = "past"});
}

TEST_CASE("--check finds every flipped bit of every file and names it", "[notes]") {
  RichDisk rich;
  rich.rig.journal.reset();
  const auto check = [&](const std::string& folder, std::string* said) {
    MapMachine machine;
    std::ostringstream out;
    const Status status = CheckStore(rich.disk, folder, CheckMode::kLook, machine, out);
    *said = out.str();
    return status;
  };
  uint64_t flips = 0;
  for (const std::string folder : {"db", "copies", "past"}) {
    std::string said;
    const Status sound = check(folder, &said);
    INFO(said);
    REQUIRE(sound.ok());
    for (const auto& [name, content] : rich.ContentOf(folder)) {
      // Of the large ones a bit here and there; tests of their own flip each.
      const bool is_small = content.size() < 1024;
      for (size_t bit = 0; bit < content.size() * 8; bit += is_small ? 1 : 1009) {
        const std::string path = folder + "/" + name;
        rich.disk.SetContent(path, Flipped(content, bit));
        const Status status = check(folder, &said);
        INFO(path << " bit " << bit << ": " << status.ToString() << '\n' << said);
        // Behind the last record of an open segment is room that was reserved.
        const bool is_log = name.ends_with(".log");
        const bool is_named = said.find(name + ": DAMAGED") != std::string::npos;
        const bool is_tail = is_log && status.ok() && said.find("torn tail") != std::string::npos;
        REQUIRE((is_named || is_tail));
        REQUIRE((is_tail || !status.ok()));
        ++flips;
        rich.disk.SetContent(path, content);
      }
    }
  }
  CHECK(flips > 5000);
}

}  // namespace cellar::notes_test
