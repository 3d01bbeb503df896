// See cut_digests.h.
#include "cluster/cut_digests.h"

#include "store/rows_digest.h"
#include "store/store.h"

namespace cellar {

CutDigests::CutDigests() = default;
CutDigests::~CutDigests() = default;

void CutDigests::Take(Store& store, Cut cut, int64_t at_micros, int64_t now_micros) {
  if (kept_.size() == kKeptMax) kept_.erase(kept_.begin());
  Kept& kept = kept_[cut.number];
  kept.digest = std::make_unique<RowsDigest>(store, at_micros);
  kept.term = cut.term;
  kept.lineage = store.lineage();
  kept.used_micros = now_micros;
}

RowsDigest* CutDigests::Use(const Store& store, Cut cut, int64_t now_micros) {
  const auto found = kept_.find(cut.number);
  if (found == kept_.end() || found->second.term != cut.term ||
      found->second.lineage != store.lineage())
    return nullptr;
  found->second.used_micros = now_micros;
  return found->second.digest.get();
}

void CutDigests::Sweep(int64_t now_micros) {
  std::erase_if(kept_, [now_micros](const auto& kept) {
    return now_micros - kept.second.used_micros > kIdleMicros;
  });
}

void CutDigests::Clear() { kept_.clear(); }

}  // namespace cellar
