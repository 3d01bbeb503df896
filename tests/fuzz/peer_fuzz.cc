// A leader and a follower between which any frames go, forged ones too: see
// tests/replica/hostile_pair.h.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/os/log.h"
#include "tests/replica/hostile_pair.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cellar;
  SilenceLog(true);
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.size() > 4096) return 0;
  ByteChoices choices(bytes);
  HostilePair pair(&choices, true);
  pair.Run();
  return 0;
}
