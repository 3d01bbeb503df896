// CELLAR_INLINE: for functions that each command, or each cell of a scan, passes through. A call
// costs as much as what they do, and the compiler finds them too large or called too often.
#pragma once

#define CELLAR_INLINE [[gnu::always_inline]] inline
