// MemberFile: what a member remembers of the others (set_past.h): `cellar.member` in the data
// folder, beside the log, of which it must be as new as cellar.replica says.
//
// All integers are little-endian. Two slots of 16 KiB. What is on the disk for sure stays in one of
// them while the other one is written, so that a torn write leaves it:
//
//   offset size
//        0    8  magic "CELLRMEM"
//        8    8  generation u64: of two sound slots the higher one counts
//       16    4  length u32
//       20       so many bytes (EncodeMemory):
//                  version u32 = 1; cluster u64; start u64; closed u8; whole u8; count u32; each
//                  node u64, start u64, certain u8, what it has acknowledged since and before, each
//                  of both: acknowledged: term u32, seq u64, epoch u32; led: term u32, seq u64;
//                  boot u64; lazy u8
//                8  XXH3 of all before; the rest of the slot is zero
//    32768   32  seal of the two slots (replica/links/slot_seal.h), from which a start knows a slot
//                that was torn by a crash from one that was damaged, which it refuses
//
// TieFile: what ties the directory to its last start, in `cellar.replica` itself, behind who the
// node is (replica/links/identity_file.h): at 128 two slots of 128 bytes, and at 416 their seal,
// written likewise, most of the time without waiting for the disk:
//
//   offset size
//        0    8  magic "CELLRTIE"
//        8    4  version u32 = 1
//       12    4  flags u32: 1 acknowledgements do not wait for the disk, 2 closed in order
//       16    8  generation u64
//       24   16  start u64, next start u64
//       40   16  inode u64, time of birth i64 in nanoseconds, of this file
//       56    8  boot u64
//       64   16  acknowledged: term u32, seq u64; epoch u32 of that record
//       80   40  zero
//      120    8  XXH3 of bytes 0..120
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/os/file.h"
#include "replica/set/set_past.h"

namespace cellar {

enum class Durable : uint8_t { kNo, kYes };

// Two slots of a file that are written in turn, and their seal.
class TwoSlots {
 public:
  struct Places {
    uint64_t first;
    uint64_t slot_bytes;
    uint64_t seal;
  };

  TwoSlots(std::unique_ptr<WritableFile> file, uint64_t boot)
      : file_(std::move(file)), boot_(boot) {}

  WritableFile& file() { return *file_; }
  uint64_t boot() const { return boot_; }
  uint64_t generation() const { return generation_; }
  // The slot that is written next.
  uint64_t next_slot() const { return 1 - kept_slot_; }
  // That one is sound, which the file was found with; whether it is the newest so far.
  bool Found(uint64_t slot, uint64_t generation);
  // `bytes` of the generation behind generation() go into the next slot.
  Status Write(const Places& places, std::string_view bytes, Durable durable);

 private:
  std::unique_ptr<WritableFile> file_;
  const uint64_t boot_;
  uint64_t generation_{0};
  uint64_t kept_slot_{1};     // that is on the disk for sure
  bool may_be_sealed_{true};  // the other one
};

class MemberFile {
 public:
  // The folder's file, with what it holds in memory(); made, and empty, if there is none. `boot`:
  // of the machine; 0: unknown. kCorruption naming the file if its newest slot is damaged, or no
  // slot of it is sound.
  static Result<std::unique_ptr<MemberFile>> Open(FileSystem& files, const std::string& directory,
                                                  uint64_t boot);

  const MemberMemory& memory() const { return memory_; }
  // After an error the file holds the old one or the new one.
  Status Write(const MemberMemory& memory, Durable durable);

 private:
  MemberFile(std::unique_ptr<WritableFile> file, uint64_t boot) : slots_(std::move(file), boot) {}

  TwoSlots slots_;
  MemberMemory memory_;
  uint64_t used_[2]{0, 0};  // bytes of each slot that may not be zero
};

class TieFile {
 public:
  // Of a folder that has the file. kCorruption naming it if its newest slot is damaged.
  static Result<std::unique_ptr<TieFile>> Open(FileSystem& files, const std::string& directory,
                                               uint64_t boot);

  const MemberTie& tie() const { return tie_; }
  Status Write(const MemberTie& tie, Durable durable);

 private:
  TieFile(std::unique_ptr<WritableFile> file, uint64_t boot) : slots_(std::move(file), boot) {}

  TwoSlots slots_;
  MemberTie tie_;
};

// What was acknowledged counts no more. Where one of the two is damaged, as if nothing was ever
// remembered; after an error then a start refuses what is left, or nothing is.
Status ForgetPast(FileSystem& files, const std::string& directory);

// What `cellar --check` says of both: kCorruption naming the file and the offset if any byte of a
// slot or a seal, or behind what they hold, is not sound, and a line of `out`. OK, printing
// nothing, if the files are not there.
Status CheckMemberFiles(FileSystem& files, const std::string& directory, std::ostream& out);

}  // namespace cellar
