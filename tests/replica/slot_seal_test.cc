// The small files of a member: a byte that has changed is found, a slot that a crash has torn is
// not taken for one.
#include "replica/links/slot_seal.h"

#include <catch2/catch.hpp>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "replica/links/identity_check.h"
#include "replica/links/identity_file.h"
#include "replica/set/member_file.h"
#include "tests/store/faulty_file_system.h"

namespace cellar::slot_seal_test {

constexpr uint64_t kBoot{7};
const std::string kIdentity = "n/cellar.replica";
const std::string kMember = "n/cellar.member";

MemberMemory MemoryOf(uint64_t start, size_t peers = 2) {
  MemberMemory memory{.cluster = 3, .start = start};
  for (uint64_t node = 1; node <= peers; ++node)
    memory.peers[node].now.acknowledged = {4, start * 100 + node};
  return memory;
}

// What a start makes of the folder: all three parts, or why not.
struct Opened {
  Status status;
  Identity identity;
  MemberTie tie;
  MemberMemory memory;
};

Opened Open(FileSystem& disk, uint64_t boot) {
  Opened opened;
  auto tie = TieFile::Open(disk, "n", boot);
  auto member = MemberFile::Open(disk, "n", boot);
  auto identity = IdentityFile::Open(disk, "n", {.cluster = 3, .node = 5});
  for (const Status& status : {tie.status(), member.status(), identity.status()}) {
    opened.status = status;
    if (!status.ok()) return opened;
  }
  opened.identity = (*identity)->identity();
  opened.tie = (*tie)->tie();
  opened.memory = (*member)->memory();
  return opened;
}

Status CheckAll(FileSystem& disk) {
  Status status = CheckIdentitySlots(disk, "n");
  std::ostringstream out;
  return status.ok() ? CheckMemberFiles(disk, "n", out) : status;
}

// A folder that has lived for a while; the last of what it wrote was waited for, or not.
void Live(FaultyFileSystem& disk, Durable last) {
  REQUIRE(disk.CreateDirectory("n").ok());
  auto identity = IdentityFile::Open(disk, "n", {.term = 1, .cluster = 3, .node = 5});
  REQUIRE(identity.ok());
  auto tie = TieFile::Open(disk, "n", kBoot);
  auto member = MemberFile::Open(disk, "n", kBoot);
  REQUIRE(tie.ok());
  REQUIRE(member.ok());
  for (uint32_t i = 1; i <= 5; ++i) {
    REQUIRE((*identity)->Write({.term = i, .cluster = 3, .node = 5, .vote = i}).ok());
    const Durable durable = i == 5 ? last : i % 2 == 0 ? Durable::kYes : Durable::kNo;
    REQUIRE((*tie)->Write({.start = i, .boot = kBoot, .acknowledged = {i, i}}, durable).ok());
    REQUIRE((*member)->Write(MemoryOf(i), durable).ok());
  }
}

TEST_CASE("Every byte of a member's small files that has changed is found", "[replica][set]") {
  for (const Durable last : {Durable::kNo, Durable::kYes}) {
    FaultyFileSystem disk;
    Live(disk, last);
    REQUIRE(CheckAll(disk).ok());
    const std::string replica = disk.Content(kIdentity);
    const std::string member = disk.Content(kMember);
    REQUIRE(Open(disk, kBoot).status.ok());
    for (const std::string& path : {kIdentity, kMember}) {
      const std::string& sound = path == kIdentity ? replica : member;
      size_t refused = 0;
      for (size_t at = 0; at < sound.size(); ++at) {
        // All of what holds something; of the empty rest some.
        if (at % 8 != 0 && IsBlank(PartOf(sound, at - at % 64, 64))) continue;
        for (const int bit : {0, 3, 7}) {
          disk.SetContent(kIdentity, replica);
          disk.SetContent(kMember, member);
          std::string bytes = sound;
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
          disk.SetContent(path, bytes);
          INFO(path << " at " << at << ", bit " << bit);
          const Status checked = CheckAll(disk);
          REQUIRE_FALSE(checked.ok());
          REQUIRE(checked.code() == ErrorCode::kCorruption);
          REQUIRE(checked.text().find(path) != std::string::npos);
          // A start takes what was there, or refuses and names the file.
          const Opened opened = Open(disk, kBoot);
          if (opened.status.ok()) {
            CHECK(opened.identity.term == 5);
            CHECK(opened.tie.start == 5);
            CHECK(opened.memory == MemoryOf(5));
          } else {
            ++refused;
            CHECK(opened.status.text().find(path) != std::string::npos);
          }
        }
      }
      CHECK(refused > 100);
    }
  }
}

TEST_CASE("A member's small files open after a crash at any call, as before or behind the write",
          "[replica][set]") {
  for (const bool power_loss : {false, true}) {
    for (uint64_t call = 1;; ++call) {
      INFO("call " << call << (power_loss ? ", the power goes" : ", it is killed"));
      FaultyFileSystem disk;
      Live(disk, Durable::kYes);
      auto identity = IdentityFile::Open(disk, "n", {.cluster = 3, .node = 5});
      auto tie = TieFile::Open(disk, "n", kBoot);
      auto member = MemberFile::Open(disk, "n", kBoot);
      REQUIRE(identity.ok());
      REQUIRE(tie.ok());
      REQUIRE(member.ok());
      disk.KillAtCall(call);
      // What was waited for stays, what was not may.
      uint32_t term = 5;
      uint64_t tied = 5;
      uint64_t remembered = 5;
      bool ended = false;
      for (uint32_t i = 6; i <= 14 && !ended; ++i) {
        const Durable durable = i % 3 == 0 ? Durable::kYes : Durable::kNo;
        ended = !(*identity)->Write({.term = i, .cluster = 3, .node = 5}).ok();
        if (!ended) term = i;
        if (!ended) ended = !(*tie)->Write({.start = i, .boot = kBoot}, durable).ok();
        if (!ended && durable == Durable::kYes) tied = i;
        // Longer and shorter, over pages and back.
        const size_t peers = i % 2 == 0 ? 60 : 2;
        if (!ended) ended = !(*member)->Write(MemoryOf(i, peers), durable).ok();
        if (!ended && durable == Durable::kYes) remembered = i;
      }
      if (power_loss) disk.PowerLoss(call);
      disk.Reboot();
      const Opened opened = Open(disk, power_loss ? kBoot + 1 : kBoot);
      INFO((opened.status.ok() ? std::string() : opened.status.text()));
      REQUIRE(opened.status.ok());
      CHECK(opened.identity.term >= term);
      CHECK(opened.tie.start >= tied);
      CHECK(opened.memory.start >= remembered);
      CHECK(opened.memory == MemoryOf(opened.memory.start, opened.memory.start < 6        ? 2
                                                           : opened.memory.start % 2 == 0 ? 60
                                                                                          : 2));
      if (!ended) break;
    }
  }
}

TEST_CASE("A seal of another boot says nothing of what was not waited for", "[replica][set]") {
  FaultyFileSystem disk;
  Live(disk, Durable::kNo);
  std::string bytes = disk.Content(kMember);
  const size_t at = bytes.find(EncodeMemory(MemoryOf(5)));
  REQUIRE(at != std::string::npos);
  bytes[at] ^= 1;
  disk.SetContent(kMember, bytes);
  CHECK(Open(disk, kBoot).status.code() == ErrorCode::kCorruption);
  const Opened opened = Open(disk, kBoot + 1);
  REQUIRE(opened.status.ok());
  CHECK(opened.memory == MemoryOf(4));
}

}  // namespace cellar::slot_seal_test
