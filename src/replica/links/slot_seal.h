// SlotSeal: tells a slot that a crash has torn from one that was damaged later.
//
// A small file that must survive a crash in the middle of a write has two slots, which are written
// in turn: one that is not sound gives way to the other. That is right where the write never ended,
// since nobody was told that it had. It is wrong where the slot stood and has been damaged since:
// what the other one says is what was so before the last change, a vote or an acknowledgement less.
// So each write ends with a seal, which stands behind both slots and names the generation that is
// there now:
//
//   slot A   gen 6  gen 6  torn   gen 8   gen 8      gen 8       (damaged)
//   slot B   gen 7  gen 7  gen 7  gen 7   gen 7      gen 7       gen 7
//   seal        6      7      7      7       8       (torn)         8
//                   done   crash          done       crash       refused
//
// The newest sound slot is not below the seal, or what the seal names is damaged. A seal is written
// when its slot is on the disk, and is not waited for: without it, or if it is not sound, a start
// takes what is there, as ever; it takes two faults then to bring an older state back.
//
// A slot that is not waited for either (cellar.member, and what ties cellar.replica to it) may be
// lost with the power while its seal is not. So its seal names the boot of the machine, and counts
// as long as that lasts: what a process has written outlives it. Before such a slot is overwritten
// its seal is taken away.
//
//   offset size
//        0    8  magic "CELLSEAL"; all zero: there is none
//        8    8  generation u64
//       16    8  boot u64; 0: the slot was synced
//       24    8  XXH3 of bytes 0..24
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cellar/status.h"

namespace cellar {

inline constexpr size_t kSealBytes{32};

struct SlotSeal {
  uint64_t generation{0};
  uint64_t boot{0};
};

std::string EncodeSeal(const SlotSeal& seal);
// Nothing: there is none, or it is not sound.
std::optional<SlotSeal> DecodeSeal(std::string_view bytes);

// What stands at `offset` of a file's bytes, as far as it is there.
std::string_view PartOf(std::string_view bytes, size_t offset, size_t length);
bool IsBlank(std::string_view bytes);  // all zero, or none

// kCorruption, naming `path`: the slot stood that the seal at `offset` names, and is not sound.
// `newest` is the highest generation of a sound slot, 0 if there is none.
Status CheckNewest(const std::string& path, std::string_view bytes, size_t offset, uint64_t newest,
                   uint64_t boot);

}  // namespace cellar
