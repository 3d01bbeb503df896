// Assertions: what must hold if the code has no bug. They are on in release too; a failed one
// prints where and what, and ends the process (after TigerBeetle: a wrong answer is worse than
// none).
//
// CELLAR_ASSERT is for O(1) conditions. CELLAR_DEBUG_ASSERT is for O(n) ones and is compiled in
// with -DCELLAR_DEBUG (the debug and sanitizer builds). The names avoid Catch2's CHECK and REQUIRE.
#pragma once

namespace cellar {

// Prints `condition` with its place to stderr and aborts.
[[noreturn]] void AssertFailed(const char* condition, const char* file, int line);

}  // namespace cellar

// An expression and no statement: what nests is counted by clang-tidy, in macros too.
#define CELLAR_ASSERT(condition)                                                              \
  (__builtin_expect(!(condition), 0) ? ::cellar::AssertFailed(#condition, __FILE__, __LINE__) \
                                     : static_cast<void>(0))

#ifdef CELLAR_DEBUG
#define CELLAR_DEBUG_ASSERT(condition) CELLAR_ASSERT(condition)
#else
#define CELLAR_DEBUG_ASSERT(condition) static_cast<void>(sizeof(!(condition)))
#endif
