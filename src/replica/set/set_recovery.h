// What `cellar --check` says of a replica set's member beside its files, and
// `cellar --replica-recover`: the way on when a majority of a set is lost for good.
//
// A recovery takes all that the log of one member holds for committed, whatever the others may have
// had, and makes that member the only one of a new set. The others of the old set do not speak with
// it: they are emptied and join. In this order, so that a crash leaves a node that decides nothing,
// and can be recovered again: identity of the new set; record of members; commit mark.
#pragma once

#include <iosfwd>
#include <string>

#include "base/os/file.h"
#include "cellar/clock.h"
#include "cellar/status.h"
#include "store/offline/check.h"

namespace cellar {

// Prints who the node is whose folder that is, what it has promised, and what its log says of its
// set. OK, printing nothing, if it has been neither leader nor follower. kCorruption: it does not
// know any more.
Status TellOfMember(FileSystem& files, const std::string& directory, const CheckedMember& member,
                    std::ostream& out);

// Prints what a recovery would do; changes nothing. kErr: it is no member of a set.
Status LookForRecovery(FileSystem& files, const std::string& directory, std::ostream& out);

// Does it. The folder must not be in use (kIo).
Status RecoverSet(FileSystem& files, Clock& clock, const std::string& directory, std::ostream& out);

}  // namespace cellar
