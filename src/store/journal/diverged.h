// What a node wrote while it took itself for the leader and nobody copied: saved before it goes.
#pragma once

#include <cstdint>
#include <string>

#include "base/os/file.h"
#include "store/format/manifest.h"

namespace cellar {

struct DivergedTail {
  std::string path;
  uint64_t records{0};  // 0: there were none, and there is no file
};

// Copies the records behind `common_seq` from the log's files into a segment of its own,
// `cellar-diverged-<epoch>-<seq>.log` after the first of them, durable when this returns OK. --dump
// reads it; the server never removes it. O(log).
Status SaveDivergedTail(FileSystem& files, const std::string& directory, const Manifest& manifest,
                        uint64_t common_seq, DivergedTail* tail);

// Whether `name` is that of such a file.
bool IsDivergedName(std::string_view name);

}  // namespace cellar
