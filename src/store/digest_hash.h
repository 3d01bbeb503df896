// DigestHash: what DEBUG DIGEST is made of: 128 bits of XXH3 over schemas and cells, as bytes that
// no other schema and no other cells have.
#pragma once

#include <xxhash.h>

#include <cstdint>
#include <string>

namespace cellar {

class Scan;
class Table;

// 128 bits, in halves that are added up each for itself.
struct DigestSum {
  uint64_t high{0};
  uint64_t low{0};

  void Add(const DigestSum& other) {
    high += other.high;
    low += other.low;
  }
  std::string Text() const;  // 32 hexadecimal digits
  friend bool operator==(const DigestSum&, const DigestSum&) = default;
};

class DigestHash {
 public:
  DigestHash() : state_(XXH3_createState()) { XXH3_128bits_reset(state_); }
  ~DigestHash() { XXH3_freeState(state_); }
  DigestHash(const DigestHash&) = delete;
  DigestHash& operator=(const DigestHash&) = delete;

  // What is added next goes here.
  std::string& bytes() { return bytes_; }
  void FlushIfLong() {
    if (bytes_.size() > kBytesMax) Flush();
  }
  // Of all that was added; then it begins anew.
  DigestSum Take();

 private:
  static constexpr size_t kBytesMax{64 * 1024};
  void Flush();

  XXH3_state_t* state_;
  std::string bytes_;
};

// What the table's key is; what its families are.
void DigestKey(const Table& table, std::string* to);
void DigestFamilies(const Table& table, std::string* to);
// What its indexes are: all of them, or those that can be read.
enum class DigestIndexes : uint8_t { kAll, kReady };
void DigestIndexesOf(const Table& table, DigestIndexes which, std::string* to);
// The cell that `scan` is at, without when it expires.
void DigestCell(const Scan& scan, std::string* to);

}  // namespace cellar
