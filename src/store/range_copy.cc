// See range_copy.h.
#include "store/range_copy.h"

#include "base/assert.h"
#include "engine/keys/cell.h"
#include "engine/keys/timestamp.h"

namespace cellar {
namespace {

// Cells of dropped families that are passed over at once.
constexpr size_t kPassedMax{100'000};

}  // namespace

RangeCopy::RangeCopy(Table& table, const Tablet& tablet)
    : table_id_(table.id()),
      schema_(table.schema()),
      tablet_(tablet),
      trees_(table.TakeSnapshots()) {}

// The next group that has something of the range.
bool RangeCopy::OpenGroup() {
  for (; group_ < trees_.size(); ++group_) {
    if (!at_) {
      at_.emplace(trees_[group_]);
      at_->Seek(tablet_.begin);
    }
    if (at_->valid() && (tablet_.end.empty() || at_->key() < tablet_.end)) return true;
    at_.reset();
  }
  return false;
}

bool RangeCopy::Next(size_t bytes_max, MutationBuilder* to) {
  const size_t begin = to->size();
  size_t passed = 0;
  for (; OpenGroup(); at_->Next()) {
    if (to->size() - begin >= bytes_max) return true;
    const std::string_view key = at_->key();
    const size_t row_bytes = schema_.key.EncodedSize(key);
    CELLAR_ASSERT(row_bytes > 0);
    uint32_t family_id = 0;
    const size_t family_end = row_bytes + DecodeFamilyId(key.substr(row_bytes), &family_id);
    CELLAR_ASSERT(family_end > row_bytes);
    const FamilySchema* const family = schema_.FindFamilyById(family_id);
    if (family == nullptr) {  // it was dropped
      if (++passed < kPassedMax) continue;
      at_->Next();
      return true;
    }
    const size_t qualifier_bytes = family->order.EncodedSize(key.substr(family_end));
    CELLAR_ASSERT(qualifier_bytes > 0);
    int64_t timestamp = 0;
    const bool whole = LoadTimestamp(key.substr(family_end + qualifier_bytes), &timestamp);
    CELLAR_ASSERT(whole);
    to->Row(table_id_, key.substr(0, row_bytes));
    to->Put(family_id, key.substr(family_end, qualifier_bytes), timestamp, at_->value());
    ++cells_;
  }
  return false;
}

}  // namespace cellar
