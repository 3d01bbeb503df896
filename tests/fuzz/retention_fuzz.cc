// Any text as a GC policy: it is refused, or its canonical text is the same policy.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "engine/schema/retention.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cellar;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<RetentionPolicy> policy = RetentionPolicy::Parse(text);
  if (!policy.ok() || policy->keeps_everything()) return 0;
  if (policy->text().size() > kPolicyBytesMax) return 0;  // blanks make it longer
  const Result<RetentionPolicy> again = RetentionPolicy::Parse(policy->text());
  CELLAR_ASSERT(again.ok());
  CELLAR_ASSERT(*again == *policy);
  for (const uint64_t rank : {uint64_t{1}, uint64_t{2}, uint64_t{3}, uint64_t{100}}) {
    for (const int64_t timestamp : {int64_t{0}, int64_t{1}, int64_t{1'000'000'000}}) {
      CELLAR_ASSERT(policy->DueMicros(rank, timestamp) == again->DueMicros(rank, timestamp));
      CELLAR_ASSERT(policy->DueMicros(rank + 1, timestamp) <= policy->DueMicros(rank, timestamp));
    }
  }
  return 0;
}
