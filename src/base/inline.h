// CELLAR_INLINE: for the few functions that each cell of a scan passes through. They are called
// from one loop or two, a call costs as much as what they do, and the compiler finds them too
// large.
#pragma once

#define CELLAR_INLINE [[gnu::always_inline]] inline
