// What follows the name in SNAPSHOT CREATE.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "cellar/status.h"
#include "commands/arguments/arguments.h"

namespace cellar {

// Borrows the words.
struct SnapshotRequest {
  std::vector<std::string_view> tables;
  bool names_tables{false};  // false: all of the keyspace
  int64_t ttl_ms{0};
  bool replace{false};
};

Result<SnapshotRequest> ParseSnapshotCreate(ArgumentCursor at);

}  // namespace cellar
