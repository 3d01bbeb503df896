// MemoryConfig: the options that say how much memory may be used. A part of Config.
#pragma once

#include <cstdint>
#include <string>

namespace cellar {

struct MemoryConfig {
  int64_t maxmemory{0};
  std::string maxmemory_clients{"0"};
  int64_t maxmemory_clients_bytes{0};    // of it: one of the two, or neither
  int64_t maxmemory_clients_percent{0};  // of maxmemory
  int64_t agg_max_memory{64LL << 20};
  int64_t work_max_memory{256LL << 20};
};

}  // namespace cellar
