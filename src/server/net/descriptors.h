// How many clients the system lets a server have. Each of them is a descriptor, and so are the
// server's own files: without some kept back for them a full house of clients would keep it from
// saving, from following and from accepting the next one to tell it that there is no place.
#pragma once

#include <cstdint>

namespace cellar {

struct Config;

// Raises the limit of open files (RLIMIT_NOFILE) as far as `maxclients` needs it and the system
// allows. How many clients fit then: `maxclients`, or fewer, or none at all.
int64_t ClientsThatFit(const Config& config, int64_t maxclients);
// As set by now.
uint64_t DescriptorLimit();

}  // namespace cellar
