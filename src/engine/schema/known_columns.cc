// See known_columns.h.
#include "engine/schema/known_columns.h"

#include "base/assert.h"
#include "base/hash.h"

namespace cellar {

void KnownColumns::Note(std::string_view name, const FamilySchema& family, std::string_view key) {
  CELLAR_ASSERT(!name.empty());
  CELLAR_ASSERT(!key.empty());
  if (name.size() > KnownColumn::kNameBytesMax || key.size() > KnownColumn::kKeyBytesMax) return;
  if (slots_ == nullptr) slots_ = std::make_unique<Slots>();
  KnownColumn& column = (*slots_)[SlotOf(name)];
  if (column.name() == name) return;
  const auto hash = static_cast<uint32_t>(Hash64(name));
  if (column.noted_hash_ != hash) {
    column.noted_hash_ = hash;
    return;
  }
  column.family_ = &family;
  column.name_bytes_ = static_cast<uint8_t>(name.size());
  column.key_bytes_ = static_cast<uint8_t>(key.size());
  name.copy(column.name_, sizeof(column.name_));
  key.copy(column.key_, sizeof(column.key_));
}

}  // namespace cellar
