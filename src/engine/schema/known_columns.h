// KnownColumns: columns of a table as clients name them, and what the names stand for.
//
//   meta:miles  ->  family meta, key part | family id | m i l e s 00 01 |
//
// Clients name the same few columns again and again. A name that is known is found with one
// comparison, and its part of the cells' keys is copied; otherwise it is taken apart, the family is
// looked up and the qualifier encoded, which takes three times as long. A name becomes known when
// it is noted twice with no other one noted for its slot in between, so that columns that are named
// once only, as in wide rows, cost little more than the look. A hint: whatever is not known is only
// slower. 1 KiB a table, from its first note on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/equal_bytes.h"
#include "base/inline.h"
#include "engine/schema/schema.h"

namespace cellar {

// A column by its name. Dies as KnownColumns::Find says.
class KnownColumn {
 public:
  const FamilySchema& family() const { return *family_; }
  std::string_view name() const { return {name_, name_bytes_}; }

  // Its part of the keys of its cells: family id and encoded qualifier. Writes kKeyBytesMax bytes
  // to `to`, of which it returns the end of those that count.
  CELLAR_INLINE char* CopyKey(char* to) const {
    std::memcpy(to, key_, kKeyBytesMax);
    return to + key_bytes_;
  }

  static constexpr size_t kNameBytesMax{24};
  static constexpr size_t kKeyBytesMax{24};

 private:
  friend class KnownColumns;

  const FamilySchema* family_;
  uint8_t name_bytes_;  // 0: no column
  uint8_t key_bytes_;
  uint32_t noted_hash_;  // of the name that was noted last for this slot
  char name_[kNameBytesMax];
  char key_[kKeyBytesMax];
};
static_assert(sizeof(KnownColumn) == 64, "a cache line");

class KnownColumns {
 public:
  // The column of this name, null if it is not known. Dies with the next Note or Clear.
  CELLAR_INLINE const KnownColumn* Find(std::string_view name) const {
    if (slots_ == nullptr || name.empty()) [[unlikely]]
      return nullptr;
    const KnownColumn& column = (*slots_)[SlotOf(name)];
    return EqualBytes(name, {column.name_, column.name_bytes_}) ? &column : nullptr;
  }
  // Notes a name, and what it stands for: a family and the column's part of its cells' keys. It may
  // become known if both are short. REQUIRES: Clear is called before the family dies.
  void Note(std::string_view name, const FamilySchema& family, std::string_view key);
  // Forgets all. To be called whenever the schema changes.
  void Clear() { slots_ = nullptr; }

  uint64_t memory_bytes() const { return slots_ == nullptr ? 0 : sizeof(Slots); }

 private:
  static constexpr size_t kSlots{16};
  using Slots = std::array<KnownColumn, kSlots>;

  // Columns whose names differ in the last byte, as field0 to field9, have slots of their own.
  static size_t SlotOf(std::string_view name) {
    return (static_cast<uint8_t>(name.back()) + 3 * name.size()) % kSlots;
  }

  std::unique_ptr<Slots> slots_;  // null until a name is noted
};

}  // namespace cellar
