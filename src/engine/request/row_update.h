// RowUpdate: what CUPDATE asks of many rows: which they are, and what is done to each.
//
// It may take many turns, so it owns the words that everything in it borrows from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/request/family_access.h"
#include "engine/request/read_options.h"
#include "engine/request/row_write.h"

namespace cellar {

// The rights of somebody who may be gone before the work is done, as they were at the beginning.
class FamilyAccessCopy final : public FamilyAccess {
 public:
  explicit FamilyAccessCopy(const FamilyAccess& rights) : writes_all_(rights.MayWriteAll()) {}
  // Families that will be asked for; of others nothing is allowed.
  void Add(const FamilyAccess& rights, std::string_view family) {
    if (rights.MayRead(family)) readable_.emplace(family);
    if (rights.MayWrite(family)) writable_.emplace(family);
  }

  bool MayRead(std::string_view family) const override { return readable_.contains(family); }
  bool MayWrite(std::string_view family) const override { return writable_.contains(family); }
  bool MayWriteAll() const override { return writes_all_; }

 private:
  std::set<std::string, std::less<>> readable_;
  std::set<std::string, std::less<>> writable_;
  bool writes_all_;
};

// The rows of an index that comes in another order are put into that of their keys first, if there
// are no more than these, about: a few milliseconds of work.
inline constexpr uint64_t kUpdateRowsSortedMax{16 * 1024};
// What such a list takes, about: of each row its text, a selector, a range of encoded keys.
inline constexpr size_t kUpdateRowsSortedBytes{kUpdateRowsSortedMax * 320};

struct RowUpdate {
  std::vector<std::string> words;  // never changed again
  RowOptions rows;                 // `where` is asked of a row when its turn comes
  RowWrite write;                  // `ops`; the rest is filled in by who carries it out
  uint64_t rows_max{kUnlimited};   // LIMIT: that are changed
  // Without room for a list, an index that comes in another order is not chosen.
  bool may_sort{true};

  size_t bytes() const {
    size_t bytes = words.capacity() * sizeof(std::string);
    for (const std::string& word : words) bytes += word.capacity();
    return bytes + write.ops.capacity() * sizeof(CellOp) +
           rows.rows.capacity() * sizeof(RowSelector);
  }
};

}  // namespace cellar
