// See digest_hash.h.
#include "store/digest_hash.h"

#include "base/coding.h"
#include "engine/rows/scan.h"
#include "engine/table/table.h"

namespace cellar {

std::string DigestSum::Text() const {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint64_t half : {high, low}) {
    for (int shift = 60; shift >= 0; shift -= 4) text.push_back(kDigits[(half >> shift) & 15]);
  }
  return text;
}

void DigestHash::Flush() {
  XXH3_128bits_update(state_, bytes_.data(), bytes_.size());
  bytes_.clear();
}

DigestSum DigestHash::Take() {
  Flush();
  const XXH128_hash_t hash = XXH3_128bits_digest(state_);
  XXH3_128bits_reset(state_);
  return {hash.high64, hash.low64};
}

void DigestKey(const Table& table, std::string* to) {
  PutLengthPrefixed(to, table.schema().key.spec());
}

void DigestFamilies(const Table& table, std::string* to) {
  for (FamilySchema family : table.schema().families) {
    family.compression = Compression::kNever;  // how cells are kept, not what they are
    PutLengthPrefixed(to, family.name);
    PutLengthPrefixed(to, FamilyOptionsText(table.schema(), family));
  }
}

void DigestIndexesOf(const Table& table, DigestIndexes which, std::string* to) {
  for (const IndexSchema& index : table.schema().indexes) {
    const bool is_ready = index.state == IndexState::kReady && index.judged;
    if (which == DigestIndexes::kAll || is_ready)
      PutLengthPrefixed(to, IndexDefinitionText(table.schema(), index));
  }
}

void DigestCell(const Scan& scan, std::string* to) {
  const ScanCell& cell = scan.cell();
  PutLengthPrefixed(to, cell.family);
  PutLengthPrefixed(to, cell.qualifier_text);
  PutVarint64(to, static_cast<uint64_t>(cell.timestamp_micros));
  to->push_back(static_cast<char>(cell.type));
  PutLengthPrefixed(to, cell.stored);
}

}  // namespace cellar
