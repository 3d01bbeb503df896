// TypePart: what one set of a cluster does of a FAMILY ALTER that changes types, where rows lie on
// several sets, with the rows that it owns. Set 0 asks for it (commands/cluster/alter_types.h):
//
//   look      before anything has changed: as the look of family_alter.cc, but that what is found is
//             told, and refused where all of it is known
//   alter     at set 0; every set has it at one moment (catalog_changes.h), as any other change
//   convert   CONVERT: each set rewrites what is of another type (cell_conversion.h)
//   see       neither CONVERT nor KEEP: is there anything of another type? It can only have been
//             written between the look and the alteration
//
// Nothing of it is in the schema or in the log: a set whose leader has changed is asked anew, and
// goes on with what is left. Each may be done twice.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cellar/status.h"
#include "engine/keys/key_range_set.h"
#include "engine/request/family_access.h"
#include "engine/schema/schema.h"
#include "engine/schema/type_change.h"
#include "store/sliced_change.h"
#include "store/store.h"
#include "store/type_look.h"

namespace cellar {

// *after := the family with types as the options say. ERR, BADKEY, TOOLARGE: the schema cannot have
// them.
Status AlterTypes(const TableSchema& schema, const FamilySchema& family,
                  const FamilyOptions& options, FamilySchema* after);

class TypePart : public SlicedChange {
 public:
  enum class Does : uint8_t { kLook, kConvert, kSee };
  struct Request {
    Does does{Does::kLook};
    std::string family{};
    FamilyOptions options{};
    uint64_t wanted{0};  // TypeChange::Hash of the family as set 0 has altered it, or will
    KeyRangeSet rows{};
  };
  // While it lives, no rows of the table leave the set. `rights` (null: all): of values that errors
  // may tell of. NOFAMILY; the errors of AlterTypes; TRYAGAIN: this set's schema is not the one
  // that set 0 has. REQUIRES: the set owns the rows; no transaction.
  static Result<std::unique_ptr<TypePart>> Make(Store& store, const Table& table, Request request,
                                                std::unique_ptr<FamilyAccess> rights);

  // TRYAGAIN: a look was about other types.
  static Status ChangedMeanwhile(const FamilySchema& family);

  // Of kLook and kConvert what cannot be converted, of kSee one cell of another type; of a kLook
  // without CONVERT, too. REQUIRES: done().
  virtual FoundCells found() const = 0;
};

// What a look is about, and so what is refused.
inline TypeLook::Asks AsksOf(const FamilyOptions& options) {
  return options.other_cells == OtherCells::kConvert ? TypeLook::Asks::kStuck
                                                     : TypeLook::Asks::kAny;
}

}  // namespace cellar
