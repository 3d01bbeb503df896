// What --check --repair does to the files of a store that check.h has found to be damaged.
//
//   1  what is cut is copied to a name that ends in ".damaged"; what goes gets such a name too, or
//      one in ".unused" if it is sound and in nobody's way
//   2  the manifest that leaves it out is installed: the one step that counts
//   3  the old names of what nothing names any more are removed
//
// Until 2 the store is what it was, so a repair that ends at any call (killed, no room for a copy)
// begins anew when it is run again; behind 2 only old names are left, and the next start removes
// them too. A copy is complete when its name is there: it is written to a temporary name, synced
// and renamed. One that is there from an earlier run is not made again, and a file that has been
// damaged twice gets ".damaged-2".
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "base/os/file.h"
#include "cellar/status.h"
#include "store/format/manifest.h"

namespace cellar {

inline constexpr std::string_view kDamagedSuffix{".damaged"};
inline constexpr std::string_view kUnusedSuffix{".unused"};

// A file whose content is to be kept under another name.
struct KeptAside {
  std::string name;
  std::string_view suffix{kDamagedSuffix};
};

struct RepairPlan {
  Manifest before;  // what is installed
  Manifest after;
  std::vector<KeptAside> aside;
};

// Carries the plan out in the locked `directory`, and says what it does.
Status CarryOutRepair(FileSystem& files, const std::string& directory, const RepairPlan& plan,
                      std::ostream& out);

}  // namespace cellar
