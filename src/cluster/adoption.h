// Adoption: how the director lets a set have rows that nobody has any more (TABLET ADOPT), since
// they were lost with another set. It is a job like one that moves a tablet (move_jobs.h), whose
// donor is none: the director goes through the donor's steps itself, with a copy that is empty.
//
//   1  every other set      kHolds         has it anything of the rows? Only once all have said no
//   2  the one that adopts  kBegin         what it may have left of them goes
//   3                       kPart, kOwn    nothing comes, and the tablet is its own
//
// The map alone says that rows are lost, and it may be old: so all are asked first. What a set has
// denied once stays so: it could come to rows only by a job, and no other one of these goes on.
//
// All that is known here may be lost: the next director begins anew, and the recipient goes by what
// its set has logged. No sockets and no clocks.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "cluster/move_jobs.h"
#include "cluster/move_steps.h"

namespace cellar {

class Adoption {
 public:
  struct Question {
    uint64_t set{0};
    MoveStep step{};
  };
  // Whom to ask next. `sets`: those of the cluster by now; `catalog`: the newest change of the
  // schema. Who asks fills in what all of its steps say (cluster, floor).
  Question Next(const MoveJob& job, const std::vector<uint64_t>& sets, uint64_t catalog);
  // What the set that was asked last has answered, unless the job has ended there.
  void Take(const MoveAnswer& answer);

 private:
  std::set<uint64_t> denied_;  // sets that have nothing of it
  uint64_t asked_{0};          // one of those that are asked so
  bool asks_{false};
  MoveIn known_{};  // of the recipient's stage
};

}  // namespace cellar
