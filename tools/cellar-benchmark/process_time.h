// CPU time of a process, as /proc knows it.
#pragma once

#include <cstdint>

namespace cellar::benchmark {

// User and system time of all threads of process `pid`, to 10 ms; -1 if it cannot be read.
double ProcessCpuSeconds(int32_t pid);

}  // namespace cellar::benchmark
