// What a thread of Cellar says about itself to the operating system. Failures are ignored: both are
// conveniences.
#pragma once

namespace cellar {

// The name of the calling thread in `top -H` and debuggers, at most 15 characters.
void SetThreadName(const char* name);

// The calling thread, when it is woken, waits until those that run there have had their turn
// (SCHED_BATCH): a thread that serves clients and gives it work goes on, instead of waiting for it.
void WaitForOthersWhenWoken();

// For work that nobody waits for: that, and the calling thread gets about a third of the share of a
// processor that the others get when they compete for it, and all that they leave.
void LowerThreadPriority();

}  // namespace cellar
