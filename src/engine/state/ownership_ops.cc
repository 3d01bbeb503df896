// See ownership_ops.h.
#include "engine/state/ownership_ops.h"

#include <cstdint>

#include "engine/table/mutation.h"

namespace cellar {

// A payload that cannot be read changes nothing.
bool ChangesOwnership(std::string_view payload) {
  MutationReader reader(payload);
  int64_t stamp = 0;
  if (!reader.ReadStamp(&stamp)) return false;
  DecodedOp op;
  while (reader.Next(&op))
    if (IsOwnershipOp(op.op) && op.op != MutationOp::kPurge) return true;
  return false;
}

bool BeginsWithOwnership(std::string_view payload) {
  if (payload.size() <= kMutationBeginBytes) return false;
  const auto first = static_cast<uint8_t>(payload[kMutationBeginBytes]);
  return first >= static_cast<uint8_t>(MutationOp::kCreateKeyspace) && ChangesOwnership(payload);
}

}  // namespace cellar
