// FamilyAccess: on whose behalf a request comes: which families of its table it may read and write.
//
// Requests carry a pointer to one (null: everything is allowed). The engine asks it whenever a
// family is named, before it says whether there is such a family, and leaves families that may not
// be read out of everything that means "all families": rows, counts, the existence of a row.
#pragma once

#include <string_view>

namespace cellar {

class FamilyAccess {
 public:
  virtual ~FamilyAccess() = default;
  virtual bool MayRead(std::string_view family) const = 0;
  virtual bool MayWrite(std::string_view family) const = 0;
  // Whether every family may be written that the table has or may get: who may delete whole rows.
  // (Asking for those that it has would tell that there is one that is hidden.)
  virtual bool MayWriteAll() const = 0;
};

}  // namespace cellar
