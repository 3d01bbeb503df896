// See known_columns.h.
#include "engine/schema/known_columns.h"

#include <string>

#include "base/assert.h"
#include "base/hash.h"
#include "engine/keys/cell.h"
#include "engine/schema/column_set.h"

namespace cellar {

void KnownColumns::Note(const TableSchema& schema, std::string_view name, std::string_view family,
                        std::string_view qualifier) {
  CELLAR_ASSERT(name.size() > family.size());
  if (name.size() > KnownColumn::kNameBytesMax) return;
  if (slots_ == nullptr) slots_ = std::make_unique<Slots>();
  KnownColumn& column = (*slots_)[SlotOf(name)];
  if (column.name() == name) return;
  const auto hash = static_cast<uint32_t>(Hash64(name));
  if (column.noted_hash_ != hash) {
    column.noted_hash_ = hash;
    return;
  }
  const FamilySchema* const found = schema.FindFamily(family);
  if (found == nullptr) return;
  std::string key;
  PutFamilyId(&key, found->id);
  const size_t family_id_bytes = key.size();
  if (!EncodeQualifier(*found, qualifier, &key).ok()) return;
  if (key.size() > KnownColumn::kKeyBytesMax) return;
  column.family_ = found;
  column.name_bytes_ = static_cast<uint8_t>(name.size());
  column.family_name_bytes_ = static_cast<uint8_t>(family.size());
  column.family_id_bytes_ = static_cast<uint8_t>(family_id_bytes);
  column.key_bytes_ = static_cast<uint8_t>(key.size());
  name.copy(column.name_, sizeof(column.name_));
  key.copy(column.key_, sizeof(column.key_));
}

}  // namespace cellar
