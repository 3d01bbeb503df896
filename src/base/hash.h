// XXH3 (libxxhash), the one hash of the project: checksums of records and blocks, hash tables.
#pragma once

#include <xxhash.h>

#include <cstdint>
#include <string_view>

namespace cellar {

inline uint64_t Hash64(std::string_view bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}
inline uint64_t Hash64(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace cellar
