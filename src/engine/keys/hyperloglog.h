// HyperLogLog: how many different inputs a cell of an hll family has been given, within 0.81 %.
//
// A state is the string that a Redis keeps for a key of PFADD, so the two take each other's:
//
//   | "HYLL" | encoding u8 | unused 3 | cached count u64 | registers |      16 bytes and registers
//
//   encoding 0, dense    16,384 registers of 6 bits, the first in the lowest bits: 12,288 bytes
//   encoding 1, sparse   runs of registers with the same value:
//                          00llllll            l + 1 zeros, up to 64
//                          01llllll llllllll   l + 1 zeros, up to 16,384
//                          1vvvvvll            l + 1 registers of value v + 1
//
// An input is hashed (MurmurHash64A with Redis' seed); 14 bits choose the register, which keeps the
// largest rank seen: the number of zero bits behind which the first one stands in the other 50,
// plus 1. The estimate is Ertl's ("New cardinality estimation algorithms for HyperLogLog sketches",
// arXiv 1702.01284, algorithm 6), in the arithmetic of Redis, so that PFCOUNT says the same.
//
// The registers of a set of inputs depend on nothing but the set; so that this holds for the bytes
// too, states here are canonical: runs as long as they can be, short zeros in the short form,
// sparse while no register is above 32 and all of it takes at most 3,000 bytes, the cached count 0
// and marked as stale. What comes from elsewhere is checked and encoded anew.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace cellar {

inline constexpr size_t kHllRegisters{16'384};
inline constexpr size_t kHllHeaderBytes{16};
inline constexpr size_t kHllDenseBytes{kHllHeaderBytes + kHllRegisters * 6 / 8};
inline constexpr size_t kHllSparseBytesMax{3'000};  // Redis' default of hll-sparse-max-bytes
inline constexpr uint8_t kHllRankMax{51};

// What an input says of one register.
struct HllInput {
  uint32_t index;
  uint8_t rank;
};
HllInput HllInputOf(std::string_view input);
// HllInputOf an input that is hashed already, by any good function of 64 bits.
HllInput HllInputOfHash(uint64_t hash);

// All registers, one byte each: for many inputs or merges in a row.
class HllSketch {
 public:
  HllSketch() { registers_.fill(0); }
  // REQUIRES: HllIsCanonical(state).
  explicit HllSketch(std::string_view state);

  // True if something has changed.
  bool Add(HllInput input) {
    uint8_t& at = registers_[input.index];
    if (input.rank <= at) return false;
    at = input.rank;
    return true;
  }
  // Adds the inputs of a state. REQUIRES: HllIsCanonical(state).
  void Merge(std::string_view state);
  void Merge(const HllSketch& other);
  uint64_t Estimate() const;
  // Replaces *state by the canonical one.
  void EncodeTo(std::string* state) const;

 private:
  friend bool HllCanonical(std::string_view state, std::string* canonical);
  std::array<uint8_t, kHllRegisters> registers_;
};

// The state of no input, and of one.
std::string HllEmptyState();
std::string HllStateOf(HllInput input);
// The canonical form of a state that anybody may have made. False if it is none: cut short or too
// long, runs that do not come to 16,384 registers, a register that no input can have set.
[[nodiscard]] bool HllCanonical(std::string_view state, std::string* canonical);
bool HllIsCanonical(std::string_view state);

// All of these REQUIRE canonical states.
uint64_t HllEstimate(std::string_view state);
uint8_t HllRegister(std::string_view state, uint32_t index);
// *merged := `state` with one input more; false, and *merged is not touched, if that is the same.
// O(bytes of the state).
[[nodiscard]] bool HllAdd(std::string_view state, HllInput input, std::string* merged);
// *merged := `state` with the inputs of `other`; false, and *merged is not touched, if it has them
// all. O(bytes of both).
[[nodiscard]] bool HllMerge(std::string_view state, std::string_view other, std::string* merged);

}  // namespace cellar
